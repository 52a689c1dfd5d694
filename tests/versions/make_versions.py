"""Small models as this Python's PyTorch exports them, any version from 2.5 on: make_versions.py DEST [NAME...]. Each NAME.pt2 comes
with NAME.calls.safetensors: of calls of one eager module, one after the other, <k>.x.<i> inputs, <k>.y.<i> results and <k>.b.<name>
what the call changed. Sample inputs and names of directories are dropped, and files are stored, so that those of versions compress
together: make_versions.sh makes tests/versions/versions.tar.xz of them. Needs torch alone."""
import copy
import json
import re
import sys
import warnings
import zipfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim, export
from torch.utils._pytree import tree_leaves

warnings.filterwarnings("ignore")

TYPES = {torch.float32: "F32", torch.float64: "F64", torch.bfloat16: "BF16", torch.float16: "F16", torch.int64: "I64", torch.int32: "I32",
         torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}


class Mlp(nn.Module):
    """Batch norm and dropout; a linear layer without bias, one that does not learn."""

    def __init__(s):
        super().__init__()
        s.layers = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.25), nn.Linear(8, 5, bias=False), nn.GELU(), nn.Linear(5, 3))
        s.layers[6].weight.requires_grad_(False)
        s.layers[1].running_mean.copy_(torch.randn(8))

    def forward(s, x):
        return s.layers(x)


class ConvNet(nn.Module):
    """Convolutions, pooling, a transposed weight, sizes in a reshape."""

    def __init__(s):
        super().__init__()
        s.first, s.norm, s.second = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3, stride=2, groups=2, bias=False)
        s.weight = nn.Parameter(torch.randn(4, 3).t())

    def forward(s, x):
        y = F.max_pool2d(torch.relu(s.norm(s.first(x))), 2)
        y = F.avg_pool2d(F.pad(y, (1, 1, 1, 1)), 2, 1)
        y = F.adaptive_avg_pool2d(F.silu(s.second(y)), 1)
        return F.linear(y.reshape(x.shape[0], 4), s.weight).softmax(-1)


class Attention(nn.Module):
    """Layer norm and attention, causal and with a mask, over a batch and a sequence of any size."""

    def __init__(s):
        super().__init__()
        s.norm, s.qkv, s.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(s, x, keep):
        b, n, c = x.shape
        q, k, v = s.qkv(s.norm(x)).view(b, n, 3, 2, c // 2).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        mask = torch.zeros_like(keep, dtype=x.dtype).masked_fill(~keep, float("-inf"))[:, None, None, :]
        y = y + F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return {"y": x + s.out(y.transpose(1, 2).reshape(b, n, c)), "scores": (q @ k.transpose(-2, -1)).amax(-1)}


class Recurrent(nn.Module):
    """An embedding, a GRU, an LSTM of two layers, and what is computed of its last states, whose shapes files of PyTorch before
    2.13 tell wrongly."""

    def __init__(s):
        super().__init__()
        s.embedding, s.gru, s.lstm = nn.Embedding(11, 4, padding_idx=0), nn.GRU(4, 3), nn.LSTM(3, 2, 2, batch_first=True, bidirectional=True)
        s.out, s.dropout = nn.Linear(2, 3), nn.Dropout(0.1)

    def forward(s, i):
        y, h = s.gru(s.embedding(i))
        z, (last, c) = s.lstm(y)
        return z, h, c, s.out(s.dropout(last[-1]))


class State(nn.Module):
    """Buffers that are written: a counter, rows of a cache, one that is not in the state dictionary; in-place operators and views."""

    def __init__(s):
        super().__init__()
        s.register_buffer("count", torch.zeros((), dtype=torch.int64))
        s.register_buffer("cache", torch.zeros(4, 3))
        s.register_buffer("mean", torch.ones(3), persistent=False)
        s.scale = nn.Parameter(torch.rand(3))

    def forward(s, x):
        s.count.add_(1)
        s.cache[1:3] = x
        s.mean.mul_(0.5).add_(x.mean(0))
        y = x.clone()
        y[:, 0].add_(s.mean[1])
        y.t()[2].clamp_(min=0)
        return y * s.scale + s.cache.sum(), s.count * 2


class Branch(nn.Module):
    """torch.cond on data, with parameters in both branches."""

    def __init__(s):
        super().__init__()
        s.linear = nn.Linear(3, 3)

    def forward(s, x):
        return torch.cond(x.sum() > 0, lambda x: s.linear(x).sin(), lambda x: s.linear(x - 1), (x,))


class Dtypes(nn.Module):
    """Integers, bytes, truths, halves and bf16, and conversions between them."""

    def __init__(s):
        super().__init__()
        s.linear = nn.Linear(4, 3).bfloat16()
        s.small = nn.Parameter(torch.randn(3).half())
        s.register_buffer("table", torch.arange(12, dtype=torch.int32).reshape(3, 4))
        s.register_buffer("bytes", torch.tensor([1, 0, 255], dtype=torch.uint8))
        s.register_buffer("keep", torch.tensor([True, False, True, True]))

    def forward(s, x, i):
        y = s.linear(x.to(torch.bfloat16)).float() + s.small.to(torch.float32)
        k = (s.table[i.long() % 3] // 2) * s.keep
        return y, k.sum(-1), s.bytes.int() - i.sum(), (x > 0).any(1), x.double().sum(), k.to(torch.int8)


class Tied(nn.Module):
    """One weight under two names, and a buffer that is a view of another one."""

    def __init__(s):
        super().__init__()
        s.embedding, s.head = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
        s.head.weight = s.embedding.weight
        s.register_buffer("both", torch.randn(2, 4))
        s.register_buffer("first", s.both[0])

    def forward(s, i):
        return s.head(s.embedding(i) * s.first + s.both[1])


class Constants(nn.Module):
    """Tensors that are neither parameters nor buffers."""

    def __init__(s):
        super().__init__()
        s.table = torch.linspace(-1, 1, 5)

    def forward(s, x):
        return x.amax(0) + s.table, x * torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), x.masked_fill(x > 1, float("-inf"))


class Infinities(nn.Module):
    """Numbers that JSON does not have. PyTorch 2.7 and 2.8 refuse to save them."""

    def forward(s, x):
        y = torch.nan_to_num(x / x.sign(), nan=0.5, posinf=float("inf"))
        return torch.where(x > 0.5, x, float("-inf")).amax(0), y, torch.full((2,), float("nan")).isnan()


class Training(nn.Module):
    """A loss in training: a batch norm whose statistics move."""

    def __init__(s):
        super().__init__()
        s.linear, s.norm, s.out = nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3)

    def forward(s, x, label):
        return F.cross_entropy(s.out(torch.relu(s.norm(s.linear(x)))), label)


def cases():
    """name: module, calls, dynamic sizes, how it is exported."""
    r, batch, seq = torch.randn, Dim("batch", min=1, max=64), Dim("seq", min=2, max=32)
    keep = torch.tensor([[True, True, False, True], [True, False, True, False]])
    attention = [(r(2, 4, 8), keep), (r(1, 5, 8), torch.ones(1, 5, dtype=torch.bool)), (r(3, 2, 8), torch.ones(3, 2, dtype=torch.bool))]
    sizes = {"x": {0: batch, 1: seq}, "keep": {0: batch, 1: seq}}
    ids = torch.tensor([[1, 10], [0, 3], [5, 5]])
    training = getattr(torch.export, "export_for_training", export)
    return {
        "mlp": (Mlp().eval(), [(r(4, 6),), (r(1, 6),), (r(7, 6),)], {"x": {0: batch}}, export),
        "convnet": (ConvNet().eval(), [(r(2, 2, 8, 8),), (r(3, 2, 8, 8),)], {"x": {0: batch}}, export),
        "attention": (Attention().eval(), attention, sizes, export),
        "attention_decomposed": (Attention().eval(), attention, sizes, lambda *a, **k: export(*a, **k).run_decompositions()),
        "recurrent": (Recurrent().eval(), [(ids,), (ids.flip(0),)], None, export),
        "state": (State(), [(r(2, 3),), (r(2, 3),), (r(2, 3),)], None, export),
        "state_decomposed": (State(), [(r(2, 3),), (r(2, 3),)], None, lambda *a, **k: export(*a, **k).run_decompositions()),
        "branch": (Branch(), [(torch.ones(2, 3),), (-torch.ones(2, 3),)], None, export),
        "dtypes": (Dtypes(), [(r(2, 4), torch.tensor([0, 4], dtype=torch.int32))], None, export),
        "tied": (Tied(), [(torch.tensor([[1, 6], [0, 3]]),)], None, export),
        "constants": (Constants(), [(torch.tensor([[1.0, 0.0, 3.0, -1.0, 0.7], [0.2, 0.6, -2.0, -3.0, 0.9]]),)], None, export),
        "infinities": (Infinities(), [(torch.tensor([[1.0, 0.0, 3.0], [0.2, -0.6, -2.0]]),)], None, export),
        "training": (Training().train(), [(r(4, 4), torch.tensor([0, 2, 1, 1])), (r(4, 4), torch.tensor([1, 2, 0, 0]))], None, training),
    }


def strip(value):
    """Of a node's metadata only the stack trace and the module are kept, without directories and addresses."""
    if isinstance(value, list):
        return [strip(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "stack_trace" in value:
        kept = {"stack_trace": re.sub(r'File "/[^"]*/', 'File "', re.sub(r'File "[^"]*/site-packages/', 'File "', value["stack_trace"]))}
        if "nn_module_stack" in value:
            kept["nn_module_stack"] = re.sub(r"(^|;)[0-9]+,", r"\1L,", value["nn_module_stack"])
        return kept
    return {k: strip(v) for k, v in value.items()}


def rewrite(src, dst):
    with zipfile.ZipFile(src) as a, zipfile.ZipFile(dst, "w") as b:
        for name in a.namelist():
            if "sample_inputs" in name or "example_inputs" in name or "serialization_id" in name:
                continue
            data = a.read(name)
            if name.endswith(".json"):
                data = json.dumps(strip(json.loads(data)), separators=(",", ":")).encode()
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            pad = -(b.fp.tell() + 30 + len(name) + 4) % 64
            if "/" in name:  # torch.export.save aligns members in folders alone
                info.extra = b"FB" + pad.to_bytes(2, "little") + b"Z" * pad
            b.writestr(info, data)


def write_tensors(path, tensors):
    header, body = {}, b""
    for name, x in tensors.items():
        flat = x.detach().clone().contiguous().view(-1)
        data = bytes(flat.view(torch.uint8).tolist())
        header[name] = {"dtype": TYPES[x.dtype], "shape": list(x.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def make(dest, name, module, calls, dynamic, how):
    passed = tuple(x.clone() for x in calls[0])
    program = how(copy.deepcopy(module), passed, dynamic_shapes=dynamic)
    whole = dest / "whole.pt2"
    torch.export.save(program, whole)
    rewrite(whole, dest / f"{name}.pt2")
    whole.unlink()
    tensors = {}
    for k, args in enumerate(calls):
        before = {key: x.detach().clone() for key, x in module.named_buffers()}
        with torch.no_grad():
            results = tree_leaves(module(*(x.clone() for x in args)))
        tensors.update({f"{k}.x.{i}": x for i, x in enumerate(args)})
        tensors.update({f"{k}.y.{i}": y.clone() for i, y in enumerate(results)})
        tensors.update({f"{k}.b.{key}": x.clone() for key, x in module.named_buffers() if not torch.equal(x, before[key])})
    write_tensors(dest / f"{name}.calls.safetensors", tensors)


def main():
    dest, names = Path(sys.argv[1]), sys.argv[2:]
    dest.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    bad = 0
    for name, case in cases().items():
        if names and name not in names:
            continue
        try:
            make(dest, name, *case)
        except Exception as e:  # this version cannot export it
            bad += 1
            print(f"{name}: PyTorch {torch.__version__}: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}", file=sys.stderr)
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
