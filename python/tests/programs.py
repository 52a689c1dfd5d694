"""Small programs that users of torch.compile write, each run in eager mode and compiled, and compared.

    python programs.py [--way default|dynamic|captured] [NAME...]

A program is a function of `c`, which compiles, or does nothing. It returns tensors, numbers, or trees of them. A line says what
differs, and which operators ran as PyTorch's; the exit status is 1 if anything differs. Ways: with symbols for all sizes; with
sizes and numbers of data in graphs. What PyTorch's back end aot_eager refuses, too, is told and does not count. Programs are here
and in programs_training.py, programs_networks.py, programs_python.py.
"""
import argparse
import contextlib
import copy
import dataclasses
import functools
import io
import sys
import warnings

import torch

import programs_networks
import programs_python
import programs_training
from programs_base import PROGRAMS, F, mlp, nn, program, training, values
from weft import dynamo

_OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1), "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, 0.01), "adamw": lambda p: torch.optim.AdamW(p, 0.01), "amsgrad": lambda p: torch.optim.Adam(p, 0.01, amsgrad=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.5), "adagrad": lambda p: torch.optim.Adagrad(p, 0.05),
    "adadelta": lambda p: torch.optim.Adadelta(p), "adamax": lambda p: torch.optim.Adamax(p, 0.01), "nadam": lambda p: torch.optim.NAdam(p, 0.01),
    "radam": lambda p: torch.optim.RAdam(p, 0.01), "foreach": lambda p: torch.optim.AdamW(p, 0.01, foreach=True),
}
for _name, _o in _OPTIMIZERS.items():
    PROGRAMS[f"train_{_name}"] = functools.partial(training, optimizer=_o)
    PROGRAMS[f"step_{_name}"] = functools.partial(training, optimizer=_o, compile_step=True)
_SCHEDULES = {
    "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 4), "step": lambda o: torch.optim.lr_scheduler.StepLR(o, 2),
    "one_cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=10), "lambda": lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda k: 0.9**k),
    "exponential": lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.8),
}
for _name, _s in _SCHEDULES.items():
    PROGRAMS[f"schedule_{_name}"] = functools.partial(training, optimizer=_OPTIMIZERS["momentum"], schedule=_s)
PROGRAMS["clip_norm"] = functools.partial(training, optimizer=_OPTIMIZERS["sgd"], after=lambda m: nn.utils.clip_grad_norm_(m.parameters(), 0.5))
PROGRAMS["clip_value"] = functools.partial(training, optimizer=_OPTIMIZERS["sgd"], after=lambda m: nn.utils.clip_grad_value_(m.parameters(), 0.01))


@program
def accumulation(c):
    m = mlp()
    f = c(m)
    for n in (4, 6, 3):
        (f(torch.randn(n, 8)).square().mean() / 3).backward()
    return [p.grad for p in m.parameters()]


@program
def dynamic_batches(c):
    f = c(mlp(), dynamic=True)
    return [f(torch.randn(n, 8)) for n in (1, 2, 5, 17, 64)]


@program
def running_statistics(c):
    m = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    f = c(m)
    trained = [f(torch.randn(2, 3, 6, 6)) for _ in range(3)]
    m.eval()
    return trained, f(torch.randn(2, 3, 6, 6)), values(m)


@program
def average_of_weights(c):
    m = mlp()
    averaged = torch.optim.swa_utils.AveragedModel(m, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    o, f = torch.optim.SGD(m.parameters(), 0.1), c(m)
    for _ in range(4):
        o.zero_grad()
        f(torch.randn(4, 8)).square().mean().backward()
        o.step()
        averaged.update_parameters(m)
    return values(averaged)


@program
def tied_weights(c):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.h = nn.Embedding(11, 8), nn.Linear(8, 11, bias=False)
            self.h.weight = self.e.weight

        def forward(self, t):
            return self.h(self.e(t).tanh())
    m = M()
    F.cross_entropy(c(m)(torch.arange(6)), torch.arange(6)).backward()
    return m.e.weight.grad


@program
def hooks(c):
    m, seen = mlp(), []
    m[0].register_forward_hook(lambda mod, args, out: out * 2)
    m[3].weight.register_hook(lambda g: g * 3)
    y = c(m)(torch.randn(3, 8))
    y.register_hook(lambda g: seen.append(g.detach().clone()))
    y.square().sum().backward()
    return seen, [p.grad for p in m.parameters()]


@program
def custom_function(c):
    class Clip(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.save_for_backward(x)
            ctx.k = k
            return x.clamp(-k, k)

        @staticmethod
        def backward(ctx, g):
            return g * (ctx.saved_tensors[0].abs() < 2 * ctx.k), None
    x = torch.randn(9, requires_grad=True)
    c(lambda x: Clip.apply(x * 2, 0.5).exp().sum())(x).backward()
    return x.grad


@program
def outputs_in_a_dataclass(c):
    @dataclasses.dataclass
    class Out:
        logits: torch.Tensor
        hidden: torch.Tensor
    out = c(lambda x: Out(x.relu(), x * 2))(torch.randn(3))
    return out.logits, out.hidden


@program
def outputs_in_dicts(c):
    return c(lambda x, **k: {"a": x + k["b"], "c": [x * 2, (x.sum(), None)]})(torch.randn(3), b=torch.ones(3))


@program
def graph_breaks(c):
    def f(x):
        y = x.sin()
        torch._dynamo.graph_break()
        if y.sum() > 0:
            return y * 2
        return y - 1
    return c(f)(torch.ones(3)), c(f)(-torch.ones(3))


@program
def no_grad_and_inference(c):
    m, x = mlp(), torch.randn(2, 8)
    f = c(m)
    with torch.no_grad():
        a = f(x)
    with torch.inference_mode():
        b = f(x)
    return a, b.clone(), f(x)


@program
def copies_and_states(c):
    m = mlp()
    f = c(m)
    f(torch.randn(2, 8))
    twin, file = copy.deepcopy(m), io.BytesIO()
    torch.save(m.state_dict(), file)
    file.seek(0)
    with torch.no_grad():
        m[0].weight.zero_()
    x = torch.randn(2, 8)
    zeroed = f(x).detach()
    m.load_state_dict(torch.load(file))
    return zeroed, f(x), c(twin)(x)


@program
def export_after_compile(c):
    m, x = mlp().eval(), torch.randn(2, 8)
    c(m)(x)
    return torch.export.export(m, (x,)).module()(x)


@program
def transforms(c):
    f = lambda x: (x.sin() * x).sum()
    x = torch.randn(4, 3)
    return (c(torch.func.vmap(torch.func.grad(f)))(x), c(torch.func.jacrev(lambda x: x.exp().cumsum(0)))(x[0]), c(torch.func.hessian(f))(x[0]),
            c(lambda x, v: torch.func.jvp(f, (x,), (v,)))(x, x))


@program
def functional_modules(c):
    m = mlp()
    params = dict(m.named_parameters())
    return c(torch.func.grad(lambda p, x: torch.func.functional_call(m, p, (x,)).square().sum()))(params, torch.randn(3, 8))


@program
def ensembles(c):
    models = [mlp(norm=False) for _ in range(3)]
    params, buffers = torch.func.stack_module_state(models)
    call = lambda p, b, x: torch.func.functional_call(models[0], (p, b), (x,))
    return c(torch.func.vmap(call, in_dims=(0, 0, None)))(params, buffers, torch.randn(5, 8))


@program
def complex_waves(c):
    z = torch.randn(3, 8, dtype=torch.complex64, requires_grad=True)
    y = c(lambda z: (torch.fft.fft(z * (1 + 2j)).abs() ** 2).sum())(z)
    y.backward()
    return y, z.grad


@program
def mixed_dtypes(c):
    f = c(lambda a, b, n, t: (a * b + n, (a.half() * 2).sum(), t.float().mean(), n // 2, a.double() @ a.double().T))
    return f(torch.randn(3, 3), torch.randn(3, 3, dtype=torch.float64), torch.arange(3), torch.tensor([True, False]))


@program
def writes_in_place(c):
    def f(x, cache, k):
        cache[k] = x
        x.mul_(2)
        cache[:, 0] += 1
        return cache.sum(0)
    x, cache = torch.randn(4), torch.zeros(3, 4)
    return c(f)(x, cache, 1), x, cache


@program
def second_derivatives(c):
    x = torch.randn(3, requires_grad=True)
    m = nn.Linear(3, 1)
    g, = torch.autograd.grad(m(x).tanh().sum(), x, create_graph=True)
    c(lambda g: g.square().sum())(g).backward()
    return x.grad, m.weight.grad


@program
def checkpoints(c):
    from torch.utils.checkpoint import checkpoint, checkpoint_sequential
    m, x = mlp(), torch.randn(3, 8, requires_grad=True)
    several = c(lambda x: checkpoint_sequential(m, 2, x, use_reentrant=False))
    (c(lambda x: checkpoint(m, x, use_reentrant=False))(x).sum() + several(x).sum()).backward()
    return x.grad, [p.grad for p in m.parameters()]


@program
def autocast_in_the_function(c):
    m = mlp()

    def f(x):
        with torch.autocast("cpu", torch.bfloat16):
            y = m(x)
        return F.mse_loss(y.float(), torch.ones(3, 4))
    c(f)(torch.randn(3, 8)).backward()
    return [(p.grad / 64).round(decimals=2) for p in m.parameters()]


@program
def attention_with_a_mask(c):
    q, k, v = (torch.randn(2, 2, 5, 4, requires_grad=True) for _ in range(3))
    mask = torch.ones(5, 5).tril().bool()
    c(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=mask))(q, k, v).square().sum().backward()
    return q.grad, k.grad, v.grad


@program
def frozen_layers(c):
    m = mlp()
    m[0].requires_grad_(False)
    c(m)(torch.randn(3, 8)).sum().backward()
    return [p.grad for p in m.parameters()]


@program
def losses(c):
    x, t = torch.randn(5, 4, requires_grad=True), torch.arange(5) % 4
    f = lambda x: (F.cross_entropy(x, t, label_smoothing=0.1) + F.nll_loss(x.log_softmax(1), t) + F.huber_loss(x, x.detach() + 1)
                   + F.binary_cross_entropy_with_logits(x, (x > 0).float()) + F.kl_div(x.log_softmax(1), x.detach().softmax(1), reduction="batchmean"))
    c(f)(x).backward()
    return x.grad


@program
def numbers_and_strings(c):
    f = c(lambda x, n, mode, scale: F.interpolate(x, scale_factor=n, mode=mode) * scale)
    x = torch.randn(1, 2, 4, 4)
    return f(x, 2, "nearest", 0.5), f(x, 3, "bilinear", 1.5), f(x, 2, "bicubic", -1.0)


@program
def generation(c):
    e, g, h = nn.Embedding(7, 8), nn.GRUCell(8, 8), nn.Linear(8, 7)
    step = c(lambda t, s: (lambda s: (h(s).argmax(-1), s))(g(e(t), s)))
    t, s, out = torch.tensor([1]), torch.zeros(1, 8), []
    for _ in range(6):
        t, s = step(t, s)
        out.append(t)
    return out


WAYS = {"default": {}, "dynamic": {"dynamic": True}, "captured": {}}


def run(name, way=None, backend=dynamo.backend):
    """The results of a program: in eager mode, or compiled in a way."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    dynamo.statistics.reset()
    c = functools.partial(torch.compile, **{"backend": backend, **WAYS[way]}) if way else lambda f, **_: f
    captured = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True, "allow_rnn": True}
    with torch._dynamo.config.patch(captured) if way == "captured" else contextlib.nullcontext():
        return torch.utils._pytree.tree_leaves(PROGRAMS[name](c))


def differs(name, way="default"):
    """What is wrong with a program's results; "" if nothing is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want, got = run(name), run(name, way)
    if len(want) != len(got):
        return f"{len(got)} results, expected {len(want)}"
    for k, (a, b) in enumerate(zip(got, want)):
        try:
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4, equal_nan=True)
            if isinstance(b, torch.Tensor):
                assert a.requires_grad == b.requires_grad, f"requires_grad is {a.requires_grad}"
                assert a.is_inference() == b.is_inference(), f"is_inference is {a.is_inference()}"
        except AssertionError as e:
            return f"result {k}: " + " ".join(str(e).split())[:160]
    return ""


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--way", choices=WAYS, default="default")
    p.add_argument("names", nargs="*")
    options = p.parse_args()
    torch._logging.set_logs(all=50)
    failed, names = 0, options.names or PROGRAMS
    for name in names:
        try:
            why = differs(name, options.way)
        except Exception as e:
            why = f"{type(e).__name__}: " + " ".join(str(e).split())[:200]
            try:
                run(name, options.way, "aot_eager")
            except Exception:
                print(f"{name}: PyTorch raises, too: {why}")
                continue
        failed += bool(why)
        refused = "; ".join(f"{op} ({n})" for op, n in dynamo.statistics.refused.items())
        print(f"{name}: {why or 'ok'}{', PyTorch ran ' + refused if refused else ''}", flush=True)
    print(f"{len(names) - failed} agree, {failed} differ")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
