"""The model of docs/kernels.md: model.py FOLDER writes FOLDER/model.pt2."""
import pathlib
import sys

import torch


class Weights(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.linspace(0.5, 2, 24))

    def forward(self, scores):
        return torch.softmax(scores * self.scale, dim=1)


batch = torch.export.Dim("batch", min=1, max=1024)
program = torch.export.export(Weights().eval(), (torch.zeros(8, 24),), dynamic_shapes={"scores": {0: batch}})
torch.export.save(program, pathlib.Path(sys.argv[1]) / "model.pt2")
