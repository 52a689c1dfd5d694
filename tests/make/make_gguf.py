"""Writes tests/data/gguf: a GGUF file with a tensor of random blocks of each kind that Weft reads, and the numbers that the
Python package gguf says they stand for. make_gguf.py FOLDER; wants numpy, gguf, safetensors."""
import sys
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind
from gguf import quants
from safetensors.numpy import save_file

ROWS, COLUMNS = 2, 256
HALVES = {Kind.Q4_0: [0], Kind.Q4_1: [0, 2], Kind.Q5_0: [0], Kind.Q5_1: [0, 2], Kind.Q8_0: [0], Kind.Q2_K: [80, 82], Kind.Q3_K: [108],
          Kind.Q4_K: [0, 2], Kind.Q5_K: [0, 2], Kind.Q6_K: [208], Kind.IQ4_NL: [0], Kind.IQ4_XS: [0], Kind.MXFP4: []}


def main(folder):
    random, expected = np.random.default_rng(1), {}
    writer = gguf.GGUFWriter(folder / "kinds.gguf", "test")
    writer.add_uint32("test.attention.head_count", 2)
    writer.add_string("test.text", "a text")
    writer.add_array("test.list", ["a", "bc"])
    writer.add_float32("test.number", 0.5)
    for kind, halves in HALVES.items():
        weights, nbytes = gguf.GGML_QUANT_SIZES[kind]
        raw = random.integers(0, 256, (ROWS, COLUMNS // weights, nbytes), dtype=np.uint8)
        for at in halves:
            raw[..., at:at + 2] = random.standard_normal(raw.shape[:2] + (1,)).astype(np.float16).view(np.uint8)
        if kind is Kind.MXFP4:
            raw[..., 0] = random.integers(120, 134, raw.shape[:2])
        raw = raw.reshape(ROWS, -1)
        expected[kind.name] = quants.dequantize(raw, kind).astype(np.float32)
        writer.add_tensor(kind.name, raw, raw_dtype=kind)
    for name, dtype in {"F32": np.float32, "F16": np.float16}.items():
        expected[name] = random.standard_normal((3, 5)).astype(dtype)
        writer.add_tensor(name, expected[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file(expected, folder / "kinds.safetensors")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
