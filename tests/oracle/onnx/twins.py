"""ONNX models beside the .pt2 of the same module: twins.py WEFT SHARED FOLDER [NAME...]. The models of SHARED/models are unpacked into FOLDER.
Both files must become the same kernels: sums of operations and of bytes within 1 %, at most 2 launches more or less. And no kernel may compute
sizes: the ONNX model has no more kernels of integers than its twin, none of them at all where no operator of the module computes with integers.
Skipped (77) where there are no models."""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "help"))
from tensor_file import read_types, write_tensors  # noqa: E402

EXPORTED = {"digits_cnn": 2}  # images in the inputs of the export, where the reference has others
weft, shared, folder, *names = sys.argv[1:]
models = pathlib.Path(shared) / "models"
if not models.is_dir():
    sys.exit(77)
folder = pathlib.Path(folder)
names = names or sorted(p.name.removesuffix(".onnx.xz") for p in models.glob("*.onnx.xz"))
subprocess.run([f"{shared}/tools/unpack_models.sh", folder, *names], check=True, stdout=subprocess.DEVNULL)


def show(model, *options):
    p = subprocess.run([weft, "show", model, *options], capture_output=True, text=True)
    if p.returncode or p.stderr:
        sys.exit(f"{model}: {p.stderr or p.returncode}")
    return p.stdout


def costs(model, *options):
    """Operations, bytes, launches, and how many kernels give integers."""
    kernels = json.loads(show(model, "--kernels", "--json", *options))["kernels"]
    integer = set(re.findall(r"^ *%([\w.]+) = .*? : [iu]\d+\[", show(model, "--after", "pad"), re.M))
    return sum(k["flops"] for k in kernels), sum(k["bytes"] for k in kernels), len(kernels), sum(k["name"] in integer for k in kernels)


def hinted(name):
    """Inputs by which costs are estimated: an archive has the sizes of its export, a model of ONNX gets those of the reference."""
    values = folder / f"{name}.safetensors"
    if name not in EXPORTED:
        return values
    code, (rows, *rest), data = read_types(values)["x.0"]
    some, n = folder / f"{name}.exported.safetensors", EXPORTED[name]
    write_tensors(some, {"x.0": (code, [n, *rest], data[:len(data) // rows * n])})
    return some


def main():
    bad = 0
    for name in names:
        path = folder / f"{name}.onnx"
        a, b = costs(path.with_suffix(".pt2")), costs(path, "--values", hinted(name))
        ok = all(abs(y - x) <= x / 100 for x, y in zip(a[:2], b[:2])) and abs(a[2] - b[2]) <= 2 and b[3] <= a[3]
        bad += not ok
        print(f"{name}: operations {b[0] / a[0] - 1:+.2%}, bytes {b[1] / a[1] - 1:+.2%}, {b[2]} launches of {a[2]}, {b[3]} of integers of {a[3]}"
              + ("" if ok else ": DIFFERENT"))
    sys.exit(bad != 0)


main()
