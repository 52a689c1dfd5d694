"""ONNX models that are checked without a reference, and against another system: against.py WEFT. A package that does nothing but
one function stands for onnxruntime. Skipped (77) without numpy."""
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
    env = {**os.environ, "PYTHONPATH": str(folder), "TMPDIR": str(folder)}
    p = subprocess.run([weft, "check", *args, "--backend", "interp"], capture_output=True, text=True, env=env, cwd=folder)
    if p.returncode != status or said not in p.stdout + p.stderr:
        sys.exit(f"weft check {' '.join(args)}: status {p.returncode}, expected {status} and \"{said}\":\n{p.stdout}{p.stderr}")
    left = list(folder.glob("weft-*"))
    if left:
        sys.exit(f"weft check {' '.join(args)} leaves {left}")


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "relu.onnx").write_bytes(relu(3))
    (folder / "other.onnx").write_bytes(relu(4))
    python = ["--against", "onnxruntime", "--python", sys.executable]
    check(folder, 0, "types and shapes only: no reference", "relu.onnx")
    check(folder, 0, "warning: y: the model states the type FLOAT[N, 4], but it is f32[N, 3]", "other.onnx")
    check(folder, 0, "1 passed, 0 failed", "relu.onnx", *python)
    check(folder, 1, "6 of 6 wrong", "relu.onnx", *python, offset=1)
    check(folder, 1, "weft: onnxruntime: integer division", "relu.onnx", *python, offset="1 // 0")
    check(folder, 1, "there is no reference", "relu.onnx", *python, offset="1 // 0")
    check(folder, 1, "--against is onnxruntime, not torch", "relu.onnx", "--against", "torch", "--python", sys.executable)
    check(folder, 1, "--against needs --python ENV", "relu.onnx", "--against", "onnxruntime")
