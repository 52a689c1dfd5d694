"""A model that calls operators of one's own: make_model.py FOLDER writes model.pt2, model.0.safetensors and model.1.safetensors (inputs and what
PyTorch makes of them; cotangents and gradients of inputs and parameters, tangents and their results). The operators are defined for PyTorch here and for Weft in mylib.c."""
import pathlib
import sys

import torch
from safetensors.torch import save_file


@torch.library.custom_op("mylib::decay", mutates_args=())
def decay(x: torch.Tensor, rate: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    assert not (rate < 0).any(), "negative rate"
    return scale * x * torch.exp(-rate)


@decay.register_fake
def _(x, rate, scale=1.0):
    return torch.empty_like(x)


def decay_saves(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2])
    ctx.scale = inputs[2]


def decay_backward(ctx, g):
    x, rate = ctx.saved_tensors
    gx = ctx.scale * g * torch.exp(-rate)
    return gx, -(gx * x).sum(0), None


decay.register_autograd(decay_backward, setup_context=decay_saves)


@torch.library.custom_op("mylib::smooth", mutates_args=())
def smooth(x: torch.Tensor, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    n = x.shape[-1]
    mean = torch.stack([x[..., i:i + width].mean(-1) for i in range(n)], -1)
    return mean, torch.tensor(x.numel() // n)


@smooth.register_fake
def _(x, width):
    return torch.empty_like(x), torch.empty((), dtype=torch.int64)


def smooth_saves(ctx, inputs, output):
    ctx.width = inputs[1]


def smooth_backward(ctx, g, _):
    n = g.shape[-1]
    gx = torch.zeros_like(g)
    for i in range(n):
        part = slice(i, i + ctx.width)
        gx[..., part] += g[..., i:i + 1] / len(range(n)[part])
    return gx, None


smooth.register_autograd(smooth_backward, setup_context=smooth_saves)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)
        self.rate = torch.nn.Parameter(torch.rand(8))

    def forward(self, x):
        h = torch.ops.mylib.decay(torch.tanh(self.a(x)), self.rate, 2.0)
        h, rows = torch.ops.mylib.smooth(h, 3)
        return self.b(torch.relu(h)), rows


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    torch.manual_seed(0)
    model = Model().eval()
    program = torch.export.export(model, (torch.randn(5, 6),), dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=1000)},))
    torch.export.save(program, folder / "model.pt2")
    for k, batch in enumerate((5, 64)):
        x = torch.randn(batch, 6).requires_grad_()
        y, rows = model(x)
        ct, t = torch.randn_like(y), torch.randn_like(x)
        names, params = zip(*model.named_parameters())
        gx, *gp = torch.autograd.grad(y, (x, *params), ct)
        jy = torch.autograd.functional.jacobian(lambda v: model(v)[0], x).flatten(2) @ t.flatten()
        save_file({"x.0": x.detach(), "y.0": y.detach(), "y.1": rows, "ct.0": ct, "g.0": gx, "t.0": t, "jy.0": jy,
                   **{f"gp.{name}": g for name, g in zip(names, gp)}}, folder / f"model.{k}.safetensors")
