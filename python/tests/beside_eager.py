"""A module compiled by the back end, beside eager mode."""
import copy

import torch
from weft import dynamo

nn = torch.nn


def both(module, *inputs, dynamic=None, fullgraph=True, train=True, others=()):
    """Compares results, gradients and buffers."""
    twin = copy.deepcopy(module)
    fast = torch.compile(twin, backend=dynamo.backend, dynamic=dynamic, fullgraph=fullgraph)
    for args in (inputs, *others):
        want, got = module(*args), fast(*args)
        torch.testing.assert_close(got, want)
        if train:
            sum(t.sum() for t in torch.utils._pytree.tree_leaves(want) if t.requires_grad).backward()
            sum(t.sum() for t in torch.utils._pytree.tree_leaves(got) if t.requires_grad).backward()
            for (name, p), q in zip(module.named_parameters(), twin.parameters()):
                torch.testing.assert_close(q.grad, p.grad, rtol=1e-3, atol=1e-4, msg=lambda m: f"{name}: {m}")
    for p, q in zip(module.buffers(), twin.buffers()):
        torch.testing.assert_close(q, p)
    assert not dynamo.statistics.eager_nodes
    return fast


def mlp():
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3))
