"""Steps of the chains of random_algebra.py that are neither transforms nor factorisations: what lies beside them in models.
STEPS: functions of a random.Random that give a name and a function of x (at least two dimensions, real or complex)."""
import torch
import torch.nn.functional as F

STEPS = []


def real(x):
    return torch.view_as_real(x).flatten(-2) if x.is_complex() else x


def cplx(x):
    return x if x.is_complex() else torch.complex(x, x.flip(-1))


def steps(*around, **functions):
    """Steps without choices of their own: of x, behind the functions `around`."""
    for name, f in functions.items():
        STEPS.append(fixed(name, f, around))


def fixed(name, f, around=()):
    def step(x):
        for g in around:
            x = g(x)
        return f(x)
    return lambda r: (name, step)


def step(f):
    STEPS.append(f)
    return f


def weights(r, *shape):
    """Constants of the model, the same for a seed."""
    made = torch.Generator().manual_seed(r.randrange(1 << 30))
    return torch.randn(*shape, generator=made, dtype=torch.float64) * 0.5


def images(x):
    return x.reshape(-1, 1, *x.shape[-2:])


def like(x, images):
    """Images of images(x) as x was."""
    return images.reshape(*x.shape[:-2], *images.shape[-2:])


def counting(n, x):
    return torch.arange(n, device=x.device)


@step
def convolution(r):
    stride, padding, dilation, w = r.choice([1, 2]), r.choice([1, 2]), r.choice([1, 1, 2]), weights(r, 1, 1, 2, 3)

    def f(x):
        return like(x, F.conv2d(images(x), w.to(x.dtype), None, stride, padding, dilation))
    return f"conv2d {stride} {padding} {dilation}", f


@step
def lines(r):
    groups, w = r.choice([1, 2]), weights(r, 4, 1, 3)

    def f(x):
        rows = torch.stack([x, x.flip(-1)], -2).flatten(-3, -2).reshape(-1, 2, x.shape[-1])
        v = w.to(x.dtype) if groups == 2 else torch.cat([w, w.flip(0)], 1).to(x.dtype)
        return F.conv1d(rows, v, padding=1, groups=groups).reshape(*x.shape[:-2], -1, x.shape[-1])
    return f"conv1d {groups}", f


@step
def backward_convolution(r):
    stride, w = r.choice([1, 2]), weights(r, 1, 1, 2, 3)

    def f(x):
        x = real(x)
        return like(x, F.conv_transpose2d(images(x), w.to(x.dtype), None, stride, padding=(0, 1)))
    return f"conv_transpose2d {stride}", f


@step
def pooling(r):
    kind, stride = r.choice(["max_pool2d", "avg_pool2d", "lp_pool2d"]), r.choice([1, 2])

    def f(x):
        x = F.pad(real(x), (0, 1, 0, 1), value=0.5)
        y = images(x)
        y = F.lp_pool2d(y.abs() + 0.1, 2.0, 2, stride) if kind == "lp_pool2d" else getattr(F, kind)(y, 2, stride)
        return like(x, y)
    return f"{kind} {stride}", f


@step
def resized(r):
    mode, corners = r.choice(["nearest", "bilinear", "bicubic", "area"]), r.random() < 0.5
    scale = r.choice([2.0, 1.5])

    def f(x):
        x = real(x)
        return like(x, F.interpolate(images(x), scale_factor=scale, mode=mode, align_corners=corners if mode.startswith("bi") else None))
    return f"interpolate {mode} {corners} {scale}", f


@step
def padded(r):
    mode, a, b = r.choice(["constant", "replicate", "circular", "reflect"]), r.choice([0, 1]), r.choice([0, 1, 2])

    def f(x):
        if mode == "constant":
            return F.pad(x, (a, b, b, a), value=0.25)
        x = torch.cat([real(x)] * 2, -1)
        return like(x, F.pad(images(x), (a, min(b, 1), 0, 0), mode=mode))
    return f"pad {mode} {a} {b}", f


@step
def ordered(r):
    kind, dim, down = r.choice(["sort", "argsort", "topk", "kthvalue", "median", "cummax", "unique"]), r.choice([-1, -2]), r.random() < 0.5

    def f(x):
        x = real(x)
        if kind == "sort":
            return x.sort(dim, descending=down, stable=True)[0]
        if kind == "argsort":
            return x.gather(dim, x.argsort(dim, descending=down)) * 2
        if kind == "topk":
            return x.topk(1, dim, largest=down)[0]
        if kind == "kthvalue":
            return x.kthvalue(1, dim, keepdim=True)[0]
        if kind == "median":
            return x.median(dim, keepdim=True)[0] + x
        if kind == "cummax":
            return x.cummax(dim)[0] + x.cummin(dim)[0]
        return x * (x.sort(dim)[0] > 0.1)
    return f"{kind} {dim} {down}", f


@step
def reduced(r):
    kind, dim, keep = r.choice(["sum", "mean", "amax", "amin", "prod", "std", "logsumexp", "norm1", "norm3", "var_mean"]), r.choice([-1, -2]), r.random() < 0.5

    def f(x):
        if kind in ("sum", "mean", "prod"):
            y = getattr(x, kind)(dim, keepdim=True)
        else:
            x = real(x)
            if kind == "std":
                y = (x.var(dim, correction=0, keepdim=True) + 0.1).sqrt()
            elif kind == "var_mean":
                v, m = torch.var_mean(x, dim, correction=0, keepdim=True)
                y = v - m
            elif kind.startswith("norm"):
                y = torch.linalg.vector_norm(x, float(kind[4:]), dim, keepdim=True)
            else:
                y = getattr(x, kind)(dim, keepdim=True)
        return y * x if keep else y
    return f"{kind} {dim} {keep}", f


@step
def accumulated(r):
    kind, dim = r.choice(["cumsum", "cumprod", "logcumsumexp", "diff", "trapezoid"]), r.choice([-1, -2])

    def f(x):
        if kind == "logcumsumexp":
            return real(x).logcumsumexp(dim)
        if kind == "trapezoid":
            return torch.trapezoid(x, dim=dim).unsqueeze(dim) + x
        if kind == "diff":
            return x.diff(dim=dim, prepend=x.narrow(dim, 0, 1))
        return getattr(x, kind)(dim)
    return f"{kind} {dim}", f


@step
def indexed(r):
    kind, by, add = r.choice(["index_select", "index", "gather", "index_add", "scatter_add", "scatter_reduce", "index_put", "take_along"]), r.choice([2, 3]), r.choice([0, 1, 5])
    reduce = r.choice(["amax", "mean", "sum", "prod", "amin"])

    def f(x):
        n = x.shape[-1]
        i = (counting(n, x) * by + add) % n
        if kind == "index_select":
            return x.index_select(-1, i)
        if kind == "index":
            return x[..., i]
        if kind == "gather":
            return x.gather(-1, i.expand(x.shape))
        if kind == "take_along":
            return torch.take_along_dim(x, i.expand(x.shape), -1)
        if kind == "index_add":
            return x.index_add(-1, i, x * 2, alpha=0.5)
        if kind == "scatter_add":
            return x.scatter_add(-1, i.expand(x.shape), x.flip(-1))
        if kind == "index_put":
            return x.mT.contiguous().flatten(1).index_put((i,), x.mT.flatten(1) * 3, accumulate=True).reshape(x.mT.shape) if x.dim() == 2 else x[..., i]
        x = real(x)
        i = ((counting(x.shape[-1], x) * by + add) % x.shape[-1]).expand(x.shape)
        return x.scatter_reduce(-1, i, x.sin() + 0.5, reduce=reduce, include_self=True)
    return f"{kind} {by} {add} {reduce}", f


@step
def repeated(r):
    kind = r.choice(["repeat", "interleave", "roll", "expand", "tile", "rot90", "stack"])

    def f(x):
        if kind == "repeat":
            return x.repeat(*[1] * (x.dim() - 1), 2)
        if kind == "interleave":
            return x.repeat_interleave(2, -2)
        if kind == "roll":
            return x.roll((1, 2), (-1, -2))
        if kind == "tile":
            return x.tile(2, 1)
        if kind == "rot90":
            return x.rot90(1, (-1, -2))
        if kind == "stack":
            return torch.stack([x, x * 2, x.flip(-1)], -1).flatten(-2)
        return (x.unsqueeze(-2).expand(*x.shape[:-1], 3, x.shape[-1]) * 0.5).flatten(-3, -2)
    return kind, f


@step
def chosen(r):
    kind, value = r.choice(["where", "masked_fill", "tril", "triu", "clamp", "diagonal", "masked_select", "threshold"]), r.choice([-0.3, 0.0, 0.4])

    def f(x):
        if kind in ("tril", "triu"):
            return getattr(x, kind)(r_shift)
        if kind == "diagonal":
            return torch.diag_embed(x.diagonal(dim1=-2, dim2=-1)) + 0.1
        if kind == "where":
            return torch.where(real_part(x) > value, x, x * x)
        if kind == "masked_fill":
            return x.masked_fill(real_part(x) > value, value)
        x = real(x)
        if kind == "masked_select":
            return x * (x > value).sum((-1, -2), keepdim=True)
        return x.clamp(value - 0.2, value + 0.7) if kind == "clamp" else F.threshold(x, value, 0.2)
    r_shift = r.choice([-1, 0, 1])
    return f"{kind} {value} {r_shift}", f


def real_part(x):
    return x.real if x.is_complex() else x


@step
def recurrent(r):
    w, u = weights(r, 3, 1), weights(r, 3, 3)

    def f(x):
        h = torch.zeros(*x.shape[:-1], 3, dtype=x.dtype)
        for k in range(2):
            h = torch.tanh(x[..., :1] @ w.to(x.dtype).T + h @ u.to(x.dtype).T) if not x.is_complex() else x[..., :1] * w.to(x.dtype).flatten() + h @ u.to(x.dtype).T
        return h
    return "recurrence", f


@step
def normed(r):
    kind, w = r.choice(["layer", "rms", "group", "batch", "instance"]), weights(r, 2)

    def f(x):
        x = real(x)
        if kind == "layer":
            return F.layer_norm(x, x.shape[-1:], eps=0.1)
        if kind == "rms":
            return F.rms_norm(x, x.shape[-1:], eps=0.1)
        two = torch.stack([images(x)[:, 0], images(x)[:, 0].cos()], 1)
        if kind == "group":
            return F.group_norm(two, 1, w.to(x.dtype), eps=0.1).sum(1).reshape(x.shape)
        if kind == "batch":
            return F.batch_norm(two, w.to(x.dtype), w.abs().to(x.dtype) + 1, eps=0.1).sum(1).reshape(x.shape)
        return F.instance_norm(two, eps=0.1).sum(1).reshape(x.shape) if x.shape[-1] * x.shape[-2] > 1 else x
    return f"{kind}_norm", f


steps(
    attention=lambda x: F.scaled_dot_product_attention(real(x), real(x) * 0.5, real(x).cos()),
    causal=lambda x: F.scaled_dot_product_attention(real(x), real(x) * 0.5, real(x).cos(), is_causal=True),
    einsum=lambda x: torch.einsum("...ij,...kj->...ik", x, x * 0.5),
    triple=lambda x: torch.einsum("...ij,...kj,...kl->...il", x, x * 0.5, x),
    vmap=lambda x: torch.vmap(lambda row: row.cumsum(-1) * row.sum())(x),
    vmap_transform=lambda x: torch.vmap(lambda row: torch.fft.fft(row) * 0.5)(x),
    addmm=lambda x: torch.matmul(x, x.mT) * 0.5 + x.sum((-1, -2), keepdim=True),
    polar=lambda x: torch.polar(real(x).abs() + 0.1, real(x)),
    angle=lambda x: torch.angle(cplx(x) + 2),
    sign=lambda x: torch.sgn(x) * 0.3 + x,
    divide=lambda x: x / (cplx(x).abs() + 1),
    complex_division=lambda x: 1 / (cplx(x) + 3) + cplx(x) / (2 + 1j),
    complex_powers=lambda x: (cplx(x) * 0.3 + 2) ** 2.5 + (cplx(x) * 0.3 + 2) ** 3,
    complex_functions=lambda x: (cplx(x) * 0.3).tanh() + (cplx(x) * 0.3 + 2).log() + (cplx(x) * 0.2 + 1).sqrt(),
    cat_parts=lambda x: torch.cat([cplx(x), cplx(x).conj()], -2),
    selected=lambda x: torch.stack([x.select(-1, 0), x.select(-1, -1)], -1),
    strided=lambda x: x[..., ::2, :] * 0.7,
    split=lambda x: torch.cat([p * (k + 1) for k, p in enumerate(x.chunk(2, -1))], -1),
    unfolded=lambda x: torch.cat([x, x], -1).unfold(-1, 2, 1).flatten(-2),
    reshaped=lambda x: x.flatten(-2).unsqueeze(-2) * 0.5,
    folded=lambda x: x.mT.reshape(x.shape) + x,
)
steps(
    real,
    softmax=lambda x: x.softmax(-1),
    softmax_rows=lambda x: x.softmax(-2) * x,
    log_softmax=lambda x: x.log_softmax(-1),
    gelu=lambda x: F.gelu(x) + F.silu(x),
    erf=lambda x: torch.erf(x) + torch.erfinv(x.tanh() * 0.5),
    gammas=lambda x: torch.lgamma(x.abs() + 1.5) + torch.digamma(x.abs() + 1.5),
    bessel=lambda x: torch.special.i0e(x) + torch.special.i1(x * 0.5),
    atan2=lambda x: torch.atan2(x, x.flip(-1).abs() + 0.3),
    hypot=lambda x: torch.hypot(x, x.flip(-2) + 2),
    logaddexp=lambda x: torch.logaddexp(x, x.flip(-1) * 0.5),
    rounded=lambda x: x - x.floor() + x.round() * 0.5,
    remainder=lambda x: torch.remainder(x, 0.7) + torch.fmod(x, 0.3),
    lerp=lambda x: torch.lerp(x, x.flip(-1), 0.3) + torch.addcmul(x, x, x.flip(-2), value=0.2),
    powers=lambda x: (x.abs() + 0.5) ** 1.7 + x ** 3 + 2.0 ** x,
    distances=lambda x: torch.cdist(x, x.flip(-2) * 0.5 + 1),
    distances_1=lambda x: torch.cdist(x, x * 0.5 + 1, p=1.0),
    covariance=lambda x: torch.cov(x.flatten(0, -2), correction=0) if x.shape[-1] > 1 else x,
    maximum=lambda x: torch.maximum(x, x.flip(-1) * 0.9) + torch.fmin(x, x.flip(-2) * 0.8),
    one_hot=lambda x: F.one_hot(x.argmax(-1) % 4, 4).to(x.dtype) + x.amax(-1, keepdim=True),
    bucketed=lambda x: x * torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5], dtype=x.dtype)).to(x.dtype),
    embedding=lambda x: F.embedding(x.argmax(-1) % x.shape[-2], x.flatten(0, -2)),
    counted=lambda x: x * (x > 0).sum(-1, keepdim=True) + (x > 0).any(-2, keepdim=True),
    prelu=lambda x: F.prelu(x, torch.tensor([0.2], dtype=x.dtype)) + F.elu(x) + F.softplus(x),
    huber=lambda x: F.huber_loss(x, x.flip(-1), reduction="none") + F.smooth_l1_loss(x, x.flip(-2), reduction="none"),
    cross=lambda x: torch.linalg.cross(x[..., :1].expand(*x.shape[:-1], 3) + torch.tensor([1.0, 2.0, 3.0], dtype=x.dtype), x[..., -1:].expand(*x.shape[:-1], 3).sin() + torch.tensor([0.0, 1.0, 0.5], dtype=x.dtype)),
    grid=lambda x: like(x, F.grid_sample(images(x), F.affine_grid(torch.tensor([[[0.8, 0.1, 0.1], [-0.1, 0.9, 0.0]]], dtype=x.dtype).expand(images(x).shape[0], 2, 3), list(images(x).shape), align_corners=False), align_corners=False)),
)
