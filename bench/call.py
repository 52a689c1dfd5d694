#!/usr/bin/env python3
"""The cost of a call from C on one thread: bench/call.py CHECKOUT=WEFT... [--rounds N] [--target T].

Each CHECKOUT is a checkout whose include/ is used, WEFT its weft. Of each the graph x + 1 with x: f32[8] is compiled, and bench/call.c with
these headers; they run in turns. Printed are the least mean of a call and, with --count, the instructions of a call, counted by valgrind; this
needs a target that valgrind knows (--target x86-64-v3)."""
import argparse
import pathlib
import re
import subprocess
import tempfile

GRAPH = "graph @f(%x: f32[8]) {\n  %1 = full(shape=[8], value=1.0, dtype=f32)\n  %y = add(%x, %1)\n  return %y\n}\n"


def make(folder, target, checkout, weft):
    folder.mkdir(parents=True)
    (folder / "plus.txt").write_text(GRAPH)
    subprocess.run([weft, "compile", folder / "plus.txt", "-o", folder / "plus.so", "--no-cache", *target], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cc", "-std=c17", "-O2", "-D_GNU_SOURCE", "-I", pathlib.Path(checkout) / "include", pathlib.Path(__file__).parent / "call.c",
                    "-o", folder / "call", "-ldl"], check=True)


def nanoseconds(folder):
    return float(subprocess.run([folder / "call", folder / "plus.so", "10"], check=True, capture_output=True, text=True).stdout)


def instructions(folder):
    """Of one call: the difference of two numbers of calls."""
    count = []
    for calls in ["1000", "3000"]:
        p = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", folder / "call", folder / "plus.so", "1", calls],
                           check=True, capture_output=True, text=True)
        count.append(int(re.search(r"Collected : (\d+)", p.stderr)[1]))
    return (count[1] - count[0]) / 2000


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("build", nargs="+", metavar="CHECKOUT=WEFT")
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--target")
    p.add_argument("--count", action="store_true")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as t:
        folders = [pathlib.Path(t) / str(k) for k in range(len(a.build))]
        for folder, build in zip(folders, a.build):
            make(folder, ["--target", a.target] if a.target else [], *build.split("=", 1))
        times = [[] for _ in folders]
        for _ in range(a.rounds):
            for k, folder in enumerate(folders):
                times[k].append(nanoseconds(folder))
        for k, folder in enumerate(folders):
            count = f"{instructions(folder):.0f} instructions" if a.count else ""
            print(f"{min(times[k]):.2f} ns  {count:20} {a.build[k]}")


if __name__ == "__main__":
    main()
