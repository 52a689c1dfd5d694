"""Make the archives of tests/data/sizes with PyTorch and torchvision: make_size_fixtures.py tests/data/sizes [NAME...]. Results whose sizes depend on
data: for every model one archive and several calls, NAME.<k>.safetensors, with nothing selected, everything, and some; tests/system/sizes.py runs
them with every back end."""
import copy
import sys

import torch
from safetensors.torch import save_file
from torch import nn
from torch._higher_order_ops.map import map as map_each
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim, export
from torch.utils._pytree import tree_leaves
from torchvision.ops import nms, ps_roi_align, ps_roi_pool, roi_align, roi_pool

from make_fixtures import dest, save

A = torch.ops.aten
torch.manual_seed(12)


def make(name, model, calls, dynamic=None, errors=(), right=None):
    """errors: calls that fail, with the words that tell so. right: what gives the results, where it is not the model."""
    if sys.argv[2:] and name not in sys.argv[2:]:
        return
    program = export(model, tuple(x.clone() for x in calls[0]), dynamic_shapes=dynamic, strict=False)
    save(name, program, True)
    for k, args in enumerate([*calls, *(e[0] for e in errors)]):
        tensors = {f"x.{i}": x.clone() for i, x in enumerate(args)}
        if k < len(calls):
            for i, y in enumerate(tree_leaves((right or model)(*(x.clone() for x in args)))):
                tensors[f"y.{i}"] = y.detach().clone().contiguous() if isinstance(y, torch.Tensor) else torch.tensor(y)
        save_file(tensors, dest / f"{name}.{k}.safetensors", {"error": errors[k - len(calls)][1]} if k >= len(calls) else None)


class FirstAndLast(nn.Module):
    """torch.export writes extent 1 for the first and the last step, as if there always were one."""

    def forward(s, x):
        return x[:, -1:] * 2, torch.cat([x[:, :1], x], 1)


class Rows(nn.Module):
    """A size without a least one in Python, which export takes to be positive; it may be 0."""

    def forward(s, x, w):
        return x @ w, x.roll(1, 0), x.sum(0), x.softmax(0), torch.cat([x, x + x.shape[0]])


class Nothing(nn.Module):
    """What has a value of nothing."""

    def forward(s, x, i, w):
        return (x.median(), x.nanmedian(), i.median(), torch.trapezoid(x, dim=0), nn.functional.embedding_bag(i, w, torch.tensor([0, 0]), mode="max"),
                torch.cdist(x.T, x.T.flip(0), p=float("inf")), x.mean(0), x.logsumexp(0), nn.functional.adaptive_avg_pool1d(x.T, 1))


class Extremes(nn.Module):
    def forward(s, x):
        return x.max(0), x.argmin(0), x.amax(), torch.linalg.vector_norm(x, float("inf"), dim=0), x.mode(0)


class Reached(nn.Module):
    """The same in a branch: it is refused where the branch is taken."""

    def forward(s, x, p):
        return torch.cond(p[0], lambda x: x.amax(0), lambda x: x.sum(0), (x,))

    def each(s, x, p):
        """The same: PyTorch's own cond, called, traces both."""
        return x.amax(0) if p[0] else x.sum(0)


class Columns(nn.Module):
    def __init__(s):
        super().__init__()
        s.conv, s.norm = nn.Conv1d(2, 4, 3, padding=1), nn.GroupNorm(2, 4)

    def forward(s, x):
        y = s.norm(s.conv(x))
        return nn.functional.adaptive_max_pool1d(nn.functional.pad(y, (1, 2), mode="replicate"), 2)


class Nonzero(nn.Module):
    def forward(s, x):
        where = torch.where(x > 1)
        return x.nonzero(), torch.argwhere(x > 1), *where, x[where] * 2


class Masked(nn.Module):
    def forward(s, x, m):
        y = torch.masked_select(x, m)
        rows = x[m[:, 0]]
        z = x.index_put((m,), y * 2)
        return y, rows @ torch.ones(5, 3), rows.sum(0), x[:, m[0]].softmax(0), z, y.mean(), torch.cat([rows, x[~m[:, 0]]])


class Unique(nn.Module):
    def forward(s, x, i):
        return (*torch.unique(x, return_inverse=True, return_counts=True), torch.unique(i), *torch.unique(i, dim=0, return_inverse=True, return_counts=True),
                *torch.unique_consecutive(x, return_inverse=True, return_counts=True), *torch.unique_consecutive(i, dim=1, return_counts=True))


class Slices(nn.Module):
    """Bounds of slices and places of splits from data, of either sign and beyond the ends; writes through them."""

    def forward(s, x, k):
        a, b, c = k.tolist()
        y, z, w = x.clone(), x * 2, x + 1
        y[a:b].zero_()
        z[c] = 5
        w[:, b:] += 1
        parts = x.tensor_split(k)
        return (x[:a] * 2, x[b:], x[a:b].sum(0), x[-c:].exp(), x[a::2] + 1, x[c], x[:, a:b].cumsum(1), y, z, w, x.narrow(0, c, 1), *parts,
                x.tensor_split(k[:2], 1)[1] * 3, torch.cat([x[:a], x[a:]]))


class Repeat(nn.Module):
    def forward(s, x, n):
        y = torch.repeat_interleave(x, n, dim=0)
        return y, torch.repeat_interleave(n), y.sum(1), torch.repeat_interleave(x[:, :1], n, dim=0).cumsum(0)


class Bincount(nn.Module):
    def forward(s, i, w):
        n = torch.bincount(i)
        return n, torch.bincount(i, w), torch.bincount(i, minlength=5), n.cumsum(0), torch.arange(n.shape[0]) * n


class Item(nn.Module):
    def forward(s, x, i, f):
        n = i[0].item()
        torch._check(n >= 0)
        torch._check(n <= x.shape[0])
        on = f[0].item()
        return x[:n] * 2 + n, torch.zeros(n) + 1, torch.arange(n + 2), x * on, x.sum() * x[0, 0].item(), x.narrow(0, 0, n).sum(0)


class Even(nn.Module):
    """A condition of the model on a size that is found out."""

    def forward(s, x):
        y = x[x > 0]
        torch._check(y.shape[0] % 2 == 0)
        return y.reshape(-1, 2).sum(1)


class Nms(nn.Module):
    def forward(s, boxes, scores):
        keep = nms(boxes, scores, 0.5)
        return keep, boxes[keep], scores[keep].sqrt()


class Head(nn.Module):
    """Scores of classes and boxes to detections: a threshold, suppression per class, the best ones."""

    def __init__(s):
        super().__init__()
        s.score, s.box = nn.Linear(6, 4), nn.Linear(6, 4)

    def forward(s, x):
        scores, delta = s.score(x).softmax(1), s.box(x)
        centre, size = delta[:, :2] * 4, delta[:, 2:].exp()
        boxes = torch.cat([centre - size, centre + size], 1)
        scores, labels = scores[:, 1:].max(1)
        keep = torch.where(scores > 0.3)[0]
        boxes, scores, labels = boxes[keep], scores[keep], labels[keep]
        small = torch.where(((boxes[:, 2:] - boxes[:, :2]) >= 0.5).all(1))[0]
        boxes, scores, labels = boxes[small], scores[small], labels[small]
        keep = nms(boxes + 1000 * labels[:, None], scores, 0.4)[:7]  # per class: batched_nms compares sizes that export does not know
        return boxes[keep], scores[keep], labels[keep] + 1


class Long(nn.Module):
    """More launches than one function holds: parts are told the sizes; one of them is negative."""

    def forward(s, x, i, r):
        n, y, z = i[0].item(), x[x > 0], torch.repeat_interleave(x, r)
        for _ in range(140):
            y, z = torch.cumsum(y, 0) * 0.25, torch.cumsum(z, 0) * 0.25
        return y + n, z * n, y.shape[0] + z.shape[0]


class Branch(nn.Module):
    """A size that is born in a branch, and one that both branches read."""

    def forward(s, x, y):
        kept = y[y > 0]
        a = torch.cond(x.sum() > 0, lambda x: x[x > 0].sum(), lambda x: x.sum(), (x,))
        b = torch.cond(x.sum() > 0, lambda k: (k * 2).sum(), lambda k: (k + 1).sum(), (kept,))
        return a, b, kept + 1


class Uneven(nn.Module):
    """Branches whose results have other sizes: of numbers, of inputs, found in data, of two dimensions at once, and one branch in another."""

    def forward(s, x, y, p):
        some = torch.cond(p[0], lambda x: x[:3] * 2, lambda x: x[:2] + 1, (x,))
        either = torch.cond(p[1], lambda x, y: x * 1, lambda x, y: y * 2, (x, y))
        above, n = torch.cond(p[2], lambda x: (x[x > 0], x.sum()), lambda x: (x[x < -1] * 3, x.mean()), (x,))
        block = torch.cond(p[0], lambda x, y: x[x[:, 0] > 0][:, :2] * 1, lambda x, y: y[y[:, 0] < 0] * 1, (x, y))
        inner = torch.cond(p[1], lambda x, p: torch.cond(p[2], lambda x: x[:1] * 1, lambda x: x[x[:, 1] > 0], (x,)), lambda x, p: x * 1, (x, p))
        return (some, either.sum(0), either, above.sort()[0], above.sum() * n, block, block @ torch.ones(block.shape[1]), inner,
                torch.cat([some, inner]).cumsum(0))


class Rounds(nn.Module):
    """Suppression round after round, of what the rounds before left."""

    def forward(s, boxes, scores):
        def more(k, left, rank):
            return (k < 4) & (left.max() > 0.2)

        def keep(k, left, rank):
            one = torch.zeros_like(left).index_fill(0, nms(boxes, left, 0.5), 1.0)
            return k + 1, left * (1 - one), torch.maximum(rank, one * (10.0 - k))
        return while_loop(more, keep, (torch.zeros((), dtype=torch.int64), scores * 1, torch.zeros_like(scores)))


class Images(nn.Module):
    """Suppression for each of some images: what is kept, how much of it, and the sum of its boxes."""

    @staticmethod
    def one(xs):
        boxes, scores = xs
        best = torch.where(scores > 0.3)[0]
        best = best[nms(boxes[best], scores[best], 0.5)]
        return torch.zeros_like(scores).index_fill(0, best, 1.0), scores[best].sum(), boxes[best].sum(0)

    def forward(s, boxes, scores):
        return map_each(s.one, (boxes, scores))

    def each(s, boxes, scores):
        """The same: PyTorch's own map fails where nothing is kept, u1 >= 2."""
        return [torch.stack(y) for y in zip(*map(s.one, zip(boxes, scores)))]


class Regions(nn.Module):
    """Features of the boxes that are kept, of which each is of one image of two; points in bins are as many as the largest needs."""

    def forward(s, x, boxes, scores, image):
        keep = torch.where(scores > 0.2)[0]
        keep = keep[nms(boxes[keep] + 100 * image[keep, None], scores[keep], 0.5)]
        rois = torch.cat([image[keep, None].to(x.dtype), boxes[keep]], 1)
        return (keep, roi_align(x, rois, (3, 2), 0.5, 2), roi_align(x, rois, (2, 2), 0.5, -1, True), roi_pool(x, rois, (2, 3), 0.5),
                ps_roi_align(x, rois, 2, 0.5, -1), ps_roi_pool(x, rois, 2, 0.5))


class Stepping(nn.Module):
    """State, and sizes that depend on data: as many rows are written as were found, and where depends on how many there were."""

    def __init__(s):
        super().__init__()
        s.register_buffer("rows", torch.zeros(8, 3))
        s.register_buffer("seen", torch.zeros((), dtype=torch.int64))
        s.register_buffer("total", torch.zeros(3))

    def forward(s, x):
        y = x[x[:, 0] > 0]
        torch._check(y.shape[0] <= 5)
        s.rows.index_copy_(0, (s.seen + torch.arange(y.shape[0])) % 8, y)
        s.seen.add_(y.shape[0])
        s.total.add_(y.sum(0))
        return y * s.total, s.rows.sum(0), s.seen * 2


def make_steps(name, model, steps):
    """steps: lists of inputs, one call after the other; state after each. The next list begins anew."""
    program = export(model, (steps[0][0].clone(),), strict=False)
    save(name, program, True)
    for k, calls in enumerate(steps):
        own, tensors = copy.deepcopy(model), {}
        for i, x in enumerate(calls):
            tensors |= {f"{i}.x.0": x.clone()} | {f"{i}.y.{j}": y.clone() for j, y in enumerate(own(x.clone()))}
            tensors |= {f"{i}.b.{n}": v.clone() for n, v in own.named_buffers()}
        save_file(tensors, dest / f"{name}.{k}.safetensors")


def twenty(name, model, call):
    """Twenty calls in one file: call(k) with nothing selected for k = 0, everything for k = 1, and some."""
    tensors = {}
    for k in range(20):
        args = call(k)
        tensors |= {f"{k}.x.{i}": x.clone() for i, x in enumerate(args)}
        for i, y in enumerate(tree_leaves(model(*(x.clone() for x in args)))):
            tensors[f"{k}.y.{i}"] = y.detach().clone().contiguous() if isinstance(y, torch.Tensor) else torch.tensor(y)
    save_file(tensors, dest / f"{name}.100.safetensors")


def boxes(n, spread=4.0):
    corner = torch.rand(n, 2) * spread
    return torch.cat([corner, corner + 0.2 + torch.rand(n, 2) * 2], 1)


if __name__ == "__main__":
    n = Dim("n", min=2, max=4096)
    x = torch.randn(6, 5)
    make("nonzero", Nonzero(), [(x,), (torch.zeros(6, 5),), (torch.full((6, 5), 2.0),), (torch.randn(2, 5),), (torch.randn(300, 5),)], ({0: n},))
    masks = [torch.rand(6, 5) > 0.5, torch.zeros(6, 5, dtype=torch.bool), torch.ones(6, 5, dtype=torch.bool), torch.rand(6, 5) > 0.9]
    make("masked", Masked(), [(x, m) for m in masks] + [(torch.randn(200, 5), torch.rand(200, 5) > 0.5)], ({0: n}, {0: n}))
    i = torch.randint(0, 2, (6, 4))
    make("unique", Unique(), [(torch.randint(0, 5, (12,)).float(), i), (torch.zeros(12), torch.zeros(6, 4, dtype=torch.int64)),
                              (torch.arange(12.0).flip(0), torch.arange(24).view(6, 4)), (torch.tensor([float("nan"), 1, 1, 2] * 3), i)])
    places = ([1, 3, 2], [4, 2, 0], [-2, -1, -3], [0, 99, 5], [-99, 0, -6], [6, 6, 1])
    make("slices", Slices(), [(torch.randn(6, 7), torch.tensor(k)) for k in places], errors=[((torch.randn(6, 7), torch.tensor([1, 2, 6])), "is 6, expected")])
    make("repeat", Repeat(), [(x, torch.tensor([1, 0, 3, 2, 0, 1])), (x, torch.zeros(6, dtype=torch.int64)), (x, torch.full((6,), 40))],
         errors=[((x, torch.tensor([1, 0, 3, -2, 0, 1])), "repeats cannot be negative")])
    make("bincount", Bincount(), [(torch.randint(0, 9, (20,)), torch.rand(20)), (torch.zeros(20, dtype=torch.int64), torch.rand(20)),
                                  (torch.randint(0, 2000, (20,)), torch.rand(20))],
         errors=[((torch.tensor([3, -1] * 10), torch.rand(20)), "values cannot be negative")])
    on, off = torch.tensor([True]), torch.tensor([False])
    make("item", Item(), [(x, torch.tensor([3]), on), (x, torch.tensor([0]), off), (x, torch.tensor([6]), on)],
         errors=[((x, torch.tensor([7]), on), "item"), ((x, torch.tensor([-1]), on), "item")])
    make("even", Even(), [(torch.tensor([1.0, -1, 2, 3, 4, -5]),), (-torch.ones(6),), (torch.ones(6),)],
         errors=[((torch.tensor([1.0, -1, 2, 3, -4, -5]),), "u0")])
    make("nms", Nms(), [(boxes(k, spread), torch.rand(k)) for k, spread in ((8, 4.0), (2, 4.0), (40, 4.0), (200, 30.0), (33, 0.01))] +
         [(boxes(1).repeat(9, 1), torch.ones(9)), (boxes(9) * torch.tensor([1, 1, 0, 0]), torch.rand(9))], ({0: n}, {0: n}))
    head, calls = Head(), []
    with torch.no_grad():
        for k in range(20):
            calls.append((torch.randn(64 if k % 2 else 5 + k, 6) * (0.0 if k == 18 else 0.3 * k),))
        make("head", head.eval(), calls, ({0: n},))
        make("branch", Branch(), [(x, x[0]), (-x.abs(), x[1]), (x.abs(), x[2].abs()), (x, -x[3].abs())])
    x = torch.randn(9)
    make("long", Long(), [(x, torch.tensor([-3]), torch.tensor([1, 0, 2, 1, 1, 0, 0, 3, 1])), (-x.abs(), torch.tensor([4]), torch.zeros(9, dtype=torch.int64)),
                          (x.abs(), torch.tensor([0]), torch.full((9,), 5))])
    torch.manual_seed(13)
    calls = []
    for k, spread in ((8, 9.0), (3, 9.0), (300, 12.0), (40, 30.0)):
        calls.append((torch.randn(2, 8, 7, 6), boxes(k, spread) * 2, torch.rand(k) * (k != 3) * 0.9, torch.randint(0, 2, (k,))))
    make("regions", Regions(), calls, (None, {0: n}, {0: n}, {0: n}))
    make("many", Nms(), [(boxes(k, spread), torch.rand(k)) for k, spread in ((700, 12.0), (128, 4.0), (129, 40.0), (257, 0.1), (3, 4.0))], ({0: n}, {0: n}))
    make_steps("stepping", Stepping(), [[torch.randn(5, 3) for _ in range(4)], [-torch.ones(5, 3), torch.ones(5, 3), torch.randn(5, 3)]])
    torch.manual_seed(14)

    def chosen(k, shape, none=0.0, all=1.0):
        """Values of a normal distribution, or all of them the same."""
        return torch.full(shape, none if k == 0 else all) if k < 2 else torch.randn(shape)
    make("first_and_last", FirstAndLast(), [(torch.randn(2, k),) for k in (5, 1, 2)], ({1: Dim("steps")},))
    make("rows", Rows(), [(torch.randn(k, 4), torch.randn(4, 3)) for k in (5, 0, 1)], ({0: Dim("rows")}, None))
    flags = [torch.tensor([a, b, c]) for a in (True, False) for b in (True, False) for c in (True, False)]
    make("uneven", Uneven(), [(torch.randn(6, 4), torch.randn(5, 4), flags[k]) for k in (0, 7)], ({0: Dim("k", min=3, max=4096)}, {0: Dim("m", min=3, max=4096)}, None))
    twenty("uneven", Uneven(), lambda k: (chosen(k, (3 + k, 4), -2.0), chosen(k, (3 + k * 7 % 9, 4), 1.0, -1.0), flags[k * 3 % 8]))

    def boxed(k):
        m = 4 + 3 * k
        return boxes(m, 0.01 if k == 0 else 400.0 if k == 1 else 4.0), torch.zeros(m) if k == 0 else torch.rand(m) / 2 + 0.5 * (k == 1)
    make("rounds", Rounds(), [boxed(5)], ({0: n}, {0: n}))
    make("images", Images(), [tuple(torch.stack([x, x.flip(0)]) for x in boxed(4))], ({1: n}, {1: n}))
    twenty("rounds", Rounds(), boxed)
    twenty("images", Images().each, lambda k: tuple(torch.stack(x) for x in zip(boxed(k), boxed(k))))
    twenty("nms", Nms(), boxed)
    twenty("nonzero", Nonzero(), lambda k: (chosen(k, (2 + k, 5), 0.0, 2.0),))
    twenty("masked", Masked(), lambda k: (torch.randn(2 + k, 5), chosen(k, (2 + k, 5)) > 0.2 * (k % 4)))
    twenty("unique", Unique(), lambda k: ((torch.zeros(12) if k == 0 else torch.randperm(12).float() if k == 1 else torch.randint(0, k, (12,)).float()),
                                          torch.full((6, 4), k) if k == 0 else torch.randperm(24).view(6, 4) if k == 1 else torch.randint(0, 2, (6, 4))))
    twenty("repeat", Repeat(), lambda k: (torch.randn(6, 5), torch.randint(0, max(k, 1), (6,)) if k != 1 else torch.full((6,), 30)))
    twenty("bincount", Bincount(), lambda k: (torch.arange(20) if k == 1 else torch.randint(0, 1 + k * k, (20,)), torch.rand(20)))
    twenty("item", Item(), lambda k: (torch.randn(6, 5), torch.tensor([0 if k == 0 else 6 if k == 1 else k % 7]), torch.tensor([k % 2 == 1])))
    twenty("branch", Branch(), lambda k: (chosen(k, (6, 5), -1.0), chosen(k, (5,), -1.0)))
    torch.manual_seed(15)
    rows = Dim("rows", min=0)
    i = torch.randint(0, 4, (5,))
    make("nothing", Nothing(), [(torch.randn(k, 3), i[:k], torch.randn(4, 3)) for k in (5, 0, 1)], ({0: rows}, {0: rows}, None))
    make("extremes", Extremes(), [(torch.randn(k, 3),) for k in (5, 1)], ({0: rows},), [((torch.randn(0, 3),), "has an element")])
    yes, no = torch.tensor([True]), torch.tensor([False])
    make("reached", Reached(), [(torch.randn(5, 3), yes), (torch.randn(0, 3), no), (torch.randn(1, 3), yes)], ({0: rows}, None),
         [((torch.randn(0, 3), yes), "has an element")], Reached().each)
    with torch.no_grad():
        make("columns", Columns(), [(torch.randn(2, 2, k),) for k in (5, 1)], ({2: rows},), [((torch.randn(2, 2, 0),), "fits into its padded input")])
