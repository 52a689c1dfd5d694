"""Two back ends give the same bits: bits.py WEFT [options] MODEL|FOLDER...
Runs every model (.pt2, .ir) that has a reference of the same name beside it on that reference's inputs with
--backend jit and --backend c (--backends names others), and compares the results' bytes; only NaNs may differ among
themselves. A case that both back ends refuse counts as refused; one that a single back end refuses,
or in which it crashes, as different. Exits with 77 (skip) where weft has no LLVM and needs it."""
import argparse
import array
import concurrent.futures
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

# dtype of a .safetensors file: array code of its bits, bits of an infinity without sign (a larger
# number is a NaN)
FLOATS = {"F64": ("Q", 0x7FF0000000000000), "F32": ("I", 0x7F800000), "F16": ("H", 0x7C00),
          "BF16": ("H", 0x7F80), "F8_E5M2": ("B", 0x7C), "F8_E4M3": ("B", 0x7E),
          "F8_E4M3FNUZ": ("B", 0x7F), "F8_E5M2FNUZ": ("B", 0x7F)}


class NoLlvm(Exception):
    """This weft was built without LLVM."""


def read_tensors(path):
    """The file's tensors as {name: (dtype, shape, bytes)}."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[start + t["data_offsets"][0]:start + t["data_offsets"][1]])
            for name, t in header.items()}


def canonical(dtype, data):
    """The elements' bits, every NaN the same one."""
    if dtype not in FLOATS:
        return list(data)
    code, infinity = FLOATS[dtype]
    bits = array.array(code, data)
    magnitude = (1 << (8 * bits.itemsize - 1)) - 1
    return [-1 if b & magnitude > infinity else b for b in bits]


def difference(name, a, b):
    """What differs between two tensors; None if nothing does."""
    if a[:2] != b[:2]:
        return f"{name}: {a[0]} {a[1]} and {b[0]} {b[1]}"
    if a[2] == b[2]:
        return None
    x, y = canonical(a[0], a[2]), canonical(b[0], b[2])
    wrong = [i for i in range(len(x)) if x[i] != y[i]]
    if not wrong:
        return None
    i = wrong[0]
    return f"{name} ({a[0]}): {len(wrong)} of {len(x)} differ, the first at {i}: {x[i]:#x} and {y[i]:#x}"


def compare_files(first, second):
    a, b = read_tensors(first), read_tensors(second)
    if a.keys() != b.keys():
        return f"results {sorted(a)} and {sorted(b)}"
    found = [difference(name, a[name], b[name]) for name in sorted(a)]
    return next((text for text in found if text), None)


def run(args, model, backend, out):
    """Exit status and messages of one run."""
    command = [args.weft, "run", model, "--inputs", model.with_suffix(".safetensors"), "--outputs", out,
               "--backend", backend, "--target", args.target, "--threads", str(args.threads)]
    p = subprocess.run(command, capture_output=True, text=True, errors="replace")
    return p.returncode, p.stderr.strip()


def case(args, model):
    """(verdict, text) of one model: equal, different or refused."""
    with tempfile.TemporaryDirectory() as folder:
        backends = args.backends.split(",")
        out = [pathlib.Path(folder) / f"{backend}.safetensors" for backend in backends]
        results = [run(args, model, backend, path) for backend, path in zip(backends, out)]
        if any("without LLVM" in text for _, text in results):
            raise NoLlvm
        status = [code for code, _ in results]
        if status == [0, 0]:
            text = compare_files(*out)
            return ("different", text) if text else ("equal", "")
        if status == [1, 1]:
            return "refused", results[0][1]
        return "different", "; ".join(f"{b}: exit status {code} {text}" for b, (code, text) in zip(backends, results))


def find(paths):
    """Models with a reference, sorted."""
    found = []
    for path in paths:
        found += sorted([*path.rglob("*.pt2"), *path.rglob("*.ir")]) if path.is_dir() else [path]
    return [m for m in found if m.with_suffix(".safetensors").exists()]


def spread(models):
    """The models in an order of which every beginning is spread evenly over the list."""
    n = len(models)
    bits = max(n - 1, 1).bit_length()
    order = (int(f"{i:0{bits}b}"[::-1], 2) for i in range(1 << bits))
    return [models[i] for i in order if i < n]


def compare_all(args, models, workers):
    """{verdict: number}; stops when args.count models were compared."""
    count = dict.fromkeys(("equal", "different", "refused"), 0)
    todo = iter(models)
    while not args.count or count["equal"] + count["different"] < args.count:
        left = args.count - count["equal"] - count["different"] if args.count else len(models)
        batch = list(itertools.islice(todo, left))
        if not batch:
            break
        for model, (verdict, text) in zip(batch, workers.map(lambda m: case(args, m), batch)):
            count[verdict] += 1
            if verdict == "different" or args.verbose:
                print(f"{verdict} {model}: {text}", flush=True)
    return count


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("weft", type=lambda s: pathlib.Path(s).resolve())
    p.add_argument("models", type=pathlib.Path, nargs="+")
    p.add_argument("--backends", default="jit,c", help="two of jit, c, llvm, loops (default jit,c)")
    p.add_argument("--target", default="native")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--count", type=int, default=0, help="compare this many, spread over all (default: all)")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("-v", "--verbose", action="store_true", help="print every case")
    args = p.parse_args()
    models = find(args.models)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as workers:
        try:
            count = compare_all(args, spread(models) if args.count else models, workers)
        except NoLlvm:
            return 77
    print(f"{count['equal']} equal, {count['different']} different, {count['refused']} refused")
    return 0 if count["equal"] and not count["different"] else 1


if __name__ == "__main__":
    sys.exit(main())
