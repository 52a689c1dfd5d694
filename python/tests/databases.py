"""PyTorch's databases of operators and modules through torch.compile(backend="weft"), forward and backward.

    python databases.py op_db [--every K] [--only NAME,...] [--samples N] [--no-fallback] [--verbose]
    python databases.py module_db ...

Each sample (float32) runs in eager mode and compiled; results and gradients by the inputs are compared. Prints a
table: how many agree, differ, had nodes that ran as PyTorch's operators, or were refused by PyTorch itself. Needs
expecttest. Each wrong answer is a line.
"""
import argparse
import os
import sys
import time
import warnings
from collections import Counter

import torch

import weft
from weft import dynamo


def tensors(tree):
    return [t for t in torch.utils._pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def copied(tree):
    return torch.utils._pytree.tree_map(lambda t: t.detach().clone(memory_format=torch.preserve_format).requires_grad_(t.requires_grad)
                                        if isinstance(t, torch.Tensor) else t, tree)


def doubled(tree):
    wider = {torch.float32: torch.float64, torch.complex64: torch.complex128}
    return torch.utils._pytree.tree_map(lambda t: t.detach().to(wider.get(t.dtype, t.dtype)).requires_grad_(t.requires_grad)
                                        if isinstance(t, torch.Tensor) else t, tree)


def run(f, inputs, weights, process=None):
    """Results, and gradients by the inputs that require them. process: makes results that are not unique (the signs
    of eigenvectors) comparable."""
    torch.manual_seed(0)
    out = f(inputs)
    out = process(out) if process else out
    roots = [t for t in tensors(out) if t.requires_grad and (t.is_floating_point() or t.is_complex())]
    wrt = [t for t in tensors(inputs) if t.requires_grad] + weights
    grads = []
    if roots and wrt:
        torch.manual_seed(1)
        grads = torch.autograd.grad(roots, wrt, [torch.randn_like(t.detach().contiguous()) for t in roots], allow_unused=True)
    return tensors(out), [g for g in grads if g is not None]


def differ(got, want, rtol, atol):
    if len(got) != len(want):
        return f"{len(got)} tensors, expected {len(want)}"
    for a, b in zip(got, want):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{a.dtype}{list(a.shape)}, expected {b.dtype}{list(b.shape)}"
        try:
            torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as e:
            return " ".join(str(e).split())[:160]
    return None


class Table:
    def __init__(self, verbose):
        self.count, self.wrong, self.failed, self.verbose = Counter(), [], [], verbose
        self.eager: dict[str, list[str]] = {}
        self.seconds = 0.0

    def sample(self, name, f, inputs, weights=(), twin=None, twin_weights=(), random=False, process=None, backend=dynamo.backend, tolerance=(2e-4, 2e-4)):
        """twin: the function to compile, if that is another one."""
        def said(kind, why=""):
            self.count[kind] += 1
            if self.verbose or kind in ("wrong", "failed"):
                print(f"{kind:8} {name}: {why}", flush=True)
            if kind == "wrong":
                self.wrong.append((name, why))
            if kind == "failed":
                self.failed.append((name, why))
        try:
            want, want_grads = run(f, copied(inputs), list(weights), process)
        except Exception as e:
            return said("not here", repr(e)[:100])
        torch._dynamo.reset()
        dynamo.statistics.reset()
        start = time.monotonic()
        try:
            fast = torch.compile(twin or f, backend=backend, fullgraph=True, dynamic=False)
            got, got_grads = run(fast, copied(inputs), list(twin_weights), process)
        except Exception as e:
            text = " ".join(f"{type(e).__name__}: {e}".split())
            graph = isinstance(e, torch._dynamo.exc.Unsupported) or "data-dependent" in text or "DataDependent" in text or "Dynamic" in text.split(":")[0]
            if not graph and "weft" not in text.lower() and backend is dynamo.backend:
                try:  # what fails with PyTorch's own operators, too
                    torch._dynamo.reset()
                    run(torch.compile(twin or f, backend="aot_eager", fullgraph=True, dynamic=False), copied(inputs), list(twin_weights), process)
                except Exception:
                    graph = True
            return said("dynamo" if graph else "failed", text[:260])
        finally:
            self.seconds += time.monotonic() - start
        def near(a, b, k):
            """Whether a differs from the result in float64 by at most 8 times what eager mode's b does."""
            try:
                exact = run(f, doubled(inputs), [], process)[k] if not weights else []
            except Exception:
                return False
            return bool(exact) and len(a) == len(b) == len(exact) and all(
                x.shape == e.shape and (x.to(e.dtype) - e).abs().nan_to_num().amax() <= 8 * (y.to(e.dtype) - e).abs().nan_to_num().amax() + 1e-6
                for x, y, e in zip(a, b, exact) if e.numel() and e.dtype != torch.bool)
        if random:
            why = differ([torch.zeros_like(t) for t in got], [torch.zeros_like(t) for t in want], 1, 1) if not any(t.dtype == torch.bool for t in got) else None
        else:
            why = differ(got, want, *tolerance)
            why = None if why and near(got, want, 0) else why
            why = why or ((g := differ(got_grads, want_grads, *(10 * t for t in tolerance))) and not near(got_grads, want_grads, 1) and "gradient: " + g)
        if why:
            return said("wrong", why)
        for op in dynamo.statistics.refused:
            self.eager.setdefault(op, []).append(name)
        said("eager" if dynamo.statistics.refused else "right")

    def print(self):
        n = sum(self.count.values())
        mine = n - self.count["not here"] - self.count["dynamo"]
        print(f"\n{n} samples in {self.seconds:.0f} s of compiling and running")
        print(f"  {self.count['right']:5} agree, all compiled ({100 * self.count['right'] / max(mine, 1):.1f} % of those that PyTorch compiles)")
        print(f"  {self.count['eager']:5} agree, some nodes ran as PyTorch's operators")
        print(f"  {self.count['wrong']:5} wrong")
        print(f"  {self.count['failed']:5} failed")
        print(f"  {self.count['dynamo']:5} have no whole graph in Dynamo, or fail with aot_eager too")
        print(f"  {self.count['not here']:5} fail in eager mode")
        for op, names in sorted(self.eager.items(), key=lambda e: -len(e[1])):
            print(f"        {op}: {len(names)} ({', '.join(names[:4])}{', ...' if len(names) > 4 else ''})")


def op_db(table, options):
    from torch.testing._internal.common_methods_invocations import op_db as ops
    ops = sorted((o for o in ops if torch.float32 in o.dtypes), key=lambda o: (o.name, o.variant_test_name))
    for k, op in enumerate(ops):
        name = f"{op.name}.{op.variant_test_name}".rstrip(".")
        if k % options.every or (options.only and op.name not in options.only and name not in options.only):
            continue
        torch.manual_seed(k)
        try:
            samples = list(op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd))
        except Exception as e:
            print("no samples", name, repr(e)[:100])
            continue
        samples = [s for s in samples if tensors((s.input, s.args, s.kwargs))] or samples
        step = max(len(samples) // options.samples, 1)
        for s in samples[len(samples) // 2 % step::step][: options.samples]:
            def f(given, op=op, s=s):
                return op.op(*given[0], **given[1])
            random = op.name in RANDOM or "dropout" in op.name
            table.sample(name, f, ((s.input, *s.args), s.kwargs), random=random, process=s.output_process_fn_grad)


RANDOM = {"bernoulli", "normal", "multinomial", "rand_like", "randn_like", "randint_like", "randint", "randn", "uniform", "cauchy", "exponential",
          "geometric", "log_normal", "nn.functional.rrelu", "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty",
          "new_empty_strided", "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d", "svd_lowrank", "pca_lowrank",
          "nn.functional.scaled_dot_product_attention"}


def module_db(table, options):
    import copy
    from torch.testing._internal.common_modules import module_db as modules
    for k, info in enumerate(sorted(modules, key=lambda m: m.name)):
        if k % options.every or (options.only and info.name not in options.only):
            continue
        for training in (True, False):
            try:
                samples = info.module_inputs_func(info, "cpu", torch.float32, True, training)
            except Exception as e:
                print("no samples", info.name, repr(e)[:100])
                continue
            for s in samples[:: max(len(samples) // options.samples, 1)][: options.samples]:
                torch.manual_seed(0)
                try:
                    m = info.module_cls(*s.constructor_input.args, **s.constructor_input.kwargs).train(training)
                except Exception:
                    continue
                if s.forward_input is None:
                    continue
                twin = copy.deepcopy(m)
                random = training and any("Dropout" in type(x).__name__ or type(x).__name__ == "RReLU" or getattr(x, "dropout", 0) for x in m.modules())
                table.sample(f"{info.name} {'train' if training else 'eval'}", lambda given, m=m: m(*given[0], **given[1]),
                             (tuple(s.forward_input.args), dict(s.forward_input.kwargs)), list(p for p in m.parameters() if p.requires_grad),
                             lambda given, m=twin: m(*given[0], **given[1]), list(p for p in twin.parameters() if p.requires_grad), random=random)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("database", choices=["op_db", "module_db"])
    p.add_argument("--every", type=int, default=1)
    p.add_argument("--only", type=lambda s: set(s.split(",")))
    p.add_argument("--samples", type=int, default=1)
    p.add_argument("--verbose", action="store_true")
    options = p.parse_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("TORCH_LOGS", "-all")
    torch._logging.set_logs(all=50)
    torch._dynamo.config.cache_size_limit = 1000
    table = Table(options.verbose)
    {"op_db": op_db, "module_db": module_db}[options.database](table, options)
    table.print()
    return 1 if table.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
