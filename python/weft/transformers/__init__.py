"""weft.transformers: language models of Hugging Face's transformers, compiled.

    from weft.transformers import WeftConfig, WeftExporter
    lm = WeftExporter().export_for_generation(model, {"input_ids": ids}, WeftConfig(weights="int4", max_length=1024))
    lm.save_pretrained("folder")

    lm = weft.transformers.load("folder")
    ids = lm.generate(input_ids, max_new_tokens=64, streamer=TextStreamer(tokenizer))

Importing it registers the back end "weft" of transformers.exporters. The folder has export.json (what was exported, and how), model.so
(code, with the entries prefill and decode), model.weights (the weights, once), config.json, generation_config.json, and the
tokenizer's files. entries.py says what the entries compute, language.py how generate runs, exporter.py how a model is compiled."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

try:
    from transformers.exporters import register_backend
except ImportError as e:
    raise ImportError(f"weft.transformers needs transformers 5.24 or newer, with transformers.exporters: {e}") from e

from weft.transformers.exporter import WeftConfig, WeftExporter, WeftRunner
from weft.transformers.language import LanguageModel

register_backend(WeftExporter, WeftRunner)


def export(model: Any, folder: str | os.PathLike[str], sample: Any = None, **options: Any) -> LanguageModel:
    """Compiles a causal language model into a folder, and loads it from there. options: those of WeftConfig."""
    WeftExporter().export_for_generation(model, sample, WeftConfig(**options)).save_pretrained(folder)
    return load(folder)


def load(folder: str | os.PathLike[str]) -> LanguageModel:
    """Loads what export or save_pretrained wrote into a folder of this machine. This runs the folder's code (docs/security.md)."""
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{os.fspath(folder)}: there is no such folder")
    lm = LanguageModel.from_pretrained(os.fspath(folder), trust_remote_code=True)
    lm.tokenizer_folder = Path(folder)
    return lm


__all__ = ["LanguageModel", "WeftConfig", "WeftExporter", "WeftRunner", "export", "load"]
