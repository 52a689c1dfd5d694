"""Make the small archives of tests/data with PyTorch: make_fixtures.py DEST. Each NAME.pt2 comes with NAME.safetensors:
x.<i> inputs, y.<i> outputs, b.<buffer> buffers and w.<i> written inputs after the call (computed by eager PyTorch on a fresh copy).
Sample inputs (pickle) and directory names in stack traces are dropped, so that the files do not depend on the machine."""
import copy
import dataclasses
import json
import math
import re
import shutil
import sys
import zipfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from torch.export import export
from torch._higher_order_ops import while_loop
from torch._higher_order_ops.scan import scan
from torch.utils._pytree import tree_leaves

sys.path.insert(0, str(Path(__file__).parents[2] / "examples/decoder"))
# fixture_list.py imports the decoder from there. What is exported has the lines of this file in it.

dest = Path(sys.argv[1] if len(sys.argv) > 1 else "tests/data")


def strip(value):
    """Of a node's metadata only the stack trace and the module are kept, without directories and addresses."""
    if isinstance(value, list):
        return [strip(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "stack_trace" in value:
        trace = re.sub(r'File "[^"]*/site-packages/', 'File "', value["stack_trace"])
        kept = {"stack_trace": re.sub(r'File "/[^"]*/', 'File "', trace)}
        if "nn_module_stack" in value:
            kept["nn_module_stack"] = re.sub(r"(^|;)[0-9]+,", r"\1L,", value["nn_module_stack"])
        return kept
    return {k: strip(v) for k, v in value.items()}


def rewrite(src, dst, compress):
    """Copy members with fixed dates, stored and 64-byte aligned, or deflated."""
    with zipfile.ZipFile(src) as a, zipfile.ZipFile(dst, "w") as b:
        for name in a.namelist():
            if "sample_inputs" in name or "serialization_id" in name:
                continue
            data = a.read(name)
            if name.endswith(".json"):
                data = json.dumps(strip(json.loads(data)), separators=(",", ":")).encode()
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
            if not compress:
                pad = -(b.fp.tell() + 30 + len(name) + 4) % 64
                info.extra = b"FB" + pad.to_bytes(2, "little") + b"Z" * pad
            b.writestr(info, data)


def make(name, model, args, dynamic=None, decompose=False, compress=False):
    model = model.train(model.training)
    ref, tensors = copy.deepcopy(model), {}
    for i, x in enumerate(args):
        tensors[f"x.{i}"] = x.clone()
    program = export(model, tuple(x.clone() for x in args), dynamic_shapes=dynamic)
    if decompose:
        program = program.run_decompositions()
    save(name, program, compress)
    passed = [x.clone() for x in args]
    out = ref(*passed)
    for i, (x, before) in enumerate(zip(passed, args)):
        if not torch.equal(x, before):
            tensors[f"w.{i}"] = x
    for i, y in enumerate(out if isinstance(out, (tuple, list)) else [out]):
        tensors[f"y.{i}"] = y.detach().clone().contiguous()
    for key, b in ref.named_buffers():
        tensors[f"b.{key}"] = b.detach().clone().contiguous()
    save_file(tensors, dest / f"{name}.safetensors")


def make_control(name, model, calls, dynamic=None):
    """control/NAME.pt2, and for every call NAME.<k>.safetensors; what fails has the text of the error instead of results."""
    (dest / "control").mkdir(exist_ok=True)
    name = f"control/{name}"
    program = export(model, tuple(calls[0]), dynamic_shapes=dynamic)
    save(name, program, True)
    for k, args in enumerate(calls):
        tensors = {f"x.{i}": x.clone() for i, x in enumerate(args)}
        error = {}
        try:
            for i, y in enumerate(tree_leaves(program.module()(*[x.clone() for x in args]))):
                tensors[f"y.{i}"] = y.detach().clone().contiguous()
        except (RuntimeError, IndexError) as e:
            error = {"error": str(e).splitlines()[0]}
        save_file(tensors, dest / f"{name}.{k}.safetensors", error or None)


def make_calls(name, model, calls, dynamic=None, strict=False, decompose=False, program=None):
    """state/NAME.pt2, and in state/NAME.calls.safetensors what eager PyTorch gives for calls of one module, one after the other:
    <k>.x.<i> inputs, <k>.y.<i> outputs and <k>.b.<name> buffers and parameters that call k changed."""
    (dest / "state").mkdir(exist_ok=True)
    with torch.no_grad():
        program = program or export(copy.deepcopy(model), tuple(calls[0]), dynamic_shapes=dynamic, strict=strict)
        if decompose:
            program = program.run_decompositions()
        save(f"state/{name}", program, True)
        tensors, ref = {}, copy.deepcopy(model)
        for k, args in enumerate(calls):
            named = dict(ref.named_buffers()) | dict(ref.named_parameters())
            before = {key: x.clone() for key, x in named.items()}
            tensors |= {f"{k}.x.{i}": x.clone() for i, x in enumerate(args)}
            tensors |= {f"{k}.y.{i}": y.clone().contiguous() for i, y in enumerate(tree_leaves(ref(*args)))}
            now = dict(ref.named_buffers()) | dict(ref.named_parameters())
            tensors |= {f"{k}.b.{key}": x.clone().contiguous() for key, x in now.items() if not torch.equal(x, before[key])}
    save_file(tensors, dest / f"state/{name}.calls.safetensors")


def make_refused(name, model, args, dynamic=None):
    """control/refused/NAME.pt2: sizes and integers that depend on data."""
    (dest / "control/refused").mkdir(parents=True, exist_ok=True)
    save(f"control/refused/{name}", export(model, args, dynamic_shapes=dynamic, strict=False), True)


def make_nested(name, model, args, kwargs, dynamic, strict=False):
    """The same for inputs and outputs that are nested. x.<i> and y.<i> are the flat ones."""
    program = export(model, args, kwargs, dynamic_shapes=dynamic, strict=strict)
    save(name, program, False)
    tensors = {f"x.{i}": x.clone() for i, x in enumerate(tree_leaves((args, kwargs)))}
    for i, y in enumerate(tree_leaves(model(*args, **kwargs))):
        tensors[f"y.{i}"] = y.detach().clone().contiguous()
    save_file(tensors, dest / f"{name}.safetensors")


def make_gradients():
    """grad/choices.pt2 and what torch.func gives by all that it could be differentiated by, the buffer too."""
    (dest / "grad").mkdir(exist_ok=True)
    model = Choices()
    args = (torch.tensor([[0.5, -1, 0.25], [1, 0.75, -0.5]]), torch.tensor([3, -2]), torch.tensor([[1, 0.5], [-0.25, 2]]))
    cts = torch.tensor([[1, -0.5], [0.25, 2]]), torch.tensor([0.5, 1])
    save("grad/choices", export(model, args), True)
    named = dict(model.named_parameters()) | dict(model.named_buffers())
    y, vjp = torch.func.vjp(lambda x, y, named: torch.func.functional_call(model, named, (x, args[1], y))[:2], args[0], args[2], named)
    g0, g2, g = vjp(cts)
    tensors = {f"x.{i}": x for i, x in enumerate(args)} | {f"ct.{i}": x for i, x in enumerate(cts)} | {"g.0": g0, "g.2": g2}
    tensors |= {f"y.{i}": x for i, x in enumerate(y)} | {"y.2": 2 * args[1]} | {f"gp.{name}": x for name, x in g.items()}
    save_file({name: x.detach().clone().contiguous() for name, x in tensors.items()}, dest / "grad/choices.safetensors")


def make_replaceable():
    """replace/NAME.pt2, for set_weights: much is computed from their weights."""
    (dest / "replace").mkdir(exist_ok=True)
    x = torch.rand(1, 48, 6, 6)
    folded = Folded().eval()
    for m in folded.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean.copy_(torch.rand(m.num_features))
            m.running_var.copy_(torch.rand(m.num_features) + 0.5)
    with torch.no_grad():
        save("replace/folded", export(folded, (x,)), False)
        save("replace/shared", export(SharedWeights().eval(), (torch.tensor([[1, 4, 0]]),)), False)
        save("replace/trained", export(Trained().train(), (torch.rand(4, 8),)), False)


def save(name, program, compress):
    tmp = dest / "tmp" / f"{name}.pt2"
    tmp.parent.mkdir(parents=True, exist_ok=True)
    torch.export.save(program, tmp)
    rewrite(tmp, dest / f"{name}.pt2", compress)
    shutil.rmtree(dest / "tmp")
    print(name, (dest / f"{name}.pt2").stat().st_size)


class Threshold(nn.Module):
    """Conditions on a fraction that depends on data, which no range of sizes decides."""

    def forward(self, x, y):
        a = x.item()
        torch._check(a * 2 + 1 > 2)
        torch._check(a != 3)
        torch._check((a < 3) | (a > 3.25))
        return y * a


class Choices(nn.Module):
    """Two inputs and an integer between them, two parameters and a buffer, and results of which one is an integer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.layer.weight.data = torch.tensor([[0.5, -0.25, 0.75], [1, 0.5, -1]])
        self.layer.bias.data = torch.tensor([0.25, -0.5])
        self.register_buffer("scale", torch.tensor([2, 0.5]))

    def forward(self, x, i, y):
        h = torch.tanh(self.layer(x)) * self.scale
        return h * y, (h + i[:, None]).prod(1), 2 * i



class Folded(nn.Module):
    """Batch norms behind convolutions, two of one shape, one whose weight is not small; weight norm; int8 weights."""

    def __init__(s):
        super().__init__()
        s.conv = nn.ModuleList(nn.Conv2d(48, 48, k, bias=False) for k in (3, 1, 1))
        s.norm = nn.ModuleList(nn.BatchNorm2d(48) for _ in range(3))
        s.linear = nn.utils.parametrizations.weight_norm(nn.Linear(48, 20))
        s.register_buffer("q", torch.randint(-128, 128, (16, 20), dtype=torch.int8))
        s.scale = nn.Parameter(torch.rand(16, 1) / 100)
        s.bias = nn.Parameter(torch.rand(16).bfloat16())

    def forward(s, x):
        for conv, norm in zip(s.conv, s.norm):
            x = torch.relu(norm(conv(x)))
        x = s.linear(x.mean((2, 3)))
        return nn.functional.linear(x, s.q.float() * s.scale, s.bias.float().exp())


class SharedWeights(nn.Module):
    """An embedding that is also the last layer; entries of a table by index; complex numbers."""

    def __init__(s):
        super().__init__()
        s.embedding = nn.Embedding(600, 32)
        s.out = nn.Linear(32, 600, bias=False)
        s.out.weight = s.embedding.weight
        s.table = nn.Parameter(torch.rand(5, 4))
        s.register_buffer("index", torch.randint(5, (9,)))
        s.z = nn.Parameter(torch.rand(32, dtype=torch.complex64))

    def forward(s, i):
        x = s.embedding(i) * ((s.z * s.z).real + 1)
        return s.out(x), s.table[s.index].view(3, 3, 4).permute(2, 0, 1) * x.mean()


class Trained(nn.Module):
    """Statistics that the graph writes, and weights that it does not."""

    def __init__(s):
        super().__init__()
        s.linear = nn.Linear(8, 8)
        s.norm = nn.BatchNorm1d(8)

    def forward(s, x):
        return s.norm(s.linear(x) * s.linear.bias.exp())


class Mlp(nn.Module):
    def __init__(s):
        super().__init__()
        s.a, s.b = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(s, x):
        return s.b(torch.relu(s.a(x)))


class Tied(nn.Module):
    """Weights that share storage: tied, transposed, a window with an offset, expanded, empty."""

    def __init__(s):
        super().__init__()
        s.w = nn.Parameter(torch.randn(4, 6))
        s.tied = s.w
        s.wt = nn.Parameter(s.w.detach().t())
        store = torch.randn(40)
        s.register_buffer("window", store[8:20].view(3, 4))
        s.register_buffer("strided", store[1:25:2].view(4, 3))
        s.register_buffer("wide", torch.randn(1, 4).expand(5, 4))
        s.register_buffer("none", torch.zeros(0, 4))

    def forward(s, x):
        h = x @ s.w @ s.wt @ s.tied
        h = h @ s.w.t()
        return h @ s.window.t() @ s.strided.t() + s.wide, torch.cat([s.none, h])


class Resize(nn.Module):
    """resize_ reads memory as it lies: of a transposed tensor, of a view; the old name changes its shape, other views stay."""

    def forward(self, x, y):
        a = x.transpose(0, 1).clone()
        row = a[0]
        b = a.resize_(2, 5)
        b.mul_(2)
        c = x.clone().resize_as_(y)
        d = x.clone()[1:].resize_(2, 3)
        return a, row, c, d, x.clone().transpose(0, 1).resize_(6, 4)


class Views(nn.Module):
    """Writes through views of every kind; later reads of the base and of other views see them."""

    def forward(s, x, u):
        x = x + 0
        flat = x.view(-1)
        row = x[1]
        row.add_(1)
        x.t()[0].mul_(2)
        flat[::3].zero_()
        x.permute(1, 0)[2:4].copy_(u)
        left, right = x.split([2, 4], dim=1)
        right.sub_(left.sum())
        x.diagonal().fill_(7)
        torch.as_strided(x, (2, 2), (7, 2), 5).neg_()
        x.unsqueeze(0).squeeze(0).select(1, -1).clamp_(-1, 1)
        y = x.transpose(0, 1)
        y.relu_()
        return x, flat, row, y, right


class State(nn.Module):
    """Buffers written in place: whole, through views, and in a region without gradients."""

    def __init__(s):
        super().__init__()
        s.register_buffer("cache", torch.zeros(2, 4, 3))
        s.register_buffer("count", torch.tensor(3))
        s.register_buffer("scale", torch.ones(3) * 2)
        s.register_buffer("ema", torch.zeros(3))

    def forward(s, x, k):
        s.cache[:, 1:3].copy_(k)
        s.cache[0, 0] += 1
        s.count += 2
        with torch.no_grad():
            s.ema.mul_(0.5).add_(x.mean(0))
        return s.cache.sum(1) + x * s.scale + s.ema, s.count * 2


class Caches(nn.Module):
    """Caches in the forms that people write them in, a running mean, and a counter."""

    def __init__(s):
        super().__init__()
        for name in "copied", "put", "narrow", "assigned":
            s.register_buffer(name, torch.zeros(1, 2, 6, 3))
        s.register_buffer("rounded", torch.zeros(6, 3, dtype=torch.bfloat16), persistent=False)
        s.register_buffer("window", torch.zeros(1, 2, 4, 3))
        s.register_buffer("mean", torch.zeros(3))
        s.register_buffer("count", torch.tensor(0))
        s.register_buffer("odd", torch.tensor(False))

    def forward(s, x, position):
        s.copied.index_copy_(2, position, x)
        s.put[:, :, position] = x * 2
        s.narrow.narrow(2, 3, 1).copy_(x)
        s.narrow[:, 1, 0] = x[:, 0, 0]
        s.rounded.index_add_(0, position, x[0, 0].bfloat16())
        s.window.copy_(torch.roll(s.window, -1, 2))
        s.window[:, :, -1:] = x
        s.mean.lerp_(x.mean((0, 1, 2)), 0.25)
        s.assigned.copy_(torch.slice_scatter(s.assigned + s.mean, x, 2, 1, 2))
        s.count += 1
        s.odd.logical_not_()
        y = torch.where(s.odd, s.copied + s.put, s.narrow - s.assigned)
        return y, s.window.sum(2) + s.rounded.float().sum(0), s.count * 2


class Shared(nn.Module):
    """Buffers that lie in the memory of one of them: the same tensor, rows, a transposed view, one element."""

    def __init__(s):
        super().__init__()
        store = torch.zeros(5, 4)
        for name, x in {"all": store, "again": store, "rows": store[1:3], "turned": store.t(), "one": store[4, 1]}.items():
            s.register_buffer(name, x)

    def forward(s, x):
        s.all.add_(x)
        y = s.again * 2
        s.rows.mul_(0.5)
        s.turned[0].sub_(1)
        s.one.fill_(7)
        return s.all + 0, y, s.rows * 1, s.turned * 1, s.one * 1


class Tangled(nn.Module):
    """Two buffers that have a row in common; neither holds the other."""

    def __init__(s):
        super().__init__()
        store = torch.zeros(5, 2)
        s.register_buffer("first", store[:3])
        s.register_buffer("second", store[2:])

    def forward(s, x):
        s.first.add_(x)
        return s.second * 2


class Holder:
    pass


class Lifted(nn.Module):
    """A cache object, as those of transformers: one of its tensors is a buffer, too, the other is not."""

    def __init__(s):
        super().__init__()
        s.cache = Holder()
        s.cache.keys, s.cache.values = torch.zeros(4, 3), torch.ones(4, 3)
        s.register_buffer("key_cache", s.cache.keys, persistent=False)

    def forward(s, x, position):
        s.cache.keys.index_copy_(0, position, x)
        s.cache.values[position] += x
        return s.cache.keys @ s.cache.values.t()


class Persistent(nn.Module):
    """A recurrent network that goes on where it stopped."""

    def __init__(s):
        super().__init__()
        s.net = nn.LSTM(3, 4, batch_first=True)
        s.register_buffer("h", torch.zeros(1, 2, 4))
        s.register_buffer("c", torch.zeros(1, 2, 4))

    def forward(s, x):
        y, (s.h, s.c) = s.net(x, (s.h, s.c))
        return y


class Statistics(nn.Module):
    """Normalisation in training: running statistics and counters of calls."""

    def __init__(s):
        super().__init__()
        s.a, s.b = nn.BatchNorm1d(3), nn.InstanceNorm1d(3, track_running_stats=True)

    def forward(s, x):
        return s.b(s.a(x)) + s.a.running_mean[:, None]


class WrittenParameters(nn.Module):
    """Evaluation that writes parameters: rows of a table are scaled when they are read; weights decay. A result goes to `out`."""

    def __init__(s):
        super().__init__()
        s.table, s.decays = nn.Embedding(6, 3, max_norm=0.5), nn.Parameter(torch.ones(3, 3))
        s.register_buffer("last", torch.zeros(2, 3))

    def forward(s, i):
        with torch.no_grad():
            s.decays.mul_(0.5).diagonal().add_(1)
        y = s.table(i) @ s.decays
        torch.sub(y, s.last, out=s.last)
        return s.last + y


class Roles(nn.Module):
    """State of each kind: a parameter that is learned (and has two names), one that is frozen, a buffer, numbers of dropout."""

    def __init__(s):
        super().__init__()
        s.learned, s.frozen = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3), requires_grad=False)
        s.again = s.learned
        s.register_buffer("last", torch.zeros(3))

    def forward(s, x):
        with torch.no_grad():
            s.learned.add_(1)
            s.frozen.mul_(2)
            s.last.copy_(x)
        return torch.dropout(x * s.learned * s.frozen, 0.5, True) + s.again


class InputWrite(nn.Module):
    def forward(s, x, y):
        x.add_(y)
        y[0].zero_()
        return x * 2 + y


class BatchNorm(nn.Module):
    def __init__(s):
        super().__init__()
        s.c, s.bn = nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3, momentum=0.3)

    def forward(s, x):
        return torch.relu_(s.bn(s.c(x)))


class Dynamic(nn.Module):
    def forward(s, x, y):
        n, m = x.shape
        z = torch.cat([x, y], 1).view(n, m // 2, 4)
        return z * n + torch.arange(m // 2 * 4).view(-1, 4), torch.full((m + 1,), m - n)


class Scan(nn.Module):
    def __init__(s):
        super().__init__()
        s.w = nn.Parameter(torch.randn(3, 3) * 0.3)

    def forward(s, h, xs):
        def step(h, x):
            h = torch.tanh(h @ s.w + x)
            return h, h * 2
        h, ys = scan(step, h, xs)
        return h, ys


class Branch(nn.Module):
    """A branch with checks: an assertion, and an index that may be out of range. Neither fires in the branch not taken."""

    def __init__(s):
        super().__init__()
        s.w, s.t = nn.Parameter(torch.randn(3, 3)), nn.Parameter(torch.randn(5, 3))

    def forward(s, x, i, p):
        def yes(x, i):
            torch._assert_async(x.min() >= 0, "x is negative")
            return torch.relu(x @ s.w) + s.t[i], x.sum()

        def no(x, i):
            return torch.softmax(x @ s.w.t(), -1), x.max()
        return torch.cond(p.any(), yes, no, (x, i))


class SizeBranch(nn.Module):
    """The condition, and what the branches compute, are sizes."""

    def forward(s, x):
        def few(x):
            return x.cumsum(0) * x.shape[0], x.sum()

        def many(x):
            return x - x.mean(0) / x.shape[0], x.prod()
        return torch.cond(x.shape[0] <= 4, few, many, (x,))


class Newton(nn.Module):
    """Until nothing changes much, or n rounds: captured operands, a check in the body, a size that is a symbol."""

    def __init__(s):
        super().__init__()
        s.w = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))

    def forward(s, x, n):
        def more(i, y, d):
            return torch.logical_and(i < n, d > 1e-3)

        def step(i, y, d):
            torch._assert_async((y > 0).all(), "y is not positive")
            z = 0.5 * (y + x * s.w / y)
            return i + 1, z, (z - y).abs().max()
        start = torch.zeros((), dtype=torch.int64), torch.ones_like(x), torch.full((), 9.0)
        return while_loop(more, step, start)


class CondInWhile(nn.Module):
    """A table is read beyond its end in a branch that is taken in some rounds only."""

    def __init__(s):
        super().__init__()
        s.t = nn.Parameter(torch.randn(4, 3))

    def forward(s, x, n):
        def some(i, y):
            return i > 0

        def step(i, y):
            def odd(i, y):
                return y + s.t[i.reshape(1)]

            def even(i, y):
                return torch.tanh(y @ y.t()) @ y
            return i - 1, torch.cond(i % 2 == 1, odd, even, (i, y))
        return while_loop(some, step, (n.clone(), x.clone()))


class WhileInCond(nn.Module):
    def forward(s, x, last):
        def rise(y):
            def low(i, z):
                return z.max() < last

            def double(i, z):
                return i + 1, z * 2 + 1
            return while_loop(low, double, (torch.zeros((), dtype=torch.int64), y.clone()))[1]

        def stay(y):
            return -y
        return torch.cond(x.sum() < last, rise, stay, (x,))


class ComplexBranch(nn.Module):
    """A branch of complex numbers."""

    def forward(s, z, c, x):
        def square(z, c):
            return z * z + c, torch.view_as_real(z).sum(), c - z

        def halve(z, c):
            return z * 0.5, torch.view_as_real(c).sum(), z - c
        return torch.cond(x.sum() > 0, square, halve, (z, c))


class ComplexLoop(nn.Module):
    """z = z * z + c, and branches of the same in each round."""

    def forward(s, z, c, n):
        def some(z, n):
            return n > 0

        def step(z, n):
            def near(z):
                return z * z + c

            def far(z):
                return z.conj() * 0.25
            return torch.cond(torch.view_as_real(z).abs().max() < 2, near, far, (z,)), n - 1
        return while_loop(some, step, (z, n))


class SizeClosure(nn.Module):
    """Bodies that read a size of what is outside."""

    def forward(s, x, y, n):
        b = x.shape[0]

        def mean(y):
            return y * b

        def less(y):
            return y - x.sum() / b

        def some(n, y):
            return n < b

        def step(n, y):
            return n + 1, y * b + n
        return torch.cond(y.sum() > 0, mean, less, (y,)), while_loop(some, step, (n, y))


class Checked(nn.Module):
    """Checks that need what was written before them; the count is written where none comes after."""

    def __init__(s):
        super().__init__()
        s.register_buffer("rows", torch.zeros(64, 32))
        s.register_buffer("mean", torch.ones(32))
        s.register_buffer("count", torch.zeros((), dtype=torch.long))

    def forward(s, x, limit):
        s.rows.index_copy_(0, s.count.remainder(64).reshape(1), x)
        y = s.rows.sum(0)
        torch._assert_async(y.abs().max() < limit[0], "rows")
        s.mean.mul_(0.75).add_(y * 0.25)
        torch._assert_async(s.mean.abs().max() < limit[1], "mean")
        s.count += 1
        return y + s.mean


class BranchUnbounded(nn.Module):
    def forward(s, x, n):
        return torch.cond(x.sum() > 0, lambda x, n: torch.repeat_interleave(x, n), lambda x, n: x - 1, (x, n))


class LoopInteger(nn.Module):
    def forward(s, x):
        return while_loop(lambda i, x: x.sum() < 100, lambda i, x: (i + 1, x * 2 + i), (x.shape[0], x))


class WhileInWhile(nn.Module):
    def forward(s, x, n):
        def more(j, y):
            return j < 3

        def rounds(j, y):
            def some(i, y):
                return i > 0

            def step(i, y):
                return i - 1, y * 0.5 + y.softmax(-1)
            return j + 1, while_loop(some, step, (n + j, y.clone()))[1]
        return while_loop(more, rounds, (torch.zeros((), dtype=torch.int64), x.clone()))[1]


class Promote(nn.Module):
    """In-place operators store into the dtype of their operand; scalars are weak."""

    def forward(s, x, i):
        h = x.to(torch.float16)
        h.add_(x)
        j = i * 2
        j.mul_(True).add_(3)
        m = i > 1
        k = (i / 2 + 0.5).mul_(i)
        i2 = i + 0
        i2.gt_(1)
        return h.float(), j, m, k, i2, 3 - i, x * 2 + True


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: list


torch.export.register_dataclass(Pair, serialized_type_name="Pair")


class Nested(nn.Module):
    """Inputs and outputs with names: a list, a dictionary, a class, a keyword. Their sizes are in guards."""

    def __init__(s):
        super().__init__()
        s.head = nn.Sequential(nn.Linear(4, 3), nn.ReLU())

    def forward(s, x, xs, d, p, *, k):
        y = s.head(x)
        if xs[1].shape[0] % 4 == 0:
            y = y + 1
        if d["q"].shape[0] + p.right[0].shape[0] > 6:
            y = y * 2
        if int(0.7 * k.shape[0]) == 4:
            y = y - 3
        y = y + xs[0] + xs[1].sum() + d["q"].sum() + p.left + p.right[0].sum() + k.sum()
        return {"logits": y, "prob": y.softmax(-1), "more": [y * 2, (y * 3,)], "pair": Pair(y - 1, [y - 2])}


class Log(nn.Module):
    """A guard that has no meaning here: math.log2(...) < 4."""

    def forward(s, *xs):
        return xs[0] * 2 if math.log2(xs[0].shape[0]) < 4 else xs[0] * 3


class Scaled(torch.Tensor):
    """A tensor made of others, as torchao's are; its matrix products read them by name."""
    members = ("q", "scale")

    @staticmethod
    def __new__(cls, *inner, shape):
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.float32)

    def __init__(self, *inner, shape):
        for name, x in zip(self.members, inner):
            setattr(self, name, x)

    def __repr__(self):
        return type(self).__name__

    def __tensor_flatten__(self):
        return list(self.members), None

    @classmethod
    def __tensor_unflatten__(cls, inner, context, size, stride):
        return cls(*[inner[name] for name in cls.members], shape=size)

    @classmethod
    def __torch_function__(cls, f, types, args=(), kwargs=None):
        if f is torch.nn.functional.linear:
            return torch.nn.functional.linear(args[0], args[1].q.float() * args[1].scale.float(), args[2])
        return super().__torch_function__(f, types, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, f, types, args, kwargs=None):
        if f in (torch.ops.aten.detach.default, torch.ops.aten.clone.default):
            return cls(*[f(getattr(args[0], name)) for name in cls.members], shape=args[0].shape)
        raise NotImplementedError(f)


class Wrapped(nn.Module):
    def __init__(s):
        super().__init__()
        s.a, s.b = nn.Linear(6, 4), nn.Linear(4, 3, bias=False)
        q = torch.randint(-128, 128, (6, 4)).to(torch.int8).t()  # not contiguous
        s.a.weight = nn.Parameter(Scaled(q, (torch.rand(4, 1) / 99).bfloat16(), shape=(4, 6)), requires_grad=False)
        s.b.weight = nn.Parameter(Scaled(torch.randint(0, 256, (3, 4)).to(torch.uint8), torch.rand(3, 1) / 99, shape=(3, 4)),
                                  requires_grad=False)

    def forward(s, x):
        return s.b(s.a(x).relu())


class Quantized(nn.Module):
    def __init__(s):
        super().__init__()
        from torchao.quantization import Int8WeightOnlyConfig, quantize_
        s.a = nn.Linear(16, 8)
        quantize_(s, Int8WeightOnlyConfig())

    def forward(s, x):
        return s.a(x).relu()


class Decoder(nn.Module):
    """The two entries of a language model in small: they share weights, and each calls a size of its own by the same name."""
    def __init__(s):
        super().__init__()
        s.embed = nn.Embedding(1100, 16)
        s.inner = nn.Linear(16, 16)

    def step(s, x):
        return x + s.inner(x).relu()


class Prefill(Decoder):
    def forward(s, ids):
        x = s.step(s.embed(ids))
        return s.step(x.sum(1) / x.shape[1]) @ s.embed.weight.T, x


class Decode(Decoder):
    def forward(s, ids):
        return s.step(s.embed(ids)) @ s.embed.weight.T


class Store(nn.Module):
    """State that one entry writes and others read, under names of the same memory too."""

    def __init__(s):
        super().__init__()
        store = torch.arange(20.).reshape(5, 4) / 8
        for name, x in {"all": store, "again": store, "rows": store[1:3]}.items():
            s.register_buffer(name, x)
        s.scale, s.bias = nn.Parameter(torch.linspace(1, 2, 4)), nn.Parameter(torch.linspace(-1, 1, 4))


class Writer(Store):
    def forward(s, x):
        s.all.add_(x)
        with torch.no_grad():
            s.scale.mul_(1.5)
        return s.all * s.scale + s.bias


class Reader(Store):
    def forward(s, x):
        return x @ (s.all * s.scale + s.bias).T


class AgainReader(Store):
    def forward(s, x):
        return x + s.again


class RowsReader(Store):
    def forward(s, x):
        return x + s.rows


class Stranger(nn.Module):
    """Another tensor of that name."""

    def __init__(s):
        super().__init__()
        s.register_buffer("all", torch.ones(5, 4))

    def forward(s, x):
        return x + s.all


if __name__ == "__main__":
    from fixture_list import make_all
    make_all(sys.modules["__main__"])
