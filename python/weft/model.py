"""Compiled models: load them, call them, look into them."""
from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, NamedTuple

from weft import _weft

Function = _weft.Function


# Options of the command as messages name them, and what they are in Python.
_OPTIONS = {"replaceable-weights": "replaceable=True"}
_WORDS = {"and", "or", "as", "compiles", "writes", "with", "expected", "to", "for", "in"}  # which may follow an option in a sentence


@contextlib.contextmanager
def in_python() -> Iterator[None]:
    """Messages name options as Python does: "--backend c" is backend="c"."""
    def named(m: re.Match[str]) -> str:
        name, value = m[1].replace("-", "_"), m[2] or ""
        if m[1] in _OPTIONS:
            return _OPTIONS[m[1]] + value
        return f'{name}="{value[1:]}"' if value and value[1:] not in _WORDS else f"{name}={value}"
    try:
        yield
    except (_weft.Error, ValueError) as e:
        text = re.sub(r"(?<![\w-])--([a-z][a-z-]*)( [a-z0-9._-]+)?", named, str(e))
        if text == str(e):
            raise
        raise type(e)(text) from None


class TensorInfo(NamedTuple):
    """An input, an output or a state. An extent is a number, or the text of an expression of symbols."""
    name: str
    dtype: str
    shape: tuple[int | str, ...]
    role: str | None
    donates: int
    requires_grad: int

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


class State(MutableMapping):
    """The state of a model by name: reading copies the current value, setting changes it."""

    def __init__(self, model: Model):
        self._model = model
        self._number = {s.name: k for k, s in enumerate(model.state_info)}

    def _at(self, name: str) -> int:
        if name not in self._number:
            raise KeyError(f"the model has no state {name!r}: it has {', '.join(self._number) or 'none'}")
        return self._number[name]

    def __getitem__(self, name: str) -> Any:
        k = self._at(name)
        info = self._model.state_info[k]
        value = _empty(info.dtype, info.shape)
        self._model.instance.state_get(k, value)
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        self._model.instance.state_set(self._at(name), _detached(value))

    def __delitem__(self, name: str) -> None:
        raise TypeError("state cannot be removed from a model")

    def __iter__(self) -> Iterator[str]:
        return iter(self._number)

    def __len__(self) -> int:
        return len(self._number)

    def reset(self) -> None:
        """Sets all state to its initial contents."""
        self._model.instance.state_reset()


@functools.cache
def _record(names: tuple[str, ...]) -> Callable[[tuple], tuple]:
    """Makes a tuple with fields of these names of a tuple. A name that is no identifier has the number of the result: _2."""
    made = namedtuple("Results", names, rename=True)
    made.__reduce__ = lambda self: (_results, (names, tuple(self)))
    return made._make


def _results(names: tuple[str, ...], values: tuple) -> tuple:
    """Of a pickle."""
    return _record(names)(values)


class Entries(dict):
    """Entries by name."""

    def __missing__(self, name: str) -> Model:
        raise KeyError(f"the model has no entry {name!r}: it has {', '.join(self)}")


class Model(Function):
    """A compiled model. It is called like a function: positional inputs in the model's order, or by name.

    Outputs are of the class of the first input that is a tensor of PyTorch (of any class with DLPack's C
    exchange interface), else NumPy arrays; out= takes tensors for them. Several outputs are a tuple, also by name
    (y.logits). The
    interpreter lock is released during the call, and several threads may call one model; only calls that
    write state exclude each other (BusyError): clone() makes a model with state of its own.
    """

    def __new__(cls, program: Any, instance: Any = None, entry: int = 0, path: str | None = None):
        return super().__new__(cls, instance or program.open(), entry)

    def __init__(self, program: Any, instance: Any = None, entry: int = 0, path: str | None = None):
        self.program = program
        self.path = path
        self.weights_path: str | None = None
        self.by_value = False
        self._entry = entry
        self.info = program.describe()
        self._siblings: dict[str, Model] | None = None
        self.threads = default_threads()
        if len(self.outputs) > 1:
            self.record = _record(tuple(t.name for t in self.outputs))

    @property
    def name(self) -> str:
        return self.info["name"]

    @property
    def target(self) -> str:
        return self.info["target"]

    @property
    def entry(self) -> str:
        """The name of the entry that a call runs."""
        return self.info["entries"][self._entry]["name"]

    @property
    def inputs(self) -> list[TensorInfo]:
        return [TensorInfo(*t) for t in self.info["entries"][self._entry]["inputs"]]

    @property
    def outputs(self) -> list[TensorInfo]:
        return [TensorInfo(*t) for t in self.info["entries"][self._entry]["outputs"]]

    @property
    def symbols(self) -> dict[str, tuple[int, int]]:
        """The sizes that are known only at a call, with their ranges."""
        return {name: (lo, hi) for name, lo, hi in self.info["entries"][self._entry]["symbols"]}

    @property
    def state_info(self) -> list[TensorInfo]:
        return [TensorInfo(*t) for t in self.info["state"]]

    @property
    def state(self) -> State:
        return State(self)

    @property
    def entries(self) -> Mapping[str, Model]:
        """The entries of the model by name. They share weights and state."""
        if self._siblings is None:
            names = [e["name"] for e in self.info["entries"]]
            others = Entries({n: self if k == self._entry else self._beside(self.instance, k) for k, n in enumerate(names)})
            for m in others.values():
                m._siblings = others
        return self._siblings

    def clone(self) -> Model:
        """Another model with the same weights in memory and a copy of the state."""
        return self._beside(self.instance.clone(), self._entry)

    def _beside(self, instance: Any, entry: int) -> Model:
        other = Model(self.program, instance, entry, self.path)
        other.threads, other.weights_path, other.by_value = self.threads, self.weights_path, self.by_value
        other.timeout, other.memory_limit, other.comm = self.timeout, self.memory_limit, self.comm
        return other

    def set_weights(self, weights: Mapping[str, Any], *, strict: bool = True) -> None:
        """Replaces parameters, as in a state dictionary. The model was compiled with replaceable=True."""
        with in_python():
            self.instance.set_weights({name: _contiguous(w, f"weight {name}") for name, w in weights.items()}, not strict)

    def weights(self, *names: str) -> dict[str, Any]:
        """Copies of the replaceable parameters; of all of them if no names are given."""
        rows = {name: (dtype, shape) for name, dtype, shape, _ in self.info["replaceable"]}
        for name in names:
            if name not in rows:
                raise KeyError(f"the model has no replaceable parameter {name}")
        values = {name: _empty(*rows[name]) for name in names or rows}
        self.instance.get_weights(values)
        return values

    def close(self) -> None:
        """Frees the instance; later calls are errors."""
        self.instance.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *args: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        ins, outs = ", ".join(map(str, self.inputs)), ", ".join(map(str, self.outputs))
        return f"<weft.Model {self.name} ({ins}) -> ({outs})>"

    def __reduce__(self):
        """By path and hash, or, if by_value is set, with the contents of its files. State is not pickled."""
        if self.path is None:
            raise TypeError("a model in memory cannot be pickled: compile it with path=")
        if not self.by_value:
            return _unpickle, (self.path, self.info["hash"], self.entry, self.weights_path)
        names = [self.path]
        if self.info["weights_file"]:
            names.append(self.weights_path or os.path.join(os.path.dirname(self.path), self.info["weights_file"]))
        contents = []
        for name in names:
            with open(name, "rb") as f:
                contents.append(f.read())
        return _from_contents, (contents, self.info["weights_file"], self.entry)


def _unpickle(path: str, hash: str, entry: str, weights: str | None) -> Model:
    model = load(path, weights=weights)
    if model.info["hash"] != hash:
        raise _weft.Error(f"{path} is another model than the one that was pickled")
    return model.entries[entry]


def _from_contents(contents: list[bytes], weights_file: str | None, entry: str) -> Model:
    """A model of the contents of its files, which the process keeps in a folder of its own until it ends."""
    import atexit
    import shutil
    import tempfile
    folder = tempfile.mkdtemp(prefix="weft-")
    atexit.register(shutil.rmtree, folder, True)
    path = os.path.join(folder, "model.so")
    for file, data in zip([path, os.path.join(folder, os.path.basename(weights_file or ""))], contents):
        with open(file, "wb") as f:
            f.write(data)
    model = load(path)
    model.by_value = True
    return model.entries[entry]


def load(path: str | os.PathLike[str], *, weights: str | os.PathLike[str] | None = None, symbol: str = "weft_model", verify: bool = False) -> Model:
    """Loads a shared object that Weft compiled. weights: the path of its weight file, if that is not beside
    it. verify: read all of the weight file and compare its checksum."""
    path = os.path.abspath(os.fspath(path))
    program = _weft.load(_spelled(path), symbol)
    model = Model(program, program.open(_weights_beside(program, path) if weights is None else weights, verify), 0, path)
    model.weights_path = None if weights is None else os.path.abspath(os.fspath(weights))
    return model


def _weights_beside(program: Any, path: str) -> str | None:
    """The weight file of the model, if it is there. The loader knows a file of several names by the first one, whose folder may be gone."""
    name = program.describe()["weights_file"]
    files = [os.path.join(os.path.dirname(p), name) for p in (os.path.realpath(path), path)] if name else []
    return next((f for f in files if os.path.exists(f)), None)


_loaded: dict[str, list[tuple[int, ...]]] = {}


def _spelled(path: str) -> str:
    """dlopen takes a path that it knows for the file that it loaded from there, so a file that was replaced since has another
    spelling of its path: /folder/./model.so."""
    try:
        s = os.stat(path)
    except OSError:
        return path
    files, file = _loaded.setdefault(path, []), (s.st_dev, s.st_ino, s.st_mtime_ns, s.st_size)
    if file not in files:
        files.append(file)
    folder, name = os.path.split(path)
    return os.path.join(folder, *["."] * files.index(file), name)


def default_threads() -> int:
    """The threads of PyTorch where that is imported, else 0: the processors of the process."""
    torch = sys.modules.get("torch")
    return torch.get_num_threads() if torch and hasattr(torch, "get_num_threads") else 0


_NUMPY = {"f32": "float32", "f64": "float64", "f16": "float16", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8",
          "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool", "c64": "complex64", "c128": "complex128", "bf16": "bfloat16",
          "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
          "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2fnuz": "float8_e5m2fnuz"}


def _empty(dtype: str, shape: tuple[int, ...]) -> Any:
    """A new tensor: of PyTorch where that is imported, else of NumPy."""
    torch = sys.modules.get("torch")
    if torch:
        return torch.empty(shape, dtype=getattr(torch, _NUMPY[dtype]))
    import numpy
    return numpy.empty(shape, numpy.dtype(_NUMPY[dtype]))


def _detached(value: Any) -> Any:
    return value.detach() if hasattr(value, "detach") else value


def resolved(tensor: Any) -> Any:
    """The tensor of PyTorch, or a copy if it is the conjugate or the negative of its memory."""
    return tensor.resolve_conj().resolve_neg()


def _contiguous(value: Any, what: str = "constant") -> Any:
    """The value as a row-major tensor or array in native byte order, whose memory has its elements as they are read."""
    if hasattr(value, "detach"):
        if str(value.layout) != "torch.strided":
            raise TypeError(f"{what}: expected a dense tensor, got one of layout {value.layout}")
        return resolved(value.detach()).contiguous()
    import numpy
    if isinstance(value, numpy.ma.MaskedArray):
        raise TypeError(f"{what}: a masked array, whose mask would be lost: give x.filled(value)")
    array = numpy.asarray(value, order="C")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
