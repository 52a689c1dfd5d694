"""Types, and their sizes: expressions of SymPy as Weft writes them."""
from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy
import torch
from torch.fx import Node

DTYPES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64", torch.int32: "i32",
          torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64",
          torch.bool: "bool", torch.complex64: "c64", torch.complex128: "c128", torch.float8_e4m3fn: "f8e4m3", torch.float8_e5m2: "f8e5m2",
          torch.float8_e4m3fnuz: "f8e4m3fnuz", torch.float8_e5m2fnuz: "f8e5m2fnuz"}
MOST, _GREATEST = 2**62, 2**63 - 1  # of an extent, of an integer


class Unsupported(Exception):
    """A node that cannot be traced, and why."""

    def __init__(self, node: Node | None, why: str):
        super().__init__(why)
        self.node = node


class _Printer(sympy.printing.str.StrPrinter):
    """Expressions as Weft's parser of sizes reads them, with these texts for some symbols."""
    printmethod = ""  # torch's functions print themselves otherwise

    def __init__(self, names: dict[Any, str]):
        super().__init__()
        self.names = names

    def _print_Symbol(self, e):
        return self.names.get(e) or e.name

    def _print_FloorDiv(self, e):
        return f"floordiv({self._print(e.args[0])}, {self._print(e.args[1])})"

    _print_CleanDiv = _print_FloorDiv

    def _print_Mod(self, e):
        return f"mod({self._print(e.args[0])}, {self._print(e.args[1])})"

    _print_PythonMod = _print_Mod

    def _print_Min(self, e):
        return self._nested("min", e.args)

    def _print_Max(self, e):
        return self._nested("max", e.args)

    def _nested(self, name, args):
        text = self._print(args[0])
        for a in args[1:]:
            text = f"{name}({text}, {self._print(a)})"
        return text

    def _print_Pow(self, e):
        base, power = e.args
        if power.is_Integer and 0 < power < 9:
            return "*".join([f"({self._print(base)})" if base.is_Add else self._print(base)] * int(power))
        raise Unsupported(None, f"the size {e} is no expression of Weft")

    def _print_FloorToInt(self, e):
        return f"floordiv({', '.join(map(self._print, _quotient(e)))})"

    _print_TruncToInt = _print_FloorToInt

    def _print_CeilToInt(self, e):
        a, b = _quotient(e)
        return f"floordiv({self._print(a + b - 1)}, {self._print(b)})"

    def _print_ModularIndexing(self, e):
        a, b, c = map(self._print, e.args)
        return f"mod(floordiv({a}, {b}), {c})"


_ROUNDED = ("FloorToInt", "TruncToInt", "CeilToInt")  # int(n / 2), math.ceil(n / 2), int(1.5 * n)
_KINDS = ("FloorDiv", "CleanDiv", "Mod", "PythonMod", "Min", "Max", "ModularIndexing", *_ROUNDED)


def _quotient(rounded: Any) -> tuple[Any, Any]:
    """Integers a and b > 0 so that the floating-point number that is rounded is a / b exactly, or so near that the result is
    that of a / b: sizes are less than 2^53."""
    e, factor = rounded.args[0], Fraction(1)
    if e.is_Mul and len(e.args) == 2 and e.args[0].is_Float:
        factor, e = Fraction(float(e.args[0])), e.args[1]
    a, b = e.args if type(e).__name__ == "IntTrueDiv" and factor == 1 else (e.args[0], sympy.Integer(1)) if type(e).__name__ == "ToFloat" else (None, None)
    few = 0 < factor.numerator < 2**20 and factor.denominator < 2**20
    if a is None or not few or not b.is_positive or not (a.is_nonnegative or type(rounded).__name__ == "FloorToInt"):
        raise Unsupported(None, f"the size {rounded} is no expression of Weft")
    return a * factor.numerator, b * factor.denominator


def _check_size(e: Any, whole: Any) -> None:
    name = type(e).__name__
    if not isinstance(e, (sympy.Symbol, sympy.Integer, sympy.Add, sympy.Mul, sympy.Pow)) and name not in _KINDS:
        raise Unsupported(None, f"the size {whole} is no expression of Weft")
    for part in _quotient(e) if name in _ROUNDED else e.args:
        _check_size(part, whole)


def size_text(value: int | torch.SymInt | sympy.Expr, names: dict[Any, str]) -> str | int:
    """An integer, or the text of an expression, in which some symbols have other texts."""
    if isinstance(value, int):
        return value
    e = sympy.expand(value.node.expr if isinstance(value, torch.SymInt) else value)
    if e.is_Integer:
        return int(e)
    _check_size(e, e)
    return _Printer(names).doprint(e)


def is_symbolic(value: Any) -> bool:
    return isinstance(value, torch.SymInt) and not value.node.expr.is_Integer


def size_hint(n: int | torch.SymInt) -> int | None:
    """The value while tracing."""
    return n if isinstance(n, int) else n.node.hint


def bounds(symbol: sympy.Symbol, shape_env: Any) -> tuple[int, int]:
    """The range of an integer, which may be negative."""
    r = shape_env.var_to_range.get(symbol)
    lo = int(r.lower) if r is not None and r.lower.is_Integer else -_GREATEST
    hi = int(r.upper) if r is not None and r.upper.is_Integer else _GREATEST
    return max(lo, -_GREATEST), min(hi, _GREATEST)


def size_range(symbol: sympy.Symbol, shape_env: Any, is_extent: bool) -> tuple[int, int]:
    """The range of an extent, or of an integer of which extents are expressions, which may be negative."""
    lo, hi = bounds(symbol, shape_env)
    return max(lo, 0 if is_extent else -MOST), min(hi, MOST)


def type_text(v: torch.Tensor, names: dict[Any, str]) -> str:
    """"f32[s0, 3]" """
    return f"{DTYPES[v.dtype]}[{', '.join(str(size_text(n, names)) for n in v.shape)}]"
