"""A language model's steps in f32, 8 and 4 bits, one thread: language.py WEFT FOLDER [--forms f32,int8,int8-32,int4-32,int4-128] [--batch 1,8]
    [--context 64,1024] [--prompt 128] [--peers onnxruntime,openvino] [--seconds S] [--rounds R]

The decoder of examples/decoder with a static cache of keys and values (4 layers of width 1,024, 16 and 4 heads, 2,816, vocabulary 32,000): a
prompt at once (prefill), and a token behind a context (decode). All matrices are quantised: int8 has a scale for each row of them, int4-32 and
int4-128 for each 32 or 128 terms of a row. Weft compiles each form exact and with --activations int8. The others run models of ONNX whose
products are MatMulNBits with accuracy_level 4 (not of int8) and whose keys and values so far are inputs; they do not write
longer ones. Prints the least milliseconds of alternating rounds, and how fast a step reads matrices and filled cache, beside the
loop of `weft bench` that reads memory. Wants a Python with torch, onnx, safetensors, and the peers."""
import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "decoder"))
from decoder import Decoder, programs, rotate  # noqa: E402

SHAPE = (4, 1024, 16, 4, 2816, 32000)  # layers, width, heads, key and value heads, feed-forward, vocabulary
POSITIONS = 1280
GROUPS = {"int8": 0, "int8-32": 32, "int4-32": 32, "int4-128": 128}


class Quantised(nn.Module):
    """A matrix in few bits, with a scale for each group of a row, or for each row (group 0)."""

    def __init__(self, weight, form):
        super().__init__()
        most = 2 ** (int(form[3]) - 1) - 1
        rows = weight.detach().view(weight.shape[0], -1, GROUPS[form] or weight.shape[1])
        scale = rows.abs().amax(-1, keepdim=True) / most
        self.register_buffer("w", (rows / scale).round().to(torch.int8).view(weight.shape))
        self.register_buffer("scale", scale.view(weight.shape[0], -1))

    def forward(self, x):
        parts = self.w.view(self.w.shape[0], self.scale.shape[1], -1).float() * self.scale.unsqueeze(2)
        return F.linear(x, parts.view(self.w.shape))


def model_of(form, batch):
    torch.manual_seed(0)
    model = Decoder(*SHAPE, POSITIONS, batch=batch, tied=False).eval()
    if form != "f32":
        for name, layer in list(model.named_modules()):
            if isinstance(layer, nn.Linear):
                parent, _, leaf = name.rpartition(".")
                setattr(model.get_submodule(parent), leaf, Quantised(layer.weight, form))
    return model


def bytes_of(form):
    """Of the matrices that a step reads, with their scales."""
    layers, width, heads, kv_heads, inner, vocabulary = SHAPE
    n = layers * (2 * width * width + 2 * width * width // heads * kv_heads + 3 * width * inner) + width * vocabulary
    if form == "f32":
        return 4 * n
    scales = n / GROUPS[form] if GROUPS[form] else n / width
    return n * int(form[3]) / 8 + 4 * scales


def cache_bytes(context, batch):
    layers, width, heads, kv_heads, _, _ = SHAPE
    return 4 * 2 * layers * width // heads * kv_heads * context * batch


# ---- the others ----

class Past(nn.Module):
    """Tokens behind keys and values that are inputs."""

    def __init__(self, decoder):
        super().__init__()
        self.decoder = decoder

    def forward(self, tokens, past):
        d, begin, (batch, n) = self.decoder, past[0].shape[2], tokens.shape
        turn, x, out = (d.cos[begin:begin + n], d.sin[begin:begin + n]), d.table(tokens), []
        seen = torch.arange(begin + n)[None] <= begin + torch.arange(n)[:, None]
        for k, layer in enumerate(d.layers):
            h = layer.norm(x)
            q = layer.q(h).view(batch, n, layer.heads, layer.dim).transpose(1, 2)
            key, value = layer.kv(h).view(batch, n, 2, layer.kv_heads, layer.dim).unbind(2)
            out += [rotate(key.transpose(1, 2), turn), value.transpose(1, 2)]
            key, value = (torch.cat([past[2 * k + i], out[2 * k + i]], 2) for i in range(2))
            y = F.scaled_dot_product_attention(rotate(q, turn), key, value, seen, enable_gqa=layer.heads != layer.kv_heads)
            x = x + layer.o(y.transpose(1, 2).reshape(batch, n, -1))
            h = layer.inner_norm(x)
            x = x + layer.down(F.silu(layer.gate(h)) * layer.up(h))
        return d.head(d.norm(x[:, -1])), *out


def past(batch, context):
    layers, width, heads, kv_heads, _, _ = SHAPE
    return [torch.zeros(batch, kv_heads, context, width // heads) for _ in range(2 * layers)]


def with_bits(graph, form):
    """Makes products with stored matrices MatMulNBits."""
    from onnx import helper, numpy_helper
    bits, block = int(form[3]), GROUPS[form] or 32
    stored = {t.name: t for t in graph.initializer}
    turned = {n.output[0]: n.input[0] for n in graph.node if n.op_type == "Transpose" and n.input[0] in stored}
    gone = set()
    for node in graph.node:
        source = turned.get(node.input[1], node.input[1]) if len(node.input) == 2 else None
        if node.op_type not in ("MatMul", "Gemm") or source not in stored:
            continue
        w = numpy_helper.to_array(stored[source])
        w = w if node.input[1] in turned or any(a.name == "transB" and a.i for a in node.attribute) else w.T
        rows = w.reshape(w.shape[0], -1, block)
        scale = np.abs(rows).max(-1) / (2 ** (bits - 1) - 1)
        q = (np.rint(rows / scale[..., None]) + 2 ** (bits - 1)).astype(np.uint8)
        q = q if bits == 8 else q[..., ::2] | q[..., 1::2] << 4
        gone.add(source)
        name = node.output[0]
        graph.initializer.extend([numpy_helper.from_array(q, name + "_q"), numpy_helper.from_array(scale.astype(np.float32), name + "_s")])
        new = helper.make_node("MatMulNBits", [node.input[0], name + "_q", name + "_s"], [name], domain="com.microsoft", K=w.shape[1], N=w.shape[0],
                               bits=bits, block_size=block, accuracy_level=4)
        node.CopyFrom(new)
    keep = [n for n in graph.node if not (n.op_type == "Transpose" and n.input[0] in gone)]
    held = [t for t in graph.initializer if t.name not in gone]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(keep)
    graph.initializer.extend(held)


def onnx_file(folder, form, batch, tokens, context):
    import onnx
    from onnx import helper
    path = folder / f"{form}_{batch}_{tokens}_{context}.onnx"
    if path.exists():
        return str(path)
    names = [f"past.{k}" for k in range(2 * SHAPE[0])]
    if form == "f32":
        example = torch.ones(batch, tokens, dtype=torch.int64), past(batch, context)
        with torch.no_grad():
            torch.onnx.export(Past(model_of("f32", batch)), example, path, dynamo=True, external_data=False, verbose=False,
                              input_names=["token", *names], output_names=["logits", *("new_" + x for x in names)])
        return str(path)
    model = onnx.load(onnx_file(folder, "f32", batch, tokens, context))
    with_bits(model.graph, form)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    del model.graph.value_info[:]
    onnx.save(model, path)
    return str(path)


def least(step, seconds):
    step()
    step()
    end, best = time.perf_counter() + seconds, 1e9
    while time.perf_counter() < end:
        begin = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - begin)
    return 1e3 * best


def peer_time(peer, path, batch, tokens, context, seconds):
    """In a process of its own."""
    values = [np.ones((batch, tokens), np.int64), *(x.numpy() for x in past(batch, context))]
    if peer == "onnxruntime":
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = 1, 1
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for x, v in zip(session.get_inputs(), values):
            binding.bind_ortvalue_input(x.name, ort.OrtValue.ortvalue_from_numpy(v))
        for y in session.get_outputs():
            binding.bind_output(y.name)
        return least(lambda: session.run_with_iobinding(binding), seconds)
    import openvino as ov
    model = ov.Core().compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY"})
    request = model.create_infer_request()
    for k, v in enumerate(values):
        request.set_input_tensor(k, ov.Tensor(v))
    return least(request.infer, seconds)


# ---- Weft ----

def compiled(weft, folder, form, batch, rounded):
    """A file with the entries prefill and decode."""
    stem = folder / f"{form}_{batch}"
    so = Path(f"{stem}_{'int8' if rounded else 'exact'}.so")
    if so.exists():
        return so
    files = [Path(f"{stem}_{name}.pt2") for name in ("prefill", "decode")]
    if not files[1].exists():
        for path, program in zip(files, programs(model_of(form, batch))):
            torch.export.save(program, path)
    options = [x for name in ("prefill", "decode") for x in ("--activations", f"{name}={'int8' if rounded else 'exact'}")]
    subprocess.run([weft, "compile", f"prefill={files[0]}", f"decode={files[1]}", "-o", so, *options], check=True)
    return so


def weft_time(weft, so, folder, batch, tokens, start, seconds):
    """(milliseconds, bytes per second)"""
    step = folder / "step.safetensors"
    save_file({"x.0": torch.ones(batch, tokens, dtype=torch.int64), "x.1": torch.tensor([start])}, step)
    entry = "decode" if tokens == 1 else "prefill"
    out = subprocess.run([weft, "bench", so, "--entry", entry, "--inputs", step, "--threads", "1", "--seconds", str(seconds), "--no-op-by-op",
                          "--json"], check=True, stdout=subprocess.PIPE).stdout
    report = json.loads(out)
    return report["rows"][0]["min_ms"], report["machine"][0]["bytes"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(x) for x in text.split(",") if x]
    words = lambda text: [x for x in text.split(",") if x]
    p.add_argument("weft", type=lambda path: str(Path(path).resolve()))
    p.add_argument("folder", type=Path)
    p.add_argument("--forms", type=words, default=["f32", *GROUPS])
    p.add_argument("--batch", type=numbers, default=[1])
    p.add_argument("--context", type=numbers, default=[64, 1024])
    p.add_argument("--prompt", type=numbers, default=[128])
    p.add_argument("--peers", type=words, default=[])
    p.add_argument("--seconds", type=float, default=1)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--prepare", action="store_true", help="only make the files")
    p.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.one:
        return print(peer_time(*args.one))
    args.folder.mkdir(parents=True, exist_ok=True)
    steps = [(1, c) for c in args.context] + [(n, 0) for n in args.prompt]
    speed, best, runs = 0, {}, []
    for batch in args.batch:
        for form in args.forms:
            for rounded in (False, True)[:1 if form == "f32" else 2]:
                so = compiled(args.weft, args.folder, form, batch, rounded)
                for tokens, context in steps:
                    runs.append(("rounded" if rounded else "exact", form, batch, tokens, context,
                                 lambda so=so, b=batch, t=tokens, c=context: weft_time(args.weft, so, args.folder, b, t, c, args.seconds)))
            for peer in args.peers if form != "int8" else []:
                for tokens, context in steps:
                    path = onnx_file(args.folder, form, batch, tokens, context)
                    command = [sys.executable, __file__, args.weft, args.folder, "--one", json.dumps([peer, path, batch, tokens, context, args.seconds])]
                    runs.append((peer, form, batch, tokens, context,
                                 lambda c=command: (float(subprocess.run(c, check=True, stdout=subprocess.PIPE).stdout.split()[-1]), 0)))
    for _ in range(0 if args.prepare else args.rounds):
        for *key, run in runs:
            try:
                took, read = run()
            except subprocess.CalledProcessError as e:
                took, read = float("nan"), 0
            best[tuple(key)], speed = min(best.get(tuple(key), 1e9), took), max(speed, read)
    print(f"a loop reads {speed / 1e9:.1f} GB/s" if best else "made")
    for (who, form, batch, tokens, context), ms in best.items():
        read = bytes_of(form) + cache_bytes(context, batch)
        what = f"decode at {context:5}" if tokens == 1 else f"prefill of {tokens:3}"
        rate = f", {read / 1e6:.0f} MB at {read / ms / 1e6:5.1f} GB/s" if tokens == 1 else ""
        print(f"{form:9} batch {batch} {what} {who:12} {ms:9.2f} ms{rate}")


if __name__ == "__main__":
    sys.exit(main())
