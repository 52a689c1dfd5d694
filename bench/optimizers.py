"""Steps of optimizers through torch.compile beside eager mode's: optimizers.py [--cases NAME,...] [--setups NAME,...] [--threads N] [--rounds R]
Cases are SGD (with momentum), AdamW, Adam (with weight decay) and RMSprop (centered); setups are 8x3M, resnet50 (its 161 tensors), 161x10 (as many
of 10 elements, whose step is the call) and mlp, a network of three layers that is called, not trained. Prints the least time of a step in
alternating rounds, in milliseconds: Weft's, eager mode's with fused=True (RMSprop: foreach), Weft's divided by eager mode's, and how often Dynamo
compiled. With --inductor also Inductor's step. Needs torch and Weft's package (build/python)."""
import argparse
import copy
import time
import warnings

import torch
import weft.dynamo

warnings.filterwarnings("ignore")

CASES = {
    "SGD": (torch.optim.SGD, {"lr": 1e-3, "momentum": 0.9}, "fused"),
    "AdamW": (torch.optim.AdamW, {"lr": 1e-3}, "fused"),
    "Adam": (torch.optim.Adam, {"lr": 1e-3, "weight_decay": 0.01}, "fused"),
    "RMSprop": (torch.optim.RMSprop, {"lr": 1e-3, "centered": True}, "foreach"),
}


def resnet50():
    """The shapes of resnet50's parameters."""
    conv = lambda o, i, k: [(o, i, k, k), (o,), (o,)]
    shapes, width = conv(64, 3, 7), 64
    for inner, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            shapes += conv(inner, width, 1) + conv(inner, inner, 3) + conv(4 * inner, inner, 1)
            if not block:
                shapes += conv(4 * inner, width, 1)
            width = 4 * inner
    return shapes + [(1000, 2048), (1000,)]


SETUPS = {"8x3M": lambda: [(3_000_000,)] * 8, "resnet50": resnet50, "161x10": lambda: [(10,)] * 161}


def steps(case, shapes, inductor):
    """{engine: step without arguments}."""
    optimizer, options, best = CASES[case]
    torch.manual_seed(0)
    params = [torch.randn(s).requires_grad_() for s in shapes]
    for p in params:
        p.grad = torch.randn_like(p)
    eager = optimizer(params, **options, **{best: True})
    eager.step()

    def beside(backend):
        """Its step compiled, on the same parameters and state: other memory may be faster or slower."""
        other = optimizer(params, **options, foreach=True)
        for p in params:
            other.state[p] = dict(eager.state[p])
        return torch.compile(other.step, backend=backend)

    out = {"weft": beside(weft.dynamo.backend), "eager": eager.step}
    if inductor:
        out["inductor"] = beside("inductor")
    return out


def mlp(inductor):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16)).eval()
    x = torch.randn(4, 16)
    out = {"weft": copy.deepcopy(m), "eager": m} | ({"inductor": copy.deepcopy(m)} if inductor else {})
    backends = {"weft": weft.dynamo.backend, "inductor": "inductor"}
    calls = {name: torch.compile(module, backend=backends[name]) if name in backends else module for name, module in out.items()}

    def call(f):
        def hundred():
            with torch.no_grad():
                for _ in range(100):
                    f(x)
        return hundred
    return {name: call(f) for name, f in calls.items()}


def measure(calls, rounds):
    least = dict.fromkeys(calls, float("inf"))
    for f in calls.values():
        for _ in range(3):
            f()
    for _ in range(rounds):
        for name, f in calls.items():
            start = time.perf_counter()
            f()
            least[name] = min(least[name], time.perf_counter() - start)
    return least


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cases", default="SGD,AdamW,Adam")
    p.add_argument("--setups", default="8x3M,resnet50,161x10")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=25)
    p.add_argument("--inductor", action="store_true")
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    for setup in args.setups.split(","):
        for case in args.cases.split(",") if setup != "mlp" else ["100 calls"]:
            torch._dynamo.reset()
            weft.dynamo.statistics.reset()
            calls = mlp(args.inductor) if setup == "mlp" else steps(case, SETUPS[setup](), args.inductor)
            least = measure(calls, args.rounds)
            times = "  ".join(f"{name} {ms * 1e3:.4f}" for name, ms in least.items())
            print(f"{setup:9} {case:8} {times}  ratio {least['weft'] / least['eager']:.3f}  graphs {weft.dynamo.statistics.graphs}", flush=True)


if __name__ == "__main__":
    main()
