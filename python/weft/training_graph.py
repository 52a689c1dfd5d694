"""Graphs of weft.train_step: a joint graph with the updates of the optimizer behind it, as arguments of a call or as state of a file."""
from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.fx import Graph, GraphModule, Node

from weft import _weft, fx
from weft.joint import Joint, Role, error
from weft.model import in_python
from weft.results import Output, root_of
from weft.sizes import Unsupported, type_text
from weft import training_blocks
from weft.training_rows import rows_of, sums


# ---- optimisers ----

_NS_STEPS = 5  # of Muon, in the text of its block


class Item(NamedTuple):
    """An item of a list of the optimiser table: "beta1 = 0.9 : betas.0"."""
    name: str
    value: str
    key: str


def _items(text: str) -> list[Item]:
    out = []
    for piece in filter(None, map(str.strip, text.split(";"))):
        rest, _, key = map(str.strip, piece.partition(":"))
        name, _, value = map(str.strip, rest.partition("="))
        out.append(Item(name, value, key or name))
    return out


class Rule(NamedTuple):
    """A row of the optimiser table. rows: the scalars that must be 0 where only rows with a gradient are updated; None: all are. lazy: the
    optimiser updates no others."""
    name: str
    torch: str
    scalars: list[Item]
    flags: list[Item]
    rows: list[Item] | None
    lazy: bool


@functools.cache
def rules() -> dict[str, Rule]:
    made = [Rule(r["name"], r["torch"], _items(r["scalars"]), _items(r["flags"]), None if r["rows"] is None else _items(r["rows"]), r["lazy"])
            for r in _weft.optimizers()]
    return {r.name: r for r in made}


def rule_of(optimizer: Any, name: str | None) -> Rule:
    """The row for an optimizer of PyTorch: of its class, or of that name."""
    if name is not None:
        if name not in rules():
            raise error(f"rule={name!r}: there is no optimiser of that name: there are {', '.join(rules())}")
        return rules()[name]
    kind = type(optimizer)
    for k, g in enumerate(optimizer.param_groups):
        if kind.__name__ == "Muon" and g.get("ns_steps", _NS_STEPS) != _NS_STEPS:
            raise error(f"Muon: group {k} has ns_steps={g['ns_steps']}: a step of Weft's has {_NS_STEPS}")
    found = next((r for r in rules().values() if r.torch and kind is getattr(torch.optim, r.torch, None)), None)
    if found:
        return found
    if kind.__name__ == "LBFGS":
        raise error("LBFGS calls a closure several times for a step, which is no one graph")
    known = ", ".join(r.torch for r in rules().values() if r.torch)
    raise error(f"the optimizer {kind.__module__}.{kind.__qualname__} is not in Weft's table, which has {known}; rule= names a row, "
                "if the class computes the same")


def number_of(group: dict[str, Any], item: Item, where: str) -> float:
    """A scalar, as the group has it now."""
    key, _, element = item.key.partition(".")
    if key not in group:
        return float(item.value)
    value = group[key]
    if element:
        value = value[int(element)]
    if isinstance(value, torch.Tensor) and (value.numel() != 1 or value.requires_grad):
        raise error(f"{where}: {key} is a tensor that requires a gradient, or of several elements")
    return float(value)


def flag_of(rule: Rule, group: dict[str, Any], item: Item) -> bool:
    key, _, word = item.key.partition(".")
    if word:
        return bool(group.get(key) == word)
    if item.key in group:
        return bool(group[item.key] != 0)
    return item.value == "1"


# ---- what is updated ----

class Updated(NamedTuple):
    """A parameter with a gradient: all of its names, and what it is. rows: only those with a gradient are updated."""
    names: list[str]
    parameter: torch.nn.Parameter
    rows: bool = False


class Group:
    """The parameters of a group of the optimizer that have gradients, and their state."""

    def __init__(self, number: int, rule: Rule, flags: dict[str, bool], parameters: list[Updated]):
        self.number, self.rule, self.flags, self.parameters = number, rule, flags, parameters
        self.states: list[tuple[str, str, float, bool]] = []  # name, key, begins, number
        self.tensors: dict[str, list[torch.Tensor]] = {}  # by name of a state that is no number: of each parameter
        self.numbers: dict[str, torch.Tensor] = {}        # by name of a state that is a number: of all parameters
        self.known: list[dict[str, Any] | None] = [None] * len(parameters)  # PyTorch's state, as far as it is this
        self.sums: list[torch.Tensor] = []      # of gradients, where calls accumulate them
        self.averages: list[torch.Tensor] = []  # of parameters, where there is ema


class Slot(NamedTuple):
    """An argument of a graph. kind: "param" and "buffer" with name, "input" with index, "state" with (group, name, number of the
    parameter), "numbers" with (group, name), "sum" and "average" with (group, number of the parameter), "count", "scalars", "scale" of the
    loss, "good" steps since it changed."""
    kind: str
    key: Any


class Options(NamedTuple):
    """What a step does besides the update. sums: gradients of several calls are summed; ema: the decay of the averages, or None; skips: a
    step whose loss or gradients are not finite updates nothing; scaled: nor does one whose gradients are not, of a loss with a scale."""
    clip_norm: bool
    clip_value: bool
    outputs: bool
    sums: bool
    ema: float | None
    skips: bool
    scaled: bool
    group: tuple[str, int] | None = None  # of ranks that share batches: its name, and how many there are


# Numbers of a scale of the loss, by the methods of torch.amp.GradScaler.
SCALE = {"growth_factor": "get_growth_factor", "backoff_factor": "get_backoff_factor", "growth_interval": "get_growth_interval"}


class StepLowering(fx.Lowering):
    """The graph of a step: results of a joint graph, new values of buffers, parameters and states."""

    def __init__(self, plan: Plan, name: str):
        self.plan = plan
        self.anywhere: Any = None  # of ranks that share a batch: whether the loss of one of them is not finite
        super().__init__(plan.joint.gm, name, plan.written)

    def _input(self, k: int, node: Node, v: torch.Tensor) -> Any:
        kept, node.name = node.name, self.plan.labels[node]
        try:
            return super()._input(k, node, v)
        finally:
            node.name = kept

    def _outputs(self, node: Node) -> None:
        plan, every = self.plan, self.written
        self.written = []
        super()._outputs(node)
        self.written = every
        updates = list(self._updates())
        lost = self._lost() if plan.buffers and self.anywhere is None else self.anywhere
        for argument, value in plan.buffers.items():
            if lost is not None:
                self.env[value] = self._kept(lost, self.env[self._arguments_of()[argument]], self.env[value])
            if not self._may_assign(argument, value):
                raise Unsupported(None, f"the buffer {plan.labels[self._arguments_of()[argument]]}: its new value is of another type")
            self._assign(argument, value)
        for argument, value in updates:
            self._replace(argument, value)

    def _output(self, node: Node, again: bool = False) -> Output:
        kept, node.name = node.name, self.plan.results.get(node, node.name)
        try:
            return super()._output(node, again)
        finally:
            node.name = kept

    def _call(self, node: Node) -> None:
        if node.target is training_blocks.blocks:
            self.env[node] = training_blocks.lower(self, node)
        else:
            super()._call(node)

    def _replace(self, argument: int, value: Any) -> None:
        order = self.orders.get(argument)
        if order:
            value = self._checked(None, self.trace.call, "aten.permute", (value, list(order)), {})
        self._checked(None, self.trace.assign, self.inputs[argument], value)
        self.assigned.append(argument)

    def _made(self, op: str, *args: Any, **named: Any) -> Any:
        return self._checked(None, self.trace.call, f"aten.{op}", args, named)

    def _updates(self) -> Iterator[tuple[int, Any]]:
        """Arguments, and their new values."""
        plan = self.plan
        if plan.kind == EVAL:
            return
        placeholders = self._arguments_of()
        given = lambda slot: self.env[placeholders[plan.argument[slot]]]
        rows: dict[int, Any] = {}
        gradients = self._means(given) if plan.kind == APPLY else self._unscaled(self._gradients(rows), given)
        if plan.options.sums:
            yield from self._sums(gradients, given)
        if plan.kind == ACCUMULATE:
            return
        gradients = self._over_ranks(gradients, given)
        skip = self._skipped(gradients)
        gradients = self._clipped(gradients)
        for g in plan.groups:
            yield from self._group(g, gradients, rows, skip, given)
        if skip is not None:
            self._result("skipped", skip)
        if plan.options.scaled:
            yield from self._rescaled(skip, given)

    def _group(self, g: Group, gradients: dict[int, Any], rows: dict[int, Any], skip: Any, given: Any) -> Iterator[tuple[int, Any]]:
        """The new values of a group's parameters, states and averages."""
        plan, n = self.plan, len(g.parameters)
        options: dict[str, Any] = dict(g.flags)
        for item in g.rule.scalars:
            options[item.name] = self._scalar_of(g.number, item.name)
        of_rows = [rows.get(id(u.parameter)) for u in g.parameters]
        slots = [(Slot("param", u.names[0]), r) for u, r in zip(g.parameters, of_rows)]
        for name, _, _, number in g.states:
            slots += [(Slot("numbers", (g.number, name)), None)] if number else [
                (Slot("state", (g.number, name, k)), r) for k, r in enumerate(of_rows)]
        old = [given(s) if r is None else self._called("rows_take", given(s), r[0]) for s, r in slots]
        new = self._checked(None, self.trace.optimizer_step, g.rule.name, options, old[:n], [gradients[id(u.parameter)] for u in g.parameters],
                            old[n:])
        for k, ((slot, r), before, value) in enumerate(zip(slots, old, new)):
            value = self._kept(skip, before, value)
            if r is not None:
                value = self._called("rows_put", given(slot), r[1], value)
            yield plan.argument[slot], value
            if plan.options.ema is not None and k < n:
                average = Slot("average", (g.number, k))
                yield plan.argument[average], self._kept(skip, given(average), self._averaged(given(average), value))

    def _gradients(self, rows: dict[int, Any]) -> dict[int, Any]:
        """Gradients by parameter; of a parameter with rows, these in `rows`, and their sums."""
        plan, made = self.plan, {}
        for u in (u for g in plan.groups for u in g.parameters):
            if u.rows:
                pieces = rows_of(plan.joint, u.names, u.names)
                at, to, made[id(u.parameter)] = sums(self, pieces, u.parameter)
                rows[id(u.parameter)] = at, to
            else:
                made[id(u.parameter)] = self._sum([self.env[plan.joint.gradients[n]] for n in u.names if n in plan.joint.gradients])
        return made

    def _called(self, op: str, *args: Any) -> Any:
        return self._checked(None, self.trace.call, op, args, {})

    def _result(self, name: str, value: Any) -> None:
        self.trace.output(name, value)
        self.results.append(Output("tensor", self.noutput))
        self.noutput += 1

    # -- steps that are skipped, the scale of the loss

    def _kept(self, skip: Any, old: Any, new: Any) -> Any:
        return new if skip is None else self._made("where.self", skip, old, new)

    def _bad(self, value: Any) -> Any:
        """Whether an element is not finite."""
        return self._made("any", self._made("logical_not", self._made("isfinite", value)))

    def _lost(self) -> Any:
        """Whether the loss is not finite; None: nobody asks."""
        return self._bad(self.env[self.plan.joint.outputs[0]]) if self.plan.options.skips and self.plan.kind in (STEP, ACCUMULATE) else None

    def _skipped(self, gradients: dict[int, Any]) -> Any:
        if not (self.plan.options.skips or self.plan.options.scaled):
            return None
        bad, lost = [self._bad(g) for g in gradients.values()], self._lost() if self.anywhere is None else self.anywhere
        return self._made("any", self._made("stack", bad + [lost] * (lost is not None)))

    def _unscaled(self, gradients: dict[int, Any], given: Any) -> dict[int, Any]:
        """As torch.amp.GradScaler.unscale_."""
        if not self.plan.options.scaled:
            return gradients
        inverse = self._made("_to_copy", self._made("reciprocal", self._made("_to_copy", given(Slot("scale", None)), dtype="f64")), dtype="f32")
        return {k: self._made("mul.Tensor", g, self._made("_to_copy", inverse, dtype=self.trace.dtype(g))) for k, g in gradients.items()}

    def _rescaled(self, skip: Any, given: Any) -> Iterator[tuple[int, Any]]:
        """As torch.amp.GradScaler.update: a scale that would not be finite does not grow."""
        scale, good = Slot("scale", None), Slot("good", None)
        by = lambda what: self._made("_to_copy", self._made("mul.Tensor", self._made("_to_copy", given(scale), dtype="f64"),
                                                            self._scalar_of(-1, what)), dtype="f32")
        count, larger = self._made("add.Scalar", given(good), 1), by("growth_factor")
        full = self._made("ge.Tensor", self._made("_to_copy", count, dtype="f64"), self._scalar_of(-1, "growth_interval"))
        grown = self._made("where.self", self._made("logical_and", full, self._made("isfinite", larger)), larger, given(scale))
        yield self.plan.argument[scale], self._made("where.self", skip, by("backoff_factor"), grown)
        yield self.plan.argument[good], self._made("where.self", self._made("logical_or", skip, full), self._made("zeros_like", count), count)

    def _sums(self, gradients: dict[int, Any], given: Any) -> Iterator[tuple[int, Any]]:
        """The sums of gradients, and how many there are, after one more call, or after the update."""
        plan, zero = self.plan, self.plan.kind == APPLY
        for g in plan.groups:
            for k, u in enumerate(g.parameters):
                slot = Slot("sum", (g.number, k))
                yield plan.argument[slot], (self._made("zeros_like", given(slot)) if zero else
                                            self._made("add.Tensor", given(slot), gradients[id(u.parameter)]))
        count = Slot("count", None)
        if given(count) is not None:
            yield plan.argument[count], self._made("zeros_like", given(count)) if zero else self._made("add.Scalar", given(count), 1)

    def _means(self, given: Any) -> dict[int, Any]:
        """Of the gradients that were summed: the sums, divided by how many calls there were."""
        made: dict[int, Any] = {}
        count = self._made("clamp", given(Slot("count", None)), 1)
        for g in self.plan.groups:
            for k, u in enumerate(g.parameters):
                total = given(Slot("sum", (g.number, k)))
                made[id(u.parameter)] = self._made("div.Tensor", total, self._made("_to_copy", count, dtype=self.trace.dtype(total)))
        return made

    def _count_of(self, given: Any) -> Any:
        """How much the gradients of this rank count: the samples of a call, or the calls that were summed; f32[]."""
        calls = given(Slot("count", None)) if self.plan.kind == APPLY else None
        if calls is not None:
            return self._made("_to_copy", self._made("clamp", calls, 1), dtype="f32")
        inputs = [(n, v) for n, slot in zip(self._arguments_of(), self.plan.slots) if slot.kind == "input"
                  and isinstance(v := n.meta.get("val"), torch.Tensor) and v.dim()]
        extent = self._argument(inputs[-1][0], inputs[-1][1].shape[0]) if inputs and self.plan.kind == STEP else 1
        if isinstance(extent, int):
            return self._made("full", [], float(extent), dtype="f32")
        return self._made("_to_copy", self.trace.integer(extent), dtype="f32")

    def _reduced(self, value: Any) -> Any:
        name, ranks = self.plan.options.group
        self.collective = True
        return self._checked(None, self.trace.call, "_c10d_functional.all_reduce", (value, "sum", name, ranks), {})

    def _total(self, count: Any) -> Any:
        """The count of all ranks. Whether a loss is not finite travels with it: all ranks do the same then."""
        lost = self._lost()
        if lost is None:
            return self._reduced(count)
        both = self._reduced(self._made("stack", [count, self._made("_to_copy", lost, dtype="f32")]))
        self.anywhere = self._made("gt.Scalar", self._made("select.int", both, 0, 1), 0)
        return self._made("select.int", both, 0, 0)

    def _over_ranks(self, gradients: dict[int, Any], given: Any) -> dict[int, Any]:
        """The gradients of the mean over the samples of all ranks, of those over this rank's. Small ones travel together."""
        if self.plan.options.group is None or not gradients:
            return gradients
        count = self._count_of(given)
        shapes = {id(u.parameter): list(u.parameter.shape) for g in self.plan.groups for u in g.parameters}
        dtypes = {k: self.trace.dtype(g) for k, g in gradients.items()}
        wide = lambda k: "f64" if dtypes[k] == "f64" else "f32"
        of = lambda value, dtype: value if dtype == "f32" else self._made("_to_copy", value, dtype=dtype)
        weighted = {k: self._made("mul.Tensor", of(g, wide(k)) if dtypes[k] != wide(k) else g, of(count, wide(k)))
                    for k, g in gradients.items()}
        sums, total = {}, self._total(count)
        for dtype in ("f32", "f64"):
            small = [k for k in weighted if wide(k) == dtype and math.prod(shapes[k]) < SMALL]
            if small:
                flat = self._reduced(self._made("cat", [self._made("reshape", weighted[k], [-1]) for k in small]))
            at = 0
            for k in small:
                end = at + math.prod(shapes[k])
                sums[k] = self._made("reshape", self._made("slice.Tensor", flat, 0, at, end), shapes[k])
                at = end
        sums |= {k: self._reduced(w) for k, w in weighted.items() if k not in sums}
        means = {k: self._made("div.Tensor", sums[k], of(total, wide(k))) for k in gradients}
        return {k: m if dtypes[k] == wide(k) else self._made("_to_copy", m, dtype=dtypes[k]) for k, m in means.items()}

    def _averaged(self, average: Any, new: Any) -> Any:
        """As torch.optim.swa_utils.get_ema_multi_avg_fn: the average, moved towards the parameter."""
        weight = self._made("full", [], 1.0 - float(self.plan.options.ema or 0.0), dtype=self.trace.dtype(average))
        return self._made("lerp.Tensor", average, new, weight)

    def _sum(self, values: list[Any]) -> Any:
        """The gradients of one parameter with several names."""
        return functools.reduce(lambda a, b: self._made("add.Tensor", a, b), values)

    def _scalar_of(self, group: int, name: str) -> Any:
        """A number of a group, or of the step (group -1)."""
        return self._made("select.int", self.env[self.plan.scalars], 0, self.plan.places[group, name])

    def _clipped(self, gradients: dict[int, Any]) -> dict[int, Any]:
        """As torch.nn.utils.clip_grad_value_, then clip_grad_norm_."""
        if self.plan.options.clip_value and gradients:
            most = self._scalar_of(-1, "clip_value")
            least = self._made("neg", most)
            bound = lambda g, to, op: self._made(op, g, self._made("_to_copy", to, dtype=self.trace.dtype(g)))
            gradients = {k: bound(bound(g, least, "maximum"), most, "minimum") for k, g in gradients.items()}
        if self.plan.options.clip_norm and gradients:
            norms = [self._made("_to_copy", self._made("linalg_vector_norm", g, 2), dtype="f32") for g in gradients.values()]
            if any(self.trace.dtype(g) == "f64" for g in gradients.values()):
                norms = [self._made("linalg_vector_norm", self._made("_to_copy", g, dtype="f64"), 2) for g in gradients.values()]
            norm = self._made("linalg_vector_norm", self._made("stack", norms), 2)
            most = self._made("_to_copy", self._scalar_of(-1, "clip_norm"), dtype=self.trace.dtype(norm))
            factor = self._made("clamp", self._made("div.Tensor", most, self._made("add.Scalar", norm, 1e-6)), None, 1.0)
            self._result("grad_norm", norm)
            gradients = {k: self._made("mul.Tensor", g, self._made("_to_copy", factor, dtype=self.trace.dtype(g)))
                         for k, g in gradients.items()}
        return gradients


class EntryLowering(StepLowering):
    """The same for a file: parameters, buffers and the optimizer's state are state of the model; numbers are constants, or inputs."""

    def __init__(self, plan: Plan, name: str, session: Any, values: dict[Slot, torch.Tensor], state: set[Slot],
                 numbers: dict[tuple[int, str], float], inputs: dict[tuple[int, str], str]):
        self.shared, self.value_of_slot, self.state, self.numbers_now, self.asked = session, values, state, numbers, inputs
        super().__init__(plan, name)

    def _session(self) -> Any:
        return self.shared

    def _input(self, k: int, node: Node, v: torch.Tensor) -> Any:
        slot = self.plan.slots[k]
        if slot.kind == "input":
            return super()._input(k, node, v)
        if slot.kind in ("scalars", "count"):
            return None
        value = self.value_of_slot[slot].detach().contiguous()
        declare = self.trace.param if slot not in self.state else self.trace.variable if slot.kind == "param" else self.trace.buffer
        self.inputs[k] = made = declare(self.plan.labels[node], type_text(value, {}), value)
        return made

    def _sums(self, gradients: dict[int, Any], given: Any) -> Iterator[tuple[int, Any]]:
        """Of a file the caller says how much a batch counts: 1 / N for the mean of N."""
        if self.plan.kind == ACCUMULATE:
            weight = self.trace.input("weight", "f64[]")
            gradients = {k: self._made("mul.Tensor", g, self._made("_to_copy", weight, dtype=self.trace.dtype(g)))
                         for k, g in gradients.items()}
        yield from super()._sums(gradients, given)

    def _means(self, given: Any) -> dict[int, Any]:
        return {id(u.parameter): given(Slot("sum", (g.number, k))) for g in self.plan.groups for k, u in enumerate(g.parameters)}

    def _param(self, name: str, value: torch.Tensor) -> Any:
        self.nparam += 1
        return self.trace.param(f"constant.{name}", type_text(value, {}), value)

    def _scalar_of(self, group: int, name: str) -> Any:
        if (group, name) in self.asked:
            return self.trace.input(self.asked[group, name], "f64[]")
        return self._made("full", [], self.numbers_now[group, name], dtype="f64")


SMALL = 1 << 16  # elements of a gradient that travels with others
# What the graph of a plan computes: all; the gradients, which it adds to sums; an update by the sums; the module's output.
STEP, ACCUMULATE, APPLY, EVAL = "step", "accumulate", "apply", "eval"


class Plan:
    """What a graph takes and replaces: of a joint graph and of groups. An evaluation reads averages where there are some."""

    def __init__(self, kind: str, joint: Joint, groups: list[Group], options: Options):
        self.kind, self.joint, self.groups, self.options = kind, joint, groups, options
        gm, names = joint.gm, {n: u.names[0] for g in groups for u in g.parameters for n in u.names}
        averages = {} if kind != EVAL or options.ema is None else {
            u.names[0]: Slot("average", (g.number, k)) for g in groups for k, u in enumerate(g.parameters)}
        self.slots: list[Slot] = []
        self.labels: dict[Node, str] = {}
        first: dict[Slot, Node] = {}
        for n in list(gm.graph.find_nodes(op="placeholder")):
            role = joint.roles[n]
            name = names.get(role.name, role.name)
            slot = Slot("input", role.index) if role.kind == "input" else averages.get(name) or Slot(role.kind, name)
            if slot in first:  # another name of one parameter
                n.replace_all_uses_with(first[slot])
                gm.graph.erase_node(n)
                continue
            first[slot] = n
            self.slots.append(slot)
            self.labels[n] = role.name if slot.kind == "input" else f"ema.{name}" if slot.kind == "average" else slot.key
        self._last = self._mode = None
        self.places: dict[tuple[int, str], int] = {}
        self.scalars = None
        if kind != EVAL:
            self._add_memory()
        self.argument = {slot: k for k, slot in enumerate(self.slots)}
        end = gm.graph.output_node()
        values = joint.outputs if options.outputs or kind == EVAL else joint.outputs[:1]
        loss = kind in (STEP, ACCUMULATE)
        others = len(values) - loss
        labels = ["loss"] * loss + [f"output.{k}" if others > 1 else "output" for k in range(others)]
        self.results = {r: name for n, name in reversed(list(zip(values, labels))) if isinstance(n, Node) for r in (n, root_of(n))}
        self.buffers = {self.argument[Slot("buffer", joint.roles[n].name)]: to for n, to in joint.buffers.items()}
        end.args = (values,)
        if loss:
            self._in_blocks(values)
        self.written = [*self.buffers, *(k for k, s in enumerate(self.slots) if self._is_written(s))]

    def _in_blocks(self, values: list[Any]) -> None:
        """Lets a linear layer with cross entropy be a loop over rows, where the logits are large."""
        joint = self.joint
        made = training_blocks.rewrite(joint.gm, [*values, *joint.gradients.values(), *joint.buffers.values()])
        joint.gradients = {n: made.get(g, g) for n, g in joint.gradients.items()}
        joint.outputs = [made.get(n, n) for n in joint.outputs]
        self.results = {made.get(n, n): name for n, name in self.results.items()}

    def _is_written(self, slot: Slot) -> bool:
        if slot.kind in ("sum", "count") or slot.kind in ("state", "numbers", "average", "scale", "good") and self.kind in (STEP, APPLY):
            return True
        return slot.kind == "param" and self.kind in (STEP, APPLY) and slot.key in {u.names[0] for g in self.groups for u in g.parameters}

    def _add_memory(self) -> None:
        """Adds arguments behind those of the joint graph: states, sums, averages, numbers."""
        nodes = list(self.joint.gm.graph.find_nodes(op="placeholder"))
        self._last, self._mode = nodes[-1], torch._guards.detect_fake_mode([n.meta.get("val") for n in nodes])
        updates, options = self.kind in (STEP, APPLY), self.options
        for g in self.groups:
            for item in g.rule.scalars if updates else ():
                self.places[g.number, item.name] = len(self.places)
            for name, key, _, number in g.states if updates else ():
                if number:
                    self._add(Slot("numbers", (g.number, name)), f"optimizer.{g.number}.{name}", g.numbers[name])
                for k, u in enumerate([] if number else g.parameters):
                    self._add(Slot("state", (g.number, name, k)), f"state.{u.names[0]}.{key}", g.tensors[name][k])
            for k, u in enumerate(g.parameters):
                if options.sums:
                    self._add(Slot("sum", (g.number, k)), f"grad.{u.names[0]}", g.sums[k])
                if options.ema is not None and updates:
                    self._add(Slot("average", (g.number, k)), f"ema.{u.names[0]}", g.averages[k])
        if options.sums:
            self._add(Slot("count", None), "accumulated", torch.empty(()))
        if options.scaled:
            scale = self._add(Slot("scale", None), "weft.loss_scale", torch.empty(()))
            self._scale_loss(scale)
            if updates:
                self._add(Slot("good", None), "weft.good_steps", torch.empty((), dtype=torch.int32))
        asked = [("clip_norm", options.clip_norm), ("clip_value", options.clip_value), *((k, options.scaled) for k in SCALE)]
        for what in (w for w, there in asked if there and updates):
            self.places[-1, what] = len(self.places)
        if self.places:
            self.scalars = self._add(Slot("scalars", None), "scalars", torch.empty(len(self.places), dtype=torch.float64))

    def _scale_loss(self, scale: Node) -> None:
        """Makes the scale the gradient of the loss."""
        seed, value = self.joint.seed, scale
        if seed is None:
            return
        v = seed.meta["val"]
        if v.dtype != torch.float32:
            with seed.graph.inserting_after(seed):
                value = seed.graph.call_function(torch.ops.aten._to_copy.default, (scale,), {"dtype": v.dtype})
            value.meta["val"] = v
        seed.replace_all_uses_with(value)

    def _add(self, slot: Slot, label: str, value: torch.Tensor) -> Node:
        gm = self.joint.gm
        with gm.graph.inserting_after(self._last):
            self._last = n = gm.graph.placeholder(f"state_{len(self.slots)}")
        n.meta["val"] = self._mode.from_tensor(value, static_shapes=True)
        self.slots.append(slot)
        self.labels[n] = label
        return n


def without_forward(groups: list[Group]) -> Joint:
    """A graph that has parameters and computes nothing, for a plan that applies sums."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    mode, graph, joint = FakeTensorMode(), Graph(), Joint()
    joint.roles, joint.buffers, joint.gradients, joint.symbols, joint.where = {}, {}, {}, {}, {}
    joint.sparse, joint.seed = set(), None
    joint.outputs, joint.conditions, joint.loss, joint.out_spec = [], [], None, None
    for k, u in enumerate(u for g in groups for u in g.parameters):
        n = graph.placeholder(f"p_{k}")
        n.meta["val"] = mode.from_tensor(u.parameter.detach(), static_shapes=True)
        joint.roles[n] = Role("param", u.names[0])
    graph.output([])
    joint.gm = GraphModule(torch.nn.Module(), graph)
    return joint


def compiled(plan: Plan) -> Any:
    """Compiles the graph of a plan in this process. Every operator must be one of Weft's."""
    from weft import dynamo
    gm = plan.joint.gm
    for n in gm.graph.nodes:
        if n.target is not training_blocks.blocks and (why := fx.why_not(n) or dynamo._on_meta(n)):
            raise error(f"{_where(n)}{n.target}: {why}")
    try:
        with in_python():
            made = dynamo.Compiled(StepLowering(plan, plan.kind), fallback=False)
            made.converts = False
            return made
    except (Unsupported, _weft.Error) as e:
        node = getattr(e, "node", None)
        raise error(f"{_where(node) if node is not None else ''}{e}") from None


def _where(n: Node) -> str:
    stack = (n.meta.get("stack_trace") or "").strip().splitlines()
    line = next((s for s in reversed(stack) if s.lstrip().startswith("File ")), "")
    parts = line.strip().split(", ")
    return f"{parts[0][6:-1].rsplit('/', 1)[-1]}:{parts[1].removeprefix('line ')}: " if len(parts) > 1 else ""
