"""A causal language model as torch.export sees it: a step over n tokens, whose cache of keys and values is state.

    prefill(input_ids i64[B, n], start i64[], pad i64[B]) -> logits f32[B, V]      n: 2 to `chunk`
    decode(input_ids i64[B, 1], start i64[], pad i64[B]) -> logits f32[B, V]

The tokens stand at the positions start, start + 1, ... of the cache, which has `length` of them, and the logits are those behind the last
one. The first pad[b] positions of row b hold no token: rows of different lengths end at the same position. A model of one row has no
input pad. The state is keys.K and values.K of layer K, [B, H, length, D]. A position is an input and no state: who calls may go back
and write over what stands behind."""
from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

import torch
from transformers import StaticCache, masking_utils
from transformers.cache_utils import Cache, DummyLayer, StaticLayer, StaticSlidingWindowLayer
from transformers.exporters.utils import apply_patches, patch_attribute

from weft import _weft


class Layer(StaticLayer):
    """The keys and values of a layer at all positions. Layers of a sliding window keep all of them, too: their mask hides the others."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, start: torch.Tensor):
        super().__init__(max_cache_len=keys.shape[2])
        self.keys, self.values, self.start = keys, values, start
        self.is_initialized, self.device = True, keys.device

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        position = torch.arange(key_states.shape[2], device=self.device) + self.start
        self.keys.index_copy_(2, position, key_states)
        self.values.index_copy_(2, position, value_states)
        return self.keys, self.values

    def get_seq_length(self) -> torch.Tensor:
        return self.start


class Step(torch.nn.Module):
    """The step. It has the children of the model and not the model, so that weights keep their names."""

    def __init__(self, model: Any, shapes: list[Any], batch: int, length: int):
        super().__init__()
        object.__setattr__(self, "_whole", model)
        self._modules.update(model._modules)
        self._parameters = model._parameters
        self._buffers.update(model._buffers)
        self._non_persistent_buffers_set = set(model._non_persistent_buffers_set)
        self.training = model.training
        self.batch, self.length, self.count = batch, length, len(shapes)
        for k, tensors in enumerate(shapes):
            for name, like in zip(("keys", "values"), tensors or ()):
                heads, dim = like.shape[1], like.shape[3]
                self.register_buffer(f"{name}_{k}", torch.zeros(batch, heads, length, dim, dtype=like.dtype, device=like.device))
        taken = inspect.signature(model.forward).parameters
        self.cache_name = next(name for name in ("cache", "past_key_values") if name in taken)
        self.positions, self.last = "position_ids" in taken, "logits_to_keep" in taken

    def forward(self, input_ids: torch.Tensor, start: torch.Tensor, pad: torch.Tensor | None = None) -> torch.Tensor:
        device = input_ids.device
        layers = [Layer(getattr(self, f"keys_{k}"), getattr(self, f"values_{k}"), start) if hasattr(self, f"keys_{k}") else DummyLayer()
                  for k in range(self.count)]
        position = torch.arange(input_ids.shape[1], device=device)[None] + start
        seen = torch.ones(self.batch, self.length, dtype=torch.int64, device=device)
        if pad is not None:
            position = (position - pad[:, None]).clamp(min=0)
            seen = (torch.arange(self.length, device=device)[None] >= pad[:, None]).to(torch.int64)
        given: dict[str, Any] = {self.cache_name: Cache(layers=layers)}
        if self.positions:
            given["position_ids"] = position
        if self.last:
            given["logits_to_keep"] = 1
        with patch_attribute(masking_utils, "padding_mask_function", lambda _: lambda mask: behind(pad)):
            return self._whole(input_ids=input_ids, attention_mask=seen, use_cache=True, **given).logits[:, -1].float()


def behind(pad: torch.Tensor | None) -> Any:
    """The part of a mask that hides padding, as comparisons of positions, by which Weft bounds the loop over the keys; transformers
    reads the mask of the rows instead."""
    def seen(batch: Any, head: Any, query: Any, key: Any) -> torch.Tensor:
        if pad is None:
            return key.new_ones((), dtype=torch.bool)
        return key >= (pad[:, None, None, None] if batch.dim() == 4 else pad[batch])
    return seen


def cached_shapes(model: Any, batch: int) -> list[tuple[torch.Tensor, torch.Tensor] | None]:
    """What each layer keeps of a token, by running the model on one; None for a layer that keeps nothing."""
    name = type(model).__name__
    taken = inspect.signature(model.forward).parameters
    if "input_ids" not in taken or not ("cache" in taken or "past_key_values" in taken) or getattr(model.config, "is_encoder_decoder", False):
        raise ValueError(f"{name}: expected a causal language model, whose forward takes input_ids and a cache of keys and values")
    try:
        cache = StaticCache(config=model.config, max_cache_len=8)
    except (KeyError, TypeError, AttributeError) as e:
        raise ValueError(f"{name}: transformers has no static cache for its layers: {e!r}") from e
    for k, layer in enumerate(cache.layers):
        if type(layer) not in (StaticLayer, StaticSlidingWindowLayer, DummyLayer):
            raise ValueError(f"{name}: layer {k} keeps a {type(layer).__name__}: only layers that keep keys and values are supported")
    tokens = torch.zeros(batch, 1, dtype=torch.int64, device=model.device)
    with running(model):
        out = model(input_ids=tokens, attention_mask=torch.ones_like(tokens), use_cache=True,
                    **{"cache" if "cache" in taken else "past_key_values": cache})
    if getattr(out, "logits", None) is None:
        raise ValueError(f"{name}: its output has no logits: expected a class for causal language models, ...ForCausalLM")
    return [(layer.keys, layer.values) if getattr(layer, "is_initialized", False) else None for layer in cache.layers]


@contextlib.contextmanager
def running(model: Any) -> Iterator[None]:
    """Says of an error in the model's code when it happened."""
    try:
        yield
    except Exception as e:
        raise ValueError(f"{type(model).__name__}: it does not run with a static cache: {first_line(e)}") from e


def first_line(e: Exception) -> str:
    return f"{type(e).__name__}: {(str(e).strip() or 'no text').splitlines()[0]}"


def programs(model: Any, batch: int, length: int, chunk: int) -> dict[str, Any]:
    """The exported programs prefill and decode of a model of transformers."""
    was = model.training
    model.eval()
    try:
        with torch.no_grad():
            step = Step(model, cached_shapes(model, batch), batch, length)
            check(step)
            start = torch.tensor(0, device=model.device)
            pad = (torch.zeros(batch, dtype=torch.int64, device=model.device),) if batch > 1 else ()
            n = torch.export.Dim("n", min=2, max=chunk)
            return {name: exported(step, (torch.zeros(batch, count, dtype=torch.int64, device=model.device), start, *pad), shapes)
                    for name, count, shapes in (("prefill", min(chunk, 7), ({1: n}, None, *(None for _ in pad))), ("decode", 1, None))}
    finally:
        model.train(was)


def check(step: Step) -> None:
    """Compares the step on a few tokens, with a cache, with the model without one: a model that is not causal, or keeps more than its
    cache of keys and values, would be compiled to something else."""
    model, count = step._whole, min(5, step.length)
    if model.device.type == "meta":
        return
    ids = torch.arange(step.batch * count, device=model.device).view(step.batch, count) % model.config.get_text_config().vocab_size
    pad = torch.zeros(step.batch, dtype=torch.int64, device=model.device) if step.batch > 1 else None
    with running(model):
        for first, end in ((0, count - 1), (count - 1, count)):
            got = step(ids[:, first:end], torch.tensor(first, device=model.device), pad)
    for name, cache in step.named_buffers(recurse=False):
        if name.startswith(("keys_", "values_")):
            cache.zero_()
    expected = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits[:, -1].float()
    most = 0.1 if model.dtype in (torch.bfloat16, torch.float16) else 1e-3
    if not (got - expected).norm() <= most * expected.norm():
        raise ValueError(f"{type(model).__name__}: with a cache of keys and values, its logits differ from those without one by "
                         f"{float((got - expected).norm() / expected.norm()):.2g} of their size: it may not be causal, or keep more than that")


def exported(step: Step, args: tuple[Any, ...], shapes: Any) -> Any:
    """torch.export of a step, with what transformers changes for it."""
    try:
        with apply_patches("dynamo"):
            return torch.export.export(step, args, dynamic_shapes=shapes, strict=False, prefer_deferred_runtime_asserts_over_guards=True)
    except Exception as e:
        raise _weft.Error(f"{type(step._whole).__name__}: torch.export cannot trace it: {first_line(e)}") from e
