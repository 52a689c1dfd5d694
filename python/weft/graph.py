"""Graphs: of models, of functions on arrays, and what transforms make of them."""
from __future__ import annotations

import functools
import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weft import _weft
from weft.model import Model, TensorInfo
from weft.nodes import Nodes

_RANDOM = {"error": 0, "same": 1, "different": 2}


class Graph(Nodes):
    """A graph of operators, to look at, change, transform and compile. weft.graph and weft.trace make graphs."""

    def __init__(self, raw: Any):
        self.raw = raw

    @property
    def inputs(self) -> list[TensorInfo]:
        return [TensorInfo(*t) for t in self.raw.inputs()]

    @property
    def outputs(self) -> list[TensorInfo]:
        return [TensorInfo(*t) for t in self.raw.outputs()]

    @property
    def state_info(self) -> list[TensorInfo]:
        return [TensorInfo(*t) for t in self.raw.states()]

    def text(self, after: str | None = None) -> str:
        """The text form, as it is or after a pass of the compiler ("canon", "decompose", ...)."""
        return self.raw.text(after)

    __str__ = text

    def svg(self, after: str | None = None) -> str:
        """A drawing by graphviz, whose program `dot` must be there."""
        if not shutil.which("dot"):
            raise FileNotFoundError("the program dot is not there: install graphviz")
        return subprocess.run(["dot", "-Tsvg"], input=self.raw.dot(after), capture_output=True, text=True, check=True).stdout

    def _repr_svg_(self) -> str | None:
        return self.svg() if shutil.which("dot") else None

    def compile(self, **options: Any) -> Model:
        """weft.compile of this graph."""
        from weft.compiler import compile
        return compile(self, **options)

    def vjp(self, wrt: str | Sequence[str] = "inputs", outputs: Sequence[int] | None = None) -> Graph:
        """Gradients: further inputs are ct.NAME for each output, further outputs g.NAME (docs/transforms.md)."""
        count = len(self.outputs)
        for k in outputs or ():
            if not 0 <= k < count:
                raise ValueError(f"vjp: outputs: there is no output {k}: the graph has {count}, numbered from 0")
        if outputs is not None and not outputs:
            raise ValueError("vjp: outputs is empty: there is nothing to differentiate")
        return Graph(self.raw.session.vjp(self.raw, differentiated(wrt), outputs))

    def jvp(self, wrt: str | Sequence[str] = "inputs") -> Graph:
        """Directional derivatives: further inputs are t.NAME, further outputs jy.NAME."""
        return Graph(self.raw.session.jvp(self.raw, differentiated(wrt)))

    def vmap(self, size: int | None = None, in_dims: Sequence[int | None] | int = 0, out_dims: Sequence[int | None] | int = 0,
             randomness: str = "error") -> Graph:
        """A batch of calls, as torch.func.vmap. size None: of any size. in_dims, out_dims: one number for all inputs
        or outputs, or a list with one for each."""
        def many(dims: Sequence[int | None] | int, which: str, count: int) -> list[int | None]:
            if isinstance(dims, int):
                return [dims]
            if len(dims) != count:
                raise ValueError(f"vmap: {which}_dims has length {len(dims)}, the graph has {count} {which}puts")
            return list(dims)
        if randomness not in _RANDOM:
            raise ValueError(f"vmap: randomness is \"error\", \"same\" or \"different\", not {randomness!r}")
        dims = many(in_dims, "in", len(self.inputs)), many(out_dims, "out", len(self.outputs))
        return Graph(self.raw.session.vmap(self.raw, size or 0, *dims, _RANDOM[randomness]))

    def __repr__(self) -> str:
        return f"<weft.Graph ({', '.join(map(str, self.inputs))}) -> ({', '.join(map(str, self.outputs))})>"


def differentiated(wrt: str | Sequence[str]) -> list[str]:
    """The names that an argument wrt= or grad= has."""
    names = [wrt] if isinstance(wrt, str) else list(wrt)
    if not names:
        raise ValueError("nothing to differentiate by: expected \"inputs\", \"params\" or names")
    return names


def graph(model: Any, args: Any = None, kwargs: Any = None, *, dynamic_shapes: Any = None, rng_input: bool = False) -> Graph:
    """The graph of a module, an ExportedProgram, a .pt2 file, or a text in the form of Graph.text."""
    if isinstance(model, Graph):
        return model
    session = _weft.Session()
    if isinstance(model, str) and (model.lstrip().startswith("graph ") or "\n" in model):
        return Graph(session.parse(model, "graph"))
    if isinstance(model, str) and not os.path.exists(model):
        raise _weft.Error(f"{model}: there is no such file; a graph in text form begins with \"graph @NAME\"")
    from weft.compiler import loaded
    return Graph(loaded(session, model, args, kwargs, dynamic_shapes, rng_input=rng_input))


def vjp(model: Any, *args: Any, **named: Any) -> Graph:
    """weft.graph(model).vjp(...)"""
    return graph(model).vjp(*args, **named)


def jvp(model: Any, *args: Any, **named: Any) -> Graph:
    """weft.graph(model).jvp(...)"""
    return graph(model).jvp(*args, **named)


def vmap(model: Any, *args: Any, **named: Any) -> Graph:
    """weft.graph(model).vmap(...)"""
    return graph(model).vmap(*args, **named)


# ---- functions on arrays ----

@functools.cache
def _schemas() -> dict[str, list[tuple[str, list[tuple[str, str, bool, bool]]]]]:
    """By the name of an ATen operator without overload: its overloads, with (name, type, default?, named only?) of
    the arguments."""
    out: dict[str, list[Any]] = {}
    for row in _weft.operators():
        for name in (row["name"], *row["aliases"].split()):
            if name.startswith("aten."):
                out.setdefault(name.split(".")[1], []).append((name, _arguments(row["schema"])))
    return out


def _arguments(schema: str) -> list[tuple[str, str, bool, bool]]:
    inside = schema[schema.index("(") + 1: schema.rindex(") ->")]
    out, only = [], False
    for part in re.split(r",\s*(?![^\[(]*[\])])", inside):
        if part == "*":
            only = True
            continue
        found = re.match(r"(\S+) (\w+)(=.*)?$", part.strip())
        if found:
            out.append((found[2], found[1], found[3] is not None, only))
    return out


def _fits(value: Any, kind: str) -> bool:
    if value is None:
        return "?" in kind
    base = kind.rstrip("?")
    if base.startswith("Tensor"):
        return isinstance(value, (list, tuple)) if "[" in base else isinstance(value, Array)
    if isinstance(value, Array):
        return False
    if "[" in base:
        return isinstance(value, (list, tuple))
    if isinstance(value, str):
        return base in ("str", "ScalarType", "Dimname") or (isinstance(value, _weft.Size) and base in ("int", "SymInt", "Scalar"))
    if isinstance(value, bool):
        return base in ("bool", "Scalar")
    if isinstance(value, int):
        return base in ("int", "SymInt", "float", "Scalar")
    return isinstance(value, float) and base in ("float", "Scalar")


def _choose(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> str:
    """The overload that takes these arguments."""
    if name not in _schemas():
        raise AttributeError(f"Weft has no operator aten.{name}")
    for full, arguments in sorted(_schemas()[name], key=lambda o: (len(o[1]), o[0])):
        places = [a for a in arguments if not a[3]]
        if len(args) > len(places) or any(not _fits(v, a[1]) for v, a in zip(args, places)):
            continue
        kinds = {a[0]: a[1] for a in arguments[len(args):] + [a for a in arguments if a[3]]}
        if any(k not in kinds or not _fits(v, kinds[k]) for k, v in named.items()):
            continue
        given = {a[0] for a in places[: len(args)]} | named.keys()
        if all(a[2] or a[0] in given for a in arguments):
            return full
    forms = "; ".join(f"{full}({', '.join(a[1] + ' ' + a[0] for a in arguments)})" for full, arguments in _schemas()[name])
    raise TypeError(f"aten.{name} takes no such arguments: {forms}")


class Array:
    """A value of a trace. Methods are ATen's operators: x.relu(), x.sum([0], keepdim=True)."""
    __array_ufunc__ = None  # NumPy leaves its operators to those of this class

    def __init__(self, trace: Any, value: Any):
        self._trace, self._value = trace, value

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The extents; None for one that is no number."""
        return self._trace.shape(self._value)

    @property
    def T(self) -> Array:
        return self.t()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in _schemas():
            raise AttributeError(f"Weft has no operator aten.{name}")
        return functools.partial(_call, self._trace, name, self)

    def __bool__(self) -> bool:
        raise TypeError("an array of a trace is neither true nor false: its elements are known only when the model runs. Choose elements by "
                        "condition.where(a, b), combine conditions by & and |, compare twice instead of a < x < b")

    def __len__(self) -> int:
        shape = self.shape
        if not shape or shape[0] is None:
            raise TypeError("an array without dimensions has no length" if not shape else "the length of this array is known only when the model runs")
        return shape[0]

    def __iter__(self) -> Iterator[Array]:
        """The rows, where their number is known."""
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, index: Any) -> Array:
        out, at = self, 0
        for i in index if isinstance(index, tuple) else (index,):
            if i is None:
                out = out.unsqueeze(at)
                at += 1
            elif isinstance(i, int):
                out = out.select(at, i)
            elif isinstance(i, slice):
                out = out.slice(at, 0 if i.start is None else i.start, 2**63 - 1 if i.stop is None else i.stop, i.step or 1)
                at += 1
            else:
                raise TypeError(f"an index of {type(i).__name__}: use index_select or gather")
        return out

    __hash__ = None  # type: ignore[assignment]


def _call(trace: Any, name: str, *args: Any, **named: Any) -> Any:
    args = tuple(_lifted(trace, a) for a in args)
    named = {k: _lifted(trace, v) for k, v in named.items()}
    full = _choose(name, args, named)
    try:
        value = trace.call(full, _plain(args), {k: _plain(v) for k, v in named.items()})
    except _weft.Error as e:
        if "has no key (argument rng)" not in str(e):
            raise
        raise _weft.Error(f"{e}: pass rng=key, where key is an array of u64[2], and another stream= to each call with the same key") from None
    n = _returns()[full]
    return Array(trace, value) if n == 1 else tuple(Array(trace, trace.result(value, k)) for k in range(n))


_numbers = itertools.count()


def _lifted(trace: Any, a: Any) -> Any:
    """Arrays of NumPy and tensors become constants."""
    if isinstance(a, (list, tuple)):
        return type(a)(_lifted(trace, x) for x in a)
    if isinstance(a, Array) or not (hasattr(a, "__array_interface__") or hasattr(a, "__dlpack__")) or not getattr(a, "shape", ()):
        return a.item() if hasattr(a, "item") and not isinstance(a, Array) else a
    from weft.model import _NUMPY, _contiguous
    a = _contiguous(a)
    dtype = {v: k for k, v in _NUMPY.items()}.get(str(a.dtype).removeprefix("torch."))
    if dtype is None:
        raise TypeError(f"a constant of dtype {a.dtype}, which Weft lacks")
    return Array(trace, trace.param(f"constant_{next(_numbers)}", f"{dtype}[{', '.join(map(str, a.shape))}]", a))


def _plain(a: Any) -> Any:
    if isinstance(a, (list, tuple)):
        return type(a)(map(_plain, a))
    return a._value if isinstance(a, Array) else a


@functools.cache
def _returns() -> dict[str, int]:
    """The number of results of each operator."""
    out = {}
    for row in _weft.operators():
        text = row["schema"].rsplit("->", 1)[-1].strip()
        for name in (row["name"], *row["aliases"].split()):
            out[name] = text.count("Tensor") if text.startswith("(") else 1
    return out


def _operator(name: str) -> Callable[[Array, Any], Array]:
    return lambda self, other: _call(self._trace, name, self, other)


def _of_number(name: str) -> Callable[[Array, Any], Array]:
    return lambda self, number: _call(self._trace, name, number, self)


def _reversed(name: str, of_number: Callable[[Array, Any], Array]) -> Callable[[Array, Any], Array]:
    """An operator whose left side is no Array: an array of NumPy or a tensor, which becomes a constant, or a number."""
    def f(self: Array, other: Any) -> Array:
        left = _lifted(self._trace, other)
        return _call(self._trace, name, left, self) if isinstance(left, Array) else of_number(self, left)
    return f


# By Python's name: ATen's operator, and what it is with a number on the left, whose dtype does not count.
_OPERATORS: dict[str, tuple[str, Callable[[Array, Any], Array]]] = {
    "add": ("add", _operator("add")), "mul": ("mul", _operator("mul")), "matmul": ("matmul", _of_number("matmul")),
    "sub": ("sub", _operator("rsub")), "truediv": ("div", lambda self, number: self.reciprocal() * number),
    "floordiv": ("floor_divide", lambda self, number: (self.zeros_like() + number) // self),
    "mod": ("remainder", _of_number("remainder")), "pow": ("pow", _of_number("pow")), "and": ("bitwise_and", _operator("bitwise_and")),
    "or": ("bitwise_or", _operator("bitwise_or")), "xor": ("bitwise_xor", _operator("bitwise_xor"))}
for _name, (_method, _number) in _OPERATORS.items():
    setattr(Array, f"__{_name}__", _operator(_method))
    setattr(Array, f"__r{_name}__", _reversed(_method, _number))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Array, f"__{_name}__", _operator(_name))
for _name, _method in {"neg": "neg", "abs": "abs", "invert": "bitwise_not"}.items():
    setattr(Array, f"__{_name}__", functools.partialmethod(lambda self, name: _call(self._trace, name, self), _method))


def trace(function: Callable[..., Any], *types: str, symbols: dict[str, tuple[int, int]] | None = None, name: str | None = None) -> Graph:
    """The graph of a function on arrays. types: of its parameters, "f32[B, 64]".

    The function gets Arrays, whose methods are ATen's operators; it returns an Array, or a tuple or dict of
    them. Arrays of NumPy and tensors that it uses become constants. symbols: ranges of the sizes in types.
    """
    return Graph(traced(_weft.Session(), function, types, symbols, name or getattr(function, "__name__", "function").strip("<>")))


def traced(session: Any, function: Callable[..., Any], types: Sequence[str], symbols: dict[str, tuple[int, int]] | None, name: str) -> Any:
    """What weft.trace does, in a session."""
    import inspect
    t = session.trace(name)
    used = set(re.findall(r"[^\W\d]\w*", " ".join(type[type.find("["):] for type in types)))
    for size, (lo, hi) in (symbols or {}).items():
        if size not in used:
            raise ValueError(f"symbols: no type has the size {size}; their sizes are {', '.join(sorted(used)) or 'numbers'}")
        t.symbol(size, lo, hi)
    parameters = list(inspect.signature(function).parameters)
    if len(parameters) < len(types):
        parameters = [f"x{k}" for k in range(len(types))]
    arrays = [Array(t, t.input(p, type)) for p, type in zip(parameters, types)]
    out = function(*arrays)
    if isinstance(out, dict):
        rows = list(out.items())
    elif isinstance(out, (tuple, list)):
        rows = [(f"y{k}", v) for k, v in enumerate(out)]
    else:
        rows = [("y", out)]
    for key, value in rows:
        if not isinstance(value, Array):
            raise TypeError(f"weft.trace: the function returns {type(value).__name__} for {key}, expected arrays of the trace")
        t.output(key, value._value)
    return t.end()
