"""The steps of random chains (differential_make.py), and how exact what they compute is."""
import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

STORAGE = (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
EVERY_FLOAT = (torch.float32, torch.float64, *STORAGE)


# ---- how exact ----

class Grain:
    """In which dtypes results were rounded in a way that is not defined, after how many such steps; `held`: a value of a
    storage type that is defined but may be kept wider while it stays in a kernel; `zeros`: one of 0 and -0 was chosen, and
    either is right (maximum, relu)."""

    def __init__(self, dtypes=(), steps=0, held=False):
        self.dtypes, self.steps, self.held, self.zeros = frozenset(dtypes), steps, held, False

    def exact(self):
        return not self.steps

    def defined(self):
        return not self.steps and not self.held


def join(values):
    grains = [v.grain for v in values]
    return Grain(frozenset().union(*(g.dtypes for g in grains)), max((g.steps for g in grains), default=0), any(g.held for g in grains))


def largest(x):
    x = x.double()[x.isfinite()] if x.is_floating_point() else x.double()
    return x.abs().max().item() if x.numel() else 0.0


def ulp(wide, dtype):
    exponent = torch.frexp(wide.double().nan_to_num(0, 0, 0))[1] - 1
    return torch.finfo(dtype).eps * torch.exp2(exponent.double()).clamp(min=torch.finfo(dtype).tiny)


def beyond_rounding(model, wide):
    """The differences; of a storage type, what is beyond one rounding."""
    error = (model.double() - wide.double()).nan_to_num(0, 0, 0).abs()
    return (error - 0.505 * ulp(wide, model.dtype)).clamp(min=0) if model.dtype in STORAGE else error


class Value:
    """What PyTorch computes; the same in float64 with the model's casts; how far apart an implementation may be. `spread`: how far
    computations are apart that round, or keep, each value of a storage type; `narrow_error`: PyTorch's error in float32."""

    def __init__(self, model, wide, grain, scale=0.0):
        self.model, self.grain, self.spread, self.narrow_error = model, grain, torch.zeros(()), 0.0
        self.wide = model.double() if grain.defined() and model.is_floating_point() else wide
        self.scale = max(scale, largest(model))

    def reference(self):
        chosen = self.model if self.grain.exact() or not self.model.is_floating_point() else self.wide.to(self.model.dtype)
        return chosen.detach().contiguous().clone()

    def eager_error(self):
        """PyTorch's largest error; in a storage type, what is beyond one rounding. That of float64 nothing more exact shows: it is taken
        as that in float32, as many times smaller as its roundings are."""
        if self.model.dtype == torch.float64:
            return self.narrow_error * torch.finfo(torch.float64).eps / torch.finfo(torch.float32).eps
        return largest(beyond_rounding(self.model, self.wide))

    def allowed(self):
        """RTOL ATOL ULPS"""
        t, g = self.model.dtype, self.grain
        if g.exact() or not t.is_floating_point:
            return "0 0 0"
        times = {d: 1 if d in STORAGE else 4 * g.steps for d in g.dtypes}
        ulps = 1 if t in STORAGE else times.get(t, 0)
        apart = 2 * largest(self.spread / ulp(self.wide, t)) if t in STORAGE else math.inf
        coarser = [d for d in g.dtypes if torch.finfo(d).eps > torch.finfo(t).eps]
        rtol = sum(times[d] * torch.finfo(d).eps for d in coarser)
        atol = 8 * self.eager_error()
        if apart <= 4:
            ulps += math.ceil(apart)
        else:
            atol += 2 * largest(self.spread)
        if t not in STORAGE:
            atol += 8 * torch.finfo(torch.float64 if g.dtypes == {torch.float64} else torch.float32).eps * self.scale
        return f"{rtol!r} {atol!r} {ulps!r}"


@dataclass
class Step:
    text: str
    kind: str       # move, select, rounded, inexact, jump, cast
    function: object
    operands: list
    made: list = field(default_factory=list)  # constants it was drawn with; they follow the operands
    cast: object = None
    keeps: bool = False      # a cast to the type that the operand has, which is none
    unclear: object = None   # of operands, values and kind: does PyTorch disagree with itself, or jump between results that are both right?
    rough: object = None     # of a dtype, a random number and the operands in float64: with roundings inside that results show
    constants: list = field(default_factory=list)
    patterns: set = field(default_factory=set)  # what it has of what has gone wrong before

    def apply(self, *args, wide, narrow=False):
        if self.kind != "cast":
            if wide and self.kind == "inexact":
                args = [a if a.is_floating_point() else a.double() for a in args]
            return self.function(*args)
        if self.keeps and wide:
            return args[0]
        y = args[0].to(torch.float32 if narrow and self.cast == torch.float64 else self.cast)
        return y.double() if wide and y.is_floating_point() else y

    def minds_zeros(self, operands, result):
        """Would the other sign of operands' zeros give something else?"""
        for sign in (0.0, -0.0):
            args = [torch.where(v.model == 0, torch.tensor(sign, dtype=v.model.dtype), v.model) if v.grain.zeros and v.model.is_floating_point()
                    else v.model for v in operands]
            other = self.apply(*args, *self.made, wide=False)
            if not torch.equal(other.nan_to_num(nan=7), result.nan_to_num(nan=7)):
                return True
        return False

    def grade(self, operands, result, wide):
        """The value; None where the step would jump between results that are both right."""
        if self.unclear and self.unclear(operands, result):
            return None
        zeros = any(v.grain.zeros for v in operands)
        value = None if zeros and self.minds_zeros(operands, result) else self.grade_rounding(operands, result, wide)
        if value:
            grain = value.grain
            value.grain = Grain(grain.dtypes, grain.steps, grain.held)
            value.grain.zeros = zeros or self.kind == "select"
        return value

    def grade_rounding(self, operands, result, wide):
        floats = [v for v in operands if v.model.is_floating_point()]
        before, scale = join(floats), max([v.scale for v in operands if v.grain.steps], default=0.0)
        t = result.dtype
        defined = before.defined()
        if not t.is_floating_point or self.kind == "jump":  # a cast rounds what was held
            return Value(result, wide, Grain(), scale) if defined or (self.kind == "cast" and before.exact()) else None
        if self.kind == "cast":
            moved = t == operands[0].model.dtype
            grain = before if moved else Grain() if before.exact() else Grain(before.dtypes | {t}, before.steps + 1)
        elif self.kind == "move" or (self.kind == "select" and all(v.model.dtype == t for v in floats)):
            grain = before
        elif self.kind in ("rounded", "select") and defined:
            grain = Grain(held=t in STORAGE)
        else:
            grain = Grain(before.dtypes | {t} | {v.model.dtype for v in floats if v.grain.held}, before.steps + 1)
        return Value(result, wide, grain, scale)


# ---- what PyTorch does not decide, and what cancels ----

def not_finite(operands, result):
    """PyTorch's implementations of attention disagree on infinities and NaN."""
    return not all(v.model.isfinite().all() for v in operands)


def near_a_cut(operands, result):
    """atan2 jumps where the first operand changes its sign and the second is not positive, and at 0."""
    a, b = (v.wide.double() for v in operands)
    near = [0 if v.grain.defined() else largest(v.model) / 32 for v in operands]
    return any(near) and bool(((a.abs() <= near[0]) & (b <= near[1])).any())


def large_quotient(operands, result):
    """Floor division of storage types rounds each of its steps in PyTorch, which shows where integers are not exact any more."""
    return result.dtype in STORAGE and largest(result) >= 1 / torch.finfo(result.dtype).eps


def rough_attention(causal):
    """Probabilities are rounded before the second product, with the sum or before the division by it."""
    def attend(dtype, number, x):
        scores = x @ x.transpose(-1, -2) / x.shape[-1] ** 0.5
        if causal:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -math.inf)
        p = torch.exp(scores - scores.amax(-1, keepdim=True))
        total = p.sum(-1, keepdim=True) if number < 0.5 else torch.ones(())
        p = (p / total).to(dtype).double() if dtype in STORAGE else p / total
        return p @ x * (total / p.sum(-1, keepdim=True))
    return attend


def rough_tanhshrink(dtype, number, x):
    """The difference shows each rounding of tanh, of which two are allowed."""
    return x - torch.tanh(x) * (1 + (number - 0.5) * 4 * torch.finfo(torch.float32 if dtype in STORAGE else dtype).eps)


# ---- the steps ----

STEPS = []


def maker(weight=1):
    def add(f):
        STEPS.extend([f] * weight)
        return f
    return add


def floating(v):
    return v.model.is_floating_point() and v.model.dtype.itemsize > 1


def unary(kind, table, weight, condition=None):
    """A step for each draw from table {text: function}."""
    names = sorted(table)

    @maker(weight)
    def make(r, g, values, k):
        if condition and not condition(values[k]):
            return None
        name = r.choice(names)
        return Step(name, kind, table[name], [k], rough=rough_tanhshrink if name == "tanhshrink" else None)


unary("select", {"neg": torch.neg, "abs": torch.abs, "relu": torch.relu, "relu6": F.relu6, "hardtanh": F.hardtanh,
                 "positive": torch.positive, "cummax": lambda x: torch.cummax(x, -1)[0], "sort": lambda x: torch.sort(x, -1)[0],
                 "amax": lambda x: x.amax(-1), "amin": lambda x: x.amin(0, keepdim=True), "max": lambda x: x.max(0)[0],
                 "sort_descending": lambda x: torch.sort(x, 0, descending=True)[0], "cummin": lambda x: torch.cummin(x, 0)[0],
                 "nan_to_num": lambda x: torch.nan_to_num(x, 1.5), "msort": torch.msort}, 3)
unary("rounded", {"square": torch.square, "reciprocal": torch.reciprocal,
                  "twice": lambda x: x + x, "times_itself": lambda x: x * x, "one_minus": lambda x: 1 - x,
                  "halves": lambda x: x / 2, "third": lambda x: x / 3, "logit_scale": lambda x: x * 0.1}, 3)
unary("inexact", {"exp": lambda x: torch.exp(torch.clamp(x, max=4)), "tanh": torch.tanh, "sigmoid": torch.sigmoid, "gelu": F.gelu,
                  "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "softplus": F.softplus, "mish": F.mish,
                  "log1p": lambda x: torch.log1p(torch.abs(x)), "sin": torch.sin, "cos": torch.cos, "erf": torch.erf, "atan": torch.atan,
                  "rsqrt": lambda x: torch.rsqrt(torch.abs(x) + 1), "elu": F.elu, "celu": F.celu, "selu": F.selu,
                  "leaky_relu": F.leaky_relu, "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid, "logsigmoid": F.logsigmoid,
                  "softsign": F.softsign, "expm1": lambda x: torch.expm1(torch.clamp(x, max=3)), "asinh": torch.asinh,
                  "exp2": lambda x: torch.exp2(torch.clamp(x, max=4)), "log": lambda x: torch.log(torch.abs(x) + 0.5),
                  "pow3": lambda x: x ** 3, "pow_half": lambda x: torch.abs(x) ** 0.5, "tanhshrink": F.tanhshrink,
                  "sum_all": torch.sum, "mean_all": lambda x: x.mean(), "sinc": torch.sinc, "xlogy": lambda x: torch.xlogy(x, x.abs() + 1),
                  # MKL's, where PyTorch has that, is not always the nearest
                  "sqrt": lambda x: torch.sqrt(torch.abs(x))},
      5, floating)
unary("jump", {"floor": torch.floor, "ceil": torch.ceil, "round": torch.round, "trunc": torch.trunc, "sign": torch.sign,
               "isnan": torch.isnan, "isfinite": torch.isfinite, "logical_not": torch.logical_not, "argmax": lambda x: x.argmax(-1),
               "argmin": lambda x: x.argmin(0, keepdim=True), "bitwise_not": torch.bitwise_not, "any": lambda x: x.any(-1),
               "all": lambda x: x.all(), "signbit": torch.signbit, "frac": torch.frac, "argsort": lambda x: torch.argsort(x, -1, stable=True),
               "cumsum": lambda x: x.cumsum(0) if not x.is_floating_point() else None, "count_nonzero": lambda x: torch.count_nonzero(x),
               "sum_of_integers": lambda x: x.sum(-1) if not x.is_floating_point() else None,
               "prod_of_integers": lambda x: x.prod(0) if not x.is_floating_point() else None}, 3)


@maker(5)
def cast(r, g, values, k):
    targets = [torch.float16, torch.bfloat16] * 2 + [torch.float32, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2,
                                                   torch.int32, torch.int64, torch.uint8, torch.int8, torch.int16, torch.bool]
    t = r.choice(targets)
    v = values[k]
    if v.model.is_floating_point() and not t.is_floating_point and t != torch.bool and not (v.scale < 2 ** 31 and v.model.isfinite().all()):
        return None
    return Step(f"to[{str(t)[6:]}]", "cast", None, [k], cast=t, keeps=t == v.model.dtype)


@maker(5)
def with_scalar(r, g, values, k):
    x = values[k].model
    s = r.choice([2, -1, 3, 0, 1, 7, 0.5, -1.5, 0.1, 2.5, 100, 255, -128, 300, 1000, True])
    table = {"add": lambda x: x + s, "sub": lambda x: x - s, "rsub": lambda x: s - x, "mul": lambda x: x * s, "div": lambda x: x / s,
             "add_alpha": lambda x: torch.add(x, x, alpha=s)}
    jumps = {"eq": lambda x: x == s, "lt": lambda x: x < s, "ge": lambda x: x >= s, "ne": lambda x: x != s, "gt": lambda x: s > x,
             "floordiv": lambda x: x // s, "remainder": lambda x: x % s, "fmod": lambda x: torch.fmod(x, s),
             "where": lambda x: torch.where(x > 1, x, s), "masked_fill": lambda x: x.masked_fill(x < 1, s),
             "heaviside": lambda x: torch.heaviside(x, torch.full_like(x, s)), "pow": lambda y: y ** s if not x.is_floating_point() else None}
    selects = {"clamp_min": lambda x: torch.clamp(x, min=s), "clamp_max": lambda x: torch.clamp(x, max=s), "clamp": lambda x: x.clamp(-s, s),
               "hardtanh": lambda x: F.hardtanh(x, -abs(s) - 1, abs(s)), "threshold": lambda x: F.threshold(x, s, s)}
    bits = {"and": lambda x: x & s, "or": lambda x: x | s, "xor": lambda x: x ^ s, "shl": lambda x: x << 3, "shr": lambda x: x >> 2}
    kind, of = r.choice([("rounded", table), ("rounded", table), ("jump", jumps), ("selects", selects), ("jump", bits)])
    name = r.choice(sorted(of))
    if kind == "selects":  # a bound that the storage type does not hold is another number there
        held = not x.is_floating_point() or torch.tensor(float(s)).to(x.dtype).item() == float(s)
        kind = "select" if held else "jump"
    if name == "add_alpha" and x.is_floating_point():  # where the machine has fma PyTorch rounds once, of storage types at some lengths
        kind = "inexact"
    if name == "pow" and s != int(s):
        kind = "inexact"
    return Step(f"{name}[{s}]", kind, of[name], [k])


@maker(6)
def with_another(r, g, values, k):
    x = values[k].model
    fits = []
    for j, v in enumerate(values):
        try:
            if math.prod(torch.broadcast_shapes(x.shape, v.model.shape)) <= 2000:
                fits.append(j)
        except RuntimeError:
            pass
    j = r.choice(fits)
    rounded = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div}
    select = {"maximum": torch.maximum, "minimum": torch.minimum, "fmax": torch.fmax}
    jump = {"eq": torch.eq, "lt": torch.lt, "ge": torch.ge, "floordiv": torch.floor_divide, "remainder": torch.remainder, "fmod": torch.fmod,
            "where": lambda a, b: torch.where(a > b, a, b), "logical_and": torch.logical_and, "xor": torch.bitwise_xor,
            "heaviside": torch.heaviside, "div_trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc")}
    inexact = {"atan2": torch.atan2, "hypot": torch.hypot, "logaddexp": torch.logaddexp, "lerp": lambda a, b: torch.lerp(a, b, 0.3),
               "addcmul": lambda a, b: torch.addcmul(a, a, b, value=0.5), "pow": lambda a, b: torch.pow(a.abs() + 0.5, b.clamp(-3, 3))}
    kind, of = r.choice([("rounded", rounded)] * 3 + [("select", select), ("jump", jump), ("inexact", inexact)])
    name = r.choice(sorted(of))
    unclear = {"atan2": near_a_cut, "floordiv": large_quotient}
    return Step(name, kind, of[name], [k, j] if r.random() < 0.5 else [j, k], unclear=unclear.get(name))


@maker(8)
def move(r, g, values, k):
    x = values[k].model
    n, d = x.dim(), r.randrange(max(x.dim(), 1))
    if n == 0:
        return Step("unsqueeze", "move", lambda x: x.unsqueeze(0), [k])
    e, size = r.randrange(n), x.shape[d]
    lo, step = r.randint(0, max(size - 1, 0)), r.choice([1, 2, 3])
    shift, p, q = r.randint(-3, 3), r.randint(0, 2), r.randint(-1, 2)
    table = {
        f"transpose[{d},{e}]": lambda x: x.transpose(d, e), f"flip[{d}]": lambda x: x.flip(d), f"roll[{shift},{d}]": lambda x: x.roll(shift, d),
        f"unsqueeze[{d}]": lambda x: x.unsqueeze(d), "flatten": lambda x: x.flatten(), f"narrow[{d},{lo}]": lambda x: x.narrow(d, lo, size - lo),
        f"slice[{lo}::{step}]": lambda x: x[..., ::step] if d % 2 else x[lo::step], f"select[{d},{lo}]": lambda x: x.select(d, lo),
        f"cat[{d}]": lambda x: torch.cat([x, x.flip(d)], d), f"stack[{d}]": lambda x: torch.stack([x, x], d),
        f"pad[{p},{q}]": lambda x: F.pad(x, (p, q), value=1.5), "repeat": lambda x: x.repeat(*[2] * n), "movedim": lambda x: x.movedim(0, -1),
        f"expand[{d}]": lambda x: x.unsqueeze(d).expand(*x.shape[:d], 3, *x.shape[d:]), "squeeze": lambda x: x.squeeze(),
        f"unfold[{d}]": lambda x: x.unfold(d, 2, step), f"tril[{shift}]": lambda x: x.tril(shift), f"triu[{shift}]": lambda x: x.triu(shift),
        f"diagonal[{shift}]": lambda x: x.diagonal(shift, 0, 1), f"chunk[{d}]": lambda x: x.chunk(2, d)[-1], "rot90": lambda x: torch.rot90(x),
        "unflatten": lambda x: x.unflatten(-1, (-1, 2)), "reflect": lambda x: F.pad(x, (1, 1), mode="reflect"),
        "circular": lambda x: F.pad(x, (1, 1), mode="circular"), "replicate": lambda x: F.pad(x, (2, 1), mode="replicate"),
        "repeat_interleave": lambda x: x.repeat_interleave(2, d), "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2), "contiguous": lambda x: x.contiguous(),
        f"view_as[{d}]": lambda x: x.reshape(x.shape[::-1]), "tensor_split": lambda x: x.tensor_split(3, d)[1], "diag_embed": torch.diag_embed,
        "max_pool1d": lambda x: F.max_pool1d(x, 2), "max_pool2d": lambda x: F.max_pool2d(x, 2, 1), "topk": lambda x: x.topk(2, -1)[0],
        "adaptive_max_pool": lambda x: F.adaptive_max_pool1d(x, 2), "clone_": lambda x: x.clone(), "nearest": lambda x: F.interpolate(x, scale_factor=2),
        "in_place": lambda x: x.clone().index_fill_(d, torch.tensor([0]), 1), "kthvalue": lambda x: x.kthvalue(1, d)[0],
        "fill_slice": lambda x: torch.ops.aten.slice_scatter(x, x[:1], 0, size - 1 if d == 0 else 0, None if d == 0 else 1),
    }
    name = r.choice(sorted(table))
    return Step(name, "move", table[name], [k])


@maker(3)
def by_index(r, g, values, k):
    x = values[k].model
    if x.dim() == 0 or 0 in x.shape:
        return None
    d = r.randrange(x.dim())
    one = torch.randint(0, x.shape[d], (r.randint(1, 5),), generator=g)
    full = torch.randint(0, x.shape[d], x.shape, generator=g)
    distinct = torch.randperm(x.shape[d], generator=g)[: max(1, x.shape[d] // 2)]
    table = {f"index_select[{d}]": (lambda x, i: x.index_select(d, i), one), f"take_along_dim[{d}]": (lambda x, i: x.take_along_dim(i, d), full),
             "index": (lambda x, i: x[i] if d == 0 else x[:, i] if d == 1 else x[..., i], one),
             f"index_copy[{d}]": (lambda x, i: x.index_copy(d, i, x.narrow(d, 0, i.shape[0])), distinct),
             "index_put": (lambda x, i: x.index_put((i,), x[:1].expand(i.shape[0], *x.shape[1:])) if d == 0 else None, distinct),
             f"gather[{d}]": (lambda x, i: x.gather(d, i), full), "masked_fill": (lambda x, i: x.masked_fill(i % 2 == 0, 1), full),
             "where": (lambda x, i: torch.where(i > 1, x, x.flip(d)), full)}
    name = r.choice(sorted(table))
    return Step(name, "move", table[name][0], [k], [table[name][1]])


@maker(4)
def reduce(r, g, values, k):
    x = values[k].model
    if x.dim() == 0 or not floating(values[k]):
        return None
    d, keep = r.randrange(x.dim()), r.random() < 0.4
    table = {"sum": lambda x: x.sum(d, keepdim=keep), "mean": lambda x: x.mean(d, keepdim=keep), "softmax": lambda x: x.softmax(d),
             "log_softmax": lambda x: x.log_softmax(d), "logsumexp": lambda x: x.logsumexp(d, keepdim=keep), "norm": lambda x: x.norm(dim=d, keepdim=keep),
             "var": lambda x: x.var(d, keepdim=keep), "std": lambda x: x.std(d, correction=0), "cumsum": lambda x: x.cumsum(d),
             "prod": lambda x: (x / 2).prod(d), "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]), "normalize": lambda x: F.normalize(x, dim=d),
             "sum_f32": lambda x: x.sum(d, dtype=torch.promote_types(x.dtype, torch.float32)), "nansum": lambda x: x.nansum(d),
             "cosine": lambda x: F.cosine_similarity(x, x.flip(d), dim=d), "var_mean": lambda x: torch.var_mean(x, d)[1],
             "avg_pool1d": lambda x: F.avg_pool1d(x, 2), "avg_pool2d": lambda x: F.avg_pool2d(x, 2, 1, padding=1), "group_norm": lambda x: F.group_norm(x, 1),
             "instance_norm": lambda x: F.instance_norm(x), "linear_up": lambda x: F.interpolate(x, scale_factor=2, mode="linear"),
             "bilinear": lambda x: F.interpolate(x, size=(5, 3), mode="bilinear"), "adaptive": lambda x: F.adaptive_avg_pool1d(x, 3),
             "bicubic": lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic", align_corners=True), "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:]),
             "glu": lambda x: F.glu(x, d), "pairwise": lambda x: torch.cdist(x, x), "local_response": lambda x: F.local_response_norm(x, 2)}
    name = r.choice(sorted(table))
    return Step(f"{name}[{d}{',keep' if keep else ''}]", "inexact", table[name], [k])


@maker(3)
def contract(r, g, values, k):
    x = values[k].model
    if x.dim() == 0 or x.dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        return None
    n, o = x.shape[-1], r.choice([1, 3, 8])
    c = x.shape[1] if x.dim() > 1 else 1

    def weight(*shape):
        return (torch.randn(*shape, generator=g) / max(1, math.prod(shape[1:])) ** 0.5).to(x.dtype)

    table = {"linear": (lambda x, w, b: F.linear(x, w, b), [weight(o, n), weight(o)]), "matmul": (lambda x, w: x @ w, [weight(n, o)]),
             "gram": (lambda x: x @ x.transpose(-1, -2), []), "sdpa": (lambda x: F.scaled_dot_product_attention(x, x, x), []),
             "causal": (lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), []),
             "conv1d": (lambda x, w: F.conv1d(x, w, padding=1), [weight(o, c, 3)]), "einsum": (lambda x, w: torch.einsum("...i,ij->...j", x, w), [weight(n, o)]),
             "conv2d": (lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), [weight(o, c, 3, 3), weight(o)]),
             "depthwise": (lambda x, w: F.conv2d(x, w, padding=1, groups=x.shape[1]), [weight(c, 1, 3, 3)]),
             "conv_transpose1d": (lambda x, w: F.conv_transpose1d(x, w, stride=2), [weight(c, o, 3)]),
             "batch_norm": (lambda x, m, v: F.batch_norm(x, m, v.abs() + 0.5), [weight(c), weight(c)]),
             "bilinear": (lambda x, w: F.bilinear(x, x, w), [weight(o, n, n)]), "prelu": (lambda x, w: F.prelu(x, w), [weight(1)]),
             "addmm": (lambda x, b, w: torch.addmm(b, x, w, beta=0.5, alpha=2), [weight(o), weight(n, o)])}
    name = r.choice(sorted(table))
    attends = name in ("sdpa", "causal")
    return Step(name, "inexact", table[name][0], [k], table[name][1], unclear=not_finite if attends else None,
                rough=rough_attention(name == "causal") if attends else None)


@maker(1)
def embed(r, g, values, k):
    x = values[k].model
    if x.dtype not in (torch.int64, torch.int32) or not x.numel() or x.min() < 0 or x.max() > 40:
        return None
    t = r.choice([torch.float32, torch.float16, torch.bfloat16])
    w = torch.randn(41, 4, generator=g).to(t)
    name, f = r.choice([("embedding", lambda x, w: F.embedding(x, w)), ("one_hot", lambda x, w: F.one_hot(x, 41).to(w.dtype))])
    return Step(name, "move", f, [k], [w])
