"""What users of torch.compile write in Python around tensors: see programs.py."""
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import io
import itertools
import logging
import os
import pickle
import signal
import threading
import typing

import numpy as np
import torch

from programs_base import F, mlp, nn, program, values


class Point(typing.NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    scale: float = 1.0
    extra: dict = dataclasses.field(default_factory=dict)


class Mode(enum.Enum):
    ADD = 1
    MULTIPLY = 2


class Net(nn.Module):
    """A module that a pickle can name."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.scales = nn.ParameterList([torch.ones(8) * k for k in (1, 2, 3)])
        self.heads = nn.ModuleDict({"a": nn.Linear(8, 2), "b": nn.Linear(8, 3)})
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.seen = 0

    def forward(self, x, head="a"):
        self.calls += 1
        self.seen += 1
        for layer, scale in zip(self.layers, self.scales):
            x = x + F.silu(layer(x)) * scale
        return self.heads[head](x)


@program
def trees_of_inputs(c):
    def f(batch, p, d, *rest, key="b", **more):
        y = batch.x * batch.scale + batch.extra["z"] + p.x - p.y
        return Point(y + d[key][0], sum(rest)), {**more, "n": len(rest)}
    return c(f)(Batch(torch.ones(3), 2.0, {"z": torch.arange(3.0)}), Point(torch.randn(3), torch.randn(3)),
                collections.OrderedDict(a=1, b=[torch.ones(3), None]), torch.ones(2), torch.ones(2), w=torch.zeros(1))


@program
def modules_in_lists(c):
    m = Net()
    f = c(m)
    y = f(torch.randn(3, 8)), f(torch.randn(3, 8), head="b")
    sum(t.square().sum() for t in y).backward()
    return y, [p.grad for p in m.parameters()], m.calls, m.seen


@program
def state_of_python(c):
    seen, count = [], 0

    def f(x):
        nonlocal count
        count += 1
        seen.append(x.mean())
        cache["last"] = x * count
        return x + count
    cache = {}
    g = c(f)
    return [g(torch.ones(2) * k) for k in range(3)], seen, cache, count


@program
def python_on_sequences(c):
    def f(x):
        rows = list(x)
        pairs = [a * b for a, b in itertools.combinations(rows, 2)]
        total = functools.reduce(torch.add, pairs)
        best = max(range(3), key=lambda k: k % 2)
        gen = (r.sum() * k for k, r in enumerate(reversed(rows)) if k != best)
        return total, torch.stack(list(gen)), sorted({3: 1, 1: 2}.items()), torch.stack([*map(torch.sin, rows[1:])]), {k: v for k, v in zip("abc", rows)}
    return c(f)(torch.randn(3, 4))


@program
def branches_on_data(c):
    def f(x):
        if x.sum() > 0:
            y = x * 2
        elif x.min().item() < -1:
            y = x.abs()
        else:
            y = x - 1
        n = int(x.abs().sum())
        for k in range(min(n, 3)):
            y = y + k
        return y, float(y.mean()), bool((y > 0).all())
    g = c(f)
    return [g(torch.tensor(v)) for v in ([1.0, 2.0], [-3.0, 1.0], [-0.5, 0.1])]


@program
def until_it_converges(c):
    def f(a, x):
        for k in range(50):
            y = torch.tanh(a @ x)
            if (y - x).abs().max() < 1e-4:
                break
            x = y
        return y, k
    return c(f)(torch.randn(4, 4) / 4, torch.randn(4))


@program
def numpy_in_the_function(c):
    def f(x):
        a = x.numpy() if not x.requires_grad else x.detach().numpy()
        b = np.sin(a) + np.arange(a.shape[1]) ** 2
        return torch.from_numpy(b.astype(np.float32)).sum(0) + x.mean(0), b
    y, b = c(f)(torch.randn(3, 4))
    g = c(lambda a: np.linalg.norm(a, axis=1) + a.max(1))
    return y, torch.as_tensor(b), torch.as_tensor(g(np.ones((2, 3), dtype=np.float32)))


@program
def prints_and_logs(c):
    def f(x):
        y = x.sin()
        with contextlib.redirect_stdout(io.StringIO()):
            print("mean", y.mean())
        logging.getLogger("programs").info("mean %s", y.mean())
        return y * 2
    x = torch.randn(3, requires_grad=True)
    c(f)(x).sum().backward()
    return x.grad


@program
def exceptions(c):
    def f(x, n):
        try:
            if n > 2:
                raise ValueError(f"{n} is too much")
            y = x * n
        except ValueError as e:
            y = x + len(str(e))
        finally:
            y = y + 1
        assert y.dim() == 1, "a vector"
        return y

    def refuses(x):
        if x.shape[0] > 3:
            raise RuntimeError("no")
        return x
    said = []
    for n in (2, 5):
        try:
            said.append(c(refuses)(torch.ones(n)))
        except RuntimeError as e:
            said.append(str(e) == "no")
    return c(f)(torch.ones(3), 2), c(f)(torch.ones(3), 3), said


@program
def ways_of_kinds(c):
    def f(x, mode, *, dtype=torch.float64):
        x = {Mode.ADD: lambda x: x + 1, Mode.MULTIPLY: lambda x: x * 3}[mode](x)
        y = torch.as_tensor([1, 2, 3], dtype=dtype) if isinstance(dtype, torch.dtype) else None
        return x, y.to(x.dtype) + x, x.type(torch.int32), x.bfloat16().float(), x.to(torch.uint8) << 2, x.bool() & True, x.half().dtype == torch.float16
    g = c(f)
    return g(torch.tensor([1.5, 2.5, 0.0]), Mode.ADD), g(torch.tensor([1.5, 2.5, 0.0]), Mode.MULTIPLY, dtype=torch.int16)


@program
def parts_left_to_python(c):
    @torch.compiler.disable
    def outside(x):
        return torch.from_numpy(np.sort(x.detach().numpy()))

    def f(x):
        y = outside(x * 2) + (0 if torch.compiler.is_compiling() else 0)
        return y.cumsum(0) * x
    x = torch.randn(5, requires_grad=True)
    c(f)(x).sum().backward()
    return x.grad


@program
def methods_and_decorators(c):
    class Model:
        def __init__(self):
            self.w, self.step = torch.randn(4, requires_grad=True), 1
            self.forward = c(self.forward)

        def forward(self, x):
            return self.scaled(x) @ self.w

        def scaled(self, x):
            return x * self.step

        @staticmethod
        @c
        def shifted(x):
            return x + 1

        @property
        def doubled(self):
            return self.w * 2
    m, x = Model(), torch.randn(4)
    a = m.forward(x)
    m.step = 3
    b = m.forward(x)
    (a + b + c(lambda: m.doubled.sum())()).backward()
    return a, b, m.shifted(x), m.w.grad


@program
def modules_compiled_in_place(c):
    m = mlp()
    if compiling := c(torch.sin) is not torch.sin:
        from weft import dynamo
        m.compile(backend=dynamo.backend, fullgraph=True)
    x = torch.randn(3, 8)
    y = m(x)
    twin = copy.deepcopy(m)
    y.sum().backward()
    return y, twin(x), [p.grad for p in m.parameters()], list(m.state_dict()) == list(mlp().state_dict()), compiling or True


@program
def pickles_of_modules(c):
    m = c(Net())
    x = torch.randn(2, 8)
    y, file = m(x), io.BytesIO()
    torch.save(getattr(m, "_orig_mod", m), file)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    other = Net()
    other.load_state_dict({k.removeprefix("_orig_mod."): v for k, v in m.state_dict().items()}, assign=True)
    return y, again(x), c(other)(x), copy.deepcopy(m)(x), pickle.loads(pickle.dumps(getattr(m, "_orig_mod", m)))(x)


@program
def dtypes_changed_after_compiling(c):
    m = mlp()
    f = c(m)
    a = f(torch.randn(2, 8))
    m.double()
    b = f(torch.randn(2, 8, dtype=torch.float64))
    m.bfloat16()
    return a, b, f(torch.ones(2, 8, dtype=torch.bfloat16)).float().round(decimals=1)


@program
def layers_exchanged_after_compiling(c):
    m, x = mlp(), torch.randn(3, 8)
    f = c(m)
    a = f(x)
    m[2] = nn.ReLU()
    m[3].weight = nn.Parameter(torch.ones(4, 16))
    b = f(x)
    m.append(nn.Softmax(-1))
    m[0].weight.data.mul_(2)
    return a, b, f(x), f(x[:1])


@program
def lazy_layers(c):
    m = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    m(torch.randn(2, 3, 5, 5))
    y = c(m)(torch.randn(2, 3, 5, 5))
    y.sum().backward()
    return y, [p.grad for p in m.parameters()], values(m)


@program
def threads(c):
    m, x, out = mlp(), [torch.randn(3 + k % 2, 8) for k in range(8)], [None] * 8
    f = c(m)
    with torch.no_grad():
        f(x[0]), f(x[1])

    def work(k):
        with torch.no_grad():
            for _ in range(20):
                out[k] = f(x[k])
    workers = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    return out


@program
def children_by_fork(c):
    """A child process calls what its parent compiled. In eager mode PyTorch's own threads would be missing there."""
    m, x = mlp(), torch.randn(64, 8)
    f = c(m)
    with torch.no_grad():
        y = f(x)
        if f is m:
            return y, y
        back, out = os.pipe()
        child = os.fork()
        if not child:
            signal.alarm(60)
            try:
                os.write(out, f(x).numpy().tobytes())
            finally:
                os._exit(0)
        os.close(out)
        with os.fdopen(back, "rb") as file:
            data = file.read()
        os.waitpid(child, 0)
    return y, torch.frombuffer(bytearray(data), dtype=torch.float32).view(64, 4)


@program
def options_of_compile(c):
    x = torch.randn(4, 8)
    m = mlp()
    return [c(m, **o)(x) for o in ({"fullgraph": True}, {"mode": "reduce-overhead"}, {"mode": "max-autotune"}, {"options": {"fallback": True}}, {"dynamic": False},
                                   {"mode": "default", "dynamic": True}, {"disable": True})]


@program
def marked_sizes(c):
    m = mlp()
    f, ys = c(m), []
    for n in (2, 5, 9):
        x = torch.randn(n, 8)
        torch._dynamo.mark_dynamic(x, 0)
        torch._dynamo.mark_static(x, 1)
        ys.append(f(x))
    g = c(lambda x, k: x.reshape(-1, k).sum(1) * x.shape[0])
    for n in (4, 8, 12):
        x = torch.arange(1.0 * n)
        torch._dynamo.maybe_mark_dynamic(x, 0)
        ys.append(g(x, n // 2))
    sum(y.sum() for y in ys).backward()
    return ys, [p.grad for p in m.parameters()]


@program
def many_recompilations(c):
    f = c(lambda x, k: x * k + x.shape[0])
    return [f(torch.ones(n, 2), k) for n, k in zip(range(1, 15), itertools.cycle([1, 2.5, True]))], [c(torch.sum)(torch.ones([2] * n)) for n in range(1, 12)]


@program
def operators_of_the_user(c):
    @torch.library.custom_op("programs::cubed", mutates_args=())
    def cubed(x: torch.Tensor, k: float) -> torch.Tensor:
        return torch.from_numpy(np.power(x.detach().numpy(), 3) * k)
    cubed.register_fake(lambda x, k: torch.empty_like(x))
    cubed.register_autograd(lambda ctx, g: (g * 3 * ctx.saved_tensors[0] ** 2 * ctx.k, None),
                            setup_context=lambda ctx, inputs, output: (ctx.save_for_backward(inputs[0]), setattr(ctx, "k", inputs[1])))

    @torch.library.custom_op("programs::fill", mutates_args=("out",))
    def fill(out: torch.Tensor, x: torch.Tensor) -> None:
        out.copy_(x * 2)
    fill.register_fake(lambda out, x: None)

    def f(x):
        out = torch.empty_like(x)
        fill(out, x.detach().sin())
        return cubed(x.cos(), 2.0) + out
    x = torch.randn(5, requires_grad=True)
    y = c(f)(x)
    y.sum().backward()
    return y, x.grad


@program
def tensors_of_another_class(c):
    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            out = super().__torch_function__(func, types, args, kwargs or {})
            return out * 2 if func is torch.sin else out
    x = torch.randn(4).as_subclass(Logged)
    y = c(lambda x: torch.sin(x) + torch.cos(x))(x)
    return y.as_subclass(torch.Tensor), type(y) is Logged


@program
def islands_without_gradients(c):
    m = mlp()

    def f(x, train):
        with torch.set_grad_enabled(train):
            y = m(x)
        with torch.no_grad():
            scale = y.abs().amax(-1, keepdim=True)
            with torch.enable_grad():
                z = y / scale
        return z.sum() + y.detach().mean(), z.requires_grad
    a, b = c(f)(torch.randn(3, 8), True), c(f)(torch.randn(3, 8), False)
    a[0].backward()
    return a, b, [p.grad for p in m.parameters()]


@program
def tensors_of_inference_mode(c):
    m = mlp()
    f = c(m)
    with torch.inference_mode():
        x = torch.randn(3, 8)
        y = f(x)
    z = f(x.clone())
    z.sum().backward()
    return y.clone(), z, m[0].weight.grad, y.is_inference()


@program
def writes_through_views(c):
    def f(x, i):
        y = x.clone()
        y[:, ::2] += 1
        y[i] *= 2
        y.t()[0].copy_(torch.arange(4.0))
        y[1:3, 1:].masked_fill_(y[1:3, 1:] > 0, -1)
        y.view(-1)[3:6].zero_()
        y.index_put_((i, i), torch.ones(3), accumulate=True)
        y[[0, 1]] = y[[1, 0]]
        y.diagonal().add_(5)
        first = y[:2]
        first.sub_(y[2:])
        y.scatter_(1, i.view(-1, 1), 7.0)
        return y, first, x.clone().clamp_(min=0.1).neg_()
    x = torch.randn(4, 4, requires_grad=True)
    y = c(f)(x, torch.tensor([0, 2, 2]))
    sum(t.sum() for t in y[:2]).backward()
    return y, x.grad


@program
def writes_into_arguments(c):
    def f(x, state, out):
        state["n"] += 1
        state["m"].mul_(0.9).add_(x, alpha=0.1)
        torch.mul(x, state["m"], out=out)
        x.t_()
        return x.sum(0), out[0]
    x, state, out = torch.randn(3, 4), {"n": torch.zeros(()), "m": torch.zeros(3, 4)}, torch.empty(3, 4)
    g = c(f)
    y = g(x.clone(), state, out), g(x.clone(), state, out)
    return y, state, out


@program
def odd_shapes_and_memory(c):
    f = c(lambda x: (x.softmax(-1).sum(0), x * 2, x.flip(0), x.amax() if x.numel() else x.sum(), x.reshape(-1), x.norm()))
    base = torch.randn(4, 6)
    given = [torch.randn(0, 3), torch.randn(1, 1), base[:, ::2], base.t(), base[0].expand(5, 6), base[2:3], base.flip(1), torch.as_strided(base, (3, 3), (1, 2)),
             torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last), base.double(), torch.randn(())[None]]
    return [f(x) for x in given], [y.stride() for x in given for y in f(x)]


@program
def numbers_of_all_kinds(c):
    def f(x, k, r, flag, z):
        return x * k + r, x // 2 % 3, k ** 2 // 3, -7 // 2, r / 2, x ** (not flag), x.new_full((k,), r), x * z, round(r, 1), divmod(k, 3), x[: k - 1], x > k, abs(-r)
    g = c(f)
    return [g(torch.arange(5.0), k, r, flag, 1 + 2j) for k, r, flag in ((3, 0.5, True), (4, 2.25, False), (2, -1.5, True))]


@program
def random_numbers_of_a_seed(c):
    f = c(lambda x: F.dropout(x, 0.3) + torch.rand_like(x) * torch.randn(3)[:, None] + torch.bernoulli(torch.full_like(x, 0.5)))
    x = torch.ones(3, 2000)
    torch.manual_seed(1)
    a, b = f(x), f(x)
    torch.manual_seed(1)
    z = c(lambda: (torch.randn(20000), torch.rand(20000), torch.randint(0, 9, (20000,)), torch.randperm(50), torch.empty(20000).exponential_()))()
    torch.manual_seed(1)
    return (torch.equal(a, f(x)), torch.equal(a, b), [(t.double().mean() / 4).round(decimals=1) + 0 for t in z], [(t.double().std() / 4).round(decimals=1) for t in z],
            z[3].sort().values)


@program
def transforms_over_batches(c):
    f = lambda x, y: (x * y).sum(-1).tanh()
    x, y = torch.randn(4, 3), torch.randn(3, 5)
    T = torch.func
    return (c(T.vmap(T.vmap(f, (None, 1)), (0, None)))(x, y), c(T.vmap(f, in_dims=(0, None), out_dims=-1))(x, y[:, 0]), c(T.jacfwd(lambda x: x.exp().cumsum(0)))(x[0]),
            c(lambda x, v: T.vjp(torch.sin, x)[1](v))(x, x), c(T.jacrev(T.jacfwd(lambda x: x.pow(3).sum())))(x[0]), c(T.vmap(torch.linalg.det))(torch.randn(2, 3, 3) + torch.eye(3)),
            c(T.vmap(lambda x, i: x[i], (0, 0)))(x, torch.tensor([0, 2, 1, 1])[:, None]), c(lambda x: T.linearize(torch.cos, x)[1](x))(x))


@program
def control_by_operators(c):
    from torch._higher_order_ops import associative_scan, map, scan, while_loop
    x, n = torch.randn(4, 3), torch.tensor(3)
    return (c(lambda x: torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,)))(x), c(lambda x, n: while_loop(lambda x, n: n > 0, lambda x, n: (x * 2 + n, n - 1), (x, n)))(x, n),
            c(lambda x: scan(lambda a, b: (a + b, a * b), x[0], x))(x), c(lambda x: map(lambda a: a.softmax(-1), x))(x),
            c(lambda x: associative_scan(lambda a, b: a * 0.5 + b, x, 0, combine_mode="generic"))(x))


@program
def nested_compiling(c):
    inner, m = c(lambda x: x.sin() * 2), mlp()
    f = c(m)

    def outer(x):
        return inner(f(x)) + 1
    y = c(outer)(torch.randn(3, 8))
    y.sum().backward()
    return y, c(c(torch.tanh))(torch.ones(2)), [p.grad for p in m.parameters()]


@program
def precision_of_the_default(c):
    before = torch.get_default_dtype()
    f = c(lambda x: (torch.ones(2) / 3 + x, torch.arange(3) / 2, torch.tensor([1.5, 2]), torch.linspace(0, 1, 3)))
    a = f(torch.ones(2))
    try:
        torch.set_default_dtype(torch.float64)
        b = f(torch.ones(2))
    finally:
        torch.set_default_dtype(before)
    return a, b, f(torch.ones(2))


@program
def data_of_a_loader(c):
    data = torch.utils.data.TensorDataset(torch.randn(10, 8), torch.arange(10) % 4)
    m, losses = mlp(), []
    f = c(lambda x, t: F.cross_entropy(m(x), t))
    for x, t in torch.utils.data.DataLoader(data, batch_size=4):
        losses.append(f(x, t))
        losses[-1].backward()
    return losses, [p.grad for p in m.parameters()]


@program
def buffers_and_constants_of_modules(c):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("queue", torch.zeros(4, 3))
            self.register_buffer("at", torch.zeros((), dtype=torch.long))
            self.register_buffer("table", torch.arange(3.0), persistent=False)
            self.factor = torch.tensor([2.0, 0.5, 1.0])

        def forward(self, x):
            self.queue[self.at] = x.detach().mean(0)
            self.at.add_(1).remainder_(4)
            return (x * self.factor + self.table) @ self.queue.t()
    m = M()
    f = c(m)
    ys = [f(torch.randn(5, 3)) for _ in range(6)]
    m.factor = torch.ones(3)
    return ys, f(torch.ones(5, 3)), dict(m.named_buffers())


@program
def sets_of_indices(c):
    def f(x, i, mask):
        return (x[i], x[mask], x[..., None, 1], x[i[:, None], i], x[torch.tensor(1)], x[-1], x[1:, [0, 2]], x.take(i), x.index_select(1, i), torch.where(mask, x, 0.0),
                x.masked_select(mask), mask.nonzero(), x.detach().unique(), torch.bincount(i, minlength=5), x.take_along_dim(i[None].expand(4, -1), 1), x.index_fill(0, i, 2.0))
    x = torch.arange(16.0).view(4, 4).remainder(5).requires_grad_()
    y = c(f)(x, torch.tensor([0, 2, 3, 2]), torch.eye(4).bool())
    sum(t.sum() for t in y if t.requires_grad).backward()
    return y, x.grad


@program
def gradients_again_and_in_parts(c):
    m, x = mlp(), torch.randn(3, 8, requires_grad=True)
    y = c(lambda x: {"a": m(x), "b": x.square(), "n": x.argmax()})(x)
    y["a"].sum().backward(retain_graph=True)
    first = x.grad.clone()
    y["a"].sum().backward(retain_graph=True)
    (y["b"] * 2).sum().backward(retain_graph=True)
    g = torch.autograd.grad(y["a"].square().sum(), list(m.parameters()), allow_unused=True)
    return first, x.grad, g


@program
def compiled_under_autocast(c):
    m = mlp().eval()
    f = c(m)
    with torch.no_grad():
        a = f(torch.ones(2, 8))
        with torch.autocast("cpu", torch.bfloat16):
            b = f(torch.ones(2, 8))
            with torch.autocast("cpu", enabled=False):
                d = f(torch.ones(2, 8))
    return a, b.dtype == torch.bfloat16, d, b.float().round(decimals=1)
