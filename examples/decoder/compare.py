"""Greedy tokens of a compiled decoder beside PyTorch's: compare.py MODEL.so GENERATE [--size base] [--threads 2] [--count 64]

    decoder.py F --size base; weft compile prefill=F/prefill.pt2 decode=F/decode.pt2 -o F/decoder.so
    compare.py F/decoder.so build/generate --size base

The model is made anew from its seed. Fails where a token differs, or where the logits are further than 8 times PyTorch's own
error from those of the same tokens in float64."""
import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from decoder import SIZES, greedy, make


def exact_logits(size, seed, prompt, tokens):
    """In float64, of the tokens that were chosen."""
    model, start, out = make(size, seed).double(), 0, []
    for feed in [prompt, *(torch.tensor([[t]]) for t in tokens[:-1])]:
        out.append(model(feed, torch.tensor([start])))
        start += feed.shape[1]
    return torch.cat(out)


def compiled(args, prompt):
    """Tokens, logits and the median milliseconds of a call of decode."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "logits"
        command = [args.generate, args.model, str(args.threads), str(args.count), path, *map(str, prompt[0].tolist())]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        logits = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.float32).view(args.count, -1)
    return list(map(int, lines[0].split())), logits, float(lines[1].split()[-2])


@torch.no_grad()
def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("generate")
    p.add_argument("--size", choices=list(SIZES), default="small")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--count", type=int, default=64)
    p.add_argument("--prompt", type=int, default=100, help="tokens in the prompt, if the model has room for them")
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    vocabulary, positions = SIZES[args.size][-2:]
    args.count = min(args.count, positions // 2)
    torch.manual_seed(1)
    prompt = torch.randint(vocabulary, (1, min(args.prompt, positions - args.count)))
    model, seconds = make(args.size, args.seed), []

    def eager(tokens, start):
        begin = time.perf_counter()
        y = model(tokens, start)
        seconds.append(time.perf_counter() - begin)
        return y
    tokens, logits = greedy(eager, prompt, args.count)
    exact = exact_logits(args.size, args.seed, prompt, tokens)
    mine, got, milliseconds = compiled(args, prompt)
    error, own = (got - exact).abs().max().item(), (logits - exact).abs().max().item()
    print(f"{args.count} tokens, {len(set(tokens))} different: {'equal' if mine == tokens else 'DIFFERENT'}")
    print(f"logits: error {error:.3g}, PyTorch's {own:.3g}, largest {exact.abs().max():.3g}")
    print(f"decode: {milliseconds:.3f} ms, PyTorch {1e3 * sorted(seconds[1:])[len(seconds) // 2 - 1]:.3f} ms")
    sys.exit(mine != tokens or error > 8 * own + 1e-6)


if __name__ == "__main__":
    main()
