"""Errors that users meet first have the number of their kind, which weft help explains, and docs/refusals.md: refusal_ids.py WEFT SOURCE_ROOT.
Names of operators that are nearly right are answered."""
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

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
             "good.ir": "aten.embedding(%x, %i)", "asks.ir": "aten.embedding(%x, %i)", "gamma.ir": "aten.igamma(%x, %x)"}
    for file, text in texts.items():
        (folder / file).write_text(GRAPH.format(text))
    whole = (root / "tests/data/mlp.pt2").read_bytes()
    (folder / "cut.pt2").write_bytes(whole[:len(whole) // 2])
    (folder / "empty.pt2").write_bytes(b"")
    (folder / "pointer.pt2").write_text("version https://git-lfs.github.com/spec/v1")
    (folder / "text.ir").write_text("hello")
    (folder / "cut.npy").write_bytes(b"\x93NUMPY\x01\0")
    (folder / "sized.ir").write_text("graph @f(%x: f32[N, 2]) where 1 <= N, N <= 2 {\n  %y = aten.relu(%x)\n  return %y\n}\n")
    onnx = (root / "tests/exported/tf_functions.onnx").read_bytes()
    (folder / "cut.onnx").write_bytes(onnx[:len(onnx) // 2])
    with zipfile.ZipFile(root / "tests/data/mlp.pt2") as source, zipfile.ZipFile(folder / "schema9.pt2", "w") as target:
        for item in source.infolist():
            target.writestr(item.filename, source.read(item).replace(b'"major":8', b'"major":9'))
    def changed(file, part, old, new):
        """A copy of a model of which one member is another."""
        with zipfile.ZipFile(root / "tests/data/mlp.pt2") as source, zipfile.ZipFile(folder / file, "w") as target:
            for item in source.infolist():
                data = source.read(item)
                target.writestr(item.filename, data.replace(old, new) if item.filename.endswith(part) else data)
    changed("brace.pt2", "models/model.json", b'{"graph_module"', b'{"graph_module')
    changed("spec.pt2", "models/model.json", b'"user_input"', b'"useful_input"')
    changed("argument.pt2", "models/model.json", b'"arg":{"as_tensor":{"name":"p_a_weight"}}', b'"arg":{"as_string":"p_a_weight"}')
    changed("short.pt2", "weights/weight_1", b"\xbe", b"")
    changed("other.pt2", "models/model.json", b'"major"', b'"minor"')
    (folder / "nothing.onnx").write_bytes(b"\x08\x07")
    f, q = "f", "q"
    write_tensors(folder / "good.safetensors", {"x.0": (f, [3, 2], [1.0] * 6), "x.1": (q, [2, 1], [0, 1])})
    write_tensors(folder / "shape.safetensors", {"x.0": (f, [2, 2], [1.0] * 4), "x.1": (q, [2, 1], [0, 1])})
    write_tensors(folder / "double.safetensors", {"x.0": ("d", [3, 2], [1.0] * 6), "x.1": (q, [2, 1], [0, 1])})
    write_tensors(folder / "few.safetensors", {"x.0": (f, [3, 2], [1.0] * 6)})
    write_tensors(folder / "named.safetensors", {"x": (f, [3, 2], [1.0] * 6), "j": (q, [2, 1], [0, 1])})
    (folder / "cut.safetensors").write_bytes((folder / "few.safetensors").read_bytes()[:60])
    write_tensors(folder / "index.safetensors", {"x.0": (f, [3, 2], [1.0] * 6), "x.1": (q, [2, 1], [0, 9])})
    run = ["--outputs", "y.safetensors", "--inputs"]
    assert not call(folder, "compile", "sized.ir", "-o", "whole.so").returncode
    code = (folder / "whole.so").read_bytes()
    (folder / "cut.so").write_bytes(code[:len(code) // 2])
    (folder / "arm.so").write_bytes(code[:18] + (183).to_bytes(2, "little") + code[20:])
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
        *(("W0003", file, ["show", file]) for file in ("cut.onnx", "empty.pt2", "pointer.pt2", "text.ir", "cut.so")),
        *(("W0003", file, ["run", "asks.ir", *run, file]) for file in ("cut.safetensors", "cut.npy")),
        ("W0007", "no machine frobnicate", ["compile", "good.ir", "-o", "m.so", "--tune", "frobnicate"]),
        ("W0008", "dimension 0 (N) is 3, expected 1 to 2", ["run", "sized.ir", *run, "few.safetensors"]),
        ("W0008", "dimension 0 (N) is 3, expected 1 to 2", ["run", "whole.so", *run, "few.safetensors"]),
        ("W0008", "expected N <= 2, got 3", ["run", "sized.ir", *run, "few.safetensors", "--backend", "interp"]),
        ("W0008", "input x has dtype f64, expected f32", ["run", "asks.ir", *run, "double.safetensors"]),
        ("W0008", 'input "x": expected dtype f32, got f64', ["run", "asks.ir", *run, "double.safetensors", "--backend", "interp"]),
        ("W0008", "no tensor x.1 or i for input 1", ["run", "asks.ir", *run, "few.safetensors"]),
        ("W0008", "tensor j is no input of asks.ir", ["run", "asks.ir", *run, "named.safetensors"]),
        *(("W0010", f"{file}: error: cannot open", ["show", file]) for file in ("none.pt2", "none.onnx", "none.so")),
        ("W0010", "none.npz: error: cannot open", ["run", "asks.ir", *run, "none.npz"]),
        ("W0010", "none/m.so: error: cannot write", ["compile", "good.ir", "-o", "none/m.so"]),
        ("W0010", "none/y.npz: error: cannot write", ["run", "asks.ir", "--inputs", "good.safetensors", "--outputs", "none/y.npz"]),
        ("W0011", "arm.so: is for another machine", ["run", "arm.so", *run, "few.safetensors"]),
        ("W0012", "cannot run nosuchcc", ["compile", "good.ir", "-o", "m.so", "--cc", "nosuchcc", "--no-cache"]),
        ("W0012", "false failed with status 1", ["compile", "good.ir", "-o", "m.so", "--cc", "false", "--no-cache"]),
        ("W0013", "igamma has no derivative", ["compile", "gamma.ir", "-o", "m.so", "--grad"]),
        ("W0014", "schema version 9", ["show", "schema9.pt2"]),
        ("W0003", "not valid JSON", ["show", "brace.pt2"]),
        ("W0003", "weight a.bias: member", ["show", "short.pt2"]),
        ("W0003", "no schema version", ["show", "other.pt2"]),
        ("W0003", "the model has no graph", ["show", "nothing.onnx"]),
        ("W0015", "useful_input inputs are not supported", ["show", "spec.pt2"]),
        ("W0015", "argument weight: ", ["show", "argument.pt2"]),
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
