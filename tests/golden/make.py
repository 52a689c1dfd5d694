"""The graphs of tests/golden: two entries of one model with state, exported by PyTorch: make.py FOLDER."""
import sys
import torch


class Running(torch.nn.Module):
    """Sums what it is given, and counts."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([[1.0, 0.5, 0.0], [0.25, 1.0, -1.0], [2.0, 0.0, 1.0]]))
        self.register_buffer("total", torch.tensor([0.5, 0.25, 0.125]))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))


class Step(Running):
    def forward(self, x):
        self.total.add_(x.sum(0))
        self.calls.add_(1)
        return torch.relu(x @ self.w) + self.total, self.calls * 2


class Peek(Running):
    def forward(self, scale):
        return self.total * scale, self.total @ self.w


rows = torch.export.Dim("rows", min=1, max=64)
for name, module, args, dynamic in (("step", Step(), (torch.ones(4, 3),), ({0: rows},)), ("peek", Peek(), (torch.ones(3),), None)):
    torch.export.save(torch.export.export(module, args, dynamic_shapes=dynamic), f"{sys.argv[1]}/{name}.pt2")
