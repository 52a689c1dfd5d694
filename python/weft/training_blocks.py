"""A linear layer and cross entropy behind it, in blocks of rows: of a large vocabulary the logits of all rows are never there at once.

    logits = addmm(bias, h, t(w));  ls = log_softmax(logits);  loss = nll_loss(ls, label)        logits [N, V]
    dl = their gradients;  dh = mm(dl, w);  dw = mm(t(dl), h);  db = sum(dl, 0)

becomes one loop, whose rounds compute a block of rows of logits, what these add to the loss, and its gradients. It is done where nothing else reads
logits or their gradients, and they are large.
"""
from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.fx import Node

_aten = torch.ops.aten
_VIEWS = {_aten.view.default, _aten._unsafe_view.default, _aten.reshape.default, _aten.detach.default, _aten.alias.default, _aten.clone.default}
_TURNS = {_aten.t.default, _aten.t_copy.default}
ROWS = 512          # of a block
LEAST = 64 << 20    # bytes of logits from which on it is done


def blocks(h: torch.Tensor, wt: torch.Tensor, bias: torch.Tensor | None, label: torch.Tensor, ignore: int, mean: bool) -> Any:
    """What the loop computes, for Python: the loss, and gradients by h, by the transpose of wt, and by bias."""
    raise NotImplementedError("a node of a step's graph, which Weft computes")


class _Head(NamedTuple):
    """The nodes that the loop replaces."""
    product: Node
    softmax: Node
    forward: Node
    backward: Node
    gradient: Node  # of the logits
    by_h: list[Node]
    by_w: list[Node]
    by_bias: list[Node]


def _root(n: Any) -> Any:
    while isinstance(n, Node) and n.target in _VIEWS:
        n = n.args[0]
    return n


def _readers(n: Node, live: set[Node]) -> Iterator[Node]:
    """Live nodes that read n or a view of it."""
    for u in n.users:
        if u in live:
            if u.target in _VIEWS:
                yield from _readers(u, live)
            else:
                yield u


def _live(roots: list[Any]) -> set[Node]:
    seen: set[Node] = set()
    left = [n for n in roots if isinstance(n, Node)]
    while left:
        n = left.pop()
        if n not in seen:
            seen.add(n)
            left += n.all_input_nodes
    return seen


def _is(n: Any, target: Any) -> bool:
    return isinstance(n, Node) and n.target is target


def _head(softmax: Node, live: set[Node], kept: set[Node]) -> _Head | None:
    """The nodes around a log_softmax, if they are as above."""
    v, product = softmax.meta["val"], _root(softmax.args[0])
    if v.dim() != 2 or softmax.args[1] not in (1, -1) or v.dtype not in (torch.float32, torch.float64) or not all(isinstance(n, int) for n in v.shape):
        return None
    if not (_is(product, _aten.mm.default) or _is(product, _aten.addmm.default) and not product.kwargs) or product.meta["val"].shape != v.shape:
        return None
    if _is(product, _aten.addmm.default) and product.args[0].meta["val"].shape != v.shape[1:]:
        return None
    if set(_readers(product, live)) != {softmax} or kept & {product, softmax}:
        return None
    found: dict[Any, Node] = {}
    for u in _readers(softmax, live):
        if u.target in found:
            return None
        found[u.target] = u
    forward, backward, gradient = (found.pop(t.default, None) for t in (_aten.nll_loss_forward, _aten.nll_loss_backward, _aten._log_softmax_backward_data))
    if found or not forward or not backward or not gradient or forward.args[2] is not None or forward.args[3] not in (1, 2):
        return None
    if _root(gradient.args[0]) is not backward or list(_readers(backward, live)) != [gradient] or backward.args[4] != forward.args[3]:
        return None
    parts: dict[str, list[Node]] = {"h": [], "w": [], "bias": []}
    h, wt = product.args[-2:]
    for u in _readers(gradient, live):
        if _is(u, _aten.mm.default) and _root(u.args[0]) is gradient and u.args[1].target in _TURNS and u.args[1].args[0] is wt:
            parts["h"].append(u)
        elif u.target in _TURNS and all(_is(x, _aten.mm.default) and x.args[0] is u and _root(x.args[1]) is _root(h) for x in _readers(u, live)):
            parts["w"] += [x for x in u.users if x in live]
        elif _is(u, _aten.sum.dim_IntList) and list(u.args[1]) == [0]:
            parts["bias"].append(u)
        else:
            return None
    return _Head(product, softmax, forward, backward, gradient, parts["h"], parts["w"], parts["bias"])


def rewrite(gm: Any, roots: list[Any]) -> dict[Node, Node]:
    """Puts loops into a joint graph. roots: what is used of it. Returns by node what replaces it."""
    live, kept, made = _live(roots), {_root(n) for n in roots}, {}
    for softmax in gm.graph.find_nodes(op="call_function", target=_aten._log_softmax.default):
        v = softmax.meta["val"]
        head = _head(softmax, live, kept) if softmax in live else None
        if head is not None and v.numel() * v.element_size() >= LEAST and v.shape[0] >= 2 * ROWS:
            made |= _replace(gm, head, live)
    return made


def _replace(gm: Any, head: _Head, live: set[Node]) -> dict[Node, Node]:
    product, forward, made = head.product, head.forward, {}
    h, wt = product.args[-2:]
    bias = product.args[0] if len(product.args) == 3 else None
    with gm.graph.inserting_before(forward):
        loop = gm.graph.call_function(blocks, (h, wt, bias, forward.args[1], forward.args[4], forward.args[3] == 1))
        results = [gm.graph.call_function(operator.getitem, (loop, k)) for k in range(4)]
    value = [forward.meta["val"][0], h.meta["val"], wt.meta["val"].t(), wt.meta["val"][0]]
    for n, v in zip(results, value):
        n.meta["val"] = v
    loop.meta["val"] = tuple(value)
    for u in list(forward.users):
        if u in live and u.args[1] == 0:
            made[u] = results[0]
    seed = head.backward.args[0]
    for nodes, result in ((head.by_h, results[1]), (head.by_w, results[2]), (head.by_bias, results[3])):
        for n in nodes:
            made[n] = _scaled(gm, n, result, seed)
    for old, new in made.items():
        old.replace_all_uses_with(new)
    return made


def _scaled(gm: Any, n: Node, result: Node, seed: Any) -> Node:
    """A gradient of the loss, times the gradient that the loss itself has."""
    one = _root(seed)
    with gm.graph.inserting_before(n):
        if not (_is(one, _aten.full.default) and one.args[1] == 1.0):
            result = gm.graph.call_function(_aten.mul.Tensor, (result, seed))
            result.meta["val"] = n.meta["val"].reshape(-1) if n.meta["val"].shape[0] == 1 else n.meta["val"]
        if n.target is _aten.sum.dim_IntList and n.meta["val"].dim() == 2:
            result = gm.graph.call_function(_aten.view.default, (result, list(n.meta["val"].shape)))
            result.meta["val"] = n.meta["val"]
    return result


def lower(lowering: Any, node: Node) -> list[Any]:
    """The loop, as calls of a trace."""
    h, wt, bias, label, ignore, mean = (lowering.env[a] if isinstance(a, Node) else a for a in node.args)
    (n, width), classes = node.args[0].meta["val"].shape, node.args[1].meta["val"].shape[1]
    count = -(-n // ROWS)
    each = -(-n // count)
    pad = count * each - n
    made, dtype = lowering._made, lowering.trace.dtype(h)
    counts = lambda x: made("ne.Scalar", x, ignore)
    share = made("reciprocal", made("sum", made("_to_copy", counts(label), dtype=dtype))) if mean else made("full", [], 1.0, dtype=dtype)
    none = made("full", [], 0.0, dtype=dtype)
    w, place = made("t", wt), made("arange", classes, dtype="i64")
    if pad:
        h, label = made("constant_pad_nd", h, [0, 0, 0, pad], 0.0), made("constant_pad_nd", label, [0, pad], ignore)

    def body(values: list[Any]) -> list[Any]:
        loss, dw, *db, x, at = values
        logits = made("mm", x, wt) if bias is None else made("addmm", bias, x, wt)
        ls = made("_log_softmax", logits, 1, False)
        loss = made("add.Tensor", loss, made("nll_loss_nd", ls, at, None, 2, ignore))
        hit = made("_to_copy", made("eq.Tensor", made("unsqueeze", at, 1), place), dtype=dtype)
        dl = made("mul.Tensor", made("sub.Tensor", made("exp", ls), hit), made("unsqueeze", made("where.self", counts(at), share, none), 1))
        dw = made("add.Tensor", dw, made("mm", made("t", dl), x))
        return [loss, dw, *(made("add.Tensor", d, made("sum.dim_IntList", dl, [0])) for d in db), made("mm", dl, w)]
    zeros = lambda *shape: made("zeros", list(shape), dtype=dtype)
    begin = [zeros(), zeros(classes, width), *([zeros(classes)] if bias is not None else [])]
    slices = [made("reshape", h, [count, each, width]), made("reshape", label, [count, each])]
    loss, dw, *db, dh = lowering._checked(node, lowering.trace.scan, begin, slices, body, 1)
    dh = made("slice.Tensor", made("reshape", dh, [count * each, width]), 0, 0, n)
    return [made("mul.Tensor", loss, share), dh, dw, db[0] if db else None]
