"""Graphs: traces of functions, transforms, tools."""
import threading

import numpy as np
import pytest

import weft
from weft import _weft

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
def test_numbers_and_tensors_on_the_left():
    w = np.linspace(1, 2, 12, dtype="f4").reshape(3, 4)
    f = lambda x: (w * x, w - x, w / x, w @ x.T, w < x, 2 - x, 2 / x, 2 ** x, 7 // x, 7 % x, abs(-x), x // 2, x % 2)
    x = np.arange(1, 13, dtype="f4").reshape(3, 4)
    for got, want in zip(weft.trace(f, "f32[3, 4]").compile()(x), f(x)):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-6)
    f = lambda n: (2 - n, 7 // n, 7 % n, n // 2, n % 2, 2 ** n, n & 3, 3 | n, n ^ 1, ~n)
    n = np.arange(1, 7, dtype="i1")
    for got, want in zip(weft.trace(f, "i8[6]").compile()(n), f(n)):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    b = np.array([True, False])
    assert weft.trace(lambda x: ~x & True, "bool[2]").compile()(b).tolist() == [False, True]
    assert weft.trace(lambda x: x * np.arange(3, dtype=">f4"), "f32[3]").compile()(np.ones(3, "f4")).tolist() == [0, 1, 2]


@compiled_here
def test_rows():
    def f(x):
        a, b, c = x
        return a + b * c, len(x) * a
    x = np.arange(6, dtype="f4").reshape(3, 2)
    for got, want in zip(weft.trace(f, "f32[3, 2]").compile()(x), f(x)):
        assert np.array_equal(got, want)


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
    (lambda x: x if x.sum() > 0 else -x, TypeError, "neither true nor false"),
    (lambda x: not x, TypeError, "neither true nor false"),
    (lambda x: x * np.array(["a"]), TypeError, "a constant of dtype <U1, which Weft lacks"),
    (lambda x: x[7], weft.Error, "select index: 8 <= 4"),
    (lambda x: list(x[0]), TypeError, "an array without dimensions has no length"),
    (lambda x: x.dropout(0.5, True), weft.Error, "pass rng=key, where key is an array of u64.2."),
])
def test_errors(f, error, text):
    with pytest.raises(error, match=text):
        weft.trace(f, "f32[4]")


def test_rows_whose_number_is_unknown():
    with pytest.raises(TypeError, match="known only when the model runs"):
        weft.trace(list, "f32[N]")


@compiled_here
def test_a_key_of_random_numbers():
    m = weft.trace(lambda x, key: x.dropout(0.5, True, rng=key), "f32[64]", "u64[2]").compile()
    x, key = np.ones(64, "f4"), np.array([1, 2], "u8")
    assert np.array_equal(m(x, key), m(x, key)) and not np.array_equal(m(x, key), m(x, key + 1))


def test_values_of_another_trace():
    kept = []
    weft.trace(lambda x: (kept.append(x.exp()), x + 1)[1], "f32[N]")
    other = kept[0]
    with pytest.raises(weft.Error, match="the trace has ended"):
        other.exp()
    for f in (lambda y: y * 3 + other, lambda y: y.add(other), lambda y: (y > 0).where(y, other), lambda y: other, lambda y: other + y):
        with pytest.raises((ValueError, weft.Error), match="a value of another trace|the trace has ended"):
            weft.trace(f, "f32[N]")
    session = _weft.Session()
    first, second = session.trace("a"), session.trace("b")
    x, y = first.input("x", "f32[4]"), second.input("y", "f32[4]")
    for call in (lambda: second.call("aten.add.Tensor", (y, x)), lambda: second.call("aten.cat", ([y, x],)), lambda: second.output("z", x),
                 lambda: second.shape(x), lambda: second.result(x, 0), lambda: second.call("aten.neg", (), {"self": x}),
                 lambda: second.while_loop([x], lambda v: v, lambda v: v), lambda: second.scan([y], [x], lambda v: v, 0)):
        with pytest.raises(ValueError, match="this is a value of another trace"):
            call()
    second.output("z", second.call("aten.neg", (y,)))
    assert "aten.neg" in second.end().text()


def test_arguments_of_transforms():
    g = weft.trace(lambda x, w: (x @ w, (w * w).sum()), "f32[B, 4]", "f32[4, 3]", symbols={"B": (1, 9)})
    for f, text in ((lambda: g.vjp(wrt=[]), "nothing to differentiate by"), (lambda: g.jvp([]), "nothing to differentiate by"),
                    (lambda: g.vjp(outputs=[]), "outputs is empty"), (lambda: g.vjp("w", outputs=[-1]), "there is no output -1: the graph has 2"),
                    (lambda: g.vjp("w", outputs=[2]), "there is no output 2"), (lambda: g.vmap(in_dims=[0]), "in_dims has length 1, the graph has 2 inputs"),
                    (lambda: g.vmap(out_dims=[0] * 3), "out_dims has length 3, the graph has 2 outputs"),
                    (lambda: g.vmap(randomness="some"), "randomness is"),
                    (lambda: weft.trace(lambda x: x, "f32[N]", symbols={"Q": (1, 2)}), "no type has the size Q; their sizes are N")):
        with pytest.raises(ValueError, match=text):
            f()
    assert len(g.vjp("w", outputs=[1]).outputs) and len(g.vmap(in_dims=[0, None], out_dims=[0, 0]).inputs) == 2
    with pytest.raises(weft.Error, match="hello: there is no such file; a graph in text form begins with"):
        weft.graph("hello")


def test_an_earlier_error_is_told_again():
    trace = _weft.Session().trace("f")
    x = trace.input("x", "f32[4]")
    for text in (r"aten.view.*\[3, 3\]|aten.view", "an earlier error of this graph or trace: .*aten.view"):
        with pytest.raises(weft.Error, match=text):
            trace.call("aten.view", (x, [3, 3]))


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
def test_profile():
    m = weft.trace(lambda x: (x @ x).softmax(-1), "f32[64, 64]", name="score").compile()
    x = np.ones((64, 64), "f4")
    with weft.profile(wait=1, warmup=1, active=2) as p:
        for _ in range(6):
            m(x), m(x)
            p.step()
    assert p.kernels and all(k.runs == 4 and k.model == "score" and k.seconds > 0 for k in p.kernels) and "score" in str(p)
    with weft.profile() as p:
        m(x)
        with pytest.raises(weft.Error, match="in progress"), weft.profile():
            pass
    assert {k.runs for k in p.kernels} == {1}
    with weft.profile() as p:
        pass
    assert p.kernels == [] and str(p)


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
    assert weft.check(torch.nn.Softmax(1), (torch.full((2, 3), -float("inf")),)).worst == 0
    e = weft.explain(net, torch.randn(2, 4))
    assert (e.graphs, e.compiled, e.reasons) == (2, 2, []) and "everything is compiled" in str(e)


RELU = "graph @f(%x: f32[B, 4]) where 1 <= B {\n  %y = aten.relu(%x)\n  %z = aten.add.Tensor(%y, %y)\n  return %z\n}"


def test_nodes_with_the_names_of_fx():
    g = weft.graph(RELU)
    x, y, z = g.nodes
    assert [n.op for n in g] == ["placeholder", "call_function", "call_function"]
    assert (x.target, y.target, z.name) == ("x", "aten.relu", "z") and y.dtype == "f32" and y.shape == ("B", 4)
    assert y.args == (x,) and z.kwargs == {"self": y, "other": y, "alpha": 1} and z.all_input_nodes == [y]
    assert list(y.users) == [z] and not z.users and z in y.users and (x.next, z.next, z.prev, x.prev) == (y, None, y, None)
    assert g.output_nodes == [z] and g.input_nodes == [x] and len({x, g.nodes[0]}) == 1
    assert g.find_nodes(op="call_function", target="aten.relu") == [y] and "aten.relu" in y.format_node()


@compiled_here
def test_change_nodes():
    g = weft.graph(RELU)
    x, y, z = g.nodes
    with g.inserting_before(y):
        low = g.call_function("aten.clamp", (x, 0, 6))
    y.replace_all_uses_with(low)
    with pytest.raises(weft.Error):
        g.erase_node(low)
    g.erase_node(y)
    with pytest.raises(weft.Error):
        y.users
    with g.inserting_after(low):
        a = g.call_function("aten.mul.Scalar", (low,), {"other": 2.0})
        b = g.call_function("aten.neg", (a,))
    assert [n.target for n in g.nodes[1:]] == ["aten.clamp", "aten.mul.Scalar", "aten.neg", z.target]
    z.replace_input_with(low, b)
    z.update_kwarg("alpha", 3)
    g.add_output("half", g.call_function("aten.sum.dim_IntList", (low, [1])))
    g.constant(np.arange(3, dtype="f4"), "spare")
    assert g.eliminate_dead_code() == 1
    g.lint()
    v = np.linspace(-8, 8, 12, dtype="f4").reshape(3, 4)
    total, half = g.compile()(v)
    np.testing.assert_allclose(total, -8 * np.clip(v, 0, 6), rtol=1e-6)
    np.testing.assert_allclose(half, np.clip(v, 0, 6).sum(1), rtol=1e-6)
    g.remove_output(0)
    assert [t.name for t in g.outputs] == ["half"]


def calls_of_threads(m, x, want, threads=4, each=200):
    """How many calls of the model, of several threads at once, raised."""
    refused, begin = [], threading.Barrier(threads)

    def work():
        begin.wait()
        for _ in range(each):
            try:
                np.testing.assert_array_equal(m(x), want)
            except weft.BusyError as e:
                refused.append(e)
    running = [threading.Thread(target=work) for _ in range(threads)]
    for t in running:
        t.start()
    for t in running:
        t.join()
    return len(refused)


@compiled_here
def test_a_graph_that_draws_no_more():
    """weft.rng is state that every call writes: it goes with the last operator that draws, without a sweep."""
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(64, 64, bias=False), torch.nn.Dropout(0.5), torch.nn.ReLU(), torch.nn.Dropout(0.5)).train()
    x = torch.randint(-3, 4, (64, 64)).float()
    net[0].weight.data.copy_(torch.randint(-3, 4, (64, 64)).float())
    g = weft.graph(torch.export.export(net, (x,)))
    for left in (2, 1, 0):
        m = g.compile()
        assert [s.name for s in m.state_info] == ["weft.rng"] * (left > 0)
        for d in g.find_nodes(op="call_function", target="aten.dropout")[:1]:
            d.replace_all_uses_with(d.args[0])
            g.erase_node(d)
    assert calls_of_threads(m, x.numpy(), net.eval()(x).detach().numpy()) == 0


@compiled_here
def test_state_that_is_written_with_itself():
    """A pass stops an update: calls read the state, which may be set, and do not write it."""
    torch = pytest.importorskip("torch")

    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.full((64,), 3.0))
            self.register_buffer("unread", torch.zeros(64))

        def forward(self, x):
            y = x @ x + self.seen
            self.seen += x[0]
            self.unread += x[1]
            return y
    x = np.ones((64, 64), "f4")
    g = weft.graph(torch.export.export(Counts(), (torch.from_numpy(x),)))
    assert [s.name for s in g.compile().state_info] == ["seen", "unread"]
    for name in ("seen", "unread"):
        before, = (n for n in g.nodes if n.target == name)
        after, = (n for n in g.nodes if n.name.startswith("add_") and n.args[0] == before)
        after.replace_all_uses_with(before)
    m = g.compile()
    assert [s.name for s in m.state_info] == ["seen", "unread"]
    assert calls_of_threads(m, x, np.full((64, 64), 67, "f4")) == 0
    m.state["seen"] = np.full(64, 5, "f4")
    assert calls_of_threads(m, x, np.full((64, 64), 69, "f4")) == 0
    np.testing.assert_array_equal(m.state["seen"], np.full(64, 5))


def test_wrong_changes():
    g = weft.graph(RELU)
    x, y, z = g.nodes
    with pytest.raises(weft.Error, match="aten.nothing"):
        g.call_function("aten.nothing", (x,))
    with pytest.raises(TypeError, match="expected a node"):
        _weft_node_users(g, 3)
    with pytest.raises(weft.Error):
        x.replace_all_uses_with(g.call_function("aten.sum", (x,)))
    with pytest.raises(weft.Error):
        y.update_kwarg("nothing", 1)
    with g.inserting_before(y):
        late = g.call_function("aten.neg", (z,))
    with pytest.raises(weft.Error, match="neg"):
        g.lint()
    g.erase_node(late)
    other = weft.graph(RELU).nodes[1]
    for change in (lambda: g.call_function("aten.neg", (other,)), lambda: g.set_output(0, other), lambda: x.replace_all_uses_with(other),
                   lambda: g.erase_node(other), lambda: z.update_kwarg("self", other)):
        with pytest.raises(ValueError, match="a node of another graph"):
            change()
    g.lint()


def _weft_node_users(g, node):
    from weft import _weft
    return _weft.node_users(g.raw, node)


def test_kinds_of_lists():
    g = weft.graph(RELU)
    with g.inserting_after(g.nodes[-1]):
        padded = g.call_function("aten.constant_pad_nd", (g.nodes[0], [True, 2, False, 3]))
    assert padded.kwargs["pad"] == [1, 2, 0, 3] and padded.shape == ("B + 3", 7)


def test_constants():
    g = weft.trace(lambda x: x + np.arange(4, dtype="f4"), "f32[4]")
    (c,) = g.find_nodes(op="get_attr")
    assert list(np.asarray(c.value())) == [0, 1, 2, 3]
    with pytest.raises(weft.Error):
        g.nodes[0].value() if g.nodes[0].op == "placeholder" else g.output_nodes[0].value()


@compiled_here
def test_replace_pattern():
    g = weft.trace(lambda x: (x.sigmoid() * x).sum([1]) + (x[:, :1] * 0).sum([1]), "f32[B, 4]", symbols={"B": (1, 9)})
    n = g.replace_pattern(lambda a: a.sigmoid() * a, lambda a: a.silu(), "f32[M, 4]")
    assert n == 1 and "aten.silu" in g.text() and "sigmoid" not in g.text()
    x = np.linspace(-1, 1, 8, dtype="f4").reshape(2, 4)
    np.testing.assert_allclose(g.compile()(x), (x / (1 + np.exp(-x))).sum(1), rtol=1e-5)
    text = "graph @p(%x: f32[M, 4]) {\n  %y = aten.silu(%x)\n  return %y\n}"
    assert g.replace_pattern(text, text.replace("silu", "relu")) == 1 and "relu" in g.text()
    assert g.replace_pattern(lambda a: a.cos(), lambda a: a.sin(), "f32[M, 4]") == 0
    with pytest.raises(weft.Error):
        g.replace_pattern(lambda a: a.relu(), lambda a: a.sum([1]), "f32[M, 4]")


@compiled_here
def test_from_fx():
    torch = pytest.importorskip("torch")
    from torch.fx.experimental.proxy_tensor import make_fx
    x = torch.randn(3, 4)
    f = lambda x: torch.relu(x).sum(1)
    net = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU()).eval()
    torch.testing.assert_close(weft.Graph.from_fx(make_fx(f)(x)).compile()(x), f(x))
    torch.testing.assert_close(weft.Graph.from_fx(torch.fx.symbolic_trace(net), x).compile()(x), net(x))
    with pytest.raises(TypeError, match="example inputs"):
        weft.Graph.from_fx(torch.fx.symbolic_trace(net))


@compiled_here
def test_from_fx_has_an_output_for_each_result():
    torch = pytest.importorskip("torch")
    from torch.fx.experimental.proxy_tensor import make_fx
    w = torch.randn(2)

    def f(x):
        y = x + w[:, None]
        return torch.select_scatter(x, w, 1, 2), x, x[1:], y, y.t(), y
    for x in (torch.randn(2, 5), torch.randn(5, 2).t(), torch.randn(2, 10)[:, ::2]):
        g = weft.Graph.from_fx(make_fx(f)(x), x)
        assert len(g.inputs) == 1
        for got, want in zip(g.compile()(x), f(x), strict=True):
            torch.testing.assert_close(got, want)


@compiled_here
def test_a_session_refuses_a_second_thread():
    session = _weft.Session()
    lines = "".join(f"  %y{k + 1} = aten.sin(%y{k})\n" for k in range(300))
    graph = session.parse("graph @f(%y0: f32[3]) {\n" + lines + "  return %y300\n}", "long")
    trace = session.trace("later")
    compiling = threading.Thread(target=session.jit, args=(graph, {"no_cache": True}))
    calls = {
        "text": graph.text, "dot": graph.dot, "inputs": graph.inputs, "outputs": graph.outputs, "states": graph.states,
        "report": session.report, "trace": lambda: session.trace("f"),
        "supports": lambda: session.supports("aten.sin", ["f32"]), "parse": lambda: session.parse("graph @g() {}", "g"),
        "transform": lambda: session.transform(graph, "cse"), "set_mode": lambda: session.set_mode(graph, True),
        "set_precision": lambda: session.set_precision(graph, "bf16"),
        "set_activations": lambda: session.set_activations(graph, "int8"), "join": lambda: session.join(["a"], [graph]),
        "input": lambda: trace.input("x", "f32[3]"), "symbol": lambda: trace.symbol("B", 1, 2), "line": lambda: trace.line("a.py:1"),
        "integer": lambda: trace.integer("3"), "end": trace.end}

    def refused(call):
        try:
            call()
        except weft.Error as e:
            return str(e) == "another thread uses this Session"
    compiling.start()
    while compiling.is_alive() and not refused(session.messages):
        pass
    done = [name for name, call in calls.items() if not refused(call)]
    during = compiling.is_alive()
    compiling.join()
    assert during and not done
    x = trace.input("x", "f32[3]")
    trace.output("y", x)
    trace.end()
    with pytest.raises(weft.Error, match="the trace has ended"):
        trace.input("z", "f32[3]")
