#!/usr/bin/env python3
"""Correctness and times on a GPU, on a machine that has nothing but NVIDIA's driver and Python.

gpu_check.py pack WEFT FOLDER [--target cuda-sm_90] [--models MODEL...]   here: compiles models, collects all that is needed
gpu_check.py run [FOLDER] [--seconds 1]                          there: checks results, measures, prints JSON
gpu_check.py crossovers [FOLDER] [--seconds 0.2]                 there: times of products by kernels and by cuBLASLt, as JSON

MODEL: a file with a reference beside it (MODEL.safetensors, or MODEL.0.safetensors, ...); by default the fixtures of tests/data
and examples/digits. pack needs NVRTC, and no GPU. FOLDER holds weft with its libraries, the models, products, this script. The
exit status of run is 1 if a result is wrong. crossovers ends with the least M for which cuBLASLt is faster, by dtype, N and K:
what ir/target/gpu.c estimates."""
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


ROWS = (1, 4, 16, 64, 128, 256, 512, 1024, 4096)
SIDES = ((64, 64), (256, 128), (256, 256), (1024, 1024), (4096, 1024), (4096, 4096))
DTYPES = ("f32", "f16", "bf16")


def pack_products(args, folder):
    """One artifact for each dtype, N, K and hint of M. M is a symbol, so that the library is an alternative at every size."""
    made = 0
    for dtype in DTYPES:
        for n, k in SIDES:
            for m in ROWS:
                to = folder / "products" / f"{dtype}_{m}_{n}_{k}"
                to.mkdir(parents=True, exist_ok=True)
                (to / "product.ir").write_text(f"graph @product(%x: {dtype}[M, {k}], %w: {dtype}[{k}, {n}]) where 1 <= M ~ {m} {{\n  %y = aten.mm(%x, %w)\n"
                                               "  return %y\n}\n")
                p = subprocess.run([args.weft, "compile", to / "product.ir", "--target", args.target, "-o", to / "product.so"], capture_output=True, text=True)
                if p.returncode:
                    sys.exit(f"{to.name}: {p.stderr}")
                made += 1
    return made


def crossovers(args):
    folder, times = pathlib.Path(args.folder), {}
    env = dict(os.environ, LD_LIBRARY_PATH=f"{folder / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}")
    ways = {"kernel": dict(env, WEFT_CUBLASLT="none"), "library": dict(env, WEFT_CUBLASLT_ALWAYS="1")}
    for so in sorted(folder.glob("products/*/product.so")):
        dtype, m, n, k = so.parent.name.split("_")
        one = {"dtype": dtype, "m": int(m), "n": int(n), "k": int(k)}
        for way, where in ways.items():
            p = subprocess.run([folder / "weft", "bench", so, "--seconds", str(args.seconds), "--json"], capture_output=True, text=True, env=where)
            try:
                one[way] = json.loads(p.stdout)
            except ValueError:
                one[way] = (p.stdout + p.stderr).strip()[-300:]
        print(json.dumps(one), flush=True)
        times[dtype, int(n), int(k), int(m)] = one
    for dtype, n, k in sorted({t[:3] for t in times}):
        faster = [m for m in ROWS if (one := times.get((dtype, n, k, m))) and 0 < median(one["library"]) < median(one["kernel"])]
        print(json.dumps({"dtype": dtype, "n": n, "k": k, "faster at m": faster}))
    return False


def median(bench):
    """Milliseconds of a call of the artifact; 0: unknown."""
    rows = bench.get("rows", []) if isinstance(bench, dict) else []
    return next((r["median_ms"] for r in rows if r.get("ok") and r["name"] == "compiled"), 0)


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
    products = pack_products(args, folder) if args.products else 0
    print(f"{packed} models, {products} products, {sum(f.stat().st_size for f in folder.rglob('*') if f.is_file()) >> 20} MiB")


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
p.add_argument("--products", action="store_true", help="for crossovers")
p = what.add_parser("crossovers")
p.add_argument("folder", nargs="?", default=os.path.dirname(os.path.abspath(__file__)))
p.add_argument("--seconds", type=float, default=0.2)
p = what.add_parser("run")
p.add_argument("folder", nargs="?", default=os.path.dirname(os.path.abspath(__file__)))
p.add_argument("--seconds", type=float, default=1)
args = parser.parse_args()
sys.exit({"pack": pack, "run": run, "crossovers": crossovers}[args.what](args))
