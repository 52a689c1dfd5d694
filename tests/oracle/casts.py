"""Conversions between every two dtypes give what PyTorch gives: casts.py WEFT [--backend B]... at lengths 1, 7, 64 and 1000,
bit by bit. Needs a Python with PyTorch. --record FOLDER writes casts.ir and casts.safetensors of a few lengths instead.
Where eager PyTorch has more than one answer (docs/numerics.md) ours is the definition; how often that is so is printed."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import save_file

from bits import difference, read_tensors

NAMES = {"bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32,
         "i64": torch.int64, "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64, "f16": torch.float16,
         "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "f8e4m3": torch.float8_e4m3fn,
         "f8e5m2": torch.float8_e5m2, "f8e4m3fnuz": torch.float8_e4m3fnuz, "f8e5m2fnuz": torch.float8_e5m2fnuz}
FLOATS = ("f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz")
NAN = float("nan")
INF = float("inf")
VALUES = [0.0, -0.0, 0.5, -0.5, 0.999, -1.0, -1.9, 2.5, 3.14159, 127.0, 128.0, -129.0, 240.0, 247.9, 248.0, 255.9, 256.0, -300.0, 448.0, 464.0,
          465.0, 32768.0, 40000.0, -40000.0, 57344.0, 61439.0, 61440.0, 65504.0, 65519.0, 65520.0, 65536.5, 1e5, -1e5, 2.0**24 + 1,
          2.0**31 - 128, 2.0**31, -2.0**31, -2.0**31 - 256, 3e9, 2.0**32 - 256, 2.0**32, 2.0**32 + 512, -2.0**32, 1e10,
          -1e10, 2.0**53, 2.0**62, -2.0**62, 2.0**63, -2.0**63, 1e19, 2.0**64, -2.0**64, 1e20, -1e20, 3e38, -3e38, INF, -INF,
          NAN, 1e-3, 6e-5, 3e-8, 2.9e-8, 1e-9, 1.00048828125, 1.00390625, 1.01171875, 2.0**-7, 2.0**-9, 2.0**-10,
          2.0**-10 * 1.5, -2.0**-11, 2.0**-11 * 1.5, -2.0**-18, 2.0**-18 * 1.5, 1e-40, 2.0**31 + 5, -2.0**31 - 5.5, 2.0**40 + 77, 1 / 3]
INTEGERS = [0, 1, -1, 2, 127, 128, -128, 255, 256, 257, 2049, 32767, -32768, 65535, 2**24 + 1, 2**31 - 1, -2**31, 2**32 - 1,
            2**53 + 1, 2**62 + 2**38 + 1, 2**63 - 1, -2**63, 12345678901234567]


def values(src, n, turn):
    """n values of a dtype; those that come first depend on the turn."""
    if src in FLOATS:
        all_values = torch.tensor(VALUES, dtype=torch.float64).to(NAMES[src])
    else:
        all_values = torch.tensor(INTEGERS, dtype=torch.int64).to(NAMES[src])
    at = [(k + turn) % len(all_values) for k in range(n)]
    return torch.stack([all_values[k] for k in at])


def definition(x, dst):
    """Of a float as u32: eager's vector code and its scalar code differ outside of [-2^31, 2^32)."""
    whole = x.double().tolist()
    low = [int(v) if abs(v) < 2.0**63 else -2**63 for v in whole]
    return torch.tensor([v % 2**32 for v in low], dtype=torch.int64).to(NAMES[dst])


class Model:
    """A graph in text with inputs and PyTorch's results."""

    def __init__(self):
        self.inputs, self.lines, self.results, self.x, self.y, self.differ = [], [], [], [], [], {}

    def input(self, src, x):
        self.inputs.append(f"%x{len(self.x)}: {src}[{len(x)}]")
        self.x.append(x)
        return f"%x{len(self.x) - 1}"

    def node(self, text):
        self.lines.append(f"  %n{len(self.lines)} = {text}")
        return f"%n{len(self.lines) - 1}"

    def output(self, name, y):
        self.results.append(name)
        self.y.append(y)

    def pairs(self, src, n, turn):
        x = values(src, n, turn)
        name = self.input(src, x)
        for dst in NAMES:
            if dst == src:
                continue
            y = x.to(NAMES[dst])
            if src.endswith("fnuz") and dst in ("i32", "i64", "u64"):  # whose NaN eager makes 0 of
                y = x.float().to(NAMES[dst])
            if dst == "u32" and src in FLOATS:
                ours = definition(x, dst)
                count = int((ours.long() != y.long()).sum())
                if count:
                    self.differ[f"{src} to {dst}, length {n}"] = f"{count} of {n}"
                y = ours
            self.output(self.node(f"convert({name}, dtype={dst})"), y)

    def chains(self, storage, n):
        """Values that never lie in memory."""
        x = values("f32", n, 3)
        t, name = NAMES[storage], self.input("f32", x)
        h, y = self.node(f"convert({name}, dtype={storage})"), x.to(t)
        wide = self.node(f"convert({h}, dtype=f32)")
        self.output(wide, y.float())
        self.output(self.node(f"mul({wide}, {wide})"), y.float() * y.float())
        self.output(self.node(f"convert({wide}, dtype=i32)"), y.float().to(torch.int32))
        if storage not in ("f16", "bf16"):
            return
        total = self.node(f"add({h}, {h})")
        self.output(self.node(f"convert({total}, dtype=f32)"), (y + y).float())
        self.output(self.node(f"convert({total}, dtype=i16)"), (y + y).to(torch.int16))
        product = self.node(f"mul({h}, {h})")
        back = self.node(f"convert({self.node(f'convert({product}, dtype=f32)')}, dtype={storage})")
        self.output(self.node(f"convert({self.node(f'maximum({back}, {h})')}, dtype=f64)"), torch.maximum(y * y, y).double())

    def write(self, folder, name):
        head = f"graph @casts({', '.join(self.inputs)}) {{\n"
        text = head + "\n".join(self.lines) + f"\n  return {', '.join(self.results)}\n}}\n"
        (folder / f"{name}.ir").write_text(text)
        tensors = {f"x.{k}": x for k, x in enumerate(self.x)} | {f"y.{k}": y for k, y in enumerate(self.y)}
        save_file(tensors, folder / f"{name}.safetensors", metadata={"exact": "true"})


def model(lengths):
    m = Model()
    for src in NAMES:
        for n in lengths:
            for turn in ((0, 5, 34, 55) if n == 1 and src in FLOATS else (n,)):
                m.pairs(src, n, turn)
    for storage in ("f16", "bf16", *(name for name in NAMES if name.startswith("f8"))):
        for n in lengths:
            m.chains(storage, n)
    return m


def check(weft, folder, backend, m):
    """Number of results that differ from PyTorch's in any bit."""
    reference, out = folder / "casts.safetensors", folder / "out.safetensors"
    subprocess.run([weft, "run", folder / "casts.ir", "--inputs", reference, "--outputs", out, "--backend", backend],
                   check=True, stdout=subprocess.DEVNULL)
    want, got, wrong = read_tensors(reference), read_tensors(out), 0
    for k, name in enumerate(m.results):
        text = difference(m.lines[int(name[2:])].strip(), got[f"y.{k}"], want[f"y.{k}"])
        if text:
            wrong += 1
            print(f"{backend}: {text}")
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("weft", nargs="?", type=lambda s: pathlib.Path(s).resolve())
    p.add_argument("--backend", action="append")
    p.add_argument("--record", type=pathlib.Path)
    args = p.parse_args()
    if args.record:
        model((1, 37)).write(args.record, "casts")
        return 0
    if not args.weft:
        p.error("expected the weft command or --record")
    m, wrong = model((1, 7, 64, 1000)), 0
    for pair, count in m.differ.items():
        print(f"eager differs from the definition: {pair}: {count}")
    with tempfile.TemporaryDirectory() as folder:
        m.write(pathlib.Path(folder), "casts")
        for backend in args.backend or ["interp", "jit", "c", "llvm"]:
            wrong += check(args.weft, pathlib.Path(folder), backend, m)
    print(f"{len(m.results)} results, {wrong} differ from PyTorch")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
