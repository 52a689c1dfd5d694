"""Say in references how far torch.autocast is from them: make_autocast.py OUT bf16|f16 MODEL.pt2...

Beside each MODEL.pt2 lies MODEL.safetensors, which is copied to OUT with autocast_err.DTYPE.K in the metadata, the largest difference
between y.K and what the archive gives under torch.autocast on the CPU; of a file with gradients g.NAME also autocast_grad_err.DTYPE.
`weft check --precision DTYPE` prints these errors beside ours, and allows 8 times as much. Tensors keep their bytes."""
import pathlib
import sys

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def largest(got, want):
    return (got.double() - want.double()).abs().max().item() if want.numel() else 0.0


def errors(model, have, dtype):
    inputs = [have[f"x.{k}"] for k in range(sum(name.startswith("x.") for name in have))]
    grads = {name[2:]: g for name, g in have.items() if name.startswith("g.")}
    module = torch.export.load(model).module()
    with torch.set_grad_enabled(bool(grads)), torch.autocast("cpu", dtype=DTYPES[dtype]):
        out = torch.utils._pytree.tree_leaves(module(*inputs))
    meta = {f"autocast_err.{dtype}.{k}": str(largest(y.detach(), have[f"y.{k}"])) for k, y in enumerate(out) if f"y.{k}" in have}
    if grads:
        out[0].sum().backward()
        own = dict(module.named_parameters())
        meta[f"autocast_grad_err.{dtype}"] = str(max(largest(own[name].grad, g) for name, g in grads.items() if own[name].grad is not None))
    return meta


def main():
    out, dtype = pathlib.Path(sys.argv[1]), sys.argv[2]
    out.mkdir(exist_ok=True)
    for model in map(pathlib.Path, sys.argv[3:]):
        reference = model.with_suffix(".safetensors")
        have = load_file(reference)
        with safe_open(reference, "pt") as f:
            meta = {**(f.metadata() or {}), **errors(model, have, dtype)}
        save_file(have, out / reference.name, meta)


if __name__ == "__main__":
    sys.exit(main())
