"""weft bench on a busy machine: busy.py WEFT. On one processor, which other processes use at the same time, the peak is about what it is
without them, of arithmetic and of memory, and that the machine is busy is said; two threads have no more than the processor has. Skipped (77)
where a process cannot choose its processor."""
import json
import os
import subprocess
import sys
import tempfile

if not hasattr(os, "sched_setaffinity"):
    sys.exit(77)
weft = os.path.abspath(sys.argv[1])
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
MODEL = "graph @f(%x: f32[32, 64], %w: f32[64, 64]) {\n  %y = aten.mm(%x, %w) : f32[32, 64]\n  return %y\n}\n"
OTHERS = 4


def bench(folder, *args):
    return subprocess.run([weft, "bench", "m.ir", "--no-op-by-op", "--seconds", "0.1", "--threads", "1,2", *args], cwd=folder, check=True,
                          capture_output=True, text=True).stdout


with tempfile.TemporaryDirectory() as folder:
    open(f"{folder}/m.ir", "w").write(MODEL)
    alone = json.loads(bench(folder, "--json"))["machine"]
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(OTHERS)]
    try:
        busy, said = json.loads(bench(folder, "--json"))["machine"], bench(folder)
    finally:
        for p in others:
            p.kill()
            p.wait()
wrong = [f"{what} of {b['threads']} threads: {b[what]:.3g}, alone {a[what]:.3g}" for a, b in zip(alone, busy) for what in ("flops", "bytes")
         if not a[what] / 3 < b[what] < a[what] * 3]
wrong += [f"{what} of two threads on one processor: {two[what]:.3g}, of one {one[what]:.3g}" for one, two in (alone, busy)
          for what in ("flops", "bytes") if two[what] > 1.5 * one[what]]
wrong += [f"threads had a processor {b['had_processor']:.0%} of the time beside {OTHERS} others" for b in busy if not b["had_processor"] < 0.9]
if said.count("the machine is busy, or has fewer processors than threads") != 2:
    wrong.append(f"nothing says that the machine is busy:\n{said}")
print("\n".join(wrong), end="\n" if wrong else "")
sys.exit(bool(wrong))
