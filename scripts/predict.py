#!/usr/bin/env python3
"""Predicted against measured time of kernels on this machine: predict.py WEFT --tune MACHINE MODEL...
Profiles each model at one thread, takes 20 kernels from the shortest to the longest, each distinct one once, and prints
both times, their rank correlation, and that of the times of one operation: the latter does not come from sizes. --rounds
N: each model is profiled N times, and the least time of each kernel counts, on a machine with other work. --least R:
fails if the first correlation is below R. --tune names the machine (or is a file of scripts/measure_machine)."""
import argparse
import re
import subprocess
import sys

ROW = re.compile(r"^(.{1,36}?)\s+([\d.]+)\s+[\d.]+%\s+[\d.]+%\s+([\d.]+)\s+(\S+(?: [kMG])?)\s+(\S+(?: [kMG])?)\s+\S+(?: [kMG])?\s+\S+(?: c)?\s+(\S.*?)(?:\s{2,}\S.*)?$")


def kernels(weft, model, tune, target, seconds):
    command = [weft, "bench", model, "--profile", "--no-op-by-op", "--threads", "1", "--tune", tune, "--target", target,
               "--seconds", str(seconds)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        m = ROW.match(line)
        if m:
            name, measured, predicted, flop, size, algorithm = m.groups()
            yield (algorithm, flop, size), name, float(measured), float(predicted)


def number(text):
    """Of "1.5 M"."""
    value, _, unit = text.partition(" ")
    return float(value) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[unit]


def ranks(values):
    """Equal values share their mean rank."""
    order = sorted(range(len(values)), key=values.__getitem__)
    rank = [0.0] * len(values)
    k = 0
    while k < len(order):
        end = k
        while end + 1 < len(order) and values[order[end + 1]] == values[order[k]]:
            end += 1
        for j in range(k, end + 1):
            rank[order[j]] = (k + end) / 2
        k = end + 1
    return rank


def correlation(a, b):
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    cov = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b))
    return cov / (sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b)) ** 0.5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weft")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--tune", required=True)
    parser.add_argument("--target", default="native")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--least", type=float)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2, help="of a round")
    o = parser.parse_args()
    seen = {}
    for _ in range(o.rounds):
        for model in o.models:
            for key, name, measured, predicted in kernels(o.weft, model, o.tune, o.target, o.seconds):
                if key not in seen or measured < seen[key][0]:
                    seen[key] = (measured, predicted, name, *key)
    every = sorted(k for k in seen.values() if k[0] >= 1)
    n = min(o.count, len(every))
    chosen = [every[k * (len(every) - 1) // max(n - 1, 1)] for k in range(n)]
    print(f"{'measured us':>12} {'predicted':>10}  kernel")
    for measured, predicted, name, algorithm, _, _ in chosen:
        print(f"{measured:12.1f} {predicted:10.1f}  {name}: {algorithm}")
    r = correlation(ranks([c[0] for c in chosen]), ranks([c[1] for c in chosen]))
    work = [number(c[4]) + number(c[5]) for c in chosen]
    each = correlation(ranks([c[0] / w for c, w in zip(chosen, work)]), ranks([c[1] / w for c, w in zip(chosen, work)]))
    print(f"rank correlation {r:.3f} of {n} kernels (of {len(every)} distinct), {each:.3f} of times of a flop or byte")
    if o.least is not None and r < o.least:
        sys.exit(f"below {o.least}")


if __name__ == "__main__":
    main()
