#!/usr/bin/env python3
"""Correctness and times on a GPU, on a machine that has nothing but NVIDIA's driver and Python.

gpu_check.py pack WEFT FOLDER [--target cuda-sm_90] [--models MODEL...]   here: compiles models, collects all that is needed
gpu_check.py run [FOLDER] [--seconds 1]                          there: checks results, measures, prints JSON

MODEL: a file with a reference beside it (MODEL.safetensors, or MODEL.0.safetensors, ...); by default the fixtures of tests/data
and examples/digits. pack needs NVRTC, and no GPU. FOLDER holds weft with its libraries, the models, this script. The exit
status of run is 1 if a result is wrong."""
import argparse
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

SYSTEM = ("linux-vdso", "ld-linux", "libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so")


def expects_error(reference):
    data = reference.read_bytes()
    header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    return "error" in header.get("__metadata__", {})


def references(model):
    found = [model.with_suffix(".safetensors"), *sorted(model.parent.glob(f"{model.stem}.[0-9]*.safetensors"))]
    return [r for r in found if r.exists() and not expects_error(r)]


def fixtures():
    root = pathlib.Path(__file__).resolve().parent.parent
    for m in [*sorted((root / "tests/data").rglob("*.pt2")), root / "examples/digits/digits_cnn.pt2"]:
        if "refused" not in m.parts and references(m):
            yield m


def copy_weft(weft, folder):
    shutil.copy(weft, folder / "weft")
    (folder / "lib").mkdir(exist_ok=True)
    for line in subprocess.run(["ldd", weft], capture_output=True, text=True, check=True).stdout.splitlines():
        name, _, path = line.strip().partition(" => ")
        if path and not name.startswith(SYSTEM):
            shutil.copy(path.split(" (")[0], folder / "lib" / name)


def pack(args):
    folder = pathlib.Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    copy_weft(args.weft, folder)
    shutil.copy(__file__, folder)
    packed = 0
    for k, m in enumerate([pathlib.Path(m) for m in args.models] or fixtures()):
        to = folder / f"{k:03}_{m.stem}"
        to.mkdir(exist_ok=True)
        p = subprocess.run([args.weft, "compile", m, "--target", args.target, "-o", to / "model.so"], capture_output=True, text=True)
        if p.returncode:
            print(f"{m}: {p.stderr.strip().splitlines()[-1]}")
            shutil.rmtree(to)
            continue
        for r in references(m):
            shutil.copy(r, to)
        packed += 1
    print(f"{packed} models, {sum(f.stat().st_size for f in folder.rglob('*') if f.is_file()) >> 20} MiB")


def run(args):
    folder = pathlib.Path(args.folder)
    env = dict(os.environ, LD_LIBRARY_PATH=f"{folder / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}")
    weft, bad, all = folder / "weft", 0, []
    for so in sorted(folder.glob("*/model.so")):
        refs = sorted(so.parent.glob("*.safetensors"))
        check = subprocess.run([weft, "check", so, *refs, "-q"], capture_output=True, text=True, env=env)
        one = {"model": so.parent.name[4:], "ok": check.returncode == 0}
        if check.returncode:
            bad += 1
            one["said"] = (check.stdout + check.stderr).strip()[-600:]
        elif args.seconds:
            bench = subprocess.run([weft, "bench", so, "--inputs", refs[0], "--seconds", str(args.seconds), "--json"], capture_output=True, text=True, env=env)
            try:
                one["bench"] = json.loads(bench.stdout)
            except ValueError:
                one["bench"] = (bench.stdout + bench.stderr).strip()[-600:]
        all.append(one)
        print(json.dumps(one), flush=True)
    print(json.dumps({"models": len(all), "wrong": bad}))
    return bad != 0


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
what = parser.add_subparsers(dest="what", required=True)
p = what.add_parser("pack")
p.add_argument("weft")
p.add_argument("folder")
p.add_argument("--models", nargs="*", default=[])
p.add_argument("--target", default="cuda-sm_90")
p = what.add_parser("run")
p.add_argument("folder", nargs="?", default=os.path.dirname(os.path.abspath(__file__)))
p.add_argument("--seconds", type=float, default=1)
args = parser.parse_args()
sys.exit(pack(args) if args.what == "pack" else run(args))
