"""Attention beside PyTorch, OpenVINO and ONNX Runtime: attention.py WEFT FOLDER [--cases NAME,...] [--threads N] [--rounds R] [--backward]
Cases are SHAPE-DTYPE-FORM: SHAPE is HEADSxKEYHEADSxROWSxKEYSxWIDTH, DTYPE f32 or bf16, FORM full, causal, mask (causal, as a tensor of
bool), bias (causal, as a tensor of 0 and -inf) or filledN (an input says that N positions of a cache are filled; maskN: a tensor), or
dropout (full, a tenth is dropped). Writes files into FOLDER, compiles them, and prints the least time of a call in
alternating rounds, in milliseconds: Weft, eager mode, Inductor, OpenVINO, ONNX Runtime, and the best peer's time divided by
Weft's. With --backward, that of the gradients of queries, keys and values, of what forward has saved, beside eager mode and Inductor. Needs torch, onnx, onnxruntime, openvino and Weft's package (build/python)."""
import argparse
import os
import pathlib
import subprocess
import sys
import time

CASES = ("12x12x128x128x64-f32-full,12x12x128x128x64-f32-causal,12x12x1024x1024x64-f32-full,12x12x1024x1024x64-f32-causal,"
         "12x12x1024x1024x64-f32-mask,12x12x1024x1024x64-f32-bias,32x8x1024x1024x128-f32-causal,12x12x4096x4096x64-f32-full,"
         "12x12x4096x4096x64-f32-causal,12x12x1024x1024x64-bf16-full,12x12x1024x1024x64-bf16-causal")


def prepare(args, name, torch):
    """{engine: call without arguments}."""
    import weft
    from torch.nn.functional import scaled_dot_product_attention as attend
    sizes, dtype, form = name.split("-")
    form, shown = form.rstrip("0123456789"), form.lstrip("abcdefghijklmnopqrstuvwxyz")
    heads, shared, rows, keys, width = map(int, sizes.split("x"))
    d = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, h, n, width).to(d) for h, n in ((heads, rows), (shared, keys), (shared, keys)))
    seen = torch.ones(rows, keys, dtype=torch.bool).tril((int(shown) if shown else keys) - rows)[None, None]
    mask = {"mask": seen, "bias": torch.zeros(1, 1, rows, keys).to(d).masked_fill(~seen, float("-inf"))}.get(form)
    filled = int(shown) if form == "filled" else None
    inputs = (q, k, v) if mask is None and filled is None else (q, k, v, torch.tensor([filled - rows]) if mask is None else mask)

    class Attention(torch.nn.Module):
        def forward(self, q, k, v, mask=None):
            if filled is not None:
                mask = torch.arange(keys)[None] <= mask + torch.arange(rows)[:, None]
            return attend(q, k, v, attn_mask=mask, is_causal=form == "causal", dropout_p=0.1 if form == "dropout" else 0.0, enable_gqa=heads != shared)

    module = Attention().eval()
    if args.backward:
        return backward_calls(args, name, module, inputs, torch)
    exported = args.folder / f"{name}.pt2"
    torch.export.save(torch.export.export(module, inputs), exported)
    subprocess.run([args.weft, "compile", exported, "-o", exported.with_suffix(".so")], check=True, stdout=subprocess.DEVNULL)
    model = weft.load(exported.with_suffix(".so"))
    model.threads = args.threads
    calls = {"weft": lambda: model(*inputs), "eager": lambda: module(*inputs)}
    if args.inductor:
        compiled = torch.compile(module)
        calls["inductor"] = lambda: compiled(*inputs)
    if d == torch.float32 and form != "dropout":
        calls |= onnx_engines(args, name, module, inputs, torch)
    return calls


def backward_calls(args, name, module, inputs, torch):
    import weft
    exported = args.folder / f"{name}.pt2"
    shared = args.folder / f"{name}-gradients.so"
    torch.export.save(torch.export.export(module, inputs), exported)
    subprocess.run([args.weft, "compile", exported, "--grad=inputs", "-o", shared], check=True,
                   stdout=subprocess.DEVNULL)
    entries = weft.load(shared).entries
    forward, backward = entries["forward_saving"], entries["backward"]
    forward.threads = backward.threads = args.threads
    result, *saved = (x.clone() for x in forward(*inputs))
    cotangent = torch.randn_like(result)
    leaves = [x.detach().clone().requires_grad_(k < 3) for k, x in enumerate(inputs)]

    def gradients(f):
        y = f(*leaves)
        return lambda: torch.autograd.grad(y, leaves[:3], cotangent, retain_graph=True)
    calls = {"weft": lambda: backward(*inputs, *saved, cotangent), "eager": gradients(module)}
    if args.inductor:
        torch._functorch.config.donated_buffer = False  # the graph is kept
        calls["inductor"] = gradients(torch.compile(module))
    return calls


def onnx_engines(args, name, module, inputs, torch):
    import onnxruntime
    import openvino
    path = args.folder / f"{name}.onnx"
    torch.onnx.export(module, inputs, path, dynamo=True, opset_version=23, verbose=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    arrays = [x.numpy() for x in inputs]
    fed = {i.name: x for i, x in zip(session.get_inputs(), arrays)}
    request = openvino.Core().compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": args.threads,
                                                          "INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    return {"openvino": lambda: request.infer(arrays, share_inputs=True), "onnxruntime": lambda: session.run(None, fed)}


def least(calls, rounds, seconds):
    """{engine: least seconds}, in alternating rounds."""
    best = dict.fromkeys(calls, float("inf"))
    for name, call in calls.items():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                start = time.perf_counter()
                call()
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("weft")
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--cases", default=CASES)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--seconds", type=float, default=0.3)
    p.add_argument("--inductor", action="store_true")
    p.add_argument("--backward", action="store_true")
    args = p.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import torch
    torch.set_num_threads(args.threads)
    args.folder.mkdir(exist_ok=True)
    print(f"{'':40}" + "".join(f"{n:>12}" for n in ("weft", "eager", "inductor", "openvino", "onnxruntime", "best/weft")))
    for name in args.cases.split(","):
        with torch.set_grad_enabled(args.backward):
            best = least(prepare(args, name, torch), args.rounds, args.seconds)
        ours = best.pop("weft")
        row = "".join(f"{best[n] * 1e3:12.3f}" if n in best else f"{'':12}" for n in ("eager", "inductor", "openvino", "onnxruntime"))
        print(f"{name:40}{ours * 1e3:12.3f}{row}{min(best.values()) / ours:12.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
