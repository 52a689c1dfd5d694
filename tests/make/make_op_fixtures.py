"""Make the archives of tests/data/ops with PyTorch and torchao: make_op_fixtures.py tests/data/ops. One module for each family of operators;
tests/oracle/operators.sh compares every back end with PyTorch's results."""
import sys

import torch
from torch import nn
import torch.ao.quantization.fx._decomposed  # noqa: F401 (registers quantized_decomposed)
import torchao  # noqa: F401 (registers torchao)

from make_fixtures import dest, make

A, Q, AO = torch.ops.aten, torch.ops.quantized_decomposed, torch.ops.torchao
i8, u8 = torch.int8, torch.uint8


class Quantized(nn.Module):
    """Values halfway between two integers tell x * (1 / scale) from x / scale, and when a zero point is added."""

    def forward(s, x, scales, zeros):
        a = Q.quantize_per_tensor(x, 0.1, 3, -128, 127, i8)
        b = Q.quantize_per_tensor(x, 0.3, 7, 0, 255, u8)
        c = Q.quantize_per_tensor.tensor(x, scales[:1], zeros[:1], -100, 90, i8)
        d = Q.quantize_per_channel(x, scales, zeros, 1, -8, 7, i8)
        y = [Q.dequantize_per_tensor(a, 0.1, 3, -128, 127, i8), Q.dequantize_per_tensor.tensor(b, scales[:1], zeros[:1], 0, 255, u8),
             Q.dequantize_per_channel(d, scales, zeros, 1, -8, 7, i8), Q.dequantize_per_channel(d, scales, None, 1, -8, 7, i8)]
        scale, zero = Q.choose_qparams.tensor(x, -128, 127, 1e-5, i8)
        e = Q.quantize_per_tensor.tensor(x, scale, zero, -128, 127, i8)
        symmetric = Q.choose_qparams_symmetric.tensor(x, -127, 127, 1e-5, i8)[0]
        row, at = Q.choose_qparams_per_token_asymmetric(x, i8)
        f = Q.quantize_per_token(x, row, at, -128, 127, i8)
        g = Q.dequantize_per_token(f, row, at, -128, 127, i8, torch.float32)
        h = Q.quantize_per_channel_group(x, scales[:4].view(2, 2), zeros[:4].view(2, 2), -8, 7, i8, 6)
        k = Q.dequantize_per_channel_group(h, scales[:4].view(2, 2), zeros[:4].view(2, 2), -8, 7, i8, 6, torch.float32)
        m = Q.fake_quant_per_channel(x, scales, zeros, 1, -8, 7)
        return a, b, c, d, *y, scale, zero, e, symmetric, row, at, f, g, h, k, m


class Torchao(nn.Module):
    def forward(s, x):
        y = []
        for mapping, block in (("SYMMETRIC", [1, 12]), ("SYMMETRIC_NO_CLIPPING_ERR", [2, 3]), ("ASYMMETRIC", [1, 4])):
            scale, zero = AO.choose_qparams_affine(x, mapping, block, i8, -8, 7, None, None, torch.int32, False)
            q = AO.quantize_affine(x, block, scale, zero, i8, -8, 7)
            y += [scale, zero, q, AO.dequantize_affine(q, block, scale, zero, i8, -8, 7)]
        q = AO.quantize_affine(x, [2, 12], scale[0, 0], zero[0, 0], i8)
        return *y, torch._int_mm(q, q.t())


class Backward(nn.Module):
    """Gradients that are one expression, at kinks too."""

    def forward(s, g, x, index):
        p = torch.sigmoid(x)
        y = [A.tanh_backward(g, torch.tanh(x)), A.sigmoid_backward(g, p), A.threshold_backward(g, x, 0.5), A.gelu_backward(g, x),
             A.gelu_backward(g, x, approximate="tanh"), A.silu_backward(g, x), A.elu_backward(g, 1.5, 1.1, 0.7, False, x),
             A.elu_backward(g, 1.5, 1.1, 0.7, True, x), A.hardshrink_backward(g, x, 0.5), A.softshrink_backward(g, x, 0.5),
             A.hardsigmoid_backward(g, x), A.hardswish_backward(g, x), A.hardtanh_backward(g, x, -3, 0.5),
             A.leaky_relu_backward(g, x, 0.1, False), A.log_sigmoid_backward(g, x, A.log_sigmoid_forward(x)[1]), A.logit_backward(g, p * 0.9 + 0.05),
             A.logit_backward(g, p, 0.1), A.mish_backward(g, x), A.softplus_backward(g, x, 2.5, 10), A.glu_backward(g[:, :4], x, 1),
             *A._prelu_kernel_backward(g, x, p[:1])]
        for reduction in (0, 1, 2):
            to = g if reduction == 0 else g[0, 0]
            y += [A.mse_loss_backward(to, x, g, reduction), A.smooth_l1_loss_backward(to, x, g, reduction, 0.7),
                  A.huber_loss_backward(to, x, g, reduction, 0.7), A.binary_cross_entropy_backward(to, p, p, None, reduction),
                  A.soft_margin_loss_backward(to, x, g, reduction),
                  A.nll_loss_backward(to if reduction else g[:, 0], x, index, p[0], reduction, 5, p.sum())]
        return (*y, A._softmax_backward_data(g, torch.softmax(x, 1), 1, torch.float32),
                A._log_softmax_backward_data(g, torch.log_softmax(x, 0), 0, torch.float32), A.select_backward(g[0], [3, 8], 0, -1),
                A.slice_backward(g, [4, 20], -1, 1, 17, 2)[:, :5], A.diagonal_backward(g[0], [9, 8], -1, 0, 1),
                A.trace_backward(g[0, 0], [2, 3]), A.unfold_backward(g.view(4, 2, 4), [4, 7], 1, 4, 3),
                A.index_select_backward(g, [8, 8], 0, index), A.embedding_dense_backward(g, index, 8, 2, True),
                A.value_selecting_reduction_backward(g[:, 0], 1, index, [4, 8], False))


class Norms(nn.Module):
    def forward(s, g, x, w):
        _, mean, rstd = A.native_layer_norm(x, [6], w[:6], w[:6], 1e-5)
        y = [*A.native_layer_norm_backward(g, x, [6], mean, rstd, w[:6], w[:6], [True, True, True])]
        _, mean, rstd = A.native_group_norm(x, w[:4], w[:4], 2, 4, 6, 2, 1e-5)
        y += A.native_group_norm_backward(g, x, mean, rstd, w[:4], 2, 4, 6, 2, [True, True, True])
        for train in (True, False):
            y += A.native_batch_norm_backward(g, x, w[:4], w[:4], w[:4], w[:4], w[:4], train, 1e-5, [True, True, True])
        for dim in (0, 2):
            v = w[:2].view(2, 1, 1) if dim == 0 else w.view(1, 1, 6)
            unit, norm = A._weight_norm_interface(x, v, dim)
            y += [unit, norm, *A._weight_norm_interface_backward(g, x, v, norm, dim)]
        half = A.native_layer_norm(x.bfloat16(), [6], None, None, 1e-5)
        return *y, A._weight_norm(x, w[:4].view(1, 4, 1), 1), half[1], half[2]


class Convolved(nn.Module):
    """Gradients of convolutions: groups, stride that leaves a rest, dilation, transposed; not all results asked for."""

    def forward(s, x, w, v, g, h):
        every = [True, True, True]
        y = [*A.convolution_backward(g, x, w, [4], [2, 1], [1, 2], [1, 2], False, [0, 0], 2, every)]
        y += A.convolution_backward(h, x, v, [4], [2, 3], [1, 0], [2, 1], True, [1, 0], 2, every)
        y.append(A.convolution_backward(g, x, w, None, [2, 1], [1, 2], [1, 2], False, [0, 0], 2, [False, True, False])[1])
        y += A.convolution_backward(g[:, :, 0], x[:, :, 0], w[:, :, 0], [4], [1], [2], [2], False, [0], 2, every)
        return tuple(y)


class Linear(nn.Module):
    """Gradients of averages, padding and interpolation."""

    def forward(s, x, g):
        to = lambda *size: g.flatten()[: 6 * torch.Size(size).numel()].view(2, 3, *size)
        y = [A._adaptive_avg_pool2d_backward(to(3, 4), x), A.avg_pool2d_backward(to(3, 3), x, [3, 2], [2, 2], [1, 0], False, True, None),
             A.avg_pool2d_backward(to(4, 4), x, [3, 2], [2, 2], [1, 1], True, False, None), A.avg_pool2d_backward(to(2, 3), x, [3, 2], [], [0, 0], False, True, 7),
             A.avg_pool3d_backward(g[:32].view(1, 2, 4, 4), x[0, None], [1, 3, 2], [2, 2, 2], [0, 1, 0], True, True, None),
             A.reflection_pad2d_backward(to(9, 9), x, [0, 2, 1, 2]), A.reflection_pad1d_backward(to(6, 11).flatten(0, 1), x.flatten(0, 1), [3, 1]),
             A.replication_pad2d_backward(to(7, 11), x, [3, 1, 1, 0]), A.replication_pad1d_backward(to(6, 9).flatten(0, 1), x.flatten(0, 1), [-1, 3]),
             A.upsample_nearest2d_backward(to(11, 9), [11, 9], [2, 3, 6, 7]), A._upsample_nearest_exact2d_backward(to(4, 9), [4, 9], [2, 3, 6, 7]),
             A.upsample_nearest1d_backward(to(17), [17], [2, 3, 7], 2.5), A.upsample_linear1d_backward(to(17), [17], [2, 3, 7], False, 2.5),
             A.upsample_nearest3d_backward(to(2, 3, 4), [2, 3, 4], [2, 3, 1, 5, 3]), A.upsample_trilinear3d_backward(to(2, 3, 4), [2, 3, 4], [2, 3, 1, 5, 3], True)]
        for corners in (False, True):
            y += [A.upsample_bilinear2d_backward(to(11, 4), [11, 4], [2, 3, 6, 7], corners), A.upsample_bicubic2d_backward(to(11, 4), [11, 4], [2, 3, 6, 7], corners),
                  A._upsample_bilinear2d_aa_backward(to(3, 9), [3, 9], [2, 3, 6, 7], corners), A._upsample_bicubic2d_aa_backward(to(3, 9), [3, 9], [2, 3, 6, 7], corners)]
        return tuple(y)


class Choices(nn.Module):
    """Scales and zero points of storage types: each step rounds, the least and the greatest value do not."""

    def forward(s, x):
        y = []
        for v in (x.half(), x.bfloat16(), x):
            for block in ([1, 16], [2, 8]):
                for mapping in ("ASYMMETRIC", "SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR"):
                    y += AO.choose_qparams_affine(v, mapping, block, i8, -128, 127, None, None, torch.int32, False)
        return tuple(y)


class Bags(nn.Module):
    """Embedding bags: an empty bag, one of padding alone, weights for samples; counts of a known length."""

    def forward(s, w, index, offsets, scale):
        y = [torch.ops.aten.embedding_bag.padding_idx(w, index, offsets[: 5 - last], False, mode, False, None, not last, 2)[0]
             for mode in (0, 1, 2) for last in (0, 1)]
        y.append(A.embedding_bag.padding_idx(w, index, offsets, False, 0, False, scale, True, None)[0])
        y.append(A._embedding_bag(w, index.int(), offsets[:4].int(), False, 1, False, None, False, 3)[0])
        counts, weighted = torch.bincount(index, minlength=8), torch.bincount(index, weights=scale, minlength=8)
        torch._check(counts.shape[0] == 8)
        torch._check(weighted.shape[0] == 8)
        return *y, counts, weighted


class Complex(nn.Module):
    """Moves and arithmetic of complex numbers, as inputs, outputs, constants and between; rotary embeddings of both habits."""

    def __init__(s):
        super().__init__()
        s.register_buffer("turn", torch.polar(torch.ones(6, 4), torch.outer(torch.arange(6.0), torch.tensor([1.0, 0.3, 0.1, 0.03]))))
        s.weight = nn.Parameter(torch.randn(4, 4, dtype=torch.complex64))

    def forward(s, q, z, index):
        c = torch.view_as_complex(q.float().reshape(2, 6, 3, 4, 2))
        rotated = torch.view_as_real(c * s.turn[:, None]).flatten(-2)
        moved = torch.cat([c.transpose(1, 2)[:, :2], c.permute(0, 2, 1, 3)[:, 1:].flip(2)], 1).select(0, 1).clone()
        moved = moved.index_select(1, index)[..., 1:3].unsqueeze(0).expand(2, 4, 3, 2).reshape(8, -1)
        back = torch.view_as_real(moved)
        back[0, 1] = 7
        parts = torch.complex(z.real * 2, z.imag.abs()) + torch.where(q[0, :4, 0, :4] > 0, z, z.conj() - 1.5)
        turned = (c[0, :4, 0] * z.sum(0) - 3) @ s.weight + torch.arange(4)
        return (rotated, moved, back, parts, turned, z, -z, z == z.conj(), torch.stack([z, parts]).sum(0), turned.abs(), turned.angle(),
                z.bool(), torch.polar(z.abs(), z.angle()), torch.nn.functional.pad(z, (1, 2)), z.T * 2)


class Spaced(nn.Module):
    def forward(s, x, rows, columns, start, end):
        y = [torch.linspace(start, end, 9), torch.linspace(start, 7.25, 2, dtype=torch.float64), torch.linspace(0.5, end, 1),
             torch.linspace(start, end, 4, dtype=torch.int64), torch.logspace(start, end, 5, base=2.0), torch.logspace(-1, end, 5)]
        for order in (1, 2):
            y += torch.gradient(x, spacing=(rows, columns), edge_order=order)
            y += torch.gradient(x, spacing=(columns,), dim=1, edge_order=order)
            y += torch.gradient(x, spacing=[0.5, 3.0], dim=[1, 0], edge_order=order)
            y += torch.gradient(x, spacing=0.5, dim=[-1], edge_order=order)
        return tuple(y)


class Views(nn.Module):
    """Writes through views of every kind, views in place, and what only looks like a view."""

    def forward(s, x, z):
        a = x.clone()
        flat, rows = a.view(-1), a.unbind(0)
        a.transpose_(0, 1)
        a.add_(1)
        a.swapdims(0, 1)[0] = 5
        rows[1].multiply_(2)
        b = x.clone()
        b.unsqueeze_(0).squeeze_().t_()
        b.moveaxis(0, 1).clip_(max=1)
        b.diagonal().zero_()
        c = x.clone()
        parts = c.split([2, 1, 3], 1)
        parts[2].copy_(torch.concat([parts[1], parts[1], parts[0][:, :1]], 1))
        torch.narrow(c, 0, 1, 2).select(1, 4).fill_(-1)
        d = x.clone()
        d.view(torch.int32).bitwise_and_(-65536)
        d.unfold(0, 2, 2)[1] += 3
        w = z.clone()
        torch.view_as_real(w)[..., 1].neg_()
        w.mT.conj()[0] *= 2
        e = x.clone()
        e.detach_()
        e.expand_as(e).absolute_()
        kept = [e.reshape(4, 3, 2).transpose(0, 1).reshape(-1), e.contiguous(), e.to(torch.float64), torch.view_copy(e, [24])]
        kept[0].zero_(), kept[2].zero_(), kept[3].zero_()
        kept[1].hsplit(2)[0].sub_(0.5)
        return a, flat, b, c, d, w, e, *kept


class Searched(nn.Module):
    def forward(s, x, short, long, ints, order):
        rows = torch.stack([short, short * 2]).double()
        y = [torch.searchsorted(short, x), torch.searchsorted(long, x, right=True), torch.bucketize(x, long, out_int32=True),
             torch.searchsorted(rows, x.double(), side="right"), torch.bucketize(0.25, long), torch.searchsorted(ints, ints[::3] + 1),
             torch.searchsorted(short.flip(0), x, sorter=order), torch.searchsorted(long.half(), x.half())]
        return tuple(y)


def main():
    torch.manual_seed(0)
    dest.mkdir(exist_ok=True)
    r = torch.randn
    ties = ((torch.arange(24) - 12) * 0.05).view(2, 12)
    with torch.no_grad():
        make("quantized", Quantized(), (ties, torch.linspace(0.05, 0.3, 12), torch.arange(12) - 6), compress=True)
        make("torchao", Torchao(), (ties + 0.01,), compress=True)
        x = r(4, 8) * 3
        x[0] = torch.tensor([-30, -3, -0.5, 0, 0.5, 3, 20, 60])
        make("backward", Backward(), (r(4, 8), x, torch.tensor([0, 5, 2, 5])), compress=True)
        make("norms", Norms(), (r(2, 4, 6), r(2, 4, 6), torch.rand(6) + 0.5), compress=True)
        make("bags", Bags(), (r(8, 3), torch.tensor([0, 5, 2, 2, 2, 7, 3, 3, 1]), torch.tensor([0, 2, 2, 5, 9]), r(9)), compress=True)
        make("spaced", Spaced(), (r(4, 5), torch.tensor([0.0, 0.5, 2.0, 2.25]), r(5).cumsum(0), torch.tensor(-3.5), torch.tensor(6.5)),
             compress=True)
        z = torch.randn(4, 4, dtype=torch.complex64)
        z[0, :2] = torch.tensor([0, 2.5])
        make("complex", Complex(), (r(2, 6, 3, 8).half(), z, torch.tensor([4, 0, 4])), compress=True)
        make("convolved", Convolved(), (r(2, 4, 6, 7), r(4, 2, 3, 2), r(4, 2, 3, 2), r(2, 4, 3, 9), r(2, 4, 14, 20)), compress=True)
        make("linear", Linear(), (r(2, 3, 6, 7), r(800)), compress=True)
        make("choices", Choices(), (r(8, 32) * 3,), compress=True)
        make("views", Views(), (r(4, 6), torch.randn(3, 3, dtype=torch.complex64)), compress=True)
        short, x = torch.tensor([-1.5, -0.25, 0, 0, 0.5, 2]), r(2, 50)
        x[0, :4] = torch.tensor([0, 2, float("nan"), -float("inf")])
        make("searched", Searched(), (x, short, r(300).sort()[0], torch.randint(-50, 50, (70,)).sort()[0], torch.arange(5, -1, -1)), compress=True)


if __name__ == "__main__":
    sys.exit(main())
