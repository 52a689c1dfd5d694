"""The passes of examples/passes on models of ../shared, against PyTorch: passes_outside.py PROGRAM MODELS FIXTURES. Folding must change nothing but
roundings; what quantising gives is in a fixture (tests/make/make_quantised.py) and differs from the model's own results."""
import lzma
import pathlib
import subprocess
import sys
import tempfile

program, models, fixtures = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
if not models.is_dir():
    sys.exit(77)
bad = 0


def runs(*args):
    done = subprocess.run([program, *map(str, args)], capture_output=True, text=True)
    print(" ".join(map(str, args)), "->", done.returncode)
    print(done.stdout + done.stderr, end="")
    return done.returncode == 0


def expect(right, *args):
    global bad
    if runs(*args) != right:
        bad += 1
        print("FAIL: expected", "equal results" if right else "a difference")


with tempfile.TemporaryDirectory() as folder:
    for name, what, places in [("mobilenet_v3_small", "fold", 34), ("mobilenet_v2", "fold", 52), ("bert_tiny", "quantise", 13)]:
        model = pathlib.Path(folder) / (name + ".pt2")
        model.write_bytes(lzma.decompress((models / (name + ".pt2.xz")).read_bytes()))
        if what == "fold":
            expect(True, what, model, models / (name + ".safetensors"), places)
        else:
            expect(True, what, model, fixtures / (name + "_int8.safetensors"), places)
            expect(False, what, model, models / (name + ".safetensors"), places)
            expect(False, "none", model, fixtures / (name + "_int8.safetensors"), 0)
sys.exit(bad != 0)
