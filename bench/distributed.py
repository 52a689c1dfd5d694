"""Ranks of this machine, one thread each: PYTHON bench/distributed.py [RANKS] [MIB...]; bench/distributed.py [RANKS] step

all_reduce, for each size: the least of some calls of torch.distributed.all_reduce (gloo), of a compiled all_reduce that shares memory,
and of one that sends gloo's messages, in milliseconds; the calls of the three alternate. step: a step of resnet18 with 8 images of
64 x 64 on each rank, by DistributedDataParallel (gloo, fused AdamW) in eager mode and by weft.train_step. The Python has torch and
weft, for steps torchvision.
"""
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
import torch.multiprocessing as mp


def timed(f, x):
    dist.barrier()
    began = time.perf_counter()
    f(x)
    return time.perf_counter() - began


def compiled(how):
    """A function of its own for each provider."""
    import weft
    trace = f"""graph @f(%x: f32[N]) where 1 <= N {{
  %y = _c10d_functional.all_reduce(%x, reduce_op="sum", group_name="{dist.group.WORLD.group_name}", group_size={dist.get_world_size()})
  return %y
}}
"""
    model = weft.compile(weft.graph(trace))
    model.comm = weft.distributed.comm(how)
    model.threads = 1
    return model


def main(rank, ranks, store, sizes):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    torch.set_num_threads(1)
    import weft.distributed
    ways = {"gloo": lambda x: dist.all_reduce(x), "shared": compiled("auto"), "messages": compiled("messages")}
    if not rank:
        print(f"{'MiB':>8} " + " ".join(f"{name:>9}" for name in ways))
    for size in sizes:
        x = torch.ones(int(size * (1 << 18)))
        out = torch.empty_like(x)
        best = dict.fromkeys(ways, 1e9)
        for _ in range(max(5, min(200, int(400 / size)))):
            for name, f in ways.items():
                best[name] = min(best[name], timed(f if name == "gloo" else lambda v: f(v, out=out), x))
            x.fill_(1)
        worst = torch.tensor(list(best.values()))
        dist.all_reduce(worst, dist.ReduceOp.MAX)
        if not rank:
            print(f"{size:>8} " + " ".join(f"{1e3 * float(t):9.3f}" for t in worst), flush=True)
    dist.destroy_process_group()


def steps(rank, ranks, store):
    """Alternates steps of both."""
    import torchvision
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    torch.set_num_threads(1)
    import weft
    loss = torch.nn.functional.cross_entropy
    x, label = torch.randn(8, 3, 64, 64), torch.randint(10, (8,))
    nets = [torchvision.models.resnet18(num_classes=10) for _ in range(2)]
    parallel = torch.nn.parallel.DistributedDataParallel(nets[0])
    optimizer = torch.optim.AdamW(parallel.parameters(), 1e-3, fused=True)

    def eager(x):
        optimizer.zero_grad()
        loss(parallel(x), label).backward()
        optimizer.step()
    compiled_step = weft.train_step(nets[1], loss, torch.optim.AdamW(nets[1].parameters(), 1e-3), (x, label), group=dist.group.WORLD, check=False)
    ways = {"DDP": eager, "weft": lambda x: compiled_step(x, label)}
    best = dict.fromkeys(ways, 1e9)
    for _ in range(15):
        for name, f in ways.items():
            best[name] = min(best[name], timed(f, x))
    worst = torch.tensor(list(best.values()))
    dist.all_reduce(worst, dist.ReduceOp.MAX)
    if not rank:
        print(" ".join(f"{name} {1e3 * float(t):.1f} ms" for name, t in zip(ways, worst)))
    dist.destroy_process_group()


if __name__ == "__main__":
    import tempfile
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    given = sys.argv[2:] or ["0.001", "1", "64"]
    with tempfile.TemporaryDirectory() as folder:
        if given == ["step"]:
            mp.spawn(steps, (count, f"{folder}/store"), count)
        else:
            mp.spawn(main, (count, f"{folder}/store", [float(a) for a in given]), count)
