"""What autograd is told to see (tests/data/autograd.tar.xz, make_autograd_fixtures.py): results, gradients, tangents, second
gradients; what decomposed files no longer say; parameters with several names or without gradients: autograd.py WEFT TRANSFORM_TEXT ROOT
BACKEND..."""
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "help"))
from tensor_file import read_types, write_tensors  # noqa: E402

weft, transform_text, root, backends = sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4:]
bad = 0


def call(*args, **options):
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, **options)


def expect(what, holds, said=""):
    global bad
    if not holds:
        bad += 1
        print(f"FAIL {what}: {said}")


def check_all(folder, backend):
    for mode in ("values", "vjp", "jvp"):
        p = call(weft, "check", folder, "-q", "--backend", backend, *(["--mode", mode] if mode != "values" else []))
        expect(f"{mode} {backend}", p.returncode == 0 and " 0 failed" in p.stdout, p.stdout + p.stderr)


def second_order(folder, backend):
    """The gradient of the sum of v times the gradient: the graph of both, as text."""
    count = 0
    for path in sorted(folder.glob("*.safetensors")):
        have = read_types(path)
        if "h.0" not in have:
            continue
        count += 1
        graph = call(weft, "show", "--graph", path.with_suffix(".pt2")).stdout
        made = folder.parent / "twice"
        made.mkdir(exist_ok=True)
        twice = made / "graph.txt"
        twice.write_text(call(transform_text, "vjp", "vjp", input=graph).stdout)
        code, shape, values = have["ct.0"]
        inputs = {"x.0": have["x.0"], "x.1": have["ct.0"], "x.2": (code, shape, [0.0] * len(values)), "x.3": have["v.0"]}
        write_tensors(made / "in.safetensors", inputs)
        p = call(weft, "run", twice, "--inputs", made / "in.safetensors", "--outputs", made / "out.safetensors", "--backend", backend)
        if p.returncode:
            expect(f"{path.stem} twice {backend}", False, p.stderr)
            continue
        got = read_types(made / "out.safetensors")["y.2"][2]
        want = have["h.0"][2]
        close = len(got) == len(want) and all(abs(a - b) <= 1e-4 * (1 + abs(b)) for a, b in zip(got, want))
        expect(f"{path.stem} twice {backend}", close, f"{list(got)}, expected {list(want)}")
    expect("models with second gradients", count >= 5, count)


def gradients(model, folder, *wrt):
    """The names of gradients in an artifact for training."""
    p = call(weft, "compile", model, f"--grad={','.join(wrt)}", "-o", folder / "m.so")
    if p.returncode:
        return p.stderr
    shown = call(weft, "show", folder / "m.so", "--entry", "backward").stdout
    outputs = shown[shown.index("outputs") :]
    return sorted({w.rstrip(":") for w in outputs.split() if w.startswith("g.")})


def names(folder):
    same = ["g.wte.weight"]
    expect("a tied parameter has its first name", gradients(folder / "tied.pt2", folder, "params") == same)
    got = gradients(folder / "tied.pt2", folder, "head.weight")
    expect("and may be asked for by another", got == same, got)
    got = gradients(folder / "frozen.pt2", folder, "params")
    expect("frozen parameters have no gradients", got == ["g.2.bias", "g.2.weight"], got)
    got = gradients(folder / "frozen.pt2", folder, "all-params")
    expect("but where all are asked for", got == ["g.0.bias", "g.0.weight", "g.2.bias", "g.2.weight"], got)
    got = gradients(folder / "frozen.pt2", folder, "0.weight")
    expect("or one by its name", got == ["g.0.weight"], got)


def decomposed(folder):
    told = gradients(folder / "decomposed/ste.pt2", folder, "inputs")
    expect("a decomposed detach", "node alias" in told and "may have been a detach" in told, told)
    expect("does not matter to results", not call(weft, "compile", folder / "decomposed/ste.pt2", "-o", folder / "m.so").returncode)
    p = call(weft, "compile", folder / "decomposed/byol.pt2", "--grad", "-o", folder / "m.so")
    expect("a decomposed no_grad is told of", not p.returncode and "note: the file is decomposed" in p.stderr, p.stderr)


with tempfile.TemporaryDirectory() as here:
    here = Path(here)
    with tarfile.open(root / "tests/data/autograd.tar.xz") as archive:
        archive.extractall(here)
    models = here / "models"
    models.mkdir()
    for path in [*here.glob("*.pt2"), *here.glob("*.safetensors")]:
        path.rename(models / path.name)
    (here / "decomposed").rename(here / "rest")
    (models / "decomposed").mkdir()
    for path in (here / "rest").glob("*.pt2"):
        path.rename(models / "decomposed" / path.name)
    for backend in backends:
        check_all(models, backend)
        second_order(models, backend)
    names(models)
    decomposed(models)
sys.exit(bad != 0)
