"""Operators by name under torch.vmap, inside a model and by Weft's own transform: PYTHON vmap_names.py WEFT [NAME...]
The names are those of PyTorch's issue 49562, which lists what vmap over backward formulas needs, and of the families that
backward formulas use besides. Each operator is checked in three ways, against what torch.vmap gives in eager mode:
  inside    a model that calls torch.vmap(f), exported;
  transform f exported alone, batched by `weft check --mode vmap`;
  gradient  the model of `inside` by `weft check --mode vjp`, against PyTorch's gradients: the batch of gradients that the issue is
            about. Only where f has a derivative.
PYTHON needs torch and safetensors. --keep FOLDER keeps the models. The last line is `N of N`; the status is 1 if one fails."""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

warnings.filterwarnings("ignore")
torch.manual_seed(0)
B = 3
R, I = torch.randn, torch.randint


def in_place(name, make):
    """The method of a clone of the first operand: writing to an operand would change what the others get."""
    def f(x, *rest):
        y = x.clone()
        getattr(y, name)(*make(*rest))
        return y
    return f


def mask(*shape):
    return R(*shape) > 0


def index(high, *shape):
    return I(0, high, shape)


def positive(*shape):
    """Symmetric and positive definite."""
    a = R(*shape)
    return a @ a.mT + 3 * torch.eye(shape[-1])


PLAIN, ONE = (R(B, 4, 5), R(B, 4, 5)), (R(B, 4, 5),)
SQUARE = (R(B, 5, 5),)
BOOL = (mask(B, 4, 5),)
# name: function of one member, operands of the batch (dimension 0), has a derivative
NAMES = {
    # comparisons
    **{name: (getattr(torch, name), PLAIN, False) for name in ("eq", "gt", "ge", "le", "lt", "ne")},
    # arithmetic in place
    **{name: (in_place(name, lambda y: (y,)), PLAIN, True) for name in ("add_", "mul_", "sub_")},
    "div_": (in_place("div_", lambda y: (y,)), (R(B, 4, 5), R(B, 4, 5).abs() + 1), True),
    # factories
    "empty_like": (lambda x: torch.empty_like(x).fill_(2) + x, ONE, True),
    "zeros_like": (lambda x: torch.zeros_like(x) + x, ONE, True),
    "ones_like": (lambda x: torch.ones_like(x) * x, ONE, True),
    "full_like": (lambda x: torch.full_like(x, 2.5) * x, ONE, True),
    "new_zeros": (lambda x: x.new_zeros(2, 3) + x[:2, :3], ONE, True),
    "new_empty_strided": (lambda x: x.new_empty_strided((2, 3), (3, 1)).zero_() + x[:2, :3], ONE, True),
    # what the list calls miscellaneous
    "all": (lambda x: x.all(), BOOL, False),
    "all.dim": (lambda x: x.all(0), BOOL, False),
    "any": (lambda x: x.any(), BOOL, False),
    "any.dim": (lambda x: x.any(-1, keepdim=True), BOOL, False),
    "copy_": (in_place("copy_", lambda y: (y,)), PLAIN, True),
    "sum": (torch.sum, ONE, True),
    "sum.dim": (lambda x: x.sum(0), ONE, True),
    "mean": (torch.mean, ONE, True),
    "mean.dim": (lambda x: x.mean((0, 1)), ONE, True),
    "flip": (lambda x: x.flip(0, 1), ONE, True),
    "ger": (torch.ger, (R(B, 4), R(B, 5)), True),
    "roll": (lambda x: x.roll((1, 2), (0, 1)), ONE, True),
    "roll.flat": (lambda x: x.roll(3), ONE, True),
    "rot90": (lambda x: x.rot90(1, (0, 1)), ONE, True),
    "tril": (lambda x: x.tril(1), ONE, True),
    "tril_": (in_place("tril_", lambda: ()), ONE, True),
    "triu": (lambda x: x.triu(-1), ONE, True),
    "triu_": (in_place("triu_", lambda: ()), ONE, True),
    "type_as": (lambda x, y: x.type_as(y), (R(B, 4), R(B, 4).double()), True),
    "where": (torch.where, (mask(B, 4, 5), *PLAIN), True),
    # a batch of selections has no shape of its own: torch.vmap takes masks that all members share
    "masked_select": (lambda x: x.masked_select(torch.tensor([True, False, True, True, False])), ONE, True),
    "masked_fill": (lambda x, m: x.masked_fill(m, -2.0), (R(B, 4, 5), mask(B, 4, 5)), True),
    "masked_fill_": (in_place("masked_fill_", lambda m: (m, 0.5)), (R(B, 4, 5), mask(B, 4, 5)), True),
    "masked_fill.Tensor": (lambda x, m, v: x.masked_fill(m, v), (R(B, 4, 5), mask(B, 4, 5), R(B)), True),
    "masked_scatter": (lambda x, m, y: x.masked_scatter(m, y), (R(B, 4, 5), mask(B, 4, 5), R(B, 4, 5)), True),
    "cat": (lambda x, y: torch.cat([x, y], 1), PLAIN, True),
    "stack": (lambda x, y: torch.stack([x, y], 1), PLAIN, True),
    "clone": (torch.clone, ONE, True),
    "contiguous": (lambda x: x.t().contiguous(), ONE, True),
    "fill_": (in_place("fill_", lambda v: (v,)), (R(B, 4, 5), R(B)), True),
    "zero_": (in_place("zero_", lambda: ()), ONE, True),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), ONE, True),
    "clamp_min": (lambda x: x.clamp_min(0.1), ONE, True),
    "clamp_max": (lambda x: x.clamp_max(0.1), ONE, True),
    "logical_and": (torch.logical_and, (mask(B, 4), mask(B, 4)), False),
    "logical_or": (torch.logical_or, (mask(B, 4), mask(B, 4)), False),
    "logical_not": (torch.logical_not, BOOL, False),
    "bitwise_and": (torch.bitwise_and, (index(9, B, 4), index(9, B, 4)), False),
    "isnan": (torch.isnan, ONE, False),
    "sign": (torch.sign, ONE, True),
    "sgn": (torch.sgn, ONE, True),
    # what moves elements
    "view": (lambda x: x.view(5, 4), ONE, True),
    "reshape": (lambda x: x.t().reshape(2, 10), ONE, True),
    "expand": (lambda x: x.expand(2, 4, 5), ONE, True),
    "permute": (lambda x: x.permute(1, 0), ONE, True),
    "transpose": (lambda x: x.transpose(0, 1), ONE, True),
    "squeeze": (lambda x: x.squeeze(), (R(B, 4, 1, 5, 1),), True),
    "unsqueeze": (lambda x: x.unsqueeze(1), ONE, True),
    "select": (lambda x: x.select(1, 2), ONE, True),
    "slice": (lambda x: x[1:3, ::2], ONE, True),
    "narrow": (lambda x: x.narrow(1, 1, 3), ONE, True),
    "unbind": (lambda x: torch.unbind(x, 1)[2], ONE, True),
    "split": (lambda x: torch.split(x, 2, 1)[1], ONE, True),
    "chunk": (lambda x: torch.chunk(x, 2, 1)[0], ONE, True),
    "diag": (torch.diag, SQUARE, True),
    "diag.vector": (torch.diag, (R(B, 4),), True),
    "diagonal": (lambda x: x.diagonal(1), ONE, True),
    "diag_embed": (torch.diag_embed, ONE, True),
    "trace": (torch.trace, SQUARE, True),
    "unfold": (lambda x: x.unfold(1, 3, 1), ONE, True),
    "movedim": (lambda x: x.movedim(0, 1), ONE, True),
    "repeat": (lambda x: x.repeat(2, 3), ONE, True),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, 0), ONE, True),
    "as_strided": (lambda x: x.clone().as_strided((2, 3), (5, 1)), ONE, True),
    "constant_pad_nd": (lambda x: F.pad(x, (1, 2, -1, 1), value=0.5), ONE, True),
    "reflection_pad1d": (lambda x: F.pad(x, (2, 1), mode="reflect"), ONE, True),
    "replication_pad2d": (lambda x: F.pad(x, (2, 1, 1, 0), mode="replicate"), (R(B, 2, 4, 5),), True),
    # by index
    "index_select": (lambda x, i: x.index_select(1, i), (R(B, 4, 5), index(5, B, 7)), True),
    "index": (lambda x, i: x[i], (R(B, 4, 5), index(4, B, 7)), True),
    "index.two": (lambda x, i, j: x[i, j], (R(B, 4, 5), index(4, B, 7), index(5, B, 7)), True),
    "index_put": (lambda x, i, v: x.index_put((i,), v), (R(B, 4, 5), torch.stack([torch.randperm(4)[:2] for _ in range(B)]), R(B, 2, 5)), True),
    "index_put_": (in_place("index_put_", lambda i, v: ((i,), v, True)), (R(B, 4, 5), index(4, B, 6), R(B, 6, 5)), True),
    "index_add": (lambda x, i, v: x.index_add(0, i, v), (R(B, 4, 5), index(4, B, 6), R(B, 6, 5)), True),
    "index_add_": (in_place("index_add_", lambda i, v: (0, i, v)), (R(B, 4, 5), index(4, B, 6), R(B, 6, 5)), True),
    "index_copy": (lambda x, i, v: x.index_copy(0, i, v), (R(B, 4, 5), torch.stack([torch.randperm(4)[:2] for _ in range(B)]), R(B, 2, 5)), True),
    "index_fill": (lambda x, i: x.index_fill(0, i, 0.5), (R(B, 4, 5), index(4, B, 2)), True),
    "gather": (lambda x, i: x.gather(1, i), (R(B, 4, 5), index(5, B, 4, 3)), True),
    "scatter": (lambda x, i, v: x.scatter(1, i, v), (R(B, 4, 5), torch.stack([torch.stack([torch.randperm(5)[:3] for _ in range(4)]) for _ in range(B)]), R(B, 4, 3)), True),
    "scatter_": (in_place("scatter_", lambda i: (1, i, 0.5)), (R(B, 4, 5), index(5, B, 4, 3)), True),
    "scatter_add": (lambda x, i, v: x.scatter_add(1, i, v), (R(B, 4, 5), index(5, B, 4, 8)[..., :5], R(B, 4, 5)), True),
    "scatter_add_": (in_place("scatter_add_", lambda i, v: (1, i, v)), (R(B, 4, 5), index(5, B, 4, 3), R(B, 4, 3)), True),
    "take": (lambda x, i: x.take(i), (R(B, 4, 5), index(20, B, 7)), True),
    "take_along_dim": (lambda x, i: torch.take_along_dim(x, i, 1), (R(B, 4, 5), index(5, B, 4, 2)), True),
    "put": (lambda x, i, v: x.put(i, v), (R(B, 4, 5), torch.stack([torch.randperm(20)[:3] for _ in range(B)]), R(B, 3)), True),
    "embedding": (lambda w, i: F.embedding(i, w), (R(B, 6, 5), index(6, B, 7)), True),
    # reductions, order
    "amax": (lambda x: x.amax(1), ONE, True),
    "amin": (lambda x: x.amin((0, 1)), ONE, True),
    "max": (torch.max, ONE, True),
    "max.dim": (lambda x: x.max(1)[0], ONE, True),
    "min.dim": (lambda x: x.min(0)[0], ONE, True),
    "argmax": (lambda x: x.argmax(1), ONE, False),
    "median": (lambda x: x.median(1)[0], ONE, True),
    "kthvalue": (lambda x: x.kthvalue(2, 1)[0], ONE, True),
    "sort": (lambda x: x.sort(1)[0], ONE, True),
    "argsort": (lambda x: x.argsort(1), ONE, False),
    "topk": (lambda x: x.topk(2, 1)[0], ONE, True),
    "prod": (lambda x: x.prod(1), ONE, True),
    "prod.all": (torch.prod, ONE, True),
    "cumsum": (lambda x: x.cumsum(0), ONE, True),
    "cumprod": (lambda x: x.cumprod(1), ONE, True),
    "cummax": (lambda x: x.cummax(1)[0], ONE, True),
    "cummin": (lambda x: x.cummin(1)[0], ONE, True),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), ONE, True),
    "logsumexp": (lambda x: x.logsumexp(1), ONE, True),
    "std": (torch.std, ONE, True),
    "var.dim": (lambda x: x.var(1), ONE, True),
    "norm": (torch.norm, ONE, True),
    "norm.dim": (lambda x: x.norm(3, 1), ONE, True),
    "renorm": (lambda x: x.renorm(2, 0, 1.0), ONE, True),
    "dist": (torch.dist, PLAIN, True),
    "cdist": (torch.cdist, (R(B, 4, 3), R(B, 5, 3)), True),
    "pdist": (F.pdist, (R(B, 4, 3),), True),
    # products, linear algebra
    "mm": (torch.mm, (R(B, 4, 5), R(B, 5, 3)), True),
    "mv": (torch.mv, (R(B, 4, 5), R(B, 5)), True),
    "dot": (torch.dot, (R(B, 5), R(B, 5)), True),
    "bmm": (torch.bmm, (R(B, 2, 4, 5), R(B, 2, 5, 3)), True),
    "matmul": (torch.matmul, (R(B, 2, 4, 5), R(B, 5, 3)), True),
    "addmm": (torch.addmm, (R(B, 4, 3), R(B, 4, 5), R(B, 5, 3)), True),
    "addmv": (torch.addmv, (R(B, 4), R(B, 4, 5), R(B, 5)), True),
    "addr": (torch.addr, (R(B, 4, 5), R(B, 4), R(B, 5)), True),
    "baddbmm": (torch.baddbmm, (R(B, 2, 4, 3), R(B, 2, 4, 5), R(B, 2, 5, 3)), True),
    "addbmm": (torch.addbmm, (R(B, 4, 3), R(B, 2, 4, 5), R(B, 2, 5, 3)), True),
    "einsum": (lambda x, y: torch.einsum("ij,kj->ik", x, y), PLAIN, True),
    "kron": (torch.kron, (R(B, 2, 3), R(B, 3, 2)), True),
    "cross": (lambda x, y: torch.linalg.cross(x, y), (R(B, 4, 3), R(B, 4, 3)), True),
    "linalg.inv": (torch.linalg.inv, (positive(B, 4, 4),), True),
    "linalg.det": (torch.linalg.det, (positive(B, 4, 4),), True),
    "linalg.slogdet": (lambda x: torch.linalg.slogdet(x)[1], (positive(B, 4, 4),), True),
    "linalg.solve": (torch.linalg.solve, (positive(B, 4, 4), R(B, 4, 2)), True),
    "linalg.cholesky": (torch.linalg.cholesky, (positive(B, 4, 4),), True),
    "cholesky_solve": (lambda b, l: torch.cholesky_solve(b, l.tril()), (R(B, 4, 2), torch.linalg.cholesky(positive(B, 4, 4))), True),
    "linalg.solve_triangular": (lambda a, x: torch.linalg.solve_triangular(a, x, upper=True), (positive(B, 4, 4).triu(), R(B, 4, 2)), True),
    "linalg.qr": (lambda x: torch.linalg.qr(x)[1].abs(), (R(B, 5, 3),), True),
    "linalg.eigvalsh": (torch.linalg.eigvalsh, (positive(B, 4, 4),), True),
    "linalg.svdvals": (torch.linalg.svdvals, (R(B, 4, 3),), True),
    "linalg.pinv": (torch.linalg.pinv, (R(B, 5, 3),), True),
    "linalg.matrix_power": (lambda x: torch.linalg.matrix_power(x, 3), (R(B, 3, 3),), True),
    "linalg.matrix_exp": (torch.linalg.matrix_exp, (R(B, 3, 3),), True),
    "fft": (lambda x: torch.view_as_real(torch.fft.fft(x)), (R(B, 6),), True),
    "rfft": (lambda x: torch.view_as_real(torch.fft.rfft(x)), (R(B, 6),), True),
    # element by element
    **{name: (getattr(torch, name), ONE, True) for name in (
        "abs", "acosh", "asinh", "atan", "ceil", "cos", "cosh", "deg2rad", "digamma", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma",
        "neg", "reciprocal", "relu", "round", "sigmoid", "sin", "sinc", "sinh", "square", "tan", "tanh", "trunc") if name not in ("acosh", "lgamma", "digamma")},
    **{name: (getattr(torch, name), (torch.rand(B, 4, 5) * 0.9 + 0.05,), True) for name in (
        "acos", "asin", "atanh", "digamma", "erfinv", "lgamma", "log", "log10", "log1p", "log2", "logit", "rsqrt", "sqrt")},
    "acosh": (torch.acosh, (torch.rand(B, 4) + 1.1,), True),
    "atan2": (torch.atan2, PLAIN, True),
    "pow": (lambda x: x.pow(3), ONE, True),
    "pow.Tensor": (torch.pow, (R(B, 4, 5).abs() + 0.1, R(B, 4, 5)), True),
    "fmod": (lambda x: x.fmod(0.7), ONE, True),
    "remainder": (lambda x: x.remainder(0.7), ONE, True),
    "maximum": (torch.maximum, PLAIN, True),
    "minimum": (torch.minimum, PLAIN, True),
    "hypot": (torch.hypot, PLAIN, True),
    "lerp": (torch.lerp, (*PLAIN, R(B, 4, 5)), True),
    "addcmul": (lambda x, y, z: torch.addcmul(x, y, z, value=0.5), (*PLAIN, R(B, 4, 5)), True),
    "addcdiv": (lambda x, y, z: torch.addcdiv(x, y, z, value=0.5), (*PLAIN, R(B, 4, 5).abs() + 1), True),
    "polygamma": (lambda x: torch.polygamma(1, x), (torch.rand(B, 4) + 1,), True),
    "nan_to_num": (torch.nan_to_num, ONE, True),
    # networks
    "linear": (F.linear, (R(B, 4, 5), R(B, 3, 5), R(B, 3)), True),
    "conv1d": (F.conv1d, (R(B, 2, 3, 8), R(B, 4, 3, 3), R(B, 4)), True),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, padding=1), (R(B, 2, 3, 6, 6), R(B, 4, 3, 3, 3), R(B, 4)), True),
    "conv2d.shared": (lambda x: F.conv2d(x, torch.ones(4, 3, 3, 3) * 0.1, stride=2), (R(B, 2, 3, 6, 6),), True),
    "conv_transpose2d": (F.conv_transpose2d, (R(B, 2, 3, 4, 4), R(B, 3, 4, 3, 3), R(B, 4)), True),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), (R(B, 2, 3, 6, 6),), True),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), (R(B, 2, 3, 6, 6),), True),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 2), (R(B, 2, 3, 6, 6),), True),
    "upsample_nearest2d": (lambda x: F.interpolate(x, scale_factor=2), (R(B, 2, 3, 4, 4),), True),
    "upsample_bilinear2d": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (R(B, 2, 3, 4, 4),), True),
    "grid_sample": (lambda x, g: F.grid_sample(x, g, align_corners=False), (R(B, 1, 2, 4, 4), torch.rand(B, 1, 3, 3, 2) * 1.6 - 0.8), True),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), (R(B, 4, 3, 5),), True),
    "layer_norm": (lambda x, w: F.layer_norm(x, (5,), w), (R(B, 4, 5), R(B, 5)), True),
    "group_norm": (lambda x: F.group_norm(x, 2), (R(B, 2, 4, 5),), True),
    "instance_norm": (F.instance_norm, (R(B, 2, 4, 5),), True),
    "softmax": (lambda x: x.softmax(1), ONE, True),
    "log_softmax": (lambda x: x.log_softmax(0), ONE, True),
    "elu": (F.elu, ONE, True),
    "gelu": (F.gelu, ONE, True),
    "glu": (lambda x: F.glu(x, 0), ONE, True),
    "hardtanh": (F.hardtanh, ONE, True),
    "hardswish": (F.hardswish, ONE, True),
    "leaky_relu": (F.leaky_relu, ONE, True),
    "logsigmoid": (F.logsigmoid, ONE, True),
    "mish": (F.mish, ONE, True),
    "prelu": (F.prelu, (R(B, 4, 5), R(B, 1)), True),
    "silu": (F.silu, ONE, True),
    "softplus": (F.softplus, ONE, True),
    "softshrink": (F.softshrink, ONE, True),
    "threshold": (lambda x: F.threshold(x, 0.1, 2.0), ONE, True),
    "scaled_dot_product_attention": (F.scaled_dot_product_attention, (R(B, 2, 4, 5), R(B, 2, 4, 5), R(B, 2, 4, 5)), True),
    "binary_cross_entropy": (F.binary_cross_entropy, (torch.rand(B, 4) * 0.9 + 0.05, torch.rand(B, 4)), True),
    "binary_cross_entropy_with_logits": (F.binary_cross_entropy_with_logits, (R(B, 4), torch.rand(B, 4)), True),
    "cross_entropy": (F.cross_entropy, (R(B, 4, 5), index(5, B, 4)), True),
    "nll_loss": (F.nll_loss, (R(B, 4, 5), index(5, B, 4)), True),
    "kl_div": (F.kl_div, (R(B, 4, 5), torch.rand(B, 4, 5) + 0.1), True),
    "l1_loss": (F.l1_loss, PLAIN, True),
    "mse_loss": (F.mse_loss, PLAIN, True),
    "smooth_l1_loss": (F.smooth_l1_loss, PLAIN, True),
    "huber_loss": (F.huber_loss, PLAIN, True),
    "soft_margin_loss": (lambda x, y: F.soft_margin_loss(x, (y > 0) * 2.0 - 1), (R(B, 4), R(B, 4).sign()), True),
}


class Model(torch.nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *args):
        return self.f(*args)


def gradients(f, args):
    """The result, a cotangent of it, and the gradients by the float operands, None for the others."""
    given = [x.clone().requires_grad_() if x.is_floating_point() else x for x in args]
    y = f(*given)
    ct = torch.randn_like(y)
    y.backward(ct)
    return y, ct, [x.grad for x in given]


def save(folder, name, f, args, tensors):
    model = folder / f"{name}.pt2"
    torch.export.save(torch.export.export(Model(f).eval(), args), model)
    save_file({k: x.detach().clone().contiguous() for k, x in tensors.items()}, folder / f"{name}.safetensors")
    return model


def numbered(letter, values):
    return {f"{letter}.{i}": x for i, x in enumerate(values)}


def ways(name, folder):
    """The ways of an operator: what it is called, how its model is made, and options of `weft check`."""
    f, args, smooth = NAMES[name]
    batched = torch.vmap(f)(*args)
    yield "inside", lambda: save(folder, f"{name}-inside", torch.vmap(f), args, {**numbered("x", args), "y.0": batched}), []
    one = tuple(x[0].clone() for x in args)
    yield "transform", lambda: save(folder, f"{name}-transform", f, one, {**numbered("vx", args), "vy.0": batched}), ["--mode", "vmap"]
    if smooth:
        y, ct, got = gradients(torch.vmap(f), args)
        tensors = {**numbered("x", args), "y.0": y, "ct.0": ct, **{f"g.{i}": x for i, x in enumerate(got) if x is not None}}
        yield "gradient", lambda: save(folder, f"{name}-gradient", torch.vmap(f), args, tensors), ["--mode", "vjp"]


def check(weft, model, options):
    ran = subprocess.run([weft, "check", model, model.with_suffix(".safetensors"), *options], capture_output=True, text=True)
    return "" if ran.returncode == 0 else (ran.stderr.strip() or ran.stdout.strip()).splitlines()[-1][:200]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("weft", type=lambda s: pathlib.Path(s).resolve())
    p.add_argument("name", nargs="*")
    p.add_argument("--keep", type=pathlib.Path)
    p.add_argument("--backend", default="jit")
    args = p.parse_args()
    unknown = [n for n in args.name if n not in NAMES]
    if unknown:
        p.error(f"no operator {unknown[0]}")
    torch.set_num_threads(1)
    counts = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in args.name or NAMES:
            for way, make, options in ways(name, folder):
                try:
                    model = make()
                except Exception as e:
                    print(f"{name} {way}: PyTorch refuses: {type(e).__name__}: {str(e).splitlines()[0][:120] if str(e) else ''}", flush=True)
                    continue
                why = check(args.weft, model, [*options, "--backend", args.backend])
                right, all = counts.get(way, (0, 0))
                counts[way] = right + (not why), all + 1
                if why:
                    print(f"{name} {way}: {why}", flush=True)
    right, all = (sum(c[k] for c in counts.values()) for k in (0, 1))
    print(", ".join(f"{way} {r} of {n}" for way, (r, n) in counts.items()))
    print(f"{right} of {all}")
    return right != all


if __name__ == "__main__":
    sys.exit(main())
