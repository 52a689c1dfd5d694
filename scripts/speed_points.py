#!/usr/bin/env python3
"""Speeds that are promised, on this machine: speed_points.py WEFT [--models FOLDER] [--threads 1,2] [--rounds N]
Memory: a sum over 16M elements, and batch norm in training mode over 32x64x56x56, in bytes per second at the most threads
named, against what `weft bench` reads in a loop there. The sum reads its operand once; batch norm reads its own for the
statistics and again for the result, and writes that.
Symbolic sizes: models of FOLDER with symbols (NAME_dyn.pt2) against those without (NAME.pt2) at the same size, for every
number of threads; the least of N rounds, in turn.
Prints a line for each point with what is asked (--least, --most), and fails if one is not met. The machine should have nothing
else to do; scripts/predict.py compares predicted with measured times."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

SUM = """graph @sum(%x: f32[16777216]) {
  %y = reduce(%x, kind="sum", dims=[0], acc=f32)
  return %y
}
"""
NORM = """graph @norm(%x: f32[32, 64, 56, 56], %w: f32[64], %b: f32[64], %m: f32[64], %v: f32[64]) {
  %t = aten._native_batch_norm_legit_functional(%x, %w, %b, %m, %v, training=true, momentum=0.1, eps=1e-05) : (f32[32, 64, 56, 56], f32[64], f32[64], f32[64], f32[64])
  %y = get(%t, index=0)
  %rm = get(%t, index=3)
  %rv = get(%t, index=4)
  return %y, %rm, %rv
}
"""
ELEMENTS = 4 * 32 * 64 * 56 * 56
POINTS = [("sum of 16M elements", SUM, 4 * 16777216), ("batch norm, training, 32x64x56x56", NORM, 3 * ELEMENTS)]
SYMBOLIC = ("resnet18", "mobilenet_v3_small", "bert_tiny")


def bench(weft, model, threads, seconds, inputs=None):
    """Milliseconds by number of threads, and bytes per second that the machine reads."""
    command = [weft, "bench", str(model), "--threads", threads, "--no-op-by-op", "--json", "--seconds", str(seconds)]
    command += ["--inputs", str(inputs)] if inputs else []
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    rows = {row["threads"]: row["min_ms"] for row in found["rows"] if row["ok"]}
    return rows, {row["threads"]: row["bytes"] for row in found["machine"]}


def memory_points(o, folder):
    most = o.threads.split(",")[-1]
    for name, text, size in POINTS:
        model = folder / "point.ir"
        model.write_text(text)
        best, speed = float("inf"), 0
        for _ in range(o.rounds):
            times, reads = bench(o.weft, model, most, o.seconds)
            best, speed = min(best, times[int(most)]), max(speed, reads[int(most)])
        share = size / (best * 1e-3) / speed
        met = share >= o.least
        print(f"{name}, {most} threads: {best:.3f} ms, {size / best * 1e-6:.1f} GB/s of {speed * 1e-9:.1f}: {share:.2f}"
              f" (asked {o.least}): {'met' if met else 'not met'}", flush=True)
        yield met


def symbolic_points(o):
    for name in SYMBOLIC:
        best = {}
        for _ in range(o.rounds):
            for kind in ("", "_dyn"):
                times, _ = bench(o.weft, o.models / f"{name}{kind}.pt2", o.threads, o.seconds, o.models / f"{name}.safetensors")
                for threads, ms in times.items():
                    best[kind, threads] = min(ms, best.get((kind, threads), ms))
        for threads in sorted({t for _, t in best}):
            static, symbolic = best["", threads], best["_dyn", threads]
            met = symbolic <= o.most * static
            print(f"{name}, {threads} threads: symbolic {symbolic:.3f} ms, static {static:.3f}: {symbolic / static:.3f}"
                  f" (asked {o.most}): {'met' if met else 'not met'}", flush=True)
            yield met


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weft")
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--least", type=float, default=0.9)
    parser.add_argument("--most", type=float, default=1.05)
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        met = list(memory_points(o, pathlib.Path(folder)))
    if o.models:
        met += symbolic_points(o)
    if not all(met):
        sys.exit(f"{met.count(False)} of {len(met)} not met")


if __name__ == "__main__":
    main()
