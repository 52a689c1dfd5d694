"""Random modules with PyTorch's results: differential_make.py OUT --seed N --count N  (needs torch, safetensors, expecttest)
Makes OUT/SEED.pt2 with OUT/SEED.safetensors for each seed: x.<i> inputs, y.<i> results, metadata `program` (the module as
text) and `allow.<i>` (how far a result may be off, see `weft check --help-all`). A module is one operator of PyTorch's operator
database with one of its samples, or a chain of 1 to 8 steps; three of ten chains have sizes that are symbols, and are run at
another size than they were exported with.

What is allowed. A result on which nothing was rounded but by operations that IEEE 754 defines, or by casts, must be PyTorch's
exactly. Other results are compared with the same chain in float64 that rounds at the model's own casts: within the units in the
last place of the storage types in which was computed, plus some times PyTorch's own error, plus twice what computations differ by that
round some values of a storage type and keep others; they are never the operand of a step that jumps."""
import argparse
import json
import random
import re
import sys
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.export import Dim, export
from torch.utils import _pytree as pytree

sys.path.insert(0, str(Path(__file__).parent))
import differential_idioms  # noqa: E402, F401: adds its steps
from differential_steps import STEPS, STORAGE, Grain, Value, beyond_rounding, largest  # noqa: E402

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


class Skip(Exception):
    """This seed gives no module: PyTorch refuses it, or it defines nothing to compare."""


# ---- chains ----

class Chain(torch.nn.Module):
    """Steps over a list of values; each names its operands by number."""

    def __init__(self, steps, results, constants):
        super().__init__()
        self.steps, self.results, self.names = steps, results, []
        for k, c in enumerate(constants):
            self.register_buffer(f"c{k}", c)

    def constant(self, k):
        return getattr(self, f"c{k}")

    def values(self, inputs, wide):
        v = list(inputs)
        for step in self.steps:
            constants = [self.constant(k) for k in step.constants]
            if wide:
                constants = [c.double() if c.is_floating_point() else c for c in constants]
            v.append(step.apply(*[v[k] for k in step.operands], *constants, wide=wide))
        return v

    def forward(self, *inputs):
        v = self.values(inputs, False)
        return tuple(v[k] for k in self.results)


def random_input(r, g, dtype, shape):
    """Small multiples of 1/8, so that comparisons meet ties; or normal numbers; or, seldom, what is special."""
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=g).bool()
    if not dtype.is_floating_point:
        low, high = (torch.iinfo(dtype).min, torch.iinfo(dtype).max) if r.random() < 0.25 else (0, 12)
        return torch.randint(low, high, shape, generator=g, dtype=dtype)
    kind = r.random()
    if kind < 0.45:
        return (torch.randint(-32, 33, shape, generator=g) / 8).to(dtype)
    x = torch.randn(shape, generator=g, dtype=torch.float64)
    if kind > 0.93:
        special = torch.tensor([float("inf"), -float("inf"), float("nan"), 0.0, -0.0, 65504.0, 1e-7, 3e4, -1e4])
        chosen = special[torch.randint(0, len(special), shape, generator=g)]
        return torch.where(torch.rand(shape, generator=g) < 0.3, chosen, x.float()).to(dtype)
    return x.to(dtype)


def random_inputs(r, g):
    """One to three inputs, most of a shape that broadcasts with the first's, and their leading size if that is a symbol."""
    rank = r.choice([1, 2, 2, 3, 3, 4])
    shape = [r.choice([1, 1, 2, 3, 4, 5, 7, 8, 17]) if rank < 4 else r.choice([1, 2, 3, 6]) for _ in range(rank)]
    if r.random() < 0.05:
        shape[r.randrange(rank)] = 0
    dtype = r.choice(FLOATS * 3 + INTEGERS + [torch.bool])
    inputs = [random_input(r, g, dtype, shape)]
    while len(inputs) < 3 and r.random() < 0.4:
        other = [1 if r.random() < 0.2 else n for n in shape][r.randrange(rank) if r.random() < 0.2 else 0:]
        other_dtype = dtype if r.random() < 0.6 else r.choice(FLOATS + INTEGERS + [torch.bool])
        inputs.append(random_input(r, g, other_dtype, other))
    return inputs


def equal(a, b):
    return torch.equal(a.double().nan_to_num(nan=1e300), b.double().nan_to_num(nan=1e300))


def doubled(x):
    return x.double() if x.is_floating_point() else x


def rerun(chain, inputs, each):
    """The chain's values, each of which is each(its number, step, operands with the step's constants behind them)."""
    v = list(inputs)
    for step in chain.steps:
        v.append(each(len(v), step, [v[k] for k in step.operands] + [chain.constant(k) for k in step.constants]))
    return v


def mixed(chain, values, r):
    """In float64, with the roundings that an implementation may do, or not."""
    def each(k, step, args):
        value, d = values[k], values[k].model.dtype
        if value.grain.defined() or not value.model.is_floating_point():
            return value.wide
        args = [doubled(x) for x in args]
        y = step.rough(d, r.random(), *args) if step.rough else step.apply(*args, wide=True)
        return y.to(d).double() if d in STORAGE and r.random() < 0.5 else y
    return rerun(chain, [v.wide for v in values[:len(values) - len(chain.steps)]], each)


def narrowed(chain, values, narrow):
    """On the inputs rounded to float32: in float32, or (not narrow) in float64. What is exact in float64 has no error there."""
    inputs = [v.model.float() if v.model.dtype == torch.float64 else v.model for v in values[:len(values) - len(chain.steps)]]
    wide = rerun(chain, [doubled(x) for x in inputs], lambda k, step, args: step.apply(*[doubled(x) for x in args], wide=True))
    if not narrow:
        return wide

    def each(k, step, args):
        if values[k].grain.defined():
            return wide[k].float() if wide[k].dtype == torch.float64 else wide[k]
        return step.apply(*[x.float() if x.dtype == torch.float64 else x for x in args], wide=False, narrow=True)
    return rerun(chain, inputs, each)


def measure(chain, values):
    """How far apart right results are."""
    loose = [k for k, v in enumerate(values) if v.grain.steps and v.model.is_floating_point()]
    r = random.Random(0)
    for _ in range(8 if loose else 0):
        run = mixed(chain, values, r)
        for k in loose:
            v = values[k]
            v.spread = torch.maximum(v.spread, beyond_rounding(run[k].to(v.model.dtype), v.wide))
    if any(values[k].model.dtype == torch.float64 for k in loose):
        wide, narrow = narrowed(chain, values, False), narrowed(chain, values, True)
        for k in loose:
            values[k].narrow_error = largest((narrow[k].double() - wide[k].double()).abs())
    return values


def take_step(r, g, values, constants):
    """One more step whose operand is mostly the newest value; None if the one drawn does not fit."""
    k = len(values) - 1 if r.random() < 0.8 else r.randrange(len(values))
    maker = r.choice(STEPS)
    step = maker(r, g, values, k)
    if step is None:
        return None
    step.constants = list(range(len(constants), len(constants) + len(step.made)))
    operands = [values[i] for i in step.operands]
    made = [c.double() if c.is_floating_point() else c for c in step.made]
    try:
        result = step.apply(*[v.model for v in operands], *step.made, wide=False)
        wide = step.apply(*[v.wide for v in operands], *made, wide=True)
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
        return None
    if not isinstance(result, torch.Tensor) or result.numel() > 4000 or result.is_complex():
        return None
    value = step.grade(operands, result, wide)
    if value is None:
        return None
    constants += step.made
    return step, value


def make_chain(r, g):
    inputs = random_inputs(r, g)
    values = [Value(x, x.double() if x.is_floating_point() else x, Grain()) for x in inputs]
    steps, constants, length, tries = [], [], r.randint(1, 8), 0
    while len(steps) < length and tries < 200:
        tries += 1
        taken = take_step(r, g, values, constants)
        if taken:
            steps.append(taken[0])
            values.append(taken[1])
    if not steps:
        raise Skip("no step fits")
    results = [len(values) - 1]
    if len(steps) > 1 and r.random() < 0.3:
        results.append(len(inputs) + r.randrange(len(steps) - 1))
    text = [f"x{k}: {str(x.dtype)[6:]}{list(x.shape)}" for k, x in enumerate(inputs)]
    text += [f"v{len(inputs) + k} = {s.text}({', '.join(f'v{i}' for i in s.operands)})" for k, s in enumerate(steps)]
    chain = Chain(steps, results, constants)
    return chain, inputs, measure(chain, values), "; ".join(text)


@dataclass
class Case:
    """A module with inputs and results; `others` are inputs of another leading size, `moves` says of which inputs."""
    seed: int
    module: torch.nn.Module
    inputs: list
    values: list
    text: str
    moves: list = None
    others: list = None
    other_values: list = None
    patterns: set = frozenset()

    def take_others(self):
        self.inputs, self.values = self.others, self.other_values
        self.text += "; at " + str([list(x.shape) for x in self.inputs])


def other_inputs(r, g, inputs):
    """Which inputs have the leading size, and inputs of another one; None where that is not one size."""
    lead = inputs[0].shape[0]
    if lead < 2 or any(x.dim() == inputs[0].dim() and x.shape[0] not in (1, lead) for x in inputs):
        return None
    moves = [x.dim() == inputs[0].dim() and x.shape[0] == lead for x in inputs]
    size = r.choice([2, 3, 4, 6, 9, 16])
    return moves, [random_input(r, g, x.dtype, [size, *x.shape[1:]]) if m else x for x, m in zip(inputs, moves)]


def chain_patterns(chain, inputs):
    found = {p for s in chain.steps for p in s.patterns} | {f"extent {n}" for x in inputs for n in x.shape if n < 2}
    read = [k for s in chain.steps for k in s.operands]
    return found | ({"several readers"} if any(read.count(k) > 1 for k in read) else set())


def chain_case(seed, r, g):
    chain, inputs, values, text = make_chain(r, g)
    case = Case(seed, chain, inputs, [values[k] for k in chain.results], text, patterns=chain_patterns(chain, inputs))
    others = other_inputs(r, g, inputs) if r.random() < 0.3 else None
    if others:
        case.moves, case.others = others
        try:
            regraded = regrade(chain, case.others)
            case.other_values = [regraded[k] for k in chain.results]
            comparable(seed, case.other_values)
        except Exception:  # noqa: BLE001: whatever the chain has against that size, it still has its own
            case.moves = case.others = None
    return case


def regrade(chain, inputs):
    values = [Value(x, x.double() if x.is_floating_point() else x, Grain()) for x in inputs]
    for step in chain.steps:
        constants = [chain.constant(k) for k in step.constants]
        wide = [c.double() if c.is_floating_point() else c for c in constants]
        operands = [values[k] for k in step.operands]
        value = step.grade(operands, step.apply(*[v.model for v in operands], *constants, wide=False),
                           step.apply(*[v.wide for v in operands], *wide, wide=True))
        if value is None:
            raise Skip("jumps at this size")
        values.append(value)
    return measure(chain, values)


# ---- one operator of the database ----

# Of equal elements any may be the one that is named: their second result is nobody's to compare.
TIES = ("topk", "kthvalue", "mode", "median", "nanmedian")


class Call(torch.nn.Module):
    def __init__(self, name, op, spec, leaves, at):
        super().__init__()
        self.ties, self.op, self.spec, self.leaves, self.at = name in TIES, op, spec, leaves, at

    def forward(self, *tensors):
        leaves = list(self.leaves)
        for k, t in zip(self.at, tensors):
            leaves[k] = t
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        result = self.op(*args, **kwargs)
        return result[0] if self.ties and isinstance(result, tuple) else result


# Values move, or one operation rounds as IEEE 754 says; the name as in the operator database.
EXACT = set("""abs add atleast_1d atleast_2d atleast_3d bitwise_and bitwise_or bitwise_xor bitwise_not broadcast_tensors broadcast_to cat
ceil chunk clamp clamp_max clamp_min clone column_stack combinations contiguous copysign diag diag_embed diagonal diagonal_copy diff
dsplit dstack eq expand expand_as flatten flip fliplr flipud float half bfloat16 double int long short char byte bool floor fmax fmin full_like
gather ge gt heaviside hsplit hstack index_fill index_select isclose isfinite isinf isnan kthvalue le logical_and logical_not logical_or
logical_xor lt masked_fill masked_scatter max maximum min minimum movedim msort mul narrow ne neg new_full new_ones new_zeros
nn.functional.hardtanh nn.functional.pad nn.functional.pixel_shuffle nn.functional.pixel_unshuffle nn.functional.relu
nn.functional.relu6 nn.functional.threshold nn.functional.unfold ones_like permute positive ravel repeat repeat_interleave reshape
resolve_conj roll rot90 round scatter select sgn sign signbit sort split squeeze stack sub swapaxes t take take_along_dim tensor_split tile
to topk transpose tril triu trunc unbind unflatten unsqueeze view view_as vsplit vstack where zeros_like""".split())


def database():
    from torch.testing._internal.common_methods_invocations import op_db
    return [o for o in op_db if not o.name.startswith(("_refs", "linalg.", "fft.", "sparse.", "masked."))
            and not any(w in o.name for w in ("rand", "dropout", "bernoulli", "multinomial", "normal", "empty", "jiterator", "exponential",
                                              "cauchy", "geometric", "stft", "bernoulli", "uniform", "alpha_dropout", "rrelu", "fractional_max_pool", "as_strided",
                                              # PyTorch's is finite at poles and far off near them (docs/numerics.md)
                                              "polygamma",
                                              # and off by 3e-8 in float64 (docs/numerics.md)
                                              "special.bessel_j1",
                                              # PyTorch's is 0 from -8.3 downwards, where 1 + erf(x) cancels
                                              "special.ndtr"))]


def draw_sample(r, operators):
    o = r.choice(operators)
    dtype = r.choice(sorted((t for t in o.dtypes if not t.is_complex), key=str) or [None])
    if dtype is None:
        raise Skip("complex only")
    torch.manual_seed(r.randrange(1 << 30))
    samples = [s for s in o.sample_inputs("cpu", dtype) if isinstance(s.input, (torch.Tensor, list, tuple))]
    if not samples:
        raise Skip("no sample")
    return o, dtype, r.choice(samples)


def operator_results(call, tensors):
    """What it gives for these tensors; None where it has something against their types."""
    try:
        return pytree.tree_leaves(call(*tensors))
    except Exception:  # noqa: BLE001
        return None


def widened_integers(call, tensors, results):
    """Results for the same numbers in float64; None where they are not the same function."""
    wide = operator_results(call, [t.double() for t in tensors])
    same = wide and len(wide) == len(results) and all(y.shape == w.shape and torch.allclose(y.double(), w.double(), 1e-3, 1e-3, equal_nan=True) for y, w in zip(results, wide))
    return wide if same else None


def operator_values(o, call, tensors, results, exact):
    """The values of one operator: its results, and how far others may be off."""
    def own(d, k):
        return [t.to(d) if t.is_floating_point() and t.dtype == k or k is None and t.is_floating_point() else t for t in tensors]
    wide = operator_results(call, own(torch.float64, None)) or results
    if not exact and tensors and not any(t.is_floating_point() for t in tensors):  # integers that are computed with as fractions
        wide = widened_integers(call, tensors, results) or wide
    values = [Value(y, w if w.shape == y.shape and not exact else y, Grain() if exact or not y.is_floating_point() else Grain([y.dtype], 1))
              for y, w in zip(results, wide)]
    if not exact and any(y.dtype == torch.float64 for y in results):
        narrow = own(torch.float32, torch.float64)
        a, b = operator_results(call, narrow), operator_results(call, [doubled(t) for t in narrow])
        for v, x, y in zip(values, a or [], b or []):
            if x.shape == y.shape and x.dtype == torch.float32:
                v.narrow_error = largest((x.double() - y.double()).abs())
    if "scaled_dot_product" in o.name:
        for v in values:
            if v.model.dtype in STORAGE:  # its probabilities are rounded before the second product
                v.spread = torch.full((), torch.finfo(v.model.dtype).eps / 4 * largest(tensors[2]))
    return values


def draws(call, tensors, results):
    """Are there random numbers within? The database calls such operators with a seed of its own, so that they seem to have none."""
    seed = torch.manual_seed
    try:
        for k in range(1, 5):
            torch.manual_seed = lambda s, k=k: seed(s + k)
            again = pytree.tree_leaves(call(*[t.clone() for t in tensors]))
            if not all(bool(((x == y) | (x != x) & (y != y)).all()) for x, y in zip(results, again)):
                return True
    finally:
        torch.manual_seed = seed
    return False


def operator_case(seed, r, g, operators):
    o, dtype, s = draw_sample(r, operators)
    leaves, spec = pytree.tree_flatten(((s.input, *s.args), s.kwargs))
    at = [k for k, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    if any(leaves[k].numel() > 4000 or leaves[k].is_complex() or leaves[k].layout != torch.strided for k in at):
        raise Skip("too large")
    tensors = [leaves[k].detach().clone().contiguous() for k in at]
    fixed = [None if k in at else x for k, x in enumerate(leaves)]
    call = Call(o.name, o.op, spec, fixed, at)
    results = pytree.tree_leaves(call(*[t.clone() for t in tensors]))
    if not all(isinstance(y, torch.Tensor) and not y.is_complex() and y.numel() <= 4000 for y in results):
        raise Skip("no tensors")
    if draws(call, tensors, results):
        raise Skip("random numbers")
    exact = o.name in EXACT and not (s.kwargs.get("alpha") and dtype in STORAGE)
    text = f"{o.name}{'.' + o.variant_test_name if o.variant_test_name else ''}: " + ", ".join(
        f"{str(x.dtype)[6:]}{list(x.shape)}" if isinstance(x, torch.Tensor) else repr(x) for x in leaves)
    return Case(seed, call, tensors, operator_values(o, call, tensors, results, exact), text)


# ---- files ----

def rewrite(src, dst):
    """Copy members, deflated and with fixed dates; without sample inputs, which are pickles, and names of directories."""
    with zipfile.ZipFile(src) as a, zipfile.ZipFile(dst, "w") as b:
        for name in a.namelist():
            if "sample_inputs" not in name and "serialization_id" not in name:
                info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                info.compress_type = zipfile.ZIP_DEFLATED
                b.writestr(info, re.sub(rb'File \\"[^"\\]*/', rb'File \\"', a.read(name)))


def comparable(seed, values):
    if any(y.model.numel() and not torch.equal(y.model.isfinite(), y.wide.isfinite()) for y in values if y.model.is_floating_point()):
        raise Skip("overflows in a storage type")
    if all(y.model.numel() == 0 for y in values) and seed % 4:
        raise Skip("empty")


def save(folder, program, cases):
    """SEED.pt2, or of several FIRST-LAST.pt2; `parts` of the metadata has the seed, the number of results and the text of each."""
    inputs, values = [x for c in cases for x in c.inputs], [y for c in cases for y in c.values]
    tensors = {f"x.{k}": x.detach().contiguous().clone() for k, x in enumerate(inputs)}
    metadata = {"program": " | ".join(c.text for c in cases), "parts": json.dumps([[c.seed, len(c.values), c.text, len(c.inputs)] for c in cases]),
                "patterns": json.dumps([sorted(c.patterns) for c in cases])}
    for k, y in enumerate(values):
        tensors[f"y.{k}"], metadata[f"allow.{k}"] = y.reference(), y.allowed()
    name = "-".join(str(s) for s in sorted({cases[0].seed, cases[-1].seed}))
    torch.export.save(program, folder / "raw.pt2")
    rewrite(folder / "raw.pt2", folder / f"{name}.pt2")
    (folder / "raw.pt2").unlink()
    save_file(tensors, folder / f"{name}.safetensors", metadata=metadata)


# ---- modules side by side ----

class SideBySide(torch.nn.Module):
    """Modules that have nothing to do with each other: exporting them together costs little more than exporting one."""

    def __init__(self, cases):
        super().__init__()
        self.part, self.count = torch.nn.ModuleList(c.module for c in cases), [len(c.inputs) for c in cases]

    def forward(self, *inputs):
        results, at = [], 0
        for part, n in zip(self.part, self.count):
            results += pytree.tree_leaves(part(*inputs[at:at + n]))
            at += n
        return tuple(results)


def take_sizes(program, cases):
    """Other sizes for the modules that PyTorch's export of them accepts at these sizes: it may have made the size a number."""
    def accepts(chosen):
        try:
            run(*[x for c in cases for x in (c.others if c in chosen else c.inputs)])
            return True
        except Exception:  # noqa: BLE001: guards raise what they like
            return False
    run = program.module()
    chosen = [c for c in cases if c.others and accepts([c])]
    if accepts(chosen):
        for c in chosen:
            c.take_others()


def accepted(program, cases):
    """PyTorch's export may assert what its operator does not: that masked_select gives at most as many as its first operand has."""
    program.module()(*[x.clone() for c in cases for x in c.inputs])
    return program


def export_together(cases):
    inputs = tuple(x.clone() for c in cases for x in c.inputs)
    module = SideBySide(cases)
    if not any(c.moves for c in cases):
        return accepted(export(module, inputs), cases)
    dynamic = tuple({0: Dim.AUTO} if m else {} for c in cases for m in c.moves or [False] * len(c.inputs))
    program = export(module, inputs, dynamic_shapes=(dynamic,))
    take_sizes(program, cases)
    return accepted(program, cases)


def save_cases(folder, cases):
    """In one file, or in several where PyTorch does not export them together. How many were saved."""
    try:
        save(folder, export_together(cases), cases)
        return len(cases)
    except Exception as e:  # noqa: BLE001: PyTorch refuses many random modules, in many ways
        if len(cases) == 1:
            return complain(cases[0].seed, e)
    half = len(cases) // 2
    return save_cases(folder, cases[:half]) + save_cases(folder, cases[half:])


def complain(seed, e):
    if isinstance(e, (NameError, AttributeError)) and "differential" in str(e.__traceback__.tb_frame.f_code.co_filename):
        print(f"{seed}: {type(e).__name__}: {e}", file=sys.stderr)
    return 0


def make_case(seed, operators):
    r, g = random.Random(seed), torch.Generator().manual_seed(seed)
    try:
        case = operator_case(seed, r, g, operators) if r.random() < 0.4 else chain_case(seed, r, g)
        comparable(seed, case.values)
        return case
    except Exception as e:  # noqa: BLE001
        return complain(seed, e) or None


def make(folder, seeds, operators):
    folder.mkdir(parents=True, exist_ok=True)
    cases = [c for c in (make_case(s, operators) for s in seeds) if c]
    return save_cases(folder, cases) if cases else 0


def serve(operators):
    """For each line {"folder": ..., "pools": [[SEED, ...], ...]} the number of modules made there."""
    for line in sys.stdin:
        request = json.loads(line)
        print(sum(make(Path(request["folder"]), seeds, operators) for seeds in request["pools"]), flush=True)


def seed_cheaply():
    """The operator database seeds every generator before every sample, those of absent devices with a stack trace each."""
    import torch.testing._internal.common_utils as common

    def set_rng_seed(seed=None):
        seed = common.SEED if seed is None else seed
        torch.default_generator.manual_seed(seed)
        random.seed(seed)
        if common.TEST_NUMPY:
            common.np.random.seed(seed)
    common.set_rng_seed = set_rng_seed


def arguments(text):
    """What the command line says to a program that makes modules of seeds; text: what it is for."""
    p = argparse.ArgumentParser(description=text)
    p.add_argument("out", type=Path, nargs="?", help="without it, requests are read, see serve()")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--count", type=int, default=100)
    p.add_argument("--pool", type=int, default=1, help="modules in one file")
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    return p.parse_args()


def main():
    args = arguments(__doc__)
    operators = database()
    seed_cheaply()
    if not args.out:
        return serve(operators)
    seeds = range(args.seed, args.seed + args.count)
    made = sum(make(args.out, seeds[k:k + args.pool], operators) for k in range(0, args.count, args.pool))
    print(f"{made} modules of {args.count} seeds")


if __name__ == "__main__":
    main()
