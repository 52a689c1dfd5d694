"""weft.train_step, of tables of which a step reads few rows: gradients and updates of these rows, beside PyTorch's sparse gradients."""
import pytest

torch = pytest.importorskip("torch")
import weft
from test_train_command import command

nn, F, optim = torch.nn, torch.nn.functional, torch.optim
pytestmark = pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there")
ROWS = 50


class Pairs(nn.Module):
    """Users and items whose vectors are alike: tables alone, as SparseAdam wants. A user's own vector, and the mean of a bag of items."""

    def __init__(self, sparse=True, dtype=torch.float64):
        super().__init__()
        torch.manual_seed(0)
        self.user = nn.Embedding(ROWS, 4, sparse=sparse, padding_idx=3, dtype=dtype)
        self.item = nn.EmbeddingBag(ROWS, 4, sparse=sparse, mode="mean", dtype=dtype)

    def forward(self, user, items):
        return (self.user(user) * (self.item(items) + self.user(user.flip(0)))).sum(-1)


def batch(k, n=12, dtype=torch.float64):
    """Rows below 40, several times each, the padding among them."""
    g = torch.Generator().manual_seed(k)
    user = torch.randint(0, 10, (n,), generator=g)
    user[::5] = 3
    return user, torch.randint(0, 40, (n, 3), generator=g), torch.randn(n, generator=g, dtype=dtype)


RULES = {"SGD": lambda p: optim.SGD(p, lr=0.3), "SGD maximize": lambda p: optim.SGD(p, lr=0.01, maximize=True),
         "Adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.1), "SparseAdam": lambda p: optim.SparseAdam(list(p), lr=0.1)}


def pytorch_step(net, optimizer, b, loss=F.mse_loss):
    optimizer.zero_grad()
    value = loss(net(*b[:-1]), b[-1])
    value.backward()
    optimizer.step()
    return value.detach()


def near(net, twin, most=1e-10):
    for (name, a), b in zip(net.state_dict().items(), twin.state_dict().values()):
        torch.testing.assert_close(a, b, rtol=most, atol=most, msg=lambda m: f"{name}: {m}")


@pytest.mark.parametrize("name", RULES)
def test_beside_pytorch(name):
    """Ten steps with duplicates, padding, bags, a table that is read twice, batches of several sizes; state_dict of the optimizer, and back."""
    net, twin = Pairs(), Pairs()
    optimizer, other = RULES[name](net.parameters()), RULES[name](twin.parameters())
    size = torch.export.Dim("batch", min=2, max=64)
    step = weft.train_step(net, F.mse_loss, optimizer, batch(0), dynamic_shapes=[{0: size}] * 3)
    assert all(u.rows for g in step._groups for u in g.parameters)
    first = {n: p.clone() for n, p in net.named_parameters()}
    for k in range(10):
        b = batch(k, 8 + k % 4)
        torch.testing.assert_close(step(*b), pytorch_step(twin, other, b), rtol=1e-10, atol=1e-12)
        if k == 4:
            optimizer.load_state_dict(optimizer.state_dict())
            pytorch_step(net, optimizer, batch(20)), pytorch_step(twin, other, batch(20))
    near(net, twin)
    for n, p in net.named_parameters():  # what was never read
        assert torch.equal(p[40:], first[n][40:]) and not torch.equal(p[:10], first[n][:10])
    assert torch.equal(net.user.weight[3], first["user.weight"][3])
    for (_, a), (_, b) in zip(optimizer.state.items(), other.state.items()):
        for key, value in b.items():
            value = value.to_dense() if isinstance(value, torch.Tensor) and value.layout != torch.strided else value
            torch.testing.assert_close(torch.as_tensor(a[key], dtype=torch.float64), torch.as_tensor(value, dtype=torch.float64), rtol=1e-9, atol=1e-12)


class Ranked(nn.Module):
    """Tables beside layers."""

    def __init__(self, sparse=True, dtype=torch.float64):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(ROWS, 4, sparse=sparse, dtype=dtype)
        self.out = nn.Sequential(nn.Linear(8, 6, dtype=dtype), nn.Tanh(), nn.Linear(6, 1, dtype=dtype))

    def forward(self, a, b):
        return self.out(torch.cat([self.table(a), self.table(b).amax(1)], 1))[:, 0]


@pytest.mark.parametrize("options", [{}, {"clip_norm": 0.1}, {"clip_value": 0.01, "ema": 0.9}, {"on_nan": "skip", "clip_norm": 0.1}])
def test_options(options):
    """Sparse gradients of the module, those that are named, and dense ones: the same steps. The norm is that of the dense gradient."""
    nets = [Ranked(), Ranked(False), Ranked(False)]
    steps = [weft.train_step(net, F.mse_loss, optim.Adagrad(net.parameters(), lr=0.05), batch(0), sparse=sparse, **options)
             for net, sparse in zip(nets, (None, ["table.*"], False))]
    assert [[u.rows for g in s._groups for u in g.parameters].count(True) for s in steps] == [1, 1, 0]
    for k in range(6):
        losses = [s(*batch(k)) for s in steps]
        torch.testing.assert_close(losses[0], losses[2], rtol=1e-12, atol=1e-14)
        assert torch.equal(losses[0], losses[1])
        if "clip_norm" in options:
            torch.testing.assert_close(steps[0].grad_norm, steps[2].grad_norm, rtol=1e-10, atol=0)
    near(nets[0], nets[1], 0)
    near(nets[0], nets[2], 1e-12)
    for n, t in steps[0].ema.items():
        torch.testing.assert_close(t, steps[2].ema[n], rtol=1e-12, atol=1e-12)


def test_nothing_changes():
    """A step that fails, and one that is skipped."""
    net = Pairs()
    optimizer = optim.SparseAdam(list(net.parameters()))
    step = weft.train_step(net, F.mse_loss, optimizer, batch(0), on_nan="skip")
    step(*batch(1))
    kept = lambda: [torch.as_tensor(t).clone() for t in [*net.parameters(), *(v for s in optimizer.state.values() for v in s.values())]]
    before = kept()
    user, items, label = batch(2)
    with pytest.raises(weft.CheckError):
        step(user + ROWS, items, label)
    assert all(map(torch.equal, before, kept()))
    step(user, items, label * float("inf"))
    assert step.skipped and all(map(torch.equal, before, kept()))
    step(user, items, label)
    assert not step.skipped and not any(torch.equal(a, b) for a, b in zip(before, kept()))


def test_saved(tmp_path):
    """A file goes on with equal bits, whatever the number of threads."""
    net = Ranked(dtype=torch.float32)
    step = weft.train_step(net, F.mse_loss, optim.Adagrad(net.parameters(), lr=0.05), batch(0, dtype=torch.float32))
    step.save(tmp_path / "step.so")
    for threads in (1, 3):
        model = weft.load(tmp_path / "step.so")
        model.threads = threads
        for k in range(4):
            loss = model.entries["step"](*batch(k, dtype=torch.float32), torch.tensor(0.05, dtype=torch.float64))
            if threads == 1:
                assert torch.equal(loss, step(*batch(k, dtype=torch.float32)))
        for name, value in net.state_dict().items():
            assert torch.equal(torch.as_tensor(model.state[name]), value), (threads, name)


@pytest.mark.parametrize("make, options, message", [
    (optim.Adam, {}, "Adam does not support sparse gradients, which table.weight has: SGD, SparseAdam, Adagrad do"),
    (optim.SGD, {"accumulate": 2}, "accumulate: the gradient of table.weight is sparse"),
    (optim.SparseAdam, {}, "SparseAdam updates rows that a step reads: out.0.weight is no table"),
    (optim.SGD, {"sparse": ["out.0.weight"]}, "the step reads out.0.weight not only by rows"),
    (optim.SGD, {"sparse": ["tables"]}, "sparse='tables': no parameter that is trained is called so: there are table.weight, out.0.weight"),
    (optim.SGD, {"sparse": True}, "sparse=True: expected a list")])
def test_refused(make, options, message):
    net = Ranked()
    with pytest.raises(weft.Error) as e:
        weft.train_step(net, F.mse_loss, make(list(net.parameters())), batch(0), **options)
    assert message in str(e.value)


def test_decay():
    """With momentum, or decay, all rows change: gradients are dense. To change that later needs another step."""
    net, twin = Ranked(), Ranked(False)
    make = lambda n: optim.SGD(n.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    step, other = weft.train_step(net, F.mse_loss, make(net), batch(0)), make(twin)
    for k in range(3):
        step(*batch(k))
        pytorch_step(twin, other, batch(k))
    near(net, twin)
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    step = weft.train_step(net, F.mse_loss, optimizer, batch(0))
    optimizer.param_groups[0]["weight_decay"] = 0.1
    with pytest.raises(weft.Error, match="momentum and weight_decay were 0, so that only rows are updated"):
        step(*batch(0))


def test_command(tmp_path):
    """weft compile --train: an embedding with sparse=True in the file, or sparse=true of a group."""
    torch.manual_seed(0)
    for sparse in (True, False):
        net = Ranked(sparse, torch.float32)
        torch.export.save(torch.export.export(net, batch(0)[:2]), tmp_path / f"{sparse}.pt2")
    runs = {"file": ("True", "adagrad(lr=0.05)"), "group": ("False", "adagrad(lr=0.05)", "--group", "table.*: sparse=true"),
            "dense": ("False", "adagrad(lr=0.05)"), "lazy": ("True", "adagrad(lr=0.05)", "--group", "table.*: optimizer=sparse_adam")}
    state = {}
    for name, (file, rule, *more) in runs.items():
        command("compile", tmp_path / f"{file}.pt2", "--train", rule, "--loss", "mse", *more, "-o", tmp_path / f"{name}.so")
        model = weft.load(tmp_path / f"{name}.so")
        for k in range(4):
            model.entries["step"](*batch(k, dtype=torch.float32))
        state[name] = {k: torch.as_tensor(v).clone() for k, v in model.state.items()}
    for k in (k for k in state["file"] if not k.startswith("optimizer.")):
        assert torch.equal(state["file"][k], state["group"][k])
        torch.testing.assert_close(state["file"][k], state["dense"][k], rtol=1e-5, atol=1e-6)
    assert "state.table.weight.exp_avg_sq" in state["lazy"] and not state["lazy"]["state.table.weight.exp_avg"][40:].any()
    for rule, *more, message in (("adamw(sparse=true)", "sparse: adamw changes rows that have no gradient"),
                                 ("sgd(momentum=0.9, sparse=true)", "sparse: momentum is not 0"),
                                 ("sgd(sparse=true)", "the step reads out.0.weight not only by rows"),
                                 ("sgd", "--group", "table.*: sparse=true", "--accumulate", "leave out sparse or --accumulate")):
        command("compile", tmp_path / "False.pt2", "--train", rule, *more, "--loss", "mse", "-o", tmp_path / "x.so", fails=message)
