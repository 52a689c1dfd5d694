"""Kernels in HIP are compiled for gfx90a: hip.py WEFT SOURCE_ROOT CLANG [NAME...]
The fixtures of tests/data, or those of the names, are printed for hip-gfx90a. CLANG compiles the texts without the
libraries and headers of ROCm. The code object must define all kernels and refer to nothing that is not in it, and no
product may be joined with a sum. What is refused for the target is refused with a sentence. No GPU executes the code.
The compiler's part is skipped if CLANG is not there or has no AMDGPU target."""
import concurrent.futures
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

weft, root, clang = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
names = sys.argv[4:]
FLAGS = ["-x", "hip", "-nogpulib", "-nogpuinc", "--cuda-device-only", "--offload-arch=gfx90a", "-std=c++17", "-O2", "-Wall", "-Werror"]


def run(*argv):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, errors="replace")


def device_code(data):
    """The ELF of the device in a bundle of clang."""
    magic = b"__CLANG_OFFLOAD_BUNDLE__"
    if data[:4] == b"\x7fELF":
        return data
    assert data.startswith(magic), data[:32]
    at = len(magic) + 8
    for _ in range(struct.unpack_from("<Q", data, len(magic))[0]):
        start, size, n = struct.unpack_from("<3Q", data, at)
        if b"gfx90a" in data[at + 24 : at + 24 + n]:
            return data[start : start + size]
        at += 24 + n
    raise AssertionError("no code for gfx90a")


def dynamic_symbols(elf):
    """(defined, undefined) names."""
    (table,), (size, n) = struct.unpack_from("<Q", elf, 40), struct.unpack_from("<HH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, table + k * size) for k in range(n)]
    found = ([], [])
    for s in sections:
        if s[1] != 11:  # SHT_DYNSYM
            continue
        text = sections[s[6]][4]
        for at in range(s[4] + s[9], s[4] + s[5], s[9]):
            name, _, _, section = struct.unpack_from("<IBBH", elf, at)
            found[section == 0].append(elf[text + name : elf.index(b"\0", text + name)].decode())
    return found


def check(path, folder):
    """(kernels, what is wrong)"""
    hip = folder / (path.stem + ".hip")
    p = run(weft, "compile", path, "--target", "hip-gfx90a", "--emit", "hip", "-o", hip)
    if p.returncode:
        return 0, p.stderr
    kernels = set(re.findall(r"__global__ void \w+\(\d+\) (\w+)\(", hip.read_text()))
    if not kernels:
        return 0, None
    code = folder / (path.stem + ".o")
    p = run(clang, *FLAGS, "-c", hip, "-o", code)
    if p.returncode or p.stderr:
        return 0, p.stderr
    defined, undefined = dynamic_symbols(device_code(code.read_bytes()))
    if undefined or not kernels <= set(defined):
        return 0, f"undefined: {undefined}; kernels that are missing: {kernels - set(defined)}"
    return len(kernels), None


def products_stay_apart(folder):
    """The pragma of the text holds: a sum of a product has no v_fma."""
    text = folder / "apart.hip"
    graph = folder / "apart.ir"
    graph.write_text("graph @f(%x: f32[64], %y: f32[64], %z: f32[64]) {\n  %m = mul(%x, %y)\n  %s = add(%m, %z)\n  return %s\n}\n")
    p = run(weft, "compile", graph, "--target", "hip-gfx90a", "--emit", "hip", "-o", text)
    q = run(clang, *FLAGS, "-S", text, "-o", folder / "apart.s")
    if p.returncode or q.returncode:
        return p.stderr + q.stderr
    code = (folder / "apart.s").read_text()
    apart = re.search(r"v_(pk_)?mul_f32", code) and not re.search(r"v_(pk_)?(fma|fmac|mad|mac)_f32", code)
    return None if apart else "a product is joined with a sum"


def refusals(folder):
    """(case, what is wrong)"""
    model, out = root / "examples/digits/digits_cnn.pt2", folder / "refused"
    wants = {
        "--target hip-gfx90a": "a shared object for hip-gfx90a is not done yet: --emit hip writes its kernels as text",
        "--target hip-gfx90a --emit cuda": "the kernels for hip-gfx90a are HIP: expected --emit hip",
        "--target cuda-sm_90 --emit hip": "the kernels for cuda-sm_90 are CUDA C: expected --emit cuda",
        "--target cuda-sm_90,hip-gfx90a --emit hip": "targets cuda-sm_90 and hip-gfx90a are not levels of one family of processors",
        "--target hip-gfx90a,gpu-model --emit hip": "targets hip-gfx90a and gpu-model are not levels of one family of processors",
        "--target x86-64-v3 --emit hip": "x86-64-v3 is a CPU",
        "--target hip-gfx90a --emit obj": "hip-gfx90a is a GPU",
        "--target hip-gfx90a --emit c": "hip-gfx90a is a GPU",
    }
    for case, want in wants.items():
        p = run(weft, "compile", model, *case.split(), "-o", out)
        if p.returncode != 1 or want not in p.stderr or p.stderr.count("error:") != 1 or out.exists():
            yield case, p.stderr or "not refused"


def has_target():
    try:
        return re.search(r"^\s*amdgcn\b", run(clang, "--print-targets").stdout, re.M)
    except OSError:
        return False


with tempfile.TemporaryDirectory() as folder:
    failed = list(refusals(pathlib.Path(folder)))
for case, why in failed:
    print(f"{case}: {why}")
if failed:
    sys.exit(1)
if not has_target():
    print(f"{clang} is not there, or has no target amdgcn: the rest is skipped")
    sys.exit(77)
refused = {"guard_log", "overlaps_as_strided", "overlaps_expand", "overlaps_unfold", "tangled"}  # on purpose
files = sorted(f for f in [*(root / "tests/data").rglob("*.pt2"), *(root / "examples/digits").glob("*.pt2")] if "refused" not in f.parts and f.stem not in refused)
files = [f for f in files if not names or f.stem in names]
if len(files) < len(names):
    print(f"fixtures that are not there: {set(names) - {f.stem for f in files}}")
    sys.exit(1)
with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
    folders = []
    for k in range(len(files)):
        folders.append(pathlib.Path(folder) / str(k))
        folders[k].mkdir()
    results = list(pool.map(check, files, folders))
    wrong = [(f.stem, why) for f, (_, why) in zip(files, results) if why]
    wrong += [("contraction", why) for why in [products_stay_apart(pathlib.Path(folder))] if why]
    for name, why in wrong:
        print(f"{name}: {why[:2000]}")
    print(f"{sum(n for n, _ in results)} kernels of {len(files)} models compiled for gfx90a, {len(wrong)} errors")
    sys.exit(bool(wrong))
