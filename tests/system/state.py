"""State through files: state.py WEFT SOURCE_ROOT. The entries of tests/golden/graphs by themselves, in every back end: several calls with
one or several files of inputs, state saved, loaded, refused where it is another one's."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
import limits  # noqa: E402
from tensor_file import write_tensors  # noqa: E402

weft, root = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
step, peek = (str(root / f"tests/golden/graphs/{name}.pt2") for name in ("step", "peek"))
W = [[1.0, 0.5, 0.0], [0.25, 1.0, -1.0], [2.0, 0.0, 1.0]]  # tests/golden/make.py
bad = 0


def wrong(*what):
    global bad
    bad += 1
    print("FAIL:", *what)


def run(model, *more, code=0):
    p = limits.run([weft, "run", model, "--outputs", "y.safetensors", *more], 120, capture_output=True, text=True)
    if p.returncode != code:
        wrong(more, p.returncode, p.stderr)
    return p.stderr


def read(path):
    data = pathlib.Path(path).read_bytes()
    n = int.from_bytes(data[:8], "little")
    out = {}
    for name, t in json.loads(data[8:8 + n]).items():
        if name != "__metadata__":
            a, b = t["data_offsets"]
            code = {"F32": "f", "I64": "q"}[t["dtype"]]
            out[name] = list(struct.unpack(f"<{(b - a) // struct.calcsize(code)}{code}", data[8 + n + a:8 + n + b]))
    return out


class Model:
    """What the exported module computes; all values are exact."""

    def __init__(self):
        self.total, self.calls = [0.5, 0.25, 0.125], 0

    def step(self, rows):
        self.total = [t + sum(r[k] for r in rows) for k, t in enumerate(self.total)]
        self.calls += 1
        return [max(sum(r[i] * W[i][k] for i in range(3)), 0) + self.total[k] for r in rows for k in range(3)], [2 * self.calls]

    def state(self):
        return {"total": self.total, "calls": [self.calls]}


def inputs(k):
    return [[float((k + i + 2 * j) % 5 - 1) for j in range(3)] for i in range(k + 1)]


def flat(rows):
    return "f", [len(rows), 3], [x for r in rows for x in r]


def expect(what, got, want):
    if got != want:
        wrong(what, got, "expected", want)


def test(backend):
    b = ["--backend", backend]
    m = Model()
    want = [m.step(inputs(k)) for k in range(3)]
    y = {f"{c}.y.{k}": v[k] for c, v in enumerate(want) for k in range(2)}
    run(step, "--inputs", "one.safetensors", "--inputs", "two.safetensors", "--save-state", "s.safetensors", *b)
    expect(f"{backend}: three calls", read("y.safetensors"), y)
    expect(f"{backend}: the state after them", read("s.safetensors"), m.state())
    run(step, "--inputs", "one.safetensors", "--load-state", "s.safetensors", "--save-state", "s.safetensors", *b)
    y = m.step(inputs(0))
    expect(f"{backend}: one more", read("y.safetensors"), {"y.0": y[0], "y.1": y[1]})
    expect(f"{backend}: and its state", read("s.safetensors"), m.state())
    run(step, "--inputs", "again.safetensors", *b) # twice the same
    expect(f"{backend}: twice", read("y.safetensors")["1.y.1"], [4])
    run(step, "--inputs", "one.safetensors", *b)
    expect(f"{backend}: from the beginning", read("y.safetensors")["y.1"], [2])


def test_names(backend):
    """State that the file has under two names: a state dict has both."""
    shared, b = str(root / "tests/data/state/shared.pt2"), ["--backend", backend]
    value, other = [("f", [5, 4], [float(k + i) for i in range(20)]) for k in (1, 2)]
    write_tensors(pathlib.Path("x.safetensors"), {"x.0": value})
    states = []
    for names in ("all",), ("again",), ("all", "again"):
        write_tensors(pathlib.Path("l.safetensors"), {name: value for name in names})
        run(shared, "--inputs", "x.safetensors", "--load-state", "l.safetensors", "--save-state", "s.safetensors", *b)
        states.append(read("s.safetensors"))
    expect(f"{backend}: state by its other name", states[1:], states[:1] * 2)
    expect(f"{backend}: the name that is saved", list(states[0]), ["all"])
    write_tensors(pathlib.Path("l.safetensors"), {"again": value, "all": other})
    said = run(shared, "--inputs", "x.safetensors", "--load-state", "l.safetensors", *b, code=1)
    expect(f"{backend}: two values", said, "weft: l.safetensors: again and all are one tensor of the model, and have different values\n")


def test_refused():
    one = ["--inputs", "one.safetensors"]
    for text, more, code in (("has no state x.0", ["--load-state", "one.safetensors"], 1),
                             ("no tensor calls, which is state", ["--load-state", "part.safetensors"], 1),
                             ("total has another dtype or shape", ["--load-state", "shape.safetensors"], 1),
                             ("no tensor 0.x.0 or 0.x", ["--inputs", "gap.safetensors"], 1),
                             ("are one file", ["--save-state", "y.safetensors"], 2),
                             ("is an input", ["--save-state", "one.safetensors"], 1),
                             ("the name ends with", ["--save-state", "s.txt"], 2)):
        said = run(step, *one, *more, "--backend", "interp", code=code)
        if text not in said or said.count("\n") != 1:
            wrong(more, said)
    said = run(str(root / "tests/data/mlp.pt2"), "--inputs", str(root / "tests/data/mlp.safetensors"), "--save-state", "z.npz", code=1)
    if "the model has no state" not in said:
        wrong("a model without state", said)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    here = pathlib.Path(".")
    write_tensors(here / "one.safetensors", {"x.0": flat(inputs(0))})
    write_tensors(here / "two.safetensors", {"0.x.0": flat(inputs(1)), "1.x.0": flat(inputs(2))})
    write_tensors(here / "again.safetensors", {"0.x": flat(inputs(1)), "1.y.0": flat(inputs(2))})
    write_tensors(here / "gap.safetensors", {"x.0": flat(inputs(1)), "0.y.0": flat(inputs(2))})
    write_tensors(here / "part.safetensors", {"total": ("f", [3], [1, 2, 3])})
    write_tensors(here / "shape.safetensors", {"total": ("f", [4], [1, 2, 3, 4]), "calls": ("q", [], [0])})
    has_llvm = "llvm" in subprocess.run([weft, "compile", "--help-all"], capture_output=True, text=True).stdout and \
        (pathlib.Path(weft).parent / "weft_llvm.so").exists()
    for backend in ["interp", "loops", "c"] + (["jit", "llvm"] if has_llvm else []):
        test(backend)
        test_names(backend)
    test_refused()
print(f"{bad} failures")
sys.exit(bad > 0)
