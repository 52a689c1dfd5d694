"""A step of the decoder beside other runtimes: peers.py FOLDER WEFT [--size base] [--threads 1,2] [--position 128] [--seconds 5]

    decoder.py F --size base
    peers.py F build/weft

compiles F/prefill.pt2 and F/decode.pt2 into one model and times the entry `decode` at a position; PyTorch eager with the same static cache;
ONNX Runtime with the keys and values so far as inputs and the longer ones as outputs, all bound; OpenVINO with these as state. Every row is a process
of its own. The last two columns say how many times the step takes what reading the weights and the cache once takes, at the bandwidth that `weft bench`
measures with as many threads. Logits are compared. Wants a quiet machine; PYTHON needs torch, onnx, onnxruntime, openvino."""
import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

from decoder import SIZES, make, rotate

PEERS = ("eager", "onnxruntime", "openvino")


class Past(nn.Module):
    """A step of one token with keys and values of the tokens before as arguments, those with its own behind as results."""

    def __init__(self, decoder):
        super().__init__()
        self.decoder = decoder

    def forward(self, tokens, past):
        d, n = self.decoder, past[0].shape[2]
        x, turn, out = d.table(tokens), (d.cos[n:n + 1], d.sin[n:n + 1]), []
        for k, layer in enumerate(d.layers):
            h = layer.norm(x)
            q = layer.q(h).view(1, 1, layer.heads, layer.dim).transpose(1, 2)
            key, value = layer.kv(h).view(1, 1, 2, layer.kv_heads, layer.dim).unbind(2)
            key = torch.cat([past[2 * k], rotate(key.transpose(1, 2), turn)], 2)
            value = torch.cat([past[2 * k + 1], value.transpose(1, 2)], 2)
            y = F.scaled_dot_product_attention(rotate(q, turn), key, value, enable_gqa=layer.heads != layer.kv_heads)
            x = x + layer.o(y.transpose(1, 2).reshape(1, 1, -1))
            h = layer.inner_norm(x)
            x = x + layer.down(F.silu(layer.gate(h)) * layer.up(h))
            out += [key, value]
        return F.linear(d.norm(x[:, -1]), d.table.weight), *out


def filled(args):
    """The decoder after a prompt of as many tokens as the position says, and the next token."""
    model = make(args.size)
    torch.manual_seed(1)
    prompt = torch.randint(SIZES[args.size][-2], (1, args.position))
    with torch.no_grad():
        token = model(prompt, torch.tensor([0])).argmax(-1)[:, None]
    return model, token


def past_of(model, n):
    return [c[:, :, :n].clone() for layer in model.layers for c in (layer.key_cache, layer.value_cache)]


def timed(step, seconds, prepare=lambda: None):
    """Milliseconds, least and median."""
    times, end = [], time.perf_counter() + seconds
    for _ in range(3):
        prepare()
        step()
    while time.perf_counter() < end or len(times) < 7:
        prepare()
        begin = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - begin))
    return min(times), sorted(times)[len(times) // 2]


def eager(args, threads):
    torch.set_num_threads(threads)
    model, token = filled(args)
    start = torch.tensor([args.position])
    with torch.no_grad():
        return *timed(lambda: model(token, start), args.seconds), model(token, start)


def onnx_file(args):
    path = args.folder / f"past_{args.size}.onnx"
    if not path.exists():
        model, token = filled(args)
        past = past_of(model, args.position)
        n = torch.export.Dim("n", min=2, max=len(model.cos) - 1)
        names = [f"{what}.{k}" for k in range(len(past) // 2) for what in ("key", "value")]
        with torch.no_grad():
            torch.onnx.export(Past(model), (token, past), path, dynamo=True, external_data=False, verbose=False, input_names=["token", *names],
                              output_names=["logits", *("new_" + x for x in names)], dynamic_shapes={"tokens": None, "past": [{2: n}] * len(past)})
    return str(path)


def onnxruntime(args, threads):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(onnx_file(args), options, providers=["CPUExecutionProvider"])
    model, token = filled(args)
    values = [token, *past_of(model, args.position)]
    binding = session.io_binding()
    for x, v in zip(session.get_inputs(), values):
        binding.bind_ortvalue_input(x.name, ort.OrtValue.ortvalue_from_numpy(v.numpy()))
    shape = list(values[1].shape)
    shape[2] += 1
    logits = ort.OrtValue.ortvalue_from_shape_and_type([1, SIZES[args.size][-2]], "float32")
    for k, y in enumerate(session.get_outputs()):
        binding.bind_ortvalue_output(y.name, ort.OrtValue.ortvalue_from_shape_and_type(shape, "float32") if k else logits)
    return *timed(lambda: session.run_with_iobinding(binding), args.seconds), torch.from_numpy(logits.numpy())


def openvino(args, threads):
    import openvino as ov
    from openvino._offline_transformations import apply_make_stateful_transformation
    core = ov.Core()
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"})
    graph = core.read_model(onnx_file(args))
    names = [i.any_name for i in graph.inputs if i.any_name != "token"]
    apply_make_stateful_transformation(graph, {x: "new_" + x for x in names})
    request = core.compile_model(graph, "CPU").create_infer_request()
    model, token = filled(args)
    past = dict(zip(names, (ov.Tensor(x.numpy()) for x in past_of(model, args.position))))
    states = [(s, next(past[x] for x in names if s.name.startswith(x) and not s.name[len(x):len(x) + 1].isdigit())) for s in request.query_state()]
    request.set_tensor("token", ov.Tensor(token.numpy()))

    def begin():  # the state grows with every step
        for s, value in states:
            s.state = value
    least, median = timed(request.infer, args.seconds, begin)
    return least, median, torch.from_numpy(request.get_output_tensor(0).data.copy())


def weft(args, threads):
    """(least, median, logits, bytes per second): of the compiled entry."""
    model, token = filled(args)
    state = args.folder / "state.safetensors"
    step, out = args.folder / "step.safetensors", args.folder / "logits.safetensors"
    save_file({"x.0": token, "x.1": torch.tensor([args.position])}, step)
    save_file({name: v.contiguous() for name, v in model.named_buffers() if name.endswith("_cache")}, state)
    subprocess.run([args.weft, "run", args.folder / "decoder.so", "--entry", "decode", "--inputs", step, "--load-state", state, "--outputs", out,
                    "--threads", str(threads)], check=True, capture_output=True)
    done = subprocess.run([args.weft, "bench", args.folder / "decoder.so", "--entry", "decode", "--inputs", step, "--threads", str(threads), "--seconds",
                           str(args.seconds), "--no-op-by-op", "--json"], check=True, capture_output=True, text=True)
    report = json.loads(done.stdout)
    row = report["rows"][0]
    return row["min_ms"], row["median_ms"], next(iter(load_file(out).values())), report["machine"][0]["bytes"]


def one(args):
    """A row, in this process."""
    y = {"weft": weft, "eager": eager, "onnxruntime": onnxruntime, "openvino": openvino}[args.one](args, int(args.threads))
    save_file({"y": y[2].contiguous()}, args.folder / f"{args.one}.logits")
    print(json.dumps([y[0], y[1], *y[3:]]))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=Path)
    p.add_argument("weft", type=lambda path: str(Path(path).resolve()))
    p.add_argument("--size", choices=list(SIZES), default="base")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--position", type=int, default=128)
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--one", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.one:
        return one(args)
    so = args.folder / "decoder.so"
    subprocess.run([args.weft, "compile", f"prefill={args.folder}/prefill.pt2", f"decode={args.folder}/decode.pt2", "-o", so], check=True, capture_output=True)
    model = make(args.size)
    weights = 4 * sum(v.numel() for v in model.parameters())
    cache = 4 * sum(v.numel() for n, v in model.named_buffers() if n.endswith("_cache"))
    print(f"{so.name} {so.stat().st_size / 1e6:.0f} MB, weights {weights / 1e6:.0f} MB, cache {cache / 1e6:.1f} MB, position {args.position}")
    for threads in args.threads.split(","):
        speed = None
        for peer in ("weft", *PEERS):
            command = [sys.executable, __file__, args.folder, args.weft, "--size", args.size, "--threads", threads, "--position", str(args.position),
                       "--seconds", str(args.seconds), "--one", peer]
            done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS=threads))
            if done.returncode:
                print(f"{threads} threads {peer}: {done.stderr.strip().splitlines()[-1:]}")
                continue
            least, median, *rest = json.loads(done.stdout.splitlines()[-1])
            speed = rest[0] if rest else speed
            logits = {x: load_file(args.folder / f"{x}.logits")["y"].flatten() for x in (peer, "weft")}
            apart = (logits[peer] - logits["weft"]).abs().max().item()
            bound = f", {1e-3 * least * speed / (weights + cache):.2f} and {1e-3 * median * speed / (weights + cache):.2f} times the bytes at {speed / 1e9:.1f} GB/s" \
                if speed else ""
            print(f"{threads} threads {peer:12} least {least:8.3f} ms, median {median:8.3f} ms{bound}, logits {apart:.2g} from weft's", flush=True)


if __name__ == "__main__":
    main()
