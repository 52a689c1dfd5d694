#!/usr/bin/env python3
"""Estimated times of models on a GPU that is not there: gpu_estimate.py WEFT MODEL... [--target cuda-sm_90] [--precision bf16]
Nothing is executed or measured. `weft show --kernels` estimates each kernel from the data sheet of the GPU (ir/target/gpu.c) and
the kernel's plan: bytes, operations, how many threads are resident, how often they wait. This script adds up, for one call at
the exported sizes, and prints one row of Markdown for each model, in milliseconds:

  launches, memory, arithmetic, waiting   parts of the time of our kernels; they overlap
  kernels    our kernels alone, begun one after the other (--launch microseconds each)
  graph      the same as a CUDA graph, as from the second call with a stream on (--node microseconds each)
  cublaslt   the graph of the artifact where cuBLASLt is there, with the products that the artifact gives to it
  compiled   the graph, with all products and convolutions at the times of a vendor's library where that is faster: what
             torch.compile may reach with the same fusion
  eager      operator by operator, as PyTorch executes the exported graph: --host microseconds of the processor for each
             operator that is no view, or what the GPU takes, whichever is longer

--kernels N: also the N kernels that take longest. --nvrtc: compiles the kernels, which also gives the mean share of the warps
that registers and shared memory leave resident (by time)."""
import argparse
import json
import os
import re
import subprocess
import tempfile

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("weft")
parser.add_argument("model", nargs="+")
parser.add_argument("--target", default="cuda-sm_90")
parser.add_argument("--precision", help="bf16 or f16: as under torch.autocast")
parser.add_argument("--launch", type=float, default=3)
parser.add_argument("--node", type=float, default=1)
parser.add_argument("--host", type=float, default=5)
parser.add_argument("--kernels", type=int, default=0)
parser.add_argument("--nvrtc", action="store_true")
args = parser.parse_args()

# What gives a view, or nothing, in inference.
VIEWS = {"alias", "detach", "dropout", "expand", "flatten", "get", "permute", "reshape", "select", "slice", "split", "squeeze", "transpose", "unflatten", "unsqueeze",
         "view"}
ANCHORS = {"linear", "addmm", "mm", "bmm", "baddbmm", "matmul", "einsum", "conv1d", "conv2d", "conv3d", "convolution", "scaled_dot_product_attention"}
CHOOSES = {"embedding", "index", "gather", "index_select"}  # reads as much of operand 0 as the result has
PRECISION = ["--precision", args.precision] if args.precision else []
START = 3e-6  # of a launch, in the estimates of weft show


def show(model, *options):
    p = subprocess.run([args.weft, "show", model, *PRECISION, *options], capture_output=True, text=True)
    if p.returncode:
        raise SystemExit(f"{model}: {p.stderr.strip()}")
    return p.stdout


def size_of(text):
    """Bytes of a tensor with a type like f32[1, 64]; 0: not a tensor, or of symbolic sizes."""
    found = re.match(r"(?:b?f|i|u|c|bool)(\d*)\w*\[([\d, ]*)\]", text)
    n = int(found[1] or 8) // 8 if found else 0
    for d in found[2].split(",") if found and found[2] else []:
        n *= int(d)
    return n


def operators(model):
    """Of each operator of the exported graph that is no view: its name, and the bytes that it reads and writes."""
    size, found = {}, []
    for line in show(model, "--graph").splitlines():
        for name, text in re.findall(r"%(\w+): (\w+\[[^\]]*\])", line) if line.startswith("graph") else []:
            size[name] = size_of(text)
        node = re.match(r"\s*%(\w+) = (?:(const) #\d+ (.*)|([\w.]+)\((.*)\) : (.*))$", line.split("  ;")[0].rstrip())
        if not node:
            continue
        name, const, of_const, op, operands, of_result = node.groups()
        size[name] = size_of((of_const or of_result).strip())
        kind = op.split(".")[1 if op.startswith("aten.") else 0] if op else "const"
        if kind.rstrip("_") in VIEWS or const:
            continue
        read = [size.get(x, 0) for x in re.findall(r"%(\w+)", operands)]
        if kind in CHOOSES:
            read[:1] = [size[name]]
        found.append((kind, sum(read) + size[name]))
    return found


def warps(model, folder):
    """Of each call its share of the resident warps."""
    so = os.path.join(folder, "model.so")
    p = subprocess.run([args.weft, "compile", model, *PRECISION, "--target", args.target, "-o", so], capture_output=True, text=True)
    if p.returncode:
        raise SystemExit(f"{model}: {p.stderr.strip().splitlines()[0]}")
    calls = json.loads(subprocess.run([args.weft, "show", "--kernels", "--json", so], capture_output=True, text=True, check=True).stdout)["kernels"]
    found = [re.search(r"(\d+) of (\d+) warps", k["algorithm"]) for k in calls]
    return [int(f[1]) / int(f[2]) if f else 1 for f in found]


def estimate(model, folder):
    kernels = json.loads(show(model, "--kernels", "--json", "--target", args.target))["kernels"]
    share = warps(model, folder) if args.nvrtc else []
    part = dict.fromkeys(("start", "memory", "units", "waits"), 0.0)
    ours = graph = given = library = anchors = weighted = launches = 0
    for i, k in enumerate(kernels):
        e = k.get("estimate", {"start": START, "library": 0})
        n, own = e["start"] / START, k.get("seconds", START) - e["start"]
        one = own + n * args.node * 1e-6
        ours, graph, launches = ours + own + n * args.launch * 1e-6, graph + one, launches + n
        for p in part:
            part[p] += e.get(p, 0)
        vendor = max(0, e["library"] - n * START) if e["library"] else own
        anchors += vendor if e["library"] else 0
        given += (vendor if k["algorithm"].startswith("library") else own) + n * args.node * 1e-6
        library += min(vendor, own) + n * args.node * 1e-6
        weighted += share[i] * k.get("seconds", START) if share else 0
    ops = operators(model)
    rest = sum(max(1e-6, bytes / MEMORY) for kind, bytes in ops if kind not in ANCHORS)
    eager = max(len(ops) * args.host * 1e-6, anchors + rest)
    name, all = os.path.basename(model).rpartition(".")[0], sum(k.get("seconds", START) for k in kernels)
    del part["start"]
    limit = {"memory": "memory", "units": "arithmetic", "waits": "waiting"}[max(part, key=part.get)]
    limit = "launches" if launches * args.node * 1e-6 > max(part.values()) else limit
    print(f"| {name} | {launches:.0f} | {sum(k['flops'] for k in kernels) / 1e9:.2f} | {sum(k['bytes'] for k in kernels) / 1e6:.0f} |"
          + (f" {100 * weighted / all:.0f} % |" if share else "")
          + f" {1e-3 * args.node * launches:.2f} | " + " | ".join(f"{1e3 * part[p]:.2f}" for p in part)
          + f" | {1e3 * ours:.2f} | {1e3 * graph:.2f} | {1e3 * given:.2f} | {1e3 * library:.2f} | {1e3 * eager:.2f} | {limit} |", flush=True)
    for k in sorted(kernels, key=lambda k: -k.get("seconds", 0))[:args.kernels]:
        e = k["estimate"]
        print(f"  {k['name']}: {1e6 * k['seconds']:.1f} us (memory {1e6 * e['memory']:.1f}, arithmetic {1e6 * e['units']:.1f}, waiting {1e6 * e['waits']:.1f},"
              f" library {1e6 * e['library']:.1f}), {k['algorithm']}: {k['plan']}")


def memory_rate():
    """Bytes a second, of the target's row."""
    text = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../ir/target/gpu.c")).read()
    return float(re.search(rf'\.name = "{args.target}".*?\.memory = ([\d.]+)', text, re.S)[1]) * 1e9


MEMORY = memory_rate()
print("| model | launches | GFLOP | MB |" + (" warps |" if args.nvrtc else "") + " ms: launches | memory | arithmetic | waiting | kernels | graph | cublaslt | compiled | eager | limited by |")
print("|---" * (15 if args.nvrtc else 14) + "|")
with tempfile.TemporaryDirectory() as folder:
    for path in args.model:
        estimate(path, folder)
