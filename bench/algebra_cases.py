"""Cases of bench/operators.py --cases algebra_cases: Fourier transforms and factorisations. Values are f32 and complex64. fft_<n> has
lines of n points, about 2^20 in all; line_<k> one of 2^k; rfft, irfft and spec_mel real input. cholesky, lu, solve, qr and inv are of
one matrix, eigh and svd too; NAME_b<n> is of 1,000 matrices of n rows, solve of eight right sides there."""
import torch

L = torch.linalg
torch.manual_seed(0)


def positive(x):
    return x @ x.mT + x.shape[-1] * torch.eye(x.shape[-1])


ALGEBRA = {
    "cholesky": lambda x: L.cholesky(positive(x)),
    "lu": L.lu_factor,
    "solve": L.solve,
    "qr": L.qr,
    "geqrf": torch.geqrf,
    "inv": L.inv,
    "eigh": lambda x: L.eigh(x + x.mT),
    "svd": lambda x: L.svd(x, full_matrices=False),
}


def algebra(name, *shape, right=None):
    x = torch.randn(*shape)
    return ALGEBRA[name], (x, torch.randn(*shape[:-1], right)) if name == "solve" else (x,)


def mel(x, window, bank):
    return (torch.stft(x, 512, 128, window=window, return_complex=True).abs().square().mT @ bank + 1e-6).log()


CASES = {}
for n in (64, 128, 256, 512, 1000, 1009, 1024, 2048, 4096):
    CASES[f"fft_{n}"] = (torch.fft.fft, (torch.randn((1 << 20) // n, n, dtype=torch.complex64),))
for k in range(16, 21):
    CASES[f"line_{k}"] = (torch.fft.fft, (torch.randn(1 << k, dtype=torch.complex64),))
for n in (512, 1024):
    CASES[f"rfft_{n}"] = (torch.fft.rfft, (torch.randn((1 << 20) // n, n),))
    CASES[f"irfft_{n}"] = (torch.fft.irfft, (torch.randn((1 << 20) // n, n // 2 + 1, dtype=torch.complex64),))
CASES["spec_mel"] = (mel, (torch.randn(1, 160000), torch.hann_window(512), torch.rand(257, 80)))
for n in (768, 2048):
    for name in ("cholesky", "lu", "solve", "qr", "geqrf", "inv"):
        CASES[f"{name}_{n}"] = algebra(name, n, n, right=n)
for n in (4, 8, 16, 32):
    for name in ("cholesky", "lu", "solve", "qr"):
        CASES[f"{name}_b{n}"] = algebra(name, 1000, n, n, right=8)
for name in ("eigh", "svd"):
    CASES[f"{name}_512"] = algebra(name, 512, 512)
