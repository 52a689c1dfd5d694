"""How the results of a graph are made of a compiled model's outputs and of the arguments of a call."""
from __future__ import annotations

import collections
import math
import operator
from typing import Any, NamedTuple

import sympy
import torch
from torch._prims_common import is_contiguous_or_false
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils._sympy.printers import PythonPrinter

from weft import _weft
from weft.scalars import Scalars
from weft.sizes import DTYPES, Unsupported, size_hint

_SAME = torch.ops.aten.detach.default, torch.ops.aten.alias.default


class Output(NamedTuple):
    """How a result is made: it is data, which can be pickled.

    kind "input": argument number `index`, or what the View `value` makes of it.
    kind "tensor": output number `index` of the compiled model, with its dimensions in `order`, then as value says: None:
    itself; "alias": another tensor on the same memory; Sizes: a view of that shape, strides, and offset from the tensor's
    own; View: what that makes of it. kind "part": the same, as a view of the tensor. kind "number": the number
    that output `index` has. kind "size": the one integer of the Sizes value. kind "constant": value."""
    kind: str
    index: int = 0
    value: Any = None
    order: tuple[int, ...] | None = None


class Sizes:
    """A function from the arguments `a` of a call to integers, by its text in Python, so that it can be pickled."""

    def __init__(self, text: str):
        self.text, self.of = text, eval(f"lambda a: ({text},)", {"math": math, "torch": torch})

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


class Results(Scalars):
    """The part of a Lowering that sees to results."""

    def _outputs(self, node: Node) -> None:
        flat, self.spec = torch.utils._pytree.tree_flatten(node.args[0])
        first = len(flat) - len(self.written)
        assigned = [k for k in range(first, len(flat)) if self._may_assign(self.written[k - first], flat[k])]
        slot = self._slot = {n: k for k, n in enumerate(n for n in self.gm.graph.nodes if n.op == "placeholder")}
        roots = collections.Counter(root_of(n) for n in flat if isinstance(n, Node))
        # Results that share memory are views of one value. Of what training saves nobody asks that.
        several = () if self.name in ("forward", "backward") else (n for n, count in roots.items() if count > 1)
        self._roots = {n for n in roots if n in flat}
        self._bases = set(several)
        for k, n in enumerate(flat):
            if k in assigned:
                continue
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
        for k in assigned:
            self._assign(self.written[k - first], flat[k])

    def _may_assign(self, argument: int, n: Any) -> bool:
        """Whether an output of the model can be the argument's new value, in its memory: that has each element once and no gaps."""
        if not isinstance(n, Node) or n.op == "placeholder" or not isinstance(self.env[n], _weft.Value) or argument not in self.inputs or self.lazy:
            return False
        v, to = self._arguments_of()[argument].meta["val"], n.meta["val"]
        return is_dense(v) and self.trace.dtype(self.env[n]) == DTYPES[v.dtype] and len(v.shape) == len(to.shape) and all(
            statically_known_true(a == b) for a, b in zip(v.shape, to.shape))

    def _arguments_of(self) -> list[Node]:
        return list(self.gm.graph.find_nodes(op="placeholder"))

    def _assign(self, argument: int, n: Node) -> None:
        value, order, shape = self.env[n], self.orders.get(argument), self._arguments_of()[argument].meta["val"].shape
        if None in self.trace.shape(value):  # the same extents in the same words
            value = self._checked(n, self.trace.call, "aten.expand", (value, [self._argument(n, s) for s in shape]), {})
        if order:
            value = self._checked(n, self.trace.call, "aten.permute", (value, list(order)), {})
        self._checked(n, self.trace.assign, self.inputs[argument], value)
        self.assigned.append(argument)

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
        root = root_of(node)
        r = root.meta["val"]
        if root is not node and _has_gaps(r):
            # The value that a write into an input leaves there has the input's strides, and AOTAutograd makes views of the input
            # with those of the result.
            v = node.meta["val"]
            offset = self._size_code(v.storage_offset() - r.storage_offset())
            view = f"{self._spaced(r)}.as_strided({self._tuple(v.shape)}, {self._tuple(v.stride())}, {offset}).detach()"
            return self._output(root)._replace(value=View(view))
        few = statically_known_true(r.numel() <= node.meta["val"].numel())
        if root is not node and is_dense(r) and (root in self._roots or root in self._bases or few):
            kind = "part" if root in self._bases else "tensor"
            return Output(kind, self._output(root).index, self._view(node, root), self._output(root).order)
        if node in self._bases and not _has_gaps(node.meta["val"]):
            return self._output(node)._replace(kind="part", value="alias")
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
        value, order = self.env[node], order_of(node.meta["val"])
        if is_empty(node):  # what Weft's operator computes where PyTorch leaves a result out has no element here
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
        self._named[node] = out = Output("tensor", self.noutput, gaps, inverse(order) if order else None)
        self.noutput += 1
        return out

    def _view(self, node: Node, root: Node) -> Any:
        """The value of an Output: how the node's value is a view of the root's."""
        v, r = node.meta["val"], root.meta["val"]
        if v.dtype == r.dtype and len(v.shape) == len(r.shape) and all(
                statically_known_true(a == b) for a, b in zip((*v.shape, *v.stride()), (*r.shape, *r.stride()))):
            return "alias"
        return self._sizes([*v.shape, *v.stride(), v.storage_offset() - r.storage_offset()])


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
    if node.target in _SAME:
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
    return operand if same or node.target in _SAME else None


def _is_view(node: Node) -> bool:
    return _viewed(node) is not None


def root_of(node: Node) -> Node:
    while (operand := _viewed(node)) is not None:
        node = operand
    return node


def is_dense(v: torch.Tensor) -> bool:
    """Whether a model's output of this value has its strides: row-major in some order of dimensions."""
    return is_contiguous_or_false(v) or order_of(v) is not None


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


def order_of(v: torch.Tensor) -> tuple[int, ...] | None:
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


def inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(d) for d in range(len(order)))


def is_empty(node: Node) -> bool:
    v = node.meta.get("val")
    return isinstance(v, torch.Tensor) and all(isinstance(n, int) for n in v.shape) and 0 in v.shape
