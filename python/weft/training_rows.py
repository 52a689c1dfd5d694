"""Gradients of tables of which a step reads few rows: nn.Embedding and nn.EmbeddingBag with sparse=True, or tables that the user names."""
from __future__ import annotations

import fnmatch
from typing import Any, NamedTuple

import torch
from torch.fx import Node

from weft.joint import Joint, error

_aten = torch.ops.aten
_ZEROS = {_aten.new_zeros.default, _aten.zeros.default, _aten.zeros_like.default}
_PARTS = {_aten.add.Tensor, _aten.clone.default, _aten.alias.default, _aten.detach.default}


class Piece(NamedTuple):
    """What a gather of a table adds to its gradient: values [I..., rest] at rows index [I...]; none where the index is padding."""
    index: Node
    value: Node
    padding: int | None


def pieces_of(n: Node) -> list[Piece] | None:
    """The pieces of which a gradient is the sum; None: it is another one than that of gathers."""
    if n.op != "call_function":
        return None
    if n.target is _aten.embedding_dense_backward.default and not n.args[4]:
        return [Piece(n.args[1], n.args[0], n.args[3] if n.args[3] >= 0 else None)]
    if n.target is _aten.index_add.default and n.args[1] == 0 and _is_zero(n.args[0]) and n.kwargs.get("alpha", 1) == 1:
        return [Piece(n.args[2], n.args[3], None)]
    if n.target in (_aten.index_put.default, _aten._unsafe_index_put.default) and _is_zero(n.args[0]) and len(n.args) > 3 and n.args[3]:
        one = len(n.args[1]) == 1 and n.args[1][0].meta["val"].dtype in (torch.int64, torch.int32)
        return [Piece(n.args[1][0], n.args[2], None)] if one else None
    if n.target in _PARTS and not n.kwargs:
        parts = [pieces_of(x) for x in n.args if isinstance(x, Node)]
        return None if None in parts or len(parts) < len(n.args) else [p for part in parts for p in part]
    return None


def _is_zero(n: Any) -> bool:
    return isinstance(n, Node) and (n.target in _ZEROS or n.target is _aten.full.default and n.args[1] == 0)


def rows_of(joint: Joint, names: list[str], sparse: list[str] | None) -> list[Piece] | None:
    """The pieces of the gradient of a parameter, by all of its names, if it is one of few rows. sparse: patterns of the user; None: those
    of embeddings with sparse=True are."""
    asked = [s for s in sparse or () if any(fnmatch.fnmatchcase(n, s) for n in names)]
    if not asked and (sparse is not None or not any(n in joint.sparse for n in names)):
        return None
    found = [pieces_of(joint.gradients[n]) for n in names if n in joint.gradients]
    if None in found:
        if not asked:
            return None
        raise error(f"sparse={asked[0]!r}: the step reads {names[0]} not only by rows, so that its gradient has all of them")
    return [p for pieces in found for p in pieces]


def check_patterns(sparse: list[str] | None, names: list[str]) -> None:
    for s in sparse or ():
        if not any(fnmatch.fnmatchcase(n, s) for n in names):
            raise error(f"sparse={s!r}: no parameter that is trained is called so: there are {', '.join(names[:8])}")


def sums(lowering: Any, pieces: list[Piece], p: torch.Tensor) -> tuple[Any, Any, Any]:
    """Which rows the pieces are added to, those once each, and the sums."""
    made, call, rest = lowering._made, lowering.trace.call, list(p.shape[1:])
    index, value = [], []
    for piece in pieces:
        at = made("reshape", made("_to_copy", lowering.env[piece.index], dtype="i64"), [-1])
        v = made("reshape", lowering.env[piece.value], [-1, *rest])
        if piece.padding is not None:
            keep = made("reshape", made("ne.Scalar", at, piece.padding), [-1, *[1] * len(rest)])
            v = made("where.ScalarOther", keep, v, 0.0)
        index.append(at)
        value.append(v)
    if len(pieces) > 1:
        index, value = [made("cat", index)], [made("cat", value)]
    all_ = lowering._checked(None, call, "rows_sum", (index[0], value[0], p.shape[0]), {})
    return tuple(lowering.trace.result(all_, k) for k in range(3))


def as_sparse(pieces: list[tuple[torch.Tensor, torch.Tensor]], paddings: list[int | None], p: torch.Tensor) -> torch.Tensor:
    """The sum of pieces (index, value), as a tensor of PyTorch's."""
    rest = p.shape[1:]
    index = torch.cat([i.reshape(-1).long() for i, _ in pieces])
    value = torch.cat([torch.where((i.reshape(-1) != (-1 if pad is None else pad)).reshape(-1, *[1] * len(rest)), v.reshape(-1, *rest), 0)
                       for (i, v), pad in zip(pieces, paddings)])
    return torch.sparse_coo_tensor(index[None], value, p.shape, check_invariants=False).coalesce()
