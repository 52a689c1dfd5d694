"""weft quantize: quantized.py WEFT SOURCE [BACKEND...]

Each model is quantised, compiled and checked: compiled code gives what the interpreter gives of the quantised graph. Files have the bytes
that the report says, are equal for any number of threads, and are written whole or not at all. Wrong options are refused with a sentence."""
import array
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

weft, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
backends = sys.argv[3:] or ["loops"]
bad = 0


def check(ok, what):
    global bad
    if not ok:
        bad += 1
        print(f"FAIL {what}")


def run(*args, code=0):
    p = subprocess.run([str(weft), *map(str, args)], capture_output=True, text=True)
    if p.returncode != code:
        check(False, f"weft {' '.join(map(str, args))}: status {p.returncode}, expected {code}\n{p.stdout}{p.stderr}")
    return p.stdout if code == 0 else p.stderr


def split(path):
    """The index and the bytes of a .safetensors file."""
    data = path.read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    index = json.loads(data[8:8 + n])
    index.pop("__metadata__", None)
    return index, data[8 + n:]


def write(path, tensors):
    """tensors: (name, dtype, shape, bytes)."""
    index, data = {}, b""
    for name, dtype, shape, value in tensors:
        index[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(value)]}
        data += value
    head = json.dumps(index).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)


def tensors(path, kind):
    index, data = split(path)
    return [(n, t["dtype"], t["shape"], data[t["data_offsets"][0]:t["data_offsets"][1]]) for n, t in index.items() if n.startswith(kind)]


def stored(path):
    """Bytes of all tensors of a graph file."""
    return len(split(path)[1])


def floats(t):
    return array.array("f", t[3])


CASES = [("tests/data/mlp.pt2", ["--weights", "int8"]), ("tests/data/mlp.pt2", ["--weights", "bf16", "-j", "1"]),
         ("tests/data/tied.pt2", ["--weights", "int4"]), ("tests/data/tied.pt2", ["--weights", "int4", "--zero-points"]),
         ("tests/data/mlp.pt2", ["--activations", "dynamic"]), ("examples/digits/digits_cnn.pt2", []),
         ("examples/digits/digits_cnn.pt2", ["--activations", "static"])]

with tempfile.TemporaryDirectory() as folder:
    out = pathlib.Path(folder)
    os.environ["WEFT_CACHE"] = str(out / "cache")
    for number, (model, options) in enumerate(CASES):
        name, inputs = f"{model} {' '.join(options)}", (root / model).with_suffix(".safetensors")
        file, again, report = out / f"{number}.weft", out / "again.weft", out / "report.json"
        if "static" in options:
            write(out / "data.safetensors", tensors(inputs, "x."))
            options = [*options, "--data", out / "data.safetensors"]
        text = run("quantize", root / model, "-o", file, "--report", report, *options)
        found = json.loads(report.read_text())
        check(found["bytes"] < found["bytes_before"], f"{name}: {found['bytes']} of {found['bytes_before']} bytes")
        check(f"{file}: constants" in text, f"{name}: no summary: {text}")
        check(any(w["kind"] != "float" for w in found["weights"]), f"{name}: no weight was rounded")
        # buffers and alignment apart the file has what is reported
        check(abs(stored(file) - found["bytes"]) <= 64, f"{name}: {stored(file)} bytes of tensors, {found['bytes']} reported")
        for jobs in 1, 3:
            more = [o for o in options if o not in ("-j", "1")]
            run("quantize", root / model, "-o", again, *more, "-j", jobs)
            check(again.read_bytes() == file.read_bytes(), f"{name}: another file by {jobs} threads")
        # what is compiled gives what the interpreter gives
        run("run", file, "--inputs", inputs, "--outputs", out / "y.safetensors", "--backend", "interp")
        reference = out / "ref.safetensors"
        write(reference, tensors(inputs, "x.") + tensors(out / "y.safetensors", "y."))
        for backend in backends:
            run("check", file, reference, "--backend", backend, *(["--threads", "1,2"] if backend == "jit" else []))
        run("compile", file, "-o", out / "m.so")
        run("check", out / "m.so", reference)
        # and is near what the model gives
        exact, near = tensors(inputs, "y.0"), tensors(out / "y.safetensors", "y.0")
        a, b = floats(exact[0]), floats(near[0])
        error = sum((x - y) ** 2 for x, y in zip(a, b)) / sum(x * x for x in a)
        check(0 < error < (0.05 if "int4" in options else 0.002), f"{name}: error {error}")
        check(run("show", file).strip() != "", f"{name}: weft show prints nothing")

    (out / "wide.ir").write_text("graph @wide(%x: f32[2, 256], %w: f32[512, 256]) -> f32[2, 512] {\n  %y = aten.linear(%x, %w) : f32[2, 512]\n  return %y\n}\n")
    check("nothing to quantise" in run("quantize", out / "wide.ir", "-o", out / "no.weft", code=1), "an input is no weight")
    check(not (out / "no.weft").exists(), "a file is left after an error")

    # Wrong options, and files that stay.
    mlp = root / "tests/data/mlp.pt2"
    (out / "old.weft").write_text("old")
    for args, said in ((["--weights", "int3"], "--weights is int8, int4, bf16 or float, not int3"), (["--group", "48"], "--group is 32, 64 or 128"),
                       (["--activations", "int8"], "--activations is none, dynamic or static"), (["--keep", "a,,b"], "a rule is empty"),
                       (["--keep", "nothing:int8"], 'the rule "nothing:int8" fits no weight'), (["--keep", "x"], "is not NAME:KIND"),
                       (["--activations", "static"], "static activations need data"), (["--data", out / "none.npz"], "none.npz")):
        usage = args[0] in ("--weights", "--group") or said.startswith("--activations") or "empty" in said
        check(said in run("quantize", mlp, "-o", out / "old.weft", *args, code=2 if usage else 1), f"{args}: not refused with {said!r}")
        check((out / "old.weft").read_text() == "old", f"{args}: the old file is another one")
    copy = out / "copy.pt2"
    copy.write_bytes(mlp.read_bytes())
    run("quantize", copy, "-o", copy, code=2)  # no .weft
    check(copy.read_bytes() == mlp.read_bytes(), "the model was overwritten")
    run("quantize", copy, "-o", out / "copy.weft")
    before = (out / "copy.weft").read_bytes()
    run("quantize", out / "copy.weft", "-o", out / "copy.weft", code=1)
    run("quantize", copy, "-o", out / "copy.weft", "--report", out / "copy.weft", code=2)
    check((out / "copy.weft").read_bytes() == before, "the model was overwritten")
    for options in (["--group", "64"], ["--zero-points"], ["--weights", "bf16", "--activations", "dynamic"]):
        run("quantize", copy, *options, code=2)  # they would have no effect
    listed = run("quantize", mlp)
    check("int8" in listed and "constants" in listed, "without -o the weights are listed")
    # a graph that was quantised is quantised no more, and takes no other weights
    run("quantize", mlp, "-o", out / "q.weft")
    check("nothing to quantise" in run("quantize", out / "q.weft", code=1), "quantised twice")
    check(run("compile", out / "q.weft", "-o", out / "q.so", "--weights-from", mlp.with_suffix(".safetensors"), code=1), "takes weights")
    data = bytearray((out / "q.weft").read_bytes())
    data[-5] ^= 1
    (out / "bad.weft").write_bytes(data)
    check("bad.weft" in run("show", out / "bad.weft", code=1), "a damaged file is not named")
sys.exit(bad != 0)
