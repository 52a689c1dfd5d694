"""weft.quantize: values beside formulas in NumPy, rules, data, files."""
import json

import pytest

import weft

numpy = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")


def tensors(path):
    """The tensors of a .safetensors file, by name, and its metadata."""
    kinds = {"F32": "<f4", "F16": "<f2", "I8": "i1", "U8": "u1", "I64": "<i8", "BF16": "<u2"}
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    index = json.loads(data[8:start])
    meta = index.pop("__metadata__")
    return {n: numpy.frombuffer(data[start + t["data_offsets"][0]:start + t["data_offsets"][1]], kinds[t["dtype"]]).reshape(t["shape"])
            for n, t in index.items()}, meta


def rounded(w):
    """A row by 8 bits, symmetrically, as torchao's per-row quantisation."""
    s = (numpy.abs(w).max(1, keepdims=True) / numpy.float32(127)).astype(numpy.float32)
    return numpy.clip(numpy.rint(w / s), -127, 127) * s


@pytest.fixture
def linear():
    torch.manual_seed(1)
    return torch.nn.Linear(64, 48).eval(), torch.randn(5, 64)


def test_int8(linear):
    m, x = linear
    q = weft.quantize(m, (x,))
    want = x.numpy() @ rounded(m.weight.detach().numpy()).T + m.bias.detach().numpy()
    numpy.testing.assert_allclose(q.compile()(x).numpy(), want, rtol=1e-5, atol=1e-5)
    [w] = q.quantization["weights"]
    assert (w["name"], w["type"], w["kind"], w["why"], w["bytes"]) == ("weight", "f32[48, 64]", "int8", "", 48 * 68)
    error = m.weight.detach().numpy() - rounded(m.weight.detach().numpy())
    assert w["snr"] == pytest.approx(10 * numpy.log10((m.weight.detach().numpy() ** 2).sum() / (error ** 2).sum()), abs=0.01)


@pytest.mark.parametrize("zero_points", [False, True])
def test_int4(linear, zero_points, tmp_path):
    """The file has two numbers in a byte: the first half of a group in the low bits."""
    m, x = linear
    q = weft.quantize(m, (x,), weights="int4", zero_points=zero_points)
    q.save(tmp_path / "m.weft")
    found, meta = tensors(tmp_path / "m.weft")
    packed, scale = found["weight.q4"], found["weight.scale"].astype(numpy.float32)
    assert packed.shape == (48, 2, 16) and scale.shape == (48, 2) and meta["weft.version"] == "1"
    integers = numpy.concatenate([packed & 15, packed >> 4], -1).astype(numpy.float32)
    zero = found["weight.zero"].astype(numpy.float32)[..., None] if zero_points else 8
    w = ((integers - zero) * scale[..., None]).reshape(48, 64)
    error = numpy.abs(w - m.weight.detach().numpy())
    assert (error <= 1.01 * numpy.repeat(numpy.abs(scale), 32, 1)).all() and error.mean() < 0.3 * numpy.abs(scale).mean()
    want = x.numpy() @ w.T + m.bias.detach().numpy()
    for model in q.compile(), weft.compile(str(tmp_path / "m.weft")):
        numpy.testing.assert_allclose(model(x).numpy(), want, rtol=1e-5, atol=1e-5)


def test_activations(linear):
    m, x = linear
    exact = m(x).detach()
    for weights, most in ("int8", 0.02), ("int4", 0.2):
        y = weft.quantize(m, (x,), weights=weights, activations="dynamic").compile()(x)
        assert 0 < (y - exact).abs().max() < most * exact.abs().max()


def test_static():
    """Convolutions by integers, with ranges of data; the result is near the module's."""
    torch.manual_seed(2)
    m = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.ReLU(),
                            torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(16, 10)).eval()
    x = torch.randn(4, 3, 16, 16)
    data = [(torch.randn(4, 3, 16, 16),) for _ in range(6)] + [(x,)]
    q = weft.quantize(m, (x,), activations="static", data=data)
    assert q.quantization["samples"] == 7 and q.quantization["snr"] > 25 and q.quantization["agreement"] > 0.8
    y, want = q.compile()(x), m(x).detach()
    assert 10 * torch.log10((want ** 2).sum() / ((y - want) ** 2).sum()) > 25
    kept = weft.quantize(m, (x,), activations="static", data=data, keep={"0": "float"})
    assert [w["kind"] for w in kept.quantization["weights"]] == ["float", "int8", "int8"]
    with pytest.raises(weft.Error, match="static activations need data"):
        weft.quantize(m, (x,), activations="static")


def test_keep_and_data():
    torch.manual_seed(3)
    m = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32)).eval()
    x = torch.randn(8, 64)
    q = weft.quantize(m, (x,), weights="int4", keep={"2": "float"}, data=torch.randn(24, 64))
    assert [(w["name"], w["kind"]) for w in q.quantization["weights"]] == [("0.weight", "int4"), ("2.weight", "float")]
    assert q.quantization["samples"] == 3 and 10 < q.quantization["snr"] < 60
    named = weft.quantize(m, (x,), weights="int4", keep={"2": "float"}, data={"x.0": torch.randn(24, 64)})
    assert named.quantization["samples"] == 3
    with pytest.raises(weft.Error, match="fits no weight"):
        weft.quantize(m, (x,), keep={"head": "float"})
    with pytest.raises(ValueError, match="int3"):
        weft.quantize(m, (x,), weights="int3")
    with pytest.raises(ValueError, match="no batches"):
        weft.quantize(m, (x,), data=iter(()))
    with pytest.raises(weft.Error, match="expected at least 8"):
        weft.quantize(m, (x,), data=torch.randn(4, 64))


def test_of_a_graph():
    g = weft.trace(lambda x, w: x @ w, "f32[2, 32]", "f32[32, 8]")
    with pytest.raises(weft.Error, match="nothing to quantise"):
        weft.quantize(g)


def test_embeddings():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.other = torch.nn.Embedding(50, 32), torch.nn.Embedding(20, 32)

        def forward(self, i):
            return (self.embed(i) + self.other(i)) @ self.embed.weight.T

    torch.manual_seed(4)
    m, i = Tied().eval(), torch.tensor([3, 7, 0])
    q = weft.quantize(m, (i,))
    assert {w["name"]: w["kind"] for w in q.quantization["weights"]} == {"embed.weight": "int8", "other.weight": "float"}
    both = weft.quantize(m, (i,), embeddings=True)
    e, o = (rounded(t.weight.detach().numpy()) for t in (m.embed, m.other))
    numpy.testing.assert_allclose(both.compile()(i).numpy(), (e[i] + o[i]) @ e.T, rtol=1e-5, atol=1e-4)


def test_not_finite(linear):
    m, x = linear
    with torch.no_grad():
        m.weight[1, 6] = float("nan")
    with pytest.raises(weft.Error, match=r"weight weight has the number nan \(element 70\)"):
        weft.quantize(m, (x,))


@pytest.mark.parametrize("options, message", [({"jobs": -1}, "jobs=-1"), ({"least_snr": float("nan")}, "least_snr=nan"), ({"least_snr": -5}, "least_snr=-5"),
                                              ({"keep": ["0:int8"]}, "keep is a dict of kinds by name, not list")])
def test_numbers_are_checked(options, message):
    torch.manual_seed(0)
    with pytest.raises((ValueError, TypeError), match=message):
        weft.quantize(torch.nn.Linear(32, 8), (torch.randn(1, 32),), **options)
