#!/usr/bin/env python3
"""PyTorch's derivatives at kinks, ties and singular points: writes tests/data/kinks.txt, which tests/unit/passes_kinks.c compares.

    PYTHON tests/make_kinks.py > tests/data/kinks.txt

A line: what is computed of operands %a, %b, %c (f64 vectors), their values, and the gradient of the sum of the result by each
of them as PyTorch (2.15 and later) gives it. Where PyTorch disagrees with itself, between the middle and the end of a vector,
or picks any of several equal elements, there is no line."""
import math

import torch
import torch.nn.functional as F

nan, inf = math.nan, math.inf
a = torch.ops.aten

# (text, the same in PyTorch, operands); N is their length; without a type the result is f64[N].
CASES = []


def case(text, fn, *operands):
    CASES.append((text, fn, operands))


EDGE = [-inf, -2, -0.0, 0, 1e-3, 2, inf]
case("aten.relu(%a)", a.relu, EDGE + [nan])
case("aten.threshold(%a, threshold=1.0, value=7.0)", lambda x: a.threshold(x, 1.0, 7.0), [0, 1, 1.5, nan])
case("aten.relu6(%a)", a.relu6, [-inf, -1, 0, 3, 6, 7, inf])
case("aten.hardtanh(%a, min_val=-1.0, max_val=2.0)", lambda x: a.hardtanh(x, -1.0, 2.0), [-inf, -1, 0, 2, 3, inf])
case("aten.hardsigmoid(%a)", a.hardsigmoid, [-inf, -3, -1, 0, 3, 4, nan])
case("aten.hardswish(%a)", a.hardswish, [-4, -3, -1, 0, 3, 4, inf])
case("aten.leaky_relu(%a, negative_slope=0.25)", lambda x: a.leaky_relu(x, 0.25), EDGE + [nan])
case("aten.leaky_relu(%a, negative_slope=0)", lambda x: a.leaky_relu(x, 0), [-1, 0, 2])
case("aten._prelu_kernel(%a, %b)", a._prelu_kernel, [-2, 0, 3, nan], [0.5, 0.25, 7, 2])
case("aten.elu(%a, alpha=1.5, scale=1.25, input_scale=0.75)", lambda x: a.elu(x, 1.5, 1.25, 0.75), EDGE + [100, 1000, -1000])
case("aten.celu(%a, alpha=1.5)", lambda x: a.celu(x, 1.5), EDGE + [1000, -1000])
case("aten.selu(%a)", a.selu, EDGE + [1000, -1000])
case("aten.softplus(%a, beta=2, threshold=20)", lambda x: a.softplus(x, 2, 20), [-inf, -1, 0, 10, 10.5, 500, inf])
case("aten.hardshrink(%a, lambd=0.5)", lambda x: a.hardshrink(x, 0.5), [-1, -0.5, 0, 0.5, 1])
case("aten.softshrink(%a, lambd=0.5)", lambda x: a.softshrink(x, 0.5), [-1, -0.5, 0, 0.5, 1])
case("aten.silu(%a)", a.silu, [-inf, -1, 0, 1, 800, inf])
case("aten.mish(%a)", a.mish, [-inf, -1, 0, 1, 30, 800, inf])
case("aten.gelu(%a)", a.gelu, [-inf, -1, 0, 1, 30, inf])
case("aten.gelu(%a, approximate=\"tanh\")", lambda x: a.gelu(x, approximate="tanh"), [-inf, -1, 0, 1, 30, inf])
case("aten.log_sigmoid(%a)", F.logsigmoid, [-inf, -800, 0, 800, inf, nan])
case("aten.sigmoid(%a)", torch.sigmoid, [-inf, -800, 0, 800, inf, nan])
case("aten.tanh(%a)", torch.tanh, [-inf, 0, inf, nan])
case("aten.abs(%a)", torch.abs, EDGE + [nan])
case("aten.sgn(%a)", torch.sgn, EDGE)
case("aten.sign(%a)", torch.sign, EDGE)
case("aten.frac(%a)", torch.frac, [-2, -1.5, 0, 1.5, 3])
case("aten.round(%a)", torch.round, [-1.5, 0, 0.5])
case("aten.clamp(%a, min=-1.0, max=2.0)", lambda x: a.clamp(x, -1.0, 2.0), [-2, -1, 0, 2, 3, nan])
case("aten.clamp(%a, min=-1.0)", lambda x: a.clamp(x, -1.0), [-2, -1, 0, nan])
case("aten.clamp(%a, max=2.0)", lambda x: a.clamp(x, None, 2.0), [0, 2, 3, nan])
case("aten.clamp(%a, min=2.0, max=-1.0)", lambda x: a.clamp(x, 2.0, -1.0), [-2, -1, 0, 2, 3])
case("aten.clamp_min(%a, min=1.0)", lambda x: a.clamp_min(x, 1.0), [0, 1, 2, nan])
case("aten.clamp_max(%a, max=1.0)", lambda x: a.clamp_max(x, 1.0), [0, 1, 2, nan])
case("aten.clamp.Tensor(%a, %b, %c)", torch.clamp, [-2, -1, 0, 2, 3, 1, 0, 5, 2, -1, nan],
     [-1, -1, -1, -1, -1, 1, 2, 2, 2, 2, 0], [2, 2, 2, 2, 2, 1, -1, -1, -1, -1, 1])
case("aten.clamp.Tensor(%a, %b, none)", lambda x, y: torch.clamp(x, y), [-2, -1, 0], [-1, -1, -1])
case("aten.clamp.Tensor(%a, none, %b)", lambda x, y: torch.clamp(x, None, y), [-2, -1, 0], [-1, -1, -1])
case("aten.clamp_min.Tensor(%a, %b)", torch.clamp_min, [-2, -1, 0, nan], [-1, -1, -1, 0])
case("aten.clamp_max.Tensor(%a, %b)", torch.clamp_max, [-2, -1, 0, nan], [-1, -1, -1, 0])
case("aten.maximum(%a, %b)", torch.maximum, [1, 2, 3, nan, 1, nan], [2, 2, 2, 1, nan, nan])
case("aten.minimum(%a, %b)", torch.minimum, [1, 2, 3, nan, 1, nan], [2, 2, 2, 1, nan, nan])
case("aten.fmax(%a, %b)", torch.fmax, [1, 2, 3, nan, 1, nan], [2, 2, 2, 1, nan, nan])
case("aten.fmin(%a, %b)", torch.fmin, [1, 2, 3, nan, 1, nan], [2, 2, 2, 1, nan, nan])
TIES = [1, 3, -2, 3, 0, 3]
NANS = [1, nan, 3, nan, 0, 3]
for name in ("max", "min"):
    fn = getattr(torch, name)
    pair = f"aten.{name}.dim(%a, dim=0, keepdim=false) : (f64[], i64[]) -> 0"
    case(pair, lambda x, fn=fn: fn(x, 0)[0], TIES)
    case(pair, lambda x, fn=fn: fn(x, 0)[0], [-v for v in TIES])
    case(pair, lambda x, fn=fn: fn(x, 0)[0], NANS)
    case(f"aten.{name}(%a) : f64[]", fn, TIES)
    case(f"aten.{name}(%a) : f64[]", fn, [-v for v in TIES])
    case(f"aten.{name}(%a) : f64[]", fn, NANS)
    run = f"aten.cum{name}(%a, dim=0) : (f64[N], i64[N]) -> 0"
    case(run, lambda x, name=name: getattr(torch, "cum" + name)(x, 0)[0], TIES)
    case(run, lambda x, name=name: getattr(torch, "cum" + name)(x, 0)[0], NANS)
    case(f"aten.a{name}(%a, dim=[0]) : f64[]", lambda x, name=name: getattr(torch, "a" + name)(x, 0), TIES)
case("aten.median(%a) : f64[]", torch.median, [1, 3, 3, 3, 0])
case("aten.median(%a) : f64[]", torch.median, [1, nan, 3, nan, 0])
case("%v = aten.view(%a, size=[1, N]) : f64[1, N]; %p = aten.max_pool1d(%v, kernel_size=[3], stride=[1], padding=[1]) : f64[1, N]; "
     "%y = aten.view(%p, size=[N]) : f64[N]", lambda x: F.max_pool1d(x[None], 3, 1, 1), [3, 3, 1, 3, 3, 3, 0, -1, -1, -2])
case("aten.prod(%a) : f64[]", torch.prod, [2, 3, 4])
case("aten.prod(%a) : f64[]", torch.prod, [2, 0, 4])
case("aten.prod(%a) : f64[]", torch.prod, [2, 0, 0, 4])
for order in (2.0, 3.0, 1.0, 0.5, 1.5, inf, -inf, 0.0):
    text = {inf: "inf", -inf: "-inf"}.get(order, str(order))
    for x in ([0, 0, 0], [0, 3, -4], [2, -2, 1]):
        if order < 0 and x == [0, 3, -4]:
            continue  # the least is at a zero
        case(f"aten.linalg_vector_norm(%a, ord={text}) : f64[]", lambda v, p=order: torch.linalg.vector_norm(v, p), x)
case("aten.dist(%a, %b, p=2) : f64[]", lambda x, y: torch.dist(x, y), [1, 2], [1, 2])
case("aten.std.correction(%a, correction=1) : f64[]", lambda x: torch.std(x, correction=1), [2, 2, 2])
case("aten.std.correction(%a, correction=0) : f64[]", lambda x: torch.std(x, correction=0), [5])
case("aten.std.correction(%a, correction=1) : f64[]", lambda x: torch.std(x, correction=1), [1, 2, 4])
case("aten.var.correction(%a, correction=0) : f64[]", lambda x: torch.var(x, correction=0), [5])
case("aten.var(%a) : f64[]", torch.var, [5])
case("aten.sqrt(%a)", torch.sqrt, [0, 4])
case("aten.log(%a)", torch.log, [0, 4])
case("aten.rsqrt(%a)", torch.rsqrt, [0, -0.0, 4])
case("aten.reciprocal(%a)", torch.reciprocal, [0, -0.0, 4])
for e in (0, 1, 0.5, -1, 2):
    case(f"aten.pow.Tensor_Scalar(%a, exponent={e})", lambda x, e=e: torch.pow(x, e), [0, 2])
case("aten.pow.Tensor_Tensor(%a, %b)", torch.pow, [0, 0, 0, 2, -2, 1, 3], [0, 2, -1, 0, 2, nan, 2])
case("aten.pow.Scalar(self=0.0, %a)", lambda y: torch.pow(0.0, y), [0, 2, -1])
case("aten.xlogy.Tensor(%a, %b)", torch.xlogy, [0, 0, 0, 1, 2, 0], [0, 2, -1, 2, 3, 1])
case("aten.special_xlog1py(%a, %b)", torch.special.xlog1py, [0, 0, 0, 1], [-1, 2, -2, 2])
case("aten.xlogy.Scalar_Other(%a, other=0)", lambda x: torch.xlogy(x, 0), [0, 1])
case("aten.xlogy.Scalar_Self(self=0, %a)", lambda y: torch.xlogy(0, y), [0, 1])
case("aten.special_entr(%a)", torch.special.entr, [0, 1, 0.5])
case("aten.sinc(%a)", torch.sinc, [0, 0.5, 1, -1.75])
case("aten.atan2(%a, %b)", torch.atan2, [0, 1, 0], [0, 0, -1])
case("aten.hypot(%a, %b)", torch.hypot, [0, 1], [0, 0])
case("aten.logaddexp(%a, %b)", torch.logaddexp, [-inf, 1, 2, 800], [-inf, -inf, 2, -800])
case("aten.logaddexp2(%a, %b)", torch.logaddexp2, [1, 2, 2000], [-inf, 2, -2000])
case("aten.logsumexp(%a, dim=[0]) : f64[]", lambda x: torch.logsumexp(x, 0), [-inf, 1, 2])
case("aten.logsumexp(%a, dim=[0]) : f64[]", lambda x: torch.logsumexp(x, 0), [-inf, -inf])
for name in ("softmax", "log_softmax"):
    case(f"aten.{name}.int(%a, dim=0)", lambda x, name=name: getattr(torch, name)(x, 0), [-inf, -inf])
case("aten._safe_softmax(%a, dim=0)", lambda x: a._safe_softmax(x, 0), [-inf, -inf])
case("aten.remainder.Tensor(%a, %b)", torch.remainder, [5, -5, 4], [3, 3, 2])
case("aten.fmod.Tensor(%a, %b)", torch.fmod, [5, -5, 4], [3, 3, 2])
case("aten.copysign.Tensor(%a, %b)", torch.copysign, [0, 2, -2, 2], [1, -0.0, 0, -3])
case("aten.nan_to_num(%a)", torch.nan_to_num, [nan, inf, -inf, 1])
case("aten.logit(%a, eps=0.25)", lambda x: torch.logit(x, 0.25), [0, 0.25, 0.5, 0.75, 1])
case("aten.logit(%a)", torch.logit, [0, 0.25, 1])
case("aten.lgamma(%a)", torch.lgamma, [0, -0.5, 1])
case("aten.asin(%a)", torch.asin, [1, -1, 0])
case("aten.acosh(%a)", torch.acosh, [1, 2])
case("aten.atanh(%a)", torch.atanh, [1, 0])
case("aten.special_log_ndtr(%a)", torch.special.log_ndtr, [-300, -14, 0, 9])
case("aten.special_i1(%a)", torch.special.i1, [0, 1])
case("aten.special_i1e(%a)", torch.special.i1e, [0, 1])
for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
    case(f"aten.{name}(%a, %b) : f64[]", getattr(F, name), [1, 2, 0, 5, 1000], [1, 1, 1, 0, -1])
case("aten.margin_ranking_loss(%a, %b, %c, margin=1.0) : f64[]", lambda x, y, t: F.margin_ranking_loss(x, y, t, margin=1.0),
     [2, 2, 0], [1, 3, 0], [1, 1, -1])
case("aten.binary_cross_entropy(%a, %b) : f64[]", F.binary_cross_entropy, [0, 1, 0.5, 0.25, 0], [0, 1, 1, 0, 0.5])
case("aten.binary_cross_entropy_with_logits(%a, %b) : f64[]", F.binary_cross_entropy_with_logits, [0, 800, -800, 1], [0, 1, 0.5, 1])
case("aten.kl_div(%a, %b) : f64[]", lambda x, y: F.kl_div(x, y, reduction="mean"), [-1, -2], [0, 0.5])
case("aten.triplet_margin_loss(%a, %b, %c, margin=1.0) : f64[]", lambda x, y, z: F.triplet_margin_loss(x, y, z, margin=1.0),
     [0, 0, 0], [2, 0, 0], [1, 0, 0])
for name in ("tanh", "tan"):
    parts = [0, 1e-20, 0.5, 0.999, 1.001, -1.5, -1000, 2], [0, 1, 0.25, 1.5707, 1.5707, 0.5, 2, 0]
    case(f"%z = aten.complex(%a, %b) : c128[N]; %t = {name}(%z) : c128[N]; %p = aten.real(%t) : f64[N]; "
         "%q = aten.imag(%t) : f64[N]; %y = add(%p, %q) : f64[N]",
         lambda x, y, name=name: torch.view_as_real(getattr(torch, name)(torch.complex(x, y))).sum(-1),
         *(parts if name == "tanh" else parts[::-1]))


def number(v):
    return "nan" if math.isnan(v) else repr(float(v)).removesuffix(".0")


def main():
    print("; Written by tests/make_kinks.py with PyTorch " + torch.__version__.split("+")[0])
    for text, fn, operands in CASES:
        n = len(operands[0])
        leaves = [torch.tensor(o, dtype=torch.float64, requires_grad=True) for o in operands]
        y = fn(*leaves)
        grads = torch.autograd.grad(y.sum(), leaves, allow_unused=True) if y.requires_grad else [None] * len(leaves)
        grads = [torch.zeros(n) + (0 if g is None else g) for g in grads]
        call, _, kind = text.replace("[N]", f"[{n}]").partition(" : ")
        kind, _, which = kind.partition(" -> ")
        body = f"%y = {call} : {kind or f'f64[{n}]'}" if text[0] != "%" else text.replace("N]", f"{n}]")
        if which:
            body = body.replace("%y", "%t") + f"; %y = get(%t, index={which}) : {kind[1:].split(', ')[0]}"
        for columns in (operands, [g.tolist() for g in grads]):
            body += " | " + "; ".join(" ".join(number(v) for v in c) for c in columns)
        print(body)


main()
