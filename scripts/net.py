#!/usr/bin/env python3
"""Random graphs with seeds that nobody used: net.py BUILD [--seconds N] [--seed N] [--kinds LIST] [--counts LIST] [--log FILE]

Kinds: graphs, derivatives, state, compositions (of transforms). Each has its share of the time (240 s), or with --counts graphs=10000,...
runs so many, however long that takes. The seed is made of the commit's hash, and printed: --seed N, with any N, gives it again. Graphs and derivatives are interpreted,
run as loop IR and compiled in memory; every twentieth also to C.

What fails is reduced (reduce.py) and printed: a file test. It becomes one at once, of tests/text/run with what mends it, or of tests/known with its
`; cause:` and `; signature:`, so that other work can land: a failure with the signature of a known one is counted, and no failure
here. Ends with 1 where something else failed. How often each pattern was drawn that has gone wrong before is printed last."""
import argparse
import collections
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

import reduce

HERE = pathlib.Path(__file__).resolve().parent.parent
# program, options, how many seeds at a time, share of the time
KINDS = {"graphs": ("fuzz_graphs", ["--c-every", "20"], 20, 0.4), "derivatives": ("fuzz_derive", ["--c-every", "20"], 10, 0.35),
         "state": ("fuzz_state", [], 10, 0.1), "compositions": ("fuzz_derive", ["--compose", "--steps", "5", "--c-every", "20"], 5, 0.15)}
LIMIT = 900  # seconds that some seeds may take


def fresh_seed():
    """Of the commit; where there is none, of the time."""
    text = str(time.time())
    if shutil.which("git"):
        p = subprocess.run(["git", "-c", "safe.directory=*", "-C", HERE, "rev-parse", "HEAD"], capture_output=True, text=True)
        text = p.stdout.strip() if p.returncode == 0 else text
    return int(hashlib.sha256(text.encode()).hexdigest()[:12], 16) // 1000 * 1000


class Kind:
    def __init__(self, name, build, seed, seconds, count):
        self.name, self.build, self.seconds, self.count = name, build, seconds, count
        self.program, self.options, self.chunk, _ = KINDS[name]
        self.first = self.next = seed + 10 ** 15 * list(KINDS).index(name)  # no two kinds have the same seeds
        self.done, self.bad, self.patterns = 0, [], collections.Counter()

    def run(self, seed, count, *more):
        args = [self.build / self.program, "--seed", str(seed), "--count", str(count), *self.options, *more]
        try:
            return subprocess.run(args, capture_output=True, text=True, errors="replace", timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(args, 124, "", f"no end in {LIMIT} s")

    def take(self, end):
        """The next seeds and how many; none left, or no time."""
        n = self.chunk if self.count is None else min(self.chunk, self.first + self.count - self.next)
        if n <= 0 or (self.count is None and time.time() >= end):
            return None
        self.next += n
        return self.next - n, n

    def add(self, seed, n, p):
        self.done += n
        for number, pattern in re.findall(r"^drawn: +(\d+) (.*)$", p.stdout, re.M):
            self.patterns[pattern] += int(number)
        if p.returncode:
            found = [int(s) for s in re.findall(r"^seed (\d+):", p.stdout, re.M)]
            self.bad += dict.fromkeys(found) if found and p.returncode == 1 else self.alone(seed, n, p)

    def alone(self, seed, n, p):
        """Seeds that fail one by one, where a process did not end well."""
        print(f"{self.name}: seeds {seed} to {seed + n - 1}: status {p.returncode}: {p.stderr.strip()[-300:]}", flush=True)
        return [s for s in range(seed, seed + n) if self.run(s, 1).returncode] or [seed]


def work(kind, lock, end):
    while True:
        with lock:
            taken = kind.take(end)
        if not taken:
            return
        p = kind.run(*taken)
        with lock:
            kind.add(*taken, p)


def run_kind(kind, jobs):
    lock, end = threading.Lock(), time.time() + kind.seconds
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for f in [pool.submit(work, kind, lock, end) for _ in range(jobs)]:
            f.result()


def known():
    """{signature: file} of tests/known."""
    files = sorted((HERE / "tests/known").glob("*.txt"))
    return {s: f.name for f in files for s in re.findall(r"^; signature: (.*)$", f.read_text(), re.M)}


def report(kind, seed, signatures):
    """Print a failure, reduced; is it new?"""
    text = kind.run(seed, 1, "--text").stdout
    again = f"{kind.program} --seed {seed} --count 1 {' '.join(kind.options)}"
    smaller, line = reduce.reduce(kind.build / "file_runner", text) if "graph @" in text else (None, None)
    if smaller is None:
        print(f"\n{kind.name}: seed {seed} fails ({again}), but not as a file test:\n{kind.run(seed, 1).stdout[-3000:]}", flush=True)
        return True
    signature = reduce.signature(smaller, line)
    if signature in signatures:
        print(f"\n{kind.name}: seed {seed} fails as tests/known/{signatures[signature]}", flush=True)
        return False
    print(f"\n{kind.name}: seed {seed} fails ({again}): {line}\n; cause:\n; signature: {signature}\n{smaller}; ----\nagrees", flush=True)
    signatures[signature] = f"(seed {seed} above)"
    return True


def pairs(text):
    return {k: int(v) for k, v in (p.split("=") for p in text.split(",") if p)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", type=lambda s: pathlib.Path(s).resolve())
    p.add_argument("--seconds", type=float, default=240)
    p.add_argument("--seed", type=int)
    p.add_argument("--kinds", default=",".join(KINDS))
    p.add_argument("--counts", type=pairs, default={})
    p.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    p.add_argument("--log", type=pathlib.Path, help="where a line for each kind is added: seeds, counts")
    args = p.parse_args()
    seed = fresh_seed() if args.seed is None else args.seed
    print(f"seed {seed}", flush=True)
    names = list(args.counts) or args.kinds.split(",")
    total, bad, signatures = sum(KINDS[n][3] for n in names), 0, known()
    for name in names:
        began = time.time()
        kind = Kind(name, args.build, seed, args.seconds * KINDS[name][3] / total, args.counts.get(name))
        run_kind(kind, args.jobs)
        line = f"{name}: {kind.done} from seed {kind.first} on, {len(kind.bad)} failed, {time.time() - began:.0f} s"
        print(line, flush=True)
        bad += sum(report(kind, s, signatures) for s in kind.bad)
        for pattern, n in kind.patterns.items():
            print(f"    {n:8} {pattern}")
        if args.log:
            with args.log.open("a") as f:
                print(line, file=f)
    print(f"{bad} new failures; again with --seed {seed}" if bad else "no new failures", flush=True)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
