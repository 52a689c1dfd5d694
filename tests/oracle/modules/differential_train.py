"""Random modules with a loss, and PyTorch's gradients: differential_train.py OUT --seed N --count N  (needs torch, safetensors)
Makes OUT/SEED.pt2 with OUT/SEED.safetensors for each seed: x.<i> inputs, y.<i> losses, g.<i> and gp.<parameter> the gradients of their sum by
inputs and by parameters that have one, metadata `program`, `patterns` and how far each result may be off (`allow.<i>`, `allow.g.<i>`,
`allow.gp.<parameter>`, see `weft check --help-all`). A module is 2 to 9 steps of differential_train_steps.py and a loss, in float64 or float32; three
of ten have sizes that are symbols, and are run at another size than they were exported with; of one batch of seeds in eight export is strict.

The reference is what PyTorch's autograd makes of the file as it was read back (`ep.module()`), in float64; what the file has lost (custom
functions) is nobody's to find. A module that rounds where a rounding decides is left out: with noise of a few units in the last place after
each step that rounds, the gradients of those that are kept stay where they are. How far noise moves them is what is allowed."""
import copy
import json
import random
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from torch.export import Dim, export

sys.path.insert(0, str(Path(__file__).parent))
import differential_train_steps as steps  # noqa: E402
from differential_make import SideBySide, Skip, arguments, rewrite  # noqa: E402

STRICT = 320 * 8  # of so many seeds the first 320


class Net(nn.Module):
    """Steps over a list of values; each names its operands by number. The last one gives the loss."""

    def __init__(self, made):
        super().__init__()
        self.step = nn.ModuleList(made)

    def forward(self, *inputs):
        v = list(inputs)
        for s in self.step:
            y = s(*[v[k] for k in s.at])
            v.append(y if s.exact else steps.noisy(y))
        return v[-1]


@dataclass
class Case:
    seed: int
    module: nn.Module
    inputs: list
    text: str
    patterns: set
    moves: list = None
    others: list = None

    def take_others(self):
        self.inputs = self.others
        self.text += "; at " + str([list(x.shape) for x in self.inputs])
        self.patterns = self.patterns | {"another size"}


# ---- drawing ----

def random_input(r, g, dtype, shape):
    """Quarters, among which are ties and zeros, or normal numbers."""
    if r.random() < 0.35:
        return (torch.randint(-6, 7, shape, generator=g) / 4).to(dtype)
    return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)


def random_inputs(r, g, dtype):
    rank = r.choice([1, 2, 2, 2, 3, 3, 4])
    shape = [r.choice([1, 2, 3, 4, 5, 6]) if rank < 4 else r.choice([1, 2, 3, 4]) for _ in range(rank)]
    inputs = [random_input(r, g, dtype, shape)]
    while len(inputs) < 3 and r.random() < 0.4:
        inputs.append(random_input(r, g, dtype, shape[r.randrange(rank) if r.random() < 0.2 else 0:]))
    return inputs


def take_step(d):
    step = d.r.choice(steps.MAKERS)(d)
    if step is None:
        return None
    try:
        with torch.no_grad():
            y = copy.deepcopy(step)(*[d.values[k].clone() for k in step.at])
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError, AssertionError):
        return None
    good = isinstance(y, torch.Tensor) and y.dtype == d.dtype and 0 < y.numel() <= 600 and y.isfinite().all() and y.abs().max() < 1e4
    return (step, y) if good else None


def draw_net(r, g):
    dtype = torch.float64 if r.random() < 0.6 else torch.float32
    inputs = random_inputs(r, g, dtype)
    d = steps.Draw(r, g, list(inputs), [], dtype)
    length, tries = r.randint(2, 9), 0
    while len(d.steps) < length and tries < 120:
        tries += 1
        taken = take_step(d)
        if taken:
            d.steps.append(taken[0])
            d.values.append(taken[1])
    if not d.steps:
        raise Skip("no step fits")
    d.steps.append(steps.loss_step(d, d.values[-1], len(d.values) - 1))
    return Net(d.steps), inputs


def patterns_of(net, inputs):
    found = {p for s in net.step for p in s.patterns}
    read = [k for s in net.step for k in s.at]
    if any(read.count(k) > 1 for k in read):
        found.add("several readers")
    if any(1 in x.shape for x in inputs):
        found.add("extent 1")
    return found | {"float32" if inputs[0].dtype == torch.float32 else "float64"}


def describe(net, inputs):
    text = [f"x{k}: {str(x.dtype)[6:]}{list(x.shape)}" for k, x in enumerate(inputs)]
    text += [f"v{len(inputs) + k} = {s.text}({', '.join(f'v{i}' for i in s.at)})" for k, s in enumerate(net.step)]
    return "; ".join(text)


# ---- gradients ----

def gradients(module, inputs):
    """Losses, gradients by inputs, {name: gradient} by parameters; None where there is none."""
    x = [t.detach().clone().requires_grad_(t.is_floating_point()) for t in inputs]
    y = module(*x)
    y = list(y) if isinstance(y, (tuple, list)) else [y]
    for p in module.parameters():
        p.grad = None
    total = sum(t for t in y if t.requires_grad)
    if isinstance(total, torch.Tensor):
        total.backward()
    # of one parameter under several names the first has the gradient
    return [t.detach() for t in y], [t.grad for t in x], {n: p.grad for n, p in module.named_parameters()}


def doubled(x):
    return x.double() if x.is_floating_point() else x


def results_of(net, inputs, noise, seed=0):
    """In float64, with noise of that size: {key: tensor}."""
    steps.NOISE[:] = [noise, torch.Generator().manual_seed(seed)]
    try:
        y, g, p = gradients(copy.deepcopy(net).double(), [doubled(x) for x in inputs])
    finally:
        steps.NOISE[:] = [0.0, None]
    found = {f"y.{k}": t for k, t in enumerate(y)}
    found |= {f"g.{k}": t for k, t in enumerate(g) if t is not None}
    return found | {f"gp.{n}": t for n, t in p.items() if t is not None}


def size_of(t):
    return t.abs().max().item() if t.numel() else 0.0


def moved(clean, other):
    """{key: how far}; infinite where there are other gradients."""
    if set(clean) != set(other):
        raise Skip("noise decides what has a gradient")
    return {k: size_of(clean[k] - other[k]) for k in clean}


def spread(net, inputs):
    """{key: how far right results are apart}. Skip where they jump."""
    clean = results_of(net, inputs, 0)
    if not all(t.isfinite().all() for t in clean.values()):
        raise Skip("not finite")
    scale = max([size_of(t) for t in clean.values()] + [1e-3])
    single = inputs[0].dtype == torch.float32
    found = {k: 1e-12 * max(scale, 1) for k in clean}
    for seed in range(3):
        for k, far in moved(clean, results_of(net, inputs, 1e-12, seed)).items():
            if far > 1e-7 * max(size_of(clean[k]), 1e-2 * scale):
                raise Skip("jumps")
            found[k] = max(found[k], far / 10)
    for seed in range(3 if single else 0):
        for k, far in moved(clean, results_of(net, inputs, 1.2e-7, seed)).items():
            if far > 1e-2 * max(size_of(clean[k]), 1e-2 * scale):
                raise Skip("ill-conditioned")
            found[k] = max(found[k], far, 1e-6 * scale)
    return found


# ---- cases ----

def other_inputs(r, g, inputs):
    """Which inputs have the leading size, and inputs of another one; None where that is not one size."""
    lead = inputs[0].shape[0]
    if lead < 2 or any(x.dim() == inputs[0].dim() and x.shape[0] != lead for x in inputs):
        return None
    move = [x.dim() == inputs[0].dim() for x in inputs]
    size = r.choice([2, 3, 4, 6, 7, 9])
    return move, [random_input(r, g, x.dtype, [size, *x.shape[1:]]) if m else x for x, m in zip(inputs, move)]


def make_case(seed, skip):
    r, g = random.Random(seed), torch.Generator().manual_seed(seed)
    net, inputs = draw_net(r, g)
    case = Case(seed, net, inputs, describe(net, inputs), patterns_of(net, inputs))
    if case.patterns & skip:
        raise Skip("not wanted")
    spread(net, inputs)
    others = other_inputs(r, g, inputs) if r.random() < 0.3 else None
    if others:
        try:
            spread(net, others[1])
            case.moves, case.others = others
        except Exception:  # noqa: BLE001: it still has its own size
            pass
    return case


def try_case(seed, skip=frozenset()):
    try:
        return make_case(seed, skip)
    except Exception as e:  # noqa: BLE001: PyTorch refuses many random modules
        complain(seed, e)
        return None


def complain(seed, e):
    at = e.__traceback__
    while at.tb_next:
        at = at.tb_next
    if isinstance(e, (NameError, AttributeError, KeyError)) and "differential" in at.tb_frame.f_code.co_filename:
        print(f"{seed}: {type(e).__name__}: {e}", file=sys.stderr)


# ---- files ----

def exported(cases, strict):
    inputs = tuple(x.clone() for c in cases for x in c.inputs)
    module = SideBySide([replace(c, module=copy.deepcopy(c.module)) for c in cases])
    dynamic = None
    if any(c.moves for c in cases):
        dynamic = (tuple({0: Dim.AUTO} if m else {} for c in cases for m in c.moves or [False] * len(c.inputs)),)
        dynamic = dynamic if not strict else None
    return export(module, inputs, dynamic_shapes=dynamic, strict=strict)


def take_sizes(program, cases):
    """Other sizes for the modules whose export accepts them."""
    def accepts(chosen):
        try:
            with torch.no_grad():
                program.module()(*[x for c in cases for x in (c.others if c in chosen else c.inputs)])
            return True
        except Exception:  # noqa: BLE001: guards raise what they like
            return False
    chosen = [c for c in cases if c.others and accepts([c])]
    if accepts(chosen):
        for c in chosen:
            c.take_others()


def reference(path, cases):
    """What PyTorch's autograd makes of the file: in float64, and in the model's own dtypes."""
    inputs = [x for c in cases for x in c.inputs]
    wide = torch.export.load(path).module().double()
    return gradients(wide, [doubled(x) for x in inputs]), gradients(torch.export.load(path).module(), inputs)


def named(found):
    y, g, p = found
    return {f"y.{k}": t for k, t in enumerate(y)} | {f"g.{k}": t for k, t in enumerate(g)} | {f"gp.{n}": t for n, t in p.items()}


def file_key(key, part, cases):
    """The name in the file of a result of one module."""
    kind, name = key.split(".", 1)
    if kind == "y":
        return f"y.{part}"
    return f"gp.part.{part}.{name}" if kind == "gp" else f"g.{sum(len(c.inputs) for c in cases[:part]) + int(name)}"


def allowed(cases, wide, own):
    """{key in the file: absolute error}."""
    found = {}
    for part, c in enumerate(cases):
        far = spread(c.module, c.inputs)
        for key, s in far.items():
            name = file_key(key, part, cases)
            eager = size_of(wide[name].double() - own[name].double()) if wide.get(name) is not None and own.get(name) is not None else 0
            found[name] = 8 * max(s, eager)
    largest = max(found.values(), default=1e-9)
    return {k: found.get(k, largest) for k, t in wide.items() if t is not None}


def save(folder, program, cases):
    name = "-".join(str(s) for s in sorted({cases[0].seed, cases[-1].seed}))
    raw = folder / "raw.pt2"
    torch.export.save(program, raw)
    try:
        wide, own = (named(f) for f in reference(raw, cases))
        if not all(t.isfinite().all() for t in wide.values() if t is not None):
            raise Skip("not finite")
        allow = allowed(cases, wide, own)
        rewrite(raw, folder / f"{name}.pt2")
    finally:
        raw.unlink()
    tensors = {f"x.{k}": x.detach().contiguous().clone() for k, x in enumerate(x for c in cases for x in c.inputs)}
    tensors |= {k: t.to(own[k].dtype).detach().contiguous().clone() for k, t in wide.items() if t is not None and own.get(k) is not None}
    tensors |= {f"ct.{k}": torch.ones((), dtype=own[f"y.{k}"].dtype) for k in range(len(cases))}
    metadata = {"program": " | ".join(c.text for c in cases), "patterns": json.dumps([sorted(c.patterns) for c in cases]),
                "parts": json.dumps([[c.seed, 1, c.text, len(c.inputs)] for c in cases])}
    metadata |= {f"allow.{k.removeprefix('y.')}": f"0 {a:.3g} 0" for k, a in allow.items() if k in tensors}
    save_file(tensors, folder / f"{name}.safetensors", metadata=metadata)


def save_cases(folder, cases, strict):
    """In one file, or in several where PyTorch does not export them together. How many were saved."""
    try:
        program = exported(cases, strict)
        take_sizes(program, cases)
        save(folder, program, cases)
        return len(cases)
    except Exception as e:  # noqa: BLE001
        if len(cases) == 1:
            complain(cases[0].seed, e)
            return 0
    again = [c for c in (try_case(c.seed) for c in cases) if c]
    half = len(again) // 2
    return sum(save_cases(folder, part, strict) for part in (again[:half], again[half:]) if part)


def make(folder, seeds, skip=frozenset()):
    folder.mkdir(parents=True, exist_ok=True)
    made = 0
    for strict in (False, True):
        cases = [c for c in (try_case(s, skip) for s in seeds if (s % STRICT < 320) == strict) if c]
        made += save_cases(folder, cases, strict) if cases else 0
    return made


def serve():
    """For each line {"folder": ..., "pools": [[SEED, ...], ...], "skip": [PATTERN, ...]} the number of modules made there."""
    for line in sys.stdin:
        request = json.loads(line)
        print(sum(make(Path(request["folder"]), seeds, set(request["skip"])) for seeds in request["pools"]), flush=True)


def main():
    args = arguments(__doc__)
    if not args.out:
        return serve()
    seeds = range(args.seed, args.seed + args.count)
    made = sum(make(args.out, seeds[k:k + args.pool]) for k in range(0, args.count, args.pool))
    print(f"{made} modules of {args.count} seeds")


if __name__ == "__main__":
    main()
