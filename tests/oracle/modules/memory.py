"""Random programs of masks beside indices, writes through views of other dtypes, and views of other widths, as torch.export writes them:
memory.py FOLDER [--seed N] [--count N | --seeds N...] [--weft WEFT] [--backend B]. NAME.pt2 with NAME.safetensors (x.<i>, y.<i>; of differentiable programs
ct.<i> and g.<i>) for each; with --weft they are compared, forward and by their gradients. What PyTorch refuses is drawn again, what it
cannot export is left out. tests/recorded_memory holds some of them for every test run, made by --seeds with the numbers in the files' names."""
import argparse
import collections
import contextlib
import logging
import pathlib
import random
import subprocess
import sys
import warnings

import torch
from safetensors.torch import save_file

from differential_make import rewrite

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
COMPLEX = {torch.complex64: torch.float32, torch.complex128: torch.float64}


class Program(torch.nn.Module):
    """f of the inputs; `dynamic` are the sizes that are symbols, by input."""

    def __init__(self, name, f, inputs, dynamic=None, gradient=True):
        super().__init__()
        self.name, self.f, self.dynamic, self.gradient = name, f, dynamic, gradient
        self.pairs = [x.is_complex() for x in inputs]  # complex numbers go in and out as pairs
        self.inputs = [torch.view_as_real(x).clone() if x.is_complex() else x for x in inputs]

    def forward(self, *x):
        y = self.f(*[torch.view_as_complex(v) if pair else v for v, pair in zip(x, self.pairs)])
        return tuple(map(flat, y)) if isinstance(y, tuple) else flat(y)


def values(g, shape, dtype):
    if dtype.is_complex:
        return torch.complex(torch.randn(shape, generator=g, dtype=COMPLEX[dtype]), torch.randn(shape, generator=g, dtype=COMPLEX[dtype]))
    if dtype.is_floating_point:
        return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)
    return torch.randint(-100, 100, shape, generator=g).to(dtype)


# ---- x[i, mask] ----

def mask_with(g, shape, count):
    """A mask with that many true elements."""
    n = 1
    for d in shape:
        n *= d
    flat = torch.zeros(n, dtype=torch.bool)
    flat[torch.randperm(n, generator=g)[:count]] = True
    return flat.reshape(shape)


def draw_indices(r, g, shape):
    """[(kind, operand)] for each run of dimensions: slices, integers, masks."""
    parts, dim = [], 0
    count = r.randint(1, min(min(shape), 3))
    wide = r.choice([(), (2,), (3, 2), (2, 1, 2)])  # in front of the dimension along which masks select
    while dim < len(shape):
        kind = r.choice(["slice", "index", "mask", "mask"])
        if kind == "mask":
            covers = min(r.choice([1, 1, 2]), len(shape) - dim)
            parts.append(("mask", mask_with(g, shape[dim:dim + covers], count)))
            dim += covers
            continue
        if kind == "index":
            own = r.choice([(), (1,), (count,), wide + (1,), wide + (count,)])
            n = shape[dim]
            parts.append(("index", torch.randint(-n, n, own, generator=g)))
        else:
            parts.append(("slice", None))
        dim += 1
    return parts


def masked(r, g):
    shape = [r.choice([2, 3, 4, 5]) for _ in range(r.randint(2, 4))]
    parts = draw_indices(r, g, shape)
    if not any(k == "mask" for k, _ in parts) or not any(k == "index" for k, _ in parts):
        return None
    dtype = r.choice([torch.float32, torch.float64, torch.float64, torch.int64, torch.complex128])
    x = values(g, shape, dtype)
    operands = [v for k, v in parts if v is not None]

    def key(given):
        at = iter(given)
        return tuple(slice(None) if k == "slice" else next(at) for k, _ in parts)
    how = r.choice(["read", "read", "put", "accumulate", "assign"])
    if how == "read":
        return Program("masked_read", lambda x, *i: x[key(i)], [x, *operands])
    selected = x[key(operands)]
    v = values(g, selected.shape if r.random() < 0.5 else selected.shape[-1:] if selected.dim() and r.random() < 0.5 else (), dtype)
    if how == "assign":
        def f(x, v, *i):
            y = x.clone()
            y[key(i)] = v
            return y
        if not unique(x, key(operands)):
            return None
        return Program("masked_assign", f, [x, v, *operands])
    if how == "put" and not unique(x, key(operands)):
        return None  # which of two values wins is nowhere said
    add = how == "accumulate"
    return Program(f"masked_{how}", lambda x, v, *i: torch.ops.aten.index_put(x, [None if isinstance(k, slice) else k for k in key(i)], v, add), [x, v, *operands])


def unique(x, key):
    places = torch.arange(x.numel()).reshape(x.shape)[key].flatten()
    return places.unique().numel() == places.numel()


# ---- writes through views of complex tensors ----

def step_into(r, y, real):
    """A view of y, and whether its elements are real."""
    if real:
        ways = ["select", "slice", "transpose", "reverse_step", "diagonal"]
    else:
        ways = ["real", "imag", "view_as_real", "conj", "select", "slice", "transpose"]
    way = r.choice(ways)
    if way in ("real", "imag"):
        return getattr(y, way), True, way
    if way == "view_as_real":
        k = r.choice([None, 0, 1])
        v = torch.view_as_real(y)
        return (v if k is None else v[..., k]), True, f"view_as_real{'' if k is None else k}"
    if way == "conj":
        return y.conj(), False, way
    if not y.dim() or (way in ("transpose", "diagonal") and y.dim() < 2):
        return y, real, ""
    if way == "select":
        d = r.randrange(y.dim())
        return y.select(d, r.randrange(y.shape[d])), real, way
    if way == "slice":
        d = r.randrange(y.dim())
        return y.narrow(d, 0, max(1, y.shape[d] - 1)), real, way
    if way == "reverse_step":
        return y[::2], real, way
    if way == "diagonal":
        return y.diagonal(0, 0, 1), real, way
    return y.transpose(0, 1), real, way


def written_parts(r, g):
    dtype = r.choice(list(COMPLEX))
    shape = [r.choice([2, 3, 4]) for _ in range(r.randint(1, 3))]
    seed, base = r.random(), r.choice(["clone", "mul", "view_as_complex"])

    def f(x):
        if base == "view_as_complex":
            y = torch.view_as_complex(torch.view_as_real(x).clone())
        else:
            y = x.clone() if base == "clone" else x * 2
        d = random.Random(seed)
        early = y.real if d.random() < 0.3 else None
        for _ in range(d.randint(1, 3)):
            v, real = y, False
            for _ in range(d.randint(1, 3)):
                v, real, _ = step_into(d, v, real)
            if real or d.random() < 0.7:
                write = d.choice(["mul_", "add_", "copy_", "fill_", "neg_"])
            else:
                write = "mul_"
            if write == "mul_":
                v.mul_(2)
            elif write == "add_":
                v.add_(1)
            elif write == "copy_":
                v.copy_(v.flip(0) if v.dim() else v * 3)
            elif write == "fill_":
                v.fill_(0.5)
            else:
                v.neg_()
        outs = [torch.view_as_real(y).clone()]
        return tuple(outs + ([early * 1] if early is not None else []))
    return Program("written_parts", f, [values(g, shape, dtype)], gradient=False)


# ---- views of other widths, at sizes that are symbols ----

def widths(r, g):
    narrow, wide = r.choice([(torch.uint8, torch.int32), (torch.uint8, torch.int16), (torch.int16, torch.int64), (torch.int32, torch.int64), (torch.uint8, torch.int64),
                             (torch.float32, torch.float64), (torch.float32, torch.complex64), (torch.float16, torch.float32), (torch.uint8, torch.float32),
                             (torch.float64, torch.complex128), (torch.int8, torch.complex64)])
    times = wide.itemsize // narrow.itemsize
    lead = [r.choice([1, 2, 3])] * r.randint(0, 2)
    x = torch.randint(0, 60, [*lead, times * r.randint(2, 5)], generator=g).to(narrow)
    at = len(lead)

    def f(x):
        y = x.view(wide)
        y = torch.view_as_real(y) if y.is_complex() else y
        return torch.nan_to_num(y) if y.is_floating_point() else y + 1
    n = torch.export.Dim("n", min=1, max=4096)
    return Program("width", f, [x], dynamic=({at: times * n},) if r.random() < 0.5 else ({at: torch.export.Dim.AUTO},), gradient=False)


# ---- in-place forms ----

def in_place(r, g):
    kind = r.choice(["fill_diagonal", "ldexp", "logaddexp", "xlogy", "strided", "write_wider"])
    if kind == "fill_diagonal":
        shape = r.choice([[r.randint(1, 6), r.randint(1, 6)], [3, 3, 3], [2, 2, 2, 2]])
        wrap, v, turned = r.random() < 0.5, r.choice([1.5, 2, -1]), r.random() < 0.3 and len(shape) > 2
        dtype = r.choice([torch.float32, torch.float64, torch.int64, torch.float16])

        def f(x):
            y = x.clone()
            (y.transpose(0, 1) if turned else y).fill_diagonal_(v, wrap)
            return y
        return Program("fill_diagonal", f, [values(g, shape, dtype)])
    if kind == "ldexp":
        e = torch.randint(-8, 8, [r.choice([1, 4])], generator=g).to(r.choice([torch.int32, torch.int64, torch.int8]))
        return Program("ldexp", lambda x, e: x.clone().ldexp_(e), [values(g, [3, 4], r.choice([torch.float32, torch.float64])), e])
    if kind == "strided":
        k = r.randint(1, 2)

        def f(x):
            y = x.transpose(0, 1).contiguous()
            y[0].mul_(2)
            z = y.as_strided([2, 2], [k, 1], 1)
            z.add_(1) if k == 2 else None
            return y, z * 1
        return Program("strided", f, [values(g, [3, 4], torch.float64)])
    if kind == "write_wider":
        def f(x):
            y = x.clone()
            y.view(torch.int32 if x.dtype == torch.uint8 else torch.int16).bitwise_xor_(5)
            return y
        dtype = r.choice([torch.uint8, torch.int8])
        if dtype == torch.int8:
            return Program("write_wider", f, [values(g, [2, 8], dtype)], gradient=False)
        return Program("write_wider", f, [torch.randint(0, 200, [2, 8], generator=g).to(dtype)], gradient=False)
    dtypes = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool]
    a, b = r.choice(dtypes[:4]), r.choice(dtypes + ([torch.complex64, torch.complex128] if kind == "logaddexp" else []))
    x, y = values(g, [2, 3], a), values(g, r.choice([[2, 3], [3], []]), b)
    if not b.is_floating_point and not b.is_complex:
        y = torch.tensor(r.choices([0, 1, 3, 255, 2049, 70000, 2**31 - 1, 2**53 + 1], k=max(1, y.numel()))).reshape(y.shape).to(b)
    if r.random() < 0.5:
        x, y = y, x
    f = {"logaddexp": r.choice([torch.logaddexp, torch.logaddexp2]), "xlogy": r.choice([torch.xlogy, torch.special.xlog1py])}[kind]
    if kind == "xlogy":
        f = r.choice([f, torch.atan2, torch.hypot, torch.remainder, torch.fmod, lambda x, y: torch.add(x, y, alpha=2), lambda x, y: torch.sub(x, y, alpha=3), torch.nextafter, torch.special.zeta,
                      lambda x, y: torch.div(x, y, rounding_mode="floor"), lambda x, y: torch.div(x, y, rounding_mode="trunc"), torch.copysign, torch.fmin, torch.maximum, torch.ldexp])
    return Program(kind, lambda x, y: f(x, y), [x, y], gradient=False)


def flat(y):
    return torch.view_as_real(y) if y.is_complex() else y


MAKERS = [masked, masked, masked, written_parts, written_parts, widths, in_place, in_place]


def draw(seed):
    r, g = random.Random(seed), torch.Generator().manual_seed(seed)
    for _ in range(100):
        try:
            p = r.choice(MAKERS)(r, g)
            if p is None:
                continue
            y = p(*[x.clone() for x in p.inputs])
        except Exception:  # PyTorch refuses it
            continue
        return p, list(y) if isinstance(y, tuple) else [y]
    raise SystemExit(f"seed {seed}: nothing was drawn")


def gradients(p, y, g):
    x = [v.clone().requires_grad_(v.is_floating_point() or v.is_complex()) for v in p.inputs]
    out = p(*x)
    out = list(out) if isinstance(out, tuple) else [out]
    ct = [values(g, v.shape, v.dtype) for v in out]
    with_grad = [(o, c) for o, c in zip(out, ct) if o.requires_grad]
    if not with_grad or any(c.is_complex() for c in ct):
        return {}
    of = [v for v in x if v.requires_grad]
    got = torch.autograd.grad([o for o, _ in with_grad], of, [c for _, c in with_grad], allow_unused=True)
    named = {f"ct.{i}": c for i, c in enumerate(c for o, c in zip(out, ct) if o.is_floating_point())}
    at = 0
    for i, v in enumerate(x):
        if v.requires_grad:
            if got[at] is not None:
                named[f"g.{i}"] = got[at]
            at += 1
    return named


def make(folder, seed):
    p, y = draw(seed)
    g = torch.Generator().manual_seed(seed)
    try:
        with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
            e = torch.export.export(p, tuple(x.clone() for x in p.inputs), dynamic_shapes=(p.dynamic,) if p.dynamic else None)
            torch.export.save(e, folder / "raw.pt2")
        rewrite(folder / "raw.pt2", folder / f"{p.name}_{seed}.pt2")
        (folder / "raw.pt2").unlink()
    except Exception:
        return None
    tensors = {f"x.{i}": x.contiguous().clone() for i, x in enumerate(p.inputs)} | {f"y.{i}": v.detach().contiguous().resolve_conj().resolve_neg().clone() for i, v in enumerate(y)}
    if p.gradient and all(v.is_floating_point() for v in y) and not any(x.is_complex() for x in p.inputs):
        try:
            tensors |= {k: v.contiguous().clone() for k, v in gradients(p, y, g).items()}
        except RuntimeError:
            pass
    save_file(tensors, folder / f"{p.name}_{seed}.safetensors")
    return p.name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seeds", type=int, nargs="*")
    parser.add_argument("--weft")
    parser.add_argument("--backend", default="interp")
    a = parser.parse_args()
    a.folder.mkdir(parents=True, exist_ok=True)
    made = collections.Counter(make(a.folder, s) for s in a.seeds or range(a.seed, a.seed + a.count))
    print(", ".join(f"{n} {k or 'not exported'}" for k, n in sorted(made.items(), key=str)), flush=True)
    status = 0
    for mode in ("forward", "vjp") if a.weft else ():
        r = subprocess.run([a.weft, "check", a.folder, "-q", "--backend", a.backend, *(["--mode", "vjp"] if mode == "vjp" else [])], capture_output=True, text=True)
        print(mode, r.stdout + r.stderr)
        status |= r.returncode
    sys.exit(status)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
