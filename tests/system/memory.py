"""Each allocation of the command fails once: one message, status 1, nothing left behind. memory.py WEFT PRELOAD
SOURCE_ROOT [--all] [MODEL.pt2...]: some of the allocations, or --all; of LLVM's own always some."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
import limits  # noqa: E402

every = "--all" in sys.argv
args = [a for a in sys.argv[1:] if a != "--all"]
weft, preload, root = (str(pathlib.Path(a).resolve()) for a in args[:3])
models = [str(pathlib.Path(a).resolve()) for a in args[3:]] or [f"{root}/examples/digits/digits_cnn.pt2"]
OURS = "weft libjansson libz"


def needed():
    """The library that LLVM is, where it is not part of the back end's own: its name up to the dot, or nothing. While it is
    loaded nobody can be asked what to do: its constructors end the process (the back end's own come before LLVM's in it)."""
    said = subprocess.run(["ldd", pathlib.Path(weft).parent / "weft_llvm.so"], capture_output=True, text=True).stdout
    return " ".join("~" + line.split(".")[0].strip() for line in said.splitlines() if line.strip().startswith("libLLVM"))


has_llvm = "llvm" in subprocess.run([weft, "compile", "--help-all"], capture_output=True, text=True).stdout and \
    (pathlib.Path(weft).parent / "weft_llvm.so").exists()
LLVMS = "weft_llvm" + (" " + needed() if has_llvm else "")
bad = 0


def left_over():
    return sorted(str(p) for f in ("out", "tmp") for p in pathlib.Path(f).iterdir())


def clear():
    for p in left_over():
        subprocess.run(["rm", "-r", p], check=True)


def attempt(command, where, n):
    """Fail the n-th. False: there are not so many."""
    global bad
    mark = pathlib.Path("mark")
    mark.unlink(missing_ok=True)
    env = dict(os.environ, LD_PRELOAD=preload, FAIL_IN=where, FAIL_AT=str(n), FAIL_MARK=str(mark.resolve()))
    p = limits.run(command, 300, env=env, capture_output=True, text=True)
    failed = mark.exists()
    lines = p.stderr.splitlines()
    fine = p.returncode == 0 and not lines  # it could do without
    said = p.returncode == 1 and len(lines) == 1 and "memory" in lines[0] and not left_over()
    if not fine and not (failed and said):
        print(f"FAIL: {' '.join(command[1:])}: allocation {n} of {where}: status {p.returncode}, {p.stderr!r}, "
              f"left {left_over()}")
        bad = 1
    clear()
    return failed


def sweep(command, where, step):
    """step: from one tested allocation to the next."""
    n = tested = 1
    while attempt(command, where, n) and not bad:
        n, tested = step(n), tested + 1
    print(f"{' '.join(command[1:])}: {tested - 1} of at most {n} allocations by {where} failed")
    if tested < 5:
        sys.exit("FAIL: nothing was tested")


def compressed(model):
    """As other writers of zip files might: zlib inflates it."""
    import zipfile
    to = "compressed.pt2"
    with zipfile.ZipFile(model) as a, zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as b:
        for name in a.namelist():
            b.writestr(name, a.read(name))
    return to


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for name in "out", "tmp", "cache":
        os.mkdir(name)
    os.environ.update(TMPDIR=f"{folder}/tmp", WEFT_CACHE=f"{folder}/cache", OMP_NUM_THREADS="2")
    ours = (lambda n: n + 1) if every else (lambda n: n + 1 + n // 3)
    for model in models:
        commands = [[weft, "compile", model, "-o", "out/m.so", "--backend", "c", "--weights", "file"]]
        if has_llvm:
            commands.append([weft, "compile", model, "-o", "out/m.so", "--backend", "llvm", "-j", "1"])
            ref = pathlib.Path(model).with_suffix(".safetensors")
            if ref.exists():
                commands.append([weft, "run", model, "--inputs", str(ref), "--outputs", "out/y.npz"])
        for c in commands:
            sweep(c, OURS, ours)
        for c in commands[1:]:
            sweep(c, LLVMS, lambda n: n * 2 + 1 if not every else n + 1 + n // 20)
    data = pathlib.Path(models[0]).with_suffix(".safetensors")
    static = ["--activations", "static", "--data", str(data)] if has_llvm and data.exists() else []
    sweep([weft, "quantize", models[0], "-o", "out/m.weft", "-j", "1", *static], OURS, ours)
    subprocess.run([weft, "quantize", models[0], "-o", "m.weft"], check=True, capture_output=True)
    sweep([weft, "show", "m.weft", "--graph"], OURS, ours)
    sweep([weft, "compile", compressed(models[0]), "-o", "out/m.h", "--emit", "header"], OURS, ours)
sys.exit(bad)
