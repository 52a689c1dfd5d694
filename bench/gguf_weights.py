"""Products with weights of GGUF files: chains of N products of SIZE x SIZE, one thread.

gguf_weights.py WEFT FOLDER [--kinds Q4_0,Q4_K,...] [--rows 1,8,64] [--chain 24] [--size 2048] [--seconds S] [--rounds R] [--ggml PROGRAM]

Exports a chain on meta, fills a file of each kind with random blocks, and compiles both exact and with activations rounded to
8 bits. Prints the least microseconds of a product in alternating rounds, the megabytes of a weight in the file and in the
artifact, and what ggml takes (PROGRAM is bench/ggml_chain.c, built). Wants a Python with torch and gguf."""
import argparse
import json
import os
import subprocess

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Kind
from torch import nn

HALVES = {"Q2_K": (80, 82), "Q3_K": (108,), "Q6_K": (208,), "Q4_1": (0, 2), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2)}
FORMS = {"exact": ["--activations", "exact"], "rounded": ["--activations", "int8"]}


def export(path, rows, chain, size):
    with torch.device("meta"):
        model = nn.Sequential(*[nn.Linear(size, size, bias=False) for _ in range(chain)])
        torch.export.save(torch.export.export(model, (torch.zeros(rows, size),)), path)


def blocks(kind, size, random):
    """Random blocks whose scales are about as large as those of a trained matrix."""
    weights, nbytes = gguf.GGML_QUANT_SIZES[kind]
    raw = random.integers(0, 256, (size, size // weights, nbytes), dtype=np.uint8)
    for at in HALVES.get(kind.name, (0,)):
        scale = random.uniform(0.5, 1.5, raw.shape[:2] + (1,)) * (1e-2 if weights == 32 else 1e-4) / size ** 0.5
        raw[..., at:at + 2] = scale.astype(np.float16).view(np.uint8)
    if kind is Kind.MXFP4:
        raw[..., 0] = random.integers(112, 118, raw.shape[:2])
    return raw.reshape(size, -1)


def write(path, kind, chain, size):
    writer = gguf.GGUFWriter(path, "chain")
    random = np.random.default_rng(0)
    for k in range(chain):
        writer.add_tensor(f"{k}.weight", blocks(kind, size, random), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def weft_time(weft, compiled, seconds):
    command = [weft, "bench", compiled, "--seconds", str(seconds), "--threads", "1", "--no-op-by-op", "--json"]
    rows = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["rows"]
    return min(v for row in rows if row["name"] == "compiled" for k, v in row.items() if k.startswith("min")) * 1e3


def ggml_time(program, kind, rows, chain, size, seconds):
    """Of plain weights, and of those that ggml rearranges, where it does so for the kind."""
    command = [program, kind.lower(), str(rows), str(chain), str(size), str(seconds)]
    ran = [subprocess.run(command + more, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for more in ([], ["repack"], ["amx"])]
    return min(float(r.stdout.split()[-2]) for r in ran if not r.returncode) * chain


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: text.split(",")
    parser.add_argument("weft")
    parser.add_argument("folder")
    parser.add_argument("--kinds", type=names, default=["Q4_0", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "MXFP4"])
    parser.add_argument("--rows", type=lambda text: [int(x) for x in text.split(",")], default=[1, 8, 64])
    parser.add_argument("--chain", type=int, default=24)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--ggml")
    args = parser.parse_args()
    at = lambda name: os.path.join(args.folder, name)
    least, cases = {}, [(kind, rows) for kind in args.kinds for rows in args.rows]
    for rows in args.rows:
        export(at(f"{rows}.pt2"), rows, args.chain, args.size)
    for kind in args.kinds:
        write(at(kind + ".gguf"), Kind[kind], args.chain, args.size)
    for kind, rows in cases:
        for form, options in FORMS.items():
            subprocess.run([args.weft, "compile", at(f"{rows}.pt2"), "--weights-from", at(kind + ".gguf"), "-o",
                            at(f"{kind}-{rows}-{form}.so"), "--no-cache", *options], check=True, stdout=subprocess.DEVNULL)
    for _ in range(args.rounds):
        for kind, rows in cases:
            took = {form: weft_time(args.weft, at(f"{kind}-{rows}-{form}.so"), args.seconds) for form in FORMS}
            if args.ggml:
                took["ggml"] = ggml_time(args.ggml, kind, rows, args.chain, args.size, args.seconds)
            for form, t in took.items():
                least[kind, rows, form] = min(least.get((kind, rows, form), 1e9), t)
    for kind, rows in cases:
        file, stored = os.path.getsize(at(kind + ".gguf")), os.path.getsize(at(f"{kind}-{rows}-exact.so"))
        times = "".join(f"  {form} {t / args.chain:8.1f}" for (k, r, form), t in least.items() if (k, r) == (kind, rows))
        print(f"{kind:7} {rows:4} rows: {times} us;  {file / args.chain / 1e6:5.2f} MB in the file, "
              f"{stored / args.chain / 1e6:5.2f} in the artifact")


if __name__ == "__main__":
    main()
