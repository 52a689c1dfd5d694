"""What functions of a step read beside their arguments: numbers and tensors in closures, defaults and globals, which a trace keeps as they are."""
from __future__ import annotations

import dis
import functools
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch

from weft.joint import VALUES

_MOST = 200  # functions that are looked at


def _globals_of(code: CodeType) -> Iterator[str]:
    """Names of globals that the code reads, that of functions in it included."""
    for i in dis.get_instructions(code):
        if i.opname == "LOAD_GLOBAL":
            yield i.argval
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals_of(inner)


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it has no value yet
        return None


def _direct(f: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names of what a function reads, and how to read it again."""
    if isinstance(f, functools.partial):
        yield "", lambda: f.func
        for k, _ in enumerate(f.args):
            yield f"argument {k}", lambda k=k: f.args[k]
        for k in f.keywords:
            yield k, lambda k=k: f.keywords.get(k)
    elif isinstance(f, MethodType):
        yield "", lambda: f.__func__
        if not isinstance(f.__self__, (torch.nn.Module, type)):
            for k in getattr(f.__self__, "__dict__", ()):
                yield f"self.{k}", lambda k=k: f.__self__.__dict__.get(k)
    elif isinstance(f, FunctionType):
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
            yield name, lambda cell=cell: _cell(cell)
        for k, _ in enumerate(f.__defaults__ or ()):
            yield f"default {k}", lambda k=k: (f.__defaults__ or ())[k]
        for name in dict.fromkeys(_globals_of(f.__code__)):
            if name in f.__globals__:
                yield name, lambda name=name: f.__globals__.get(name)


def _is_ours(f: Any) -> bool:
    """Whether a function is part of the user's program."""
    module = getattr(f, "__module__", None) or ""
    return isinstance(f, functools.partial) or isinstance(f, (FunctionType, MethodType)) and module.split(".")[0] not in ("torch", "weft")


class Read:
    """A number, text or tensor that a function reads."""

    def __init__(self, name: str, get: Callable[[], Any]):
        self.name, self.get, self.value = name, get, get()
        self.version = self.value._version if isinstance(self.value, torch.Tensor) else None

    def changed(self) -> bool:
        now = self.get()
        if isinstance(self.value, torch.Tensor) or isinstance(now, torch.Tensor):
            return now is not self.value or now._version != self.version
        return now is not self.value and (type(now) is not type(self.value) or now != self.value)


def reads_of(functions: list[tuple[str, Any]]) -> list[Read]:
    """What functions of a program read, and functions that these call by name. functions: what they are called, and they."""
    out, seen, left = [], set(), [(name, f) for name, f in functions if _is_ours(f)]
    while left and len(seen) < _MOST:
        name, f = left.pop()
        if id(f) in seen:
            continue
        seen.add(id(f))
        for what, get in _direct(f):
            value = get()
            if isinstance(value, VALUES) and not isinstance(value, torch.nn.Parameter):
                out.append(Read(f"{what}, which {name} reads,", get))
            elif _is_ours(value):
                left.append((name, value))
    return out
