"""Looking at models: check, bench, show, explain."""
from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft import _weft
from weft.graph import Graph, graph
from weft.model import Model


@dataclass
class Check:
    """What weft.check found: the largest difference, and where."""
    worst: float
    output: int
    model: Model = field(repr=False)


def check(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, rtol: float = 1e-4, atol: float = 1e-5, **options: Any) -> Check:
    """Compiles a module and compares its results with those of eager mode on the example inputs. Raises
    AssertionError where they differ; NaN equals NaN. options are those of weft.compile."""
    import torch
    from weft.compiler import compile
    model = compile(module, args, kwargs, **options)
    with torch.no_grad():
        want = torch.utils._pytree.tree_leaves(module(*args, **(kwargs or {})))
    tensors = [t for t in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    got = model(*tensors)
    got = got if isinstance(got, tuple) else (got,)
    worst, at = 0.0, 0
    for k, (a, b) in enumerate(zip(got, want)):
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True, msg=lambda text, k=k: f"output {model.outputs[k].name}: {text}")
        differences = (a.double() - b.double()).abs().nan_to_num(0) if a.numel() and not a.is_complex() else torch.zeros(1)
        difference = differences.max().item()
        if difference > worst:
            worst, at = difference, k
    return Check(worst, at, model)


@dataclass
class Row:
    """Times of one function in seconds: the least, and the median of the runs."""
    name: str
    threads: int
    least: float
    median: float
    runs: int


class Table(list):
    """The rows of weft.bench. The text compares with the first function, at each number of threads."""

    def __str__(self) -> str:
        lines = [f"{'':24} {'threads':>7} {'least':>12} {'median':>12} {'':>8}"]
        first: dict[int, float] = {}
        for r in self:
            base = first.setdefault(r.threads, r.least)
            lines.append(f"{r.name[:24]:24} {r.threads:7} {_time(r.least):>12} {_time(r.median):>12} {r.least / base:7.2f}x")
        return "\n".join(lines)


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def bench(functions: dict[str, Callable[..., Any]] | Callable[..., Any], *args: Any, threads: Sequence[int] = (1,), seconds: float = 0.5) -> Table:
    """Times functions on the same arguments, in alternating rounds, so that what else the machine does hits all
    of them. A Model runs with the given threads; PyTorch gets the same number while it is measured."""
    import sys
    functions = functions if isinstance(functions, dict) else {getattr(functions, "name", "function"): functions}
    torch = sys.modules.get("torch")
    table = Table()
    for n in threads:
        before = torch.get_num_threads() if torch else 0
        if torch:
            torch.set_num_threads(n)
        kept = [(f, f.threads) for f in functions.values() if isinstance(f, Model)]
        for f, _ in kept:
            f.threads = n
        try:
            times = _rounds(functions, args, seconds)
        finally:
            if torch:
                torch.set_num_threads(before)
            for f, was in kept:
                f.threads = was
        for name, all in times.items():
            table.append(Row(name, n, min(all), sorted(all)[len(all) // 2], len(all)))
    return table


def _rounds(functions: dict[str, Callable[..., Any]], args: tuple[Any, ...], seconds: float) -> dict[str, list[float]]:
    calls: dict[str, int] = {}
    for name, f in functions.items():  # a measurement takes about a millisecond
        f(*args)
        start = time.perf_counter()
        f(*args)
        calls[name] = max(1, int(1e-3 / max(time.perf_counter() - start, 1e-9)))
    times: dict[str, list[float]] = {name: [] for name in functions}
    end = time.perf_counter() + seconds * len(functions)
    while time.perf_counter() < end or not all(times.values()):
        for name, f in functions.items():
            n = calls[name]
            start = time.perf_counter()
            for _ in range(n):
                f(*args)
            times[name].append((time.perf_counter() - start) / n)
    return times


@dataclass
class Kernel:
    """A kernel call in a profile: seconds of all runs together."""
    model: str
    name: str
    algorithm: str
    line: str | None
    flops: float
    bytes: float
    runs: int
    seconds: float


class profile:
    """Measures the kernels of all compiled models that run inside of a with statement, those of torch.compile
    included, as torch.profiler does with its schedule: step() ends a step; of the steps, the first `wait` are not
    measured, the next `warmup` are measured and forgotten, the next `active` are kept. active=None: all that follow.

        with weft.profile(wait=1, warmup=1, active=3) as p:
            for x in data:
                model(x)
                p.step()
        print(p)
    """

    def __init__(self, *, wait: int = 0, warmup: int = 0, active: int | None = None):
        self.wait, self.warmup, self.active = wait, warmup, active
        self.kernels: list[Kernel] = []
        self._steps = 0
        self._running = False

    def __enter__(self) -> profile:
        self._turn()
        return self

    def __exit__(self, *args: Any) -> None:
        self._stop(self._steps >= self.wait + self.warmup)

    def step(self) -> None:
        """Ends a step."""
        self._steps += 1
        self._turn()

    def _turn(self) -> None:
        first = self.wait + self.warmup
        done = self.active is not None and self._steps >= first + self.active
        if self._running and (done or self._steps == first):
            self._stop(done)
        if not self._running and not done and self._steps >= self.wait:
            _weft.profile_begin()
            self._running = True

    def _stop(self, keep: bool) -> None:
        if not self._running:
            return
        self._running = False
        rows = _weft.profile_end()
        for function, runs, kernels in rows if keep else ():
            model = getattr(function, "name", "model")
            self.kernels += [Kernel(model, name, algorithm, line, flops, size, runs, seconds) for name, algorithm, flops, size, line, seconds in kernels]

    def __str__(self) -> str:
        total = sum(k.seconds for k in self.kernels) or 1.0
        lines = [f"{'model':16} {'kernel':28} {'runs':>6} {'per run':>10} {'share':>6}  line"]
        for k in sorted(self.kernels, key=lambda k: -k.seconds):
            lines.append(f"{k.model[:16]:16} {k.name[:28]:28} {k.runs:6} {_time(k.seconds / max(k.runs, 1)):>10} {k.seconds / total:6.1%}  {k.line or ''}")
        return "\n".join(lines)


def show(model: Any, *args: Any, after: str | None = None, **named: Any) -> Graph:
    """The graph of a model, as a drawing in notebooks where graphviz is there; print() shows its text. after: the
    name of a pass of the compiler."""
    g = graph(model, *args, **named)
    if after is None:
        return g
    return _After(g.raw, after)


class _After(Graph):
    """A graph, shown as it is after a pass."""

    def __init__(self, raw: Any, after: str):
        super().__init__(raw)
        self._after = after

    def text(self, after: str | None = None) -> str:
        return super().text(after or self._after)

    def __str__(self) -> str:
        return self.text()

    def _repr_svg_(self) -> str | None:
        import shutil
        return self.svg(self._after) if shutil.which("dot") else None


@dataclass
class Explanation:
    """What torch.compile(backend="weft") does with a call."""
    graphs: int
    compiled: int
    nodes: int
    eager: dict[str, int]
    reasons: list[str]
    breaks: list[str] = field(default_factory=list)  # why Dynamo ended graphs: Python runs what is there

    def __str__(self) -> str:
        lines = [f"{self.graphs} graphs with {self.nodes} operators became {self.compiled} compiled models", *self.reasons]
        lines += [f"Dynamo broke the graph, and Python runs what is there: {why}" for why in self.breaks]
        if not self.graphs:
            lines.append("nothing is compiled: Dynamo gave no graph")
        elif not self.compiled:
            lines.append("nothing is compiled")
        elif len(lines) == 1:
            lines.append("everything is compiled")
        return "\n".join(lines)


def _break_text(why: str) -> str:
    """A reason of Dynamo's in a line."""
    lines = [line.strip() for line in why.splitlines() if line.strip()]
    text = next((line.removeprefix("Explanation: ") for line in lines if line.startswith("Explanation: ")), lines[0] if lines else why)
    if "allow_rnn" in text:
        text += ". Then the layer is compiled for a constant length of the sequence; where training of an LSTM ends in an assertion of " \
                "AOTAutograd, torch.backends.mkldnn.flags(enabled=False) avoids it"
    return text


def explain(function: Callable[..., Any], *args: Any, ops: Any = (), **kwargs: Any) -> Explanation:
    """Compiles a call by torch.compile(backend="weft"), backward included where a result requires gradients, and
    says which operators run as PyTorch's, and why. ops: libraries of operators that the function calls, paths or one."""
    import copy
    import warnings

    import torch
    from weft import dynamo
    torch._dynamo.reset()
    breaks = torch._dynamo.utils.counters["graph_break"]
    known = dict(breaks)
    before, dynamo.statistics = dynamo.statistics, dynamo.Statistics()
    if isinstance(function, torch.nn.Module):
        function = copy.deepcopy(function)
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            out = torch.compile(function, backend=dynamo.backend, options={"ops": ops})(*args, **kwargs)
            roots = [t for t in torch.utils._pytree.tree_leaves(out) if isinstance(t, torch.Tensor) and t.requires_grad]
            if roots:
                torch.autograd.backward(roots, [torch.ones_like(t) for t in roots])
        s = dynamo.statistics
        said = [str(w.message) for w in seen if str(w.message).startswith("weft: ")]
        broken = [_break_text(why) for why, n in breaks.items() if n > known.get(why, 0)]
        return Explanation(s.graphs, s.compiled, s.nodes, dict(s.refused), said, broken)
    finally:
        dynamo.statistics = before
        torch._dynamo.reset()
