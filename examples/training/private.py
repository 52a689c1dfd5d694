"""Per-sample clipping, as for differential privacy: private.py [STEPS]

Each sample's gradient is clipped to a norm before the mean is taken: vmap of torch.func.grad inside of the loss gives them. The loss that the step
sees is the product of the clipped gradients, which are constants there, and the parameters: its gradient is their mean, with noise on it."""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

import weft

MOST, NOISE, BATCH = 1.0, 0.02, 64


class Private(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, x, label, noise):
        """The loss; first a value whose gradient is the clipped one."""
        names, values = zip(*self.net.named_parameters())

        def error(p, x, label):
            out = torch.func.functional_call(self.net, dict(zip(names, p)), (x[None],))
            return F.cross_entropy(out, label[None])
        each, losses = torch.func.vmap(torch.func.grad_and_value(error), in_dims=(None, 0, 0))(tuple(v.detach() for v in values), x, label)
        norm = torch.stack([g.flatten(1).square().sum(1) for g in each]).sum(0).sqrt()
        factor = (MOST / norm.clamp(min=MOST)) / BATCH
        at, proxy = 0, 0.0
        for p, g in zip(values, each):
            mean = torch.tensordot(factor, g, 1) + NOISE * noise[at:at + p.numel()].view_as(p) / BATCH
            proxy, at = proxy + (p * mean.detach()).sum(), at + p.numel()
        return proxy, losses.mean(), norm.max()


def main(steps):
    net = Private()
    g = torch.Generator().manual_seed(1)
    count = sum(p.numel() for p in net.parameters())

    def batch():
        x = torch.rand(BATCH, 2, generator=g) * 2 - 1
        return x, (x[:, 0] * x[:, 1] > 0).long(), torch.randn(count, generator=g)
    step = weft.train_step(net, None, torch.optim.SGD(net.parameters(), lr=1.0, momentum=0.9), batch(), outputs=True)
    for k in range(steps):
        _, (loss, norm) = step(*batch())
        if k % (steps // 4) == steps // 4 - 1:
            print(f"{k + 1} steps: loss {float(loss):.3f}, largest norm of a sample {float(norm):.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
