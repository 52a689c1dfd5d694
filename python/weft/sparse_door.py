"""Sparse tensors of PyTorch at the doors of Weft: taken apart before a module is exported, and for each call of the model."""
from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree

from weft.model import Model
from weft.sparse import _COMPRESSED, _NAMES, LAYOUTS, Kind, Matrix


# ---- one tensor ----

def matrix(tensor: Any, open_: tuple[bool, ...] = (False, False)) -> Matrix:
    """The parts of a sparse tensor, which share its memory. Of a tensor that requires gradients the values are a copy, through which
    they flow. open_: which extents are sizes that a call may change."""
    if isinstance(tensor, Matrix):
        return tensor
    if not isinstance(tensor, torch.Tensor) or tensor.layout not in LAYOUTS:
        raise TypeError(f"weft.sparse.matrix: expected a sparse tensor, got {type(tensor).__name__}"
                        + (f" of the layout {tensor.layout}" if isinstance(tensor, torch.Tensor) else ""))
    if tensor.ndim != 2 or tensor.dense_dim():
        raise TypeError(f"weft.sparse.matrix: a {_NAMES[tensor.layout]} tensor of {tensor.ndim} dimensions, {tensor.dense_dim()} of them dense: "
                        "expected a matrix without batch or dense dimensions")
    if tensor.layout is torch.sparse_bsc:
        raise TypeError("weft.sparse.matrix: a BSC tensor, expected COO, CSR, CSC or BSR: call to_sparse_bsr() before")
    if tensor.device.type != "cpu":
        raise TypeError(f"weft.sparse.matrix: a tensor on {tensor.device}, expected cpu")
    extents = tuple(torch.empty(n, 0) for n, o in zip(tensor.shape, open_) if o)
    shape = tuple(None if o else int(n) for n, o in zip(tensor.shape, open_))
    kind = Kind(tensor.layout, shape, tensor.layout is not torch.sparse_coo or tensor.is_coalesced())
    if tensor.layout is torch.sparse_coo:
        parts = (tensor._indices(),)
    elif tensor.layout is torch.sparse_csc:
        parts = (tensor.ccol_indices(), tensor.row_indices())
    else:
        parts = (tensor.crow_indices(), tensor.col_indices())
    # .data: what is traced may not be a view of a sparse tensor
    return Matrix(kind, tuple(p.data for p in parts), _values(tensor), extents)


def _values(tensor: torch.Tensor) -> torch.Tensor:
    if not (tensor.requires_grad and torch.is_grad_enabled()):
        return tensor._values().data if tensor.layout is torch.sparse_coo else tensor.values().data
    if tensor.layout is torch.sparse_coo and not tensor.is_coalesced():
        raise TypeError("weft.sparse.matrix: a COO tensor with requires_grad whose entries may be repeated: call coalesce() before")
    return tensor.values().clone()


def tensor(a: Any) -> torch.Tensor:
    """The sparse tensor of PyTorch that a matrix is."""
    kind, shape = a.kind, tuple(int(n) for n in a.shape)
    if kind.layout is torch.sparse_coo:
        made = torch.sparse_coo_tensor(a.parts[0], a._values, shape, is_coalesced=True if kind.coalesced else None, check_invariants=False)
    else:
        made = torch.sparse_compressed_tensor(*a.parts, a._values, shape, layout=kind.layout, check_invariants=False)
    if kind.given in (None, kind.layout):
        return made
    made = made.coalesce()
    return made.to_sparse_csr() if kind.given is torch.sparse_csr else made.to_sparse_csc()


def is_sparse(value: Any) -> bool:
    return isinstance(value, Matrix) or isinstance(value, torch.Tensor) and value.layout in LAYOUTS


# ---- trees ----

def _flatten(a: Matrix) -> tuple[list[torch.Tensor], Kind]:
    return [*a.parts, a._values, *a.extents], a.kind


def _unflatten(leaves: Any, kind: Kind) -> Matrix:
    leaves = list(leaves)
    n = _nparts(kind)
    return Matrix(kind, tuple(leaves[:n]), leaves[n], tuple(leaves[n + 1:]))


def _names(layout: torch.layout) -> tuple[str, ...]:
    return _COMPRESSED.get(layout, ("indices",))


def _nparts(kind: Kind) -> int:
    return 1 if kind.layout is torch.sparse_coo else 2


def _keys(kind: Kind) -> list[str]:
    return [*_names(kind.layout), "values", *("rows" if k == 0 else "columns" for k, n in enumerate(kind.shape) if n is None)]


def _with_keys(a: Matrix) -> tuple[list[tuple[Any, torch.Tensor]], Kind]:
    leaves, kind = _flatten(a)
    return [(_pytree.MappingKey(n), leaf) for n, leaf in zip(_keys(kind), leaves)], kind


def _dumped(kind: Kind) -> str:
    """The names of the parts, which readers of files look for, and all else."""
    return json.dumps({"keys": _keys(kind), "kind": json.dumps([str(kind.layout), kind.shape, kind.coalesced, str(kind.given)])})


def _read(dumped: str) -> Kind:
    layouts = {str(layout): layout for layout in LAYOUTS}
    layout, shape, coalesced, given = json.loads(json.loads(dumped)["kind"])
    return Kind(layouts[layout], tuple(shape), coalesced, layouts.get(given))


_pytree.register_pytree_node(Matrix, _flatten, _unflatten, serialized_type_name="weft.sparse.Matrix", flatten_with_keys_fn=_with_keys,
                             to_dumpable_context=_dumped, from_dumpable_context=_read)


# ---- modules ----

def _take_apart(module: torch.nn.Module, name: str) -> property:
    """Makes a parameter, the values, and buffers, the indices, of a sparse parameter or buffer. Returns what reads them as a
    matrix."""
    buffer = name in module._buffers
    weight = module._buffers.pop(name) if buffer else module._parameters.pop(name)
    a = matrix(weight.detach())
    if buffer:
        module.register_buffer(f"{name}_values", a._values)
    else:
        module.register_parameter(f"{name}_values", torch.nn.Parameter(a._values, weight.requires_grad))
    parts = [f"{name}_{part}" for part in _names(a.layout)]
    for key, part in zip(parts, a.parts):
        module.register_buffer(key, part)
    return property(lambda self: Matrix(a.kind, tuple(getattr(self, key) for key in parts), getattr(self, f"{name}_values")))


def _has_sparse(module: torch.nn.Module) -> bool:
    return any(is_sparse(t) for m in module.modules() for t in [*m._parameters.values(), *m._buffers.values()] if t is not None)


def replace(module: torch.nn.Module) -> torch.nn.Module:
    """The module with its sparse weights taken apart: `weight` becomes the parameter weight_values and buffers (weight_crow,
    weight_col), and reading it gives a Matrix. Other weights are the module's own."""
    return _replaced(module, {})


def _replaced(module: torch.nn.Module, made: dict[int, torch.nn.Module]) -> torch.nn.Module:
    if id(module) in made or not _has_sparse(module):
        return made.get(id(module), module)
    other = made[id(module)] = copy.copy(module)
    for name in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
        other.__dict__[name] = copy.copy(module.__dict__[name])
    for name, child in module._modules.items():
        other._modules[name] = _replaced(child, made)
    sparse = [n for d in (module._parameters, module._buffers) for n, t in d.items() if is_sparse(t)]
    read = {name: _take_apart(other, name) for name in sparse}
    if read:
        other.__class__ = type(type(module).__name__, (type(module),), {**read, "__module__": type(module).__module__})
    return other


# ---- weft.compile ----

class Opened:
    """What weft.compile exports in place of a module with sparse arguments, weights or results."""

    def __init__(self, module: torch.nn.Module, args: Any, kwargs: Any, dynamic_shapes: Any):
        self.module, self.kwargs = replace(module), kwargs
        self.specs: list[Any] = []
        self.results: list[Any] = []
        self.used = self.module is not module or any(map(is_sparse, _pytree.tree_leaves((args, kwargs), is_leaf=is_sparse)))
        if self.used:
            self.args, self.dynamic_shapes = self._open(module.forward, args or (), kwargs or {}, dynamic_shapes)

    def _open(self, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any) -> tuple[Any, Any]:
        if any(is_sparse(v) for v in _pytree.tree_leaves(kwargs)):
            raise TypeError("weft.compile: a sparse tensor in kwargs, expected in args")
        bound, mine = inspect.signature(forward).bind_partial(*args), {}
        for k, (name, value) in enumerate(bound.arguments.items()):  # of *args as one tuple, as in dynamic_shapes
            given = shapes.get(name) if isinstance(shapes, dict) else shapes[k] if shapes and k < len(shapes) else None
            bound.arguments[name], mine[name] = self._one(value, given)
        self.specs += [None] * len(_pytree.tree_leaves(kwargs))
        if shapes is None:
            return bound.args, None
        return bound.args, {**shapes, **mine} if isinstance(shapes, dict) else tuple(mine.values())

    def _one(self, value: Any, shape: Any) -> tuple[Any, Any]:
        """An argument, and its dynamic_shapes, with sparse tensors taken apart."""
        if is_sparse(value):
            value, shape = _with_sizes(value, shape)
            self.specs.append(value.kind)
            return value, shape
        if isinstance(value, (tuple, list)) and any(is_sparse(v) for v in _pytree.tree_leaves(value)):
            pairs = [self._one(v, shape[k] if shape else None) for k, v in enumerate(value)]
            return type(value)(v for v, _ in pairs), type(value)(s for _, s in pairs) if shape else None
        if any(is_sparse(v) for v in _pytree.tree_leaves(value)):
            raise TypeError(f"weft.compile: a sparse tensor in a {type(value).__name__}, expected an argument, or in a tuple or a list")
        self.specs += [None] * len(_pytree.tree_leaves(value))
        return value, shape

    def __enter__(self) -> Opened:
        def seen(module: Any, args: Any, kwargs: Any, out: Any) -> None:
            self.results[:] = [_pytree.tree_structure(out, is_leaf=lambda v: isinstance(v, Matrix)),
                               [v.kind if isinstance(v, Matrix) else None for v in _pytree.tree_leaves(out, is_leaf=lambda v: isinstance(v, Matrix))]]
        self.hook = self.module.register_forward_hook(seen, with_kwargs=True)
        return self

    def __exit__(self, *args: Any) -> None:
        self.hook.remove()

    def model(self, made: Model) -> Model:
        """The model, which takes sparse tensors and gives them."""
        spec, kinds = self.results or (None, [])
        given = spec if any(kinds) else None
        return SparseModel.of(made, self.specs, given, kinds) if given is not None or any(self.specs) else made


def _with_sizes(value: Any, shape: Any) -> tuple[Matrix, Any]:
    """A matrix whose extents are sizes, where `shape` ({0: Dim, 1: Dim, "nnz": Dim}) says so, and the dynamic_shapes of its
    parts."""
    shape = dict(shape if isinstance(shape, dict) else enumerate(shape or ()))
    if unknown := shape.keys() - {0, 1, "nnz"}:
        raise ValueError(f"weft.compile: dynamic_shapes of a sparse matrix has {', '.join(map(repr, unknown))}, expected 0, 1 and \"nnz\"")
    dims = [d if isinstance(d := shape.get(k), torch.export.Dim) or hasattr(d, "__name__") else None for k in (0, 1)]
    entries = shape.get("nnz")
    if isinstance(value, Matrix):
        value = tensor(value)
    a = matrix(value, (dims[0] is not None, dims[1] is not None))
    if a.layout is torch.sparse_bsr and any(dims):
        raise TypeError("weft.compile: dynamic_shapes of a BSR matrix has 0 or 1, expected \"nnz\" alone")
    along = dims[1 if a.layout is torch.sparse_csc else 0]
    parts = [{1: entries}] if a.layout is torch.sparse_coo else [{0: along + 1} if along is not None else None, {0: entries}]
    return a, [*parts, {0: entries}, *({0: d} for d in dims if d is not None)]


class SparseModel(Model):
    """A model that takes matrices apart, and puts results together."""

    @classmethod
    def of(cls, made: Model, specs: list[Any], results: Any, kinds: list[Any]) -> SparseModel:
        model = cls(made.program, made.instance, made._entry, made.path)
        model.weights_path, model.by_value = made.weights_path, made.by_value
        model.specs, model.results, model.kinds = specs, results, kinds
        return model

    def _beside(self, instance: Any, entry: int) -> Model:
        other = super()._beside(instance, entry)
        if other.entry not in ("run", "forward_saving"):
            return other
        made = SparseModel.of(other, self.specs, self.results if other.entry == "run" else None, self.kinds)
        made.threads, made.timeout, made.memory_limit, made.comm = other.threads, other.timeout, other.memory_limit, other.comm
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves = _pytree.tree_leaves(args, is_leaf=is_sparse)
        if len(leaves) == len(self.specs):
            leaves = [part for k, (v, kind) in enumerate(zip(leaves, self.specs)) for part in ([v] if kind is None else _parts_of(v, kind, k))]
        out = super().__call__(*leaves, **kwargs)
        if self.results is None:
            return out
        values, made = iter(out if isinstance(out, tuple) else (out,)), []
        for kind in self.kinds:
            if kind is None:
                made.append(next(values))
                continue
            n = _nparts(kind) + 1 + sum(e is None for e in kind.shape)
            made.append(tensor(_unflatten([next(values) for _ in range(n)], kind)))
        return _pytree.tree_unflatten(made, self.results)


def _parts_of(value: Any, kind: Kind, k: int) -> list[torch.Tensor]:
    if isinstance(value, Matrix):
        value = tensor(value)
    if not is_sparse(value) or value.layout is not kind.layout:
        got = _NAMES.get(value.layout, "dense") if isinstance(value, torch.Tensor) else type(value).__name__
        raise TypeError(f"weft: argument {k} is {got}, expected a {_NAMES[kind.layout]} matrix, as the model was compiled with")
    if kind.coalesced and kind.layout is torch.sparse_coo and not value.is_coalesced():
        value = value.coalesce()
    for d, (n, m) in enumerate(zip(value.shape, kind.shape)):
        if m is not None and n != m:
            raise ValueError(f"weft: argument {k} has the shape {list(value.shape)}, expected {m} in dimension {d}")
    a = matrix(value.detach(), tuple(n is None for n in kind.shape))
    return _flatten(a)[0]
