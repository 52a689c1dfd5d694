"""The back end of torch.compile: torch.compile(module, backend="weft").

AOTAutograd makes graphs of ATen operators for inference, forward and backward; each is compiled in this process.
What Weft does not have runs as PyTorch's operators between compiled parts, with one warning each.
"""
from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pathlib
import threading
import time
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._functorch._aot_autograd import autograd_cache
from torch._functorch._aot_autograd.schemas import SerializableAOTDispatchCompiler
from torch._inductor.output_code import OutputCode
from torch.fx import GraphModule, Node
from torch.fx.graph_module import _format_import_block, _forward_from_src
from torch.package.importer import sys_importer
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from weft import _weft, attention, composed, distributed, flex, fx, libraries, regions, results
from weft.compiler import paths, session_with
from weft.model import Model, resolved


class Statistics:
    """What the back end did in this process: counts, for tests and reports."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.graphs = self.compiled = self.nodes = self.eager_nodes = 0
        self.lowered = 0  # nodes of graphs that come from no cache
        self.refused: Counter[str] = Counter()


statistics = Statistics()
_TORCH = {name: dtype for dtype, name in fx.DTYPES.items()}


# ---- compiled graphs ----

def _key() -> torch.Tensor:
    """The key of a call's random numbers, of PyTorch's generator: torch.manual_seed repeats."""
    return torch.randint(-2**63, 2**63 - 1, (2,)).view(torch.uint64)


class Boxed(OutputCode):
    """What runs a graph: from a list of arguments, which it empties, to a list of results. AOTAutograd's cache keeps it
    where `text` says what it is made of."""

    text: str | None = None

    def __init__(self) -> None:
        self._boxed_call = True  # in the instance's dictionary, which wrappers copy

    def prepare_for_serialization(self) -> None:
        if self.text is None:
            raise autograd_cache.BypassAOTAutogradCache("this graph is not kept by Weft")

    def post_compile(self, example_inputs: Any, constants: Any, graph_kwargs: Any) -> None:
        pass


class Plain:
    """A graph of PyTorch's operators as a text of Python and what that reads: unlike a GraphModule, a pickle of it is small and
    is not traced again."""

    def __init__(self, gm: GraphModule):
        code = gm.graph.python_code("self")
        self._text = _format_import_block(code.globals, sys_importer) + "\n" + code.src
        self._read = {n.target: getattr(gm, n.target) for n in gm.graph.find_nodes(op="get_attr")}
        self._read |= {name: Plain(v).forward for name, v in self._read.items() if isinstance(v, GraphModule)}
        self.gives_one = isinstance(gm.graph.output_node().args[0], Node)  # and not a list of results

    def forward(self, *args: Any) -> Any:
        return _forward_from_src(self._text, {})(types.SimpleNamespace(**self._read), *args)


class Eager(Boxed):
    """A graph of PyTorch's operators and of compiled parts."""

    def __init__(self, gm: GraphModule | Plain):
        super().__init__()
        self.gm = gm

    def __call__(self, args: list[Any]) -> list[Any]:
        given = list(args)
        args.clear()
        out = self.gm.forward(*given)
        return [out] if isinstance(self.gm, Plain) and self.gm.gives_one else out


_first_call = threading.Lock()


class Compiled(Boxed):
    """A compiled graph. With `later`, the first call compiles: backward graphs of calls whose results nobody derives."""

    _model: Model | Eager | Writing | None = None
    converts = True  # whether inputs of another dtype are converted

    def __init__(self, lowering: fx.Lowering, later: bool = False, fallback: bool = True):
        super().__init__()
        # An entry of AOTAutograd's cache calls without the tokens that order effects.
        effects = any(n.target is torch.ops.higher_order.with_effects for n in lowering.gm.graph.nodes)
        text = lowering.graph.text()
        self.text = None if lowering.nparam or effects or " = const #" in text else text  # a text has constants by number only
        self._libraries = lowering.libraries
        self.name = lowering.name
        self.nodes = _count(lowering.gm)
        self._take = lowering.tensors
        self._extents = lowering.extents
        self._more = lowering.more
        self._results = lowering.results
        self._integers = lowering.integers
        self._linalg = lowering.linalg
        self._collective = lowering.collective
        self._direct = not lowering.written and all(r.kind == "tensor" and r.value is None and r.order is None for r in lowering.results) and [
            r.index for r in lowering.results] == list(range(lowering.noutput))
        given = [n.meta.get("val") for n in lowering.gm.graph.find_nodes(op="placeholder")]
        self._resolve = [i for i, k in enumerate(lowering.tensors) if isinstance(given[k], torch.Tensor)] if lowering.lazy else []
        # Arguments that are replaced: by outputs behind those of the results, in the arguments' own memory; by the last results.
        self._assigned = [(lowering.noutput + k, argument, lowering.orders.get(argument)) for k, argument in enumerate(lowering.assigned)]
        self._copied = [argument for argument in lowering.written if argument not in lowering.assigned]
        self._orders = [(i, lowering.orders[k]) for i, k in enumerate(lowering.tensors) if k in lowering.orders]
        self._as_given = self._take == list(range(len(self._take))) and not (self._extents or self._orders or self._resolve or self._more)
        self._written = lowering.written
        self._later = later
        self._graph = lowering.graph  # until the model is made
        # What runs if the model cannot be made, and calls of other sizes than its conditions allow, which Dynamo does not know.
        self._symbolic = fallback and any(isinstance(v, torch.SymInt) for v in torch.utils._pytree.tree_leaves(
            [list(v.shape) if isinstance(v, torch.Tensor) else v for v in given]))
        self._plain = Plain(lowering.gm) if fallback and (later or self._symbolic) else None
        if not later:
            self._compile()

    def _compile(self) -> None:
        graph = self._graph or session_with(self._libraries).parse(self.text, self.name)
        fx.set_constants(graph, len(self._take), self._more)
        try:
            self._model = Model(graph.session.jit(graph, {}))
            self._model.like = torch.empty(0)
            if self._collective:
                self._model.comm = distributed.current()
        except _weft.Error as e:
            if not self._later or not self._plain:
                raise
            _warn_graph(f"{self.name} runs as PyTorch's operators", e)
            self._model = self._eager()
        self._graph = None
        if not self._symbolic:
            self._plain = None

    def _eager(self) -> Boxed:
        eager = Eager(self._plain)
        return Writing(eager, self._written) if self._written else eager

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_model": None, "_graph": None, "build": _build()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state.pop("build") != _build():  # Dynamo's cache, unlike AOTAutograd's, has no key that says so
            raise RuntimeError("this graph was kept by another build of Weft")
        self.__dict__ = state

    def post_compile(self, example_inputs: Any, constants: Any, graph_kwargs: Any) -> None:
        """Makes the model that a pickle does not have."""
        if not self._later:
            self._compile()
        statistics.graphs += 1
        statistics.compiled += 1
        statistics.nodes += self.nodes

    def __call__(self, args: list[Any]) -> list[Any]:
        if not self._model:
            with _first_call:
                if not self._model:
                    self._compile()
        model = self._model
        if not isinstance(model, Model):
            return model(args)
        inputs = args if self._as_given and len(args) == len(self._take) else self._inputs(args)
        model.threads = torch.get_num_threads()
        try:
            made = model.update(inputs) if self._assigned else model.run(*inputs)
        except _weft.CheckError as e:
            raise (torch.linalg.LinAlgError(str(e)) if self._linalg else e) from None
        except ValueError as e:
            # An operator that runs as PyTorch's, in this graph or in that of the forward pass, may give another dtype than
            # PyTorch's tracing says.
            if converted := self.converts and self._converted(inputs):
                made = model.run(*converted)
            elif self._plain:
                _warn_graph(f"a call of {self.name} runs as PyTorch's operators", e)
                return self._eager()(args)
            else:
                raise
        self.text = None  # what is to be kept is kept before the first call
        if not isinstance(made, tuple):
            made = () if made is None else (made,)  # None: all is stored in arguments
        if self._direct:
            args.clear()
            return list(made)
        written = [args[k] for k in self._copied]
        args.extend(int(made[k]) for k in self._integers)
        out = [self._result(r, args, made) for r in self._results]
        rest = len(out) - len(written)
        if self._assigned and made:
            others = [(args[k], made[i].permute(results.inverse(order)) if order else made[i])
                      for i, k, order in self._assigned if made[i] is not None]
            write(written + [t for t, _ in others], out[rest:] + [v for _, v in others])
        elif written:
            write(written, out[rest:])
        args.clear()
        return out[:rest]

    def _inputs(self, args: list[Any]) -> list[Any]:
        """What the model takes of the arguments, and what it takes besides."""
        inputs = [args[k] for k in self._take]
        for i in self._extents:
            inputs[i] = torch.empty((inputs[i], 0), dtype=torch.bool)
        for i, order in self._orders:
            inputs[i] = inputs[i].permute(order)
        for i in self._resolve:
            inputs[i] = resolved(inputs[i])
        for value in self._more:
            inputs.append(_key() if value is None else value)
        return inputs

    def _converted(self, inputs: list[Any]) -> list[Any] | None:
        """The inputs in the dtypes of the model; None if they have them."""
        dtypes = [_TORCH[t.dtype] for t in self._model.inputs]
        other = [isinstance(x, torch.Tensor) and x.dtype != d for x, d in zip(inputs, dtypes)]
        return [x.to(d) if convert else x for x, d, convert in zip(inputs, dtypes, other)] if any(other) else None

    def _result(self, r: results.Output, args: list[Any], made: tuple[torch.Tensor, ...]) -> Any:
        if r.kind == "constant":
            return r.value
        if r.kind == "number":
            return made[r.index].item()
        if r.kind == "size":
            return r.value.of(args)[0]
        if r.kind == "input":
            return r.value.of(args[r.index], args) if r.value else args[r.index]
        t = made[r.index]
        if r.order:
            t = t.permute(r.order)
        if r.value is None:
            return t
        if r.value == "alias":
            return t.view(t.shape) if r.kind == "part" else t.detach()
        if isinstance(r.value, results.View):
            return r.value.of(t, args)
        *n, offset = r.value.of(args)
        view = t.as_strided(n[: len(n) // 2], n[len(n) // 2:], t.storage_offset() + offset)
        # AOTAutograd refuses a later write to results of one memory of which some are views and others are not.
        return view if r.kind == "part" else view.detach()


class Writing(Boxed):
    """A graph that writes arguments, too: those with the numbers `written`, with the last results of `inner`."""

    def __init__(self, inner: Boxed, written: list[int]):
        super().__init__()
        self.inner, self.written = inner, written

    def prepare_for_serialization(self) -> None:
        self.inner.prepare_for_serialization()

    def post_compile(self, example_inputs: Any, constants: Any, graph_kwargs: Any) -> None:
        self.inner.post_compile(example_inputs, constants, graph_kwargs)

    def __call__(self, args: list[Any]) -> list[Any]:
        written = [args[k] for k in self.written]
        results = self.inner(args)
        write(written, results[-len(written):])
        return results[:-len(written)]


def write(arguments: list[torch.Tensor], values: list[torch.Tensor]) -> None:
    if arguments:
        with torch.autograd._unsafe_preserve_version_counter(tuple(arguments)):  # AOTAutograd counts those that autograd sees
            if any(t.is_neg() or t.is_conj() for t in arguments):  # which PyTorch refuses to write in a list
                for t, value in zip(arguments, values):
                    t.copy_(value)
            else:
                torch._foreach_copy_(arguments, values)


def compile_whole(gm: GraphModule, name: str, written: Sequence[int] = (), fallback: bool = True) -> Compiled:
    """Compiles all of a graph, of which the last results replace the arguments `written`: a backward graph when it is first
    called, since not every result is derived. Raises Unsupported."""
    lowering = fx.Lowering(gm, name, written)
    try:
        compiled = Compiled(lowering, name.startswith("backward"), fallback)
    except _weft.Error as e:
        raise fx.Unsupported(None, str(e)) from None
    statistics.compiled += 1
    return compiled


# ---- islands of eager code ----

class _Support(torch.fx.passes.operator_support.OperatorSupportBase):
    def __init__(self, refused: dict[Node, str]):
        self.refused = refused

    def is_node_supported(self, submodules: Any, node: Node) -> bool:
        return node.op == "call_function" and node not in self.refused


def _unboxed(compiled: Boxed) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        results = compiled(list(args))
        return results[0] if len(results) == 1 else tuple(results)
    return call


def _warn(refused: dict[Node, str]) -> None:
    """One warning for each operator that runs as PyTorch's, or for several that do so for one reason."""
    reasons: dict[str, dict[str, int]] = {}
    first = {str(node.target): why for node, why in reversed(refused.items())}
    for node, why in refused.items():
        target = str(node.target)
        statistics.refused[target] += 1
        counts = reasons.setdefault(first[target], {})
        counts[target] = counts.get(target, 0) + 1
    for why, counts in reasons.items():
        n = sum(counts.values())
        runs = "runs as PyTorch's operator" if len(counts) == 1 else "run as PyTorch's operators"
        warnings.warn(f"weft: {', '.join(counts)} {runs} ({n} node{'s' * (n > 1)}): {why}", stacklevel=2)


def _warn_graph(what: str, why: Exception) -> None:
    statistics.refused[f"graph: {why}"] += 1
    warnings.warn(f"weft: {what}: {why}", stacklevel=3)


def compile_parts(gm: GraphModule, name: str, refused: dict[Node, str]) -> Boxed:
    """Compiles what can be compiled; the rest runs as PyTorch's operators."""
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    lacking = {n: why for n, why in refused.items() if not _is_sizes(n)}
    _warn(lacking)
    if any("unbacked_bindings" in n.meta for n in gm.graph.nodes):
        refused = refused | {n: "may read a size that depends on data" for n in gm.graph.nodes if _reads_size(n)}
    refused = refused | {n: "Python computes it" for n in gm.graph.nodes if isinstance(n.meta.get("val"), (torch.SymBool, torch.SymFloat)) or
                         n.target is torch.ops.aten._assert_scalar.default}
    statistics.eager_nodes += len(lacking)
    partitioner = CapabilityBasedPartitioner(gm, _Support(refused), allows_single_node_partition=True)
    fused = partitioner.partition_and_fuse()
    some = False
    for node in list(fused.graph.nodes):
        if node.op != "call_module":
            continue
        part = getattr(fused, node.target)
        try:
            compiled = _unboxed(compile_whole(part, f"{name}_{node.target}"))
        except fx.NothingToCompute:
            continue
        except fx.Unsupported as e:
            _warn_graph(f"a part of {name} runs as PyTorch's operators", e)
            continue
        delattr(fused, node.target)
        setattr(fused, node.target, compiled)
        some = True
    if not some and lacking:
        warnings.warn(f"weft: nothing of this graph ({name}) is compiled", stacklevel=3)
    return Eager(fused)


def compile_graph(gm: GraphModule, example_inputs: Any, *, name: str, fallback: bool) -> Boxed:
    """What AOTAutograd calls with each graph."""
    regions.inline(gm)
    flex.expand(gm, decompositions)
    written = fx.writes_to_results(gm)
    boxed = compile_values(gm, name, fallback, written)
    return Writing(boxed, written) if written and not isinstance(boxed, Compiled) else boxed


def compile_values(gm: GraphModule, name: str, fallback: bool, written: Sequence[int]) -> Boxed:
    """Compiles a graph as far as that can be done. What is Compiled replaces the arguments `written` by the last results."""
    statistics.graphs += 1
    statistics.nodes += _count(gm)
    statistics.lowered += _count(gm)
    if not any(n.op == "call_function" and not _is_sizes(n) for n in gm.graph.nodes):
        return Eager(gm)
    refused = {n: why for n in gm.graph.nodes if (why := fx.why_not(n) or _on_meta(n))}
    try:
        if not refused:
            return compile_whole(gm, name, written, fallback)
    except fx.NothingToCompute:
        return Eager(gm)
    except fx.Unsupported as e:
        if not fallback:
            raise
        refused = fx.refused_nodes(gm)
        if e.node is not None:
            refused.setdefault(e.node, str(e))
        if not refused:
            _warn_graph(f"{name} runs as PyTorch's operators", e)
            return Eager(gm)
    if not fallback:
        node, why = next(iter(refused.items()))
        raise fx.Unsupported(node, f"{node.target}: {why}")
    refused = {n: "other nodes of its graph do" for n in gm.graph.nodes if n.target in fx.CONTROL} | refused
    return compile_parts(gm, name, refused)


def _count(gm: GraphModule) -> int:
    return sum(n.op == "call_function" for n in gm.graph.nodes)


def _on_meta(node: Node) -> str | None:
    """Why a node that computes with a tensor without contents is not compiled."""
    values = torch.utils._pytree.tree_leaves([n.meta.get("val") for n in (node, *node.all_input_nodes)])
    meta = node.op == "call_function" and any(isinstance(v, torch.Tensor) and v.device.type == "meta" for v in values)
    return "a tensor on meta has no contents" if meta else None


def _is_sizes(node: Node) -> bool:
    """Whether the node computes with sizes alone, or checks them."""
    value = node.meta.get("val")
    return isinstance(value, (int, float, bool, torch.SymInt, torch.SymBool, torch.SymFloat)) or node.target is torch.ops.aten._assert_scalar.default


def _reads_size(node: Node) -> bool:
    """Whether the node asks for a size of a tensor that the graph computes. Where sizes depend on data, PyTorch's tracing may
    know it from the very check (`torch._check`) that the node is for, so the tensor is asked."""
    return node.target in (torch.ops.aten.sym_size.int, torch.ops.aten.sym_numel.default) and node.args[0].op != "placeholder"


# ---- the back end ----

@functools.cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's decompositions of the operators that Weft's table lacks, and Weft's own."""
    table = torch._decomp.decomposition_table
    known = {op: f for op, f in table.items() if isinstance(op, torch._ops.OpOverload) and not fx.knows_op(op)}
    return known | composed.decompositions


def _partition(joint: GraphModule, inputs: Any, **options: Any) -> tuple[GraphModule, GraphModule]:
    """AOTAutograd's partition of a joint graph into forward and backward, in which attentions are computed again, and terms of
    sums of segments are not saved."""
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    attention.recompute(joint)
    composed.sums_of_segments(joint)
    return min_cut_rematerialization_partition(joint, inputs, **options)


def backend(gm: GraphModule, example_inputs: Any, *, options: dict[str, Any] | None = None, mode: Any = None) -> Callable[..., Any]:
    """The back end "weft". options: fallback=False makes an operator that Weft lacks an error; ops: libraries of operators of the
    user, a path or a list (docs/user-operators.md)."""
    from torch._functorch.aot_autograd import aot_module_simplified
    if unknown := (options or {}).keys() - {"fallback", "ops"}:
        raise ValueError(f"weft has no option {', '.join(map(repr, sorted(unknown)))}: it has 'fallback' and 'ops'")
    if mode not in (None, "default"):
        warnings.warn(f"weft: mode={mode!r} has no effect", stacklevel=2)
    fallback = (options or {}).get("fallback", True)
    used = tuple(os.path.abspath(p) for p in paths("ops", (options or {}).get("ops")))

    if any(isinstance(x, (list, tuple, dict)) for x in example_inputs):  # of compiled autograd
        return torch._dynamo.utils.flatten_graph_inputs(gm, example_inputs, functools.partial(backend, options=options))

    def compiler(kind: str) -> Callable[..., Boxed]:
        def f(graph: GraphModule, inputs: Any) -> Boxed:
            start = time.time_ns()
            context = torch._guards.TracingContext.try_get()
            if kind == "backward" and context and context.fw_metadata and context.fw_metadata.bw_donated_idxs:
                context.fw_metadata.bw_donated_idxs.clear()  # a list that AOTAutograd's wrapper has, too: backward(retain_graph=True)
            with torch.utils._python_dispatch._disable_current_modes(), libraries.using(used):
                boxed = compile_graph(graph, inputs, name=kind, fallback=fallback)
            boxed._time_taken_ns = time.time_ns() - start
            return boxed
        return SerializableAOTDispatchCompiler(Boxed, f)
    with _kept(fallback, used), libraries.using(used):
        return aot_module_simplified(gm, example_inputs, fw_compiler=compiler("forward"), bw_compiler=compiler("backward"),
                                     inference_compiler=compiler("inference"), decompositions=decompositions() | composed.of_inductor(),
                                     partition_fn=_partition, keep_inference_input_mutations=True)


@functools.cache
def _build() -> str:
    """What changes with this package: the times and sizes of its files."""
    files = sorted(f for f in pathlib.Path(__file__).parent.iterdir() if f.suffix in (".py", ".so"))
    return hashlib.sha256(repr([(f.name, f.stat().st_mtime_ns, f.stat().st_size) for f in files]).encode()).hexdigest()


class _Details(autograd_cache.AOTAutogradCacheDetails):
    """What a key of AOTAutograd's cache is made of, without Inductor's settings and without the hashes of Triton's files: to
    find them takes longer than all else of a call whose graphs are kept."""

    def get_triton_source_codes_from_gm(self, gm: GraphModule) -> list[str]:
        return []

    def _init_fx_graph_hash_details(self, gm: GraphModule, example_inputs: Any, fx_config: Any) -> None:
        try:
            autograd_cache.FxGraphCache._check_can_cache(gm, example_inputs, fx_config)
        except autograd_cache.BypassFxGraphCache as e:
            raise autograd_cache.BypassAOTAutogradCache(str(e)) from e
        if any(is_traceable_wrapper_subclass(x) and not hasattr(x, "_stable_hash_for_caching") for x in example_inputs):
            raise autograd_cache.BypassAOTAutogradCache("an input is of a class that has no key")
        if _share_memory(example_inputs):
            raise autograd_cache.BypassAOTAutogradCache("what inputs are parts of is no part of the key")
        self.gm, self.example_inputs, self.cache_key_tag = gm, list(example_inputs), torch.compiler.config.cache_key_tag
        self.torch_version = torch.__version__, torch.version.git_version
        self.default_dtype, self.warn_only = torch.get_default_dtype(), torch.is_deterministic_algorithms_warn_only_enabled()
        sizes = autograd_cache.FxGraphCache._get_shape_env()
        self.hints = sorted((str(symbol), hint) for symbol, hint in sizes.var_to_hint_override.items()) if sizes else []


def _share_memory(inputs: Any) -> bool:
    storages = [t.untyped_storage()._cdata for t in inputs if isinstance(t, torch.Tensor) and t.layout is torch.strided]
    return len(set(storages)) < len(storages)


@contextlib.contextmanager
def _kept(fallback: bool, used: tuple[str, ...]) -> Iterator[None]:
    """AOTAutograd's cache keeps what compiles within, with the entries of Weft apart from those of other back ends. Both
    graphs of a training step are lowered at once, since an entry has both. Dynamo compiles one graph at a time, so no other
    thread finds the class that is replaced here."""
    tag = f"{torch.compiler.config.cache_key_tag} weft {_build()} {fallback} {[(p, libraries.contents(p)) for p in used]} {distributed.sizes_of_groups()}"
    details = autograd_cache.AOTAutogradCacheDetails
    autograd_cache.AOTAutogradCacheDetails = _Details
    try:
        with (torch.compiler.config.patch(cache_key_tag=tag),
              torch._functorch.config.patch(bundled_autograd_cache=True, force_non_lazy_backward_lowering=True)):
            yield
    finally:
        autograd_cache.AOTAutogradCacheDetails = details
