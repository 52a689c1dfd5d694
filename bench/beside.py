"""Calls beside other work: beside.py WEFT MODEL[:ENTRY]... [--busy K] [--threads LIST] [--seconds S] [--rounds R] [--most X] [-- OPTION...]

Starts K processes that never sleep (default: as many as there are processors) and times models with `weft bench`, all numbers of threads in
each round; prints for each model the medians over the rounds of the median of a call, in ms, and the ratio to the first number of
threads. What is promised: at most 1.3 with as many busy processes as processors (docs/c-api.md). --busy 0 is the machine as it is.
--most X: fail where a ratio is above. A MODEL may be a .so with an ENTRY, as of `weft compile --grad`. OPTIONs go to `weft bench`.

beside.py --export FOLDER, by a Python with torch, writes gru_attention.pt2 there: hundreds of phases of a microsecond each."""
import argparse
import json
import os
import statistics
import subprocess
import sys

# Until who started it is gone.
BUSY = """import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1000000):
        pass
"""


def export(folder):
    import torch
    import torch.nn as nn

    class Decoder(nn.Module):
        """Steps of a GRU's cell, each of which attends to the states of an encoder."""

        def __init__(self, width=64, heads=4):
            super().__init__()
            self.encoder = nn.GRU(width, width, batch_first=True)
            self.cell = nn.GRUCell(2 * width, width)
            self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
            self.out = nn.Linear(width, 32)

        def forward(self, x):
            states, h = self.encoder(x)
            h, rows = h[0], []
            for k in range(8):
                seen, _ = self.attention(h[:, None], states, states)
                h = self.cell(torch.cat([x[:, k], seen[:, 0]], 1), h)
                rows.append(self.out(h))
            return torch.stack(rows, 1)

    torch.manual_seed(0)
    torch.export.save(torch.export.export(Decoder().eval(), (torch.randn(2, 16, 64),)), os.path.join(folder, "gru_attention.pt2"))


def medians(weft, model, threads, seconds, options):
    """By number of threads, in ms."""
    path, _, entry = model.partition(":")
    command = [weft, "bench", path, "--no-op-by-op", "--threads", ",".join(map(str, threads)), "--seconds", str(seconds), "--json", *options]
    out = subprocess.run(command + (["--entry", entry] if entry else []), stdout=subprocess.PIPE, check=True).stdout
    return {row["threads"]: row["median_ms"] for row in json.loads(out)["rows"] if row["ok"]}


def measure(args, model, threads):
    rounds = [medians(args.weft, model, threads, args.seconds, args.options) for _ in range(args.rounds)]
    return [statistics.median(r[n] for r in rounds) for n in threads]


def main():
    argv = sys.argv[1:]
    if argv[:1] == ["--export"]:
        return export(argv[1])
    options = argv[argv.index("--") + 1:] if "--" in argv else []
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weft")
    parser.add_argument("model", nargs="+")
    parser.add_argument("--busy", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most", type=float)
    args = parser.parse_args(argv[:argv.index("--")] if "--" in argv else argv)
    args.options = options
    threads = [int(n) for n in args.threads.split(",")]
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(args.busy)]
    above = 0
    try:
        print(f"{args.busy} busy processes".ljust(44), *(f"{n} threads".rjust(12) for n in threads))
        for model in args.model:
            ms = measure(args, model, threads)
            ratios = [x / ms[0] for x in ms]
            above += args.most is not None and max(ratios) > args.most
            cells = (f"{x:7.3f}{'' if r == 1 else f' {r:4.2f}':5}" for x, r in zip(ms, ratios))
            print(os.path.basename(model).ljust(44), *(c.rjust(12) for c in cells), flush=True)
    finally:
        for p in busy:
            p.kill()
            p.wait()
    if above:
        sys.exit(f"{above} models are slower than {args.most} times")


if __name__ == "__main__":
    main()
