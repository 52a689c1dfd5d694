"""Random modules of transforms and factorisations with PyTorch's results: random_algebra.py OUT --seed N --count N
Makes OUT/SEED.pt2 and OUT/SEED.safetensors, for `weft check OUT` and `weft check OUT --mode vjp`: a chain of one to six steps of
torch.fft, torch.linalg, stft and what lies between them, of f64 and complex128, whose results no phase or sign of a vector
changes. Half of the modules have symbolic sizes and are run at other sizes than they were exported with, 1 among them; the
others have sizes of 0 and 1, too. What PyTorch itself refuses gives no module. Needs torch and safetensors."""
import argparse
import json
import random
import warnings
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import linalg as L
from torch.export import Dim, export

warnings.filterwarnings("ignore")
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


def real(x):
    return torch.view_as_real(x).flatten(-2) if x.is_complex() else x


def cplx(x):
    return x if x.is_complex() else torch.complex(x, x.flip(-1))


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
        z = torch.stft(x.reshape(-1, x.shape[-1]), n, hop, window=window, center=centre, onesided=one, return_complex=True, pad_mode="constant")
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


def make(out, seed):
    r = random.Random(seed)
    torch.manual_seed(seed)
    made = [r.choice(STEPS)(r) for _ in range(r.randint(1, 6))]
    pairs = r.random() < 0.35
    rank, symbolic = r.choice([2, 3]), r.random() < 0.5
    shape = [r.randint(2, 6) for _ in range(rank)] if symbolic else [r.choice([1, 2, 3, 4, 5, 8]) for _ in range(rank)]
    if not symbolic and r.random() < 0.05:
        shape[0 if rank == 3 else r.randint(0, 1)] = 0
    model, last = Chain(made, pairs), [2] if pairs else []
    exported = export(model, (torch.randn(shape + last, dtype=torch.float64),), dynamic_shapes=({k: Dim.DYNAMIC for k in range(rank)},) if symbolic else None)
    if symbolic:
        shape = [r.choice([1, 2, 3, 5, 7, 9]) for _ in range(rank)]
    x = torch.randn(shape + last, dtype=torch.float64, requires_grad=True)
    y = model(x)
    try:
        exported.module(check_guards=True)(x.detach())
    except Exception as e:
        raise ValueError(f"the export refuses: {str(e).splitlines()[0][:90]}") from e
    cts = [torch.randn_like(t.detach()) for t in y]
    torch.autograd.backward([t for t in y if t.requires_grad], [c for t, c in zip(y, cts) if t.requires_grad])
    tensors = {"x.0": x.detach(), **{f"y.{i}": t.detach() for i, t in enumerate(y)}, **{f"ct.{i}": c for i, c in enumerate(cts)}}
    if x.grad is None or not x.grad.isfinite().all() or not all(t.isfinite().all() for t in y):
        raise ValueError("not finite")
    tensors["g.0"] = x.grad
    torch.export.save(exported, out / f"{seed}.pt2")
    allow = {key: "1e-6 1e-7 0" for key in ("allow.0", "allow.1", "allow.g.0")}
    save_file({k: t.contiguous() for k, t in tensors.items()}, out / f"{seed}.safetensors",
              metadata={"program": json.dumps([str(name) for name, _ in made] + [str(shape), "complex" if pairs else "", "symbolic" if symbolic else ""]), **allow})


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=Path)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--count", type=int, default=100)
    args = p.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    made, why = 0, {}
    for seed in range(args.seed, args.seed + args.count):
        try:
            make(args.out, seed)
            made += 1
        except Exception as e:
            text = f"{type(e).__name__}: {str(e).splitlines()[0][:100] if str(e) else ''}"
            why[text] = why.get(text, 0) + 1
    print(f"{made} modules")
    for text, n in sorted(why.items(), key=lambda e: -e[1]):
        print(f"  none {n} times: {text}")


if __name__ == "__main__":
    main()
