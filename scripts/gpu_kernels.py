#!/usr/bin/env python3
"""Compiles all kernels of models by NVRTC, without a GPU: gpu_kernels.py WEFT MODEL... [--arch sm_80,sm_90,sm_100,sm_120]
Prints for each architecture: kernels, errors, kernels with warnings, kernels that spill registers, and the most registers
of a thread. NVRTC is looked for as weft does: a folder in $WEFT_NVRTC, or where the loader looks. The exit status is 1
after errors, warnings or spills."""
import argparse
import concurrent.futures
import ctypes
import glob
import os
import re
import subprocess
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("weft")
parser.add_argument("model", nargs="+")
parser.add_argument("--arch", default="sm_80,sm_90,sm_100,sm_120")
parser.add_argument("--jobs", type=int, default=os.cpu_count())
args = parser.parse_args()


def load():
    folder = os.environ.get("WEFT_NVRTC")
    for name in glob.glob(f"{folder}/libnvrtc-builtins.so*") if folder else []:
        ctypes.CDLL(name, ctypes.RTLD_GLOBAL)
    for name in glob.glob(f"{folder}/libnvrtc.so.*") if folder else ["libnvrtc.so.13", "libnvrtc.so.12"]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    raise SystemExit("NVRTC is not found")


nvrtc = load()


def text_of(program, size, get):
    n = ctypes.c_size_t()
    getattr(nvrtc, size)(program, ctypes.byref(n))
    text = ctypes.create_string_buffer(n.value + 1)
    getattr(nvrtc, get)(program, text)
    return text.value.decode()


def compile_kernels(arch, name, text):
    """(kernels, errors, warnings, spilling kernels, registers, texts)"""
    program = ctypes.c_void_p()
    options = [f"--gpu-architecture={arch}", "--fmad=false", "--std=c++17", "--ptxas-options=-v"]
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), f"{name}.cu".encode(), 0, None, None)
    failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*[o.encode() for o in options]))
    log = text_of(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    lines = log.splitlines()
    used = [int(x) for x in re.findall(r"Used (\d+) registers", log)]
    spills = re.findall(r"Function properties for (\S+)\n[^\n]*?\d+ bytes stack frame, ([1-9]\d*) bytes spill stores", log)
    said = [x for x in lines if "warning" in x or "error" in x] + [f"{kernel} spills {n} bytes" for kernel, n in spills]
    return log.count("Compiling entry function"), bool(failed), sum("warning" in x for x in lines), len(spills), max(used, default=0), said


def print_model(folder, k, path):
    out = os.path.join(folder, f"{k}.cu")
    p = subprocess.run([args.weft, "compile", path, "--target", "cuda-sm_90", "--emit", "cuda", "-o", out], capture_output=True, text=True)
    if p.returncode:
        print(f"{path}: {p.stderr.strip().splitlines()[0] if p.stderr.strip() else 'failed'}")
        return None
    return os.path.basename(path), open(out).read()


with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
    texts = [t for t in pool.map(lambda x: print_model(folder, *x), enumerate(args.model)) if t and t[1]]
    print(f"{len(texts)} models with kernels")
    print("| architecture | kernels | errors | warnings | spill | most registers |\n|---|---|---|---|---|---|")
    bad = False
    for arch in args.arch.split(","):
        done = list(pool.map(lambda t: compile_kernels(arch, *t), texts))
        kernels, errors, warnings, spills = (sum(d[k] for d in done) for k in range(4))
        bad = bad or errors or warnings or spills
        print(f"| {arch} | {kernels} | {errors} | {warnings} | {spills} | {max((d[4] for d in done), default=0)} |", flush=True)
        for (name, _), d in zip(texts, done):
            for line in d[5][:3]:
                print(f"  {name}: {line}")
raise SystemExit(bool(bad))
