"""Errors that users meet first have the number of their kind, which weft help explains, and docs/refusals.md: refusal_ids.py WEFT SOURCE_ROOT.
Names of operators that are nearly right are answered."""
import pathlib
import re
import subprocess
import sys
import tempfile

weft, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(root / "tests/help"))
from tensor_file import write_tensors  # noqa: E402

GRAPH = "graph @f(%x: f32[3, 2], %i: i64[2, 1]) {{\n  %y = {0}\n  return %y\n}}\n"
bad = 0


def call(folder, *args):
    return subprocess.run([weft, *args], cwd=folder, capture_output=True, text=True)


def say(text):
    global bad
    bad += 1
    print("FAIL", text)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    texts = {"unknown.ir": "aten.frobnicate(%x)", "near.ir": "aten.reluu(%x)", "base.ir": "aten.add(%x, %x)", "types.ir": "aten.mm(%x, %x)",
             "good.ir": "aten.embedding(%x, %i)", "asks.ir": "aten.embedding(%x, %i)"}
    for file, text in texts.items():
        (folder / file).write_text(GRAPH.format(text))
    whole = (root / "tests/data/mlp.pt2").read_bytes()
    (folder / "cut.pt2").write_bytes(whole[:len(whole) // 2])
    f, q = "f", "q"
    write_tensors(folder / "in.safetensors", {"x.0": (f, [3, 2], [1.0] * 6), "x.1": (q, [2, 1], [0, 1])})
    write_tensors(folder / "shape.safetensors", {"x.0": (f, [2, 2], [1.0] * 4), "x.1": (q, [2, 1], [0, 1])})
    write_tensors(folder / "index.safetensors", {"x.0": (f, [3, 2], [1.0] * 6), "x.1": (q, [2, 1], [0, 9])})
    run = ["--outputs", "y.safetensors", "--inputs"]
    cases = [
        ("W0001", "expected an operation, got aten.frobnicate", ["show", "unknown.ir"]),
        ("W0001", "got aten.reluu; did you mean aten.relu?", ["show", "near.ir"]),
        ("W0001", "got aten.add; did you mean aten.add.Tensor?", ["show", "base.ir"]),
        ("W0003", "cut.pt2", ["show", "cut.pt2"]),
        ("W0005", "types.ir", ["show", "types.ir"]),
        ("W0007", "no target z80", ["compile", "good.ir", "-o", "m.so", "--target", "z80"]),
        ("W0008", "input x: dimension 0 is 2", ["run", "asks.ir", *run, "shape.safetensors"]),
        ("W0008", 'input "x"', ["run", "asks.ir", *run, "shape.safetensors", "--backend", "interp"]),
        ("W0009", "index 9", ["run", "asks.ir", *run, "index.safetensors"]),
        ("W0009", "index 9", ["run", "asks.ir", *run, "index.safetensors", "--backend", "interp"]),
    ]
    for model, text in ((root / "tests/data/guard_log.pt2", "which weft cannot check"),):
        cases.append(("W0004", text, ["show", model]))
    for number, said, args in cases:
        p = call(folder, *args)
        lines = [line for line in p.stderr.splitlines() if said in line]
        if p.returncode != 1 or not lines or not lines[0].endswith(f" [{number}]"):
            say(f"weft {' '.join(map(str, args))}: status {p.returncode}, expected {said!r} and [{number}]:\n{p.stderr}")
    # each has a title and an explanation, by number in any case
    listed = re.findall(r"^(W\d{4})  (\S.*)$", call(folder, "help", "refusals").stdout, re.M)
    if [number for number, _ in listed] != [f"W{k:04}" for k in range(1, len(listed) + 1)] or len(listed) < 9:
        say(f"the numbers are {listed}")
    page = (root / "docs/refusals.md").read_text()
    for number, title in listed:
        for word in (number, number.lower()):
            p = call(folder, "help", word)
            if p.returncode or not p.stdout.startswith(f"{number}: {title}\n\n") or p.stdout not in page or any(len(line) > 100 for line in p.stdout.splitlines()):
                say(f"weft help {word}: {p.stdout}{p.stderr}")
    p = call(folder, "help", "W9999")
    if p.returncode != 2 or "no command W9999" not in p.stderr:
        say(f"weft help W9999: {p.stderr}")
sys.exit(bad != 0)
