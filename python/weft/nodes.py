"""Nodes of graphs, with the names of torch.fx.

    for node in g.nodes:
        if node.target == "aten.relu":
            with g.inserting_before(node):
                new = g.call_function("aten.clamp", (node.args[0], 0, 6))
            node.replace_all_uses_with(new)
            g.erase_node(node)
    g.lint()
"""
from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from typing import Any

from weft import _weft

_OPS = {"input": "placeholder", "state": "get_attr", "constant": "get_attr", "call": "call_function"}


def operator_name(target: Any) -> str:
    """The name of an operator: of a text itself; of an operator of torch.ops "aten.relu.default"."""
    if isinstance(target, str):
        return target
    if type(target).__module__ == "torch._ops":
        return str(target)
    raise TypeError(f"an operator is a name, \"aten.relu\", or one of torch.ops, not {type(target).__name__}")


class Node:
    """A node of a graph: an input, a state, a constant, or the call of an operator. Objects of one node are equal.

    An output of a graph is no node (Graph.output_nodes). An operator with several results is one node; nodes
    of the operator "get" read its results.
    """
    __slots__ = ("graph", "raw")

    def __init__(self, graph: Any, raw: Any):
        self.graph, self.raw = graph, raw

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.raw.index == other.raw.index and self.graph.raw is other.graph.raw

    def __hash__(self) -> int:
        return self.raw.index

    def _info(self) -> tuple[str, str, str, str, int]:
        return _weft.node_info(self.graph.raw, self.raw)

    @property
    def op(self) -> str:
        """"placeholder", "get_attr" (a constant, or a state) or "call_function"."""
        return _OPS[self._info()[0]]

    @property
    def target(self) -> str:
        """The operator, "aten.add.Tensor", of the user "mylib::decay"; of other nodes the name that users of the model see."""
        kind, op, name, _, _ = self._info()
        return op if kind == "call" else name or self.name

    @property
    def name(self) -> str:
        return _weft.node_name(self.graph.raw, self.raw)

    @name.setter
    def name(self, name: str) -> None:
        _weft.node_set_name(self.graph.raw, self.raw, name)

    @property
    def kwargs(self) -> dict[str, Any]:
        """All arguments of a call by the names of the schema, also those that have their defaults."""
        return {name: self.graph._wrapped(value) for name, value in _weft.node_arguments(self.graph.raw, self.raw)} if self.op == "call_function" else {}

    @property
    def args(self) -> tuple[Any, ...]:
        """All arguments of a call, in the order of the schema."""
        return tuple(self.kwargs.values())

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes that this node reads, each once."""
        flat = [x for a in self.args for x in (a if isinstance(a, (list, tuple)) else [a]) if isinstance(x, Node)]
        return list(dict.fromkeys(flat))

    @property
    def users(self) -> dict[Node, None]:
        """The nodes that read this node. Outputs are no nodes."""
        return {Node(self.graph, n): None for n in _weft.node_users(self.graph.raw, self.raw)}

    @property
    def next(self) -> Node | None:
        return self.graph._wrapped(_weft.node_next(self.graph.raw, self.raw))

    @property
    def prev(self) -> Node | None:
        return self.graph._wrapped(_weft.node_prev(self.graph.raw, self.raw))

    @property
    def dtype(self) -> str:
        """"f32", of a node whose value is one tensor."""
        return _weft.node_result_type(self.graph.raw, self.raw, 0)[0]

    @property
    def shape(self) -> tuple[int | str, ...]:
        """The extents: numbers, or texts of expressions of sizes."""
        return _weft.node_result_type(self.graph.raw, self.raw, 0)[1]

    @property
    def stack_trace(self) -> str:
        """The line of the model's source: "net.py:12 in layer.0"; "" if it is unknown."""
        return self._info()[3]

    def value(self) -> Any:
        """A copy of the value of a constant, or of the initial contents of a state."""
        import sys
        torch = sys.modules.get("torch")
        return _weft.node_value(self.graph.raw, self.raw, torch.empty(0) if torch else None)

    def replace_all_uses_with(self, by: Node) -> None:
        """All readers of this node read another one of the same type, outputs of the graph included."""
        _weft.node_replace(self.graph.raw, self.raw, by.raw)

    def replace_input_with(self, old: Node, new: Node) -> None:
        """This node reads `new` wherever it reads `old`."""
        for name, value in self.kwargs.items():
            if value == old and isinstance(value, Node):
                self.update_kwarg(name, new)
            elif isinstance(value, list) and any(isinstance(x, Node) and x == old for x in value):
                self.update_kwarg(name, [new if isinstance(x, Node) and x == old else x for x in value])

    def update_kwarg(self, name: str, value: Any) -> None:
        """Changes an argument; the node must keep its type."""
        _weft.node_set_argument(self.graph.raw, self.raw, name, _bare(value))

    def update_arg(self, k: int, value: Any) -> None:
        """Changes argument k of args."""
        self.update_kwarg(list(self.kwargs)[k], value)

    def __repr__(self) -> str:
        return self.name

    def format_node(self) -> str:
        """The node as a line of Graph.text."""
        return _weft.node_text(self.graph.raw, self.raw)


def _bare(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_bare(v) for v in value]
    return value.raw if isinstance(value, Node) else value


class Nodes:
    """What Graph has of nodes."""
    raw: Any

    def _wrapped(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._wrapped(v) for v in value]
        if isinstance(value, _weft.Node):
            return Node(self, value)
        return type(self)(value) if isinstance(value, _weft.Graph) else value

    @property
    def nodes(self) -> list[Node]:
        """All nodes in program order. The list stays as it is when the graph changes."""
        return [Node(self, n) for n in _weft.nodes(self.raw)]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def find_nodes(self, *, op: str, target: Any = None) -> list[Node]:
        """The nodes with that op, and that target: of calls an operator, by any of its names, or one of torch.ops. A name that
        is no operator is an error."""
        if op not in _OPS.values():
            raise ValueError(f"find_nodes: op is {', '.join(map(repr, dict.fromkeys(_OPS.values())))}, not {op!r}")
        if target is None or op != "call_function":
            return [n for n in self.nodes if n.op == op and target in (None, n.target)]
        name = operator_name(target)
        try:
            return [n for n in self.nodes if _weft.node_is(self.raw, n.raw, name) and n.op == op]
        except _weft.Error as e:
            raise _weft.Error(f"find_nodes: {str(e).removeprefix('weft_node_is: ')}") from None

    @property
    def input_nodes(self) -> list[Node]:
        return [Node(self, _weft.node_of_input(self.raw, k)) for k in range(len(self.raw.inputs()))]

    @property
    def output_nodes(self) -> list[Node]:
        """The nodes whose values are the outputs."""
        return [Node(self, _weft.node_of_output(self.raw, k)) for k in range(len(self.raw.outputs()))]

    @contextlib.contextmanager
    def inserting_before(self, node: Node) -> Iterator[None]:
        """Where call_function inserts, inside of a with statement: in front of a node."""
        with self._inserting(node, False):
            yield

    @contextlib.contextmanager
    def inserting_after(self, node: Node) -> Iterator[None]:
        """Behind a node; a second node stands behind the first."""
        with self._inserting(node, True):
            yield

    @contextlib.contextmanager
    def _inserting(self, node: Node, after: bool) -> Iterator[None]:
        kept, self._place = getattr(self, "_place", None), (node, after)
        try:
            yield
        finally:
            self._place = kept

    def call_function(self, target: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Node:
        """Inserts the call of an operator, "aten.clamp", torch.ops.aten.clamp.default or "mylib::decay", at the place of
        inserting_before or inserting_after, else at the end of the graph."""
        node, after = getattr(self, "_place", None) or (self.nodes[-1], True)
        made = Node(self, _weft.node_insert(self.raw, node.raw, after, operator_name(target), tuple(map(_bare, args)), {k: _bare(v) for k, v in (kwargs or {}).items()}))
        if after and getattr(self, "_place", None):
            self._place = (made, True)
        return made

    def get_result(self, several: Node, k: int) -> Node:
        """Inserts a node whose value is result k of an operator with several results, behind that."""
        return Node(self, _weft.node_result(self.raw, several.raw, k))

    def constant(self, value: Any, name: str | None = None) -> Node:
        """Adds a constant; with a name it is a parameter."""
        from weft.model import _contiguous
        return Node(self, _weft.graph_constant(self.raw, name, _contiguous(value)))

    def placeholder(self, name: str, type: str) -> Node:
        """Appends an input: placeholder("mask", "bool[B, 64]")."""
        return Node(self, _weft.graph_add_input(self.raw, name, type))

    def add_output(self, name: str, node: Node) -> None:
        _weft.graph_add_output(self.raw, name, node.raw)

    def set_output(self, k: int, node: Node) -> None:
        """Output k is the value of the node."""
        _weft.graph_set_output(self.raw, k, node.raw)

    def rename_size(self, size: str, name: str) -> None:
        """Gives a size another name, in messages and in Model.symbols."""
        _weft.graph_rename_size(self.raw, size, name)

    def remove_output(self, k: int) -> None:
        _weft.graph_remove_output(self.raw, k)

    def erase_node(self, node: Node) -> None:
        """Erases a node that nothing reads."""
        _weft.node_erase(self.raw, node.raw)

    def eliminate_dead_code(self) -> int:
        """Erases all nodes without readers and effects. Returns their number."""
        return _weft.graph_sweep(self.raw)

    def lint(self) -> None:
        """Raises weft.Error if the graph is wrong: order, operands, attributes, types."""
        _weft.graph_verify(self.raw)

    def replace_pattern(self, pattern: str | Callable[..., Any], replacement: str | Callable[..., Any], *types: str,
                        symbols: dict[str, tuple[int, int]] | None = None) -> int:
        """Replaces each place that is like a pattern. Returns the number of places (weft_graph.h says what is alike).

        pattern, replacement: functions on arrays, which are traced as in weft.trace with types as their
        parameters; or graphs in text form.
        """
        from weft.graph import traced

        def made(f: Any, name: str) -> Any:
            return self.raw.session.parse(f, name) if isinstance(f, str) else traced(self.raw.session, f, types, symbols, name)
        return _weft.replace_pattern(self.raw, made(pattern, "pattern"), made(replacement, "replacement"))

    @classmethod
    def from_fx(cls, gm: Any, *args: Any) -> Any:
        """The graph of a torch.fx.GraphModule: of one whose nodes are ATen's operators with example values (make_fx,
        AOTAutograd), by these; of another one by torch.export with example inputs."""
        import torch
        calls = [n for n in gm.graph.nodes if n.op.startswith("call_")]
        if all(n.target is operator.getitem or isinstance(n.target, torch._ops.OpOverload) and "val" in n.meta for n in calls):
            from weft import fx
            return cls(fx.Values(gm, type(gm).__name__).graph)
        from weft.graph import graph
        if not args:
            raise TypeError("from_fx: this graph needs example inputs: from_fx(gm, x)")
        return cls(graph(gm, args).raw)
