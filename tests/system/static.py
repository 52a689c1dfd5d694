"""generic-c output of digits_cnn, of models with state, with sizes that depend on data and with user operators, is plain C11 without threads, GNU extensions or malloc: static.py WEFT SOURCE_ROOT"""
import array
import glob
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

weft, root = sys.argv[1:]
cc = os.environ.get("CC", "cc").split()
digits = os.path.join(root, "examples/digits/digits_cnn")


def tensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    info = json.loads(data[8:8 + n])
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]] for k, v in info.items() if k != "__metadata__"}


def build(out, model, driver, *ops, weights=True):
    """out/run: the model in plain C11 with a driver of its own. ops: the library of its user operators, their objects."""
    options = ["--ops", ops[0]] if ops else []
    subprocess.run([weft, "compile", model, "--emit", "c", "--target", "generic-c", "-o", out + "/c", *options], check=True, stdout=subprocess.DEVNULL)
    sources = [out + "/c/model.c", *sorted(glob.glob(out + "/c/kernels_*.c")), out + "/c/serial.c"]
    sources += [out + "/c/op_call.c"] if ops else []
    strict = [*cc, "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1", "-DWEFT_SERIAL", "-I" + out + "/c", "-c"]
    objects = [s[:-2] + ".o" for s in sources]
    for s, o in zip(sources, objects):
        subprocess.run([*strict, s, "-o", o], check=True)
    needs = subprocess.run(["nm", "-u", *objects], check=True, capture_output=True, text=True).stdout.split()
    for s in sources[1:-1 - bool(ops)]:
        assert not re.search(r"\b__", open(s).read()), f"{s}: extensions"
    bad = [s for s in needs if "alloc" in s or s.startswith(("pthread", "dl"))]
    assert not bad, f"the model needs {bad}"
    if weights:
        subprocess.run([*cc, "-c", "weights.S", "-o", "weights.o"], cwd=out + "/c", check=True)
    subprocess.run([*cc, "-std=c11", "-DWEFT_SERIAL", "-I" + out + "/c", os.path.join(root, driver), *objects, *ops[1:],
                    *([out + "/c/weights.o"] if weights else []), "-lm", "-o", out + "/run"], check=True)


with tempfile.TemporaryDirectory() as out:
    build(out, os.path.join(root, "tests/data/state/checked.pt2"), "tests/system/c/static_state.c")
    subprocess.run([out + "/run"], check=True)
with tempfile.TemporaryDirectory() as out:
    build(out, os.path.join(root, "tests/data/sizes/head.pt2"), "tests/system/c/static_sizes.c")
    calls = sorted(glob.glob(os.path.join(root, "tests/data/sizes/head.[0-9]*.safetensors")))
    for call in calls:
        ref = tensors(call)
        open(out + "/x", "wb").write(ref["x.0"])
        subprocess.run([out + "/run", out + "/x", out + "/y"], check=True)
        got, n = open(out + "/y", "rb").read(), len(ref["y.2"]) // 8
        assert struct.unpack("<q", got[:8])[0] == n and got[8 + 20 * n:] == ref["y.2"], call
        values, want = array.array("f", got[8:8 + 20 * n]), array.array("f", ref["y.0"] + ref["y.1"])
        assert all(abs(a - b) <= 1e-5 * (1 + abs(b)) for a, b in zip(values, want)), call
    print(f"{len(calls)} calls with sizes that depend on data")
with tempfile.TemporaryDirectory() as out:
    operators = [*cc, "-fPIC", "-I" + os.path.join(root, "include"), os.path.join(root, "tests/system/c/user_ops.c"), "-pthread"]
    subprocess.run([*operators, "-shared", "-o", out + "/ops.so"], check=True)
    subprocess.run([*operators, "-c", "-o", out + "/ops.o"], check=True)
    with open(out + "/context.ir", "w") as f:
        f.write("""graph @f(%x: f32[2]) {
  %n = call([%x], op="test::named", ints=[], floats=[])
  %b = call([%x], op="test::bare", ints=[], floats=[])
  %y = get(%n, index=0)
  %z = get(%b, index=0)
  return %y, %z
}""")
    build(out, out + "/context.ir", "tests/system/c/static_userop.c", out + "/ops.so", out + "/ops.o", weights=False)
    subprocess.run([out + "/run"], check=True)
with tempfile.TemporaryDirectory() as out:
    build(out, digits + ".pt2", "tests/system/c/static.c")
    ref = tensors(digits + ".safetensors")
    open(out + "/x", "wb").write(ref["x.0"])
    subprocess.run([out + "/run", out + "/x", out + "/y"], check=True)
    got, want = array.array("f", open(out + "/y", "rb").read()), array.array("f", ref["y.0"])
    assert len(got) == len(want) > 0, (len(got), len(want))
    error = max(abs(a - b) for a, b in zip(got, want))
    allowed = 1e-6 * max(map(abs, want)) * 8
    assert error <= allowed, f"error {error}, allowed {allowed}"
    print(f"error {error:.3g} of {allowed:.3g}")
