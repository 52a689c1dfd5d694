"""Operators of PyTorch, of those that Weft's table has.

`decompositions` are functions on tensors, for AOTAutograd. `CALLS` are functions that fx.Lowering calls in place
of one operator that the table lacks: gradients that Weft's own transform derives from the forward operator.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from weft import _weft, norms
from weft.sizes import DTYPES, MOST, is_symbolic, size_text

aten = torch.ops.aten


# ---- decompositions ----

def _factors(A: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """LU and pivots of what PyTorch factors for a determinant: of A^T where A is row-major. Its derivatives ask for the
    same condition."""
    LU, pivots, _ = aten.linalg_lu_factor_ex(A.mT if A.is_contiguous() and not A.is_complex() else A)
    return LU, pivots


def _sign_of(pivots: torch.Tensor) -> torch.Tensor:
    """1 or -1: the determinant of the permutation."""
    place = torch.arange(1, pivots.shape[-1] + 1, dtype=pivots.dtype, device=pivots.device)
    return 1 - 2 * ((pivots != place).sum(-1) % 2)


def _linalg_det(A: torch.Tensor) -> tuple[torch.Tensor, ...]:
    LU, pivots = _factors(A)
    return LU.diagonal(0, -2, -1).prod(-1) * _sign_of(pivots), LU, pivots


def _linalg_slogdet(A: torch.Tensor) -> tuple[torch.Tensor, ...]:
    LU, pivots = _factors(A)
    diagonal = LU.diagonal(0, -2, -1)
    return diagonal.sgn().prod(-1) * _sign_of(pivots), diagonal.abs().log().sum(-1), LU, pivots


def _linalg_solve_ex(A: torch.Tensor, B: torch.Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[torch.Tensor, ...]:
    LU, pivots, info = aten.linalg_lu_factor_ex(A)
    if check_errors:
        aten._linalg_check_errors(info, "torch.linalg.solve_ex", is_matrix=A.dim() == 2)
    vector = B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])
    X = aten.linalg_lu_solve(LU, pivots, B.unsqueeze(-1) if vector else B, left=left)
    return X.squeeze(-1) if vector else X, LU, pivots, info


def _masked_scatter_backward(grad: torch.Tensor, mask: torch.Tensor, sizes: Any) -> torch.Tensor:
    """The gradients at true elements of the mask, in order, as the source's first elements."""
    n = 1
    for s in sizes:
        n *= s
    true = mask.expand(grad.shape).reshape(-1)
    place = torch.where(true, true.to(torch.int64).cumsum(0) - 1, n)
    return grad.new_zeros([n + 1]).index_add(0, place, torch.where(true, grad.reshape(-1), 0)).narrow(0, 0, n).reshape(sizes)


def _bags(indices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """The bag of each index. PyTorch's offset2bag may be empty."""
    return torch.searchsorted(offsets.to(torch.int64).contiguous(), torch.arange(indices.shape[0], device=indices.device), right=True) - 1


def _embedding_bag_backward(grad: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor, offset2bag: torch.Tensor, bag_size: torch.Tensor,
                            maximum_indices: torch.Tensor, num_weights: Any, scale_grad_by_freq: bool, mode: int, sparse: bool,
                            per_sample_weights: torch.Tensor | None, padding_idx: int = -1) -> torch.Tensor:
    """The gradient of the weights, dense."""
    if sparse:
        return NotImplemented
    zeros = grad.new_zeros([num_weights, grad.shape[1]])
    indices, bag = indices.to(torch.int64), _bags(indices, offsets)
    counted = (indices != padding_idx).to(grad.dtype)
    size = grad.new_zeros([grad.shape[0]]).index_add(0, bag, counted)
    if mode == 2:
        return zeros.scatter_add(0, maximum_indices.to(torch.int64), torch.where(size.unsqueeze(1) > 0, grad, 0))
    scale = counted if mode == 0 else counted / size.index_select(0, bag)
    if per_sample_weights is not None:
        scale = scale * per_sample_weights
    if scale_grad_by_freq:
        scale = scale / grad.new_zeros([num_weights]).index_add(0, indices, torch.ones_like(counted)).index_select(0, indices)
    scale = torch.where(counted > 0, scale, 0)
    return zeros.index_add(0, indices, grad.index_select(0, bag) * scale.unsqueeze(1))


def _embedding_bag_per_sample_weights_backward(grad: torch.Tensor, weight: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor,
                                               offset2bag: torch.Tensor, mode: int, padding_idx: int = -1) -> torch.Tensor:
    given = (grad.index_select(0, _bags(indices, offsets)) * weight.index_select(0, indices)).sum(1)
    return torch.where(indices != padding_idx, given, 0)


def _linspace(start: Any, end: Any, steps: int, *, dtype: torch.dtype | None = None, layout: Any = None, device: Any = None,
              pin_memory: bool | None = None) -> torch.Tensor:
    """Of complex bounds; each part by itself."""
    if not isinstance(start, complex) and not isinstance(end, complex):
        return NotImplemented
    dtype = dtype or torch.get_default_dtype().to_complex()
    if not dtype.is_complex:
        return NotImplemented
    start, end, real = complex(start), complex(end), dtype.to_real()
    return torch.complex(aten.linspace(start.real, end.real, steps, dtype=real, device=device),
                         aten.linspace(start.imag, end.imag, steps, dtype=real, device=device))


# Operators on lists of tensors, of which optimizers are made: each element by itself.
_EACH: dict[str, Callable[..., torch.Tensor]] = {
    "addcdiv": lambda x, a, b, value=1: aten.addcdiv(x, a, b, value=value) if not isinstance(value, torch.Tensor) else x + a / b * value,
    "addcmul": lambda x, a, b, value=1: aten.addcmul(x, a, b, value=value) if not isinstance(value, torch.Tensor) else x + a * b * value,
    "copy": lambda x, source, non_blocking=False: aten.copy(x, source),
    "maximum": lambda x, y: aten.maximum(x, y) if isinstance(y, torch.Tensor) else aten.clamp_min(x, y),
    "minimum": lambda x, y: aten.minimum(x, y) if isinstance(y, torch.Tensor) else aten.clamp_max(x, y),
    "norm": lambda x, ord=2, dtype=None: aten.linalg_vector_norm(x, ord, dtype=dtype),
    "powsum": lambda x, ord=2, dtype=None: aten.sum(aten.pow(aten.abs(x), ord), dtype=dtype),
    "zero": aten.zeros_like,
}


def _each(target: Any, one: Callable[..., torch.Tensor]) -> Callable[..., list[torch.Tensor]]:
    """A function of lists of tensors and numbers that calls `one` with their elements."""
    listed = [a.name for a in target._schema.arguments if isinstance(a.type, torch.ListType)]
    places = [a.name for a in target._schema.arguments if not a.kwarg_only]

    def call(*args: Any, **named: Any) -> list[torch.Tensor]:
        given = dict(zip(places, args)) | named
        several = {k: v.unbind() if isinstance(v, torch.Tensor) else v for k, v in given.items() if k in listed or k == "scalars"}
        count = min(map(len, several.values()))
        of = [given | {k: v[i] for k, v in several.items()} for i in range(count)]
        return [one(*(g[k] for k in places if k in g), **{k: v for k, v in g.items() if k not in places}) for g in of]
    return call


def _of_lists() -> dict[Any, Callable[..., Any]]:
    """The decompositions of all operators aten._foreach_NAME that give lists."""
    out = {}
    for full in torch._C._dispatch_get_all_op_names():
        name, _, overload = full.partition(".")
        if name.startswith("aten::_foreach_") and not name.endswith("_") and "out" not in overload.split("_"):
            name = name.removeprefix("aten::_foreach_")
            target = getattr(getattr(aten, f"_foreach_{name}"), overload or "default")
            out[target] = _each(target, _EACH.get(name) or getattr(aten, name))
    return out


# Operators that take a number, where that is another one from call to call (a learning rate), with the number behind the tensors.
# PyTorch makes such a number a tensor where it is multiplied, and a constant of the graph elsewhere: each value would be compiled.
_NUMBERED: dict[Any, Callable[..., torch.Tensor]] = {
    aten.add.Tensor: lambda x, y, a: aten.addcmul(x, y, a),
    aten.sub.Tensor: lambda x, y, a: aten.addcmul(x, y, -a),
    aten.rsub.Tensor: lambda x, y, a: aten.addcmul(y, x, -a),
    aten.rsub.Scalar: lambda x, a: a - x,
    aten.addcmul.default: lambda x, y, z, a: aten.addcmul(x, y * a, z),
    aten.addcdiv.default: lambda x, y, z, a: x + y * a / z,
    aten.lerp.Scalar: lambda x, y, a: aten.lerp(x, y, a),
    aten.pow.Scalar: lambda x, a: aten.pow(a, x),
}
# Of which eager mode rounds the number to the result's dtype.
_ROUNDED = {aten.add.Tensor, aten.sub.Tensor, aten.rsub.Tensor, aten.rsub.Scalar, aten.pow.Scalar}


def _numbered(target: Any, of: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Calls `of` with tensors as eager mode computes with them, and with the number as one; only if it changes."""
    def call(*given: Any, **named: Any) -> torch.Tensor:
        values = (*given, *named.values())
        tensors, numbers = ([v for v in values if isinstance(v, kind)] for kind in (torch.Tensor, torch.SymFloat))
        if len(numbers) != 1 or len(tensors) + 1 != len(values) or len(values) != of.__code__.co_argcount:
            return NotImplemented
        dtype = torch._prims_common.elementwise_dtypes(
            *tensors, type_promotion_kind=torch._prims_common.ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)
        factor = torch.ones((), dtype=dtype[0], device=tensors[0].device) * numbers[0]
        if target in _ROUNDED:
            factor = factor.to(dtype[1]).to(dtype[0])
        return of(*(t.to(dtype[0]) for t in tensors), factor).to(dtype[1])
    return call


def of_inductor() -> dict[Any, Callable[..., Any]]:
    """Of the operators that PyTorch registers with Inductor, which Dynamo loads where it writes addcmul_ and addcdiv_ by them."""
    fma = getattr(torch.ops.prims, "fma", None)
    return {fma.default: _numbered(fma.default, lambda x, y, a: aten.addcmul(y, x, a))} if fma else {}


decompositions: dict[Any, Callable[..., Any]] = {
    **_of_lists(),
    **{target: _numbered(target, of) for target, of in _NUMBERED.items()},
    **norms.decompositions,
    aten.linspace.default: _linspace,
    aten._linalg_det.default: _linalg_det,
    aten._linalg_slogdet.default: _linalg_slogdet,
    aten._linalg_solve_ex.default: _linalg_solve_ex,
    aten.masked_scatter_backward.default: _masked_scatter_backward,
    aten._embedding_bag_backward.default: _embedding_bag_backward,
    aten._embedding_bag_per_sample_weights_backward.default: _embedding_bag_per_sample_weights_backward,
}


# ---- calls ----
# Functions of (lowering, node, arguments by name), which give what Trace.call gives, or a list of results.

def _derived(forward: str, wrt: tuple[str, ...], tensors: tuple[str, ...], rest: tuple[str, ...], grad: str = "grad_output",
             **more: Any) -> Callable[..., Any]:
    """The gradients by the arguments wrt of a forward operator: Weft's transform of a graph of that operator alone.

    tensors, rest: names of arguments, which both operators have; more: arguments of the forward operator alone. Where
    there is an argument output_mask, the result is a list."""
    def call(lowering: Any, node: Node, given: dict[str, Any]) -> Any:
        mask = given.get("output_mask")
        asked = [w for k, w in enumerate(wrt) if mask is None or mask[k]]
        there = [n for n in tensors if given.get(n) is not None]
        trace = lowering.session.trace(forward)
        inputs, _ = _inputs_of(lowering, trace, {n: lowering.value_of(n) for n in there})
        trace.output("y", trace.call(forward, (), {**inputs, **{n: given[n] for n in rest if n in given}, **more}))
        gradient = lowering.session.vjp(trace.end(), asked)
        values = lowering.trace.graph(gradient, [*(given[n] for n in there), given[grad]], 1 + len(asked))[1:]
        return values[0] if mask is None else [values[asked.index(w)] if w in asked else None for w in wrt]
    return call


def _of_regions(forward: str, rest: tuple[str, ...], results: int = 1) -> Callable[..., Any]:
    """The gradient by the image of an operator of torchvision that pools regions. It is linear in the image, so that zeros of its
    type, which is the gradient's, stand for it. The result's gradient is an input of the operator's graph: its shape gives the bins."""
    def call(lowering: Any, node: Node, given: dict[str, Any]) -> Any:
        trace = lowering.session.trace(forward)
        values = {"input": node.meta["val"], "rois": lowering.value_of("rois"), "grad": lowering.value_of("grad")}
        inputs, extent = _inputs_of(lowering, trace, values)
        del inputs["grad"]
        sizes = {n: _weft.Size(str(extent(lowering.value_of(n)))) for n in rest if isinstance(given[n], _weft.Size)}
        y = trace.call(forward, (), {**inputs, **{n: given[n] for n in rest}, **sizes})
        trace.output("y", y if results == 1 else trace.result(y, 0))
        gradient = lowering.session.vjp(trace.end(), ["input"])
        return lowering.trace.graph(gradient, [_zeros_like_meta(lowering, node, given), given["rois"], given["grad"], given["grad"]], 2)[1]
    return call


def _inputs_of(lowering: Any, trace: Any, values: dict[str, torch.Tensor]) -> tuple[dict[str, Any], Callable[[Any], str | int]]:
    """Inputs of the types of these values, in which each extent that differs is a symbol, and what an extent is there: where the
    graph is called, it may be an expression that no shape gives back, or be equal to another one by a guard."""
    known: list[tuple[Any, str | int]] = []

    def extent(n: Any) -> str | int:
        for other, name in known:
            if statically_known_true(n == other):
                return name
        text = size_text(n, lowering.names)
        if isinstance(text, str):
            lo, hi = lowering.symbols.get(text, (0, MOST))
            trace.symbol(name := f"n{len(known)}", max(lo, 0), hi)
            text = name
        known.append((n, text))
        return text
    for n in sorted((n for v in values.values() for n in v.shape), key=is_symbolic):
        extent(n)  # constants first
    return {name: trace.input(name, f"{DTYPES[v.dtype]}[{', '.join(str(extent(d)) for d in v.shape)}]") for name, v in values.items()}, extent


_BINS = ("spatial_scale", "pooled_height", "pooled_width")
_GRID = (("input", "grid"), ("input", "grid"), ("interpolation_mode", "padding_mode", "align_corners"))


def _histogram(lowering: Any, given: dict[str, Any]) -> Any:
    return lowering.trace.call("aten.histogramdd", (), {k: v for k, v in given.items() if v is not None})


def _fma(lowering: Any, node: Node, given: dict[str, Any]) -> Any:
    """a * b + c. Dynamo writes addcmul_, addcdiv_ and add_ with a number of the optimizer so."""
    a, b, c = given["a"], given["b"], given["c"]
    if isinstance(b, (int, float)):
        return lowering.trace.call("aten.add.Tensor", (c, a), {"alpha": b})
    return lowering.trace.call("aten.addcmul", (c, a, b), {})


def _zeros_like_meta(lowering: Any, node: Node, given: dict[str, Any]) -> Any:
    """Zeros, in a layout that the node's type says: a tangent in which a part is written."""
    v = node.meta["val"]
    return lowering.trace.call("aten.full", (lowering._argument(node, list(v.shape)), 0), {"dtype": DTYPES[v.dtype]})


CALLS: dict[str, Callable[..., Any]] = {
    "prims.fma": _fma,
    "aten._new_zeros_with_same_feature_meta": _zeros_like_meta,
    "aten._cdist_backward": _derived("aten._cdist_forward", ("x1",), ("x1", "x2"), ("p",), compute_mode=None),
    "aten._pdist_backward": _derived("aten._pdist_forward", ("self",), ("self",), ("p",)),
    "aten.grid_sampler_2d_backward": _derived("aten.grid_sampler_2d", *_GRID),
    "aten.grid_sampler_3d_backward": _derived("aten.grid_sampler_3d", *_GRID),
    # not _ps_roi_pool_backward: torchvision's reads the last row and column, which its forward operator leaves out
    "torchvision._roi_align_backward": _of_regions("torchvision.roi_align", (*_BINS, "sampling_ratio", "aligned")),
    "torchvision._ps_roi_align_backward": _of_regions("torchvision.ps_roi_align", (*_BINS, "sampling_ratio"), 2),
    "aten._segment_reduce_backward": _derived("aten.segment_reduce", ("data",), ("data", "lengths", "offsets"), ("reduce", "axis", "initial"), "grad",
                                              unsafe=True),
    "aten._histogramdd_from_bin_cts": lambda lowering, node, given: lowering.trace.result(_histogram(lowering, given), 0),
    "aten._histogramdd_bin_edges": lambda lowering, node, given: [lowering.trace.result(_histogram(lowering, given), k + 1)
                                                                  for k in range(len(given["bins"]))],
}


# ---- joint graphs ----

def sums_of_segments(gm: GraphModule) -> None:
    """Of what is summed, the gradient of a sum of segments reads the shape alone: it need not be saved."""
    for node in gm.graph.find_nodes(op="call_function", target=aten._segment_reduce_backward.default):
        grad, _, data, reduce = node.args[:4]
        if reduce not in ("sum", "mean"):
            continue
        with gm.graph.inserting_before(node):
            sizes = [_extent(gm.graph, data, d, n) for d, n in enumerate(data.meta["val"].shape)]
            one = gm.graph.call_function(aten.new_zeros.default, (grad, [1] * len(sizes)))
            wide = gm.graph.call_function(aten.expand.default, (one, sizes))
        with grad.meta["val"].fake_mode:
            one.meta["val"] = grad.meta["val"].new_zeros([1] * len(sizes))
            wide.meta["val"] = one.meta["val"].expand(data.meta["val"].shape)
        node.args = (grad, grad, wide, reduce, *node.args[4:])
    gm.recompile()


def _extent(graph: torch.fx.Graph, x: torch.fx.Node, dim: int, extent: Any) -> Any:
    if isinstance(extent, int):
        return extent
    size = graph.call_function(aten.sym_size.int, (x, dim))
    size.meta["val"] = extent
    return size
