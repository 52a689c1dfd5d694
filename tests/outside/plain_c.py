"""The back end plain-c of examples/backend, built with the public headers alone: plain_c.py WEFT SOURCE_ROOT [--all] CC...
Its C is compiled and run: models of files, graphs of tests/text/run with their inputs, and drawn ones give the bits of Weft's
interpreter of loop IR. Without --all, each fourth graph of tests/text/run. What it does not know it refuses with one sentence that names it."""
import array
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
import limits  # noqa: E402
from tensor_file import read_types, write_tensors  # noqa: E402

# What a program may have that the back end does not know.
NOT_KNOWN = re.compile(r'has the statement "(call|save|room)", which it does not know$')

weft, root, cc = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve(), [a for a in sys.argv[3:] if a != "--all"]
PART = 1 if "--all" in sys.argv else 4  # every 4th graph of tests/text/run
FLAGS = ["-O0", "-std=c17", "-Werror", "-ffp-contract=off", "-fno-strict-aliasing", "-DPLAIN_MAIN"]
CODES = {"f32": "f", "f64": "d", "i32": "i", "i64": "q", "u64": "Q", "bool": "b"}
bad, refusals = 0, []


def wrong(what, text):
    global bad
    bad += 1
    print(f"FAIL: {what}\n{text}")


def command(*args):
    done = limits.run([str(a) for a in args], 300, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def emitted(model, to, *more, target="generic-c"):
    return command(weft, "compile", model, "--backend-library", here / "libplain_c.so", "--backend", "plain-c", "--target", target, "-o", to, *more)


def array_bytes(code, values):
    return array.array(code, values).tobytes()


def outputs(path):
    """(name, shape, dtype, bytes) of each tensor of a safetensors file, in order."""
    data = path.read_bytes()
    n = int.from_bytes(data[:8], "little")
    rows = [(int(name[2:]), t) for name, t in json.loads(data[8:8 + n]).items() if name != "__metadata__"]
    return [(f"y.{k}", t["shape"], t["dtype"], data[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]) for k, t in sorted(rows, key=lambda r: r[0])]


def is_same(dtype, a, b):
    """To the bit, but NaN is NaN."""
    if a == b or len(a) != len(b) or dtype not in ("F32", "F64"):
        return a == b
    one, other = array.array("fd"[dtype == "F64"], a), array.array("fd"[dtype == "F64"], b)
    return all(x.hex() == y.hex() for x, y in zip(one, other))


def program(what, model):
    """The program of the C that the back end makes; None: it makes none."""
    code, said = emitted(model, here / "m.c")
    if code and NOT_KNOWN.search(said.strip()):
        refusals.append(said)
        return None
    if code:
        wrong(f"{what}: no C", said)
        return None
    code, said = command(*cc, *FLAGS, here / "m.c", "-lm", "-o", here / "m")
    if code:
        wrong(f"{what}: the C is not compiled", said[:2000])
        return None
    return here / "m"


def same(what, model, inputs, message=None):
    """inputs: {x.K: (code, shape, values)}. Whether the program gives what Weft gives, to the bit; where Weft's call fails, it fails, with that
    message or Weft's own."""
    write_tensors(here / "x.safetensors", inputs)
    want_code, want_said = command(weft, "run", model, "--backend", "loops", "--target", "generic-c", "--inputs", here / "x.safetensors", "--outputs",
                                   here / "y.safetensors")
    made = program(what, model)
    if not made:
        return
    args = []
    for k, (name, (code, shape, values)) in enumerate(inputs.items()):
        (here / f"x{k}.raw").write_bytes(array_bytes(code, values))
        args.append(f"{here}/x{k}.raw:{'x'.join(map(str, shape))}")
    code, said = command(made, here / "y", *args)
    if want_code or code:
        last = said.strip().split("\n")[-1]
        extents = ": input " in want_said  # which weft run checks itself, in other words
        if bool(want_code) != bool(code) or (last != message if message else last not in want_said and not extents):
            wrong(f"{what}: weft ends with {want_code}, the program with {code}", want_said + said)
        return
    for k, (name, shape, dtype, want) in enumerate(outputs(here / "y.safetensors")):
        have = (here / f"y.{k}.raw").read_bytes()
        if said.splitlines()[k] != " ".join(map(str, [k, *shape])) or not is_same(dtype, have, want):
            wrong(f"{what}: {name} differs", f"{said}{have[:32]}, expected {shape} {want[:32]}")
            return


def from_file(name, rows):
    """The inputs of a file; rows: of the first dimension of each, 0 for all."""
    given = {k: v for k, v in read_types(name).items() if re.match(r"x\.\d+$", k)}
    return {k: (c, [rows, *s[1:]], v[:rows * math.prod(s[1:])]) if rows else (c, s, v) for k, (c, s, v) in given.items()}


# ---- graphs ----

def graph_inputs(text):
    """The inputs of a file test, sizes by name being 3, whose dtypes safetensors of tests have; None: others."""
    given = dict(re.findall(r"^; input ([\w.]+) = (.*)$", text, re.M))
    head = re.search(r"^graph @\w+\((.*?)\)(?: ->| where| \{)", text, re.M)
    found = {}
    for k, (name, dtype, dims) in enumerate(re.findall(r"%([\w.]+): (\w+)\[([^\]]*)\]", head[1])) if head else ():
        shape = [int(d) if d.strip().isdigit() else 3 if d.strip().isidentifier() else -1 for d in dims.split(",") if d.strip()]
        if dtype not in CODES or min(shape, default=0) < 0:
            return None
        values = input_values(given.get(name, "random 0 1.99" if dtype[0] != "f" else "random -2 2"), dtype, math.prod(shape))
        if values is None:
            return None
        found[f"x.{k}"] = CODES[dtype], shape, values
    return found or None


def input_values(text, dtype, n):
    """n values of "1 2 3" or "random LO HI"; None: another form."""
    given = random.Random(1)
    if drawn_from := re.fullmatch(r"random (\S+) (\S+)", text):
        lo, hi = map(float, drawn_from.groups())
        values = [given.uniform(lo, hi) for _ in range(n)]
    elif re.fullmatch(r"( ?-?(\d+(\.\d*)?(e-?\d+)?|inf|nan))+", text):
        values = [float(v) for v in text.split()]
    else:
        return None
    if dtype[0] != "f":
        values = [int(v) for v in (text.split() if text[0] != "r" else values)]
    if dtype == "u64":
        values = [v % 2**64 for v in values]
    return [values[i % len(values)] for i in range(n)] if 0 < len(values) <= max(n, 1) else None


UNARY = ["aten.relu(%{0})", "aten.exp(%{0})", "aten.tanh(%{0})", "aten.neg(%{0})", "aten.sigmoid(%{0})", "aten.gelu(%{0})", "aten.sin(%{0})",
         "aten.softmax.int(%{0}, dim=-1)", "aten.cumsum(%{0}, dim=0)", "aten.round(%{0})", "aten.floor(%{0})", "aten.abs(%{0})"]
BINARY = ["aten.add.Tensor(%{0}, %{1})", "aten.mul.Tensor(%{0}, %{1})", "aten.maximum(%{0}, %{1})", "aten.div.Tensor(%{0}, %{1})",
          "aten.atan2(%{0}, %{1})", "aten.fmod.Tensor(%{0}, %{1})", "aten.remainder.Tensor(%{0}, %{1})", "aten.floor_divide(%{0}, %{1})"]


def drawn(random):
    """A graph with rows and columns of equal size, whose kernels have parameters of one name, and its inputs."""
    n = random.randint(1, 9)
    lines, names = [], ["x", "y"]
    for k in range(random.randint(2, 6)):
        form = random.choice([*UNARY, *BINARY, *BINARY])
        lines.append(f"  %v{k} = {form.format(*random.choices(names, k=2))} : f32[N, N]")
        names.append(f"v{k}")
    lines.append(f"  %m = aten.mm(%{names[-1]}, %x) : f32[N, N]\n  %s = aten.t(%m) : f32[N, N]\n  %z = aten.sum.dim_IntList(%s, dim=[0], keepdim=false) : f32[N]")
    text = "graph @f(%x: f32[N, N], %y: f32[N, N]) where 1 <= N {\n" + "\n".join(lines) + "\n  return %s, %z\n}\n"
    return text, {f"x.{k}": ("f", [n, n], [random.uniform(-3, 3) for _ in range(n * n)]) for k in range(2)}


def graphs():
    seen = 0
    for k, path in enumerate(sorted((root / "tests/text/run").glob("*.txt"))):
        if k % PART and path.name not in ("many_launches.txt", "order_statistics.txt"):  # the latter have outlined functions
            continue
        text = path.read_text().split("\n; ----\n")[0]
        inputs = graph_inputs(text)
        if not inputs or any(word in text for word in ("; state", "; mode", "; entry", " #", "c64", "c128")):
            continue
        (here / "g.ir").write_text(text)
        same(path.name, here / "g.ir", inputs)
        seen += 1
    if seen < 10:
        wrong("graphs of tests/text/run", f"{seen} of them")
    for seed in range(12):
        text, inputs = drawn(random.Random(seed))
        (here / "g.ir").write_text(text)
        same(f"graph of seed {seed}\n{text}", here / "g.ir", inputs)
    return seen


def refused(what, text, **options):
    code, said = emitted(what, here / "none.c", **options)
    lines = [x for x in said.splitlines() if x]
    if code != 1 or not re.search(text, lines[-1]) or len(lines) > 1 or (here / "none.c").exists():
        wrong(f"{what}: expected one sentence, {text!r}", said)


with tempfile.TemporaryDirectory() as folder:
    here = pathlib.Path(folder)
    (here / "include").mkdir()
    for header in (root / "include").glob("weft*.h"):
        (here / "include" / header.name).write_bytes(header.read_bytes())
    subprocess.run([*cc, "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-I", here / "include", "-I", root / "examples/backend", root / "examples/backend/plain_c.c", "-o",
                    here / "libplain_c.so"], check=True)
    for model, rows in (("examples/digits/digits_cnn", 5), ("tests/data/mlp", 0), ("tests/data/dynamic", 0), ("tests/data/scan", 0),
                        ("tests/data/state", 0), ("tests/data/promote", 0)):
        same(model, root / f"{model}.pt2", from_file(root / f"{model}.safetensors", rows))
    count = graphs()
    (here / "checked.ir").write_text("graph @f(%x: f32[N]) -> f32[N] where 2 <= N, N <= 4 {\n  %y = aten.exp(%x) : f32[N]\n  return %y\n}\n")
    same("a size that is out of range", here / "checked.ir", {"x.0": ("f", [5], [0.0] * 5)},
         'input "x" dimension 0: expected N with 2 <= N <= 4, got 5')
    (here / "index.ir").write_text("graph @f(%x: f32[3], %i: i64[2]) -> f32[2] {\n  %y = aten.index_select(%x, %i, dim=0) : f32[2]\n  return %y\n}\n")
    same("an index out of range", here / "index.ir", {"x.0": ("f", [3], [1.0, 2.0, 3.0]), "x.1": ("q", [2], [1, 7])})
    refused(root / "tests/data/mlp.pt2", "back end plain-c: x86-64-v3 has vectors: expected a target with one lane, generic-c$", target="x86-64-v3")
    print(f"{count} graphs of tests/text/run, {len(refusals)} refused")
    if len(refusals) > count // 4:
        wrong("too many are refused", "".join(refusals))
sys.exit(bad > 0)
