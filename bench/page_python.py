"""Cases of bench/page.py that are calls from Python: page_python.py [NAME...] [--threads LIST] [--rounds N] [--seconds S].

A case is timed by eager mode, by Weft and by Inductor (`torch.compile` for training steps; `torch.export` and `weft.compile` for a detector,
which Inductor does not take whole), in alternating rounds. A training step is what users write: forward, loss, backward, a step of the fused
AdamW, gradients set to none. Prints a line of JSON a case: {"name", "ms": {threads: {system: least ms of a call}}, "first_s": {system:
seconds of the first call, with the caches that the environment names}}. Needs torch, torchvision and weft."""
import argparse
import json
import math
import time
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F


def compiled(model, system):
    if system == "torch":
        return model
    if system == "aoti":
        return torch.compile(model)
    from weft import dynamo
    return torch.compile(model, backend=dynamo.backend)


def training(make):
    """By system: a function that makes a step."""
    def of(system):
        torch.manual_seed(0)
        model, x, labels = make()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        f = compiled(model.train(), system)

        def step():
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(f(x).flatten(0, -2), labels.flatten()).backward()
            optimizer.step()
        return step
    return of


def resnet18():
    import torchvision.models
    return torchvision.models.resnet18(num_classes=10), torch.randn(16, 3, 64, 64), torch.randint(10, (16,))


class Language(nn.Module):
    """A small GPT: words, blocks of bench/training.py, words again."""

    def __init__(self, words, width, heads, layers):
        super().__init__()
        from training import Block
        self.words, self.blocks = nn.Embedding(words, width), nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, x):
        return self.out(self.norm(self.blocks(self.words(x))))


def gpt():
    return Language(2000, 256, 4, 4), torch.randint(2000, (4, 128)), torch.randint(2000, (4, 128))


def detection(name):
    def of(system):
        import torchvision.ops.boxes
        import detectors
        torchvision.ops.boxes.batched_nms = detectors.batched_nms
        size, scale = detectors.MODELS[name]
        model, x = detectors.detector(name, scale), torch.rand(3, size, size, generator=torch.Generator().manual_seed(0))
        if system == "compiled":
            import weft
            artifact = weft.compile(detectors.exported(model, x))

            def call():
                artifact.threads = torch.get_num_threads()
                return artifact(x)
            return call
        if system == "aoti":
            return None

        def eager():
            with torch.no_grad():
                return model(x)
        return eager
    return of


CASES = {
    "training step: resnet18, 16 images of 64 x 64": training(resnet18),
    "training step: GPT of 4 layers, width 256, 4 x 128 words": training(gpt),
    "detection: ssdlite320_mobilenet_v3_large": detection("ssdlite320_mobilenet_v3_large"),
}


def measure(name, args):
    systems, first = {}, {}
    torch._dynamo.reset()  # otherwise Dynamo stops compiling after some cases
    for system in ("compiled", "torch", "aoti"):
        began = time.perf_counter()
        call = CASES[name](system)
        if not call:
            continue
        call()
        systems[system], first[system] = call, round(time.perf_counter() - began, 2)
    ms = {n: {} for n in args.threads}
    for _ in range(args.rounds):
        for n in args.threads:
            torch.set_num_threads(int(n))
            for system, call in systems.items():
                call()
                end = time.perf_counter() + args.seconds
                while time.perf_counter() < end:
                    began = time.perf_counter()
                    call()
                    ms[n][system] = min(ms[n].get(system, math.inf), 1e3 * (time.perf_counter() - began))
    print(json.dumps({"name": name, "ms": ms, "first_s": first}), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", help=", ".join(CASES))
    p.add_argument("--threads", type=lambda s: s.split(","), default=["1", "2"])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=1)
    args = p.parse_args()
    warnings.simplefilter("ignore")
    torch._logging.set_logs(all=50)
    torch.set_num_threads(1)
    for name in args.names or CASES:
        measure(name, args)


if __name__ == "__main__":
    main()
