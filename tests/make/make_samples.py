"""Record what PyTorch gives for the samples of the op table: make_samples.py FOLDER [OP...] (tests/data/samples; only those ops anew).
tests/unit/ir_samples.c compares the interpreter with it.

    aten.max.dim 0            sample 0 of the op
    = f32[3] 1 2.5 -3         its results, one a line; "?" where the values are arbitrary
    = i64[3] 0 1 1
    ~ f16 f16 i64             the results' dtypes where operands written as f32 are f16; a dtype alone: refused
    ^ 1 0.5 2 -1              of a scalar function: the derivative by operand 1 at each element, in f64

Where the operator takes float64 too and agrees but for rounding, the values are those in float64."""
import glob
import math
import os
import re
import sys
import warnings

import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401 (registers quantized_decomposed)
import torchao  # noqa: F401 (registers torchao)
import torchvision  # noqa: F401 (registers torchvision)

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../help"))
import families

warnings.simplefilter("ignore")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DTYPES = {"bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
          "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64, "f16": torch.float16, "bf16": torch.bfloat16,
          "f32": torch.float32, "f64": torch.float64, "c32": torch.complex32, "c64": torch.complex64, "c128": torch.complex128,
          "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2,
          "f8e4m3fnuz": torch.float8_e4m3fnuz, "f8e5m2fnuz": torch.float8_e5m2fnuz}
NAMES = {v: k for k, v in DTYPES.items()}
VARIANTS = ("f16", "bf16", "f64", "i64", "i32", "u8", "bool")
T = torch
# What scalar primitives mean; those whose name is a function of torch are not listed.
SCALAR = {"select": T.where, "bit_and": T.bitwise_and, "bit_or": T.bitwise_or, "bit_xor": T.bitwise_xor, "bit_not": T.bitwise_not,
          "shift_left": T.bitwise_left_shift, "shift_right": T.bitwise_right_shift, "floordiv": lambda a, b: T.div(a, b, rounding_mode="floor"),
          "div": T.true_divide, "i0e": T.special.i0e, "erfcx": T.special.erfcx, "i1": T.special.i1, "i1e": T.special.i1e, "trigamma": lambda x: T.polygamma(1, x),
          "bessel_j0": T.special.bessel_j0, "bessel_j1": T.special.bessel_j1, "bessel_y0": T.special.bessel_y0, "bessel_y1": T.special.bessel_y1,
          "bessel_k0": T.special.modified_bessel_k0, "bessel_k1": T.special.modified_bessel_k1, "airy_ai": T.special.airy_ai,
          "bessel_k0e": T.special.scaled_modified_bessel_k0, "bessel_k1e": T.special.scaled_modified_bessel_k1}


F = torch.nn.functional


def grouped(input, weight, offs):
    start = [0, *offs.tolist()]
    return torch.cat([input[a:b] @ w for a, b, w in zip(start, start[1:], weight)])


def linear_cross_entropy(input, linear_weight, target, linear_bias, weight, reduction="none", label_smoothing=0.0, ignore_index=-100, **_):
    y = F.linear(input, linear_weight, linear_bias)
    return F.cross_entropy(y, target, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing)


def rms_norm_backward(grad_out, input, normalized_shape, rstd, weight, output_mask):
    """For a reciprocal norm that is given, so x / norm(x) with d norm / dx = x / (n * norm)."""
    over = tuple(range(input.dim() - len(normalized_shape), input.dim()))
    unit = input * rstd
    g = grad_out if weight is None else grad_out * weight
    dx = rstd * (g - unit * (g * unit).mean(over, keepdim=True))
    return dx, (grad_out * unit).sum(tuple(range(over[0]))) if output_mask[1] else None


def nms_kept(boxes, threshold):
    scores = torch.arange(len(boxes), 0, -1).to(boxes.dtype)
    kept = torch.zeros(len(boxes), dtype=torch.bool)
    kept[torch.ops.torchvision.nms(boxes, scores, threshold)] = True
    return kept


def stored(name):
    """An operator whose argument row_major says how PyTorch stores its first operand."""
    def call(A, *rest, row_major=True, **named):
        return getattr(torch.ops.aten, name)(A if row_major else A.mT.contiguous().mT, *rest, **named)
    return call


# What torch.ops does not have, or not for the CPU.
OTHER = {"aten.mm.dtype": lambda self, mat2, out_dtype: self.to(out_dtype) @ mat2.to(out_dtype),
         "aten.bmm.dtype": lambda self, mat2, out_dtype: self.to(out_dtype) @ mat2.to(out_dtype),
         "aten.addmm.dtype": lambda self, mat1, mat2, out_dtype, **k: torch.addmm(*(x.to(out_dtype) for x in (self, mat1, mat2)), **k),
         "aten.baddbmm.dtype": lambda self, batch1, batch2, out_dtype, **k: torch.baddbmm(*(x.to(out_dtype) for x in (self, batch1, batch2)), **k),
         "aten.fill_diagonal": lambda self, fill_value, wrap=False: self.clone().fill_diagonal_(fill_value, wrap),
         "aten._masked_scale": lambda self, mask, scale: self * mask.to(self.dtype) * scale,
         "nms_kept": nms_kept, "transformers.grouped_mm_fallback": grouped, "torch_nn._linear_cross_entropy_batch_chunked": linear_cross_entropy,
         "torch_nn._linear_cross_entropy_batch_chunked_no_reduction": linear_cross_entropy,
         **{f"aten.{name}": stored(name) for name in ("_linalg_det", "_linalg_slogdet")},
         "torchao.int_matmul": lambda a, b: torch._int_mm(a, b), "aten._fused_rms_norm_backward": rms_norm_backward,
         "torchao.int_scaled_matmul": lambda a, b, scales1: torch._int_mm(a, b) * scales1}


def text(block, field):
    found = re.search(r"\." + field + r"\s*=((?:\s*\"(?:[^\"\\]|\\.)*\")+)", block)
    return found and "".join(re.findall(r"\"((?:[^\"\\]|\\.)*)\"", found[1])).replace('\\"', '"').replace("\\n", "\n")


def ops_of(block):
    """(schema, samples, is it a scalar primitive?) of a block and of each of its overloads (ir/op/op.h: Overload)."""
    head, _, rest = block.partition(".overloads")
    rows = re.split(r"\{\s*(?=\.schema)", rest)[1:]
    yield text(head, "schema"), text(head, "sample") or "", text(head, "scalar") is not None
    for row in rows:
        own = text(row, "sample") or text(row, "no_sample") is None and text(head, "sample")
        yield text(row, "schema"), own or "", False


def blocks():
    """(name, names and kinds of arguments, samples, is it a scalar primitive?) of every op."""
    for path in sorted(glob.glob(ROOT + "/ops/*/*.c")):
        for block in re.findall(r"^OP\(\w+\) ?\{\n.*?^\};", open(path).read(), re.M | re.S):
            for schema, samples, scalar in ops_of(block):
                name, rest = schema.split("(", 1)
                args = []
                for arg in split(rest.rsplit(" -> ", 1)[0].rsplit(")", 1)[0], ","):
                    kind, _, label = arg.split("=")[0].strip().rpartition(" ")
                    if label != "*":
                        args.append((label, re.sub(r"\(\w!?\)", "", kind)))
                yield name, args, split(samples, ";"), scalar


def split(s, at):
    """At `at` outside of brackets and strings."""
    parts, depth, quoted, start = [], 0, False, 0
    for i, c in enumerate(s):
        quoted ^= c == '"'
        depth += (c in "[({") - (c in "])}") if not quoted else 0
        if c == at and not depth and not quoted:
            parts.append(s[start:i].strip())
            start = i + 1
    return parts + [s[start:].strip()] if s[start:].strip() else parts


def number(k, i):
    mask = 2**64 - 1
    h = (k * 1000003 + i + 1) * 0x9E3779B97F4A7C15 & mask
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 & mask
    h = (h ^ h >> 27) * 0x94D049BB133111EB & mask
    return h ^ h >> 31


def place(i, n):
    step = n * 5 // 8 + 1
    while math.gcd(step, n) != 1:
        step += 1
    return (i * step + n // 3) % n


def values(dtype, shape, fill, k):
    """As element() and whole() of tests/help/sample.c."""
    d = DTYPES[dtype]
    fraction, signed = d.is_floating_point or d.is_complex, d.is_signed
    n = math.prod(shape) * (2 if d.is_complex else 1)
    kind, lo, hi, items = fill
    if kind is None:
        kind, lo, hi = "in", -4.0 if signed else 0.0, 4.0 if signed else 8.0
    v = []
    for i in range(n):
        if kind == "of":
            v.append(items[i % len(items)])
        elif kind == "distinct":
            v.append(lo if fraction and n < 2 else lo + (hi - lo) * place(i, n) / (n - 1) if fraction else lo + place(i, n))
        elif fraction:
            v.append(lo + (hi - lo) * (number(k, i) % 65) / 64)
        else:
            v.append(lo + number(k, i) % (int(hi - lo) + 1))
    if d == torch.bool:
        v = [x != 0 for x in v]
    elif not fraction:
        v = [0 if math.isnan(x) else math.copysign(100, x) if abs(x) > 2**53 else int(x) for x in v]
        v = [int(x) if signed else abs(int(x)) for x in v]
    if d.is_complex:
        return torch.tensor(v, dtype=torch.float64).reshape(*shape, 2).contiguous().view(torch.complex128).reshape(shape).to(d)
    return torch.tensor(v, dtype=torch.float64 if fraction else torch.int64).to(d).reshape(shape)


class Sample:
    """One case, in a form: operands written as f32 have dtype `real`."""

    def __init__(self, args, case, real="f32"):
        case, _, only = case.partition(" -> ")
        self.only, self.real, self.nin = int(only) if only else None, real, 0
        self.varies = "f32[" in case
        self.sizes = {m[0]: int(m[1]) for m in re.findall(r"(?<=[\[ ])([a-z])=(\d+)(?=[,\]])", case)}
        self.args, slots = {}, iter(args)
        for item in split(case, ","):
            m = re.match(r"(\w+)=(.*)", item, re.S)
            if m and m[1] not in DTYPES:
                kind = dict(args)[m[1]]
                self.args[m[1]] = self.attribute(m[2], kind)
            else:
                label = next(label for label, kind in slots if kind.startswith("Tensor"))
                self.args[label] = self.operand(item)

    def operand(self, s):
        if s == "none":
            return None
        if s[0] == "[":
            return [self.operand(x) for x in split(s[1:-1], ",")]
        m = re.match(r"(\w+)\[([^\]]*)\]\s*(.*)", s)
        dtype, shape = m[1], []
        for d in split(m[2], ","):
            shape.append(int(d.split("=")[1]) if "=" in d else eval(d, {}, self.sizes))
        fill = (None, 0, 0, None)
        if m[3].startswith("of "):
            fill = ("of", 0, 0, [float(x) for x in m[3][3:].split()])
        elif m[3]:
            kind, bounds = m[3].split(" ")
            fill = (kind, *map(float, bounds.split("..")), None)
        self.nin += 1
        return values(self.real if dtype == "f32" else dtype, shape, fill, self.nin - 1)

    def attribute(self, s, kind):
        if s in ("none", "true", "false"):
            return {"none": None, "true": True, "false": False}[s]
        if s in DTYPES:
            return DTYPES[self.real if s == "f32" and self.varies else s]
        if s[0] == '"':
            return s[1:-1]
        return eval(s, {"inf": math.inf, "nan": math.nan, "true": True, "false": False, "none": None}, self.sizes)


def function(name, scalar):
    if scalar:
        return SCALAR.get(name) or getattr(torch, name, None) or getattr(torch.special, name, None)
    space, _, rest = name.partition(".")
    if not rest or name in OTHER:
        return OTHER.get(name)
    base, _, overload = rest.partition(".")
    try:
        return getattr(getattr(getattr(torch.ops, space), base), overload or "default")
    except (AttributeError, RuntimeError):
        return None


def run(f, scalar, sample):
    if isinstance(f, torch._ops.OpOverload):
        sample.args = {a.name: "cpu" if a.name == "device" else None for a in f._schema.arguments if not a.has_default_value()} | sample.args
    try:
        y = f(*sample.args.values()) if scalar else f(**sample.args)
    except Exception as e:
        return None, e
    y = [] if y is None else list(y) if isinstance(y, (tuple, list)) else [y]
    y = [x for z in y for x in (z if isinstance(z, (tuple, list)) else [z])]  # (Tensor, Tensor[]) is flat here
    return [x.detach() if x is not None else x for x in (y if sample.only is None else y[sample.only : sample.only + 1])], None


def flat(x):
    x = x.contiguous().resolve_conj().resolve_neg()
    if x.is_complex():
        x = torch.view_as_real(x)
    return (x.to(torch.float64) if x.is_floating_point() else x).flatten()


def shown(v):
    return f"{v:.9g}" if isinstance(v, float) else str(int(v))


def as_exported(f, scalar, sample, y):
    """With the dtypes of the operator's abstract form, which torch.export writes to files."""
    def meta(x):
        return [meta(v) for v in x] if isinstance(x, list) else x.to("meta") if isinstance(x, torch.Tensor) else x
    sample.args = {k: meta(v) for k, v in sample.args.items()}
    shape, _ = run(f, scalar, sample) if isinstance(f, torch._ops.OpOverload) else (None, None)
    if not shape or len(shape) != len(y):
        return y
    return [x if x is None or m is None else x.to(m.dtype) for x, m in zip(y, shape)]


def variants(name, case, scalar):
    """Primitives take fewer dtypes than operators; nobody wants gradients of integers."""
    if "f32[" not in case:
        return ()
    return VARIANTS[:3] if scalar or "backward" in name or name in OTHER else VARIANTS


def record(name, args, case, k, scalar):
    f = function(name, scalar)
    if f is None:
        return None
    sample = Sample(args, case)
    y, why = run(f, scalar, sample)
    if y is None:
        return f"# {name} {k}: {str(why).splitlines()[0][:100]}"
    lines = [f"{name} {k}"]
    y, shapes = as_exported(f, scalar, Sample(args, case), y), [x if x is None else x.shape for x in y]
    wide, _ = run(f, scalar, wider(Sample(args, case)))
    for i, x in enumerate(y):
        if x is None:
            lines.append("= none")
            continue
        v = flat(x)
        w = wide[i] if wide and i < len(wide) and wide[i] is not None else None
        if w is not None and w.shape == x.shape and x.is_floating_point() and w.is_floating_point():
            w = flat(w)
            if torch.allclose(v, w, rtol=1e-3, atol=1e-3 * float(v[v.isfinite()].abs().max() if v.isfinite().any() else 0), equal_nan=True):
                v = w
        dims = ", ".join(map(str, x.shape))
        lines.append(f"= {NAMES[x.dtype]}[{dims}] " + ("?" if "empty" in name else " ".join(map(shown, v.tolist()))))
    for real in variants(name, case, scalar):
        y, _ = run(f, scalar, Sample(args, case, real))
        if real == "f64" and (not y or [x if x is None else x.shape for x in y] != shapes):
            continue
        y = y and as_exported(f, scalar, Sample(args, case, real), y)
        lines.append(" ".join(["~", real] + ["none" if x is None else NAMES[x.dtype] for x in y or []]))
    if scalar:
        lines += derivatives(f, wider(Sample(args, case)))
    return "\n".join(lines)


def derivatives(f, sample):
    x = list(sample.args.values())
    real = [k for k, v in enumerate(x) if v.dtype == torch.float64]
    for k in real:
        x[k].requires_grad_()
    y = f(*x)
    if not y.requires_grad:
        return []
    lines = []
    for k in real:
        try:
            (g,) = torch.autograd.grad(y.sum(), x[k], retain_graph=True, allow_unused=True)
        except RuntimeError:  # not implemented
            continue
        lines.append(" ".join(["^", str(k)] + [shown(v) for v in g.flatten().tolist()]) if g is not None else "")
    return [line for line in lines if line]


def wider(sample):
    """The same values in float64."""
    def up(x):
        if isinstance(x, list):
            return [up(v) for v in x]
        return x.double() if isinstance(x, torch.Tensor) and x.dtype == torch.float32 else x
    sample.args = {k: up(v) for k, v in sample.args.items()}
    return sample


def read(folder):
    """The lines of every op, by its name."""
    old = {}
    for line in families.lines(folder):
        if line[0] not in "=~^":
            name = line.split(" ")[1 if line[0] == "#" else 0]
        old[name] = old.get(name, "") + line
    return old


def read_entries(folder, marks):
    """The same of a record where the op has a line of its own, and all others begin with one of the marks."""
    old = {}
    for line in families.lines(folder):
        name = line.strip() if line[0] not in marks else name
        old[name] = old.get(name, "") + line
    return old


def known(names):
    """A mistyped name would record nothing."""
    unknown = set(names) - {b[0] for b in blocks()}
    if unknown:
        sys.exit(f"there is no operator {', '.join(sorted(unknown))}")


def blocks_in_order(old):
    """blocks() in the order of a record, by whose names `old` is."""
    made = {block[0]: block for block in blocks()}
    return [made[name] for name in in_order(old, list(made))]


def in_order(old, names):
    """The names in the order of the record, `old`; one that is not there stands behind the one that it follows in the source."""
    there, after = set(names), {}
    for name, before in zip(names, [None, *names]):
        if name not in old:
            after.setdefault(before, []).append(name)

    def new(name):
        for k in after.get(name, ()):
            yield k
            yield from new(k)
    return [*new(None)] + [k for name in old for k in ([name] if name in there else []) + [*new(name)]]


def main():
    folder, only = sys.argv[1], sys.argv[2:]
    known(only)
    old = read(folder)
    made = {}
    for name, args, cases, scalar in blocks():
        if only and name not in only:
            made[name] = old.get(name, "")
            continue
        lines = [record(name, args, case, k, scalar) for k, case in enumerate(cases)]
        made[name] = "".join(line + "\n" for line in lines if line)
    families.write(folder, {name: made[name] for name in in_order(old, list(made))})


if __name__ == "__main__":
    main()
