"""FX graphs of ATen operators become graphs of Weft, by traces.

`lower` takes what AOTAutograd gives a back end: a GraphModule whose nodes call torch.ops, with the types of
values in meta["val"]. Sizes that are symbols stay symbols: types mention them, and integers are expressions of
them, which are never computed by nodes.
"""
from __future__ import annotations

import functools
import math
import operator
from typing import Any, NamedTuple

import sympy
import torch
from torch._prims_common import is_contiguous_or_false
from torch.fx import GraphModule, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils._sympy.printers import PythonPrinter

from weft import _weft, composed, libraries
from weft.compiler import session_with
from weft.model import resolved
from weft.scalars import Scalars, expression
from weft.sizes import Unsupported, bounds, is_symbolic, size_hint, size_range, size_text

DTYPES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64", torch.int32: "i32",
          torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64",
          torch.bool: "bool", torch.complex64: "c64", torch.complex128: "c128", torch.float8_e4m3fn: "f8e4m3", torch.float8_e5m2: "f8e5m2"}
# Operators that do not check indices: ours do.
RENAMED = {"aten._unsafe_index.Tensor": "aten.index.Tensor", "aten._unsafe_index_put": "aten.index_put"}
# Operators that give their first operand. No derivative follows, so what autograd sees is no matter.
SAME = {"aten.detach", "aten.alias", "aten.lift_fresh_copy", "aten.lift", "aten.lift_fresh"}
# Operators that PyTorch has only for operands of one dtype: others run as PyTorch's, which says so.
SAME_DTYPE = {f"aten.{name}" for name in ("mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot", "addr", "convolution", "linear")}
# Operators that PyTorch does not have for integers.
NO_INTEGERS = {f"aten.{name}" for name in ("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d")}
# Operators on the memory of their first operand.
STRIDED = {"aten.as_strided", "aten.as_strided_copy", "aten.as_strided_scatter"}


class NothingToCompute(Exception):
    """Results are inputs, views of inputs, and sizes."""


# ---- what the table has ----

@functools.cache
def _table() -> tuple[_weft.Session, frozenset[str]]:
    """A session to ask, and the names of operators that draw random numbers."""
    drawing = set()
    for row in _weft.operators():
        if "Tensor? rng" in row["schema"]:
            drawing.update([row["name"], *row["aliases"].split()])
    return _weft.Session(), frozenset(drawing)


def op_name(target: Any) -> str:
    """"aten.add.Tensor" of an operator of torch.ops."""
    name = target.name().replace("::", ".", 1)
    return RENAMED.get(name, name)


@functools.cache
def _knows(name: str, dtypes: tuple[str, ...]) -> bool:
    return _table()[0].supports(name, list(dtypes))


_with_effects = torch.ops.higher_order.with_effects
_item, _assert_scalar = torch.ops.aten._local_scalar_dense.default, torch.ops.aten._assert_scalar.default
# Operators that ask for sizes, and those that say what sizes may be: `item` checks what tracing knows of its integer.
_QUESTIONS = {torch.ops.aten.sym_size.int, torch.ops.aten.sym_numel.default, torch.ops.aten.sym_stride.int, torch.ops.aten.sym_storage_offset.default}
_BY_TENSOR = {"aten.pow.Tensor_Scalar": "aten.pow.Tensor_Tensor", "aten.pow.Scalar": "aten.pow.Tensor_Tensor", "aten.clamp": "aten.clamp.Tensor",
              "aten.clamp_min": "aten.clamp_min.Tensor", "aten.clamp_max": "aten.clamp_max.Tensor"}  # with tensors for numbers
_RANGES = {torch.ops.aten.sym_constrain_range.default, torch.ops.aten.sym_constrain_range_for_size.default}
# Operators whose arguments are graphs.
CONTROL = {torch.ops.higher_order.cond: "_cond", torch.ops.higher_order.while_loop: "_while_loop", torch.ops.higher_order.scan: "_scan",
           torch.ops.higher_order.map_impl: "_map"}


def knows_op(target: Any) -> bool:
    """Whether the table has the operator, or a library of the user that is in use."""
    name = op_name(target)
    return libraries.has(name) or name in SAME or name == "aten.copy" or name in composed.CALLS or _knows(name, ())


def why_not(node: Node) -> str | None:
    """Why a node of an FX graph cannot be traced; None: nothing is known against it."""
    if node.op in ("placeholder", "output", "get_attr") or node.target is operator.getitem:
        return None
    if node.op != "call_function":
        return f"{node.op} {node.target}"
    value, target = node.meta.get("val"), node.target
    if _computes_size(node) or target in _RANGES or target is _assert_scalar:
        return None
    if target is _item:
        return None if isinstance(value, (int, torch.SymInt, torch.SymFloat, torch.SymBool)) else "a float that tracing knows"
    if target in CONTROL:
        bodies = (getattr(node.graph.owning_module, n.target) for n in node.all_input_nodes if n.op == "get_attr")
        return next((why for b in bodies if isinstance(b, GraphModule) for n in b.graph.nodes if (why := why_not(n))), None)
    if target is _with_effects:  # of a token and an operator: the next token, and the operator's results
        target = node.args[1]
    if not isinstance(target, torch._ops.OpOverload):
        return f"{target} is no operator of torch.ops"
    values = [n.meta.get("val") for n in node.all_input_nodes] + list(value if isinstance(value, (tuple, list)) else [value])
    for v in values:
        why = _why_not_value(v)
        if why:
            return why
    if not knows_op(target):
        return f"{op_name(target)} is not in Weft's table"
    return _why_not_dtypes(op_name(target), [v.dtype for v in values[:len(node.all_input_nodes)] if isinstance(v, torch.Tensor)])


def _computes_size(node: Node) -> bool:
    """Whether the node is a function of sizes: what it gives is known while tracing, as an expression."""
    number = isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool, int, float))
    return number and not isinstance(node.target, torch._ops.OpOverload) or node.target in _QUESTIONS


def _why_not_dtypes(name: str, dtypes: list[torch.dtype]) -> str | None:
    if name in SAME_DTYPE and len(set(dtypes)) > 1:
        return f"operands of {', '.join(sorted(map(str, set(dtypes))))}"
    if name in NO_INTEGERS and not all(d.is_floating_point for d in dtypes):
        return f"an operand of {dtypes[0]}"
    return None


def _why_not_value(v: Any) -> str | None:
    if isinstance(v, torch.Tensor):
        if v.dtype not in DTYPES:
            return f"the dtype {v.dtype}"
        if v.device.type not in ("cpu", "meta"):
            return f"a tensor on {v.device}"
        if v.layout != torch.strided:
            return f"the layout {v.layout}"
    return None


# ---- writes ----

def writes_to_results(gm: GraphModule) -> list[int]:
    """AOTAutograd's graphs compute with values and write arguments at their end, each once, by copy_. Makes what is written further
    results of the graph, and returns the numbers of the arguments."""
    placeholders = list(gm.graph.find_nodes(op="placeholder"))
    writes = gm.graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default)
    if not writes:
        return []
    end = gm.graph.output_node()
    numbers, values = [placeholders.index(n.args[0]) for n in writes], [n.args[1] for n in writes]
    for n in writes:
        n.replace_all_uses_with(n.args[0])
        gm.graph.erase_node(n)
    end.args = ([*end.args[0], *values],)
    gm.recompile()
    return numbers


# ---- tracing ----

class Output(NamedTuple):
    """How a result is made: it is data, which can be pickled.

    kind "input": argument number `index`, or what the View `value` makes of it.
    kind "tensor": output number `index` of the compiled model, with its dimensions in `order`, then as value says: None:
    itself; "alias": another tensor on the same memory; Sizes: a view of that shape, strides, and offset from the tensor's
    own; View: what that makes of it. kind "number": the number that output `index` has.
    kind "size": the one integer of the Sizes value. kind "constant": value."""
    kind: str
    index: int = 0
    value: Any = None
    order: tuple[int, ...] | None = None


class Sizes:
    """A function from the arguments `a` of a call to integers, by its text in Python, so that it can be pickled."""

    def __init__(self, text: str):
        self.text, self.of = text, eval(f"lambda a: ({text},)", {"math": math})

    def __reduce__(self) -> Any:
        return Sizes, (self.text,)


def spaced(t: torch.Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> torch.Tensor:
    """A copy of the tensor with these strides."""
    return torch.empty_strided(shape, strides, dtype=t.dtype).copy_(t)


class View:
    """What PyTorch's operators make of the tensor `t`, by the text in Python, where `a` are the arguments of a call."""

    def __init__(self, text: str):
        self.text, self.of = text, eval(f"lambda t, a: {text}", {"math": math, "torch": torch, "spaced": spaced})

    def __reduce__(self) -> Any:
        return View, (self.text,)


class Lowering(Scalars):
    """The graph of a GraphModule, what its inputs are, and how results are made of its outputs."""

    linalg = False  # whether a factorisation is checked
    depth = 0       # of bodies
    nparam = 0      # constants of bodies
    alone = False   # whether one node is traced
    libraries: tuple[str, ...] = ()  # of the operators of the user that it calls

    def __init__(self, gm: GraphModule, name: str):
        self.gm, self.name = gm, name
        self.libraries = libraries.of(gm)
        self.session = session_with(self.libraries)
        self.trace = self.session.trace(name)
        self.env: dict[Node, Any] = {}
        self.tensors: list[int] = []      # numbers of the arguments that the model takes
        self.where: dict[sympy.Symbol, tuple[int, int | None]] = {}  # argument, and its dimension
        self.results: list[Output] = []
        self.symbols: dict[str, tuple[int, int]] = {}  # declared ones, with their ranges
        self.names: dict[sympy.Symbol, str] = {}  # sizes that values of the graph have: how Weft writes them
        self.numbers: dict[sympy.Basic, Any] = {}  # floats, as tensors
        self.declared: set[sympy.Symbol] = set()  # symbols of the inputs
        self.integers: list[int] = []     # numbers of outputs that are such sizes; results read them behind the arguments
        self.key: Any = None              # of random numbers
        self.more: list[torch.Tensor | None] = []  # inputs after the arguments: constants, and None for the key
        self.ndraw = 0
        self._named: dict[Node, Output] = {}
        self.noutput = 0
        self._inputs()
        self._outputs(self._nodes())
        if not self.noutput:
            raise NothingToCompute
        self.graph = self.trace.end()

    def _nodes(self) -> Node:
        """Traces all nodes of self.gm. Returns that of the results."""
        for node in self.gm.graph.nodes:
            self._line(node)
            if node.op == "get_attr":
                self.env[node] = self._constant(node)
            elif node.op == "call_function":
                self._call(node)
        return next(n for n in reversed(self.gm.graph.nodes) if n.op == "output")

    # -- inputs

    def _inputs(self) -> None:
        nodes = [n for n in self.gm.graph.nodes if n.op == "placeholder"]
        values = [n.meta.get("val") for n in nodes]
        declared = self.declared
        for k, v in enumerate(values):
            if is_symbolic(v) and v.node.expr.is_Symbol:
                self.where.setdefault(v.node.expr, (k, None))
            for d, s in enumerate(v.shape if isinstance(v, torch.Tensor) else ()):
                if not is_symbolic(s):
                    continue
                for symbol in s.node.expr.free_symbols:
                    if symbol not in declared:
                        declared.add(symbol)
                        self._declare(symbol, s.node.shape_env)
                if s.node.expr.is_Symbol:
                    self.where.setdefault(s.node.expr, (k, d))
        later = []
        tokens = {n.args[0] for n in self.gm.graph.nodes if n.target is _with_effects}
        for k, (n, v) in enumerate(zip(nodes, values)):
            if n in tokens:
                self.env[n] = None
            elif isinstance(v, torch.Tensor):
                why = _why_not_value(v)
                if why:
                    raise Unsupported(None, f"input {n.name}: {why}")
                self.env[n] = self.trace.input(f"{n.name}", type_text(v, self.names))
                self.tensors.append(k)
            elif isinstance(v, torch.SymFloat) and (e := expression(v)) is not None:
                self.env[n] = v
                self.numbers.setdefault(e, self.trace.input(n.name, "f64[]"))
                self.tensors.append(k)
            elif is_symbolic(v):
                self.env[n] = v
                for symbol in v.node.expr.free_symbols - declared:
                    if v.node.expr.is_Symbol:
                        later.append((k, n, v, symbol))
                    declared.add(symbol)
            else:
                self.env[n] = v
        for k, n, v, symbol in later:  # sizes that no extent of an input gives
            value = self.trace.input(n.name, "i64[]")
            self.tensors.append(k)
            self.trace.size(str(symbol), value, *bounds(symbol, v.node.shape_env))

    def _declare(self, symbol: sympy.Symbol, shape_env: Any) -> None:
        self.symbols[str(symbol)] = size_range(symbol, shape_env)
        self.trace.symbol(str(symbol), *self.symbols[str(symbol)])

    def _constant(self, node: Node) -> Any:
        value = operator.attrgetter(node.target)(self.gm)
        if not isinstance(value, torch.Tensor):
            return value
        value = value.detach().contiguous()
        return self._param(node.name, resolved(value))

    def _param(self, name: str, value: torch.Tensor) -> Any:
        """A constant. It is traced as an input, so that the graph's text is all that it is made of; see set_constants."""
        if self.depth:
            self.nparam += 1
            return self.trace.param(name, type_text(value, {}), value)
        self.more.append(value)
        return self.trace.input(f"constant.{name}", type_text(value, {}))

    # -- calls

    def _line(self, node: Node) -> None:
        stack = node.meta.get("stack_trace")
        if not stack:
            return
        for line in reversed(stack.strip().splitlines()):
            if line.lstrip().startswith("File "):
                parts = line.strip().split(", ")
                self.trace.line(f"{parts[0][6:-1].rsplit('/', 1)[-1]}:{parts[1].removeprefix('line ')}")
                return

    def _call(self, node: Node) -> None:
        value = node.meta.get("val")
        if node.target is operator.getitem:
            several, k = self.env[node.args[0]], node.args[1]
            self.env[node] = several[k] if isinstance(several, (list, tuple)) else self._checked(node, self.trace.result, several, k)
            self._learn(node)
            return
        if _computes_size(node):
            self.env[node] = value
            return
        if node.target in _RANGES:
            return
        if node.target is _assert_scalar:
            test = node.args[0].meta["val"] if isinstance(node.args[0], Node) else node.args[0]
            self._assert(node, self._truth(node, test.node.expr if isinstance(test, torch.SymBool) else sympy.sympify(bool(test))))
            return
        if node.target is _item:
            self.env[node] = self._item(node, value)
            return
        why = why_not(node)
        if why:
            raise Unsupported(node, why)
        if node.target in CONTROL:
            self.env[node] = self._checked(node, getattr(self, CONTROL[node.target]), node, *node.args)
            return
        self.env[node] = self._effect(node) if node.target is _with_effects else self._operator(node, node.target, node.args, node.kwargs)
        self._learn(node)

    def _effect(self, node: Node) -> Any:
        """A token, and the results: order is kept, since checks are."""
        target = node.args[1]
        value = self._operator(node, target, node.args[2:], node.kwargs)
        n = len(target._schema.returns)
        return [None, *([value] if n == 1 else [self._checked(node, self.trace.result, value, k) for k in range(n)])]

    def _operator(self, node: Node, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = op_name(target)
        if name in SAME:
            return self.env[args[0]]
        if name == "aten.copy":
            return self._copy(node)
        if name == "aten.split.Tensor" and any(is_symbolic(n) for v in node.meta["val"] for n in v.shape):
            return self._split(node, _by_name(target, args, kwargs))
        if name in STRIDED:
            return self._strided(node, name, _by_name(target, args, kwargs))
        self._given = _by_name(target, args, kwargs)
        if name in composed.CALLS and not _knows(name, ()):
            return self._checked(node, composed.CALLS[name], self, node, {k: self._argument(node, v) for k, v in self._given.items()})
        if any(isinstance(a, complex) for a in self._given.values()):
            name = name.replace(".Scalar", ".Tensor")
        if not self.alone and _is_empty(node) and _refusal(node):
            # Nothing to compute, of a shape that Weft's operator does not have, such as pooling to no element.
            v = node.meta["val"]
            return self._checked(node, self.trace.call, "aten.full", (list(v.shape), 0), {"dtype": DTYPES[v.dtype]})
        values, named = self._arguments(node, target)
        if any(self._is_unknown(v) for v in self._given.values()):
            if name in ("aten.full", "aten.scalar_tensor"):
                *shape, number = values
                return self._call_op(node, "expand", self._call_op(node, "_to_copy", number, dtype=DTYPES[node.meta["val"].dtype]), *shape or [[]])
            name = _BY_TENSOR.get(name) or name.replace(".Scalar", ".Tensor")
        self.linalg |= name == "aten._linalg_check_errors"
        if name in ("aten._linalg_det", "aten._linalg_slogdet"):  # the factors that they give are of A^T if A is row-major
            named = {**named, "row_major": self._given["A"].meta["val"].is_contiguous()}
        return self._checked(node, self.trace.call, name, values, named)

    def _strided(self, node: Node, name: str, given: dict[str, Any]) -> Any:
        """Operators on a tensor's memory: Weft's are on row-major memory, so operands are permuted to the order that theirs has.
        A view's memory is that of its root."""
        operand = given.pop("self")
        root = operand if name == "aten.as_strided_scatter" else _root(operand)
        v, order = root.meta["val"], _order(root.meta["val"])
        if not _is_dense(v):
            raise Unsupported(node, "an operand whose memory has gaps or repetitions")
        offset = given.get("storage_offset")
        if isinstance(offset, Node):
            offset = self.env[offset]
        offset = (operand.meta["val"].storage_offset() if offset is None else offset) - v.storage_offset()
        value = self._checked(node, self.trace.call, "aten.permute", (self.env[root], list(order)), {}) if order else self.env[root]
        rest = {k: self._argument(node, a) for k, a in given.items()} | {"storage_offset": self._argument(node, offset)}
        out = self._checked(node, self.trace.call, name, (value,), rest)
        if order and name == "aten.as_strided_scatter":
            out = self._checked(node, self.trace.call, "aten.permute", (out, list(_inverse(order))), {})
        return out

    def _split(self, node: Node, given: dict[str, Any]) -> list[Any]:
        """Slices. PyTorch's tracing has decided how many there are."""
        dim, start, out = given.get("dim", 0), 0, []
        for v in node.meta["val"]:
            end = start + v.shape[dim]
            bounds = [self._argument(node, n) for n in (start, end)]
            out.append(self._checked(node, self.trace.call, "aten.slice.Tensor", (self.env[given["self"]], dim, *bounds, 1), {}))
            start = end
        return out

    def type_of(self, node: Node, argument: str) -> str:
        """The type of an argument of the operator that is traced."""
        return type_text(self._given[argument].meta["val"], self.names)

    # -- graphs as arguments

    def _body(self, node: Node, graph: Node) -> Any:
        """A function from values to values, which traces a graph."""
        def body(values: list[Any]) -> list[Any]:
            outer, self.gm = self.gm, self.env[graph]
            self.depth += 1
            try:
                self.env |= zip((n for n in self.gm.graph.nodes if n.op == "placeholder"), values)
                results = [self.env[n] if isinstance(n, Node) else n for n in torch.utils._pytree.tree_leaves(self._nodes().args[0])]
            finally:
                self.gm = outer
                self.depth -= 1
            return self._values(node, results)
        return body

    def _values(self, node: Node, values: Any) -> list[Any]:
        values = [self.env[v] if isinstance(v, Node) else v for v in values]
        values = [self._scalar(node, v) if isinstance(v, (torch.SymFloat, torch.SymBool)) else v for v in values]
        if not all(isinstance(v, _weft.Value) for v in values):
            raise Unsupported(node, "a body that takes or gives something besides tensors")
        return values

    def _results(self, node: Node) -> int:
        return len(node.meta["val"]) if isinstance(node.meta["val"], (tuple, list)) else 1

    def _cond(self, node: Node, condition: Any, yes: Node, no: Node, operands: Any = ()) -> Any:
        (test,) = self._values(node, [condition])
        given = [self._argument(node, v) for v in operands]
        bodies = [lambda _, b=self._body(node, graph): b(given) for graph in (yes, no)]
        return self.trace.cond(test, *bodies, self._results(node))

    def _while_loop(self, node: Node, test: Node, body: Node, carried: Any, more: Any = ()) -> Any:
        more = [self._argument(node, v) for v in more]
        bodies = [lambda values, b=self._body(node, graph): b([*values, *more]) for graph in (test, body)]
        return self.trace.while_loop(self._values(node, carried), *bodies)

    def _scan(self, node: Node, body: Node, init: Any, slices: Any, more: Any = ()) -> Any:
        more = [self._argument(node, v) for v in more]
        step = self._body(node, body)
        return self.trace.scan(self._values(node, init), self._values(node, slices), lambda values: step([*values, *more]),
                               self._results(node) - len(init))

    def _map(self, node: Node, body: Node, slices: Any, more: Any = ()) -> Any:
        return self._scan(node, body, (), slices, more)

    def _copy(self, node: Node) -> Any:
        """copy(to, from) is `from` in the type of `to`."""
        to, source = node.args[0].meta["val"], node.args[1]
        value = self._argument(node, source)
        if source.meta["val"].dtype != to.dtype:
            value = self._checked(node, self.trace.call, "aten._to_copy", (value,), {"dtype": DTYPES[to.dtype]})
        if source.meta["val"].shape != to.shape:
            value = self._checked(node, self.trace.call, "aten.expand", (value, [self._argument(node, n) for n in to.shape]), {})
        return value

    def _checked(self, node: Node, f: Any, *args: Any) -> Any:
        try:
            return f(*args)
        except _weft.Error as e:
            raise Unsupported(node, str(e).split(": ", 1)[-1]) from None

    def _arguments(self, node: Node, target: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional arguments as long as none is left out, then named ones."""
        listed, named = [], {}
        for k, a in enumerate(target._schema.arguments):
            if a.name not in self._given:
                continue
            given = self._given[a.name]
            if str(a.type) in ("Optional[Device]", "Device", "Optional[Layout]", "Layout", "Optional[MemoryFormat]", "MemoryFormat") or a.name in (
                    "device", "layout", "pin_memory", "memory_format", "non_blocking", "implicit"):
                continue
            if "Generator" in str(a.type):
                if given is not None:
                    raise Unsupported(node, "a generator of random numbers")
                continue
            value = self._argument(node, given, "float" in str(a.type))
            if self._is_unknown(given):
                value = self._call_op(node, "_to_copy", value, dtype=self._dtype_beside(1.0))
            # The C interface takes a number as `other` of an operator that has numbers there.
            if str(a.type) == "Tensor" and isinstance(value, (bool, int, float, _weft.Size)) and not (k and op_name(target).endswith(".Tensor")):
                value = self._number(node, value)
            if k == len(listed) and not a.kwarg_only:
                listed.append(value)
            else:
                named[a.name] = value
        if op_name(target) in _table()[1] and _may_draw(target, self._given):
            if self.depth:
                raise Unsupported(node, "random numbers inside of a body")
            if self.key is None:
                self.key = self.trace.input("weft.rng", "u64[2]")
                self.more.append(None)
            named |= {"rng": self.key, "stream": self.ndraw}
            self.ndraw += 1
        return tuple(listed), named

    def _number(self, node: Node, number: Any) -> Any:
        """A number where the operator has a tensor: a tensor without dimensions, of the type that the operands have together."""
        value = 1 if isinstance(number, _weft.Size) else number
        dtype = self._dtype_beside(value)
        if isinstance(number, _weft.Size):
            return self._checked(node, self.trace.call, "aten._to_copy", (self.trace.integer(number),), {"dtype": dtype})
        return self._checked(node, self.trace.call, "aten.full", ([], number), {"dtype": dtype})

    def _dtype_beside(self, number: Any) -> str:
        """The dtype of a number beside the operands that are tensors."""
        tensors = [v for n in self._given.values() if isinstance(n, Node) and isinstance(v := n.meta.get("val"), torch.Tensor)]
        return DTYPES[torch.result_type(tensors[0] if tensors else number, number)]

    def _is_unknown(self, given: Any) -> bool:
        """Whether an argument is a float that is not known while tracing."""
        return isinstance(given, Node) and isinstance(v := self.env[given], torch.SymFloat) and expression(v) is not None

    def _argument(self, node: Node, given: Any, is_float: bool = False) -> Any:
        if isinstance(given, Node):
            given = self.env[given]
        if isinstance(given, (list, tuple)):
            return [self._argument(node, x, is_float) for x in given]
        if isinstance(given, torch.SymInt):
            try:
                text = size_text(given, self.names)
            except Unsupported as e:
                raise Unsupported(node, str(e)) from None
            return text if isinstance(text, int) else _weft.Size(text)
        if isinstance(given, torch.dtype):
            if given not in DTYPES:
                raise Unsupported(node, f"the dtype {given}")
            return DTYPES[given]
        if isinstance(given, torch.SymFloat):
            return self._scalar(node, given) if expression(given) is not None else float(given.node.expr)
        if isinstance(given, torch.SymBool):
            raise Unsupported(node, "an argument that is a truth")
        if isinstance(given, complex):
            value = torch.tensor(given, dtype=node.meta["val"].dtype if isinstance(node.meta["val"], torch.Tensor) else None)
            if not value.is_complex():
                raise Unsupported(node, "a complex number as an argument")
            return self._param(f"{node.name}.{given}", value)
        if is_float and type(given) is int:
            return float(given)
        if given is None or isinstance(given, (_weft.Value, bool, int, float, str)):
            return given
        raise Unsupported(node, f"an argument of {type(given).__name__}")

    # -- outputs

    def _outputs(self, node: Node) -> None:
        flat, self.spec = torch.utils._pytree.tree_flatten(node.args[0])
        slot = self._slot = {n: k for k, n in enumerate(n for n in self.gm.graph.nodes if n.op == "placeholder")}
        self._roots = {n for n in flat if isinstance(n, Node) and _root(n) is n}
        for n in flat:
            if not isinstance(n, Node):
                self.results.append(Output("constant", value=n))
            elif n in slot:
                self.results.append(Output("input", slot[n]))
            elif isinstance(self.env[n], (torch.SymFloat, torch.SymBool)):
                self.trace.output(n.name, self._scalar(n, self.env[n]))
                self.results.append(Output("number", self.noutput))
                self.noutput += 1
            elif isinstance(self.env[n], torch.SymInt):
                self.results.append(Output("size", value=self._sizes([self.env[n]])))
            elif isinstance(self.env[n], _weft.Value):
                self.results.append(self._tensor(n))
            elif isinstance(self.env[n], (int, float, bool, type(None))):
                self.results.append(Output("constant", value=self.env[n]))
            else:
                raise Unsupported(n, f"a result of {type(self.env[n]).__name__}")

    def _sizes(self, values: list[int | torch.SymInt]) -> Sizes:
        return Sizes(self._codes(values))

    def _codes(self, values: list[int | torch.SymInt]) -> str:
        return ", ".join(map(self._size_code, values))

    def _size_code(self, value: int | torch.SymInt) -> str:
        """An expression of Python, of the arguments `a` of a call."""
        if isinstance(value, int):
            return str(value)
        e = value.node.expr
        places = {}
        for s in e.free_symbols:
            if s not in self.where and s in self.names:
                self._give(s)
            if s not in self.where:
                raise Unsupported(None, f"no input gives the size {e}")
            k, d = self.where[s]
            places[s] = sympy.Symbol(f"a[{k}]" if d is None else f"a[{k}].shape[{d}]", integer=True)
        text = PythonPrinter().doprint(e.xreplace(places))
        return text if e.is_Symbol or e.is_Integer else f"int({text})"

    def _give(self, symbol: sympy.Symbol) -> None:
        """Makes a size that depends on data an output."""
        self.trace.output(f"size.{symbol}", self.trace.integer(self.names[symbol]))
        self.where[symbol] = len(self._slot) + len(self.integers), None
        self.integers.append(self.noutput)
        self.noutput += 1

    def _tensor(self, node: Node) -> Output:
        """How a result is made. Views of an input, of another result, and views that have no fewer elements than their
        root are views in PyTorch, too; any other value is an output of the model, and one value is one output."""
        root = node
        while (operand := _part_of(root)) is not None:
            root = operand
        if root in self._slot:
            return Output("input", self._slot[root], View(self._view_code(node)))
        root = _root(node)
        r = root.meta["val"]
        if root is not node and _has_gaps(r):
            # The value that a write into an input leaves there has the input's strides, and AOTAutograd makes views of the input
            # with those of the result.
            v = node.meta["val"]
            offset = self._size_code(v.storage_offset() - r.storage_offset())
            view = f"{self._spaced(r)}.as_strided({self._tuple(v.shape)}, {self._tuple(v.stride())}, {offset}).detach()"
            return self._output(root)._replace(value=View(view))
        few = statically_known_true(r.numel() <= node.meta["val"].numel())
        if root is not node and _is_dense(r) and (root in self._roots or few):
            return Output("tensor", self._output(root).index, self._view(node, root), self._output(root).order)
        return self._output(node, again=True)

    def _tuple(self, values: Any) -> str:
        return f"({''.join(f'{self._size_code(n)}, ' for n in values)})"

    def _spaced(self, v: torch.Tensor) -> str:
        """A copy of `t` with the strides of the type."""
        return f"spaced(t, {self._tuple(v.shape)}, {self._tuple(v.stride())})"

    def _view_code(self, node: Node) -> str:
        """An expression of Python that makes a view of an input `t`."""
        operand = _part_of(node)
        if operand is None:
            return "t"
        if node.target is operator.getitem:
            return f"{self._view_code(node.args[0])}[{node.args[1]}]"

        def code(given: Any) -> str:
            value = given.meta["val"] if isinstance(given, Node) else given
            if isinstance(value, (list, tuple)):
                return f"[{', '.join(map(code, value))}]"
            if isinstance(value, torch.SymInt):
                return self._size_code(value)
            if value is None or isinstance(value, (bool, int, str, torch.dtype)):
                return repr(value)
            raise Unsupported(node, f"an argument of {type(value).__name__}")
        rest = [*map(code, node.args[1:]), *(f"{k}={code(v)}" for k, v in node.kwargs.items())]
        return f"torch.ops.{node.target}({', '.join([self._view_code(node.args[0]), *rest])})"

    def _output(self, node: Node, again: bool = False) -> Output:
        """The output of the model that is the value of the node."""
        if node in self._named:
            first = self._named[node]
            return first._replace(value="alias") if again and not first.value else first
        value, order = self.env[node], _order(node.meta["val"])
        if _is_empty(node):  # what Weft's operator computes where PyTorch leaves a result out has no element here
            v = node.meta["val"]
            value, order = self._checked(node, self.trace.call, "aten.full", (list(v.shape), 0), {"dtype": DTYPES[v.dtype]}), None
        shape = self.trace.shape(value)
        expected = [n if isinstance(n, int) else None for n in node.meta["val"].shape]
        if len(shape) != len(expected) or any(None not in pair and pair[0] != pair[1] for pair in zip(shape, expected)):
            raise Unsupported(node, f"its shape {list(node.meta['val'].shape)} in PyTorch, which is {list(shape)} in Weft")
        if order:
            value = self._checked(node, self.trace.call, "aten.permute", (value, list(order)), {})
        self.trace.output(node.name, value)
        v = node.meta["val"]
        gaps = View(self._spaced(v)) if not _is_view(node) and _has_gaps(v) else None
        self._named[node] = out = Output("tensor", self.noutput, gaps, _inverse(order) if order else None)
        self.noutput += 1
        return out

    def _view(self, node: Node, root: Node) -> Any:
        """The value of an Output: how the node's value is a view of the root's."""
        v, r = node.meta["val"], root.meta["val"]
        if v.dtype == r.dtype and len(v.shape) == len(r.shape) and all(
                statically_known_true(a == b) for a, b in zip((*v.shape, *v.stride()), (*r.shape, *r.stride()))):
            return "alias"
        return self._sizes([*v.shape, *v.stride(), v.storage_offset() - r.storage_offset()])


def set_constants(graph: Any, first: int, values: list[torch.Tensor | None]) -> None:
    """Replaces the inputs from `first` on by these constants, so that code may be made for their values. The inputs remain."""
    for k, value in enumerate(values, first):
        if value is not None:
            _weft.node_replace(graph, _weft.node_of_input(graph, k), _weft.graph_constant(graph, None, value))


def _by_name(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call that are given."""
    places = [a.name for a in target._schema.arguments if not a.kwarg_only]
    return {**dict(zip(places, args)), **kwargs}


def _may_draw(target: Any, given: dict[str, Any]) -> bool:
    """Whether a call of an operator that draws random numbers does: dropout of nothing does not, nor does it outside of training."""
    names = {a.name for a in target._schema.arguments}
    chance = {"dropout_p", "dropout", "p" if "train" in names else None} & names
    return given.get("train", True) is not False and not any(given.get(c, 0.0) == 0 for c in chance)


def _part_of(node: Node) -> Node | None:
    """The node whose value this node's value, or each tensor of its list, is a view of."""
    if node.target is operator.getitem:  # split, unbind: a list of views
        return _part_of(node.args[0])
    if not (isinstance(node.target, torch._ops.OpOverload) and node.args and isinstance(node.args[0], Node)):
        return None
    operand, schema, v = node.args[0], node.target._schema, node.meta.get("val")
    v = v[0] if isinstance(v, (list, tuple)) and v else v
    x = operand.meta.get("val")
    if not isinstance(v, torch.Tensor) or not isinstance(x, torch.Tensor):
        return None
    if op_name(node.target) in ("aten.detach", "aten.alias"):
        return operand
    info = schema.arguments[0].alias_info
    same = (info is not None and not info.is_write and len(schema.returns) == 1
            and v.untyped_storage()._cdata == x.untyped_storage()._cdata)
    return operand if same else None


def _viewed(node: Node) -> Node | None:
    """The node whose value this node's value is a view of, of the same elements' kind."""
    operand, v = _part_of(node), node.meta.get("val")
    if operand is None or not isinstance(v, torch.Tensor):
        return None
    x = operand.meta["val"]
    same = v.dtype == x.dtype and (v.is_conj(), v.is_neg()) == (x.is_conj(), x.is_neg())
    return operand if same or op_name(node.target) in ("aten.detach", "aten.alias") else None


def _is_view(node: Node) -> bool:
    return _viewed(node) is not None


def _root(node: Node) -> Node:
    while (operand := _viewed(node)) is not None:
        node = operand
    return node


def _is_dense(v: torch.Tensor) -> bool:
    """Whether a model's output of this value has its strides: row-major in some order of dimensions."""
    return is_contiguous_or_false(v) or _order(v) is not None


def _has_gaps(v: torch.Tensor) -> bool:
    """Whether the memory of the tensor has elements between its own, and each of its own once."""
    shape, stride = [size_hint(n) for n in v.shape], [size_hint(n) for n in v.stride()]
    if None in shape or None in stride or 0 in shape:
        return False
    step, gaps = 1, False
    for n, s in sorted(zip(stride, shape)):
        if s != 1:
            if n < step:
                return False
            gaps |= n > step
            step = n * s
    return gaps


def _order(v: torch.Tensor) -> tuple[int, ...] | None:
    """The order of dimensions in which the tensor is row-major, if that is not the order they have."""
    shape, stride = [size_hint(n) for n in v.shape], [size_hint(n) for n in v.stride()]
    if None in shape or None in stride:  # sizes of which nothing is known
        return None
    order = sorted(range(len(shape)), key=lambda d: (-stride[d], d))
    step = 1
    for d in reversed(order):
        if shape[d] != 1 and stride[d] != step:
            return None
        step *= shape[d]
    real = [d for d in order if shape[d] != 1]
    return None if real == sorted(real) else tuple(order)


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(d) for d in range(len(order)))


def type_text(v: torch.Tensor, names: dict[Any, str]) -> str:
    """"f32[s0, 3]" """
    return f"{DTYPES[v.dtype]}[{', '.join(str(size_text(n, names)) for n in v.shape)}]"


def _is_empty(node: Node) -> bool:
    v = node.meta.get("val")
    return isinstance(v, torch.Tensor) and all(isinstance(n, int) for n in v.shape) and 0 in v.shape


def _refusal(node: Node) -> str | None:
    """Why a trace of the node alone, on inputs of its types, fails."""
    try:
        _Alone(node)
    except Unsupported as e:
        return str(e)
    return None


def refused_nodes(gm: GraphModule) -> dict[Node, str]:
    """The nodes that cannot be traced, with reasons. Each node is tried alone."""
    refused = {}
    for node in gm.graph.nodes:
        why = why_not(node)
        if why is None and node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and not (
                op_name(node.target) in SAME or _is_empty(node)):
            why = _refusal(node)
        if why:
            refused[node] = why
    return refused


class _Alone(Lowering):
    """A trace of one node."""

    alone = True

    def __init__(self, node: Node):
        if isinstance(node.meta.get("val"), (int, torch.SymInt)):
            return
        self.session = session_with(libraries.of(node.graph.owning_module))
        self.trace = self.session.trace("node")
        self.env, self.symbols, self.names, self.numbers, self.key, self.ndraw, self.more = {}, {}, {}, {}, None, 0, []
        declared, integers = set(), {}
        for n in node.all_input_nodes:
            v = n.meta.get("val")
            if isinstance(v, torch.Tensor):
                for s in v.shape:
                    for symbol in s.node.expr.free_symbols - declared if is_symbolic(s) else ():
                        declared.add(symbol)
                        self._declare(symbol, s.node.shape_env)
                self.env[n] = self._checked(node, self.trace.input, n.name, type_text(v, {}))
            elif isinstance(v, (tuple, list)) or n.op == "get_attr":
                return  # getitem of several results, or a body
            else:
                self.env[n] = v
                e = expression(v)
                if isinstance(v, torch.SymFloat) and e is not None:
                    self.numbers[e] = self.trace.input(n.name, "f64[]")
                elif e is not None:
                    integers.update(dict.fromkeys(e.free_symbols, v.node.shape_env))
        for symbol in integers.keys() - declared:
            self.trace.size(str(symbol), self.trace.input(f"value_of_{symbol}", "i64[]"), *bounds(symbol, integers[symbol]))
        self._call(node)


class Values(Lowering):
    """The graph of a GraphModule alone: constants are its own, and each result is an output, of whatever memory it is."""

    def _param(self, name: str, value: torch.Tensor) -> Any:
        self.nparam += 1
        return self.trace.param(name, type_text(value, {}), value)

    def _outputs(self, node: Node) -> None:
        for k, n in enumerate(torch.utils._pytree.tree_leaves(node.args[0])):
            value = self.env[n] if isinstance(n, Node) else n
            if isinstance(value, torch.SymInt):
                value = self._integer(n, value.node.expr)
            elif isinstance(value, (torch.SymFloat, torch.SymBool)):
                value = self._scalar(n, value)
            if not isinstance(value, _weft.Value):
                raise Unsupported(n if isinstance(n, Node) else None, f"a result of {type(value).__name__}")
            self.trace.output(f"{n.name}.{k}" if n in self._named else n.name, value)
            self._named[n] = Output("tensor", self.noutput)
            self.noutput += 1
