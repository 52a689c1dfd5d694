"""Models that exporters wrote against ONNX Runtime: exported.py WEFT FOLDER ENV [NAME...]. FOLDER is what tests/make/make_exported.py made, ENV a
Python environment with onnxruntime. Prints what differs, and how many agree. ROUNDED must differ."""
import pathlib
import subprocess
import sys

# ONNX Runtime computes f16 in f32 on a processor and does not round what lies between nodes. Weft and PyTorch round every result of a node as
# the file types it, and agree with each other to the bit here.
ROUNDED = {"half_ts14", "half_dynamo18"}
weft, folder, env, *names = sys.argv[1:]
paths = [p for p in sorted(pathlib.Path(folder).glob("*.onnx")) if p.with_suffix(".safetensors").exists() and (not names or p.stem in names)]
bad = rounded = 0
for path in paths:
    values = path.with_suffix(".safetensors")
    p = subprocess.run([weft, "check", path, values, "--against", "onnxruntime", "--python", env, "-q"], capture_output=True, text=True)
    if (p.returncode or p.stderr) and path.stem in ROUNDED and " of 6 wrong" in p.stdout + p.stderr:
        rounded += 1
        continue
    if p.returncode or p.stderr or path.stem in ROUNDED:
        bad += 1
        print(f"{path.stem}: {(p.stdout + p.stderr).strip()}", flush=True)
print(f"{len(paths) - bad - rounded} of {len(paths)} models agree with ONNX Runtime, {rounded} differ because it does not round f16")
sys.exit(bad != 0)
