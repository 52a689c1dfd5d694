"""--precision beside torch.autocast on the CPU: precision.py WEFT FOLDER [NAME...] [--dtype bf16|f16] [--backend B]

FOLDER has NAME.pt2 and NAME.safetensors (x.K, y.K, computed in f32; that error is thousands of times smaller). The archive is run by
PyTorch under torch.autocast, and by WEFT with --precision. Errors are relative: the root of the sum of squared differences from y.K,
divided by that of y.K. Ours may be at most WORSE times autocast's, or that of half a unit in the last place of the dtype. Every model
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


def ours(weft, model, reference, options, folder):
    out = folder / "out.safetensors"
    subprocess.run([weft, "run", model, "--inputs", reference, "--outputs", out, *options], check=True, stdout=subprocess.DEVNULL)
    return load_file(out)


def compare(weft, model, args, folder):
    reference = model.with_suffix(".safetensors")
    have = load_file(reference)
    inputs = [have[f"x.{k}"] for k in range(sum(name.startswith("x.") for name in have))]
    want = [have[f"y.{k}"] for k in range(sum(name.startswith("y.") for name in have))]
    theirs = autocast(model, inputs, DTYPES[args.dtype])
    mine = ours(weft, model, reference, ["--precision", args.dtype, *(["--backend", args.backend] if args.backend else [])], folder)
    ok = True
    for k, y in enumerate(want):
        if not y.is_floating_point():
            continue
        a, b = relative(mine[f"y.{k}"], y), relative(theirs[k], y)
        good = a <= max(WORSE * b, torch.finfo(DTYPES[args.dtype]).eps / 2)
        print(f"{model.stem:32} y.{k}  ours {a:.2e}  autocast {b:.2e}  ratio {a / b if b else 0:.2f}{'' if good else '  WORSE'}", flush=True)
        ok &= good
    return ok


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
