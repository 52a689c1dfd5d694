"""Derivatives and batches that are undefined, and files that do not fit them: each is one error that names the node and what to do,
by weft run --mode, weft check --mode and weft compile --grad, and nothing is written. refusals.py WEFT SOURCE_ROOT USER_OPS"""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
from tensor_file import write_tensors  # noqa: E402

weft, root, user_ops = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]), str(pathlib.Path(sys.argv[3]).resolve())
bad = 0
LOOP = """graph @f(%x: f32[3], %n: i64[]) {
  %zero = full(value=0, shape=[], dtype=i64)
  %w = while([%zero, %x], [%n], cond=graph @more(%k: i64[], %x: f32[3], %n: i64[]) {
    %c = lt(%k, %n)
    return %c
  }, body=graph @body(%k: i64[], %x: f32[3], %n: i64[]) {
    %y = sin(%x)
    %one = full(value=1, shape=[], dtype=i64)
    %j = add(%k, %one)
    return %j, %y
  })
  %y = get(%w, index=1)
  return %y
}
"""
ORDER = """graph @f(%x: f32[3], %y: f32[3]) {
  %a = sin(%x)
  %b = aten.igamma(%a, %y) : f32[3]
  return %b
}
"""
CALL = """graph @f(%x: f32[3, 4]) {
  %a = sin(%x)
  %c = call([%a], op="test::split", ints=[2], floats=[])
  %y = get(%c, index=0)
  return %y
}
"""
CHOSEN = """graph @f(%x: f32[4]) -> f32[u0] where unbacked 0 <= u0 {
  %zero = full(value=0, shape=[4], dtype=f32)
  %c = gt(%x, %zero)
  %n = aten.masked_select(%x, %c) : f32[u0]
  return %n
}
"""
MIXED = """graph @f(%x: f32[3], %k: i64[3]) {
  %a = sin(%x)
  return %a, %k
}
"""
WHOLE = """graph @f(%k: i64[3]) {
  %a = add(%k, %k)
  return %a
}
"""
COUNT = """graph @f(%x: f32[3]) {
  %a = convert(%x, dtype=i64)
  return %a
}
"""
HOLDS = """graph @f(%x: f32[3], %p: bool[]) {
  assert(%p, message="must hold")
  %a = sin(%x)
  return %a
}
"""


def floats(*shape):
    n = 1
    for d in shape:
        n *= d
    return "f", list(shape), [0.5 + (k % 5) / 4 for k in range(n)]


def whole(*shape):
    return "q", list(shape), [2] * len(floats(*shape)[2])


def say(text):
    global bad
    bad += 1
    print("FAIL", text)


class Folder:
    """A model and a file, and what weft says of them."""

    def __init__(self, here):
        self.here, self.out = here, here / "out.safetensors"

    def model(self, text):
        if isinstance(text, pathlib.Path):
            return text
        (self.here / "m.txt").write_text(text)
        return self.here / "m.txt"

    def said(self, what, text, args, lines=1):
        p = subprocess.run([weft, *map(str, args)], capture_output=True, text=True)
        if p.returncode != (2 if p.stderr.startswith("weft: -") else 1) or text not in p.stderr or len(p.stderr.splitlines()) != lines:
            say(f"{what}: {args[0]}: expected {text!r}, got {p.returncode}: {p.stderr}")
        if self.out.exists():
            say(f"{what}: {args[0]}: a file is written")
            self.out.unlink()

    def run(self, what, model, inputs, mode, text, *args):
        write_tensors(self.here / "in.safetensors", inputs)
        for k, backend in enumerate(("interp", "loops")): # text may be one for each
            self.said(what, text if isinstance(text, str) else text[k], ["run", self.model(model), "--inputs", self.here / "in.safetensors", "--outputs", self.out, "--mode", mode,
                                   "--backend", backend, *args])

    def check(self, what, model, reference, mode, text, *args):
        write_tensors(self.here / "ref.safetensors", reference)
        self.said(what, text, ["check", self.model(model), self.here / "ref.safetensors", "--mode", mode, "--backend", "interp", *args])

    def compile(self, what, model, grad, text, *args):
        self.said(what, text, ["compile", self.model(model), f"--grad={grad}" if grad else "--grad", "-o", self.out, *args])

    def gradient(self, what, model, inputs, ct, text, *args):
        """Refused by all that computes gradients."""
        self.run(what, model, inputs | {"ct.0": ct}, "vjp", text, *args)
        self.check(what, model, inputs | {"ct.0": ct, "g.0": inputs["x.0"]}, "vjp", text, *args)
        self.compile(what, model, "", text, *args)


def undefined(f):
    x, two = {"x.0": floats(3), "x.1": whole()}, {"x.0": floats(3), "x.1": floats(3)}
    f.gradient("loop", LOOP, x, floats(3), "node w: error: the number of rounds of this loop is not known before it runs, so what they keep for "
               "derivatives has no place: let it end at a known limit too (a counter that starts at a known number), or say how many it has at most: --loop-bound w=N")
    f.gradient("operand", ORDER, two, floats(3), "node b: error: igamma has no derivative by a: none by a in closed form")
    f.run("operand", ORDER, two | {"t.0": floats(3)}, "jvp", "node b: error: igamma has no derivative by a")
    own = {"x.0": floats(3, 4)}
    ops = ["--ops", user_ops]
    text = "node c: error: "
    f.gradient("operator of the user's", CALL, own, floats(3, 2), text, *ops)
    f.run("operator of the user's", CALL, own | {"t.0": floats(3, 4)}, "jvp", text, *ops)
    mixed = {"x.0": floats(3), "x.1": whole(3)}
    named = "node k: error: there is no derivative by a value of dtype i64: leave this input out"
    f.run("integer input", MIXED, mixed | {"ct.0": floats(3)}, "vjp", named, "--wrt", "k")
    f.run("integer input", MIXED, mixed | {"t.1": whole(3)}, "jvp", named)
    f.compile("integer input", MIXED, "k", named)
    f.run("integer output", MIXED, mixed | {"ct.0": floats(3), "ct.1": whole(3)}, "vjp", "output k is i64 and takes no cotangent")
    f.check("integer output", MIXED, mixed | {"ct.1": whole(3), "g.0": floats(3)}, "vjp", "output k is i64 and takes no cotangent")
    by = "there is nothing to differentiate by: of what was named, nothing is of a float or complex dtype"
    f.run("only integers", WHOLE, {"x.0": whole(3)}, "jvp", by)
    f.compile("only integers", WHOLE, "", by)
    f.compile("no parameters", MIXED, "params", by)
    of = "there is nothing to differentiate: no output is of a float or complex dtype"
    f.run("integer results", COUNT, {"x.0": floats(3), "t.0": floats(3)}, "jvp", of)
    f.compile("integer results", COUNT, "", of)
    f.compile("sizes from data", CHOSEN, "", "a gradient whose size depends on data is not supported in an entry of its own")


def batches(f):
    state = root / "tests/data/state.pt2"
    f.run("state", state, {"x.0": floats(2, 3), "vx.1": floats(2, 2, 2, 3)}, "vmap", 'the value that is written to "')
    other = {"x.0": floats(4), "vx.0": ("f", [2, 4], [1, -2, 3, 4, 1, 2, 3, 4])}
    f.run("sizes from data", CHOSEN, other, "vmap", "aten.masked_select: results of different sizes for the members of a batch")
    f.run("effect", HOLDS, {"x.0": floats(3), "vx.1": ("b", [2], [1, 0])}, "vmap", ("node 2: error: assert: must hold", "m.txt: must hold"))


def files(f):
    x = {"x.0": floats(3), "x.1": whole(3)}
    ct = {"ct.0": floats(3)}
    none = "no tensor ct.0: only where output 0 is one number, a loss, its cotangent is 1 by itself"
    for name in ("t.0", "g.0"):
        f.run("no cotangent", MIXED, x | {name: floats(3)}, "vjp", none)
    for n in 0, 1, 3:  # of a size that is known at run time, too
        f.run("no cotangent", "graph @f(%x: f32[N]) {\n  %e = exp(%x)\n  return %e\n}\n", {"x.0": floats(n)}, "vjp", none)
    for name in ("ct.5", "ct.x", "ct.", "ct.-1", "ct.00", "ct.0x", "0.ct.2"):
        f.run("names", MIXED, x | ct | {name: floats(3)}, "vjp", f"in.safetensors: {name}: the model has 2 outputs")
        f.check("names", MIXED, x | ct | {name: floats(3), "g.0": floats(3)}, "vjp", f"ref.safetensors: {name}: the model has 2 outputs")
    for name in ("t.2", "t.y", "t."):
        f.run("names", MIXED, x | {"t.0": floats(3), name: floats(3)}, "jvp", f"in.safetensors: {name}: the model has 2 inputs")
    for name in ("vx.2", "vx.x", "vx."):
        f.run("names", MIXED, x | {"vx.0": floats(2, 3), name: floats(3)}, "vmap", f"in.safetensors: {name}: the model has 2 inputs")
    f.run("shape", MIXED, x | {"ct.0": floats(4)}, "vjp", ('input "ct.a" dimension 0: expected 3, got 4', "input ct.a: dimension 0 is 4, expected 3"))
    f.run("shape", MIXED, x | {"ct.0": floats(1, 3)}, "vjp", ('input "ct.a": expected 1 dimensions, got 2', "input ct.a has 2 dimensions, expected 1"))
    f.run("dtype", MIXED, x | {"ct.0": whole(3)}, "vjp", ('input "ct.a": expected dtype f32, got i64', "input ct.a has dtype i64, expected f32"))
    f.run("shape", MIXED, x | {"t.0": floats(4)}, "jvp", ('input "t.x" dimension 0: expected 3, got 4', "input t.x: dimension 0 is 4, expected 3"))
    f.run("shape", MIXED, x | {"vx.0": floats(2, 4)}, "vmap", ('input "x" dimension 1: expected 3, got 4', "input x: dimension 1 is 4, expected 3"))
    f.run("shape", MIXED, x | {"vx.0": floats(3)}, "vmap", ('input "x": expected 2 dimensions, got 1', "input x has 1 dimensions, expected 2"))
    f.run("shape", MIXED, {"vx.0": floats(2, 3), "vx.1": whole(3, 3)}, "vmap", ('dimension 0: expected 3, got 2', "input x: dimension 0 is 2, expected 3"))
    for mode in ("VJP", "vjp,jvp", "vjp "):
        f.run("mode", MIXED, x | ct, mode, f"--mode is vjp, jvp or vmap, not {mode}")
    for wrt in ("nope", "inputs,nope", " x", "x.0"):
        name = wrt.split(",")[-1]
        f.run("wrt", MIXED, x | ct, "vjp", f"no input or parameter is called {name}; the inputs are x, k", "--wrt", wrt)
    for grad in ("nope", "x,nope"):
        f.compile("grad", MIXED, grad, "no input or parameter is called nope; the inputs are x, k")
    f.run("mode", MIXED, x | ct, "", "--mode: the value is empty")
    f.run("wrt", MIXED, x | ct, "vjp", "--wrt: the value is empty", "--wrt", "")
    f.check("nothing", MIXED, x | ct, "vjp", "no reference has anything for --mode")


with tempfile.TemporaryDirectory() as folder:
    f = Folder(pathlib.Path(folder))
    undefined(f)
    batches(f)
    files(f)
sys.exit(1 if bad else 0)
