"""Training in bf16 and f16: under autocast, with narrow parameters, with GradScaler. Gradients are compared with those of float64:
they may be as far from them as eager mode's."""
import copy

import pytest

torch = pytest.importorskip("torch")
import weft
from weft import dynamo

nn = torch.nn
F = nn.functional
pytestmark = [pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there"), pytest.mark.usefixtures("fresh")]
DTYPES = [torch.bfloat16, torch.float16]


def normed(norm):
    """A layer, a norm, and a layer whose gradients pass the norm."""
    return lambda: nn.Sequential(nn.Conv1d(8, 8, 1), norm(), nn.GELU(), nn.Conv1d(8, 4, 1))


def rows(norm):
    return lambda: nn.Sequential(nn.Linear(8, 8), norm(), nn.GELU(), nn.Linear(8, 4))


class Residual(nn.Module):
    """A block of a residual network."""

    def __init__(self, n, stride=1):
        super().__init__()
        self.a, self.na, self.b, self.nb = nn.Conv2d(n, n, 3, stride, 1, bias=False), nn.BatchNorm2d(n), nn.Conv2d(n, n, 3, 1, 1, bias=False), nn.BatchNorm2d(n)
        self.short = nn.Sequential(nn.Conv2d(n, n, 1, stride, bias=False), nn.BatchNorm2d(n)) if stride > 1 else nn.Identity()

    def forward(self, x):
        return F.relu(self.nb(self.b(F.relu(self.na(self.a(x))))) + self.short(x))


class Attention(nn.Module):
    """A block of a language model: RMS norm, attention, a gated layer."""

    def __init__(self, n=16, heads=2):
        super().__init__()
        self.heads, self.n1, self.n2, self.qkv, self.out = heads, nn.RMSNorm(n), nn.RMSNorm(n), nn.Linear(n, 3 * n, bias=False), nn.Linear(n, n, bias=False)
        self.gate, self.up, self.down = nn.Linear(n, 2 * n), nn.Linear(n, 2 * n), nn.Linear(2 * n, n)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in self.qkv(self.n1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(B, T, C))
        h = self.n2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


MODULES = {
    "linear": (lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), (4, 8)),
    "bilinear": (lambda: type("B", (nn.Module,), {"__init__": lambda s: (nn.Module.__init__(s), setattr(s, "b", nn.Bilinear(8, 8, 4)))[0],
                                                  "forward": lambda s, x: s.b(x, x.flip(0))})(), (4, 8)),
    "conv1d": (lambda: nn.Sequential(nn.Conv1d(8, 8, 3, padding=1), nn.SiLU(), nn.Conv1d(8, 4, 3, stride=2)), (2, 8, 9)),
    "conv2d": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.ELU(), nn.Conv2d(8, 8, 3, groups=4)), (2, 3, 9, 9)),
    "conv3d": (lambda: nn.Conv3d(2, 4, 3), (2, 2, 5, 5, 5)),
    "transposed": (lambda: nn.Sequential(nn.ConvTranspose2d(4, 4, 3, stride=2), nn.Tanh(), nn.Conv2d(4, 2, 1)), (2, 4, 5, 5)),
    "layer norm": (rows(lambda: nn.LayerNorm(8)), (4, 8)),
    "layer norm without parameters": (rows(lambda: nn.LayerNorm(8, elementwise_affine=False)), (4, 8)),
    "rms norm": (rows(lambda: nn.RMSNorm(8)), (4, 8)),
    "group norm": (normed(lambda: nn.GroupNorm(2, 8)), (4, 8, 3)),
    "group norm without parameters": (normed(lambda: nn.GroupNorm(4, 8, affine=False)), (4, 8, 3)),
    "batch norm": (normed(lambda: nn.BatchNorm1d(8)), (4, 8, 3)),
    "batch norm without parameters": (normed(lambda: nn.BatchNorm1d(8, affine=False)), (4, 8, 3)),
    "batch norm without statistics": (normed(lambda: nn.BatchNorm1d(8, track_running_stats=False)), (4, 8, 3)),
    "batch norm in evaluation": (lambda: normed(lambda: nn.BatchNorm1d(8))().eval(), (4, 8, 3)),
    "instance norm": (normed(lambda: nn.InstanceNorm1d(8)), (4, 8, 5)),
    "instance norm with parameters": (normed(lambda: nn.InstanceNorm1d(8, affine=True)), (4, 8, 5)),
    "instance norm with statistics": (normed(lambda: nn.InstanceNorm1d(8, affine=True, track_running_stats=True)), (4, 8, 5)),
    "local response": (normed(lambda: nn.LocalResponseNorm(3)), (4, 8, 5)),
    "weight norm": (lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(8, 8)), nn.Tanh(), nn.Linear(8, 4)), (4, 8)),
    "spectral norm": (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)).eval(), (4, 8)),
    "pools": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.MaxPool2d(2), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3)), (2, 3, 12, 12)),
    "prelu": (lambda: nn.Sequential(nn.Linear(8, 8), nn.PReLU(), nn.Softplus(), nn.Linear(8, 2)), (4, 8)),
    "upsample": (lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.Upsample(scale_factor=2, mode="bilinear"), nn.PixelShuffle(2)), (2, 2, 6, 6)),
    "softmax": (lambda: nn.Sequential(nn.Linear(8, 8), nn.Softmax(-1), nn.Linear(8, 4), nn.LogSoftmax(-1)), (4, 8)),
    "encoder": (lambda: nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), (2, 5, 16)),
    "decoder block": (Attention, (2, 5, 16)),
    "residual": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), Residual(8), Residual(8, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)), (4, 3, 12, 12)),
}


def gradients(f, module, x, dtype, scale=1.0):
    """The gradients of a weighted sum by all parameters. dtype: of autocast, or None."""
    module.zero_grad()
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        y = f(x)
    wide = y if y.dtype == torch.float64 else y.float()
    (scale * (wide * torch.linspace(-1, 1, y.numel(), dtype=wide.dtype).reshape(y.shape))).sum().backward()
    return {n: p.grad.double() / scale for n, p in module.named_parameters() if p.grad is not None}


def check(module, x, dtype, narrow):
    exact_module = copy.deepcopy(module).double()
    exact = gradients(exact_module, exact_module, x.double(), None)
    if narrow:
        module.to(dtype)
        x = x.to(dtype)
    twin, cast = copy.deepcopy(module), None if narrow else dtype
    want = gradients(module, module, x, cast)
    got = gradients(torch.compile(twin, backend=dynamo.backend, options={"fallback": False}), twin, x, cast)
    assert got.keys() == want.keys()
    unit = torch.finfo(dtype).eps
    for name, e in exact.items():
        spread = (want[name] - e).abs().max()
        size = max(g.abs().max() for n, g in exact.items() if n.split(".")[0] == name.split(".")[0])
        assert (got[name] - e).abs().max() <= 4 * spread + 4 * unit * size, f"{name}: {(got[name] - e).abs().max():.3g} from float64, eager {spread:.3g}"
    for (name, a), b in zip(module.named_parameters(), twin.parameters()):
        assert (a.grad is None) == (b.grad is None) and (a.grad is None or a.grad.dtype == b.grad.dtype), name
    for (name, a), b in zip(module.named_buffers(), twin.buffers()):
        assert a.dtype == b.dtype, name
        torch.testing.assert_close(b.double(), a.double(), rtol=4 * unit, atol=4 * unit, msg=lambda m: f"{name}: {m}")
    assert not dynamo.statistics.eager_nodes


@pytest.mark.parametrize("dtype", DTYPES, ids=["bf16", "f16"])
@pytest.mark.parametrize("name", MODULES)
def test_autocast(name, dtype):
    make, shape = MODULES[name]
    check(make(), torch.randn(shape), dtype, narrow=False)


@pytest.mark.parametrize("dtype", DTYPES, ids=["bf16", "f16"])
@pytest.mark.parametrize("name", [n for n in MODULES if n not in ("spectral norm", "local response")])
def test_narrow_parameters(name, dtype):
    make, shape = MODULES[name]
    check(make(), torch.randn(shape), dtype, narrow=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=["bf16", "f16"])
def test_statistics_have_eager_modes_dtypes(dtype):
    """What the user gets of an operator has the dtype that eager mode gives it, whatever PyTorch's tracing says."""
    x, aten = torch.randn(4, 8, 3).to(dtype), torch.ops.aten
    for wide in (dtype, torch.float32):
        w = torch.rand(8, dtype=wide) + 0.5
        for f in (lambda x: aten.native_layer_norm(x, [3], w[:3], w[:3], 1e-5), lambda x: aten.native_group_norm(x, w, w, 4, 8, 3, 2, 1e-5),
                  lambda x: aten._native_batch_norm_legit.no_stats(x, w, w, True, 0.1, 1e-5), lambda x: aten._fused_rms_norm(x, [3], w[:3], 1e-5)):
            torch._dynamo.reset()
            for a, b in zip(torch.compile(f, backend=dynamo.backend, fullgraph=True)(x), f(x)):
                assert a.dtype == b.dtype and a.shape == b.shape
                torch.testing.assert_close(a.float(), b.float(), rtol=0.05, atol=0.05)


def test_scaler_and_accumulation():
    """Steps in f16 by GradScaler, one of which overflows and is left out; gradients of two batches are added."""
    def run(backend):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 4))
        optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=2)
        f = torch.compile(model, backend=backend) if backend else model
        scales = []
        for step in range(6):
            optimizer.zero_grad()
            for part in range(2):
                x = torch.randn(4, 8) * (1e6 if step == 2 and part else 1)
                with torch.autocast("cpu", torch.float16):
                    loss = F.cross_entropy(f(x), torch.arange(4))
                scaler.scale(loss / 2).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        return scales, torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    (scales, want), (got_scales, got) = run(None), run(dynamo.backend)
    assert got_scales == scales
    torch.testing.assert_close(got, want, rtol=0.02, atol=2e-3)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_under_autocast(reentrant):
    from torch.utils.checkpoint import checkpoint
    block = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 8))
    twin = copy.deepcopy(block)
    x = torch.randn(4, 8)

    def go(module, f):
        y = x.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16):
            out = f(lambda z: checkpoint(module, z, use_reentrant=reentrant))(y)
        out.float().square().sum().backward()
        return [y.grad, *(p.grad for p in module.parameters())]
    for a, b in zip(go(twin, lambda f: torch.compile(f, backend=dynamo.backend)), go(block, lambda f: f)):
        torch.testing.assert_close(a, b, rtol=0.05, atol=0.05 * float(b.abs().max()))
