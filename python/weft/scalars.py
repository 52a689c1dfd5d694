"""Integers, floats and truths of a graph: what a number of Python would be in eager mode."""
from __future__ import annotations

import functools
import re
from typing import Any

import sympy
import torch
from torch.fx import Node

from weft import _weft
from weft.sizes import Unsupported, bounds, size_text

_RELATIONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
# Functions of floats in PyTorch's expressions.
_FLOATS = {"Add": "add.Tensor", "Mul": "mul.Tensor", "Min": "minimum", "Max": "maximum", "FloatTrueDiv": "div.Tensor", "IntTrueDiv": "div.Tensor",
           "FloatPow": "pow.Tensor_Tensor", "Pow": "pow.Tensor_Tensor", "PowByNatural": "pow.Tensor_Tensor", "Abs": "abs"}


def expression(value: Any) -> sympy.Basic | None:
    """The expression of a number that is not known while tracing."""
    if not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return None
    e = value.node.expr
    return e if e.free_symbols else None


class Scalars:
    """The part of a Lowering that sees to numbers. Integers are sizes, by name; floats are tensors of f64 without dimensions,
    truths such tensors of bool."""

    def _call_op(self, node: Node, name: str, *values: Any, **named: Any) -> Any:
        return self._checked(node, self.trace.call, f"aten.{name}", values, named)

    def _learn(self, node: Node) -> None:
        """Names the sizes that the value brings, such as the number of rows of nonzero, and checks what tracing knows of
        others."""
        v, value = node.meta.get("val"), self.env[node]
        if self.alone or not isinstance(v, torch.Tensor) or not isinstance(value, _weft.Value):
            return
        given = {str(s) for s in self.declared} | {"min", "max", "mod", "floordiv"}
        for d, (n, extent) in enumerate(zip(v.shape, self.trace.shape(value))):
            if extent is not None:
                continue
            text, e = self.trace.extent(value, d), n.node.expr if isinstance(n, torch.SymInt) else sympy.Integer(n)
            if e.is_Symbol and e not in self.names and e not in self.declared:
                self.names[e] = f"({text})"
            elif set(re.findall(r"[A-Za-z_]\w*", text)) - given and (expected := str(self._size(node, e))) != text:
                self._assert(node, self._call_op(node, "eq.Tensor", *(self._checked(node, self.trace.integer, n) for n in (text, expected))))

    def _item(self, node: Node, value: Any) -> Any:
        """The number that a tensor has: a new size, or a float."""
        e, made = expression(value), self._call_op(node, "reshape", self.env[node.args[0]], [])
        if isinstance(value, torch.SymFloat) and e is not None and e.is_Symbol and e not in self.numbers:
            self.numbers[e] = self._call_op(node, "_to_copy", made, dtype="f64")
            return value
        if self.depth:
            raise Unsupported(node, "a size inside of a body")
        symbol = e.lhs if isinstance(e, sympy.Eq) and e.rhs == 1 else e  # a truth is an integer that equals 1
        if isinstance(value, (float, torch.SymFloat)) or symbol is not None and (not symbol.is_Symbol or symbol in self.names):
            raise Unsupported(node, "a number of which tracing knows something")
        lo, hi = (int(value), int(value)) if symbol is None else bounds(symbol, value.node.shape_env)
        name = f"item_{node.name}"
        self._checked(node, self.trace.size, name, self._call_op(node, "_to_copy", made, dtype="i64"), lo, hi)
        if symbol is not None:
            self.names[symbol] = name
        return value

    def _size(self, node: Node, e: Any) -> str | int:
        try:
            return size_text(e, self.names)
        except Unsupported as why:
            raise Unsupported(node, str(why)) from None

    def _assert(self, node: Node, holds: Any) -> None:
        message = node.args[1] if node.target is torch.ops.aten._assert_scalar.default else f"{node.name}: not the shape that tracing expects"
        self._call_op(node, "_assert_async.msg", holds, message)

    def _integer(self, node: Node, e: Any) -> Any:
        """An integer as a tensor."""
        if isinstance(e, sympy.Piecewise) and [value for value, _ in e.args] == [1, 0] and e.args[1][1] == sympy.true:
            return self._call_op(node, "_to_copy", self._truth(node, e.args[0][1]), dtype="i64")
        return self._checked(node, self.trace.integer, str(self._size(node, e)))

    def _truth(self, node: Node, e: Any) -> Any:
        """A condition on sizes as a tensor."""
        if e in (sympy.true, sympy.false):
            return self._call_op(node, "full", [], bool(e), dtype="bool")
        if isinstance(e, sympy.core.relational.Relational) and e.rel_op in _RELATIONS:
            return self._call_op(node, f"{_RELATIONS[e.rel_op]}.Tensor", self._integer(node, e.lhs), self._integer(node, e.rhs))
        if isinstance(e, (sympy.And, sympy.Or, sympy.Not)):
            return self._folded(node, f"logical_{type(e).__name__.lower()}", [self._truth(node, part) for part in e.args])
        raise Unsupported(node, f"the condition {e}")

    def _real(self, node: Node, e: Any) -> Any:
        """A float as a tensor."""
        if e in self.numbers:
            return self.numbers[e]
        if e.is_number:
            return self._call_op(node, "full", [], float(e), dtype="f64")
        name = type(e).__name__
        if e.is_integer or name == "ToFloat":
            return self._call_op(node, "_to_copy", self._integer(node, e.args[0] if name == "ToFloat" else e), dtype="f64")
        op = _FLOATS.get(name) or name.removeprefix("OpaqueUnaryFn_")
        if e.is_Symbol or op == name:
            raise Unsupported(node, f"the number {e}")
        return self._folded(node, op, [self._real(node, part) for part in e.args])

    def _folded(self, node: Node, op: str, parts: list[Any]) -> Any:
        """The operator of one or two operands, of all parts."""
        if len(parts) == 1:
            return self._call_op(node, op, *parts)
        return functools.reduce(lambda a, b: self._call_op(node, op, a, b), parts)

    def _scalar(self, node: Node, value: Any) -> Any:
        """A float or truth that is not known while tracing, as a tensor."""
        e = value.node.expr
        return self._truth(node, e) if isinstance(value, torch.SymBool) else self._real(node, e)
