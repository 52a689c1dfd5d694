"""A package that is installed, or on PYTHONPATH, tried without pytest or PyTorch: plain.py SOURCE_ROOT. A model of the source becomes code in this
process and a shared object, and gives what PyTorch gave. Needs NumPy."""
import pathlib
import platform
import sys
import tempfile

import numpy as np
import weft

root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root / "tests/help"))
import tensor_file  # noqa: E402


def compare(name, model, tensors):
    arrays = {n: np.array(values, dtype=code).reshape(shape) for n, (code, shape, values) in tensors.items()}
    inputs = [arrays[f"x.{k}"] for k in range(sum(n.startswith("x.") for n in arrays))]
    got = model(*inputs)
    for k, y in enumerate(got if isinstance(got, tuple) else (got,)):
        np.testing.assert_allclose(y, arrays[f"y.{k}"], rtol=2e-5, atol=2e-5, err_msg=name)


for name in ("mlp", "views"):
    source = root / "tests/data" / f"{name}.pt2"
    tensors = tensor_file.read_types(source.with_suffix(".safetensors"))
    compare(name, weft.compile(str(source)), tensors)
    with tempfile.TemporaryDirectory() as here:
        weft.compile(str(source), path=f"{here}/{name}.so")
        compare(name, weft.load(f"{here}/{name}.so"), tensors)
print(f"weft {weft.__version__}, Python {platform.python_version()}, {platform.machine()}: 2 models compiled, linked and called")
