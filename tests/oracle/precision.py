"""--precision beside torch.autocast on the CPU: precision.py WEFT FOLDER [NAME...] [--dtype bf16|f16] [--backend B]

FOLDER has NAME.pt2 and NAME.safetensors (x.K, y.K, computed in f32; that error is thousands of times smaller). The archive is run by
PyTorch under torch.autocast, and by WEFT with --precision. Errors are relative: the root of the sum of squared differences from y.K,
divided by that of y.K. Of a file with gradients g.NAME the gradients of the first output are compared, all parameters as one vector.
Ours may be at most WORSE times autocast's, or that of half a unit in the last place of the dtype. Every model
that differs more is a failure."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file

WORSE = 1.5
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def relative(got, want):
    got, want = got.double(), want.double()
    return ((got - want).norm() / want.norm().clamp_min(1e-30)).item()


def autocast(model, inputs, dtype):
    with torch.no_grad(), torch.autocast("cpu", dtype=dtype):
        out = torch.export.load(model).module()(*inputs)
    return torch.utils._pytree.tree_leaves(out)


def autocast_gradients(model, inputs, dtype):
    module = torch.export.load(model).module()
    with torch.autocast("cpu", dtype=dtype):
        out = torch.utils._pytree.tree_leaves(module(*inputs))
    out[0].sum().backward()
    return {name: p.grad for name, p in module.named_parameters() if p.grad is not None}


def ours(weft, model, reference, options, folder):
    out = folder / "out.safetensors"
    subprocess.run([weft, "run", model, "--inputs", reference, "--outputs", out, *options], check=True, stdout=subprocess.DEVNULL)
    return load_file(out)


def verdict(name, mine, theirs, want, dtype):
    a, b = relative(mine, want), relative(theirs, want)
    good = a <= max(WORSE * b, torch.finfo(DTYPES[dtype]).eps / 2)
    print(f"{name:36}  ours {a:.2e}  autocast {b:.2e}  ratio {a / b if b else 0:.2f}{'' if good else '  WORSE'}", flush=True)
    return good


def compare(weft, model, args, folder):
    reference = model.with_suffix(".safetensors")
    have = load_file(reference)
    inputs = [have[f"x.{k}"] for k in range(sum(name.startswith("x.") for name in have))]
    want = [have[f"y.{k}"] for k in range(sum(name.startswith("y.") for name in have))]
    options = ["--precision", args.dtype, *(["--backend", args.backend] if args.backend else [])]
    grads = {name[2:]: g for name, g in have.items() if name.startswith("g.")}
    if grads:
        theirs = autocast_gradients(model, inputs, DTYPES[args.dtype])
        mine = ours(weft, model, reference, [*options, "--mode", "vjp", "--wrt", "params"], folder)
        names = [name for name in grads if name in theirs]
        flat = [torch.cat([part[key(name)].flatten().double() for name in names]) for part, key in
                ((mine, lambda n: f"gp.{n}"), (theirs, lambda n: n), (grads, lambda n: n))]
        return verdict(f"{model.stem} {len(names)} gradients", *flat, args.dtype)
    theirs = autocast(model, inputs, DTYPES[args.dtype])
    mine = ours(weft, model, reference, options, folder)
    return all([verdict(f"{model.stem} y.{k}", mine[f"y.{k}"], theirs[k], y, args.dtype) for k, y in enumerate(want) if y.is_floating_point()])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("weft")
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("names", nargs="*")
    p.add_argument("--dtype", choices=DTYPES, default="bf16")
    p.add_argument("--backend")
    args = p.parse_args()
    torch.set_num_threads(1)
    models = [args.folder / f"{name}.pt2" for name in args.names] or sorted(args.folder.glob("*.pt2"))
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            wrong += not compare(args.weft, model, args, pathlib.Path(folder))
    print(f"{len(models)} models, {wrong} less accurate than autocast by more than {WORSE}")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
