"""torch.compile(backend="weft"), memory: views, strides, writes: values and gradients beside eager mode's."""
import pytest

torch = pytest.importorskip("torch")
import weft
from weft import dynamo

nn = torch.nn
pytestmark = [pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there"), pytest.mark.usefixtures("fresh")]


def test_inputs_as_outputs_and_shared_buffers():
    class M(nn.Module):
        def forward(self, x):
            y = x + 1
            return x, y, y.view(-1), y.detach()
    m = torch.compile(M(), backend=dynamo.backend, fullgraph=True)
    x = torch.randn(3, 4)
    a, b, c, d = m(x)
    assert a is x and c.data_ptr() == b.data_ptr() == d.data_ptr() and torch.equal(d, x + 1)


def test_writes_to_inputs():
    def f(x, y):
        x.add_(y)
        return x * 2
    x, y = torch.ones(4), torch.arange(4.0)
    assert torch.equal(torch.compile(f, backend=dynamo.backend)(x, y), (1 + y) * 2)
    assert torch.equal(x, 1 + y)


def test_strides_are_eager_modes():
    f = lambda x: (x.permute(2, 0, 1) + 1, (x * 2).transpose(0, 1), (x[0] + 3).expand(5, 3, 4))
    x = torch.randn(2, 3, 4)
    for a, b in zip(torch.compile(f, backend=dynamo.backend)(x), f(x)):
        assert a.stride() == b.stride() and torch.equal(a, b)


def test_strides_with_gaps_are_eager_modes():
    def f(x):
        y = torch.empty_strided(x.shape, x.stride())
        y[:] = x + x
        return y, y
    for dynamic in (False, True):
        x = torch.randn(16, 16)[:, :8]
        got = torch.compile(f, backend=dynamo.backend, fullgraph=True, dynamic=dynamic)(x)
        for a, b in zip(got, f(x)):
            assert a.stride() == b.stride() == (16, 1) and torch.equal(a, b)


def test_operators_on_memory():
    """as_strided is on the memory of its operand, which is not row-major, or is that of a view's base."""
    last = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    for x in (last, torch.arange(120.0).reshape(2, 3, 4, 5), torch.arange(60.0)[10:].reshape(5, 10).T):
        f = lambda x: ((y := x + 1).as_strided((4, 3), (3, 1), 2) + 2, x.as_strided((4, 3), (3, 1), x.storage_offset() + 2) * 2,
                       y[1:].as_strided((2, 4), (1, 3)) * 3, torch.as_strided_scatter(y, y.new_full((3,), 7), (3,), (2,), 1) + 1)
        for got, want in zip(torch.compile(f, backend=dynamo.backend, fullgraph=True)(x), f(x)):
            torch.testing.assert_close(got, want)
            assert got.stride() == want.stride()
    assert not dynamo.statistics.eager_nodes


@pytest.mark.parametrize("dynamic", [None, True])
def test_parts_of_inputs_are_views(dynamic):
    class M(nn.Module):
        def forward(self, x):
            return *x.split([2, x.shape[0] - 2]), *x.unbind(1), *x.chunk(2, 1)
    m = torch.compile(M(), backend=dynamo.backend, dynamic=dynamic)
    for n in (5, 6, 9):
        x = torch.randn(n, 4)
        for got, want in zip(m(x), M()(x)):
            torch.testing.assert_close(got, want)
            assert got.data_ptr() == want.data_ptr() and got.stride() == want.stride()


VIEWS = {
    "slice": lambda x: x[x.shape[0] // 2:], "select": lambda x: x[x.shape[0] - 1], "narrow": lambda x: x.narrow(0, 0, x.shape[0] - 1),
    "columns": lambda x: x[:, x.shape[1] // 2:], "view": lambda x: x.view(x.shape[0], 1, x.shape[1]), "t": lambda x: x.t()[1:],
    "expand": lambda x: x.unsqueeze(0).expand(x.shape[0], -1, -1), "chunk": lambda x: x.chunk(2)[1], "unbind": lambda x: x.unbind(1)[-1],
    "split": lambda x: x.split(x.shape[0] // 2)[1], "diagonal": lambda x: x.diagonal(1), "unfold": lambda x: x.unfold(1, 2, 1)[1:],
    "strided": lambda x: x.as_strided((x.shape[0],), (1,)),
    "chain": lambda x: x.unsqueeze(1).transpose(0, 2).squeeze()[x.shape[1] // 2:, 1:], "squeeze": lambda x: x[1:2].squeeze(0)[x.shape[1] // 2:],
    "written": lambda x: x[x.shape[0] // 2:].add_(1), "written chain": lambda x: x.t().narrow(1, 0, x.shape[0] - 1).mul_(2).detach(),
    "beside a sum": lambda x: (x.sum() * 2, x[x.shape[0] // 2:], x[:x.shape[0] // 2].detach()),
}


LAYOUTS = {
    "row-major": lambda b, n, m: b.view(-1)[:n * m].view(n, m), "columns apart": lambda b, n, m: b[:n, ::2], "columns": lambda b, n, m: b[:n, m:],
    "rows apart": lambda b, n, m: b[::2, :m], "transposed": lambda b, n, m: b[:m, :n].t(), "one row": lambda b, n, m: b[1, :m].expand(n, m),
    "behind": lambda b, n, m: b.view(-1)[3:n * m + 3].view(n, m),
}


def same_views(fast, eager, base, *layout):
    """Both functions' results are the same parts of the memory of their own argument."""
    twins = [base.clone() for _ in range(2)]
    results = [f(lay(b)) for f, b in zip((fast, eager), twins) for lay in layout]
    got, want = (r if isinstance(r, tuple) else (r,) for r in results)
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5, check_stride=True)
        assert (a.storage_offset(), a.dtype) == (b.storage_offset(), b.dtype)
        assert (a.untyped_storage().data_ptr() == twins[0].untyped_storage().data_ptr()) == (
            b.untyped_storage().data_ptr() == twins[1].untyped_storage().data_ptr())
    assert torch.equal(*twins)


@pytest.mark.parametrize("view", VIEWS)
def test_views_of_inputs_of_any_layout(view):
    for layout in LAYOUTS:
        if "written" in view and layout == "one row":
            continue
        torch._dynamo.reset()
        fast = torch.compile(VIEWS[view], backend=dynamo.backend, dynamic=True)
        for n, m in ((4, 6), (6, 8), (5, 7)):
            same_views(fast, VIEWS[view], torch.randn(2 * n, 2 * m), lambda b, n=n, m=m: LAYOUTS[layout](b, n, m))


def test_views_of_complex_inputs():
    def f(x):
        return torch.view_as_real(x)[x.shape[0] // 2:], x.imag[x.shape[0] // 2:], x.real, x[1:].conj().sum() * 2
    for lay in (lambda b: b[1:], lambda b: b[:, ::2], lambda b: b.t()):
        torch._dynamo.reset()
        fast = torch.compile(f, backend=dynamo.backend, dynamic=True)
        for n in (4, 6):
            same_views(fast, f, torch.randn(n, n + 2, dtype=torch.complex64), lay)


def test_written_parts_of_one_tensor():
    def f(x, y):
        return x.add_(1), y.mul_(2)
    for n in (6, 40):
        torch._dynamo.reset()
        got, want = torch.arange(float(n)), torch.arange(float(n))
        torch.compile(f, backend=dynamo.backend)(got[:4], got[2:6])
        f(want[:4], want[2:6])
        torch.testing.assert_close(got, want)


def exchange(a, b):
    t = a.clone()
    a.copy_(b)
    b.copy_(t)
    return a + b, t


def from_before(a, b):
    b.copy_(a.t())
    a.mul_(2)
    return a, b


def through_a_part(a, b):
    rows = a[1:]
    rows.add_(1)
    c = a * 2
    b.add_(c)
    rows.mul_(3)
    return rows, c


def beside_an_island(a, b):
    return torch.ops.weft_tests.sum_of(a.add_(1)) + a.mul_(2)


@pytest.mark.parametrize("f", [exchange, from_before, through_a_part, beside_an_island])
def test_writes_come_last(f, sum_of):
    """A graph reads what arguments were, also where a part of it is PyTorch's, and writes them at its end."""
    got, want = ([torch.arange(16.0).reshape(4, 4) + k for k in range(2)] for _ in range(2))
    fast = torch.compile(f, backend=dynamo.backend, fullgraph=True)
    for _ in range(2):
        torch.testing.assert_close(fast(*got), f(*want))
        torch.testing.assert_close(got, want)


def test_writes_beside_a_break():
    """Results of one memory, which the next graph writes."""
    def f(x):
        a = torch.tensor([1])[0:1]
        b = a.squeeze()
        a[0] = x
        torch._dynamo.graph_break()
        a[0] += 2
        return b
    assert torch.compile(f, backend=dynamo.backend)(3) == f(3) == 5


def test_writes_that_autograd_does_not_see():
    def f(x, w):
        x.detach().mul_(2)
        with torch.no_grad():
            w.add_(1)
        return (x * w).sum()
    got, want = ([torch.arange(4.0, requires_grad=True), torch.ones(4)] for _ in range(2))
    fast = torch.compile(f, backend=dynamo.backend, fullgraph=True)
    for _ in range(2):
        for call, args in ((fast, got), (f, want)):
            call(*args).backward()
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(got[0].grad, want[0].grad)


def test_results_that_are_left_out():
    """Of a sum without padding, PyTorch gives no offset2bag, and no count: zeros."""
    def f(weight, indices, offsets):
        return torch.ops.aten._embedding_bag(weight, indices, offsets, False, 0, False, None)
    args = torch.randn(10, 4), torch.randint(10, [8]), torch.tensor([0, 2, 6])
    got, want = torch.compile(f, backend=dynamo.backend)(*args), f(*args)
    torch.testing.assert_close(got, want)
    assert not dynamo.statistics.refused


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("pair", [lambda y: (y[:3], y[1:]), lambda y: (y.view(-1)[2:], y.T), lambda y: (y[0], y[0]), lambda y: (y.T, y),
                                  lambda y: y.split(2), lambda y: (y[1:3, 1], y[:, 1]), lambda y: (y.as_strided((2, 2), (1, 3)), y.flip(0)[1:])])
def test_results_of_one_memory(pair, dynamic):
    """Results that are parts of one value share its memory, though the value is no result: a write into one is seen in the
    other, by a later graph and by the caller."""
    def later(x):
        a, b = pair(x * 2)
        torch._dynamo.graph_break()
        a.add_(10)
        return a, b.sum()

    def given(x):
        return pair(x.exp())

    x = torch.arange(12.).reshape(4, 3)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(later, backend="weft", dynamic=dynamic)(x), later(x))
    torch._dynamo.reset()
    got, want = torch.compile(given, backend="weft", dynamic=dynamic)(x), given(x)
    got[0].mul_(3), want[0].mul_(3)
    torch.testing.assert_close(got, want)
