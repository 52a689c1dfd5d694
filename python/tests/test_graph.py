"""Graphs: traces of functions, transforms, tools."""
import numpy as np
import pytest

import weft

compiled_here = pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there")


@compiled_here
def test_a_function_on_arrays():
    w = np.linspace(-1, 1, 640, dtype=np.float32).reshape(10, 64)

    def classify(x, bias):
        scores = x @ w.T + bias
        best, where = scores.max(1)
        return {"p": scores.softmax(-1), "best": best, "where": where}
    g = weft.trace(classify, "f32[B, 64]", "f32[10]", symbols={"B": (1, 64)})
    assert [t.name for t in g.outputs] == ["p", "best", "where"] and "aten.softmax.int" in g.text()
    x, bias = np.random.default_rng(0).normal(size=(3, 64)).astype("f4"), np.arange(10, dtype="f4")
    p, best, where = g.compile()(x, bias)
    scores = x @ w.T + bias
    np.testing.assert_allclose(best, scores.max(1), rtol=1e-5)
    np.testing.assert_array_equal(where, scores.argmax(1))
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)


@compiled_here
def test_numbers_and_indices():
    g = weft.trace(lambda x: (2 - x[1:, None] / 4, 1 / x[0], -x ** 2, x > 1), "f32[3, 2]")
    x = np.arange(1, 7, dtype="f4").reshape(3, 2)
    for got, want in zip(g.compile()(x), (2 - x[1:, None] / 4, 1 / x[0], -x ** 2, x > 1)):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@compiled_here
def test_transforms():
    f = weft.trace(lambda x: (x * x * x).sum(), "f32[4]", name="cubes")
    x = np.arange(4, dtype="f4")
    y, gradient = f.vjp().compile()(x, 1.0)
    np.testing.assert_allclose(gradient, 3 * x * x)
    _, tangent = f.jvp().compile()(x, np.ones(4, "f4"))
    np.testing.assert_allclose(tangent, (3 * x * x).sum())
    many = f.vjp().vmap().compile()(np.stack([x, x + 1]), np.ones(2, "f4"))
    np.testing.assert_allclose(many[1], 3 * np.stack([x, x + 1]) ** 2)
    np.testing.assert_allclose(weft.vmap(f, 3).compile()(np.stack([x] * 3)), [36] * 3)


@pytest.mark.parametrize("f, error, text", [
    (lambda x: x.nothing(), AttributeError, "aten.nothing"),
    (lambda x: x.softmax("no"), TypeError, "aten.softmax takes no such arguments"),
    (lambda x: 3, TypeError, "returns int"),
    (lambda x: x.view([3, 3]), weft.Error, "aten.view"),
    (lambda x: x[x], TypeError, "index"),
])
def test_errors(f, error, text):
    with pytest.raises(error, match=text):
        weft.trace(f, "f32[4]")


def test_text_after_a_pass():
    g = weft.trace(lambda x: x.silu(), "f32[4]")
    assert "silu" in str(weft.show(g)) and str(weft.show(g, after="decompose")) == g.text("decompose") != g.text()
    assert weft.graph(g.text()).text().splitlines()[1:] == g.text().splitlines()[1:]


@compiled_here
def test_bench():
    m = weft.trace(lambda x: x + 1, "f32[8]").compile()
    t = weft.bench({"weft": m, "numpy": lambda x: x + 1}, np.zeros(8, "f4"), threads=(1, 2), seconds=0.02)
    assert len(t) == 4 and all(0 < r.least <= r.median for r in t) and "1.00x" in str(t)


@compiled_here
def test_check_and_explain():
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh()).eval()
    assert weft.check(net, (torch.randn(2, 4),)).worst < 1e-5

    class Wrong(torch.nn.Module):  # what torch.export cannot see
        def forward(self, x):
            return x + float(torch.compiler.is_compiling())
    with pytest.raises(AssertionError, match="output"):
        weft.check(Wrong(), (torch.ones(3),))
    e = weft.explain(net, torch.randn(2, 4))
    assert (e.graphs, e.compiled, e.reasons) == (2, 2, []) and "everything is compiled" in str(e)
