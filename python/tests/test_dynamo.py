"""torch.compile(backend="weft"): values and gradients beside eager mode's."""
import copy
import math
import warnings

import pytest

torch = pytest.importorskip("torch")
import weft
from weft import dynamo

nn = torch.nn
pytestmark = [pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there"), pytest.mark.usefixtures("fresh")]


@pytest.fixture(scope="session")
def sum_of():
    """An operator that Weft does not have."""
    @torch.library.custom_op("weft_tests::sum_of", mutates_args=())
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.sum()
    f.register_fake(lambda x: x.new_empty(()))


def both(module, *inputs, dynamic=None, fullgraph=True, train=True, others=()):
    """Compares results, gradients and buffers."""
    twin = copy.deepcopy(module)
    fast = torch.compile(twin, backend=dynamo.backend, dynamic=dynamic, fullgraph=fullgraph)
    for args in (inputs, *others):
        want, got = module(*args), fast(*args)
        torch.testing.assert_close(got, want)
        if train:
            sum(t.sum() for t in torch.utils._pytree.tree_leaves(want) if t.requires_grad).backward()
            sum(t.sum() for t in torch.utils._pytree.tree_leaves(got) if t.requires_grad).backward()
            for (name, p), q in zip(module.named_parameters(), twin.parameters()):
                torch.testing.assert_close(q.grad, p.grad, rtol=1e-3, atol=1e-4, msg=lambda m: f"{name}: {m}")
    for p, q in zip(module.buffers(), twin.buffers()):
        torch.testing.assert_close(q, p)
    assert not dynamo.statistics.eager_nodes
    return fast


def mlp():
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3))


def test_inference_and_training():
    with torch.no_grad():
        both(mlp(), torch.randn(5, 4), train=False)
    both(mlp(), torch.randn(5, 4))


def test_convolutions_and_statistics():
    both(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10)), torch.randn(2, 3, 8, 8))


def test_dynamic_sizes():
    both(mlp(), torch.randn(5, 4), dynamic=True, others=[(torch.randn(n, 4),) for n in (2, 9, 33)])
    assert dynamo.statistics.graphs == 2


def test_attention():
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    both(layer, torch.randn(2, 7, 16), dynamic=True, others=[(torch.randn(3, 11, 16),)])


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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gradients_of_a_maximum_that_was_rounded(dtype):
    f = lambda x: (x * x).amax(-1) + torch.linalg.vector_norm(x * 3, ord=math.inf, dim=-1)
    x = torch.randn(6, 40).to(dtype).requires_grad_()
    y = x.detach().clone().requires_grad_()
    f(x).sum().backward()
    torch.compile(f, backend=dynamo.backend)(y).sum().backward()
    torch.testing.assert_close(y.grad, x.grad)


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


def test_what_pytorch_refuses_is_refused():
    with pytest.raises(RuntimeError, match="same dtype"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.compile(torch.mm, backend=dynamo.backend)(torch.ones(2, 3), torch.ones(3, 3, dtype=torch.int64))
    pool = lambda x: nn.functional.adaptive_avg_pool2d(x, (2, 2))
    with pytest.raises(RuntimeError, match="Long"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.compile(pool, backend=dynamo.backend)(torch.ones(1, 3, 4, 4, dtype=torch.int64))


def test_numbers_as_tensors_and_empty_results():
    def f(x, i, a, b):
        return (torch.div(x, 3, rounding_mode="floor"), torch.div(i, 2.5, rounding_mode="trunc"), torch.div(i, x.shape[0], rounding_mode="floor"),
                torch.ops.aten.sub(a, b), torch.ops.aten.sub(b, i), nn.functional.adaptive_avg_pool2d(x[None, None], (2, 0)))
    for dynamic in (False, True):
        args = torch.randn(4, 5), torch.arange(6, dtype=torch.int32), 4, 3.3
        for got, want in zip(torch.compile(f, backend=dynamo.backend, fullgraph=True, dynamic=dynamic)(*args), f(*args)):
            torch.testing.assert_close(got, want)
    assert not dynamo.statistics.eager_nodes


def test_a_backward_graph_is_compiled_when_it_is_called():
    x = torch.randn(3, requires_grad=True)
    y = torch.compile(lambda x: (x.sin() * 2).sum(), backend=dynamo.backend)(x)
    made = []
    compile_now = dynamo.Compiled._compile
    with pytest.MonkeyPatch.context() as m:
        m.setattr(dynamo.Compiled, "_compile", lambda self: (made.append(self.name), compile_now(self)))
        y.backward()
    assert made == ["backward"]
    torch.testing.assert_close(x.grad, 2 * x.detach().cos())


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


def test_another_process_starts_from_the_cache(tmp_path):
    """AOTAutograd's cache: nothing is derived or lowered again."""
    import os
    import subprocess
    import sys
    script = """if True:
        import torch
        from torch._dynamo.utils import counters
        from weft import dynamo
        for dynamic in (False, True):
            torch.manual_seed(0)
            m = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Flatten(), torch.nn.Linear(8, 3))
            x = torch.randn(5, 4, requires_grad=True)
            y = torch.compile(m, backend=dynamo.backend, dynamic=dynamic)(x)
            z = m(x)
            torch.testing.assert_close(y, z)
            torch.testing.assert_close(torch.autograd.grad(y.sum(), x), torch.autograd.grad(z.sum(), x))
        for k in (3.0, 4.0):  # constants are kept with their values
            f = lambda x: x * torch.tensor([1.0, 2.0, k, 5.0]) + (x * (1 + 2j)).imag
            torch.testing.assert_close(torch.compile(f, backend=dynamo.backend, fullgraph=True)(x), f(x))
        written = [torch.ones(3), torch.ones(3)]
        for f, w in zip((torch.compile(torch.Tensor.add_, backend=dynamo.backend), torch.Tensor.add_), written):
            f(w, 2.0)
        torch.testing.assert_close(*written)
        print(dict(counters["aot_autograd"])["autograd_cache_" + "HIT_OR_SAVED"], dynamo.statistics.lowered > 0)"""
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "WEFT_CACHE": str(tmp_path)}
    said = [subprocess.run([sys.executable, "-c", script.replace("HIT_OR_SAVED", word)], env=env, capture_output=True, text=True, check=True).stdout.split()
            for word in ("saved", "hit")]
    assert said == [["5", "True"], ["5", "False"]]


def test_another_process_starts_from_dynamos_cache(tmp_path):
    """caching_precompile: nothing is traced again, and what another build of Weft kept is not taken."""
    import os
    import subprocess
    import sys
    (tmp_path / "kept.py").write_text("""if True:
        import sys, torch
        from torch._dynamo.utils import counters
        from weft import dynamo
        if sys.argv[1] == "build":
            dynamo._build = lambda: "another"
        torch._dynamo.config.caching_precompile = True
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 3)
            def forward(self, x):
                return self.b(torch.nn.functional.dropout(self.a(x), 0.5).relu()) * torch.tensor([1.0, 2.0, 3.0])
        def sizes(x, n):
            return x.view(-1, x.shape[0] // 2).sum(0) * x.shape[0] + n, x[1:], x.t()
        torch.manual_seed(0)
        net = Net()
        y = torch.compile(net, backend=dynamo.backend)(torch.randn(4, 8))
        y.sum().backward()
        f = torch.compile(sizes, backend=dynamo.backend, dynamic=True)
        for n in (4, 6):
            x = torch.arange(1.0 * n * n).view(n, n)
            torch.testing.assert_close(f(x, 3), sizes(x, 3))
        torch.compiler.save_cache_artifacts()
        print(counters["stats"]["unique_graphs"], y.sum().item(), net.a.weight.grad.sum().item())""")
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "WEFT_CACHE": str(tmp_path)}
    said = [subprocess.run([sys.executable, tmp_path / "kept.py", word], env=env, capture_output=True, text=True, check=True).stdout.split()
            for word in ("first", "second", "build")]
    assert [graphs for graphs, *_ in said] == ["2", "0", "2"]
    assert said[0][1:] == said[1][1:] == said[2][1:]


def test_a_kept_backward_graph_may_run_as_pytorchs(tmp_path):
    """Where a backward graph cannot be compiled, a process that took it from a cache runs it as the first one did."""
    import os
    import subprocess
    import sys
    script = """if True:
        import torch, warnings
        from torch._dynamo.utils import counters
        from weft import dynamo
        warnings.simplefilter("ignore")
        class Failing(dynamo.Model):
            def __init__(self, raw):
                raise dynamo._weft.Error("none is made")
        def unsolved(x):
            return x.view(x.shape[0] // 2, 2, -1).transpose(0, 1).reshape(-1) * x.shape[1]
        def constants(x):
            return (x * torch.tensor([1.0, 2.0, 3.0])).sin() @ torch.tensor([[1.0], [2.0], [5.0]])
        def branches(x):
            return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x * x.shape[0], (x,)).exp()
        def written(x):
            x.view(-1)[1:].mul_(2)
            return x.cos()
        def refuses(x):
            return x.tanh() * 3
        def derive(f, c, x, fails):
            x = x.clone().requires_grad_()
            y = c(f)(x * 1)
            made, dynamo.Model = dynamo.Model, Failing if fails else dynamo.Model
            try:
                (y * torch.linspace(-1, 1, y.numel()).reshape(y.shape)).sum().backward()
            finally:
                dynamo.Model = made
            return y, x.grad
        def compiled(f):
            return torch.compile(f, backend=dynamo.backend, options={"fallback": f is not refuses})
        for _ in range(2):
            for n in ((4, 3), (2, 1), (6, 2)):
                torch.testing.assert_close(derive(unsolved, compiled, x := torch.randn(n), True), derive(unsolved, lambda f: f, x, False))
            for f in (constants, branches, written):
                torch.testing.assert_close(derive(f, compiled, x := torch.rand(2, 3), True), derive(f, lambda f: f, x, False))
            try:
                derive(refuses, compiled, x, True)
            except dynamo._weft.Error:
                print("refused")
            torch._dynamo.reset()
        print(counters["aot_autograd"]["autograd_cache_saved"], counters["aot_autograd"]["autograd_cache_hit"])"""
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "WEFT_CACHE": str(tmp_path)}
    said = [subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)]
    assert said == [["refused", "refused", "6", "6"], ["refused", "refused", "0", "12"]]


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


def test_islands_of_eager_code():
    @torch.library.custom_op("weft_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @twice.register_fake
    def _(x):
        return torch.empty_like(x)
    f = lambda x: torch.sin(twice(torch.cos(x) + 1)) * 3
    x = torch.randn(7)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        got = torch.compile(f, backend=dynamo.backend, fullgraph=True)(x)
    assert torch.allclose(got, f(x))
    assert sum("twice.default runs as PyTorch's operator" in str(w.message) for w in seen) == 1
    assert dynamo.statistics.compiled == 2 and dynamo.statistics.eager_nodes == 1
    with pytest.raises(Exception, match="twice"):
        torch.compile(f, backend=dynamo.backend, options={"fallback": False})(x[:3])


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


def test_an_autograd_function():
    class Odd(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return g * 7 * x
    x = torch.randn(5, requires_grad=True)
    torch.compile(lambda x: Odd.apply(x).sum(), backend=dynamo.backend)(x).backward()
    assert torch.allclose(x.grad, 7 * x.detach())


def test_a_training_loop():
    torch.manual_seed(1)
    a, x, y = mlp(), torch.randn(64, 4), torch.randn(64, 3)
    b = copy.deepcopy(a)
    losses = []
    for m, f in ((a, a), (b, torch.compile(b, backend=dynamo.backend))):
        step, seen = torch.optim.Adam(m.parameters(), 1e-2), []
        for _ in range(30):
            step.zero_grad()
            loss = nn.functional.mse_loss(f(x), y)
            loss.backward()
            step.step()
            seen.append(loss.item())
        losses.append(seen)
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-4, atol=1e-5)
    assert losses[0][-1] < losses[0][0]


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


def test_a_backward_graph_may_be_called_again():
    m = mlp()
    loss = torch.compile(m, backend=dynamo.backend)(torch.randn(5, 4)).square().sum()
    loss.backward(retain_graph=True)
    once = [p.grad.clone() for p in m.parameters()]
    loss.backward()
    for p, g in zip(m.parameters(), once):
        torch.testing.assert_close(p.grad, 2 * g)


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


def test_conjugates_beside_sizes():
    z = torch.tensor([1 + 2j, 3 - 1j])
    m = torch.compile(lambda x: x * 2, backend=dynamo.backend, dynamic=True)
    for x in (z.conj(), z, torch.cat([z, z]).conj()):
        torch.testing.assert_close(m(x), x * 2)


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


def test_an_unknown_option():
    with pytest.raises(Exception, match="weft has no option 'falback'"):
        torch.compile(mlp(), backend=dynamo.backend, options={"falback": False})(torch.randn(2, 4))


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


@pytest.mark.filterwarnings("ignore:weft:UserWarning")
def test_one_result_of_a_part_that_cannot_be_compiled():
    """A backward part that runs as PyTorch's gives a tensor, also one whose first dimension is 1, to what reads it."""
    @torch.library.custom_op("weft_tests::sums_of_columns", mutates_args=())
    def columns(x: torch.Tensor) -> torch.Tensor:
        return x.sum(0, keepdim=True).expand_as(x).clone()
    columns.register_fake(torch.empty_like)
    columns.register_autograd(lambda ctx, g: columns(g))
    for f in (lambda x, n: x[::n].sin(), lambda x, n: columns(x[::n]).sin(), lambda x, n: (x[:, ::n] ** 2).exp()):
        torch._dynamo.reset()
        fast = torch.compile(f, backend=dynamo.backend, dynamic=True)
        for n in (2, 1, 3):
            x = torch.randn(2, 4, requires_grad=True)
            want, got = f(x, n), fast(x, n)
            torch.testing.assert_close(got, want)
            torch.testing.assert_close(*(torch.autograd.grad(y.sum(), x)[0] for y in (got, want)))
