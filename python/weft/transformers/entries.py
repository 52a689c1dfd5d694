"""A causal language model as torch.export sees it: a step over n tokens, whose cache of keys and values is state.

    prefill(input_ids i64[B, n], start i64[], pad i64[B]) -> logits f32[B, V]      n: 2 to `chunk`
    decode(input_ids i64[B, 1], start i64[], pad i64[B]) -> logits f32[B, V]

The tokens stand at the positions start, start + 1, ... of the cache, which has `length` of them, and the logits are those behind the last
one. The first pad[b] positions of row b hold no token: rows of different lengths end at the same position. A model of one row has no
input pad. A position is an input and no state: who calls may go back and write over what stands behind.

    prefill(input_ids i64[1, n], start i64[], row i64[]) -> logits f32[1, V]
    decode_row(input_ids i64[1, 1], start i64[], row i64[]) -> logits f32[1, V]
    decode(input_ids i64[B, 1], start i64[B]) -> logits f32[B, V]
    copy(positions i64[n], source i64[], target i64[])

are the entries of a model whose rows have positions of their own: prefill and decode_row read tokens of one row, decode one token of
each row; copy writes what the row `source` has at these positions into the row `target`.

The state is keys_K and values_K of layer K, [B, H, length, D], in the type that the model computes in, or as f16, bf16 or i8; as i8 with
keys_scale_K and values_scale_K, f32[B, H, length, 1]."""
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


CACHES = {"f16": torch.float16, "bf16": torch.bfloat16, "int8": torch.int8}  # what keys and values are stored as, by WeftConfig.cache
STATE = ("keys_", "values_")
_MOST = 127


class Stored:
    """Keys or values of a layer: x, or the integers x and their scales, one for each token and head."""

    def __init__(self, x: torch.Tensor, scale: torch.Tensor | None, dtype: torch.dtype):
        self.x, self.scale, self.dtype = x, scale, dtype

    def parts(self, new: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The tensors of the state, and what new tokens are in them."""
        if self.scale is None:
            return [(self.x, new.to(self.x.dtype))]
        scale = new.float().abs().amax(-1, keepdim=True) / _MOST
        return [(self.x, (new.float() / torch.where(scale > 0, scale, 1)).round().to(torch.int8)), (self.scale, scale)]

    def write(self, new: torch.Tensor, start: torch.Tensor, row: torch.Tensor | None) -> None:
        """Writes tokens at the positions from `start` on, or one token at the position start[b] of each row."""
        for kept, part in self.parts(new):
            if start.dim() == 0:
                one_row(kept, row).index_copy_(2, torch.arange(new.shape[2], device=new.device) + start, part)
            else:
                kept[torch.arange(len(kept), device=new.device), :, start] = part[:, :, 0]

    def read(self, row: torch.Tensor | None) -> torch.Tensor:
        x = one_row(self.x, row)
        return x.to(self.dtype) if self.scale is None else (x.float() * one_row(self.scale, row)).to(self.dtype)


def one_row(x: torch.Tensor, row: torch.Tensor | None) -> torch.Tensor:
    """The part of x, of all rows, that a row has; all of x without one."""
    if row is None:
        return x
    number = row.item()
    torch._check(number >= 0)
    torch._check(number < len(x))
    return x.narrow(0, number, 1)


class Layer(StaticLayer):
    """The keys and values of a layer at all positions. Layers of a sliding window keep all of them, too: their mask hides the others."""

    def __init__(self, keys: Stored, values: Stored, start: torch.Tensor, row: torch.Tensor | None, offset: torch.Tensor):
        super().__init__(max_cache_len=keys.x.shape[2])
        self.stored, self.start, self.row, self.offset = (keys, values), start, row, offset
        self.is_initialized, self.device = True, keys.x.device

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        for stored, new in zip(self.stored, (key_states, value_states)):
            stored.write(new, self.start, self.row)
        return self.stored[0].read(self.row), self.stored[1].read(self.row)

    def get_seq_length(self) -> torch.Tensor:
        """What masks add to the number of a new token."""
        return self.offset


class Step(torch.nn.Module):
    """The step. It has the children of the model and not the model, so that weights keep their names."""

    def __init__(self, model: Any, shapes: list[Any], batch: int, length: int, kind: str | None = None):
        super().__init__()
        object.__setattr__(self, "_whole", model)
        self._modules.update(model._modules)
        self._parameters = model._parameters
        self._buffers.update(model._buffers)
        self._non_persistent_buffers_set = set(model._non_persistent_buffers_set)
        self.training = model.training
        self.batch, self.length, self.dtypes = batch, length, [tensors and tensors[0].dtype for tensors in shapes]
        for k, tensors in enumerate(shapes):
            for name, like in zip(("keys", "values"), tensors or ()):
                shape, device = (batch, like.shape[1], length), like.device
                self.register_buffer(f"{name}_{k}", torch.zeros(*shape, like.shape[3], dtype=CACHES.get(kind, like.dtype), device=device))
                if kind == "int8":
                    self.register_buffer(f"{name}_scale_{k}", torch.zeros(*shape, 1, device=device))
        taken = inspect.signature(model.forward).parameters
        self.cache_name = next(name for name in ("cache", "past_key_values") if name in taken)
        self.positions, self.last = "position_ids" in taken, "logits_to_keep" in taken

    def layers(self, start: torch.Tensor, row: torch.Tensor | None, offset: torch.Tensor) -> list[Any]:
        def stored(name: str, k: int) -> Stored:
            return Stored(getattr(self, f"{name}_{k}"), getattr(self, f"{name}_scale_{k}", None), self.dtypes[k])
        return [DummyLayer() if dtype is None else Layer(stored("keys", k), stored("values", k), start, row, offset)
                for k, dtype in enumerate(self.dtypes)]

    def forward(self, input_ids: torch.Tensor, start: torch.Tensor, pad: torch.Tensor | None = None) -> torch.Tensor:
        device = input_ids.device
        position = torch.arange(input_ids.shape[1], device=device)[None] + start
        seen = torch.ones(self.batch, self.length, dtype=torch.int64, device=device)
        if pad is not None:
            position = (position - pad[:, None]).clamp(min=0)
            seen = (torch.arange(self.length, device=device)[None] >= pad[:, None]).to(torch.int64)
        with patch_attribute(masking_utils, "padding_mask_function", lambda _: lambda mask: behind(pad)):
            return self.logits(input_ids, position, seen, self.layers(start, None, start))

    def logits(self, input_ids: torch.Tensor, position: torch.Tensor, seen: torch.Tensor, layers: list[Any]) -> torch.Tensor:
        """Those behind the last token."""
        given: dict[str, Any] = {self.cache_name: Cache(layers=layers)}
        if self.positions:
            given["position_ids"] = position
        if self.last:
            given["logits_to_keep"] = 1
        return self._whole(input_ids=input_ids, attention_mask=seen, use_cache=True, **given).logits[:, -1].float()


class RowStep(Step):
    """The step of a model whose rows have positions of their own: of one token of each row, or of tokens of one row."""

    def forward(self, input_ids: torch.Tensor, start: torch.Tensor, row: torch.Tensor | None = None) -> torch.Tensor:
        device, own = input_ids.device, start.view(-1, 1)
        position = torch.arange(input_ids.shape[1], device=device)[None] + own
        seen = torch.ones(len(own), self.length, dtype=torch.int64, device=device)

        def indices(batch: Any, head: Any, query: Any, key: Any) -> tuple[Any, ...]:
            return batch[:, None, None, None], head[None, :, None, None], query[None, None, :, None] + own[..., None, None], key[None, None, None]
        with (patch_attribute(masking_utils, "padding_mask_function", lambda _: lambda mask: behind(None)),
              patch_attribute(masking_utils, "_non_vmap_expansion_sdpa", lambda _: indices),
              patch_attribute(masking_utils, "_vmap_expansion_sdpa", lambda _: lambda mask: lambda *at: mask(*indices(*at)))):
            return self.logits(input_ids, position, seen, self.layers(start, row, torch.zeros((), dtype=torch.int64, device=device)))


class Copy(torch.nn.Module):
    """Copies positions of a row of the cache of a step into another row."""

    def __init__(self, step: Step):
        super().__init__()
        self._buffers.update({name: x for name, x in step.named_buffers(recurse=False) if name.startswith(STATE)})

    def forward(self, positions: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> None:
        for kept in self.buffers(recurse=False):
            one_row(kept, target).index_copy_(2, positions, one_row(kept, source).index_select(2, positions))


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
    if getattr(out, "logits", None) is None or out.logits.dim() != 3:
        raise ValueError(f"{name}: its output has no logits for each token: expected a class for causal language models, ...ForCausalLM")
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


def programs(model: Any, batch: int, length: int, chunk: int, rows: bool = False, kind: str | None = None) -> dict[str, Any]:
    """The exported programs prefill and decode of a model of transformers. rows: rows have positions of their own. kind: one of CACHES,
    or None: the cache has the type that the model computes in."""
    for name, p in model.named_parameters():
        if p.device.type == "meta":
            raise ValueError(f"{type(model).__name__}: {name} is on the device meta and has no values: load the weights first")
    was = model.training
    model.eval()
    try:
        with torch.no_grad():
            step = (RowStep if rows else Step)(model, cached_shapes(model, batch), batch, length, kind)
            if rows and not step.positions:
                raise ValueError(f"{type(model).__name__}: its forward takes no position_ids: its rows cannot have positions of their own")
            check(step)
            n = torch.export.Dim("n", min=2, max=chunk)
            out = {}
            for name, count in (("prefill", min(chunk, 7)), *((("decode_row", 1),) if rows else ()), ("decode", 1)):
                args = arguments(step, name, count, 0)
                out[name] = exported(step, args, ({1: n}, *(None for _ in args[1:])) if count > 1 else None)
            if rows:
                source, target = (torch.tensor(k, device=model.device) for k in (0, 0))  # one tensor would be traced as one number
                out["copy"] = exported(Copy(step), (torch.arange(min(length, 7), device=model.device), source, target),
                                       ({0: torch.export.Dim("n", min=2, max=length)}, None, None))
            return out
    finally:
        model.train(was)


def arguments(step: Step, name: str, count: int, first: int, row: int = 0) -> tuple[torch.Tensor, ...]:
    """Inputs of an entry: `count` zeros from the position `first` on."""
    def full(*shape: int, value: int = 0) -> torch.Tensor:
        return torch.full(shape, value, device=step._whole.device)
    if not isinstance(step, RowStep):
        return (full(step.batch, count), full(value=first), *([full(step.batch)] if step.batch > 1 else []))
    if name == "decode":
        return full(step.batch, count), full(step.batch, value=first)
    return full(1, count), full(value=first), full(value=row)


def check(step: Step) -> None:
    """Compares the step on a few tokens, with a cache, with the model without one: a model that is not causal, or keeps more than its
    cache of keys and values, would be compiled to something else."""
    model, count = step._whole, min(5, step.length)
    if model.device.type == "meta":
        return
    ids = torch.arange(step.batch * count, device=model.device).view(step.batch, count) % model.config.get_text_config().vocab_size
    with running(model):
        if isinstance(step, RowStep):
            for row in range(step.batch):
                step(ids[row:row + 1, :-1], *arguments(step, "prefill", 1, 0, row)[1:])
        else:
            step(ids[:, :-1], *arguments(step, "prefill", 1, 0)[1:])
        got = step(ids[:, -1:], *arguments(step, "decode", 1, count - 1)[1:])
    for name, cache in step.named_buffers(recurse=False):
        if name.startswith(STATE):
            cache.zero_()
    expected = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits[:, -1].float()
    least = min((torch.finfo(t.dtype).bits if t.dtype.is_floating_point else 8 for t in step.buffers(recurse=False)), default=32)
    most = 0.1 if model.dtype in (torch.bfloat16, torch.float16) or least < 32 else 1e-3
    if not (got - expected).norm() <= most * expected.norm():
        raise ValueError(f"{type(model).__name__}: with a cache of keys and values, its logits differ from those without one by "
                         f"{float((got - expected).norm() / expected.norm()):.2g} of their size: it may not be causal, or keep more than that")


def exported(step: torch.nn.Module, args: tuple[Any, ...], shapes: Any) -> Any:
    """torch.export of a step, with what transformers changes for it."""
    try:
        with apply_patches("dynamo"):
            return torch.export.export(step, args, dynamic_shapes=shapes, strict=False, prefer_deferred_runtime_asserts_over_guards=True)
    except Exception as e:
        raise _weft.Error(f"{type(getattr(step, '_whole', step)).__name__}: torch.export cannot trace it: {first_line(e)}") from e
