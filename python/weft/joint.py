"""The joint graph of a module and its loss: forward and backward, as AOTAutograd traces them on fake tensors.

    joint = trace(module, loss, args, kwargs, dynamic_shapes)

Its placeholders are parameters, buffers and inputs, each with a Role; its results are the loss, the module's outputs, new values of
buffers, and gradients. Sizes of dynamic_shapes are symbols, of which Joint.conditions say what the trace relies on.
"""
from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import sympy
import torch
from torch.fx import GraphModule, Node

from weft import _weft, flex, regions
from weft.model import resolved


class Role(NamedTuple):
    """What a placeholder of the graph is. kind: "param", "buffer" or "input"; name: of the module, or of the function's parameter;
    index: of an input, its number among the leaves of the arguments."""
    kind: str
    name: str
    index: int = -1


class Condition(NamedTuple):
    """What the trace relies on: a relation of sizes by name, and the line where the module asked."""
    expression: sympy.Basic
    where: str
    proved: bool  # by the ranges of the sizes

    def holds(self, sizes: dict[sympy.Symbol, int]) -> bool:
        value = self.expression.xreplace({s: sympy.Integer(n) for s, n in sizes.items()})
        return bool(value) if value in (sympy.true, sympy.false) else True


class Joint:
    """A traced graph. gm: the graph, whose results are `loss`, then the outputs; new values of buffers and gradients are nodes."""

    gm: GraphModule
    loss: Node | None
    outputs: list[Any]
    out_spec: Any
    roles: dict[Node, Role]
    buffers: dict[Node, Node]                # by placeholder of a buffer: its new value
    gradients: dict[str, Node]               # by name of a parameter
    sparse: set[str]                         # names of parameters that embeddings with sparse=True read
    seed: Node | None                        # the gradient of the loss, 1
    symbols: dict[sympy.Symbol, str]         # names of sizes
    where: dict[sympy.Symbol, tuple[int, int]]  # leaf of the arguments, and dimension, of a size
    conditions: list[Condition]


PRECISIONS = {torch.bfloat16: "bf16", torch.float16: "f16"}  # of autocast, besides none
_LOW = {name: dtype for dtype, name in PRECISIONS.items()}


class Whole(torch.nn.Module):
    """A module with its loss: from the inputs to (loss, the module's outputs without history)."""

    def __init__(self, module: torch.nn.Module, loss: Callable[..., Any] | None, evaluates: bool = False, precision: str | None = None):
        super().__init__()
        self.module, self.evaluates, self.precision = module, evaluates, precision
        self.loss = loss  # registers its parameters and buffers if it is a module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        before = attributes(self)
        with contextlib.nullcontext() if self.precision is None else torch.autocast("cpu", _LOW[self.precision], cache_enabled=False):
            out = self._forward(*args, **kwargs)
        if (changed := _restored(self, before)) is not None:
            raise _Refused(f"the module's {changed} is another value after its forward, which assigns self.{changed.rpartition('.')[2]}: "
                           "a step cannot; of a tensor write into a buffer in place, with .copy_()")
        return out

    def _forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.evaluates:
            return self.module(*args, **kwargs)
        if self.loss is None:
            out = self.module(*args, **kwargs)
            value = out[0] if isinstance(out, (tuple, list)) and out else out
        else:
            out = self.module(*args[:-1], **kwargs)
            value = self.loss(out, args[-1])
        if not isinstance(value, torch.Tensor):
            raise _Refused(f"the loss is {type(value).__name__}, expected a tensor: without loss= the module returns it, alone or first")
        if value.numel() != 1:
            raise _Refused(f"the loss has the shape {list(value.shape)}, expected one number")
        if self.loss is None:
            out = tuple(out[1:]) if isinstance(out, (tuple, list)) else None
        return value.reshape(()), torch.utils._pytree.tree_map(lambda t: t.detach() if isinstance(t, torch.Tensor) else t, out)


class _Refused(Exception):
    pass


def error(what: str) -> _weft.Error:
    return _weft.Error(f"weft.train_step: {what}")


# ---- fake inputs ----

class _Sizes:
    """Symbols of the Dims of dynamic_shapes, one for each name."""

    def __init__(self, env: Any, ones: frozenset[str]):
        self.env, self.ones, self.made, self.count = env, ones, {}, 0
        self.names: dict[sympy.Symbol, str] = {}
        self.ranges: dict[sympy.Symbol, tuple[int, int]] = {}

    def of(self, dim: Any, hint: int, place: str) -> Any:
        """The extent for a Dim."""
        if dim is None or isinstance(dim, int) or dim == torch.export.Dim.STATIC:
            if isinstance(dim, int) and not isinstance(dim, bool) and dim != hint:
                raise error(f"dynamic_shapes: {place} is {hint}, not {dim}")
            return hint
        if isinstance(dim, type(torch.export.Dim.AUTO)):
            self.count += 1
            return hint if f"s{self.count}" in self.ones else self._symbol(f"s{self.count}", 0, None, hint)
        if not isinstance(dim, torch.export.Dim):
            raise error(f"dynamic_shapes: {place}: expected a Dim, a number or None, got {dim!r}")
        root = getattr(dim, "root", None)
        if (root or dim).__name__ in self.ones:
            return hint
        if root is not None:  # 2*batch
            value = next((n for n in range(hint + 1) if dim.fn(n) == hint), None)
            if value is None:
                raise error(f"dynamic_shapes: {place} is {hint}, which is no {dim.__name__}")
            return dim.fn(self._symbol(root.__name__, root.min, root.max, value))
        return self._symbol(dim.__name__, dim.min, dim.max, hint)

    def _symbol(self, name: str, lo: int, hi: Any, hint: int) -> Any:
        from torch._dynamo.source import ConstantSource
        from torch.fx.experimental.symbolic_shapes import DimDynamic, StrictMinMaxConstraint
        from torch.utils._sympy.numbers import int_oo
        from torch.utils._sympy.value_ranges import ValueRanges
        if name in self.made:
            if self.made[name][1] != hint:
                raise error(f"dynamic_shapes: {name} is {self.made[name][1]} and {hint} in the example inputs")
            return self.made[name][0]
        hi = int_oo if hi is None or hi >= 2**62 else hi
        if not lo <= hint <= hi:
            raise error(f"dynamic_shapes: {name} is {hint} in the example inputs, expected {lo} to {hi}")
        range_ = ValueRanges(lo, hi)
        symbol = self.env.create_symbol(hint, ConstantSource(name), dynamic_dim=DimDynamic.DYNAMIC,
                                        constraint_dim=StrictMinMaxConstraint(vr=range_, warn_only=False))
        if not isinstance(symbol, sympy.Symbol):
            return hint
        self.names[symbol], self.ranges[symbol] = name, (lo, hi)
        self.made[name] = self.env.create_symintnode(symbol, hint=hint, source=ConstantSource(name)), hint
        return self.made[name][0]


def _shapes_of(value: Any, shapes: Any, place: str) -> Any:
    """By leaf of the arguments: the Dims of its dimensions, {dimension: Dim}."""
    if isinstance(value, torch.Tensor):
        if isinstance(shapes, (tuple, list)):
            shapes = dict(enumerate(shapes))
        yield value, {d if d >= 0 else d + value.dim(): s for d, s in (shapes or {}).items()}, place
    elif isinstance(value, (tuple, list, dict)):
        keys = value if isinstance(value, dict) else range(len(value))
        for k in keys:
            inner = None
            if isinstance(shapes, dict):
                inner = shapes.get(k)
            elif isinstance(shapes, (tuple, list)) and isinstance(k, int) and k < len(shapes):
                inner = shapes[k]
            yield from _shapes_of(value[k], inner, f"{place}[{k!r}]" if place else str(k))
    else:
        for leaf in torch.utils._pytree.tree_leaves(value):
            yield from _shapes_of(leaf, None, place) if isinstance(leaf, torch.Tensor) else [(leaf, {}, place)]


def names_of_inputs(whole: Whole, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Names of the leaves of the arguments: of the parameters of the module's forward; the label has that of the loss's."""
    own = len(args) if whole.loss is None or whole.evaluates else len(args) - 1
    try:
        bound = inspect.signature(whole.module.forward).bind(*args[:own], **kwargs)
        names = list(bound.signature.parameters)
        first = [names[k] if k < len(names) and bound.signature.parameters[names[k]].kind is not inspect.Parameter.VAR_POSITIONAL
                 else f"x{k}" for k in range(own)]
    except (TypeError, ValueError):
        first = [f"x{k}" for k in range(own)]
    first += ["label"] * (len(args) - own)
    out: list[str] = []
    for name, value in [*zip(first, args), *kwargs.items()]:
        leaves = torch.utils._pytree.tree_leaves(value)
        out += [name] if len(leaves) == 1 else [f"{name}.{k}" for k in range(len(leaves))]
    return [n if out.count(n) == 1 else f"{n}_{k}" for k, n in enumerate(out)]


# ---- tracing ----

@contextlib.contextmanager
def _compiling() -> Any:
    """Lets torch.compiler.is_compiling() say so: code asks it before it looks at values, as transformers does."""
    before = torch.compiler._is_compiling_flag
    torch.compiler._is_compiling_flag = True
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = before


@contextlib.contextmanager
def _as_it_was(whole: Whole) -> Any:
    """Gives modules back their parameters and buffers: of a module with two names PyTorch leaves those of its trace."""
    had = [(values, dict(values)) for m in whole.modules() for values in (m._parameters, m._buffers)]
    try:
        yield
    finally:
        for values, before in had:
            values.update(before)


@contextlib.contextmanager
def _dense(whole: Whole) -> Any:
    """Lets embeddings with sparse=True have dense gradients, which tracing can follow. Gives the names of their parameters."""
    layers = [(n, m) for n, m in whole.named_modules() if isinstance(m, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and m.sparse]
    for _, m in layers:
        m.sparse = False
    try:
        yield {short(f"{n}.weight") for n, _ in layers}
    finally:
        for _, m in layers:
            m.sparse = True


@contextlib.contextmanager
def _user_errors() -> Any:
    """What PyTorch says of code that cannot be traced, with the line of the user's."""
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException
    try:
        yield
    except _Refused as e:
        raise error(str(e)) from None
    except (GuardOnDataDependentSymNode, DataDependentOutputException) as e:
        raise error(f"{_line(e)}the value of a tensor decides what Python does there (.item(), if tensor, int(tensor)): a step is one "
                    "graph; use torch.where or torch.cond") from e
    except (DynamicOutputShapeException, UnsupportedOperatorException) as e:
        raise error(f"{_line(e)}{getattr(e, 'func', e)} has a result whose size depends on data") from e


def _line(e: BaseException) -> str:
    """The last line outside of PyTorch and of Weft from which the error came: "model.py:31: "."""
    import os
    import traceback
    inside = os.path.dirname(torch.__file__), os.path.dirname(__file__)
    lines = [f for f in traceback.extract_tb(e.__traceback__) if not f.filename.startswith(inside) and "<" not in f.filename]
    return f"{os.path.basename(lines[-1].filename)}:{lines[-1].lineno}: {lines[-1].line}: " if lines else ""


def _fake(leaf: Any, dims: dict[int, Any], sizes: _Sizes, place: str, mode: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    if leaf.device.type != "cpu":
        raise error(f"input {place} is on {leaf.device}, expected one of the processor")
    for d in dims:
        if not 0 <= d < leaf.dim():
            raise error(f"dynamic_shapes: input {place} has no dimension {d}")
    if not dims:
        return mode.from_tensor(resolved(leaf.detach()).contiguous(), static_shapes=True)
    shape = [sizes.of(dims.get(d), n, f"dimension {d} of {place}") for d, n in enumerate(leaf.shape)]
    with mode:
        return torch.empty(shape, dtype=leaf.dtype)


def trace(whole: Whole, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any, ones: frozenset[str] = frozenset()) -> Joint:
    """Traces forward and backward; of a Whole that evaluates, forward alone. ones: names of sizes of dynamic_shapes that are constants,
    those that they are in the arguments: PyTorch traces a size of 1 apart."""
    from torch._functorch.aot_autograd import aot_export_joint_with_descriptors
    from torch._guards import TracingContext, tracing
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from weft import composed, dynamo
    env = ShapeEnv(duck_shape=False, specialize_zero_one=False)
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    sizes, names = _Sizes(env, ones), names_of_inputs(whole, args, kwargs)
    given: Any = args
    if isinstance(dynamic_shapes, dict):
        dynamic_shapes, given = _by_name(whole, dynamic_shapes, args, kwargs), {**dict(enumerate(args)), **kwargs}
    elif kwargs:
        given = [*args, *kwargs.values()]
    dims = list(_shapes_of(given, dynamic_shapes, ""))
    leaves, spec = torch.utils._pytree.tree_flatten((args, kwargs))
    fakes = [_fake(leaf, d, sizes, names[k], mode) for k, (leaf, d, _) in enumerate(dims)]
    fake_args, fake_kwargs = torch.utils._pytree.tree_unflatten(fakes, spec)
    joint = Joint()
    with (_as_it_was(whole), _dense(whole) as joint.sparse, contextlib.ExitStack() as stack, torch.backends.mkldnn.flags(enabled=False, allow_tf32=None), tracing(TracingContext(mode)),
          torch.set_grad_enabled(not whole.evaluates), _compiling(), _user_errors()):
        made = aot_export_joint_with_descriptors(stack, whole, fake_args, fake_kwargs,
                                                 decompositions=dynamo.decompositions() | composed.of_inductor())
        gm = made.graph_module
    joint.gm, joint.out_spec = gm, made.out_spec
    _read_roles(joint, names)
    regions.inline(gm)
    flex.expand(gm, dynamo.decompositions)
    _read_sizes(joint, sizes, env, dims)
    return joint


def _by_name(whole: Whole, shapes: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[Any, Any]:
    """dynamic_shapes by names of parameters, by the positions of arguments."""
    parameters = list(inspect.signature(whole.module.forward).parameters)
    own = len(args) if whole.loss is None or whole.evaluates else len(args) - 1
    place: dict[str, Any] = {name: k for k, name in enumerate(parameters[:own])} | {name: name for name in kwargs}
    if own < len(args):
        place.setdefault("label", own)
    for name in shapes:
        if name not in place:
            raise error(f"dynamic_shapes: there is no input {name}: there are {', '.join(place)}")
    return {place[name]: s for name, s in shapes.items()}


# What attributes of modules may be that a trace depends on.
VALUES = torch.Tensor, bool, int, float, str, type(None)


def attributes(whole: Whole) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """What modules have besides modules: buffers, tensors, numbers."""
    return [(prefix, values, {k: v for k, v in values.items() if isinstance(v, VALUES)})
            for prefix, m in whole.named_modules() if m is not whole for values in (m._buffers, m._parameters, vars(m))]


def _restored(whole: Whole, before: list[tuple[str, dict[str, Any], dict[str, Any]]]) -> str | None:
    """Gives modules back what they had. Returns the name of a value that was another one."""
    changed = None
    for prefix, values, had in before:
        for name, v in list(values.items()):
            old = had.get(name)
            same = v is old or not isinstance(v, VALUES) or not isinstance(v, torch.Tensor) and type(v) is type(old) and v == old
            if not same or name not in had and isinstance(v, VALUES):
                changed = changed or short(f"{prefix}.{name}")
                if name in had:
                    values[name] = old
                else:
                    del values[name]
    return changed


def _read_roles(joint: Joint, names: list[str]) -> None:
    from torch._functorch._aot_autograd import descriptors as d
    gm = joint.gm
    joint.roles, joint.buffers, joint.gradients, joint.seed = {}, {}, {}, None
    placeholders = gm.graph.find_nodes(op="placeholder")
    by: dict[Any, Node] = {}
    for n in placeholders:
        desc = n.meta.get("desc")
        by[desc] = n
        if isinstance(desc, d.ParamAOTInput):
            joint.roles[n] = Role("param", short(desc.target))
        elif isinstance(desc, d.BufferAOTInput):
            joint.roles[n] = Role("buffer", short(desc.target))
        elif isinstance(desc, d.PlainAOTInput):
            joint.roles[n] = Role("input", names[desc.idx], desc.idx)
        elif isinstance(desc, d.TangentAOTInput):
            if getattr(desc.output, "idx", None) != 0:
                raise error("a result besides the loss has a gradient: the forward writes into a parameter in place, as nn.Embedding with "
                            "max_norm does")
            joint.seed = _replace_by_one(gm, n)
        elif "Token" in type(desc).__name__:
            raise error("an operator of the module or the loss has an effect, such as an assertion, in its backward pass, which a step cannot")
        else:
            raise error(f"the module takes {desc}, which a step cannot: inputs that share memory, or of a class of their own")
    end = gm.graph.output_node()
    joint.loss, joint.outputs = None, []
    for n, desc in zip(end.args[0], end.meta["desc"]):
        if isinstance(desc, d.PlainAOTOutput):
            joint.outputs.append(n)
        elif isinstance(desc, d.InputMutationAOTOutput):
            target = by.get(desc.mutated_input)
            role = joint.roles.get(target)
            if role is None or role.kind != "buffer":
                raise error(f"the module writes into {'its input ' + role.name if role and role.kind == 'input' else desc.mutated_input}, "
                            "which a step cannot: write into a copy")
            joint.buffers[target] = n
        elif isinstance(desc, d.GradAOTOutput):
            if isinstance(desc.grad_of, d.ParamAOTInput) and isinstance(n, Node):
                if n.meta["val"].layout != torch.strided:
                    raise error(f"the gradient of {short(desc.grad_of.target)} is of layout {n.meta['val'].layout}: a function gives it, "
                                "such as F.embedding(sparse=True); leave that out, and name the parameter in sparse=")
                joint.gradients[short(desc.grad_of.target)] = n
        elif n is not None:
            raise error(f"the module gives {desc}, which a step cannot")


def short(name: str) -> str:
    return name.removeprefix("module.")


def _replace_by_one(gm: GraphModule, n: Node) -> Node:
    """The gradient of the loss is 1."""
    v = n.meta["val"]
    with gm.graph.inserting_after(list(gm.graph.find_nodes(op="placeholder"))[-1]):
        one = gm.graph.call_function(torch.ops.aten.full.default, (list(v.shape), 1.0), {"dtype": v.dtype})
        one.meta["val"] = v
    n.replace_all_uses_with(one)
    gm.graph.erase_node(n)
    return one


def _read_sizes(joint: Joint, sizes: _Sizes, env: Any, dims: Any) -> None:
    """Names of sizes, where they are, and what the trace found them to be."""
    joint.symbols, joint.where, joint.conditions = sizes.names, {}, []
    for symbol, value in env.replacements.items():
        if symbol in sizes.names and isinstance(value, sympy.Integer):
            guard = next((g for g in env.guards if symbol in g.expr.free_symbols), None)
            raise error(f"dynamic_shapes: {sizes.names[symbol]} is a size, but the module works with {value} only{_at(guard)}")
    for n, role in joint.roles.items():
        v = n.meta.get("val")
        for k, extent in enumerate(v.shape if role.kind == "input" and isinstance(v, torch.Tensor) else ()):
            if isinstance(extent, torch.SymInt) and extent.node.expr.is_Symbol:
                joint.where.setdefault(extent.node.expr, (role.index, k))
    joint.conditions = [Condition(g.expr, _at(g), env._maybe_evaluate_static(g.expr) == sympy.true) for g in env.guards]


def _at(guard: Any) -> str:
    frame = getattr(getattr(guard, "sloc", None), "framework_loc", None)
    return f" ({frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} in {frame.name})" if frame else ""
