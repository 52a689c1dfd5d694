"""Learning to learn: MAML whose inner step has a learned rate for each parameter: maml.py [STEPS]

A task is a sine of some amplitude and phase. The network makes a step of gradient descent on ten points of a task, and is judged by ten others; the
outer step goes through the inner one, by parameters and by rates. All is one graph: torch.func.grad inside of the loss, and vmap over tasks."""
import sys

import torch
import torch.nn as nn

import weft

TASKS, POINTS = 16, 10


class Meta(nn.Module):
    """A network, and by parameter how far an inner step goes."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        sizes = [(32, 1), (32,), (32, 32), (32,), (1, 32), (1,)]
        self.start = nn.ParameterList(torch.randn(s) / s[-1] ** 0.5 if len(s) == 2 else torch.zeros(s) for s in sizes)
        self.rate = nn.ParameterList(torch.full((), 0.01) for _ in sizes)

    @staticmethod
    def run(p, x):
        for k in range(0, 6, 2):
            x = x @ p[k].t() + p[k + 1]
            x = torch.tanh(x) if k < 4 else x
        return x

    def forward(self, near, far):
        """Losses of tasks: near and far are [tasks, points, 2]."""
        start, rate = tuple(self.start), tuple(self.rate)
        error = lambda p, points: (self.run(p, points[:, :1]) - points[:, 1:]).square().mean()

        def adapted(near, far):
            slope = torch.func.grad(error)(start, near)
            return error(tuple(p - r * g for p, r, g in zip(start, rate, slope)), far)
        return torch.func.vmap(adapted)(near, far).mean()


def tasks(seed):
    g = torch.Generator().manual_seed(seed)
    size, phase = 0.5 + 2 * torch.rand(TASKS, 1, generator=g), 3.14 * torch.rand(TASKS, 1, generator=g)
    x = 8 * torch.rand(TASKS, 2 * POINTS, generator=g) - 4
    points = torch.stack([x, size * torch.sin(x + phase)], -1)
    return points[:, :POINTS].contiguous(), points[:, POINTS:].contiguous()


def main(steps):
    net = Meta()
    step = weft.train_step(net, None, torch.optim.Adam(net.parameters(), lr=3e-3), tasks(0))
    total = 0.0
    for k in range(steps):
        total += float(step(*tasks(k)))
        if k % (steps // 4) == steps // 4 - 1:
            rates = [float(r.detach()) for r in net.rate]
            print(f"{k + 1} steps: error after an inner step {total / (steps // 4):.3f}, rates {min(rates):.3f} to {max(rates):.3f}")
            total = 0.0


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
