"""Comparisons of a step of training with PyTorch's, before the first one counts."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from weft.joint import Joint, Role, error
from weft.training_rows import as_sparse, rows_of

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
    rows = {id(u.parameter) for g in step._groups for u in g.parameters if u.rows}
    made = [g if g is None or g.layout == torch.strided else g.coalesce() if id(p) in rows else g.to_dense() for p, g in zip(parameters, made)]
    return loss.detach(), {id(p): g for p, g in zip(parameters, made)}


def _alike(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Two gradients as tensors of one form: of sparse ones the rows of both."""
    if a.layout != b.layout:
        return (t.to_dense() if t.layout != torch.strided else t for t in (a, b))
    if a.layout == torch.strided:
        return a, b
    zero = torch.sparse_coo_tensor(b.indices(), torch.zeros_like(b.values()), b.shape, check_invariants=False)
    a, b = (a + zero).coalesce(), (b + torch.sparse_coo_tensor(a.indices(), torch.zeros_like(a.values()), a.shape, check_invariants=False)).coalesce()
    return a.values(), b.values()


def _largest(gradients: Any) -> float:
    values = (g if g.layout == torch.strided else g.values() for g in gradients if g is not None)
    return max(map(_most, values), default=0.0)


def _far(a: torch.Tensor, b: torch.Tensor, at_least: float = 0.0) -> float:
    """The distance of a and b, of the largest element."""
    size = max(_most(a), _most(b), at_least)
    return _most(a - b) / size if size else 0.0


def _most(a: torch.Tensor) -> float:
    """The largest magnitude, in one reading."""
    return float(torch.linalg.vector_norm(a, float("inf"))) if a.numel() else 0.0


def _far_gradients(step: Any, a: torch.Tensor, b: torch.Tensor, at_least: float) -> bool:
    if step._precision is None:
        return _far(a, b, at_least) > _NEAR
    # A gradient that is 0 but for rounding, of a bias in front of batch norm, has a norm far below that of others.
    size = max(float(a.double().norm()), float(b.double().norm()), 1e4 * at_least)
    return size > 0 and float((a.double() - b.double()).norm()) > _NEAR_LOW_NORM * size


def _near(step: Any) -> float:
    return _NEAR if step._precision is None else _NEAR_LOW


def _traced(step: Any, joint: Joint) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:
    """The loss and gradients by parameter of the traced graph, as PyTorch computes them."""
    gm, leaves = joint.gm, torch.utils._pytree.tree_leaves((step._args, step._kwargs))
    of_rows = {u.names[0]: rows_of(joint, u.names, u.names) for g in step._groups for u in g.parameters if u.rows}
    skipped = {id(step._tensors[n]) for n in of_rows}
    names = [n for n in joint.gradients if id(step._tensors[n]) not in skipped]
    asked = [joint.outputs[0], *(joint.gradients[n] for n in names)]
    asked += [n for pieces in of_rows.values() for p in pieces for n in (p.index, p.value)]
    end = gm.graph.output_node()
    kept = end.args
    end.args = (asked,)
    try:
        values = [_value(step, joint.roles[n], leaves) for n in gm.graph.find_nodes(op="placeholder")]
        with _as_before(step), torch.no_grad():
            torch.manual_seed(0)
            loss, *made = _Needed(gm).run(*values, enable_io_processing=False)
    finally:
        end.args = kept
    sums: dict[int, torch.Tensor] = {}
    for name, g in zip(names, made):
        key = id(step._tensors[name])
        sums[key] = sums[key] + g if key in sums else g
    rest = iter(made[len(names):])
    for name, pieces in of_rows.items():
        p = step._tensors[name]
        sums[id(p)] = as_sparse([(next(rest), next(rest)) for _ in pieces], [x.padding for x in pieces], p)
    return loss, sums


class _Needed(torch.fx.Interpreter):
    """Runs what results depend on."""

    def __init__(self, gm: torch.fx.GraphModule):
        super().__init__(gm)
        self.needed: set[Any] = set()
        left = [gm.graph.output_node()]
        while left:
            n = left.pop()
            if n not in self.needed:
                self.needed.add(n)
                left += n.all_input_nodes

    def run_node(self, n: Any) -> Any:
        return super().run_node(n) if n in self.needed or n.op == "placeholder" else None


def compare_gradients(step: Any, joint: Joint) -> tuple[torch.Tensor, dict[int, torch.Tensor | None]] | None:
    """Compares the traced graph's loss and gradients, as PyTorch computes them, with those of backward(). Returns these; None: the loss is not
    finite, or rounding alone, and then gradients are, too."""
    loss, eager = _eager(step, step._args, step._kwargs)
    made, sums = _traced(step, joint)
    if not torch.isfinite(loss) or max(_most(loss), _most(made)) < (100 * torch.finfo(loss.dtype).eps) ** 2:
        return None
    if _far(made, loss) > _near(step):
        raise error(f"the loss of the example is {float(loss):.6g} in eager mode and {float(made):.6g} as traced: what the module or the "
                    "loss does beside operators on tensors is not in the trace")
    largest = _largest(eager.values())
    for name, p in step._tensors.items():
        if id(p) not in eager:
            continue
        a, b = eager[id(p)], sums.get(id(p))
        if a is None and b is None:
            continue
        a, b = _alike(torch.zeros_like(p) if a is None else a, torch.zeros_like(p) if b is None else b)
        if torch.isfinite(a).all() and _far_gradients(step, a, b, 1e-5 * largest):
            raise error(f"the gradient of {name} is another one in the trace than that of backward(): a hook, or code that autograd does not "
                        "see, changes it")
    return loss, eager


def _value(step: Any, role: Role, leaves: list[Any]) -> Any:
    value = leaves[role.index] if role.kind == "input" else step._tensors[role.name]
    return value.detach() if isinstance(value, torch.Tensor) else value


def compare_step(step: Any, loss: torch.Tensor, gradients: dict[int, torch.Tensor | None]) -> None:
    """Compares a step on copies with eager mode's, of which loss and gradients are known."""
    if step._compiled._more and None in step._compiled._more:
        return  # it draws random numbers, which are others
    leaves = step._entries.leaves(step._args, step._kwargs)
    if step._options.sums:
        made, new = _on_copies(step, leaves)
    else:
        copies = _copied(step._plan, step._arguments(step._plan, leaves))
        new = dict(zip(step._plan.slots, copies))
        made = step._compiled(copies)[0]
    if step._rule.torch == "":
        return
    if _far(made, loss) > _near(step):
        raise error(f"the loss of a step is {float(made):.6g}, and {float(loss):.6g} in eager mode")
    if step._group is not None:
        return  # gradients are those of all ranks, which eager mode does not know here
    if step._precision is not None:
        return  # updates of some rules are signs of gradients, and these are rounded
    stepped = _stepped(step, gradients)
    largest = _largest(g for _, _, g in stepped.values())
    for name, (old, want, gradient) in stepped.items():
        got = new[("param", name)]
        if gradient.layout != torch.strided:
            rows = gradient.indices()[0]
            got, old, want, gradient = got[rows], old[rows], want[rows], gradient.values()
        else:
            got = _some(step, got)
        if not gradient.numel():
            continue
        # Where a gradient is noise, so is the update of some rules.
        large = gradient.abs() >= max(1e-2 * float(gradient.abs().max()), 1e-5 * largest)
        change = (want - old).abs().max()
        if not torch.isfinite(want).all() or not float(change):
            continue
        apart = ((got - want).abs() > 0.05 * change + 4 * torch.finfo(want.dtype).eps * want.abs()) & large
        if int(apart.sum()) > 0.02 * int(large.sum()):
            raise error(f"a step changes {name} in another way than {type(step.optimizer).__name__}.step()")


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


# Of larger tensors a step is compared at as many elements.
_SOME = 1 << 18


def _some(step: Any, t: torch.Tensor) -> torch.Tensor:
    """Elements of a tensor of PyTorch's: all, or every k-th, of which updates by element are the same. Of Muon, whose are not, all."""
    if step._rule.torch == "Muon" or t.layout != torch.strided or t.numel() <= _SOME:
        return t
    return t.reshape(-1)[::t.numel() // _SOME]


def _stepped(step: Any, gradients: dict[int, torch.Tensor | None]) -> dict[str, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """By name of an updated parameter: some of its elements, these after a step of PyTorch's optimizer, and their gradients."""
    updated = {id(u.parameter): u for g in step._groups for u in g.parameters}
    given = {}
    for key in updated:
        g = gradients.get(key)
        if g is not None and not (step._rule.lazy and g.layout == torch.strided):  # which rows that are 0 were read
            given[key] = g.detach().clone() if step.clip_norm is not None or step.clip_value is not None else g.detach()
    with torch.no_grad():
        _clip(step, list(given.values()))
    copies: dict[int, torch.nn.Parameter] = {}
    other = object.__new__(type(step.optimizer))
    other.__dict__.update(step.optimizer.__dict__)
    other.param_groups, other.state = [], type(step.optimizer.state)(dict)
    for g in step.optimizer.param_groups:
        made = []
        for p in g["params"]:
            key, gradient = id(p), given.get(id(p))
            whole = gradient is None or gradient.layout != torch.strided
            some = (lambda t: t) if whole else lambda t: _some(step, t)
            copies[key] = torch.nn.Parameter(some(p.detach()).clone(), p.requires_grad)
            copies[key].grad = None if gradient is None else some(gradient).clone()
            made.append(copies[key])
            if p in step.optimizer.state:
                other.state[copies[key]] = {k: some(v).clone() if isinstance(v, torch.Tensor) else v for k, v in step.optimizer.state[p].items()}
        other.param_groups.append({**g, "params": made})
    if not step.optimizer.defaults:
        return {}
    with torch.no_grad():
        type(step.optimizer).step(other)
    return {u.names[0]: (_some(step, u.parameter.detach()) if given[key].layout == torch.strided else u.parameter.detach(), copies[key].detach(),
                         copies[key].grad) for key, u in updated.items() if key in given}


def _clip(step: Any, gradients: list[torch.Tensor]) -> None:
    """As clip_grad_value_ and clip_grad_norm_, which know no sparse gradients."""
    values = [g if g.layout == torch.strided else g.coalesce().values() for g in gradients]
    for v in values if step.clip_value is not None else ():
        v.clamp_(-step.clip_value, step.clip_value)
    if step.clip_norm is not None and values:
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(v) for v in values]))
        for v in values:
            v.mul_((step.clip_norm / (norm + 1e-6)).clamp(max=1.0))
