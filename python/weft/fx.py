"""FX graphs of ATen operators become graphs of Weft, by traces.

`lower` takes what AOTAutograd gives a back end: a GraphModule whose nodes call torch.ops, with the types of
values in meta["val"]. Sizes that are symbols stay symbols: types mention them, and integers are expressions of
them, which are never computed by nodes.
"""
from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import sympy
import torch
from torch.fx import GraphModule, Node

from weft import _weft, composed, distributed, libraries, regions
from weft.compiler import session_with
from weft.model import resolved
from weft.results import Output, Results, inverse, is_dense, is_empty, order_of, root_of
from weft.scalars import expression
from weft.sizes import DTYPES, Unsupported, bounds, is_symbolic, size_range, size_text, type_text

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
# Operators with a number that multiplies an operand, and which.
_FACTORS = {"aten.add.Tensor": ("alpha", 1), "aten.sub.Tensor": ("alpha", 1), "aten.rsub.Tensor": ("alpha", 0), "aten.addcmul": ("value", 1), "aten.addcdiv": ("value", 1)}
_RANGES = {torch.ops.aten.sym_constrain_range.default, torch.ops.aten.sym_constrain_range_for_size.default}
# Operators whose arguments are graphs.
CONTROL = {torch.ops.higher_order.cond: "_cond", torch.ops.higher_order.while_loop: "_while_loop", torch.ops.higher_order.scan: "_scan",
           torch.ops.higher_order.map_impl: "_map"}


# Collectives whose schemas in PyTorch do not say how many ranks their groups have: ours do.
_WITHOUT_SIZE = {f"_c10d_functional.{name}" for name in ("all_reduce", "all_reduce_coalesced", "broadcast")}

# What is no operator: why it runs in Python.
_OUTSIDE = dict.fromkeys(("run_and_save_rng_state", "run_with_rng_state"), "it draws with a state of PyTorch's generator that a checkpoint saves")


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
        return _OUTSIDE.get(str(target)) or regions.why_not(node) or f"{target} is no operator of torch.ops"
    if target.namespace == "c10d":
        return "it communicates with other processes"
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

class Lowering(Results):
    """The graph of a GraphModule, what its inputs are, and how results are made of its outputs."""

    linalg = False  # whether a factorisation is checked
    collective = False  # whether it communicates with other processes
    depth = 0       # of bodies
    nparam = 0      # constants of bodies
    alone = False   # whether one node is traced
    libraries: tuple[str, ...] = ()  # of the operators of the user that it calls

    def __init__(self, gm: GraphModule, name: str, written: Sequence[int] = ()):
        """written: numbers of the arguments that the last results of the graph replace."""
        self.gm, self.name, self.written = gm, name, written
        self.libraries = libraries.of(gm)
        self.session = self._session()
        self.trace = self.session.trace(name)
        self.env: dict[Node, Any] = {}
        self.tensors: list[int] = []      # numbers of the arguments that the model takes
        self.extents: list[int] = []      # which of these are integers: the model takes tensors of so many rows without elements
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
        self.inputs: dict[int, Any] = {}  # by argument that is a tensor: the input of the model
        # Where there are complex numbers, a tensor may be the conjugate, or the negative, of its memory.
        self.lazy = any(isinstance(v := n.meta.get("val"), torch.Tensor) and (v.is_complex() or v.is_neg()) for n in gm.graph.nodes)
        self.orders: dict[int, tuple[int, ...]] = {}  # by argument: the order in which its dimensions are an input of the model
        self.assigned: list[int] = []     # numbers of the arguments that the outputs behind the results replace
        self._checked(None, self._inputs)
        self._outputs(self._nodes())
        if not self.noutput and not self.assigned:
            raise NothingToCompute
        self.graph = self._checked(None, self.trace.end)

    def _session(self) -> Any:
        return session_with(self.libraries)

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
        plain = {s.node.expr for v in values if isinstance(v, torch.Tensor) for s in v.shape if is_symbolic(s)}
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
                        self._declare(symbol, s.node.shape_env, symbol in plain)
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
                self.env[n] = self._input(k, n, v)
                self.tensors.append(k)
            elif isinstance(v, torch.SymFloat) and (e := expression(v)) is not None:
                self.env[n] = v
                self.numbers.setdefault(e, self.trace.input(n.name, "f64[]"))
                self.tensors.append(k)
            elif is_symbolic(v):
                self.env[n] = v
                if (symbol := v.node.expr) in declared - plain and bounds(symbol, v.node.shape_env)[0] >= 0:
                    # Extents are expressions of it, which may have no one solution.
                    self.trace.input(n.name, f"bool[{symbol}, 0]")
                    self.extents.append(len(self.tensors))
                    self.tensors.append(k)
                    plain.add(symbol)
                for symbol in v.node.expr.free_symbols - declared:
                    if v.node.expr.is_Symbol and not v.node.is_nested_int():  # the extent of a jagged dimension is no number
                        later.append((k, n, v, symbol))
                    declared.add(symbol)
            else:
                self.env[n] = v
        for k, n, v, symbol in later:  # sizes that no extent of an input gives
            value = self.trace.input(n.name, "i64[]")
            self.tensors.append(k)
            self.trace.size(str(symbol), value, *bounds(symbol, v.node.shape_env))

    def _input(self, k: int, node: Node, v: torch.Tensor) -> Any:
        """A tensor that is an argument. One that the graph replaces is taken as it is in memory."""
        order = order_of(v) if k in self.written else None
        self.inputs[k] = value = self.trace.input(node.name, type_text(v.permute(order) if order else v, self.names))
        if not order:
            return value
        self.orders[k] = order
        return self._checked(node, self.trace.call, "aten.permute", (value, list(inverse(order))), {})

    def _declare(self, symbol: sympy.Symbol, shape_env: Any, is_extent: bool) -> None:
        self.symbols[str(symbol)] = size_range(symbol, shape_env, is_extent)
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
            self._convert(node)
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
        self._convert(node)
        self._learn(node)

    def _convert(self, node: Node) -> None:
        """Gives the value the dtype that it has in PyTorch's graph, since the types of what is computed of it, in this graph
        and in that of the derivatives, are made of that."""
        v, value = node.meta.get("val"), self.env[node]
        if not isinstance(v, torch.Tensor) or not isinstance(value, _weft.Value):
            return
        have, want = self.trace.dtype(value), DTYPES[v.dtype]
        if have == want:
            return
        if _kind(have) != _kind(want):
            raise Unsupported(node, f"its dtype in PyTorch, {v.dtype}, which is {have} in Weft")
        self.env[node] = self._call_op(node, "_to_copy", value, dtype=want)

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
        if not self.alone and is_empty(node) and _refusal(node):
            # Nothing to compute, of a shape that Weft's operator does not have, such as pooling to no element.
            v = node.meta["val"]
            return self._checked(node, self.trace.call, "aten.full", (list(v.shape), 0), {"dtype": DTYPES[v.dtype]})
        values, named = self._arguments(node, target)
        if any(self._is_unknown(v) for v in self._given.values()):
            if name in ("aten.full", "aten.scalar_tensor"):
                *shape, number = values
                return self._call_op(node, "expand", self._call_op(node, "_to_copy", number, dtype=DTYPES[node.meta["val"].dtype]), *shape or [[]])
            factor, k = _FACTORS.get(name, (None, 0))
            if factor in named and self._is_unknown(self._given[factor]):
                product = self._call_op(node, "mul.Tensor", values[k], named.pop(factor))
                values = (*values[:k], product, *values[k + 1:])
            name = _BY_TENSOR.get(name) or name.replace(".Scalar", ".Tensor")
        if distributed.is_collective(name):
            self.collective = True
            if name in _WITHOUT_SIZE:
                named = {**named, "group_size": distributed.group_size(self._given["group_name"])}
        self.linalg |= name == "aten._linalg_check_errors"
        if name in ("aten._linalg_det", "aten._linalg_slogdet"):  # the factors that they give are of A^T if A is row-major
            named = {**named, "row_major": self._given["A"].meta["val"].is_contiguous()}
        return self._checked(node, self.trace.call, name, values, named)

    def _strided(self, node: Node, name: str, given: dict[str, Any]) -> Any:
        """Operators on a tensor's memory: Weft's are on row-major memory, so operands are permuted to the order that theirs has.
        A view's memory is that of its root."""
        operand = given.pop("self")
        root = operand if name == "aten.as_strided_scatter" else root_of(operand)
        v, order = root.meta["val"], order_of(root.meta["val"])
        if not is_dense(v):
            raise Unsupported(node, "an operand whose memory has gaps or repetitions")
        offset = given.get("storage_offset")
        if isinstance(offset, Node):
            offset = self.env[offset]
        offset = (operand.meta["val"].storage_offset() if offset is None else offset) - v.storage_offset()
        value = self._checked(node, self.trace.call, "aten.permute", (self.env[root], list(order)), {}) if order else self.env[root]
        rest = {k: self._argument(node, a) for k, a in given.items()} | {"storage_offset": self._argument(node, offset)}
        out = self._checked(node, self.trace.call, name, (value,), rest)
        if order and name == "aten.as_strided_scatter":
            out = self._checked(node, self.trace.call, "aten.permute", (out, list(inverse(order))), {})
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

    def value_of(self, argument: str) -> torch.Tensor:
        """An argument of the operator that is traced, with its type in PyTorch."""
        return self._given[argument].meta["val"]

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

    def _checked(self, node: Node | None, f: Any, *args: Any) -> Any:
        try:
            return f(*args)
        except _weft.Error as e:
            raise Unsupported(node, str(e).split(": ", 1)[-1]) from None

    def _arguments(self, node: Node, target: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional arguments as long as none is left out, then named ones."""
        listed, named, widened = [], {}, self._is_widened(node)
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
            if str(a.type) == "Tensor" and isinstance(value, (bool, int, float, complex, _weft.Size)) and not (k and op_name(target).endswith(".Tensor")):
                value = self._number(node, value)
            integers = widened and isinstance(value, _weft.Value) and _kind(self.trace.dtype(value)) in ("i", "bool")
            if integers and a.name not in ("condition", "mask", "index", "indices"):
                value = self._call_op(node, "_to_copy", value, dtype=DTYPES[torch.float64])
            if k == len(listed) and not a.kwarg_only:
                listed.append(value)
            else:
                named[a.name] = value
        if widened and not self._kinds() and any(a.name == "dtype" for a in target._schema.arguments) and self._given.get("dtype") is None:
            named["dtype"] = DTYPES[node.meta["val"].dtype]
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

    def _tensors(self) -> list[torch.Tensor]:
        """The operands that are tensors."""
        return [v for n in self._given.values() if isinstance(n, Node) and isinstance(v := n.meta.get("val"), torch.Tensor)]

    def _kinds(self) -> set[str]:
        """The kinds of the operands that are tensors, those in lists and constants included."""
        leaves = torch.utils._pytree.tree_leaves(list(self._given.values()))
        return {_kind(self.trace.dtype(v)) for n in leaves if isinstance(n, Node) and isinstance(v := self.env.get(n), _weft.Value)}

    def _is_widened(self, node: Node) -> bool:
        """Whether the result has double precision and no operand or argument says so: PyTorch's default dtype is f64, and integers are f64
        beside floats. Of files, passes/canon.c asks that."""
        v = node.meta.get("val")
        if not isinstance(v, torch.Tensor) or v.dtype not in (torch.float64, torch.complex128):
            return False
        return not any(isinstance(a, torch.dtype) for a in self._given.values()) and not self._kinds() & {"f", "c"}

    def _dtype_beside(self, number: Any) -> str:
        """The dtype of a number: of the first operand that is a tensor, where it can hold the number, else beside all tensors."""
        tensors = self._tensors()
        dtype = torch.result_type(tensors[0] if tensors else number, number)
        if tensors and dtype != tensors[0].dtype:
            all_dtypes = functools.reduce(torch.promote_types, (t.dtype for t in tensors))
            dtype = torch.result_type(torch.empty(1, dtype=all_dtypes, device="meta"), number)
        return DTYPES[dtype]

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
        if is_float and type(given) is int:
            return float(given)
        if given is None or isinstance(given, (_weft.Value, bool, int, float, complex, str)):
            return given
        raise Unsupported(node, f"an argument of {type(given).__name__}")


def _kind(dtype: str) -> str:
    """ "f" of floats, "i" of integers, "c" of complex numbers, "bool" """
    return dtype if dtype == "bool" else {"b": "f", "u": "i"}.get(dtype[0], dtype[0])


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
                op_name(node.target) in SAME or is_empty(node)):
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
                        self._declare(symbol, s.node.shape_env, s.node.expr.is_Symbol)
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
