"""Training steps under autocast by torch.compile(backend="weft"), in bf16 and f16: modules of PyTorch's database, and networks.

    python autocast_db.py [--only NAME,...] [--dtypes bf16,f16] [--samples N] [--modules] [--networks] [--verbose]

Modules get inputs of f32 and of the narrow dtype. Each runs forward and backward in float64, in eager mode under autocast, and
compiled under autocast. Of every result and gradient, the distance (the norm of the difference) from float64's may be 3 times the
sum of eager mode's distance and half a unit in the last place; dtypes are to be eager mode's. The networks are those of
bench/torch_models.py, with random weights and without dropout: they need torchvision, timm and transformers, and are left out where
these are not there. Needs expecttest. The exit status is 1 if anything is wrong.
"""
import argparse
import copy
import pathlib
import sys
import warnings

import torch

from databases import copied, tensors
from weft import dynamo

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
import torch_models

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
FACTOR, UNITS = 3, 0.5
NETWORKS = ["resnet18", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5", "regnet_y_400mf", "densenet121", "timm.resnet10t",
            "timm.repvgg_a0", "timm.poolformer_s12", "timm.deit_tiny_patch16_224", "bert", "gpt2", "llama", "t5_encoder", "albert"]


def distances(got, want, exact, unit):
    """Of each tensor by name: its distance from float64's, in eager mode's. inf: it has another type, or is not there."""
    found, size = {}, max((e.square().mean().sqrt().item() for n, e in exact.items() if n.startswith("gradient") and e.numel()), default=0.0)
    for name, e in exact.items():
        g, w = got.get(name), want.get(name)
        if (g is None) != (w is None) or g is not None and (g.dtype != w.dtype or g.shape != w.shape):
            return {name: float("inf")}
        if g is None or not w.is_floating_point() or not e.numel() or not bool(w.isfinite().all()):
            continue
        own = e.norm().item() + (0.1 * size * e.numel() ** 0.5 if name.startswith("gradient") else 0)
        found[name] = (g.double() - e).norm().item() / ((w.double() - e).norm().item() + UNITS * unit * own + 1e-30)
    return found


def converted(tree, dtype):
    """Copies of the tensors, those of floating-point numbers in another dtype."""
    def one(t):
        if not isinstance(t, torch.Tensor):
            return t
        return (t.detach().to(dtype) if t.is_floating_point() else t.detach().clone()).requires_grad_(t.requires_grad)
    return torch.utils._pytree.tree_map(one, tree)


def step(module, f, args, named, dtype):
    """Results, and the gradients of their weighted sum, by name. dtype: of autocast, or None."""
    torch.manual_seed(0)
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        out = tensors(torch_models.results(f(*args, **named)))
    torch.manual_seed(1)
    loss = [(t.to(torch.float64) * torch.randn(t.shape, dtype=torch.float64)).sum() for t in out]
    roots = [x for x, t in zip(loss, out) if t.requires_grad]
    if roots:
        sum(roots).backward()
    leaves = {**dict(module.named_parameters()), **{f"input {k}": t for k, t in enumerate(tensors((args, named))) if t.requires_grad}}
    return {f"result {k}": t.detach() for k, t in enumerate(out)} | {f"gradient of {n}": p.grad for n, p in leaves.items() if p.grad is not None}


class Table:
    def __init__(self, verbose):
        self.verbose, self.steps, self.worst, self.wrong, self.eager, self.left_out = verbose, 0, {}, [], {}, []

    def sample(self, name, module, args, named, dtype):
        label, twin, exact = f"{name} {dtype}", copy.deepcopy(module), copy.deepcopy(module).double()
        wide_args, wide_named = converted((args, named), torch.float64)
        try:
            e = step(exact, exact, wide_args, wide_named, None)
            want = step(module, module, *copied((args, named)), DTYPES[dtype])
        except Exception as why:
            self.left_out.append(f"{label}: {' '.join(str(why).split())[:80]}")
            return
        torch._dynamo.reset()
        dynamo.statistics.reset()
        try:
            got = step(twin, torch.compile(twin, backend=dynamo.backend), *copied((args, named)), DTYPES[dtype])
            found = distances(got, want, e, torch.finfo(DTYPES[dtype]).eps)
        except Exception as why:
            found = {f"{type(why).__name__}: {' '.join(str(why).split())[:200]}": float("inf")}
        for op in dynamo.statistics.refused:
            self.eager.setdefault(op, []).append(label)
        if not dynamo.statistics.graphs:
            self.left_out.append(f"{label}: Dynamo gave no graph")
            return
        where, most = max(found.items(), key=lambda f: f[1], default=("", 0.0))
        self.steps += 1
        self.worst[label] = max(most, self.worst.get(label, 0.0))
        if most > FACTOR:
            self.wrong.append(label)
        if most > FACTOR or self.verbose:
            print(f"{'WRONG' if most > FACTOR else 'right'} {label}: {most:.2f} of eager mode's distance ({where})", flush=True)

    def print(self):
        order = sorted(self.worst.items(), key=lambda x: -x[1])
        print(f"{self.steps} steps, {len(self.wrong)} wrong; most of eager mode's distance from float64: " + ", ".join(f"{n} {r:.2f}" for n, r in order[:5]))
        for op, names in self.eager.items():
            print(f"    ran as PyTorch's: {op} ({', '.join(names[:4])})")
        print(f"{len(self.left_out)} left out")
        for why in self.left_out if self.verbose else ():
            print(f"    {why}")


def without_dropout(module):
    for part in module.modules():
        if "Dropout" in type(part).__name__:
            part.p = 0.0
        if hasattr(part, "dropout") and isinstance(part.dropout, float):
            part.dropout = 0.0
    return module


def modules(table, options):
    from torch.testing._internal.common_modules import module_db
    for info in sorted(module_db, key=lambda m: m.name):
        if options.only and info.name not in options.only:
            continue
        samples = [s for s in info.module_inputs_func(info, "cpu", torch.float32, True, True) if s.forward_input is not None]
        for s in samples[::max(len(samples) // options.samples, 1)][:options.samples]:
            torch.manual_seed(0)
            m = without_dropout(info.module_cls(*s.constructor_input.args, **s.constructor_input.kwargs).train())
            args, named = tuple(s.forward_input.args), dict(s.forward_input.kwargs)
            if "Lazy" in info.name:
                m(*args, **named)  # makes the weights
            layers = any(isinstance(part, torch.nn.RNNBase) for part in m.modules())
            with torch._dynamo.config.patch(allow_rnn=layers), torch.backends.mkldnn.flags(enabled=not layers):
                for dtype in options.dtypes:
                    table.sample(info.name, copy.deepcopy(m), args, named, dtype)
                    table.sample(f"{info.name} of narrow inputs", copy.deepcopy(m), *converted((args, named), DTYPES[dtype]), dtype)


def networks(table, options):
    for name in NETWORKS:
        if options.only and name not in options.only:
            continue
        try:
            m, args, named = torch_models.made(name, True)
        except ImportError as why:
            print(f"{name} is left out: {why}")
            continue
        for dtype in options.dtypes:
            table.sample(name, copy.deepcopy(m), args, named, dtype)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", type=lambda s: set(s.split(",")))
    p.add_argument("--dtypes", type=lambda s: s.split(","), default=list(DTYPES))
    p.add_argument("--samples", type=int, default=1, help="of each module")
    p.add_argument("--modules", action="store_true")
    p.add_argument("--networks", action="store_true")
    p.add_argument("--verbose", action="store_true")
    options = p.parse_args()
    warnings.simplefilter("ignore")
    torch._logging.set_logs(all=50)
    table = Table(options.verbose)
    for kind in (modules, networks):
        if getattr(options, kind.__name__) or not options.modules and not options.networks:
            kind(table, options)
    table.print()
    return bool(table.wrong)


if __name__ == "__main__":
    sys.exit(main())
