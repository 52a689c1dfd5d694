"""Make the archives of tests/data/ops whose operators PyTorch has under names that models seldom hold, and those with transforms and
autocast in the model: make_named_fixtures.py tests/data/ops. tests/oracle/operators.sh compares every back end with PyTorch's results."""
import sys

import torch
from torch import nn
from torch.nn import functional as F

from make_fixtures import dest, make

A, P = torch.ops.aten, torch.ops.prims


class Named(nn.Module):
    def forward(s, x, w, weight, z):
        y = [torch.hann_window(8) + torch.hamming_window(8, False) + torch.blackman_window(8) + torch.bartlett_window(8), torch.kaiser_window(9, False, 3.5),
             *A._aminmax(x), *A._aminmax.dim(x, 1, True), A._cast_Int(x * 9), A._cast_Half(x), A._autocast_to_full_precision(x.half(), False, True),
             A._add_relu(x, x, alpha=2), A._addmm_activation(x, x, x, use_gelu=True), A._dim_arange(x, 0), *A._fused_rms_norm(x, [4], w, None),
             A._pad_enum(x[None], [1, 1], 0), A._pad_circular(x[None], [1, 1]), A._reshape_copy(x, [2, 8]), A.norm_except_dim(x, 2, 1),
             A.frobenius_norm.dim(x, [0, 1]), A.linalg__powsum(x, 3.0), A.flatten_dense_tensors([x, w]), A.conv_tbc(weight, weight[:3], w, 1),
             A._weight_int8pack_mm(x.repeat(1, 4).bfloat16(), (x.repeat(1, 4) * 9).to(torch.int8), w.bfloat16()), A.chain_matmul([x, x, x]),
             torch.range(0, 4), torch.matrix_power(x, 3), A.multilabel_margin_loss_forward(x, (x * 2).long().clamp(-1, 3), 1)[0],
             P.fft_r2c(x, dim=[0, 1], onesided=True), torch.nn.utils.rnn.pad_sequence([x, x[:2]], True, 1.5)]
        return *y, *A.unflatten_dense_tensors(x.flatten(), [x[:2], x[2:]]), z + 1


class Histograms(nn.Module):
    def forward(s, x, weight):
        a, edges = torch.histogramdd(x, [3, 4])
        b, more = torch.histogramdd(x, 3, range=[-1.0, 1.0, -2.0, 2.0], weight=weight, density=True)
        c, given = torch.histogramdd(x, [torch.tensor([-1.0, 0.0, 0.5, 2.0]), torch.tensor([-2.0, 0, 2.0])])
        return a, b, c, *edges, *more, *given


class Members(nn.Module):
    """torch.vmap in a model: other dimensions than the first, operands without one, a level in a level."""

    def forward(s, x, y, w):
        a = torch.vmap(lambda u, v: (u * v).sum() + u.sin() @ v)(x, y)
        b = torch.vmap(lambda u: u.sin() * y[:, 0], 1)(x)
        c = torch.vmap(lambda u: torch.vmap(lambda v: v.exp() * u.sum())(u))(x.view(2, 2, 8))
        d = torch.vmap(lambda v: F.conv1d(v, w).relu().softmax(-1))(torch.cat([x, y]).view(4, 2, 8))
        return a, b, c, d


class Directions(nn.Module):
    """torch.func.jvp in a model, of several values, and with a batch in it."""

    def forward(s, x, y, w):
        a = torch.func.jvp(lambda u, v: ((u @ w).tanh(), v.sum() * u), (x, y), (y, x * 2))
        b = torch.func.jvp(lambda u: torch.vmap(lambda v: v.exp().sum())(u), (x,), (y,))
        return *a[0], *a[1], *b


class Autocast(nn.Module):
    def __init__(s):
        super().__init__()
        s.linear, s.norm = nn.Linear(8, 6), nn.LayerNorm(6)

    def forward(s, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = s.linear(x)
            z, v = s.norm(y), torch.cat([y, x], -1)
            with torch.autocast("cpu", enabled=False):
                b = y.float().mT @ x
            return y, z, v, b, F.mse_loss(y, z)


class Sized(nn.Module):
    """A size goes into a region as an operand; a step of arange and a number of samples are sizes."""

    def forward(s, x, w):
        n = x.shape[0]
        with torch.no_grad():
            z = x.sum(0, keepdim=True).expand(n, -1) * 2
        bags = F.embedding_bag((x.abs() * 3).long() % 5, w)
        return z + x, bags, torch.multinomial(x.abs() + 1, x.shape[1]).sort(-1).values


def main():
    torch.manual_seed(0)
    dest.mkdir(exist_ok=True)
    r = torch.randn
    with torch.no_grad():
        make("named", Named(), (r(4, 4), r(4), r(4, 4, 4), r(3)), compress=True)
        make("histograms", Histograms(), (r(20, 2), torch.rand(20)), compress=True)
        make("members", Members(), (r(4, 8), r(4, 8), r(3, 2, 3)), compress=True)
        make("directions", Directions(), (r(4, 3), r(4, 3), r(3, 2)), compress=True)
        make("autocast", Autocast(), (r(5, 8),), compress=True)
        n, k = torch.export.Dim("n", min=2, max=64), torch.export.Dim("k", min=2, max=64)
        make("sized", Sized(), (r(4, 6), r(5, 3)), ({0: n, 1: k}, None), compress=True)


if __name__ == "__main__":
    sys.exit(main())
