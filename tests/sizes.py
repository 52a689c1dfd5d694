"""Results whose sizes depend on data, against PyTorch: sizes.py WEFT SOURCE_ROOT [BACKEND...]. Every model of tests/data/sizes
(make_size_fixtures.py) with all its references, in every back end and with 1, 2 and 3 threads. Where PyTorch's fails the model fails, with one
message that is the same in all of them but the interpreter."""
import pathlib
import sys

from model_refs import Checker

weft, root = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
BACKENDS = [["interp"], ["loops"]] + [[name, "--threads", "1,2,3"] for name in ("jit", "llvm", "c")]


def main():
    probe = root / "tests/data/sizes/even.pt2"
    only = sys.argv[3:] or [b[0] for b in BACKENDS]
    checker = Checker(weft, 240)
    for backend in BACKENDS:
        if backend[0] in only and checker.has(probe, backend):
            for model in sorted((root / "tests/data/sizes").glob("*.pt2")):
                checker.run_model(model, backend)
    sys.exit(1 if checker.bad else 0)


main()
