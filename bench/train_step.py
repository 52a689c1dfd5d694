"""Steps of training: train_step.py [NAME...] [--threads N] [--rounds R] [--seconds S] [--systems LIST] [--bf16]

A step is forward, cross entropy, backward, AdamW. Systems: eager (AdamW with fused=True), inductor (torch.compile of the model, and of the
optimizer's step), weft_dynamo (torch.compile by Weft, AdamW with fused=True), weft (weft.train_step). They take turns; printed is the least
time of a step of each in milliseconds, the seconds before the second call, and how many times faster weft is than the best of the first two. Needs torch,
torchvision and Weft's package. --bf16: model and loss under autocast; of weft, precision="bf16"."""
import argparse
import contextlib
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


def mobilenet_v3_small():
    import torchvision.models
    return torchvision.models.mobilenet_v3_small(num_classes=10), torch.randn(8, 3, 64, 64), torch.randint(10, (8,))


def words(net, batch):
    return net, torch.randint(2000, (batch, 128)), torch.randint(2000, (batch, 128))


def gpt2_2l():
    from page_python import Language
    return words(Language(2000, 256, 4, 2), 2)


def gpt2():
    from page_python import Language
    return words(Language(50257, 768, 12, 12), 2)


def bert_base_3l():
    layer = nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)
    return words(nn.Sequential(nn.Embedding(30522, 768), nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), nn.Linear(768, 2000)), 4)


class UNet(nn.Module):
    """Three levels of two convolutions each."""

    def __init__(self, channels=3, width=32, classes=4):
        super().__init__()

        def double(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())
        w = [width, 2 * width, 4 * width]
        self.down = nn.ModuleList(double(a, b) for a, b in zip([channels, *w], w))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(w, w[1:]))
        self.join = nn.ModuleList(double(2 * a, a) for a in w[:-1])
        self.out = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        kept = []
        for k, down in enumerate(self.down):
            x = down(F.max_pool2d(x, 2) if k else x)
            kept.append(x)
        for k in reversed(range(len(self.up))):
            x = self.join[k](torch.cat([kept[k], self.up[k](x)], 1))
        return self.out(x)


def unet():
    return UNet(), torch.randn(2, 3, 96, 96), torch.randint(4, (2, 96, 96))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm, self.out = nn.Embedding(2000, 128), nn.LSTM(128, 256, batch_first=True), nn.Linear(256, 2000)

    def forward(self, x):
        return self.out(self.lstm(self.words(x))[0])


def lstm():
    return Lstm(), torch.randint(2000, (16, 32)), torch.randint(2000, (16, 32))


CASES = {f.__name__: f for f in (mlp, mobilenet_v3_small, resnet18, bert_base_3l, gpt2_2l, gpt2, unet, lstm)}


def loss_of(out, label):
    return F.cross_entropy(out.flatten(0, -2), label.flatten()) if out.dim() < 4 else F.cross_entropy(out, label)


def made(case, system, low):
    """A function that makes a step."""
    torch.manual_seed(0)
    net, x, label = CASES[case]()
    fused = system in ("eager", "weft_dynamo")
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=fused)
    if system == "weft":
        import weft
        step = weft.train_step(net, loss_of, optimizer, (x, label), precision="bf16" if low else None)
        return lambda: step(x, label)
    update, f = optimizer.step, net
    if system == "weft_dynamo":
        from weft import dynamo
        f = torch.compile(net, backend=dynamo.backend)
    if system == "inductor":
        f, update = torch.compile(net), torch.compile(optimizer.step)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16) if low else contextlib.nullcontext():
            loss = loss_of(f(x), label)
        loss.backward()
        update()
    return step


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", help=", ".join(CASES))
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.5)
    p.add_argument("--bf16", action="store_true")
    p.add_argument("--systems", default="eager,inductor,weft_dynamo,weft")
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    for case in args.names or CASES:
        torch._dynamo.reset()
        calls, first, least = {}, {}, {}
        for system in args.systems.split(","):
            began = time.perf_counter()
            calls[system] = made(case, system, args.bf16)
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
