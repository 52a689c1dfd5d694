"""Libraries of the user's operators that torch.compile's graphs may call (docs/user-operators.md)."""
from __future__ import annotations

import contextlib
import hashlib
import pathlib
from collections.abc import Iterator
from typing import Any

import torch

from weft import _weft
from weft.compiler import session_with

_paths: tuple[str, ...] = ()
_session: _weft.Session | None = None  # it has the operators of these libraries


@contextlib.contextmanager
def using(paths: tuple[str, ...]) -> Iterator[None]:
    """What is lowered within may call the operators of these libraries. Dynamo compiles one graph at a time."""
    global _paths, _session
    kept = _paths, _session
    _paths, _session = paths, session_with(paths) if paths else None
    try:
        yield
    finally:
        _paths, _session = kept


def has(name: str) -> bool:
    """Whether a library in use has the operator of that name, "mylib.decay"."""
    return _session is not None and not name.startswith("aten.") and _session.supports(name, [])


def of(gm: Any) -> tuple[str, ...]:
    """The libraries in use if the graph, or one within, calls an operator of theirs, else none: models without such calls do not need them."""
    def calls(node: Any) -> bool:
        targets = [node.target, *node.args[1:2]]  # with_effects has the operator as an argument
        return any(isinstance(t, torch._ops.OpOverload) and has(t.name().replace("::", ".", 1)) for t in targets)
    graphs = [m for m in gm.modules() if isinstance(m, torch.fx.GraphModule)] if _session is not None else ()
    return _paths if any(calls(n) for m in graphs for n in m.graph.nodes) else ()


def contents(path: str) -> str:
    """The hash of a library, whose operators are others when it changes."""
    try:
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    except OSError:  # what is wrong is said where the library is loaded
        return ""
