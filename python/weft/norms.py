"""Norms of bf16 and f16 as in eager mode: which dtypes their statistics have, and where they are rounded.

Beside parameters of another dtype, as under autocast, a norm's statistics are f32, which PyTorch's tracing does not say.
So such a norm is traced as one of f32. Otherwise they have the input's dtype. Batch norm computes with its rounded
statistics, layer norm and group norm do not. Training computes gradients that cancel (the output of a norm does not
depend on its input's scale), so that what is left of them may be the rounding of the statistics alone.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
_NARROW = torch.bfloat16, torch.float16
_OTHERS = "weight", "bias", "running_mean", "running_var"


def _given(target: Any, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[dict[str, Any], list[torch.Tensor]]:
    """All arguments by name, and the tensors beside the input."""
    given = dict(zip((a.name for a in target._schema.arguments), args)) | named
    return given, [t for n in _OTHERS if (t := given.get(n)) is not None]


def _mixed(target: Any, given: dict[str, Any]) -> Any:
    """The norm of the input as f32."""
    y, *rest = target(**given | {"input": given["input"].to(torch.float32)})
    return y.to(given["input"].dtype), *rest


def _norm(target: Any) -> Callable[..., Any]:
    def call(*args: Any, **named: Any) -> Any:
        given, others = _given(target, args, named)
        d = given["input"].dtype
        return _mixed(target, given) if d in _NARROW and others and others[0].dtype != d else NotImplemented
    return call


def _batch_norm(target: Any) -> Callable[..., Any]:
    """Batch norm that gives new running statistics, or has none."""
    def call(*args: Any, **named: Any) -> Any:
        given, others = _given(target, args, named)
        d = given["input"].dtype
        if d not in _NARROW:
            return NotImplemented
        if others and others[0].dtype != d:
            return _mixed(target, given)
        return _rounded(given, len(target._schema.returns)) if given.get("training", True) else NotImplemented
    return call


def _rounded(given: dict[str, Any], count: int) -> Any:
    """Batch norm of the batch's statistics, by parameters of the input's dtype. Eager mode divides sums that are bf16 in
    bf16."""
    d, wide = given["input"].dtype, {n: t.to(torch.float32) for n in ("input", *_OTHERS) if (t := given.get(n)) is not None}
    x = wide["input"]
    dims = [k for k in range(x.dim()) if k != 1]
    n = x.numel() // x.shape[1]
    var, mean = torch.var_mean(x, dims, correction=0)
    if d == torch.bfloat16:
        var = ((var * n).to(d) / n).to(torch.float32)
    mean, invstd = mean.to(d), torch.rsqrt(var + given["eps"]).to(d)
    scale = invstd * wide["weight"] if "weight" in wide else invstd.to(torch.float32)
    shift = -mean * scale
    shift = wide["bias"] + shift if "bias" in wide else shift
    of_channels = [1 if k != 1 else -1 for k in range(x.dim())]
    results = [(x * scale.reshape(of_channels) + shift.reshape(of_channels)).to(d), mean, invstd]
    if count > 4:
        kept, new = 1 - given["momentum"], given["momentum"]
        reserve = [x.new_empty([0], dtype=torch.uint8)] if count == 6 else []
        results += [*reserve, (kept * wide["running_mean"] + new * mean).to(given["running_mean"].dtype),
                    (kept * wide["running_var"] + new * (var * n / (n - 1))).to(given["running_var"].dtype)]
    return tuple(results)


decompositions: dict[Any, Callable[..., Any]] = {
    **{target: _norm(target) for target in (aten.native_layer_norm.default, aten.native_group_norm.default, aten._batch_norm_no_update.default,
                                            aten._native_batch_norm_legit_no_training.default)},
    **{target: _batch_norm(target) for target in (aten._native_batch_norm_legit.no_stats, aten._native_batch_norm_legit_functional.default,
                                                  aten._batch_norm_with_update_functional.default)},
}
