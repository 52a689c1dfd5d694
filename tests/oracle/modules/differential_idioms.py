"""Steps of random chains (differential_make.py) that people write and tests seldom do: what has gone wrong before, by name, so that it can be counted."""
import math

import torch
import torch.nn.functional as F

from differential_steps import EVERY_FLOAT, STORAGE, Step, floating, maker

FULL = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# ---- contractions whose operands stand elsewhere ----

def through(r, shape):
    """How a tensor of this shape comes out of another: name, the other's shape, the map back."""
    k = r.randrange(len(shape))
    n = shape[k]
    divisors = [d for d in range(1, n + 1) if n % d == 0]
    d = r.choice(divisors) if divisors else 1
    part = [n // d if j == k else m for j, m in enumerate(shape)] if n else list(shape)
    one = [1 if j == k else m for j, m in enumerate(shape)]
    longer = [m + 2 if j == k else m for j, m in enumerate(shape)]
    perm = r.sample(range(len(shape)), len(shape))
    turned = [0] * len(shape)
    for j, p in enumerate(perm):
        turned[p] = shape[j]
    times = [d if j == k else 1 for j in range(len(shape))]
    ways = {"permute": (turned, lambda w: w.permute(perm)), "reshape": ([math.prod(shape)], lambda w: w.reshape(shape)),
            "slice": (longer, lambda w: w.narrow(k, 1, n)), "flip": (list(shape), lambda w: w.flip(k)),
            "expand": (one, lambda w: w.expand(*shape)), "roll": (list(shape), lambda w: w.roll(1, k)),
            "step": ([2 * m if j == k else m for j, m in enumerate(shape)], lambda w: w[(slice(None),) * k + (slice(None, None, 2),)])}
    if n:
        ways |= {"repeat": (part, lambda w: w.repeat(times)), "tile": (part, lambda w: w.tile(times)), "repeat_interleave": (part, lambda w: w.repeat_interleave(d, k))}
    name = r.choice(sorted(ways))
    return name, *ways[name]


@maker(5)
def contract_moved(r, g, values, k):
    x = values[k].model
    if x.dim() == 0 or x.dtype not in FULL:
        return None
    n, o, c = x.shape[-1], r.choice([1, 2, 3, 8, 16, 37]), x.shape[1] if x.dim() > 1 else 1
    shapes = {"linear": (o, n), "matmul": (n, o), "conv1d": (o, c, r.choice([1, 2, 3])), "einsum": (n, o), "einsum_no_sum": (n,), "outer": (o,), "mv": (n,),
              "conv2d": (o, c, r.choice([1, 3]), r.choice([1, 2])), "conv_transpose": (c, o, 2), "bmm": (n, o), "bmm_k1": (1, o), "addmm": (n, o), "left": (o, n), "dot": tuple(x.shape)}
    name = r.choice(sorted(shapes))
    how, other, back = through(r, shapes[name])
    w = (torch.randn(*other, generator=g) / max(1, math.prod(other[1:])) ** 0.5).to(x.dtype)
    own = r.random() < 0.35 and x.dim() > 1  # the other operand as well
    first = (lambda x: x.transpose(-1, -2).reshape(x.shape)) if own else (lambda x: x)
    table = {"linear": lambda x, w: F.linear(x, w), "matmul": lambda x, w: x @ w, "conv1d": lambda x, w: F.conv1d(x, w, padding=w.shape[2] // 2), "einsum": lambda x, w: torch.einsum("...i,ij->...j", x, w),
             "einsum_no_sum": lambda x, w: torch.einsum("...i,i->...i", x, w), "outer": lambda x, w: torch.einsum("...i,j->...ij", x, w), "mv": lambda x, w: torch.matmul(x, w),
             "conv2d": lambda x, w: F.conv2d(x, w), "conv_transpose": lambda x, w: F.conv_transpose1d(x, w, stride=2), "bmm": lambda x, w: torch.bmm(x, w.expand(x.shape[0], *w.shape)),
             "bmm_k1": lambda x, w: torch.matmul(x[..., :1], w), "addmm": lambda x, w: torch.addmm(x[:, :1], x, w), "left": lambda x, w: w @ x.transpose(-1, -2), "dot": lambda x, w: (x * w).sum(-1)}
    f = table[name]
    marks = {f"contraction operand through {how}"} | ({"contraction without a sum"} if name in ("einsum_no_sum", "outer") else set())
    marks |= ({"contraction over extent 1"} if name == "bmm_k1" or n == 1 else set()) | ({"both operands of a contraction moved"} if own else set())
    return Step(f"{name}[{how}{',x' if own else ''}]", "inexact", lambda x, w: f(first(x), back(w)), [k], [w], patterns=marks)


# ---- windows, pads ----

@maker(3)
def window(r, g, values, k):
    x = values[k].model
    if x.dim() < 2 or not floating(values[k]):
        return None
    s = r.choice([1, 2, 3])
    one = {"max_pool1d": lambda x: F.max_pool1d(x, 1, s), "max_pool2d": lambda x: F.max_pool2d(x, 1, s), "unfold": lambda x: x.unfold(-1, 1, s), "max_pool2d_1x3": lambda x: F.max_pool2d(x, (1, 3), s),
           "max_pool_dilated": lambda x: F.max_pool1d(x, 2, 1, dilation=2), "adaptive_max2d": lambda x: F.adaptive_max_pool2d(x, (2, 1)), "im2col": lambda x: F.unfold(x, 1, stride=s)}
    many = {"avg_pool1d": lambda x: F.avg_pool1d(x, 1, s), "avg_pool2d": lambda x: F.avg_pool2d(x, 1, s), "fold": lambda x: F.fold(x[:, :4, :4].repeat(1, 4, 1)[:, :4], (4, 4), 2, stride=2),
            "lp_pool": lambda x: F.lp_pool1d(x, 2, 1, s), "adaptive_avg2d": lambda x: F.adaptive_avg_pool2d(x, (3, 2)), "fold_1": lambda x: F.fold(x, (x.shape[-1] * 2 - 1, 1), 1, stride=(2, 1))}
    of = one if r.random() < 0.6 else many
    name = r.choice(sorted(of))
    kind = "move" if of is one else "inexact"
    return Step(f"window_{name}[{s}]", kind, of[name], [k], patterns={"window of extent 1"} if "adaptive" not in name else {"window"})


@maker(2)
def pads(r, g, values, k):
    x = values[k].model
    if x.dim() < 2:
        return None
    two = x.dim() > 2 and r.random() < 0.5
    by = [r.randint(-2, 3) for _ in range(4 if two else 2)]
    mode = r.choice(["circular", "circular", "reflect", "replicate", "constant"])
    marks = {"padding that crops"} if min(by) < 0 else set()
    marks |= {"circular pad"} if mode == "circular" else set()
    return Step(f"pad_{mode}{by}", "move", lambda x: F.pad(x, by, mode=mode), [k], patterns=marks)


# ---- random operators whose result is known ----

@maker(2)
def known_random(r, g, values, k):
    x = values[k].model
    if x.dtype not in FULL:
        return None
    table = {"dropout_0": lambda x: F.dropout(x, 0.0), "dropout_0_": lambda x: F.dropout(x.clone(), 0.0, inplace=True), "dropout_eval_": lambda x: F.dropout(x.clone(), 0.4, False, True),
             "bernoulli_1": lambda x: x.clone().bernoulli_(1.0), "bernoulli_0": lambda x: x.clone().bernoulli_(0.0) + x, "normal_0": lambda x: x.clone().normal_(0.5, 0.0),
             "random_1": lambda x: x.clone().random_(1) + x, "uniform_range": lambda x: (x.clone().uniform_(0.25, 0.75) - 0.5).abs() < 0.3, "exponential_positive": lambda x: x.clone().exponential_() > 0,
             "drop_path_keep": lambda x: x * x.new_empty((x.shape[0],) + (1,) * (x.dim() - 1)).bernoulli_(1.0), "rand_range": lambda x: torch.rand_like(x) < 2, "randint_1": lambda x: torch.randint_like(x, 1) + x,
             "alpha_dropout_0": lambda x: F.alpha_dropout(x, 0.0), "gumbel_sum": lambda x: F.gumbel_softmax(x.float(), hard=True).sum(-1) > 0.5, "part_of_random": lambda x: half_random(x)}
    name = r.choice(sorted(table))
    if x.dim() == 0 and name in ("drop_path_keep", "gumbel_sum", "part_of_random"):
        return None
    return Step(name, "rounded" if name in ("bernoulli_0", "random_1", "randint_1", "drop_path_keep") else "jump" if name in ("uniform_range", "exponential_positive", "rand_range", "gumbel_sum") else "move",
                table[name], [k], unclear=lambda operands, result: not all(v.model.isfinite().all() for v in operands) or name == "normal_0" and not operands[0].grain.defined(),
                patterns={"random in place"} if "_like" not in name and "rand_" not in name else {"random"})


def half_random(x):
    y = x.clone()
    y[:1].uniform_(0, 1).zero_()
    return y


# ---- ties and zeros ----

@maker(3)
def ties(r, g, values, k):
    x = values[k].model
    if not floating(values[k]) or x.dim() == 0:
        return None
    d = r.randrange(x.dim())
    table = {"max_index": lambda x: x.max(d)[1], "min_index": lambda x: x.min(d)[1], "max_pool_index": lambda x: F.max_pool1d(x, 2, 1, return_indices=True)[1], "argmax_all": lambda x: x.argmax(),
             "max_pool2d_index": lambda x: F.max_pool2d(x, 2, 1, return_indices=True)[1], "sort_index": lambda x: x.sort(dim=d, stable=True)[1], "cummax_index": lambda x: x.cummax(d)[1], "sign": lambda x: x.sign(),
             "adaptive_max_index": lambda x: F.adaptive_max_pool1d(x, 2, return_indices=True)[1], "inf_pool_index": lambda x: F.max_pool1d(torch.where(x > 0, -math.inf, torch.nan_to_num(x)), 2, 1, return_indices=True)[1],
             "unique": lambda x: torch.searchsorted(x.flatten().sort()[0], x.flatten()), "bucketize": lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5, 1.0], dtype=x.dtype)),
             "heaviside0": lambda x: torch.heaviside(x, x * 0 + 0.5), "signbit0": lambda x: torch.signbit(x * 0), "copysign0": lambda x: torch.copysign(torch.ones_like(x), x), "isclose": lambda x: torch.isclose(x, x.flip(d))}
    name = r.choice(sorted(table))
    return Step(f"{name}[{d}]", "jump", table[name], [k], patterns={"ties and zeros"})


@maker(1)
def infinite_windows(r, g, values, k):
    """Windows of nothing but the smallest value there is."""
    x = values[k].model
    if x.dim() < 2 or x.dim() > 4:
        return None
    low = -math.inf if x.is_floating_point() else torch.iinfo(x.dtype).min if x.dtype not in (torch.bool,) else None
    if low is None or x.dtype.itemsize == 1:
        return None
    table = {"max_pool1d_inf": lambda x: F.max_pool1d(torch.full_like(x, low), 3, 2, padding=1), "max_pool1d_some_inf": lambda x: F.max_pool1d(torch.where(x > 0, low, x), 2),
             "max_pool2d_some_inf": lambda x: F.max_pool2d(torch.where(x > 1, low, x), 3, 1, padding=1), "amax_inf": lambda x: torch.full_like(x, low).amax(-1)}
    name = r.choice(sorted(table))
    return Step(name, "move", table[name], [k], patterns={"windows of the smallest value"})


# ---- complex numbers ----

@maker(2)
def complex_numbers(r, g, values, k):
    x = values[k].model
    if x.dtype not in (torch.float32, torch.float64) or x.dim() == 0:
        return None
    table = {"complex_product": lambda x: (torch.complex(x, x + 1) * torch.complex(x, x.neg())).imag, "complex_abs": lambda x: torch.complex(x, x.flip(-1)).abs(), "rotary": rotary,
             "complex_matmul": lambda x: (torch.complex(x, x * 2) @ torch.complex(x, x).transpose(-1, -2).conj()).real, "angle": lambda x: torch.complex(x.abs() + 1, x).angle(),
             "complex_sum": lambda x: torch.view_as_real(torch.complex(x, x.cos()).sum(-1)), "polar": lambda x: torch.polar(x.abs(), x).real, "complex_mean": lambda x: torch.complex(x, x * 0).mean(0).real,
             "complex_einsum": lambda x: torch.einsum("...i,...i->...i", torch.complex(x, x), torch.complex(x * 0, x)).real, "complex_div": lambda x: (torch.complex(x, x + 1) / torch.complex(x.abs() + 1, x)).real}
    exact = {"complex_index": lambda x: torch.complex(x, x.flip(0))[..., :1].imag, "real_of": lambda x: torch.complex(x, x * 0).conj().real, "complex_cat": lambda x: torch.cat([torch.complex(x, x.neg())] * 2, -1).imag,
             "complex_flip": lambda x: torch.view_as_real(torch.complex(x, x.neg()).flip(-1)), "complex_pad": lambda x: torch.view_as_real(F.pad(torch.complex(x, x), (1, 2)))}
    of, kind = (table, "inexact") if r.random() < 0.65 else (exact, "move")
    name = r.choice(sorted(of))
    return Step(name, kind, of[name], [k], unclear=lambda operands, result: not operands[0].model.isfinite().all(), patterns={"complex"})


def rotary(x):
    pairs = torch.view_as_complex(torch.stack([x, x.roll(1, -1)], -1))
    turn = torch.polar(torch.ones(x.shape[-1], dtype=x.dtype), torch.arange(x.shape[-1], dtype=x.dtype) / 3)
    return torch.view_as_real(pairs * turn).flatten(-2)


# ---- what people write ----

def shifted_window(x):
    """Swin's: roll, cut into windows, attend, put back."""
    b, n, c = x.shape
    w = x.roll(-1, 1).reshape(b, n // 2, 2, c)
    a = (w @ w.transpose(-1, -2)).softmax(-1) @ w
    return a.reshape(b, n, c).roll(1, 1)


def relative_shift(x):
    """Transformer-XL's: a column of zeros, another shape, the first row away."""
    b, n, m = x.shape
    return F.pad(x, (1, 0)).reshape(b, m + 1, n)[:, 1:].reshape(b, n, m)


def grouped_queries(x):
    b, n, c = x.shape
    q, k = x.reshape(b, n, 1, c).expand(b, n, 2, c).transpose(1, 2), x.unsqueeze(1).repeat_interleave(2, 1)
    return F.scaled_dot_product_attention(q, k, k).transpose(1, 2).reshape(b, n, -1)


def cache_update(x):
    cache = torch.zeros(x.shape[0], 6, *x.shape[2:], dtype=x.dtype)
    cache[:, 1:1 + x.shape[1]] = x[:, :5]
    return cache


def causal_mask(x):
    m = torch.full((x.shape[-2], x.shape[-2]), -math.inf, dtype=x.dtype).triu(1)
    return (x @ x.transpose(-1, -2) + m).softmax(-1)


def pixel_windows(x):
    b, c, h, w = x.shape
    return x.reshape(b, c, h // 2, 2, w // 2, 2).permute(0, 2, 4, 3, 5, 1).reshape(-1, 4, c)


@maker(4)
def idiom(r, g, values, k):
    x = values[k].model
    if x.dtype not in FULL or x.dim() == 0:
        return None
    inexact = {"shifted_window": shifted_window, "grouped_queries": grouped_queries, "causal_mask": causal_mask, "squeeze_excite": lambda x: x * x.mean((-2, -1), keepdim=True).sigmoid(),
               "normalised_adjacency": lambda x: x.abs() / (x.abs().sum(-1, keepdim=True) + 1), "standardise": lambda x: (x - x.mean(0)) / (x.std(0, correction=0) + 1e-3), "one_hot_matmul": lambda x: F.one_hot(torch.arange(x.shape[0]) % 3, 3).to(x.dtype).t() @ x,
               "outer_sum": lambda x: (x.unsqueeze(-1) + x.unsqueeze(-2)).tanh().mean(-1), "distance": lambda x: ((x.unsqueeze(-2) - x.unsqueeze(-3)) ** 2).sum(-1), "cumulative_mean": lambda x: x.cumsum(0) / torch.arange(1, x.shape[0] + 1, dtype=x.dtype).reshape(-1, *[1] * (x.dim() - 1)),
               "heads": lambda x: (x.reshape(*x.shape[:-1], 2, -1).transpose(-2, -3) @ x.reshape(*x.shape[:-1], 2, -1).transpose(-2, -3).transpose(-1, -2)).softmax(-1), "temperature": lambda x: (x / 0.5).log_softmax(-1).exp()}
    moves = {"relative_shift": relative_shift, "cache_update": cache_update, "pixel_windows": pixel_windows, "interleave": lambda x: torch.stack([x[..., ::2], x[..., 1::2]], -1).flatten(-2), "assign_rows": assigned,
             "rotate_half": lambda x: torch.cat([-x[..., x.shape[-1] // 2:], x[..., :x.shape[-1] // 2]], -1), "checkerboard": lambda x: x.masked_fill(torch.arange(x.shape[-1]) % 2 == 0, 0), "last_token": lambda x: x[:, -1] if x.dim() > 1 else x[-1:],
             "prefix": lambda x: torch.cat([torch.zeros_like(x[:1]), x[:-1]], 0), "meshgrid": lambda x: torch.stack(torch.meshgrid(x.flatten()[:3], x.flatten()[:4], indexing="ij"), -1), "vander_like": lambda x: x.flatten()[:5].unsqueeze(1).expand(-1, 3),
             "split_heads": lambda x: x.unflatten(-1, (2, -1)).movedim(-2, 0), "nested_slices": lambda x: x[..., 1:][..., :-1].flip(-1), "chunk_swap": lambda x: torch.cat(x.chunk(2, -1)[::-1], -1), "channel_shuffle": lambda x: F.channel_shuffle(x, 2),
             "where_chain": lambda x: torch.where(x > 0, x, torch.where(x < -1, x.neg(), x.new_zeros(()))), "view_write": view_write, "diagonal_write": diagonal_write, "as_strided_windows": lambda x: x.contiguous().flatten().unfold(0, 3, 1)}
    of, kind = (inexact, "inexact") if r.random() < 0.45 else (moves, "move")
    name = r.choice(sorted(of))
    if name == "where_chain":
        kind = "jump"
    from differential_steps import not_finite
    return Step(f"idiom_{name}", kind, of[name], [k], unclear=not_finite if kind == "inexact" else None, patterns={"idiom"} | ({"in-place"} if name in ("cache_update", "assign_rows", "view_write", "diagonal_write") else set()))


def assigned(x):
    y = x.clone()
    y[0] = x[-1]
    y[..., -1] = 0.5
    return y


def view_write(x):
    y = x.clone()
    y.reshape(-1)[1:3] = 0.25
    y.transpose(0, -1)[0] = 1
    return y


def diagonal_write(x):
    y = x.clone()
    y.diagonal(0, -2, -1).fill_(1)
    return y
