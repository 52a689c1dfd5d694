"""Drawn models of ONNX against ONNX Runtime: drawn.py WEFT SEED COUNT [--keep FOLDER]. To be run by a Python with onnx,
onnxruntime, numpy and safetensors. Kinds: types that the file states wrongly; dimensions whose name means nothing; loops that add pieces to
sequences; sequences of the pieces of a tensor; Ifs whose branches differ in rank, dtype or extents. Prints what differs, by seed. --keep
writes each model that agrees, with inputs and results of its last call: tests/exported has some as drawn_*."""
import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto as T
    from onnx import helper as h
    from safetensors.numpy import save_file
except ImportError as e:
    print(e)
    sys.exit(77)

p = argparse.ArgumentParser()
p.add_argument("weft")
p.add_argument("seed", type=int)
p.add_argument("count", type=int)
p.add_argument("--keep", type=pathlib.Path)
o = p.parse_args()
onnxruntime.set_default_logger_severity(4)


class Net:
    """Nodes of one graph; names are new."""
    last = 0

    def __init__(self, r):
        self.r, self.node, self.init = r, [], []

    def name(self):
        Net.last += 1
        return f"v{Net.last}"

    def op(self, kind, *operands, outputs=1, **attr):
        out = [self.name() for _ in range(outputs)]
        self.node.append(h.make_node(kind, list(operands), out, **attr))
        return out[0] if outputs == 1 else out

    def const(self, value, dtype=np.int64):
        out = self.name()
        self.node.append(h.make_node("Constant", [], [out], value=onnx.numpy_helper.from_array(np.array(value, dtype))))
        return out

    def size(self, x, k):
        return self.op("Gather", self.op("Shape", x), self.const(k))

    def graph(self, name, inputs, outputs):
        return h.make_graph(self.node, name, inputs, outputs)


def value(name, dtype=T.FLOAT, shape=None):
    return h.make_tensor_value_info(name, dtype, shape)


def model(net, inputs, outputs, infos=()):
    g = h.make_graph(net.node, "g", inputs, outputs, value_info=list(infos))
    return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def floats(r, *shape):
    return np.array([r.randint(-8, 8) / 4 for _ in range(int(np.prod(shape)))], "f").reshape(shape)


def lies(r):
    net, infos, x = Net(r), [], "x"
    for _ in range(r.randint(2, 6)):
        x = r.choice([lambda: net.op("Relu", x), lambda: net.op("Add", x, x), lambda: net.op("Transpose", x, perm=[1, 0]),
                      lambda: net.op("Concat", x, x, axis=r.randint(0, 1))])()
        if r.random() < 0.6:
            infos.append(value(x, T.FLOAT, r.choice([[], [7], [3, "q"], ["q", "q", 1], [0, 0], ["N", "M"]])))
    y = net.op("Neg", x)
    feeds = [{"x": floats(r, a, b)} for a, b in ((2, 3), (1, 5), (4, 1))]
    return model(net, [value("x", T.FLOAT, ["N", "M"])], [value(y, T.FLOAT, ["wrong", "wrong"])], infos), feeds


def names(r):
    word = r.choice(["?", "None", "-1", "unk__5", "unknown", "*", "''"])
    net = Net(r)
    n = r.randint(2, 3)
    xs = [f"x{k}" for k in range(n)]
    sums = [net.op("ReduceSum", x, net.const([0, 1]), keepdims=0) for x in xs]
    y = net.op("Concat", *[net.op("Unsqueeze", s, net.const([0])) for s in sums], axis=0)
    z = net.op("MatMul", xs[0], net.op("Transpose", xs[0], perm=[1, 0]))
    feeds = [{x: floats(r, r.randint(1, 4), r.randint(1, 4)) for x in xs} for _ in range(3)]
    return model(net, [value(x, T.FLOAT, [word, word]) for x in xs], [value(y, T.FLOAT, [n]), value(z, T.FLOAT, [word, word])]), feeds


def piece(r, net, x, i, carry):
    """A piece [1, 3] of a round."""
    at = net.op("Unsqueeze", i, net.const([0]))
    row = r.choice([lambda: net.op("Gather", x, at, axis=0),
                    lambda: net.op("Slice", x, at, net.op("Add", at, net.const([1])), net.const([0])),
                    lambda: net.op("ReduceSum", net.op("Slice", x, net.const([0]), net.op("Add", at, net.const([1])), net.const([0])),
                                   net.const([0]), keepdims=1)])()
    if carry and r.random() < 0.5:
        row = net.op("Add", row, carry)
    return r.choice([lambda: row, lambda: net.op("Relu", row), lambda: net.op("Neg", row)])()


def loops(r):
    net, body = Net(r), Net(r)
    rounds = net.size("x", 0)
    form = r.choice(["count", "less", "greater", "not", "equal", "both"])
    start, step = (0, 1) if form == "count" else (r.randint(0, 1), r.randint(1, 2))
    tensor = r.random() < 0.5
    i, test, index, seq, acc = (body.name() for _ in range(5))
    at = i if form == "count" else index
    pieces = [piece(r, body, "x", at, acc if tensor else None) for _ in range(r.randint(1, 3))]
    out, front = seq, r.random()
    for one in pieces:
        out = body.op("SequenceInsert", out, one, *([body.const(0)] if r.random() < front else []))
    after = body.op("Add", index, body.const(step))

    def more(g, at):
        if form == "count":
            return g.const(True, bool)
        if form == "less":
            return g.op("Less", at, rounds)
        if form == "greater":
            return g.op("Greater", rounds, at)
        if form == "not":
            return g.op("Not", g.op("GreaterOrEqual", at, rounds))
        if form == "equal":
            return g.op("LessOrEqual", at, g.op("Sub", rounds, g.const(1)))
        return g.op("And", g.op("Less", at, rounds), g.const(True, bool))

    goes = more(body, after)
    ins = [value(i, T.INT64, []), value(test, T.BOOL, []), value(index, T.INT64, []),
           h.make_tensor_sequence_value_info(seq, T.FLOAT, None)]
    outs = [value(goes, T.BOOL, []), value(after, T.INT64, []), h.make_tensor_sequence_value_info(out, T.FLOAT, None)]
    first = net.const(start)
    empty = net.op("SequenceEmpty") if r.random() < 0.7 else net.op("SequenceConstruct", net.op("Gather", "x", net.const([0]), axis=0))
    carried = [first, empty]
    if tensor:
        ins.append(value(acc, T.FLOAT, [1, 3]))
        new = body.op("Add", acc, pieces[-1])
        outs.append(value(new, T.FLOAT, [1, 3]))
        carried.append(net.op("Gather", "x", net.const([0]), axis=0))
    scans = []
    if r.random() < 0.4:
        scans = [body.op("Mul", pieces[0], body.const(0.5, "f"))]
        outs.append(value(scans[0], T.FLOAT, [1, 3]))
    enter = net.const(True, bool) if form == "count" else more(net, first)
    graph = body.graph("body", ins, outs)
    made = net.op("Loop", rounds if form == "count" else "", enter, *carried, outputs=2 + tensor + len(scans), body=graph)
    axis, fresh = r.choice([(0, 0), (1, 0), (0, 1), (1, 1), (-1, 0), (2, 1)])
    y = net.op("ConcatFromSequence", made[1], axis=axis, new_axis=fresh)
    results = [value(y), value(made[0], T.INT64)]
    if r.random() < 0.5:
        results.append(value(net.op("SequenceLength", made[1]), T.INT64))
    results += [value(name) for name in made[2:]]
    feeds = [{"x": floats(r, n, 3)} for n in (1 + (start > 0), 2, 5, 23)]
    return model(net, [value("x", T.FLOAT, ["N", 3])], results), feeds


def branch(r, x, depth):
    """The nodes of a branch, which makes something else of x [N, M]."""
    g = Net(r)
    forms = [lambda: g.op("Identity", x), lambda: g.op("Transpose", x, perm=[1, 0]), lambda: g.op("Unsqueeze", x, g.const([r.randint(0, 2)])),
             lambda: g.op("Reshape", x, g.const([-1])), lambda: g.op("ReduceSum", x, g.const([r.randint(0, 1)]), keepdims=0),
             lambda: g.op("Concat", x, x, axis=r.randint(0, 1)), lambda: g.op("Slice", x, g.const([0]), g.const([1]), g.const([r.randint(0, 1)])),
             lambda: g.op("Gather", g.op("Reshape", x, g.const([-1])),
                          g.op("Squeeze", g.op("NonZero", g.op("Relu", g.op("Reshape", x, g.const([-1])))), g.const([0])))]
    y = r.choice(forms)()
    if depth and r.random() < 0.3:
        y = fork(r, g, x, depth - 1)
    if r.random() < 0.3 and depth:
        y = g.op("Identity", y)
    return g.graph("b", [], [h.make_empty_tensor_value_info(y)])


def condition(r, net):
    return r.choice([lambda: net.op("Equal", net.size("x", r.randint(0, 1)), net.const(r.randint(1, 2))),
                     lambda: net.op("Greater", net.op("ReduceSum", "x", keepdims=0), net.const(0, "f")),
                     lambda: net.op("Less", net.size("x", 0), net.size("x", 1)), lambda: "flag"])()


def fork(r, net, x, depth=1):
    return net.op("If", condition(r, net), then_branch=branch(r, x, depth), else_branch=branch(r, x, depth))


def tame(r, net, y):
    """Nodes that take any rank, after which the type is f32[] or f32[*]."""
    for _ in range(r.randint(0, 3)):
        y = r.choice([lambda: net.op("Relu", y), lambda: net.op("Mul", y, net.const(0.5, "f")), lambda: net.op("Add", y, y)])()
    return r.choice([lambda: net.op("ReduceSum", y, keepdims=0), lambda: net.op("Reshape", y, net.const([-1])),
                     lambda: net.op("ReduceMax", net.op("Concat", net.op("Reshape", y, net.const([-1])), net.const([0], "f"), axis=0), keepdims=0)])()


def ifs(r):
    net = Net(r)
    results = []
    for _ in range(r.randint(1, 2)):
        y = fork(r, net, "x")
        other = net.op("Neg", "x")
        results.append(tame(r, net, y))
        if r.random() < 0.3:
            results.append(net.op("ReduceSum", net.op("Mul", other, "x"), keepdims=0))
    if len(results) > 1 and r.random() < 0.5:
        results.append(net.op("Add", net.op("ReduceSum", results[0], keepdims=0), net.op("ReduceSum", results[1], keepdims=0)))
    feeds = [{"x": floats(r, a, b), "flag": np.array(r.random() < 0.5)} for a, b in ((2, 3), (1, 4), (3, 1), (1, 1), (3, 2), (9, 8))]
    return model(net, [value("x", T.FLOAT, ["N", "M"]), value("flag", T.BOOL, [])], [value(y) for y in results]), feeds


def splits(r):
    """Pieces of 1 along a dimension that is a symbol, and what sequences do with them."""
    net = Net(r)
    x = net.op("Relu", "x") if r.random() < 0.5 else "x"
    scalar, keep = r.random() < 0.4, r.randint(0, 1)
    seq = net.op("SplitToSequence", x, net.const(1), axis=r.randint(-2, 1)) if scalar else \
        net.op("SplitToSequence", x, axis=r.randint(-2, 1), keepdims=keep)
    results = []
    for _ in range(r.randint(1, 3)):
        use = r.choice(["at", "length", "concat", "stack", "more", "loop"])
        if use == "at":
            results.append(value(net.op("SequenceAt", seq, net.const(r.choice([0, 1, -1])))))
        elif use == "length":
            results.append(value(net.op("SequenceLength", seq), T.INT64))
        else:
            some = seq
            if use == "more":
                some = net.op("SequenceInsert", seq, net.op("Neg", net.op("SequenceAt", seq, net.const(0))),
                              *([net.const(0)] if r.random() < 0.5 else []))
            elif use == "loop":
                body = Net(r)
                i, test, acc = (body.name() for _ in range(3))
                piece = body.op(r.choice(["Neg", "Abs"]), body.op("SequenceAt", seq, i))
                out, go = body.op("SequenceInsert", acc, piece), body.op("Identity", test)
                graph = body.graph("body", [value(i, T.INT64, []), value(test, T.BOOL, []), h.make_tensor_sequence_value_info(acc, T.FLOAT, None)],
                                   [value(go, T.BOOL, []), h.make_tensor_sequence_value_info(out, T.FLOAT, None)])
                some = net.op("Loop", net.op("SequenceLength", seq), "", net.op("SequenceEmpty"), body=graph)
            fresh = 1 if use == "stack" or not (scalar or keep) else r.randint(0, 1)
            results.append(value(net.op("ConcatFromSequence", some, axis=r.randint(0, 1) if fresh or scalar or keep else 0, new_axis=fresh)))
    feeds = [{"x": floats(r, a, b)} for a, b in ((2, 3), (4, 2), (3, 5))]
    return model(net, [value("x", T.FLOAT, ["N", "M"])], results), feeds


def check(kind, seed, folder):
    r = random.Random(f"{kind.__name__} {seed}")
    net, feeds = kind(r)
    path = folder / f"{kind.__name__}_{seed}.onnx"
    path.write_bytes(net.SerializeToString())
    label = f"{kind.__name__} {seed}"
    try:
        options = onnxruntime.SessionOptions()  # whose optimiser stumbles over types that are stated wrongly
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as e:
        return f"{label}: no model: {str(e)[-200:]}", "drawn wrongly"
    cases, failed = [], []
    for k, feed in enumerate(feeds):
        inputs = {i.name for i in session.get_inputs()}
        try:
            want = session.run(None, {n: v for n, v in feed.items() if n in inputs})
        except Exception:
            want = None
        case = {f"x.{j}": np.asarray(feed[i.name]).copy() for j, i in enumerate(session.get_inputs())}
        case.update({f"y.{j}": np.asarray(y).copy() for j, y in enumerate(want or [])})
        file = folder / f"{path.stem}_{k}.safetensors"
        save_file(case, file)
        (cases if want is not None else failed).append(file)
    # One compilation for all calls: with a reference, weft check would let small inputs decide.
    code = path.with_suffix(".so")
    p = subprocess.run([o.weft, "compile", path, "-o", code], capture_output=True, text=True, timeout=100)
    if p.returncode and cases:
        return f"{label}: {p.stderr.strip()[:400]}", "wrong"
    for file in cases + failed if not p.returncode else []:
        p = subprocess.run([o.weft, "check", code, file, "-q"], capture_output=True, text=True, timeout=100)
        if (p.returncode != 0) != (file in failed) or "internal" in p.stderr:
            return f"{label}: {file.name}: {(p.stdout + p.stderr).strip()[:400]}" if file in cases else \
                f"{label}: {file.name}: ONNX Runtime refuses the call, Weft does not", "wrong"
    if o.keep and cases:
        o.keep.mkdir(exist_ok=True)
        (o.keep / path.name).write_bytes(path.read_bytes())
        (o.keep / path.name).with_suffix(".safetensors").write_bytes(cases[-1].read_bytes())
    return "", "agree" if cases else "refused by both"


tally = {}
with tempfile.TemporaryDirectory() as here:
    for kind in (lies, names, loops, ifs, splits):
        for seed in range(o.seed, o.seed + o.count):
            said, what = check(kind, seed, pathlib.Path(here))
            key = f"{kind.__name__}: {what}"
            tally[key] = tally.get(key, 0) + 1
            if said:
                print(said, flush=True)
for key, n in tally.items():
    print(f"{key}: {n}")
sys.exit(any(k.endswith("wrong") for k in tally))
