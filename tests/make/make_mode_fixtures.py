"""Models of tests/data/mode, exported in training and in evaluation: make_mode_fixtures.py DEST writes NAME_train.pt2 and
NAME_eval.pt2, which hold the same weights. Needs torch."""

import io
import logging
import sys
import warnings
import zipfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim, export, save

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)


class Net(nn.Module):
    """Batch norm (one layer twice, one without statistics), dropout of elements and features."""

    def __init__(s):
        super().__init__()
        s.conv, s.norm, s.again, s.free = nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3), nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3, track_running_stats=False)
        s.drop, s.features, s.out = nn.Dropout(0.25), nn.Dropout2d(0.5), nn.Linear(3, 4)

    def forward(s, x):
        y = s.norm(s.again(torch.relu(s.norm(s.conv(x)))))
        return {"y": s.out(s.drop(s.free(s.features(y)).mean((2, 3)))), "mean": s.norm.running_mean * 2}


class Other(nn.Module):
    """Instance norm, rrelu, alpha dropout, dropout that Python switches off."""

    def __init__(s):
        super().__init__()
        s.instance, s.plain = nn.InstanceNorm1d(3, track_running_stats=True, affine=True), nn.InstanceNorm1d(3)
        s.rrelu, s.alpha, s.feature_alpha, s.linear = nn.RReLU(), nn.AlphaDropout(0.2), nn.FeatureAlphaDropout(0.2), nn.Linear(5, 2)

    def forward(s, x):
        y = s.alpha(s.rrelu(s.plain(s.instance(x))))
        return F.dropout(s.linear(s.feature_alpha(y)), 0.5, s.training)


class Recurrent(nn.Module):
    """Dropout between the layers of an LSTM and a GRU."""

    def __init__(s):
        super().__init__()
        s.lstm, s.gru = nn.LSTM(2, 2, 2, dropout=0.25), nn.GRU(2, 2, 2, dropout=0.5)

    def forward(s, x):
        return s.gru(s.lstm(x)[0])[0]


class Counted(nn.Module):
    """State besides: a buffer in front of the statistics, one behind them, and an input that is written."""

    def __init__(s):
        super().__init__()
        s.register_buffer("calls", torch.zeros(()))
        s.norm = nn.BatchNorm1d(3)
        s.register_buffer("sum", torch.zeros(3))

    def forward(s, x, y):
        s.calls.add_(1)
        z = s.norm(x)
        s.sum.add_(z.sum(0))
        y.add_(z)
        return F.dropout(z, 0.25, s.training)


class Branch(nn.Module):
    """Dropout in one of two graphs."""

    def __init__(s):
        super().__init__()
        s.drop = nn.Dropout(0.5)

    def forward(s, x):
        return torch.cond(x.sum() > 0, lambda x: s.drop(x) * 1, lambda x: x.clone(), (x,))


class Shared(nn.Module):
    """Writes what dropout shares with its operand in evaluation: no mode but its own."""

    def __init__(s):
        super().__init__()
        s.drop = nn.Dropout(0.5)

    def forward(s, x):
        y = x * 2
        z = s.drop(y)
        z.add_(1)
        return y + z


class Random(nn.Module):
    """Draws in both modes."""

    def __init__(s):
        super().__init__()
        s.drop = nn.Dropout(0.5)

    def forward(s, x):
        return s.drop(x) * torch.bernoulli(torch.full_like(x, 0.5))


class Average(nn.Module):
    """Running statistics that are averages over all batches."""

    def __init__(s):
        super().__init__()
        s.norm = nn.BatchNorm1d(3, momentum=None)

    def forward(s, x):
        return s.norm(x)


class Residual(nn.Module):
    """Reads what is dropped, and what is dropped of it: in evaluation both are one tensor."""

    def __init__(s):
        super().__init__()
        s.linear, s.drop, s.last = nn.Linear(3, 3), nn.Dropout(0.5), nn.Dropout(0.25)

    def forward(s, x):
        y = s.linear(x)
        return s.last(y + s.drop(y)), s.drop(x) * s.drop(x)


class Tied(nn.Module):
    """Two modules with one running mean, each with a counter of its own, which the model reads."""

    def __init__(s):
        super().__init__()
        s.a, s.b = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
        s.b.running_mean = s.a.running_mean

    def forward(s, x):
        return s.b(s.a(x) * 3), s.a.num_batches_tracked * 2, s.b.num_batches_tracked + 1


class Both(Tied):
    """Nothing but the counters tells the two apart."""

    def __init__(s):
        super().__init__()
        s.b.running_var = s.a.running_var


n = Dim("n", min=2, max=64)
CASES = {
    "net": (Net, (torch.randn(3, 2, 4, 4),), ({0: n},)),
    "other": (Other, (torch.randn(2, 3, 5),), None),
    "recurrent": (Recurrent, (torch.randn(3, 2, 2),), None),
    "counted": (Counted, (torch.randn(4, 3), torch.randn(4, 3)), None),
    "branch": (Branch, (torch.randn(64),), None),
    "shared": (Shared, (torch.randn(4),), None),
    "random": (Random, (torch.randn(4),), None),
    "average": (Average, (torch.randn(4, 3),), None),
    "tied": (Tied, (torch.randn(4, 3),), None),
    "both": (Both, (torch.randn(4, 3),), None),
    "residual": (Residual, (torch.randn(2, 3),), None),
}


def write(path, program):
    """Compressed: the files are small."""
    stored = io.BytesIO()
    save(program, stored)
    with zipfile.ZipFile(stored) as a, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as b:
        for name in a.namelist():
            b.writestr(zipfile.ZipInfo(name), a.read(name), zipfile.ZIP_DEFLATED)


for name, (make, args, sizes) in CASES.items():
    torch.manual_seed(7)
    model = make()
    for mode in ("train", "eval"):
        if (name, mode) in (("average", "train"), ("shared", "eval"), ("residual", "train"), ("random", "eval")):
            continue
        getattr(model, mode)()
        write(Path(sys.argv[1]) / f"{name}_{mode}.pt2", export(model, args, dynamic_shapes=sizes))
    if name == "net":
        write(Path(sys.argv[1]) / "net_decomposed.pt2", export(model.eval(), args).run_decompositions())
