"""What a compilation costs as graphs grow: scaling.py [--backend llvm|c] [--emit KIND] [--check] [--mode "vjp vjp"] WEFT [NAME...]

Each graph is compiled at several lengths. Printed: processor time in user mode, C compilers and linker included, peak memory
of the compiler, and for three lengths a < b < c the growth (t(c) - t(a)) / (t(b) - t(a)) beside (c - a) / (b - a), which is
linear; 5/4 of that is the limit, and some graphs have one of time and memory (MOST); --check fails where they are passed.
That is the benchmark `lengths` of meson. With --mode the graphs are transformed first, by transform_text beside WEFT, and its seconds
stand behind those of the compilation. tests/system/chains.py is the test; this shows where time goes. Use a build of --buildtype=release: others verify the
graph after every pass."""
import argparse
import array
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/system"))
import chains

LIMIT = 120
MANY = (1, 400, 6400)


def adds(n):
    """n values that differ, added into one."""
    lines, x = [], "%x"
    for i in range(n):
        lines += [f"%c{i} = full(dtype=f32, shape=[4, 6], value={i}.5)", f"%y{i} = mul(%x, %c{i})", f"%v{i} = add({x}, %y{i})"]
        x = f"%v{i}"
    return chains.graph("%x: " + chains.X, lines, x)


def inputs(n):
    """The sum of n inputs."""
    lines = [f"%v{i} = add({f'%v{i - 1}' if i > 1 else '%x0'}, %x{i})" for i in range(1, n)]
    return chains.graph(chains.inputs(n), lines, f"%v{n - 1}" if n > 1 else "%x0")


# ---- a transformer, as PyTorch exports it: tokens [T, D], H heads, weights of each layer of its own ----

T, D, H, F = 4, 8, 2, 16
WEIGHTS = {"norm1_weight": [D], "norm1_bias": [D], "qkv_weight": [3 * D, D], "qkv_bias": [3 * D], "out_weight": [D, D],
           "out_bias": [D], "norm2_weight": [D], "norm2_bias": [D], "up_weight": [F, D], "up_bias": [F],
           "down_weight": [D, F], "down_bias": [D]}
# name, operator, tensors, other arguments, shape; # is the layer's input, $ begins its names, weights have theirs
LAYER = [
    ("$n", "layer_norm", ["#", "norm1_weight", "norm1_bias"], {"normalized_shape": [D]}, [1, T, D]),
    ("$qkv", "linear", ["$n", "qkv_weight", "qkv_bias"], {}, [1, T, 3 * D]),
    ("$r", "view", ["$qkv"], {"size": [1, T, 3, H, D // H]}, [1, T, 3, H, D // H]),
    ("$p", "permute", ["$r"], {"dims": [2, 0, 3, 1, 4]}, [3, 1, H, T, D // H]),
    ("$q", "select.int", ["$p"], {"dim": 0, "index": 0}, [1, H, T, D // H]),
    ("$k", "select.int", ["$p"], {"dim": 0, "index": 1}, [1, H, T, D // H]),
    ("$v", "select.int", ["$p"], {"dim": 0, "index": 2}, [1, H, T, D // H]),
    ("$a", "scaled_dot_product_attention", ["$q", "$k", "$v"], {}, [1, H, T, D // H]),
    ("$t", "permute", ["$a"], {"dims": [0, 2, 1, 3]}, [1, T, H, D // H]),
    ("$f", "reshape", ["$t"], {"shape": [1, T, D]}, [1, T, D]),
    ("$o", "linear", ["$f", "out_weight", "out_bias"], {}, [1, T, D]),
    ("$s", "add.Tensor", ["#", "$o"], {}, [1, T, D]),
    ("$m", "layer_norm", ["$s", "norm2_weight", "norm2_bias"], {"normalized_shape": [D]}, [1, T, D]),
    ("$u", "linear", ["$m", "up_weight", "up_bias"], {}, [1, T, F]),
    ("$g", "gelu", ["$u"], {}, [1, T, F]),
    ("$d", "linear", ["$g", "down_weight", "down_bias"], {}, [1, T, D]),
    ("@", "add.Tensor", ["$s", "$d"], {}, [1, T, D]),
]
TENSORS = {"layer_norm": ["input", "weight", "bias"], "linear": ["input", "weight", "bias"], "add.Tensor": ["self", "other"],
           "scaled_dot_product_attention": ["query", "key", "value"]}


def layers(n):
    """(name, operator, tensors, other arguments, shape) of all nodes."""
    for i in range(n):
        def name(x):
            if x == "#":
                return f"h{i - 1}" if i else "x"
            return f"h{i}" if x == "@" else f"{x[1:]}{i}" if x[0] == "$" else f"l{i}_{x}"
        for y, op, tensors, rest, shape in LAYER:
            yield name(y), op, [name(x) for x in tensors], rest, shape


def text_transformer(n):
    """Weights are inputs."""
    lines = []
    for y, op, tensors, rest, shape in layers(n):
        args = [f"%{x}" for x in tensors] + [f"{k}={v}" for k, v in rest.items()]
        lines.append(f"%{y} = aten.{op}({', '.join(args)}) : f32{shape}")
    weights = "".join(f", %l{i}_{w}: f32{shape}" for i in range(n) for w, shape in WEIGHTS.items())
    return chains.graph(f"%x: f32[1, {T}, {D}]" + weights, lines, f"%h{n - 1}")


def meta(shape):
    strides, step = [], 1
    for d in reversed(shape):
        strides.insert(0, step)
        step *= d
    return {"dtype": 7, "sizes": [{"as_int": d} for d in shape], "requires_grad": False,
            "device": {"type": "cpu", "index": None}, "strides": [{"as_int": s} for s in strides],
            "storage_offset": {"as_int": 0}, "layout": 7}


def argument(v):
    return {"as_ints": v} if isinstance(v, list) else {"as_int": v}


def node(name, op, tensors, rest):
    names = TENSORS.get(op, ["self", "weight", "bias"])
    inputs = [{"name": k, "arg": {"as_tensor": {"name": x}}, "kind": 1} for k, x in zip(names, tensors)]
    inputs += [{"name": k, "arg": argument(v), "kind": 1} for k, v in rest.items()]
    return {"target": f"torch.ops.aten.{op if '.' in op else op + '.default'}", "inputs": inputs,
            "outputs": [{"as_tensor": {"name": name}}], "name": name, "is_hop_single_tensor_return": None,
            "metadata": {"stack_trace": f'File "model.py", line {10 + len(tensors)}, in forward\n    y = {op}(x)'}}


def archive_transformer(n):
    """As an archive of torch.export."""
    weights = {f"l{i}_{w}": shape for i in range(n) for w, shape in WEIGHTS.items()}
    values = {"x": meta([1, T, D])} | {w: meta(shape) for w, shape in weights.items()}
    nodes = []
    for y, op, tensors, rest, shape in layers(n):
        nodes.append(node(y, op, tensors, rest))
        values[y] = meta(shape)
    tensor = lambda x: {"as_tensor": {"name": x}}
    leaf = {"type": None, "context": None, "children_spec": []}
    args = {"type": "builtins.tuple", "context": "null", "children_spec": [leaf]}
    spec = {"type": "builtins.tuple", "context": "null",
            "children_spec": [args, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}
    specs = [{"parameter": {"arg": {"name": w}, "parameter_name": w}} for w in weights]
    model = {
        "graph_module": {
            "graph": {"inputs": [tensor(w) for w in weights] + [tensor("x")], "outputs": [tensor(f"h{n - 1}")], "nodes": nodes,
                      "tensor_values": values, "sym_int_values": {}, "sym_bool_values": {}, "sym_float_values": {},
                      "custom_obj_values": {}, "is_single_tensor_return": False},
            "signature": {"input_specs": specs + [{"user_input": {"arg": tensor("x")}}],
                          "output_specs": [{"user_output": {"arg": tensor(f"h{n - 1}")}}]},
            "module_call_graph": [{"fqn": "", "signature": {
                "inputs": [], "outputs": [], "in_spec": json.dumps([1, spec]), "out_spec": json.dumps([1, leaf]),
                "forward_arg_names": ["x"]}}],
            "metadata": {}, "treespec_namedtuple_fields": {}},
        "opset_version": {"aten": 10}, "range_constraints": {}, "schema_version": {"major": 8, "minor": 20},
        "verifiers": ["TRAINING"], "torch_version": "2.15.0", "guards_code": []}
    config = {w: {"path_name": f"weight_{k}", "is_param": True, "use_pickle": False, "tensor_meta": values[w]}
              for k, w in enumerate(weights)}
    data = {f"data/weights/weight_{k}": floats(k, shape) for k, shape in enumerate(weights.values())}
    data["data/weights/model_weights_config.json"] = json.dumps({"config": config})
    data["data/constants/model_constants_config.json"] = json.dumps({"config": {}})
    data |= {"models/model.json": json.dumps(model), "archive_format": "pt2", "archive_version": "0",
             ".data/version": "3\n", "byteorder": "little"}
    return data


def floats(k, shape):
    """Weights that differ."""
    n = 1
    for d in shape:
        n *= d
    return array.array("f", [((k * 7 + i * 3) % 101 - 50) / 100 for i in range(n)]).tobytes()


# name: lengths and what makes the graph
GRAPHS = {
    "mm": (MANY, chains.KINDS["mm"]),
    "mm residual": (MANY, chains.KINDS["mm residual"]),
    "adds": ((1, 400, 5000), adds),
    "sums": ((4, 16, 64), chains.sums),
    "concat": ((1, 50, 500), chains.joined),
    "scan in scan": ((1, 20, 320), chains.scans),
    "inputs": ((1, 125, 2000), inputs),
    "outputs": ((1, 125, 2000), chains.outputs),
    "softmax": ((1, 25, 400), chains.KINDS["softmax"]),
    "softmaxes": (MANY, chains.KINDS["softmax"]),
    "parameters": ((1, 125, 2000), text_transformer),
    "transformer": ((1, 125, 2000), archive_transformer),
}
# seconds and megabytes that the longest may take
MOST = {"mm": (3, 300), "softmax": (2, 300), "transformer": (4, 1000)}
GROWTH, SLACK = 1.25, 0.5


def write(data):
    if isinstance(data, str):
        pathlib.Path("m.ir").write_text(data)
        return "m.ir"
    with zipfile.ZipFile("m.pt2", "w") as z:
        for name, contents in data.items():
            z.writestr(zipfile.ZipInfo("m/" + name, (1980, 1, 1, 0, 0, 0)), contents)
    return "m.pt2"


def compile_seconds(weft, file, options):
    """Processor time and the compiler's summary; None, None where it fails or takes too long."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([weft, "compile", file, "-o", "out", "--no-cache", "--json", *options], capture_output=True, text=True,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT)))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode:
        print(f"status {run.returncode}: {run.stderr.strip()[-200:]}")
        return None, None
    return after.ru_utime - before.ru_utime, json.loads(run.stdout)


def within(name, t, linear, megabytes):
    seconds, most = MOST.get(name, (LIMIT, float("inf")))
    return t[2] <= seconds and megabytes <= most and (t[2] - t[0]) <= GROWTH * linear * (t[1] - t[0]) + SLACK


def main():
    p = argparse.ArgumentParser()
    p.add_argument("weft")
    p.add_argument("name", nargs="*")
    p.add_argument("--backend", default="llvm,c", help="one or more of llvm, c")
    p.add_argument("--emit", default="so")
    p.add_argument("--check", action="store_true")
    p.add_argument("--mode", help="transforms, one after the other: vjp, jvp, vmap")
    p.add_argument("--keep", help="write the graphs of the longest length to this folder, compile nothing")
    o = p.parse_args()
    weft = str(pathlib.Path(o.weft).resolve())
    passed = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(o.keep or folder)
        for name in o.name or GRAPHS:
            lengths, make = GRAPHS[name]
            if o.keep:
                file = write(make(lengths[-1]))
                os.rename(file, name.replace(" ", "_") + pathlib.Path(file).suffix)
                continue
            for backend in o.backend.split(","):
                row, t = [], []
                for n in lengths:
                    graph, spent = make(n), ""
                    if o.mode:
                        if not isinstance(graph, str):
                            break
                        graph, took = chains.transformed(str(pathlib.Path(weft).parent / "transform_text"), o.mode, graph)
                        spent = f" after {sum(took or []):.2f} s"
                    if graph is None:
                        break
                    seconds, summary = compile_seconds(weft, write(graph), ["--backend", backend, "--emit", o.emit])
                    if seconds is None:
                        break
                    t.append(seconds)
                    row.append(f"{n}: {seconds:.2f} s{spent}, {summary['peak_bytes'] / 1e6:.0f} MB, {summary['kernels']} kernels")
                linear = (lengths[2] - lengths[0]) / (lengths[1] - lengths[0])
                if len(t) < 3 or not within(name, t, linear, summary["peak_bytes"] / 1e6):
                    passed.append(f"{name} {backend}")
                grew = f"{(t[2] - t[0]) / max(t[1] - t[0], 0.01):.1f} of {linear:.1f}" if len(t) == 3 else ""
                print(f"{name:14} {backend:5} {'; '.join(row)}; {grew}", flush=True)
        os.chdir("/")
    if o.check and passed:
        sys.exit("over a limit: " + ", ".join(passed))


if __name__ == "__main__":
    main()
