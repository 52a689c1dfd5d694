"""Branches and loops on data against PyTorch: control.py WEFT SOURCE_ROOT. Every model of tests/data/control (make_fixtures.py) with all
its references, in every back end and with 1, 2 and 8 threads. Where PyTorch failed the model fails, with one and the same
message for all of them. A check that fails ends the call before what comes after it."""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
from model_refs import Checker  # noqa: E402
from tensor_file import write_tensors  # noqa: E402

weft, root = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
BACKENDS = [["interp"], ["loops"]] + [[name, "--threads", "1,2,8"] for name in ("jit", "llvm", "c")]
CHECKED = "is out of range"  # an index, in the words of Weft
checker = Checker(weft, 120)
wrong, check = checker.wrong, checker.check


def backends():
    """Those that this Weft has."""
    return [b for b in BACKENDS if checker.has(root / "tests/data/control/while_in_cond.pt2", b)]


def run_fixtures(backend):
    for model in sorted((root / "tests/data/control").glob("*.pt2")):
        checker.run_model(model, backend, lambda error: CHECKED if error.startswith("index") else error)


# what is said of tests/data/control/refused, node included
REFUSED = {
    "branch_unbounded": "dimension 0 of result 0 has size u0 in one branch: not supported where that has no bound before it runs and the other "
                        "branch has another",
    "loop_integer": "result 0 of its graph is an integer that depends on data: not supported",
}


def run_refused():
    for name, want in REFUSED.items():
        done = subprocess.run([weft, "show", str(root / f"tests/data/control/refused/{name}.pt2")], capture_output=True, text=True)
        if done.returncode != 1 or want not in done.stderr or ": node " not in done.stderr:
            wrong(f"{name}: expected {want}", done.stderr)


# ---- what comes after a failure ----

# a loop that never ends where the assertion before it fails, and an index that is out of range in the step after that
STOPS = """graph @f(%x: f32[B], %k: i64[1], %t: f32[7]) where 1 <= B {
  %zero = full(value=0.0, shape=[B], dtype=f32)
  %p = ge(%x, %zero)
  assert(%p, message="x is negative")
  %w = while([%x], [], cond=graph @c(%y: f32[B]) {
    %m = reduce(%y, kind="min", dims=[0], acc=f32)
    %z = full(value=0.0, shape=[], dtype=f32)
    %c = lt(%m, %z)
    return %c
  }, body=graph @b(%y: f32[B]) {
    %n = mul(%y, %y)
    %m = neg(%n)
    return %m
  })
  %y = get(%w, index=0)
  %g = gather(%t, %k, batch=0, axes=[0], mode="check")
  return %y, %g
}
"""
# what a branch requires of sizes is checked when it runs
GUARDS = """graph @f(%p: bool[], %x: f32[A], %y: f32[B]) where 1 <= A, 1 <= B {
  %c = cond(%p, [%x, %y], yes=graph @yes(%x: f32[A], %y: f32[B]) where require A == B "equal sizes" {
    %z = reshape(%y, shape=[A])
    %s = add(%x, %z)
    return %s
  }, no=graph @no(%x: f32[A], %y: f32[B]) {
    %s = neg(%x)
    return %s
  })
  %s = get(%c, index=0)
  return %s
}
"""


def long_graph(n, fails):
    """n whiles and branches in turn between n kernels that cannot join: `run` is cut into parts, some inside of loops and after
    them."""
    lines, last = [], "%x"
    for k in range(n):
        lines.append(f"  %s{k} = reduce({last}, kind=\"max\", dims=[0], acc=f32)\n  %b{k} = broadcast(%s{k}, shape=[B], map=[])\n"
                     f"  %h{k} = full(value=0.5, shape=[B], dtype=f32)\n  %m{k} = mul(%b{k}, %h{k})\n"
                     f"  %y{k} = sub({last}, %m{k})")
        last = f"%y{k}"
        if k % 40 == 7:
            body = "\n".join(f"    %p{j} = reduce(%{'c' if j == 0 else f'q{j - 1}'}, kind=\"sum\", dims=[0], acc=f32)\n"
                             f"    %o{j} = broadcast(%p{j}, shape=[B], map=[])\n    %q{j} = maximum(%o{j}, %c)"
                             for j in range(300 if k == 47 else 3))
            lines.append(f"""  %w{k} = while([%n, {last}], [], cond=graph @c(%i: i64[], %c: f32[B]) {{
    %z = full(value=0, shape=[], dtype=i64)
    %p = gt(%i, %z)
    return %p
  }}, body=graph @b(%i: i64[], %c: f32[B]) {{
    %one = full(value=1, shape=[], dtype=i64)
    %j = sub(%i, %one)
{body}
    %t = tanh(%q{299 if k == 47 else 2})
    return %j, %t
  }})
  %v{k} = get(%w{k}, index=1)""")
            last = f"%v{k}"
        if k % 40 == 27:
            lines.append(f"""  %c{k} = cond(%p, [{last}], yes=graph @yes(%c: f32[B]) {{
    %s = reduce(%c, kind="prod", dims=[0], acc=f32)
    %b = broadcast(%s, shape=[B], map=[])
    return %b
  }}, no=graph @no(%c: f32[B]) {{
    %z = full(value={0 if fails else -1000}.0, shape=[B], dtype=f32)
    %g = ge(%c, %z)
    assert(%g, message="failed in step {k}")
    return %c
  }})
  %u{k} = get(%c{k}, index=0)""")
            last = f"%u{k}"
    return "graph @f(%x: f32[B], %n: i64[], %p: bool[]) where 1 <= B {\n" + "\n".join(lines) + f"\n  return {last}, %v7, %v{7 + (n - 8) // 40 * 40}\n}}\n"


def run_text(folder, backend, name, text, tensors, want):
    """want: the message, None where it is to pass with the given results."""
    model, ref = folder / f"{name}.ir", folder / f"{name}.safetensors"
    model.write_text(text)
    write_tensors(ref, tensors)
    code, said = check(model, [ref], backend)
    if code != (want is not None) or (want or "1 passed") not in said:
        wrong(f"{name} {backend}: expected {want}", said)


def run_long(folder, backend):
    """The other back ends against the interpreter."""
    for rounds in (0, 1, 2):
        for holds in (0, 1):
            x = {"x.0": ("f", [5], [1, 5, 2, 4, 3]), "x.1": ("q", [], [rounds]), "x.2": ("b", [], [holds])}
            model, ref = folder / "long.ir", folder / "long.safetensors"
            model.write_text(long_graph(400, False))
            write_tensors(ref, x)
            if backend[0] == "interp":
                continue
            code, said = check(model, [ref], [*backend, "--sizes", "B=5,1"])
            if code or " 0 failed" not in said:
                wrong(f"long {rounds} {holds} {backend}", said)
    model.write_text(long_graph(400, True))
    x["x.2"] = ("b", [], [0])
    write_tensors(ref, x)
    code, said = check(model, [ref], backend)
    if code != 1 or "failed in step 27" not in said:
        wrong(f"long fails {backend}", said)


def run_texts(folder, backend):
    table = ("f", [7], range(7))
    for n in (3, 100000):
        x = [1.0] * n
        x[n - 2] = -1.0
        stops = {"x.0": ("f", [n], x), "x.1": ("q", [1], [9]), "x.2": table}
        run_text(folder, backend, "stops", STOPS, stops, "x is negative")
        stops["x.0"] = ("f", [n], [1.0] * n)
        run_text(folder, backend, "goes_on", STOPS, stops, "index 9")
    two, three = ("f", [2], [1, 2]), ("f", [3], [1, 2, 3])
    run_text(folder, backend, "guard_off", GUARDS, {"x.0": ("b", [], [0]), "x.1": two, "x.2": three, "y.0": ("f", [2], [-1, -2])},
             None)
    run_text(folder, backend, "guard_on", GUARDS, {"x.0": ("b", [], [1]), "x.1": two, "x.2": two, "y.0": ("f", [2], [2, 4])}, None)
    run_text(folder, backend, "guard_fails", GUARDS, {"x.0": ("b", [], [1]), "x.1": two, "x.2": three}, "equal sizes")


run_refused()
for b in backends():
    run_fixtures(b)
    with tempfile.TemporaryDirectory() as temp:
        run_texts(pathlib.Path(temp), b)
        run_long(pathlib.Path(temp), b)
sys.exit(checker.bad != 0)
