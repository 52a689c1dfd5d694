"""Artifacts for GPUs run with the CUDA driver alone: cuda.py WEFT SOURCE_ROOT [--all | NAME...]
Models are compiled for gpu-model, whose images a stand-in for the driver (tests/device/standin.c, a libcuda.so.1) executes;
its memory faults when the host touches it. Results are compared with the references; then the bad cases
(tests/device/cases.c): no driver, no device, another architecture, no memory, many loads. With NVRTC also images for real
devices, which the stand-in loads. --all: every fixture of tests/data."""
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

weft, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
names = sys.argv[3:] or ["mlp", "dynamic", "batch_norm", "state", "scan", "casts", "resize"]
cc = os.environ.get("CC", "cc").split()
quick = {"CC": str(root / "tests/help/quick_cc"), "QUICK_CC": " ".join(cc)}  # for images that compute little
bad = 0


def run(*command, env=None, check=True):
    p = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=dict(os.environ, **(env or {})))
    if check and p.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {p.stdout}{p.stderr}")
    return p


def fail(name, text):
    global bad
    bad += 1
    print(f"FAIL {name}: {text.strip()}")


def is_error(reference):
    """The reference says that the call fails."""
    data = reference.read_bytes()
    header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    return "error" in header.get("__metadata__", {})


def said(p):
    """What was said, without the name of the model."""
    return [line.split(": ", 2)[-1] for line in p.stderr.splitlines()]


def models():
    """(model, references)"""
    data = root / "tests/data"
    for m in [*sorted(data.rglob("*.pt2")), *sorted(data.rglob("*.ir")), root / "examples/digits/digits_cnn.pt2"]:
        if "refused" in m.parts or m.stem == "guard_log" or "userop" in m.parts:
            continue
        refs = [m.with_suffix(".safetensors"), *sorted(m.parent.glob(f"{m.stem}.[0-9]*.safetensors"))]
        refs = [r for r in refs if r.exists()]
        if refs and (names == ["--all"] or m.stem in names):
            yield m, refs


def check_models(folder, env):
    ran = refused = 0
    for m, refs in models():
        so = folder / "model.so"
        p = run(weft, "compile", m, "--target", "gpu-model", "-o", so, check=False, env=quick)
        if p.returncode:
            refused += 1
            if "not done yet" not in p.stderr:
                fail(m.stem, p.stderr)
            continue
        wrong = [r for r in refs if is_error(r)]
        right = [r for r in refs if r not in wrong]
        p = run(weft, "check", so, *right, "-q", env=env, check=False) if right else None
        ran += 1
        if p and p.returncode:
            fail(m.stem, p.stdout + p.stderr)
        for r in wrong:
            here, there = run(weft, "check", m, r, "-q", "--backend", "loops", check=False), run(weft, "check", so, r, "-q", env=env, check=False)
            if not there.returncode or said(here) != said(there):
                fail(r.stem, there.stdout + there.stderr + here.stderr)
    print(f"{ran} models, {refused} refused")


def check_script(folder, env):
    """scripts/gpu_check.py: packs models, and says which results are wrong there."""
    data, packed, moved = root / "tests/data", folder / "packed", folder / "there"
    models = [data / f"{name}.pt2" for name in ("mlp", "state", "scan")]
    p = run(sys.executable, root / "scripts/gpu_check.py", "pack", weft, packed, "--target", "gpu-model", "--models", *models)
    packed.rename(moved)
    size = sum(f.stat().st_size for f in moved.rglob("*") if f.is_file())
    if not p.stdout.startswith("3 models, 0 products, ") or size > 60e6:
        fail("gpu_check.py pack", f"{p.stdout}{p.stderr}{size} bytes")
    for wrong in 0, 1:
        p = run(sys.executable, moved / "gpu_check.py", "run", "--seconds", "0.01", env=env, check=False)
        said = [json.loads(line) for line in p.stdout.splitlines()]
        ok = {one["model"]: one["ok"] for one in said[:-1]}
        if p.returncode != wrong or said[-1:] != [{"models": 3, "wrong": wrong}] or ok != {"mlp": not wrong, "state": True, "scan": True}:
            fail(f"gpu_check.py run, {wrong} wrong", f"{p.stdout}{p.stderr}")
        if not wrong and not all(any(row["ok"] and row["median_ms"] > 0 for row in one["bench"]["rows"]) for one in said[:-1]):
            fail("gpu_check.py run: times", p.stdout)
        reference = next(moved.glob("*_mlp/*.safetensors"))
        t = read_tensors(reference)
        d, shape, bytes_ = t["y.0"]
        write_tensors(reference, {**t, "y.0": (d, shape, bytes_[::-1])})


def check_real(folder, env, cases):
    """Images for a real device load, or are refused with a sentence."""
    so = folder / "digits.so"
    p = run(weft, "compile", root / "examples/digits/digits_cnn.pt2", "--target", "cuda-sm_90", "-o", so, check=False)
    if p.returncode and "NVRTC" in p.stderr and "--emit cuda" in p.stderr:
        print("without NVRTC no images for real devices")
        return
    if p.returncode:
        return fail("cuda-sm_90", p.stderr)
    for file in sorted(pathlib.Path(os.environ.get("WEFT_NVRTC") or "/nowhere").glob("libnvrtc.so.*"))[:1]:  # $WEFT_NVRTC may name the file
        p = run(weft, "compile", root / "tests/data/mlp.pt2", "--target", "cuda-sm_90", "-o", folder / "named.so", env={"WEFT_NVRTC": str(file)}, check=False)
        if p.returncode:
            fail(f"NVRTC named {file}", p.stderr)
    for script, want in ("gpu_kernels.py", "| sm_90 | 1 |"), ("gpu_estimate.py", "| mlp | 2 |"):
        p = run(sys.executable, root / "scripts" / script, weft, root / "tests/data/mlp.pt2", *(["--arch", "sm_90"] if script == "gpu_kernels.py" else []), check=False)
        if p.returncode or want not in p.stdout:
            fail(script, p.stdout + p.stderr)
    p = run(weft, "compile", folder / "aes.ir", "--target", "cuda-sm_90", "-o", folder / "aes.so", check=False)
    if p.returncode or "warning" in p.stderr:
        fail("cuda-sm_90, AES", p.stderr)
    both = folder / "both.so"
    p = run(weft, "compile", root / "examples/digits/digits_cnn.pt2", "--target", "cuda-sm_90,sm_86", "-o", both, check=False)
    if p.returncode:
        return fail("cuda-sm_86,sm_90", p.stderr)
    for sm, want in {"86": "cuda-sm_86: opened", "89": "cuda-sm_86: opened", "90": "cuda-sm_90: opened", "100": "cuda-sm_90: opened",
                     "80": "has kernels for sm_86, sm_90, and device 0 (Stand-in 0) is sm_80"}.items():
        for what in "table", "device-table":
            p = run(cases, both, what, env=dict(env, STANDIN_SM=sm), check=False)
            if p.returncode or want not in p.stdout:
                fail(f"both sm_{sm} {what}", p.stdout + p.stderr)
    p = run(cases, both, "other-table", env=dict(env, STANDIN_SM="90"), check=False)
    if p.returncode or "cuda-sm_86: opened" not in p.stdout:
        fail("both, the older one", p.stdout + p.stderr)
    p = run(cases, both, "other-table", env=dict(env, STANDIN_SM="80"), check=False)
    if p.returncode or "cuda-sm_86: digits_cnn has kernels for" not in p.stdout:
        fail("both, none", p.stdout + p.stderr)
    for sm, want in {"90": "", "86": "has kernels for sm_90, and device 0 (Stand-in 0) is sm_86: compile the model with --target cuda-sm_86", "120": ""}.items():
        p = run(cases, so, "open", env=dict(env, STANDIN_SM=sm), check=False)
        if p.returncode or (want or "opened") not in p.stdout:
            fail(f"sm_{sm}", p.stdout + p.stderr)


def check_cases(folder, env, cases):
    so, gather = folder / "mlp.so", folder / "gather.so"
    run(weft, "compile", root / "tests/data/mlp.pt2", "--target", "gpu-model", "-o", so)
    run(weft, "compile", root / "tests/data/state.pt2", "--target", "gpu-model", "-o", folder / "state.so")
    text = folder / "gather.ir"
    text.write_text('graph @gather(%x: f32[100], %i: i64[B, 1]) where 1 <= B {\n  %g = gather(%x, %i, batch=0, axes=[0], mode="check")\n'
                    "  %y = add(%g, %g)\n  return %y\n}\n")
    run(weft, "compile", text, "--target", "gpu-model", "-o", gather)
    wide, text = folder / "wide.so", folder / "wide.ir"
    text.write_text("graph @wide(%x: f32[64], %d: f64[64]) {\n  %y = add(%x, %x)\n  %z = neg(%d)\n  return %y, %z\n}\n")
    run(weft, "compile", text, "--target", "gpu-model", "-o", wide)
    chain, text = folder / "chain.so", folder / "chain.ir"
    text.write_text("graph @chain(%x: f32[64, 32], %w: f32[32, 32]) {\n  %a = aten.mm(%x, %w)\n  %b = aten.softmax.int(%a, dim=1)\n  %c = aten.mm(%b, %w)\n"
                    "  %d = aten.softmax.int(%c, dim=0)\n  return %d, %b\n}\n")
    run(weft, "compile", text, "--target", "gpu-model", "-o", chain)
    checked, text = folder / "checked.so", folder / "checked.ir"
    text.write_text('graph @checked(%x: f32[100], %i: i64[B, 1]) where 1 <= B {\n  %g = gather(%x, %i, batch=0, axes=[0], mode="check")\n'
                    "  %s = aten.softmax.int(%g, dim=0)\n  %t = aten.softmax.int(%x, dim=0)\n  return %s, %t, %g\n}\n")
    run(weft, "compile", text, "--target", "gpu-model", "-o", checked)
    none = dict(env, LD_LIBRARY_PATH=str(folder / "nothing"))
    for model, what, where, want in [
            (so, "open", none, "NVIDIA's driver is not there: libcuda.so.1"),
            (so, "open", dict(env, STANDIN_DEVICES="0"), "NVIDIA's driver finds none"),
            (so, "open 3", env, "there is no GPU 3, only 0 to 0"),
            (so, "open", dict(env, STANDIN_MEMORY="400"), "no memory on Stand-in 0 for the 448 bytes of the weights; 400 bytes are free"),
            (so, "run", dict(env, STANDIN_MEMORY="600"), "no memory on Stand-in 0 for the"),
            (so, "run", dict(env, STANDIN_MEMORY="100000"), "opened"),
            (so, "cycles 1000", env, "1000 cycles"),
            (folder / "state.so", "cycles 100", env, "100 cycles"),
            (so, "device", env, "equal"),
            (wide, "device", env, "equal"),
            (so, "places", dict(env, STANDIN_DEVICES="2"), "input x is not in the processor's memory\ninput x is in the memory of device 1, and the instance is open on "
             "device 0\nrun: the instance is open on device 0, and the context names device 1"),
            (so, "threads", env, "equal"),
            (so, "streams", env, "equal"),
            (folder / "state.so", "streams", env, "equal"),
            (chain, "graphs", env, "equal"),
            (checked, "graphs", env, "equal"),
            (checked, "later", env, "an earlier call: g: index 105 at [0, 0] of i is out of range, expected -100 <= index < 100"),
            (gather, "later", env, "an earlier call: g: index 105 at [0, 0] of i is out of range, expected -100 <= index < 100"),
            (so, "captured", env, "run: the stream is being captured, and a model makes its own graphs: call it outside of the capture"),
            (so, "lost", dict(env, STANDIN_FAIL="1"), "executing kernels on Stand-in 0: CUDA_ERROR_LAUNCH_FAILED (of the stand-in); this process cannot use the device any more"),
            (so, "fork", env, "a process that was forked cannot use the GPU of its parent"),
            (gather, "check", env, "index 105 at [0, 0] of i is out of range, expected -100 <= index < 100")]:
        p = run(cases, model, *what.split(), env=where, check=False)
        if p.returncode or want not in p.stdout:
            fail(f"{model.stem} {what}", f"{p.stdout}{p.stderr}exit status {p.returncode}, expected: {want}")


    both = [subprocess.Popen([cases, chain, "graphs"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ, **env)) for _ in range(2)]
    for p in both:
        said = p.communicate()[0]
        if p.returncode or "equal" not in said:
            fail("two processes", f"{said}exit status {p.returncode}")


def write_tensors(path, tensors):
    """tensors: {name: (dtype, shape, bytes)}, as safetensors."""
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))


def read_tensors(path):
    data = path.read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    return {k: (v["dtype"], v["shape"], data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in header.items() if k != "__metadata__"}


def numbers(dtype, *shape):
    count, seed, values = 1, len(shape) * 7 + sum(shape), []
    for n in shape:
        count *= n
    for k in range(count):
        seed = (seed * 1103515245 + 12345) % 2**31
        values.append((seed >> 16) % 65 / 32 - 1)
    if dtype == "F32":
        return dtype, list(shape), struct.pack(f"<{count}f", *values)
    if dtype == "F16":
        return dtype, list(shape), struct.pack(f"<{count}e", *values)
    return dtype, list(shape), b"".join(struct.pack("<f", v)[2:] for v in values)


# Products that cuBLASLt computes, in the order of results, and how many they are with 40 and with 20 rows.
PRODUCTS = """graph @products(%x: f32[B, 96], %w: f32[96, 128], %b: f32[128], %v: f32[128, 96], %h: f16[B, 96], %u: f16[96, 64],
                %r: bf16[64, 96], %c: bf16[64], %p: f32[4, 40, 48], %q: f32[4, 48, 64], %i: f32[2, 64, 8, 8], %k: f32[48, 64, 1, 1]) where 20 <= B {
  %y0 = aten.mm(%x, %w)
  %x1 = aten.slice.Tensor(%x, dim=1, start=16, end=80)
  %w1 = aten.slice.Tensor(%w, dim=0, start=0, end=64)
  %a1 = aten.addmm(%b, %x1, %w1)
  %y1 = aten.relu(%a1)
  %a2 = aten.linear(%x, %v, %b)
  %y2 = aten.gelu(%a2, approximate="tanh")
  %y3 = aten.mm(%h, %u)
  %l = convert(%x, dtype=bf16)
  %y4 = aten.linear(%l, %r, %c)
  %y5 = aten.bmm(%p, %q)
  %y6 = aten.conv2d(%i, %k)
  return %y0, %y1, %y2, %y3, %y4, %y5, %y6
}
"""


# Products of which cuBLASLt computes the sums, and a second phase the rest.
APART = """graph @apart(%x: bf16[256, 512], %w: bf16[512, 512], %b: bf16[512], %i: bf16[3, 512, 16, 16], %k: bf16[512, 512, 1, 1], %c: bf16[512]) {
  %a = aten.addmm(%b, %x, %w)
  %y = aten.gelu(%a)
  %m = aten.mm(%x, %w)
  %z = aten.silu(%m)
  %v = aten.conv2d(%i, %k, %c)
  return %y, %z, %v
}
"""


# Products of matrices that are copied first: of the windows of a convolution, and of a sum over heads and their elements.
COPIES = """graph @copies(%x: bf16[4, 64, 28, 28], %k: bf16[128, 64, 3, 3], %c: bf16[128], %p: bf16[2, 8, 128, 64], %w: bf16[256, 512], %b: bf16[256]) {
  %v = aten.conv2d(%x, %k, %c, padding=[1, 1])
  %h = permute(%p, perm=[0, 2, 1, 3])
  %m = reshape(%h, shape=[2, 128, 512])
  %o = aten.linear(%m, %w, %b)
  return %v, %o
}
"""


CALLS = 5  # of weft check: one with tensors of the host, four with tensors of the device


def check_products(folder, model, so, x, cases):
    """Results of a model with products beside the interpreter's, and how many of them the stand-in computed. x: inputs.
    cases: name, environment, number of products."""
    inputs, outputs = folder / "in.safetensors", folder / "out.safetensors"
    x = {f"x.{k}": t for k, t in enumerate(x)}
    write_tensors(inputs, x)
    run(weft, "run", model, "--inputs", inputs, "--outputs", outputs, "--backend", "interp")
    write_tensors(outputs, {**x, **read_tensors(outputs)})
    for name, where, want in cases:
        p = run(weft, "check", so, outputs, env=dict(where, STANDIN_LT_COUNT="1"), check=False)
        count = p.stderr.count("standin_lt: product")
        if p.returncode or count != CALLS * want:
            fail(f"{model.name}, {name}", f"{p.stdout}{p.stderr}{count} products in {CALLS} calls, expected {want} in each")


def check_library(folder, env, cases):
    """Products by a stand-in for cuBLASLt, and by kernels where it is not there, refuses, or would be slower."""
    model, so, library = folder / "products.ir", folder / "products.so", folder / "lt"
    library.mkdir()
    run(*cc, "-std=gnu17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", root / "tests/device/standin_lt.c", "-o", library / "libcublasLt.so.13", "-ldl", "-lm")
    model.write_text(PRODUCTS)
    run(weft, "compile", model, "--target", "gpu-model", "-o", so)
    there = dict(env, LD_LIBRARY_PATH=f"{env['LD_LIBRARY_PATH']}:{library}")
    for rows, most in (40, 7), (20, 4):
        x = [numbers("F32", rows, 96), numbers("F32", 96, 128), numbers("F32", 128), numbers("F32", 128, 96), numbers("F16", rows, 96), numbers("F16", 96, 64),
             numbers("BF16", 64, 96), numbers("BF16", 64), numbers("F32", 4, 40, 48), numbers("F32", 4, 48, 64), numbers("F32", 2, 64, 8, 8),
             numbers("F32", 48, 64, 1, 1)]
        check_products(folder, model, so, x, [(f"{rows} rows", there, most), (f"{rows} rows, none", env, 0), ("named none", dict(there, WEFT_CUBLASLT="none"), 0),
                                              ("refused", dict(there, STANDIN_LT="refuse"), 0)])
    apart = folder / "apart.ir"
    apart.write_text(APART)
    run(weft, "compile", apart, "--target", "gpu-model", "-o", folder / "apart.so")
    x = [numbers("BF16", 256, 512), numbers("BF16", 512, 512), numbers("BF16", 512), numbers("BF16", 3, 512, 16, 16), numbers("BF16", 512, 512, 1, 1),
         numbers("BF16", 512)]
    check_products(folder, apart, folder / "apart.so", x, [("library", there, 3), ("none", env, 0)])
    copies = folder / "copies.ir"
    copies.write_text(COPIES)
    run(weft, "compile", copies, "--target", "gpu-model", "-o", folder / "copies.so")
    x = [numbers("BF16", 4, 64, 28, 28), numbers("BF16", 128, 64, 3, 3), numbers("BF16", 128), numbers("BF16", 2, 8, 128, 64), numbers("BF16", 256, 512),
         numbers("BF16", 256)]
    check_products(folder, copies, folder / "copies.so", x, [("library", there, 2), ("none", env, 0)])
    p = run(weft, "show", "--kernels", so)
    if p.stdout.count("  library") != 4:
        fail("show --kernels", p.stdout)
    p = run(weft, "show", "--kernels", model, "--target", "gpu-model")
    for text in "by cuBLASLt from 32 x 48 x 40 of f32 on (estimated), with bias, relu; not at these sizes; else tiles", "with bias, gelu", "of bf16 on (estimated), with bias;":
        if text not in p.stdout:
            fail("show --kernels of the graph", f"{text}: {p.stdout}")
    for what in "graphs", "streams":
        big = folder / "big.so"
        text = folder / "big.ir"
        text.write_text("graph @big(%x: f32[64, 64], %w: f32[64, 64], %b: f32[64]) {\n  %a = aten.addmm(%b, %x, %w)\n  %s = aten.softmax.int(%a, dim=1)\n"
                        "  %c = aten.mm(%s, %w)\n  %d = aten.softmax.int(%c, dim=0)\n  return %d, %a\n}\n")
        run(weft, "compile", text, "--target", "gpu-model", "-o", big)
        p = run(cases, big, what, env=dict(there, STANDIN_LT_COUNT="1"), check=False)
        if p.returncode or "equal" not in p.stdout or "standin_lt: product" not in p.stderr:
            fail(f"products {what}", f"{p.stdout}{p.stderr[-500:]}exit status {p.returncode}")


def check_random(folder, env):
    """Random bits are those of the interpreter."""
    given, y = folder / "key.safetensors", {}
    write_tensors(given, {"x.0": ("U64", [2], struct.pack("<QQ", 2**63 + 12345, 2**40 + 7))})
    for name, cipher in ("philox", ""), ("aes", ', cipher="aes128-ctr"'):
        model, so = folder / f"{name}.ir", folder / f"{name}.so"
        model.write_text("graph @bits(%k: u64[2]) {\n" + "".join(f"  %{y} = random_bits(%k, shape=[37, 40], stream={n}, part=1, high={high}{cipher})\n"
                                                             for n, (y, high) in enumerate((("a", "false"), ("b", "true")))) + "  return %a, %b\n}\n")
        run(weft, "compile", model, "--target", "gpu-model", "-o", so)
        for what, backend, where in (model, ["--backend", "interp"], {}), (so, [], env):
            out = folder / "bits.safetensors"
            run(weft, "run", what, "--inputs", given, "--outputs", out, *backend, env=where)
            y[name, what.suffix] = read_tensors(out)
        if y[name, ".ir"] != y[name, ".so"] or len(y[name, ".so"]) != 2:
            fail(f"random bits, {name}", "other bits than the interpreter's")
    if y["philox", ".so"] == y["aes", ".so"]:
        fail("random bits", "equal for both ciphers")


def check_wide(folder, env):
    """Index arithmetic that 32 bits do not hold, of numbers and of a size without an upper bound."""
    model, so, given, out = (folder / f"wide_index.{k}" for k in ("ir", "so", "in.safetensors", "out.safetensors"))
    model.write_text("""graph @wide(%x: f32[B, 1]) where 1 <= B {
  %i = iota(dtype=i64, n=4900000000)
  %m = reshape(%i, shape=[70000, 70000])
  %c = slice(%m, start=[69990, 69990], end=[70000, 70000], step=[1, 1])
  %j = iota(dtype=i64, n=4900000000*B)
  %k = reshape(%j, shape=[70000*B, 70000])
  %d = slice(%k, start=[70000*B - 10, 69990], end=[70000*B, 70000], step=[1, 1])
  return %c, %d
}
""")
    run(weft, "compile", model, "--target", "gpu-model", "-o", so)
    write_tensors(given, {"x.0": numbers("F32", 3, 1)})
    run(weft, "run", so, "--inputs", given, "--outputs", out, env=env)
    want = {f"y.{n}": ("I64", [10, 10], struct.pack("<100q", *(rows * 70000 - 700000 + 70000 * i + 69990 + j for i in range(10) for j in range(10))))
            for n, rows in enumerate((70000, 210000))}
    if read_tensors(out) != want:
        fail("indices of more than 32 bits", "other values")


def check_weights(folder, env, cases):
    """Weights that are set: computed by the processor, copied to the device."""
    data = root / "tests/data"
    for m in (root / "examples/digits/digits_cnn.pt2", data / "mlp.pt2", data / "batch_norm.pt2"):
        gpu, cpu = folder / "weights_gpu.so", folder / "weights_cpu.so"
        run(weft, "compile", m, "--target", "gpu-model", "--replaceable-weights", "-o", gpu)
        run(weft, "compile", m, "--replaceable-weights", "-o", cpu)
        p = run(cases, gpu, "weights", cpu, env=env, check=False)
        if p.returncode or "equal" not in p.stdout:
            fail(f"weights of {m.stem}", f"{p.stdout}{p.stderr}exit status {p.returncode}")
        p = run(weft, "check", gpu, m.with_suffix(".safetensors") if m.with_suffix(".safetensors").exists() else m.with_suffix(".0.safetensors"), "-q", env=env, check=False)
        if p.returncode:
            fail(f"replaceable {m.stem}", p.stdout + p.stderr)


def check_both(folder, env, cases):
    """One file for processors and a GPU: the same results by either table, weights and state of either."""
    data, none = root / "tests/data", dict(env, LD_LIBRARY_PATH=str(folder / "nothing"))
    for m in (root / "examples/digits/digits_cnn.pt2", data / "mlp.pt2", data / "state.pt2", data / "scan.pt2"):
        refs = [m.with_suffix(".safetensors"), *sorted(m.parent.glob(f"{m.stem}.[0-9]*.safetensors"))]
        refs = [r for r in refs if r.exists() and not is_error(r)]
        for k, options in enumerate(([], ["--replaceable-weights"], ["--weights", "file"]) if m.stem in ("mlp", "state") else ([],)):
            so = folder / f"both_{m.stem}_{k}.so"
            run(weft, "compile", m, "--target", "gpu-model,x86-64-v2,v3" if k == 0 else "native,gpu-model", *options, "-o", so)
            for device in [], ["--device", "cuda"]:
                p = run(weft, "show", so, *device, env=none, check=False)
                if p.returncode or ("gpu-model" in p.stdout) != bool(device):
                    fail(f"show {so.stem} {device}", p.stdout + p.stderr)
            for device, where in ([], none), (["--device", "cuda"], env):
                p = run(weft, "check", so, *refs, "-q", *device, env=where, check=False)
                if p.returncode:
                    fail(f"{so.stem} {device}", p.stdout + p.stderr)
    for what, where, want in ("table", none, ": opened"), ("device-table", none, "gpu-model: mlp is for a GPU, and NVIDIA's driver is not there"), ("device-table", env, "gpu-model: opened"):
        p = run(cases, folder / "both_mlp_0.so", what, env=where, check=False)
        if p.returncode or want not in p.stdout:
            fail(f"both {what}", f"{p.stdout}{p.stderr}expected: {want}")
    # The GPU is given only what its kernels read of the weights: 448 of the bytes there are.
    p = run(cases, folder / "both_mlp_0.so", "device-table", env=dict(env, STANDIN_MEMORY="400"), check=False)
    if "for the 448 bytes of the weights" not in p.stdout:
        fail("weights of both", p.stdout + p.stderr)
    cpu = folder / "one_cpu.so"
    run(weft, "compile", data / "mlp.pt2", "-o", cpu)
    p = run(weft, "check", cpu, data / "mlp.safetensors", "--device", "cuda", env=env, check=False)
    if p.returncode == 0 or "has no code for a GPU: it was compiled for processors" not in p.stderr:
        fail("--device", p.stdout + p.stderr)


def check_operators(folder, env, cases):
    """Operators of the user: on copies of the processor, or with memory of the device."""
    example, so = root / "examples/userop", folder / "userop.so"
    for name, source in ("mylib", example / "mylib.c"), ("device_ops", root / "tests/device/device_ops.c"):
        run(*cc, "-std=c17", "-O1", "-shared", "-fPIC", "-I", root / "include", source, f"-Wl,-soname,lib{name}.so", "-o", folder / f"lib{name}.so", "-ldl", "-lm")
    where = dict(env, LD_LIBRARY_PATH=f"{env['LD_LIBRARY_PATH']}:{folder}")
    mylib = folder / "libmylib.so"
    run(weft, "compile", example / "model.pt2", "--target", "gpu-model", "--ops", mylib, "--link", mylib, "-o", so)
    p = run(weft, "check", so, example / "model.0.safetensors", example / "model.1.safetensors", "-q", env=where, check=False)
    if p.returncode:
        fail("userop", p.stdout + p.stderr)
    library = folder / "libdevice_ops.so"
    for n, want in (1, "equal"), (13, "test::here: 13 is unlucky"):
        text, so = folder / "here.ir", folder / "here.so"
        text.write_text("graph @here(%x: f32[40, 30]) {\n  %a = add(%x, %x)\n  %h = call([%a], op=\"test::here\", ints=[" + str(n) + "], floats=[])\n"
                        "  %b = get(%h, index=0)\n  %y = exp(%b)\n  %z = aten.sum.dim_IntList(%y, dim=[1])\n  return %y, %z\n}\n")
        run(weft, "compile", text, "--target", "gpu-model", "--ops", library, "--link", library, "-o", so)
        for what, says in (("device", want), ("streams", want), ("cycles 100", "100 cycles")) if n == 1 else (("run", want),):
            p = run(cases, so, *what.split(), env=where, check=False)
            if p.returncode or says not in p.stdout:
                fail(f"operator of a device, {what}", f"{p.stdout}{p.stderr}exit status {p.returncode}")


def check_lapack(folder, env, cases):
    """Eigenvalues, singular values and LDL factors are computed by the processor, as in a model for processors."""
    model, so, given, y = folder / "lapack.ir", folder / "lapack.so", folder / "lapack.safetensors", []
    model.write_text("graph @lapack(%x: f32[11, 9, 9], %s: f32[B, 4, 7]) where 1 <= B {\n  %t = aten.exp(%x)\n  %e = aten.linalg_eigh(%t)\n  %w = get(%e, index=0)\n"
                     "  %v = aten.linalg_svdvals(%s)\n  %l = aten.linalg_ldl_factor(%t)\n  %d = get(%l, index=0)\n  %z = add(%w, %w)\n  %u = exp(%v)\n"
                     "  return %z, %u, %d\n}\n")
    write_tensors(given, {"x.0": numbers("F32", 11, 9, 9), "x.1": numbers("F32", 40, 4, 7)})
    run(weft, "compile", model, "--target", "gpu-model", "-o", so)
    for what, target, where in (model, ["--target", "generic-c", "--backend", "c"], {}), (so, [], env):
        out = folder / "lapack_out.safetensors"
        run(weft, "run", what, "--inputs", given, "--outputs", out, *target, env=where)
        y.append(read_tensors(out))
    if y[0] != y[1] or len(y[0]) != 3:
        fail("LAPACK", "other bits than a processor's")
    write_tensors(given, {"x.0": ("F32", [11, 9, 9], struct.pack("<f", math.nan) * 891), "x.1": numbers("F32", 40, 4, 7)})
    here, there = (run(weft, "run", what, "--inputs", given, "--outputs", out, env=env, check=False) for what in (model, so))
    if not there.returncode or said(here) != said(there) or "linalg.eigh: " not in there.stderr:
        fail("LAPACK of NaN", here.stderr + there.stderr)
    for what, want in ("device", "equal"), ("streams", "equal"), ("cycles 100", "100 cycles"):
        p = run(cases, so, *what.split(), env=env, check=False)
        if p.returncode or want not in p.stdout:
            fail(f"LAPACK, {what}", f"{p.stdout}{p.stderr}exit status {p.returncode}")


def check_tool(folder, env):
    """weft's own options, and what it refuses."""
    mlp, ref = root / "tests/data/mlp.pt2", root / "tests/data/mlp.safetensors"
    none = dict(env, LD_LIBRARY_PATH=str(folder / "nothing"))
    check, compile = ["check", mlp, ref, "--device"], ["compile", mlp, "-o", folder / "refused.so", "--target"]
    broken = folder / "broken"
    broken.mkdir()
    (broken / "libnvrtc.so.13").write_bytes(b"no library")
    for arguments, where, want in [
            (check + ["cuda", "--target", "gpu-model"], env, "1 passed, 0 failed"),
            (["show", folder / "mlp.so"], none, "gpu-model"),
            (["show", "--kernels", mlp, "--target", "cuda-sm_90"], none, "estimated, not measured: 0.006"),
            (["bench", folder / "mlp.so", "--seconds", "0.01"], env, "of 20 that the GPU is given at once"),
            (check + ["cuda:2"], env, "cuda:2: there is no such GPU, only 0 to 0"),
            (check + ["cpu"], env, "--device is cuda or cuda:N, not cpu"),
            (check + ["cuda", "--backend", "c"], env, "give no --backend"),
            (check + ["cuda"], none, "cuda: NVIDIA's driver is not there"),
            (check + ["cuda"], dict(env, STANDIN_SM="75"), "there is no target for a device of sm_75"),
            (compile + ["cuda-sm_90"], dict(env, WEFT_NVRTC="/nowhere"), "there is no libnvrtc.so in /nowhere ($WEFT_NVRTC); --emit cuda writes them as text"),
            (compile + ["cuda-sm_90"], dict(env, WEFT_NVRTC=str(broken)), f"NVRTC cannot be loaded: {broken}/libnvrtc.so.13: file too short; --emit cuda"),
            (check + ["cuda"], dict(env, STANDIN_SM="90", WEFT_NVRTC="/nowhere"), "kernels for cuda-sm_90 are compiled by NVRTC"),
            (compile + ["cuda-sm_90,aarch64"], env, "the host of a GPU is this machine"),
            (compile + ["native,hip-gfx90a"], env, "kernels for hip-gfx90a are text: no code for"),
            (compile + ["native,gpu-model", "--backend", "gpu-host"], env, "the back end gpu-host is for one target"),
            (compile + ["gpu-model,cuda-sm_90"], env, "gpu-model is no device: no other GPU goes with it")]:
        p = run(weft, *arguments, env=where, check=False)
        if want not in p.stdout + p.stderr or (p.returncode == 0) != (want in ("of 20 that the GPU is given at once", "1 passed, 0 failed", "gpu-model", "estimated, not measured: 0.006")):
            fail(" ".join(map(str, arguments)), f"{p.stdout}{p.stderr}exit status {p.returncode}, expected: {want}")


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    library = folder / "driver"
    library.mkdir()
    run(*cc, "-std=c17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", root / "tests/device/standin.c", root / "tests/device/standin_graph.c", "-o", library / "libcuda.so.1", "-ldl", "-pthread")
    cases = folder / "cases"
    run(*cc, "-std=c17", "-D_GNU_SOURCE", "-O1", "-I", root / "include", root / "tests/device/cases.c", "-o", cases, "-ldl", "-pthread")
    env = {"LD_LIBRARY_PATH": str(library)}
    check_models(folder, env)
    check_cases(folder, env, cases)
    check_library(folder, env, cases)
    check_random(folder, env)
    check_wide(folder, env)
    check_weights(folder, env, cases)
    check_both(folder, env, cases)
    check_operators(folder, env, cases)
    check_lapack(folder, env, cases)
    check_tool(folder, env)
    check_script(folder, env)
    check_real(folder, env, cases)
sys.exit(bad != 0)
