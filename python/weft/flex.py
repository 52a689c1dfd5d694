"""flex_attention (torch.nn.attention): a score function and a mask function are expanded into operators of tensors, which Weft
compiles to one kernel of attention where these are element-wise (docs/kernels.md). The block mask only says where the mask function
is true, so that the functions are enough; Weft finds the keys that a row sees by itself.

    %o = flex_attention(%q, %k, %v, %score, (..., %mask), scale, options, (%buffer,), ())
"""
from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

from weft import regions

_FLEX = getattr(torch.ops.higher_order, "flex_attention", None)


def expand(gm: GraphModule, decompositions: Callable[[], dict[Any, Callable[..., Any]]]) -> None:
    """Replaces calls of flex_attention by operators. decompositions: called if there is one."""
    if _FLEX is None:
        return
    for node in gm.graph.find_nodes(op="call_function", target=_FLEX):
        query, key, value, score, blocks, scale, options, *others = node.args
        buffers = [tuple(o) for o in (others + [(), ()])[:2]]
        operands = (query, key, value, *buffers[0], *buffers[1])
        if not all(isinstance(n, Node) and isinstance(n.meta.get("val"), torch.Tensor) for n in operands):
            continue  # a size among the buffers
        run = _formula(_called(gm, score), _called(gm, blocks[-1]), scale, options, len(buffers[0]))
        values = [n.meta["val"] for n in operands]
        mode = torch._guards.detect_fake_mode(values)
        with mode:
            body = make_fx(run, decomposition_table=decompositions(), tracing_mode="real", _allow_non_fake_inputs=True)(*values)
        regions.replace(gm, node, body, operands)


def _called(gm: GraphModule, node: Node) -> GraphModule:
    return getattr(gm, node.target)


def _formula(score: GraphModule, mask: GraphModule, scale: float, options: dict[str, Any], nscore: int) -> Callable[..., Any]:
    """PyTorch's definition of the operator, of queries, keys, values and buffers of both functions."""
    module = importlib.import_module("torch._higher_order_ops.flex_attention")

    def run(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *buffers: torch.Tensor) -> Any:
        return module.math_attention(query, key, value, score, (mask,), scale, options, buffers[:nscore], buffers[nscore:])
    return run
