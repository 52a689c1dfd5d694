"""PyTorch's tests of Inductor (test/inductor/test_torchinductor.py) with Weft in its place, on the CPU.

    python inductor.py FILE [--dynamic] [--every K] [--only NAME,...] [--jobs N] [--limit SECONDS] [--log FILE]

FILE is PyTorch's, of about the version that is installed; it is no part of this repository. Each test of its class
CommonTemplate runs in a process of its own, in which compile_fx and torch.compile's back end are Weft's. Tests that look
inside of Inductor (at its code, its counts of kernels, its settings) are counted apart: they fail without a comparison of
values. "near": a result differs by rounding alone. Tests with fallback_random compare with eager mode's random numbers,
which Weft's are not. --dynamic: all sizes are symbols. Prints a table, and a line for each test that neither passes nor
is skipped.
"""
import argparse
import ast
import collections
import importlib
import importlib.util
import json
import os
import pathlib
import re
import select
import signal
import sys
import time
import traceback
import unittest
import unittest.mock
import warnings

import torch
import torch._inductor.compile_fx
from torch._dynamo import config

from weft import dynamo

# What a failure says that comes from a test's look inside of Inductor: no such code was made.
INSIDE = re.compile(r"run_and_get|FileCheck|Expected to find|get_code|get_kernels|generated_kernel_count|GeneratedKernelCount|no_indirect_indexing|"
                    r"metrics\.|_inductor/(?!test_case)|aoti_|counters\[|assert_code|source_codes?|codecache|MagicMock|Ran graph without calling compile_fx")


def replace_inductor():
    """torch.compile without a back end, and Inductor's entries, are Weft's."""
    whole = torch.compile

    def compiled(model=None, *, backend="inductor", mode=None, options=None, **rest):
        if model is None:
            return lambda f: compiled(f, backend=backend, mode=mode, options=options, **rest)
        return whole(model, backend=dynamo.backend if backend in ("inductor", "weft") else backend, **rest)
    torch.compile = compiled
    torch._inductor.compile_fx.compile_fx = lambda gm, inputs, *_, **__: dynamo.backend(gm, inputs)


def complete(tree):
    """Gives PyTorch's modules placeholders for the names that the file imports and this version lacks."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("torch"):
            try:
                module = importlib.import_module(node.module)
            except ImportError:
                module = sys.modules[node.module] = unittest.mock.MagicMock(name=node.module)
            for name in node.names:
                if not hasattr(module, name.name):
                    try:
                        importlib.import_module(f"{node.module}.{name.name}")
                    except ImportError:
                        setattr(module, name.name, unittest.mock.MagicMock(name=name.name))


def near_or_equal(self, got, want, *args, **named):
    """assertEqual, for which long sums in another order differ as they may: by 4e-6 of the greatest element."""
    try:
        super(type(self), self).assertEqual(got, want, *args, **named)
    except AssertionError:
        pairs = list(zip(*(torch.utils._pytree.tree_leaves(t) for t in (got, want))))
        if not pairs or not all(isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and (a.is_floating_point() or a.is_complex()) and a.dtype == b.dtype and
                                a.shape == b.shape and (a - b).abs().max() <= 4e-6 * b.abs().max() for a, b in pairs):
            raise
        self.near = True


def tests_of(path, dynamic):
    """A class of the file's tests for the CPU."""
    complete(ast.parse(path.read_text()))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    file = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = file
    spec.loader.exec_module(file)
    template = file.CommonTemplate
    if dynamic:
        from torch._dynamo.testing import make_test_cls_with_patches
        template = make_test_cls_with_patches(template, "Dynamic", "_dynamic_shapes", (config, "assume_static_by_default", False))
    cls = type("Cpu", (file.TestCase,), {"common": file.check_model, "device": "cpu", "assertEqual": near_or_equal, "near": False})
    file.copy_tests(template, cls, "cpu")
    return cls


def run(cls, name):
    """What becomes of a test, why, and what ran as PyTorch's operators."""
    dynamo.statistics.reset()
    result, test = unittest.TestResult(), cls(name)
    test.run(result)
    eager = dict(dynamo.statistics.refused)
    if result.skipped:
        return "skip", result.skipped[0][1], eager
    bad = result.failures + result.errors
    if bad:
        text = bad[0][1]
        wrong = "Tensor-likes are not" in text or "dtype mismatch" in text
        return "inside" if INSIDE.search(text) and not wrong else "wrong" if wrong else "fail", text, eager
    return "xfail" if result.expectedFailures or result.unexpectedSuccesses else "near" if test.near else "pass", "", eager


def start(cls, name):
    """A process that runs the test, and where its answer comes from."""
    read, write = os.pipe()
    child = os.fork()
    if child:
        os.close(write)
        return child, read
    os.close(read)
    os.setpgid(0, 0)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    try:
        answer = run(cls, name)
    except BaseException:
        answer = "fail", traceback.format_exc(), {}
    os.write(write, json.dumps(answer).encode()[-60000:])
    os._exit(0)


def all_of(cls, names, jobs, limit):
    """Yields (name, (kind, why, eager), seconds) as tests end."""
    waiting, running = collections.deque(names), {}
    while waiting or running:
        while waiting and len(running) < jobs:
            name = waiting.popleft()
            child, pipe = start(cls, name)
            running[pipe] = name, child, time.monotonic()
        for pipe in select.select(list(running), [], [], 1)[0]:
            name, child, began = running.pop(pipe)
            with os.fdopen(pipe, "rb") as f:
                text = f.read()
            _, status = os.waitpid(child, 0)
            yield name, json.loads(text) if text else ("crash", f"status {status}", {}), time.monotonic() - began
        for pipe, (name, child, began) in list(running.items()):
            if time.monotonic() - began > limit:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                os.close(pipe)
                del running[pipe]
                yield name, ("timeout", "", {}), limit


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file", type=pathlib.Path)
    p.add_argument("--dynamic", action="store_true")
    p.add_argument("--every", type=int, default=1)
    p.add_argument("--only", type=lambda s: set(s.split(",")))
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--limit", type=float, default=120)
    p.add_argument("--log", type=lambda s: open(s, "w"))
    options = p.parse_args()
    warnings.simplefilter("ignore")
    torch._logging.set_logs(all=50)
    torch.set_num_threads(1)
    replace_inductor()
    cls = tests_of(options.file.resolve(), options.dynamic)
    names = sorted(n for n in vars(cls) if n.startswith("test_"))[:: options.every]
    short = lambda n: n.removeprefix("test_").removesuffix("_cpu").removesuffix("_dynamic_shapes")  # noqa: E731
    names = [n for n in names if not options.only or short(n) in options.only]
    torch.compile(lambda x: x.sin().sum())(torch.ones(2))  # imports, which processes then share; autograd has threads, which do not survive
    torch._dynamo.reset()
    count, refused = collections.Counter(), collections.Counter()
    for name, (kind, why, eager), seconds in all_of(cls, names, options.jobs, options.limit):
        count[kind] += 1
        for op in eager:
            refused[op] += 1
        if options.log:
            print(f"==== {kind} {short(name)} ({seconds:.1f} s) {eager or ''}\n{why}", file=options.log, flush=True)
        if kind not in ("pass", "near", "skip", "inside"):
            print(f"{kind:8} {short(name)} ({seconds:.1f} s): {why.strip().splitlines()[-1][:200] if why else ''}", flush=True)
    print(f"\n{sum(count.values())} tests: " + ", ".join(f"{v} {k}" for k, v in count.most_common()))
    for op, n in refused.most_common():
        print(f"{n:5} tests with PyTorch's {op[:150]}")
    return count["wrong"] > 0


if __name__ == "__main__":
    sys.exit(main())
