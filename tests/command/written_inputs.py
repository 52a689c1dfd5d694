"""New values of inputs that a model writes are results, with every back end and the interpreter: written_inputs.py WEFT SOURCE_ROOT BACKEND..."""
import json
import pathlib
import subprocess
import sys
import tempfile

weft, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(root / "tests/help"))
from tensor_file import read_tensors, write_tensors  # noqa: E402

# between two outputs, so that places tell
MODEL = """graph @f(%x: f32[2], %c: f32[2]) {
  %y = aten.mul.Tensor(%x, %x)
  %z = aten.add.Tensor(%c, %x)
  %u = aten.neg(%z)
  return %y, %z "c" -> "c", %u
}
"""
INPUTS = {"x.0": [1.0, 2.0], "x.1": [10.0, 20.0]}
RESULTS = {"y.0": [1.0, 4.0], "y.1": [11.0, 22.0], "y.2": [-11.0, -22.0]}
LATER = {"1.x.0": [3.0, 4.0]}  # the caller keeps what it gave: c is as before
bad = 0


def say(text):
    global bad
    bad += 1
    print("FAIL", text)


def floats(tensors):
    return {name: ("f", [len(values)], values) for name, values in tensors.items()}


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "m.ir").write_text(MODEL)
    write_tensors(folder / "in.safetensors", floats(INPUTS))
    write_tensors(folder / "calls.safetensors", floats({f"0.{k}": v for k, v in INPUTS.items()} | LATER))

    def call(*args):
        return subprocess.run([weft, *args], cwd=folder, capture_output=True, text=True)

    def run(model, inputs, backend):
        p = call("run", model, "--inputs", inputs, "--outputs", "out.safetensors", "--backend", backend, "--json")
        if p.returncode:
            say(f"run {model}, {backend}: {p.stderr}")
            return {}, []
        return read_tensors(folder / "out.safetensors"), [o["name"] for o in json.loads(p.stdout)["outputs"]]

    for backend in sys.argv[3:]:
        got, names = run("m.ir", "in.safetensors", backend)
        if got != RESULTS or names != ["y", "c", "u"]:
            say(f"{backend}: {names} {got}, expected {RESULTS}")
        got, _ = run("m.ir", "calls.safetensors", backend)
        wanted = {f"0.{k}": v for k, v in RESULTS.items()} | {"1.y.0": [9.0, 16.0], "1.y.1": [13.0, 24.0], "1.y.2": [-13.0, -24.0]}
        if got != wanted:
            say(f"{backend}, two calls: {got}, expected {wanted}")
        # a reference for it is compared, and one that has none says nothing against it
        for change, status in (({}, 0), ({"y.1": [11.0, 21.0]}, 1)):
            write_tensors(folder / "ref.safetensors", floats(INPUTS | RESULTS | change))
            p = call("check", "m.ir", "ref.safetensors", "--backend", backend)
            if p.returncode != status:
                say(f"check, {backend}, {change}: {p.stdout}{p.stderr}")
    # files of torch.export: new values of inputs are results, those of state are not
    for model in ("input_write", "state"):
        path, ref = root / f"tests/data/{model}.pt2", root / f"tests/data/{model}.safetensors"
        results = [run(path, ref, backend) for backend in ("c", "interp")]
        if results[0][1] != results[1][1] or results[0][0].keys() != results[1][0].keys():
            say(f"{model}: {results[0][1]} compiled, {results[1][1]} interpreted")
sys.exit(bad != 0)
