"""Artifacts for GPUs run with the CUDA driver alone: cuda.py WEFT SOURCE_ROOT [--all | NAME...]
Models are compiled for gpu-model, whose images a stand-in for the driver (tests/device/standin.c, a libcuda.so.1) executes;
its memory faults when the host touches it. Results are compared with the references; then the bad cases
(tests/device/cases.c): no driver, no device, another architecture, no memory, many loads. With NVRTC also images for real
devices, which the stand-in loads. --all: every fixture of tests/data."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

weft, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
names = sys.argv[3:] or ["mlp", "dynamic", "batch_norm", "state", "scan", "casts", "resize"]
cc = os.environ.get("CC", "cc").split()
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
        p = run(weft, "compile", m, "--target", "gpu-model", "-o", so, check=False)
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


def check_real(folder, env, cases):
    """Images for a real device load, or are refused with a sentence."""
    so = folder / "digits.so"
    p = run(weft, "compile", root / "examples/digits/digits_cnn.pt2", "--target", "cuda-sm_90", "-o", so, check=False)
    if p.returncode and "NVRTC" in p.stderr and "--emit cuda" in p.stderr:
        print("without NVRTC no images for real devices")
        return
    if p.returncode:
        return fail("cuda-sm_90", p.stderr)
    both = folder / "both.so"
    p = run(weft, "compile", root / "examples/digits/digits_cnn.pt2", "--target", "cuda-sm_90,sm_86", "-o", both, check=False)
    if p.returncode:
        return fail("cuda-sm_86,sm_90", p.stderr)
    for sm, want in {"86": "opened", "89": "opened", "90": "opened", "100": "opened",
                     "80": "has kernels for sm_86, sm_90, and device 0 (Stand-in 0) is sm_80"}.items():
        p = run(cases, both, "open", env=dict(env, STANDIN_SM=sm), check=False)
        if p.returncode or want not in p.stdout:
            fail(f"both sm_{sm}", p.stdout + p.stderr)
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
            (so, "cycles", env, "1000 cycles"),
            (folder / "state.so", "cycles", env, "1000 cycles"),
            (so, "device", env, "equal"),
            (wide, "device", env, "equal"),
            (so, "threads", env, "equal"),
            (so, "streams", env, "equal"),
            (folder / "state.so", "streams", env, "equal"),
            (chain, "graphs", env, "equal"),
            (checked, "graphs", env, "equal"),
            (checked, "later", env, "an earlier call: g: index 105 at [0, 0] of i is out of range, expected -100 <= index < 100"),
            (gather, "later", env, "an earlier call: g: index 105 at [0, 0] of i is out of range, expected -100 <= index < 100"),
            (so, "lost", dict(env, STANDIN_FAIL="1"), "executing kernels on Stand-in 0: CUDA_ERROR_LAUNCH_FAILED (of the stand-in); this process cannot use the device any more"),
            (so, "fork", env, "a process that was forked cannot use the GPU of its parent"),
            (gather, "check", env, "index 105 at [0, 0] of i is out of range, expected -100 <= index < 100")]:
        p = run(cases, model, *what.split(), env=where, check=False)
        if p.returncode or want not in p.stdout:
            fail(f"{model.stem} {what}", f"{p.stdout}{p.stderr}exit status {p.returncode}, expected: {want}")


def check_tool(folder, env):
    """weft's own options, and what it refuses."""
    mlp, ref = root / "tests/data/mlp.pt2", root / "tests/data/mlp.safetensors"
    none = dict(env, LD_LIBRARY_PATH=str(folder / "nothing"))
    check, compile = ["check", mlp, ref, "--device"], ["compile", mlp, "-o", folder / "refused.so", "--target"]
    for arguments, where, want in [
            (check + ["cuda", "--target", "gpu-model"], env, "1 passed, 0 failed"),
            (["show", folder / "mlp.so"], none, "gpu-model"),
            (check + ["cuda:2"], env, "cuda:2: there is no such GPU, only 0 to 0"),
            (check + ["cpu"], env, "--device is cuda or cuda:N, not cpu"),
            (check + ["cuda", "--backend", "c"], env, "give no --backend"),
            (check + ["cuda"], none, "cuda: NVIDIA's driver is not there"),
            (check + ["cuda"], dict(env, STANDIN_SM="75"), "there is no target for a device of sm_75"),
            (compile + ["cuda-sm_90"], dict(env, WEFT_NVRTC="/nowhere"), "there is no libnvrtc.so in /nowhere ($WEFT_NVRTC); --emit cuda writes them as text"),
            (check + ["cuda"], dict(env, STANDIN_SM="90", WEFT_NVRTC="/nowhere"), "kernels for cuda-sm_90 are compiled by NVRTC"),
            (compile + ["gpu-model,cuda-sm_90"], env, "gpu-model is no device: it stands alone"),
            (compile + ["gpu-model", "--replaceable-weights"], env, "replaceable weights of a model for a GPU are not done yet")]:
        p = run(weft, *arguments, env=where, check=False)
        if want not in p.stdout + p.stderr or (p.returncode == 0) != (want in ("1 passed, 0 failed", "gpu-model")):
            fail(" ".join(map(str, arguments)), f"{p.stdout}{p.stderr}exit status {p.returncode}, expected: {want}")


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    library = folder / "driver"
    library.mkdir()
    run(*cc, "-std=c17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", root / "tests/device/standin.c", "-o", library / "libcuda.so.1", "-ldl", "-pthread")
    cases = folder / "cases"
    run(*cc, "-std=c17", "-D_GNU_SOURCE", "-O1", "-I", root / "include", root / "tests/device/cases.c", "-o", cases, "-ldl", "-pthread")
    env = {"LD_LIBRARY_PATH": str(library)}
    check_models(folder, env)
    check_cases(folder, env, cases)
    check_tool(folder, env)
    check_real(folder, env, cases)
sys.exit(bad != 0)
