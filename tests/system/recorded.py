"""A third of the recorded modules by one back end: recorded.py WEFT SOURCE_ROOT BACKEND [--all]
Which third, the hash of the commit says (without git the day), so that some runs see all; scripts/nightly.sh takes all. Compiling each
module to C takes a minute."""
import pathlib
import shutil
import subprocess
import sys
import time

weft, root, backend = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
models = sorted((root / "tests/recorded").glob("*.pt2"))
if "--all" not in sys.argv:
    ask = ["git", "-C", root, "rev-parse", "HEAD"]
    commit = subprocess.run(ask, capture_output=True, text=True).stdout if shutil.which("git") else ""
    turn = (int(commit[:8], 16) if commit else int(time.time()) // 86400) % 3
    print(f"every third of {len(models)}, from number {turn}")
    models = models[turn::3]
files = [f for m in models for f in (m, m.with_suffix(".safetensors"))]
sys.exit(subprocess.run([weft, "check", *files, "--backend", backend, "-q", "--jobs", "2"]).returncode)
