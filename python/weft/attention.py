"""Gradients of attention whose softmax is written out: what AOTAutograd's partitioner is given.

PyTorch's derivative of softmax reads its result, so that the result, a number for each query and key, is saved by forward. Here
the joint graph of forward and backward becomes one from which Weft makes attention's kernels in both parts (docs/kernels.md):

    %p = _softmax(%x)                           %h = amax(%x); %e = exp(%x - %h); %l = sum(%e); %p = %e / %l
    %o = bmm(%p, %v)                            %o = bmm(%p, %v)
    %t = bmm(%g, %v^T)                    ->    %t = bmm(%g, %v^T)
    %d = _softmax_backward_data(%t, %p)         %m = sum(%g * %o); %d = %p * (%t - %m)

With dropout %o is of %p * %f and %t * %f takes the place of %t, where %f is the mask times 1 / (1 - chance): the mask is saved, and
the sum is the same. %x, %e and %p are marked as what backward computes again, as torch.utils.checkpoint marks: of %h, %l and what %x is made of.
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.utils.checkpoint import CheckpointPolicy

aten = torch.ops.aten
_CONVERT = torch.ops.prims.convert_element_type.default
_MOVES = {aten.view.default, aten.expand.default, aten.clone.default, aten._unsafe_view.default, aten.detach.default, aten.alias.default,
          aten.reshape.default, aten._to_copy.default, _CONVERT}
_CONVERSIONS = {aten._to_copy.default, _CONVERT}
_TRANSPOSES = {aten.transpose.int, aten.permute.default, aten.t.default, aten.mT.default}
_PRODUCTS = {aten.bmm.default}
_SOFTMAX = {aten._softmax.default, aten._safe_softmax.default}
_ELEMENT_WISE = {aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor, aten.add.Scalar, aten.mul.Scalar, aten.div.Scalar,
                 aten.where.self, aten.where.ScalarSelf, aten.where.ScalarOther, aten.masked_fill.Scalar, aten.masked_fill.Tensor,
                 aten.tanh.default, aten.neg.default}


@dataclass
class _Dropout:
    """What drops weights, with the gradient of that."""
    weights: Node  # what is left of them
    mask: Node
    scale: float


@dataclass
class _Attention:
    softmax: Node
    product: Node  # with values
    cotangent: Node  # of that
    weighed: Node  # the cotangent's product with values
    again: list[Node]  # what is computed again
    dropout: _Dropout | None


def recompute(gm: GraphModule) -> None:
    """Rewrites the attentions of a joint graph, as above."""
    order = {n: k for k, n in enumerate(gm.graph.nodes)}
    for backward in gm.graph.find_nodes(op="call_function", target=aten._softmax_backward_data.default):
        found = _find(backward, order)
        if found is not None:
            _rewrite(gm.graph, backward, found)


def _value(n: Any) -> torch.Tensor:
    return n.meta["val"]


def _source(n: Node) -> Node:
    """The node behind operators that keep the order of elements."""
    while n.target in _MOVES:
        n = n.args[0]
    return n


def _moves(n: Node) -> list[Node]:
    """Those operators, but for conversions, the first one first."""
    found = []
    while n.target in _MOVES:
        if n.target not in _CONVERSIONS:
            found.append(n)
        n = n.args[0]
    return found[::-1]


def _readers(n: Node) -> Iterator[Node]:
    """The readers of a value, and those behind operators that keep the order of elements."""
    for user in n.users:
        yield user
        if user.target in _MOVES:
            yield from _readers(user)


def _transposed(n: Node) -> Node | None:
    """The operand of a transpose of the last two of three dimensions, behind moves."""
    n = _source(n)
    last = n.target is aten.transpose.int and {k % _value(n).dim() for k in n.args[1:]} == {_value(n).dim() - 2, _value(n).dim() - 1}
    return _source(n.args[0]) if last else None


def _dropout(softmax: Node, gradient: Node) -> _Dropout | None:
    """The dropout of weights whose gradient is that node; None: it drops none of them, or sizes are symbols."""
    mask = gradient.args[1]
    drawn = mask.args[0] if mask.target is operator.getitem else mask
    if drawn.target is not aten.native_dropout.default or _source(drawn.args[0]) is not softmax or mask.args[1] != 1:
        return None
    left = [n for n in drawn.users if n.args[1] == 0]
    fixed = all(isinstance(n, int) for n in (*_value(mask).shape, *_value(softmax).shape))
    return _Dropout(left[0], mask, gradient.args[2]) if len(left) == 1 and fixed else None


def _find(backward: Node, order: dict[Node, int]) -> _Attention | None:
    """The attention of which that is the gradient of the softmax; None: there is none."""
    t, result, dim = backward.args[:3]
    softmax, dropout = _source(result), None
    half = softmax.target is aten._softmax.default and softmax.args[2]
    if softmax.target not in _SOFTMAX or dim % _value(softmax).dim() != _value(softmax).dim() - 1 or half or len(softmax.args) > 3:
        return None
    product = _source(t)
    if product.target is aten.native_dropout_backward.default:
        dropout = _dropout(softmax, product)
        if dropout is None:
            return None
        product = _source(product.args[0])
    weights = dropout.weights if dropout else softmax
    forward = [n for n in _readers(weights) if n.target in _PRODUCTS and _source(n.args[0]) is weights]
    others = [n for n in _readers(weights) if n.target not in _PRODUCTS | _MOVES | _TRANSPOSES and n is not backward]
    if dropout:
        others += [n for n in _readers(softmax) if n.target not in _MOVES and n not in (backward, dropout.mask.args[0])]
    if product.target not in _PRODUCTS or len(forward) != 1 or others or order[forward[0]] > order[product]:
        return None
    cotangent, of_values = product.args
    values = _source(forward[0].args[1])
    if _transposed(of_values) is not values or _value(product).shape != _value(forward[0].args[0]).shape:
        return None
    again = _scores(softmax.args[0])
    wide = _value(forward[0]).shape[-1] <= _value(softmax).shape[-1]
    return _Attention(softmax, forward[0], cotangent, product, again, dropout) if again and wide else None


def _scores(x: Node) -> list[Node]:
    """What computes scores of a product of queries and keys, with it; none: x is not computed so."""
    size, found, todo, product = _value(x).numel(), dict[Node, None](), [x], False
    while todo:
        n = todo.pop()
        if n in found or not isinstance(n.meta.get("val"), torch.Tensor) or _value(n).numel() != size:
            continue
        if n.target in _PRODUCTS:
            product = True
        elif n.target in _ELEMENT_WISE or n.target in _MOVES:
            todo += n.all_input_nodes
        else:
            continue  # a mask, which is read
        found[n] = None
    return list(found) if product else []


def _softmax(make: Callable[..., Node], wide: Node, safe: bool) -> tuple[Node, Node]:
    """The exponentials above the maximum of each row, and the softmax; safe: a row of -inf gives 0."""
    high = make(aten.amax.default, wide, [-1], True)
    none = make(aten.eq.Scalar, high, float("-inf")) if safe else None
    level = make(aten.where.ScalarSelf, none, 0.0, high) if none else high
    e = make(aten.exp.default, make(aten.sub.Tensor, wide, level))
    total = make(aten.sum.dim_IntList, e, [-1], True)
    return e, make(aten.div.Tensor, e, make(aten.where.ScalarSelf, none, 1.0, total) if none else total)


def _chain(n: Node, end: Node) -> Iterator[Node]:
    """The nodes from n on, by first operands, before `end`."""
    while n is not end:
        yield n
        n = n.args[0]


def _drop(graph: Graph, dropout: _Dropout, p: Node) -> tuple[Node, Node, list[Node]]:
    """What weights are multiplied by, what is left of p, and what computes these."""
    left = dropout.weights
    with graph.inserting_before(min(left.users)):
        make = _maker(graph, left)
        factor = make(aten.mul.Scalar, make(_CONVERT, dropout.mask, torch.float32), dropout.scale)
        shaped = make(aten.reshape.default, factor, list(_value(p).shape))
        kept = make(aten.reshape.default, make(aten.mul.Tensor, p, shaped), list(_value(left).shape))
        kept = kept if _value(left).dtype == torch.float32 else make(_CONVERT, kept, _value(left).dtype)
    return factor, kept, [*_chain(shaped, dropout.mask), *_chain(kept, p)]


def _rewrite(graph: Graph, backward: Node, a: _Attention) -> None:
    softmax, x = a.softmax, a.softmax.args[0]
    with graph.inserting_before(softmax):
        make = _maker(graph, softmax)
        wide = _wide(make, x)
        e, p = _softmax(make, wide, softmax.target is aten._safe_softmax.default)
        narrow = p if wide is x else make(_CONVERT, p, _value(softmax).dtype)
    again, replaced = [*a.again, *({wide, e, e.args[0], p} - {x})], [(softmax, narrow), (backward, None)]
    if a.dropout:
        factor, kept, made = _drop(graph, a.dropout, p)
        again += made
        replaced.append((a.dropout.weights, kept))
    with graph.inserting_before(backward):
        make = _maker(graph, backward)
        g, o, t = (_wide(make, n) for n in (a.cotangent, a.product, a.weighed))
        if a.dropout:
            t = make(aten.mul.Tensor, t, make(aten.reshape.default, factor, list(_value(t).shape)))
        d = make(aten.sub.Tensor, t, make(aten.sum.dim_IntList, make(aten.mul.Tensor, g, o), [-1], True))
        if a.dropout:
            d = make(aten.reshape.default, d, list(_value(backward).shape))
        for move in () if a.dropout else _moves(backward.args[0]):
            d = make(move.target, d, *move.args[1:])
        d = make(aten.mul.Tensor, p, d)
        d = d if _value(backward).dtype == _value(d).dtype else make(_CONVERT, d, _value(backward).dtype)
    for old, new in replaced:
        old.replace_all_uses_with(new or d)
        graph.erase_node(old)
    for weights in (p, kept) if a.dropout else (p,):
        again += [n for n in _readers(weights) if n.target in _MOVES | _TRANSPOSES]
    for n in again:
        n.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE


def _wide(make: Callable[..., Node], n: Node) -> Node:
    """The value in the dtype in which PyTorch computes a softmax."""
    return make(_CONVERT, n, torch.float32) if _value(n).dtype in (torch.bfloat16, torch.float16) else n


def _maker(graph: Graph, like: Node) -> Callable[..., Node]:
    """Adds calls to the graph, whose nodes are of the part of the graph that a node is of."""
    def make(target: Any, *args: Any) -> Node:
        n = graph.call_function(target, args)
        n.meta = {k: v for k, v in like.meta.items() if k not in ("val", "tensor_meta")}
        values = torch.fx.map_arg(args, lambda a: a.meta["val"])
        with torch._guards.detect_fake_mode(_value(like)):
            n.meta["val"] = target(*values)
        return n
    return make
