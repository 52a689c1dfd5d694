"""Whole models: files, entries with state, torch.compile, a training loop. Reference models lie beside the checkout, if at all."""
import json
import lzma
import math
import os
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import weft

SOURCE = os.environ.get("WEFT_SOURCE")
pytestmark = pytest.mark.skipif(not SOURCE or not weft.has_llvm(), reason="WEFT_SOURCE names no checkout, or weft_llvm.so is not there")
DTYPES = {"F32": torch.float32, "I64": torch.int64, "BOOL": torch.bool, "F64": torch.float64, "I32": torch.int32}


def tensors(path):
    """The tensors of a .safetensors file."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    n = int.from_bytes(data[:8], "little")
    out = {}
    for name, t in json.loads(data[8:8 + n]).items():
        if name != "__metadata__":
            a, b = t["data_offsets"]
            out[name] = torch.frombuffer(data[8 + n + a:8 + n + b], dtype=DTYPES[t["dtype"]]).reshape(t["shape"])
    return out


def agree(got, want):
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3 * max(1, b.abs().max().item()))


@pytest.mark.parametrize("name", ["mobilenet_v3_small", "bert_tiny_dyn", "llama_tiny"])
def test_a_reference_model(name, tmp_path):
    folder = os.path.join(SOURCE, "..", "shared", "models")
    if not os.path.exists(os.path.join(folder, name + ".pt2.xz")):
        pytest.skip("the reference model is not there")
    file = tmp_path / f"{name}.pt2"
    with lzma.open(os.path.join(folder, name + ".pt2.xz")) as f:
        file.write_bytes(f.read())
    ref = tensors(os.path.join(folder, name + ".safetensors"))
    x = [ref[k] for k in sorted(ref) if k.startswith("x.")]
    want = [ref[k] for k in sorted(ref) if k.startswith("y.")]
    weft.compile(file, path=tmp_path / "model.so")
    model = weft.load(tmp_path / "model.so")
    got = model(*x)
    agree(got if isinstance(got, tuple) else (got,), want)
    module = torch.export.load(file).module()
    torch._dynamo.reset()
    with torch.no_grad():
        fast = torch.compile(module, backend="weft", fullgraph=True)(*x)
    agree([t for t in torch.utils._pytree.tree_leaves(fast)], want)


def test_a_decoder_with_state(tmp_path):
    sys.path.insert(0, os.path.join(SOURCE, "examples", "decoder"))
    try:
        import decoder
    finally:
        sys.path.pop(0)
    module = decoder.make("tiny")
    prefill, decode = decoder.programs(module)
    model = weft.join({"prefill": prefill, "decode": decode}, path=tmp_path / "decoder.so")
    prompt = torch.tensor([[3, 1, 4, 1, 5]])
    with torch.no_grad():
        want, logits = decoder.greedy(module, prompt, 6)
    assert model.state

    def run(tokens, start):
        return model.entries["prefill" if tokens.shape[1] > 1 else "decode"](tokens, start)
    for _ in range(2):
        got, mine = decoder.greedy(run, prompt, 6)
        assert got == want
        torch.testing.assert_close(mine, logits, rtol=1e-4, atol=1e-4)
        model.state.reset()


def digits_cnn():
    nn = torch.nn
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1, groups=4), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(64, 10))


def train(net, run):
    data = tensors(os.path.join(SOURCE, "examples/digits/digits_cnn.safetensors"))
    x, label = data["x.0"], data["label"]
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    losses = []
    for step in range(30):
        batch = slice(step * 60 % 360, step * 60 % 360 + 60)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(run(x[batch]), label[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_training_loop_has_the_losses_of_eager_mode():
    torch._dynamo.reset()
    eager, net = digits_cnn(), digits_cnn()
    want = train(eager, eager)
    got = train(net, torch.compile(net, backend="weft"))
    np.testing.assert_allclose(got, want, rtol=2e-3)
    assert got[-1] < 0.8 * got[0] and all(map(math.isfinite, got))


@pytest.mark.parametrize("most", [0, 1, 3])
def test_a_loop_of_no_round_gives_no_row(tmp_path, most):
    onnx = pytest.importorskip("onnx")
    make, info = onnx.helper, onnx.helper.make_tensor_value_info
    body = make.make_graph([make.make_node("Identity", ["go"], ["more"]), make.make_node("Add", ["c", "x"], ["sum"]),
                            make.make_node("Mul", ["c", "x"], ["row"])], "body", [info("k", 7, []), info("go", 9, []), info("c", 1, [2])],
                           [info("more", 9, []), info("sum", 1, [2]), info("row", 1, [2])])
    loop = make.make_node("Loop", ["most", "first", "x"], ["last", "rows"], body=body)
    graph = make.make_graph([loop], "g", [info("x", 1, [2]), info("first", 9, [])], [info("last", 1, [2]), info("rows", 1, [None, 2])],
                            [make.make_tensor("most", 7, [], [most])])
    path = tmp_path / "loop.onnx"
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8), path)
    m, x = weft.compile(path), np.array([1, 2], "f4")
    for first in (True, False):
        last, rows = m(x, np.array(first))
        rounds = most if first else 0
        np.testing.assert_array_equal(last, x * (rounds + 1))
        np.testing.assert_array_equal(rows, np.array([x * (k + 1) * x for k in range(rounds)], "f4").reshape(rounds, 2))
