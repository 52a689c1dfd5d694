"""The steps of random modules that are trained (differential_train.py): what users of autograd write.

A step is a module of one to three tensors. Its `patterns` say what it has in it of what has gone wrong before, to be counted. A step that
rounds multiplies by noisy(1), where only a rounding of it decides what comes after: the module is run with noise there, and one whose gradients
jump then is not compared."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

NOISE = [0.0, None]  # how large, and the generator


def noisy(x):
    """x; or, where noise is on, x as another order of additions would have rounded it."""
    if not NOISE[0] or not (x.is_floating_point() or x.is_complex()):
        return x
    return x * (1 + NOISE[0] * torch.randn(x.shape, generator=NOISE[1], dtype=torch.float64)).to(x.dtype)


class Step(nn.Module):
    """f(self, *operands). `exact`: it selects or moves values, and rounds none."""

    def __init__(self, text, f, params=None, buffers=None, frozen=(), patterns=(), exact=False, at=None, modules=None):
        super().__init__()
        self.text, self.f, self.patterns, self.exact, self.at = text, f, tuple(patterns), exact, at
        for name, t in (params or {}).items():
            self.register_parameter(name, t if isinstance(t, nn.Parameter) else nn.Parameter(t, requires_grad=name not in frozen))
        for name, t in (buffers or {}).items():
            self.register_buffer(name, t)
        for name, m in (modules or {}).items():
            self.add_module(name, m)

    def forward(self, *x):
        return self.f(self, *x)


class Draw:
    """What a step is made of: random choices, the values so far, the steps so far."""

    def __init__(self, r, g, values, steps, dtype):
        self.r, self.g, self.values, self.steps, self.dtype = r, g, values, steps, dtype

    def pick(self):
        """A value, mostly one of the newest, and its number."""
        n = len(self.values)
        k = n - 1 if self.r.random() < 0.6 else self.r.randrange(n)
        return self.values[k], k

    def like(self, x, exactly=False):
        """The number of a value that broadcasts with x to x's shape."""
        fits = [k for k, v in enumerate(self.values) if v.shape == x.shape or (not exactly and broadcasts(v.shape, x.shape))]
        return self.r.choice(fits)

    def weight(self, *shape):
        scale = max(1, math.prod(shape[1:])) ** 0.5
        if self.r.random() < 0.15:  # ties and zeros
            return (torch.randint(-4, 5, shape, generator=self.g) / 4).to(self.dtype)
        return (torch.randn(*shape, generator=self.g, dtype=torch.float64) / scale).to(self.dtype)


def broadcasts(a, b):
    try:
        return torch.broadcast_shapes(a, b) == b
    except RuntimeError:
        return False


MAKERS = []


def maker(weight=1):
    def add(f):
        MAKERS.extend([f] * weight)
        return f
    return add


def table(weight, build, exact=False, rank=0, patterns=()):
    """One step for each draw of the table {text: f(x)} that build(draw, x) gives."""
    @maker(weight)
    def make(d):
        x, k = d.pick()
        if x.dim() < rank or not x.numel():
            return None
        of = build(d, x)
        name = d.r.choice(sorted(of))
        f, marks = of[name] if isinstance(of[name], tuple) else (of[name], ())
        return Step(name, lambda self, x: f(x), at=[k], exact=exact, patterns=(*patterns, *marks))


# ---- functions and index maps ----

table(5, lambda d, x: {
    "sin": torch.sin, "tanh": torch.tanh, "exp": lambda x: x.clamp(max=2).exp(), "sigmoid": torch.sigmoid, "softplus": F.softplus,
    "gelu": F.gelu, "silu": F.silu, "elu": F.elu, "log1p": lambda x: x.abs().log1p(), "sqrt": lambda x: (x.abs() + 0.25).sqrt(),
    "square": lambda x: x * x, "pow": lambda x: x.abs().add(0.5).pow(1.5), "reciprocal": lambda x: 1 / (x.abs() + 1), "atan": torch.atan,
    "mish": F.mish, "logsigmoid": F.logsigmoid, "hardswish": F.hardswish, "erf": torch.erf, "softsign": F.softsign, "halves": lambda x: x / 2,
    "rsqrt": lambda x: torch.rsqrt(x * x + 0.5), "twice": lambda x: x + x, "own_product": lambda x: x * x.flip(-1) if x.dim() else x * x,
    "dropout_of_nothing": lambda x: F.dropout(x, 0.0), "atan2": lambda x: torch.atan2(x, x.abs() + 1), "sinc": torch.sinc})

table(3, lambda d, x: {
    "relu": torch.relu, "abs": torch.abs, "relu6": F.relu6, "hardtanh": F.hardtanh, "leaky_relu": F.leaky_relu, "clamp": lambda x: x.clamp(-0.5, 0.5),
    "maximum0": lambda x: torch.maximum(x, torch.zeros_like(x)), "threshold": lambda x: F.threshold(x, 0.25, 0.0), "hardshrink": F.hardshrink,
    "softshrink": F.softshrink, "sign_times": lambda x: x.sign() * x, "where": lambda x: torch.where(x > 0, x, x / 4), "hardsigmoid": F.hardsigmoid,
    "amax": lambda x: x.amax(-1, keepdim=True), "max": lambda x: x.max(-1)[0], "min": lambda x: x.min(0)[0], "cummax": lambda x: x.cummax(-1)[0],
    "sort": lambda x: x.sort(-1)[0], "median": lambda x: x.median(-1)[0], "topk": lambda x: x.topk(1, -1)[0], "amin_all": lambda x: x.amin(),
    "max_all": lambda x: x.max(), "aminmax": lambda x: torch.aminmax(x, dim=-1)[1], "selu": F.selu, "celu": F.celu,
    "max_pool1d": lambda x: F.max_pool1d(x, 2, 1), "max_pool2d": lambda x: F.max_pool2d(x, 2), "adaptive_max": lambda x: F.adaptive_max_pool1d(x, 2),
    "max_pool_1": (lambda x: F.max_pool1d(x, 1, 2), ("window of extent 1",)),
    "prelu_at_0": lambda x: F.prelu(x, torch.full((1,), 0.25, dtype=x.dtype))}, exact=True, rank=1, patterns=("ties and zeros",))


def moves(d, x):
    n, k = x.dim(), d.r.randrange(max(x.dim(), 1))
    e, size, lo = d.r.randrange(max(n, 1)), x.shape[k] if n else 1, 0
    lo = d.r.randint(0, max(size - 1, 0))
    p, q = d.r.randint(-1, 2), d.r.randint(-1, 2)
    return {
        f"transpose[{k},{e}]": lambda x: x.transpose(k, e), f"flip[{k}]": lambda x: x.flip(k), f"narrow[{k},{lo}]": lambda x: x.narrow(k, lo, size - lo),
        f"select[{k}]": lambda x: x.select(k, lo), f"unsqueeze[{k}]": lambda x: x.unsqueeze(k), "flatten": lambda x: x.flatten(), "every2": lambda x: x[..., ::2],
        f"cat[{k}]": lambda x: torch.cat([x, x.flip(k)], k), "repeat": lambda x: x.repeat(*[2] * n), f"roll[{k}]": lambda x: x.roll(1, k),
        f"pad[{p},{q}]": lambda x: F.pad(x, (p, q)), "expand": lambda x: x.unsqueeze(0).expand(3, *x.shape), f"chunk[{k}]": lambda x: x.chunk(2, k)[-1],
        "circular": lambda x: F.pad(x, (1, 1), mode="circular"), "reflect": lambda x: F.pad(x, (1, 1), mode="reflect"),
        "replicate": lambda x: F.pad(x, (1, 2), mode="replicate"), f"unfold[{k}]": lambda x: x.unfold(k, 2, 1), "diagonal": lambda x: x.diagonal(0, 0, 1),
        "tril": lambda x: x.tril(), "reshape": lambda x: x.reshape(x.shape[::-1]), "movedim": lambda x: x.movedim(0, -1), "squeeze": lambda x: x.squeeze(),
        f"unbind[{k}]": lambda x: x.unbind(k)[0], f"interleave[{k}]": lambda x: x.repeat_interleave(2, k), "stack": lambda x: torch.stack([x, x.neg()]),
        "unfold1": (lambda x: x.unfold(-1, 1, 2), ("window of extent 1",)), "as_tile": lambda x: x.tile(2), "rot90": lambda x: torch.rot90(x),
        "split": lambda x: torch.cat(x.split([1, x.shape[k] - 1], k)[::-1], k), "none_index": lambda x: x[None, ..., :1]}


table(5, moves, exact=True, rank=1)


def sums(d, x):
    k, keep = d.r.randrange(max(x.dim(), 1)), d.r.random() < 0.4
    return {
        f"sum[{k}]": lambda x: x.sum(k, keepdim=keep), f"mean[{k}]": lambda x: x.mean(k, keepdim=keep), f"softmax[{k}]": lambda x: x.softmax(k),
        f"log_softmax[{k}]": lambda x: x.log_softmax(k), f"logsumexp[{k}]": lambda x: x.logsumexp(k), f"var[{k}]": lambda x: x.var(k, keepdim=keep, correction=0),
        f"norm[{k}]": lambda x: x.norm(dim=k), f"cumsum[{k}]": lambda x: x.cumsum(k), f"prod[{k}]": lambda x: x.prod(k), "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
        "normalize": lambda x: F.normalize(x, dim=-1), "group_norm": lambda x: F.group_norm(x, 1), "std": lambda x: (x + 0.1 * x.flip(k)).std(k),
        "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:]), "avg_pool1d": lambda x: F.avg_pool1d(x, 2), "avg_pool2d": lambda x: F.avg_pool2d(x, 2, 1, padding=1),
        "avg_pool_1": (lambda x: F.avg_pool1d(x, 1, 2).square().add(1).log(), ("window of extent 1",)), "logcumsumexp": lambda x: x.logcumsumexp(k),
        "avg_pool2d_1": (lambda x: F.avg_pool2d(x, 1, 2).square().add(1).log(), ("window of extent 1",)),
        "cosine": lambda x: F.cosine_similarity(x, x.roll(1, k) + 0.5, dim=k), "cdist": lambda x: torch.cdist(x, x + 1), "glu": lambda x: F.glu(x, k),
        "linear_up": lambda x: F.interpolate(x, scale_factor=2, mode="linear"), "bilinear": lambda x: F.interpolate(x, size=(3, 5), mode="bilinear"),
        "adaptive": lambda x: F.adaptive_avg_pool1d(x, 3), "instance_norm": lambda x: F.instance_norm(x), "lerp": lambda x: torch.lerp(x, x.flip(k), 0.25),
        "centred": lambda x: x - x.mean(k, keepdim=True), "standard": lambda x: (x - x.mean(k, keepdim=True)) / (x.var(k, keepdim=True, correction=0) + 1e-3).sqrt()}


table(4, sums, rank=1)


@maker(4)
def two_values(d):
    x, k = d.pick()
    j = d.like(x)
    of = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": lambda a, b: a / (b.abs() + 1), "hypot": lambda a, b: torch.hypot(a, b + 3),
          "lerp": lambda a, b: torch.lerp(a, b.expand_as(a), 0.25), "addcmul": lambda a, b: torch.addcmul(a, a, b, value=0.5)}
    select = {"maximum": torch.maximum, "minimum": torch.minimum, "where": lambda a, b: torch.where(a > b, a, b), "fmax": torch.fmax}
    exact = d.r.random() < 0.25
    of = select if exact else of
    name = d.r.choice(sorted(of))
    return Step(name, lambda self, a, b: of[name](a, b), at=[k, j], exact=exact, patterns=("ties and zeros",) if exact else ())


@maker(3)
def by_index(d):
    x, k = d.pick()
    if x.dim() == 0 or 0 in x.shape:
        return None
    a = d.r.randrange(x.dim())
    i = torch.randint(0, x.shape[a], (d.r.randint(1, 6),), generator=d.g)
    full = torch.randint(0, x.shape[a], x.shape, generator=d.g)
    of = {"index_select": lambda s, x: x.index_select(a, s.i), "gather": lambda s, x: x.gather(a, s.full), "take_along": lambda s, x: x.take_along_dim(s.full, a),
          "index_add": lambda s, x: x.index_add(a, s.i, x.index_select(a, s.i) * 2), "scatter_add": lambda s, x: x.scatter_add(a, s.full, x * x),
          "index": lambda s, x: x[s.i] if a == 0 else x[..., s.i % x.shape[-1]], "index_put": lambda s, x: x.index_put((s.i % x.shape[0],), x[:1] * 3, accumulate=True),
          "scatter": lambda s, x: x.scatter(a, s.full[:1] if a else s.full, 0.5), "masked_fill": lambda s, x: x.masked_fill(s.full % 2 == 0, 0.25),
          "index_fill": lambda s, x: x.index_fill(a, s.i, 0.5), "embedding": lambda s, x: F.embedding(s.i % x.shape[0], x)}
    name = d.r.choice(sorted(of))
    return Step(f"{name}[{a}]", of[name], buffers={"i": i, "full": full}, at=[k])


# ---- layers ----

def contraction_operand(d, x):
    """How the data of a weight reaches a contraction: as it is, or through index maps; the maps give its shape back."""
    how = d.r.choice(["", "", "", "permute", "flip", "slice", "repeat", "tile", "expand", "reshape", "roll"])
    maps = {"": lambda w: w, "permute": lambda w: w.t().reshape(w.shape[1], w.shape[0]).t(), "flip": lambda w: w.flip(0), "slice": lambda w: torch.cat([w, w])[1:w.shape[0] + 1],
            "repeat": lambda w: w[:1].repeat(w.shape[0], 1), "tile": lambda w: w[:, :1].tile(1, w.shape[1]), "expand": lambda w: w[:1].expand(*w.shape),
            "reshape": lambda w: w.reshape(-1).reshape(w.shape[1], w.shape[0]).reshape(w.shape), "roll": lambda w: w.roll(1, 0)}
    return maps[how], (f"contraction operand through {how}",) if how else ()


@maker(5)
def layer(d):
    x, k = d.pick()
    if x.dim() == 0 or 0 in x.shape:
        return None
    n, o, c = x.shape[-1], d.r.choice([1, 2, 3, 8]), x.shape[1] if x.dim() > 1 else 1
    f, marks = contraction_operand(d, x)
    w = d.weight
    of = {"linear": (lambda s, x: F.linear(x, f(s.w), s.b), {"w": w(o, n), "b": w(o)}, marks), "matmul": (lambda s, x: x @ f(s.w), {"w": w(n, o)}, marks),
          "gram": (lambda s, x: x @ x.transpose(-1, -2), {}, ()), "sdpa": (lambda s, x: F.scaled_dot_product_attention(x, x @ f(s.w), x), {"w": w(n, n)}, marks),
          "conv1d": (lambda s, x: F.conv1d(x, s.w, padding=1), {"w": w(o, c, 3)}, ()), "conv1d_1": (lambda s, x: F.conv1d(x, s.w, s.b), {"w": w(o, c, 1), "b": w(o)}, ("window of extent 1",)),
          "conv2d": (lambda s, x: F.conv2d(x, s.w, s.b, stride=2, padding=1), {"w": w(o, c, 3, 3), "b": w(o)}, ()),
          "depthwise": (lambda s, x: F.conv2d(x, s.w, padding=1, groups=x.shape[1]), {"w": w(c, 1, 3, 3)}, ()),
          "conv_transpose": (lambda s, x: F.conv_transpose1d(x, s.w, stride=2), {"w": w(c, o, 3)}, ()),
          "einsum": (lambda s, x: torch.einsum("...i,ij->...j", x, f(s.w)), {"w": w(n, o)}, marks),
          "einsum_no_sum": (lambda s, x: torch.einsum("...i,i->...i", x, s.w), {"w": w(n)}, ("contraction without a sum",)),
          "outer": (lambda s, x: torch.einsum("...i,j->...ij", x, s.w), {"w": w(o)}, ("contraction without a sum",)),
          "bmm_1": (lambda s, x: torch.matmul(x[..., :1], s.w), {"w": w(1, o)}, ("contraction of extent 1",)),
          "bilinear": (lambda s, x: F.bilinear(x, x, s.w), {"w": w(o, n, n)}, ()), "prelu": (lambda s, x: F.prelu(x, s.w), {"w": w(1)}, ("ties and zeros",)),
          "scale_shift": (lambda s, x: x * s.w + s.b, {"w": w(n), "b": w(n)}, ()), "layer_norm": (lambda s, x: F.layer_norm(x, x.shape[-1:], s.w, s.b), {"w": w(n), "b": w(n)}, ()),
          "repeat_rows": (lambda s, x: x @ s.w.repeat(n, 1), {"w": w(1, o)}, ("contraction operand through repeat",)),
          "weight_norm": (lambda s, x: F.linear(x, s.v * (s.w / s.v.norm(dim=1, keepdim=True))), {"v": w(o, n) + 1, "w": w(o, 1)}, ()),
          "lora": (lambda s, x: x @ (s.w + s.a @ s.b), {"w": w(n, o), "a": w(n, 1), "b": w(1, o)}, ("frozen parameter",))}
    name = d.r.choice(sorted(of))
    g, params, marks = of[name]
    frozen = {"w"} if name == "lora" else {p for p in params if d.r.random() < 0.12}
    if frozen:
        marks = (*marks, "frozen parameter")
    return Step(name + ("" if not frozen else f"[frozen {','.join(sorted(frozen))}]"), g, params, frozen=frozen, patterns=set(marks), at=[k])


@maker(2)
def tied(d):
    """A parameter of an earlier step once more: as it is, transposed, or as a buffer would be."""
    x, k = d.pick()
    have = [(s, n, p) for s in d.steps for n, p in s.named_parameters(recurse=False)]
    if not have or x.dim() == 0 or 0 in x.shape:
        return None
    _, name, p = d.r.choice(have)
    of = []
    if p.dim() == 2 and p.shape[1] == x.shape[-1]:
        of.append(("linear", lambda s, x: F.linear(x, s.w)))
    if p.dim() == 2 and p.shape[0] == x.shape[-1]:
        of += [("matmul", lambda s, x: x @ s.w), ("tied_transposed", lambda s, x: F.linear(x, s.w.t()))]
    if broadcasts(p.shape, x.shape):
        of.append(("mul", lambda s, x: x * s.w))
    of.append(("times_mean", lambda s, x: x * s.w.mean()))
    text, f = d.r.choice(of)
    return Step(f"tied_{text}", f, {"w": p}, at=[k], patterns=("tied parameter",) if p.requires_grad else ("tied parameter", "frozen parameter"))


@maker(2)
def whole_module(d):
    x, k = d.pick()
    if x.dim() == 0 or 0 in x.shape or x.numel() > 400:
        return None
    n, c = x.shape[-1], x.shape[1] if x.dim() > 1 else 1
    of = {"batch_norm_train": (lambda: nn.BatchNorm1d(c), ("buffer written",)), "batch_norm_eval": (lambda: nn.BatchNorm1d(c).eval(), ("buffer",)),
          "batch_norm2d": (lambda: nn.BatchNorm2d(c, momentum=0.3), ("buffer written",)), "instance_norm": (lambda: nn.InstanceNorm1d(c, affine=True), ()),
          "mlp": (lambda: nn.Sequential(nn.Linear(n, 4), nn.ReLU(inplace=True), nn.Linear(4, n)), ("in-place",)),
          "dropout_eval": (lambda: nn.Dropout(0.5, inplace=True).eval(), ("in-place",)), "group_norm": (lambda: nn.GroupNorm(1, c), ()),
          "lstm": (lambda: nn.LSTM(n, 3, batch_first=True), ()), "gru": (lambda: nn.GRU(n, 3, batch_first=True), ()), "rnn": (lambda: nn.RNN(n, 2), ()),
          "attention": (lambda: nn.MultiheadAttention(n, 1, batch_first=True), ()), "encoder": (lambda: nn.TransformerEncoderLayer(n, 1, 6, dropout=0.0, batch_first=True), ()),
          "spectral": (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(n, 3)), ("no_grad", "buffer written")),
          "weight_norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(n, 3)), ()), "conv": (lambda: nn.Conv1d(c, 3, 3, padding=1, padding_mode="circular"), ()),
          "embedding_bag": (lambda: nn.EmbeddingBag(5, n), ())}
    name = d.r.choice(sorted(of))
    torch.manual_seed(d.r.randrange(1 << 30))
    m = of[name][0]().to(d.dtype)
    run = {"attention": lambda s, x: s.m(x, x, x)[0], "embedding_bag": lambda s, x: x + s.m(torch.arange(4).reshape(2, 2))[0]}
    first = lambda s, x: (lambda y: y[0] if isinstance(y, tuple) else y)(s.m(x))  # noqa: E731
    return Step(name, run.get(name, first if name != "dropout_eval" else lambda s, x: s.m(x * 1)), modules={"m": m}, at=[k], patterns=of[name][1])


# ---- what autograd sees ----

@maker(4)
def detached(d):
    x, k = d.pick()
    j = d.like(x)
    if not x.numel():
        return None
    of = {"straight_through": lambda s, a, b: a + (a.round() - a).detach(), "stop": lambda s, a, b: a * b.detach(), "target": lambda s, a, b: (a - b.detach()) ** 2,
          "detached_norm": lambda s, a, b: a / (a.norm().detach() + 1), "sign_through": lambda s, a, b: (a.sign() - a).detach() + a + b,
          "data_free": lambda s, a, b: a.detach() * b + a, "detach_clone": lambda s, a, b: b * a.clone().detach().clone(), "both_stopped": lambda s, a, b: a.detach() + b.detach() * s.one,
          "detach_view": lambda s, a, b: a.flatten().detach().reshape(a.shape) * b, "fake_quant": lambda s, a, b: a + ((a * 8).round().clamp(-16, 15) / 8 - a).detach() + b * 0.5,
          "max_stopped": lambda s, a, b: (a - a.amax(-1, keepdim=True).detach()).exp() if a.dim() else a, "detach_twice": lambda s, a, b: a * b.detach() + b * a.detach(),
          "vq": lambda s, a, b: quantised(s, a), "gumbel": lambda s, a, b: straight_softmax(a) + b}
    name = d.r.choice(sorted(of))
    params = {"one": d.weight(1), **({"book": d.weight(4, x.shape[-1])} if name == "vq" and x.dim() else {})}
    return Step(name, of[name], params, at=[k, j], patterns=("detach",))


def quantised(s, a):
    """Nearest rows of a table, with its two losses."""
    flat = a.reshape(-1, a.shape[-1])
    at = noisy(torch.cdist(flat, s.book)).argmin(1)
    q = F.embedding(at, s.book).reshape(a.shape)
    return a + (q - a).detach() + (q - a.detach()) ** 2 + 0.25 * (q.detach() - a) ** 2


def straight_softmax(a):
    if not a.dim():
        return a
    soft = a.softmax(-1)
    hard = F.one_hot(noisy(soft).argmax(-1), a.shape[-1]).to(a.dtype)
    return hard - soft.detach() + soft


@maker(4)
def without_grad(d):
    x, k = d.pick()
    j = d.like(x)
    if not x.numel():
        return None

    def region(f):
        def g(s, a, b):
            with torch.no_grad():
                t = f(s, a, b)
            return a * 2 + t * b
        return g

    def in_place(s, a, b):
        y = a * s.one
        with torch.no_grad():
            y.mul_(2)
        return y + b

    def in_place_of_slice(s, a, b):
        y = a * s.one
        with torch.no_grad():
            y[..., :1].add_(1.0)
        return y * b

    def enabled_inside(s, a, b):
        with torch.no_grad():
            t = a * a
            with torch.enable_grad():
                u = a * b * s.one
            t = t + u
        return u + t

    def flag(s, a, b):
        with torch.set_grad_enabled(False):
            t = a.abs().mean()
        return a / (t + 1) + b

    def unit_rows(s, a, b):
        y = a * s.one + b
        with torch.no_grad():
            y.div_(y.norm() + 1)
        return y

    @torch.no_grad()
    def decorated(a):
        return a.sigmoid().round()

    def target(s, a, b):
        with torch.no_grad():
            t = F.normalize(a * s.one, dim=-1) if a.dim() else a
        return (F.normalize(b.expand_as(a), dim=-1) - t) ** 2 if a.dim() else t * b

    of = {"no_grad": region(lambda s, a, b: a * s.one), "no_grad_reader": region(lambda s, a, b: (a + b).tanh()), "no_grad_two": region(lambda s, a, b: (a * s.one).sum() + b.sum()),
          "no_grad_view": region(lambda s, a, b: a.flip(-1) if a.dim() else a), "no_grad_in_place": in_place, "no_grad_slice": in_place_of_slice, "enable_grad": enabled_inside,
          "set_grad_enabled": flag, "no_grad_norm": unit_rows, "decorated": lambda s, a, b: decorated(noisy(a)) * b + a, "no_grad_target": target,
          "no_grad_param": region(lambda s, a, b: s.one * 3), "no_grad_alias": region(lambda s, a, b: a)}
    name = d.r.choice(sorted(of))
    marks = ("no_grad", *(("in-place under no_grad",) if name in ("no_grad_in_place", "no_grad_slice", "no_grad_norm") else ()))
    return Step(name, of[name], {"one": d.weight(1) + 1}, at=[k, j], patterns=marks)


@maker(2)
def items(d):
    x, k = d.pick()
    if not x.numel():
        return None
    of = {"item": lambda s, x: x / (x.abs().max().item() + 1), "item_scale": lambda s, x: x * x.mean().item(), "item_param": lambda s, x: x * s.one.item() + s.one,
          "float": lambda s, x: x + float(x.sum()), "item_twice": lambda s, x: (x * x).sum().item() * x + x.flatten()[0].item(),
          "full": lambda s, x: x * torch.full_like(x, 0.5) * s.one}
    name = d.r.choice(sorted(of))
    return Step(name, of[name], {"one": d.weight(1)}, at=[k], patterns=("item",) if name != "full" else ())


@maker(5)
def in_place(d):
    x, k = d.pick()
    j = d.like(x)
    if not x.numel() or x.dim() == 0:
        return None

    def over(write):
        def f(s, a, b):
            y = a * s.one
            z = write(y, a, b)
            return y if z is None else z
        return f

    def assign(at, value):
        def write(y, a, b):
            y[at] = value(y, a, b)
        return write

    of = {"add_": lambda y, a, b: y.add_(b), "mul_": lambda y, a, b: y.mul_(b), "relu_": lambda y, a, b: y.relu_(), "functional_relu_": lambda y, a, b: F.relu(y, inplace=True),
          "clamp_": lambda y, a, b: y.clamp_(-0.5, 0.75), "masked_fill_": lambda y, a, b: y.masked_fill_(a > 0, 0.5), "sub_": lambda y, a, b: y.sub_(b, alpha=2),
          "assign_row": assign(0, lambda y, a, b: 0.5), "assign_column": assign((..., 0), lambda y, a, b: a[..., -1]), "assign_slice": assign((..., slice(1, None)), lambda y, a, b: b.expand_as(a)[..., 1:] * 2),
          "assign_mask": lambda y, a, b: y.masked_scatter_(a > 0.25, b.expand_as(a).contiguous()), "zero_part": lambda y, a, b: y[..., :1].zero_() * 0 + y, "fill_": lambda y, a, b: y.select(0, 0).fill_(0.25) * 0 + y[0],
          "copy_": lambda y, a, b: y.copy_(b) * 1, "view_add_": lambda y, a, b: y.reshape(-1).add_(1).reshape(y.shape) * y, "transposed_mul_": lambda y, a, b: (y.transpose(0, -1).mul_(2), y)[1],
          "tanh_": lambda y, a, b: y.tanh_(), "sigmoid_": lambda y, a, b: y.sigmoid_() + b, "addcmul_": lambda y, a, b: y.addcmul_(a, b.expand_as(a), value=0.5), "exp_": lambda y, a, b: y.clamp_(max=1).exp_(),
          "index_add_": lambda y, a, b: y.index_add_(0, torch.tensor([0, 0]), torch.stack([a[0], a[-1]])), "aug_slice": lambda y, a, b: aug(y, b), "squeeze_": lambda y, a, b: y.unsqueeze_(0) * 2,
          "chain_": lambda y, a, b: y.add_(1).mul_(a).neg_(), "index_put_": lambda y, a, b: y.index_put_((torch.tensor([0, 0]),), a[:1] * b.expand_as(a)[:1], accumulate=True),
          "diagonal_": lambda y, a, b: (y.diagonal(0, 0, -1).fill_(1), y)[1] if y.dim() > 1 else y.add_(b), "lerp_": lambda y, a, b: y.lerp_(b.expand_as(a), 0.25), "t_": lambda y, a, b: y.t_() if y.dim() == 2 else y.add_(1),
          "detach_": lambda y, a, b: (y * a, y.detach_())[0] + b, "fill_of_list": lambda y, a, b: filled(y, a, b), "scatter_": lambda y, a, b: y.scatter_(0, torch.zeros(a.shape, dtype=torch.int64)[:1], a[:1] * 3)}
    name = d.r.choice(sorted(of))
    return Step(name, over(of[name]), {"one": d.weight(1)}, at=[k, j], patterns=("in-place", *(("detach",) if name == "detach_" else ())))


def aug(y, b):
    y[..., :1] += b.expand_as(y)[..., -1:] * 2
    y[0] *= 0.5
    return y


def filled(y, a, b):
    """Results written one after the other into a tensor made for them."""
    out = torch.zeros_like(a)
    for i in range(min(a.shape[0], 3)):
        out[i] = y[i] * b.expand_as(a)[i] if i % 2 else y[i].sin()
    return out


@maker(3)
def buffered(d):
    x, k = d.pick()
    if not x.numel() or x.dim() == 0:
        return None

    def average(s, x):
        with torch.no_grad():
            s.b.mul_(0.9).add_(0.1 * x.mean())
        return x - s.b

    def read_before(s, x):
        old = s.b * 1
        s.b.copy_(x.detach().mean().reshape(1))
        return x * old

    def count(s, x):
        s.n.add_(1)
        return x / (1 + s.n)

    def written_whole(s, x):
        s.b.copy_(x.detach().amax().reshape(1))
        return x * s.b + s.b

    def history(s, x):
        s.table[0] = x.detach().mean()
        return x + s.table.sum()

    def swapped(s, x):
        s.b = (x.detach().mean() + s.b)
        return x * s.b

    of = {"ema": average, "read_before": read_before, "count": count, "written": written_whole, "mask": lambda s, x: x * s.b + 1, "history": history, "assigned": swapped}
    name = d.r.choice(sorted(of))
    buffers = {"b": d.weight(1), "n": torch.tensor(2), "table": d.weight(3)}
    return Step(name, of[name], buffers=buffers, at=[k], patterns=("buffer" if name == "mask" else "buffer written", *(("no_grad",) if name == "ema" else ())))


@maker(2)
def checkpointed(d):
    x, k = d.pick()
    if not x.numel() or x.dim() == 0:
        return None
    w = {"w": d.weight(1), "m": d.weight(x.shape[-1], 3)}
    of = {"checkpoint": lambda s, x: checkpoint(lambda a: (a * s.w).sin() * a, x, use_reentrant=False),
          "checkpoint_layer": lambda s, x: checkpoint(lambda a: torch.relu(a @ s.m), x, use_reentrant=False),
          "checkpoint_twice": lambda s, x: checkpoint(lambda a: checkpoint(lambda b: b.tanh() * s.w, a, use_reentrant=False) + a, x, use_reentrant=False),
          "checkpoint_detach": lambda s, x: checkpoint(lambda a: a * a.detach() * s.w, x, use_reentrant=False)}
    name = d.r.choice(sorted(of))
    return Step(name, of[name], w, at=[k], patterns=("checkpoint", *(("detach",) if "detach" in name else ())))


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -g


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return 2 * g * w, (g * x).sum().reshape(1)


@maker(2)
def custom(d):
    """An exporter leaves what forward does of them."""
    x, k = d.pick()
    of = {"Reverse": lambda s, x: Reverse.apply(x * s.w), "Rounded": lambda s, x: Rounded.apply(noisy(x)) * s.w + x, "Scaled": lambda s, x: Scaled.apply(x, s.w).sin()}
    name = d.r.choice(sorted(of))
    return Step(f"Function[{name}]", of[name], {"w": d.weight(1)}, at=[k], patterns=("autograd.Function",))


@maker(1)
def control(d):
    x, k = d.pick()
    if not x.numel():
        return None
    of = {"cond": lambda s, x: torch.cond(x.sum() > 0.3, lambda a: a.sin() * 2, lambda a: a.cos(), (x,)),
          "cond_detach": lambda s, x: torch.cond(x.sum() > 0.3, lambda a: a * a.detach(), lambda a: a * 3, (x,))}
    name = d.r.choice(sorted(of))
    return Step(name, of[name], at=[k], patterns=("cond", *(("detach",) if "detach" in name else ())))


@maker(1)
def complex_numbers(d):
    x, k = d.pick()
    if not x.numel() or x.dim() == 0:
        return None
    of = {"polar": lambda s, x: torch.view_as_real(torch.polar(x.abs() + 0.5, x)).sum(-1), "complex_mul": lambda s, x: (torch.complex(x, x.flip(-1)) * torch.complex(s.w, s.w * 2).sum()).real,
          "complex_abs": lambda s, x: torch.complex(x, x.roll(1, 0)).abs(), "rotary": lambda s, x: torch.view_as_real(torch.view_as_complex(torch.stack([x, x * s.w], -1)) * torch.exp(torch.complex(x * 0, x))).flatten(-2),
          "conj_product": lambda s, x: (torch.complex(x, x * s.w) * torch.complex(x, x * s.w).conj()).real, "complex_matmul": lambda s, x: (torch.complex(x, x) @ torch.complex(x, x * 2).transpose(-1, -2).conj()).abs() if x.dim() > 1 else x}
    name = d.r.choice(sorted(of))
    return Step(name, of[name], {"w": d.weight(1)}, at=[k], patterns=("complex", *(("ties and zeros",) if name == "complex_abs" else ())))


# ---- losses ----

def losses(d, x):
    """{text: (f, buffers, patterns)} of results of shape x."""
    t = d.weight(*x.shape)
    of = {"sum": (lambda s, x: x.sum(), {}, ()), "mean_square": (lambda s, x: (x * x).mean(), {}, ()), "mse": (lambda s, x: F.mse_loss(x, s.t), {"t": t}, ()),
          "l1": (lambda s, x: F.l1_loss(x, s.t), {"t": t}, ("ties and zeros",)), "smooth_l1": (lambda s, x: F.smooth_l1_loss(x, s.t), {"t": t}, ("ties and zeros",)),
          "huber": (lambda s, x: F.huber_loss(x, s.t, delta=0.5), {"t": t}, ("ties and zeros",)), "bce": (lambda s, x: F.binary_cross_entropy_with_logits(x, s.t.sigmoid()), {"t": t}, ()),
          "logsumexp_all": (lambda s, x: x.flatten().logsumexp(0), {}, ()), "norm": (lambda s, x: x.norm(), {}, ()), "weighted": (lambda s, x: (x * s.t).sum(), {"t": t}, ()),
          "soft_margin": (lambda s, x: F.soft_margin_loss(x, s.t.sign()), {"t": t}, ()), "hinge": (lambda s, x: F.hinge_embedding_loss(x, torch.where(s.t > 0, 1.0, -1.0)), {"t": t}, ("ties and zeros",)),
          "self_target": (lambda s, x: F.mse_loss(x, x.detach().flip(-1) if x.dim() else x.detach()), {}, ("detach",)), "item_loss": (lambda s, x: x.sum() * x.mean().item(), {}, ("item",)),
          "kl": (lambda s, x: F.kl_div(x.log_softmax(-1), s.t.softmax(-1), reduction="batchmean") if x.dim() else x, {"t": t}, ()), "poisson": (lambda s, x: F.poisson_nll_loss(x.clamp(max=2), s.t.abs()), {"t": t}, ())}
    if x.dim() == 2 and x.shape[1] > 1:
        labels = torch.randint(0, x.shape[1], x.shape[:1], generator=d.g)
        of["cross_entropy"] = (lambda s, x: F.cross_entropy(x, s.labels), {"labels": labels}, ())
        of["cross_entropy_smooth"] = (lambda s, x: F.cross_entropy(x, s.labels, label_smoothing=0.1, ignore_index=0), {"labels": labels.clone().fill_(1)}, ())
        of["nll"] = (lambda s, x: F.nll_loss(x.log_softmax(1), s.labels, weight=s.t[0].abs() + 0.1), {"labels": labels, "t": t}, ())
        of["multi_margin"] = (lambda s, x: F.multi_margin_loss(x, s.labels), {"labels": labels}, ("ties and zeros",))
        of["triplet"] = (lambda s, x: F.triplet_margin_loss(x, s.t, x.flip(0) + 0.5), {"t": t}, ())
        of["contrastive"] = (lambda s, x: F.cross_entropy(F.normalize(x, dim=1) @ F.normalize(x + s.t, dim=1).t(), torch.arange(x.shape[0])), {"t": t}, ())
        of["cosine_loss"] = (lambda s, x: F.cosine_embedding_loss(x, s.t, torch.ones(x.shape[0], dtype=torch.int64)), {"t": t}, ())
    return of


def loss_step(d, x, k):
    of = losses(d, x)
    name = d.r.choice(sorted(of))
    f, buffers, marks = of[name]
    return Step(name, f, buffers=buffers, at=[k], patterns=marks)
