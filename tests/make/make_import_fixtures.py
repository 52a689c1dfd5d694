"""Archives of tests/data/import, with what torch.export writes seldom: make_import_fixtures.py DEST [NAME...]. Each NAME.pt2 comes with
NAME.safetensors as those of make_fixtures.py; tests/unit/frontend_pt2.c runs them in the interpreter."""
import sys

import torch
from torch import nn
from torch.export import Dim, export

sys.argv[1:] = sys.argv[1:] or ["tests/data"]
import make_fixtures  # noqa: E402
from make_fixtures import dest, save, save_file, tree_leaves  # noqa: E402

r = torch.randn


class InPlaceViews(nn.Module):
    """The name of a tensor stands for a view of it from now on; writes through both."""

    def forward(s, x, u):
        x = x + 0
        y = x.view(-1)
        x.t_()
        x[0].add_(1)
        x.transpose_(0, 1)
        x.mul_(u)
        x.unsqueeze_(1)
        x[:, 0, 1].neg_()
        x.squeeze_(1)
        x.swapaxes_(0, -1)
        x[-1].sub_(3)
        return x, y, x + 1


class Writes(nn.Module):
    """Writes through each kind of view; the base is read after each."""

    def forward(s, x, u):
        x = x + 0
        x.narrow(1, 2, 2).mul_(2)
        a = x.sum()
        x[-2].add_(u)
        x[:, -3:-1].sub_(a)
        b = x.sum(0)
        x[1:, ::2].fill_(0.5)
        x.movedim(0, 1)[2].add_(1)
        x.mT[3].neg_()
        for k, piece in enumerate(x.unbind(0)):
            piece.add_(k)
        for k, piece in enumerate(x.chunk(3, 1)):
            piece.mul_(k + 1)
        c = x.mean(1)
        for k, piece in enumerate(x.tensor_split(3, -1)):
            piece.sub_(k)
        for k, piece in enumerate(x.split(2, 0)):
            piece.add_(b)
        x.unfold(1, 2, 2)[..., 1].mul_(-1)
        x.diagonal(1).add_(5)
        x.diagonal(-1, 1, 0).add_(7)
        x.unflatten(1, (2, 3))[:, 1].add_(c[:, None])
        x.flatten()[4:9].zero_()
        x.expand(1, -1, -1)[0, 0].add_(1)
        x.reshape(-1)[0].add_(9)
        x.view(2, 2, 6)[1, 0].relu_()
        x.ravel()[-1:].copy_(u[:1])
        x.detach().add_(0.25)
        return x, b, c


class Overlaps(nn.Module):
    """A write through a part of a view whose elements share memory."""

    def __init__(s, how):
        super().__init__()
        s.how = how

    def forward(s, x):
        x = x + 0
        s.how(x).add_(1)
        return x


class Copies(nn.Module):
    """What looks like a view and is none: writes do not reach the base."""

    def forward(s, x, u):
        x = x + 0
        x.t().reshape(-1).add_(1)
        x.to(torch.float64).add_(1)
        x.contiguous().add_(1)
        x.t().contiguous().add_(1)
        x.to(torch.float32, copy=True).add_(1)
        x.clone().add_(1)
        x.flip(0).add_(1)
        x[torch.tensor([0, 1])].add_(u)
        y = nn.functional.dropout(x, 0.5, False)
        z = nn.functional.dropout(x, 0.0, True)
        return x, y + z


class Memory(nn.Module):
    """as_strided of memory in another order than the dimensions'; sizes, steps and starts of all kinds."""

    def forward(s, x, u):
        y = x.clone(memory_format=torch.channels_last)
        z = y.as_strided((3, 4), (2, 6), 1)
        z.add_(1)
        w = y.as_strided((2, 5), (0, 3), 2)
        y.as_strided((24,), (1,), 0).mul_(2)
        y.as_strided((2, 3), (12, 4), 1).copy_(u)
        flat = y.as_strided((48,), (1,)) + 0
        t = (x + 1).permute(2, 0, 3, 1).clone(memory_format=torch.preserve_format)
        t.as_strided((4,), (5,), 3).zero_()
        one = x[:1, :, :1].clone()
        one.as_strided((2, 2), (1, 2), 1).fill_(8)
        return y, z + w[0, 0], flat, t, one


class Outputs(nn.Module):
    """Numbers and nothing among the results."""

    def forward(s, x):
        n = x.shape[0]
        return x * 2, None, 3, n, 2.5, True, (n * 2 + 1, False), {"a": x + n, "b": None}


class Numbers(nn.Module):
    """Arithmetic on sizes."""

    def forward(s, x, y):
        n, m = x.shape[0], y.shape[0]
        a = x * (n * 4) + n // 3 - n % 4
        b = x.sum() * (n // 3) + (-(-n // 3)) * 2
        c = x[: n - 2].sum() + max(n, m) - min(n, 3) * 2
        d = torch.full((n * m,), 2.5).view(n, m) + (n + m) * (n - m)
        e = torch.zeros(m + 1, n // 2 + 1).add(n + m, alpha=2)
        return a, b, c, d, y - m, e, torch.arange(n + m), x.view(-1, 1).expand(n, m) / m


class Items(nn.Module):
    """Numbers from data on either side of operators, as tensors, as arguments, in sums."""

    def forward(s, x, y, i):
        a, k, n = y.item(), i.item(), torch.arange(1, 6)
        one = [x * a, a - x, a / x, x - a, x / a, x.clamp(-a, a), x.clamp(min=a), x.clamp(max=k), x.masked_fill(x < 0, a), x > a, a < x,
               x == k, torch.full_like(x, k), x + k, k ** x, torch.fmod(x, a), torch.remainder(x, a), torch.lerp(x, x + 1, a)]
        two = [torch.sub(x, x * 2, alpha=k), x + (a + a) * (a - k), x + torch.tensor(k), n ^ k, n // k, k // n,
               n << k, torch.full((2,), k * 2 + 1), x * (k / 3), torch.addcdiv(x, x, x.abs() + 1, value=k), x * max(k, 2)]
        return tuple(one + two)


class Fractions(nn.Module):
    """Fractions from data where schemas have constants, in conditions, beside narrow and wide tensors."""

    def forward(s, x, y, h, w):
        a, b = y.item(), (y * 0 + 1.5).item()
        torch._check(a * 2 + 1 > 0.5)
        torch._check(a < b)
        p = x.abs()
        one = [torch.where(x > 0, a, x), torch.where(x > 0, x, a), torch.where(h > 0, a, h), torch.where(w > 0, w, a),
               torch.pow(p, a), torch.pow(a, x), torch.pow(w.abs(), a), torch.pow(b, w), torch.pow(h.abs(), a)]
        two = [torch.full((2, 3), a), torch.full((2,), b, dtype=torch.float64), torch.full_like(h, a), x.new_full((3,), a), torch.scalar_tensor(a),
               torch.add(x, x, alpha=a), torch.add(h.repeat(32), h[2], alpha=b), x.clone().fill_(a * a)]
        return tuple(one + two)


class Derived(nn.Module):
    """Sizes that are expressions of others."""

    def forward(s, x, y, z):
        return x[: y.shape[0]] + y, torch.cat([x, z]), z.view(-1, 3) * x.shape[0]


class Random(nn.Module):
    """What draws in place: whole values, parts of them, into a tensor that is given; what is overwritten has no gradient."""

    def forward(s, x):
        f = nn.functional
        a = f.dropout(x + 0, 0.25, True, True)
        b = x * x.new_empty((x.shape[0], 1)).bernoulli_(0.75).div_(0.75)
        c = f.gumbel_softmax(x, 0.5, hard=True)
        d = x * 2
        d[1:3].uniform_(-1, 3)
        d[3:, 1].normal_(2, 0.5)
        e = x + torch.bernoulli(x.sigmoid(), out=torch.empty_like(x)) + torch.normal(x.detach(), 2.0, out=torch.empty_like(x))
        g = torch.empty(x.shape, dtype=torch.int32).random_(9) + torch.empty_like(x, dtype=torch.bool).bernoulli_(0.5)
        h = f.rrelu(x - 1, 0.25, 0.5, True, True) + f.feature_alpha_dropout(x * 1, 0.5, True, True)
        k = torch.empty_like(x).geometric_(0.5) * torch.empty_like(x).cauchy_(1, 2) * torch.empty_like(x).log_normal_(0, 0.5)
        return a, b, c, d, e, g, h, x.clone().exponential_(2) + k


class Bits(nn.Module):
    """Writes through the same bytes as elements of other sizes, which autograd does not see."""

    def forward(s, x, h):
        a, b, c, d = x * 2, x + 0, x * 3, h * 2
        a.view(torch.int16)[:, ::2].zero_()
        b.view(torch.complex64)[1].mul_(2)
        c.view(torch.uint8)[0, 3::4].bitwise_and_(127)
        d.view(torch.int32)[:, 1].bitwise_xor_(-(2 ** 31))
        return a * x, b * x, c, d.float() * 2, x.view(torch.float64).view(torch.uint8), x[0, 0].view(torch.int32)


class Norms(nn.Module):
    """Statistics: kept, not kept, with a weight and without, per sample."""

    def __init__(s):
        super().__init__()
        s.kept = nn.BatchNorm1d(3, momentum=0.25)
        s.loose = nn.BatchNorm1d(3, track_running_stats=False)
        s.plain = nn.BatchNorm2d(3, affine=False)
        s.each = nn.InstanceNorm1d(3, track_running_stats=True, momentum=0.5)
        s.bare = nn.InstanceNorm2d(3, affine=True)
        s.asleep = nn.BatchNorm1d(3).eval()

    def train(s, mode=True):
        super().train(mode)
        s.asleep.eval()
        return s

    def forward(s, x, z):
        return s.kept(x) + s.loose(x) * 2, s.plain(z), s.each(x) - s.asleep(x), s.bare(z)


class Observed(nn.Module):
    """Fake quantisation that writes what it observes: of all values, of rows, with the observer off."""

    def __init__(s):
        super().__init__()
        for name, rows in ("all", 0), ("row", 3), ("off", 0):
            low, high = torch.full((rows,) if rows else (), -0.5), torch.full((rows,) if rows else (), 0.75)
            for key, v in ("low", low), ("high", high), ("scale", torch.ones(rows or 1)), ("zero", torch.zeros(rows or 1, dtype=torch.int32)):
                s.register_buffer(f"{name}_{key}", v)
        s.register_buffer("on", torch.ones(1, dtype=torch.int64))
        s.register_buffer("no", torch.zeros(1, dtype=torch.int64))

    def forward(s, x):
        a = torch.fused_moving_avg_obs_fake_quant(x, s.on, s.on, s.all_low, s.all_high, s.all_scale, s.all_zero, 0.25, 0, 255, -1)
        b, mask = torch._fused_moving_avg_obs_fq_helper(x, s.on, s.on, s.row_low, s.row_high, s.row_scale, s.row_zero, 0.5, -128, 127, 0, True, True)
        c = torch.fused_moving_avg_obs_fake_quant(x, s.no, s.on, s.off_low, s.off_high, s.off_scale, s.off_zero, 0.25, -8, 7, -1)
        return a, b, mask, c, s.all_low * 2, s.row_scale + 1


class Weights(nn.Module):
    """Weights that are views of one memory: turned, cut, spread out, empty, with a start."""

    def __init__(s):
        super().__init__()
        base = r(6, 8)
        s.turned = nn.Parameter(base.t())
        s.cut = nn.Parameter(base[1:4, 2:5])
        s.stepped = nn.Parameter(base[::2, 1::3])
        s.row = nn.Parameter(base[3])
        s.number = nn.Parameter(base[2, 2])
        s.empty = nn.Parameter(base[6:])
        s.register_buffer("spread", base[0, :3].expand(4, 3))
        s.register_buffer("short", base[:2].half().t())
        s.register_buffer("flags", torch.tensor([[True, False], [False, True], [True, True]]).t())
        s.register_buffer("whole", torch.arange(10, dtype=torch.int64)[3:9:2], persistent=False)
        s.constant = r(5, 2)[1:, 1]

    def forward(s, x):
        y = x @ s.cut + s.spread.sum(0) + s.number + s.empty.sum()
        return y, s.turned * s.flags[0].sum(), s.stepped.sum(1), s.short.float() * 2, s.whole + s.flags.sum(), s.row + s.constant.sum()


class Complex(nn.Module):
    """Writes through the parts of complex numbers and through the same bytes of another type."""

    def forward(s, x, z):
        z = z + 0
        torch.view_as_real(z)[0].mul_(2)
        v = x + 0
        c = torch.view_as_complex(v)
        c.mul_(c)
        w = x + 0
        i = w.view(torch.int32)
        i[0].bitwise_and_(0x7fffffff)
        return torch.view_as_real(z + c), v, w, z.real * 2, z.imag - 1


class Bodies(nn.Module):
    """Branches that write to copies of their own, check sizes and read what is outside; nested results."""

    def forward(s, x, y):
        n = x.shape[0]

        def left(x, y):
            z = x + 0
            z[0].add_(y)
            z.t()[1].mul_(n)
            return z, (y * n).sum()

        def right(x, y):
            torch._check(n < 100)
            z = torch.cond(y.sum() > 1, lambda z: z * 2, lambda z: z - n, (x,))
            return z.clone(), y.max()
        a, b = torch.cond(x.sum() > 0, left, right, (x, y))
        return a, b + a.sum()


class Idle(nn.Module):
    """Dropout that does nothing is the operand itself, and a write to it one to that; one that drops all is a value of its own."""

    def forward(s, x):
        x = x + 0
        a = torch.ops.aten.dropout(x, 0.5, False)
        a[0].add_(1)
        b = torch.ops.aten.dropout(x, 0.0, True)
        b[1].mul_(2)
        c = torch.ops.aten.dropout(x, 1.0, True)
        c[2].add_(4)
        return x, a, b, c


class Calls(nn.Module):
    """One number where a list of them is meant, of one and of two; as many dimensions as there may be; arguments without a name."""

    def forward(s, x, **more):
        y = torch.ops.aten.sum.dim_IntList(x, 1) + torch.ops.aten.avg_pool2d(x[None], 2)[0].mean()
        z = x.as_strided((4, *[1] * 9, 6, 4), (24, *[24] * 9, 4, 1))
        n = more["first"].shape[0]
        return y, z * 2, more["first"].sum() * n - more["second"][: n - 1].sum()


class HalfNorms(nn.Module):
    """Statistics of short floats, kept in f32."""

    def __init__(s):
        super().__init__()
        s.kept = nn.BatchNorm1d(3, momentum=0.5)
        s.each = nn.InstanceNorm1d(3, track_running_stats=True, momentum=0.5, affine=True)

    def forward(s, x):
        return s.kept(x).float() + s.each(x * 2).float()


class Divided(nn.Module):
    """A size that is a symbol in parts; a call whose result is a dtype."""

    def forward(s, x):
        wide = torch.promote_types(x.dtype, torch.float32)
        parts = x.tensor_split(3)
        return nn.functional.glu(x, 0), *parts, nn.functional.pixel_unshuffle(x[None], 2), x.sum(0, dtype=wide)


class Operators(nn.Module):
    """Operators by their names in Python, in place and not, on tensors that others see."""

    def forward(s, i, j, p):
        i, q = i + 0, p.clone()
        k = i[1:]
        i &= j
        k |= 5
        i ^= 3
        k <<= 1
        i >>= 1
        q &= p.flip(0)
        q |= i[0] > 2
        i //= 2
        i %= 7
        i **= 2
        i += j[0]
        k -= 1
        i *= 3
        return i, k, q, i & j, i | j, i ^ j, i << 2, j >> 1, ~i, 7 - i, i == j, 20 // (i.abs() + 1), 5 % (j.abs() + 1), 2 ** (i % 5)


class Flags(nn.Module):
    """What is chosen by sizes."""

    def forward(s, x, y):
        n, m = x.shape[0], y.shape[0]
        b = torch.cond(n > 2 * m, lambda x: x * 2, lambda x: x - 1, (x,))
        c = torch.cond(n + m == 10, lambda x, y: x.sum(), lambda x, y: y.sum(), (x, y))
        return b, c


class Tangle(nn.Module):
    """Weights whose places lie across each other, within each other, side by side, and in another dtype."""

    def __init__(s):
        super().__init__()
        base, other = r(24), r(4, 6)
        s.first, s.second, s.third = (nn.Parameter(base[a:b]) for a, b in ((0, 8), (6, 12), (10, 18)))
        s.beside, s.inside = nn.Parameter(base[18:24]), nn.Parameter(base[19:22])
        s.whole, s.corner, s.column = nn.Parameter(other), nn.Parameter(other[2:, 4:]), nn.Parameter(other[:, 1])
        s.register_buffer("bits", other.view(torch.int32)[1])

    def forward(s, x):
        y = s.first.sum() * x + s.second[:3] - s.third[5:] * s.beside[:3] + s.inside
        return y, s.whole.sum(0)[:3] + s.column[:3] * s.corner.sum(), s.bits + 1


class Effects(nn.Module):
    """run_decompositions() makes of these functions operators that give the factors, too, and checks behind tokens."""

    def forward(s, a, x, m):
        linalg = torch.linalg
        lower = linalg.cholesky(a)
        quadratic = (x * torch.cholesky_solve(x, lower)).sum((-1, -2)) + torch.logdet(a)
        sign, size = linalg.slogdet(m.mT)
        solved = linalg.solve(m, x), linalg.solve(m, x.mT, left=False), linalg.solve(m.mT, x[0, :, 0])
        return quadratic, linalg.det(a), linalg.det(m.mT), sign, size, *solved, linalg.inv(m), linalg.solve_ex(a, x)[0]


def make(name, model, args, dynamic=None, train=False, more=None):
    if sys.argv[2:] and name not in sys.argv[2:]:
        return
    model.train(train)
    more = more or {}
    program = export(model, tuple(x.clone() for x in args), dict(more), dynamic_shapes=dynamic)
    (dest / "import").mkdir(exist_ok=True)
    save(f"import/{name}", program, True)
    tensors = {f"x.{i}": x.clone().contiguous() for i, x in enumerate([*args, *more.values()])}
    for i, y in enumerate(y for y in tree_leaves(model(*args, **more)) if y is not None):
        y = y if isinstance(y, torch.Tensor) else torch.tensor(y)
        tensors[f"y.{i}"] = y.detach().clone().contiguous()
    tensors |= {f"b.{key}": b.detach().clone().contiguous() for key, b in model.named_buffers()}
    save_file(tensors, dest / f"import/{name}.safetensors")


def make_grad(name, model, args, dynamic=None, decompose=False):
    """grad/NAME: with cotangents of the results and the gradients of the program's inputs."""
    if sys.argv[2:] and name not in sys.argv[2:]:
        return
    program = export(model, args, dynamic_shapes=dynamic)
    if decompose:
        program = program.run_decompositions()
    (dest / "grad").mkdir(exist_ok=True)
    save(f"grad/{name}", program, True)
    xs = [x.clone().requires_grad_(x.is_floating_point()) for x in args]
    ys = program.module()(*(x * 1 if x.requires_grad else x for x in xs))
    cts = {i: r(y.shape) for i, y in enumerate(ys) if y.is_floating_point()}
    by = [i for i, x in enumerate(xs) if x.requires_grad]
    some = [i for i in cts if ys[i].requires_grad]
    gs = torch.autograd.grad([ys[i] for i in some], [xs[i] for i in by], [cts[i].to(ys[i].dtype) for i in some])
    tensors = {f"x.{i}": x for i, x in enumerate(args)} | {f"y.{i}": y for i, y in enumerate(ys)}
    tensors |= {f"ct.{i}": c.to(ys[i].dtype) for i, c in cts.items()} | {f"g.{i}": g for i, g in zip(by, gs, strict=True)}
    save_file({k: v.detach().clone().contiguous() for k, v in tensors.items()}, dest / f"grad/{name}.safetensors")


def main():
    torch.manual_seed(7)
    dyn = Dim.DYNAMIC
    make("in_place_views", InPlaceViews(), (r(3, 4), r(4)))
    make("writes", Writes(), (r(4, 6), r(6)))
    make("copies", Copies(), (r(3, 4), r(4)))
    make("memory", Memory(), (r(2, 3, 4, 2), r(2, 3)))
    make("outputs", Outputs(), (r(3),), ({0: Dim("n", min=2, max=9)},))
    make("numbers", Numbers(), (r(7), r(5)), ({0: Dim("n", min=4, max=20)}, {0: Dim("m", min=2, max=9)}))
    make("items", Items(), (r(5), torch.tensor(0.75), torch.tensor(3)))
    fraction = torch.arange(5) / 2 - 0.75
    make("fractions", Fractions(), (fraction, torch.tensor(0.7), (fraction + 0.1).half(), fraction.double() + 0.3))
    d = Dim("d", min=2, max=30)
    make("derived", Derived(), (r(9), r(4), r(12)), ({0: 2 * d + 1}, {0: d}, {0: 3 * d}))
    make("norms", Norms(), (r(4, 3, 5), r(4, 3, 2, 2)), train=True)
    make("observed", Observed(), (torch.linspace(-2, 3, 15).view(3, 5),), train=True)
    make("weights", Weights(), (r(2, 3),))
    make("complex", Complex(), (r(3, 2), r(3, dtype=torch.complex64)))
    for name, how in [("expand", lambda x: x.expand(2, -1)[0]), ("unfold", lambda x: x.unfold(0, 3, 2)[..., 1]),
                      ("as_strided", lambda x: x.as_strided((3, 2), (1, 2))[1])]:
        if not sys.argv[2:]:
            save(f"import/overlaps_{name}", export(Overlaps(how), (r(7),)), True)
    make("bodies", Bodies(), (r(3, 4), r(4)), ({0: dyn}, None))
    e = Dim("e", min=3, max=30)
    make("idle", Idle(), (r(3, 4),))
    make("calls", Calls(), (r(4, 6, 4),), {"x": None, "more": {"first": {0: e}, "second": {0: 2 * e}}}, more={"first": r(5), "second": r(10)})
    k = torch.arange(12).view(4, 3) * 5 % 11 - 3
    make("operators", Operators(), (k, k.flip(0) + 1, k > 2))
    make("flags", Flags(), (r(7), r(3)), ({0: Dim("n", min=2, max=20)}, {0: Dim("m", min=2, max=9)}))
    make("tangle", Tangle(), (r(3),))
    make("divided", Divided(), (r(12, 4),), ({0: Dim.AUTO},))
    if not sys.argv[2:] or "random" in sys.argv[2:]: # PyTorch's numbers are others
        save("import/random", export(Random(), (r(6, 4),), dynamic_shapes=({0: Dim("n", min=5, max=50)},)), True)
    make_grad("bits", Bits(), (r(2, 4), r(3, 4).half()))
    a = r(2, 3, 3)
    make_grad("effects", Effects(), (a @ a.mT + torch.eye(3), r(2, 3, 2), r(3, 3)), decompose=True)
    make("half_norms", HalfNorms(), (r(4, 3, 50).bfloat16() + 9,), train=True)


main()
