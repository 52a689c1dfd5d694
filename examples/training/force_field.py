"""A force field in float64: force_field.py FOLDER writes field.so, which force_field.c trains and uses.

Forces are the derivative of the energy, so a loss of forces has second derivatives of the network's. The entry `step` takes positions
[batch, atoms, 3] and reference energies and forces side by side, [batch, 1 + 3 * atoms]; `eval` gives energies and forces in the same form."""
import pathlib
import sys

import torch
import torch.nn as nn

import weft

ATOMS, CENTRES = 4, 12


class Field(nn.Module):
    """Each pair adds an energy, a smooth function of its distance."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(CENTRES, 24), nn.SiLU(), nn.Linear(24, 24), nn.SiLU(), nn.Linear(24, 1)).double()
        self.register_buffer("centre", torch.linspace(0.8, 3.0, CENTRES, dtype=torch.float64))
        self.register_buffer("pair", torch.triu_indices(ATOMS, ATOMS, 1))

    def energy(self, x):
        apart = x[:, self.pair[0]] - x[:, self.pair[1]]
        distance = apart.square().sum(-1, keepdim=True).sqrt()
        near = torch.exp(-12 * (distance - self.centre).square())
        return self.net(near.reshape(-1, CENTRES)).reshape(x.shape[0], -1).sum(1)

    def forward(self, x):
        def total(x):
            each = self.energy(x)
            return each.sum(), each
        slope, each = torch.func.grad(total, has_aux=True)(x)
        return torch.cat([each[:, None], -slope.flatten(1)], 1)


def loss_of(out, reference):
    return (out[:, 1:] - reference[:, 1:]).square().mean() + 0.01 * (out[:, 0] - reference[:, 0]).square().mean()


def main(folder):
    net = Field()
    size = torch.export.Dim("batch", min=2, max=64)
    torch.manual_seed(1)
    x, reference = 2 * torch.rand(8, ATOMS, 3, dtype=torch.float64), torch.randn(8, 1 + 3 * ATOMS, dtype=torch.float64)
    step = weft.train_step(net, loss_of, torch.optim.Adam(net.parameters(), lr=3e-3), (x, reference), dynamic_shapes=[{0: size}] * 2)
    step.save(folder / "field.so")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
