"""Models of tests/data/autograd.tar.xz, in which autograd is told what to see: detach, no_grad, item, tied and frozen parameters.
make_autograd_fixtures.py DEST [NAME...] writes NAME.pt2 and NAME.safetensors: inputs and results, cotangents with the gradients of
inputs and parameters, of those that torch.func.jvp takes tangents, and of those with one input and no parameters second ones (h.0, of
the sum of what the gradient gives by v.0). Reference: the file, loaded again. Needs torch and safetensors. The archive:
tar -C DEST -cJf tests/data/autograd.tar.xz --sort=name --mtime=@0 --owner=0 --group=0 ."""

import logging
import sys
import warnings
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch._higher_order_ops import cond, scan, while_loop
from torch.export import export, load, save

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


def X(*shape):
    return torch.randn(*shape)


def M(fn, **members):
    class Model(nn.Module):
        def __init__(s):
            super().__init__()
            for k, v in members.items():
                if isinstance(v, (nn.Module, nn.Parameter)):
                    setattr(s, k, v)
                else:
                    s.register_buffer(k, v)

        def forward(s, *a):
            return fn(s, *a)

    return Model()


@case
def ste():
    return M(lambda s, x: ((x + (x.round() - x).detach()) ** 2)), (X(4),)


@case
def vq():
    def f(s, x):
        d = ((x[:, None] - s.e.weight[None]) ** 2).sum(-1)
        i = d.argmin(1)
        q = s.e(i)
        loss = ((q.detach() - x) ** 2).mean() + 0.25 * ((q - x.detach()) ** 2).mean()
        q = x + (q - x).detach()
        return q * 2, loss

    return M(f, e=nn.Embedding(5, 3)), (X(4, 3),)


@case
def byol():
    def f(s, x):
        with torch.no_grad():
            t = s.b(x)
        return F.cosine_similarity(s.a(x), t).sum()

    return M(f, a=nn.Linear(3, 3), b=nn.Linear(3, 3)), (X(4, 3),)


@case
def qat():
    def f(s, x):
        w = s.l.weight
        sc = w.detach().abs().max() / 127
        wq = torch.clamp((w / sc).round(), -127, 127) * sc
        return F.linear(x, w + (wq - w).detach(), s.l.bias)

    return M(f, l=nn.Linear(3, 3)), (X(4, 3),)


@case
def inplace_history():
    def f(s, x):
        y = s.w * x
        with torch.no_grad():
            y.mul_(2)
        return y * y

    return M(f, w=nn.Parameter(X(3))), (X(3),)


@case
def enable_inside():
    def f(s, x):
        with torch.no_grad():
            y = x * s.w
            with torch.enable_grad():
                z = y * s.w * x
            u = z * x
        return y + z + u

    return M(f, w=nn.Parameter(X(3))), (X(3),)


@case
def region_made_written_later():
    def f(s, x):
        with torch.no_grad():
            z = torch.zeros(3) + x
        z[0] = x[1] * x[0]
        z = z * 1
        return z * s.w

    return M(f, w=nn.Parameter(X(3))), (X(3),)


@case
def region_views():
    def f(s, x):
        y = x * s.w
        with torch.no_grad():
            v = y.view(3, 1)
            t = y[0:2]
        return y.sum() * v + t.sum()

    return M(f, w=nn.Parameter(X(3))), (X(3),)


@case
def itself():
    """Operators that return their operand where there is nothing to do, beside views."""
    def f(s, x):
        y = x * s.w
        with torch.no_grad():
            a, b, c = y.contiguous(), y.to(torch.float32), torch.dropout(y, 0.5, False)
            d, e, g = y.flatten(), torch.atleast_1d(y), y.positive()
            h, i, v = y.real, y.conj(), y.view_as(y)
            k = y[:].contiguous()
        return a * 2, b * x, c * x, d * x, e * 3, g * x, h * x, i * x, v * x, k * x

    return M(f, w=nn.Parameter(X(3))), (X(3),)


@case
def unsqueezed():
    def f(s, x):
        y = x * s.w
        with torch.no_grad():
            y.unsqueeze_(0)
        return y * x

    return M(f, w=nn.Parameter(X(3))), (X(3),)


@case
def slices_written():
    def f(s, x):
        y = s.w * x
        u = y[1:]
        with torch.no_grad():
            y[0] = 5.0
            y[2:].mul_(s.w[2:])
            u.add_(1)
        return y * y, u * x[1:]

    return M(f, w=nn.Parameter(X(4))), (X(4),)


@case
def cond_region():
    def yes(x):
        with torch.no_grad():
            a = x * 2
        return a * x

    return M(lambda s, x: cond(x.sum() > 0, yes, lambda x: x * x, (x,)) * s.w, w=nn.Parameter(X(4))), (X(4).abs(),)


@case
def while_region():
    def body(i, y):
        with torch.no_grad():
            a = y * 2
        return i + 1, y * 1.1 + a

    def f(s, x):
        return while_loop(lambda i, y: i < 3, body, (torch.tensor(0), x * s.w))[1] * x

    return M(f, w=nn.Parameter(X(4))), (X(4),)


@case
def frozen_tied():
    m = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    m[2].weight = m[0].weight
    m[0].weight.requires_grad_(False)
    return m, (X(2, 3),)


@case
def detach_view():
    def f(s, x):
        y = x * s.w
        d = y.view(3).detach()[1:]
        return y[1:] * d

    return M(f, w=nn.Parameter(X(3))), (X(3),)


@case
def detach_written():
    def f(s, x):
        y = x * s.w
        y.detach().mul_(2)
        y.detach()[0].fill_(3.0)
        return y * 2.0

    return M(f, w=nn.Parameter(X(3))), (X(3),)


@case
def detach_inplace():
    def f(s, x):
        y = x * s.w
        z = y + 1
        z.detach_()
        return y * z

    return M(f, w=nn.Parameter(X(3))), (X(3),)


@case
def item():
    return M(lambda s, x: x * x.sum().item() + x.max().item()), (X(3),)


@case
def tolist():
    return M(lambda s, x: x * x.tolist()[0]), (X(3),)


@case
def cond_in_no_grad():
    def f(s, x):
        with torch.no_grad():
            y = cond(x.sum() > 0, lambda x: x * 2, lambda x: x * x, (x,))
        return y * x

    return M(f), (X(3),)


@case
def cond_grad():
    return M(lambda s, x: cond(x.sum() > 0, lambda x: (x * s.w).detach() * x, lambda x: x * x * s.w, (x,)), w=nn.Parameter(X(3))), (X(3),)


@case
def while_no_grad():
    def f(s, x):
        with torch.no_grad():
            _, y = while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 1.5 + x), (torch.tensor(0), x.clone()))
        return y * x

    return M(f), (X(3),)


@case
def scan_grad():
    def f(s, x):
        c, y = scan(lambda c, x: (c * x, c + x.detach()), x[0].clone(), x)
        return c + y.sum()

    return M(f), (X(3),)


@case
def scan_no_grad():
    def f(s, x):
        with torch.no_grad():
            c, y = scan(lambda c, x: (c * x, c + x), x[0].clone(), x)
        return c * x[0] + y.sum() * x.sum()

    return M(f), (X(3),)


@case
def decorator():
    @torch.no_grad()
    def g(x):
        return x.softmax(0)

    return M(lambda s, x: g(x) * x), (X(3),)


@case
def ema():
    def f(s, x):
        with torch.no_grad():
            s.e.mul_(0.9).add_(s.l.weight * 0.1)
        return s.l(x) * F.linear(x, s.e)

    return M(f, l=nn.Linear(3, 3), e=X(3, 3)), (X(2, 3),)


@case
def tied():
    class T(nn.Module):
        def __init__(s):
            super().__init__()
            s.wte = nn.Embedding(7, 4)
            s.head = nn.Linear(4, 7, bias=False)
            s.head.weight = s.wte.weight

        def forward(s, i):
            return s.head(s.wte(i).tanh())

    return T(), (torch.tensor([1, 3, 3]),)


@case
def tied_three():
    class T(nn.Module):
        def __init__(s):
            super().__init__()
            s.a = nn.Linear(3, 3)
            s.b = nn.Linear(3, 3)
            s.c = nn.Linear(3, 3)
            s.b.weight = s.a.weight
            s.c.weight = s.a.weight

        def forward(s, x):
            return s.c(s.b(s.a(x)))

    return T(), (X(2, 3),)


@case
def frozen():
    m = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    for p in m[0].parameters():
        p.requires_grad_(False)
    return m, (X(2, 3),)


@case
def spectral():
    def f(s, x):
        u = s.u
        with torch.no_grad():
            v = F.normalize(s.l.weight.t() @ u, dim=0)
            u = F.normalize(s.l.weight @ v, dim=0)
        sig = u @ (s.l.weight @ v)
        return F.linear(x, s.l.weight / sig)

    return M(f, l=nn.Linear(3, 4), u=X(4)), (X(2, 3),)


@case
def clamp_weight():
    def f(s, x):
        y = s.l(x)
        with torch.no_grad():
            y.clamp_(-0.5, 0.5)
            y.div_(y.norm(dim=1, keepdim=True).clamp(min=1e-3))
        return y.exp()

    return M(f, l=nn.Linear(3, 4)), (X(2, 3),)


@case
def masked_fill_no_grad():
    def f(s, x):
        m = x * 2
        with torch.no_grad():
            m.masked_fill_(x > 0, 1.0)
            t = m.t()
        return m @ t

    return M(f), (X(3, 3),)


@case
def complex_detach():
    def f(s, x):
        z = torch.complex(x, x * 2)
        return (z * z.detach().conj()).real

    return M(f), (X(3),)


@case
def complex_parameters():
    """Read in branches, too."""
    def f(s, x):
        z = torch.complex(x, x * 2) * s.w
        z = cond(x.sum() > 9, lambda z: z * s.u.sum(), lambda z: z * s.u, (z,))
        return z.real, z.imag * 2

    return M(f, w=nn.Parameter(torch.randn(4, 3, dtype=torch.complex64)), u=nn.Parameter(torch.randn(3, dtype=torch.complex64))), (X(4, 3),)


@case
def logdet_negative():
    """NaN where the determinant is negative, and the gradient 0."""
    return M(lambda s, x: torch.logdet(x)), (torch.eye(4)[[1, 0, 2, 3]].mul(-2).repeat(2, 1, 1) + torch.tensor([0.0, 5.0])[:, None, None] * torch.eye(4),)


@case
def out_detached():
    return M(lambda s, x: (x.detach() * 2, x * 3)), (X(3),)


@case
def bn_train():
    m = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    m.train()
    return m, (X(5, 3),)


@case
def copy_():
    def f(s, x):
        y = x * s.w
        b = torch.zeros(3)
        with torch.no_grad():
            b.copy_(y)
        y.copy_(x * 2.0)
        return y * b

    return M(f, w=nn.Parameter(X(3))), (X(3),)


@case
def grad_scale():
    return M(lambda s, x: x * 0.1 + (x * 0.9).detach()), (X(3),)


@case
def partial_tie():
    class T(nn.Module):
        def __init__(s):
            super().__init__()
            s.w = nn.Parameter(X(6, 3))
            s.v = nn.Parameter(s.w.data[:3])

        def forward(s, x):
            return (x @ s.w.t()).sum() + (x @ s.v.t()).sum()

    return T(), (X(2, 3),)


@case
def twice_detached():
    return M(lambda s, x: x * x * x.detach() * x), (X(3),)


@case
def twice_region():
    def f(s, x):
        y = x * x
        with torch.no_grad():
            z = y * x
        return y * z * x

    return M(f), (X(3),)


@case
def twice_written():
    def f(s, x):
        y = x * x
        with torch.no_grad():
            y.mul_(2)
        return y * y * x

    return M(f), (X(3),)


# PyTorch's control flow has wrong second derivatives, and no tangents.
ONCE = ("complex_parameters", "logdet_negative", "cond_in_no_grad", "cond_grad", "cond_region", "while_region", "while_no_grad", "scan_grad", "scan_no_grad")


def leaves(y):
    return list(y) if isinstance(y, (tuple, list)) else [y]


def or_zeros(g, like):
    return torch.zeros_like(like) if g is None else g


def reverse(io, module, x, once):
    """Of a module that holds each parameter once, under its first name."""
    xs = [t.clone().requires_grad_() if t.is_floating_point() else t for t in x]
    ys = leaves(module(*xs))
    for i, y in enumerate(ys):
        io[f"y.{i}"] = y
        if y.is_floating_point():
            io[f"ct.{i}"] = torch.randn_like(y)
    learned = {k: p for k, p in module.named_parameters() if p.requires_grad}
    names = {f"g.{i}": t for i, t in enumerate(xs) if t.requires_grad} | {f"gp.{k}": p for k, p in learned.items()}
    total = sum((y * io[f"ct.{i}"]).sum() for i, y in enumerate(ys) if y.requires_grad)
    second = not once and len(names) == 1 and "g.0" in names
    found = torch.autograd.grad(total, list(names.values()), allow_unused=True, create_graph=second)
    for (name, t), g in zip(names.items(), found):
        io[name] = or_zeros(g, t)
    if second and io["g.0"].requires_grad:
        io["v.0"] = torch.randn_like(xs[0])
        io["h.0"] = or_zeros(torch.autograd.grad((io["g.0"] * io["v.0"]).sum(), xs[0], allow_unused=True)[0], xs[0])


def forward(io, module, x):
    at = [i for i, t in enumerate(x) if t.is_floating_point()]
    t = [torch.randn_like(x[i]) for i in at]
    for p in module.parameters():
        p.requires_grad_(False)

    def function(*a):
        return module(*[a[at.index(i)] if i in at else v for i, v in enumerate(x)])

    _, jy = torch.func.jvp(function, tuple(x[i] for i in at), tuple(t))
    io.update({f"t.{i}": v for i, v in zip(at, t)} | {f"jy.{i}": v for i, v in enumerate(leaves(jy))})


def plain(io):
    return {k: v.detach().contiguous().clone() for k, v in io.items()}


def write(dest, name):
    torch.manual_seed(3)
    torch.set_grad_enabled(True)  # an error in a region leaves it off
    model, x = CASES[name]()
    path = str(dest / f"{name}.pt2")
    save(export(model, x), path)
    io = {f"x.{i}": t for i, t in enumerate(x)}
    # a file that is loaded again has a parameter for each name of one that is tied
    reverse(io, model if name.startswith("tied") else load(path).module(), x, name in ONCE)
    try:
        forward(tangents := {}, load(path).module(), x)
        io.update(tangents)
    except Exception as e:  # of in-place operators, and of control flow, PyTorch has none
        print(f"{name}: no tangents: {str(e)[:80]}")
    save_file(plain(io), str(dest / f"{name}.safetensors"))


def write_decomposed(dest):
    """Files that no longer say where there was a detach."""
    torch.set_grad_enabled(True)
    for name in ("ste", "byol"):
        torch.manual_seed(3)
        model, x = CASES[name]()
        (dest / "decomposed").mkdir(exist_ok=True)
        save(export(model, x).run_decompositions(), str(dest / "decomposed" / f"{name}.pt2"))


def main(dest, *names):
    dest = Path(dest)
    dest.mkdir(exist_ok=True)
    for name in names or CASES:
        write(dest, name)
    write_decomposed(dest)


main(*sys.argv[1:])
