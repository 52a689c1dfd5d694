"""weft.train_step in f16 with a scale of the loss, beside torch.amp.GradScaler's recipe; steps whose loss or gradients are not finite."""
import pytest

torch = pytest.importorskip("torch")
import weft

nn, F, optim = torch.nn, torch.nn.functional, torch.optim
pytestmark = pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there")


def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.LayerNorm(32), nn.Linear(32, 5))


def batch(k):
    g = torch.Generator().manual_seed(k)
    return torch.randn(16, 6, generator=g), torch.randint(5, (16,), generator=g)


def scaler(**options):
    return torch.amp.GradScaler("cpu", **{"init_scale": 2.0**33, "growth_factor": 64.0, "backoff_factor": 2.0**-6, "growth_interval": 3, **options})


def recipe(net, optimizer, scale, b, clip=None, precision=torch.float16, parts=1, last=True):
    """The loop of PyTorch's documentation. parts: of how many batches the gradients are summed; last: this is the last of them."""
    with torch.autocast("cpu", precision, enabled=precision is not None):
        loss = F.cross_entropy(net(b[0]), b[1])
    scale.scale(loss / parts).backward()
    if last:
        if clip:
            scale.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        scale.step(optimizer)
        scale.update()
        optimizer.zero_grad()
    return loss.detach()


@pytest.mark.parametrize("clip, parts", [(None, 1), (0.5, 1), (None, 2)])
def test_beside_grad_scaler(clip, parts):
    """The scale overflows f16 at first, grows later, and overflows again: the same steps are skipped, losses and parameters agree."""
    net, twin = small(), small()
    ours, theirs = scaler(), scaler()
    optimizer, other = (optim.AdamW(n.parameters(), lr=0.01) for n in (net, twin))
    step = weft.train_step(net, F.cross_entropy, optimizer, batch(0), precision="f16", loss_scale=ours, clip_norm=clip, accumulate=parts)
    assert step.scaler is ours
    skipped = 0
    for k in range(30):
        before, weight = theirs._scale.item() if k else 2.0**33, net[0].weight.clone()
        last = k % parts == parts - 1
        loss = recipe(twin, other, theirs, batch(k), clip, parts=parts, last=last)
        got = step(*batch(k))
        assert got.dtype == torch.float32
        torch.testing.assert_close(got, loss, rtol=2e-2, atol=5e-3)
        if last:
            assert ours.get_scale() == theirs.get_scale() and ours._growth_tracker.item() == theirs._growth_tracker.item()
            assert bool(step.skipped) == (theirs.get_scale() < before) == torch.equal(weight, net[0].weight)
            skipped += bool(step.skipped)
    assert 2 <= skipped < 30 // parts // 2
    for a, b in zip(net.parameters(), twin.parameters()):
        torch.testing.assert_close(a, b, rtol=5e-2, atol=2e-2)
    assert float(optimizer.state[net[0].weight]["step"]) == 30 // parts - skipped


def test_exact():
    """In f32 with a scale that overflows once: losses and parameters are the recipe's; the scaler's numbers are read at each call; its state_dict."""
    net, twin = small(), small()
    ours, theirs = scaler(init_scale=2.0**125), scaler(init_scale=2.0**125)
    step = weft.train_step(net, F.cross_entropy, optim.SGD(net.parameters(), lr=0.1), batch(0), loss_scale=ours, clip_norm=0.3)
    other = optim.SGD(twin.parameters(), lr=0.1)
    for k in range(12):
        if k == 6:
            ours.set_growth_interval(2), theirs.set_growth_interval(2)
        if k == 9:
            for s in (ours, theirs):
                s.load_state_dict({**s.state_dict(), "scale": 1024.0, "_growth_tracker": 1})
        torch.testing.assert_close(step(*batch(k)), recipe(twin, other, theirs, batch(k), 0.3, None), rtol=1e-5, atol=1e-6)
        assert ours.state_dict() == theirs.state_dict()
    for a, b in zip(net.parameters(), twin.parameters()):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_default():
    """precision="f16" has a scaler of its own."""
    net = small()
    step = weft.train_step(net, F.cross_entropy, optim.SGD(net.parameters(), lr=0.1), batch(0), precision="f16")
    for k in range(3):
        step(*batch(k))
    assert 0 < step.scaler.get_scale() <= 65536 and step.eval(batch(0)[0]).dtype == torch.float16


def test_saved(tmp_path):
    net = small()
    step = weft.train_step(net, F.cross_entropy, optim.AdamW(net.parameters(), lr=0.01), batch(0), precision="f16", loss_scale=scaler(init_scale=2.0**28),
                           on_nan="skip")
    step.save(tmp_path / "step.so")
    model = weft.load(tmp_path / "step.so")
    assert [t.name for t in model.entries["step"].outputs] == ["loss", "skipped"]
    for k in range(8):
        loss, skipped = model.entries["step"](*batch(k), torch.tensor(0.01, dtype=torch.float64))
        assert torch.equal(loss, step(*batch(k))) and bool(skipped) == bool(step.skipped)
        assert float(torch.as_tensor(model.state["weft.loss_scale"])) == step.scaler.get_scale()
        assert int(torch.as_tensor(model.state["weft.good_steps"])) == step.scaler._growth_tracker.item()
    for n, p in net.named_parameters():
        assert torch.equal(torch.as_tensor(model.state[n]), p)


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("how", ["skip", "stop"])
def test_on_nan(how, every):
    """A batch that is not finite changes nothing, running statistics and averages included; then training goes on."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 5))
    optimizer = optim.Adam(net.parameters())
    step = weft.train_step(net, F.cross_entropy, optimizer, batch(0), on_nan=how, ema=0.9, accumulate=every)
    for k in range(every):
        step(*batch(k))
    assert not step.skipped
    kept = lambda: [t.clone() for t in [*net.state_dict().values(), *step.ema.values(), *(v for s in optimizer.state.values() for v in s.values())]]
    before = kept()
    for value in (float("nan"), float("inf")):
        x, y = batch(1)
        x[2, 3] = value
        if how == "stop":
            with pytest.raises(weft.CheckError, match="the loss is nan, and it or a gradient is not finite: nothing has changed"):
                for _ in range(every):
                    step(x, y)
        else:
            for _ in range(every):
                step(x, y)
        assert step.skipped and step.accumulated == 0
        assert all(map(torch.equal, before, kept()))
    for k in range(every):
        step(*batch(k))
    assert not step.skipped and not any(map(torch.equal, before, kept()))
    step = weft.train_step(net, F.cross_entropy, optimizer, batch(0))
    step(torch.full((16, 6), float("nan")), batch(0)[1])
    assert step.skipped is None and net[0].weight.isnan().all()


@pytest.mark.parametrize("options, message", [({"on_nan": "go"}, "on_nan='go': expected None, 'skip' or 'stop'"),
                                              ({"loss_scale": 1024.0}, "loss_scale=1024.0: expected a torch.amp.GradScaler"),
                                              ({"loss_scale": torch.amp.GradScaler("cpu", enabled=False)}, "the scaler is not enabled")])
def test_refused(options, message):
    net = small()
    with pytest.raises(weft.Error) as e:
        weft.train_step(net, F.cross_entropy, optim.SGD(net.parameters()), batch(0), **options)
    assert message in str(e.value)
