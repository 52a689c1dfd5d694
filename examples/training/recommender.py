"""A recommender as DLRM: tables of embeddings beside layers, of which a step reads few rows: recommender.py [--rows N] [--steps N] [--time]

Each table has N rows, and sparse=True: a step reads, and updates by Adagrad, the rows of its batch and no others, so that its time does not
depend on N. --time prints the time of a step with 10,000 rows and with N, by turns, and how many times longer the second is."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

import weft

TABLES, WIDTH, DENSE = 8, 16, 13


def layers(*sizes):
    made = [m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*made[:-1] if sizes[-1] == 1 else made)


class Recommender(nn.Module):
    """Numbers and categories of a sample; products of all pairs of their vectors; the logit that it is clicked."""

    def __init__(self, rows):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, WIDTH, mode="sum", sparse=True, _weight=torch.empty(rows, WIDTH).uniform_(-0.05, 0.05))
                                    for _ in range(TABLES))
        pairs = (TABLES + 1) * TABLES // 2
        self.bottom, self.top = layers(DENSE, 512, 256, 64, WIDTH), layers(WIDTH + pairs, 512, 256, 1)
        self.register_buffer("pair", torch.tril_indices(TABLES + 1, TABLES + 1, -1))

    def forward(self, dense, categories):
        x = self.bottom(dense)
        vectors = torch.stack([x, *(t(categories[:, k]) for k, t in enumerate(self.tables))], 1)
        products = vectors @ vectors.transpose(1, 2)
        return self.top(torch.cat([x, products[:, self.pair[0], self.pair[1]]], 1))[:, 0]


def samples(n, rows, seed):
    """Two categories of each table. Few of them are frequent; what is clicked depends on these and on the numbers."""
    g = torch.Generator().manual_seed(seed)
    dense = torch.randn(n, DENSE, generator=g)
    categories = (rows * torch.rand(n, TABLES, 2, generator=g) ** 3).long().clamp(max=rows - 1)
    liked = ((categories * 2654435761 >> 7) % 3 - 1).sum((1, 2)).float()
    return dense, categories, (liked + dense[:, 0] * 2 > 0).float()


def made(rows, batch):
    torch.manual_seed(0)
    net = Recommender(rows)
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.05)
    return weft.train_step(net, F.binary_cross_entropy_with_logits, optimizer, samples(batch, rows, 0), check=rows <= 100_000)


def right(step, batch, rows):
    dense, categories, clicked = samples(batch, rows, 1 << 20)
    return float(((step.eval(dense, categories) > 0) == clicked.bool()).float().mean())


def seconds(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rows", type=int, default=10_000)
    p.add_argument("--batch", type=int, default=512)
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--time", action="store_true")
    a = p.parse_args()
    step = made(a.rows, a.batch)
    if a.time:
        few = made(10_000, a.batch)
        least = [1e9, 1e9]
        for k in range(a.steps):
            for which, (s, rows) in enumerate(((few, 10_000), (step, a.rows))):
                b = samples(a.batch, rows, k)
                least[which] = min(least[which], seconds(lambda: s(*b)))
        print(f"a step with 10,000 rows: {1e3 * least[0]:.2f} ms, with {a.rows:,}: {1e3 * least[1]:.2f} ms, {least[1] / least[0]:.3f} times as long")
        return
    for k in range(a.steps):
        loss = step(*samples(a.batch, a.rows, k))
        if k % 50 == 0 or k == a.steps - 1:
            print(f"step {k + 1}: loss {float(loss):.3f}, {100 * right(step, a.batch, a.rows):.0f} % of other samples are right", flush=True)


if __name__ == "__main__":
    main()
