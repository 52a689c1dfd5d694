#!/usr/bin/env python3
"""Times of sparse products, sums of segments, and a network on a graph, beside PyTorch's eager mode, by turns in one process, with one
thread. Needs PyTorch and the Python package.

    PYTHON bench/sparse.py [--nodes 100000] [--edges 1000000] [--columns 64] [--step]
"""
import argparse
import time
import warnings

import torch

import weft.dynamo
import weft.sparse

warnings.simplefilter("ignore")


def times(fs, rounds):
    best = dict.fromkeys(fs, float("inf"))
    for f in fs.values():
        f()
    for _ in range(rounds):
        for name, f in fs.items():
            start = time.perf_counter()
            f()
            best[name] = min(best[name], time.perf_counter() - start)
    print("   ".join(f"{name} {1e3 * t:.1f} ms" for name, t in best.items()), flush=True)


class Matrices(torch.nn.Module):
    """Two graph convolutions with a matrix of neighbours."""

    def __init__(self, columns):
        super().__init__()
        self.a, self.b = torch.nn.Linear(columns, columns), torch.nn.Linear(columns, 16)

    def forward(self, x, a):
        return torch.mm(a, self.b(torch.relu(torch.mm(a, self.a(x)))))


class Edges(Matrices):
    """The same, by edges."""

    def forward(self, x, row, col, values):
        def product(y):
            return torch.zeros(x.shape[0], y.shape[1]).index_add_(0, row, y[col] * values.unsqueeze(1))
        return product(self.b(torch.relu(product(self.a(x)))))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--step", action="store_true", help="forward and backward, too")
    o = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    n, e = o.nodes, o.edges
    row, col, values = torch.sort(torch.randint(0, n, (e,))).values, torch.randint(0, n, (e,)), torch.rand(e)
    begin = torch.zeros(n + 1, dtype=torch.int64)
    begin[1:] = torch.bincount(row, minlength=n).cumsum(0)
    x, a = torch.randn(n, o.columns), torch.sparse_csr_tensor(begin, col, values, (n, n))
    m, data = weft.sparse.matrix(a), torch.randn(e, o.columns)

    def compiled(f):
        return torch.compile(f, backend=weft.dynamo.backend)

    def segments(data, begin):
        return torch.segment_reduce(data, "sum", offsets=begin, unsafe=True, initial=0)

    def by_index(data, row):
        return torch.zeros(n, data.shape[1]).index_add_(0, row, data)
    with torch.no_grad():
        mm, fast, index = compiled(torch.mm), compiled(segments), compiled(by_index)
        times({"CSR x dense: PyTorch": lambda: torch.mm(a, x), "Weft": lambda: mm(m, x)}, 10)
        times({"segment_reduce: PyTorch": lambda: segments(data, begin), "Weft": lambda: fast(data, begin),
               "index_add_: PyTorch": lambda: by_index(data, row), "Weft ": lambda: index(data, row)}, 5)
    nets = Matrices(o.columns), Edges(o.columns)
    for net, args, given in ((nets[0], (x, a), (x, m)), (nets[1], (x, row, col, values), None)):
        f = compiled(net)
        with torch.no_grad():
            times({f"{type(net).__name__}, forward: PyTorch": lambda: net(*args), "Weft": lambda: f(*(given or args))}, 5)
        if o.step:
            times({f"{type(net).__name__}, step: PyTorch": lambda: net(*args).square().mean().backward(),
                   "Weft": lambda: f(*(given or args)).square().mean().backward()}, 3)


if __name__ == "__main__":
    main()
