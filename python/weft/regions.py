"""Regions: graphs that a graph calls by invoke_subgraph (torch.compiler.nested_compile_region) become parts of it.

    %r = invoke_subgraph(%repeated, "name", %x)    ->    the nodes of repeated, of %x
    %y = getitem(%r, 0)
"""
from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import GraphModule, Node

_INVOKE = torch.ops.higher_order.invoke_subgraph


def inline(gm: GraphModule) -> None:
    """Replaces calls of regions by their nodes, as far as that can be done: not where a region was traced with other sizes than
    those of the call."""
    for node in gm.graph.find_nodes(op="call_function", target=_INVOKE):
        body = getattr(gm, node.args[0].target, None)
        if isinstance(body, GraphModule) and _same_types(body, node.args[2:]):
            inline(body)
            replace(gm, node, body, node.args[2:])


def why_not(node: Node) -> str | None:
    """Why a call of a region remained."""
    return "the region was traced with other sizes" if node.target is _INVOKE else None


def _same_types(body: GraphModule, operands: tuple[Any, ...]) -> bool:
    """Whether the region's inputs have the types of the operands, whose symbols its nodes mention."""
    values = [n.meta.get("val") for n in body.graph.find_nodes(op="placeholder")]
    given = [v.meta.get("val") if isinstance(v, Node) else v for v in operands]
    return len(values) == len(given) and all(map(_same, values, given))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype == b.dtype and a.dim() == b.dim() and all(map(_same, (*a.shape, *a.stride()), (*b.shape, *b.stride())))
    if isinstance(a, torch.SymInt) or isinstance(b, torch.SymInt):
        return str(a) == str(b)
    return type(a) is type(b) and (a == b or not isinstance(a, (int, float)))


def replace(gm: GraphModule, node: Node, body: GraphModule, operands: tuple[Any, ...]) -> None:
    """Puts the nodes of a graph, of these operands, in the place of a node, whose users take its results."""
    placeholders = body.graph.find_nodes(op="placeholder")
    made: dict[Node, Any] = dict(zip(placeholders, operands))
    with gm.graph.inserting_before(node):
        for n in body.graph.nodes:
            if n.op == "output":
                results = torch.fx.map_arg(n.args[0], lambda m: made[m])
            elif n.op != "placeholder":
                made[n] = copy = gm.graph.node_copy(n, lambda m: made[m])
                if n.op == "get_attr":
                    copy.target = _adopted(gm, n.target, operator.attrgetter(n.target)(body))
    results = results if isinstance(results, (tuple, list)) else (results,)
    for user in list(node.users):
        result = results[user.args[1]]
        if isinstance(result, Node):
            user.replace_all_uses_with(result)
        else:
            _put(user, result)
        gm.graph.erase_node(user)
    gm.graph.erase_node(node)


def _put(node: Node, value: Any) -> None:
    """Puts what is no node in the place of a node."""
    for user in list(node.users):
        change = lambda n: value if n is node else n
        user.args, user.kwargs = torch.fx.map_arg(user.args, change), torch.fx.map_arg(user.kwargs, change)


def _adopted(gm: GraphModule, name: str, value: Any) -> str:
    """The name in gm of an attribute of a region."""
    name, k = name.replace(".", "_"), 0
    while hasattr(gm, unique := f"{name}_{k}") and getattr(gm, unique) is not value:
        k += 1
    setattr(gm, unique, value)
    return unique
