"""Branches and loops in traces, and graphs from their text."""
import numpy as np
import pytest

import weft

compiled_here = pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there")


@compiled_here
def test_a_branch():
    w = np.arange(3, dtype="f4")

    def f(x):
        out = weft.cond(x.sum() > 0, lambda a: {"y": a * w, "n": a.sum()}, lambda a: {"y": a - 1, "n": 2.0}, (x,))
        return out["y"], out["n"]
    m = weft.trace(f, "f32[3]").compile()
    for x in (np.array([1, 2, 3], "f4"), np.array([-1, -2, -3], "f4")):
        y, n = m(x)
        np.testing.assert_allclose(y, x * w if x.sum() > 0 else x - 1)
        assert n == (x.sum() if x.sum() > 0 else 2)
    gradient = weft.trace(f, "f32[3]").vjp("x", outputs=[0]).compile()
    for x, want in ((np.array([1, 2, 3], "f4"), w), (-np.array([1, 2, 3], "f4"), np.ones(3))):
        np.testing.assert_allclose(gradient(x, np.ones(3, "f4"))[-1], want)


@compiled_here
def test_a_loop():
    def f(x, n):
        k, y = weft.while_loop(lambda k, y: (k < n) & (y.abs().amax() < 1e6), lambda k, y: (k + 1, y * y + x), (0, x), most=8)
        return y, k
    g = weft.trace(f, "f32[B]", "i64[]")
    x = np.array([0.5, -1, 0.25], "f4")

    def want(x, n):
        y = x
        for _ in range(n):
            y = y * y + x
        return y
    m = g.compile()
    for n in (0, 1, 5):
        y, k = m(x, n)
        np.testing.assert_allclose(y, want(x, n), rtol=1e-6)
        assert k == n
    gradient = g.vjp("x", outputs=[0]).compile()
    for n in (0, 3, 8):
        h = 1e-6
        wide = x.astype("f8")
        np.testing.assert_allclose(gradient(x, n, np.ones(3, "f4"))[-1], (want(wide + h, n) - want(wide - h, n)) / (2 * h), rtol=1e-3)
    with pytest.raises(weft.CheckError, match=r"the loop \S+ has 9 rounds, more than the 8 that its bound for derivatives says"):
        gradient(np.zeros(3, "f4"), 9, np.ones(3, "f4"))


@compiled_here
def test_a_scan():
    def f(xs, h):
        carry, (y, s) = weft.scan(lambda c, x: ({"h": c["h"] * 0.5 + x["x"]}, (c["h"], x["x"].sum())), {"h": h}, {"x": xs})
        last, none = weft.scan(lambda c, x: (c * x, None), h, xs, reverse=True)
        assert none is None
        return carry["h"], y, s, last
    xs, h = np.random.default_rng(0).normal(size=(5, 3)).astype("f4"), np.ones(3, "f4")
    got = weft.trace(f, "f32[T, 3]", "f32[3]").compile()(xs, h)
    c, y = h, []
    for x in xs:
        y.append(c)
        c = c * 0.5 + x
    for a, b in zip(got, (c, np.stack(y), xs.sum(1), h * xs.prod(0))):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@compiled_here
def test_loops_in_branches_in_loops():
    def inner(k, y):
        return k + 1, weft.cond(y.sum() > 3, lambda: y - 1, lambda: weft.while_loop(lambda z: z.sum() < 2, lambda z: z + 1, (y,))[0])
    g = weft.trace(lambda x: weft.while_loop(lambda k, y: k < 6, inner, (0, x))[1], "f32[2]")
    y = x = np.array([0.25, 0.5], "f4")
    for _ in range(6):
        if y.sum() > 3:
            y = y - 1
        else:
            while y.sum() < 2:
                y = y + 1
    np.testing.assert_allclose(g.compile()(x), y)


@pytest.mark.parametrize("f, error, text", [
    (lambda x: weft.while_loop(lambda x: x.sum() < 1, lambda x: x.sum(), (x,))[0], weft.Error, "weft_while_loop"),
    (lambda x: weft.while_loop(lambda x: x.sum() < 1, lambda x: (x, x), (x,))[0], TypeError, "while_loop: body_fn gives what it gets"),
    (lambda x: weft.while_loop(lambda x: x, lambda x: x, (x,))[0], weft.Error, "weft_while_loop"),
    (lambda x: weft.while_loop(lambda x: x.sum() < 1, lambda x: x, (x,), most=0)[0], ValueError, "most is a number of rounds from 1 on, not 0"),
    (lambda x: weft.while_loop(lambda x: x.sum() < 1, lambda x: x, x), TypeError, "carried is a tuple of arrays"),
    (lambda x: weft.cond(x.sum() > 0, lambda: x, lambda: (x, x)), TypeError, "cond: both branches give the same"),
    (lambda x: weft.cond(x.sum() > 0, lambda: x, lambda: x.sum()), weft.Error, "weft_cond"),
    (lambda x: weft.cond(x.sum() > 0, lambda: x, lambda: "text"), TypeError, "expected arrays and numbers.*got str"),
    (lambda x: weft.scan(lambda c, x: c + x, x[0], x)[0], TypeError, "combine_fn returns a pair"),
    (lambda x: weft.scan(lambda c, x: (c, 1 / 0), x[0], x)[0], ZeroDivisionError, "division"),
])
def test_errors(f, error, text):
    with pytest.raises(error, match=text):
        weft.trace(f, "f32[4]")
    with pytest.raises(RuntimeError, match="for functions that weft.trace traces"):
        weft.cond(True, None, None)


# ---- text ----

def modules():
    torch = pytest.importorskip("torch")

    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3, bias=False)
            self.b.weight = self.a.weight
            self.register_buffer("scale", torch.rand(3))
            self.register_buffer("count", torch.full((3,), 5.0))

        def forward(self, x):
            self.count.add_(1)
            return self.b(self.a(x * self.scale)) + torch.tensor([1.0, 2.0, 3.0]) * self.count
    return torch, {"linear": torch.nn.Linear(3, 2), "counter": Counter(), "norm": torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).eval(),
                   "recurrent": torch.nn.GRU(3, 4), "dtype": torch.nn.Linear(3, 2).bfloat16()}


@compiled_here
@pytest.mark.parametrize("name", ["linear", "counter", "norm", "recurrent", "dtype"])
def test_text_with_weights(name):
    torch, cases = modules()
    module = cases[name]
    x = torch.randn(2, 3).to(next(module.parameters()).dtype)
    g = weft.graph(module, (x,))
    want = g.compile()(x)
    for again in (weft.graph(g.text(), weights=g), weft.graph(g.text(), weights=g.weights())):
        torch.testing.assert_close(again.compile()(x), want, rtol=0, atol=0)
        assert len(again.nodes) == len(g.nodes)
    with pytest.raises(weft.Error, match="the text has constants, such as #1"):
        weft.graph(g.text())


@compiled_here
def test_text_with_other_weights():
    torch = pytest.importorskip("torch")
    first, second, x = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2), torch.randn(4, 3)
    text = weft.graph(first, (x,)).text()
    g = weft.graph(text, weights=second.state_dict())
    torch.testing.assert_close(g.compile()(x), second(x))
    assert {n.target for n in g.find_nodes(op="get_attr")} == {"weight", "bias"}
    assert [t.name for t in g.vjp("params").outputs][-2:] == ["g.weight", "g.bias"]
    for weights, error in (({"weight": second.weight}, "weights has no p_bias, which is constant #2"),
                           ({"weight": second.weight.T, "bias": second.bias}, r"weight is f32\[3, 2\], expected f32\[2, 3\]"),
                           (second.state_dict() | {"more": x}, "the text has no constant more")):
        with pytest.raises(ValueError, match=error):
            weft.graph(text, weights=weights)
    with pytest.raises(ValueError, match="for a graph in text form"):
        weft.graph(first, (x,), weights={})
