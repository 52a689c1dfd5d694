"""weft.compile: modules, exported programs and files become compiled models."""
from __future__ import annotations

import contextlib
import copy
import inspect
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from weft import _weft
from weft.graph import differentiated
from weft.model import Model, in_python, load, resolved

_SHARED = 10  # WEFT_EMIT_SHARED


def compile(model: Any, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None, *, dynamic_shapes: Any = None,
            target: str | None = None, path: str | os.PathLike[str] | None = None, precision: str | None = None,
            activations: str | None = None, grad: str | list[str] | None = None, weights_from: Any = (), weight_names: Any = None,
            name: str | None = None, ops: Any = (), link: Any = (), **options: Any) -> Model:
    """Compiles a model, in this process, or with path= into a shared object, which is loaded.

    model: a torch.nn.Module, which torch.export exports with args, kwargs and dynamic_shapes; an
    ExportedProgram, whose sizes are named by the Dims of dynamic_shapes; the path of a .pt2 or .onnx file; or a weft.Graph.
    target: "native", "x86-64-v3", ... (docs/targets.md); with path= only.
    precision: "bf16" or "f16" computes as under torch.autocast; inputs, outputs and state keep their types.
    activations: "int8" rounds what weights of at most 8 bits are multiplied with to 8 bits, "exact" does not; else as the model
    says (docs/numerics.md).
    grad: "params", "inputs" or names. The model then has the entries run, forward_saving and backward.
    weights_from: files, paths or one, that hold the weights, instead of the model's: .safetensors, .npz, .gguf, or the index of
    several .safetensors. weight_names: a file that says what weights are called there (docs/your-model.md).
    ops: libraries of operators that the model calls, paths or one (docs/user-operators.md); a weft.Graph has its own.
    link: what path= is linked with, files or names for -l: a library that has the operators' functions.
    options: replaceable, cancellable, tune, op_by_op, duplicate_weights, jobs, backend, cc, and rng_input (docs/c-api.md).
    """
    rng_input = options.pop("rng_input", False)
    given = {"target": target, "name": name, "link": paths("link", link), **options}
    model = getattr(model, "raw", model)
    opened = None
    if isinstance(model, _weft.Graph):
        session, graph = model.session, model
        if paths("ops", ops):
            raise ValueError("weft.compile: ops= is for a model that is loaded here: give it to weft.graph or weft.trace")
    else:
        session = session_with(ops)
        with _opened(model, args, kwargs, dynamic_shapes) as opened:
            if opened:
                model, args, dynamic_shapes = opened.module, opened.args, opened.dynamic_shapes
            graph = loaded(session, model, args, kwargs, dynamic_shapes, grad is not None, rng_input)
    if weight_names is not None and not weights_from:
        raise ValueError("weight_names is for weights_from")
    if weights_from:
        session.load_weights(graph, tuple(paths("weights_from", weights_from)), None if weight_names is None else os.fspath(weight_names))
    if precision is not None:
        session.set_precision(graph, precision)
    if activations is not None:
        session.set_activations(graph, activations)
    if grad is not None:
        forward, backward = session.split(graph, differentiated(grad))
        graph = session.join(["run", "forward_saving", "backward"], [graph, forward, backward])
    made = _made(session, graph, given, path)
    return opened.model(made) if opened else made


def _opened(model: Any, args: Any, kwargs: Any, dynamic_shapes: Any) -> Any:
    """What is exported in place of a module with sparse tensors (weft.sparse); else a context without a value."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module) or not isinstance(args, (tuple, list)):
        return contextlib.nullcontext()
    from weft import sparse_door
    opened = sparse_door.Opened(model, args, kwargs, dynamic_shapes)
    return opened if opened.used else contextlib.nullcontext()


def join(models: dict[str, Any], *, target: str | None = None, path: str | os.PathLike[str] | None = None, name: str | None = None,
         ops: Any = (), link: Any = (), **options: Any) -> Model:
    """Compiles several models into one whose entries they are, by name: ExportedPrograms or paths of .pt2 files. They
    share weights with equal contents and state with equal names. ops, link: as for weft.compile."""
    session = session_with(ops)
    graphs = [loaded(session, m) for m in models.values()]
    return _made(session, session.join(list(models), graphs), {"target": target, "name": name, "link": paths("link", link), **options}, path)


def paths(what: str, given: Any) -> list[str]:
    """The texts of an argument ops= or link=: one path, or several."""
    many = [given] if isinstance(given, (str, os.PathLike)) else given or ()
    if not isinstance(many, (list, tuple)) or not all(isinstance(p, (str, os.PathLike)) for p in many):
        raise TypeError(f"{what}= takes a path or a list of paths, not {given!r}")
    return [os.fspath(p) for p in many]


def session_with(ops: Any) -> Any:
    """A session that has the operators of these libraries. Groups of which a collective does not say how many ranks they have
    are the default group of torch.distributed, if that is in use."""
    session = _weft.Session()
    dist = sys.modules.get("torch.distributed")
    if dist and dist.is_available() and dist.is_initialized():
        session.ranks(dist.get_world_size())
    for path in paths("ops", ops):
        session.ops(path)
    return session


def _made(session: Any, graph: Any, given: dict[str, Any], path: str | os.PathLike[str] | None) -> Model:
    if path is None and given["target"] not in (None, "native"):
        raise ValueError(f"weft.compile: target={given['target']!r} needs path=: without a path the code is for this processor")
    if path is not None:
        return emitted(session, graph, path, **given)
    with in_python():
        return Model(session.jit(graph, given))


def emitted(session: Any, graph: Any, path: str | os.PathLike[str], **given: Any) -> Model:
    """Writes a graph as a shared object, and loads that. given: the options that have a value."""
    with in_python():
        session.emit(graph, _SHARED, path, given)
    return load(path)


def loaded(session: Any, model: Any, args: Any = None, kwargs: Any = None, dynamic_shapes: Any = None, grad: bool = False,
           rng_input: bool = False) -> Any:
    """The graph of a model. Its sizes have the names of the user's Dims, which files do not have."""
    source, label, names = archive(model, args, kwargs, dynamic_shapes, grad)
    with in_python():
        graph = session.load(source, label, rng_input)
    for size, name in names.items():
        with contextlib.suppress(_weft.Error):  # a size that the graph does not read, or a name that another one has
            _weft.graph_rename_size(graph, size, name)
    return graph


def archive(model: Any, args: Any, kwargs: Any, dynamic_shapes: Any, grad: bool) -> tuple[Any, str, dict[str, str]]:
    """What Session.load takes, a name for messages, and names of sizes. grad: the gradients of a module must survive its
    export."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model), os.fspath(model), {}
    if isinstance(model, (bytes, bytearray, memoryview)):
        return model, "model.pt2", {}
    import torch
    if isinstance(model, torch.nn.Module):
        label = type(model).__name__
        if args is None and kwargs is None:
            raise TypeError("weft.compile: a module needs example inputs: weft.compile(module, (x,))")
        if not isinstance(args, (tuple, list, type(None))):
            raise TypeError(f"weft.compile: args is a tuple of example inputs, (x,), not {type(args).__name__}")
        args = tuple(args or ())
        program = torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes)
        if grad:
            _same_gradients(model, program, args, kwargs or {})
        names = _names_of_sizes(program, dynamic_shapes, model.forward)
        model = program
    elif isinstance(model, torch.export.ExportedProgram):
        label, names = "model", _names_of_sizes(model, dynamic_shapes)
    else:
        raise TypeError(f"weft.compile: expected a module, an ExportedProgram or a path, got {type(model).__name__}")
    file = io.BytesIO()
    torch.export.save(resolved_program(model), file)
    return file.getbuffer(), label + ".pt2", names


def _names_of_sizes(program: Any, dynamic_shapes: Any, forward: Callable[..., Any] | None = None) -> dict[str, str]:
    """The names of Dims by the symbols of the program. dynamic_shapes has the form of the inputs: by position, or by the
    names of the parameters of `forward`, or of the program's inputs."""
    import torch

    def extents(value: Any, shapes: Any) -> Iterator[tuple[Any, Any, Any]]:
        """An input, and a dimension of it, with its Dim."""
        if isinstance(value, torch.Tensor):
            for d, dim in shapes.items() if isinstance(shapes, dict) else enumerate(shapes or ()):
                yield value, d, dim
        elif hasattr(value, "extents") and shapes:  # a matrix of weft.sparse
            for leaf, dims in zip(torch.utils._pytree.tree_leaves(value), shapes):
                yield from extents(leaf, dims)
        elif isinstance(value, (dict, tuple, list)) and shapes:
            for k in value if isinstance(value, dict) else range(len(value)):
                if not isinstance(shapes, dict) or k in shapes:
                    yield from extents(value[k], shapes[k])
    if not isinstance(dynamic_shapes, (dict, tuple, list)) or not program.example_inputs:
        return {}
    args, kwargs = program.example_inputs
    leaves, inputs = torch.utils._pytree.tree_leaves((args, kwargs)), program.graph_signature.user_inputs
    given = inspect.signature(forward).bind(*args, **kwargs).arguments if forward else dict(zip(inputs, leaves))
    fake = {n.name: n.meta["val"] for n in program.graph.find_nodes(op="placeholder")}
    names: dict[str, str] = {}
    for value, d, dim in extents(given if isinstance(dynamic_shapes, dict) else list(given.values()), dynamic_shapes):
        dim = getattr(dim, "root", dim)  # of 2 * batch: batch
        size = fake[next(n for n, leaf in zip(inputs, leaves) if leaf is value)].shape[d]
        symbols = size.node.expr.free_symbols if isinstance(size, torch.SymInt) else ()
        if isinstance(dim, torch.export.Dim) and len(symbols) == 1:
            names.setdefault(str(*symbols), dim.__name__)
    return names


def resolved_program(program: Any) -> Any:
    """The program as it is written: without its example inputs, which may be large, and with the contents of tensors that are
    the conjugate or the negative of their memory, since files lose both."""
    import torch

    def all_of(values: dict[str, Any]) -> dict[str, Any]:
        return {k: resolved(v) if isinstance(v, torch.Tensor) else v for k, v in values.items()}
    copied = copy.copy(program)
    copied._example_inputs = None
    if any(isinstance(v, torch.Tensor) and (v.is_conj() or v.is_neg()) for v in [*program.state_dict.values(), *program.constants.values()]):
        copied._state_dict, copied._constants = all_of(program.state_dict), all_of(program.constants)
    return copied


def _same_gradients(module: Any, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """torch.export drops what autograd does beside the operators: a torch.autograd.Function's backward, no_grad in
    Python. Compares the gradients of the module's parameters with those of the exported program, once, and raises
    weft.Error with the first parameter that differs."""
    import copy

    import torch

    def gradients(m: Any) -> dict[str, Any]:
        named = {n: p for n, p in m.named_parameters() if p.requires_grad}
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(0)
            out = [t for t in torch.utils._pytree.tree_leaves(m(*args, **kwargs)) if isinstance(t, torch.Tensor) and t.requires_grad]
            roots = [(t * torch.linspace(0.5, 1.5, t.numel(), dtype=t.dtype).reshape(t.shape)).sum() for t in out if t.is_floating_point()]
        if not roots or not named:
            return dict.fromkeys(named)
        return dict(zip(named, torch.autograd.grad(roots, list(named.values()), allow_unused=True)))
    eager, exported = gradients(copy.deepcopy(module)), gradients(program.module())
    for name, g in eager.items():
        e = exported.get(name)
        if name not in exported:
            continue
        zero = lambda t: t is None or not t.count_nonzero()
        if (g is None or e is None) and zero(g) and zero(e):
            continue
        if g is None or e is None or not torch.allclose(g, e, rtol=1e-3, atol=1e-4 * float(g.abs().max()) + 1e-7):
            raise _weft.Error(f"the gradient of {name} is another one after torch.export, which drops torch.autograd.Function and no_grad: "
                              "use torch.compile(backend=\"weft\")")
