"""Single operators against PyTorch's eager mode: PYTHON bench/operators.py WEFT [NAME...], with a Python that has torch and safetensors.

Each case is a module of one operator (or few) of the size that networks have, exported alone. Printed are the least time of eager calls,
the least of `weft bench`, their ratio (above 1: ours is slower), and how much longer the same takes one operator after the other. The
two are measured one after the other in one process each, so on a machine that does other work only ratios far from 1 mean anything:
--above 1.5 prints those only. At the end: the geometric mean of the ratios, how many are at most 1.05, and those above 1.3. WEFT is to
be a release build. --list prints the names; --export FOLDER compiles the models there, and --from FOLDER measures those. --cases
algebra_cases takes Fourier transforms and factorisations instead."""
import argparse
import importlib
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import warnings

import torch
import torch.nn as nn
from safetensors.torch import save_file

warnings.filterwarnings("ignore")


class Function(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *args):
        return self.f(*args)


def eager_time(module, args, seconds):
    """The least time of a call, in ms."""
    best, calls, start = float("inf"), 0, time.perf_counter()
    with torch.no_grad():
        while calls < 5 or time.perf_counter() - start < seconds:
            before = time.perf_counter()
            module(*args)
            best, calls = min(best, time.perf_counter() - before), calls + 1
    return best * 1e3


def compare(name, cases, options, folder):
    """A line about one case, and its ratio, none where there is none."""
    what, args = cases[name]
    module = (what if isinstance(what, nn.Module) else Function(what)).eval()
    model, values = folder / f"{name}.pt2", folder / f"{name}.safetensors"
    if not model.exists():
        torch.export.save(torch.export.export(module, args), model)
        save_file({f"x.{k}": x.clone().contiguous() for k, x in enumerate(args)}, values)
    if options.export:
        ran = subprocess.run([options.weft, "compile", model, "-o", model.with_suffix(".so")], capture_output=True, text=True)
        return f"{name:14} {ran.stderr.strip()[:150]}" if ran.returncode else "", None
    if model.with_suffix(".so").exists():
        model = model.with_suffix(".so")
    eager = eager_time(module, args, options.seconds)
    ran = subprocess.run([options.weft, "bench", model, "--inputs", values, "--threads", str(options.threads), "--seconds", str(options.seconds)] + options.options, capture_output=True, text=True)
    found = {row: re.search(rf"^{row} +{options.threads} +([\d.]+)", ran.stdout, re.M) for row in ("compiled", "op by op")}
    if not found["compiled"]:
        return f"{name:14} {(ran.stderr or ran.stdout).strip()[:150]}", None
    ours = float(found["compiled"][1])
    apart = f"{float(found['op by op'][1]) / ours:10.2f}" if found["op by op"] else ""
    return f"{name:14} {eager:10.4f} {ours:10.4f} {ours / eager:8.2f} {apart}", ours / eager


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("weft", nargs="?", type=lambda s: pathlib.Path(s).resolve())
    p.add_argument("name", nargs="*")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=0.6, help="of eager calls, for each case")
    p.add_argument("--above", type=float, default=0, help="print cases of a greater ratio only")
    p.add_argument("--no-op-by-op", action="append_const", const="--no-op-by-op", dest="options", default=[])
    p.add_argument("--list", action="store_true")
    p.add_argument("--export", type=pathlib.Path)
    p.add_argument("--from", type=pathlib.Path, dest="source")
    p.add_argument("--cases", default="operator_cases")
    options = p.parse_args()
    cases = importlib.import_module(options.cases).CASES
    if options.list:
        print(*cases, sep="\n")
        return 0
    unknown = [n for n in options.name if n not in cases]
    if not options.weft or unknown:
        p.error(f"no case {unknown[0]}; --list prints them" if unknown else "expected WEFT")
    torch.set_num_threads(options.threads)
    print(f"{'':14} {'eager ms':>10} {'weft ms':>10} {'ratio':>8} {'op by op':>10}")
    ratios = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.name or cases:
            line, ratio = compare(name, cases, options, options.export or options.source or pathlib.Path(folder))
            if ratio is not None:
                ratios[name] = ratio
            if line and (ratio is None or ratio > options.above):
                print(line, flush=True)
    if ratios:
        few = sum(r <= 1.05 for r in ratios.values())
        print(f"{len(ratios)} operators: geometric mean {math.exp(sum(map(math.log, ratios.values())) / len(ratios)):.2f}, "
              f"{100 * few / len(ratios):.0f} % at most 1.05; above 1.3: {', '.join(n for n, r in ratios.items() if r > 1.3) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
