"""Operators of the user: userop.py WEFT SOURCE_ROOT MYLIB USER_OPS, libraries of examples/userop/mylib.c and tests/system/c/user_ops.c. Models that call them
in every back end and with 1, 2 and 8 threads, from PyTorch and as text: symbolic sizes, several results, scalars, workspace, branches and
loops; effects in their order, by the thread that called run; failures, with one and the same message; what is linked, and what is said where
something is missing."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
import limits  # noqa: E402
from tensor_file import write_tensors  # noqa: E402

weft, root = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
mylib, user_ops = (str(pathlib.Path(p).resolve()) for p in sys.argv[3:5])
example = root / "examples/userop"
BACKENDS = [["interp"], ["loops"]] + [[name, "--threads", "1,2,8"] for name in ("jit", "llvm", "c")]
bad = 0


def wrong(what, text):
    global bad
    bad += 1
    print(f"FAIL: {what}\n{text}")


def tool(*args, **env):
    done = limits.run([weft, *map(str, args)], 300, capture_output=True, text=True, env={**os.environ, **env})
    return done.returncode, done.stdout + done.stderr


def expect(what, args, code, text, **env):
    got, said = tool(*args, **env)
    if got != code or text not in said or (code and len([x for x in said.splitlines() if "error:" in x or x.startswith("weft:")]) > 1):
        wrong(f"{what}: expected {code} and {text!r}, got {got}", said)


# ---- graphs ----

# calls in both branches, results inside of a concatenation, of other layouts, of constants; one operand twice; a result that nobody reads
SHAPES = """graph @f(%x: f32[A, B], %p: bool[]) where 1 <= A, 3 <= B {
  %s = call([%x], op="test::split", ints=[2], floats=[])
  %l = get(%s, index=0)
  %r = get(%s, index=1)
  %t = permute(%r, perm=[1, 0])
  %k = call([%t], op="test::kept", ints=[3, 1, 2, 3, 1], floats=[])
  %u = get(%k, index=0)
  %v = permute(%u, perm=[1, 0])
  %c = concat([%v, %l], dim=1)
  %d = cond(%p, [%c], yes=graph @yes(%y: f32[A, B]) {
    %q = call([%y], op="test::split", ints=[B - 1], floats=[])
    %a = get(%q, index=0)
    %b = get(%q, index=1)
    %m = concat([%b, %a], dim=1)
    return %m
  }, no=graph @no(%y: f32[A, B]) {
    %k = call([%y], op="test::kept", ints=[0, 1], floats=[])
    %z = get(%k, index=0)
    return %z
  })
  %e = get(%d, index=0)
  %n = call([%e], op="test::kept", ints=[1, -7, 0], floats=[])
  return %e, %r
}
"""
# carried through a loop; an effect in each round
LOOPS = """graph @f(%x: f32[2, 3], %n: i64[]) {
  %b = call([], op="test::begin", ints=[], floats=[])
  %w = while([%x, %n], [], cond=graph @c(%y: f32[2, 3], %i: i64[]) {
    %z = full(value=0, shape=[], dtype=i64)
    %p = gt(%i, %z)
    return %p
  }, body=graph @b(%y: f32[2, 3], %i: i64[]) {
    %k = call([%y], op="test::kept", ints=[1, 1, 1], floats=[])
    %v = get(%k, index=0)
    %t = call([%v], op="test::trace", ints=[3], floats=[])
    %one = full(value=1, shape=[], dtype=i64)
    %j = sub(%i, %one)
    return %v, %j
  })
  %y = get(%w, index=0)
  %t = call([], op="test::traced", ints=[], floats=[])
  %z = get(%t, index=0)
  return %y, %z
}
"""
# effects in order, one that depends on nothing; two equal ones stay two
EFFECTS = """graph @f(%x: f32[B]) where 1 <= B {
  %b = call([], op="test::begin", ints=[], floats=[])
  %e = exp(%x)
  %t1 = call([%e], op="test::trace", ints=[1], floats=[])
  %t2 = call([%x], op="test::trace", ints=[2], floats=[])
  %t3 = call([%x], op="test::trace", ints=[2], floats=[])
  %t4 = call([%e], op="test::trace", ints=[5], floats=[])
  %t = call([], op="test::traced", ints=[], floats=[])
  %n = get(%t, index=0)
  return %n
}
"""
# slices of stacked tensors, a stacked result, none of either
SCAN = """graph @f(%h: f32[2, 3], %xs: f32[T, 2, 3]) where 0 <= T {
  %s = scan([%h], [%xs], [], body=graph @b(%c: f32[2, 3], %x: f32[2, 3]) {
    %k = call([%x], op="test::kept", ints=[1, 5, 1], floats=[])
    %v = get(%k, index=0)
    %p = call([%v], op="test::split", ints=[1], floats=[])
    %l = get(%p, index=0)
    %r = get(%p, index=1)
    %n = concat([%r, %l], dim=1)
    %a = add(%n, %c)
    return %a, %v, %r
  }, length=T, reverse=false)
  %a = get(%s, index=0)
  %b = get(%s, index=1)
  %d = get(%s, index=2)
  return %a, %b, %d
}
"""
# tensors without elements
EMPTY = """graph @f(%x: f32[A, B]) {
  %s = call([%x], op="test::split", ints=[2], floats=[])
  %l = get(%s, index=0)
  %r = get(%s, index=1)
  %k = call([%r], op="test::kept", ints=[0, 1], floats=[])
  %u = get(%k, index=0)
  return %u, %l
}
"""
# what may run at once fails at once: the first is told of; nothing with an effect after it; a check of the model ahead of both
FAILS = """graph @f(%x: f32[B], %y: f32[C], %k: i64[1], %t: f32[7]) where 1 <= B, 1 <= C {
  %g = gather(%t, %k, batch=0, axes=[0], mode="check")
  %a = call([%x], op="test::check", ints=[1], floats=[])
  %b = call([%y], op="test::check", ints=[2], floats=[])
  %r = get(%a, index=0)
  %s = get(%b, index=0)
  %zero = full(value=50.0, shape=[B], dtype=f32)
  %p = lt(%r, %zero)
  assert(%p, message="x is large")
  %q = call([%s], op="test::trace", ints=[9], floats=[])
  return %g, %r, %s
}
"""


# what the functions are told: a compiled model knows what a symbol names, and no address of another process
CONTEXT = """graph @f(%x: f32[2]) {
  %n = call([%x], op="test::named", ints=[], floats=[])
  %b = call([%x], op="test::bare", ints=[], floats=[])
  %y = get(%n, index=0)
  %z = get(%b, index=0)
  return %y, %z
}
"""


def context(folder, backend):
    here = backend[0] not in ("llvm", "c")
    run_text(folder, backend, "context", CONTEXT, {"x.0": ("f", [2], [1.0, 2.0]), "y.0": ("q", [5], [77, 0, 0, 1, 0]),
                                                   "y.1": ("q", [5], [78 if here else -1, 0, 0, 1, 0])})


def backends():
    """Those that this Weft has."""
    case = [example / "model.pt2", example / "model.0.safetensors", "--ops", mylib]
    return [b for b in BACKENDS if "LLVM" not in tool("check", *case, "--backend", *b)[1]]


def run_text(folder, backend, name, text, tensors, want=None):
    """want: the message, None where it is to pass."""
    model, ref = folder / f"{name}.ir", folder / f"{name}.safetensors"
    model.write_text(text)
    write_tensors(ref, tensors)
    code, said = tool("check", model, ref, "--ops", user_ops, "--backend", *backend)
    lines = [x for x in said.splitlines() if "error:" in x or x.startswith("weft: ")]
    if code != (want is not None) or (want or "1 passed") not in said or (want and any(not x.removesuffix(" [W0009]").endswith(want) for x in lines)):
        wrong(f"{name} {backend}: expected {want}", said)


def shapes(folder, backend):
    for a, b in ((1, 3), (4, 3), (3, 40), (70, 5)):
        x = [[float(i * b + k) for k in range(b)] for i in range(a)]
        c = [row[2:] for row in x]
        c = [[v + 6 for v in right] + row[:2] for right, row in zip(c, x)]
        flat = lambda rows: [v for row in rows for v in row]
        given = {"x.0": ("f", [a, b], flat(x)), "y.1": ("f", [a, b - 2], flat(row[2:] for row in x))}
        run_text(folder, backend, "shapes", SHAPES, {**given, "x.1": ("b", [], [1]), "y.0": ("f", [a, b], flat(r[-1:] + r[:-1] for r in c))})
        run_text(folder, backend, "shapes", SHAPES, {**given, "x.1": ("b", [], [0]), "y.0": ("f", [a, b], flat(c))})


    for n in (0, 1, 3):
        h = [float(k) for k in range(6)]
        xs = [[float(6 * i + k) for k in range(6)] for i in range(n)]
        kept = [[v + 5 for v in x] for x in xs]
        total = h
        for x in kept:
            total = [a + b for a, b in zip(total, x[1:3] + x[:1] + x[4:6] + x[3:4])]
        run_text(folder, backend, "scan", SCAN, {"x.0": ("f", [2, 3], h), "x.1": ("f", [n, 2, 3], [v for x in xs for v in x]), "y.0": ("f", [2, 3], total),
                                                 "y.1": ("f", [n, 2, 3], [v for x in kept for v in x]),
                                                 "y.2": ("f", [n, 2, 2], [v for x in kept for v in x[1:3] + x[4:6]])})
    for a, b in ((0, 4), (3, 2), (0, 2)):
        run_text(folder, backend, "empty", EMPTY, {"x.0": ("f", [a, b], range(a * b)), "y.0": ("f", [a, b - 2], []), "y.1": ("f", [a, 2], range(2 * a))})


def effects(folder, backend):
    x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    for rounds in (0, 1, 4):
        run_text(folder, backend, "loops", LOOPS, {"x.0": ("f", [2, 3], x), "x.1": ("q", [], [rounds]), "y.0": ("f", [2, 3], [v + rounds for v in x]),
                                                   "y.1": ("q", [], [int("0" + "3" * rounds)])})
    for n in (1, 10, 100000):
        run_text(folder, backend, "effects", EFFECTS, {"x.0": ("f", [n], [0.5] * n), "y.0": ("q", [], [1225])})


def failures(folder, backend):
    table = ("f", [7], range(7))

    def fails(x, y, k, want, sizes=((3, 3), (3, 100000))):
        for b, c in sizes:
            given = {"x.0": ("f", [b], [x] * b), "x.1": ("f", [c], [y] * c), "x.2": ("q", [1], [k]), "x.3": table}
            good = {} if want else {"y.0": ("f", [], [float(k)]), "y.1": ("f", [b], [x] * b), "y.2": ("f", [c], [y] * c)}
            run_text(folder, backend, "fails", FAILS, {**given, **good}, want)

    fails(1.0, 2.0, 3, None)
    fails(-1.0, 2.0, 3, "test::check: -1 in check 1")
    fails(1.0, -2.0, 3, "test::check: -2 in check 2")
    fails(-1.0, -2.0, 3, "test::check: -1 in check 1")
    fails(100.0, -2.0, 3, "test::check: too much")
    fails(200.0, 2.0, 3, "test::check: failed with 7")
    fails(60.0, 2.0, 3, "x is large")
    fails(60.0, -2.0, 3, "test::check: -2 in check 2")


def links(folder):
    """Compiled files with their libraries, and what is said where one is missing."""
    model, ref, out = example / "model.pt2", example / "model.1.safetensors", folder / "model.so"
    here = {"LD_LIBRARY_PATH": str(pathlib.Path(mylib).parent)}
    expect("not registered", ["compile", model, "-o", out], 1, "operators of yours come with a library: --ops LIBRARY")
    expect("no library", ["compile", model, "-o", out, "--ops", folder / "none.so"], 1, "none.so: error: cannot open: No such file or directory")
    expect("twice", ["compile", model, "-o", out, "--ops", mylib, "--ops", mylib], 1, "mylib::decay: there is one of that name already")
    old = folder / "old.so"
    cc = [*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", root / "tests/golden/ops_abi2.c", "-o", old]
    subprocess.run(cc, check=True)
    expect("of ABI 2", ["show", model, "--ops", old], 1, "its definition has 64 bytes, expected 80: it was compiled with another weft_op.h")
    expect("of a model", ["check", out, ref, "--ops", mylib, "--threads", "1"], 1, "")
    for backend in [b for b in ("llvm", "c") if any(x[0] == b for x in known)]:
        compile = ["compile", model, "-o", out, "--ops", mylib, "--backend", backend]
        expect("no function", compile, 1, "mylib_decay is not defined, the function of the operator mylib::decay: name the library that has it with --link")
        expect("no such name", [*compile, "--link", "nosuch"], 1, "--link nosuch: the linker finds no libnosuch.so")
        expect("no such file", [*compile, "--link", folder / "nosuch.so"], 1, "nosuch.so: error: cannot open: No such file or directory")
        expect("empty", [*compile, "--link", "-lx"], 1, "expected a file, or a library as mylib for libmylib.so")
        for link in (mylib, "mylib"):
            expect("compile", [*compile, "--link", link], 0, "", LIBRARY_PATH=str(pathlib.Path(mylib).parent))
            expect("run", ["run", out, "--inputs", ref, "--outputs", folder / "y.safetensors"], 0, "", **here)
        text = folder / "context.ir"
        text.write_text(CONTEXT)
        stub = folder / "stub.so"
        (folder / "stub.c").write_text("int test_context(void);\nint test_context(void) { return 0; }\n")
        subprocess.run([*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", folder / "stub.c", "-o", stub], check=True)
        expect("no object", ["compile", text, "-o", out, "--ops", user_ops, "--backend", backend, "--link", stub], 1,
               "test_number is not defined, the user_symbol of the operator test::named: name the library that has it with --link")
        text = folder / "effects.ir"
        text.write_text(EFFECTS)
        write_tensors(folder / "e.safetensors", {"x.0": ("f", [3], [1, 2, 3]), "y.0": ("q", [], [1225])})
        expect("no soname", ["compile", text, "-o", out, "--ops", user_ops, "--backend", backend, "--link", user_ops], 0, "")
        expect("run", ["run", out, "--inputs", folder / "e.safetensors", "--outputs", folder / "y.safetensors"], 0, "")
    expect("manifest", ["show", out], 0, "calls    test::begin test_begin, test::trace test_trace, test::traced test_traced")
    c = folder / "c"
    expect("C", ["compile", model, "-o", c, "--emit", "c", "--ops", mylib, "--link", mylib], 0, "")
    made = subprocess.run(["make", "-s", "-C", c, "CC=" + os.environ.get("CC", "cc")], capture_output=True, text=True)
    if made.returncode:
        wrong("make", made.stdout + made.stderr)
    expect("run", ["run", c / "model.so", "--inputs", ref, "--outputs", folder / "y.safetensors"], 0, "", **here)
    expect("show", ["show", model, "--ops", mylib], 0, "the user's operator mylib::decay, by any thread")


# Rules that give what they must not, and an operator without one.
UNRULY = """graph @f(%x: f32[A, 4]) where 4 <= A {
  %s = call([%x], op="test::split", ints=[2], floats=[])
  %l = get(%s, index=0)
  return %l
}
"""


def derivatives(folder, backend):
    """The example's gradients and tangents against PyTorch's; twice; of a batch; as entries."""
    for mode, wrt in (("vjp", "inputs,params"), ("jvp", "inputs")):
        for k in (0, 1):
            expect(f"{mode} {k} {backend}", ["check", "--mode", mode, "--wrt", wrt, example / "model.pt2", example / f"model.{k}.safetensors",
                                             "--ops", mylib, "--backend", *backend], 0, "1 passed, 0 failed")


def entries(folder):
    out, case = folder / "grad.so", example / "model.0.safetensors"
    expect("--grad", ["compile", example / "model.pt2", "--grad=params", "-o", out, "--ops", mylib, "--link", mylib], 0, "")
    expect("--grad", ["show", out], 0, "mylib::decay_backward mylib_decay_backward", LD_LIBRARY_PATH=str(pathlib.Path(mylib).parent))
    graph = folder / "unruly.txt"
    graph.write_text(UNRULY)
    expect("no rule", ["run", graph, "--mode", "vjp", "--inputs", case, "--outputs", folder / "y.safetensors", "--ops", user_ops], 1,
           "the user operator test::split has no derivative: its definition has no .vjp")


known = backends()
for b in known:
    cases = [example / f"model.{k}.safetensors" for k in (0, 1)]
    code, said = tool("check", example / "model.pt2", *cases, "--ops", mylib, "--backend", *b)
    if code or "2 passed, 0 failed" not in said:
        wrong(f"example {b}", said)
    with tempfile.TemporaryDirectory() as temp:
        shapes(pathlib.Path(temp), b)
        effects(pathlib.Path(temp), b)
        context(pathlib.Path(temp), b)
        failures(pathlib.Path(temp), b)
        derivatives(pathlib.Path(temp), b)
with tempfile.TemporaryDirectory() as temp:
    links(pathlib.Path(temp))
    entries(pathlib.Path(temp))
sys.exit(bad != 0)
