"""Steps of training: train_step.py [NAME...] [--threads N] [--rounds R] [--seconds S] [--systems LIST]

A step is forward, cross entropy, backward, AdamW. Systems: eager (AdamW with fused=True), inductor (torch.compile of the model, and of the
optimizer's step), weft_dynamo (torch.compile by Weft, AdamW with fused=True), weft (weft.train_step). They take turns; printed is the least
time of a step of each in milliseconds, the seconds before the second call, and how many times faster weft is than the best of the first two. Needs torch,
torchvision and Weft's package."""
import argparse
import time
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")


def mlp():
    net = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 10))
    return net, torch.randn(64, 256), torch.randint(10, (64,))


def resnet18():
    import torchvision.models
    return torchvision.models.resnet18(num_classes=10), torch.randn(8, 3, 64, 64), torch.randint(10, (8,))


def gpt2():
    from page_python import Language
    return Language(2000, 256, 4, 2), torch.randint(2000, (2, 128)), torch.randint(2000, (2, 128))


CASES = {"mlp": mlp, "resnet18": resnet18, "gpt2_2l": gpt2}


def loss_of(out, label):
    return F.cross_entropy(out.flatten(0, -2), label.flatten())


def made(case, system):
    """A function that makes a step."""
    torch.manual_seed(0)
    net, x, label = CASES[case]()
    fused = system in ("eager", "weft_dynamo")
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=fused)
    if system == "weft":
        import weft
        step = weft.train_step(net, loss_of, optimizer, (x, label))
        return lambda: step(x, label)
    update, f = optimizer.step, net
    if system == "weft_dynamo":
        from weft import dynamo
        f = torch.compile(net, backend=dynamo.backend)
    if system == "inductor":
        f, update = torch.compile(net), torch.compile(optimizer.step)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(f(x), label).backward()
        update()
    return step


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", help=", ".join(CASES))
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.5)
    p.add_argument("--systems", default="eager,inductor,weft_dynamo,weft")
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    for case in args.names or CASES:
        torch._dynamo.reset()
        calls, first, least = {}, {}, {}
        for system in args.systems.split(","):
            began = time.perf_counter()
            calls[system] = made(case, system)
            calls[system]()
            first[system] = time.perf_counter() - began
        for _ in range(args.rounds):
            for system, call in calls.items():
                call()
                end = time.perf_counter() + args.seconds
                while time.perf_counter() < end:
                    began = time.perf_counter()
                    call()
                    least[system] = min(least.get(system, 1e9), time.perf_counter() - began)
        best = min((t for s, t in least.items() if s in ("eager", "inductor")), default=0)
        print(f"{case:9} " + "  ".join(f"{s} {1e3 * t:.3f} ms ({first[s]:.1f} s)" for s, t in least.items())
              + (f"  weft is {best / least['weft']:.2f} times as fast" if "weft" in least and best else ""), flush=True)


if __name__ == "__main__":
    main()
