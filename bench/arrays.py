#!/usr/bin/env python3
"""NumPy programs through torch.compile(backend="weft") beside NumPy, Numba and JAX: bench/arrays.py [--sizes 10000,10000000] [NAME...]

Each program of numpy_programs.py runs in all of them by turns; printed is the least time of a call in microseconds, NumPy's time divided by
Weft's, and the time of the best of the others divided by Weft's. A place is empty where the other does not take the program as written: JAX's
arrays cannot be written in place, Numba lacks functions. All use double precision, and one thread unless --threads says otherwise. Only Weft and
NumPy are needed; Numba and JAX are measured where they are installed."""
import argparse
import importlib.util
import json
import math
import os
import statistics
import time
import types


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--sizes", default="10000,10000000")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=1.0, help="of measuring for each program, size and system")
    p.add_argument("--json", help="a file for the results")
    p.add_argument("names", nargs="*")
    return p.parse_args()


def with_global(function, name, value):
    """Returns a copy of the function in which the global name is value."""
    return types.FunctionType(function.__code__, {**function.__globals__, name: value}, function.__name__, function.__defaults__, function.__closure__)


def systems(threads):
    """Returns by name what makes a callable of a function, and what converts its arguments."""
    import torch
    import weft.dynamo
    torch.set_num_threads(threads)
    torch.set_default_dtype(torch.float64)   # else fftfreq and means of integers are float32 in PyTorch's NumPy functions
    made = {"numpy": lambda f: f, "weft": lambda f: torch.compile(f, backend=weft.dynamo.backend)}
    if importlib.util.find_spec("numba"):
        import numba
        numba.set_num_threads(threads)
        made["numba"] = lambda f: numba.njit(f)
    if importlib.util.find_spec("jax"):
        import jax
        jax.config.update("jax_enable_x64", True)

        def by_jax(f):
            compiled = jax.jit(with_global(f, "np", jax.numpy))
            return lambda *a: jax.block_until_ready(compiled(*a))
        made["jax"] = by_jax
    return made


def same(want, got):
    import numpy as np
    want, got = (x if isinstance(x, tuple) else (x,) for x in (want, got))
    return len(want) == len(got) and all(
        np.allclose(np.asarray(w, dtype=complex), np.asarray(g, dtype=complex), rtol=1e-6, atol=1e-6, equal_nan=True) for w, g in zip(want, got))


def least(calls, seconds):
    """Returns the least time of a call of each by name, in microseconds; they run by turns."""
    best = {}
    counts = {}
    for name, call in calls.items():
        start = time.perf_counter()
        call()
        counts[name] = max(1, int(seconds / 10 / max(time.perf_counter() - start, 1e-7)))
        best[name] = math.inf
    for _ in range(10):
        for name, call in calls.items():
            for _ in range(min(counts[name], 1000)):
                start = time.perf_counter()
                call()
                best[name] = min(best[name], time.perf_counter() - start)
    return {name: 1e6 * t for name, t in best.items()}


def measure(name, size, made, seconds):
    import numpy as np
    import torch
    from numpy_programs import PROGRAMS
    function, make = PROGRAMS[name]
    torch._dynamo.reset()
    a = make(np.random.default_rng(0), size)
    want = function(*a)
    calls = {}
    for system, compiled in made.items():
        try:
            call = compiled(function)
            good = same(want, call(*a))
        except Exception:
            if system == "weft":
                raise
            continue
        if not good:
            print(f"{name}: {system} differs from NumPy")
            if system == "weft":
                raise SystemExit(1)
            continue
        calls[system] = lambda call=call: call(*a)
    return least(calls, seconds)


def mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def main():
    o = arguments()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "WEFT_NUM_THREADS"):
        os.environ.setdefault(variable, str(o.threads))
    if o.threads == 1:
        os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    made = systems(o.threads)
    from numpy_programs import PROGRAMS
    results = {}
    for size in map(int, o.sizes.split(",")):
        print(f"{size} elements: microseconds, and times as fast as NumPy, as the best other")
        print(f"{'':22}" + "".join(f"{s:>12}" for s in made) + f"{'NumPy':>10}{'others':>10}")
        ratios = [], []
        for name in o.names or PROGRAMS:
            t = measure(name, size, made, o.seconds)
            others = [t[s] for s in t if s not in ("weft", "numpy")]
            ratios[0].append(t["numpy"] / t["weft"])
            if others:
                ratios[1].append(min(others) / t["weft"])
            results[f"{name} {size}"] = t
            print(f"{name:22}" + "".join(f"{t[s]:12.1f}" if s in t else f"{'':12}" for s in made)
                  + f"{ratios[0][-1]:10.2f}" + (f"{ratios[1][-1]:10.2f}" if others else ""), flush=True)
        print(f"{'geometric mean':22}" + " " * 12 * len(made) + f"{mean(ratios[0]):10.2f}" + (f"{mean(ratios[1]):10.2f}" if ratios[1] else ""))
    if o.json:
        with open(o.json, "w") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
