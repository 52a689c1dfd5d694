"""Make a model as PT2E writes them: make_quantised_graphs.py tests/data/ops. int8.pt2 has convolutions, a residual sum, max-pool, concat and
linear layers between quantize_per_tensor and dequantize_*; a layer whose activations are quantised by row while the model runs; and weights
of 8 bits beside activations that stay f32. int8.safetensors has an input and PyTorch's results: no number lies so near the middle between two
integers that another order of sums would give the other one."""
import sys

import torch
from torch import nn
from torch.nn import functional as F

import torch.ao.quantization.fx._decomposed  # noqa: F401: the operators
from make_fixtures import dest, make

Q = torch.ops.quantized_decomposed


def q(x, scale, zero, dtype=torch.int8):
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    return Q.quantize_per_tensor(x, scale, zero, low, high, dtype)


def dq(x, scale, zero):
    return Q.dequantize_per_tensor(x, scale, zero, torch.iinfo(x.dtype).min, torch.iinfo(x.dtype).max, x.dtype)


class Quantised(nn.Module):
    """The weight of a layer: int8 with a scale for each output channel."""

    def __init__(s, *shape):
        super().__init__()
        w = torch.randn(*shape) / shape[1] ** 0.5
        scale = w.flatten(1).abs().amax(1) / 127
        s.register_buffer("w", (w / scale.view(-1, *[1] * (w.dim() - 1))).round().to(torch.int8))
        s.register_buffer("scale", scale)
        s.register_buffer("zero", torch.zeros(shape[0], dtype=torch.int64))
        s.bias = nn.Parameter(torch.randn(shape[0]) / 8)

    def weight(s):
        return Q.dequantize_per_channel(s.w, s.scale, s.zero, 0, -127, 127, torch.int8)


class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.stem, s.point, s.deep = Quantised(16, 3, 3, 3), Quantised(16, 16, 1, 1), Quantised(32, 1, 3, 3)
        s.head, s.row, s.only = Quantised(10, 32), Quantised(12, 10), Quantised(6, 12)

    def forward(s, x):
        a = dq(q(x, 0.03, 4), 0.03, 4)
        b = q(F.relu(F.conv2d(a, s.stem.weight(), s.stem.bias, stride=2, padding=1)), 0.02, -128)
        b = dq(b, 0.02, -128)
        c = dq(q(F.conv2d(b, s.point.weight(), s.point.bias), 0.025, -3), 0.025, -3)
        d = dq(q(F.relu(b + c), 0.03, -128), 0.03, -128)
        e = dq(q(F.max_pool2d(d, 2), 0.03, -128), 0.03, -128)
        f = dq(q(torch.cat([e, F.max_pool2d(d, 2)], 1), 0.03, -128), 0.03, -128)
        g = q(F.conv2d(f, s.deep.weight(), s.deep.bias, padding=1, groups=32), 0.05, 7)
        h = dq(q(dq(g, 0.05, 7).mean((2, 3)), 0.0193, 11), 0.0193, 11)
        y = F.linear(h, s.head.weight(), s.head.bias)
        scale, zero = Q.choose_qparams_per_token_asymmetric(y, torch.int8)
        t = Q.quantize_per_token(y, scale, zero, -128, 127, torch.int8)
        t = Q.dequantize_per_token(t, scale, zero, -128, 127, torch.int8, torch.float32)
        z = F.linear(t, s.row.weight(), s.row.bias)
        return g, y, z, F.linear(z, s.only.weight(), s.only.bias)


def main():
    torch.manual_seed(3)
    dest.mkdir(exist_ok=True)
    with torch.no_grad():
        make("int8", Net().eval(), (torch.randn(2, 3, 16, 14),), ({0: torch.export.Dim("n", min=1, max=64)},), compress=True)


if __name__ == "__main__":
    sys.exit(main())
