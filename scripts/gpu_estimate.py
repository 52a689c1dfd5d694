#!/usr/bin/env python3
"""Estimated times of models on a GPU that is not there: gpu_estimate.py WEFT MODEL... [--target cuda-sm_90] [--launch 3]
Compiles each model by NVRTC and prints one row of Markdown for each: launches, operations, bytes, the mean share of the
resident warps (by time), and the milliseconds of one call at the exported sizes. The time of a kernel is that of its launch
(--launch microseconds), and the longer one of two: its bytes at the memory's rate, its operations at the f32 rate of the
row of ir/target/gpu.c. Kernels are given the whole rate: what waits, and what the caches save, is not in the estimate. So
the numbers are no measurement, and a lower bound of these kernels but for bytes that stay in the cache."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("weft")
parser.add_argument("model", nargs="+")
parser.add_argument("--target", default="cuda-sm_90")
parser.add_argument("--launch", type=float, default=3)
args = parser.parse_args()


def rates():
    """Bytes and operations a second, of the target's row."""
    text = (pathlib.Path(__file__).resolve().parent.parent / "ir/target/gpu.c").read_text()
    row = re.search(rf'\.name = "{args.target}".*?\.memory = ([\d.]+)f?, \.f32 = ([\d.]+)', text, re.S)
    return float(row[1]) * 1e9, float(row[2]) * 1e12


def estimate(path, folder):
    so = os.path.join(folder, "model.so")
    p = subprocess.run([args.weft, "compile", path, "--target", args.target, "-o", so], capture_output=True, text=True)
    if p.returncode:
        print(f"{path}: {p.stderr.strip().splitlines()[0]}")
        return
    kernels = json.loads(subprocess.run([args.weft, "show", "--kernels", "--json", so], capture_output=True, text=True, check=True).stdout)["kernels"]
    launch = args.launch * 1e-6 * len(kernels)
    memory = compute = busy = warps = 0
    for k in kernels:
        m, c = k["bytes"] / RATES[0], k["flops"] / RATES[1]
        memory, compute, busy = memory + m, compute + c, busy + max(m, c)
        found = re.search(r"(\d+) of (\d+) warps", k["algorithm"])
        warps += max(m, c) * (int(found[1]) / int(found[2]) if found else 1)
    name = os.path.basename(path).partition(".")[0]
    print(f"| {name} | {len(kernels)} | {sum(k['flops'] for k in kernels) / 1e9:.2f} | {sum(k['bytes'] for k in kernels) / 1e6:.0f} | {100 * warps / busy:.0f} % | "
          f"{1e3 * launch:.2f} | {1e3 * memory:.2f} | {1e3 * compute:.2f} | {1e3 * (launch + busy):.2f} |", flush=True)


RATES = rates()
print("| model | launches | GFLOP | MB | warps | ms: launches | memory | operations | all |\n|---|---|---|---|---|---|---|---|---|")
with tempfile.TemporaryDirectory() as folder:
    for path in args.model:
        estimate(path, folder)
