"""Random modules of transforms and factorisations with PyTorch's results: random_algebra.py OUT --seed N --count N [--weft WEFT]
Makes OUT/SEED.pt2 and OUT/SEED.safetensors, for `weft check OUT` and `weft check OUT --mode vjp`: a chain of one to six steps of
torch.fft, torch.linalg, stft and of random_families.py, of f64, complex128, f32 and complex64, whose results no phase or sign of
a vector changes. Half of the modules have symbolic sizes and are run at other sizes than they were exported with, 1 among them;
the others have sizes of 0 and 1, too. What PyTorch itself refuses gives no module. Needs torch and safetensors.
  --weft WEFT   also checks values and gradients: all with the interpreters of graphs and of loop IR, one in --compile with the
                JIT. What differs stays in OUT, and its seed and what is said of it is a line of OUT/found.txt; how many modules
                were right is added up in OUT/state.json, from which the next call with the same --seed goes on"""
import argparse
import json
import logging
import random
import re
import subprocess
import warnings
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import linalg as L
from torch.export import Dim, export

import random_families
from random_families import cplx, real

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)  # what a fake tensor refuses is counted
NORMS = (None, "ortho", "forward", "backward")
STEPS = []


def step(f):
    STEPS.append(f)
    return f


def steps(**functions):
    """Steps without choices of their own: of x."""
    for name, f in functions.items():
        STEPS.append(named(name, f))


def named(name, f):
    def make(r):
        return name, f
    return make


def bounded(x):
    """Of about the size 1, so that no chain overflows."""
    return x / (1 + x.abs().square().sum((-1, -2), keepdim=True).sqrt()) * 3


def square(x):
    return x @ x.mH


def regular(x):
    a = square(bounded(x))
    return a + 2 * torch.eye(a.shape[-1], dtype=x.dtype)


def distinct(x):
    """No two eigenvalues are equal: derivatives of vectors are not finite there."""
    a = regular(x)
    return a + torch.diag_embed(3 * torch.arange(a.shape[-1], dtype=torch.float64)).to(a.dtype) * 3


@step
def transform(r):
    kind, dim, n, norm = r.choice(["fft", "ifft"]), r.choice([-1, -2]), r.choice([None, None, 1, 3, 4, 7]), r.choice(NORMS)
    return f"{kind} {dim} {n} {norm}", lambda x: getattr(torch.fft, kind)(x, n, dim, norm)


@step
def half(r):
    kind, dim, n, norm = r.choice(["rfft", "ihfft"]), r.choice([-1, -2]), r.choice([None, None, 1, 3, 4, 6]), r.choice(NORMS)
    return f"{kind} {dim} {n} {norm}", lambda x: getattr(torch.fft, kind)(real(x), n, dim, norm)


@step
def whole(r):
    kind, dim, n, norm = r.choice(["irfft", "hfft"]), r.choice([-1, -2]), r.choice([None, 1, 2, 5, 6]), r.choice(NORMS)
    return f"{kind} {dim} {n} {norm}", lambda x: getattr(torch.fft, kind)(cplx(x), n, dim, norm)


@step
def planes(r):
    kind, s, norm = r.choice(["fft2", "ifft2", "fftn", "ifftn"]), r.choice([None, None, (3, 4), (1, 5)]), r.choice(NORMS)
    return f"{kind} {s} {norm}", lambda x: getattr(torch.fft, kind)(x, s, (-2, -1), norm)


@step
def half_planes(r):
    norm, same = r.choice(NORMS), r.random() < 0.6
    return f"irfft2 rfft2 {norm} {same}", lambda x: torch.fft.irfft2(torch.fft.rfft2(real(x), norm=norm) * 1.5, s=real(x).shape[-2:] if same else None, norm=norm)


@step
def shift(r):
    kind, dim = r.choice(["fftshift", "ifftshift"]), r.choice([None, -1, -2])
    return f"{kind} {dim}", lambda x: getattr(torch.fft, kind)(x, dim)


@step
def frames(r):
    n, hop, centre, one = r.choice([4, 5, 8]), r.choice([1, 2, 3]), r.random() < 0.5, r.random() < 0.5
    window = torch.hann_window(n, dtype=torch.float64)

    def f(x):
        x = real(x).flatten(-2)
        z = torch.stft(x.reshape(-1, x.shape[-1]), n, hop, window=window.to(x.dtype), center=centre, onesided=one, return_complex=True, pad_mode="constant")
        return z.reshape(*x.shape[:-1], *z.shape[-2:])
    return f"stft {n} {hop} {centre} {one}", f


steps(
    inv=lambda x: L.inv(regular(x)),
    solve=lambda x: L.solve(regular(x), x),
    solve_right=lambda x: L.solve(regular(x), x.mT, left=False) if x.shape[-1] == x.shape[-2] else L.solve(regular(x), x),
    solve_vector=lambda x: L.solve(regular(x), x[..., 0:1]),
    cholesky=lambda x: L.cholesky(regular(x)),
    cholesky_upper=lambda x: L.cholesky(regular(x), upper=True),
    cholesky_solve=lambda x: torch.cholesky_solve(x, L.cholesky(regular(x))),
    cholesky_inverse=lambda x: torch.cholesky_inverse(L.cholesky(regular(x)).tril()),
    triangular=lambda x: L.solve_triangular(regular(x).tril(), x, upper=False),
    triangular_right=lambda x: L.solve_triangular(regular(x).triu(), x.mT, upper=True, left=False),
    unit=lambda x: L.solve_triangular(regular(x) * 0.3, x, upper=True, unitriangular=True),
    det=lambda x: L.det(regular(x))[..., None, None] * 0.1 + x,
    slogdet=lambda x: L.slogdet(regular(x))[1][..., None, None] + x,
    logdet=lambda x: torch.logdet(regular(real(x)))[..., None, None] + real(x),
    lu=lambda x: (lambda p, l, u: l + u)(*L.lu(regular(x))),
    lu_solve=lambda x: L.lu_solve(*L.lu_factor(regular(x)), x),
    lu_solve_adjoint=lambda x: L.lu_solve(*L.lu_factor(regular(x)), x, adjoint=True),
    qr=lambda x: (lambda q, r: q @ (r * 0.5))(*L.qr(torch.cat([regular(x), x * 0.5], -1).mH)),
    qr_square=lambda x: (lambda q, r: q @ r @ (r.mH @ r))(*L.qr(regular(x))),
    eigvalsh=lambda x: L.eigvalsh(regular(x))[..., None, :] + x.abs().sum((-1, -2), keepdim=True),
    eigh=lambda x: (lambda w, v: (v * w.sqrt()[..., None, :]) @ v.mH)(*L.eigh(distinct(x))),
    svdvals=lambda x: L.svdvals(x + 0.1)[..., None, :],
    svd=lambda x: (lambda u, s, v: u @ (s[..., None] * v))(*L.svd(x, full_matrices=False)),
    pinv=lambda x: L.pinv(regular(x)[..., :, :2]) if x.shape[-2] > 1 else L.pinv(regular(x)),
    matrix_exp=lambda x: L.matrix_exp(0.2 * regular(x)),
    matrix_power=lambda x: L.matrix_power(regular(x) * 0.5, 3),
    inverse_power=lambda x: L.matrix_power(regular(x), -2),
    cond=lambda x: L.cond(regular(x))[..., None, None] * 0.1 + x,
    norms=lambda x: L.matrix_norm(x, "nuc", keepdim=True) + L.matrix_norm(x, 2, keepdim=True) + L.matrix_norm(x, 1, keepdim=True) + L.vector_norm(x, dim=(-1, -2), keepdim=True),
    householder=lambda x: L.householder_product(regular(x).tril(), bounded(x)[..., :, 0]) if not x.is_complex() else x,
    multi_dot=lambda x: L.multi_dot([x, x.mH, x]) if x.dim() == 2 else x @ x.mH @ x,
    vander=lambda x: L.vander(bounded(x)[..., 0] * 0.5, N=4),
    kron=lambda x: torch.kron(x[..., :2, :1], x),
    absolute=lambda x: (x.abs().square() + 0.1).sqrt(),
    conjugate=lambda x: x.mH * 2,
    parts=lambda x: torch.cat([x.real, x.imag], -1) if x.is_complex() else x.sin(),
    complexed=lambda x: cplx(x) * (1 + 2j),
    sines=lambda x: x.sin() if not x.is_complex() else bounded(x).exp(),
    scan=lambda x: x.cumsum(-1) * 0.5,
    cut=lambda x: x[..., 1:, :] if x.shape[-2] > 1 else x,
    rows=lambda x: torch.cat([x, x.flip(-2)], -2),
    mean=lambda x: x - x.mean(-1, keepdim=True),
    outer=lambda x: x[..., :, :1] * x[..., :1, :],
    gram=lambda x: square(x),
    view=lambda x: real(x),
)


class Chain(torch.nn.Module):
    """Complex numbers are pairs outside: safetensors has no complex128."""

    def __init__(self, made, pairs):
        super().__init__()
        self.made, self.pairs = made, pairs

    def forward(self, x):
        x, all = torch.view_as_complex(x) if self.pairs else x, []
        for _, f in self.made:
            x = bounded(f(x))
            all.append(x.real.sum((-1, -2)) if x.is_complex() else x.sum((-1, -2)))
        return torch.view_as_real(x) if x.is_complex() else x, torch.stack(all, -1)


def results(model, x, cts):
    """Of the model at x: its outputs, and the gradient by x, none where nothing depends on x."""
    x = x.detach().requires_grad_()
    y = model(x)
    cts = [c.to(t.dtype) for c, t in zip(cts or [torch.randn(t.shape, dtype=torch.float64) for t in y], y)]
    torch.autograd.backward([t for t in y if t.requires_grad], [c for t, c in zip(y, cts) if t.requires_grad])
    return [t.detach() for t in y], x.grad, cts


def largest(t):
    return t.abs().max().item() if t.numel() else 0.0


def make(out, seed):
    r = random.Random(seed)
    torch.manual_seed(seed)
    made = [r.choice(STEPS if r.random() < 0.5 else random_families.STEPS)(r) for _ in range(r.randint(1, 6))]
    pairs, dtype = r.random() < 0.35, r.choice([torch.float64, torch.float64, torch.float32])
    rank, symbolic = r.choice([2, 3]), r.random() < 0.5
    shape = [r.randint(2, 6) for _ in range(rank)] if symbolic else [r.choice([1, 2, 3, 4, 5, 8]) for _ in range(rank)]
    if not symbolic and r.random() < 0.05:
        shape[0 if rank == 3 else r.randint(0, 1)] = 0
    model, last = Chain(made, pairs), [2] if pairs else []
    exported = export(model, (torch.randn(shape + last, dtype=dtype),), dynamic_shapes=({k: Dim.DYNAMIC for k in range(rank)},) if symbolic else None)
    if symbolic:
        shape = [r.choice([1, 2, 3, 5, 7, 9]) for _ in range(rank)]
    x = torch.randn(shape + last, dtype=dtype)
    try:
        exported.module(check_guards=True)(x)
    except Exception as e:
        raise ValueError(f"the export refuses: {str(e).splitlines()[0][:90]}") from e
    y, g, cts = results(model, x, None)
    if g is None or not g.isfinite().all() or not all(t.isfinite().all() for t in y):
        raise ValueError("not finite")
    allow = {key: "1e-6 1e-7 0" for key in ("allow.0", "allow.1", "allow.g.0")}
    if dtype == torch.float32:
        wide_y, wide_g, _ = results(model, x.double(), cts)
        if any(not torch.allclose(a.double(), b, 1e-2, 1e-2) for a, b in zip([*y, g], [*wide_y, wide_g])):
            raise ValueError("an error of float32 decides")
        errors = [max(largest(a.double() - b), 2e-6 * largest(b), 1e-6) for a, b in zip([*y, g], [*wide_y, wide_g])]
        allow = {"eager_err.0": str(errors[0]), "eager_err.1": str(errors[1]), "eager_grad_err": str(errors[2])}
        y, g = [t.to(dtype) for t in wide_y], wide_g.to(dtype)
    tensors = {"x.0": x, **{f"y.{i}": t for i, t in enumerate(y)}, **{f"ct.{i}": c for i, c in enumerate(cts)}, "g.0": g}
    torch.export.save(exported, out / f"{seed}.pt2")
    save_file({k: t.contiguous() for k, t in tensors.items()}, out / f"{seed}.safetensors",
              metadata={"program": json.dumps([str(name) for name, _ in made] + [str(shape), str(dtype)[6:], "complex" if pairs else "", "symbolic" if symbolic else ""]), **allow})


def program_of(reference):
    data = reference.read_bytes()
    return json.loads(data[8:8 + int.from_bytes(data[:8], "little")])["__metadata__"]["program"]


def check(weft, models, backend):
    """What is said of the models that differ or are refused, by model."""
    said = {}
    for mode in ([], ["--mode", "vjp"]):
        for model in models:
            ran = subprocess.run([weft, "check", model, model.with_suffix(".safetensors"), "--backend", backend, *mode], capture_output=True, text=True)
            if ran.returncode or not re.match("ok", ran.stdout):
                said[model] = f"{backend} {' '.join(mode)}: " + " / ".join((ran.stdout + ran.stderr).splitlines()[:4])
    return said


def search(options):
    """Batches of modules: made, checked, and deleted where they are right."""
    path = options.out / "state.json"
    state = json.loads(path.read_text()) if path.exists() else {"next": options.seed, "right": 0, "wrong": 0, "compiled": 0, "none": {}}
    while state["next"] < options.seed + options.count:
        models = []
        for seed in range(state["next"], min(state["next"] + 20, options.seed + options.count)):
            model = options.out / f"{seed}.pt2"
            why = attempt(options.out, seed)
            models += [model] if not why else []
            if why:
                state["none"][why] = state["none"].get(why, 0) + 1
        said = {}
        compiled = [m for m in models if int(m.stem) % options.compile == 0]
        for backend, chosen in (("interp", models), ("loops", models), ("jit", compiled)):
            said.update({m: text for m, text in check(options.weft, chosen, backend).items() if m not in said})
        with open(options.out / "found.txt", "a") as f:
            for model, text in said.items():
                print(f"{model.stem} {program_of(model.with_suffix('.safetensors'))} {text}", file=f)
        for model in models:
            if model not in said:
                model.unlink()
                model.with_suffix(".safetensors").unlink()
        state.update(next=state["next"] + 20, right=state["right"] + len(models) - len(said), wrong=state["wrong"] + len(said), compiled=state["compiled"] + len(compiled))
        path.write_text(json.dumps(state, indent=1))
    print(f"{state['right']} modules right in values and gradients ({state['compiled']} compiled), {state['wrong']} not")
    return state["none"]


def attempt(out, seed):
    """Makes the module of the seed, or says why there is none."""
    try:
        make(out, seed)
        return None
    except Exception as e:
        return f"{type(e).__name__}: {str(e).splitlines()[0][:100] if str(e) else ''}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=Path)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--count", type=int, default=100)
    p.add_argument("--weft", type=Path)
    p.add_argument("--compile", type=int, default=4)
    args = p.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    why = {}
    if args.weft:
        why = search(args)
    else:
        reasons = [attempt(args.out, seed) for seed in range(args.seed, args.seed + args.count)]
        print(f"{reasons.count(None)} modules")
        for text in filter(None, reasons):
            why[text] = why.get(text, 0) + 1
    for text, n in sorted(why.items(), key=lambda e: -e[1]):
        print(f"  none {n} times: {text}")


if __name__ == "__main__":
    main()
