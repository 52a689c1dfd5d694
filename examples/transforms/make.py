"""The models of transforms.c as torch.export.save writes them, with the derivatives that torch.func gives, and what transforms.c computes as
models of one transform less: make.py FOLDER (Python with torch, safetensors)"""
import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests/make"))
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


def save(name, tensors):
    pairs = [n for n, v in tensors.items() if v.is_complex()]
    tensors = {n: (torch.view_as_real(v) if v.is_complex() else v).detach().clone().contiguous() for n, v in tensors.items()}
    save_file(tensors, folder / f"{name}.safetensors", {"complex": ",".join(pairs)} if pairs else None)


def make(name, model, x, ct, t):
    """Results, gradients, tangents, and the results of a batch of three."""
    y, vjp = torch.func.vjp(lambda x, p: torch.func.functional_call(model, p, (x,)), x, dict(model.named_parameters()))
    g, gp = vjp(ct)
    _, jy = torch.func.jvp(model, (x,), (t,))
    batch = torch.stack([x, x + 0.25, 2 * x])
    tensors = {"x.0": x, "y.0": y, "ct.0": ct, "g.0": g, "t.0": t, "jy.0": jy, "vx.0": batch, "vy.0": torch.func.vmap(model)(batch)}
    save(name, tensors | {f"gp.{n}": v for n, v in gp.items()})
    make_fixtures.save(name, torch.export.export(model, (x,)), True)


def make_derivative(name, f, args, tensors):
    """A derivative that torch.func has made, as a model of its own, to be transformed once more."""
    make_fixtures.save(name, torch.export.export(make_fx(f)(*args), args), True)
    save(name, {f"x.{k}": x for k, x in enumerate(args)} | tensors)


function, network, square = Function(), Network(), Square()


def gradient(x):
    return torch.func.grad(function)(x)


def cotangents(x, ct):
    return torch.func.vjp(network, x)[1](ct)[0]


def sample(x, ct):
    """By the weights of the second layer."""
    def loss(weight):
        return (torch.func.functional_call(network, {"second.weight": weight}, (x,)) * ct).sum()

    return torch.func.grad(loss)(network.second.weight)


folder = make_fixtures.dest = pathlib.Path(sys.argv[1])
at, v = torch.tensor([0.5, 0.75]), torch.tensor([1.0, 0.0])
x, xs = torch.tensor([0.5, -1, 0.25]), torch.tensor([[0.5, -1, 0.25], [1, 0, -0.5], [-0.75, 0.5, 2]])
cts = torch.tensor([[1, 0], [0.5, -1], [2, 1]])
z, zct = torch.tensor([1 + 2j, -0.5 + 0.25j]), torch.tensor([1 + 0j, 1j])
make("function", function, at, torch.tensor(1.0), v)
make("network", network, x, torch.tensor([1.0, -0.5]), torch.tensor([0.25, 1, -1]))
make("square", square, z, zct, torch.tensor([1j, 2 + 1j]))
# What transforms.c computes, and the same by one transform more of what PyTorch derived: a product with the Hessian is a tangent or, as the
# Hessian is symmetric, a gradient of the gradient; a Jacobian a batch of cotangents.
product = torch.func.jvp(gradient, (at,), (v,))[1]
jacobian = torch.func.jacrev(network)(x)
samples = torch.func.vmap(sample)(xs, cts)
save("expected", {"gradient": gradient(at), "hessian_vector": product, "jacobian": jacobian, "per_sample": samples,
                  "complex_gradient": torch.func.vjp(square, z)[1](zct)[0]})
make_derivative("hessian_vector", gradient, (at,), {"y.0": gradient(at), "t.0": v, "jy.0": product, "ct.0": v, "g.0": product})
make_derivative("jacobian", cotangents, (x, cts[0]), {"y.0": jacobian[0], "vx.1": torch.eye(2), "vy.0": jacobian})
make_derivative("per_sample", sample, (xs[0], cts[0]), {"y.0": samples[0], "vx.0": xs, "vx.1": cts, "vy.0": samples})
