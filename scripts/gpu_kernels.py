#!/usr/bin/env python3
"""Compiles all kernels of models by NVRTC, without a GPU: gpu_kernels.py WEFT MODEL... [--grad] [--arch sm_80,sm_90,sm_100,sm_120]
--grad: with the entries for gradients. weft compiles the models, with a cache of its own, so that equal kernels are compiled once;
it finds NVRTC ($WEFT_NVRTC) and reads its report. Prints for each architecture: models, calls of kernels, errors, warnings, kernels
that spill registers, and the most registers of a thread. The exit status is 1 after errors, warnings or spills."""
import argparse
import json
import os
import re
import subprocess
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("weft")
parser.add_argument("model", nargs="+")
parser.add_argument("--grad", action="store_true")
parser.add_argument("--arch", default="sm_80,sm_90,sm_100,sm_120")
args = parser.parse_args()


def compile_model(path, arch, so):
    """(calls with their registers, names that spill, lines of errors and of warnings)"""
    p = subprocess.run([args.weft, "compile", path, *(["--grad"] if args.grad else []), "--target", f"cuda-{arch}", "-o", so], capture_output=True, text=True)
    warnings = [x for x in p.stderr.splitlines() if "warning:" in x]
    if p.returncode:
        return {}, [], [x for x in p.stderr.splitlines() if "error:" in x] or ["failed"], warnings
    shown = json.loads(subprocess.run([args.weft, "show", "--kernels", "--json", so], capture_output=True, text=True, check=True).stdout)
    calls = [k for entry in shown.get("entries", [shown]) for k in entry["kernels"]]
    used = {(k["name"], k["algorithm"]): int(found[1]) for k in calls if (found := re.search(r"(\d+) registers", k["algorithm"]))}
    return used, sorted({k["name"] for k in calls if "spills" in k["algorithm"]}), [], warnings


bad = False
print("| architecture | models | calls | errors | warnings | spill | most registers |\n|---|---|---|---|---|---|---|")
with tempfile.TemporaryDirectory() as folder:
    os.environ["WEFT_CACHE"] = os.path.join(folder, "cache")
    for arch in args.arch.split(","):
        done = [(os.path.basename(m), *compile_model(m, arch, os.path.join(folder, "model.so"))) for m in args.model]
        errors, warnings, spills = (sum(len(d[k]) for d in done) for k in (3, 4, 2))
        most = max((n for d in done for n in d[1].values()), default=0)
        bad = bad or errors or warnings or spills
        print(f"| {arch} | {len(done)} | {sum(len(d[1]) for d in done)} | {errors} | {warnings} | {spills} | {most} |", flush=True)
        for name, _, spill, error, warning in done:
            for line in error[:3] + warning[:3] + [f"{kernel} spills registers" for kernel in spill[:3]]:
                print(f"  {name}: {line}")
raise SystemExit(bool(bad))
