"""weft run and weft check with --mode: names of tensors in files, what files leave out, what is refused. modes.py WEFT [MORE BACK ENDS]
Derivatives themselves are tests/oracle/transforms.py's and the unit tests'."""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
from tensor_file import read_tensors, read_types, write_tensors  # noqa: E402

weft = sys.argv[1]
bad = 0
SLOW = ["c", "llvm"]  # they compile and link each time
BACKENDS = ["interp", "loops", "c"] + sys.argv[2:]
PRODUCT = """graph @product(%x: f32[3], %k: i64[3], %y: f32[3]) {
  %1 = mul(%x, %y) : f32[3]
  %2 = sin(%x) : f32[3]
  return %1, %2, %k
}
"""
GROWTH = """graph @f(%x: f32[1]) {
  %grows = while([%x], [], cond=graph @more(%y: f32[1]) {
    %two = full(value=2.0, shape=[1], dtype=f32)
    %l = lt(%y, %two)
    %p = reshape(%l, shape=[])
    return %p
  }, body=graph @step(%y: f32[1]) {
    %a = full(value=1.1, shape=[1], dtype=f32)
    %z = mul(%y, %a)
    return %z
  })
  %y = get(%grows, index=0)
  return %y
}
"""
WRITES = """graph @f(%x: f32[2], %y: f32[2]) {
  %1 = mul(%x, %y) : f32[2]
  %2 = reverse(%y, dims=[0]) : f32[2]
  return %1 "p", %2 "r", %2 "y" -> "y"
}
"""
DEVIATION = """graph @f(%x: f32[2, 3]) {
  %y = aten.std.dim(%x, dim=[1]) : f32[2]
  return %y
}
"""
LOSS = """graph @loss(%x: f32[3]) {
  %1 = mul(%x, %x) : f32[3]
  %2 = aten.sum(%1) : f32[]
  return %2
}
"""
X, Y, K = [0.5, 1.0, 2.0], [3.0, -1.0, 4.0], [7, 8, 9]


def say(text):
    global bad
    bad += 1
    print("FAIL", text)


def floats(values, shape=None):
    return "f", [len(values)] if shape is None else shape, values


def command(*args):
    return subprocess.run([weft, *map(str, args)], capture_output=True, text=True)


def gives(what, model, inputs, wanted, *args):
    """weft run writes exactly these tensors."""
    write_tensors(here / "in.safetensors", inputs)
    p = command("run", model, "--inputs", here / "in.safetensors", "--outputs", here / "out.safetensors", *args)
    if p.returncode:
        return say(f"{what}: {p.stderr}")
    got = read_tensors(here / "out.safetensors")
    if set(got) != set(wanted):
        return say(f"{what}: {sorted(got)}, expected {sorted(wanted)}")
    for name, values in wanted.items():
        if any(abs(a - b) > 1e-5 for a, b in zip(got[name], values, strict=True)):
            say(f"{what}: {name} is {got[name]}, expected {values}")


def refused(what, *args, inputs=None):
    write_tensors(here / "in.safetensors", inputs or {"x.0": floats(X), "x.1": ("q", [3], K), "x.2": floats(Y)})
    p = command("run", *args, "--inputs", here / "in.safetensors", "--outputs", here / "no.safetensors")
    if p.returncode != (2 if p.stderr.startswith("weft: -") and "the model has" not in p.stderr else 1) or what not in p.stderr or p.stderr.count("\n") != 1:
        say(f"{what!r} expected: {p.returncode} {p.stderr}")


def checked(what, expected, reference, *args):
    write_tensors(here / "ref.safetensors", reference)
    p = command("check", product, here / "ref.safetensors", "--json", *args)
    try:
        result = json.loads(p.stdout)
    except ValueError:
        return say(f"{what}: {p.stdout}{p.stderr}")
    got = tuple(result[k] for k in ("passed", "failed", "skipped"))
    if got != expected:
        say(f"{what}: {got}, expected {expected}: {p.stdout}{p.stderr}")


with tempfile.TemporaryDirectory() as folder:
    here = pathlib.Path(folder)
    product, loss = here / "product.txt", here / "loss.txt"
    product.write_text(PRODUCT)
    deviation = here / "deviation.txt"
    deviation.write_text(DEVIATION)
    loss.write_text(LOSS)
    writes, growth = here / "writes.txt", here / "growth.txt"
    writes.write_text(WRITES)
    growth.write_text(GROWTH)
    inputs = {"x.0": floats(X), "x.1": ("q", [3], K), "x.2": floats(Y)}
    results = {"y.0": [x * y for x, y in zip(X, Y)], "y.1": [math.sin(x) for x in X], "y.2": K}
    cosines = [math.cos(x) for x in X]
    for backend in BACKENDS:
        b = ["--backend", backend]
        both = {"ct.0": floats([1, 2, 3]), "ct.1": floats([1, 1, 1])}
        gx = [c * y + d for c, y, d in zip([1, 2, 3], Y, cosines)]
        gy = [c * x for c, x in zip([1, 2, 3], X)]
        reference = inputs | both | {n: floats(v) for n, v in (results | {"g.0": gx, "g.2": gy}).items() if n != "y.2"}
        reference["y.2"] = ("q", [3], K)
        checked("right", (1, 0, 0), reference, "--mode", "vjp", *b)
        if backend in SLOW:
            continue
        checked("wrong", (0, 1, 0), reference | {"g.0": floats(gy)}, "--mode", "vjp", *b)
        gives("both cotangents", product, inputs | both, results | {"g.0": gx, "g.2": gy}, "--mode", "vjp", *b)
        gives("one", product, inputs | {"ct.1": floats([1, 1, 1])}, results | {"g.0": cosines, "g.2": [0, 0, 0]}, "--mode", "vjp", *b)
        gives("by name", product, inputs | both, results | {"g.2": gy}, "--mode", "vjp", "--wrt", "y", *b)
        # an input that is written, with a value that is a result too: none of the results that files name
        gives("writes", writes, {"x.0": floats([2, 3]), "x.1": floats([5, 7]), "ct.0": floats([1, 1]), "ct.1": floats([10, 20])},
              {"y.0": [10, 21], "y.1": [7, 5], "g.0": [5, 7], "g.1": [22, 13]}, "--mode", "vjp", *b)
        # of equal numbers the deviation is 0, and so is its tangent
        gives("deviation", deviation, {"x.0": ("f", [2, 3], [2, 2, 2, 1, 2, 4]), "t.0": ("f", [2, 3], [1, 0, 3, 1, 0, 0])},
              {"y.0": [0, 1.5275252316519468], "jy.0": [0, -0.43643578047198484]}, "--mode", "jvp", *b)
        gives("loss", loss, {"x.0": floats(X)}, {"y.0": [5.25], "g.0": [2 * x for x in X]}, "--mode", "vjp", *b)
        gives("one tangent", product, inputs | {"t.2": floats([1, 1, 0])},
              results | {"jy.0": [0.5, 1, 0], "jy.1": [0, 0, 0]}, "--mode", "jvp", *b)
        gives("tangent by wrt", product, inputs, results | {"jy.0": [0, 0, 0], "jy.1": [0, 0, 0]}, "--mode", "jvp", "--wrt", "x", *b)
        gives("two calls", product, {f"{c}.{n}": t for c in (0, 1) for n, t in (inputs | both).items()},
              {f"{c}.{n}": t for c in (0, 1) for n, t in (results | {"g.0": gx, "g.2": gy}).items()}, "--mode", "vjp", *b)
        gives("batch of none", product, {"vx.0": floats([], [0, 3]), "x.1": ("q", [3], K), "x.2": floats(Y)},
              {"vy.0": [], "vy.1": [], "vy.2": []}, "--mode", "vmap", *b)
        # 1.1, 1.21, ... up to 2: eight rounds, so 1.1**8 of the cotangent
        gives("bounded loop", growth, {"x.0": floats([1.0]), "ct.0": floats([1.0])}, {"y.0": [1.1**8], "g.0": [1.1**8]}, "--mode", "vjp",
              "--loop-bound", "grows=10", *b)
        gives("batch", product, {"vx.0": floats(X + Y, [2, 3]), "x.1": ("q", [3], K), "x.2": floats(Y)},
              {"vy.0": [x * y for x, y in zip(X + Y, Y + Y)], "vy.1": [math.sin(x) for x in X + Y], "vy.2": K + K}, "--mode", "vmap", *b)
        # x and k with their batch behind; %k without, as a result; a reference says so too
        columns = [X[0], Y[0], X[1], Y[1], X[2], Y[2]]
        turned = {"vx.0": floats(columns, [3, 2]), "x.1": ("q", [3], K), "vx.2": floats(columns, [3, 2])}
        squares = {"vy.0": [v * v for v in X + Y], "vy.1": [math.sin(v) for v in columns], "y.2": K}
        dims = ["--mode", "vmap", "--in-dims", "1,none,-1", "--out-dims", "0,-1,none", *b]
        gives("batch behind", product, turned, squares, *dims)
        gives("one number for all", product, {n: t for n, t in turned.items() if n != "vx.2"} | {"x.2": floats([1, 1, 1])},
              {"vy.0": columns, "vy.1": squares["vy.1"], "vy.2": [7, 7, 8, 8, 9, 9]}, "--mode", "vmap", "--in-dims", "-1", "--out-dims", "1", *b)
        of_three = {"vy.0": floats(squares["vy.0"], [2, 3]), "vy.1": floats(squares["vy.1"], [3, 2]), "y.2": ("q", [3], K)}
        checked("batch behind", (1, 0, 0), turned | of_three, *dims)
        checked("another batch", (0, 1, 0), turned | of_three | {"vy.0": floats([v * v for v in columns], [2, 3])}, *dims)
    checked("gradient of one", (1, 0, 0), {n: t for n, t in reference.items() if n != "g.2"}, "--mode", "vjp")
    p = command("check", product, here / "ref.safetensors", "--mode", "jvp")
    if p.returncode != 1 or "no reference has anything for --mode" not in p.stderr:
        say(f"nothing to check: {p.stdout} {p.stderr}")
    # one unit in the last place beside PyTorch's error, which is half a unit at least
    unit = 2.0 ** -20
    for error, ratio in ((unit / 1000, "2.00"), (unit / 2, "2.00"), (unit * 4, "0.25")):
        write_tensors(here / "ref.safetensors", {"x.0": floats([1.0, 2.0, 3.0]), "y.0": floats([14 + unit], [])}, {"eager_err.0": repr(error)})
        p = command("check", loss, here / "ref.safetensors", "--backend", "interp")
        if p.returncode or f"ratio {ratio}" not in p.stdout:
            say(f"error {error}, ratio {ratio} expected: {p.stdout} {p.stderr}")
    # of several outputs that one is told whose error is largest beside what is allowed
    (here / "two.txt").write_text("graph @f(%x: f32[1]) {\n  %a = mul(%x, %x)\n  return %x, %a\n}\n")
    for first, second, told in ((1.5, 4.01, "largest error 0.01, 65.7 of what is allowed (output 1)"), (1.5, 4.0, "largest error 0.5, 0.0625 of what is allowed (output 0)"),
                                (30.0, 4.0, "largest error 28, 3.5 of what is allowed (output 0)"), (2.0, 4.0, "  no error  ")):
        write_tensors(here / "ref.safetensors", {"x.0": floats([2.0]), "y.0": floats([first]), "y.1": floats([second])}, {"allow.0": "0 8 0"})
        p = command("check", here / "two.txt", here / "ref.safetensors", "--backend", "interp")
        if told not in p.stdout or (p.returncode != 0) != (first > 10 or second != 4):
            say(f"{told} expected: {p.returncode} {p.stdout} {p.stderr}")
    rounds = {"x.0": floats([1.0]), "ct.0": floats([1.0])}
    refused("--loop-bound grows=N", growth, "--mode", "vjp", inputs=rounds)
    refused("the loop grows has 8 rounds, more than the 7 that its bound for derivatives says", growth, "--mode", "vjp", "--loop-bound", "grows=7", inputs=rounds)
    refused("no loop on data is called grow: there are grows", growth, "--mode", "vjp", "--loop-bound", "grow=7", inputs=rounds)
    refused("--loop-bound grows: expected NODE=N", growth, "--mode", "vjp", "--loop-bound", "grows", inputs=rounds)
    refused("--mode is vjp, jvp or vmap, not grad", product, "--mode", "grad")
    refused("--wrt is for --mode vjp and jvp", product, "--wrt", "x")
    refused("no input or parameter is called z; the inputs are x, k, y", product, "--mode", "vjp", "--wrt", "z")
    refused("there is no derivative by a value of dtype i64", product, "--mode", "vjp", "--wrt", "k")
    refused("no tensor ct.0: only where output 0 is one number", product, "--mode", "vjp")
    refused("it has no vx.<i>", product, "--mode", "vmap")
    drawing = pathlib.Path(__file__).resolve().parent.parent / "data/mode/net_train.pt2"
    one = {"x.0": floats([k % 7 / 4 for k in range(96)], [3, 2, 4, 4])}
    write_tensors(here / "in.safetensors", one)
    for more in ["--seed", "5"], ["--set-mode", "eval"]:
        p = command("run", drawing, "--inputs", here / "in.safetensors", "--outputs", here / "out.safetensors", "--backend", "interp", *more)
        write_tensors(here / "ref.safetensors", one | read_types(here / "out.safetensors"))
        p = command("check", drawing, here / "ref.safetensors", "--backend", "interp", *more)
        if p.returncode or "1 passed, 0 failed" not in p.stdout or "random" in p.stdout:
            say(f"{more}: the same numbers again: {p.stdout} {p.stderr}")
        p = command("check", drawing, here / "ref.safetensors", "--backend", "interp", "--seed", "6")
        if p.returncode != 1 or "the model draws random numbers, which are not PyTorch's" not in p.stdout:
            say(f"{more}: what draws other numbers differs, and it is said why: {p.stdout} {p.stderr}")
    both = {"vx.0": floats(X + Y, [2, 3]), "x.1": ("q", [3], K), "vx.2": floats(X + Y, [2, 3])}
    for option, dims, text in (("in", "2,none,0", 'input "x" has 2 dimensions with a batch: it cannot be dimension 2, expected -2 to 1'),
                               ("in", "0,none,-3", 'input "y" has 2 dimensions with a batch: it cannot be dimension -3, expected -2 to 1'),
                               ("out", "-3", 'has 2 dimensions with a batch: it cannot be dimension -3, expected -2 to 1'),
                               ("in", "0,1", "--in-dims 0,1: the model has 3 inputs"), ("out", "0,0,0,0", "--out-dims 0,0,0,0: the model has 3 outputs"),
                               ("in", "0,0,0", "no tensor vx.1, of which dimension 0 is the batch"),
                               ("in", "none,none,0", "input x is to have a batch and is given no dimension for it"),
                               ("out", "none", "differs between the members of the batch: it needs a dimension for it"),
                               ("in", "0,,0", "expected dimensions or none, with commas between"), ("in", "0,none,0x", "expected dimensions or none"),
                               ("out", "nonesuch", "expected dimensions or none"), ("in", "99999999999", "expected dimensions or none")):
        refused(text, product, "--mode", "vmap", f"--{option}-dims", dims, inputs=both)
    refused("--in-dims is for --mode vmap", product, "--mode", "vjp", "--in-dims", "0")
    refused("--out-dims is for --mode vmap", product, "--out-dims", "0")
    refused("not for several as NAME=FILE", f"a={product}", "--mode", "vjp")
    refused("no tensor x.2 or y for input 2", product, "--mode", "jvp", inputs={"x.0": floats(X), "x.1": ("q", [3], K), "t.0": floats(X)})
sys.exit(1 if bad else 0)
