"""Models and callers of different versions understand each other: abi.py WEFT ROOT PRELOAD.

Of the header a later one is made, in which every structure that may grow has two fields more. A model, compiled from emitted C
with either of them, gives a caller, compiled with either of them, the same answers. So does the model of a weft of long ago
(tests/golden/emitted, built as it is) to today's caller. Models and callers of another version of the ABI are refused with a sentence, those
of ABI 2 (tests/golden/abi2.c) by every command that runs a model. And each allocation of the calls fails once: one message, status 3."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

weft, root, preload = (str(pathlib.Path(a).resolve()) for a in sys.argv[1:4])
CC = os.environ.get("CC", "cc").split()
GROWING = "Dim TensorInfo SymbolInfo CallInfo LayoutDim ParamInfo Entry Context OpContext Comm Open Manifest Model".split()


def must(command, **more):
    p = subprocess.run(command, capture_output=True, text=True, **more)
    if p.returncode:
        sys.exit(f"FAIL: {' '.join(command)}: {p.returncode}: {p.stdout}{p.stderr}")
    return p.stdout


def later_header(text):
    for name in GROWING:
        text, n = re.subn(r"\n(\} Weft%s;)" % name, r"\n\tint64_t later;\n\tconst char *even_later;\n\1", text)
        if n != 1:
            sys.exit(f"FAIL: the header has {n} structures Weft{name}")
    return text


def emit(folder, *more):
    must([weft, "compile", *(f"{name}={root}/tests/golden/graphs/{name}.pt2" for name in ("step", "peek")), "--name", "running", "--emit", "c", "-o", folder, "--target", "generic-c", *more])


def caller(folder, later):
    to = f"caller_{int(later)}"
    must([*CC, "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", *(["-DLATER"] if later else []), f"-I{folder}", f"{root}/tests/system/c/abi_call.c",
          "-o", to, "-ldl"])
    return os.path.abspath(to)


def build(folder):
    must(["make", "-s", "-C", str(folder), f"CC={' '.join(CC)}"])
    found = list(pathlib.Path(folder).glob("*.so"))
    assert len(found) == 1, found
    return str(found[0].resolve())


def same(what, got, want):
    if got != want:
        sys.exit(f"FAIL: {what}:\n{got}\nexpected\n{want}")


def values(text):
    """Without the table."""
    return [line for line in text.splitlines() if re.match(r"[^[]*: -?\d", line)]


def refused(what, command, sentence):
    p = subprocess.run(command, capture_output=True, text=True)
    said = p.stderr.strip()
    if p.returncode != 1 or sentence not in said or len(said.splitlines()) != 1:
        sys.exit(f"FAIL: {what}: {p.returncode}: {p.stdout}{said}")


def other_versions(program, model):
    """Structures of which nothing but the beginning is as it was, and a caller of today with a model of tomorrow."""
    old = "too old for this program: compile it again"
    must([*CC, "-shared", "-fPIC", f"{root}/tests/golden/abi2.c", "-o", "abi2.so"])
    refused("a model of ABI 2", [program, "./abi2.so"], old)
    for command in ["show"], ["bench"], ["run", "--inputs", "x.safetensors", "--outputs", "y.safetensors"]:
        refused(f"weft {command[0]}", [weft, command[0], "abi2.so", *command[1:]], old)
    shutil.copytree("now", "before")
    header = pathlib.Path("before/weft_model.h")
    text = header.read_text()
    now = re.search(r"#define WEFT_ABI_VERSION (\d+)", text)
    header.write_text(text.replace(now[0], f"#define WEFT_ABI_VERSION {int(now[1]) - 1}"))
    must([*CC, "-std=c11", "-I", "before", f"{root}/tests/system/c/abi_call.c", "-o", "caller_before", "-ldl"])
    refused("a caller of the version before", ["./caller_before", model], "too new for this program")


def allocations(program, model):
    """Each of the model's own."""
    name = pathlib.Path(model).name.split(".")[0]
    for n in range(1, 1000):
        mark = pathlib.Path("mark")
        mark.unlink(missing_ok=True)
        env = dict(os.environ, LD_PRELOAD=preload, FAIL_IN=name, FAIL_AT=str(n), FAIL_MARK=str(mark.resolve()), OMP_NUM_THREADS="2")
        p = subprocess.run([program, model], env=env, capture_output=True, text=True)
        if not mark.exists():
            break
        if p.returncode != 3 or "memory" not in p.stderr:
            sys.exit(f"FAIL: allocation {n}: status {p.returncode}: {p.stderr}")
    if n < 5:
        sys.exit("FAIL: no allocation failed")
    print(f"{n - 1} allocations failed")


with tempfile.TemporaryDirectory() as tmp:
    os.chdir(tmp)
    golden = pathlib.Path(f"{root}/tests/golden")
    emit("now")
    emit("replaceable", "--replaceable-weights")
    shutil.copytree("now", "later")
    header = pathlib.Path("later/weft_model.h")
    header.write_text(later_header(header.read_text()))
    callers = [caller(f, f == "later") for f in ("now", "later")]
    shutil.copytree(golden / "emitted", "golden")
    long_ago = (golden / "emitted.txt").read_text()
    same("the model of long ago", must([callers[0], build("golden")]), long_ago)
    expected = must([callers[0], build("now")])
    same("what it computes now", values(expected), values(long_ago))
    if not re.search(r"^call \S+ .* line \S+:\d+ .*of [1-9]", expected, re.M):
        sys.exit(f"FAIL: no call says its line:\n{expected}")
    for folder in "now", "later":
        for program, its in zip(callers, ("now", "later")):
            same(f"a model of {folder} and a caller of {its}", must([program, build(folder)]), expected)
    other_versions(callers[0], build("now"))
    model = build("replaceable")
    same("replaced weights", must([callers[1], model]), must([callers[0], model]))
    for folder in "now", "replaceable":
        allocations(callers[0], build(folder))
