"""Operators of com.microsoft and ai.onnx.ml against ONNX Runtime: contrib.py WEFT ARCHIVE BACKEND... The archive (make_contrib.py) has a
folder for each case, with a model of one node, inputs and results; and models that weft must refuse, each with a part of what it says."""
import pathlib
import subprocess
import sys
import tarfile
import tempfile

weft, archive, *backends = sys.argv[1:]
bad = 0


def expect(what, ok, text):
    global bad
    if not ok:
        bad += 1
        print(f"{what}: {text}", file=sys.stderr)


with tempfile.TemporaryDirectory() as here:
    here = pathlib.Path(here)
    with tarfile.open(archive) as t:
        t.extractall(here)
    for path in sorted(here.glob("refused/*.onnx")):
        p = subprocess.run([weft, "compile", path, "-o", "-", "--emit", "ir"], capture_output=True, text=True)
        wanted = path.with_suffix(".txt").read_text().strip()
        one = p.returncode == 1 and wanted in p.stderr and p.stderr.count("error:") == 1
        expect(path.name, one, p.stderr or f"status {p.returncode}")
    cases = sorted(p for p in here.iterdir() if p.name != "refused")
    for backend in backends:
        p = subprocess.run([weft, "check", *cases, "--backend", backend, "-q", "--jobs", "2"], capture_output=True, text=True)
        expect(backend, not p.returncode, p.stdout + p.stderr)
sys.exit(bad != 0)
