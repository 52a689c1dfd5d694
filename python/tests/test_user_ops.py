"""Operators of the user (docs/user-operators.md) in Python: those of examples/userop/mylib.c, in graphs, traces, files and torch.compile."""
import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch")
ROOT = pathlib.Path(os.environ.get("WEFT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
compiled_here = pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there")
X, RATE = np.linspace(-2, 2, 12, dtype="f4").reshape(3, 4), np.linspace(0, 1, 4, dtype="f4")


@pytest.fixture(scope="module")
def mylib(tmp_path_factory):
    """The library, and its operators in torch.ops."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("there is no C compiler")
    path = tmp_path_factory.mktemp("mylib") / "libmylib.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-I", ROOT / "include", ROOT / "examples/userop/mylib.c", "-o", path, "-lm"], check=True)
    return str(path)


def decay(x, rate, scale=1.0):
    return scale * x * np.exp(-rate)


@pytest.fixture(scope="module")
def ops():
    """torch.ops.mylib.decay and smooth, with derivatives, as examples/userop/make_model.py has them."""
    lib = torch.library.Library("mylib", "DEF")
    lib.define("decay(Tensor x, Tensor rate, float scale=1.0) -> Tensor")
    lib.define("decay_backward(Tensor grad, Tensor x, Tensor rate, float scale) -> (Tensor, Tensor)")
    lib.define("smooth(Tensor x, int width) -> (Tensor, Tensor)")
    lib.define("lacking(Tensor x) -> Tensor")

    def backward(g, x, rate, scale):
        gx = scale * g * torch.exp(-rate)
        return gx, -(gx * x).sum(0)

    def smooth(x, width):
        n = x.shape[-1]
        rows = [x[..., i:min(i + width, n)].mean(-1) for i in range(n)]
        return torch.stack(rows, -1), torch.tensor(x[..., 0].numel())
    lib.impl("decay", lambda x, rate, scale=1.0: scale * x * torch.exp(-rate), "CPU")
    lib.impl("decay_backward", backward, "CPU")
    lib.impl("smooth", smooth, "CPU")
    lib.impl("lacking", lambda x: x + 1, "CPU")
    for name, fake in (("decay", lambda x, rate, scale=1.0: torch.empty_like(x)), ("lacking", torch.empty_like),
                       ("decay_backward", lambda g, x, rate, scale: (torch.empty_like(x), torch.empty_like(rate))),
                       ("smooth", lambda x, width: (torch.empty_like(x), x.new_empty((), dtype=torch.int64)))):
        torch.library.register_fake(f"mylib::{name}", fake, lib=lib)

    def keep(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:2])
        ctx.scale = inputs[2]

    def derive(ctx, g):
        return *torch.ops.mylib.decay_backward(g, *ctx.saved_tensors, ctx.scale), None
    torch.library.register_autograd("mylib::decay", derive, setup_context=keep, lib=lib)
    yield torch.ops.mylib
    lib._destroy()


class Net(torch.nn.Module):
    def forward(self, x, rate):
        y, rows = torch.ops.mylib.smooth(torch.ops.mylib.decay(x, rate, 0.5), 2)
        return y * 2, rows


@compiled_here
def test_a_trace_calls_by_name(mylib):
    def f(x, rate):
        y, rows = weft.call("mylib::smooth", weft.call("mylib::decay", x, rate, scale=0.5) + 0, 2)
        return y, rows
    g = weft.trace(f, "f32[B, 4]", "f32[4]", ops=mylib)
    y, rows = g.compile()(X, RATE)
    want = decay(X, RATE, 0.5)
    np.testing.assert_allclose(y, np.concatenate([(want[:, :-1] + want[:, 1:]) / 2, want[:, -1:]], 1), rtol=1e-5)
    assert rows == 3
    gradient = g.vjp("x", outputs=[0]).compile()(X, RATE, np.ones((3, 4), "f4"))
    assert gradient[-1].shape == (3, 4) and np.isfinite(gradient[-1]).all()
    assert weft.trace(lambda x: weft.call(torch.ops.aten.relu.default, x).clamp(0, 1), "f32[4]").text().count("aten.relu") == 1
    assert weft.trace(lambda x: weft.call("aten.relu.default", x), "f32[4]").find_nodes(op="call_function", target="aten.relu")


@compiled_here
def test_models_live_without_their_graphs(mylib):
    import gc
    models = [weft.trace(lambda x, r: weft.call("mylib::decay", x, r), "f32[B, 4]", "f32[4]", ops=[mylib]).compile() for _ in range(3)]
    clone = models[0].clone()
    del models[0]
    gc.collect()
    for m in (*models, clone):
        np.testing.assert_allclose(m(X, RATE), decay(X, RATE), rtol=1e-6)


def test_errors_of_calls(mylib):
    for f, text in ((lambda x: weft.call("mylib::decay", x), "mylib::decay: argument rate: expected a value"),
                    (lambda x: weft.call("mylib::decay", x, x[0], None), "expected a number for a float argument"),
                    (lambda x: weft.call("mylib::decay", x, x), "rate has 2 dimensions, expected 1"),
                    (lambda x: weft.call("mylib::decay", x, x[0], rates=1.0), "mylib::decay has no argument rates"),
                    (lambda x: weft.call("mylib::smooth", x, 2.5), "expected an integer for an int argument"),
                    (lambda x: weft.call("mylib::none", x), "there is no operator mylib::none")):
        with pytest.raises(weft.Error, match=text):
            weft.trace(f, "f32[3, 4]", ops=mylib)
    with pytest.raises(weft.Error, match="there is no operator mylib::decay"):
        weft.trace(lambda x: weft.call("mylib::decay", x, x[0]), "f32[3, 4]")
    with pytest.raises(RuntimeError, match="weft.call is for functions that weft.trace traces"):
        weft.call("aten.relu", 1)
    with pytest.raises(weft.Error, match="cannot open"):
        weft.trace(lambda x: x, "f32[4]", ops="none.so")
    with pytest.raises(TypeError, match="ops= takes a path or a list of paths, not 3"):
        weft.graph("graph @f(%x: f32[]) { return %x }", ops=3)


@compiled_here
def test_a_module(mylib, ops, tmp_path):
    module, args = Net(), (torch.tensor(X), torch.tensor(RATE))
    want = module(*args)
    model = weft.compile(module, args, ops=mylib)
    torch.testing.assert_close(model(*args), want)
    with pytest.raises(weft.Error, match="mylib.decay"):
        weft.compile(module, args)
    on_disk = weft.compile(module, args, ops=[mylib], link=[mylib], path=tmp_path / "m.so")
    torch.testing.assert_close(on_disk(*args), want)
    with pytest.raises(weft.Error, match="mylib_decay|mylib"):
        weft.compile(module, args, ops=mylib, path=tmp_path / "unlinked.so")
    g = weft.graph(module, args, ops=mylib)
    torch.testing.assert_close(g.compile()(*args), want)
    with pytest.raises(ValueError, match="weft.graph or weft.trace"):
        weft.compile(g, ops=mylib)


@compiled_here
def test_nodes_have_the_operators_name(mylib, ops):
    args = torch.tensor(X), torch.tensor(RATE)
    g = weft.graph(Net(), args, ops=mylib)
    for target in ("mylib::decay", "mylib.decay", "mylib.decay.default", torch.ops.mylib.decay.default, torch.ops.mylib.decay):
        (node,) = g.find_nodes(op="call_function", target=target)
        assert node.target == "mylib::decay"
    assert node.kwargs["scale"] == 0.5 and [n.name for n in node.args[:2]] == ["x", "rate"]
    node.update_kwarg("scale", 2.0)
    (smooth,) = g.find_nodes(op="call_function", target="mylib::smooth")
    assert smooth.args[1] == 2
    smooth.update_arg(1, 1)
    with pytest.raises(weft.Error, match="expected an integer for an int argument"):
        smooth.update_kwarg("width", 1.5)
    torch.testing.assert_close(g.compile()(*args)[0], torch.tensor(decay(X, RATE, 4.0)))
    with g.inserting_after(node.next):
        again = g.call_function(torch.ops.mylib.decay.default, (node.next, g.input_nodes[1]), {"scale": 1.0})
    smooth.replace_input_with(node.next, again)
    g.lint()
    torch.testing.assert_close(g.compile()(*args)[0], torch.tensor(decay(X, 2 * RATE, 4.0)))
    assert len(g.find_nodes(op="call_function", target="mylib::decay")) == 2
    for target, text in (("mylib::decays", "there is no operator mylib::decays"), ("aten.reul", "there is no operator aten.reul")):
        with pytest.raises(weft.Error, match=text):
            g.find_nodes(op="call_function", target=target)
    with pytest.raises(ValueError, match="op is 'placeholder', 'get_attr', 'call_function', not 'call_module'"):
        g.find_nodes(op="call_module")
    with pytest.raises(TypeError, match="an operator is a name"):
        g.call_function(torch.relu, (node,))


@compiled_here
def test_torch_compile(mylib, ops):
    x, rate = torch.tensor(X, requires_grad=True), torch.tensor(RATE, requires_grad=True)

    def f(x, rate):
        return (ops.decay(x.sin(), rate, 0.5) * x).sum()
    want = torch.autograd.grad(f(x, rate), (x, rate))
    torch._dynamo.reset()
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast = torch.compile(f, backend="weft", options={"ops": mylib, "fallback": False})
        y = fast(x, rate)
        torch.testing.assert_close(y, f(x, rate))
        torch.testing.assert_close(torch.autograd.grad(y, (x, rate)), want)
    torch._dynamo.reset()
    fast = torch.compile(lambda x: ops.lacking(ops.decay(x, rate.detach())), backend="weft", options={"ops": [mylib]})
    with pytest.warns(UserWarning, match="mylib.lacking.default runs as PyTorch's"):
        torch.testing.assert_close(fast(x.detach()), torch.tensor(decay(X, RATE) + 1))
    torch._dynamo.reset()
    with pytest.raises(Exception, match="has no option 'op': it has 'fallback' and 'ops'"):
        torch.compile(f, backend="weft", options={"op": mylib})(x, rate)
    assert "everything is compiled" in str(weft.explain(f, x, rate, ops=mylib))
    assert "runs as PyTorch's operator" in str(weft.explain(f, x, rate))
    torch._dynamo.reset()
