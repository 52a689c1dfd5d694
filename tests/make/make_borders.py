"""Record PyTorch's values and derivatives where operators have borders: make_borders.py FOLDER [OP...] (tests/data/borders).
tests/unit/passes_border_samples.c compares.

    aten.clamp_min f64[3] of 0 -1 nan, min=0.0    a sample whose operands are drawn from what operators compare with: ties, 0 and
                                                  -0, arguments of the call, edges of images, infinities, NaN
    = f64[3] 2.25 3                               results, as in tests/data/edges
    < 1 f64[3] 0.5                                the gradient by operand 1 of the sum of all results with weights
    > 0 f64[3] 1.5                                the tangent of result 0 along the vector of the same weights
    ? < 1 f64[3] 0.5                              not PyTorch's here: none may be added

What is marked: derivatives of log_sigmoid_forward, of flash attention and of max pools by results that PyTorch's files only hand on; the
last of several NaN in a window, where here it is the first; NaN and infinities in lerp, i0, i1, zeta, pow -1/2, prod, acosh outside of its domain,
logit at its ends; beta 0 of smooth_l1_loss (F.smooth_l1_loss is l1_loss then); upsample_nearest1d of as many elements, whose gradient
PyTorch copies whatever the scale is; extrema that scatters leave out of the count; NaN places of volumes, which PyTorch reads forwards and not backwards.
What PyTorch gives two ways (one element after the other and in vectors, f32 and f64, forwards and backwards) has no line. With OP names only these are
recorded anew. BORDERS=list build/passes_border_samples prints what differs; `--differs FILE` marks these lines."""
import math
import random
import re
import sys

import torch

import make_edges as me
import make_samples as ms

MOST, LIMIT = 8, 512  # entries of each operator, elements of a result
nan, inf = math.nan, math.inf
SPECIAL = [0.0, -0.0, 1.0, -1.0, inf, -inf, nan, 2.0, 0.5]
TIES = [0.0, -0.0, 1.0, -1.0]
# Which of equal elements is taken nobody says; singular matrices are rounded this way or that.
UNSAID = "topk|kthvalue|median|quantile|nuclear|sort|mode|linalg|lu_|_lu|cholesky|triangular|svd|orgqr|ormqr|householder|inverse|solve|qr$|pinv|per_token"
# Zeros beside infinities in sums: who multiplies what is nobody's business.
SUMS = "conv|rnn|lstm|gru|attention|mm|matmul|linear|einsum|fft|stft|norm|addr|bilinear|cdist|dot|outer|kron|inner|embedding_bag|cov|corrcoef|bag"
LEFT_OUT = UNSAID + "|rand|empty|dropout|bernoulli|normal|multinomial|rrelu|exponential|uniform|poisson|gamma|dirichlet|binomial|cauchy|geometric"


def written(values):
    return " ".join("-0" if v == 0 and math.copysign(1, v) < 0 else f"{v:g}" if v != v or abs(v) == inf else repr(v).removesuffix(".0") for v in values)


def numbers(items):
    """Of the call's arguments, by which operators compare."""
    found = []
    for item in items:
        m = re.match(r"\w+=(-?\d+(?:\.\d*)?(?:e-?\d+)?)$", item)
        if m and abs(float(m[1])) < 100:
            found += [float(m[1]), -float(m[1])]
    return found


def sizes(items):
    return sorted({int(d) for item in items for m in re.findall(r"^\w+\[([^\[\]]*)\]", item) for d in re.findall(r"\d+", m)}) or [1]


def corners(items):
    """Places in -1..1 that are pixels, centres and borders of images of these sizes, and what is outside."""
    n = sizes(items[:1])[-2:]
    return [-1.0, 1.0, 0.0, 3.0, -3.0, 1.5] + [v for s in n for v in (-1 + 1 / s, 1 - 1 / s, 1 + 1 / s, 2 / s - 1)]


def region(r, items):
    """A region of an image: its number, then corners on edges, beyond them and between."""
    n = sizes(items[:1])
    c = [-1.0, -0.5, 0.0, 0.5, 1.0] + [float(v) for s in n[-2:] for v in (s - 1, s - 0.5, s, s + 1)]
    x, y = sorted(r.choices(c, k=2)), sorted(r.choices(c, k=2))
    return [0.0, x[0], y[0], x[1], y[1]]


def drawn(r, name, args, items, k, finite):
    """The values of operand k."""
    label = operand_names(args, items)[k]
    if label == "grid":
        pool = corners(items) + ([] if finite else [nan])
    elif label in ("rois", "boxes") and re.search(r"\b5\]", items[k]):
        return [v for _ in range(3) for v in region(r, items)]
    elif label == "offset":
        pool = [0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0]
    else:
        pool = (TIES if finite else SPECIAL) + numbers(items) * 2
    return r.choices(pool, k=r.choice([5, 7, 11]))


def operand_names(args, items):
    slots = iter(label for label, kind in args if kind.startswith("Tensor"))
    return [None if re.match(r"(\w+)=", i) and i.split("=")[0] not in ms.DTYPES else next(slots, None) for i in items]


def changed(name, args, case, k):
    body, arrow, only = case.partition(" -> ")
    items = ms.split(body, ",")
    floats = [j for j, i in enumerate(items) if re.match(r"f32\[", i)]
    seen = set()
    for turn in range(8 if floats else 0):
        if turn % 2 and re.search(SUMS, name):
            continue
        r = random.Random(f"{name} {k} {turn}")
        new = list(items)
        for j in floats:
            new[j] = re.match(r"f32\[[^\]]*\]", items[j])[0] + " of " + written(drawn(r, name, args, items, j, turn % 2 == 0))
        text = ", ".join(new) + arrow + only
        if text not in seen:
            seen.add(text)
            yield text


# ---- what PyTorch gives ----

def weights(shape, k):
    n = math.prod(shape)
    return torch.tensor([1 + (3 * i + 5 * k) % 4 / 2 for i in range(n)], dtype=torch.float64).reshape(shape)


def leaves(sample):
    return [x for v in sample.args.values() for x in (v if isinstance(v, list) else [v]) if isinstance(x, torch.Tensor)]


def with_leaves(sample, new):
    at = iter(new)

    def put(v):
        return [put(x) for x in v] if isinstance(v, list) else next(at) if isinstance(v, torch.Tensor) else v
    return {k: put(v) for k, v in sample.args.items()}


def call(f, scalar, sample, x):
    args = with_leaves(sample, x)
    y = f(*args.values()) if scalar else f(**args)
    y = list(y) if isinstance(y, (tuple, list)) else [y]
    y = [v for z in y for v in (z if isinstance(z, (tuple, list)) else [z])]
    return y if sample.only is None else y[sample.only:sample.only + 1]


def spread(x):
    """The same values with memory between them, which PyTorch's kernels read one after the other."""
    return torch.stack([x, x], -1)[..., 0] if x.dim() else x


def gradient(f, scalar, sample, real, apart):
    x = [(spread(v) if apart else v).to(real if v.dtype == torch.float64 else v.dtype) for v in leaves(sample)]
    x = [v.detach().requires_grad_() if v.is_floating_point() else v for v in x]
    y = call(f, scalar, sample, x)
    out = [v for v in y if v is not None]
    loss = [(v * weights(v.shape, k).to(v.dtype)).sum() for k, v in enumerate(out) if v.is_floating_point() and v.requires_grad]
    of = [v for v in x if v.is_floating_point()]
    g = torch.autograd.grad(sum(loss), of, allow_unused=True) if loss else []
    return [v.detach() if v is not None else None for v in y], [None if v is None else v.detach() for v in g]


def tangent(f, scalar, sample):
    x = leaves(sample)
    real = [k for k, v in enumerate(x) if v.is_floating_point()]

    def of(*r):
        at = iter(r)
        return tuple(v for v in call(f, scalar, sample, [next(at) if k in real else v for k, v in enumerate(x)]) if v is not None and v.is_floating_point())
    return torch.func.jvp(of, tuple(x[k] for k in real), tuple(weights(x[k].shape, j) for j, k in enumerate(real)))[1]


def consistent(x, g, t):
    """Whether PyTorch's tangents are those of its gradients: it goes two ways at some points, where ours go that of gradients."""
    real = [v for v in x if v.is_floating_point()]
    left = sum((v.double() * weights(v.shape, k)).sum() for k, v in enumerate(t))
    right = sum((v.double() * weights(real[k].shape, k)).sum() for k, v in enumerate(g) if v is not None)
    return bool(left.isfinite() and right.isfinite() and torch.isclose(left, right, rtol=1e-6, atol=1e-8)) if t and g else False


def same(a, b):
    if (a is None) != (b is None) or a is not None and a.shape != b.shape:
        return False
    return a is None or torch.allclose(a.double(), b.double(), rtol=1e-3, atol=1e-4, equal_nan=True)


def line(mark, x):
    return f"{mark} {ms.NAMES[x.dtype]}[{', '.join(map(str, x.shape))}] {me.weighted(x)}"


def digest(f, scalar, args, text):
    sample = ms.Sample(args, text, "f64")
    if isinstance(f, torch._ops.OpOverload):
        sample.args = {a.name: "cpu" if a.name == "device" else None for a in f._schema.arguments if not a.has_default_value()} | sample.args
    x = leaves(sample)
    if not any(v.dtype == torch.float64 for v in x) or any(v.is_complex() or v.numel() > LIMIT for v in x):
        return None
    y, g = gradient(f, scalar, sample, torch.float64, False)
    if any(v is not None and (v.numel() > LIMIT or v.layout != torch.strided or v.is_complex()) for v in y):
        return None
    lines = []
    others = [gradient(f, scalar, sample, torch.float64, True)]
    try:
        others.append(gradient(f, scalar, sample, torch.float32, False))
    except Exception:  # it needs f64
        pass
    if not all(all(map(same, y, o[0])) for o in others):
        return None
    lines += [line("=", v) if v is not None else "= none" for v in y]
    for k, v in enumerate(g):
        if v is not None and all(same(v, o[1][k]) for o in others):
            lines.append(line(f"< {k}", v))
    try:
        t = tangent(f, scalar, sample)
    except Exception:  # PyTorch has none
        t = []
    if consistent(x, g, t):
        lines += [line(f"> {k}", v.detach()) for k, v in enumerate(t) if v.dtype == torch.float64]
    return "\n".join(lines) if len(lines) > len(y) else None


def main():
    folder, only = sys.argv[1], sys.argv[2:]
    if only[:1] == ["--differs"]:
        return me.mark(folder, only[1], lines=True)
    me.digest = digest
    old = ms.read_entries(folder, " =?<>") if only else {}
    texts, begin, todo = {}, {}, []
    for name, args, cases, scalar in ms.blocks_in_order(old):
        texts[name] = old.get(name, "")
        if only and name not in only:
            continue
        begin[name] = len(todo)
        if ms.function(name, scalar) is None or re.search(LEFT_OUT, name) or "backward" in name:
            continue
        for k, case in enumerate(cases):
            todo += [(name, args, text, scalar, k) for text in changed(name, args, case, k) if not re.search(r"graph @|c64\[|c128\[", text)]
    found = me.results([t[:4] for t in todo])
    for name, first in begin.items():
        entries = []
        for at in range(first, len(todo)):
            if todo[at][0] != name:
                break
            if found.get(at):
                entries.append(f" {todo[at][2]}\n{found[at]}\n")
        n = min(MOST, len(entries))
        texts[name] = (name + "\n" if entries else "") + "".join(entries[k * len(entries) // n] for k in range(n))
    ms.families.write(folder, texts)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
