"""weft.train_step: steps of training beside eager mode's, in f32 and f64."""
import copy
import os

import pytest

torch = pytest.importorskip("torch")
import weft

nn, F, optim = torch.nn, torch.nn.functional, torch.optim
pytestmark = pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there")


class Convolutions(nn.Module):
    """Convolutions without bias: the gradient of one in front of batch norm is 0, and what is computed of it is rounding."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                                      nn.Conv2d(8, 8, 3, padding=1, groups=2, bias=False), nn.BatchNorm2d(8), nn.SiLU(), nn.AdaptiveAvgPool2d(2))
        self.out = nn.Linear(32, 5)

    def forward(self, x):
        return self.out(self.features(x).flatten(1))


class Tied(nn.Module):
    """A transformer of one layer, whose last product has the weights of the embedding."""

    def __init__(self, words=11, width=8):
        super().__init__()
        self.words, self.norm, self.norm2 = nn.Embedding(words, width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out, self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Linear(width, 32), nn.Linear(32, width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, i):
        x = self.words(i)
        q, k, v = (t.unflatten(-1, (2, -1)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return self.head(x + self.down(F.gelu(self.up(self.norm2(x)))))


class Three(nn.Module):
    """Three networks that have nothing in common but the sum of their losses."""

    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 5))
        self.convolutions, self.tied = Convolutions(), Tied()

    def forward(self, x, image, i, label):
        loss = F.cross_entropy(self.mlp(x), label)
        if self.convolutions is not None:
            loss = loss + F.cross_entropy(self.convolutions(image), label)
        if self.tied is not None:
            loss = loss + F.cross_entropy(self.tied(i)[:, :-1].flatten(0, 1), i[:, 1:].flatten())
        return loss


def example(dtype=torch.float32, seed=0):
    g = torch.Generator().manual_seed(seed)
    return (torch.randn(4, 6, generator=g).to(dtype), torch.rand(4, 3, 8, 8, generator=g).to(dtype), torch.randint(11, (4, 7), generator=g),
            torch.randint(5, (4,), generator=g))


def eager(net, optimizer, inputs, steps, schedule=None):
    losses = []
    for k in range(steps):
        optimizer.zero_grad()
        loss = net(*inputs(k))
        loss.backward()
        optimizer.step()
        if schedule:
            schedule.step()
        losses.append(loss.detach().double())
    return torch.stack(losses)


def tensors(net, optimizer):
    """All that a step changes, by name."""
    out = {f"net {n}": t.detach() for n, t in net.state_dict().items()}
    for n, p in net.named_parameters():
        out |= {f"{n} {key}": t.detach() for key, t in optimizer.state.get(p, {}).items() if isinstance(t, torch.Tensor)}
    return out


def near(name, got, singles, double):
    """Whether `got` is within 8 times the deviation of PyTorch's f32, with oneDNN or without, from its f64."""
    assert got.shape == double.shape, name
    apart = lambda t: float((t.double() - double.double()).abs().max()) if t.numel() else 0.0
    allowed = 8 * max(*map(apart, singles), 1e-7 * float(double.double().abs().max()))
    assert apart(got) <= allowed, f"{name}: {apart(got):.3g} apart, allowed {allowed:.3g}"


OPTIMIZERS = {
    "sgd": (optim.SGD, {"lr": 0.1, "weight_decay": 0.01}),
    "sgd momentum": (optim.SGD, {"lr": 0.05, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.01}),
    "sgd nesterov": (optim.SGD, {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    "sgd maximize": (optim.SGD, {"lr": 0.01, "maximize": True}),
    "adam": (optim.Adam, {"lr": 1e-2, "weight_decay": 0.01}),
    "adam maximize": (optim.Adam, {"lr": 1e-3, "maximize": True}),
    "adam amsgrad": (optim.Adam, {"lr": 1e-2, "amsgrad": True, "betas": (0.7, 0.9)}),
    "adamw": (optim.AdamW, {"lr": 1e-2}),
    "adamw betas": (optim.AdamW, {"lr": 1e-2, "betas": (0.3, 0.99), "eps": 1e-6}),
    "adamw amsgrad": (optim.AdamW, {"lr": 1e-2, "amsgrad": True, "weight_decay": 0.1}),
    "rmsprop": (optim.RMSprop, {"lr": 1e-3, "weight_decay": 0.01}),
    "rmsprop momentum": (optim.RMSprop, {"lr": 1e-3, "momentum": 0.5}),
    "rmsprop centered": (optim.RMSprop, {"lr": 1e-3, "momentum": 0.9, "centered": True, "eps": 1e-4}),
    "adagrad": (optim.Adagrad, {"lr": 1e-2, "lr_decay": 0.01, "weight_decay": 0.01, "initial_accumulator_value": 0.1}),
    "adamax": (optim.Adamax, {"lr": 1e-2, "weight_decay": 0.01}),
    "adadelta": (optim.Adadelta, {"lr": 1.0, "weight_decay": 0.01}),
    "nadam": (optim.NAdam, {"lr": 1e-2, "weight_decay": 0.01}),
    "nadam decoupled": (optim.NAdam, {"lr": 1e-2, "weight_decay": 0.01, "decoupled_weight_decay": True}),
    "radam": (optim.RAdam, {"lr": 1e-2, "weight_decay": 0.01}),
    "radam decoupled": (optim.RAdam, {"lr": 1e-2, "betas": (0.9, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True}),
}


ON_ALL = {"sgd nesterov", "adam amsgrad", "adamw", "rmsprop centered", "adagrad", "nadam"}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_ten_steps(name):
    """Losses, parameters, buffers and the optimizer's state after ten steps: of three networks, or, where the environment does not say
    ALL=1, for some optimizers of the first one."""
    make, options = OPTIMIZERS[name]
    torch.manual_seed(0)
    net = Three()
    if name not in ON_ALL and not os.environ.get("ALL"):
        net.convolutions = net.tied = None
    results = []
    for dtype, onednn in ((torch.float64, True), (torch.float32, True), (torch.float32, False)):
        n = copy.deepcopy(net).to(dtype)
        o = make(n.parameters(), **options)
        with torch.backends.mkldnn.flags(enabled=onednn, allow_tf32=None):
            losses = eager(n, o, lambda k: example(dtype, k), 10)
        results.append({"losses": losses, **tensors(n, o)})
    optimizer = make(net.parameters(), **options)
    step = weft.train_step(net, None, optimizer, example())
    losses = torch.stack([step(*example(seed=k)).double() for k in range(10)])
    got = {"losses": losses, **tensors(net, optimizer)}
    assert got.keys() == results[1].keys()
    for key, value in got.items():
        near(key, value, [r[key] for r in results[1:]], results[0][key])


class Matrices(nn.Module):
    """Parameters of two dimensions alone: wide, tall, square."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(*s, bias=False) for s in ((12, 20), (20, 20), (20, 6)))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.tanh(layer(x))
        return self.layers[-1](x).square().mean()


@pytest.mark.parametrize("options", [{}, {"nesterov": False, "weight_decay": 0.0}, {"adjust_lr_fn": "match_rms_adamw", "momentum": 0.8},
                                     {"adjust_lr_fn": "spectral_unclamped", "ns_coefficients": (2.0, -1.5, 0.5), "eps": 1e-6}])
def test_muon(options):
    """Ten steps beside PyTorch in float64. Both round to bf16 after each product, so that values may differ by bf16's last bit where sums of f32
    in another order lie on the other side of the middle."""
    torch.manual_seed(0)
    net, results = Matrices(), []
    batches = [(torch.randn(16, 12, generator=torch.Generator().manual_seed(k)),) for k in range(10)]
    for dtype in (torch.float64, torch.float32):
        n = copy.deepcopy(net).to(dtype)
        o = optim.Muon(n.parameters(), lr=0.02, **options)
        results.append({"losses": eager(n, o, lambda k: [x.to(dtype) for x in batches[k]], 10), **tensors(n, o)})
    optimizer = optim.Muon(net.parameters(), lr=0.02, **options)
    step = weft.train_step(net, None, optimizer, batches[0])
    got = {"losses": torch.stack([step(*x).double() for x in batches]), **tensors(net, optimizer)}
    assert got.keys() == results[0].keys()
    for key, value in got.items():
        apart, largest = [float((t.double() - results[0][key].double()).abs().max()) for t in (value, results[1][key])], float(results[0][key].abs().max())
        assert apart[0] <= max(8 * apart[1], 2**-8 * largest), (key, apart, largest)


@pytest.mark.parametrize("shape", [(20, 12), (20, 20), (6, 20)])
def test_muon_orthogonalises_as_pytorch(shape):
    """Of most gradients with PyTorch's bits."""
    def update(p, g, m):
        return weft.optimizer_step("muon", [p], [g], {"momentum_buffer": [m]}, lr=1.0, momentum=0.0, weight_decay=0.0, nesterov=False)[0][0]
    compiled, equal = weft.trace(update, *[f"f32[{shape[0]}, {shape[1]}]"] * 3).compile(), 0
    for seed in range(20):
        p, g = nn.Parameter(torch.zeros(shape)), torch.randn(shape, generator=torch.Generator().manual_seed(seed))
        p.grad = g
        optim.Muon([p], lr=1.0, momentum=0.0, weight_decay=0.0, nesterov=False).step()
        got = compiled(torch.zeros(shape), g, torch.zeros(shape))
        torch.testing.assert_close(got, p.detach(), rtol=0, atol=0.03)
        equal += torch.allclose(got, p.detach(), rtol=1e-6, atol=1e-7)
    assert equal >= 15


def test_muon_refused():
    net = nn.Linear(3, 4)
    with pytest.raises(weft.Error, match="ns_steps=3: a step of Weft's has 5"):
        weft.train_step(net, lambda y, _: y.square().mean(), optim.Muon([net.weight], ns_steps=3), (torch.randn(2, 3), torch.ones(1)))


@pytest.mark.parametrize("name, options, make", [
    ("adamw", {"lr": 0.1}, lambda p: optim.AdamW(p, lr=0.1)), ("sgd", {"lr": 0.1, "momentum": 0.9}, lambda p: optim.SGD(p, lr=0.1, momentum=0.9))])
def test_steps_in_a_trace(name, options, make):
    """weft.optimizer_step in a function that is traced, and the gradient by the rate through two steps."""
    def two(w, v, x, lr):
        p, state = [w, v], None
        for _ in range(2):
            g = [(p[0] * x + p[1].sum()) * x, (p[0] * x + p[1].sum()).sum() + p[1] * 0]
            p, state = weft.optimizer_step(name, p, g, state, **{**options, "lr": lr})
        return p[0], p[1], state["exp_avg" if name == "adamw" else "momentum_buffer"][0]
    torch.manual_seed(0)
    w, v, x = torch.randn(4), torch.randn(3), torch.randn(4)
    graph = weft.trace(two, "f32[4]", "f32[3]", "f32[4]", "f32[]")
    got = graph.compile()(w, v, x, torch.tensor(0.1))
    a, b = nn.Parameter(w.clone()), nn.Parameter(v.clone())
    optimizer = make([a, b])
    for _ in range(2):
        optimizer.zero_grad()
        (0.5 * (a * x + b.sum()).square().sum()).backward()
        optimizer.step()
    for have, want in zip(got, (a, b, optimizer.state[a]["exp_avg" if name == "adamw" else "momentum_buffer"])):
        torch.testing.assert_close(have, want.detach(), rtol=1e-5, atol=1e-6)
    slope = graph.vjp(wrt=["lr"]).compile()
    ones = torch.ones(4), torch.ones(3), torch.zeros(4)
    sums = [float(sum(t.double().sum() for t in graph.compile()(w, v, x, torch.tensor(0.1 + h))[:2])) for h in (-1e-3, 1e-3)]
    assert abs(float(slope(w, v, x, torch.tensor(0.1), *ones)[-1]) - (sums[1] - sums[0]) / 2e-3) < 0.02 * abs(sums[1] - sums[0]) / 2e-3 + 0.02


# ---- small networks ----

def small(dtype=torch.float32, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 5)).to(dtype)


def batch(k=0, n=8):
    g = torch.Generator().manual_seed(k)
    return torch.randn(n, 6, generator=g), torch.randint(5, (n,), generator=g)


def trained(net, optimizer, steps, first=0, **options):
    step = weft.train_step(net, F.cross_entropy, optimizer, batch(), **options)
    return step, [float(step(*batch(first + k))) for k in range(steps)]


def state(net, optimizer):
    return {n: t.clone() for n, t in tensors(net, optimizer).items()}


def equal(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name


@pytest.mark.parametrize("make", [lambda p: optim.AdamW(p, lr=1e-2, amsgrad=True), lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5),
                                  lambda p: optim.NAdam(p, lr=1e-2)], ids=["adamw", "sgd", "nadam"])
def test_resume_has_equal_bits(make, tmp_path):
    net = small()
    optimizer = make(net.parameters())
    step, losses = trained(net, optimizer, 4)
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "last.pt")
    losses += [float(step(*batch(k))) for k in range(4, 8)]
    other = small(seed=7)
    again = make(other.parameters())
    step = weft.train_step(other, F.cross_entropy, again, batch())
    kept = torch.load(tmp_path / "last.pt")
    other.load_state_dict(kept["net"])
    again.load_state_dict(kept["optimizer"])
    assert [float(step(*batch(k))) for k in range(4, 8)] == losses[4:]
    equal(state(net, optimizer), state(other, again))


def test_eager_steps_between():
    """Steps of eager mode and of Weft may alternate, with one optimizer."""
    for make in (lambda p: optim.Adam(p, lr=1e-2), lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5), lambda p: optim.RAdam(p, lr=1e-2)):
        nets = small(), small()
        ours, theirs = (make(n.parameters()) for n in nets)
        step = weft.train_step(nets[0], F.cross_entropy, ours, batch())
        for k in range(6):
            eager(lambda *xy: F.cross_entropy(nets[1](xy[0]), xy[1]), theirs, lambda _: batch(k), 1)
            if k % 3 == 1:
                eager(lambda *xy: F.cross_entropy(nets[0](xy[0]), xy[1]), ours, lambda _: batch(k), 1)
            else:
                step(*batch(k))
        for name, a in state(nets[0], ours).items():
            torch.testing.assert_close(a, state(nets[1], theirs)[name], rtol=1e-4, atol=1e-5, msg=lambda m: f"{name}: {m}")


def test_schedulers_and_groups():
    """Numbers of param_groups are read at each call: rates, momentum, weight decay; groups have their own."""
    def make(net):
        weights, others = [p for p in net.parameters() if p.dim() > 1], [p for p in net.parameters() if p.dim() == 1]
        optimizer = optim.SGD([{"params": weights, "weight_decay": 0.1}, {"params": others, "lr": 0.02, "nesterov": True}], lr=0.1, momentum=0.9)
        return optimizer, optim.lr_scheduler.OneCycleLR(optimizer, max_lr=[0.2, 0.1], total_steps=12)
    net, twin = small(), small()
    (optimizer, schedule), (other, others_schedule) = make(net), make(twin)
    step = weft.train_step(net, F.cross_entropy, optimizer, batch())
    for k in range(10):
        loss = step(*batch(k))
        schedule.step()
        want = eager(lambda x, y: F.cross_entropy(twin(x), y), other, lambda _: batch(k), 1, others_schedule)
        torch.testing.assert_close(loss.double(), want[0], rtol=1e-4, atol=1e-5)
        for g in (optimizer.param_groups[0], other.param_groups[0]):
            g["weight_decay"] = 0.1 / (k + 1)
    for name, a in state(net, optimizer).items():
        torch.testing.assert_close(a, state(twin, other)[name], rtol=1e-4, atol=1e-5)


def test_memory_is_the_modules():
    net = small()
    optimizer = optim.AdamW(net.parameters())
    parameters, memory = list(net.parameters()), [p.data_ptr() for p in net.parameters()]
    versions = [p._version for p in parameters]
    average = optim.swa_utils.AveragedModel(net, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.5))
    step, _ = trained(net, optimizer, 2)
    average.update_parameters(net)
    assert [p.data_ptr() for p in net.parameters()] == memory and all(p.grad is None for p in parameters)
    assert all(p._version > v for p, v in zip(parameters, versions))
    x, _ = batch(5)
    net.eval()
    torch.testing.assert_close(step.eval(x), net(x).detach(), rtol=1e-4, atol=1e-5)
    net.train()
    before = average.module[0].weight.clone()
    step(*batch(1))
    average.update_parameters(net)
    torch.testing.assert_close(average.module[0].weight, before.lerp(net[0].weight, 0.5))


def test_a_step_that_fails_changes_nothing():
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.norm, self.out = nn.Embedding(9, 6), nn.BatchNorm1d(6), nn.Linear(6, 5)

        def forward(self, i):
            return self.out(self.norm(self.words(i)))
    torch.manual_seed(0)
    net = Words()
    optimizer = optim.Adam(net.parameters())
    i, label = torch.arange(8), torch.arange(8) % 5
    step = weft.train_step(net, F.cross_entropy, optimizer, (i, label))
    for expected in (0, 2):
        for _ in range(expected):
            step(i, label)
        before = state(net, optimizer)
        for bad in ((i, label + 1), (i + 2, label)):
            with pytest.raises(weft.CheckError):
                step(*bad)
            equal(state(net, optimizer), before)
        assert len(optimizer.state) == (3 + 2) * bool(expected)
    step(i, label)
    assert float(optimizer.state[net.out.bias]["step"]) == 3


def test_sizes():
    """One step for all batches; a size that the trace does not hold for is refused."""
    size = torch.export.Dim("batch", min=1, max=64)
    net, twin = small(), small()
    optimizer, other = optim.SGD(net.parameters(), lr=0.1), optim.SGD(twin.parameters(), lr=0.1)
    step = weft.train_step(net, F.cross_entropy, optimizer, batch(), dynamic_shapes=[{0: size}, {0: size}])
    for n in (8, 3, 64, 5):
        want = eager(lambda x, y: F.cross_entropy(twin(x), y), other, lambda _: batch(n, n), 1)
        torch.testing.assert_close(step(*batch(n, n)).double(), want[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(step.eval(batch(1, 7)[0]), twin.eval()(batch(1, 7)[0]).detach(), rtol=1e-3, atol=1e-4)
    before = state(net, optimizer)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        step(*batch(0, 1))  # of batch norm, as in eager mode
    with pytest.raises(ValueError):
        step(batch(0, 8)[0], batch(0, 7)[1])
    equal(state(net, optimizer), before)
    with pytest.raises(weft.Error, match="batch is a size, but"):
        class Fixed(nn.Module):
            def forward(self, x):
                return (x * net[0].weight.sum() + net[1].bias[:8, None]).mean()
        fixed = Fixed()
        fixed.net = net
        weft.train_step(fixed, None, optim.SGD(net.parameters()), (torch.randn(8, 6),), dynamic_shapes={"x": {0: size}})


def test_a_batch_of_one():
    """The last batch of an epoch: PyTorch traces a size of 1 apart, so that another step is compiled, of the same memory."""
    size = torch.export.Dim("batch", min=1, max=64)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 5)).double()
    twin = copy.deepcopy(net)
    optimizer, other = optim.AdamW(net.parameters(), lr=0.01), optim.AdamW(twin.parameters(), lr=0.01)
    x, label = batch()
    x = x.double()
    step = weft.train_step(net, F.cross_entropy, optimizer, (x, label), dynamic_shapes=[{0: size}, {0: size}])
    for n in (8, 1, 3, 1):
        want = eager(lambda a, b: F.cross_entropy(twin(a), b), other, lambda _: (x[:n], label[:n]), 1)
        torch.testing.assert_close(step(x[:n], label[:n]), want[0])
        torch.testing.assert_close(step.eval(x[:n]), twin(x[:n]).detach())
    for name, a in state(net, optimizer).items():
        torch.testing.assert_close(a, state(twin, other)[name], msg=lambda m: f"{name}: {m}")


@pytest.mark.parametrize("clip", [{"clip_norm": 0.05}, {"clip_norm": 1e3}, {"clip_value": 0.01}, {"clip_norm": 0.05, "clip_value": 0.01}])
def test_clipping(clip):
    net, twin = small(), small()
    optimizer, other = optim.SGD(net.parameters(), lr=0.5), optim.SGD(twin.parameters(), lr=0.5)
    step, _ = trained(net, optimizer, 0, **clip)
    for k in range(3):
        step(*batch(k))
        other.zero_grad()
        F.cross_entropy(twin(batch(k)[0]), batch(k)[1]).backward()
        if "clip_value" in clip:
            nn.utils.clip_grad_value_(twin.parameters(), clip["clip_value"])
        if "clip_norm" in clip:
            norm = nn.utils.clip_grad_norm_(twin.parameters(), clip["clip_norm"])
            torch.testing.assert_close(step.grad_norm, norm, rtol=1e-4, atol=1e-6)
        other.step()
    for name, a in state(net, optimizer).items():
        torch.testing.assert_close(a, state(twin, other)[name], rtol=1e-4, atol=1e-6)


def test_outputs_and_losses():
    """The module's output on request; a module that returns its loss; frozen parameters and those without a gradient stay."""
    net = small()
    net[0].weight.requires_grad_(False)
    net.register_parameter("unused", nn.Parameter(torch.ones(3)))
    optimizer = optim.AdamW(net.parameters(), lr=0.1)
    kept = net[0].weight.clone()
    step = weft.train_step(net, F.cross_entropy, optimizer, batch(), outputs=True)
    want = copy.deepcopy(net)(batch(3)[0])
    loss, out = step(*batch(3))
    torch.testing.assert_close(out, want.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(loss, F.cross_entropy(want, batch(3)[1]).detach(), rtol=1e-4, atol=1e-5)
    assert torch.equal(net[0].weight, kept) and torch.equal(net.unused, torch.ones(3)) and net.unused not in optimizer.state

    class Returns(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = small()

        def forward(self, x, *, label):
            y = self.net(x)
            return F.cross_entropy(y, label), {"y": y}
    module = Returns()
    x, label = batch()
    step = weft.train_step(module, None, optim.Adagrad(module.parameters()), (x,), {"label": label}, outputs=True)
    loss, (more,) = step(x, label=label)
    assert more["y"].shape == (8, 5) and loss.shape == ()


@pytest.mark.parametrize("example", [torch.zeros, torch.ones])
def test_an_example_without_information(example):
    """All samples are equal: behind batch norm the loss of the example is rounding alone, and steps with other values are right."""
    def made():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    ours, theirs = made(), made()
    step = weft.train_step(ours, F.mse_loss, torch.optim.SGD(ours.parameters(), 0.1), (example(4, 8), torch.zeros(4, 8)))
    optimizer = torch.optim.SGD(theirs.parameters(), 0.1)
    x = torch.randn(4, 8)
    loss = step(x, x.cos())
    want = F.mse_loss(theirs(x), x.cos())
    want.backward()
    optimizer.step()
    torch.testing.assert_close(loss, want.detach())
    for a, b in zip(ours.parameters(), theirs.parameters()):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_random_numbers_and_autocast():
    net = nn.Sequential(nn.Linear(6, 64), nn.Dropout(0.5), nn.Linear(64, 5))

    class Cast(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, x):
            with torch.autocast("cpu", torch.bfloat16):
                return self.net(x).float()
    module = Cast()
    optimizer = optim.SGD(module.parameters(), lr=0.1)
    step = weft.train_step(module, F.cross_entropy, optimizer, batch(), outputs=True)
    torch.manual_seed(3)
    first = step(*batch())[0]
    torch.manual_seed(3)
    assert not torch.equal(first, step(*batch())[0])  # other weights
    losses = [float(step(*batch())[0]) for _ in range(60)]
    assert len(set(losses)) > 30 and sum(losses[-10:]) < sum(losses[:10])


def test_layouts_and_dtypes():
    """Parameters in channels_last; in f64; in bf16, whose states are bf16 as PyTorch's."""
    def conv(dtype=torch.float32):
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5)).to(dtype)
    x, label = torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 3])
    for dtype, memory, most in ((torch.float32, torch.channels_last, 1e-5), (torch.float64, torch.contiguous_format, 1e-12),
                                (torch.bfloat16, torch.contiguous_format, 3e-2)):
        net, twin = conv(dtype).to(memory_format=memory), conv(dtype).to(memory_format=memory)
        optimizer, other = optim.AdamW(net.parameters(), lr=1e-3), optim.AdamW(twin.parameters(), lr=1e-3)
        step = weft.train_step(net, F.cross_entropy, optimizer, (x.to(dtype), label))
        for _ in range(3):
            step(x.to(dtype), label)
            eager(lambda a, b: F.cross_entropy(twin(a), b), other, lambda _: (x.to(dtype), label), 1)
        for name, a in state(net, optimizer).items():
            b = state(twin, other)[name]
            assert a.dtype == b.dtype and a.stride() == b.stride(), name
            torch.testing.assert_close(a, b, rtol=most, atol=most * float(b.abs().max()) * 2)


def test_saved(tmp_path):
    """A file with the entries step and eval goes on where the step is, with equal bits."""
    size = torch.export.Dim("batch", min=2, max=64)
    net = small()
    optimizer = optim.AdamW([{"params": net[0].parameters(), "lr": 0.1}, {"params": list(net.parameters())[1:], "betas": (0.8, 0.99)}])
    step = weft.train_step(net, F.cross_entropy, optimizer, batch(), dynamic_shapes=[{0: size}, {0: size}], clip_norm=0.5, outputs=True,
                           path=tmp_path / "first.so")
    first = weft.load(tmp_path / "first.so").entries["step"]
    assert [t.name for t in first.inputs] == ["input", "label", "lr.0", "lr.1"]
    assert [t.name for t in first.outputs] == ["loss", "output", "grad_norm"]
    rates = [torch.tensor(g["lr"], dtype=torch.float64) for g in optimizer.param_groups]
    for k in range(2):
        loss, _ = step(*batch(k))
        assert torch.equal(first(*batch(k), *rates)[0], loss)
    step.save(tmp_path / "second.so", inputs=["clip_norm"])
    second = weft.load(tmp_path / "second.so").entries["step"]
    for k in range(2, 5):
        loss, out = step(*batch(k, 5 + k))
        for got in (first(*batch(k, 5 + k), *rates), second(*batch(k, 5 + k), torch.tensor(0.5, dtype=torch.float64))):
            assert torch.equal(got[0], loss) and torch.equal(got[1], out) and torch.equal(got[2], step.grad_norm)
    for model in (first, second):
        for name, value in net.state_dict().items():
            assert torch.equal(model.state[name], value), name
        assert torch.equal(model.state["state.3.bias.exp_avg"], optimizer.state[net[3].bias]["exp_avg"])
        assert model.state["optimizer.1.step"].tolist() == [5] * 4
        assert torch.equal(model.entries["eval"](batch()[0]), step.eval(batch()[0]))
    before = {n: v for n, v in first.state.items()}
    with pytest.raises(weft.CheckError):
        first(batch()[0], batch()[1] + 5, *rates)
    assert all(torch.equal(first.state[n], v) for n, v in before.items())
    with pytest.raises(weft.Error, match="has no number rho: it has lr, beta1"):
        step.save(tmp_path / "third.so", inputs=["rho"])


def test_a_module_with_two_names():
    """A module that a network calls twice: its gradients are summed, its buffers are updated twice; it stays what it is."""
    torch.manual_seed(0)
    shared, norm = nn.Linear(6, 6), nn.BatchNorm1d(6)
    net = nn.Sequential(shared, norm, nn.Tanh(), shared, norm, nn.Linear(6, 5)).double()
    twin = copy.deepcopy(net)
    optimizer, other = optim.SGD(net.parameters(), lr=0.1, momentum=0.9), optim.SGD(twin.parameters(), lr=0.1, momentum=0.9)
    weight = net[0].weight
    x, label = batch()
    step = weft.train_step(net, F.cross_entropy, optimizer, (x.double(), label))
    assert net[0].weight is weight and net[3].weight is weight and type(weight) is nn.Parameter
    losses = torch.stack([step(x.double(), label) for _ in range(3)])
    torch.testing.assert_close(losses, eager(lambda a, b: F.cross_entropy(twin(a), b), other, lambda _: (x.double(), label), 3))
    for (name, a), b in zip(net.state_dict().items(), twin.state_dict().values()):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12, msg=lambda m: f"{name}: {m}")


# ---- what is refused ----

class Branches(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.net, self.how, self.last = small(), how, None
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        if self.how == "input":
            x.add_(1)
        if self.how == "counted":
            self.last = (self.last or 0) + 1
        y = self.net(x)
        if self.how == "if" and y.sum() > 0:
            y = y * 2
        if self.how == "assigned":
            self.seen = self.seen + 1
        if self.how == "kept":
            self.last = y
        if self.how == "hidden":
            y = y * (2 + float(y.detach().numpy().mean())) if not torch.compiler.is_compiling() and type(y) is torch.Tensor else y
        return y


@pytest.mark.parametrize("how, message", [("if", r"test_training.py:\d+: .*value of a tensor"), ("assigned", "seen is another value"),
                                          ("counted", "last is another value"), ("kept", "last is another value"), ("input", "writes into its input x"),
                                          ("hidden", "the loss of the example is .* in eager mode")])
def test_refused_modules(how, message):
    module = Branches(how)
    with pytest.raises(weft.Error, match=message):
        weft.train_step(module, F.cross_entropy, optim.SGD(module.parameters()), batch())
    assert not isinstance(module.last, torch.Tensor) and type(module.seen) is torch.Tensor


def test_numbers_of_tensors():
    """Python's numbers that a tensor gives, by item(), are computed at each call."""
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = small()

        def forward(self, x):
            y = self.net(x)
            return y / (1 + y.detach().abs().max().item())
    nets = Scaled(), Scaled()
    optimizers = [optim.SGD(n.parameters(), lr=1.0) for n in nets]
    step = weft.train_step(nets[0], F.cross_entropy, optimizers[0], batch())
    for k in range(4):
        want = eager(lambda x, y: F.cross_entropy(nets[1](x), y), optimizers[1], lambda _: batch(k), 1)
        torch.testing.assert_close(step(*batch(k)).double(), want[0], rtol=1e-4, atol=1e-5)


class Rows(nn.Module):
    """A loss that reads a table by a function, with a sparse gradient."""

    def __init__(self, words):
        super().__init__()
        self.weight = words.weight

    def forward(self, y, x):
        return F.embedding(x, self.weight, sparse=True).sum()


def test_refused():
    net = small()
    def make(optimizer=None, loss=F.cross_entropy, args=None, **options):
        return weft.train_step(net, loss, optimizer or optim.SGD(net.parameters()), args or batch(), **options)

    def refused(message, f=make, kind=weft.Error, **options):
        with pytest.raises(kind, match=message):
            f(**options)
    refused("LBFGS calls a closure", optimizer=optim.LBFGS(net.parameters()))
    refused("Rprop is not in Weft's table, which has SGD, Adam", optimizer=optim.Rprop(net.parameters()))
    refused("expected one of torch.optim", optimizer="adamw")
    refused("is none of the module's", optimizer=optim.SGD(small().parameters()))
    refused("differentiable", optimizer=optim.SGD(net.parameters(), differentiable=True))
    refused("has no option momentum", kind=TypeError, momentum=1)
    refused("clip_norm=-1", clip_norm=-1)
    refused(r"the loss has the shape \[8\]", loss=lambda y, label: F.cross_entropy(y, label, reduction="none"))
    refused("depends on no parameter", loss=lambda y, label: (y.detach() * 1.0).sum())
    optimizer = optim.SGD(net.parameters())
    optimizer.register_step_post_hook(lambda *_: None)
    refused("step post hook", optimizer=optimizer)
    words = nn.Embedding(9, 5)
    with pytest.raises(weft.Error, match=r"the gradient of (loss.)?weight is of layout torch.sparse_coo: a function gives it.*sparse="):
        weft.train_step(nn.Identity(), Rows(words), optim.SGD(words.parameters()), (torch.arange(5), torch.arange(5)))
    for add in (net[0].weight.register_hook, net[0].weight.register_post_accumulate_grad_hook):
        hook = add(lambda *_: None)
        refused("the parameter 0.weight has a hook")
        hook.remove()
    hook = net[2].register_full_backward_hook(lambda *_: None)
    refused("the module 2 has a hook on its backward")
    hook.remove()

    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    step = make(optimizer=optimizer)
    before = state(net, optimizer)
    refused("mode", lambda: (net.eval(), step(*batch())))
    net.train()
    refused("mode", lambda: (net[1].eval(), step(*batch())))
    net.train()
    kept, net[0].weight = net[0].weight, nn.Parameter(torch.ones(16, 6))
    refused("0.weight is another tensor", lambda: step(*batch()))
    net[0].weight = kept
    net[0].weight.requires_grad_(False)
    refused("0.weight has requires_grad=False", lambda: step(*batch()))
    net[0].weight.requires_grad_()
    kept = net[0].weight.data
    net[0].weight.data = kept.double()
    refused("dtype f64, expected f32", lambda: step(*batch()), ValueError)
    net[0].weight.data = kept
    net[1].momentum = 0.5
    refused("1.momentum is another value", lambda: step(*batch()))
    net[1].momentum = 0.1
    refused("input is of torch.float64, expected torch.float32", lambda: step(batch()[0].double(), batch()[1]), ValueError)
    optimizer.param_groups[0]["momentum"] = 0
    refused("momentum is 0, the step was compiled for another value than 0", lambda: step(*batch()))
    optimizer.param_groups[0]["momentum"] = 0.9
    refused("expected the arguments input, label", lambda: step(batch()[0]), TypeError)
    refused("", lambda: step(batch()[0][:, :3], batch()[1]), ValueError)
    optimizer.add_param_group({"params": [nn.Parameter(torch.ones(3))]})
    refused("has 2 groups, and had 1", lambda: step(*batch()))
    equal(state(net, optimizer), before)


def test_shared_memory_is_refused():
    net = small()
    net[3].bias = nn.Parameter(net[1].bias.detach()[:5])
    with pytest.raises(weft.Error, match="3.bias shares memory with 1.bias"):
        weft.train_step(net, F.cross_entropy, optim.SGD(net.parameters()), batch())


def test_a_step_that_fails_leaves_buffers_as_they_were():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    step = weft.train_step(net, torch.nn.functional.cross_entropy, optimizer, (x, y))
    step(x, y)
    before = {k: v.clone() for k, v in net.state_dict().items()}
    with pytest.raises(weft.CheckError):
        step(x, torch.tensor([0, 1, 2, 0, 1, 7]))
    for k, v in net.state_dict().items():
        assert torch.equal(v, before[k]), k


def _changes():
    net = lambda s: s.module
    yield "submodule", lambda s: net(s).__setitem__(1, torch.nn.ReLU())
    yield "submodule", lambda s: net(s).append(torch.nn.Tanh())
    yield "forward_hooks", lambda s: net(s)[0].register_forward_hook(lambda *a: None)
    yield "register_hook", lambda s: net(s)[0].weight.register_hook(lambda g: g)
    yield "register_post_accumulate_grad_hook", lambda s: net(s)[0].weight.register_post_accumulate_grad_hook(lambda p: None)
    yield "backward_hooks", lambda s: net(s)[0].register_full_backward_hook(lambda *a: None)
    yield "pre hook", lambda s: s.optimizer.register_step_pre_hook(lambda *a: None)
    yield "attribute act", lambda s: setattr(net(s)[0], "act", torch.tanh)
    yield "attribute sizes", lambda s: net(s)[0].sizes.append(3)


@pytest.mark.parametrize("what,change", list(_changes()))
def test_what_changes_after_a_step_was_made_is_refused(what, change):
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())
    net[0].act, net[0].sizes = torch.relu, [1, 2]
    x = torch.randn(3, 4)
    step = weft.train_step(net, torch.nn.functional.mse_loss, torch.optim.SGD(net.parameters(), lr=0.1), (x, x))
    step(x, x)
    change(step)
    with pytest.raises(weft.Error, match=what):
        step(x, x)
