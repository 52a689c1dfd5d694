"""What weft check says of values that are not finite, and of values that are rounded: check_words.py WEFT SOURCE_ROOT. Models that copy their
input are compared with other values: place and values are in words. --trace-rounding names the operator that some units in the last place
of its operand decide, behind others that they do not, and what follows from that."""
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

weft, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
sys.path.insert(0, str(root / "tests/help"))
from tensor_file import write_tensors  # noqa: E402

NAN, INF = math.nan, math.inf
COPY = "graph @f(%x: {0}) -> {0} {{\n  %y = aten.clone(%x) : {0}\n  return %y\n}}\n"
CASES = [  # type, shape, the model's values, the reference's, what is said; None: they agree
    ("f32[2, 3]", [2, 3], [1, 2, 3, 4, 5, 0.5], [1, 2, 3, 4, 5, NAN], "the reference has NaN at [1, 2], the model 0.5; 1 of 6 wrong"),
    ("f32[2, 3]", [2, 3], [1, NAN, 3, NAN, 5, 6], [1, 2, 3, 4, 5, 6], "the reference has 2 at [0, 1], the model NaN; 2 of 6 wrong"),
    ("f32[2, 3]", [2, 3], [1, 2, 3, 4, 5, 6], [1, 2, 3, INF, 5, 6], "the reference has infinity at [1, 0], the model 4; 1 of 6 wrong"),
    ("f32[4]", [4], [1, INF, 3, 4], [1, -INF, 3, 4], "the reference has -infinity at [1], the model infinity; 1 of 4 wrong"),
    ("f32[4]", [4], [NAN, 2, 3, 4], [INF, 2, 3, 4], "the reference has infinity at [0], the model NaN; 1 of 4 wrong"),
    ("f64[]", [], [1], [NAN], "the reference has NaN at [], the model 1; 1 of 1 wrong"),
    ("f32[4]", [4], [NAN, INF, -INF, 4], [NAN, INF, -INF, 4], None),
    ("f32[4]", [4], [1, 2, 3, 4], [1, 2, 3.5, 4], "error 0.5 at element 2, allowed 0.0001455; 1 of 4 wrong: 3, expected 3.5"),
]


def check(folder, kind, shape, got, want, *more):
    code = "d" if kind.startswith("f64") else "f"
    (folder / "copy.ir").write_text(COPY.format(kind))
    write_tensors(folder / "ref.safetensors", {"x.0": (code, shape, got), "y.0": (code, shape, want)})
    return subprocess.run([weft, "check", "copy.ir", "ref.safetensors", "--backend", "interp", *more], cwd=folder, capture_output=True, text=True)


bad = 0
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for kind, shape, got, want, said in CASES:
        p = check(folder, kind, shape, got, want)
        record = json.loads(check(folder, kind, shape, got, want, "--json").stdout)["results"][0]
        line = f"     output 0 (y): {said}\n" if said else "ok   copy.ir  no error  "
        if p.returncode != bool(said) or line not in p.stdout or " inf" in p.stdout.replace(" infinity", "") or (said or "") not in record["text"]:
            bad += 1
            print(f"FAIL {kind}, {got} for {want}: status {p.returncode}, expected {line!r}:\n{p.stdout}{p.stderr}{record}")
# How large the largest error is beside what is allowed, in text and JSON: of values that pass, that fail, where none is allowed.
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    near = struct.unpack("f", struct.pack("f", 3.00005))[0]
    for kind, want, said in (("f32[4]", [1, 2, near, 4], "0.36 of what is allowed (output 0)"), ("f32[4]", [1, 2, 3.5, 400], "7.47e+04 of what is allowed (output 0)")):
        p = check(folder, kind, [4], [1, 2, 3, 4], want)
        r = json.loads(check(folder, kind, [4], [1, 2, 3, 4], want, "--json").stdout)["results"][0]
        at = max((abs(a - b) / (1e-4 + 1.3e-5 * abs(b)), abs(a - b)) for a, b in zip([1, 2, 3, 4], want))
        line = f"  largest error {at[1]:.3g}, {at[0]:.3g} of what is allowed (output 0)  "
        if line not in p.stdout or said not in line or r["of"] != "output 0" or abs(r["of_allowed"] / at[0] - 1) > 1e-6 or abs(r["error"] / at[1] - 1) > 1e-6:
            bad += 1
            print(f"FAIL {want}: expected {line!r}:\n{p.stdout}{p.stderr}{r}")
    (folder / "copy.ir").write_text(COPY.format("i64[2]"))
    write_tensors(folder / "ref.safetensors", {"x.0": ("q", [2], [5, 7]), "y.0": ("q", [2], [6, 7])})
    p = subprocess.run([weft, "check", "copy.ir", "ref.safetensors", "--backend", "interp"], cwd=folder, capture_output=True, text=True)
    if "  largest error 1, none is allowed (output 0)" not in p.stdout:
        bad += 1
        print(f"FAIL integers: {p.stdout}{p.stderr}")
# y = 10 trunc(x + 0.25) + 100 round(x), as integers: the second is the one near a tie
ROUNDED = """graph @f(%x: {0}) -> {0} {{
  %q = aten.add.Scalar(%x, other=0.25) : {0}
  %t = aten.trunc(%q) : {0}
  %r = aten.round(%x) : {0}
  %i = aten.to.dtype(%r, dtype=i8) : i8{1}
  %j = aten.to.dtype(%i, dtype={2}) : {0}
  %a = aten.mul.Scalar(%t, other=10.0) : {0}
  %b = aten.mul.Scalar(%j, other=100.0) : {0}
  %y = aten.add.Tensor(%a, %b) : {0}
  return %y
}}
"""
UP, DOWN = 2.5 - 2.0 ** -22, -3.5 - 2.0 ** -21
TIES = [  # values, what is said
    ([0.1, UP, 3.1, 4.2], "%r (aten.round) rounds 1 of 4 values to other ones if they change by 4 units in the last place; the results change by 100 then"),
    ([DOWN, UP, 3.1, 4.2], "%r (aten.round) rounds 1 of 4 values to other ones if they change by 4 units in the last place; the results change by 100 then"),
    ([0.1, 2.75, 3.1, 4.2], "%t (aten.trunc) rounds 1 of 4 values to other ones if they change by 4 units in the last place; the results change by 10 then"),
    ([0.1, 2.4, 3.1, 4.2], "no value is rounded to another one if it changes by 4 units in the last place"),
]
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)

    def traced(graph, values, *more):
        (folder / "m.ir").write_text(graph)
        write_tensors(folder / "ref.safetensors", {"x.0": ("f", [4], values), "y.0": ("f", [4], [7, 7, 7, 7])})
        p = subprocess.run([weft, "check", "m.ir", "ref.safetensors", "--trace-rounding", *more], cwd=folder, capture_output=True, text=True)
        return p.stdout + p.stderr
    for kind, shape in (("f32[4]", "[4]"), ("f32[B]", "[B]")):
        graph = ROUNDED.format(kind, shape, "f32")
        for values, said in TIES:
            for more in (["--backend", "interp"], ["--backend", "loops"], ["--backend", "interp", "--json"]):
                if said not in (got := traced(graph, values, *more)):
                    bad += 1
                    print(f"FAIL {kind} {values} {more}: expected {said!r}:\n{got}")
    if "no operator rounds to integers or to 8 bits" not in (got := traced(COPY.format("f32[4]"), [1, 2, 3, 4], "--backend", "interp")):
        bad += 1
        print(f"FAIL a copy:\n{got}")
sys.exit(bad != 0)
