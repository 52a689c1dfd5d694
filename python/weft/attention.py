"""Gradients of attention whose softmax is written out: what AOTAutograd's partitioner is given.

PyTorch's derivative of softmax reads its result, so that the result, a number for each query and key, is saved by forward. Here
the joint graph of forward and backward becomes one from which Weft makes attention's kernels in both parts (docs/kernels.md):

    %p = _softmax(%x)                           %h = amax(%x); %e = exp(%x - %h); %l = sum(%e); %p = %e / %l
    %o = bmm(%p, %v)                            %o = bmm(%p, %v)
    %t = bmm(%g, %v^T)                    ->    %t = bmm(%g, %v^T)
    %d = _softmax_backward_data(%t, %p)         %m = sum(%g * %o); %d = %p * (%t - %m)

and %x, %e and %p are marked as what backward computes again, as torch.utils.checkpoint marks: of %h, %l and what %x is made of.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
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
_ELEMENT_WISE = {aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor, aten.add.Scalar, aten.mul.Scalar, aten.div.Scalar,
                 aten.where.self, aten.where.ScalarSelf, aten.where.ScalarOther, aten.masked_fill.Scalar, aten.masked_fill.Tensor,
                 aten.tanh.default, aten.neg.default}


def recompute(gm: GraphModule) -> None:
    """Rewrites the attentions of a joint graph, as above."""
    order = {n: k for k, n in enumerate(gm.graph.nodes)}
    for backward in gm.graph.find_nodes(op="call_function", target=aten._softmax_backward_data.default):
        found = _find(backward, order)
        if found is not None:
            _rewrite(gm.graph, backward, *found)


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


def _find(backward: Node, order: dict[Node, int]) -> tuple[Node, Node, Node, list[Node]] | None:
    """The softmax, its product with values, the cotangent of that, and what is computed again; None: there is no such attention."""
    t, result, dim = backward.args[:3]
    softmax = _source(result)
    if softmax.target is not aten._softmax.default or dim % _value(softmax).dim() != _value(softmax).dim() - 1 or softmax.args[2]:
        return None
    product = _source(t)
    forward = [n for n in _readers(softmax) if n.target in _PRODUCTS and _source(n.args[0]) is softmax]
    others = [n for n in _readers(softmax) if n.target not in _PRODUCTS | _MOVES | _TRANSPOSES and n is not backward]
    if product.target not in _PRODUCTS or len(forward) != 1 or others or order[forward[0]] > order[product]:
        return None
    cotangent, of_values = product.args
    values = _source(forward[0].args[1])
    if _transposed(of_values) is not values or _value(product).shape != _value(forward[0].args[0]).shape:
        return None
    again = _scores(softmax.args[0])
    wide = _value(forward[0]).shape[-1] <= _value(softmax).shape[-1]
    return (softmax, forward[0], cotangent, again) if again and wide else None


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


def _rewrite(graph: Graph, backward: Node, softmax: Node, product: Node, cotangent: Node, again: list[Node]) -> None:
    x = softmax.args[0]
    with graph.inserting_before(softmax):
        make = _maker(graph, softmax)
        wide = _wide(make, x)
        high = make(aten.amax.default, wide, [-1], True)
        e = make(aten.exp.default, make(aten.sub.Tensor, wide, high))
        p = make(aten.div.Tensor, e, make(aten.sum.dim_IntList, e, [-1], True))
        narrow = p if wide is x else make(_CONVERT, p, _value(softmax).dtype)
    with graph.inserting_before(backward):
        make = _maker(graph, backward)
        g, o, t = (_wide(make, n) for n in (cotangent, product, _source(backward.args[0])))
        d = make(aten.sub.Tensor, t, make(aten.sum.dim_IntList, make(aten.mul.Tensor, g, o), [-1], True))
        for move in _moves(backward.args[0]):
            d = make(move.target, d, *move.args[1:])
        d = make(aten.mul.Tensor, p, d)
        d = d if _value(backward).dtype == _value(d).dtype else make(_CONVERT, d, _value(backward).dtype)
    for old, new in ((softmax, narrow), (backward, d)):
        old.replace_all_uses_with(new)
        graph.erase_node(old)
    moved = (n for n in _readers(p) if n.target in _MOVES | _TRANSPOSES)
    for n in (*again, *{wide, e, e.args[0], p} - {x}, *moved):
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
