"""Collectives by torch.distributed: programs on two processes (gloo) give with backend="weft" what they give in eager mode, and
collectives stay in the compiled graphs; ranks that differ, or die, end each other with a sentence."""
import datetime
import os
import time

import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("this PyTorch has no gloo", allow_module_level=True)
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
import torch.multiprocessing as mp
import weft

nn = torch.nn
pytestmark = pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there")
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


class Mlp(nn.Module):
    """Of a class of its own: Dynamo does not compile a Sequential within DDP."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.wide, self.narrow = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return self.narrow(nn.functional.gelu(self.wide(x)))


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
    model = nn.parallel.DistributedDataParallel(Mlp())
    return _trained(model, torch.compile(model, backend="weft") if compiled else model, rank)


def tensor_parallel(rank, compiled):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    model = parallelize_module(Mlp(), init_device_mesh("cpu", (WORLD,)), {"wide": ColwiseParallel(), "narrow": RowwiseParallel()})
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


# ---- weft.train_step ----

def _steps(rank, sizes, **options):
    """The parameters behind steps on parts of batches of these numbers of samples, and the same by one rank in eager mode."""
    group, twin = dist.group.WORLD, Mlp()
    model = Mlp()
    if rank:
        with torch.no_grad():
            model.wide.weight.mul_(2)  # rank 0's are taken
    step = weft.train_step(model, nn.functional.mse_loss, torch.optim.AdamW(model.parameters(), 0.01), (torch.zeros(4, 8), torch.zeros(4, 8)),
                           dynamic_shapes=({0: torch.export.Dim("B", min=1, max=64)},) * 2, group=group, **options)
    optimizer = torch.optim.AdamW(twin.parameters(), 0.01)
    every = options.get("accumulate", 1)
    for k, size in enumerate(sizes):
        x = _values(k, sum(size), 8)
        y = x.cos()
        first = sum(size[:rank])
        step(x[first:first + size[rank]], y[first:first + size[rank]])
        (nn.functional.mse_loss(twin(x), y) / every).backward()
        if (k + 1) % every == 0:
            if "clip_norm" in options:
                nn.utils.clip_grad_norm_(twin.parameters(), options["clip_norm"])
            optimizer.step()
            optimizer.zero_grad()
    return [float((a - b).abs().max()) for a, b in zip(model.parameters(), twin.parameters())]


def train_steps(rank):
    return (_steps(rank, [(4, 4), (5, 2), (1, 6)]), _steps(rank, [(3, 5)] * 2, clip_norm=0.1),
            _steps(rank, [(4, 4)] * 4, accumulate=2))


def test_train_step(tmp_path):
    for result in on_ranks(tmp_path, train_steps):
        assert isinstance(result, tuple), result
        for far in result:
            assert max(far) < 2e-6, result


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.norm = nn.Linear(8, 8), nn.BatchNorm1d(8)

    def forward(self, x):
        return self.norm(self.layer(x))


def _values_of(model):
    return [t.detach().clone() for t in (*model.parameters(), *model.buffers())]


def skipped_steps(rank, on_nan, accumulate):
    """Of three updates, rank 1 has an infinity in the second: whether each was skipped, what was said, and whether something changed."""
    model = Normed()
    step = weft.train_step(model, nn.functional.mse_loss, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), (torch.zeros(4, 8),) * 2,
                           group=dist.group.WORLD, on_nan=on_nan, accumulate=accumulate)
    seen = []
    for k in range(3):
        before, said = _values_of(model), ""
        for _ in range(accumulate):
            x = _values(k + rank, 4, 8)
            if k == 1 and rank == 1:
                x[2, 3] = torch.inf
            try:
                step(x, x.cos())
            except weft.CheckError as e:
                said = str(e)
        seen.append((step.skipped, said, [torch.equal(a, b) for a, b in zip(before, _values_of(model))]))
    return seen, [p.detach().clone() for p in model.parameters()]


@pytest.mark.parametrize("on_nan", ["skip", "stop"])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_step_is_skipped_on_all_ranks(tmp_path, on_nan, accumulate):
    results = on_ranks(tmp_path, skipped_steps, on_nan, accumulate)
    assert all(isinstance(r, tuple) for r in results), results
    for rank, (seen, _) in enumerate(results):
        assert [s for s, _, _ in seen] == [False, True, False]
        parameters = 4  # of which the first layer's bias has no gradient, in front of batch norm
        assert not any(seen[k][2][p] for k in (0, 2) for p in (0, 2, 3))
        assert all(seen[1][2][:parameters])
        if accumulate == 1:
            assert all(seen[1][2]), "statistics of batch norm"
        said = seen[1][1]
        assert (said == "") == (on_nan == "skip") and ("on one of the ranks" in said) == (on_nan == "stop"), said
    assert all(torch.equal(a, b) for a, b in zip(results[0][1], results[1][1]))


def scaled_steps(rank):
    """Steps in f16 with a scale that is too large at first on one rank: scales, whether steps were skipped, and parameters; in eager mode, too."""
    def run(compiled):
        torch.manual_seed(3)
        model = Mlp()
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24 if rank == 0 or not compiled else 2.0**20, growth_interval=2)
        scales, skipped = [], []
        if compiled:
            step = weft.train_step(model, nn.functional.mse_loss, optimizer, (torch.zeros(4, 8),) * 2, group=dist.group.WORLD, precision="f16",
                                   loss_scale=scaler)
        else:
            ddp = nn.parallel.DistributedDataParallel(model)
        for k in range(16):
            x = _values(k + rank, 4, 8)
            if compiled:
                step(x, x.cos())
                skipped.append(step.skipped)
            else:
                before = scaler.get_scale()
                with torch.autocast("cpu", torch.float16):
                    loss = nn.functional.mse_loss(ddp(x), x.cos())
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                skipped.append(scaler.get_scale() < before)
            scales.append(scaler.get_scale())
        return scales, skipped, [p.detach().clone() for p in model.parameters()]
    return run(True), run(False)


def test_scales_of_all_ranks_are_one(tmp_path):
    results = on_ranks(tmp_path, scaled_steps)
    assert all(isinstance(r, tuple) for r in results), results
    (scales, skipped, parameters), (scales_eager, skipped_eager, parameters_eager) = results[0]
    assert (scales, skipped) == results[1][0][:2] and all(torch.equal(a, b) for a, b in zip(parameters, results[1][0][2]))
    assert any(skipped) and not all(skipped)
    assert (scales, skipped) == (scales_eager, skipped_eager)
    for a, b in zip(parameters, parameters_eager):
        torch.testing.assert_close(a, b, rtol=0, atol=2e-3)


def different_steps(rank, what):
    """What is said where ranks differ."""
    model = Mlp()
    optimizer = torch.optim.AdamW(model.parameters(), 0.01 * (1 + rank * (what == "lr")))
    options = {"clip_norm": 1.0} if what == "clip_norm" and rank else {}
    if what == "state" and rank == 0:
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
    weft.train_step(model, nn.functional.mse_loss, optimizer, (torch.zeros(4, 8),) * 2, group=dist.group.WORLD, **options)
    return "made"


@pytest.mark.parametrize("what, named", [("lr", "'lr' of group 0 of the optimizer is 0.01 on rank 0 and 0.02 on rank 1"),
                                         ("clip_norm", "clip_norm is None on rank 0 and 1.0 on rank 1"), ("state", "the optimizer's state is")])
def test_ranks_make_one_step(tmp_path, what, named):
    for said in on_ranks(tmp_path, different_steps, what):
        assert named in said, said


def other_dtypes(rank):
    x = torch.ones(4, dtype=torch.int32 if rank else torch.float32)
    try:
        return torch.compile(lambda x: fc.all_reduce(x, "sum", dist.group.WORLD), backend="weft")(x)
    except ConnectionError as e:
        return str(e)


def test_other_dtypes(tmp_path):
    for said in on_ranks(tmp_path, other_dtypes):
        assert isinstance(said, str) and "other dtypes" in said, said


# ---- a file ----

class Summing(nn.Module):
    def forward(self, x):
        return fc.all_reduce(x * 2, "sum", dist.group.WORLD) + fc.all_gather_single(x, 0, dist.group.WORLD).sum()


def exported(rank, folder):
    import weft.distributed
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
    y = alone(x)
    alone.comm = weft.distributed.comm("messages")
    same = [torch.equal(y, alone(x))]
    for backend in ("c", "llvm"):
        file = weft.compile(path, path=f"{folder}/{backend}{rank}.so", backend=backend)
        file.comm = weft.distributed.comm()
        same.append(torch.equal(y, file(x)))
    return said, float((y - Summing()(x)).abs().max()), same


def test_file(tmp_path):
    for result in on_ranks(tmp_path, exported, str(tmp_path)):
        assert isinstance(result, tuple), result
        said, far, same = result
        assert "this process is alone" in said
        assert far < 1e-6
        assert all(same), same  # the bits of providers and of back ends


# ---- failures ----

def differing(rank):
    f = torch.compile(lambda x: fc.all_reduce(x, "sum", dist.group.WORLD), backend="weft")
    return f(torch.ones(4 + rank))


def dying(rank, how):
    os.environ["WEFT_COMM"] = how
    f = torch.compile(lambda x: fc.all_reduce(x, "sum", dist.group.WORLD), backend="weft")
    f(torch.ones(4))
    if rank:
        os._exit(1)
    time.sleep(0.5)
    return f(torch.ones(4))


def test_failures(tmp_path):
    for name in ("differing", "auto", "messages"):
        (tmp_path / name).mkdir()
    for result in on_ranks(tmp_path / "differing", differing):
        assert str(result).startswith("ConnectionError") and "which expects" in result, result
    for how, said in (("auto", "has ended, and rank 0 waits for it"), ("messages", "rank 1 of group '0' is gone")):
        result, none = on_ranks(tmp_path / how, dying, how)
        assert none is None
        assert str(result).startswith("ConnectionError") and said in result, result
