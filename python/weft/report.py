"""weft.report: what is known of a compiled model, measured: kernels, nodes, memory, sentences; docs/report.md says what each field is."""
from __future__ import annotations

import html
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from weft._weft import Error


class Fields:
    """A part of a report: the fields of its JSON as attributes; one that is left out is None."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _wrapped(self._fields.get(name))

    def __dir__(self) -> list[str]:
        return sorted(self._fields)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._fields.items() if not isinstance(v, (dict, list)))})"


class Kernel(Fields):
    """A kernel of a report."""

    def __init__(self, fields: dict[str, Any], report: Report) -> None:
        super().__init__(fields)
        self._report = report

    @property
    def source(self) -> str | None:
        """The code of the kernel; None where the report has none."""
        return self._report.json["sources"].get(self._fields.get("function"))

    @property
    def nodes(self) -> list[Fields]:
        """The nodes of the exported graph that the kernel computes, or a part of."""
        ids = dict.fromkeys(o["node"] for o in self._fields.get("operators", ()) if o.get("node"))
        return [self._report.nodes[k - 1] for k in ids]


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Fields(value)
    return [_wrapped(v) for v in value] if isinstance(value, list) else value


class Report:
    """A report of weft.report. json: the whole of it, as docs/report.md describes it."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.json = data
        self.kernels = [Kernel(k, self) for k in data["kernels"]]
        self.nodes: list[Fields] = _wrapped(data["nodes"])
        self.buffers: list[Fields] = _wrapped(data["buffers"])
        self.totals = Fields(data["totals"])
        self.machine = Fields(data["machine"])
        self.findings: list[str] = [f["text"] for f in data["findings"]]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the report: a page, if the name ends with .html, or .json."""
        path = os.fspath(path)
        if path.endswith(".json"):
            with open(path, "w", encoding="utf-8") as f:
                json.dump(self.json, f)
        elif path.endswith(".html"):
            with tempfile.TemporaryDirectory() as folder:
                data = os.path.join(folder, "report.json")
                self.save(data)
                _run(data, "-o", path)
        else:
            raise ValueError(f"a report is saved as .html or .json, not as {path}")

    def page(self) -> str:
        """The page as text."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.html")
            self.save(path)
            with open(path, encoding="utf-8") as f:
                return f.read()

    def slowest(self, n: int = 10) -> list[Kernel]:
        """The kernels with most time."""
        return sorted(self.kernels, key=lambda k: -k.seconds)[:n]

    def __str__(self) -> str:
        return "\n".join([f"{self.json['model']['path']}: {1e3 * self.totals.seconds:.3g} ms a call, {len(self.kernels)} kernels", *(f"- {f}" for f in self.findings)])

    def __repr__(self) -> str:
        return f"<Report of {self.json['model']['path']}: {1e3 * self.totals.seconds:.3g} ms, {len(self.kernels)} kernels>"

    def _repr_html_(self) -> str:
        return (f'<iframe title="Weft report" sandbox="allow-scripts" style="width:100%;height:720px;border:1px solid #8884;border-radius:8px" '
                f'srcdoc="{html.escape(self.page())}"></iframe>')


def _program() -> str:
    """The command: of the wheel, of a build folder, or in PATH."""
    here = os.path.dirname(os.path.abspath(__file__))
    for path in (os.path.join(here, "weft"), os.path.join(here, "..", "..", "weft")):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    found = shutil.which("weft")
    if not found:
        raise Error("weft.report needs the command weft, which this package was built without, and which PATH does not have")
    return found


def _run(*args: str) -> None:
    p = subprocess.run([_program(), "report", *args], capture_output=True, text=True, env=dict(os.environ, WEFT_PYTHON=sys.executable))
    if p.returncode:
        raise Error(p.stderr.strip() or f"weft report ended with status {p.returncode}")
    if p.stderr:
        print(p.stderr, end="", file=sys.stderr)


_DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL"}


def _tensors(path: str, values: Iterator[Any]) -> None:
    """Writes tensors of PyTorch as x.0, x.1, ... into a file of safetensors."""
    import torch
    header, parts, at = {}, [], 0
    for k, t in enumerate(values):
        name = str(t.dtype).removeprefix("torch.")
        if name not in _DTYPES:
            raise Error(f"weft.report: input {k} is of {name}: write the inputs into a file, and name it")
        raw = t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if math.prod(t.shape) else b""
        header[f"x.{k}"] = {"dtype": _DTYPES[name], "shape": list(t.shape), "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.writelines([len(text).to_bytes(8, "little"), text, *parts])


def report(model: Any, inputs: Any = None, *, dynamic_shapes: Any = None, threads: int = 1, seconds: float = 1.0, target: str | None = None,
           entry: str | None = None, source: bool = True) -> Report:
    """Compiles a model, measures its kernels, and returns what is known of them.

    model: a torch.nn.Module, which torch.export exports with the tuple `inputs` (and dynamic_shapes); an ExportedProgram
    with such a tuple; or the path of a model file or a compiled model, with the path of a file of inputs, or None.
    seconds: how long calls are timed, and profiled after that. source: whether the report holds the code of kernels."""
    options = ["--threads", str(threads), "--seconds", str(seconds), *(["--target", target] if target else ()), *(["--entry", entry] if entry else ()),
               *(() if source else ("--no-source",))]
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "report.json")
        if isinstance(model, (str, os.PathLike)):
            path = os.fspath(model)
            given = ["--inputs", os.fspath(inputs)] if inputs is not None else []
        else:
            path, given = _exported(model, inputs, dynamic_shapes, folder)
        _run(path, *given, *options, "-o", out)
        with open(out, encoding="utf-8") as f:
            data = json.load(f)
    if not isinstance(model, (str, os.PathLike)):
        data["model"]["path"] = os.path.basename(path)
        data["model"].pop("inputs_from", None)
    return Report(data)


def _exported(model: Any, inputs: Any, dynamic_shapes: Any, folder: str) -> tuple[str, list[str]]:
    """Writes the model and its inputs into files."""
    import torch
    from weft.compiler import archive
    if not isinstance(model, (torch.nn.Module, torch.export.ExportedProgram)):
        raise TypeError(f"weft.report takes a module, an ExportedProgram or a path, not {type(model).__name__}")
    args = inputs if isinstance(inputs, tuple) or inputs is None else (inputs,)
    if args is None and isinstance(model, torch.nn.Module):
        raise TypeError("weft.report of a module needs its inputs, a tuple")
    made, name, _ = archive(model, args, None, dynamic_shapes, False)
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(made)
    if args is None:
        return path, []
    _tensors(os.path.join(folder, "x.safetensors"), (t for t in torch.utils._pytree.tree_leaves(args) if isinstance(t, torch.Tensor)))
    return path, ["--inputs", os.path.join(folder, "x.safetensors")]
