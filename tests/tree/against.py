"""ONNX models that are checked without a reference, and against another system: against.py WEFT. A package that does nothing but
one function stands for onnxruntime. Skipped (77) without numpy."""
import array
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy  # noqa: F401
except ImportError:
    sys.exit(77)

weft = pathlib.Path(sys.argv[1]).resolve()
ONNXRUNTIME = """
import types
import numpy as np
class SessionOptions: pass
class InferenceSession:
    def __init__(self, model, options, providers): assert open(model, "rb").read(1) and not options.log_severity_level < 4
    def get_inputs(self): return [types.SimpleNamespace(name="x", type="tensor(float)", shape=["N", 3])]
    def run(self, outputs, inputs): return [np.maximum(inputs["x"], 0) + OFFSET]
"""


def varint(v):
    return bytes([v & 127 | 128]) + varint(v >> 7) if v > 127 else bytes([v])


def block(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def number(field, v):
    return varint(field << 3) + varint(v)


def info(field, name, last):
    shape = block(1, block(2, "N")) + block(1, number(1, last))
    return block(field, block(1, name) + block(2, block(1, number(1, 1) + block(2, shape))))


def relu(last):
    node = block(1, block(1, "x") + block(2, "y") + block(4, "Relu"))
    return number(1, 8) + block(7, node + block(2, "g") + info(11, "x", 3) + info(12, "y", last)) + block(8, number(2, 17))


def check(folder, status, said, *args, offset=0):
    (folder / "onnxruntime.py").write_text(ONNXRUNTIME.replace("OFFSET", str(offset)))
    env = {**os.environ, "PYTHONPATH": str(folder), "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}  # the module changes within a second
    p = subprocess.run([weft, "check", *args, "--backend", "interp"], capture_output=True, text=True, env=env, cwd=folder)
    if p.returncode != status or said not in p.stdout + p.stderr:
        sys.exit(f"weft check {' '.join(args)}: status {p.returncode}, expected {status} and \"{said}\":\n{p.stdout}{p.stderr}")
    left = list(folder.glob("weft-*"))
    if left:
        sys.exit(f"weft check {' '.join(args)} leaves {left}")


# A table of 300 rows behind a conversion, classes of a one-hot code of 7, numbers that index nothing, and a table whose index has an offset.
INDICES = """
import types
import numpy as np
class SessionOptions: pass
class InferenceSession:
    def __init__(self, model, options, providers): pass
    def get_inputs(self):
        kinds = {"ids": "int32", "cls": "int64", "any": "int64", "pos": "int64", "real": "float"}
        return [types.SimpleNamespace(name=n, type=f"tensor({t})", shape=[64]) for n, t in kinds.items()]
    def run(self, outputs, x):
        assert x["ids"].dtype == np.int32 and 200 < x["ids"].max() < 300 or OFFSET, x["ids"]
        assert (0 <= x["ids"]).all() and x["cls"].max() == 6 and set(x["any"]) == {0, 1} or OFFSET, x
        if x["pos"].max() + 2 > 9: raise IndexError("out of the table")
        return [np.arange(300, dtype="f4")[x["ids"]], np.eye(7, dtype="f4")[x["cls"]], x["any"] + 1, np.arange(10, dtype="f4")[x["pos"] + 2], x["real"]]
"""


def tensor(name, dtype, shape, raw):
    return block(5, b"".join(number(1, n) for n in shape) + number(2, dtype) + block(8, name) + block(9, raw))


def node(op, inputs, output, to=None):
    attribute = block(5, block(1, "to") + number(3, to) + number(20, 2)) if to else b""
    return block(1, b"".join(block(1, x) for x in inputs) + block(2, output) + block(4, op) + attribute)


def value(field, name, dtype, shape):
    dims = b"".join(block(1, number(1, n)) for n in shape)
    return block(field, block(1, name) + block(2, block(1, number(1, dtype) + block(2, dims))))


def indices():
    f4, i4, i8 = 1, 6, 7
    floats, ints = (lambda *v: array.array("f", v).tobytes()), (lambda *v: array.array("q", v).tobytes())
    nodes = [node("Cast", ["ids"], "wide", to=i8), node("Gather", ["table", "wide"], "y0"), node("OneHot", ["cls", "seven", "onoff"], "y1"),
             node("Add", ["any", "one"], "y2"), node("Add", ["pos", "two"], "moved"), node("Gather", ["places", "moved"], "y3"),
             node("Identity", ["real"], "y4")]
    tables = [tensor("table", f4, [300], floats(*range(300))), tensor("places", f4, [10], floats(*range(10))), tensor("seven", i8, [], ints(7)),
              tensor("onoff", f4, [2], floats(0, 1)), tensor("one", i8, [], ints(1)), tensor("two", i8, [], ints(2))]
    inputs = [value(11, n, t, [64]) for n, t in (("ids", i4), ("cls", i8), ("any", i8), ("pos", i8), ("real", f4))]
    outputs = [value(12, f"y{k}", t, s) for k, (t, s) in enumerate([(f4, [64]), (f4, [64, 7]), (i8, [64]), (f4, [64]), (f4, [64])])]
    return number(1, 8) + block(7, b"".join(nodes + tables) + block(2, "g") + b"".join(inputs + outputs)) + block(8, number(2, 17))


def check_made_up(folder):
    global ONNXRUNTIME
    own, ONNXRUNTIME = ONNXRUNTIME, INDICES
    (folder / "indices.onnx").write_bytes(indices())
    python = ["--against", "onnxruntime", "--python", sys.executable]
    for said in ("1 passed, 0 failed", "inputs are made up (seed 1): floats of a normal distribution, integers 0 and 1, for (out of the table)"):
        check(folder, 0, said, "indices.onnx", *python, offset=1)
    ONNXRUNTIME = INDICES.replace("+ 2", "% 8 + 2").replace("x[\"pos\"].max()", "x[\"pos\"].min()")
    check(folder, 1, "inputs are made up (seed 1): ids of 0 to 299, cls of 0 to 6, pos of 0 to 9, floats of a normal distribution, other integers 0 and 1",
          "indices.onnx", *python)  # here the stand-in takes any position, and Weft refuses those beyond the table
    ONNXRUNTIME = own


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    check_made_up(folder)
    (folder / "relu.onnx").write_bytes(relu(3))
    (folder / "other.onnx").write_bytes(relu(4))
    python = ["--against", "onnxruntime", "--python", sys.executable]
    check(folder, 0, "types and shapes only: no reference", "relu.onnx")
    check(folder, 0, "warning: y: the model states the type FLOAT[N, 4], but it is f32[N, 3]", "other.onnx")
    check(folder, 0, "1 passed, 0 failed", "relu.onnx", *python)
    check(folder, 1, "6 of 6 wrong", "relu.onnx", *python, offset=1)
    check(folder, 1, "weft: onnxruntime: integer division", "relu.onnx", *python, offset="1 // 0")
    check(folder, 1, "there is no reference", "relu.onnx", *python, offset="1 // 0")
    check(folder, 2, "--against is onnxruntime, not torch", "relu.onnx", "--against", "torch", "--python", sys.executable)
    check(folder, 2, "--against needs --python ENV or $WEFT_PYTHON", "relu.onnx", "--against", "onnxruntime")
