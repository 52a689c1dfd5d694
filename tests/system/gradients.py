"""weft compile --grad: what forward_saving and backward give together is what weft run --mode vjp gives, and what another forward saved
is refused. gradients.py WEFT SOURCE [BACKEND...] (c)"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
from tensor_file import read_tensors, read_types, write_tensors  # noqa: E402

weft, data = sys.argv[1], pathlib.Path(sys.argv[2]) / "tests/data"
bad = 0
CHAIN = """graph @chain(%x: f32[B, 4], %y: f32[B, 4]) where 1 <= B <= 64 {
  %1 = mul(%x, %y) : f32[B, 4]
  %2 = sin(%1) : f32[B, 4]
  %3 = exp(%2) : f32[B, 4]
  %4 = aten.softmax.int(%3, dim=1) : f32[B, 4]
  %out = mul(%4, %x) : f32[B, 4]
  return %out, %1
}
"""
T = "f64[B, 4]"


def layer(out, x, w):
    return (f"  %{out}.p = contract(%{x}, %{w}, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f64) : {T}\n"
            f"  %{out} = tanh(%{out}.p) : {T}\n")


def reversible_text(blocks, marked):
    """y0 = x0 + F(x1), y1 = x1 + G(y0), blocks times, with the inverse or without."""
    t = f"graph @rev(%x: {T}, %w: f64[4, 4], %v: f64[4, 4]) where 1 <= B <= 64 {{\n  %z0.0 = sin(%x) : {T}\n  %z0.1 = exp(%x) : {T}\n"
    for k in range(blocks):
        x = [f"b{k}.x{j}" if marked else f"z{k}.{j}" for j in range(2)]
        y = [f"b{k}.y{j}" if marked else f"z{k + 1}.{j}" for j in range(2)]
        if marked:
            t += "".join(f'  %{x[j]} = checkpoint(%z{k}.{j}, at="begin") : {T}\n' for j in range(2))
        t += layer(f"b{k}.f", x[1], "w") + f"  %{y[0]} = add(%{x[0]}, %b{k}.f) : {T}\n"
        t += layer(f"b{k}.g", y[0], "v") + f"  %{y[1]} = add(%{x[1]}, %b{k}.g) : {T}\n"
        if marked:
            t += (f"  %b{k}.b = invertible([%{y[0]}, %{y[1]}], [%{x[0]}, %{x[1]}], [%w, %v], inverse=graph @undo(%y0: {T}, %y1: {T}, "
                  "%w: f64[4, 4], %v: f64[4, 4]) {\n" + layer("g", "y0", "v") + f"  %x1 = sub(%y1, %g) : {T}\n" + layer("f", "x1", "w") +
                  f'  %x0 = sub(%y0, %f) : {T}\n  return %x0, %x1\n  }}, name="block{k}") : ({T}, {T})\n')
            t += "".join(f"  %z{k + 1}.{j} = get(%b{k}.b, index={j}) : {T}\n" for j in range(2))
    return t + f"  %y = mul(%z{blocks}.0, %z{blocks}.1) : {T}\n  return %y\n}}\n"


# p is drawn by a key: backward has the mask that forward had
DROPOUT = """graph @dropped(%x: f32[B, 8]) where 1 <= B <= 64 {
  %1 = sin(%x) : f32[B, 8]
  %2 = aten.dropout(%1, p=0.5, train=true) : f32[B, 8]
  %3 = mul(%2, %2) : f32[B, 8]
  %4 = aten.dropout(%3, p=0.25, train=true) : f32[B, 8]
  %out = mul(%4, %x) : f32[B, 8]
  return %out
}
"""
SELECTED = {"masked_select": """graph @selected(%x: f32[6], %m: bool[6]) where unbacked 0 <= u0 {
  %s = aten.masked_select(%x, %m) : f32[u0]
  %e = exp(%s) : f32[u0]
  %y = aten.sum(%e) : f32[]
  return %y
}
""", "nonzero": """graph @found(%x: f32[6], %m: bool[6]) where unbacked 0 <= u0 {
  %n = aten.nonzero(%m) : i64[u0, 1]
  %i = aten.squeeze.dim(%n, dim=1) : i64[u0]
  %s = aten.index_select(%x, %i, dim=0) : f32[u0]
  %e = exp(%s) : f32[u0]
  %y = aten.sum(%e) : f32[]
  return %y
}
"""}


def say(text):
    global bad
    bad += 1
    print("FAIL", text)


def command(*args):
    p = subprocess.run([weft, *map(str, args)], capture_output=True, text=True)
    if p.returncode:
        say(f"{' '.join(map(str, args))}: {p.stderr}")
    return p


def run(here, model, tensors, *args):
    write_tensors(here / "in.safetensors", tensors)
    command("run", model, "--inputs", here / "in.safetensors", "--outputs", here / "out.safetensors", *args)
    return read_types(here / "out.safetensors")


def close(what, got, want, within=1e-5):
    scale = max((abs(v) for v in want), default=0) + 1e-30
    if any(abs(a - b) > within * scale for a, b in zip(got, want, strict=True)):
        say(f"{what}: {got[:8]}, expected {want[:8]}")


def one(here, what, model, inputs, cotangents, backend, *options, wrt=None, results=None, wanted=None):
    """inputs: of the model; cotangents: by output; wrt: of --grad; results: where there are more than cotangents; wanted: the gradients in
    their order, by name."""
    so = here / "m.so"
    command("compile", model, f"--grad={wrt}" if wrt else "--grad", "--backend", backend, "-o", so, *options)
    whole = run(here, model, inputs | {f"ct.{k}": t for k, t in enumerate(cotangents)}, "--mode", "vjp", "--wrt", wrt or "inputs,params")
    first = run(here, so, inputs, "--entry", "forward_saving")
    results = results or len(cotangents)
    for k in range(results):
        close(f"{what}: y.{k}", first[f"y.{k}"][2], whole[f"y.{k}"][2])
    # the model's inputs, what was saved, cotangents
    entries = {e["name"]: e for e in json.loads(command("show", so, "--json").stdout)["entries"]}
    nsaved = sum(o["name"].startswith("saved.") for o in entries["forward_saving"]["outputs"])
    passed = [*inputs.values(), *(first[f"y.{k}"] for k in range(results, results + nsaved)), *cotangents]
    second = run(here, so, {f"x.{k}": t for k, t in enumerate(passed)}, "--entry", "backward")
    names = [i["name"] for i in entries["run"]["inputs"]]
    gradients = [o["name"].removeprefix("g.") for o in entries["backward"]["outputs"]]
    gradients = [f"g.{names.index(n)}" if n in names else f"gp.{n}" for n in gradients]
    if {name for name in whole if name.startswith("g")} != set(gradients):
        say(f"{what}: {gradients}, expected {list(whole)}")
    if wanted and (gradients != list(wanted) or len(second) != len(wanted)):
        say(f"{what}: {gradients}, expected {list(wanted)}")
    for k, name in enumerate(gradients):
        close(f"{what}: {name}", second[f"y.{k}"][2], whole[name][2])
        if wanted:
            close(f"{what}: {name} of PyTorch", second[f"y.{k}"][2], wanted[name][2])
    return so, passed


def refused(here, so, passed, what, text):
    write_tensors(here / "in.safetensors", {f"x.{k}": t for k, t in enumerate(passed)})
    p = subprocess.run([weft, "run", so, "--entry", "backward", "--inputs", here / "in.safetensors", "--outputs", here / "no.npz"],
                       capture_output=True, text=True)
    if p.returncode != 1 or text not in p.stderr:
        say(f"{what}: {p.returncode} {p.stderr}")


def loss(here, model, inputs, ct):
    """Of the first call, whose key is the same every time."""
    y = run(here, model, inputs)["y.0"][2]
    return sum(a * b for a, b in zip(y, ct[2], strict=True))


def dropout(here, backend):
    """Backward's gradient, of forward's mask, along itself against a difference of losses."""
    for budget in ([], ["--memory-budget", "0"], ["--memory-budget", "0.5"]):
        (here / "dropout.txt").write_text(DROPOUT)
        x, ct = floats([5, 8], 3), floats([5, 8], 1)
        so, passed = one(here, f"dropout {backend} {budget}", here / "dropout.txt", {"x.0": x}, [ct], backend, *budget)
        g = run(here, so, {f"x.{k}": t for k, t in enumerate(passed)}, "--entry", "backward")["y.0"][2]
        size, h = sum(v * v for v in g), 1e-3
        ends = [loss(here, here / "dropout.txt", {"x.0": ("f", [5, 8], [a + e * h * b for a, b in zip(x[2], g, strict=True)])}, ct) for e in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * h)
        if size == 0 or g.count(0) < 5 or abs(slope - size) > 0.02 * size:
            say(f"dropout {backend} {budget}: difference {slope}, gradient {size}, {g.count(0)} zeros")


def sizes_of_data(here, backend):
    """What has such a size is not saved: two entries, or one error that says what to do; one entry always."""
    for name, text in SELECTED.items():
        model = here / f"{name}.txt"
        model.write_text(text)
        given = {"x.0": floats([6], 1), "x.1": ("b", [6], [1, 0, 1, 1, 0, 1])}
        g = run(here, model, given | {"ct.0": ("f", [], [2.0])}, "--mode", "vjp")["g.0"][2]
        close(f"{name}: g.0", g, [2 * math.exp(v) * m for v, m in zip(given["x.0"][2], given["x.1"][2], strict=True)])
        p = subprocess.run([weft, "compile", model, "--grad", "--backend", backend, "-o", here / "no.so"], capture_output=True, text=True)
        if p.returncode != 1 or p.stderr.count("error:") != 1 or "compile the graph of --mode vjp as one entry" not in p.stderr or (here / "no.so").exists():
            say(f"{name}: {p.returncode} {p.stderr}")


def reversible(here, backend):
    """What is saved does not depend on the number of blocks; gradients are those of the graph without marks; one entry costs the same."""
    saved = {}
    for blocks in (2, 16):
        for marked in (False, True):
            (here / f"{marked}.txt").write_text(reversible_text(blocks, marked))
        given = {"x.0": floats([3, 4], 1, "d"), "x.1": floats([4, 4], 3, "d"), "x.2": floats([4, 4], 9, "d")}
        ct = floats([3, 4], 5, "d")
        whole = run(here, here / "False.txt", given | {"ct.0": ct}, "--mode", "vjp")
        for name, t in run(here, here / "True.txt", given | {"ct.0": ct}, "--mode", "vjp", "--backend", "jit" if backend == "llvm" else backend).items():
            close(f"{blocks} marked blocks {backend}: {name}", t[2], whole[name][2], 1e-12)
        so = here / "m.so"
        command("compile", here / "True.txt", "--grad", "--backend", backend, "-o", so)
        first = run(here, so, given, "--entry", "forward_saving")
        saved[blocks] = [t[1] for t in first.values()]
        passed = [*given.values(), *list(first.values())[1:], ct]
        second = run(here, so, {f"x.{k}": t for k, t in enumerate(passed)}, "--entry", "backward")
        for k in range(3):
            close(f"{blocks} invertible blocks {backend}: g.{k}", second[f"y.{k}"][2], whole[f"g.{k}"][2], 1e-10)
    if saved[2] != saved[16] or saved[2] != [[3, 4], [], [3, 4], [3, 4]]:
        say(f"reversible {backend}: saved {saved}")


# LIST of --grad: the gradients of backward, in their order
CHOICES = {None: ["g.0", "g.2", "gp.layer.weight", "gp.layer.bias"], "inputs": ["g.0", "g.2"], "params": ["gp.layer.weight", "gp.layer.bias"],
           "x": ["g.0"], "y": ["g.2"], "layer.bias": ["gp.layer.bias"], "scale": ["gp.scale"], "y,x": ["g.0", "g.2"],
           "layer.weight,x": ["g.0", "gp.layer.weight"], "params,y": ["g.2", "gp.layer.weight", "gp.layer.bias"],
           "inputs,scale": ["g.0", "g.2", "gp.scale"], "params,inputs": ["g.0", "g.2", "gp.layer.weight", "gp.layer.bias"],
           "layer.bias,params,layer.bias,x,inputs": ["g.0", "g.2", "gp.layer.weight", "gp.layer.bias"],
           "scale,layer.bias,layer.weight": ["gp.layer.weight", "gp.layer.bias", "gp.scale"]}


def choices(here, backend):
    """Each form of the list gives these gradients and no others, which are PyTorch's."""
    tensors = read_types(data / "grad/choices.safetensors")
    inputs = {n: t for n, t in tensors.items() if n.startswith("x.")}
    for wrt, wanted in CHOICES.items():
        one(here, f"choices {backend} --grad={wrt}", data / "grad/choices.pt2", inputs, [tensors["ct.0"], tensors["ct.1"]], backend, wrt=wrt,
            results=3, wanted={n: tensors[n] for n in wanted})


def floats(shape, start, code="f"):
    n = 1
    for d in shape:
        n *= d
    return code, list(shape), [((start + 7 * k) % 23 - 11) / 8 for k in range(n)]


with tempfile.TemporaryDirectory() as folder:
    here = pathlib.Path(folder)
    (here / "chain.txt").write_text(CHAIN)
    for backend in sys.argv[3:] or ["c"]:
        for rows in (2, 5):
            inputs = {"x.0": floats([rows, 4], 1), "x.1": floats([rows, 4], 3)}
            so, passed = one(here, f"chain {backend}", here / "chain.txt", inputs, [floats([rows, 4], 2), floats([rows, 4], 5)], backend)
        refused(here, so, [*passed[:2], ("q", [], [1]), *passed[3:]], "another mark", "not what this model's forward_saving gave")
        longer = [passed[3][1][0] + 1, *passed[3][1][1:]]
        refused(here, so, [*passed[:3], floats(longer, 1), *passed[4:]], "another size", "dimension 0")
        choices(here, backend)
        dropout(here, backend)
        sizes_of_data(here, backend)
        reversible(here, backend)
        tensors = read_types(data / "mlp.safetensors")
        results = [t for name, t in tensors.items() if name.startswith("y.")]
        given = {n: t for n, t in tensors.items() if n.startswith("x.")}
        for options in ([], ["--memory-budget", "0.5"], ["--memory-budget", "0"]):
            one(here, f"mlp {backend} {options}", data / "mlp.pt2", given, results, backend, *options)
    for budget, said in (("none", "not none"), ("-1", "not -1"), ("3x", "not 3x")):
        p = subprocess.run([weft, "compile", data / "mlp.pt2", "--grad", "--memory-budget", budget, "-o", here / "m.so"],
                           capture_output=True, text=True)
        if p.returncode != 2 or said not in p.stderr:
            say(f"--memory-budget {budget}: {p.returncode} {p.stderr}")
sys.exit(1 if bad else 0)
