"""A decoder shaped like Llama with a static key-value cache, exported as two programs that share weights and cache:
prefill (any number of tokens at once) and decode (one token).

    decoder.py FOLDER                     # small, for tests: 2 layers of width 32
    decoder.py FOLDER --size base         # 12 layers of width 768

writes FOLDER/prefill.pt2 and FOLDER/decode.pt2. Both take tokens i64[1, n] and the position of the first of them, i64[1],
and return the logits that follow the last token; the cache is buffers of the module, written in place."""
import argparse
from pathlib import Path

import torch
from torch import nn
from torch.export import Dim, export
from torch.nn import functional as F

SIZES = {  # layers, width, heads, key and value heads, feed-forward, vocabulary, positions
    "tiny": (1, 8, 2, 1, 12, 16, 16),
    "small": (2, 32, 4, 2, 48, 64, 64),
    "base": (12, 768, 12, 12, 2048, 32000, 1024),
}


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Layer(nn.Module):
    def __init__(self, width, heads, kv_heads, inner, positions, batch):
        super().__init__()
        self.heads, self.kv_heads, self.dim = heads, kv_heads, width // heads
        self.norm, self.inner_norm = RmsNorm(width), RmsNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * kv_heads * self.dim, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)
        for name in "key", "value":
            self.register_buffer(f"{name}_cache", torch.zeros(batch, kv_heads, positions, self.dim))

    def forward(self, x, position, turn, seen):
        batch, n, _ = x.shape
        h = self.norm(x)
        q = self.q(h).view(batch, n, self.heads, self.dim).transpose(1, 2)
        k, v = self.kv(h).view(batch, n, 2, self.kv_heads, self.dim).unbind(2)
        self.key_cache.index_copy_(2, position, rotate(k.transpose(1, 2), turn))
        self.value_cache.index_copy_(2, position, v.transpose(1, 2))
        y = F.scaled_dot_product_attention(rotate(q, turn), self.key_cache, self.value_cache, seen,
                                           enable_gqa=self.heads != self.kv_heads)
        x = x + self.o(y.transpose(1, 2).reshape(batch, n, -1))
        h = self.inner_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def rotate(x, turn):
    """Rotary position: pairs (x[i], x[i + dim / 2]) turned by the angle of the position and i."""
    cos, sin = turn
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Decoder(nn.Module):
    def __init__(self, layers, width, heads, kv_heads, inner, vocabulary, positions, batch=1, tied=True):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, heads, kv_heads, inner, positions, batch) for _ in range(layers))
        self.norm = RmsNorm(width)
        dim = width // heads
        angle = torch.arange(positions)[:, None] * 10000.0 ** (-torch.arange(0, dim, 2) / dim)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())
        nn.init.normal_(self.table.weight, std=0.02)
        self.head = nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.table.weight

    def forward(self, tokens, start):
        position = start + torch.arange(tokens.shape[1])
        turn = self.cos[position], self.sin[position]
        seen = torch.arange(len(self.cos)) <= position[:, None]
        x = self.table(tokens)
        for layer in self.layers:
            x = layer(x, position, turn, seen)
        return self.head(self.norm(x[:, -1]))


def make(size, seed=0):
    torch.manual_seed(seed)
    return Decoder(*SIZES[size]).eval()


def programs(model, strict=False):
    """(prefill, decode): the module exported for any number of tokens, and for one."""
    n = Dim("n", min=2, max=len(model.cos))
    start = torch.tensor([0])
    batch = len(model.layers[0].key_cache)
    with torch.no_grad():
        prefill = export(model, (torch.ones(batch, 5, dtype=torch.int64), start), strict=strict,
                         dynamic_shapes={"tokens": {1: n}, "start": None})
        decode = export(model, (torch.ones(batch, 1, dtype=torch.int64), start), strict=strict)
    return prefill, decode


def greedy(run, prompt, count):
    """Tokens and logits of `count` steps of run(tokens, start); the first step is the whole prompt."""
    tokens, start, out, logits = prompt, 0, [], []
    for _ in range(count):
        y = run(tokens, torch.tensor([start]))
        start += tokens.shape[1]
        tokens = y.argmax(-1)[:, None]
        out.append(int(tokens))
        logits.append(y)
    return out, torch.cat(logits)


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=Path)
    p.add_argument("--size", choices=list(SIZES), default="small")
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, program in zip(("prefill", "decode"), programs(make(args.size, args.seed))):
        torch.export.save(program, args.folder / f"{name}.pt2")
