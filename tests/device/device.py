"""No file of the runtime touches memory of a device: device.py WEFT SOURCE_ROOT FOLDER [NAME...]
Models are linked with the runtime and, compiled with WEFT_DEVICES, with a double of a device
(tests/device/double.c), whose addresses fault outside of kernels and copies. Both give the same bits
(tests/device/compare.c): outputs, gradients, state, weights that are set; and references are met by a caller that knows
no device. FOLDER: graphs besides. NAME: only these."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

weft, root, graphs = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3])
names = sys.argv[4:]
cc = os.environ.get("CC", "cc").split()
flags = ["-std=c17", "-D_GNU_SOURCE", "-O1", "-fPIC", "-fvisibility=hidden", "-I", root / "include", "-I", root / "runtime"]
bad = 0


def run(*command, check=True):
    p = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if check and p.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {p.stdout}{p.stderr}")
    return p


def compile_c(out, source, *more):
    run(*cc, *flags, *more, "-c", source, "-o", out)
    return out


def runtimes(folder):
    """Objects of the two runtimes."""
    sources = [s for s in sorted((root / "runtime").glob("*.c")) if s.name != "serial.c"]
    jobs = [(folder / f"{s.stem}.{kind}.o", s, more) for s in sources for kind, more in (("host", ()), ("device", ("-DWEFT_DEVICES",)))]
    jobs.append((folder / "double.device.o", root / "tests/device/double.c", ("-DWEFT_DEVICES",)))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda j: compile_c(j[0], j[1], *j[2]), jobs))
    return {kind: [o for o in made if f".{kind}." in o.name] for kind in ("host", "device")}


def models(folder):
    """(name, arguments of weft compile, references)"""
    data = root / "tests/data"
    references = lambda m: [m.with_suffix(".safetensors")] if m.with_suffix(".safetensors").exists() else []
    for m in sorted(data.glob("*.pt2")) + sorted(data.glob("state/*.pt2")) + sorted(data.glob("sizes/*.pt2")) + sorted(data.glob("control/*.pt2")):
        yield m.stem, [m], references(m)
    digits = root / "examples/digits/digits_cnn.pt2"
    yield "digits", [digits], references(digits)
    yield "digits replaceable", [digits, "--replaceable-weights"], references(digits)
    for m in (digits, data / "mlp.pt2", data / "batch_norm.pt2", data / "dynamic.pt2", data / "scan.pt2"):
        yield f"{m.stem} grad", [m, "--grad"], []
    yield "mlp grad replaceable", [data / "mlp.pt2", "--grad", "--replaceable-weights"], []
    for f in sorted(graphs.glob("*.txt")):
        text = f.read_text().partition("; ----")[0]
        if "call(" in text:
            continue  # operators of the user: functions of this processor
        path = folder / f"{f.stem}.ir"
        path.write_text(text)
        yield f"graph {f.stem}", [path], []


def build(folder, name, arguments, objects):
    """{kind: shared object}; None: the model is refused."""
    stem = folder / name.replace(" ", "_")
    p = run(weft, "compile", *arguments, "--emit", "obj", "-j", "1", "-o", f"{stem}.o", check=False)
    if p.returncode:
        return None
    out = {}
    for kind, runtime in objects.items():
        out[kind] = f"{stem}.{kind}.so"
        run(*cc, "-shared", f"{stem}.o", *runtime, "-o", out[kind], "-pthread", "-lm")
    return out


def check(folder, program, objects, model):
    name, arguments, references = model
    out = build(folder, name, arguments, objects)
    if not out:
        return name, None, ""
    p = run(program, out["host"], out["device"], check=False)
    if p.returncode == 77:  # a loop that does not end with inputs that are made up
        return name, (0, 0), ""
    text = p.stdout + p.stderr + f"exit status {p.returncode}" if p.returncode else ""
    if p.returncode < 0:
        text += f"signal {-p.returncode}: memory of the device was dereferenced"
    for ref in references if p.returncode == 0 else []:
        c = run(weft, "check", out["device"], ref, check=False)
        text += c.stdout + c.stderr if c.returncode else ""
    for so in (*out.values(), out["host"].replace(".host.so", ".o")):
        os.remove(so)
    words = p.stdout.split()[-4:]
    return name, (int(words[0]), int(words[2])) if p.returncode == 0 else (0, 0), text


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    objects = runtimes(folder)
    run(*cc, "-std=c17", "-D_GNU_SOURCE", "-DWEFT_DEVICES", "-O1", "-I", root / "include", "-I", root / "runtime", root / "tests/device/compare.c", "-o",
        folder / "device", "-ldl")
    wanted = [m for m in models(folder) if not names or m[0] in names]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda m: check(folder, folder / "device", objects, m), wanted))
counts = [c for _, c, _ in results if c]
calls, launches = sum(c for c, _ in counts), sum(n for _, n in counts)
for name, _, text in results:
    if text:
        bad += 1
        print(f"FAIL {name}: {text.strip()}")
print(f"{len(results)} models, {len(results) - len(counts)} refused, {sum(c == 0 for c, _ in counts)} without a call that succeeds, "
      f"{calls} calls, {launches} launches, {bad} wrong")
sys.exit(bad != 0 or (not names and launches < 200))
