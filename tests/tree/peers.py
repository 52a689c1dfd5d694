"""Classes of a model's inputs and outputs are imported before torch loads it: peers.py SOURCE_ROOT. Packages that do nothing stand for
torch and safetensors; the one for torch refuses, as it does, a class that nobody registered."""
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

peers = pathlib.Path(sys.argv[1]) / "tools/bench/peers.py"
PACKAGES = {
    "torch/__init__.py": """
import contextlib
from . import export
__version__ = "0"
no_grad = contextlib.nullcontext
def set_num_threads(n): pass
def from_numpy(x): return x
""",
    "torch/export.py": """
import sys
class Program:
    def module(self): return lambda *x: x
def load(path):
    if "library.outputs" not in sys.modules: raise RuntimeError("library.outputs.ModelOutput is not registered")
    return Program()
""",
    "safetensors/__init__.py": "",
    "safetensors/numpy.py": "def load_file(path): return {'x.0': 1}\n",
}


def run(folder, kinds):
    with zipfile.ZipFile(folder / "m.pt2", "w") as z:
        z.writestr("m/models/model.json", '{"out_spec": "[1, {\\"type\\": \\"%s\\", \\"context\\": null}]"}' % kinds)
    return subprocess.run([sys.executable, peers, folder / "m.pt2", "none", "torch", "1", "0.01", "f32"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(folder)})


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    for name, text in {**PACKAGES, "library/__init__.py": "", "library/outputs.py": "class ModelOutput: pass\n"}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    good, absent = run(folder, "library.outputs.ModelOutput"), run(folder, "nowhere.at_all.Output")
    assert good.returncode == 0 and good.stdout.startswith("torch-0 "), good
    assert absent.returncode == 1 and absent.stderr == "weft: torch: RuntimeError: library.outputs.ModelOutput is not registered (-v: where)\n", absent
