"""Minimax polynomials for ir/scalar/math*.c: minimax.py NAME... (needs mpmath). Prints coefficients, lowest first.

Remez exchange in 50 digits on the relative error; coefficients are rounded to the target format one after the
other, lowest first, and the rest is fitted again, so that rounding costs little.
"""
import struct
import sys

from mpmath import mp, mpf

mp.dps = 50


def round_to(x, bits):
    """The nearest binary32 / binary64 value."""
    if bits == 24:
        return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])
    return mpf(float(x))


def extrema(err, lo, hi, n):
    """Signed local extrema of err, alternating, the largest of each run of equal sign."""
    grid = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * k / (40 * n)) for k in range(40 * n + 1)]
    runs = []
    for x in grid:
        e = err(x)
        if runs and (runs[-1][1] > 0) == (e > 0):
            if abs(e) > abs(runs[-1][1]):
                runs[-1] = (x, e)
        else:
            runs.append((x, e))
    while len(runs) > n:
        runs.pop(0 if abs(runs[0][1]) < abs(runs[-1][1]) else -1)
    return runs


def remez(f, powers, lo, hi, weight, rounds=8):
    """Coefficients of x**powers minimising max |weight * (p - f)| on [lo, hi], and that maximum."""
    n = len(powers) + 1
    nodes = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * n)) for k in range(n)]
    best = None
    for _ in range(rounds):
        rows = mp.matrix(n, n)
        rhs = mp.matrix(n, 1)
        for i, x in enumerate(nodes):
            for j, p in enumerate(powers):
                rows[i, j] = x**p
            rows[i, n - 1] = (-1) ** i / weight(x)
            rhs[i] = f(x)
        sol = mp.lu_solve(rows, rhs)
        c = list(sol)[:-1]
        runs = extrema(lambda x: weight(x) * (sum(a * x**p for a, p in zip(c, powers)) - f(x)), lo, hi, n)
        if len(runs) < n:  # rounding noise or an exchange gone astray: the error is as small as it gets
            return (c, max(abs(e) for _, e in runs)) if best is None else best
        worst = max(abs(e) for _, e in runs)
        if best is None or worst < best[1]:
            best = c, worst
        nodes = [x for x, _ in runs]
        if worst - min(abs(e) for _, e in runs) < worst / 100:
            break
    return best


def fit(f, degree, lo, hi, bits, weight=None, refit=6):
    """Rounded coefficients c[0..degree] of f on [lo, hi], relative error unless a weight is given."""
    weight = weight or (lambda x: 1 / f(x))
    lo, hi = mpf(lo), mpf(hi)
    fixed = []
    while len(fixed) <= degree:
        done = len(fixed)
        rest, err = remez(lambda x: f(x) - sum(a * x**k for k, a in enumerate(fixed)),
                          list(range(done, degree + 1)), lo, hi, weight)
        if done == 0:
            first = err
        take = 1 if done < refit else len(rest)
        fixed += [round_to(a, bits) for a in rest[:take]]
    grid = [lo + (hi - lo) * k / 500 for k in range(501)]
    err = max(abs(weight(x) * (sum(a * x**k for k, a in enumerate(fixed)) - f(x))) for x in grid if x != 0)
    return fixed, first, err


def interpolate(f, degree, lo, hi):
    """Coefficients c[0..degree] in t in [-1, 1], which stands for [lo, hi], of the interpolation at Chebyshev's nodes:
    close to minimax in absolute error, and quick where f is slow. Precision is lost where f varies much."""
    n, lo, hi = degree + 1, mpf(lo), mpf(hi)
    node = [mp.pi * (2 * j + 1) / (2 * n) for j in range(n)]
    value = [f((lo + hi) / 2 + (hi - lo) / 2 * mp.cos(a)) for a in node]
    below, power, result = [mpf(0)], [mpf(1)], [mpf(0)] * n
    for k in range(n):
        weight = sum(v * mp.cos(k * a) for v, a in zip(value, node)) * (1 if k == 0 else 2) / n
        for i, a in enumerate(power):
            result[i] += weight * a
        double = [mpf(0)] + [a * (1 if k == 0 else 2) for a in power]
        for i, a in enumerate(below if k else []):
            double[i] -= a
        below, power = power, double
    return [round_to(a, 53) for a in result]
