"""Single operators against PyTorch's eager mode: PYTHON bench/operators.py WEFT [NAME...], with a Python that has torch and safetensors.

Each case is a module of one operator (or few) of the size that networks have, exported alone. Printed are the least time of eager calls,
the least of `weft bench`, their ratio (above 1: ours is slower), and how much longer the same takes one operator after the other. The
two are measured one after the other in one process each, so on a machine that does other work only ratios far from 1 mean anything:
--above 1.5 prints those only. WEFT is to be a release build. --list prints the names."""
import argparse
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
from safetensors.torch import save_file

warnings.filterwarnings("ignore")
torch.manual_seed(0)
R, U, I = torch.randn, torch.rand, torch.randint


class Function(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *args):
        return self.f(*args)


def causal(a):
    return a.masked_fill(torch.ones(256, 256, dtype=torch.bool).triu(1), -float("inf")).softmax(-1)


def attention(mask):
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=mask)


# name: module or function, inputs
CASES = {
    # convolutions
    "conv1d": (nn.Conv1d(64, 64, 5, padding=2), (R(4, 64, 512),)),
    "conv3d": (nn.Conv3d(16, 32, 3, padding=1), (R(1, 16, 16, 28, 28),)),
    "conv_dil": (nn.Conv2d(64, 64, 3, padding=4, dilation=4), (R(1, 64, 56, 56),)),
    "conv_g4": (nn.Conv2d(64, 64, 3, padding=1, groups=4), (R(1, 64, 56, 56),)),
    "conv_g32": (nn.Conv2d(128, 128, 3, padding=1, groups=32), (R(1, 128, 28, 28),)),
    "convT2d": (nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1), (R(1, 64, 28, 28),)),
    "convT1d": (nn.ConvTranspose1d(64, 32, 16, stride=8, padding=4), (R(1, 64, 256),)),
    "dw1d": (nn.Conv1d(256, 256, 7, padding=3, groups=256), (R(4, 256, 256),)),
    "dwT": (nn.ConvTranspose2d(64, 64, 4, stride=2, padding=1, groups=64), (R(1, 64, 28, 28),)),
    "conv7s2": (nn.Conv2d(3, 64, 7, stride=2, padding=3), (R(1, 3, 224, 224),)),
    "conv_b8": (nn.Conv2d(64, 128, 3, padding=1), (R(8, 64, 28, 28),)),
    # pooling
    "maxpool": (nn.MaxPool2d(3, 2, 1), (R(4, 64, 112, 112),)),
    "avgpool": (nn.AvgPool2d(3, 1, 1), (R(4, 64, 56, 56),)),
    "adaptavg": (nn.AdaptiveAvgPool2d(7), (R(4, 256, 30, 30),)),
    "gap": (nn.AdaptiveAvgPool2d(1), (R(8, 512, 28, 28),)),
    "maxpool3d": (nn.MaxPool3d(2), (R(2, 32, 16, 32, 32),)),
    # normalisation, activations
    "bn_eval": (nn.BatchNorm2d(64).eval(), (R(8, 64, 56, 56),)),
    "ln": (nn.LayerNorm(768), (R(8, 128, 768),)),
    "ln_small": (nn.LayerNorm(32), (R(64, 256, 32),)),
    "gn": (nn.GroupNorm(32, 256), (R(4, 256, 28, 28),)),
    "inorm": (nn.InstanceNorm2d(64), (R(4, 64, 56, 56),)),
    "rms": (nn.RMSNorm(1024), (R(8, 128, 1024),)),
    "softmax": (nn.Softmax(-1), (R(8, 12, 128, 128),)),
    "softmax1": (nn.Softmax(1), (R(8, 21, 64, 64),)),
    "logsoftmax": (nn.LogSoftmax(-1), (R(128, 32000),)),
    "gelu": (nn.GELU(), (R(8, 128, 3072),)),
    "silu": (nn.SiLU(), (R(8, 128, 3072),)),
    "mish": (nn.Mish(), (R(8, 64, 56, 56),)),
    "prelu": (nn.PReLU(64), (R(8, 64, 56, 56),)),
    "glu": (nn.GLU(1), (R(8, 128, 56, 56),)),
    # attention, products
    "sdpa": (attention(False), (R(4, 12, 256, 64), R(4, 12, 256, 64), R(4, 12, 256, 64))),
    "sdpa_c": (attention(True), (R(1, 12, 1024, 64), R(1, 12, 1024, 64), R(1, 12, 1024, 64))),
    "mha": (nn.MultiheadAttention(256, 8, batch_first=True).eval(), (R(4, 128, 256),)*3),
    "mm512": (torch.mm, (R(512, 512), R(512, 512))),
    "mm_tall": (torch.mm, (R(4096, 64), R(64, 64))),
    "mm_tn": (lambda a, b: a.t()@b, (R(2048, 128), R(2048, 128))),
    "mm_nt": (lambda a, b: a@b.t(), (R(512, 512), R(512, 512))),
    "mv": (torch.mv, (R(2048, 2048), R(2048))),
    "bmm": (torch.bmm, (R(64, 64, 64), R(64, 64, 64))),
    "einsum": (lambda a, b: torch.einsum("bhid, bhjd->bhij", a, b), (R(4, 8, 128, 64), R(4, 8, 128, 64))),
    "outer": (torch.outer, (R(1024), R(1024))),
    "linear": (nn.Linear(768, 3072), (R(8, 128, 768),)),
    "linear1": (nn.Linear(1024, 4096), (R(1, 1024),)),
    "bilinear_l": (nn.Bilinear(64, 64, 32), (R(256, 64), R(256, 64))),
    "cdist": (torch.cdist, (R(512, 64), R(512, 64))),
    "bf16_lin": (nn.Linear(512, 512).bfloat16(), (R(128, 512).bfloat16(),)),
    "f64_mm": (torch.mm, (R(256, 256).double(), R(256, 256).double())),
    "i8mm": (torch._int_mm, (I(-128, 127, (256, 256), dtype=torch.int8), I(-128, 127, (256, 256), dtype=torch.int8))),
    # moves
    "transpose": (lambda a: a.t().contiguous(), (R(1024, 1024),)),
    "permute": (lambda a: a.permute(0, 2, 3, 1).contiguous(), (R(4, 64, 56, 56),)),
    "permute2": (lambda a: a.permute(0, 3, 1, 2).contiguous(), (R(4, 56, 56, 64),)),
    "heads": (lambda a: a.view(8, 128, 12, 64).transpose(1, 2).contiguous(), (R(8, 128, 768),)),
    "cat": (lambda a, b, c: torch.cat([a, b, c], 1), (R(8, 64, 56, 56),)*3),
    "cat_last": (lambda a, b: torch.cat([a, b], -1), (R(1024, 300), R(1024, 200))),
    "stack": (lambda a, b: torch.stack([a, b], -1), (R(1024, 512), R(1024, 512))),
    "pad": (lambda a: F.pad(a, (1, 1, 1, 1)), (R(8, 64, 56, 56),)),
    "reflect": (lambda a: F.pad(a, (3, 3, 3, 3), mode="reflect"), (R(4, 32, 64, 64),)),
    "roll": (lambda a: torch.roll(a, (3, 3), (1, 2)), (R(4, 56, 56, 96),)),
    "flip": (lambda a: a.flip(-1), (R(1024, 1024),)),
    "tril": (torch.tril, (R(1024, 1024),)),
    "pixshuf": (nn.PixelShuffle(2), (R(2, 64, 64, 64),)),
    "unfold": (nn.Unfold(3, padding=1), (R(2, 32, 56, 56),)),
    "fold": (nn.Fold((56, 56), 3, padding=1), (R(2, 288, 3136),)),
    "swin": (lambda x: x.view(1, 8, 7, 8, 7, 96).permute(0, 1, 3, 2, 4, 5).reshape(64, 49, 96), (R(1, 56, 56, 96),)),
    "tril_mask": (causal, (R(8, 8, 256, 256),)),
    # reductions, order
    "sum_all": (torch.sum, (R(4, 1024, 1024),)),
    "sum0": (lambda a: a.sum(0), (R(1024, 1024),)),
    "sum1": (lambda a: a.sum(1), (R(1024, 1024),)),
    "mean12": (lambda a: a.mean((2, 3)), (R(8, 256, 28, 28),)),
    "var": (lambda a: a.var(-1), (R(1024, 1024),)),
    "amax": (lambda a: a.amax(-1), (R(1024, 1024),)),
    "argmax": (lambda a: a.argmax(-1), (R(1024, 1024),)),
    "argmax0": (lambda a: a.argmax(1), (R(4, 21, 128, 128),)),
    "maxdim": (lambda a: a.max(-1), (R(1024, 1024),)),
    "cumsum": (lambda a: a.cumsum(-1), (R(1024, 1024),)),
    "cumsum0": (lambda a: a.cumsum(0), (R(1024, 1024),)),
    "cumprod": (lambda a: a.cumprod(-1), (R(256, 1024),)),
    "logcumsumexp": (lambda a: a.logcumsumexp(-1), (R(256, 1024),)),
    "sort": (lambda a: a.sort(-1), (R(256, 1024),)),
    "topk": (lambda a: a.topk(10, -1), (R(256, 1024),)),
    "topk_v": (lambda a: a.topk(50, -1), (R(8, 32000),)),
    "norm": (lambda a: a.norm(dim=-1), (R(1024, 1024),)),
    "normalize": (lambda a: F.normalize(a, dim=1), (R(8, 256, 28, 28),)),
    "cos": (nn.CosineSimilarity(1), (R(1024, 512), R(1024, 512))),
    # by index, by data
    "gather": (lambda a, i: a.gather(1, i), (R(1024, 1024), I(0, 1024, (1024, 256)))),
    "index": (lambda a, i: a[i], (R(10000, 256), I(0, 10000, (2048,)))),
    "index_last": (lambda a, i: a[:, i], (R(1024, 1024), I(0, 1024, (512,)))),
    "embedding": (nn.Embedding(30000, 768), (I(0, 30000, (8, 128)),)),
    "embbag": (nn.EmbeddingBag(10000, 64, mode="sum"), (I(0, 10000, (256, 20)),)),
    "index_add": (lambda a, i, s: a.index_add(0, i, s), (R(1000, 128), I(0, 1000, (4096,)), R(4096, 128))),
    "scatter_add": (lambda a, i, s: a.scatter_add(1, i, s), (R(512, 512), I(0, 512, (512, 1024)), R(512, 1024))),
    "index_put": (lambda a, i, v: a.index_put((i,), v), (R(10000, 64), torch.randperm(10000)[:2048], R(2048, 64))),
    "masked_fill": (lambda a, m: a.masked_fill(m, -1e9), (R(8, 12, 128, 128), U(8, 1, 128, 128)>.5)),
    "where": (lambda c, a, b: torch.where(c, a, b), (U(1024, 1024)>.5, R(1024, 1024), R(1024, 1024))),
    "onehot": (lambda a: F.one_hot(a, 1000).float(), (I(0, 1000, (512,)),)),
    "nonzero": (lambda a: torch.nonzero(a>1), (R(512, 1024),)),
    "unique": (lambda a: torch.unique(a), (I(0, 1000, (20000,)),)),
    "bincount": (lambda a: torch.bincount(a, minlength=1000), (I(0, 1000, (100000,)),)),
    "searchsorted": (torch.searchsorted, (torch.sort(R(10000))[0], R(50000))),
    # resampling, recurrent
    "bilinear": (lambda a: F.interpolate(a, scale_factor=2, mode="bilinear", align_corners=False), (R(2, 64, 56, 56),)),
    "nearest": (lambda a: F.interpolate(a, scale_factor=2), (R(2, 64, 56, 56),)),
    "bicubic": (lambda a: F.interpolate(a, scale_factor=2, mode="bicubic"), (R(1, 16, 64, 64),)),
    "grid": (lambda a, g: F.grid_sample(a, g, align_corners=False), (R(2, 32, 64, 64), U(2, 64, 64, 2)*2-1)),
    "lstm": (nn.LSTM(128, 128, batch_first=True), (R(4, 64, 128),)),
    "gru": (nn.GRU(128, 128, batch_first=True), (R(4, 64, 128),)),
    # element by element
    "exp": (torch.exp, (R(1024, 1024),)),
    "tanh": (torch.tanh, (R(1024, 1024),)),
    "sin": (torch.sin, (R(1024, 1024),)),
    "log": (lambda a: torch.log(a.abs()+1e-3), (R(1024, 1024),)),
    "pow": (lambda a: a.abs()**1.7, (R(1024, 1024),)),
    "erfinv": (torch.erfinv, (U(512, 1024)*1.8-.9,)),
    "lgamma": (torch.lgamma, (U(512, 1024)*9+.1,)),
    "atan2": (torch.atan2, (R(1024, 512), R(1024, 512))),
    "divint": (lambda a, b: a//b, (I(0, 1000, (1024, 512)), I(1, 50, (1024, 512)))),
    "u8norm": (lambda a: (a.float()/255-0.45)/0.22, (I(0, 256, (8, 3, 224, 224), dtype=torch.uint8),)),
    "add_b": (lambda a, b: a+b, (R(8, 256, 28, 28), R(256, 1, 1))),
    "half_add": (lambda a, b: a+b, (R(1024, 1024).half(), R(1024, 1024).half())),
    "complex": (lambda a, b: a*b, (torch.randn(512, 512, dtype=torch.complex64),)*2),
    # losses
    "ce": (nn.CrossEntropyLoss(), (R(512, 1000), I(0, 1000, (512,)))),
    "mse": (nn.MSELoss(), (R(1024, 1024), R(1024, 1024))),
}


def eager_time(module, args, seconds):
    """The least time of a call, in ms."""
    best, calls, start = float("inf"), 0, time.perf_counter()
    with torch.no_grad():
        while calls < 5 or time.perf_counter() - start < seconds:
            before = time.perf_counter()
            module(*args)
            best, calls = min(best, time.perf_counter() - before), calls + 1
    return best * 1e3


def compare(name, options, folder):
    """A line about one case, and its ratio, none where there is none."""
    what, args = CASES[name]
    module = (what if isinstance(what, nn.Module) else Function(what)).eval()
    model, values = folder / f"{name}.pt2", folder / f"{name}.safetensors"
    torch.export.save(torch.export.export(module, args), model)
    save_file({f"x.{k}": x.clone().contiguous() for k, x in enumerate(args)}, values)
    eager = eager_time(module, args, options.seconds)
    ran = subprocess.run([options.weft, "bench", model, "--inputs", values, "--threads", str(options.threads)], capture_output=True, text=True)
    found = {row: re.search(rf"^{row} +{options.threads} +([\d.]+)", ran.stdout, re.M) for row in ("compiled", "op by op")}
    if not found["compiled"]:
        return f"{name:14} {(ran.stderr or ran.stdout).strip()[:150]}", None
    ours = float(found["compiled"][1])
    apart = f"{float(found['op by op'][1]) / ours:10.2f}" if found["op by op"] else ""
    return f"{name:14} {eager:10.4f} {ours:10.4f} {ours / eager:8.2f} {apart}", ours / eager


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("weft", nargs="?", type=lambda s: pathlib.Path(s).resolve())
    p.add_argument("name", nargs="*")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=0.6, help="of eager calls, for each case")
    p.add_argument("--above", type=float, default=0, help="print cases of a greater ratio only")
    p.add_argument("--list", action="store_true")
    options = p.parse_args()
    if options.list:
        print(*CASES, sep="\n")
        return 0
    unknown = [n for n in options.name if n not in CASES]
    if not options.weft or unknown:
        p.error(f"no case {unknown[0]}; --list prints them" if unknown else "expected WEFT")
    torch.set_num_threads(options.threads)
    print(f"{'':14} {'eager ms':>10} {'weft ms':>10} {'ratio':>8} {'op by op':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.name or CASES:
            line, ratio = compare(name, options, pathlib.Path(folder))
            if ratio is None or ratio > options.above:
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
