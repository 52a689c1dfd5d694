"""Kernels of a GPU give the results of the references: gpu.py WEFT SOURCE_ROOT BACKEND [NAME...]
All fixtures of tests/data and the trained model of examples/digits are compiled for gpu-model, and executed by BACKEND:
loops (the interpreter of loop IR) or gpu-host (this processor). NAME: only these."""
import os
import pathlib
import subprocess
import sys
import tempfile

weft, root, backend = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
names = sys.argv[4:]
left_out = {"guard_log"}  # refused, on purpose

with tempfile.TemporaryDirectory() as folder:
    for f in [*(root / "tests/data").rglob("*"), *(root / "examples/digits").glob("*")]:
        stem = f.name.split(".")[0]
        if f.is_dir() or "refused" in f.parts or stem in left_out or (names and stem not in names):
            continue
        to = pathlib.Path(folder) / f.relative_to(root)
        to.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(f, to)
    sys.exit(subprocess.run([weft, "check", folder, "-q", "--target", "gpu-model", "--backend", backend, "--jobs", "2"]).returncode)
