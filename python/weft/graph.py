"""Graphs: of models, of functions on arrays, and what transforms make of them."""
from __future__ import annotations

import functools
import itertools
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weft import _weft
from weft.model import Model, TensorInfo
from weft.nodes import Nodes, operator_name

_RANDOM = {"error": 0, "same": 1, "different": 2}


class Graph(Nodes):
    """A graph of operators, to look at, change, transform and compile. weft.graph and weft.trace make graphs."""

    def __init__(self, raw: Any):
        self.raw = raw
        self.quantization: dict[str, Any] | None = None

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

    def weights(self) -> dict[str, Any]:
        """Copies of the constants, and of what states begin with: weft.graph(g.text(), weights=g.weights()) is an equal graph. Keys are
        the names of parameters where the text has them too, else the numbers of constants, "#3"."""
        found: dict[str, Any] = {}
        states = {m["state"]: m for m in _CONSTANT.finditer(self.text().split("\n", 1)[0]) if m["state"]}
        for node in self.nodes:
            if node.op == "get_attr":
                m = states.get(node.name) or _CONSTANT.search(node.format_node())
                key = f"#{m['k'] or m['i']}" if m else None
                if m and m["k"] and _exported(node.target) in (node.name, node.name[2:]) and node.target not in found:
                    key = node.target
                if key:
                    found[key] = node.value()
            for body in node.kwargs.values():
                if isinstance(body, Graph):
                    found |= body.weights()
        return found

    def svg(self, after: str | None = None) -> str:
        """A drawing by graphviz, whose program `dot` must be there."""
        if not shutil.which("dot"):
            raise FileNotFoundError("the program dot is not there: install graphviz")
        return subprocess.run(["dot", "-Tsvg"], input=self.raw.dot(after), capture_output=True, text=True, check=True).stdout

    def _repr_svg_(self) -> str | None:
        return self.svg() if shutil.which("dot") else None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the graph with its constants into a file, which weft.graph, weft.compile and the command read: model.weft."""
        _weft.save_graph(self.raw, path)

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


def graph(model: Any, args: Any = None, kwargs: Any = None, *, dynamic_shapes: Any = None, rng_input: bool = False, ops: Any = (),
          weights: Any = None) -> Graph:
    """The graph of a module, an ExportedProgram, a .pt2 file, or a text in the form of Graph.text.

    ops: libraries of operators that the model calls (docs/user-operators.md). weights: what the constants of a text are, for
    which the text has numbers only: a Graph, whose constants have these numbers; or a dict of arrays or tensors by name.
    """
    from weft.compiler import loaded, paths, session_with
    if isinstance(model, Graph):
        if paths("ops", ops) or weights is not None:
            raise ValueError("weft.graph: ops= and weights= are for what is loaded, and this is a graph already")
        return model
    if isinstance(model, str) and (model.lstrip().startswith("graph ") or "\n" in model):
        return _of_text(model, weights, ops)
    if weights is not None:
        raise ValueError("weft.graph: weights= is for a graph in text form")
    if isinstance(model, str) and not os.path.exists(model):
        raise _weft.Error(f"{model}: there is no such file; a graph in text form begins with \"graph @NAME\"")
    return Graph(loaded(session_with(ops), model, args, kwargs, dynamic_shapes, rng_input=rng_input))


# A constant, or what a state begins with: "%p_weight = const #1 f32[2, 3] sha=3c6e", "%cache: f32[4] buffer #2 "cache"".
_CONSTANT = re.compile(r'%(?P<name>[\w.$]+) = const #(?P<k>\d+) (?P<type>\w+\[[^\]]*\])(?: sha=\w+)?|'
                       r'%(?P<state>[\w.$]+): (?P<of>\w+\[[^\]]*\]) (?:param|buffer) #(?P<i>\d+)(?: "(?P<label>[^"]*)")?')


def _of_text(text: str, weights: Any, ops: Any) -> Graph:
    from weft.compiler import paths, session_with
    if isinstance(weights, Graph):
        if paths("ops", ops):
            raise ValueError("weft.graph: weights= is a graph, whose operators there are: leave ops= out")
        session = weights.raw.session
        return Graph(session.parse_like(weights.raw, text, "graph"))
    rows = {int(m["k"] or m["i"]): m for m in _CONSTANT.finditer(text)}
    if not rows:
        return Graph(session_with(ops).parse(text, "graph"))
    if weights is None:
        raise _weft.Error(f"graph: the text has constants, such as #{min(rows)}, without their contents: weft.graph(text, weights=...) takes a "
                          "graph that has them, or a dict")
    return _with_weights(session_with(ops), text, rows, weights)


def _with_weights(session: Any, text: str, rows: dict[int, re.Match[str]], weights: dict[str, Any]) -> Graph:
    """Makes a graph that has the constants with the numbers of the text, and parses the text like it."""
    from weft.model import _contiguous
    t = session.trace("weights")
    t.output("y", t.input("x", "f32[]"))
    donor = t.end()
    unread = set(weights)
    for k in range(1, max(rows) + 1):
        m = rows.get(k)
        if not m:
            _weft.graph_constant(donor, None, _stand_in())
            continue
        name, type = m["name"] or m["label"] or m["state"], m["type"] or m["of"]
        key = next((w for w in (f"#{k}", name) if w in weights), None) or next((w for w in weights if _exported(w) in (name, name[2:])), None)
        if key is None:
            raise ValueError(f"weft.graph: weights has no {name}, which is constant #{k} of the text, {type}")
        label = key.removeprefix("#") if name.startswith("p_") and key in unread else None  # a parameter's, which is there once
        unread.discard(key)
        node = _weft.graph_constant(donor, label, _contiguous(weights[key]))
        made = _CONSTANT.search(_weft.node_text(donor, node))
        if made["type"] != type:
            raise ValueError(f"weft.graph: {key} is {made['type']}, expected {type}, as %{name} of the text")
        if int(made["k"]) != k:
            raise _weft.Error(f"graph: constant #{k} cannot be made: it is #{made['k']}")
    if unread:
        raise ValueError(f"weft.graph: the text has no constant {', '.join(sorted(unread))}")
    return Graph(session.parse_like(donor, re.sub(r"( = const #\d+ \w+\[[^\]]*\]) sha=\w+", r"\1", text), "graph"))


def _exported(name: str) -> str:
    """What torch.export makes of the name of a parameter, behind "p_"."""
    return name.replace(".", "_")


def _stand_in() -> Any:
    """Stands for a constant that the text does not have."""
    import array
    return memoryview(array.array("f", [0.0]))


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
    return _called(trace, _choose(name, args, named), args, named)


def _called(trace: Any, full: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    try:
        value = trace.call(full, _plain(args), {k: _plain(v) for k, v in named.items()})
    except _weft.Error as e:
        if "has no key (argument rng)" not in str(e):
            raise
        raise _weft.Error(f"{e}: pass rng=key, where key is an array of u64[2], and another stream= to each call with the same key") from None
    n = trace.nresult(value)
    return Array(trace, value) if n < 0 else tuple(Array(trace, trace.result(value, k)) for k in range(n))


# ---- what is called by its name, branches, loops ----

_tracing = threading.local()


def _trace_now(what: str) -> Any:
    """The trace of the function that weft.trace calls in this thread."""
    traces = getattr(_tracing, "traces", None)
    if not traces:
        raise RuntimeError(f"weft.{what} is for functions that weft.trace traces")
    return traces[-1]


def call(op: Any, *args: Any, **named: Any) -> Any:
    """In a function that is traced: calls an operator by its name, "aten.clamp", of the user "mylib::decay", or one of torch.ops."""
    trace = _trace_now("call")
    full = operator_name(op)
    return _called(trace, full, tuple(_lifted(trace, a) for a in args), {k: _lifted(trace, v) for k, v in named.items()})


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [x for v in tree.values() for x in _leaves(v)]
    return [x for v in tree for x in _leaves(v)] if isinstance(tree, (tuple, list)) else [] if tree is None else [tree]


def _like(tree: Any, leaves: Iterator[Any]) -> Any:
    """The tree with other leaves."""
    if isinstance(tree, dict):
        return {k: _like(v, leaves) for k, v in tree.items()}
    if isinstance(tree, (tuple, list)):
        made = [_like(v, leaves) for v in tree]
        return type(tree)(*made) if hasattr(tree, "_fields") else type(tree)(made)
    return None if tree is None else next(leaves)


def _values(trace: Any, what: str, tree: Any) -> list[Any]:
    """Numbers become arrays without dimensions: i64, f32, bool."""
    out = []
    for leaf in _leaves(tree):
        leaf = _lifted(trace, leaf)
        if isinstance(leaf, (bool, int, float)):
            dtype = "bool" if isinstance(leaf, bool) else "i64" if isinstance(leaf, int) else "f32"
            leaf = Array(trace, trace.call("aten.full", ([], leaf), {"dtype": dtype}))
        if not isinstance(leaf, Array):
            raise TypeError(f"weft.{what}: expected arrays and numbers, in tuples, lists and dicts, got {type(leaf).__name__}")
        out.append(leaf._value)
    return out


def _arrays(trace: Any, values: Sequence[Any]) -> Iterator[Array]:
    return iter([Array(trace, v) for v in values])


def _same_tree(what: str, a: Any, b: Any) -> None:
    if repr(_like(a, itertools.repeat(0))) != repr(_like(b, itertools.repeat(0))):
        raise TypeError(f"weft.{what}: {_shape_of(a)} expected, got {_shape_of(b)}")


def _shape_of(tree: Any) -> str:
    return repr(_like(tree, itertools.repeat("array"))).replace("'array'", "array")


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """In a function that is traced: the results of true_fn(*operands) where the array pred, bool[], is true, else of false_fn. Both
    give arrays of the same types. As torch.cond."""
    trace, trees = _trace_now("cond"), []

    def branch(f: Callable[..., Any]) -> Callable[[Any], list[Any]]:
        def body(_: Any) -> list[Any]:
            trees.append(f(*operands))
            if len(trees) > 1:
                _same_tree("cond: both branches give the same", *trees)
            return _values(trace, "cond", trees[-1])
        return body
    (test,) = _values(trace, "cond", [pred])
    out = trace.cond(test, branch(true_fn), branch(false_fn))
    return _like(trees[0], _arrays(trace, out))


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried: Sequence[Any], *, most: int | None = None) -> Any:
    """In a function that is traced: as long as cond_fn(*carried) is true, a bool[], carried becomes body_fn(*carried), of the same types.
    Returns the last one. most: there are never more rounds, which gradients need to know; a call with more fails. As
    torch.while_loop."""
    trace = _trace_now("while_loop")
    if not isinstance(carried, (tuple, list)):
        raise TypeError(f"weft.while_loop: carried is a tuple of arrays, (x,), not {type(carried).__name__}")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise ValueError(f"weft.while_loop: most is a number of rounds from 1 on, not {most!r}")

    def test(values: list[Any]) -> list[Any]:
        return _values(trace, "while_loop", [cond_fn(*_like(carried, _arrays(trace, values)))])

    def body(values: list[Any]) -> list[Any]:
        out = body_fn(*_like(carried, _arrays(trace, values)))
        out = type(carried)([out]) if len(carried) == 1 and not isinstance(out, (tuple, list)) else out
        _same_tree("while_loop: body_fn gives what it gets,", tuple(carried), tuple(out) if isinstance(out, (tuple, list)) else out)
        return _values(trace, "while_loop", out)
    out = trace.while_loop(_values(trace, "while_loop", carried), test, body, most or 0)
    return _like(carried, _arrays(trace, out))


def scan(combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, reverse: bool = False) -> tuple[Any, Any]:
    """In a function that is traced: carry, y = combine_fn(carry, x) for each x along the first dimension of the arrays xs, with init as the
    first carry. Returns the last carry and all y, stacked. reverse: from the last x to the first; y stay in their places."""
    trace, trees = _trace_now("scan"), []
    first, slices = _values(trace, "scan", init), _values(trace, "scan", xs)

    def body(values: list[Any]) -> list[Any]:
        given = combine_fn(_like(init, _arrays(trace, values[:len(first)])), _like(xs, _arrays(trace, values[len(first):])))
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise TypeError("weft.scan: combine_fn returns a pair: what is carried, and y (None if there is none)")
        _same_tree("scan: combine_fn carries on what it gets,", init, given[0])
        trees.append(given[1])
        return [*_values(trace, "scan", given[0]), *_values(trace, "scan", given[1])]
    out = trace.scan(first, slices, body, -1, reverse)
    return _like(init, _arrays(trace, out[:len(first)])), _like(trees[0], _arrays(trace, out[len(first):]))


def optimizer_step(name: str, parameters: Sequence[Any], gradients: Sequence[Any], state: dict[str, Any] | None = None,
                   **options: Any) -> tuple[list[Array], dict[str, Any]]:
    """In a function that is traced: a step of an optimizer, "adamw", as new parameters and a new state. Gradients flow through it.

    options: numbers, arrays without dimensions, and switches: lr=0.1, amsgrad=True. state: by name, a list with an array for each
    parameter, or of a number for each parameter, such as "step", one array f32[N]; None before the first step."""
    trace = _trace_now("optimizer_step")
    n = len(parameters)
    given = {k: v._value if isinstance(v, Array) else v for k, v in options.items()}
    p, g = _values(trace, "optimizer_step", list(parameters)), _values(trace, "optimizer_step", list(gradients))
    states = trace.optimizer_states(name, given)
    if state is not None and set(state) != {s[0] for s in states}:
        raise ValueError(f"weft.optimizer_step: {name} has the states {', '.join(s[0] for s in states) or '(none)'}, got {', '.join(state)}")
    values = []
    for key, _, begins, number in states:
        if state is not None:
            values += _values(trace, "optimizer_step", [state[key]] if number else list(state[key]))
        elif number:
            values.append(trace.call("aten.full", ([n], begins), {"dtype": "f32"}))
        else:
            values += [trace.call("aten.full_like", (v, begins), {}) for v in p]
    made = list(_arrays(trace, trace.optimizer_step(name, given, p, g, values)))
    new, at = {}, n
    for key, _, _, number in states:
        new[key] = made[at] if number else made[at:at + n]
        at += 1 if number else n
    return made[:n], new


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


def trace(function: Callable[..., Any], *types: str, symbols: dict[str, tuple[int, int]] | None = None, name: str | None = None,
          ops: Any = ()) -> Graph:
    """The graph of a function on arrays. types: of its parameters, "f32[B, 64]".

    The function gets Arrays, whose methods are ATen's operators; it returns an Array, or a tuple or dict of
    them. Arrays of NumPy and tensors that it uses become constants. symbols: ranges of the sizes in types. ops: libraries of
    operators, which weft.call calls; weft.cond, while_loop and scan are branches and loops on data.
    """
    from weft.compiler import session_with
    return Graph(traced(session_with(ops), function, types, symbols, name or getattr(function, "__name__", "function").strip("<>")))


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
    _tracing.traces = [*getattr(_tracing, "traces", ()), t]
    try:
        out = function(*arrays)
    finally:
        _tracing.traces = _tracing.traces[:-1]
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
