#!/usr/bin/env python3
"""One small model of each family of operators that issue 31 names, from torch, torchvision and transformers: writes
FOLDER/NAME.pt2 and FOLDER/NAME.safetensors, which `weft check FOLDER [--mode vjp]` compares.

    PYTHON tests/make/make_families.py FOLDER [NAME...]

A reference holds x.<i>, y.<i> and, where the model is differentiable, ct.<i>, g.<i> and gp.PARAMETER. Values of models of
f32 are those of the same model in f64, rounded; eager_err.<i> and eager_grad_err say how far f32 in eager mode is from them.
Models with in_f64=False have operators that PyTorch has in f32 only: their values are those of eager mode. A name that ends in
_dyn has symbolic sizes and is exported with other sizes than its reference has."""
import copy
import math
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch.export import Dim, export

from families_networks import NETWORKS

MAKERS = dict(NETWORKS)


def family(f):
    MAKERS[f.__name__] = f
    return f


class Fn(nn.Module):
    """A function, and the tensors it is trained with."""

    def __init__(self, f, **parameters):
        super().__init__()
        self.f = f
        for name, x in parameters.items():
            self.register_parameter(name, nn.Parameter(x))

    def forward(self, *x):
        return self.f(self, *x)


# ---- neural operators ----

class SpectralConv2d(nn.Module):
    def __init__(self, channels, modes):
        super().__init__()
        self.modes = modes
        self.low = nn.Parameter(torch.randn(channels, channels, modes, modes, dtype=torch.cfloat) / channels)
        self.high = nn.Parameter(torch.randn(channels, channels, modes, modes, dtype=torch.cfloat) / channels)

    def forward(self, x):
        m, n = self.modes, x.shape[-2:]
        z = torch.fft.rfft2(x)
        out = torch.zeros_like(z)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", z[:, :, :m, :m], self.low)
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", z[:, :, -m:, :m], self.high)
        return torch.fft.irfft2(out, s=n)


class Fno(nn.Module):
    def __init__(self, channels=6, modes=3):
        super().__init__()
        self.lift = nn.Linear(3, channels)
        self.spectral = nn.ModuleList(SpectralConv2d(channels, modes) for _ in range(2))
        self.local = nn.ModuleList(nn.Conv2d(channels, channels, 1) for _ in range(2))
        self.project = nn.Linear(channels, 1)

    def forward(self, x):
        n, m = x.shape[1:3]
        grid = torch.stack(torch.meshgrid(*(torch.arange(k, dtype=x.dtype) / (k - 1) for k in (n, m)), indexing="ij"), -1)
        x = torch.cat([x, grid.expand(x.shape[0], -1, -1, -1)], -1)
        x = self.lift(x).permute(0, 3, 1, 2)
        for s, w in zip(self.spectral, self.local):
            x = F.gelu(s(x) + w(x))
        return self.project(x.permute(0, 2, 3, 1))


@family
def fno():
    return Fno(), (torch.randn(2, 12, 10, 1),), {}


@family
def fno_dyn():
    return Fno(), (torch.randn(2, 12, 10, 1),), dict(dynamic=({1: Dim.DYNAMIC, 2: Dim.DYNAMIC},), at=(torch.randn(2, 15, 17, 1),))


@family
def fourier_mixing():
    """FNet's token mixing."""
    return nn.Sequential(nn.LayerNorm(8), Fn(lambda s, x: torch.fft.fft2(x, dim=(-2, -1)).real + x), nn.Linear(8, 8)), (torch.randn(2, 7, 8),), {}


@family
def long_convolution():
    """S4, Hyena: a convolution as long as the sequence, padded to twice the length."""
    def f(s, x):
        n = x.shape[-1]
        k = torch.fft.rfft(s.kernel * torch.exp(-s.decay.exp()[:, None] * torch.arange(n, dtype=x.dtype)), n=2 * n)
        return torch.fft.irfft(torch.fft.rfft(x, n=2 * n) * k, n=2 * n)[..., :n] + s.skip[:, None] * x
    return Fn(f, kernel=torch.randn(3, 20), decay=torch.randn(3) - 2, skip=torch.randn(3)), (torch.randn(2, 3, 20),), {}


@family
def global_filter():
    """GFNet: a filter learned in frequency."""
    def f(s, x):
        z = torch.fft.rfft2(x, dim=(1, 2), norm="ortho") * torch.view_as_complex(s.weight)
        return torch.fft.irfft2(z, s=(x.shape[1], x.shape[2]), dim=(1, 2), norm="ortho")
    return Fn(f, weight=torch.randn(6, 4, 5, 2)), (torch.randn(2, 6, 6, 5),), {}


@family
def autocorrelation():
    """Autoformer: series that agree best with themselves, shifted."""
    def f(s, q, k, v):
        corr = torch.fft.irfft(torch.fft.rfft(q) * torch.conj(torch.fft.rfft(k)), n=q.shape[-1])
        w, delay = torch.topk(corr.mean(1), 3, dim=-1)
        w = torch.softmax(w, -1)
        n, twice = q.shape[-1], v.repeat(1, 1, 2)
        out = torch.zeros_like(v)
        for i in range(3):
            index = (torch.arange(n)[None, :] + delay[:, i:i + 1])[:, None, :].expand(-1, v.shape[1], -1)
            out = out + torch.gather(twice, -1, index) * w[:, i, None, None]
        return out
    return Fn(f), tuple(torch.randn(2, 4, 16) for _ in range(3)), {}


@family
def poisson_solver():
    """A periodic Poisson equation by FFT."""
    def f(s, x):
        n = x.shape[-1]
        k = torch.fft.fftfreq(n, 1 / n, dtype=x.dtype) * s.scale
        size = k[:, None] ** 2 + k[None, :] ** 2
        z = torch.where(size == 0, torch.zeros_like(size), 1 / torch.where(size == 0, torch.ones_like(size), size))
        return torch.fft.ifft2(torch.fft.fft2(x) * -z).real
    return Fn(f, scale=torch.tensor(1.1)), (torch.randn(3, 9, 9),), {}


# ---- Gaussian processes and other algebra ----

def rbf(s, a, b):
    d = (a[..., :, None, :] - b[..., None, :, :]) / s.length.exp()
    return s.size.exp() * torch.exp(-0.5 * d.square().sum(-1))


def gp_posterior(s, x, y, at):
    k = rbf(s, x, x) + s.noise.exp() * torch.eye(x.shape[-2], dtype=x.dtype)
    l = torch.linalg.cholesky(k)
    alpha = torch.cholesky_solve(y[..., None], l)
    across = rbf(s, at, x)
    v = torch.linalg.solve_triangular(l, across.mT, upper=False)
    return (across @ alpha)[..., 0], s.size.exp() - v.square().sum(-2)


def gp_evidence(s, x, y):
    k = rbf(s, x, x) + s.noise.exp() * torch.eye(x.shape[-2], dtype=x.dtype)
    l = torch.linalg.cholesky(k)
    half = torch.linalg.solve_triangular(l, y[..., None], upper=False)
    return 0.5 * half.square().sum((-1, -2)) + l.diagonal(dim1=-2, dim2=-1).log().sum(-1) + 0.5 * x.shape[-2] * math.log(2 * math.pi)


def hyper():
    return dict(length=torch.tensor([0.1, -0.2]), size=torch.tensor(0.3), noise=torch.tensor(-1.5))


@family
def gp():
    return Fn(gp_posterior, **hyper()), (torch.randn(12, 2), torch.randn(12), torch.randn(5, 2)), {}


@family
def gp_dyn():
    n, m = Dim("n", min=2, max=64), Dim("m", min=2, max=64)
    return Fn(gp_posterior, **hyper()), (torch.randn(12, 2), torch.randn(12), torch.randn(5, 2)), dict(
        dynamic=({0: n}, {0: n}, {0: m}), at=(torch.randn(19, 2), torch.randn(19), torch.randn(3, 2)))


@family
def gp_evidence_batch():
    return Fn(gp_evidence, **hyper()), (torch.randn(3, 9, 2), torch.randn(3, 9)), {}


@family
def multivariate_normal():
    def f(s, x):
        d = torch.distributions.MultivariateNormal(s.mean, scale_tril=torch.tril(s.scale, -1) + torch.diag(F.softplus(torch.diagonal(s.scale))), validate_args=False)
        return d.log_prob(x), d.entropy()
    return Fn(f, mean=torch.randn(4), scale=torch.randn(4, 4)), (torch.randn(6, 4),), {}


@family
def kalman():
    """Some steps of a Kalman filter: solutions and inverses in a row."""
    def f(s, y):
        m, p, eye = torch.zeros(3, dtype=y.dtype), torch.eye(3, dtype=y.dtype), torch.eye(3, dtype=y.dtype)
        total = 0
        for t in range(y.shape[0]):
            m, p = s.a @ m, s.a @ p @ s.a.T + 0.1 * eye
            innovation = s.h @ p @ s.h.T + 0.2 * torch.eye(2, dtype=y.dtype)
            r = y[t] - s.h @ m
            gain = torch.linalg.solve(innovation, s.h @ p).T
            total = total + r @ torch.linalg.inv(innovation) @ r + torch.logdet(innovation)
            m, p = m + gain @ r, (eye - gain @ s.h) @ p
        return m, p, total
    return Fn(f, a=torch.eye(3) + 0.1 * torch.randn(3, 3), h=torch.randn(2, 3)), (torch.randn(5, 2),), {}


@family
def whitening():
    """ZCA by eigh, and Newton-Schulz beside it."""
    def f(s, x):
        x = x - x.mean(0)
        c = x.T @ x / x.shape[0] + 0.1 * torch.eye(x.shape[1], dtype=x.dtype)
        w, v = torch.linalg.eigh(c)
        return x @ (v * w.rsqrt()) @ v.T @ s.weight
    return Fn(f, weight=torch.randn(5, 5)), (torch.randn(20, 5),), {}


@family
def procrustes():
    """The rotation that fits two sets of points, by singular vectors."""
    def f(s, a, b):
        a, b = a @ s.weight, b - b.mean(-2, keepdim=True)
        u, _, vh = torch.linalg.svd((a - a.mean(-2, keepdim=True)).mT @ b)
        d = torch.sign(torch.linalg.det(u @ vh))
        r = u @ torch.diag_embed(torch.stack([torch.ones_like(d), torch.ones_like(d), d], -1)) @ vh
        return (a @ r - b).square().sum((-1, -2))
    return Fn(f, weight=torch.eye(3) + 0.1 * torch.randn(3, 3)), (torch.randn(4, 8, 3), torch.randn(4, 8, 3)), {}


@family
def low_rank():
    def f(s, x):
        u, v, w = torch.linalg.svd(x, full_matrices=False)
        return (u[..., :2] * v[..., None, :2]) @ w[..., :2, :], torch.linalg.matrix_norm(x, "nuc"), torch.linalg.matrix_norm(x, 2)
    return Fn(f), (torch.randn(2, 6, 5),), {}


@family
def orthogonal():
    """torch.nn.utils.parametrizations.orthogonal by matrix_exp, Cayley and Householder reflections."""
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = (nn.utils.parametrizations.orthogonal(nn.Linear(5, 5), "weight", m) for m in ("matrix_exp", "cayley", "householder"))

        def forward(self, x):
            return self.c(torch.tanh(self.b(torch.tanh(self.a(x)))))
    return M(), (torch.randn(3, 5),), {}


@family
def spectral_normalisation():
    m = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(5, 7)), nn.Tanh(), nn.utils.parametrizations.spectral_norm(nn.Conv1d(7, 3, 1)) if False else nn.Linear(7, 3))
    return m.eval(), (torch.randn(3, 5),), {}


@family
def normalising_flow():
    """An invertible 1x1 convolution (Glow), with slogdet and the inverse."""
    def f(s, x):
        y = torch.einsum("oi,bihw->bohw", s.weight, x)
        return y, x.shape[2] * x.shape[3] * torch.linalg.slogdet(s.weight)[1], torch.einsum("oi,bihw->bohw", torch.linalg.inv(s.weight), y)
    return Fn(f, weight=torch.linalg.qr(torch.randn(4, 4))[0] + 0.1 * torch.randn(4, 4)), (torch.randn(2, 4, 3, 3),), {}


@family
def least_squares():
    """Ridge regression by the normal equations, by QR, and by pinv."""
    def f(s, x, y):
        x = x * s.scale
        q, r = torch.linalg.qr(x)
        return (torch.linalg.solve_triangular(r, q.T @ y, upper=True), torch.linalg.pinv(x) @ y,
                torch.linalg.solve(x.T @ x + 0.1 * torch.eye(x.shape[1], dtype=x.dtype), x.T @ y))
    return Fn(f, scale=torch.rand(4) + 0.5), (torch.randn(11, 4), torch.randn(11, 2)), {}


@family
def matrix_functions():
    def f(s, x):
        a = x @ x.mT + torch.eye(x.shape[-1], dtype=x.dtype)
        return torch.linalg.matrix_exp(0.3 * x), torch.linalg.matrix_power(a, -2), torch.linalg.cond(a), torch.linalg.multi_dot([x[0], a[0], x[1]])
    return Fn(f), (torch.randn(2, 4, 4),), {}


@family
def graph_spectrum():
    """Laplacian eigenvectors as positions: projections, which no sign changes."""
    def f(s, a):
        a = torch.sigmoid(a + a.mT) * (1 - torch.eye(a.shape[-1], dtype=a.dtype))
        d = a.sum(-1)
        w, v = torch.linalg.eigh(torch.diag_embed(d) - a)
        return w, (v * torch.exp(-s.time * w)[..., None, :]) @ v.mT
    return Fn(f, time=torch.tensor(0.7)), (torch.randn(2, 7, 7),), {}


# ---- audio ----

def hz_to_mel(f):
    return 2595.0 * math.log10(1 + f / 700)


def mel_filters(bins, n_mels, rate, lo=20.0, hi=None):
    hi = hi or rate / 2
    points = torch.linspace(hz_to_mel(lo), hz_to_mel(hi), n_mels + 2, dtype=torch.float64)
    hz = 700 * (10 ** (points / 2595) - 1)
    freq = torch.linspace(0, rate / 2, bins, dtype=torch.float64)
    up = (freq[None] - hz[:-2, None]) / (hz[1:-1] - hz[:-2])[:, None]
    down = (hz[2:, None] - freq[None]) / (hz[2:] - hz[1:-1])[:, None]
    return torch.clamp(torch.minimum(up, down), min=0)


def dct_matrix(n, m):
    k = torch.arange(n, dtype=torch.float64)
    d = torch.cos(math.pi / n * (k + 0.5)[None] * torch.arange(m, dtype=torch.float64)[:, None]) * math.sqrt(2 / n)
    d[0] /= math.sqrt(2)
    return d


class LogMel(nn.Module):
    """torch.stft, mel filters, log; MFCC where asked."""

    def __init__(self, n_fft=32, hop=8, mels=10, coefficients=0, center=True):
        super().__init__()
        self.n_fft, self.hop, self.center = n_fft, hop, center
        self.register_buffer("window", torch.hann_window(n_fft))
        self.register_buffer("filters", mel_filters(n_fft // 2 + 1, mels, 4000).float())
        self.register_buffer("dct", dct_matrix(mels, coefficients).float() if coefficients else None)
        self.gain = nn.Parameter(torch.tensor(1.2))

    def forward(self, x):
        z = torch.stft(x * self.gain, self.n_fft, self.hop, window=self.window, center=self.center, return_complex=True)
        y = torch.log(torch.clamp(self.filters @ z.abs().square(), min=1e-6))
        return self.dct @ y if self.dct is not None else y


@family
def log_mel():
    return LogMel(), (torch.randn(2, 160),), {}


@family
def log_mel_dyn():
    return LogMel(center=False), (torch.randn(2, 160),), dict(dynamic=({1: Dim.DYNAMIC},), at=(torch.randn(2, 203),))


@family
def log_mel_padded_dyn():
    return LogMel(), (torch.randn(2, 160),), dict(dynamic=({1: Dim.DYNAMIC},), at=(torch.randn(2, 203),))


@family
def mfcc():
    return LogMel(coefficients=6), (torch.randn(2, 160),), {}


@family
def whisper_front_end():
    """Whisper's own: reflect padding, the last frame dropped, clamped to 8 below the greatest."""
    filters, window = mel_filters(201, 80, 16000).float(), torch.hann_window(400)

    def f(s, x):
        z = torch.stft(x, 400, 160, window=window.to(x.dtype), return_complex=True)[..., :-1].abs() ** 2
        y = torch.clamp(filters.to(x.dtype) @ z, min=1e-10).log10()
        return (torch.maximum(y, y.amax((-2, -1), keepdim=True) - 8.0) + 4.0) / 4.0
    return Fn(f), (torch.randn(1, 1600),), dict(grad=False)


@family
def spectral_features():
    """Centroid, bandwidth, rolloff, flatness."""
    window = torch.hann_window(32)

    def f(s, x):
        z = torch.stft(x, 32, 8, window=window.to(x.dtype), return_complex=True).abs() + 1e-5
        freq = torch.linspace(0, 1, 17, dtype=x.dtype)[:, None]
        total = z.sum(-2)
        centre = (freq * z).sum(-2) / total
        width = ((freq - centre[..., None, :]).square() * z).sum(-2).div(total).sqrt()
        roll = (torch.cumsum(z, -2) >= 0.85 * total[..., None, :]).to(x.dtype).argmax(-2)
        return centre, width, roll, z.log().mean(-2).exp() / z.mean(-2)
    return Fn(f), (torch.randn(2, 128),), {}


@family
def griffin_lim():
    """Two rounds of phase reconstruction: istft of stft."""
    window = torch.hann_window(16)

    def f(s, m):
        w = window.to(m.dtype)
        z = torch.polar(m, torch.zeros_like(m))
        for _ in range(2):
            x = torch.istft(z, 16, 4, window=w)
            y = torch.stft(x, 16, 4, window=w, return_complex=True)
            z = m * y / (y.abs() + 1e-6)
        return torch.istft(z, 16, 4, window=w)
    return Fn(f), (torch.rand(1, 9, 12) + 0.1,), {}


@family
def vocoder():
    """Phase vocoder: stft, phases unwrapped and added up, istft."""
    window = torch.hann_window(16)

    def f(s, x):
        w = window.to(x.dtype)
        z = torch.stft(x, 16, 4, window=w, return_complex=True)
        at = torch.arange(0, z.shape[-1] - 1, 0.8, dtype=x.dtype)
        i = at.long()
        a, b, t = z[..., i], z[..., i + 1], at % 1
        advance = torch.linspace(0, math.pi * 4, 9, dtype=x.dtype)[:, None]
        d = b.angle() - a.angle() - advance
        d = d - 2 * math.pi * torch.round(d / (2 * math.pi)) + advance
        phase = torch.cumsum(torch.cat([z[..., :1].angle(), d[..., :-1]], -1), -1)
        return torch.istft(torch.polar(t * b.abs() + (1 - t) * a.abs(), phase), 16, 4, window=w)
    return Fn(f), (torch.randn(1, 96),), {}


def kaldi_fbank(s, x):
    """Frames without padding, mean removed, preemphasis, Povey's window, padded FFT, mel, log."""
    frames = x.unfold(-1, 25, 10)
    frames = frames - frames.mean(-1, keepdim=True)
    energy = torch.log(frames.square().sum(-1).clamp(min=1e-7))
    frames = frames - s.emphasis * torch.cat([frames[..., :1], frames[..., :-1]], -1)
    window = torch.hann_window(25, periodic=False, dtype=x.dtype).pow(0.85)
    z = torch.fft.rfft(frames * window, n=32).abs().square()
    mel = mel_filters(17, 6, 1000).to(x.dtype)
    return torch.cat([energy[..., None], torch.log((z @ mel.T).clamp(min=1.2e-7))], -1)


@family
def fbank():
    return Fn(kaldi_fbank, emphasis=torch.tensor(0.97)), (torch.randn(2, 105),), {}


@family
def fbank_dyn():
    return Fn(kaldi_fbank, emphasis=torch.tensor(0.97)), (torch.randn(2, 105),), dict(
        dynamic=({1: Dim.DYNAMIC},), at=(torch.randn(2, 91),))


@family
def biquad():
    """lfilter: the feed-forward part as a convolution, the recurrence as a scan."""
    from torch._higher_order_ops.scan import scan

    def f(s, x):
        u = F.conv1d(F.pad(x, (2, 0))[:, None], s.b.flip(0)[None, None])[:, 0]

        def step(state, ut):
            y = ut - s.a[0] * state[:, 0] - s.a[1] * state[:, 1]
            return torch.stack([y, state[:, 0]], -1), y.clone()
        _, y = scan(step, torch.zeros(x.shape[0], 2, dtype=x.dtype), u.T, dim=0)
        return y.T
    return Fn(f, b=torch.tensor([0.2, 0.3, 0.1]), a=torch.tensor([-0.5, 0.2])), (torch.randn(2, 20),), {}


@family
def lfilter_unrolled():
    def f(s, x):
        y = []
        for t in range(x.shape[-1]):
            v = s.b[0] * x[:, t]
            if t > 0:
                v = v + s.b[1] * x[:, t - 1] - s.a[0] * y[t - 1]
            if t > 1:
                v = v + s.b[2] * x[:, t - 2] - s.a[1] * y[t - 2]
            y.append(v)
        return torch.stack(y, -1).clamp(-1, 1)
    return Fn(f, b=torch.tensor([0.2, 0.3, 0.1]), a=torch.tensor([-0.5, 0.2])), (torch.randn(2, 12),), {}


@family
def resample():
    """Windowed sinc from 3 to 2 samples, as a strided convolution."""
    def f(s, x):
        idx = torch.arange(-9, 12, dtype=x.dtype) / 3
        t = (-torch.arange(2, dtype=x.dtype)[:, None] / 2 + idx[None]) * 0.99
        t = t.clamp(-6, 6)
        window = torch.cos(t * math.pi / 12).square()
        t = t * math.pi
        k = torch.where(t == 0, torch.ones_like(t), t.sin() / torch.where(t == 0, torch.ones_like(t), t)) * window * 0.33 * s.gain
        y = F.conv1d(F.pad(x[:, None], (9, 12)), k[:, None], stride=3)
        return y.transpose(1, 2).reshape(x.shape[0], -1)[:, :math.ceil(2 * x.shape[1] / 3)]
    return Fn(f, gain=torch.tensor(1.1)), (torch.randn(2, 31),), {}


@family
def pitch():
    """By normalised autocorrelation, smoothed by a median."""
    def f(s, x):
        frames = x.unfold(-1, 64, 16)
        z = torch.fft.rfft(frames, n=128)
        c = torch.fft.irfft(z * z.conj(), n=128)[..., :40]
        c = c / (c[..., :1] + 1e-9)
        best, lag = c[..., 5:].max(-1)
        return best, (lag + 5).to(x.dtype).unfold(-1, 3, 1).median(-1).values
    return Fn(f), (torch.sin(torch.arange(240) * 0.35)[None] + 0.1 * torch.randn(2, 240),), {}


# ---- images ----

def transform(t, shape=(3, 24, 20), dtype=torch.uint8, batch=(), grad=False, **more):
    def forward(s, x):
        return t(x)
    x = torch.randint(0, 256, (*batch, *shape), dtype=torch.uint8)
    return Fn(forward), (x if dtype == torch.uint8 else x.to(dtype) / 255,), dict(grad=grad, **more)


def vision():
    from torchvision.transforms import v2
    return v2


@family
def imagenet():
    v2 = vision()
    return transform(v2.Compose([v2.Resize(17, antialias=True), v2.CenterCrop(16), v2.ToDtype(torch.float32, scale=True),
                                 v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]))


@family
def imagenet_dyn():
    v2 = vision()
    return transform(v2.Compose([v2.Resize((17, 15), antialias=True), v2.ToDtype(torch.float32, scale=True), v2.Normalize((0.5,) * 3, (0.2,) * 3)]),
                     dynamic=({1: Dim.DYNAMIC, 2: Dim.DYNAMIC},), at=(torch.randint(0, 256, (3, 31, 29), dtype=torch.uint8),))


@family
def resize_float():
    v2 = vision()
    return transform(v2.Compose([v2.Resize((11, 9), antialias=True), v2.Resize((20, 21), interpolation=v2.InterpolationMode.BICUBIC, antialias=True)]),
                     dtype=torch.float32, grad=True)


@family
def resize_kinds():
    v2, kinds = vision(), vision().InterpolationMode
    return transform(lambda x: tuple(v2.Resize((13, 29), interpolation=k, antialias=a)(x) for k in (kinds.NEAREST, kinds.NEAREST_EXACT, kinds.BILINEAR, kinds.BICUBIC)
                                     for a in (True, False)))


@family
def flips_and_crops():
    v2, f = vision(), vision().functional
    return transform(lambda x: (f.horizontal_flip(x), f.vertical_flip(x), f.crop(x, 3, -2, 9, 8), f.center_crop(x, [30, 10]), f.pad(x, [2, 3], fill=7),
                                f.pad(x, [1, 2, 3, 4], padding_mode="reflect"), f.pad(x, [1, 2], padding_mode="symmetric"), f.five_crop(x, [8, 8])[4],
                                f.resized_crop(x, 2, 3, 12, 11, [9, 8], antialias=True)))


@family
def colours():
    f = vision().functional
    return transform(lambda x: (f.adjust_brightness(x, 1.3), f.adjust_contrast(x, 0.7), f.adjust_saturation(x, 1.8), f.adjust_hue(x, 0.2), f.adjust_gamma(x, 1.7, 1.1),
                                f.adjust_sharpness(x, 1.6), f.rgb_to_grayscale(x, 3), f.grayscale_to_rgb(x[:1])))


@family
def colours_float():
    f = vision().functional
    return transform(lambda x: (f.adjust_brightness(x, 1.3), f.adjust_contrast(x, 0.7), f.adjust_saturation(x, 1.8), f.adjust_hue(x, 0.2), f.adjust_gamma(x, 1.7, 1.1),
                                f.adjust_sharpness(x, 1.6), f.rgb_to_grayscale(x, 3)), dtype=torch.float32)


@family
def tones():
    f = vision().functional
    return transform(lambda x: (f.posterize(x, 3), f.solarize(x, 128), f.equalize(x), f.autocontrast(x), f.invert(x)))


@family
def tones_float():
    f = vision().functional
    return transform(lambda x: (f.posterize(x, 3), f.solarize(x, 0.5), f.equalize(x), f.autocontrast(x), f.invert(x)), dtype=torch.float32)


@family
def affine():
    v2, f = vision(), vision().functional
    kinds = v2.InterpolationMode
    return transform(lambda x: tuple(f.affine(x, 20, [2, -1], 1.2, [5, 10], interpolation=k, fill=[9.0, 8.0, 7.0]) for k in (kinds.NEAREST, kinds.BILINEAR))
                     + (f.rotate(x, 33, interpolation=kinds.BILINEAR, expand=True), f.rotate(x, 90)))


def corner_coefficients():
    """Outside of the model: linalg.lstsq, by which torchvision finds them, cannot be exported."""
    from torchvision.transforms.functional import _get_perspective_coeffs
    return _get_perspective_coeffs([[0, 0], [19, 0], [19, 23], [0, 23]], [[2, 3], [16, 1], [18, 20], [1, 22]])


@family
def perspective():
    v2, f = vision(), vision().functional
    corners = dict(startpoints=None, endpoints=None, coefficients=corner_coefficients())
    return transform(lambda x: (f.perspective(x, **corners, interpolation=v2.InterpolationMode.BILINEAR), f.perspective(x, **corners, interpolation=v2.InterpolationMode.NEAREST, fill=3)))


@family
def warp_float():
    v2, f = vision(), vision().functional
    bilinear = v2.InterpolationMode.BILINEAR
    corners = dict(startpoints=None, endpoints=None, coefficients=corner_coefficients())
    return transform(lambda x: (f.affine(x, 20, [2, -1], 1.2, [5, 10], interpolation=bilinear), f.perspective(x, **corners, interpolation=bilinear),
                                f.elastic(x, torch.zeros(1, 24, 20, 2) + 0.05, interpolation=bilinear), f.gaussian_blur(x, [5, 3], [1.2, 0.8])), dtype=torch.float32, grad=True)


@family
def blur():
    f = vision().functional
    return transform(lambda x: (f.gaussian_blur(x, [5, 3], [1.2, 0.8]), f.erase(x, 2, 3, 5, 6, torch.tensor(4, dtype=torch.uint8))), batch=(2,))


@family
def boxes_and_masks():
    from torchvision import ops
    f = vision().functional

    def forward(s, boxes, mask):
        return (ops.box_convert(boxes, "xyxy", "cxcywh"), ops.box_area(boxes), ops.clip_boxes_to_image(boxes, (20, 18)), ops.box_iou(boxes, boxes),
                ops.generalized_box_iou(boxes, boxes), ops.masks_to_boxes(mask), f.resize(mask.to(torch.uint8), [10, 9], interpolation=vision().InterpolationMode.NEAREST))
    corner = torch.rand(5, 2) * 15
    return Fn(forward), (torch.cat([corner, corner + 1 + torch.rand(5, 2) * 9], -1), torch.rand(3, 20, 18) > 0.7), dict(grad=False)


@family
def mixed_batches():
    """MixUp and CutMix with given numbers, as their functions compute them."""
    def f(s, x, y):
        lam = 0.3
        y = F.one_hot(y, 4).to(x.dtype)
        mixed = x.roll(1, 0).mul(1 - lam).add(x.mul(lam))
        cut = x.clone()
        cut[..., 3:9, 2:7] = x.roll(1, 0)[..., 3:9, 2:7]
        return mixed, y.roll(1, 0).mul(1 - lam).add(y.mul(lam)), cut
    return Fn(f), (torch.rand(4, 3, 12, 11), torch.randint(0, 4, (4,))), {}


# ---- files ----

def to_f64(x):
    if isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex()):
        return x.to(torch.complex128 if x.is_complex() else torch.float64)
    return x


def widened(model):
    model, seen = copy.deepcopy(model), {}
    for module in model.modules():
        for name, x in module._parameters.items():
            if x is not None:  # tied ones stay one
                module._parameters[name] = seen.setdefault(id(x), (nn.Parameter(to_f64(x.detach()), x.requires_grad), x))[0]
        for name, x in module._buffers.items():
            module._buffers[name] = to_f64(x)
    return model


def leaves(y):
    return [y] if isinstance(y, torch.Tensor) else [t for e in y for t in leaves(e)]


def run(model, args, cts):
    """Results, and the gradients of inputs and parameters, where there are cotangents."""
    args = [a.detach().clone().requires_grad_(cts is not None and a.is_floating_point()) for a in args]
    for p in model.parameters():
        p.grad = None
    y = leaves(model(*args))
    if cts is None:
        return [t.detach() for t in y], {}
    pairs = [(t, c) for t, c in zip(y, cts) if c is not None and t.requires_grad]
    torch.autograd.backward([t for t, _ in pairs], [c.to(t.dtype) for t, c in pairs])
    grads = {f"g.{i}": a.grad for i, a in enumerate(args) if a.grad is not None}
    grads |= {f"gp.{n}": p.grad for n, p in model.named_parameters() if p.grad is not None}
    return [t.detach() for t in y], grads


def write(folder, name, model, args, grad=True, dynamic=None, at=None, in_f64=True):
    with torch.no_grad():
        exported = export(model, args, dynamic_shapes=(dynamic,) if dynamic and isinstance(model, Fn) else dynamic)
    torch.export.save(exported, folder / f"{name}.pt2")
    args = at or args
    wide, wargs = widened(model), [to_f64(a) for a in args]
    floats = in_f64 and any(p.dtype.is_floating_point or p.dtype.is_complex for p in [*args, *model.parameters()])
    eager, _ = run(model, args, None)
    cts = [torch.randn(t.shape, dtype=t.dtype) if t.is_floating_point() or t.is_complex() else None for t in eager] if grad else None
    eager, grads = run(model, args, cts)
    exact, exact_grads = run(wide, wargs, cts) if floats else (eager, grads)
    tensors = {f"x.{i}": a.detach() for i, a in enumerate(args)}
    meta, worst = {}, 0.0
    for i, (e, x) in enumerate(zip(eager, exact)):
        tensors[f"y.{i}"] = x.to(e.dtype)
        if floats and (e.is_floating_point() or e.is_complex()):
            meta[f"eager_err.{i}"] = str((e - x).abs().max().item() if e.numel() else 0.0)
    for i, c in enumerate(cts or []):
        if c is not None:
            tensors[f"ct.{i}"] = c
    for key, g in grads.items():
        tensors[key] = exact_grads[key].to(g.dtype)
        worst = max(worst, (g - exact_grads[key]).abs().max().item())
    if grads and floats:
        meta["eager_grad_err"] = str(worst)
    save_file({k: t.contiguous() for k, t in tensors.items()}, folder / f"{name}.safetensors", metadata=meta)


def main():
    folder, names = Path(sys.argv[1]), sys.argv[2:] or list(MAKERS)
    folder.mkdir(parents=True, exist_ok=True)
    bad = 0
    for name in names:
        torch.manual_seed(0)
        try:
            model, args, options = MAKERS[name]()
            write(folder, name, model, args, **options)
        except Exception as e:
            bad += 1
            print(f"{name}: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
