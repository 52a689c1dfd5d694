"""What the command says of a compilation and of times is so: summary.py WEFT SOURCE_ROOT. Memory is the command's, not that of who started
it; units are counted whether compiled or from the cache; nothing is said of what was not compiled; peers get inputs where no file is given."""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
import limits  # noqa: E402

weft, root = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
# Packages that do nothing stand for torch and safetensors; the inputs are looked at.
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
class Program:
    def module(self): return lambda *x: x
def load(path): return Program()
""",
    "safetensors/__init__.py": "",
    "safetensors/numpy.py": """
import json, os
def load_file(path):
    data = open(path, "rb").read()
    head = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
    with open(os.environ["SEEN"], "w") as f: json.dump({k: v["shape"] for k, v in head.items() if k != "__metadata__"}, f)
    return head
""",
}
bad = 0


def wrong(what, text):
    global bad
    bad += 1
    print(f"FAIL: {what}\n{text}")


def tool(*args, **env):
    done = limits.run([weft, *map(str, args)], 300, capture_output=True, text=True, env={**os.environ, **env})
    if done.returncode:
        wrong(" ".join(map(str, args)), done.stdout + done.stderr)
    return done.stdout


def memory(folder, model):
    large = bytearray(os.urandom(1 << 20)) * 400  # pages that this process has
    said = json.loads(tool("compile", model, "-o", folder / "m.c", "--emit", "ir", "--json") or "{}")
    if not 0 < said.get("peak_bytes", 0) < 200e6:
        wrong("memory of a small compilation", f"{said.get('peak_bytes')} beside {len(large)} of who started it")


def units(folder, model):
    for options in ([], ["--target", "generic-c"], ["--replaceable-weights", "--target", "generic-c"]):
        compile = ["compile", model, "-o", folder / "m.so", "--backend", "c", "--json", *options]
        first, again = (json.loads(tool(*compile, WEFT_CACHE=str(folder / "cache")) or "{}") for _ in range(2))
        if first.get("cached", 0) > first.get("units", 0) or not again.get("units") or again["cached"] != again["units"]:
            wrong(f"units {options}", f"{first.get('cached')} of {first.get('units')}, then {again.get('cached')} of {again.get('units')}")
    # The text of the runtime is compiled once for all models.
    other = folder / "other.ir"
    other.write_text("graph @other(%x: f32[3]) {\n  %y = sinh(%x)\n  return %y\n}\n")
    said = json.loads(tool("compile", other, "-o", folder / "m.so", "--backend", "c", "--json", "--target", "generic-c", WEFT_CACHE=str(folder / "cache")) or "{}")
    if not said.get("units") or said["cached"] < said["units"] - 3:
        wrong("units of the runtime", f"{said.get('cached')} of {said.get('units')} from the cache")


def nothing(folder, model):
    said = tool("compile", model, "-o", folder / "c", "--emit", "c")
    if "code 0" in said or "0 of 0" in said or "peak memory" not in said:
        wrong("--emit c", said)


def names(folder, model):
    """Entries for training are of the model's file, those of several files make a name."""
    for compile, name in (([model, "--grad=params"], "digits_cnn"), ([f"first={model}", f"second={folder / 'model.ir'}"], "first_second")):
        tool("compile", *compile, "-o", folder / "named.so")
        said = tool("show", folder / "named.so")
        if not said.startswith(f"model    {name}\n"):
            wrong(f"the name of {compile}", said[:200])


def full(folder):
    """A limit of the size of files stands for a full disk: one sentence with the reason, at every size, and nothing is left."""
    model, given, made = folder / "full.ir", folder / "x.npy", folder / "made"
    model.write_text("graph @f(%x: f32[64, 64]) {\n  %y = exp(%x)\n  %z = sin(%x)\n  return %y, %z, %x\n}\n")
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (64, 64), }".ljust(117) + b"\n"
    given.write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(4 * 64 * 64))
    made.mkdir()
    for kind in ("npz", "safetensors"):
        for limit in range(0, 48 << 10, 3 << 10):
            done = subprocess.run([weft, "run", model, "--backend", "interp", "--inputs", given, "--outputs", made / f"y.{kind}"], capture_output=True, text=True,
                                  restore_signals=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            if done.stderr != f"{made}/y.{kind}: error: cannot write: File too large [W0010]\n" or done.returncode != 1 or any(made.iterdir()):
                return wrong(f"a disk of {limit} bytes, {kind}", done.stderr + str(list(made.iterdir())))
    done = subprocess.run([weft, "compile", model, "--emit", "c", "-o", made / "c"], capture_output=True, text=True, restore_signals=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
    if not done.stderr.startswith(f"{made}/c/") or ".tmp" in done.stderr or any(made.iterdir()):
        wrong("a folder on a full disk", done.stderr + str(list(made.iterdir())))


def peers(folder, model, shapes):
    for name, text in PACKAGES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    seen = folder / "seen"
    said = tool("bench", model, "--threads", "1", "--seconds", "0.02", "--no-op-by-op", "--against", "torch", "--python", sys.executable, PYTHONPATH=str(folder),
                SEEN=str(seen), TMPDIR=str(folder))
    if "torch-0" not in said:
        wrong("bench --against without inputs", said)
    if json.loads(seen.read_text()) != shapes:
        wrong("inputs of the peers", f"{seen.read_text()}, expected {shapes}")
    left = [p for p in folder.iterdir() if p.name.startswith("weft-")]
    if left:
        wrong("files left by bench", left)


with tempfile.TemporaryDirectory() as temp:
    temp = pathlib.Path(temp)
    model = temp / "model.ir"
    model.write_text("graph @f(%x: f32[B, 3], %i: i64[2*B]) where 2 <= B <= 100 ~ 7 {\n  %y = exp(%x)\n  return %y, %i\n}\n")
    memory(temp, model)
    units(temp, root / "examples/digits/digits_cnn.pt2")
    nothing(temp, model)
    full(temp)
    names(temp, root / "examples/digits/digits_cnn.pt2")
    exported = temp / "digits.pt2"
    exported.write_bytes((root / "examples/digits/digits_cnn.pt2").read_bytes())
    peers(temp, exported, {"x.0": [2, 1, 8, 8]})
    tool("bench", model, "--threads", "1", "--seconds", "0.02")
sys.exit(bad != 0)
