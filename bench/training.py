"""A step of training against PyTorch's: PYTHON bench/training.py WEFT [NAME...], with a Python that has torch and safetensors.

Each case is a block in training mode with a loss. `weft compile --grad=params` makes its entries forward_saving and backward, which are timed
one after the other (the least time of `weft bench` for each, added), for each memory budget of --budgets (- is none given); beside them
PyTorch's forward and backward in eager mode and, with --inductor, through torch.compile. Printed are milliseconds, the ratio to eager, and what is
saved between forward and backward: weft's tensors `saved.K`, what AOTAutograd's partitioner saves where --inductor is given; parameters and inputs
are not counted. Nothing else may run on the machine. WEFT is to be a release build. --list prints the names."""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

warnings.filterwarnings("ignore")


class Loss(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x).square().mean()


class Block(nn.Module):
    """Of a GPT: attention and a network of two layers, each behind a norm and with a residual."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm(x)).split(w, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, w)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.path = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        return F.relu(x + self.path(x))


class Recurrent(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lstm = nn.LSTM(width, width, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


class Words(nn.Module):
    """Cross entropy of embedded numbers."""

    def __init__(self, words, width):
        super().__init__()
        self.words, self.table, self.out = words, nn.Embedding(words, width), nn.Linear(width, words)

    def forward(self, x):
        i = (x.abs() * 1000).long() % self.words
        return F.cross_entropy(self.out(self.table(i)).flatten(0, 1), i.flatten())


# name: layers under a mean of squares, input
CASES = {
    "mlp": (lambda: [nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 64)], (64, 256)),
    "gpt": (lambda: [Block(256, 4), Block(256, 4)], (4, 128, 256)),
    "resnet": (lambda: [Residual(32), Residual(32)], (8, 32, 28, 28)),
    "norms": (lambda: [nn.LayerNorm(512), nn.SiLU(), nn.LayerNorm(512), nn.Softmax(-1), nn.Dropout(0)], (512, 512)),
    "mobile": (lambda: [nn.Conv2d(32, 128, 1), nn.BatchNorm2d(128), nn.Hardswish(), nn.Conv2d(128, 128, 3, padding=1, groups=128), nn.BatchNorm2d(128),
                        nn.Hardswish(), nn.Conv2d(128, 32, 1), nn.BatchNorm2d(32)], (8, 32, 28, 28)),
    "strided": (lambda: [nn.Conv2d(3, 64, 7, stride=2, padding=3), nn.GroupNorm(8, 64), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(64, 128, 3, stride=2, padding=1),
                         nn.SiLU(), nn.AvgPool2d(2)], (4, 3, 112, 112)),
    "unet": (lambda: [nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
                      nn.ConvTranspose2d(64, 32, 2, stride=2), nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(32, 16, 1)], (2, 16, 64, 64)),
    "lstm": (lambda: [Recurrent(128)], (8, 32, 128)),
    "words": (lambda: [Words(5000, 128)], (8, 64)),
    "conv1d": (lambda: [nn.Conv1d(64, 64, 5, padding=2), nn.GELU(), nn.Conv1d(64, 64, 5, padding=4, dilation=2), nn.GLU(1)], (8, 64, 256)),
}


def least(f, seconds):
    best, calls, start = float("inf"), 0, time.perf_counter()
    while calls < 5 or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        f()
        best, calls = min(best, time.perf_counter() - before), calls + 1
    return best * 1e3


def step_of(module, x):
    parameters = list(module.parameters())
    return lambda: torch.autograd.grad(module(x), parameters)


def weft(options, *args):
    ran = subprocess.run([options.weft, *map(str, args)], capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"weft {' '.join(map(str, args))}: {ran.stderr.strip()}")
    return ran.stdout


def entry_time(options, so, entry, values):
    text = weft(options, "bench", so, "--entry", entry, "--inputs", values, "--threads", options.threads, "--seconds", options.seconds, "--no-op-by-op")
    return float(re.search(rf"^compiled +{options.threads} +([\d.]+)", text, re.M)[1])


def outputs_of(options, so, entry):
    return next(e for e in json.loads(weft(options, "show", so, "--json"))["entries"] if e["name"] == entry)["outputs"]


def ours(options, folder, model, x, budget):
    """Milliseconds of both entries, and bytes saved between them."""
    so, values, saved, second = (folder / name for name in ("m.so", "in.safetensors", "saved.safetensors", "second.safetensors"))
    weft(options, "compile", model, "--grad=params", "-o", so, *([] if budget == "-" else ["--memory-budget", budget]))
    save_file({"x.0": x}, values)
    weft(options, "run", so, "--entry", "forward_saving", "--inputs", values, "--outputs", saved)
    got = load_file(saved)
    names = [o["name"] for o in outputs_of(options, so, "forward_saving")]
    kept = [got[f"y.{k}"] for k, name in enumerate(names) if name.startswith("saved.")]
    save_file({f"x.{k}": v.contiguous() for k, v in enumerate([x, *kept, torch.ones(())])}, second)
    forward, backward = entry_time(options, so, "forward_saving", values), entry_time(options, so, "backward", second)
    return forward, backward, sum(v.numel() * v.element_size() for v in kept)


def of_input(node):
    """Is it a view of what the forward graph is given?"""
    views = ("permute", "t.default", "transpose", "view", "reshape", "expand", "unsqueeze", "squeeze", "slice", "alias")
    while node.op == "call_function" and any(v in str(node.target) for v in views):
        node = node.args[0]
    return node.op == "placeholder"


def inductor(options, module, x):
    """Milliseconds, and bytes that AOTAutograd's partitioner saves, but for inputs, parameters and their views."""
    import torch._functorch.config
    import torch._inductor.compile_fx as compile_fx
    torch._functorch.config.enable_autograd_cache = False # what comes out of it was not counted
    partition, saved = compile_fx.min_cut_rematerialization_partition, []

    def count(*args, **kwargs):
        forward, backward = partition(*args, **kwargs)
        nodes = {n.name: n for n in forward.graph.nodes}
        kept = {n.name for n in backward.graph.find_nodes(op="placeholder") if n.name in nodes and not of_input(nodes[n.name])}
        values = [nodes[name].meta["val"] for name in kept]
        saved.append(sum(v.numel() * v.element_size() for v in values if isinstance(v, torch.Tensor)))
        return forward, backward

    compile_fx.min_cut_rematerialization_partition = count
    torch._dynamo.reset() # else it gives up compiling after some cases
    try:
        step = step_of(torch.compile(module, dynamic=False), x)
        step()
        return least(step, options.seconds), sum(saved)
    finally:
        compile_fx.min_cut_rematerialization_partition = partition


def row(name, what, forward, backward, eager, saved):
    both = f"{forward:9.3f} {backward:9.3f}" if backward else f"{'':9} {'':9}"
    kb = f"{saved / 1e3:10.1f}" if saved is not None else ""
    total = forward + (backward or 0)
    print(f"{name:8} {what:10} {both} {total:9.3f} {total / eager:7.2f} {kb}", flush=True)


def compare(options, name, folder):
    layers, shape = CASES[name]
    torch.manual_seed(0)
    module, x = Loss(*layers()), torch.randn(shape)
    model = folder / "m.pt2"
    torch.export.save(torch.export.export(module, (x,)), model)
    eager = least(step_of(module, x), options.seconds)
    row(name, "eager", eager, None, eager, None)
    if options.inductor:
        ms, saved = inductor(options, module, x)
        row(name, "inductor", ms, None, eager, saved)
    for budget in options.budgets.split(","):
        forward, backward, saved = ours(options, folder, model, x, budget)
        row(name, f"weft {budget}", forward, backward, eager, saved)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("weft", nargs="?", type=lambda s: pathlib.Path(s).resolve())
    p.add_argument("name", nargs="*")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=1, help="for each time")
    p.add_argument("--budgets", default="-", help="such as -,0.7,0.5")
    p.add_argument("--inductor", action="store_true")
    p.add_argument("--list", action="store_true")
    options = p.parse_intermixed_args()
    if options.list:
        print(*CASES, sep="\n")
        return 0
    unknown = [n for n in options.name if n not in CASES]
    if not options.weft or unknown:
        p.error(f"no case {unknown[0]}; --list prints them" if unknown else "expected WEFT")
    torch.set_num_threads(options.threads)
    print(f"{'':8} {'':10} {'forward':>9} {'backward':>9} {'ms':>9} {'ratio':>7} {'saved kB':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.name or CASES:
            compare(options, name, pathlib.Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
