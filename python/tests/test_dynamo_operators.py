"""torch.compile(backend="weft"), single operators: values and gradients beside eager mode's."""
import copy
import math

import pytest

torch = pytest.importorskip("torch")
import weft
from beside_eager import both, mlp
from weft import dynamo

nn = torch.nn
pytestmark = [pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there"), pytest.mark.usefixtures("fresh")]


def test_attention():
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    both(layer, torch.randn(2, 7, 16), dynamic=True, others=[(torch.randn(3, 11, 16),)])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gradients_of_a_maximum_that_was_rounded(dtype):
    f = lambda x: (x * x).amax(-1) + torch.linalg.vector_norm(x * 3, ord=math.inf, dim=-1)
    x = torch.randn(6, 40).to(dtype).requires_grad_()
    y = x.detach().clone().requires_grad_()
    f(x).sum().backward()
    torch.compile(f, backend=dynamo.backend)(y).sum().backward()
    torch.testing.assert_close(y.grad, x.grad)


def test_numbers_as_tensors_and_empty_results():
    def f(x, i, a, b):
        return (torch.div(x, 3, rounding_mode="floor"), torch.div(i, 2.5, rounding_mode="trunc"), torch.div(i, x.shape[0], rounding_mode="floor"),
                torch.ops.aten.sub(a, b), torch.ops.aten.sub(b, i), nn.functional.adaptive_avg_pool2d(x[None, None], (2, 0)))
    for dynamic in (False, True):
        args = torch.randn(4, 5), torch.arange(6, dtype=torch.int32), 4, 3.3
        for got, want in zip(torch.compile(f, backend=dynamo.backend, fullgraph=True, dynamic=dynamic)(*args), f(*args)):
            torch.testing.assert_close(got, want)
    assert not dynamo.statistics.eager_nodes


def test_random_numbers_follow_the_seed():
    f = torch.compile(nn.Dropout(0.5), backend=dynamo.backend)
    x = torch.ones(2000, requires_grad=True)
    torch.manual_seed(3)
    y = f(x)
    y.sum().backward()
    other = f(x)
    torch.manual_seed(3)
    assert torch.equal(f(x), y) and not torch.equal(other, y) and torch.equal(x.grad, y.detach())
    assert abs(y.mean() - 1) < 0.1


LACKING = {
    "solve": (lambda a, b: torch.linalg.solve(a, b), (3, 4, 4), (3, 4, 2)),
    "solve_left": (lambda a, b: torch.linalg.solve(a, b, left=False), (4, 4), (2, 4)),
    "solve_vector": (lambda a, b: torch.linalg.solve(a, b), (4, 4), (4,)),
    "det": (lambda a: torch.linalg.det(a), (3, 4, 4)),
    "det_columns": (lambda a: torch.linalg.det(a.mT), (4, 4)),
    "slogdet": (lambda a: torch.linalg.slogdet(a)[1], (3, 4, 4)),
    "cdist": (lambda a, b: torch.cdist(a, b, p=3.0), (5, 3), (4, 3)),
    "pdist": (lambda a: nn.functional.pdist(a), (5, 3)),
    "grid_sample": (lambda a, g: nn.functional.grid_sample(a, g.tanh(), align_corners=False), (2, 3, 5, 6), (2, 4, 4, 2)),
    "grid_sample of parts": (lambda a, g: nn.functional.grid_sample(nn.functional.max_pool3d(a, 2).repeat(1, 1, 2, 1, 1), g[: g.shape[0] // 2].tanh(), align_corners=True),
                             (2, 2, 6, 4, 4), (4, 3, 2, 5, 3)),
    "cdist of parts": (lambda a, b: torch.cdist(a[: a.shape[0] // 2], b[b.shape[0] // 3:], p=3.0), (6, 3), (7, 3)),
    "grid_sample of one": (lambda a, g: nn.functional.grid_sample(a.repeat(1, 1, 2, 1), g[: g.shape[0] // 2].tanh(), align_corners=True), (1, 2, 6, 4), (2, 2, 5, 2)),
    "masked_scatter": (lambda a, b: a.masked_scatter(a > 0, b), (4, 6), (30,)),
    "segment_reduce": (lambda a: torch.segment_reduce(a, "max", lengths=torch.tensor([2, 0, 3])), (5, 4)),
    "interpolate": (lambda a: nn.functional.interpolate(a, scale_factor=1.7, mode="bilinear"), (1, 2, 5, 4)),
    "polar": (lambda a, b: torch.polar(a, b).real * 2, (3, 4), (3, 4)),
}


@pytest.mark.parametrize("name, dynamic", [(n, d) for n in LACKING for d in (False, True) if not d or n not in ("pdist", "interpolate")])
def test_operators_of_other_operators(name, dynamic):
    f, *shapes = LACKING[name]
    a = [torch.randn(s).requires_grad_() for s in shapes]
    want, got = f(*a), torch.compile(f, backend=dynamo.backend, fullgraph=True, dynamic=dynamic)(*a)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    g = torch.randn_like(want)
    for x, y in zip(torch.autograd.grad(got, a, g), torch.autograd.grad(want, a, g)):
        torch.testing.assert_close(x, y, rtol=1e-3, atol=1e-4)
    assert not dynamo.statistics.refused


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("by_frequency", [False, True])
def test_bags(mode, by_frequency):
    if mode == "max" and by_frequency:
        return
    weights, index, begin = torch.randn(6, 3), torch.tensor([0, 2, 5, 2, 1, 1, 4]), torch.tensor([0, 2, 2, 5])
    each = torch.rand(7) if mode == "sum" else None
    f = lambda w, e: nn.functional.embedding_bag(index, w, begin, mode=mode, padding_idx=1, per_sample_weights=e, scale_grad_by_freq=by_frequency)
    both = []
    for g in (f, torch.compile(f, backend=dynamo.backend, fullgraph=True)):
        wrt = [t.clone().requires_grad_() for t in (weights, each) if t is not None]
        y = g(wrt[0], wrt[1] if each is not None else None)
        y.square().sum().backward()
        both.append((y, *(t.grad for t in wrt)))
    for a, b in zip(*both):
        torch.testing.assert_close(b, a)
    assert not dynamo.statistics.eager_nodes


def test_a_singular_matrix():
    f = torch.compile(lambda a, b: torch.linalg.solve(a, b), backend=dynamo.backend, fullgraph=True)
    with pytest.raises(torch.linalg.LinAlgError, match="linalg.solve: The solver failed because the input matrix is singular"):
        f(torch.zeros(3, 3), torch.ones(3))
    assert torch.allclose(f(torch.eye(3) * 2, torch.ones(3)), torch.full((3,), 0.5))


def test_checks_are_compiled_twice():
    class M(nn.Module):
        def forward(self, x):
            return torch.linalg.cholesky(x @ x.mT + torch.eye(3))
    for _ in range(2):
        torch._dynamo.reset()  # what AOTAutograd's cache kept is taken, if anything
        both(M(), torch.randn(3, 3, requires_grad=True))


def test_histograms():
    f = lambda x: torch.histogramdd(x, bins=[3, 2])
    x = torch.rand(20, 2)
    torch.testing.assert_close(torch.compile(f, backend=dynamo.backend, fullgraph=True)(x), f(x))
    assert not dynamo.statistics.eager_nodes


def test_branches():
    def f(x):
        return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos() - 1, (x,))
    for x in (torch.ones(3, 4), -torch.ones(3, 4)):
        a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
        want, got = f(a), torch.compile(f, backend=dynamo.backend, fullgraph=True)(b)
        torch.testing.assert_close(got, want)
        want.square().sum().backward()
        got.square().sum().backward()
        torch.testing.assert_close(b.grad, a.grad)
    assert not dynamo.statistics.eager_nodes and dynamo.statistics.compiled


def test_loops():
    def f(x, y):
        return torch._higher_order_ops.while_loop(lambda i, v: i < 5, lambda i, v: (i + 1, v * y + 1), (torch.tensor(0), x))
    x, y = torch.randn(4), torch.rand(4)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(f, backend=dynamo.backend, fullgraph=True)(x, y), f(x, y))
    assert not dynamo.statistics.eager_nodes and dynamo.statistics.compiled


def test_scans():
    def f(init, xs, w):
        def step(carry, x):
            new = torch.tanh(carry @ w + x)
            return new, new * 2
        return torch._higher_order_ops.scan(step, init, xs)
    init, xs, w = torch.randn(3, 4), torch.randn(6, 3, 4), torch.randn(4, 4)
    want = f(init, xs, w)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(f, backend=dynamo.backend, fullgraph=True)(init, xs, w), want)
    assert not dynamo.statistics.eager_nodes and dynamo.statistics.compiled


@pytest.mark.parametrize("causal", [False, True])
def test_heads_that_share_keys(causal):
    class M(nn.Module):
        def forward(self, q, k, v):
            return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
    given = [torch.randn(2, heads, 5, 8) for heads in (4, 2, 2)]
    both(M(), *given, train=False)
    twins = [[t.clone().requires_grad_() for t in given] for _ in range(2)]
    for f, t in zip((M(), torch.compile(M(), backend=dynamo.backend)), twins):
        f(*t).square().sum().backward()
    for a, b in zip(*twins):
        torch.testing.assert_close(b.grad, a.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_numbers_beside_low_precision(dtype):
    def f(x, a):
        return x * a, a * x, x / a, x // a, torch.div(x, a, rounding_mode="trunc"), x + a, torch.logaddexp(x, a)
    x, fast = torch.tensor([1.0, 3, 7, 11, -0.3, 30]).to(dtype), torch.compile(f, backend=dynamo.backend, dynamic=False)
    for a in (torch.tensor(0.1), torch.tensor(-0.7), torch.tensor(0.3, dtype=torch.float64)):
        for got, want in zip(fast(x, a), f(x, a)):
            torch.testing.assert_close(got, want, rtol=0, atol=0)


OPTIMIZERS = {"SGD": dict(momentum=0.9, nesterov=True, weight_decay=0.01), "Adam": dict(amsgrad=True, weight_decay=0.1), "AdamW": {},
              "RMSprop": dict(momentum=0.9, centered=True), "Adagrad": {}, "Adadelta": {}, "Adamax": {}, "NAdam": {}, "RAdam": {}, "ASGD": {},
              "Rprop": {}}


@pytest.mark.parametrize("name, foreach", [(n, f) for n in OPTIMIZERS for f in (False, True)])
def test_steps_of_optimizers(name, foreach):
    """torch.compile of an optimizer's step: no operator is PyTorch's."""
    nets = [mlp()]
    nets.append(copy.deepcopy(nets[0]))
    steps = [getattr(torch.optim, name)(net.parameters(), lr=0.01, foreach=foreach, **OPTIMIZERS[name]) for net in nets]
    calls = [steps[0].step, torch.compile(steps[1].step, backend=dynamo.backend)]
    x = torch.randn(5, 4)
    for _ in range(4):
        for net, optimizer, call in zip(nets, steps, calls):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            call()
    for p, q in zip(nets[0].parameters(), nets[1].parameters()):
        torch.testing.assert_close(q, p, rtol=1e-4, atol=1e-5)
    assert dynamo.statistics.compiled and not dynamo.statistics.refused


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_rates_that_change(name, foreach):
    """A learning rate that is a number of Python and another one at each step: the second step compiles it as an input."""
    torch.manual_seed(0)
    first = [torch.randn(3, 4), torch.randn(5)]
    lists = [[v.clone().requires_grad_() for v in first] for _ in range(2)]
    steps = [getattr(torch.optim, name)(values, lr=0.01, foreach=foreach, **OPTIMIZERS[name]) for values in lists]
    calls = [steps[0].step, torch.compile(steps[1].step, backend=dynamo.backend)]
    graphs = []
    for k in range(8):
        grads = [torch.randn_like(v) for v in first]
        for values, optimizer, call in zip(lists, steps, calls):
            optimizer.param_groups[0]["lr"] = 0.01 / (k + 1)
            for v, g in zip(values, grads):
                v.grad = g.clone()
            call()
        torch.testing.assert_close(lists[1], lists[0], rtol=1e-4, atol=1e-5)
        graphs.append(dynamo.statistics.graphs)
    assert graphs[-1] == graphs[3] and not dynamo.statistics.refused


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_numbers_that_change(dtype):
    """Operators that take a number: another one at each call compiles nothing anew, and is rounded as in eager mode."""
    torch.manual_seed(0)
    x, y, z = (torch.rand(64).to(dtype) + 0.5 for _ in range(3))  # whole vectors: the rest of them eager mode rounds twice

    def f(a):
        return (torch.add(x, y, alpha=a), torch.sub(x, y, alpha=a), torch.rsub(x, y, alpha=a), torch.addcmul(x, y, z, value=a),
                torch.addcdiv(x, y, z, value=a), torch.lerp(x, y, a), *torch._foreach_lerp([x], [y], a), *torch._foreach_add([x], [y], alpha=a),
                a - x, 1 - a ** x, x.clone().add_(y, alpha=1 - a), *inside(a))

    def inside(a):
        if dtype == torch.bfloat16:
            return ()  # Dynamo rounds the product and the quotient of these
        return x.clone().addcmul_(y, z, value=-a), x.clone().addcdiv_(y, z, value=2 * a)
    g = torch.compile(f, backend=dynamo.backend, fullgraph=True)
    for k in range(6):
        torch.testing.assert_close(g(0.3 + k * 0.17), f(0.3 + k * 0.17))
    assert dynamo.statistics.graphs == 2 and not dynamo.statistics.refused


def test_operators_on_lists():
    """Those that no optimizer calls: elements beside PyTorch's."""
    x, y = [torch.randn(3), torch.randn(2, 2)], [torch.rand(3) + 0.5, torch.rand(2, 2) + 0.5]
    numbers = [2.0, -1.5]
    calls = {
        "add": (x, numbers), "sub": (x, y), "mul": (x, torch.tensor(2.5)), "div": (x, numbers), "pow": (y, y), "clamp_min": (x, numbers),
        "clamp_max": (x, 0.25), "maximum": (x, numbers), "minimum": (x, 0.5), "lerp": (x, y, numbers), "norm": (x, 1), "addcmul": (x, y, y, numbers),
        "addcdiv": (x, y, y, torch.tensor(numbers)), "trunc": (x,), "lgamma": (y,), "sigmoid": (x,), "frac": (x,)}

    def f():
        return {k: getattr(torch, f"_foreach_{k}")(*args) for k, args in calls.items()}
    torch.testing.assert_close(torch.compile(f, backend=dynamo.backend, fullgraph=True)(), f())
    assert not dynamo.statistics.refused


def test_no_numbers_without_dropout():
    """What draws nothing leaves PyTorch's generator as it is: attention without dropout, dropout of nothing or outside of training."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.attend = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x):
            h = self.attend(x, x, x, need_weights=False)[0]
            h = torch.ops.aten.native_dropout(h, 0.5, False)[0] + torch.ops.aten.native_dropout(h, 0.0, True)[0]
            return nn.functional.scaled_dot_product_attention(h, h, h, is_causal=True)
    fast = both(Net(), torch.randn(2, 5, 8))
    before = torch.get_rng_state()
    fast(torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1))).sum().backward()
    assert torch.equal(torch.get_rng_state(), before)
