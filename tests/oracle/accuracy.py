"""Errors of what adds up many numbers, against float64, beside those of PyTorch's eager mode: accuracy.py WEFT [--large [--bless]] | --record
Each operator at 1, 10 and (--large) 1000 times its usual size, the size a number and a symbol. tests/data/accuracy.txt has eager's largest error
for the same inputs, since tests run without PyTorch: a model of its pairwise sums would be off by more than what is looked for. An error is at most
8 times that, or 8 times half a unit in the last place of the largest result. Lines that end in "known" miss that today; one that no
longer does is a failure: the word goes. --record, with a Python that has torch, writes the errors and keeps the words; --bless writes these."""
import array
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
from tensor_file import read_tensors, write_tensors  # noqa: E402

HINT, MOST, FACTOR = 1000, 16_000_000, 8
TARGET = "x86-64-v3"  # the order of additions is a target's; at small sizes its loop IR is interpreted, on any machine
FILE = pathlib.Path(__file__).parent.parent / "data" / "accuracy.txt"
SUM = '%y = reduce(%x, kind="sum", dims=[{d}], acc={t})'
# Name: shapes of the inputs, the graph, the same in PyTorch.
CASES = {
    "sum": (["N"], SUM.replace("{d}", "0"), lambda x: x.sum()),
    "sum of rows": (["5, N"], SUM.replace("{d}", "1"), lambda x: x.sum(1)),
    "sum of columns": (["N, 9"], SUM.replace("{d}", "0"), lambda x: x.sum(0)),
    "sum of wide columns": (["N, 4096"], SUM.replace("{d}", "0"), lambda x: x.sum(0)),
    "mean": (["3, N"], "%y = aten.mean.dim(%x, dim=[1]) : {t}[3]", lambda x: x.mean(1)),
    "variance": (["3, N"], "%y = aten.var.correction(%x, dim=[1]) : {t}[3]", lambda x: x.var(1)),
    "norm": (["N"], "%y = aten.linalg_vector_norm(%x) : {t}[]", lambda x: x.norm()),
    "logsumexp": (["3, N"], "%y = aten.logsumexp(%x, dim=[1]) : {t}[3]", lambda x: x.logsumexp(1)),
    "matrix by vector": (["4, N", "N"], "%y = aten.mv(%x, %z) : {t}[4]", lambda x, z: x @ z),
    "product": (["3, N", "N, 5"], "%y = aten.mm(%x, %z) : {t}[3, 5]", lambda x, z: x @ z),
    "dot": (["N", "N"], "%y = aten.dot(%x, %z) : {t}[]", lambda x, z: x @ z),
    "running sum": (["N"], "%y = aten.cumsum(%x, dim=0) : {t}[N]", lambda x: x.cumsum(0)),
}


def numbers(seed, n):
    """Of 0..1, as f32: a sum grows, and so does what is rounded."""
    r = random.Random(seed)
    return array.array("f", (r.random() for _ in range(n))).tolist()


def shape_of(text, n):
    return [n if d == "N" else int(d) for d in text.split(", ")]


def inputs_of(shapes, n):
    found = []
    for k, text in enumerate(shapes):
        shape, count = shape_of(text, n), 1
        for d in shape:
            count *= d
        found.append((shape, numbers(k, count)))
    return found


def sizes(shapes, large):
    """Operands have less than 64 MB, and where loop IR is interpreted 100,000 elements."""
    other = max(int(d) if d != "N" else 1 for s in shapes for d in s.split(", "))
    found = dict.fromkeys(min(HINT * times, MOST // other) for times in (1, 10, 1000))
    return [n for n in found if large or n * other <= 100_000]


def run(weft, folder, name, n, symbolic, dtype, backend, tensors):
    shapes, body, _ = CASES[name]
    text = ", ".join(f"%{'xz'[k]}: {dtype}[{s if symbolic else s.replace('N', str(n))}]" for k, s in enumerate(shapes))
    model = folder / "m.ir"
    model.write_text(f"graph @f({text}){f' where 1 <= N <= {MOST}' if symbolic else ''} {{\n  {body.replace('{t}', dtype) if symbolic else body.replace('{t}', dtype).replace('[N]', f'[{n}]')}\n  return %y\n}}\n")
    write_tensors(folder / "in.safetensors", {f"x.{k}": ({'f32': 'f', 'f64': 'd'}[dtype], shape, v) for k, (shape, v) in enumerate(tensors)})
    target = [] if backend == "interp" else ["--target", TARGET]
    p = subprocess.run([weft, "run", model, "--backend", backend, *target, "--inputs", folder / "in.safetensors", "--outputs", folder / "out.safetensors"], capture_output=True, text=True)
    if p.returncode:
        sys.exit(f"{name} of {n}: {p.stderr}")
    return next(iter(read_tensors(folder / "out.safetensors").values()))


def unit(value):
    """In the last place of an f32."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.unpack("<f", struct.pack("<I", bits + 1))[0] - value


def record():
    import torch
    torch.set_num_threads(1)
    known = {tuple(line.split("\t")[:2]) for line in FILE.read_text().splitlines() if line.endswith("\tknown")} if FILE.exists() else set()
    with FILE.open("w") as f:
        for name, (shapes, _, eager) in CASES.items():
            for n in sizes(shapes, True):
                x = [torch.tensor(v, dtype=torch.float32).reshape(shape) for shape, v in inputs_of(shapes, n)]
                error = (eager(*x).double() - eager(*[t.double() for t in x])).abs().max().item()
                for kind in ("number", "symbol"):
                    print(f"{name} {kind}\t{n}\t{error:.4g}" + ("\tknown" if (f"{name} {kind}", str(n)) in known else ""), file=f)


def main():
    if "--record" in sys.argv:
        return record()
    weft, large, bad = pathlib.Path(sys.argv[1]).resolve(), "--large" in sys.argv, 0
    lines = {tuple(line.split("\t")[:2]): line.split("\t")[2:] for line in FILE.read_text().splitlines()}
    words = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, (shapes, _, _) in CASES.items():
            for n in sizes(shapes, large):
                tensors = inputs_of(shapes, n)
                want = run(weft, folder, name, n, False, "f64", "interp", tensors)
                for kind in ("number", "symbol"):
                    eager, *word = lines[f"{name} {kind}", str(n)]
                    got = run(weft, folder, name, n, kind == "symbol", "f32", "jit" if large else "loops", tensors)
                    error = max(abs(a - b) for a, b in zip(got, want, strict=True))
                    ratio = error / max(float(eager), unit(max(map(abs, want))) / 2)
                    fails = (ratio > FACTOR) != bool(word)
                    bad += fails
                    if fails or large:
                        words[f"{name} {kind}", str(n)] = ratio > FACTOR
                        print(f"{'FAIL' if fails else 'ok  '} {name} {kind} {n}: {ratio:.1f} times eager's error{', known' if word else ''}", flush=True)
    if "--bless" in sys.argv:
        FILE.write_text("".join(f"{k[0]}\t{k[1]}\t{v[0]}{chr(9) + 'known' if words.get(k, len(v) > 1) else ''}\n" for k, v in lines.items()))
    return bad > 0


sys.exit(main())
