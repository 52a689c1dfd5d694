"""Random modules of transforms and factorisations with PyTorch's results: random_algebra.py OUT --seed N --count N [--weft WEFT]
Makes OUT/SEED.pt2 and OUT/SEED.safetensors, for `weft check OUT` and `weft check OUT --mode vjp`: a chain of one to six steps, half
of them of torch.fft, torch.linalg and stft, half of what lies beside those in models, of f64, complex128, f32 and complex64, whose
results no phase or sign of a vector changes. Half of the modules have symbolic sizes and are run at other sizes than they were exported with, 1 among them;
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
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import linalg as L
from torch.export import Dim, export

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)  # what a fake tensor refuses is counted
NORMS = (None, "ortho", "forward", "backward")
STEPS, OTHERS = [], []


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


def real(x):
    return torch.view_as_real(x).flatten(-2) if x.is_complex() else x


def cplx(x):
    return x if x.is_complex() else torch.complex(x, x.flip(-1))


def bounded(x):
    """Of about the size 1, so that no chain overflows; differentiable where x is 0, which may be noise in PyTorch."""
    return x / (1 + (x.abs().square().sum((-1, -2), keepdim=True) + 0.01).sqrt()) * 3


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


def other(f):
    OTHERS.append(f)
    return f


def others(*around, **functions):
    """Steps of OTHERS without choices of their own: of x, behind the functions `around`."""
    for name, f in functions.items():
        OTHERS.append(named(name, composed(f, around)))


def composed(f, around):
    def step(x):
        for g in around:
            x = g(x)
        return f(x)
    return step


def weights(r, *shape):
    """Constants of the model, the same for a seed."""
    made = torch.Generator().manual_seed(r.randrange(1 << 30))
    return torch.randn(*shape, generator=made, dtype=torch.float64) * 0.5


def images(x):
    return x.reshape(-1, 1, *x.shape[-2:])


def like(x, images):
    """Images of images(x) as x was."""
    return images.reshape(*x.shape[:-2], *images.shape[-2:])


def counting(n, x):
    return torch.arange(n, device=x.device)


@other
def convolution(r):
    stride, padding, dilation, w = r.choice([1, 2]), r.choice([1, 2]), r.choice([1, 1, 2]), weights(r, 1, 1, 2, 3)

    def f(x):
        return like(x, F.conv2d(images(x), w.to(x.dtype), None, stride, padding, dilation))
    return f"conv2d {stride} {padding} {dilation}", f


@other
def lines(r):
    groups, w = r.choice([1, 2]), weights(r, 4, 1, 3)

    def f(x):
        rows = torch.stack([x, x.flip(-1)], -2).flatten(-3, -2).reshape(-1, 2, x.shape[-1])
        v = w.to(x.dtype) if groups == 2 else torch.cat([w, w.flip(0)], 1).to(x.dtype)
        return F.conv1d(rows, v, padding=1, groups=groups).reshape(*x.shape[:-2], -1, x.shape[-1])
    return f"conv1d {groups}", f


@other
def backward_convolution(r):
    stride, w = r.choice([1, 2]), weights(r, 1, 1, 2, 3)

    def f(x):
        x = real(x)
        return like(x, F.conv_transpose2d(images(x), w.to(x.dtype), None, stride, padding=(0, 1)))
    return f"conv_transpose2d {stride}", f


@other
def pooling(r):
    kind, stride = r.choice(["max_pool2d", "avg_pool2d", "lp_pool2d"]), r.choice([1, 2])

    def f(x):
        x = F.pad(real(x), (0, 1, 0, 1), value=0.5)
        y = images(x)
        y = F.lp_pool2d(y.abs() + 0.1, 2.0, 2, stride) if kind == "lp_pool2d" else getattr(F, kind)(y, 2, stride)
        return like(x, y)
    return f"{kind} {stride}", f


@other
def resized(r):
    mode, corners = r.choice(["nearest", "bilinear", "bicubic", "area"]), r.random() < 0.5
    scale = r.choice([2.0, 1.5])

    def f(x):
        x = real(x)
        return like(x, F.interpolate(images(x), scale_factor=scale, mode=mode, align_corners=corners if mode.startswith("bi") else None))
    return f"interpolate {mode} {corners} {scale}", f


@other
def padded(r):
    mode, a, b = r.choice(["constant", "replicate", "circular", "reflect"]), r.choice([0, 1]), r.choice([0, 1, 2])

    def f(x):
        if mode == "constant":
            return F.pad(x, (a, b, b, a), value=0.25)
        x = torch.cat([real(x)] * 2, -1)
        return like(x, F.pad(images(x), (a, min(b, 1), 0, 0), mode=mode))
    return f"pad {mode} {a} {b}", f


@other
def ordered(r):
    kind, dim, down = r.choice(["sort", "argsort", "topk", "kthvalue", "median", "cummax", "unique"]), r.choice([-1, -2]), r.random() < 0.5

    def f(x):
        x = real(x)
        if kind == "sort":
            return x.sort(dim, descending=down, stable=True)[0]
        if kind == "argsort":
            return x.gather(dim, x.argsort(dim, descending=down)) * 2
        if kind == "topk":
            return x.topk(1, dim, largest=down)[0]
        if kind == "kthvalue":
            return x.kthvalue(1, dim, keepdim=True)[0]
        if kind == "median":
            return x.median(dim, keepdim=True)[0] + x
        if kind == "cummax":
            return x.cummax(dim)[0] + x.cummin(dim)[0]
        return x * (x.sort(dim)[0] > 0.1)
    return f"{kind} {dim} {down}", f


@other
def reduced(r):
    kind, dim, keep = r.choice(["sum", "mean", "amax", "amin", "prod", "std", "logsumexp", "norm1", "norm3", "var_mean"]), r.choice([-1, -2]), r.random() < 0.5

    def f(x):
        if kind in ("sum", "mean", "prod"):
            y = getattr(x, kind)(dim, keepdim=True)
        else:
            x = real(x)
            if kind == "std":
                y = (x.var(dim, correction=0, keepdim=True) + 0.1).sqrt()
            elif kind == "var_mean":
                v, m = torch.var_mean(x, dim, correction=0, keepdim=True)
                y = v - m
            elif kind.startswith("norm"):
                y = torch.linalg.vector_norm(x, float(kind[4:]), dim, keepdim=True)
            else:
                y = getattr(x, kind)(dim, keepdim=True)
        return y * x if keep else y
    return f"{kind} {dim} {keep}", f


@other
def accumulated(r):
    kind, dim = r.choice(["cumsum", "cumprod", "logcumsumexp", "diff", "trapezoid"]), r.choice([-1, -2])

    def f(x):
        if kind == "logcumsumexp":
            return real(x).logcumsumexp(dim)
        if kind == "trapezoid":
            return torch.trapezoid(x, dim=dim).unsqueeze(dim) + x
        if kind == "diff":
            return x.diff(dim=dim, prepend=x.narrow(dim, 0, 1))
        return getattr(x, kind)(dim)
    return f"{kind} {dim}", f


@other
def indexed(r):
    kind, by, add = r.choice(["index_select", "index", "gather", "index_add", "scatter_add", "scatter_reduce", "index_put", "take_along"]), r.choice([2, 3]), r.choice([0, 1, 5])
    reduce = r.choice(["amax", "mean", "sum", "prod", "amin"])

    def f(x):
        n = x.shape[-1]
        i = (counting(n, x) * by + add) % n
        if kind == "index_select":
            return x.index_select(-1, i)
        if kind == "index":
            return x[..., i]
        if kind == "gather":
            return x.gather(-1, i.expand(x.shape))
        if kind == "take_along":
            return torch.take_along_dim(x, i.expand(x.shape), -1)
        if kind == "index_add":
            return x.index_add(-1, i, x * 2, alpha=0.5)
        if kind == "scatter_add":
            return x.scatter_add(-1, i.expand(x.shape), x.flip(-1))
        if kind == "index_put":
            return x.mT.contiguous().flatten(1).index_put((i,), x.mT.flatten(1) * 3, accumulate=True).reshape(x.mT.shape) if x.dim() == 2 else x[..., i]
        x = real(x)
        i = ((counting(x.shape[-1], x) * by + add) % x.shape[-1]).expand(x.shape)
        return x.scatter_reduce(-1, i, x.sin() + 0.5, reduce=reduce, include_self=True)
    return f"{kind} {by} {add} {reduce}", f


@other
def repeated(r):
    kind = r.choice(["repeat", "interleave", "roll", "expand", "tile", "rot90", "stack"])

    def f(x):
        if kind == "repeat":
            return x.repeat(*[1] * (x.dim() - 1), 2)
        if kind == "interleave":
            return x.repeat_interleave(2, -2)
        if kind == "roll":
            return x.roll((1, 2), (-1, -2))
        if kind == "tile":
            return x.tile(2, 1)
        if kind == "rot90":
            return x.rot90(1, (-1, -2))
        if kind == "stack":
            return torch.stack([x, x * 2, x.flip(-1)], -1).flatten(-2)
        return (x.unsqueeze(-2).expand(*x.shape[:-1], 3, x.shape[-1]) * 0.5).flatten(-3, -2)
    return kind, f


@other
def chosen(r):
    kind, value = r.choice(["where", "masked_fill", "tril", "triu", "clamp", "diagonal", "masked_select", "threshold"]), r.choice([-0.3, 0.0, 0.4])

    def f(x):
        if kind in ("tril", "triu"):
            return getattr(x, kind)(r_shift)
        if kind == "diagonal":
            return torch.diag_embed(x.diagonal(dim1=-2, dim2=-1)) + 0.1
        if kind == "where":
            return torch.where(real_part(x) > value, x, x * x)
        if kind == "masked_fill":
            return x.masked_fill(real_part(x) > value, value)
        x = real(x)
        if kind == "masked_select":
            return x * (x > value).sum((-1, -2), keepdim=True)
        return x.clamp(value - 0.2, value + 0.7) if kind == "clamp" else F.threshold(x, value, 0.2)
    r_shift = r.choice([-1, 0, 1])
    return f"{kind} {value} {r_shift}", f


def real_part(x):
    return x.real if x.is_complex() else x


@other
def recurrent(r):
    w, u = weights(r, 3, 1), weights(r, 3, 3)

    def f(x):
        h = torch.zeros(*x.shape[:-1], 3, dtype=x.dtype)
        for k in range(2):
            h = torch.tanh(x[..., :1] @ w.to(x.dtype).T + h @ u.to(x.dtype).T) if not x.is_complex() else x[..., :1] * w.to(x.dtype).flatten() + h @ u.to(x.dtype).T
        return h
    return "recurrence", f


@other
def normed(r):
    kind, w = r.choice(["layer", "rms", "group", "batch", "instance"]), weights(r, 2)

    def f(x):
        x = real(x)
        if kind == "layer":
            return F.layer_norm(x, x.shape[-1:], eps=0.1)
        if kind == "rms":
            return F.rms_norm(x, x.shape[-1:], eps=0.1)
        two = torch.stack([images(x)[:, 0], images(x)[:, 0].cos()], 1)
        if kind == "group":
            return F.group_norm(two, 1, w.to(x.dtype), eps=0.1).sum(1).reshape(x.shape)
        if kind == "batch":
            return F.batch_norm(two, w.to(x.dtype), w.abs().to(x.dtype) + 1, eps=0.1).sum(1).reshape(x.shape)
        return F.instance_norm(two, eps=0.1).sum(1).reshape(x.shape) if x.shape[-1] * x.shape[-2] > 1 else x
    return f"{kind}_norm", f


others(
    attention=lambda x: F.scaled_dot_product_attention(real(x), real(x) * 0.5, real(x).cos()),
    causal=lambda x: F.scaled_dot_product_attention(real(x), real(x) * 0.5, real(x).cos(), is_causal=True),
    einsum=lambda x: torch.einsum("...ij,...kj->...ik", x, x * 0.5),
    triple=lambda x: torch.einsum("...ij,...kj,...kl->...il", x, x * 0.5, x),
    vmap=lambda x: torch.vmap(lambda row: row.cumsum(-1) * row.sum())(x),
    vmap_transform=lambda x: torch.vmap(lambda row: torch.fft.fft(row) * 0.5)(x),
    addmm=lambda x: torch.matmul(x, x.mT) * 0.5 + x.sum((-1, -2), keepdim=True),
    polar=lambda x: torch.polar(real(x).abs() + 0.1, real(x)),
    angle=lambda x: torch.angle(cplx(x) + 2),
    sign=lambda x: torch.sgn(x) * 0.3 + x,
    divide=lambda x: x / (cplx(x).abs() + 1),
    complex_division=lambda x: 1 / (cplx(x) + 3) + cplx(x) / (2 + 1j),
    complex_powers=lambda x: (cplx(x) * 0.3 + 2) ** 2.5 + (cplx(x) * 0.3 + 2) ** 3,
    complex_functions=lambda x: (cplx(x) * 0.3).tanh() + (cplx(x) * 0.3 + 2).log() + (cplx(x) * 0.2 + 1).sqrt(),
    cat_parts=lambda x: torch.cat([cplx(x), cplx(x).conj()], -2),
    selected=lambda x: torch.stack([x.select(-1, 0), x.select(-1, -1)], -1),
    strided=lambda x: x[..., ::2, :] * 0.7,
    split=lambda x: torch.cat([p * (k + 1) for k, p in enumerate(x.chunk(2, -1))], -1),
    unfolded=lambda x: torch.cat([x, x], -1).unfold(-1, 2, 1).flatten(-2),
    reshaped=lambda x: x.flatten(-2).unsqueeze(-2) * 0.5,
    folded=lambda x: x.mT.reshape(x.shape) + x,
)
others(
    real,
    softmax=lambda x: x.softmax(-1),
    softmax_rows=lambda x: x.softmax(-2) * x,
    log_softmax=lambda x: x.log_softmax(-1),
    gelu=lambda x: F.gelu(x) + F.silu(x),
    erf=lambda x: torch.erf(x) + torch.erfinv(x.tanh() * 0.5),
    gammas=lambda x: torch.lgamma(x.abs() + 1.5) + torch.digamma(x.abs() + 1.5),
    bessel=lambda x: torch.special.i0e(x) + torch.special.i1(x * 0.5),
    atan2=lambda x: torch.atan2(x, x.flip(-1).abs() + 0.3),
    hypot=lambda x: torch.hypot(x, x.flip(-2) + 2),
    logaddexp=lambda x: torch.logaddexp(x, x.flip(-1) * 0.5),
    rounded=lambda x: x - x.floor() + x.round() * 0.5,
    remainder=lambda x: torch.remainder(x, 0.7) + torch.fmod(x, 0.3),
    lerp=lambda x: torch.lerp(x, x.flip(-1), 0.3) + torch.addcmul(x, x, x.flip(-2), value=0.2),
    powers=lambda x: (x.abs() + 0.5) ** 1.7 + x ** 3 + 2.0 ** x,
    distances=lambda x: torch.cdist(x, x.flip(-2) * 0.5 + 1),
    distances_1=lambda x: torch.cdist(x, x * 0.5 + 1, p=1.0),
    covariance=lambda x: torch.cov(x.flatten(0, -2), correction=0) if x.shape[-1] > 1 else x,
    maximum=lambda x: torch.maximum(x, x.flip(-1) * 0.9) + torch.fmin(x, x.flip(-2) * 0.8),
    one_hot=lambda x: F.one_hot(x.argmax(-1) % 4, 4).to(x.dtype) + x.amax(-1, keepdim=True),
    bucketed=lambda x: x * torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5], dtype=x.dtype)).to(x.dtype),
    embedding=lambda x: F.embedding(x.argmax(-1) % x.shape[-2], x.flatten(0, -2)),
    counted=lambda x: x * (x > 0).sum(-1, keepdim=True) + (x > 0).any(-2, keepdim=True),
    prelu=lambda x: F.prelu(x, torch.tensor([0.2], dtype=x.dtype)) + F.elu(x) + F.softplus(x),
    huber=lambda x: F.huber_loss(x, x.flip(-1), reduction="none") + F.smooth_l1_loss(x, x.flip(-2), reduction="none"),
    cross=lambda x: torch.linalg.cross(x[..., :1].expand(*x.shape[:-1], 3) + torch.tensor([1.0, 2.0, 3.0], dtype=x.dtype), x[..., -1:].expand(*x.shape[:-1], 3).sin() + torch.tensor([0.0, 1.0, 0.5], dtype=x.dtype)),
    grid=lambda x: like(x, F.grid_sample(images(x), F.affine_grid(torch.tensor([[[0.8, 0.1, 0.1], [-0.1, 0.9, 0.0]]], dtype=x.dtype).expand(images(x).shape[0], 2, 3), list(images(x).shape), align_corners=False), align_corners=False)),
)


class Chain(torch.nn.Module):
    """Complex numbers are pairs outside: safetensors has no complex128. With `noise`, the steps round as well as PyTorch may."""

    def __init__(self, made, pairs):
        super().__init__()
        self.made, self.pairs, self.noise = made, pairs, 0.0

    def forward(self, x):
        x, all = torch.view_as_complex(x) if self.pairs else x, []
        for _, f in self.made:
            x = f(x)
            x = bounded(x + self.noise * torch.randn_like(x) if self.noise else x)
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
    made = [r.choice(STEPS if r.random() < 0.5 else OTHERS)(r) for _ in range(r.randint(1, 6))]
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
        again = exported.module(check_guards=True)(x)
    except Exception as e:
        raise ValueError(f"the export refuses: {str(e).splitlines()[0][:90]}") from e
    y, g, cts = results(model, x, None)
    if [t.shape for t in again] != [t.shape for t in y]:
        raise ValueError("the export took a branch that the module does not take at these sizes")
    if g is None or not g.isfinite().all() or not all(t.isfinite().all() for t in y):
        raise ValueError("not finite")
    model.noise = torch.finfo(dtype).eps
    for _ in range(3):  # zeros of a sum, such as an imaginary part of a real result, have either sign
        near_y, near_g, _ = results(model, x * (1 + model.noise * torch.randn_like(x)), cts)
        if any(not torch.allclose(a, b, 1e-2, 1e-2) for a, b in zip([*y, g], [*near_y, near_g])):
            raise ValueError("an error of rounding decides")
    model.noise = 0.0
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
