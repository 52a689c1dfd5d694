"""weft.quantize: models with weights of few bits."""
from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

from weft import _weft
from weft.graph import Graph
from weft.model import in_python


def quantize(model: Any, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None, *, dynamic_shapes: Any = None,
             weights: str = "int8", group: int = 32, zero_points: bool = False, embeddings: bool = False, activations: str = "none", data: Any = None,
             keep: Mapping[str, str] | None = None, weights_from: Any = (), weight_names: Any = None, ops: Any = (),
             least_snr: float = 0, jobs: int = 0) -> Graph:
    """The graph of a model, with weights of few bits: for weft.compile, or Graph.save.

    model, args, kwargs, dynamic_shapes, weights_from, weight_names, ops: as for weft.compile. A weft.Graph is changed and returned.
    weights: "int8", 8 bits with a scale for each row of a weight; "int4", 4 bits with a scale for each group of `group` terms of
    a row (32, 64 or 128), and with zero_points a zero point; "bf16"; or "float", as they are, but for those of keep.
    embeddings: whether tables of embeddings are rounded, too, to 8 bits or bf16; else only those that products read as well.
    activations: "dynamic" rounds what such weights are multiplied with to 8 bits, by blocks, in each call (docs/numerics.md); "static"
    by the range that it has on data, also of convolutions.
    keep: kinds of other weights, by their names or those of modules, in which * is any text: {"head": "float"}. The first counts.
    data: samples on which the model is run: what is large in them counts more. An array of the first input whose first dimension
    counts samples; a dict of such by the inputs' names; or batches, each an array, a tuple of inputs, or a dict.
    least_snr: with data, weights get more bits, those first that rounding changes most, until the outputs have that ratio of signal to
    noise, in decibels: 8 in place of 4, and if that does not suffice, they stay as they are.

    The graph's quantization is a dict: bytes, bytes_before, weights (of each: name, type, kind, why, bytes, bytes_before, snr in dB),
    and with data samples, snr (of the outputs, in dB) and agreement (the part of the rows whose greatest number kept its place).
    """
    from weft.compiler import loaded, paths, session_with
    if weight_names is not None and not weights_from:
        raise ValueError("weight_names is for weights_from")
    graph = model
    if not isinstance(model, Graph):
        graph = Graph(loaded(session_with(ops), model, args, kwargs, dynamic_shapes))
    elif paths("ops", ops):
        raise ValueError("weft.quantize: ops= is for a model that is loaded here: give it to weft.graph or weft.trace")
    if weights_from:
        graph.raw.session.load_weights(graph.raw, tuple(paths("weights_from", weights_from)), None if weight_names is None else os.fspath(weight_names))
    if keep is not None and not isinstance(keep, Mapping):
        raise TypeError(f"keep is a dict of kinds by name, not {type(keep).__name__}")
    if isinstance(jobs, bool) or not isinstance(jobs, int) or not 0 <= jobs <= 4096:
        raise ValueError(f"jobs={jobs!r}: expected a number of threads; 0: as many as there are processors")
    if not (least_snr >= 0 and math.isfinite(least_snr)):
        raise ValueError(f"least_snr={least_snr!r}: expected decibels from 0 on")
    rules = tuple(f"{name}:{kind}" for name, kind in (keep or {}).items())
    with in_python():
        graph.quantization = _weft.quantize(graph.raw, weights, group, zero_points, embeddings, activations, rules, _samples(data), jobs, least_snr)
    return graph


def _samples(data: Any) -> dict[str, Any] | None:
    """All samples by the names of inputs, or x.0, x.1, ..."""
    if data is None:
        return None
    if _is_array(data) or isinstance(data, Mapping):
        return _named(data)
    if not isinstance(data, Iterable):
        raise TypeError(f"data is an array, a dict of arrays by input, or batches of these, not {type(data).__name__}")
    batches = [_named(batch) for batch in data]
    if not batches:
        raise ValueError("data has no batches")
    for batch in batches:
        if batch.keys() != batches[0].keys():
            raise ValueError(f"a batch of data has {', '.join(batch)}, the first one has {', '.join(batches[0])}")
    return {name: _joined([batch[name] for batch in batches]) for name in batches[0]}


def _named(batch: Any) -> dict[str, Any]:
    if isinstance(batch, Mapping):
        return {name: _plain(value) for name, value in batch.items()}
    return {f"x.{k}": _plain(value) for k, value in enumerate(batch if isinstance(batch, (tuple, list)) else [batch])}


def _is_array(value: Any) -> bool:
    return hasattr(value, "__dlpack__") or hasattr(value, "__array__")


def _plain(value: Any) -> Any:
    """The contents without autograd."""
    value = value.detach() if hasattr(value, "detach") else value
    return value.contiguous() if hasattr(value, "contiguous") else value


def _joined(parts: list[Any]) -> Any:
    if hasattr(parts[0], "detach"):
        import torch
        return torch.cat(parts)
    import numpy
    return numpy.concatenate(parts)
