#!/usr/bin/env python3
"""PyTorch's derivatives at kinks, ties and singular points: writes tests/data/kinks.txt, which tests/unit/passes_kinks.c compares.

    PYTHON tests/make/make_kinks.py > tests/data/kinks.txt

A line: what is computed of operands %a, %b, %c (f64 vectors), their values, the gradient of the sum of the result by each
of them as PyTorch (2.15 and later) gives it, and the product of the matrix of second derivatives with vectors v, element i of operand
k being 1, 2.5, 2 or 1.5 (weight below). Where PyTorch gives NaN backwards twice and a number forwards over backwards, or the other way
round, it is the number; "x": not compared, because they are two numbers or worse than ours; "-": PyTorch has no second derivative. At last the
tangent of the result along v; "-": PyTorch has none. Where PyTorch disagrees with itself, between the middle and
the end of a vector, or picks any of several equal elements, there is no line. With -v what PyTorch gives twice is told on stderr."""
import math
import re
import sys

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
case("aten._prelu_kernel(%a, %b)", a._prelu_kernel, [-2, 0, 3, -0.0], [0.5, 0.25, 7, 2])
case("%w = aten.slice.Tensor(%b, start=0, end=1) : f64[1]; %y = aten.prelu(%a, %w) : f64[N]", lambda x, y: torch.prelu(x, y[:1]),
     [-2, 0, 3, -0.0, 2], [0.5, 0, 0, 0, 0])
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
NAN_TIES = [1, 2, 3, nan, 1, nan]
case("aten.maximum(%a, %b)", torch.maximum, NAN_TIES, [2, 2, 2, 1, nan, nan])
case("aten.minimum(%a, %b)", torch.minimum, NAN_TIES, [2, 2, 2, 1, nan, nan])
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

# ---- the sweep: every function at 0, at its kinks and poles, at infinity ----
POINTS = [-inf, -2, -1, -0.5, -0.0, 0, 0.5, 1, 2, inf]
for name in ("abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac i0 lgamma log log10 "
             "log1p log2 neg rad2deg reciprocal relu round rsqrt sigmoid sign sgn sin sinc sinh sqrt square tan tanh trunc special_erfcx special_entr "
             "special_i0e special_i1 special_i1e special_log_ndtr special_ndtr special_ndtri hardsigmoid hardswish hardtanh relu6 silu mish gelu selu celu elu "
             "leaky_relu softplus hardshrink softshrink log_sigmoid nan_to_num").split():
    fn = F.logsigmoid if name == "log_sigmoid" else getattr(a, name)
    if name not in ("acosh", "digamma", "lgamma"):  # numbers where the function has none, and PyTorch's trigamma
        case(f"aten.{name}(%a)", fn, [v for v in POINTS if abs(v) < inf])
    if name not in ("acosh", "i0"):  # NaN
        case(f"aten.{name}(%a)", fn, [-inf, inf])
case("aten.elu(%a, alpha=-1.5)", lambda x: a.elu(x, -1.5), [-2, 0, 1])
case("aten.hardtanh(%a, min_val=0, max_val=0)", lambda x: a.hardtanh(x, 0, 0), [-1, 0, 1])
A, B = [0, 0, -0.0, 0, 1, -1, 2, -2, 0, 3], [0, 1, 1, -1, 0, 0, 2, 2, -0.0, -3]
for name in ("atan2", "hypot", "maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2", "copysign.Tensor", "xlogy.Tensor", "special_xlog1py",
             "fmod.Tensor", "remainder.Tensor", "div.Tensor", "mul.Tensor", "rsub.Tensor"):
    fn = getattr(a, name.split(".")[0])
    case(f"aten.{name}(%a, %b)", fn, A, B)
for e in (3, 1.5, 0.5, -2, 2.5, -0.5):
    case(f"aten.pow.Tensor_Scalar(%a, exponent={e})", lambda x, e=e: torch.pow(x, e), [0, -0.0, 2, -2, 1])
    case(f"aten.float_power.Tensor_Scalar(%a, exponent={e})", lambda x, e=e: torch.float_power(x, e), [0, -0.0, 2, -2, 1])
case("aten.pow.Tensor_Tensor(%a, %b)", torch.pow, [1, 2, 0, 0, 0.5, -2], [0, 0, 1, 3, 1, 3])
case("aten.pow.Scalar(self=2.0, %a)", lambda y: torch.pow(2.0, y), [0, 1, -1])
case("aten.lerp.Tensor(%a, %b, %c)", torch.lerp, [1, 1, 2], [1, 3, 2], [0.5, 0.5, 0])
case("aten.addcdiv(%a, %b, %c)", torch.addcdiv, [0, 1], [0, 1], [1, 2])
EQUAL, FIVE = [2, 2, 2, 2, 2], [2, 0, 2, -1, 0]
for x in (EQUAL, FIVE, [1, 1, -inf, -inf, 0]):
    case("aten.logcumsumexp(%a, dim=0)", lambda v: torch.logcumsumexp(v, 0), x)
    case("aten.logsumexp(%a, dim=[0]) : f64[]", lambda v: torch.logsumexp(v, 0), x)
    for name in ("softmax", "log_softmax"):
        case(f"aten.{name}.int(%a, dim=0)", lambda v, name=name: getattr(torch, name)(v, 0), x)
for x in (EQUAL, FIVE, [0, 0, 0, 0, 0]):
    case("aten.cumprod(%a, dim=0)", lambda v: torch.cumprod(v, 0), x)
    case("aten.prod(%a) : f64[]", torch.prod, x)
    for kind in ("max", "min"):
        case(f"aten.a{kind}(%a, dim=[0]) : f64[]", lambda v, kind=kind: getattr(torch, "a" + kind)(v, 0), x)
        case(f"aten.{kind}(%a) : f64[]", getattr(torch, kind), x)
        case(f"aten.cum{kind}(%a, dim=0) : (f64[N], i64[N]) -> 0", lambda v, kind=kind: getattr(torch, "cum" + kind)(v, 0)[0], x)
        case(f"aten.{kind}.dim(%a, dim=0) : (f64[], i64[]) -> 0", lambda v, kind=kind: getattr(torch, kind)(v, 0)[0], x)
    case("aten.median(%a) : f64[]", torch.median, x)
    for c in (0, 1, 4, 5, 6, 7):
        case(f"aten.var.correction(%a, correction={c}) : f64[]", lambda v, c=c: torch.var(v, correction=c), x)
        case(f"aten.std.correction(%a, correction={c}) : f64[]", lambda v, c=c: torch.std(v, correction=c), x)
    case("aten.std(%a) : f64[]", torch.std, x)
    case("%u = aten.view(%a, size=[1, N]) : f64[1, N]; %p = aten.std.correction(%u, dim=[1], correction=1) : f64[1]; %y = aten.sum(%p) : f64[]",
         lambda v: torch.std(v[None], 1).sum(), x)
    case("aten.std.dim(%a, dim=[0], unbiased=false) : f64[]", lambda v: torch.std(v, 0, unbiased=False), x)
    case("aten.std_mean.correction(%a, correction=1) : (f64[], f64[]) -> 0", lambda v: torch.std_mean(v, correction=1)[0], x)
    for p in (2.0, 1.0, 0.5, 3.0, inf):
        text = "inf" if p == inf else p
        case(f"aten.linalg_vector_norm(%a, ord={text}) : f64[]", lambda v, p=p: torch.linalg.vector_norm(v, p), x)
        case(f"aten.dist(%a, %b, p={text}) : f64[]", lambda u, v, p=p: torch.dist(u, v, p), x, EQUAL)
        case(f"%u = aten.unsqueeze(%a, dim=1) : f64[N, 1]; %v = aten.unsqueeze(%b, dim=1) : f64[N, 1]; "
             f"%p = aten.pairwise_distance(%u, %v, p={text}, eps=0.0) : f64[N]; %y = aten.sum(%p) : f64[]",
             lambda u, v, p=p: F.pairwise_distance(u[:, None], v[:, None], p, 0).sum(), x, EQUAL)
        case(f"%u = aten.unsqueeze(%a, dim=0) : f64[1, N]; %v = aten.unsqueeze(%b, dim=0) : f64[1, N]; "
             f"%p = aten.cdist(%u, %v, p={text}, compute_mode=2) : f64[1, 1]; %y = aten.sum(%p) : f64[]",
             lambda u, v, p=p: torch.cdist(u[None], v[None], p, compute_mode="donot_use_mm_for_euclid_dist").sum(), x, EQUAL)
    case("%u = aten.unsqueeze(%a, dim=0) : f64[1, N]; %v = aten.unsqueeze(%b, dim=0) : f64[1, N]; "
         "%p = aten.cosine_similarity(%u, %v) : f64[1]; %y = aten.sum(%p) : f64[]", lambda u, v: F.cosine_similarity(u[None], v[None]).sum(), x, EQUAL)
    case("%u = aten.view(%a, size=[1, N]) : f64[1, N]; %p = aten.adaptive_max_pool1d(%u, output_size=[3]) : (f64[1, 3], i64[1, 3]); "
         "%v = get(%p, index=0) : f64[1, 3]; %y = aten.sum(%v) : f64[]", lambda v: F.adaptive_max_pool1d(v[None], 3).sum(), x)
LOW = [-inf, -inf, -inf, -inf, 1, -inf, -inf, -inf]
for d, shape, pooled, kernel in ((1, "2, N", "2, N", "3"), (2, "1, 2, N", "1, 3, N", "2, 3"), (3, "1, 1, 2, N", "1, 1, 3, N", "1, 2, 3")):
    k = [int(v) for v in kernel.split(", ")]
    pad = [v // 2 for v in k]
    for x in (LOW, EQUAL):
        case(f"%u = aten.view(%a, size=[1, N]) : f64[1, N]; %v = aten.cat([%u, %u], dim=0) : f64[2, N]; %w = aten.view(%v, size=[{shape}]) : f64[{shape}]; "
             f"%p = aten.max_pool{d}d(%w, kernel_size={k}, stride={[1] * d}, padding={pad}) : f64[{pooled}]; %y = aten.sum(%p) : f64[]",
             lambda v, d=d, k=k, pad=pad: getattr(F, f"max_pool{d}d")(torch.stack([v, v]).view([1] * (d - 1) + [2, -1]), k, 1, pad).sum(), x)
X, Y, T = [1, 2, 0, 5, 1.5, 0.5], [1, 1, 1, 0, 1, 1], [1, -1, 1, -1, 1, -1]
for extra in ("beta=0.5", "beta=1.0", "beta=0.0"):
    beta = float(extra[5:])
    case(f"aten.smooth_l1_loss(%a, %b, {extra}) : f64[]", lambda x, y, beta=beta: F.smooth_l1_loss(x, y, beta=beta), X, Y)
for delta in (0.5, 1.0):
    case(f"aten.huber_loss(%a, %b, delta={delta}) : f64[]", lambda x, y, delta=delta: F.huber_loss(x, y, delta=delta), X, Y)
case("%t = aten.sign(%b) : f64[N]; %y = aten.soft_margin_loss(%a, %t) : f64[]", lambda x, y: F.soft_margin_loss(x, y.detach().sign()), [0, 0, 800, -800, 1, 2], T)
case("%t = aten.sign(%b) : f64[N]; %y = aten.hinge_embedding_loss(%a, %t) : f64[]", lambda x, y: F.hinge_embedding_loss(x, y.detach().sign()), [1, 1, 0, 0, 2, 2], T)
case("aten.margin_ranking_loss(%a, %b, %c) : f64[]", F.margin_ranking_loss, X, Y, T)
case("aten.poisson_nll_loss(%a, %b, log_input=true, full=false, eps=1e-8, reduction=1) : f64[]", lambda x, y: F.poisson_nll_loss(x, y), X, Y)
case("aten.poisson_nll_loss(%a, %b, log_input=false, full=false, eps=1e-8, reduction=1) : f64[]", lambda x, y: F.poisson_nll_loss(x, y, log_input=False), X, Y)
case("aten.binary_cross_entropy_with_logits(%a, %b) : f64[]", F.binary_cross_entropy_with_logits, [0, -0.0, 1, -1, 700], [0, 1, 0.5, 1, 0])
for p in (1, 2):
    case(f"aten.triplet_margin_loss(%a, %b, %c, margin=0.5, p={p}, eps=0.0) : f64[]",
         lambda x, y, z, p=p: F.triplet_margin_loss(x, y, z, margin=0.5, p=p, eps=0.0), [0, 0, 0], [1, 0, 0], [0, 1.5, 0])
# ---- infinities, and what is not selected ----
for order in (2.0, 3.0, 1.0, 0.5, inf):
    for x in (0, -3):
        case(f"%u = aten.view(%a, size=[]) : f64[]; %y = aten.linalg_vector_norm(%u, ord={order}) : f64[]",
             lambda v, order=order: torch.linalg.vector_norm(v.view([]), order), [x])
FAR = [inf, -inf, inf, -inf, 1, 1, nan, 0, 1.5], [1, 1, inf, -inf, inf, -inf, 0, nan, 1]
for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
    case(f"aten.{name}(%a, %b, reduction=0)", lambda x, y, name=name: getattr(F, name)(x, y, reduction="none"), *FAR)
case("aten.smooth_l1_loss(%a, %b, reduction=0, beta=0.0)", lambda x, y: F.smooth_l1_loss(x, y, reduction="none", beta=0.0), *FAR)
case("%t = aten.sign(%b) : f64[N]; %y = aten.soft_margin_loss(%a, %t, reduction=0) : f64[N]",
     lambda x, y: F.soft_margin_loss(x, y.detach().sign(), reduction="none"), [inf, -inf, inf, -inf, 0, nan, -800], [1, 1, -1, -1, 1, 1, 1])
case("%t = aten.sign(%b) : f64[N]; %y = aten.hinge_embedding_loss(%a, %t, reduction=0) : f64[N]",
     lambda x, y: F.hinge_embedding_loss(x, y.detach().sign(), reduction="none"), [inf, -inf, inf, -inf, nan, nan], [1, 1, -1, -1, 1, -1])
case("aten.margin_ranking_loss(%a, %b, %c, reduction=0)", lambda x, y, t: F.margin_ranking_loss(x, y, t, reduction="none"),
     [inf, -inf, inf, -inf, nan, 1], [1, 1, -1, -inf, 1, -1], [1, -1, -1, 1, 1, 1])
case("aten.kl_div(%a, %b, reduction=0)", lambda x, y: F.kl_div(x, y, reduction="none"), [-inf, -inf, -1, 0, -1, inf], [0, 1, 0, inf, -1, 1])
case("aten.kl_div(%a, %b, reduction=0, log_target=true)", lambda x, y: F.kl_div(x, y, reduction="none", log_target=True),
     [-inf, -inf, -1, 0, -1, inf], [-inf, 1, -inf, inf, 0, 1])
case("aten.binary_cross_entropy(%a, %b, reduction=0)", lambda x, y: F.binary_cross_entropy(x, y, reduction="none"), [0, 1, 0, 1, 0.5], [0, 1, 1, 0, 0.5])
case("aten.binary_cross_entropy_with_logits(%a, %b, reduction=0)", lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"),
     [inf, -inf, inf, -inf, nan, 0], [0, 1, 1, 0, 0.5, 1])
for full in (False, True):
    for log in (False, True):
        case(f"aten.poisson_nll_loss(%a, %b, log_input={str(log).lower()}, full={str(full).lower()}, eps=1e-8, reduction=0)",
             lambda x, y, log=log, full=full: F.poisson_nll_loss(x, y, log_input=log, full=full, reduction="none"),
             [inf, -inf, 0, 2, 0, 1, 3], [0, 1, inf, 2, 0, 0, 1])
for x in ([0, inf, 1, -2], [-inf, 0, 1, inf], [-inf, -inf, -inf, -inf], [-inf, -inf, 1, 2], [inf, -inf, inf, 1], [1, -inf, 2, -inf], [0, nan, 1, inf]):
    case("aten.logcumsumexp(%a, dim=0)", lambda v: torch.logcumsumexp(v, 0), x)
    case("aten.logsumexp(%a, dim=[0]) : f64[]", lambda v: torch.logsumexp(v, 0), x)
case("aten.logit(%a, eps=0.1)", lambda x: torch.logit(x, 0.1), [0, 1, -2, 3, 0.05, 0.95, 0.5, inf, -inf, nan])
case("aten.logit(%a)", torch.logit, [-2, -1, 3, 0.5, inf, -inf, nan])
for other in ([0, 0, 0], [1, -1, 1], [inf, 0, 0], [nan, 0, 0]):
    case("%u = aten.unsqueeze(%a, dim=0) : f64[1, N]; %v = aten.unsqueeze(%b, dim=0) : f64[1, N]; "
         "%p = aten.cdist(%u, %v, p=inf) : f64[1, 1]; %y = aten.sum(%p) : f64[]",
         lambda u, v: torch.cdist(u[None], v[None], inf).sum(), [2, -2, 2], other)
Z = [0, 0, 3, -0.0, 2], [0, 1, -4, 2, 0]
COMPLEX = "%z = aten.complex(%a, %b) : c128[N]; "
for name in ("abs", "angle"):
    case(COMPLEX + f"%y = aten.{name}(%z) : f64[N]", lambda x, y, name=name: getattr(torch, name)(torch.complex(x, y)), *Z)
for p in (2.0, 1.0, 3.0, 0.5, inf):
    text = "inf" if p == inf else p
    for z in (Z, ([0, 0], [0, 0])):
        case(COMPLEX + f"%y = aten.linalg_vector_norm(%z, ord={text}) : f64[]", lambda x, y, p=p: torch.linalg.vector_norm(torch.complex(x, y), p), *z)
for name in ("sgn", "sqrt", "reciprocal", "exp", "log", "square", "sinh", "tanh", "asin", "atan", "sigmoid", "cumsum", "prod", "cumprod"):
    z = ([1, 0.5, -3], [1, -1, 4]) if name in ("log", "sqrt", "reciprocal", "asin", "atan") else Z
    more, dim = (", dim=0", (0,)) if "cum" in name else ("", ())
    if name == "prod":
        body = "%t = aten.prod(%z) : c128[]; %p = aten.real(%t) : f64[]; %q = aten.imag(%t) : f64[]; %y = add(%p, %q) : f64[]"
    else:
        body = f"%t = aten.{name}(%z{more}) : c128[N]; %p = aten.real(%t) : f64[N]; %q = aten.imag(%t) : f64[N]; %y = add(%p, %q) : f64[N]"
    case(COMPLEX + body, lambda x, y, name=name, dim=dim: torch.view_as_real(getattr(torch, name)(torch.complex(x, y), *dim)).sum(-1), *z)
# On both sides of branch cuts, and at 0.
CUT = [3, -3, 3, -3, 0.5, 0, 0, 0], [0, 0, -0.0, -0.0, 0, 0, 2, -2]
ALL_OF = " : c128[N]; %p = aten.real(%t) : f64[N]; %q = aten.imag(%t) : f64[N]; %y = add(%p, %q) : f64[N]"
for name in "asin acos atan asinh acosh atanh sqrt log log2 log10 log1p rsqrt reciprocal sinc exp2 expm1 sigmoid tan tanh".split():
    case(COMPLEX + f"%t = aten.{name}(%z)" + ALL_OF, lambda x, y, name=name: torch.view_as_real(getattr(torch, name)(torch.complex(x, y))).sum(-1), *CUT)
for base in (2.0, 0.0):
    case(COMPLEX + f"%t = aten.pow.Scalar(self={base}, %z)" + ALL_OF, lambda x, y, base=base: torch.view_as_real(torch.pow(base, torch.complex(x, y))).sum(-1), *CUT)
for e in (0, 1, 2, 3, 0.5, -0.5, -1, -2, 0.25):
    case(COMPLEX + f"%t = aten.pow.Tensor_Scalar(%z, exponent={e})" + ALL_OF, lambda x, y, e=e: torch.view_as_real(torch.pow(torch.complex(x, y), e)).sum(-1), *CUT)
case(COMPLEX + "%t = aten.pow.Tensor_Tensor(%z, %z)" + ALL_OF, lambda x, y: torch.view_as_real(torch.pow(torch.complex(x, y), torch.complex(x, y))).sum(-1), *CUT)
case(COMPLEX + "%c = aten.conj_physical(%z) : c128[N]; %t = aten.logaddexp(%z, %c)" + ALL_OF,
     lambda x, y: torch.view_as_real(torch.logaddexp(torch.complex(x, y), torch.complex(x, -y))).sum(-1), [0, 1, 1, -1, 2], [0, 0, 1, 0.5, -2])


# Derivatives that are worse in PyTorch, and why: the beginning of the text, the operand, its values, the number that stands for NaN, times
# the weight (None: not compared); docs/transforms.md has a line for each kind.
BETTER = [
    ("aten.mish(", 0, [800], 0),  # exp overflows
    *((f"{head}p=0.5", k, EQUAL + FIVE, 0) for head in ("aten.dist(%a, %b, ", "%u = aten.unsqueeze(%a, dim=1) : f64[N, 1]; "
      "%v = aten.unsqueeze(%b, dim=1) : f64[N, 1]; %p = aten.pairwise_distance(%u, %v, ") for k in (0, 1)),
    ("aten.linalg_vector_norm(%a, ord=0.5)", 0, [0], 0),
    ("%u = aten.view(%a, size=[]) : f64[]; %y = aten.linalg_vector_norm(%u, ord=0.5)", 0, [0], 0),
    *((f"{COMPLEX}%y = aten.linalg_vector_norm(%z, ord=0.5)", k, [0], 0) for k in (0, 1)),
    ("aten.pow.Tensor_Tensor(", 0, [0], None),  # 0 ** -1: infinite, times zeros of other terms
    ("aten.pow.Tensor_Tensor(", 1, [-1, 1], None),
    ("aten.pow.Scalar(self=0.0", 0, [-1], None),
    ("aten.sinc(", 0, [0], -math.pi ** 2 / 3),
    ("aten.logaddexp(", 1, [-800], 0),  # exp overflows
    ("aten.logaddexp(", 1, [-inf], None),
    ("aten.logaddexp2(", 1, [-inf, -2000], 0),
    ("aten.logit(%a)", 0, [0, 1], None),  # at the poles
    ("aten.binary_cross_entropy(", 1, [0, 1, 0.5], None),  # at 0 and 1 the slope is bounded by the input, not by the target
    ("aten.acosh(", 0, [inf], 0),
    ("aten.div.Tensor(", 1, [0], None),  # inf - inf
    ("aten.xlogy.Tensor(", 1, [0], None),
]

CDIST_INF = "%u = aten.unsqueeze(%a, dim=0) : f64[1, N]; %v = aten.unsqueeze(%b, dim=0) : f64[1, N]; %p = aten.cdist(%u, %v, p=inf)"
# What is not compared: the beginning of the text, the first values (None: any), the column, the places, and why.
SLOPE, TANGENT, SECOND = "slope", "tangent", "second"
NOT_COMPARED = [
    # of NaN: PyTorch's tangents are not what its cotangents say
    ("aten.clamp_min.Tensor(", None, TANGENT, [3]),
    ("aten.clamp_max.Tensor(", None, TANGENT, [3]),
    ("aten.maximum(", NAN_TIES, TANGENT, [3, 4, 5]),
    ("aten.minimum(", NAN_TIES, TANGENT, [3, 4, 5]),
    ("aten.max(", NANS, TANGENT, [0]),
    ("aten.min(", NANS, TANGENT, [0]),
    ("aten.median(", [1, nan, 3, nan, 0], TANGENT, [0]),
    ("aten.logit(%a, eps=0.1)", None, TANGENT, [9]),
    ("aten.logit(%a, eps=0.1)", None, SECOND, [9]),
    ("aten.logit(%a)", [-2, -1, 3, 0.5, inf, -inf, nan], SECOND, [6]),
    ("aten.smooth_l1_loss(%a, %b, reduction=0)", None, SECOND, [2, 3, 6, 7]),
    ("aten.huber_loss(%a, %b, reduction=0)", None, SECOND, [2, 3, 6, 7]),
    (CDIST_INF, [2, -2, 2], SECOND, [0]),
    # divided by 0, though its cotangents are not
    ("aten.atan2(", [0, 1, 0], TANGENT, [0]),
    ("aten.atan2(", A, TANGENT, [0, 8]),
    # inf - inf of two operands, in PyTorch or here
    ("aten.div.Tensor(", A, TANGENT, [4]),
    ("aten.mse_loss(%a, %b, reduction=0)", None, TANGENT, [0, 1, 4, 5]),
    ("aten.binary_cross_entropy_with_logits(%a, %b, reduction=0)", None, TANGENT, [1, 3]),
    # PyTorch's tangents are wrong in front of infinities and NaN, and 0 where its cotangents are NaN
    ("aten.logcumsumexp(", [0, inf, 1, -2], TANGENT, [0]),
    ("aten.logcumsumexp(", [-inf, 0, 1, inf], TANGENT, [0, 1, 2]),
    ("aten.logcumsumexp(", [-inf, -inf, 1, 2], TANGENT, [0, 1]),
    ("aten.logcumsumexp(", [0, nan, 1, inf], TANGENT, [0]),
    # on a cut PyTorch's cotangents have the sign of its other side, whatever the sign of the zero: not what differences of its values say
    *((COMPLEX + f"%t = aten.{name}(%z)", CUT[0], column, [0, 3]) for name in ("asin", "acos") for column in (SLOPE, TANGENT, SECOND)),
    *((COMPLEX + "%t = aten.asinh(%z)", CUT[0], column, [7]) for column in (SLOPE, TANGENT, SECOND)),
    # at poles, where a complex infinity has no direction
    *((COMPLEX + f"%t = aten.{name}(%z)", CUT[0], column, [5]) for name in ("log", "log2", "log10", "sqrt") for column in (SLOPE, TANGENT, SECOND)),
    (COMPLEX + "%t = aten.pow.Scalar(self=0.0", CUT[0], SECOND, [1, 3, 5, 6, 7]),
    (COMPLEX + "%t = aten.pow.Tensor_Scalar(%z, exponent=0.25)", CUT[0], SECOND, [5]),
    # where the first derivative is NaN
    ("aten.logcumsumexp(", [0, inf, 1, -2], SECOND, [1]),
    ("aten.logcumsumexp(", [-inf, 0, 1, inf], SECOND, [0, 3]),
    ("aten.logcumsumexp(", [-inf, -inf, -inf, -inf], SECOND, [0, 1, 2, 3]),
    ("aten.logcumsumexp(", [-inf, -inf, 1, 2], SECOND, [0, 1]),
    ("aten.logcumsumexp(", [inf, -inf, inf, 1], SECOND, [0, 2]),
]

# Operators of ONNX, by the operators of PyTorch from which exporters write them.
case("onnx.LeakyRelu.1(%a, alpha=0.25)", lambda x: a.leaky_relu(x, 0.25), EDGE + [nan])
case("onnx.Elu.1(%a, alpha=1.5)", lambda x: a.elu(x, 1.5), EDGE + [1000, -1000])
case("onnx.HardSigmoid.1(%a, alpha=0.25, beta=0.5)", lambda x: torch.clamp(0.25 * x + 0.5, 0, 1), [-3, -2, 0, 1, 2, 3])
case("%l = full(dtype=f64, shape=[], value=-1.0) : f64[]; %h = full(dtype=f64, shape=[], value=2.0) : f64[]; %y = onnx.Clip.1(%a, %l, %h) : f64[N]",
     lambda x: a.clamp(x, -1.0, 2.0), [-2, -1, 0, 2, 3, nan])
for pads in ([1, 1], [0, 2]):
    case(f"%v = aten.view(%a, size=[1, 1, N]) : f64[1, 1, N]; %p = onnx.MaxPool.1(%v, kernel_shape=[3], pads={pads}, strides=[1], outputs=1) : f64[1, 1, N]; "
         "%y = aten.view(%p, size=[N]) : f64[N]",
         lambda x, pads=pads: F.max_pool1d(F.pad(x[None, None], pads, value=-inf), 3, 1)[0, 0], [3, 3, 1, 3, 3, 3, 0, -1, -1, -2])


def compared(text, values, column, i):
    return not any(text.startswith(begin) and (first is None or str(first) == str(values[0])) and column == c and i in places
                   for begin, first, c, places in NOT_COMPARED)


def better(text, k, value, nan_there, weight):
    """What stands in the file instead of PyTorch's, numbers instead of NaN only; None where nothing does."""
    for begin, operand, values, number_there in BETTER:
        if text.startswith(begin) and k == operand and value in values and (number_there is None or nan_there):
            return "x" if number_there is None else number(number_there * weight)
    return None


def number(v):
    return "nan" if math.isnan(v) else repr(float(v)).removesuffix(".0")


def weight(k, n):
    return torch.tensor([1 + (3 * i + 5 * k) % 4 / 2 for i in range(n)], dtype=torch.float64)


def filled(grads, leaves):
    return [torch.zeros(len(x)) + (0 if g is None else g.detach()) for g, x in zip(grads, leaves, strict=True)]


def first(fn, leaves, create_graph=False):
    y = fn(*leaves)
    return torch.autograd.grad(y.sum(), leaves, allow_unused=True, create_graph=create_graph) if y.requires_grad else [None] * len(leaves)


def forward(fn, operands):
    """The tangent of the result along v."""
    return (torch.func.jvp(fn, tuple(operands), tuple(weight(k, len(x)) for k, x in enumerate(operands)))[1].flatten(),)


def along(slopes):
    """The same by the gradients of the sum, summed over the result."""
    return sum((weight(k, len(g)) * g).sum().item() for k, g in enumerate(slopes))


def second_backward(fn, leaves):
    grads = first(fn, leaves, True)
    s = sum((weight(k, len(g)) * g).sum() for k, g in enumerate(grads) if g is not None)
    if not isinstance(s, torch.Tensor) or not s.requires_grad:
        return filled([None] * len(leaves), leaves)
    return filled(torch.autograd.grad(s, leaves, allow_unused=True), leaves)


def second_forward(fn, operands):
    grad = torch.func.grad(lambda *xs: fn(*xs).sum(), argnums=tuple(range(len(operands))))
    return torch.func.jvp(grad, tuple(operands), tuple(weight(k, len(x)) for k, x in enumerate(operands)))[1]


def attempt(fn, *args):
    try:
        return [torch.zeros(x.shape) + x.detach() for x in fn(*args)]
    except (RuntimeError, NotImplementedError) as e:
        if "-v" in sys.argv:
            print("  none:", str(e).splitlines()[0][:100], file=sys.stderr)
        return None


def same(x, y):
    return (math.isnan(x) and math.isnan(y)) or x == y or abs(x - y) <= 1e-9 * max(abs(x), abs(y))


def one(x, y):
    """Of what PyTorch gives in two ways."""
    return number(x) if same(x, y) or math.isnan(y) else number(y) if math.isnan(x) else "x"


def second(text, fn, values, leaves, operands):
    """Text of the column."""
    back, ahead = attempt(second_backward, fn, leaves), attempt(second_forward, fn, operands)
    if back is None and ahead is None:
        return "-"
    back, ahead = back or ahead, ahead or back
    out = []
    for k, (r, f) in enumerate(zip(back, ahead, strict=True)):
        pairs = list(zip(r.tolist(), f.tolist(), strict=True))
        near, w = operands[k].tolist(), weight(k, len(pairs)).tolist()
        out.append(" ".join("x" if not compared(text, values, SECOND, i) else better(text, k, near[i], math.isnan(x) or math.isnan(y), w[i]) or one(x, y) for i, (x, y) in enumerate(pairs)))
        if "-v" in sys.argv and not all(same(x, y) for x, y in pairs):
            print(f"second {text} {[o.tolist() for o in operands]} operand {k}: {r.tolist()}, forwards {f.tolist()}", file=sys.stderr)
    return "; ".join(out)


def main():
    print("; Written by tests/make/make_kinks.py with PyTorch " + torch.__version__.split("+")[0])
    for text, fn, values in CASES:
        n = len(values[0])
        operands = [torch.tensor(o, dtype=torch.float64) for o in values]
        leaves = [o.clone().requires_grad_() for o in operands]
        grads = filled(first(fn, leaves), leaves)
        ahead = attempt(forward, fn, operands)
        if "-v" in sys.argv and ahead and not same(along(grads), ahead[0].sum().item()):
            print(f"first {text} {values}: {[g.tolist() for g in grads]}, forwards {ahead[0].tolist()}", file=sys.stderr)
        call, _, kind = re.sub(r"\bN\b", str(n), text).partition(" : ")
        kind, _, which = kind.partition(" -> ")
        body = f"%y = {call} : {kind or f'f64[{n}]'}" if text[0] != "%" else re.sub(r"\bN\b", str(n), text)
        if which:
            body = body.replace("%y", "%t") + f"; %y = get(%t, index={which}) : {kind[1:].split(', ')[0]}"
        for column, numbers in ((None, values), (SLOPE, [g.tolist() for g in grads])):
            body += " | " + "; ".join(" ".join(number(v) if compared(text, values, column, i) else "x" for i, v in enumerate(c)) for c in numbers)
        body += " | " + second(text, fn, values, leaves, operands)
        body += " | " + (" ".join(number(v) if compared(text, values, TANGENT, i) else "x" for i, v in enumerate(ahead[0].tolist())) if ahead else "-")
        print(body)


main()
