"""Comparisons of a step of training with PyTorch's, before the first one counts."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from weft.joint import Joint, Role, error

# How far results may be apart, of their largest element: what differs by order of summation is far below, what tracing loses is above.
_NEAR = 1e-2
# In bf16, where each operator rounds: of the loss, and of the norm of a gradient.
_NEAR_LOW, _NEAR_LOW_NORM = 5e-2, 0.3


@contextlib.contextmanager
def _as_before(step: Any) -> Iterator[None]:
    """Buffers and the state of random numbers are afterwards what they were."""
    kept = [(t, t.clone()) for t in {id(t): t for t in step._tensors.values() if not isinstance(t, torch.nn.Parameter)}.values()]
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        try:
            yield
        finally:
            with torch.no_grad():
                for t, value in kept:
                    t.copy_(value)


def _eager(step: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[torch.Tensor, dict[int, torch.Tensor | None]]:
    """The loss, and gradients by parameter."""
    parameters = [p for p in dict.fromkeys(step._tensors.values()) if isinstance(p, torch.nn.Parameter) and p.requires_grad]
    with _as_before(step):
        torch.manual_seed(0)
        loss = step._whole(*args, **kwargs)[0]
        made = torch.autograd.grad(loss, parameters, allow_unused=True)
    for p, g in zip(parameters, made):
        if g is not None and g.layout != torch.strided:
            name = next(n for n, t in step._tensors.items() if t is p)
            raise error(f"the gradient of {name} is of layout {g.layout}, which a step cannot have yet: sparse=False")
    return loss.detach(), {id(p): g for p, g in zip(parameters, made)}


def _far(a: torch.Tensor, b: torch.Tensor, at_least: float = 0.0) -> float:
    """The distance of a and b, of the largest element."""
    size = max(float(a.abs().max()), float(b.abs().max()), at_least) if a.numel() else 0
    if not size:
        return 0.0
    return float((a.double() - b.double()).abs().max()) / size


def _far_gradients(step: Any, a: torch.Tensor, b: torch.Tensor, at_least: float) -> bool:
    if step._precision is None:
        return _far(a, b, at_least) > _NEAR
    # A gradient that is 0 but for rounding, of a bias in front of batch norm, has a norm far below that of others.
    size = max(float(a.double().norm()), float(b.double().norm()), 1e4 * at_least)
    return size > 0 and float((a.double() - b.double()).norm()) > _NEAR_LOW_NORM * size


def _near(step: Any) -> float:
    return _NEAR if step._precision is None else _NEAR_LOW


def compare_gradients(step: Any, joint: Joint) -> None:
    """Compares the traced graph's loss and gradients, as PyTorch computes them, with those of backward()."""
    gm, args, kwargs = joint.gm, step._args, step._kwargs
    leaves = torch.utils._pytree.tree_leaves((args, kwargs))
    loss, eager = _eager(step, args, kwargs)
    end = gm.graph.output_node()
    kept = end.args
    end.args = ([joint.outputs[0], *joint.gradients.values()],)
    try:
        values = [_value(step, joint.roles[n], leaves) for n in gm.graph.find_nodes(op="placeholder")]
        with _as_before(step), torch.no_grad():
            torch.manual_seed(0)
            made = torch.fx.Interpreter(gm).run(*values, enable_io_processing=False)
    finally:
        end.args = kept
    sums: dict[int, torch.Tensor] = {}
    for name, g in zip(joint.gradients, made[1:]):
        key = id(step._tensors[name])
        sums[key] = sums[key] + g if key in sums else g
    if not torch.isfinite(loss):
        return
    if _far(made[0], loss) > _near(step):
        raise error(f"the loss of the example is {float(loss):.6g} in eager mode and {float(made[0]):.6g} as traced: what the module or the "
                    "loss does beside operators on tensors is not in the trace")
    largest = max((float(g.abs().max()) for g in eager.values() if g is not None and g.numel()), default=0.0)
    for name, p in step._tensors.items():
        if id(p) not in eager:
            continue
        a, b = eager[id(p)], sums.get(id(p))
        a = torch.zeros_like(p) if a is None else a
        b = torch.zeros_like(p) if b is None else b
        if torch.isfinite(a).all() and _far_gradients(step, a, b, 1e-5 * largest):
            raise error(f"the gradient of {name} is another one in the trace than that of backward(): a hook, or code that autograd does not "
                        "see, changes it")


def _value(step: Any, role: Role, leaves: list[Any]) -> Any:
    value = leaves[role.index] if role.kind == "input" else step._tensors[role.name]
    return value.detach() if isinstance(value, torch.Tensor) else value


def compare_step(step: Any, leaves: list[Any], values: list[Any]) -> None:
    """Compares the first step, on copies, with eager mode's."""
    if step._compiled._more and None in step._compiled._more:
        return  # it draws random numbers, which are others
    if step._options.sums:
        made, new = _on_copies(step, leaves)
    else:
        copies = _copied(step._plan, values)
        new = dict(zip(step._plan.slots, copies))
        made = step._compiled(copies)[0]
    args, kwargs = torch.utils._pytree.tree_unflatten(leaves, step._entries.example)
    loss, gradients = _eager(step, args, kwargs)
    if not torch.isfinite(loss) or step._rule.torch == "":
        return
    if _far(made, loss) > _near(step):
        raise error(f"the loss of the first step is {float(made):.6g}, and {float(loss):.6g} in eager mode")
    if step._group is not None:
        return  # gradients are those of all ranks, which eager mode does not know here
    if step._precision is not None:
        return  # updates of some rules are signs of gradients, and these are rounded
    stepped = _stepped(step, gradients)
    largest = max((float(g.abs().max()) for _, _, g in stepped.values() if g.numel()), default=0.0)
    for name, (old, want, gradient) in stepped.items():
        if not gradient.numel():
            continue
        got = new[("param", name)]
        # Where a gradient is noise, so is the update of some rules.
        large = gradient.abs() >= max(1e-2 * float(gradient.abs().max()), 1e-5 * largest)
        change = (want - old).abs().max()
        if not torch.isfinite(want).all() or not float(change):
            continue
        apart = ((got - want).abs() > 0.05 * change + 4 * torch.finfo(want.dtype).eps * want.abs()) & large
        if int(apart.sum()) > 0.02 * int(large.sum()):
            raise error(f"the first step changes {name} in another way than {type(step.optimizer).__name__}.step()")


def _copied(plan: Any, values: list[Any]) -> list[Any]:
    return [v.clone() if k in plan.written else v for k, v in enumerate(values)]


def _on_copies(step: Any, leaves: list[Any]) -> tuple[Any, dict[Any, Any]]:
    """Makes a call that accumulates and an update. Returns the loss, and memory by slot."""
    first, plan = step._plan, step._apply_plan
    copies = _copied(first, step._arguments(first, leaves))
    sums = dict(zip(first.slots, copies))
    made = step._compiled(copies)[0]
    copies = [sums[slot] if slot.kind in ("sum", "count") else v
              for slot, v in zip(plan.slots, _copied(plan, step._arguments(plan, [])))]
    step._apply_compiled(list(copies))  # which empties the list
    return made, dict(zip(plan.slots, copies))


def _stepped(step: Any, gradients: dict[int, torch.Tensor | None]) -> dict[str, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """By name of an updated parameter: its value, its value after a step of PyTorch's optimizer, its gradient."""
    copies: dict[int, torch.nn.Parameter] = {}
    groups = []
    for g in step.optimizer.param_groups:
        made = [copies.setdefault(id(p), torch.nn.Parameter(p.detach().clone(), p.requires_grad)) for p in g["params"]]
        groups.append({**g, "params": made})
    known = {k for k in step.optimizer.defaults}
    other = object.__new__(type(step.optimizer))
    other.__dict__.update(step.optimizer.__dict__)
    other.param_groups = groups
    other.state = type(step.optimizer.state)(dict)
    for p, state in step.optimizer.state.items():
        if id(p) in copies:
            other.state[copies[id(p)]] = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in state.items()}
    if not known:
        return {}
    updated = {id(u.parameter): u for g in step._groups for u in g.parameters}
    for key, p in copies.items():
        g = gradients.get(key)
        p.grad = None if key not in updated or g is None else g.detach().clone()
    trained = [p for p in copies.values() if p.grad is not None]
    if step.clip_value is not None:
        torch.nn.utils.clip_grad_value_(trained, step.clip_value)
    if step.clip_norm is not None:
        torch.nn.utils.clip_grad_norm_(trained, step.clip_norm)
    with torch.no_grad():
        type(step.optimizer).step(other)
    return {u.names[0]: (u.parameter.detach(), copies[key].detach(), copies[key].grad) for key, u in updated.items() if copies[key].grad is not None}
