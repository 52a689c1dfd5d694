"""Sparse matrices as tensors of their parts: indices, where rows begin, values.

    a = weft.sparse.matrix(torch_csr)             # of any layout of torch.sparse: COO, CSR, CSC, BSR
    fast = torch.compile(lambda a, x: torch.mm(a, x), backend="weft")  # Dynamo exchanges the operands of a @ x
    y = fast(a, x)

    model = weft.compile(module, (torch_csr, x))  # does so by itself, for arguments and weights
    y = model(torch_csr, x)

A Matrix is no tensor: functions of PyTorch that get one come here (__torch_function__), and become gathers, sums of segments
(torch.segment_reduce) and additions by index on its parts, which torch.export, Dynamo and autograd know. Gradients are those of the
values. No function makes a dense matrix of a sparse one unless it is called to_dense.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

_COMPRESSED = {torch.sparse_csr: ("crow", "col"), torch.sparse_csc: ("ccol", "row"), torch.sparse_bsr: ("crow", "col")}
_NAMES = {torch.sparse_coo: "COO", torch.sparse_csr: "CSR", torch.sparse_csc: "CSC", torch.sparse_bsr: "BSR", torch.sparse_bsc: "BSC"}
LAYOUTS = frozenset(_NAMES)


class Kind(NamedTuple):
    """What is known of a matrix while it is traced. coalesced: of a COO matrix, whether entries are sorted and none repeated.
    given: the layout that a result has for the caller; shape: extents, None for those that `extents` have."""
    layout: torch.layout
    shape: tuple[int | None, ...]
    coalesced: bool = True
    given: torch.layout | None = None


class Matrix:
    """A sparse matrix of two dimensions; what sums of COO matrices give has one."""

    def __init__(self, kind: Kind, parts: tuple[torch.Tensor, ...], values: torch.Tensor, extents: tuple[torch.Tensor, ...] = ()):
        """parts: of COO the indices [2, E]; else where rows (columns) begin, and columns (rows). extents: a tensor [n, 0] for each
        extent that kind.shape leaves open."""
        self.kind, self.parts, self._values, self.extents = kind, parts, values, extents

    # ---- what it is ----

    @property
    def layout(self) -> torch.layout:
        return self.kind.layout

    @property
    def shape(self) -> tuple[Any, ...]:
        open_, shape = 0, []
        for n in self.kind.shape:
            shape.append(self.extents[open_].shape[0] if n is None else n)
            open_ += n is None
        return tuple(shape)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    @property
    def ndim(self) -> int:
        return len(self.kind.shape)

    def dim(self) -> int:
        return self.ndim

    @property
    def dtype(self) -> torch.dtype:
        return self._values.dtype

    @property
    def device(self) -> torch.device:
        return self._values.device

    @property
    def requires_grad(self) -> bool:
        return self._values.requires_grad

    def values(self) -> torch.Tensor:
        return self._values

    def indices(self) -> torch.Tensor:
        return self._part(0, "indices", torch.sparse_coo)

    def crow_indices(self) -> torch.Tensor:
        return self._part(0, "crow_indices", torch.sparse_csr, torch.sparse_bsr)

    def col_indices(self) -> torch.Tensor:
        return self._part(1, "col_indices", torch.sparse_csr, torch.sparse_bsr)

    def ccol_indices(self) -> torch.Tensor:
        return self._part(0, "ccol_indices", torch.sparse_csc)

    def row_indices(self) -> torch.Tensor:
        return self._part(1, "row_indices", torch.sparse_csc)

    def _part(self, k: int, what: str, *layouts: torch.layout) -> torch.Tensor:
        if self.layout not in layouts:
            raise _refused(what, self)
        return self.parts[k]

    def is_coalesced(self) -> bool:
        return self.kind.coalesced

    def __repr__(self) -> str:
        return f"weft.sparse.Matrix({_NAMES[self.layout]}, {list(self.shape)}, {self._values.shape[0]} entries, {self.dtype})"

    # ---- functions of PyTorch ----

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        of = _FUNCTIONS.get(func)
        if of is None:
            raise _refused(getattr(func, "__name__", str(func)), *args)
        return of(*args, **(kwargs or {}))

    def __matmul__(self, other: Any) -> Any:
        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(other, self)

    def matmul(self, other: Any) -> Any:
        return matmul(self, other)

    def mm(self, other: Any) -> Any:
        return matmul(self, other)

    def mv(self, other: Any) -> Any:
        return matmul(self, other)

    def __add__(self, other: Any) -> Any:
        return add(self, other)

    def __radd__(self, other: Any) -> Any:
        return add(other, self)

    def __sub__(self, other: Any) -> Any:
        return add(self, other, alpha=-1)

    def __rsub__(self, other: Any) -> Any:
        return add(other, self, alpha=-1)

    def __mul__(self, other: Any) -> Any:
        return mul(self, other)

    def __rmul__(self, other: Any) -> Any:
        return mul(self, other)

    def __truediv__(self, other: Any) -> Any:
        return div(self, other)

    def __neg__(self) -> Any:
        return _with_values(self, -self._values)

    def t(self) -> Matrix:
        return transpose(self)

    @property
    def T(self) -> Matrix:
        return transpose(self)

    @property
    def mT(self) -> Matrix:
        return transpose(self)

    def transpose(self, dim0: int, dim1: int) -> Matrix:
        return transpose(self, dim0, dim1)

    def sum(self, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        return sum(self, dim, keepdim, dtype=dtype)

    def to_dense(self, dtype: Any = None, *, masked_grad: Any = None) -> torch.Tensor:
        return to_dense(self if dtype is None else self.to(dtype))

    def to_sparse_coo(self) -> Matrix:
        return to_coo(self)

    def to_sparse_csr(self, dense_dim: Any = None) -> Matrix:
        return to_csr(self)

    def to_sparse_csc(self, dense_dim: Any = None) -> Matrix:
        return transpose(to_csr(transpose(self)))

    def to_sparse(self, sparse_dim: Any = None, *, layout: Any = None) -> Matrix:
        made = {None: to_coo, torch.sparse_coo: to_coo, torch.sparse_csr: to_csr, torch.sparse_csc: Matrix.to_sparse_csc}
        if layout not in made:
            raise _refused(f"to_sparse(layout={layout})", self)
        return made[layout](self)

    def coalesce(self) -> Matrix:
        return coalesce(self)

    def to(self, dtype: torch.dtype) -> Matrix:
        return _with_values(self, self._values.to(dtype))

    def detach(self) -> Matrix:
        return _with_values(self, self._values.detach())


def _refused(what: str, *args: Any) -> TypeError:
    operands = " and ".join(f"a {_NAMES[a.layout]} matrix" if isinstance(a, Matrix) else "a dense tensor" if isinstance(a, torch.Tensor) else repr(a)
                         for a in args)
    return TypeError(f"weft.sparse has no {what} of {operands}: docs/python.md, \"Sparse matrices\", lists what there is")


def _with_values(a: Matrix, values: torch.Tensor) -> Matrix:
    return Matrix(a.kind, a.parts, values, a.extents)


# ---- segments ----

def _segments(x: torch.Tensor, offsets: torch.Tensor, reduce: str = "sum") -> torch.Tensor:
    return torch.segment_reduce(x, reduce, offsets=offsets, unsafe=True, initial=0 if reduce == "sum" else None)


def _ids(offsets: torch.Tensor, count: Any) -> torch.Tensor:
    """The row of each entry, of where rows begin."""
    ones = torch.ones_like(offsets)
    begun = torch.zeros(count + 1, dtype=offsets.dtype, device=offsets.device).index_add(0, offsets, ones)
    return begun.cumsum(0)[:count] - 1


def _offsets(ids: torch.Tensor, rows: Any) -> torch.Tensor:
    """Where rows begin, of the row of each entry, in order: how many entries each row has, added up."""
    counts = torch.zeros(rows + 1, dtype=ids.dtype, device=ids.device).index_add(0, ids + 1, torch.ones_like(ids))
    return counts.cumsum(0)


def _rows_of(a: Matrix) -> tuple[torch.Tensor, torch.Tensor]:
    """The row and the column of each entry (of BSR: of each block)."""
    if a.layout is torch.sparse_coo:
        return a.parts[0][0], a.parts[0][1]
    offsets, others = a.parts
    ids = _ids(offsets, others.shape[0])
    return (others, ids) if a.layout is torch.sparse_csc else (ids, others)


def _row_offsets(a: Matrix) -> torch.Tensor | None:
    """Where rows begin; None if entries are in no order of rows."""
    if a.layout in (torch.sparse_csr, torch.sparse_bsr):
        return a.parts[0]
    if a.layout is torch.sparse_coo and a.kind.coalesced:
        return _offsets(a.parts[0][0], a.shape[0])
    return None


# ---- products ----

def _spmm(a: Matrix, x: torch.Tensor) -> torch.Tensor:
    """a [n, m] times x [m, k]."""
    if a.dtype != x.dtype:
        raise TypeError(f"weft.sparse: a product of {a.dtype} and {x.dtype}, expected one dtype")
    if x.shape[0] != a.shape[1]:
        raise ValueError(f"weft.sparse: a product of {list(a.shape)} and {list(x.shape)}")
    if a.layout is torch.sparse_bsr:
        height, width = a._values.shape[1:]
        blocks = x.reshape(x.shape[0] // width, width, x.shape[1]).index_select(0, a.parts[1])
        return _segments(torch.bmm(a._values, blocks), a.parts[0]).reshape(a.shape[0], x.shape[1])
    offsets = _row_offsets(a)
    if offsets is not None:
        columns = a.parts[0][1] if a.layout is torch.sparse_coo else a.parts[1]
        return _segments(a._values.unsqueeze(1) * x.index_select(0, columns), offsets)
    rows, columns = _rows_of(a)
    terms = a._values.unsqueeze(1) * x.index_select(0, columns)
    return torch.zeros(a.shape[0], x.shape[1], dtype=x.dtype, device=x.device).index_add(0, rows, terms)


def matmul(a: Any, b: Any, reduce: str | None = None) -> Any:
    """Products of a sparse matrix with a dense one, from either side, or with a vector."""
    if isinstance(a, Matrix) and isinstance(b, Matrix) or reduce not in (None, "sum"):
        raise _refused("product" if reduce in (None, "sum") else f"product with reduce={reduce!r}", a, b)
    if isinstance(b, Matrix):
        return matmul(transpose(b), a) if a.ndim == 1 else matmul(transpose(b), a.transpose(0, 1)).transpose(0, 1)
    if a.ndim != 2 or b.ndim not in (1, 2):
        raise _refused(f"product with a tensor of {b.ndim} dimensions", a, b)
    return _spmm(a, b.unsqueeze(1)).squeeze(1) if b.ndim == 1 else _spmm(a, b)


def addmm(c: torch.Tensor, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    if isinstance(c, Matrix):
        raise _refused("addmm", c, a, b)
    y = matmul(a, b)
    y = y if alpha == 1 else y * alpha
    return y if beta == 0 else y + (c if beta == 1 else c * beta)


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """F.linear: weight times x transposed, so that sums are those of the weight's rows."""
    if not isinstance(weight, Matrix) or isinstance(x, Matrix):
        y = matmul(x, weight.t())
    else:
        y = _spmm(weight, x.reshape(-1, x.shape[-1]).transpose(0, 1)).transpose(0, 1).reshape(*x.shape[:-1], weight.shape[0])
    return y if bias is None else y + bias


def sampled_addmm(a: Any, x: torch.Tensor, y: torch.Tensor, *, beta: Any = 1, alpha: Any = 1) -> Matrix:
    """beta * a + alpha * (x @ y), where a has entries."""
    if not isinstance(a, Matrix) or a.layout not in (torch.sparse_csr, torch.sparse_coo, torch.sparse_csc) or x.ndim != 2:
        raise _refused("sampled_addmm", a, x, y)
    rows, columns = _rows_of(a)
    dots = (x.index_select(0, rows) * y.transpose(0, 1).index_select(0, columns)).sum(-1)
    dots = dots if alpha == 1 else dots * alpha
    return _with_values(a, dots if beta == 0 else dots + (a._values if beta == 1 else a._values * beta))


# ---- arithmetic ----

def add(a: Any, b: Any, *, alpha: Any = 1) -> Any:
    """Sums of sparse matrices, and of a sparse and a dense one, which is dense. Of matrices with other entries it has the entries
    of both, one behind the other, where the caller sees a matrix of the first one's layout."""
    if not isinstance(a, Matrix):
        if not isinstance(a, torch.Tensor):
            raise _refused("sum", a, b)
        return _plus(a, b if alpha == 1 else mul(b, alpha))
    if isinstance(b, torch.Tensor) and b.ndim == a.ndim:
        return _plus(b if alpha == 1 else b * alpha, a)
    if not isinstance(b, Matrix) or torch.sparse_bsr in (a.layout, b.layout) and not _same_entries(a, b):
        raise _refused("sum", a, b)
    if a.shape != b.shape:
        raise ValueError(f"weft.sparse: a sum of {list(a.shape)} and {list(b.shape)}")
    more = b._values if alpha == 1 else b._values * alpha
    if _same_entries(a, b):
        return _with_values(a, a._values + more)
    x, y = to_coo(a), to_coo(b)
    kind = x.kind._replace(coalesced=False, given=a.kind.given or a.layout)
    return Matrix(kind, (torch.cat([x.parts[0], y.parts[0]], 1),), torch.cat([x._values, more]), x.extents)


def _same_entries(a: Matrix, b: Matrix) -> bool:
    """Whether both have the very same tensors as indices."""
    return a.kind == b.kind and all(p is q for p, q in zip(a.parts, b.parts))


def _plus(x: torch.Tensor, a: Matrix) -> torch.Tensor:
    if tuple(x.shape) != tuple(a.shape):
        raise ValueError(f"weft.sparse: a sum of {list(x.shape)} and {list(a.shape)}")
    if a.layout is torch.sparse_bsr:
        return x + to_dense(a)
    return x.index_put(_places(a), a._values, accumulate=True)


def _places(a: Matrix) -> tuple[torch.Tensor, ...]:
    return tuple(a.parts[0].unbind(0)) if a.layout is torch.sparse_coo else _rows_of(a)


def mul(a: Any, b: Any) -> Any:
    """Element by element: with a number, with a dense matrix, with a matrix of the same entries."""
    if not isinstance(a, Matrix):
        a, b = b, a
    if isinstance(b, Matrix):
        if not _same_entries(a, b) or not a.kind.coalesced:
            raise _refused("product element by element", a, b)
        return _with_values(a, a._values * b._values)
    if isinstance(b, torch.Tensor) and b.ndim:
        if b.ndim != a.ndim or a.layout is torch.sparse_bsr:
            raise _refused("product element by element", a, b)
        wide = b.expand(a.shape)
        return _with_values(a, a._values * wide[_places(a)])
    return _with_values(a, a._values * b)


def div(a: Any, b: Any) -> Any:
    if isinstance(b, Matrix) or isinstance(b, torch.Tensor) and b.ndim:
        raise _refused("quotient", a, b)
    return _with_values(a, a._values / b)


def _element_wise(name: str) -> Callable[[Matrix], Matrix]:
    """A function that is 0 at 0."""
    f = getattr(torch, name)

    def of(a: Matrix, **options: Any) -> Matrix:
        if not a.kind.coalesced and name != "neg":
            raise TypeError(f"weft.sparse: {name} of a COO matrix whose entries may be repeated: call coalesce() before")
        return _with_values(a, f(a._values, **options))
    return of


# ---- reductions ----

def sum(a: Matrix, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """All entries as one number; of a dimension a sparse result, whose entries are those of `a`, repeated."""
    a = a if dtype is None else a.to(dtype)
    dims = [dim] if isinstance(dim, int) else list(dim or ())
    if not dims or len({d % a.ndim for d in dims}) == a.ndim:
        return a._values.sum() if not keepdim else a._values.sum().reshape([1] * a.ndim)
    if a.layout is torch.sparse_bsr or a.ndim != 2:
        raise _refused(f"sum over dimension {dims[0]}", a)
    along, places = dims[0] % 2, _places(a)
    kept = places[1 - along]
    kind = Kind(torch.sparse_coo, (a.kind.shape[1 - along],), False)
    extents = _extents_of(a, 1 - along)
    if keepdim:
        shape = [a.kind.shape[1 - along]] * 2
        shape[along] = 1
        places = (kept, torch.zeros_like(kept)) if along else (torch.zeros_like(kept), kept)
        return Matrix(Kind(torch.sparse_coo, tuple(shape), False, a.layout), (torch.stack(places),), a._values, extents)
    return Matrix(kind, (kept.unsqueeze(0),), a._values, extents)


def _extents_of(a: Matrix, dim: int) -> tuple[torch.Tensor, ...]:
    """The tensor for an extent of `a`, if its kind leaves that open."""
    before = [n for n in a.kind.shape[:dim] if n is None]
    return a.extents[len(before):len(before) + (a.kind.shape[dim] is None)]


def softmax(a: Matrix, dim: int, *, dtype: Any = None) -> Matrix:
    """Of the entries of each row (column): what is no entry counts as -inf."""
    return _softmax(a, dim, dtype, lambda x, sums, at: x.exp() / sums.index_select(0, at))


def log_softmax(a: Matrix, dim: int, *, dtype: Any = None) -> Matrix:
    return _softmax(a, dim, dtype, lambda x, sums, at: x - sums.log().index_select(0, at))


def _softmax(a: Matrix, dim: int, dtype: Any, of: Callable[..., torch.Tensor]) -> Matrix:
    a = a if dtype is None else a.to(dtype)
    if a.layout is torch.sparse_bsr or a.ndim != 2:
        raise _refused("softmax", a)
    if not a.kind.coalesced:
        raise TypeError("weft.sparse: softmax of a COO matrix whose entries may be repeated: call coalesce() before")
    rows, columns = _rows_of(a)
    turned = transpose(a) if dim % 2 == 0 else a
    at, offsets, n = rows if dim % 2 else columns, _row_offsets(turned), turned.shape[0]
    v = a._values
    if offsets is not None:
        most = _segments(v.detach(), offsets, "max")
        x = v - most.index_select(0, at)
        sums = _segments(x.exp(), offsets)
    else:
        most = torch.full((n,), -torch.inf, dtype=v.dtype, device=v.device).scatter_reduce(0, at, v.detach(), "amax")
        x = v - most.index_select(0, at)
        sums = torch.zeros(n, dtype=v.dtype, device=v.device).index_add(0, at, x.exp())
    return _with_values(a, of(x, sums, at))


# ---- conversions ----

def transpose(a: Matrix, dim0: int = 0, dim1: int = 1) -> Matrix:
    if a.ndim != 2:
        raise _refused("transpose", a)
    if dim0 % 2 == dim1 % 2:
        return a
    turned = {torch.sparse_csr: torch.sparse_csc, torch.sparse_csc: torch.sparse_csr, torch.sparse_coo: torch.sparse_coo}
    extents = a.extents[::-1]
    if a.layout is torch.sparse_bsr: # of blocks, in order of columns
        rows, columns = _rows_of(a)
        order = torch.argsort(columns, stable=True)
        n = a.shape[1] // a._values.shape[2]
        parts = _offsets(columns.index_select(0, order), n), rows.index_select(0, order)
        return Matrix(a.kind._replace(shape=a.kind.shape[::-1]), parts, a._values.index_select(0, order).transpose(1, 2), extents)
    kind = a.kind._replace(layout=turned[a.layout], shape=a.kind.shape[::-1], given=None)
    if a.layout is not torch.sparse_coo:
        return Matrix(kind, a.parts, a._values, extents)
    return Matrix(kind._replace(coalesced=False), (a.parts[0].flip(0),), a._values, extents)


def to_dense(a: Matrix) -> torch.Tensor:
    if a.layout is torch.sparse_bsr:
        height, width = a._values.shape[1:]
        n, m = a.shape[0] // height, a.shape[1] // width
        blocks = torch.zeros(n, m, height, width, dtype=a.dtype, device=a.device).index_put(_rows_of(a), a._values, accumulate=True)
        return blocks.transpose(1, 2).reshape(a.shape)
    return torch.zeros(a.shape, dtype=a.dtype, device=a.device).index_put(_places(a), a._values, accumulate=True)


def to_coo(a: Matrix) -> Matrix:
    if a.layout is torch.sparse_coo:
        return a
    if a.layout is torch.sparse_bsr:
        raise _refused("to_sparse_coo", a)
    # entries of CSC stand in another order
    return Matrix(Kind(torch.sparse_coo, a.kind.shape, a.layout is torch.sparse_csr), (torch.stack(_rows_of(a)),), a._values, a.extents)


def to_csr(a: Matrix) -> Matrix:
    if a.layout is torch.sparse_csr:
        return a
    if a.layout is torch.sparse_bsr:
        raise _refused("to_sparse_csr", a)
    kind = Kind(torch.sparse_csr, a.kind.shape)
    if a.layout is torch.sparse_csc: # by rows; a stable sort keeps columns in order
        rows, columns = _rows_of(a)
        order = torch.argsort(rows, stable=True)
        parts = _offsets(rows.index_select(0, order), a.shape[0]), columns.index_select(0, order)
        return Matrix(kind, parts, a._values.index_select(0, order), a.extents)
    a = coalesce(a)
    return Matrix(kind, (_offsets(a.parts[0][0], a.shape[0]), a.parts[0][1]), a._values, a.extents)


def coalesce(a: Matrix) -> Matrix:
    """The matrix with sorted entries, none of them repeated. How many these are depends on the data."""
    if a.kind.coalesced or a.layout is not torch.sparse_coo:
        return a
    if a.ndim != 2:
        raise _refused("coalesce", a)
    keys, place = torch.unique(a.parts[0][0] * a.shape[1] + a.parts[0][1], sorted=True, return_inverse=True)
    values = torch.zeros(keys.shape[0], dtype=a.dtype, device=a.device).index_add(0, place, a._values)
    indices = torch.stack([keys // a.shape[1], keys % a.shape[1]])
    return Matrix(a.kind._replace(coalesced=True), (indices,), values, a.extents)


def _operator(a: Any, b: Any) -> Any:
    """a @ b. Dynamo exchanges the operands where the left one is a matrix, and does not say so."""
    if torch.compiler.is_dynamo_compiling() and not isinstance(a, Matrix):
        raise TypeError("weft.sparse: torch.compile does not say which operand of @ is the left one: write torch.mm(a, b)")
    return matmul(a, b)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys((torch.mm, torch.matmul, torch.mv, torch.Tensor.mm, torch.Tensor.mv, torch.sparse.mm,
                     torch.spmm, torch.dsmm), matmul),
    **dict.fromkeys((torch.Tensor.matmul, torch.Tensor.__matmul__), _operator), torch.Tensor.__rmatmul__: lambda a, b: matmul(b, a),
    **dict.fromkeys((torch.addmm, torch.addmv, torch.Tensor.addmm, torch.sparse.addmm), addmm),
    torch.nn.functional.linear: linear, torch.sparse.sampled_addmm: sampled_addmm,
    **dict.fromkeys((torch.add, torch.Tensor.add, torch.Tensor.__add__, torch.Tensor.__radd__), add),
    **dict.fromkeys((torch.sub, torch.Tensor.sub, torch.Tensor.__sub__), lambda a, b, alpha=1: add(a, b, alpha=-alpha)),
    torch.Tensor.__rsub__: lambda a, b: add(b, a, alpha=-1),
    **dict.fromkeys((torch.mul, torch.Tensor.mul, torch.Tensor.__mul__, torch.Tensor.__rmul__), mul),
    **dict.fromkeys((torch.div, torch.Tensor.div, torch.Tensor.__truediv__), div),
    torch.Tensor.__rdiv__: lambda a, b: div(b, a),
    **dict.fromkeys((torch.sum, torch.sparse.sum, torch._sparse_sum), sum),
    torch.sparse.softmax: softmax, torch.sparse.log_softmax: log_softmax,
    **dict.fromkeys((torch.t, torch.transpose), transpose),
    **{getattr(torch, n): _element_wise(n) for n in ("abs", "asin", "asinh", "atan", "atanh", "ceil", "expm1", "floor", "log1p", "neg", "relu", "round",
                                                     "sgn", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc")},
    torch.nn.functional.relu: lambda a, inplace=False: _FUNCTIONS[torch.relu](a),
}


def __getattr__(name: str) -> Any:
    if name in ("matrix", "tensor", "replace"):
        from weft import sparse_door
        return getattr(sparse_door, name)
    raise AttributeError(f"module 'weft.sparse' has no attribute {name!r}")
