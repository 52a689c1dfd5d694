"""Communication of models by torch.distributed: groups of processes as providers for collectives.

`comm()` makes the provider that `torch.compile(module, backend="weft")` gives its models; for a model of your own:

    import weft.distributed
    model.comm = weft.distributed.comm()      # model: of weft.compile or weft.load
"""
from __future__ import annotations

import functools
import os
import socket
import uuid
import warnings
from typing import Any

import torch
import torch.distributed as dist

from weft import _weft

_TAG = 0x77656674  # of messages, apart from those of the program's own


def is_collective(name: str) -> bool:
    """Whether an operator communicates: "_c10d_functional.all_reduce"."""
    return name.startswith(("_c10d_functional.", "_c10d_functional_autograd."))


def _resolved(group: Any) -> dist.ProcessGroup:
    return torch.distributed.distributed_c10d._resolve_process_group(group) if isinstance(group, str) else group


def group_size(group: Any) -> int:
    """The number of ranks in a group, or in the group of that name."""
    return _resolved(group).size()


def sizes_of_groups() -> list[tuple[str, int]]:
    """All groups of this process with their numbers of ranks, in one order."""
    if not dist.is_available() or not dist.is_initialized():
        return []
    return sorted((g.group_name, g.size()) for g in dist.distributed_c10d._world.pg_map if isinstance(g, dist.ProcessGroup))


class _Exchanges:
    """Exchanges of bytes between the ranks of a group, by messages from each to each."""

    def __init__(self, group: dist.ProcessGroup):
        self.group = group
        self.name = group.group_name
        self.works: dict[int, list[tuple[int, Any, torch.Tensor]]] = {}
        self.last = 0

    def _error(self, rank: int, e: Exception) -> ConnectionError:
        what = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
        return ConnectionError(f"rank {rank} of group {self.name!r} is gone or too slow: {what}")

    def begin(self, give: list[memoryview | None], take: list[memoryview | None]) -> int:
        works = []
        for rank, (to, source) in enumerate(zip(give, take)):
            try:
                if source is not None:
                    t = torch.frombuffer(source, dtype=torch.uint8)
                    works.append((rank, self.group.recv([t], rank, _TAG), t))
                if to is not None:
                    t = torch.frombuffer(to, dtype=torch.uint8)
                    works.append((rank, self.group.send([t], rank, _TAG), t))
            except RuntimeError as e:
                raise self._error(rank, e) from None
        self.last += 1
        self.works[self.last] = works
        return self.last

    def wait(self, number: int) -> None:
        for rank, work, _ in self.works.pop(number):
            try:
                work.wait()
            except RuntimeError as e:
                raise self._error(rank, e) from None


def _timeout(group: dist.ProcessGroup) -> float:
    """The seconds that the group waits for a rank."""
    try:
        return group._get_backend(torch.device("cpu")).options._timeout.total_seconds()
    except (AttributeError, RuntimeError):  # of a backend without such an option
        return dist.distributed_c10d.default_pg_timeout.total_seconds()


def _machine() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            boot = f.read().strip()
        return f"{boot} {os.stat('/dev/shm').st_dev} {os.readlink('/proc/self/ns/ipc')}"
    except OSError:
        return f"{socket.gethostname()} {os.getpid()}"  # no other rank's


def _shared(group: dist.ProcessGroup) -> _weft.Comm | None:
    """Memory that the ranks share, if all are processes of one machine. All ranks call this at the same time."""
    ranks: list[Any] = [None] * group.size()
    dist.all_gather_object(ranks, (_machine(), f"/weft-{uuid.uuid4().hex}"), group=group)
    if len({machine for machine, _ in ranks}) > 1:
        return None
    made, why = None, ""
    try:
        made = _weft.Comm.local(ranks[0][1], group.rank(), group.size(), _timeout(group))
    except (ConnectionError, MemoryError, ValueError) as e:
        why = str(e)
    dist.all_gather_object(ranks, why, group=group)
    if failed := [w for w in ranks if w]:
        warnings.warn(f"weft: ranks of group {group.group_name!r} share no memory and send messages: {failed[0]}", stacklevel=2)
    return None if failed else made


def _comm(group: dist.ProcessGroup, how: str) -> _weft.Comm:
    if how == "auto" and group.size() > 1 and (made := _shared(group)):
        return made
    exchanges = _Exchanges(group)
    return _weft.Comm(group.rank(), group.size(), exchanges.begin, exchanges.wait)


def comm(how: str | None = None) -> _weft.Comm:
    """The provider of the groups of this process: for Model.comm. A group is found when a collective first names it. how:
    "auto", memory that its ranks share if they are processes of one machine, else messages of the group's own backend;
    "messages"; None: what the environment variable WEFT_COMM says, else "auto". All ranks give the same."""
    how = how or os.environ.get("WEFT_COMM") or "auto"
    if how not in ("auto", "messages"):
        raise ValueError(f"weft.distributed.comm: {how!r} is neither 'auto' nor 'messages'")
    world = dist.group.WORLD
    if world is None:
        raise ConnectionError("weft.distributed.comm: call torch.distributed.init_process_group first")
    exchanges = _Exchanges(world)
    return _weft.Comm(world.rank(), world.size(), exchanges.begin, exchanges.wait, lambda name: _comm(_resolved(name), how))


@functools.cache
def _of_world(world: dist.ProcessGroup) -> _weft.Comm:
    return comm()


def current() -> _weft.Comm:
    """The provider of the groups of this process, made once."""
    if not dist.is_initialized():
        raise ConnectionError("a model with collectives: call torch.distributed.init_process_group first")
    return _of_world(dist.group.WORLD)


def check_same(said: dict[str, Any], group: dist.ProcessGroup, where: str) -> None:
    """Raises a ValueError on all ranks of a group unless all say the same. All ranks call this at the same time."""
    ranks: list[Any] = [None] * group.size()
    dist.all_gather_object(ranks, said, group=group)
    for rank, theirs in enumerate(ranks[1:], 1):
        for name in [*ranks[0], *(n for n in theirs if n not in ranks[0])]:
            one, other = ranks[0].get(name), theirs.get(name)
            if one != other:
                show = lambda v: text if len(text := repr(v)) < 60 else "something else"
                raise ValueError(f"{where}: {name} is {show(one)} on rank 0 and {show(other)} on rank {rank}: all ranks of a group make "
                                 "the same step")


def from_rank_0(tensors: list[torch.Tensor], group: dist.ProcessGroup) -> None:
    """Gives all ranks of a group the values of its first rank, in place."""
    source = dist.get_global_rank(group, 0)
    with torch.no_grad():
        for t in tensors:
            dist.broadcast(t.data, source, group=group)
