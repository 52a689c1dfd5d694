"""What programs share that users of torch.compile write: see programs.py."""
import torch

nn = torch.nn
F = nn.functional
PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


def mlp(norm=True):
    return nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16) if norm else nn.Identity(), nn.GELU(), nn.Linear(16, 4))


def values(module):
    return {n: v.detach().clone() for n, v in module.state_dict().items()}


def training(c, optimizer, schedule=None, module=None, steps=5, compile_step=False, after=lambda m: None):
    """A training loop. Returns losses and weights."""
    m = module or mlp()
    f, o = c(m), optimizer(m.parameters())
    s = schedule(o) if schedule else None
    step, losses = c(o.step) if compile_step else o.step, []
    for k in range(steps):
        o.zero_grad()
        loss = F.cross_entropy(f(torch.randn(6, 8)), torch.arange(6) % 4)
        loss.backward()
        after(m)
        step()
        if s:
            s.step()
        losses.append(loss.detach())
    return losses, values(m)
