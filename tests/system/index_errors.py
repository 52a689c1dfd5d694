"""An index out of range names its value and where it stands, in every back end and with any number of threads:
index_errors.py WEFT. Of several the first one is reported: that of the first task, and there of the first check."""
import array
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
import limits  # noqa: E402

weft = str(pathlib.Path(sys.argv[1]).resolve())
BACKENDS = [["jit"], ["loops"], ["llvm"], ["c"], ["c", "--target", "generic-c"], ["jit", "--target", "x86-64-v2"]]

EMBEDDING = """graph @f(%i: i64[B, S], %t: f32[50257, 64]) where 1 <= B, 1 <= S {
  %e = aten.embedding(%t, %i) : f32[B, S, 64]   ; 100%.py:12
  return %e
}
"""
# lanes are different points
ELEMENTS = """graph @f(%x: f32[100], %i: i64[B, 300, 1]) where 1 <= B {
  %g = gather(%x, %i, batch=0, axes=[0], mode="check")
  return %g
}
"""
# the same row of indices for each of 8 channels, which run over lanes
BROADCAST = """graph @f(%x: f32[100, 8], %i: i64[B]) where 1 <= B {
  %c = aten.unsqueeze(%i, dim=1) : i64[B, 1]
  %w = aten.expand(%c, size=[B, 8]) : i64[B, 8]
  %g = aten.gather(%x, %w, dim=0) : f32[B, 8]
  return %g
}
"""
# an index found by an index
NESTED = """graph @f(%x: f32[100], %i: i64[40, 1], %j: i64[B, 1]) where 1 <= B {
  %k = gather(%i, %j, batch=0, axes=[0], mode="check")
  %g = gather(%x, %k, batch=0, axes=[0], mode="check")
  return %g
}
"""
# an index that is computed has its place among all
COMPUTED = """graph @f(%x: f32[100], %i: i64[B, 30, 1], %j: i64[B, 30, 1]) where 1 <= B {
  %s = add(%i, %j)
  %g = gather(%x, %s, batch=0, axes=[0], mode="check")
  return %g
}
"""
SCATTER = """graph @f(%x: f32[30, 8], %i: i64[N, 1], %u: f32[N, 8]) where 1 <= N {
  %s = scatter(%x, %i, %u, batch=0, axes=[0], mode="check", combine="add", unique=false, sorted=false)
  return %s
}
"""

# of what is found only the last row is read, in its own kernel and behind a product that is made of the last rows alone
LAST = """graph @f(%i: i64[B, S], %t: f32[50, 64], %w: f32[64, 64], %g: f32[64]) where 1 <= B, 1 <= S {
  %e = aten.embedding(%t, %i) : f32[B, S, 64]
  %x = exp(%e)
  %l = slice(%x, start=[0, S - 1, 0], end=[B, S, 64], step=[1, 1, 1])
  return %l
}
"""
LAST_PRODUCT = LAST.replace("%x = exp(%e)", "%n = aten.layer_norm(%e, %g, none, normalized_shape=[64])\n  %x = aten.linear(%n, %w, none)")
# rows of a product at indices, which are made of rows at these indices
ROWS = """graph @f(%i: i64[N, 1], %x: f32[3, 50, 64], %w: f32[64, 64]) where 1 <= N {
  %l = aten.linear(%x, %w, none)
  %g = gather(%l, %i, batch=0, axes=[1], mode="check")
  return %g
}
"""

# an operator of several tasks: the first one fails after others
EIGEN = """graph @f(%x: f32[16, 60, 60]) {
  %e = aten.linalg_eigvalsh(%x)
  return %e
}
"""


def indices(shape, bad, good=7):
    n = 1
    for d in shape:
        n *= d
    values = [good] * n
    for at, v in bad.items():
        values[at] = v
    return "I64", shape, values


def floats(*shape):
    n = 1
    for d in shape:
        n *= d
    return "F32", list(shape), [1.0] * n


def matrices(bad):
    """All are symmetric, those from `bad` on hold a NaN."""
    one = [((i * j) % 17 + (i == j)) / 16 for i in range(60) for j in range(60)]
    return "F32", [16, 60, 60], one * bad + [float("nan"), *one[1:]] * (16 - bad)


# (text, inputs, message)
CASES = [
    (EMBEDDING, [indices([64, 40], {}), floats(50257, 64)], None),
    (EMBEDDING, [indices([64, 40], {125: 70000, 2000: -50258, 2559: 50257}), floats(50257, 64)],
     "e: index 70000 at [3, 5] of i is out of range, expected 0 <= index < 50257 (100%.py:12)"),
    (EMBEDDING, [indices([64, 40], {70: -1, 2559: 50257}), floats(50257, 64)],
     "e: index -1 at [1, 30] of i is out of range, expected 0 <= index < 50257 (100%.py:12)"),
    (EMBEDDING, [indices([64, 40], {2000: -50258, 2559: 50257}), floats(50257, 64)],
     "e: index -50258 at [50, 0] of i is out of range, expected 0 <= index < 50257 (100%.py:12)"),
    (ELEMENTS, [floats(100), indices([200, 300, 1], {59999: 100})],
     "g: index 100 at [199, 299, 0] of i is out of range, expected -100 <= index < 100"),
    (ELEMENTS, [floats(100), indices([200, 300, 1], {40009: -2**63, 40010: 2**63 - 1, 50000: 105})],
     "g: index -9223372036854775808 at [133, 109, 0] of i is out of range, expected -100 <= index < 100"),
    (BROADCAST, [floats(100, 8), indices([9000], {8191: -101})],
     "4: index -101 at [8191] of i is out of range, expected 0 <= index < 100"),
    (NESTED, [floats(100), indices([40, 1], {7: 200}), indices([50, 1], {0: 3, 1: 5})],
     "g: index 200 at [7, 0] of i is out of range, expected -100 <= index < 100"),
    (NESTED, [floats(100), indices([40, 1], {}), indices([50, 1], {49: 40})],
     "k: index 40 at [49, 0] of j is out of range, expected -40 <= index < 40"),
    (COMPUTED, [floats(100), indices([9, 30, 1], {269: 98}), indices([9, 30, 1], {})],
     "g: index 105 at [8, 29] is out of range, expected -100 <= index < 100"),
    (SCATTER, [floats(30, 8), indices([500, 1], {333: -31}), floats(500, 8)],
     "s: index -31 at [333, 0] of i is out of range, expected -30 <= index < 30"),
    *[(text, [indices([2, 40], {5: 50}), floats(50, 64), floats(64, 64), floats(64)],
       "e: index 50 at [0, 5] of i is out of range, expected 0 <= index < 50") for text in (LAST, LAST_PRODUCT)],
    (LAST_PRODUCT, [indices([2, 40], {}), floats(50, 64), floats(64, 64), floats(64)], None),
    (ROWS, [indices([4, 1], {2: 50}), floats(3, 50, 64), floats(64, 64)],
     "g: index 50 at [2, 0] of i is out of range, expected -50 <= index < 50"),
    (EIGEN, [matrices(1)], "linalg.eigh: (Batch element 1): The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
     "eigenvalues (error code: 59)"),
]


def write(path, tensors):
    code = {"F32": "f", "I64": "q"}
    header, body = {}, b""
    for k, (dtype, shape, values) in enumerate(tensors):
        data = array.array(code[dtype], values).tobytes()
        header[f"x.{k}"] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def main():
    bad = 0
    for k, (text, inputs, message) in enumerate(CASES):
        pathlib.Path("f.txt").write_text(text)
        write(pathlib.Path("in.safetensors"), inputs)
        for backend in BACKENDS:
            for threads in ["1", "2"] if backend[0] != "loops" else ["1"]:
                p = limits.run([weft, "run", "f.txt", "--inputs", "in.safetensors", "--outputs", "out.safetensors",
                                "--threads", threads, "--backend", *backend], 200,
                               capture_output=True, text=True, check=False)
                want = (1, f"weft: f.txt: {message} [W0009]\n") if message else (0, "")
                if (p.returncode, p.stderr) != want:
                    bad += 1
                    print(f"FAIL {k} {' '.join(backend)}, {threads} threads: status {p.returncode}\n"
                          f"  expected {message}\n  got      {p.stderr}")
    print(f"{len(CASES)} cases, {bad} failures")
    return bad != 0


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    status = main()
    os.chdir("/")
sys.exit(status)
