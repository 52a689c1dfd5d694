"""Names that are nearly right are answered with the right one: operators of .pt2 and ONNX files, attributes, inputs, symbols, entries, state, passes,
targets, machines: near_names.py WEFT SOURCE_ROOT"""
import pathlib
import subprocess
import sys
import tempfile
import zipfile

weft, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(root / "tests/help"))
from tensor_file import write_tensors  # noqa: E402

MODEL = """graph @f(%x: f32[Batch, 3], %mask: f32[Batch, 3]) where 1 <= Batch {
  %y = aten.mul.Tensor(%x, %mask)
  return %y
}
"""
bad = 0


def changed_archive(path, out, old, new):
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(out, "w") as target:
        for item in source.infolist():
            data = source.read(item)
            target.writestr(item.filename, data.replace(old, new) if item.filename.endswith(".json") else data)


def text_field(tag, text):
    """A field of a protobuf message."""
    return bytes([tag << 3 | 2, len(text)]) + text


def changed_onnx(path, out, tag, old, new):
    """A text of the same length in place of another one."""
    data = path.read_bytes()
    assert len(old) == len(new) and text_field(tag, old) in data
    out.write_bytes(data.replace(text_field(tag, old), text_field(tag, new)))


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "m.ir").write_text(MODEL)
    onnx, pt2 = root / "tests/exported/tf_functions.onnx", root / "tests/data/mlp.pt2"
    changed_archive(pt2, folder / "near.pt2", b"aten.relu.default", b"aten.rellu.default")
    changed_archive(pt2, folder / "base.pt2", b"aten.relu.default", b"aten.add")
    changed_archive(pt2, folder / "refused.pt2", b"aten.relu.default", b"aten.dim.default")
    changed_archive(pt2, folder / "own.pt2", b"aten.relu.default", b"mine.frobnicate.default")
    op, attribute = 4, 1
    changed_onnx(onnx, folder / "near.onnx", op, b"MatMul", b"MatMlu")
    changed_onnx(root / "tests/exported/scripted_ts17.onnx", folder / "special.onnx", op, b"Constant", b"Constnat")
    changed_onnx(onnx, folder / "later.onnx", op, b"Cast", b"Gelu")
    changed_onnx(onnx, folder / "far.onnx", op, b"Unsqueeze", b"Frobnicat")
    changed_onnx(onnx, folder / "attr.onnx", attribute, b"sorted", b"sroted")
    changed_onnx(onnx, folder / "other.onnx", attribute, b"sorted", b"abcdef")
    one = ("f", [2, 3], [1.0] * 6)
    write_tensors(folder / "ref.safetensors", {"x.0": one, "x.1": one, "y.0": one})
    write_tensors(folder / "xx.safetensors", {"xs": one})
    write_tensors(folder / "input.safetensors", {"inputx": one})
    cases = [  # what is said, what is not, the command line
        ("torch.ops.aten.rellu.default x1 (first at relu, make_fixtures.py:81; did you mean aten.relu?)", None, ["show", "near.pt2"]),
        ("did you mean aten.add.Tensor?", None, ["show", "base.pt2"]),
        ("aten.dim.default", "did you mean", ["show", "refused.pt2"]),
        ("mine.frobnicate.default", "did you mean", ["show", "own.pt2"]),
        ("MatMlu of opset 13 (did you mean MatMul?)", None, ["show", "near.onnx"]),
        ("Constnat of opset 17 (did you mean Constant?)", None, ["show", "special.onnx"]),
        ("Gelu of opset 13 (opset 20 has it)", None, ["show", "later.onnx"]),
        ("Frobnicat of opset 13", "did you mean", ["show", "far.onnx"]),
        ("attribute sroted is not supported; did you mean sorted?", None, ["show", "attr.onnx"]),
        ("attribute abcdef is not supported", "did you mean", ["show", "other.onnx"]),
        ("the values have xs, which is no input", None, ["show", onnx, "--values", "xx.safetensors"]),
        ("no input or parameter is called msk; the inputs are x, mask; did you mean mask?", None,
         ["run", "m.ir", "--inputs", "ref.safetensors", "--outputs", "y.npz", "--mode", "vjp", "--wrt", "msk"]),
        ("--sizes: the model has no symbol Btach; did you mean Batch?", None, ["check", "m.ir", "ref.safetensors", "--sizes", "Btach=2"]),
        ("no entry secnd: there are first, second; did you mean second?", None, ["show", "first=m.ir", "second=m.ir", "--entry", "secnd"]),
        ("the graph has no parameter or buffer cahce; did you mean cache?", None,
         ["compile", f"a={root}/tests/data/state.pt2", f"b={root}/tests/data/state.pt2", "-o", "m.so", "--state", "a.cahce=b.cache"]),
        ("no pass decompse; did you mean decompose?", None, ["show", "m.ir", "--after", "decompse"]),
        ("no pass frobnicate; see weft show --after list", None, ["show", "m.ir", "--after", "frobnicate"]),
        ("no pass decompse to dump; did you mean decompose?", None, ["compile", "m.ir", "-o", "m.so", "--dump", "decompse"]),
        ("; did you mean x86-64-v3?", None, ["compile", "m.ir", "-o", "m.so", "--target", "x86-64v3"]),
        ("no machine zne4 of the family x86-64", None, ["compile", "m.ir", "-o", "m.so", "--target", "x86-64-v3", "--tune", "zne4"]),
        ("; did you mean zen4?", None, ["compile", "m.ir", "-o", "m.so", "--target", "x86-64-v3", "--tune", "zne4"]),
    ]
    for said, unsaid, args in cases:
        p = subprocess.run([weft, *args], cwd=folder, capture_output=True, text=True)
        text = p.stdout + p.stderr
        if p.returncode != 1 or said not in text or (unsaid and unsaid in text):
            bad += 1
            print(f"FAIL weft {' '.join(map(str, args))}: status {p.returncode}, expected {said!r}:\n{text}")
sys.exit(bad != 0)
