"""torch.compile(backend="weft") of what PyTorch hands to back ends in forms of its own: complex numbers, jagged tensors, compiled
autograd, regions, checkpoints, collectives. And what is said where something else happens than the user asked."""
import copy
import warnings

import pytest

torch = pytest.importorskip("torch")
import weft
from weft import dynamo

nn = torch.nn
F = nn.functional
pytestmark = [pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there"), pytest.mark.usefixtures("fresh")]


def strict(f, **more):
    return torch.compile(f, backend=dynamo.backend, options={"fallback": False}, fullgraph=True, **more)


Z = 0.75 - 1.25j
COMPLEX = {
    "add": lambda z, x: (z + Z, Z + z, x + Z), "sub": lambda z, x: (z - Z, Z - z, x - Z), "mul": lambda z, x: (z * Z, x * Z),
    "div": lambda z, x: (z / Z, Z / z, x / Z), "pow": lambda z, x: (z**Z, Z**z, x.abs() ** Z), "equal": lambda z, x: (z == Z, z != Z),
    "add alpha": lambda z, x: torch.add(z, z, alpha=Z), "sub alpha": lambda z, x: torch.sub(z, z, alpha=Z),
    "rsub": lambda z, x: torch.rsub(z, Z), "rsub alpha": lambda z, x: torch.rsub(z, z, alpha=Z),
    "addcmul": lambda z, x: torch.addcmul(z, z, z, value=Z), "addcdiv": lambda z, x: torch.addcdiv(z, z, z, value=Z),
    "addmm": lambda z, x: torch.addmm(z[:, :3], z, z.T, beta=Z, alpha=-Z), "baddbmm": lambda z, x: torch.baddbmm(z[None, :, :3], z[None], z.T[None], beta=Z, alpha=Z),
    "addmv": lambda z, x: torch.addmv(z[:, 0], z, z[0], beta=Z, alpha=Z), "addr": lambda z, x: torch.addr(z, z[:, 0], z[0], beta=Z, alpha=Z),
    "full": lambda z, x: z + torch.full((3, 4), Z), "full_like": lambda z, x: torch.full_like(z, Z), "new_full": lambda z, x: z.new_full((2,), Z),
    "fill": lambda z, x: z.clone().fill_(Z), "scalar": lambda z, x: z + torch.tensor(Z), "masked_fill": lambda z, x: z.masked_fill(x > 0, Z),
    "where": lambda z, x: (torch.where(x > 0, z, Z), torch.where(x > 0, Z, z), torch.where(x > 0, Z, 1j)),
    "index_fill": lambda z, x: z.index_fill(1, torch.tensor([0, 2]), Z), "pad": lambda z, x: F.pad(z, (1, 2), value=Z),
    "scatter": lambda z, x: z.scatter(1, torch.tensor([[0], [1], [3]]), Z), "index_add": lambda z, x: z.index_add(0, torch.tensor([1]), z[:1], alpha=Z),
    "lerp": lambda z, x: torch.lerp(z, z * 2, Z), "foreach": lambda z, x: torch._foreach_add([z, z * 2], [Z, 1j]), "linspace": lambda z, x: z + torch.linspace(0j, Z, 4),
    "write": lambda z, x: z.clone().mul_(Z).add_(1j), "put": lambda z, x: torch.index_put(z, (torch.tensor([0]),), torch.tensor(Z, dtype=z.dtype)),
    "float_power": lambda z, x: torch.float_power(z, Z), "true_divide": lambda z, x: torch.true_divide(z, Z),
}


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=["c64", "c128"])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers(name, dtype):
    z = torch.randn(3, 4, dtype=dtype)
    x = torch.randn(3, 4, dtype=dtype.to_real())
    try:
        want = COMPLEX[name](z, x)
        torch.compile(COMPLEX[name], backend="aot_eager", fullgraph=True)(z, x)
    except Exception as e:
        pytest.skip(f"PyTorch: {e}")
    torch._dynamo.reset()
    for a, b in zip(torch.utils._pytree.tree_leaves(strict(COMPLEX[name])(z, x)), torch.utils._pytree.tree_leaves(want)):
        torch.testing.assert_close(a, b, rtol=2e-5, atol=2e-5)


def test_jagged_tensors():
    def jagged(*sizes):
        return torch.nested.nested_tensor([torch.randn(n, 8) for n in sizes], layout=torch.jagged)
    m = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 8))
    twin = copy.deepcopy(m)
    f = torch.compile(twin, backend=dynamo.backend, fullgraph=True)
    for sizes in ((3, 5, 2), (1, 7), (4, 4, 4, 4)):
        x = jagged(*sizes)
        want, got = m(x), f(x)
        torch.testing.assert_close(got.values(), want.values())
        assert torch.equal(got.offsets(), want.offsets())
        want.values().square().mean().backward()
        got.values().square().mean().backward()
    for p, q in zip(m.parameters(), twin.parameters()):
        torch.testing.assert_close(q.grad, p.grad, rtol=1e-4, atol=1e-5)
    assert not dynamo.statistics.eager_nodes


def test_compiled_autograd():
    def losses(backend):
        torch.manual_seed(0)
        torch._dynamo.reset()
        m = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))
        o = torch.optim.AdamW(m.parameters(), 0.01)

        def step(x, t):
            o.zero_grad()
            loss = F.cross_entropy(m(x), t)
            loss.backward()
            o.step()
            return loss.detach()
        f = torch.compile(step, backend=backend) if backend else step
        return torch.stack([f(torch.ones(n, 8), torch.arange(n) % 4) for n in (3, 3, 5, 6)])
    with torch._dynamo.config.patch(compiled_autograd=True):
        torch.testing.assert_close(losses(dynamo.backend), losses(None))


@pytest.mark.parametrize("transform", [torch.func.hessian, torch.func.jacfwd, torch.func.jacrev, torch.func.grad])
def test_derivatives_of_writes(transform):
    def g(x):
        y = x.clone()
        y[:, 1] -= x[:, 0].square()
        y[0].mul_(x[1])
        y.view(-1)[::2].add_(1)
        return (y * y).sum()
    x = torch.randn(3, 4)
    torch.testing.assert_close(strict(transform(g))(x), transform(g)(x))


def test_regions():
    layer = nn.Linear(4, 4)

    @torch.compiler.nested_compile_region
    def region(x):
        return torch.tanh(layer(x)), x.shape[0] * 2

    def f(x):
        y, n = region(x)
        y, m = region(y + n)
        z, k = region(torch.cat([y, x]))  # another size
        return z.sum(0) * (n + m + k)
    for dynamic in (False, True):
        torch._dynamo.reset()
        fast = strict(f, dynamic=dynamic)
        for rows in (3, 5):
            x, y = (torch.linspace(-1, 1, rows * 4).reshape(rows, 4).requires_grad_() for _ in range(2))
            torch.testing.assert_close(fast(x), f(y))
            got, want = (torch.autograd.grad(h(v).square().sum(), [v, *layer.parameters()]) for h, v in ((fast, x), (f, y)))
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_draw_twice_the_same(reentrant):
    """Dropout inside of a checkpoint: backward sees forward's mask, and one warning says why PyTorch draws."""
    from torch.utils.checkpoint import checkpoint
    x = torch.ones(64, 8, requires_grad=True)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        y = torch.compile(lambda x: checkpoint(lambda v: F.dropout(v * 2, 0.5), x, use_reentrant=reentrant), backend=dynamo.backend)(x)
        y.sum().backward()
    assert torch.equal(x.grad, y.detach()) and 0 < int((y == 0).sum()) < y.numel()
    said = [str(w.message) for w in seen if str(w.message).startswith("weft:")]
    assert said and all("generator that a checkpoint saves" in text for text in said) and len(said) <= 2


def test_collectives(tmp_path):
    dist = torch.distributed
    if not dist.is_available():
        pytest.skip("no torch.distributed")
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        def f(x):
            y = x * 2
            dist.all_reduce(y)
            return y.sin() + 1
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            got = torch.compile(f, backend=dynamo.backend)(torch.ones(3))
        torch.testing.assert_close(got, f(torch.ones(3)))
        said = [str(w.message) for w in seen if str(w.message).startswith("weft:")]
        assert len(said) == 1 and "communicates with other processes" in said[0]
    finally:
        dist.destroy_process_group()


# ---- what is said ----

def test_explain_tells_breaks_and_counts():
    class R(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.g = nn.Linear(8, 8), nn.GRU(8, 8, batch_first=True)

        def forward(self, x):
            return self.g(torch.relu(self.a(x)))[0]
    told = weft.explain(R(), torch.randn(2, 5, 8))
    assert "everything is compiled" not in str(told) and "allow_rnn" in str(told) and len(told.breaks) == 1
    with torch._dynamo.config.patch(allow_rnn=True):
        told = weft.explain(R(), torch.randn(2, 5, 8))
    assert "everything is compiled" in str(told) and told.graphs == 2
    first, again = (weft.explain(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), torch.randn(2, 4)) for _ in range(2))  # again: from the cache
    assert first.nodes == again.nodes > 0
    p = nn.Parameter(torch.ones(3))
    p.grad = torch.ones(3)
    assert "nothing is compiled" in str(weft.explain(torch.optim.Adam([p], fused=True).step))


def test_nothing_is_compiled():
    @torch.library.custom_op("weft_tests::twice_of", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2
    twice.register_fake(torch.empty_like)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert torch.equal(torch.compile(twice, backend=dynamo.backend)(torch.ones(3)), torch.full((3,), 2.0))
    assert any("nothing of this graph" in str(w.message) for w in seen)


def test_gradients_are_not_lost_in_silence():
    m = weft.compile(nn.Linear(3, 2), (torch.ones(2, 3),))
    x = torch.ones(2, 3, requires_grad=True)
    with pytest.warns(UserWarning, match="requires grad"):
        m(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m(x.detach())
        with torch.no_grad():
            m(x)


def test_refusals_have_words(tmp_path):
    numpy = pytest.importorskip("numpy")
    m = weft.compile(nn.Linear(3, 2), (torch.ones(2, 3),))
    with pytest.raises(TypeError, match="input input: a masked array, whose mask would be lost"):
        m(numpy.ma.masked_array(numpy.ones((2, 3), numpy.float32), mask=False))
    with pytest.raises(KeyError, match="no state 'cache': it has none"):
        m.state["cache"]
    with pytest.raises(KeyError, match="no entry 'decode': it has run"):
        m.entries["decode"]
    torch.export.save(torch.export.export(nn.Linear(3, 2), (torch.ones(2, 3),)), tmp_path / "m.pt2")
    with pytest.raises(OSError, match="it is a zip archive, like a .pt2 model: compile it first"):
        weft.load(tmp_path / "m.pt2")
    head = bytearray(64)
    head[:7] = b"\x7fELF\x02\x01\x01"
    head[16], head[18] = 3, 21  # a shared object for PowerPC
    (tmp_path / "other.so").write_bytes(head)
    with pytest.raises(OSError, match="is for another machine: one without a name here, this is"):
        weft.load(tmp_path / "other.so")
    head[16], head[18] = 1, 62
    (tmp_path / "other.so").write_bytes(head)
    with pytest.raises(OSError, match="it is an object file|is for another machine"):
        weft.load(tmp_path / "other.so")
    (tmp_path / "m.onnx").write_text("any text")
    with pytest.raises(OSError, match="it is a model of ONNX: compile it first"):
        weft.load(tmp_path / "m.onnx")
    with pytest.raises(OSError, match="it is no shared object"):
        (tmp_path / "text.so").write_text("text")
        weft.load(tmp_path / "text.so")


def test_tensors_without_contents():
    """What computes on meta runs as PyTorch's, with a warning; what is beside it is compiled."""
    def f(x, y):
        return x @ torch.ones(3, 5, device="meta"), y.sin() * 2
    x, y = torch.empty(4, 3, device="meta"), torch.randn(3)
    with pytest.warns(UserWarning, match="run as PyTorch's operators .* a tensor on meta has no contents"):
        a, b = torch.compile(f, backend=dynamo.backend, fullgraph=True)(x, y)
    assert a.device.type == "meta" and a.shape == (4, 5)
    torch.testing.assert_close(b, y.sin() * 2)
    assert dynamo.statistics.compiled == 1 and dynamo.statistics.eager_nodes == 2
    with pytest.raises(Exception, match="a tensor on meta has no contents"):
        strict(f)(x, y)
    assert "nothing is compiled" in str(weft.explain(nn.Linear(3, 2, device="meta"), x))


def test_example_inputs_are_not_copied():
    import resource

    class M(nn.Module):
        def forward(self, x):
            return x[:5] + 1
    program = torch.export.export(M(), (torch.zeros(2**25),))
    weft.compile(program)  # what is loaded once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    weft.compile(program)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
    assert program.example_inputs is not None
