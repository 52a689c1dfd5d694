"""Compiled code computes what the interpreter does, with every back end: compiled.py WEFT FOLDER...
Every model with a reference of the same name beside it is run on that reference's inputs, interpreted and by each
back end, and the results are compared: integers and bool exactly, floats to a few roundings. The interpreter's
results are compared with the reference by `weft check`; of a reference whose metadata has "exact", every back
end's results must have its bits. All back ends' results have the same bits, but for NaNs, and all refuse a model or
none does. Back ends that this weft was built without are left out; models that no back end takes count as refused."""
import argparse
import array
import concurrent.futures
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

from bits import difference, find, read_tensors

BACKENDS = ("jit", "c", "llvm", "loops")
# Of what a result may be off: relative to itself and to the mean. f16, bf16 and f8: one step of the dtype.
TOLERANCE = {"F64": 1e-10, "F32": 2e-5, "F16": 2.0**-10, "BF16": 2.0**-7, "F8_E4M3": 2.0**-3, "F8_E5M2": 2.0**-2,
             "F8_E4M3FNUZ": 2.0**-3, "F8_E5M2FNUZ": 2.0**-2}
REFUSED, GUARD = "is written by the graph", "which weft cannot check"
NARROW = {"F16": (5, 10), "BF16": (8, 7), "F8_E4M3": (4, 3), "F8_E5M2": (5, 2),
          "F8_E4M3FNUZ": (4, 3), "F8_E5M2FNUZ": (5, 2)}  # bits of exponent and mantissa


def narrow_value(dtype, bits):
    exponent_bits, mantissa_bits = NARROW[dtype]
    sign = -1.0 if bits >> (exponent_bits + mantissa_bits) else 1.0
    exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1)
    mantissa = bits & ((1 << mantissa_bits) - 1)
    fnuz = dtype.endswith("FNUZ")
    bias, top = (1 << (exponent_bits - 1)) - (not fnuz), (1 << exponent_bits) - 1
    if fnuz and bits == 0x80:
        return float("nan")
    if not fnuz and exponent == top and (dtype != "F8_E4M3" or mantissa == 7):
        return sign * float("inf") if mantissa == 0 else float("nan")
    scale = 2.0 ** (max(exponent, 1) - bias - mantissa_bits)
    return sign * scale * (mantissa + ((1 << mantissa_bits) if exponent else 0))


def numbers(dtype, data):
    if dtype in ("F32", "F64"):
        return array.array("f" if dtype == "F32" else "d", data).tolist()
    size = 1 if dtype.startswith("F8") else 2
    return [narrow_value(dtype, v) for v in struct.unpack(f"<{len(data) // size}{'B' if size == 1 else 'H'}", data)]


def far(name, got, want):
    """What is wrong with a result, or None."""
    dtype = want[0]
    if got[:2] != want[:2] or dtype not in TOLERANCE or got[2] == want[2]:
        return difference(name, got, want)
    x, y = numbers(dtype, got[2]), numbers(dtype, want[2])
    finite = [abs(v) for v in y if abs(v) < float("inf")]
    mean = sum(finite) / len(finite) if finite else 0.0
    for i, (a, b) in enumerate(zip(x, y)):
        same = a == b or (a != a and b != b)
        if not same and not abs(a - b) <= TOLERANCE[dtype] * (abs(b) + mean):
            return f"{name} ({dtype}): {a!r} instead of {b!r} at {i}"
    return None


def is_exact(path):
    data = path.read_bytes()
    header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
    return "exact" in header.get("__metadata__", {})


def run(weft, model, backend, out):
    """The results, or a text that says why there are none."""
    p = subprocess.run([weft, "run", model, "--inputs", model.with_suffix(".safetensors"), "--outputs", out,
                        "--backend", backend], capture_output=True, text=True, errors="replace")
    return read_tensors(out) if p.returncode == 0 else f"exit status {p.returncode}: {p.stderr.strip()}"


def compare(got, want, how):
    if isinstance(got, str):
        return None if REFUSED in got else got
    names = sorted(name for name in want if name.startswith("y."))
    missing = [name for name in names if name not in got]
    found = [how(name, got[name], want[name]) for name in names if name in got]
    return f"no {missing[0]}" if missing else next((text for text in found if text), None)


def unequal(results):
    """What differs between the results of the first back end and of another one, or None."""
    (first, want), *others = results.items()
    for name, got in others:
        if isinstance(got, str) != isinstance(want, str):
            return f"{name if isinstance(got, str) else first} refuses what {first if isinstance(got, str) else name} computes"
        if isinstance(got, str):
            continue
        if got.keys() != want.keys():
            return f"{first} and {name}: results {sorted(want)} and {sorted(got)}"
        text = next((text for text in (difference(k, want[k], got[k]) for k in sorted(want)) if text), None)
        if text:
            return f"{first} and {name}: {text}"
    return None


def check_model(weft, model, backends):
    """Texts of what is wrong, and whether a back end refused the model."""
    reference = model.with_suffix(".safetensors")
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "y.safetensors"
        interpreted = run(weft, model, "interp", out)
        results = {"interp": interpreted} | {b: run(weft, model, b, out) for b in backends}
    if isinstance(interpreted, str):  # a guard that cannot be expressed: refused by all
        return [f"{b}: {got}" for b, got in results.items() if not isinstance(got, str) or GUARD not in got], True
    check = subprocess.run([weft, "check", "-q", model, reference, "--backend", "interp"], capture_output=True, text=True)
    if check.returncode:
        wrong.append(f"interp: {(check.stdout.strip() or check.stderr.strip()).splitlines()[0]}")
    for backend, got in results.items():
        how, want = (difference, read_tensors(reference)) if is_exact(reference) else (far, interpreted)
        text = compare(got, want, how)
        if text:
            wrong.append(f"{backend}: {text}")
    text = unequal({b: results[b] for b in backends})
    if text:
        wrong.append(text)
    return wrong, any(isinstance(got, str) for got in results.values())


def available(weft, model):
    """The back ends that there are."""
    with tempfile.TemporaryDirectory() as folder:
        results = {b: run(weft, model, b, pathlib.Path(folder) / "y.safetensors") for b in BACKENDS}
    return [b for b in BACKENDS if not (isinstance(results[b], str) and "without LLVM" in results[b])]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("weft", type=lambda s: pathlib.Path(s).resolve())
    p.add_argument("models", type=pathlib.Path, nargs="+")
    args = p.parse_args()
    models, failed, refused = find(args.models), 0, 0
    if not models:
        p.error("no models with references")
    backends = available(args.weft, models[0])
    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        results = workers.map(lambda m: check_model(args.weft, m, backends), models)
        for model, (wrong, was_refused) in zip(models, results):
            failed += bool(wrong)
            refused += was_refused and not wrong
            for text in wrong:
                print(f"{model}: {text}", flush=True)
    print(f"{len(models) - failed - refused} models agree, {failed} differ, {refused} refused; "
          f"back ends {' '.join(backends)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
