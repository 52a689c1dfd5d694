"""torch.compile(optimizer.step, backend="weft"): arguments that a graph writes are updated in their own memory."""
import copy
import os
import random

import pytest

torch = pytest.importorskip("torch")
import weft
from weft import dynamo

nn, optim = torch.nn, torch.optim
pytestmark = [pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there"), pytest.mark.usefixtures("fresh")]
SEED, COUNT = int(os.environ.get("SEED", 0)), int(os.environ.get("COUNT", 12))


def compiled(f, **named):
    return torch.compile(f, backend=dynamo.backend, **named)


# ---- steps of optimizers ----

OPTIONS = {
    optim.AdamW: {"amsgrad": [False, True], "weight_decay": [0, 0.1], "betas": [(0.9, 0.999), (0.8, 0.9)]},
    optim.Adam: {"amsgrad": [False, True], "weight_decay": [0, 0.1], "capturable": [False]},
    optim.SGD: {"momentum": [0, 0.9], "dampening": [0], "weight_decay": [0, 0.1], "nesterov": [False]},
    optim.RMSprop: {"momentum": [0, 0.5], "centered": [False, True], "weight_decay": [0, 0.1]},
    optim.Adagrad: {"lr_decay": [0, 0.1], "weight_decay": [0, 0.1]},
    optim.NAdam: {"weight_decay": [0, 0.1]},
    optim.Adadelta: {"weight_decay": [0, 0.1]},
}


def parameters(r):
    """Parameters of several shapes, dtypes and layouts."""
    made = []
    for _ in range(r.randint(1, 5)):
        shape = [r.randint(1, 9) for _ in range(r.randint(0, 4))]
        dtype = r.choice([torch.float32] * 4 + [torch.float64, torch.bfloat16, torch.complex64])
        kind = r.choice(["dense", "dense", "permuted", "gaps", "part"])
        t = torch.randn(shape, dtype=dtype)
        if kind == "permuted":
            order = r.sample(range(len(shape)), len(shape))
            t = t.permute(order).contiguous().permute([order.index(d) for d in range(len(shape))])
        elif kind == "gaps" and shape:
            t = torch.randn([*shape[:-1], 2 * shape[-1]], dtype=dtype)[..., ::2]
        elif kind == "part":
            t = torch.randn([3, *shape], dtype=dtype)[1]
        made.append(nn.Parameter(t))
    return made


def twin_of(p):
    t = torch.empty_strided(p.shape, p.stride(), dtype=p.dtype)
    with torch.no_grad():
        return nn.Parameter(t.copy_(p))


def optimizer(r):
    """A function from parameters to an optimizer and its scheduler, and what it is."""
    kind = r.choice(list(OPTIONS))
    named = {k: r.choice(v) for k, v in OPTIONS[kind].items()} | {"foreach": r.choice([True, False, None]), "maximize": r.random() < 0.3}
    tensor = r.random() < 0.3 and kind in (optim.Adam, optim.AdamW) and named["foreach"] is not True
    named["lr"] = torch.tensor(0.01) if tensor else 0.01
    groups, schedule = r.random() < 0.3, r.random() < 0.5

    def make(ps):
        given = [{"params": ps[:1]}, {"params": ps[1:], "lr": torch.tensor(0.02) if tensor else 0.02}] if groups and len(ps) > 1 else ps
        o = kind(given, **copy.deepcopy(named))
        return o, optim.lr_scheduler.StepLR(o, 2, 0.5) if schedule else None
    return make, f"{kind.__name__} {named} groups={groups} schedule={schedule}"


def steps(ps, made, step, seed):
    o, schedule = made
    g = torch.Generator().manual_seed(seed)
    for _ in range(4):
        for p in ps:
            p.grad = torch.empty_strided(p.shape, p.stride(), dtype=p.dtype).copy_(torch.randn(p.shape, generator=g, dtype=p.dtype))
        step()
        if schedule:
            schedule.step()
    state = [v for p in ps for v in o.state[p].values() if isinstance(v, torch.Tensor)]
    return [p.detach().clone() for p in ps] + [v.clone() for v in state]


@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT))
def test_steps_beside_eager(seed):
    r = random.Random(seed)
    torch.manual_seed(seed)
    first = parameters(r)
    make, what = optimizer(r)
    eager = [twin_of(p) for p in first]
    made = make(eager)
    want = steps(eager, made, made[0].step, seed)
    runs = []
    for _ in range(2):
        torch._dynamo.reset()
        ps = [twin_of(p) for p in first]
        where = [p.data_ptr() for p in ps]
        made = make(ps)
        runs.append(steps(ps, made, compiled(made[0].step), seed))
        assert where == [p.data_ptr() for p in ps]
    for a, b, w in zip(runs[0], runs[1], want, strict=True):
        wide = a.dtype in (torch.float64, torch.float32, torch.complex64)
        torch.testing.assert_close(a, w, rtol=1e-5 if wide else 2e-2, atol=1e-6 if wide else 1e-2, msg=lambda m: f"{what}: {m}")
        assert torch.equal(a, b), what  # bitwise run to run
    assert dynamo.statistics.compiled


def test_step_allocates_nothing():
    """No new results, and no copies afterwards."""
    ps = [nn.Parameter(torch.randn(64, 64)) for _ in range(3)]
    for p in ps:
        p.grad = torch.randn_like(p)
    step = compiled(optim.AdamW(ps).step)
    for _ in range(3):
        step()
    with torch.profiler.profile(profile_memory=True) as profile:
        step()
    names = [e.key for e in profile.key_averages()]
    assert "aten::_foreach_copy_" not in names and "aten::empty" not in names, names


# ---- writes and aliases ----

def beside(f, make, again=2):
    """Compares arguments, which f writes, and results, over several calls."""
    a, b = make(), make()
    g = compiled(f)
    for _ in range(again):
        want, got = f(*a), g(*b)
        torch.testing.assert_close(got, want)
        torch.testing.assert_close(b, a)
    return g


def test_written_and_read_later():
    def f(x, y):
        old = x.exp()
        x.mul_(2)
        y.add_(old @ x)
        return x.sum(), old + y
    beside(f, lambda: (torch.ones(4, 4), torch.ones(4, 4)))


def test_arguments_change_places():
    def f(x, y):
        t = x.clone()
        x.copy_(y)
        y.copy_(t)
    beside(f, lambda: (torch.arange(12.0).view(3, 4), -torch.arange(12.0).view(3, 4)), again=3)


def test_transposed_into_itself():
    def f(x):
        x.copy_(x.t().clone() + 1)
        return x[0]
    beside(f, lambda: (torch.arange(9.0).view(3, 3),))


def test_arguments_that_share_memory():
    def f(x, y):
        x.mul_(2)
        y.add_(3)
        return x + y

    def views():
        t = torch.arange(24.0)
        return t[:12].view(3, 4), t[6:18].view(3, 4)

    def same():
        t = torch.arange(12.0).view(3, 4)
        return t, t

    def columns():
        t = torch.arange(24.0).view(3, 8)
        return t[:, ::2], t[:, 1::2]
    for make in (views, same, columns):
        torch._dynamo.reset()
        beside(f, make)


def test_aliases_after_separate_arguments():
    """The code for separate arguments is there when arguments that share memory come: PyTorch's own graph then writes one after
    the other, with values of what was there before."""
    def f(x, y):
        x.mul_(2)
        y.add_(3)

    def after(backend):
        torch._dynamo.reset()
        g = torch.compile(f, backend=backend)
        g(torch.ones(3, 4), torch.ones(3, 4))
        t = torch.arange(24.0)
        g(t[:12].view(3, 4), t[6:18].view(3, 4))
        return t
    torch.testing.assert_close(after(dynamo.backend), after("aot_eager"))


@pytest.mark.parametrize("late", [False, True])
def test_failed_check_changes_nothing(late):
    def f(x, i, v):
        y = x[i] if not late else v[(i + x.sum().long() * 0)]
        x.add_(1)
        return y + (v[(x.sum() * 0).long() + i] if late else 0)
    g = compiled(f)
    x, v = torch.ones(5), torch.arange(5.0)
    torch.testing.assert_close(g(x, torch.tensor([1, 2]), v), f(torch.ones(5), torch.tensor([1, 2]), v))
    kept = x.clone()
    with pytest.raises((RuntimeError, IndexError)):
        g(x, torch.tensor([1, 7]), v)
    assert torch.equal(x, kept)


def test_layouts_of_written_arguments():
    def f(x, y):
        x.mul_(2).add_(y)
        return x.sum()
    beside(f, lambda: (torch.arange(120.0).view(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.ones(2, 3, 4, 5)))
    torch._dynamo.reset()
    beside(f, lambda: (torch.arange(240.0).view(2, 3, 4, 10)[..., ::2], torch.ones(2, 3, 4, 5)))
    torch._dynamo.reset()
    beside(f, lambda: (torch.arange(6.0).view(2, 3).t(), torch.ones(3, 2)))


def test_dynamic_sizes():
    def f(x, y):
        x.add_(y.t()).mul_(0.5)
        return y * x.shape[0]
    g = compiled(f, dynamic=True)
    for n, m in ((3, 4), (5, 2), (7, 7)):
        x, y = torch.randn(n, m), torch.randn(m, n)
        a = x.clone()
        torch.testing.assert_close(g(x, y), f(a, y))
        torch.testing.assert_close(x, a)


def test_buffers_of_modules():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))
            self.norm = nn.BatchNorm1d(3)

        def forward(self, x):
            self.count += 1
            self.seen.lerp_(x.mean(0), 0.1)
            return self.norm(x) * self.seen
    m = M()
    twin = copy.deepcopy(m)
    g = compiled(twin)
    for _ in range(3):
        x = torch.randn(5, 3)
        want, got = m(x), g(x)
        torch.testing.assert_close(got, want)
        want.sum().backward(), got.sum().backward()
        torch.testing.assert_close(dict(twin.named_buffers()), dict(m.named_buffers()))


def test_fused_steps_are_said_to_be_eager():
    p = nn.Parameter(torch.ones(3))
    p.grad = torch.ones(3)
    text = str(weft.explain(optim.AdamW([p], fused=True).step))
    assert "everything is compiled" not in text, text


@pytest.mark.parametrize("make", [lambda z: z.conj().imag, lambda z: z.conj(), lambda z: z.conj()[1:], lambda z: z.conj().imag.t()])
def test_writes_what_is_read_negated(make):
    """Arguments whose elements are conjugated or negated when they are read and written."""
    def f(x, y):
        x.mul_(0.5).add_(y)
        return x + y
    z = torch.randn(3, 3, dtype=torch.complex64)
    twins = [make(t) for t in (z.clone(), z.clone())]
    y = torch.randn_like(twins[0])
    want, got = f(twins[0], y), compiled(f)(twins[1], y)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(twins[1], twins[0])
