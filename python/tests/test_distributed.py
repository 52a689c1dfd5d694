"""Collectives by torch.distributed: programs on two processes (gloo) give with backend="weft" what they give in eager mode, and
collectives stay in the compiled graphs; ranks that differ, or die, end each other with a sentence."""
import datetime
import os
import time

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
import torch.multiprocessing as mp
from torch import nn

WORLD = 2


def _main(rank, store, out, work, *more):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD, timeout=datetime.timedelta(seconds=20))
    try:
        result = globals()[work](rank, *more)
    except Exception as e:  # said by the test
        result = f"{type(e).__name__}: {e}"
    torch.save(result, f"{out}.{rank}")
    if dist.is_initialized():
        dist.destroy_process_group()


def on_ranks(folder, work, *more):
    """The results of work(rank, ...), a function of this file, in processes of their own; None of one that died."""
    out = str(folder / "result")
    context = mp.spawn(_main, (str(folder / "store"), out, work.__name__, *more), WORLD, join=False)
    for p in context.processes:
        p.join(120)
        assert not p.is_alive(), f"{work.__name__} does not end"
    return [torch.load(f"{out}.{r}", weights_only=False) if os.path.exists(f"{out}.{r}") else None for r in range(WORLD)]


# ---- programs ----

def _values(rank, *shape):
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape).sin() * (rank + 1) + 0.1 * rank


def functional(rank, compiled):
    """Every collective and its gradient."""
    world = dist.group.WORLD

    def f(x):
        gathered = fc.all_gather_single_autograd(x * 2, 0, world)
        scattered = fc.reduce_scatter_single_autograd(gathered.sin(), "sum", 0, world)
        exchanged = fc.all_to_all_single_autograd(x, [2, 2], [2, 2], world)
        reduced = fc.all_reduce(x.cos(), "sum", world)
        return (scattered * exchanged * reduced).sum()

    def g(x):
        y = x + 1
        dist.all_reduce(y, dist.ReduceOp.MAX)
        z = fc.all_gather_single(x, 1, world)
        low = fc.all_reduce(x.to(torch.bfloat16), "sum", world)
        return y, z, low, fc.broadcast(x, 1, world), fc.all_reduce_coalesced([x, y], "sum", world), fc.reduce_scatter_single(z, "sum", 1, world)
    x = _values(rank, 4, 6).requires_grad_()
    if compiled:
        f, g = torch.compile(f, backend="weft"), torch.compile(g, backend="weft")
    loss = f(x)
    loss.backward()
    return [loss.detach(), x.grad, *torch.utils._pytree.tree_leaves(g(x.detach()))]


def _mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))


def _trained(model, forward, rank, steps=3):
    """Losses of some steps, and the weights behind them."""
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    losses = []
    for k in range(steps):
        optimizer.zero_grad()
        loss = (forward(_values(rank, 4, 8) + k) - 1).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses + [p.detach().full_tensor() if hasattr(p, "full_tensor") else p.detach() for p in model.parameters()]


def data_parallel(rank, compiled):
    model = nn.parallel.DistributedDataParallel(_mlp())
    return _trained(model, torch.compile(model, backend="weft") if compiled else model, rank)


def tensor_parallel(rank, compiled):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    model = parallelize_module(_mlp(), init_device_mesh("cpu", (WORLD,)), {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return _trained(model, torch.compile(model, backend="weft") if compiled else model, 0)


PROGRAMS = (functional, data_parallel, tensor_parallel)


def all_programs(rank):
    from weft import dynamo
    found = {}
    for program in PROGRAMS:
        dynamo.statistics.reset()
        expected, got = program(rank, False), program(rank, True)
        far = [float((a - b).abs().max()) for a, b in zip(expected, got) if not torch.allclose(a, b, rtol=1e-5, atol=1e-6)]
        found[program.__name__] = (len(expected), len(got), far, dict(dynamo.statistics.refused), dynamo.statistics.eager_nodes, dynamo.statistics.compiled)
    return found


def test_programs(tmp_path):
    for result in on_ranks(tmp_path, all_programs):
        assert isinstance(result, dict), result
        for name, (n, m, far, refused, eager, compiled) in result.items():
            assert n == m and not far, f"{name}: {far}"
            assert not refused and not eager, f"{name}: {refused}"
            assert compiled, name


# ---- a file ----

class Summing(nn.Module):
    def forward(self, x):
        return fc.all_reduce(x * 2, "sum", dist.group.WORLD) + fc.all_gather_single(x, 0, dist.group.WORLD).sum()


def exported(rank, folder):
    import weft
    x = _values(rank, 3, 5)
    path = f"{folder}/summing{rank}.pt2"
    torch.export.save(torch.export.export(Summing(), (x,)), path)
    alone = weft.compile(path)
    try:
        alone(x)
        said = "no error"
    except ConnectionError as e:
        said = str(e)
    alone.comm = weft.distributed.comm()
    return said, float((alone(x) - Summing()(x)).abs().max())


def test_file(tmp_path):
    for result in on_ranks(tmp_path, exported, str(tmp_path)):
        assert isinstance(result, tuple), result
        said, far = result
        assert "this process is alone" in said
        assert far < 1e-6


# ---- failures ----

def differing(rank):
    f = torch.compile(lambda x: fc.all_reduce(x, "sum", dist.group.WORLD), backend="weft")
    return f(torch.ones(4 + rank))


def dying(rank):
    f = torch.compile(lambda x: fc.all_reduce(x, "sum", dist.group.WORLD), backend="weft")
    f(torch.ones(4))
    if rank:
        os._exit(1)
    time.sleep(0.5)
    return f(torch.ones(4))


def test_failures(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for result in on_ranks(tmp_path / "a", differing):
        assert str(result).startswith("ConnectionError") and "which expects" in result, result
    began = time.time()
    result, none = on_ranks(tmp_path / "b", dying)
    assert none is None
    assert str(result).startswith("ConnectionError") and "rank 1 of group '0' is gone" in result, result
    assert time.time() - began < 60
