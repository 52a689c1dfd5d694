"""The back end "weft" of transformers.exporters."""
from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers.exporters.base import ExportedComponent, ExportedModel
from transformers.exporters.configs import DynamoConfig
from transformers.exporters.exporter_dynamo import DynamoExporter
from transformers.exporters.metadata import ExportMetadata, build_export_metadata, load_treespec
from transformers.exporters.runners.base import ModelRunner

from weft import _weft
from weft.compiler import emitted, loaded, resolved_program
from weft.graph import Graph
from weft.model import Model, load
from weft.quantization import quantize
from weft.transformers.entries import CACHES, programs
from weft.transformers.language import LanguageModel

_KINDS = (None, "f32", "bf16", "int8", "int4")


@dataclass
class WeftConfig(DynamoConfig):
    """How a model is compiled.

    weights: None, as the module has them; "f32"; or of fewer bits, as weft.quantize rounds them: "bf16", "int8", "int4".
    group: how many terms of a row share a scale of "int4": 32, 64 or 128. keep: other kinds for some weights, {"lm_head": "int8"}.
    embeddings: whether tables of embeddings are rounded, too, to 8 bits, or to "bf16".
    activations: "none", or "dynamic" rounds what such weights are multiplied with to 8 bits.
    target: the processor, as for weft.compile.
    Of language models: max_length: positions of the cache, of the prompt and new tokens together. chunk: a prompt is read in pieces of
    at most as many tokens. batch: rows; None: as many as the sample has. cache: what keys and values are stored as: "f16", "bf16", "int8"
    (with a scale for each token and head); None: as the model computes them. continuous: rows have positions of their own, and one row can
    be replaced while the others go on (LanguageModel.prefill, decode, copy)."""

    export_format: str = "weft"
    weights: str | None = None
    group: int = 32
    embeddings: bool = True
    keep: dict[str, str] | None = None
    activations: str = "none"
    target: str | None = None
    max_length: int = 1024
    chunk: int = 256
    batch: int | None = None
    cache: str | None = None
    continuous: bool = False

    def __post_init__(self) -> None:
        if self.weights not in _KINDS:
            raise ValueError(f"weights is None, \"f32\", \"bf16\", \"int8\" or \"int4\", not {self.weights!r}")
        for name in ("max_length", "chunk", "batch"):
            value, least = getattr(self, name), 1 if name == "batch" else 2
            if not (name == "batch" and value is None) and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise ValueError(f"{name}={value!r}: expected an integer from {least} on")
        if self.activations not in ("none", "dynamic"):
            raise ValueError(f"activations is \"none\" or \"dynamic\", not {self.activations!r}")
        kinds = {self.weights, *(self.keep or {}).values()}
        if self.activations == "dynamic" and not kinds & {"int8", "int4"}:
            raise ValueError("activations=\"dynamic\" is for weights of 8 or 4 bits: give weights=\"int8\" or \"int4\"")
        if self.group != 32 and "int4" not in kinds:
            raise ValueError("group is for weights=\"int4\"")
        for name in ("embeddings", "continuous"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is True or False, not {getattr(self, name)!r}")
        if self.cache is not None and self.cache not in CACHES:
            raise ValueError(f"cache is None, {', '.join(map(repr, CACHES))}, not {self.cache!r}")
        if self.quantizer is not None:
            raise ValueError("quantizer: give weights= and activations= instead, which quantise as weft.quantize does")


class WeftExporter(DynamoExporter):
    """Exports models of transformers to shared objects: `export` one graph, `export_for_generation` a LanguageModel."""

    export_format = "weft"
    config_class = WeftConfig
    program_suffix = ".so"
    requires_trust_remote_code = True  # loading a shared object runs its code
    tested_versions: dict[str, str] = {}

    def export_program(self, model: Any, sample_inputs: Any, config: WeftConfig) -> tuple[Model, ExportMetadata]:
        program, metadata = super().export_program(model, sample_inputs, config)
        return compiled({"model": program}, config), metadata

    def export_for_generation(self, model: Any, sample_inputs: Any, config: WeftConfig | dict[str, Any], *, generation_config: Any = None,
                              multi_token_decode: bool = False) -> LanguageModel:
        """Compiles a causal language model. sample_inputs: what generate takes, {"input_ids": ...}, of which only the number of rows counts."""
        if isinstance(config, dict):
            config = WeftConfig(**config)
        ids = sample_inputs["input_ids"] if sample_inputs is not None else None
        batch = config.batch or (1 if ids is None else len(ids))
        if ids is not None and len(ids) != batch:
            raise ValueError(f"the sample has {len(ids)} rows, but batch is {batch}")
        chunk = min(config.chunk, config.max_length)
        if config.weights == "f32":
            model = in_f32(model)
        graphs = programs(model, batch, config.max_length, chunk, config.continuous, config.cache)
        metadata = build_export_metadata(model, {"input_ids": torch.zeros(batch, 1, dtype=torch.int64)}, graphs["decode"], self.required_packages)
        metadata.export_config = {**json.loads(config.to_json_string()), "batch": batch, "chunk": chunk}
        program = compiled(graphs, config)
        lm = LanguageModel({"model": ExportedComponent(program, metadata)}, self.export_format, model.config,
                           generation_config or getattr(model, "generation_config", None))
        lm.folder = program.folder
        source = getattr(model, "name_or_path", "")
        lm.tokenizer_folder = Path(source) if source and os.path.isdir(source) else None
        return lm

    @classmethod
    def save_program(cls, program: Model, path: str | Path) -> None:
        for source, target in zip(cls.program_files(str(program.path)), cls.program_files(str(path))):
            linked(source, target)

    @classmethod
    def load_program(cls, path: str | Path) -> Model:
        return load(path)

    @classmethod
    def program_files(cls, filename: str) -> list[str]:
        return [filename, filename.removesuffix(".so") + ".weights"]


class WeftRunner(ModelRunner):
    """Runs a graph that WeftExporter.export compiled."""

    def __init__(self, program: Model, metadata: ExportMetadata):
        super().__init__(metadata)
        self.program = program
        self.order = load_treespec(metadata.in_spec).children_specs[1].context

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @classmethod
    def from_program(cls, program: Model, metadata: ExportMetadata, device: Any = None) -> WeftRunner:
        return cls(program, metadata)

    def __call__(self, share_inputs: bool = True, share_outputs: bool = False, **kwargs: Any) -> Any:
        kwargs = {**self.metadata.in_constants, **kwargs}
        leaves = torch.utils._pytree.tree_leaves([kwargs[name] for name in self.order])
        out = self.program(*(x for x in leaves if isinstance(x, torch.Tensor)))
        return self.unflatten(list(out) if isinstance(out, tuple) else [out])


def compiled(graphs: dict[str, Any], config: WeftConfig) -> Model:
    """A model with these exported programs as entries, in a temporary folder that lives as long as its attribute `folder`. Weights lie
    once in a file beside the code, which a process maps."""
    folder = tempfile.TemporaryDirectory(prefix="weft-")
    session, raw, names = _weft.Session(), [], list(graphs)
    for name, program in graphs.items():
        file = os.path.join(folder.name, name + ".pt2")
        torch.export.save(resolved_program(program), file)
        raw.append(loaded(session, file))
        if config.weights in ("bf16", "int8", "int4") or config.activations != "none" or config.keep:
            kind = "float" if config.weights in (None, "f32") else config.weights
            if name == "copy":  # it has no weights
                continue
            quantize(Graph(raw[-1]), weights=kind, group=config.group, embeddings=config.embeddings and kind != "float",
                     activations=config.activations, keep=config.keep)
    joined = raw[0] if len(raw) == 1 else session.join(names, raw)
    model = emitted(session, joined, os.path.join(folder.name, "model.so"), target=config.target, weights_file=1)
    for name in names:
        os.unlink(os.path.join(folder.name, name + ".pt2"))
    model.folder = folder
    return model


def in_f32(model: Any) -> Any:
    """The model, or a copy in f32 of one in another type."""
    if all(p.dtype == torch.float32 for p in model.parameters() if p.is_floating_point()):
        return model
    import copy
    return copy.deepcopy(model).float()


def linked(source: str, target: str) -> None:
    """Another name of a file, or a copy on another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
