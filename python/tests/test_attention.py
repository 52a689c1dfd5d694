"""Gradients of attention with a written-out softmax under torch.compile: right, and without a saved number for each query and key."""
import pytest

torch = pytest.importorskip("torch")
import weft
import weft.dynamo
from torch import nn

pytestmark = [pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there"), pytest.mark.usefixtures("fresh")]
HEADS, WIDTH = 4, 16


class Attention(nn.Module):
    """Form: what is done to scores; `keys`: heads of keys and values."""

    def __init__(self, form, keys=HEADS):
        super().__init__()
        self.form, self.keys = form, keys
        self.inner, self.outer = nn.Linear(64, (HEADS + 2 * keys) * WIDTH), nn.Linear(HEADS * WIDTH, 64)

    def forward(self, x, mask):
        b, t, _ = x.shape
        q, k, v = (y.unflatten(-1, (-1, WIDTH)).transpose(1, 2) for y in self.inner(x).split(
            (HEADS * WIDTH, self.keys * WIDTH, self.keys * WIDTH), -1))
        if self.keys != HEADS:
            k, v = (y.repeat_interleave(HEADS // self.keys, 1) for y in (k, v))
        s = torch.matmul(q, k.transpose(-1, -2)) * WIDTH ** -0.5
        low = -1e9
        if self.form == "added":
            s = s + torch.where(mask, 0.0, low).to(s.dtype)
        elif self.form == "filled":
            s = s.masked_fill(~mask, float("-inf"))
        elif self.form == "capped":
            s = torch.where(mask, 5 * torch.tanh(s / 5), low)
        wide = s.dtype if s.dtype == torch.float64 or self.form == "narrow" else torch.float32
        p = torch.softmax(s, -1, dtype=wide).to(q.dtype)
        if self.form == "dropped":
            p = nn.functional.dropout(p, 0.5)
        y = self.outer((p @ v).transpose(1, 2).reshape(b, t, -1))
        return (y, p) if self.form == "shown" else y


def _gradients(run, module, x, mask):
    """The gradients, and the elements of the largest tensor that forward saves."""
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (saved.append(t.numel()), t)[1], lambda t: t):
        y = run(x, mask)
    loss = y.pow(2).sum() if isinstance(y, torch.Tensor) else y[0].pow(2).sum() + y[1].pow(2).sum()
    return torch.autograd.grad(loss, [x, *module.parameters()]), max(saved)


@pytest.mark.parametrize("form,dtype,rows,keys,dynamic", [
    ("plain", torch.float32, 96, HEADS, False), ("added", torch.float32, 96, HEADS, False), ("filled", torch.float32, 96, HEADS, False),
    ("capped", torch.float32, 96, HEADS, False), ("added", torch.bfloat16, 96, HEADS, False), ("added", torch.float32, 96, 2, False),
    ("added", torch.float32, 96, HEADS, True), ("plain", torch.bfloat16, 96, 1, True)])
def test_saved(form, dtype, rows, keys, dynamic):
    x, mask, module = _case(form, dtype, rows, keys)
    want, _ = _gradients(module.double(), module, x.double().detach().requires_grad_(), mask)
    module = module.to(dtype)
    eager, most = _gradients(module, module, x, mask)
    have, saved = _gradients(torch.compile(module, backend=weft.dynamo.backend, dynamic=dynamic), module, x, mask)
    assert most >= 2 * HEADS * rows * rows > saved
    for h, e, w in zip(have, eager, want):
        bound = 4 * (e.double() - w).abs().max() + torch.finfo(dtype).eps * w.abs().max()
        assert (h.double() - w).abs().max() <= bound


@pytest.mark.parametrize("form", ["plain", "filled", "narrow"])
def test_double(form):
    """Gradients of f64 have its precision; those of a softmax in bf16 are rounded once."""
    d = torch.bfloat16 if form == "narrow" else torch.float64
    x, mask, module = _case(form, d, 48, HEADS)
    want, _ = _gradients(module, module, x, mask)
    have, _ = _gradients(torch.compile(module, backend=weft.dynamo.backend), module, x, mask)
    for h, w in zip(have, want):
        torch.testing.assert_close(h, w, rtol=5e-2 if d == torch.bfloat16 else 1e-11, atol=(5e-2 if d == torch.bfloat16 else 1e-12) * w.abs().max())


@pytest.mark.parametrize("form,rows", [("shown", 96), ("plain", 8), ("plain", 1)])
def test_kept(form, rows):
    """Where others read the probabilities, or there are few keys, all is as before."""
    x, mask, module = _case(form, torch.float32, rows, HEADS)
    want, _ = _gradients(module, module, x, mask)
    have, _ = _gradients(torch.compile(module, backend=weft.dynamo.backend), module, x, mask)
    for h, w in zip(have, want):
        torch.testing.assert_close(h, w, rtol=1e-4, atol=1e-4)


def test_dropped():
    """Gradients of dropout are those of the probabilities that forward kept: of two calls with one seed, equal ones."""
    x, mask, module = _case("dropped", torch.float32, 96, HEADS)
    run = torch.compile(module, backend=weft.dynamo.backend)
    found = []
    for _ in range(2):
        torch.manual_seed(7)
        found.append(_gradients(run, module, x, mask)[0])
    assert all(torch.equal(a, b) for a, b in zip(*found))
    step = 1e-2 * torch.randn_like(x)
    torch.manual_seed(7)
    high = run(x + step, mask).pow(2).sum()
    torch.manual_seed(7)
    low = run(x - step, mask).pow(2).sum()
    torch.testing.assert_close((found[0][0] * step).sum() * 2, high - low, rtol=5e-2, atol=1e-3)


@pytest.mark.parametrize("form,dtype,rows,dynamic", [
    ("operator", torch.float32, 96, False), ("written", torch.float32, 96, False), ("operator", torch.bfloat16, 96, False),
    ("operator", torch.float32, 20, False), ("operator", torch.float32, 96, True)])
def test_dropout(form, dtype, rows, dynamic):
    """Gradients by what forward has kept, which values that are a unit matrix show. Of numbers for each query and key only the mask, of
    bools, is saved."""
    torch._dynamo.reset()
    torch.manual_seed(3)
    chance, saved = 0.3, []
    q, k = (torch.randn(2, HEADS, rows, WIDTH).to(dtype).requires_grad_() for _ in range(2))
    v = torch.eye(rows).expand(2, HEADS, rows, rows).to(dtype).clone().requires_grad_()
    low = torch.zeros(rows, rows).masked_fill(torch.ones(rows, rows).triu(1).bool(), float("-inf")).to(dtype)

    def attend(q, k, v):
        if form == "operator":
            return nn.functional.scaled_dot_product_attention(q, k, v, low, dropout_p=chance)
        return nn.functional.dropout(torch.softmax(q @ k.transpose(-1, -2) * WIDTH ** -0.5 + low, -1), chance) @ v

    with torch.autograd.graph.saved_tensors_hooks(lambda t: (saved.append(t), t)[1], lambda t: t):
        y = torch.compile(attend, backend=weft.dynamo.backend, dynamic=dynamic)(q, k, v)
    kept = y.detach() != 0
    seen = torch.ones(rows, rows).tril().bool()
    assert abs(kept[..., seen].double().mean() - 1 + chance) < 0.05 and not kept[..., ~seen].any()
    if not dynamic:
        assert all(t.dtype == torch.bool for t in saved if t.shape[-2:] == (rows, rows) and t.dim() == 4 and t.numel() > rows * rows
                   and t.data_ptr() != v.data_ptr() and t.data_ptr() != y.data_ptr())
    g = torch.randn_like(y)
    exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
    p = torch.softmax(exact[0] @ exact[1].transpose(-1, -2) * WIDTH ** -0.5 + low.double(), -1)
    want = torch.autograd.grad(p * kept / (1 - chance) @ exact[2], exact, g.double())
    for h, w in zip(torch.autograd.grad(y, (q, k, v), g), want):
        torch.testing.assert_close(h.double(), w, rtol=2e-2 if dtype == torch.bfloat16 else 1e-4, atol=(2e-2 if dtype == torch.bfloat16 else 1e-5) * w.abs().max())


def _case(form, dtype, rows, keys):
    torch._dynamo.reset()
    torch.manual_seed(1)
    x = torch.randn(2, rows, 64).to(dtype).requires_grad_()
    mask = torch.ones(rows, rows, dtype=torch.bool).tril()[None, None]
    return x, mask, Attention(form, keys).to(dtype)


@pytest.mark.parametrize("form,dtype", [("operator", torch.float32), ("written", torch.float32), ("operator", torch.bfloat16)])
def test_learned_bias(form, dtype):
    """A bias by distance, which the batch shares, as in T5: its gradient leaves no number for each query and key in memory but the bias's own."""
    torch.manual_seed(4)
    rows, batch = 192, 3
    index = (torch.arange(rows)[:, None] - torch.arange(rows)[None]).clamp(-8, 8) + 8

    class Biased(Attention):
        def __init__(self):
            super().__init__("plain")
            self.table = nn.Embedding(17, HEADS)

        def forward(self, x, mask):
            b, t, _ = x.shape
            q, k, v = self.inner(x).view(b, t, 3, HEADS, WIDTH).permute(2, 0, 3, 1, 4)
            bias = self.table(index).permute(2, 0, 1)[None]
            if form == "operator":
                y = nn.functional.scaled_dot_product_attention(q, k, v, bias)
            else:
                y = torch.softmax(q @ k.transpose(-1, -2) * WIDTH ** -0.5 + bias, -1) @ v
            return self.outer(y.transpose(1, 2).reshape(b, t, -1))

    module, x = Biased(), torch.randn(batch, rows, 64).requires_grad_()
    want, _ = _gradients(module.double(), module, x.double().detach().requires_grad_(), None)
    module, x = module.to(dtype), x.detach().to(dtype).requires_grad_()
    eager, most = _gradients(module, module, x, None)
    have, saved = _gradients(torch.compile(module, backend=weft.dynamo.backend), module, x, None)
    assert most >= batch * HEADS * rows * rows > saved
    for h, e, w in zip(have, eager, want):
        bound = 4 * (e.double() - w).abs().max() + torch.finfo(dtype).eps * w.abs().max()
        assert (h.double() - w).abs().max() <= bound


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_hidden_keys(dtype):
    """Keys that a mask hides change no bit, however many follow: also of products by fragments, whose steps are of 32 keys."""
    torch.manual_seed(5)
    q, k, v = (torch.randn(1, 2, n, 64).to(dtype) for n in (40, 200, 200))

    def attend(q, k, v, seen):
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=(torch.arange(k.shape[2]) < seen)[None, None, None])

    def run(*inputs):
        torch._dynamo.reset()
        return torch.compile(attend, backend=weft.dynamo.backend, dynamic=False)(*inputs)

    for seen in (33, 150):
        want = run(q, k, v, torch.tensor(seen))
        for keys in (seen, seen + 7, seen + 20):
            assert torch.equal(run(q, k[:, :, :keys].contiguous(), v[:, :, :keys].contiguous(), torch.tensor(seen)), want), (seen, keys)
