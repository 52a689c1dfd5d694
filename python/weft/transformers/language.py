"""Language models that Weft compiled, with the generate of transformers."""
from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import GenerationConfig, GenerationMixin
from transformers.exporters.base import ExportedModel
from transformers.generation import GenerateDecoderOnlyOutput, GenerationMode
from transformers.modeling_outputs import CausalLMOutputWithPast

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json", "vocab.json",
                   "vocab.txt", "merges.txt", "spiece.model", "chat_template.jinja", "chat_template.json")


class LanguageModel(ExportedModel, GenerationMixin):
    """A compiled causal language model: generate, save_pretrained, from_pretrained.

    Its one component is a weft.Model with the entries prefill and decode (entries.py), and its metadata says what it was exported with:
    metadata.export_config has batch, max_length and chunk. One generate runs at a time; clone() makes a model with a cache of its own."""

    main_input_name = "input_ids"
    _is_stateful = True
    _supported_generation_modes = [GenerationMode.GREEDY_SEARCH, GenerationMode.SAMPLE]

    def __init__(self, components: Any, export_format: Any, config: Any = None, generation_config: Any = None):
        super().__init__(components, export_format, config, generation_config or GenerationConfig.from_model_config(config))
        options = self.components["model"].metadata.export_config
        if "max_length" not in options or "decode" not in self.program.entries:
            raise ValueError("this export is no language model: load it with transformers' ExportedModel.from_pretrained")
        self.batch, self.max_length, self.chunk = (options[name] for name in ("batch", "max_length", "chunk"))
        self.continuous: bool = options.get("continuous", False)
        self.folder: tempfile.TemporaryDirectory[str] | None = None
        self.tokenizer_folder: Path | None = None
        self._lock = threading.Lock()
        self._owner: int | None = None  # the thread that has the lock
        self._prefill, self._decode = self.program.entries["prefill"], self.program.entries["decode"]
        if self.continuous:
            self._decode_row, self._copy = self.program.entries["decode_row"], self.program.entries["copy"]

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def threads(self) -> int:
        """The largest number of threads of a call."""
        return self._decode.threads

    @threads.setter
    def threads(self, count: int) -> None:
        for entry in self.program.entries.values():
            entry.threads = count

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False  # generate makes no cache: the model has one

    def to(self, device: Any = None, **options: Any) -> LanguageModel:
        if options or torch.device(device or "cpu").type != "cpu":
            raise ValueError(f"a model that Weft compiled runs where it was compiled for: {self.program.target}")
        return self

    def clone(self) -> LanguageModel:
        """A model with the same weights in memory and a cache of its own, for another thread."""
        from transformers.exporters.base import ExportedComponent
        component = self.components["model"]
        other = type(self)({"model": ExportedComponent(component.program.clone(), component.metadata)}, self.export_format, self.config,
                           self.generation_config)
        other.folder, other.tokenizer_folder, other.threads = self.folder, self.tokenizer_folder, self.threads
        return other

    def save_pretrained(self, save_directory: str | Path, push_to_hub: bool = False, **kwargs: Any) -> None:
        """Writes export.json, model.so, model.weights, config.json, generation_config.json, and the files of the tokenizer if the
        model was read from a folder that has them."""
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        for name in TOKENIZER_FILES if self.tokenizer_folder else ():
            source = self.tokenizer_folder / name
            if source.exists() and source.resolve() != (folder / name).resolve():
                shutil.copyfile(source, folder / name)
        super().save_pretrained(folder, push_to_hub, **kwargs)

    # ---- running ----

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None) -> CausalLMOutputWithPast:
        """The logits behind the last token of each row, [B, 1, V]."""
        with self._alone():
            ids, pad = self._rows(input_ids, attention_mask)
            self._fits(ids.shape[1], 1)
            return CausalLMOutputWithPast(logits=self._feed(ids, 0, pad)[:, None])

    def __call__(self, *args: Any, **kwargs: Any) -> CausalLMOutputWithPast:
        return self.forward(*args, **kwargs)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Waits for calls of other threads. A call from within a call, such as in a processor of logits, would wait for ever."""
        if self._owner == threading.get_ident():
            raise RuntimeError("this model runs in this thread already, and has one cache: call a clone() of it instead")
        with self._lock:
            self._owner = threading.get_ident()
            try:
                yield
            finally:
                self._owner = None

    @torch.no_grad()
    def generate(self, inputs: torch.Tensor | None = None, generation_config: GenerationConfig | None = None, **kwargs: Any) -> Any:
        """As generate of a model of transformers: greedy or sampling, with all of its processors of logits, stopping criteria and streamers."""
        ids = kwargs.get("input_ids", inputs)
        if ids is not None:
            self._rows(ids, kwargs.get("attention_mask"), kwargs.get("num_return_sequences") or 1)
        for name in ("cache", "past_key_values", "inputs_embeds", "position_ids", "assistant_model", "custom_generate"):
            if kwargs.get(name) is not None:
                raise ValueError(f"{name}: a compiled model has a cache of its own, counts positions, and reads tokens: this argument is not "
                                 "supported")
        with self._alone():
            return super().generate(inputs, generation_config, **kwargs)

    def _sample(self, input_ids: torch.Tensor, logits_processor: Any, stopping_criteria: Any, generation_config: GenerationConfig,
                synced_gpus: bool = False, streamer: Any = None, attention_mask: torch.Tensor | None = None, **others: Any) -> Any:
        """The loop of generate, which transformers calls."""
        c = generation_config
        if c.guidance_scale not in (None, 1) or c.output_attentions or c.output_hidden_states:
            raise ValueError("guidance_scale, output_attentions and output_hidden_states are not supported by a compiled model")
        ids, pad = self._rows(input_ids, attention_mask)
        at = ids.shape[1]
        self._fits(at, stopping_criteria.max_length - input_ids.shape[1] if stopping_criteria.max_length else 1)
        running = torch.ones(len(ids), dtype=torch.int64)
        scores, raw = [], []
        ends = any(hasattr(criterion, "eos_token_id") for criterion in stopping_criteria)
        logits = self._feed(ids, 0, pad)
        while True:
            chosen = logits_processor(input_ids, logits.clone() if c.output_logits else logits)
            if c.return_dict_in_generate:
                scores += [chosen] if c.output_scores else []
                raw += [logits] if c.output_logits else []
            token = torch.multinomial(chosen.softmax(-1), 1)[:, 0] if c.do_sample else chosen.argmax(-1)
            if ends:
                token = token * running + c._pad_token_tensor * (1 - running)
            input_ids = torch.cat([input_ids, token[:, None]], 1)
            if streamer is not None:
                streamer.put(token)
            running = running & ~stopping_criteria(input_ids, tuple(scores) or None)
            if not running.any():
                break
            logits = self._feed(token[:, None], at, pad)
            at += 1
        if streamer is not None:
            streamer.end()
        if not c.return_dict_in_generate:
            return input_ids
        return GenerateDecoderOnlyOutput(sequences=input_ids, scores=tuple(scores) if c.output_scores else None,
                                         logits=tuple(raw) if c.output_logits else None)

    def _feed(self, ids: torch.Tensor, start: int, pad: torch.Tensor | None) -> torch.Tensor:
        """Runs the tokens, whose first one stands at the position `start`; returns the logits behind the last one."""
        if self.continuous:
            first_at = pad if pad is not None else torch.zeros(len(ids), dtype=torch.int64)
            if start and ids.shape[1] == 1:
                return self.decode(ids[:, 0], start - first_at)
            return torch.stack([self.prefill(k, ids[k, int(first_at[k]):] if not start else ids[k], 0 if not start else int(start - first_at[k]))
                                for k in range(len(ids))])
        more = () if pad is None else (pad,)
        for first in range(0, ids.shape[1], self.chunk):
            part = ids[:, first:first + self.chunk].contiguous()
            entry = self._decode if part.shape[1] == 1 else self._prefill
            logits = entry(part, torch.tensor(start + first), *more)
        return logits

    # ---- rows with positions of their own ----

    @torch.no_grad()
    def prefill(self, row: int, ids: torch.Tensor, start: int = 0) -> torch.Tensor:
        """Reads tokens of a row, ids [n], the first of which stands at the position `start`; what the row has there and behind counts no
        more. Returns the logits behind the last one, [V]. For models exported with continuous=True, as decode and copy. These three do not
        wait for calls of other threads, and check no tokens that the model does not."""
        self._is_continuous("prefill")
        self._is_row(row)
        if ids.dim() != 1 or not len(ids) or start < 0 or start + len(ids) > self.max_length:
            raise ValueError(f"ids of shape {list(ids.shape)} at the position {start}: expected at least one token, in the {self.max_length} "
                             "positions of the cache")
        number = torch.tensor(row)
        for first in range(0, len(ids), self.chunk):
            part = ids[None, first:first + self.chunk].long().contiguous()
            logits = (self._decode_row if part.shape[1] == 1 else self._prefill)(part, torch.tensor(start + first), number)
        return logits[0]

    @torch.no_grad()
    def decode(self, ids: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
        """Reads a token of each row, ids [B], at the positions start [B]. Returns the logits, [B, V]. A row that has nothing to read writes
        over a position nevertheless: give the position behind its last token."""
        self._is_continuous("decode")
        return self._decode(ids.long().view(-1, 1), start.long())

    def copy(self, source: int, target: int, count: int) -> None:
        """Copies the first `count` tokens of a row into another one, which takes time for these only."""
        self._is_continuous("copy")
        self._is_row(source)
        self._is_row(target)
        if not 0 <= count <= self.max_length:
            raise ValueError(f"count={count}: the cache has {self.max_length} positions")
        if count and source != target:
            self._copy(torch.arange(max(count, 2)), torch.tensor(source), torch.tensor(target))

    def _is_continuous(self, name: str) -> None:
        if not self.continuous:
            raise ValueError(f"{name}: the rows of this model end at the same position: export it with continuous=True")

    def _is_row(self, row: int) -> None:
        if not 0 <= row < self.batch:
            raise ValueError(f"there is no row {row}: the model was exported with a batch of {self.batch}")

    def _rows(self, ids: torch.Tensor, mask: torch.Tensor | None, times: int = 1) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The tokens that the model reads, and how many positions of each row hold none (None for a model of one row)."""
        if not isinstance(ids, torch.Tensor) or ids.dim() != 2 or ids.dtype not in (torch.int64, torch.int32):
            raise ValueError("input_ids: expected a tensor of integers of shape [batch, length]")
        if not ids.shape[1]:
            raise ValueError("input_ids is empty: give at least one token, such as the one that begins a text")
        if len(ids) * times != self.batch:
            raise ValueError(f"input_ids has {len(ids) * times} rows, but the model was exported with a batch of {self.batch}")
        pad = torch.zeros(len(ids), dtype=torch.int64)
        if mask is not None:
            if mask.shape != ids.shape:
                raise ValueError(f"attention_mask has the shape {list(mask.shape)}, but input_ids {list(ids.shape)}")
            pad = (mask != 0).long().argmax(1)
            wrong = ((mask != 0) != (torch.arange(ids.shape[1])[None] >= pad[:, None])).any(1)
            if wrong.any():
                raise ValueError(f"attention_mask: row {int(wrong.long().argmax())} is not zeros followed by ones: pad on the left "
                                 "(tokenizer.padding_side = \"left\"), and leave no row empty")
        ids = ids.long()
        return (ids[:, int(pad[0]):], None) if self.batch == 1 else (ids, pad)

    def _fits(self, prompt: int, new: int) -> None:
        if prompt + new - 1 > self.max_length:
            raise ValueError(f"{prompt} tokens of input and {new} new ones need {prompt + new - 1} positions of the cache, which has "
                             f"{self.max_length}: export the model with a larger max_length, or ask for fewer tokens (max_new_tokens)")
