"""A model that calls operators of one's own: make_model.py FOLDER writes model.pt2, model.0.safetensors and model.1.safetensors (inputs and what
PyTorch makes of them). The operators are defined for PyTorch here and for Weft in mylib.c."""
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


@torch.library.custom_op("mylib::smooth", mutates_args=())
def smooth(x: torch.Tensor, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    n = x.shape[-1]
    mean = torch.stack([x[..., i:i + width].mean(-1) for i in range(n)], -1)
    return mean, torch.tensor(x.numel() // n)


@smooth.register_fake
def _(x, width):
    return torch.empty_like(x), torch.empty((), dtype=torch.int64)


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
        x = torch.randn(batch, 6)
        y, rows = model(x)
        save_file({"x.0": x, "y.0": y.detach(), "y.1": rows}, folder / f"model.{k}.safetensors")
