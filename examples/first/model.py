"""A small classifier as files that weft takes: model.py FOLDER. FOLDER/net.pt2 and FOLDER/net.safetensors are the network
and a reference for `weft check`, FOLDER/loss.pt2 is the network with its loss, for training."""
import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(4, 16)
        self.out = nn.Linear(16, 3)

    def forward(self, x):
        return self.out(F.relu(self.hidden(x)))


class Loss(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, label):
        return F.cross_entropy(self.net(x), label)


folder = pathlib.Path(sys.argv[1])
torch.manual_seed(0)
net = Net().eval()
x, label = torch.randn(8, 4), torch.randint(0, 3, (8,))
batch = torch.export.Dim("batch", max=1024)

torch.export.save(torch.export.export(net, (x,), dynamic_shapes={"x": {0: batch}}), folder / "net.pt2")
save_file({"x.0": x, "y.0": net(x)}, folder / "net.safetensors")
loss = torch.export.export(Loss(net), (x, label), dynamic_shapes={"x": {0: batch}, "label": {0: batch}})
torch.export.save(loss, folder / "loss.pt2")
