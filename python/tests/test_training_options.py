"""weft.train_step: sums of gradients over calls, averages of parameters, computing in bf16."""
import pytest

torch = pytest.importorskip("torch")
import weft

nn, F, optim = torch.nn, torch.nn.functional, torch.optim
pytestmark = pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there")


def small(dtype=torch.float32):
    """Convergent in all digits: a bias in front of batch norm has a gradient of 0, and AdamW would amplify its rounding."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16, bias=False), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 5)).to(dtype)


def batch(seed=0, n=8, dtype=torch.float32):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(n, 6, generator=g).to(dtype), torch.randint(5, (n,), generator=g)


def adamw(net):
    return optim.AdamW([{"params": net[0].parameters(), "lr": 0.02}, {"params": list(net.parameters())[1:], "lr": 0.01, "weight_decay": 0.1}])


def near(net, twin, most):
    for (name, a), b in zip(net.state_dict().items(), twin.state_dict().values()):
        torch.testing.assert_close(a, b, rtol=most, atol=most, msg=lambda m: f"{name}: {m}")


def backward(twin, k, n=8, of=1, dtype=torch.float64):
    loss = F.cross_entropy(twin(batch(k, n, dtype)[0]), batch(k, n)[1])
    (loss / of).backward()
    return loss.detach()


@pytest.mark.parametrize("every, clip", [(3, None), (4, 0.2)])
def test_accumulate(every, clip):
    """The loop of users: (loss / every).backward(), an update after each `every` of them, clipped; batches of several sizes."""
    size = torch.export.Dim("batch", min=2, max=64)
    net, twin = small(torch.float64), small(torch.float64)
    optimizer, other = adamw(net), adamw(twin)
    step = weft.train_step(net, F.cross_entropy, optimizer, batch(dtype=torch.float64), dynamic_shapes=[{0: size}, {0: size}], accumulate=every,
                           clip_norm=clip)
    before = {n: p.clone() for n, p in net.named_parameters()}
    for k in range(2 * every):
        n = 8 + k % 3
        loss = backward(twin, k, n, every)
        torch.testing.assert_close(step(*batch(k, n, torch.float64)), loss, rtol=1e-9, atol=1e-12)
        assert step.accumulated == (k + 1) % every
        if k < every - 1:
            assert all(torch.equal(before[n], p) for n, p in net.named_parameters())
        if step.accumulated == 0:
            if clip:
                norm = nn.utils.clip_grad_norm_(twin.parameters(), clip)
                torch.testing.assert_close(step.grad_norm, norm, rtol=1e-9, atol=1e-12)
            other.step()
            other.zero_grad()
    near(net, twin, 1e-9)
    assert float(optimizer.state[net[0].weight]["step"]) == 2


def test_apply_early():
    """At the end of an epoch: the mean of as many calls as there were. Without calls nothing changes."""
    net, twin = small(torch.float64), small(torch.float64)
    optimizer, other = optim.SGD(net.parameters(), lr=0.1, momentum=0.9), optim.SGD(twin.parameters(), lr=0.1, momentum=0.9)
    step = weft.train_step(net, F.cross_entropy, optimizer, batch(dtype=torch.float64), accumulate=5)
    step.apply()
    assert torch.equal(net[0].weight, twin[0].weight)
    for calls in (2, 1, 5):
        for k in range(calls):
            step(*batch(k, dtype=torch.float64))
            backward(twin, k, of=calls)
        step.apply()
        other.step()
        other.zero_grad()
        assert step.accumulated == 0
        near(net, twin, 1e-10)


def test_apply_without_accumulation_is_refused():
    net = small()
    step = weft.train_step(net, F.cross_entropy, optim.SGD(net.parameters(), lr=0.1), batch())
    with pytest.raises(weft.Error, match="is for a step that accumulates"):
        step.apply()
    with pytest.raises(ValueError, match="input is of type ndarray, and was a tensor in the example"):
        step(batch()[0].numpy(), batch()[1])


def test_a_call_that_fails_adds_nothing():
    net = small()
    step = weft.train_step(net, F.cross_entropy, optim.SGD(net.parameters(), lr=0.1), batch(), accumulate=2)
    step(*batch())
    before = {n: v.clone() for n, v in net.state_dict().items()}
    sums = [[t.clone() for t in g.sums] for g in step._groups]
    x, label = batch(1)
    with pytest.raises(weft.CheckError):
        step(x, label + 5)
    assert step.accumulated == 1 and all(torch.equal(v, before[n]) for n, v in net.state_dict().items())
    assert all(torch.equal(a, b) for g, kept in zip(step._groups, sums) for a, b in zip(g.sums, kept))


@pytest.mark.parametrize("every", [1, 2])
def test_ema(every):
    """Averages after each update; eval computes with them; the module keeps its own values."""
    net, twin = small(torch.float64), small(torch.float64)
    optimizer, other = adamw(net), adamw(twin)
    step = weft.train_step(net, F.cross_entropy, optimizer, batch(dtype=torch.float64), ema=0.75, accumulate=every)
    average = {n: p.detach().clone() for n, p in twin.named_parameters()}
    for k in range(4 * every):
        backward(twin, k, of=every)
        step(*batch(k, dtype=torch.float64))
        if (k + 1) % every == 0:
            other.step()
            other.zero_grad()
            for n, p in twin.named_parameters():
                average[n] = 0.75 * average[n] + 0.25 * p.detach()
    near(net, twin, 1e-9)
    assert set(step.ema) == set(average)
    for n, value in average.items():
        torch.testing.assert_close(step.ema[n], value, rtol=1e-9, atol=1e-12)
    x = batch(9, dtype=torch.float64)[0]
    own = twin.eval()(x).detach()
    averaged = torch.func.functional_call(twin, {**dict(twin.named_buffers()), **average}, (x,)).detach()
    torch.testing.assert_close(step.eval(x), averaged, rtol=1e-8, atol=1e-10)
    assert not torch.allclose(averaged, own, rtol=1e-4)


def test_bf16():
    """As autocast around the module and the loss, with parameters in f32."""
    torch.manual_seed(0)
    net, twin = (nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 5)) for _ in range(2))
    twin.load_state_dict(net.state_dict())
    x, label = torch.randn(64, 32), torch.randint(5, (64,))
    optimizer, other = optim.SGD(net.parameters(), lr=0.1), optim.SGD(twin.parameters(), lr=0.1)
    step = weft.train_step(net, F.cross_entropy, optimizer, (x, label), precision="bf16", outputs=True)
    exact = F.cross_entropy(net(x), label).detach()
    for _ in range(3):
        other.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            out = twin(x)
            loss = F.cross_entropy(out, label)
        loss.backward()
        other.step()
        with torch.autocast("cpu", torch.bfloat16):
            got = step(x, label)
        assert got[0].dtype == torch.float32 and got[1].dtype == out.dtype == torch.bfloat16
        torch.testing.assert_close(got[0], loss.detach(), rtol=5e-3, atol=0)
        torch.testing.assert_close(got[1], out.detach(), rtol=3e-2, atol=3e-2)
        if exact is not None:
            assert not torch.equal(got[0], exact)
        exact = None
    assert net[0].weight.dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        want = twin.eval()(x).detach()
    assert step.eval(x).dtype == torch.bfloat16
    torch.testing.assert_close(step.eval(x), want, rtol=3e-2, atol=3e-2)


def test_autocast_around_a_step_is_refused():
    net = small()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    step = weft.train_step(net, F.cross_entropy, optimizer, batch())
    with torch.autocast("cpu", torch.bfloat16):
        with pytest.raises(weft.Error, match="autocast to torch.bfloat16 is on.*precision='bf16'"):
            step(*batch())
        with pytest.raises(weft.Error, match="precision='bf16'"):
            weft.train_step(net, F.cross_entropy, optimizer, batch())
    step(*batch())


def test_saved(tmp_path):
    """A file has entries that accumulate and apply, and goes on where the step is, with equal bits."""
    net = small()
    optimizer = adamw(net)
    step = weft.train_step(net, F.cross_entropy, optimizer, batch(), accumulate=2, ema=0.9, clip_norm=0.5, precision="bf16")
    step(*batch(7))
    step.save(tmp_path / "step.so")
    model = weft.load(tmp_path / "step.so")
    entries = model.entries
    assert set(entries) == {"accumulate", "apply", "eval"}
    assert [t.name for t in entries["accumulate"].inputs] == ["input", "label", "weight"]
    assert [t.name for t in entries["apply"].inputs] == ["lr.0", "lr.1"] and [t.name for t in entries["apply"].outputs] == ["grad_norm"]
    rates = [torch.tensor(g["lr"], dtype=torch.float64) for g in optimizer.param_groups]
    state = entries["accumulate"].state
    for k in range(3):
        assert torch.equal(entries["accumulate"](*batch(k), torch.tensor(0.5, dtype=torch.float64)), step(*batch(k)))
        if step.accumulated == 0:
            assert torch.equal(entries["apply"](*rates), step.grad_norm)
    for name, value in {**net.state_dict(), **{f"ema.{n}": t for n, t in step.ema.items()}}.items():
        assert torch.equal(state[name], value), name
    assert step.accumulated == 0 and not state["grad.0.weight"].any()
    assert torch.equal(entries["eval"](batch()[0]), step.eval(batch()[0]))


@pytest.mark.parametrize("options, message", [({"accumulate": 0}, "accumulate=0: expected a number of calls"), ({"accumulate": True}, "accumulate=True"),
                                              ({"accumulate": 1.5}, "accumulate=1.5"), ({"precision": "f8"}, "precision='f8': expected None or 'bf16', 'f16'"),
                                              ({"ema": 1.0}, "ema=1.0: expected a decay"), ({"ema": float("nan")}, "ema=nan"),
                                              ({"memory_budget": 0.5}, "not supported yet")])
def test_refused(options, message):
    net = small()
    with pytest.raises(weft.Error, match=message):
        weft.train_step(net, F.cross_entropy, optim.SGD(net.parameters(), lr=0.1), batch(), **options)


BETA, WEIGHT = 0.5, torch.ones(5)


def weighted(y, label):
    return F.cross_entropy(y, label, weight=WEIGHT) * BETA


def through(y, label):
    return weighted(y, label)


@pytest.mark.parametrize("how", ["number", "tensor", "in place", "closure", "partial", "method", "default"])
def test_what_a_loss_reads(how, monkeypatch):
    """A number or a tensor that the loss reads is part of the step: when it changes, the next call says so."""
    import functools
    scale, loss = 0.5, through

    class Loss:
        scale = 0.1

        def __init__(self):
            self.part = 0.5

        def loss(self, y, label):
            return F.cross_entropy(y, label) * self.part

    of = Loss()
    if how == "closure":
        loss = lambda y, label: F.cross_entropy(y, label) * scale
    if how == "partial":
        loss = functools.partial(F.cross_entropy, label_smoothing=0.1)
    if how == "method":
        loss = of.loss
    if how == "default":
        def loss(y, label, scale=0.5):
            return F.cross_entropy(y, label) * scale
    net = small()
    step = weft.train_step(net, loss, optim.SGD(net.parameters(), lr=0.1), batch())
    step(*batch())
    step(*batch(1))
    if how == "number":
        monkeypatch.setitem(globals(), "BETA", 0.25)
    elif how == "tensor":
        monkeypatch.setitem(globals(), "WEIGHT", torch.full((5,), 2.0))
    elif how == "in place":
        WEIGHT.mul_(1.0)
    elif how == "closure":
        scale = 0.25
    elif how == "partial":
        loss.keywords["label_smoothing"] = 0.2
    elif how == "method":
        of.part = 0.25
    else:
        loss.__defaults__ = (0.25,)
    before = {n: v.clone() for n, v in net.state_dict().items()}
    with pytest.raises(weft.Error, match="which the loss reads, is .*make it an input"):
        step(*batch())
    assert all(torch.equal(v, before[n]) for n, v in net.state_dict().items())


def test_other_globals_are_not_read(monkeypatch):
    """A global that has the name of an attribute that the loss uses is another thing."""
    monkeypatch.setitem(globals(), "mean", 1)
    net = small()
    step = weft.train_step(net, lambda y, label: F.cross_entropy(y, label, reduction="none").mean(), optim.SGD(net.parameters(), lr=0.1), batch())
    step(*batch())
    monkeypatch.setitem(globals(), "mean", 2)
    step(*batch())
