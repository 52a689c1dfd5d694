"""weft.train_step of a linear layer with cross entropy over many classes: in blocks of rows, logits are never there as a whole."""
import pytest

torch = pytest.importorskip("torch")
import weft
from weft import training_blocks

nn, F, optim = torch.nn, torch.nn.functional, torch.optim
pytestmark = pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there")
CLASSES = 700


class Language(nn.Module):
    """Tied: the table of words is the last layer's weight, too."""

    def __init__(self, bias, tied, dtype):
        super().__init__()
        torch.manual_seed(0)
        self.words, self.inner, self.out = nn.Embedding(CLASSES, 16), nn.Linear(16, 16), nn.Linear(16, CLASSES, bias=bias)
        if tied:
            self.out.weight = self.words.weight
        self.to(dtype)

    def forward(self, x):
        return self.out(torch.tanh(self.inner(self.words(x))))


def batch(k, n=7, length=9):
    g = torch.Generator().manual_seed(k)
    y = torch.randint(CLASSES, (n, length), generator=g)
    y[0, ::2] = -100
    return torch.randint(CLASSES, (n, length), generator=g), y


def mean(out, label):
    return F.cross_entropy(out.flatten(0, 1), label.flatten())


LOSSES = {"mean": mean, "sum": lambda out, label: F.cross_entropy(out.flatten(0, 1), label.flatten(), reduction="sum") * 0.01,
          "square": lambda out, label: mean(out, label).square()}


def nodes_of(step):
    return [n.target for n in step._plan.joint.gm.graph.nodes]


@pytest.fixture
def small(monkeypatch):
    """Blocks of 16 rows, whatever the size."""
    monkeypatch.setattr(training_blocks, "ROWS", 16)
    monkeypatch.setattr(training_blocks, "LEAST", 0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias, tied", [(True, False), (False, True)])
def test_beside_pytorch(small, loss, bias, tied):
    """63 rows, of which some are ignored, in 4 blocks; the gradient of the loss is no constant in the last case."""
    net, twin = Language(bias, tied, torch.float64), Language(bias, tied, torch.float64)
    step = weft.train_step(net, LOSSES[loss], optim.Adagrad(net.parameters(), lr=0.1), batch(0), clip_norm=1.0)
    other = optim.Adagrad(twin.parameters(), lr=0.1)
    assert training_blocks.blocks in nodes_of(step)
    for k in range(4):
        other.zero_grad()
        want = LOSSES[loss](twin(batch(k)[0]), batch(k)[1])
        want.backward()
        nn.utils.clip_grad_norm_(twin.parameters(), 1.0)
        other.step()
        torch.testing.assert_close(step(*batch(k)), want.detach(), rtol=1e-10, atol=1e-12)
    for a, b in zip(net.parameters(), twin.parameters()):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)
    x, y = batch(9)
    before = [p.clone() for p in net.parameters()]
    with pytest.raises(weft.CheckError):
        step(x, y.clamp(min=0) + CLASSES)
    assert all(map(torch.equal, before, net.parameters()))


@pytest.mark.parametrize("loss", ["mean", "sum"])
def test_all_labels_ignored(small, loss):
    """The mean of nothing is NaN, and no gradient is, as in PyTorch."""
    net, twin = Language(True, False, torch.float32), Language(True, False, torch.float32)
    step = weft.train_step(net, LOSSES[loss], optim.SGD(net.parameters(), lr=1.0), batch(0))
    assert training_blocks.blocks in nodes_of(step)
    x, y = batch(1)
    y.fill_(-100)
    got = step(x, y)
    want = LOSSES[loss](twin(x), y)
    want.backward()
    torch.testing.assert_close(got, want.detach(), equal_nan=True)
    for p, q in zip(net.parameters(), twin.parameters()):
        assert torch.equal(p, q) and not q.grad.any()


def test_other_readers(small):
    """Where something else reads the logits, or there are weights, they are computed as they are."""
    for options, loss in (({"outputs": True}, mean), ({}, lambda out, label: mean(out, label) + 1e-3 * out.square().mean()),
                          ({}, lambda out, label: F.cross_entropy(out.flatten(0, 1), label.flatten(), torch.ones(CLASSES))),
                          ({}, lambda out, label: F.cross_entropy(out.flatten(0, 1), label.flatten(), label_smoothing=0.1))):
        net = Language(True, False, torch.float32)
        step = weft.train_step(net, loss, optim.SGD(net.parameters(), lr=0.1), batch(0), **options)
        assert training_blocks.blocks not in nodes_of(step)
        step(*batch(0))


def test_saved(small, tmp_path):
    """Few logits are not worth a loop; a file computes the same bits."""
    net = Language(True, False, torch.float32)
    step = weft.train_step(net, mean, optim.SGD(net.parameters(), lr=0.1), batch(0), path=tmp_path / "step.so")
    model = weft.load(tmp_path / "step.so")
    for k in range(3):
        assert torch.equal(model.entries["step"](*batch(k), torch.tensor(0.1, dtype=torch.float64)), step(*batch(k)))


def test_small_logits():
    net = Language(True, False, torch.float32)
    step = weft.train_step(net, mean, optim.SGD(net.parameters(), lr=0.1), batch(0))
    assert training_blocks.blocks not in nodes_of(step)
