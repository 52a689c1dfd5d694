"""weft.train_step: forward, loss, backward and a step of the optimizer as one compiled graph.

    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
    step = weft.train_step(net, torch.nn.functional.cross_entropy, optimizer, (x, y))
    for x, y in batches:
        loss = step(x, y)
        schedule.step()

The memory of the step is that of the module's parameters and buffers and of the optimizer's state.
"""
from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

from weft import _weft
from weft.joint import PRECISIONS, VALUES, Joint, Whole, error, names_of_inputs, short, trace
from weft.model import in_python
from weft.results import is_dense
from weft.sizes import DTYPES, Unsupported
from weft.training_graph import (ACCUMULATE, APPLY, EVAL, SCALE, STEP, EntryLowering, Group, Options, Plan, Slot, Updated, compiled, flag_of,
                                 number_of, rule_of, rules, without_forward)
from weft.training_reads import reads_of
from weft.training_rows import check_patterns, rows_of


def _check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise error(f"optimizer: expected one of torch.optim, got {type(optimizer).__name__}")
    for kind in ("pre", "post"):
        if getattr(optimizer, f"_optimizer_step_{kind}_hooks", None):
            raise error(f"the optimizer has a step {kind} hook, which would not be called")
    for k, g in enumerate(optimizer.param_groups):
        if g.get("differentiable"):
            raise error(f"group {k} of the optimizer is differentiable=True: a step has no history")


def _said_by_ranks(optimizer: Any, asked: Any) -> dict[str, Any]:
    """What must be the same on all ranks of a group, by its name."""
    numbers = {f"{k!r} of group {n} of the optimizer": float(v) if isinstance(v, torch.Tensor) else v
               for n, g in enumerate(optimizer.param_groups) for k, v in g.items() if k != "params"}
    return {"the optimizer": type(optimizer).__name__, **numbers,
            "the number of parameters of the optimizer": sum(len(g["params"]) for g in optimizer.param_groups),
            "the optimizer's state": [(list(s), [list(t.shape) for t in s.values() if isinstance(t, torch.Tensor)])
                                      for g in optimizer.param_groups for s in (optimizer.state.get(p, {}) for p in g["params"])],
            **{name: getattr(asked, name) for name in ("clip_norm", "clip_value", "accumulate", "precision", "ema", "on_nan")},
            "loss_scale": asked.loss_scale and {k: getattr(asked.loss_scale, get)() for k, get in SCALE.items()}}


def _states_of(optimizer: Any) -> list[torch.Tensor]:
    states = [optimizer.state.get(p, {}) for g in optimizer.param_groups for p in g["params"]]
    return [t for s in states for t in s.values() if isinstance(t, torch.Tensor)]


def _check_parameter_hooks(name: str, p: torch.nn.Parameter) -> None:
    for attribute, what in (("_backward_hooks", "register_hook"), ("_post_accumulate_grad_hooks", "register_post_accumulate_grad_hook")):
        if getattr(p, attribute, None):
            raise error(f"the parameter {name} has a hook ({what}), which tracing loses: change gradients in the loss, or by "
                        "clip_norm= and clip_value=")


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _parts_of(m: torch.nn.Module) -> dict[str, Any]:
    """What of a module is part of the graph besides numbers and tensors: submodules, hooks, and attributes, of lists and dictionaries
    what they hold. Equal as long as none is exchanged."""
    parts: dict[str, Any] = {f"the submodule {k}": id(v) for k, v in m._modules.items()}
    parts |= {hooks: tuple(getattr(m, hooks)) for hooks in _HOOKS}
    for name, v in vars(m).items():
        if name.startswith("_") or isinstance(v, VALUES):
            continue
        held = v.items() if isinstance(v, dict) else enumerate(v) if isinstance(v, (list, tuple)) else ()
        parts[f"the attribute {name}"] = (id(v), tuple((k, x if isinstance(x, (int, float, str)) else id(x)) for k, x in held))
    return parts


class Watched:
    """A module, and what it was when the step was made: _parts_of, and what tells in a microsecond that nothing of it changed."""

    def __init__(self, name: str, module: torch.nn.Module):
        self.name, self.module, self.parts = name, module, _parts_of(module)
        self.values = vars(module)
        self.now = self._now()
        self.same = [(k, v) for k, v in self.values.items() if not k.startswith("_") and not isinstance(v, VALUES)]
        self.holders = any(isinstance(v, (dict, list)) for _, v in self.same)

    def _now(self) -> list[Any]:
        return [len(self.values), *self.module._modules.items(), *(k for hooks in _HOOKS for k in self.values[hooks])]

    def changed(self) -> str | None:
        """What is another one than before."""
        values = self.values
        if not self.holders and self._now() == self.now and all(values.get(k) is v for k, v in self.same):
            return None
        now, before = _parts_of(self.module), self.parts
        return next((k for k in {**before, **now} if k not in now or k not in before or now[k] != before[k]), None)


def _check_hooks(module: torch.nn.Module) -> None:
    """Hooks vanish in tracing, or are called with what has no contents."""
    for name, p in module.named_parameters():
        _check_parameter_hooks(short(name), p)
    for name, m in module.named_modules():
        if m._backward_hooks or m._backward_pre_hooks:
            raise error(f"the module {short(name) or type(m).__name__} has a hook on its backward pass, which a step cannot call")


# ---- the step ----

_LATER = {"memory_budget": None}


class Asked(NamedTuple):
    """What train_step is asked for."""
    dynamic_shapes: Any
    clip_norm: float | None
    clip_value: float | None
    outputs: bool
    accumulate: int
    precision: str | None
    ema: float | None
    sparse: list[str] | None
    on_nan: str | None
    loss_scale: Any
    check: bool
    rule: str | None
    group: Any


class TrainStep:
    """A compiled step of training: loss = step(*inputs).

    step.module, step.optimizer: what it was made of. Parameters, buffers and the state of the optimizer change in place.
    step.eval(*inputs): the module in evaluation mode, compiled, with the parameters of now. A call may come from any thread; it
    waits for a step that runs, so that it sees the values before or after a step.
    step.clip_norm, step.clip_value: may be set to another number between calls.
    step.grad_norm: with clip_norm, the norm of the last step's gradients before clipping.
    step.skipped: with on_nan or a scale of the loss, whether the last step changed nothing, because something was not finite.
    step.scaler: with precision="f16", the torch.amp.GradScaler whose scale and numbers the step has.
    step.accumulated: with accumulate, the calls since the last update; step.apply() updates by the mean of their gradients.
    step.ema: with ema, the averages of the parameters by name, which eval uses."""

    def __init__(self, module: Any, loss: Any, optimizer: Any, args: Any, kwargs: Any, asked: Asked):
        module = getattr(module, "_orig_mod", module)  # of torch.compile
        if not isinstance(module, torch.nn.Module):
            raise error(f"expected a module, got {type(module).__name__}")
        if not isinstance(args, (tuple, list)):
            raise error(f"args is a tuple of example inputs, (x, y), not {type(args).__name__}")
        if loss is not None and not args:
            raise error("args: the loss needs a last input, the label")
        _check_optimizer(optimizer)
        self.module, self.optimizer, self.outputs = module, optimizer, asked.outputs
        self.clip_norm, self.clip_value, self.grad_norm, self.skipped = asked.clip_norm, asked.clip_value, None, None
        self._loss, self._dynamic_shapes, self._on_nan = loss, asked.dynamic_shapes, asked.on_nan
        self._args, self._kwargs = tuple(args), dict(kwargs or {})
        self.accumulate, self._precision = asked.accumulate, asked.precision
        self.scaler = asked.loss_scale if asked.loss_scale is not None else torch.amp.GradScaler("cpu") if asked.precision == "f16" else None
        self._options = Options(asked.clip_norm is not None, asked.clip_value is not None, asked.outputs, asked.accumulate > 1, asked.ema,
                                asked.on_nan is not None, self.scaler is not None, asked.group and (asked.group.group_name, asked.group.size()))
        self._whole = Whole(module, loss, precision=asked.precision)
        self._check_autocast()
        _check_hooks(self._whole)
        if asked.group:
            from weft.distributed import check_same, from_rank_0
            check_same(_said_by_ranks(optimizer, asked), asked.group, "weft.train_step")
            from_rank_0([*module.parameters(), *module.buffers(), *_states_of(optimizer)], asked.group)
        self._group = asked.group
        self._rule = rule_of(optimizer, asked.rule)
        self._lock, self._eval = threading.RLock(), None
        joint = trace(self._whole, self._args, self._kwargs, asked.dynamic_shapes)
        self._read_owners()
        self._groups = self._find_groups(joint, asked.sparse)
        if asked.group and (rows := [u.names[0] for g in self._groups for u in g.parameters if u.rows]):
            raise error(f"group: the sparse gradient of {rows[0]} cannot be that of several processes; sparse=False makes it a whole one")
        self._scale = self._good = None
        self._adopt_scale()
        if asked.group and self.scaler is not None:
            from_rank_0([self._scale, self._good], asked.group)
        eager = None
        if asked.check:
            from weft.training_check import compare_gradients, compare_step
            eager = compare_gradients(self, joint)
        # A step, or the calls that accumulate gradients; then an update follows by a graph of its own.
        self._plan = Plan(ACCUMULATE if self._options.sums else STEP, joint, self._groups, self._options)
        self._compiled = compiled(self._plan)
        self._apply_plan = Plan(APPLY, without_forward(self._groups), self._groups, self._options) if self._options.sums else None
        self._apply_compiled = compiled(self._apply_plan) if self._apply_plan else None
        self._entries = Entry(self._plan, self._args, self._kwargs, names_of_inputs(self._whole, self._args, self._kwargs))
        self._variants = Variants(Variant(self._plan, self._compiled, self._entries), self._of_ones)
        if eager is not None:
            with torch.no_grad():
                self._adopt()
                compare_step(self, *eager)

    # -- what belongs to what

    def _read_owners(self) -> None:
        """Where tensors of the module are, so that a later exchange is seen."""
        self._owners: list[tuple[str, dict[str, Any], str, torch.Tensor]] = []
        self._tensors: dict[str, torch.Tensor] = {}
        for prefix, m in self._whole.named_modules(remove_duplicate=False):
            for values in (m._parameters, m._buffers):
                for name, t in values.items():
                    if t is not None:
                        full = short(f"{prefix}.{name}".lstrip("."))
                        self._owners.append((full, values, name, t))
                        self._tensors[full] = t
        self._modes = [(n.removeprefix("module").lstrip("."), m, m.training) for n, m in self._whole.named_modules() if m is not self._whole]
        # What is part of the graph: numbers that modules have, and tensors that are no buffers.
        self._constants = [(short(f"{prefix}.{name}".lstrip(".")), vars(m), name, v, v._version if isinstance(v, torch.Tensor) else None)
                           for prefix, m in self._whole.named_modules() if m is not self._whole
                           for name, v in vars(m).items() if isinstance(v, VALUES) and name not in ("training", "_is_full_backward_hook")]
        functions = [(f"the forward of {short(prefix) or type(m).__name__}", type(m).forward)
                     for prefix, m in self.module.named_modules() if not type(m).__module__.startswith("torch.")]
        self._reads = reads_of([("the loss", self._loss), *functions])
        self._watched = [Watched(short(prefix), m) for prefix, m in self._whole.named_modules()]
        self._check_memory()

    def _check_memory(self) -> None:
        seen: dict[int, str] = {}
        by: dict[int, tuple[str, int]] = {}
        for name, t in self._tensors.items():
            if id(t) in seen:
                continue
            seen[id(t)] = name
            if t.layout != torch.strided or t.device.type != "cpu" or t.dtype not in DTYPES:
                raise error(f"{name} is of {t.dtype} and layout {t.layout} on {t.device}, which a step cannot update")
            if not t.numel():
                continue
            if not is_dense(t.detach()):
                raise error(f"the memory of {name} has gaps or repetitions")
            storage = t.untyped_storage()._cdata
            other = by.setdefault(storage, (name, id(t)))
            if other[1] != id(t) and self._overlap(self._tensors[other[0]], t):
                raise error(f"{name} shares memory with {other[0]} and is another tensor: make them one parameter")

    @staticmethod
    def _overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
        start = lambda t: t.storage_offset() * t.element_size()
        return start(a) < start(b) + b.numel() * b.element_size() and start(b) < start(a) + a.numel() * a.element_size()

    def _find_groups(self, joint: Joint, sparse: list[str] | None) -> list[Group]:
        names: dict[int, list[str]] = {}
        for full, _, _, t in self._owners:
            if isinstance(t, torch.nn.Parameter) and full not in names.get(id(t), ()):
                names.setdefault(id(t), []).append(full)
        groups = []
        for k, g in enumerate(self.optimizer.param_groups):
            flags = {f.name: flag_of(self._rule, g, f) for f in self._rule.flags}
            parameters = []
            for i, p in enumerate(g["params"]):
                if id(p) not in names:
                    raise error(f"parameter {i} of group {k} of the optimizer, of shape {list(p.shape)}, is none of the module's")
                if p.requires_grad and any(n in joint.gradients for n in names[id(p)]):
                    if not p.dtype.is_floating_point:
                        raise error(f"the parameter {names[id(p)][0]} is of {p.dtype}")
                    parameters.append(Updated(names[id(p)], p, self._has_rows(g, joint, names[id(p)], sparse)))
            group = Group(k, self._rule, flags, parameters)
            self._make_states(group, g)
            group.sums = [torch.zeros_like(u.parameter, requires_grad=False) for u in parameters] if self._options.sums else []
            group.averages = [u.parameter.detach().clone() for u in parameters] if self._options.ema is not None else []
            if parameters:
                groups.append(group)
        self._count = torch.zeros(()) if self._options.sums else None
        self._structure = [([id(p) for p in g["params"]], {f.name: flag_of(self._rule, g, f) for f in self._rule.flags})
                           for g in self.optimizer.param_groups]
        if not groups:
            raise error("the loss depends on no parameter of the optimizer that requires a gradient")
        check_patterns(sparse, [n for g in groups for u in g.parameters for n in u.names])
        self._trainable = [(n, p, p.requires_grad) for n, p in self._tensors.items() if isinstance(p, torch.nn.Parameter)]
        return groups

    def _has_rows(self, g: dict[str, Any], joint: Joint, names: list[str], sparse: list[str] | None) -> bool:
        """Whether only the rows of a parameter that a step reads are updated."""
        rule, found = self._rule, rows_of(joint, names, sparse) is not None
        if rule.lazy and not found:
            raise error(f"{rule.torch} updates rows that a step reads: {names[0]} is no table of an embedding with sparse=True, nor named in "
                        "sparse=")
        if found and rule.rows is None:
            able = ", ".join(r.torch for r in rules().values() if r.rows is not None)
            raise error(f"{rule.torch or rule.name} does not support sparse gradients, which {names[0]} has: {able} do")
        if found and self._options.sums:
            raise error(f"accumulate: the gradient of {names[0]} is sparse, and a sum of several would not be: sparse=False")
        return found and all(number_of(g, item, "") == 0 for item in rule.rows)

    # -- the optimizer's state

    def _make_states(self, group: Group, g: dict[str, Any]) -> None:
        """Memory for the states of a group, as they begin."""
        options: dict[str, Any] = dict(group.flags)
        for item in group.rule.scalars:
            options[item.name] = number_of(g, item, f"group {group.number}")
        asked = _weft.Session().trace("states")
        group.states = asked.optimizer_states(group.rule.name, options)
        numbers = torch.float64 if torch.get_default_dtype() == torch.float64 else torch.float32
        for name, _, begins, number in group.states:
            if number:
                group.numbers[name] = torch.full((len(group.parameters),), begins, dtype=numbers)
            else:
                group.tensors[name] = [torch.full_like(u.parameter, begins, requires_grad=False, memory_format=torch.preserve_format)
                                       for u in group.parameters]

    def _adopt(self) -> None:
        """Takes what PyTorch's state has where that is not this memory: after load_state_dict, or a step of eager mode."""
        state = self.optimizer.state
        for g in self._groups:
            for k, u in enumerate(g.parameters):
                there = state.get(u.parameter)
                if there is not None and there is g.known[k] and self._is_ours(g, k, there):
                    continue
                self._take(g, k, u, there or {})

    def _adopt_scale(self) -> None:
        """Gives the scaler's scale, and count of good steps, memory of the step's; takes their values where they are others."""
        if self.scaler is None:
            return
        if self.scaler._scale is None:
            self.scaler._lazy_init_scale_growth_tracker(torch.device("cpu"))
        if self.scaler._scale is not self._scale or self.scaler._growth_tracker is not self._good:
            self._scale, self._good = self.scaler._scale.clone(), self.scaler._growth_tracker.clone()
            self.scaler._scale, self.scaler._growth_tracker = self._scale, self._good

    def _is_ours(self, g: Group, k: int, there: dict[str, Any]) -> bool:
        for name, key, _, number in g.states:
            if key == "-":
                continue
            t = there.get(key)
            ours = g.tensors[name][k] if not number else None
            if number and g.rule.lazy:
                if t is None or float(t) != float(g.numbers[name][k]):
                    return False
                continue
            if t is None or (t is not ours if ours is not None else t.data_ptr() != g.numbers[name].data_ptr() + k * g.numbers[name].element_size()):
                return False
        return True

    def _take(self, g: Group, k: int, u: Updated, there: dict[str, Any]) -> None:
        begun = any(there.get(key) is not None for _, key, _, _ in g.states if key != "-")
        for name, key, begins, number in g.states:
            if number:
                value = float(there[key]) if there.get(key) is not None else float(begun) if key == "-" else begins
                g.numbers[name][k] = value
                continue
            t, ours = there.get(key), g.tensors[name][k]
            if t is None:
                ours.fill_(begins)
            elif t is not ours:
                if t.shape != u.parameter.shape:
                    raise error(f"the optimizer's {key} of {u.names[0]} is {list(t.shape)}, expected {list(u.parameter.shape)}")
                ours.copy_(t)
        g.known[k] = None

    def _show(self) -> None:
        """Lets the optimizer's state have this memory, after a step. SparseAdam counts in Python's integers."""
        state = self.optimizer.state
        for g in self._groups:
            for k, u in enumerate(g.parameters):
                if g.known[k] is not None and not g.rule.lazy:
                    continue
                there = state[u.parameter]
                for name, key, _, number in g.states:
                    if key != "-":
                        there[key] = g.tensors[name][k] if not number else int(g.numbers[name][k]) if g.rule.lazy else g.numbers[name][k]
                g.known[k] = there

    # -- calls

    def _check_autocast(self) -> None:
        if torch.is_autocast_enabled("cpu") and self._precision != PRECISIONS.get(torch.get_autocast_dtype("cpu")):
            raise error(f"torch.autocast to {torch.get_autocast_dtype('cpu')} is on, and changes nothing in a compiled step, which has "
                        f"precision={self._precision!r}: precision='bf16' is the same as autocast around the module and the loss")

    def _check_structure(self) -> None:
        self._check_autocast()
        groups = self.optimizer.param_groups
        if len(groups) != len(self._structure):
            raise error(f"the optimizer has {len(groups)} groups, and had {len(self._structure)}: make another step")
        for k, (g, (params, flags)) in enumerate(zip(groups, self._structure)):
            if len(g["params"]) != len(params) or any(id(p) != i for p, i in zip(g["params"], params)):
                raise error(f"group {k} of the optimizer has other parameters than before: make another step")
            for f in self._rule.flags:
                if flag_of(self._rule, g, f) != flags[f.name]:
                    raise error(f"group {k} of the optimizer: {f.key} is {g[f.key]!r}, the step was compiled for "
                                f"{'another value than 0' if flags[f.name] else '0 or False'}: make another step")
            if any(g.get(item.key, 0) != 0 for item in self._rule.rows or ()) and any(u.rows for x in self._groups if x.number == k for u in x.parameters):
                raise error(f"group {k} of the optimizer: {' and '.join(i.key for i in self._rule.rows)} were 0, so that only rows are updated "
                            "that a step reads: make another step")
        for name, values, key, t in self._owners:
            if values.get(key) is not t:
                raise error(f"{name} is another tensor than when the step was made: write into it in place")
        for name, values, key, v, version in self._constants:
            now = values.get(key, error)
            if now is not v and (isinstance(v, torch.Tensor) or now != v) or version is not None and now._version != version:
                raise error(f"{name} is another value than when the step was made, of which it is part: make another step, or register a "
                            "tensor as a buffer")
        for r in self._reads:
            if r.changed():
                now = r.get()
                text = "another tensor" if isinstance(now, torch.Tensor) else repr(now)
                raise error(f"{r.name} is {text} now, and was another when the step was made, of which it is part: make it an input, or "
                            "another step")
        for w in self._watched:
            what = w.changed()
            if what:
                raise error(f"{what} of the module {w.name or type(w.module).__name__} is another one than when the step was made: make "
                            "another step")
        for name, p, requires in self._trainable:
            if p.requires_grad != requires:
                raise error(f"the parameter {name} has requires_grad={p.requires_grad}, which was {requires}: make another step")
            _check_parameter_hooks(name, p)
        _check_optimizer(self.optimizer)
        for name, m, training in self._modes:
            if m.training != training:
                raise error(f"the module {name or type(m).__name__} is in {'training' if m.training else 'evaluation'} mode, the step was "
                            f"made in {'training' if training else 'evaluation'} mode: call .{'train' if training else 'eval'}() before a step")

    def _scalars(self, plan: Plan) -> torch.Tensor:
        values = [0.0] * len(plan.places)
        for g in self._groups:
            group = self.optimizer.param_groups[g.number]
            for item in g.rule.scalars:
                if (g.number, item.name) in plan.places:
                    values[plan.places[g.number, item.name]] = number_of(group, item, f"group {g.number}")
        for what in ("clip_norm", "clip_value", *SCALE):
            if (-1, what) in plan.places:
                values[plan.places[-1, what]] = float(getattr(self.scaler, SCALE[what])() if what in SCALE else getattr(self, what))
        return torch.tensor(values, dtype=torch.float64)

    def _arguments(self, plan: Plan, leaves: list[Any]) -> list[Any]:
        values: list[Any] = []
        groups = {g.number: g for g in self._groups}
        for kind, key in plan.slots:
            if kind == "input":
                values.append(leaves[key])
            elif kind in ("param", "buffer"):
                values.append(self._tensors[key].detach())
            elif kind == "numbers":
                values.append(groups[key[0]].numbers[key[1]])
            elif kind == "state":
                values.append(groups[key[0]].tensors[key[1]][key[2]])
            elif kind in ("sum", "average"):
                values.append((groups[key[0]].sums if kind == "sum" else groups[key[0]].averages)[key[1]])
            elif kind in ("count", "scale", "good"):
                values.append({"count": self._count, "scale": self._scale, "good": self._good}[kind])
            else:
                values.append(self._scalars(plan))
        return values

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._lock, torch.no_grad():
            self._check_structure()
            of, leaves = self._variants.of(args, kwargs)
            self._adopt()
            self._adopt_scale()
            values = self._arguments(of.plan, leaves)
            results = self._run(of.plan, of.compiled, values)
            updates = self._count is None or self.accumulated >= self.accumulate
            if self._count is None:
                self._show()
                self._read_results(results)
            elif updates:
                self._update()
        if self._on_nan == "stop" and updates and self.skipped:
            where = "" if self._group is None else " on one of the ranks"
            raise _weft.CheckError(f"weft.train_step: the loss is {float(results[0])}, and it or a gradient is not finite{where}: "
                                   "nothing has changed")
        if not self.outputs:
            return results[0]
        return torch.utils._pytree.tree_unflatten(results, of.entries.spec)

    def _read_results(self, results: list[Any]) -> None:
        """Takes what an update says of itself off the results."""
        if self._options.skips or self._options.scaled:
            self.skipped = results.pop()
        if self._options.clip_norm:
            self.grad_norm = results.pop()

    def _of_ones(self, ones: frozenset[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Variant:
        """The step for sizes that are 1."""
        joint = trace(self._whole, args, kwargs, self._dynamic_shapes, ones)
        plan = Plan(self._plan.kind, joint, self._groups, self._options)
        return Variant(plan, compiled(plan), Entry(plan, args, kwargs, self._entries.names))

    def _run(self, plan: Plan, call: Any, values: list[Any]) -> list[Any]:
        written = [values[k] for k in plan.written]  # a call empties the list
        kept = [(values[k], values[k].clone()) for k in plan.buffers]  # forward may write them, then a check fails
        try:
            results = call(values)
        except BaseException:
            for t, before in kept:
                t.copy_(before)
            raise
        torch.autograd.graph.increment_version(written)
        if plan.kind != ACCUMULATE:
            self.optimizer._opt_called = True  # schedulers ask
        return results

    def _update(self) -> None:
        plan = self._apply_plan
        self._adopt_scale()
        self._read_results(self._run(plan, self._apply_compiled, self._arguments(plan, [])))
        self._show()

    @property
    def accumulated(self) -> int:
        return int(self._count) if self._count is not None else 0

    def apply(self) -> None:
        """Updates by the mean of the gradients that calls have accumulated since the last update, if there are any."""
        if self._count is None:
            raise error("apply() is for a step that accumulates: each call of this one updates")
        with self._lock, torch.no_grad():
            if self.accumulated:
                self._check_structure()
                self._adopt()
                self._update()

    @property
    def ema(self) -> dict[str, torch.Tensor]:
        """The averages by names of parameters: memory that steps change."""
        return {n: t for g in self._groups for u, t in zip(g.parameters, g.averages) for n in u.names}

    def eval(self, *args: Any, **kwargs: Any) -> Any:
        with self._lock, torch.no_grad():
            if self._eval is None:
                self._eval = Evaluation(self)
            return self._eval(args, kwargs)

    def save(self, path: Any, *, inputs: Iterable[str] = ("lr",), **options: Any) -> None:
        """Writes a shared object with the entries `step` and `eval`, whose state is the parameters, buffers and the optimizer's state as
        they are now. inputs: numbers of the optimizer, or clip_norm and clip_value, that `step` takes behind the module's inputs, f64[];
        the others are constants as they are now. With several groups, that of group K is NAME.K. options: as for weft.compile."""
        from weft.compiler import _SHARED
        with self._lock, torch.no_grad():
            self._check_structure()
            self._adopt()
            graph = self._joined(list(inputs))
            with in_python():
                graph.session.emit(graph, _SHARED, path, {"target": options.pop("target", None), "name": options.pop("name", None), **options})

    def _joined(self, asked: list[str]) -> Any:
        from weft.compiler import session_with
        groups = [g.number for g in self._groups]
        names: dict[tuple[int, str], str] = {}
        update = self._apply_plan or self._plan
        for number, name in update.places:
            if name in asked:
                names[number, name] = name if number < 0 or len(groups) == 1 else f"{name}.{number}"
        for name in asked:
            if not any(n == name for _, n in names):
                raise error(f"inputs: the optimizer has no number {name}: it has {', '.join(dict.fromkeys(n for _, n in update.places))}")
        leaves = torch.utils._pytree.tree_leaves((self._args, self._kwargs))
        plans = [Plan(self._plan.kind, trace(self._whole, self._args, self._kwargs, self._dynamic_shapes), self._groups, self._options)]
        if self._apply_plan:
            plans.append(Plan(APPLY, without_forward(self._groups), self._groups, self._options))
        plans.append(Plan(EVAL, traced_evaluation(self), self._groups, self._options))
        state = {p.slots[k] for p in plans for k in p.written}
        now = dict(zip(update.places, self._scalars(update).tolist()))
        session, graphs = session_with(()), []
        for plan in plans:
            for c in plan.joint.conditions:
                if not c.proved:
                    raise error(f"the trace holds for {c.expression} only{c.where}, which a file does not check: give dynamic_shapes a range")
            values = {s: v / self.accumulate if s.kind == "sum" else v for s, v in zip(plan.slots, self._arguments(plan, leaves))}
            try:
                lowering = EntryLowering(plan, plan.kind, session, values, state, now, names if plan.places else {})
            except (Unsupported, _weft.Error) as e:
                raise error(str(e)) from None
            for symbol, size in plan.joint.symbols.items():
                if str(symbol) in lowering.symbols:
                    _weft.graph_rename_size(lowering.graph, str(symbol), size)
            graphs.append(lowering.graph)
        return session.join([p.kind for p in plans], graphs)


class Entry:
    """The arguments of calls: as many as the example's, with the same constants."""

    def __init__(self, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], names: list[str]):
        self.names, self.spec = names, plan.joint.out_spec
        self.given, self.example = torch.utils._pytree.tree_flatten((args, kwargs))
        self.conditions, self.where, self.symbols = plan.joint.conditions, plan.joint.where, plan.joint.symbols

    def leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        leaves, spec = torch.utils._pytree.tree_flatten((args, kwargs))
        if spec != self.example:
            raise TypeError(f"expected the arguments {', '.join(self.names)}, as in the example, got {len(args)}"
                            f"{' and ' + ', '.join(kwargs) if kwargs else ''}")
        for name, had, has in zip(self.names, self.given, leaves):
            if isinstance(had, torch.Tensor) != isinstance(has, torch.Tensor) or not isinstance(had, torch.Tensor) and had != has:
                raise ValueError(f"{name} is {_shown(has)}, and was {_shown(had)} in the example: that is part of the graph")
            if isinstance(had, torch.Tensor) and has.dtype != had.dtype:
                raise ValueError(f"{name} is of {has.dtype}, expected {had.dtype}, as in the example")
        if self.conditions:
            sizes = {s: leaves[k].shape[d] for s, (k, d) in self.where.items() if leaves[k].dim() > d}
            for c in self.conditions:
                if not c.holds(sizes):
                    relation = c.expression.xreplace({s: type(s)(n, integer=True) for s, n in self.symbols.items()})
                    found = ", ".join(f"{self.symbols[s]} = {n}" for s, n in sizes.items() if s in self.symbols)
                    raise SizeError(f"{found}: the step was traced for {relation}{c.where}",
                                    frozenset(self.symbols[s] for s, n in sizes.items() if n == 1 and s in self.symbols))
        return [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]


def _shown(value: Any) -> str:
    """A number or a text as it is, of other values the type."""
    return "a tensor" if isinstance(value, torch.Tensor) else repr(value) if isinstance(value, VALUES) else f"of type {type(value).__name__}"


class SizeError(ValueError):
    """Sizes of a call that a trace does not hold for. ones: names of those that are 1."""

    def __init__(self, text: str, ones: frozenset[str]):
        super().__init__(text)
        self.ones = ones


class Variant(NamedTuple):
    """A compiled graph, and the arguments of its calls."""
    plan: Plan
    compiled: Any
    entries: Entry


class Variants:
    """A graph for all sizes, and others for sizes that are 1, which are made when a call has these."""

    def __init__(self, first: Variant, make: Callable[[frozenset[str], tuple[Any, ...], dict[str, Any]], Variant]):
        self.first, self.make = first, make
        self.by: dict[frozenset[str], Variant] = {}

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Variant, list[Any]]:
        """The graph for the arguments of a call, and their leaves."""
        try:
            return self.first, self.first.entries.leaves(args, kwargs)
        except SizeError as e:
            if not e.ones:
                raise
            ones = e.ones
        if ones not in self.by:
            self.by[ones] = self.make(ones, args, kwargs)
        return self.by[ones], self.by[ones].entries.leaves(args, kwargs)


class Evaluation:
    """The module in evaluation mode, compiled."""

    def __init__(self, step: TrainStep):
        self.step = step
        own = step._args if step._loss is None else step._args[:-1]
        joint = traced_evaluation(step)
        self.names = names_of_inputs(Whole(step.module, None, True), own, step._kwargs)
        self.variants = Variants(self._made(joint, own, step._kwargs),
                                 lambda ones, args, kwargs: self._made(traced_evaluation(step, ones, args, kwargs), args, kwargs))

    def _made(self, joint: Joint, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Variant:
        plan = Plan(EVAL, joint, self.step._groups, self.step._options)
        return Variant(plan, compiled(plan), Entry(plan, args, kwargs, self.names))

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        of, leaves = self.variants.of(args, kwargs)
        values = self.step._arguments(of.plan, leaves)
        return torch.utils._pytree.tree_unflatten(of.compiled(values), of.entries.spec)


def traced_evaluation(step: TrainStep, ones: frozenset[str] = frozenset(), args: tuple[Any, ...] | None = None,
                      kwargs: dict[str, Any] | None = None) -> Joint:
    """The module in evaluation mode, by the example's inputs, or these."""
    own = args if args is not None else step._args if step._loss is None else step._args[:-1]
    modes = [(m, m.training) for m in step.module.modules()]
    shapes = step._dynamic_shapes
    if step._loss is not None and isinstance(shapes, (tuple, list)):
        shapes = [*shapes[:len(own)], *shapes[len(own) + 1:]]
    elif isinstance(shapes, dict):
        shapes = {k: v for k, v in shapes.items() if k != "label"}
    step.module.eval()
    try:
        joint = trace(Whole(step.module, None, evaluates=True, precision=step._precision), own,
                      step._kwargs if kwargs is None else kwargs, shapes, ones)
    finally:
        for m, training in modes:
            m.training = training
    if joint.buffers:
        raise error(f"the module writes {joint.roles[next(iter(joint.buffers))].name} in evaluation mode")
    return joint


def train_step(module: Any, loss: Callable[..., Any] | None, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *,
               dynamic_shapes: Any = None, clip_norm: float | None = None, clip_value: float | None = None, outputs: bool = False,
               accumulate: int = 1, precision: str | None = None, ema: float | None = None, sparse: Iterable[str] | bool | None = None,
               on_nan: str | None = None, loss_scale: Any = None, check: bool = True, rule: str | None = None, path: Any = None,
               group: Any = None, **options: Any) -> TrainStep:
    """Compiles a step of training, in this process: forward, loss, gradients, clipping, and the update of the optimizer.

    module: in the mode in which it trains. loss: a function of the module's output and the last input, or None where the module
    returns the loss, alone or first of several. optimizer: one of torch.optim (weft.train_step.__doc__ of docs/python.md lists them).
    args, kwargs: example inputs; the last of args is the loss's. dynamic_shapes: as for weft.compile, of all inputs; by name the
    last one is "label".

    step(*inputs) returns the loss; with outputs=True, the loss and the module's output. All numbers of optimizer.param_groups are read
    at each call, so that schedulers work. Parameters, buffers and the optimizer's state change in place. A call that fails changes
    nothing. Gradients are not kept: .grad stays as it is, and is not added.

    clip_norm, clip_value: as torch.nn.utils.clip_grad_norm_ and clip_grad_value_; with both, values first.
    accumulate: a call adds its gradients to sums; each accumulate-th call updates by their mean, and step.apply() does earlier.
    precision: "bf16" or "f16" computes the module and the loss as under torch.autocast("cpu", torch.bfloat16) or torch.float16; eval, too.
    loss_scale: a torch.amp.GradScaler, whose scale of the loss the step has: it divides gradients by it, skips updates whose gradients are
    not finite, and changes it as scaler.update() does. None: of "f16" a new one, step.scaler.
    on_nan: of a step whose loss or a gradient is not finite. "skip": it changes nothing, and step.skipped says so; "stop": it is an
    error, too. None: it updates, as PyTorch's does.
    ema: the decay of averages of the parameters, ema * average + (1 - ema) * parameter after each update; eval uses the averages.
    sparse: patterns of names of parameters, of which only those rows are updated that a step reads: SGD, Adagrad, SparseAdam. None: those
    of embeddings with sparse=True; False: none.
    check: compares loss and gradients of the example with those of backward() while tracing, and a step, on copies, with the optimizer's
    own.
    rule: the row of Weft's table for an optimizer whose class is not PyTorch's.
    group: the processes that train together, dist.group.WORLD, each with its part of a batch. Gradients are those of the mean over
    the samples of all ranks, which may have other numbers of samples (the first extent of the last input); rank 0's parameters and
    buffers are everybody's at the beginning. With accumulate, only updates communicate. The loss is this rank's. With on_nan and with a
    scale of the loss, a step is skipped on all ranks if something is not finite on one of them.
    path: also writes a shared object that trains without Python (step.save).
    """
    for name, value in options.items():
        if name in _LATER:
            if value != _LATER[name]:
                raise error(f"{name}={value!r} is not supported yet")
        else:
            raise TypeError(f"weft.train_step has no option {name}")
    for what, value in (("clip_norm", clip_norm), ("clip_value", clip_value)):
        if value is not None and not (isinstance(value, (int, float)) and value > 0 and math.isfinite(value)):
            raise error(f"{what}={value!r}: expected a number above 0")
    if not isinstance(accumulate, int) or isinstance(accumulate, bool) or accumulate < 1:
        raise error(f"accumulate={accumulate!r}: expected a number of calls, from 1 on")
    if precision is not None and precision not in PRECISIONS.values():
        raise error(f"precision={precision!r}: expected None or {', '.join(map(repr, PRECISIONS.values()))}")
    if ema is not None and not (isinstance(ema, (int, float)) and 0 <= ema < 1):
        raise error(f"ema={ema!r}: expected a decay from 0 to below 1")
    if on_nan not in (None, "skip", "stop"):
        raise error(f"on_nan={on_nan!r}: expected None, 'skip' or 'stop'")
    if loss_scale is not None and not isinstance(loss_scale, torch.amp.GradScaler):
        raise error(f"loss_scale={loss_scale!r}: expected a torch.amp.GradScaler")
    if loss_scale is not None and not loss_scale.is_enabled():
        raise error("loss_scale: the scaler is not enabled")
    if group is not None and not isinstance(group, getattr(torch.distributed, "ProcessGroup", ())):
        raise error(f"group={group!r}: expected a group of torch.distributed that this process is in, such as dist.group.WORLD")
    if sparse is True or isinstance(sparse, str):
        raise error(f"sparse={sparse!r}: expected a list of names of parameters, or False")
    named = [] if sparse is False else None if sparse is None else list(sparse)
    step = TrainStep(module, loss, optimizer, args, kwargs, Asked(dynamic_shapes, clip_norm, clip_value, outputs, accumulate, precision, ema,
                                                                  named, on_nan, loss_scale, check, rule, group))
    if path is not None:
        step.save(path)
    return step
