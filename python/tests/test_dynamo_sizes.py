"""torch.compile(backend="weft"), sizes that change and sizes from data: values and gradients beside eager mode's."""
import math
import warnings

import pytest

torch = pytest.importorskip("torch")
import weft
from beside_eager import both, mlp
from weft import dynamo

nn = torch.nn
pytestmark = [pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there"), pytest.mark.usefixtures("fresh")]


def test_dynamic_sizes():
    both(mlp(), torch.randn(5, 4), dynamic=True, others=[(torch.randn(n, 4),) for n in (2, 9, 33)])
    assert dynamo.statistics.graphs == 2


def test_sizes_in_and_out():
    class M(nn.Module):
        def forward(self, x, n):
            return x * n, x.shape[0] * 2 + n, x.reshape(-1)[: x.shape[0]]
    both(M(), torch.randn(5, 4), 3, dynamic=True, train=False, others=[(torch.randn(6, 4), 7), (torch.randn(9, 4), 8)])


def test_parts_of_sizes():
    class M(nn.Module):
        def forward(self, x):
            n = x.shape[0]
            return x[: n // 2], x * (n // 2 - 7) + n % 3, x.new_ones(max(n - 6, 2), min(n, 7)), x.new_ones(n * n)
    both(M(), torch.randn(5), dynamic=True, train=False, others=[(torch.randn(n),) for n in (8, 13)])


def test_negative_integers():
    class M(nn.Module):
        def forward(self, x, n):
            return x * n + n, x.sum() - n // 2
    both(M(), torch.randn(5), 1, train=False, others=[(torch.randn(5), n) for n in (2, -1, -5, 0, -2**40, 2**62 + 1)])


@pytest.mark.parametrize("f", [lambda x, y: x[2:x.shape[0] - y.shape[0]] * x.sum(), lambda x, y: x[x.shape[0] - y.shape[0]:].sum() * y])
def test_ends_that_become_negative(f):
    """Where Weft's graph holds for some sizes only and Dynamo does not know, a call of others runs as PyTorch's operators."""
    fast = torch.compile(f, backend=dynamo.backend, dynamic=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sizes in ((9, 2), (9, 12), (5, 7), (5, 1)):
            given = [torch.randn(n, requires_grad=True) for n in sizes]
            twins = [t.detach().clone().requires_grad_() for t in given]
            want, got = f(*given), fast(*twins)
            torch.testing.assert_close(got, want)
            want.sum().backward()
            got.sum().backward()
            for p, q in zip(given, twins):
                torch.testing.assert_close(q.grad, p.grad)


def test_a_check_of_a_size_from_data():
    def found(x):
        z = x.nonzero()
        torch._check(z.size(0) == 4)
        return z + 3

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        fast = torch.compile(found, backend=dynamo.backend, fullgraph=True)
        x = torch.tensor([0, 1, 3, 4, 2, 0, 0])
        torch.testing.assert_close(fast(x), found(x))
        with pytest.raises(RuntimeError):  # the trace knew 4 rows, and gave 4 for the number that is checked
            fast(torch.tensor([0, 1, 3, 4, 2, 0, 7]))


def rows_of_two(x, y):
    a, b = x[x[:, 0] > 0], y[y[:, 0] < 0]
    return torch.cat([a, b]), a @ b.t(), a.softmax(-1), b.sum(0), a.shape[0] + b.shape[0], (a * 2).t(), b.view(-1), a[1:]


def rows_that_an_integer_counts(x, n):
    k = n.item()
    torch._check(k >= 0)
    torch._check(k <= x.shape[0])
    return x[:k] * 2, x.narrow(0, 0, k).sum(), torch.arange(k), torch.full((k, 2), 3.0), x * k, k + 1


def rows_that_are_as_many(x):
    a, b = x.nonzero(), (x * 2).nonzero()
    torch._check(a.size(0) == b.size(0))
    return a + b


def parts_of_lengths(x, lengths):
    lengths = lengths.tolist()
    for k in lengths:
        torch._check(k >= 0)
    return torch.split(x, lengths)


def counts(x):
    v, i = torch.unique(x, return_inverse=True)
    return torch.zeros(v.shape[0]).index_add(0, i, torch.ones(i.shape[0])), v, torch.bincount(x), torch.where(x > 2)


def repeated(x, n):
    return x.repeat_interleave(n, 0)


def written(x):
    y = x[x > 0].add_(1)
    x.mul_(2)
    return y


def floats(x, s):
    v = s.item()
    return x * v + 1, x ** v, torch.full((3,), v), x.clamp(max=v), torch.sqrt(x * (v * 2 - 1)), v / 2, x + torch.scalar_tensor(v), (
        torch.add(x, x, alpha=v), torch.addcmul(x, x, x, value=v), torch.addcdiv(x, x, x * x, value=v + 1),
        torch._foreach_add([x, x * 2], [x, x], alpha=v), torch.lerp(x, x * x, v))


def floats_of_sizes(x, s):
    n = x.shape[0]
    return x * (n / 3), x + n ** 0.5, n / 2, torch.full((2,), n / 7), x * (1.0 / n), x.clamp(min=-n / 9), x * (2 * s.item() + n)


def truths(x, b):
    yes = b.item()
    return torch.cond(yes, lambda x: x + 1, lambda x: x - 1, (x,)), yes


def experts(x, weights, expert):
    out = torch.zeros_like(x)
    for k in range(2):
        i = (expert == k).nonzero().squeeze(1)
        out = out.index_add(0, i, x[i] @ weights[k])
    return out


def rows_of_one(x, w):
    i = (x.sum(1) > 0).nonzero().squeeze(1)
    y = x[i] @ w
    return y.relu().sum() * y.shape[0], y


def numbers(*shape):
    return torch.randn(shape, requires_grad=True)


@pytest.mark.parametrize("f, given", [
    (rows_of_two, lambda k: (torch.randn(6 + k, 3), torch.randn(7 - k, 3))),
    (rows_that_an_integer_counts, lambda k: (torch.randn(6, 3), torch.tensor(3 - 3 * k))),
    (rows_that_are_as_many, lambda k: (torch.arange(7) % (2 + k),)),
    (parts_of_lengths, lambda k: (torch.randn(10), torch.tensor([2 - k, 3 + 2 * k, 5 - k]))),
    (counts, lambda k: (torch.randint(5, (9 + k,)),)),
    (repeated, lambda k: (torch.randn(3, 2), torch.tensor([1, 0, 4 + k]))),
    (written, lambda k: (torch.randn(6),)),
    (floats, lambda k: (torch.rand(4) + 1, torch.tensor(1.5 + k))),
    (floats_of_sizes, lambda k: (torch.randn(4 + k), torch.tensor(0.5, dtype=torch.float64))),
    (truths, lambda k: (torch.randn(4), torch.tensor(not k))),
    (experts, lambda k: (numbers(5, 3), numbers(2, 3, 3), torch.arange(5) % (2 - k))),
    (rows_of_one, lambda k: (numbers(6, 3), numbers(3, 4)))])
@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes_that_depend_on_data(f, given, dynamic):
    """One graph, all of it compiled."""
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        fast = torch.compile(f, backend=dynamo.backend, fullgraph=True, dynamic=dynamic)
        for k in range(2):
            want = given(k)
            got = [t.detach().clone().requires_grad_(t.requires_grad) for t in want]
            a, b = fast(*got), f(*want)
            torch.testing.assert_close(a, b)
            for results in (a, b):
                sums = [t.sum() for t in torch.utils._pytree.tree_leaves(results) if isinstance(t, torch.Tensor) and t.requires_grad]
                if sums:
                    sum(sums).backward()
            for p, q in zip(got, want):
                torch.testing.assert_close(p, q)
                torch.testing.assert_close(p.grad, q.grad)
    assert dynamo.statistics.compiled == dynamo.statistics.graphs and not dynamo.statistics.refused


def test_what_is_said_of_data_is_checked():
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        for f, good, bad in ((rows_that_an_integer_counts, (torch.ones(6, 3), torch.tensor(6)), (torch.ones(6, 3), torch.tensor(7))),
                             (parts_of_lengths, (torch.ones(10), torch.tensor([2, 3, 5])), (torch.ones(10), torch.tensor([2, 3, 4])))):
            fast = torch.compile(f, backend=dynamo.backend, fullgraph=True)
            torch.testing.assert_close(fast(*good), f(*good))
            with pytest.raises(RuntimeError):
                fast(*bad)
    assert not dynamo.statistics.refused


def test_sizes_from_data_beside_an_island(sum_of):
    def f(x, s):
        y = x[x > 0] * 2
        return y + torch.ops.weft_tests.sum_of(y), y.shape[0], torch.zeros(y.shape[0]) + s.item()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        fast = torch.compile(f, backend=dynamo.backend, fullgraph=True)
        for _ in range(2):
            args = torch.randn(9), torch.rand(())
            torch.testing.assert_close(fast(*args), f(*args))
    assert list(dynamo.statistics.refused) == ["weft_tests.sum_of.default"] and dynamo.statistics.compiled >= 1


def test_conjugates_beside_sizes():
    z = torch.tensor([1 + 2j, 3 - 1j])
    m = torch.compile(lambda x: x * 2, backend=dynamo.backend, dynamic=True)
    for x in (z.conj(), z, torch.cat([z, z]).conj()):
        torch.testing.assert_close(m(x), x * 2)


ROUNDED_SIZES = {
    "half": lambda x: x[:, : int(x.shape[1] / 2)] * 2, "ceil": lambda x: x[:, : math.ceil(x.shape[1] / 2)] * 2,
    "floor": lambda x: x.new_ones(math.floor((x.shape[1] + 3) / 4), x.shape[0]) + 1,
    "factor": lambda x: nn.functional.interpolate(x[None], scale_factor=1.5), "two": lambda x: nn.functional.interpolate(x[None], scale_factor=0.75),
    "sizes": lambda x: (x * 2, int(x.shape[1] / 2), math.ceil(x.shape[1] / 4)),
    "chunks": lambda x: [c.sin() for c in x.chunk(2, 1)], "parts": lambda x: [c + 1 for c in x.split(x.shape[1] // 2, 1)],
    "halves": lambda x: torch.add(*x[:, : x.shape[1] // 2 * 2].chunk(2, 1))}


@pytest.mark.parametrize("name", ROUNDED_SIZES)
def test_sizes_that_are_rounded(name):
    """int(n / 2), chunks, scale factors of a size that is a symbol: no part is PyTorch's."""
    f = ROUNDED_SIZES[name]
    fast = torch.compile(f, backend=dynamo.backend, dynamic=True)
    for n in (8, 10, 11, 13):
        x = torch.randn(3, n)
        torch.testing.assert_close(fast(x), f(x))
    assert dynamo.statistics.compiled and not dynamo.statistics.refused


PARTS = {  # x: [n, m]
    "halves": lambda x: x[: x.shape[0] // 2], "most": lambda x: x[x.shape[0] // 3:], "both": lambda x: x[: x.shape[0] // 2, x.shape[1] // 2:],
    "pairs": lambda x: x[: x.shape[0] // 2 * 2].view(x.shape[0] // 2, 2, -1).transpose(0, 1).reshape(-1), "steps": lambda x: x[::2, 1::3],
    "pool": lambda x: nn.functional.max_pool1d(x, 3, 2), "scaled": lambda x: x[: int(x.shape[0] * 0.75)], "few": lambda x: x[: min(x.shape[0], 5)],
    "square": lambda x: (x.view(-1, 1) * x.view(1, -1))[: x.shape[0] ** 2 // 3], "chunks": lambda x: torch.cat([t.cos() for t in x.chunk(2)]),
    "ceiling": lambda x: x[: math.ceil(x.shape[0] * 0.3)], "root": lambda x: x[: int(math.sqrt(x.shape[0]))], "rounded": lambda x: x[: round(x.shape[0] * 0.6)],
    "greater": lambda x: x[: max(x.shape[0] // 3, x.shape[1] // 2)],
    "rest": lambda x: x[: x.shape[0] - x.shape[0] % 4], "folded": lambda x: nn.functional.unfold(x[None, None], 2, stride=2),
    "convolved": lambda x: nn.functional.conv1d(x[:, None], torch.ones(2, 1, 3), stride=3), "grown": lambda x: nn.functional.interpolate(x[None], scale_factor=1.5),
}


@pytest.mark.parametrize("name", PARTS)
def test_extents_that_say_little_of_sizes(name):
    """What a backward graph gets has extents that are expressions of a size, which may have no one solution."""
    f = lambda x: PARTS[name](x.sin()).exp().sin() * x.shape[0]
    fast = torch.compile(f, backend=dynamo.backend, dynamic=True, fullgraph=True)
    for n in ((7, 6), (8, 9), (12, 7)):
        x = torch.randn(n, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        a, b = fast(x), f(y)
        torch.testing.assert_close(a, b)
        for t in (a, b):
            (t * torch.linspace(-1, 1, t.numel()).reshape(t.shape)).sum().backward()
        torch.testing.assert_close(x.grad, y.grad)
    if name not in ("ceiling", "root", "rounded"):  # numbers that are no expressions of Weft
        assert dynamo.statistics.compiled == dynamo.statistics.graphs and not dynamo.statistics.refused


@pytest.mark.parametrize("f", [lambda x, n: torch.nn.functional.pad(x, [2, n]), lambda x, n: x[n:].sin(), lambda x, n: x[:abs(n - 5)].sin(), lambda x, n: x[:n & 3] * n])
@pytest.mark.filterwarnings("ignore:weft:UserWarning")
def test_negative_integers_in_extents(f):
    """Extents are expressions of an argument that may be negative, in training too."""
    torch._dynamo.reset()
    fast = torch.compile(f, backend=dynamo.backend, dynamic=True)
    for n in (-1, -2, -3, 2, 1):
        x = torch.arange(1.0, 5.0).requires_grad_()
        want, got = f(x, n), fast(x, n)
        torch.testing.assert_close(got, want)
        torch.testing.assert_close(*(torch.autograd.grad(y.sum(), x)[0] for y in (got, want)))
