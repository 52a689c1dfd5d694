"""Models that exporters wrote against ONNX Runtime: exported.py WEFT FOLDER ENV [NAME...]. FOLDER is what tests/make/make_exported.py made, ENV a
Python environment with onnxruntime. Prints what differs, and how many agree."""
import pathlib
import subprocess
import sys

weft, folder, env, *names = sys.argv[1:]
paths = [p for p in sorted(pathlib.Path(folder).glob("*.onnx")) if p.with_suffix(".safetensors").exists() and (not names or p.stem in names)]
bad = 0
for path in paths:
    values = path.with_suffix(".safetensors")
    p = subprocess.run([weft, "check", path, values, "--against", "onnxruntime", "--python", env, "-q"], capture_output=True, text=True)
    if p.returncode or p.stderr:
        bad += 1
        print(f"{path.stem}: {(p.stdout + p.stderr).strip()}", flush=True)
print(f"{len(paths) - bad} of {len(paths)} models agree with ONNX Runtime")
sys.exit(bad != 0)
