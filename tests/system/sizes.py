"""Results whose sizes depend on data, against PyTorch: sizes.py WEFT SOURCE_ROOT [BACKEND...]. Every model of tests/data/sizes
(make_size_fixtures.py) with all its references, of which NAME.100.safetensors and those of head are twenty calls, in every back end and with 1, 2 and 3 threads. Where PyTorch's fails the model fails, with one
message that is the same in all of them but the interpreter. Gradients, whose cotangents have such sizes, are the interpreter's (which tests/oracle/transforms.py
compares with PyTorch's), and a cotangent of another size is refused by name."""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
from model_refs import Checker, expected_error  # noqa: E402
from tensor_file import read_types, write_tensors  # noqa: E402

weft, root = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
BACKENDS = [["interp"], ["loops"]] + [[name, "--threads", "1,2,3"] for name in ("jit", "llvm", "c")]


# The results whose cotangents are given: those whose sizes data decides.
GRADIENTS = {"masked": (0, 1, 3), "repeat": (0, 2, 3), "nonzero": (4,), "head": (0,), "slices": (0, 3, 4, 6)}


def references(checker, model, here):
    """The model's calls with cotangents and the interpreter's gradients."""
    for at in sorted(model.parent.glob(model.stem + ".[0-9]*.safetensors")):
        tensors = read_types(at)
        if expected_error(at) or "x.0" not in tensors:  # a sequence of calls
            continue
        given = {name: t for name, t in tensors.items() if name.startswith("x.")}
        for k in GRADIENTS[model.stem]:
            code, shape, values = tensors[f"y.{k}"]
            given[f"ct.{k}"] = code, shape, [((7 * i + k) % 11 - 5) / 4 for i in range(len(values))]
        ref = here / at.name
        write_tensors(here / "in.safetensors", given)
        checker.command("run", model, "--mode", "vjp", "--backend", "interp", "--inputs", here / "in.safetensors", "--outputs", ref)
        write_tensors(ref, given | {n: t for n, t in read_types(ref).items() if n.startswith("g.")})
        yield ref


def longer(ref, k, here):
    """The same with a cotangent of a row too many."""
    tensors = read_types(ref)
    code, shape, values = tensors[f"ct.{k}"]
    row = len(values) // shape[0]
    bad = here / f"{ref.stem}.bad.safetensors"
    write_tensors(bad, tensors | {f"ct.{k}": (code, [shape[0] + 1, *shape[1:]], values + values[:row])})
    return bad


def gradients(checker, only):
    for name in GRADIENTS:
        model = checker.models / f"{name}.pt2"
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            refs = list(references(checker, model, here))
            for backend in BACKENDS:
                if backend[0] in only:
                    checker.passes(model, refs, [*backend, "--mode", "vjp"])
            k = GRADIENTS[name][0]
            bad = [longer(r, k, here) for r in refs if read_types(r)[f"ct.{k}"][1][0]][:1]
            for backend in BACKENDS:
                if backend[0] in only and bad:
                    checker.fails(model, bad[0], [*backend, "--mode", "vjp"], 'ct.')


def main():
    probe = root / "tests/data/sizes/even.pt2"
    only = sys.argv[3:] or [b[0] for b in BACKENDS]
    checker = Checker(weft, 240)
    for backend in BACKENDS:
        if backend[0] in only and checker.has(probe, backend):
            for model in sorted((root / "tests/data/sizes").glob("*.pt2")):
                checker.run_model(model, backend)
    checker.models = root / "tests/data/sizes"
    gradients(checker, only)
    sys.exit(1 if checker.bad else 0)


if __name__ == "__main__":
    main()
