"""torch.compile(backend="weft"), graphs, caches and what lies between graphs: values and gradients beside eager mode's."""
import copy
import warnings

import pytest

torch = pytest.importorskip("torch")
import weft
from beside_eager import both, mlp
from weft import dynamo

nn = torch.nn
pytestmark = [pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there"), pytest.mark.usefixtures("fresh")]


def test_inference_and_training():
    with torch.no_grad():
        both(mlp(), torch.randn(5, 4), train=False)
    both(mlp(), torch.randn(5, 4))


def test_convolutions_and_statistics():
    both(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10)), torch.randn(2, 3, 8, 8))


def test_what_pytorch_refuses_is_refused():
    with pytest.raises(RuntimeError, match="same dtype"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.compile(torch.mm, backend=dynamo.backend)(torch.ones(2, 3), torch.ones(3, 3, dtype=torch.int64))
    pool = lambda x: nn.functional.adaptive_avg_pool2d(x, (2, 2))
    with pytest.raises(RuntimeError, match="Long"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.compile(pool, backend=dynamo.backend)(torch.ones(1, 3, 4, 4, dtype=torch.int64))


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
            pairs = torch.nn.functional.pdist  # its gradient has constants, which the text of a graph has not
            torch.testing.assert_close(derive(pairs, compiled, x := torch.rand(5, 3), False), derive(pairs, lambda f: f, x, False))
            try:
                derive(refuses, compiled, x, True)
            except dynamo._weft.Error:
                print("refused")
            torch._dynamo.reset()
        print(counters["aot_autograd"]["autograd_cache_saved"], counters["aot_autograd"]["autograd_cache_hit"])"""
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "WEFT_CACHE": str(tmp_path)}
    said = [subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)]
    assert said == [["refused", "refused", "6", "6"], ["refused", "refused", "0", "12"]]


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


def test_a_backward_graph_may_be_called_again():
    m = mlp()
    loss = torch.compile(m, backend=dynamo.backend)(torch.randn(5, 4)).square().sum()
    loss.backward(retain_graph=True)
    once = [p.grad.clone() for p in m.parameters()]
    loss.backward()
    for p, g in zip(m.parameters(), once):
        torch.testing.assert_close(p.grad, 2 * g)


def test_an_unknown_option():
    with pytest.raises(Exception, match="weft has no option 'falback'"):
        torch.compile(mlp(), backend=dynamo.backend, options={"falback": False})(torch.randn(2, 4))


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
