"""The models of transforms.c as torch.export.save writes them, with PyTorch's derivatives: make.py FOLDER (Python with torch, safetensors)"""
import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests"))
import make_fixtures  # noqa: E402


class Function(nn.Module):
    def forward(self, x):
        return torch.log(x[0] * x[1]) * torch.sin(x[1])


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4, bias=False)
        self.second = nn.Linear(4, 2, bias=False)
        self.first.weight.data = torch.tensor([[0.5, -0.25, 0.75], [1, 0.5, -1], [-0.5, 0.25, 0.125], [0.75, -0.75, 0.5]])
        self.second.weight.data = torch.tensor([[1, -0.5, 0.25, 0.75], [-1, 0.5, 0.5, -0.25]])

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


class Square(nn.Module):
    def forward(self, x):
        return x * x


def make(name, model, x, ct, t):
    """Results, gradients, tangents, and the results of a batch of three."""
    x.requires_grad_()
    y = model(x)
    params = dict(model.named_parameters())
    g, *gp = torch.autograd.grad(y, [x, *params.values()], ct)
    x = x.detach()
    _, jy = torch.func.jvp(model, (x,), (t,))
    batch = torch.stack([x, x + 0.25, 2 * x])
    tensors = {"x.0": x, "y.0": y, "ct.0": ct, "g.0": g, "t.0": t, "jy.0": jy, "vx.0": batch, "vy.0": torch.func.vmap(model)(batch)}
    tensors |= {f"gp.{n}": v for n, v in zip(params, gp)}
    pairs = [n for n, v in tensors.items() if v.is_complex()]
    tensors = {n: (torch.view_as_real(v) if v.is_complex() else v).detach().clone().contiguous() for n, v in tensors.items()}
    save_file(tensors, folder / f"{name}.safetensors", {"complex": ",".join(pairs)})
    make_fixtures.save(name, torch.export.export(model, (x,)), True)


folder = make_fixtures.dest = pathlib.Path(sys.argv[1])
make("function", Function(), torch.tensor([0.5, 0.75]), torch.tensor(1.0), torch.tensor([1.0, 0.0]))
make("network", Network(), torch.tensor([0.5, -1, 0.25]), torch.tensor([1.0, -0.5]), torch.tensor([0.25, 1, -1]))
make("square", Square(), torch.tensor([1 + 2j, -0.5 + 0.25j]), torch.tensor([1 + 0j, 1j]), torch.tensor([1j, 2 + 1j]))
