"""Steps of training of many models, beside PyTorch's: train_models.py [NAME...] [--steps N]

Each model makes ten steps with AdamW and with SGD, from equal parameters: by weft.train_step and by PyTorch in float32, and by PyTorch in float64.
For losses, and for each parameter, buffer and state of the optimizer, printed is the largest distance of Weft's from float64's, in multiples of
PyTorch's own in float32, of which 1e-7 of the largest element is the least that counts. PyTorch's own is the largest of three orders of summation:
with oneDNN, without, and with the samples the other way round. One of them is not enough: where rounding decides the sign of what a ReLU gets, a
single run jumps by a factor of 100. Ends with 1 if a multiple is above 8. Needs torchvision and
transformers; nightly."""
import argparse
import copy
import sys
import time
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

import weft

warnings.filterwarnings("ignore")
MOST, FLOOR = 8.0, 1e-7


class Of(nn.Module):
    """One result of a module."""

    def __init__(self, net, name=None, **fixed):
        super().__init__()
        self.net, self.name, self.fixed = net, name, fixed

    def forward(self, *x):
        out = self.net(*x, **self.fixed)
        return out if self.name is None else getattr(out, self.name) if isinstance(self.name, str) else out[self.name]


def vision(name, size=64, **options):
    def make():
        import torchvision
        net = getattr(torchvision.models, name)(num_classes=10, **options)
        return net, (torch.randn(4, 3, size, size),), torch.randint(10, (4,))
    return make


def segmented():
    import torchvision
    net = torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)
    return Of(net, None), (torch.randn(2, 3, 32, 32),), torch.randint(5, (2, 32, 32))


SMALL = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=64)


def words(kind, name="logits", **options):
    def make():
        import transformers
        config = getattr(transformers, kind[0])(**{**SMALL, **options})
        config.use_cache = False
        net = getattr(transformers, kind[1])(config)
        return Of(net, name), (torch.randint(99, (2, 12)),), torch.randint(99, (2, 12))
    return make


def images(kind, **options):
    def make():
        import transformers
        config = getattr(transformers, kind[0])(image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                                intermediate_size=48, num_labels=10, **options)
        return Of(getattr(transformers, kind[1])(config), "logits"), (torch.randn(4, 3, 32, 32),), torch.randint(10, (4,))
    return make


def speech():
    import transformers
    config = transformers.Wav2Vec2Config(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, conv_dim=(16, 16, 16),
                                         conv_stride=(5, 2, 2), conv_kernel=(10, 3, 3), num_feat_extract_layers=3, num_conv_pos_embeddings=8,
                                         num_conv_pos_embedding_groups=4, vocab_size=20, apply_spec_augment=False)
    return Of(transformers.Wav2Vec2ForCTC(config), "logits"), (torch.randn(2, 400),), torch.randint(20, (2, 19))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.words, self.rnn, self.out = nn.Embedding(50, 24), kind(24, 32, 2, batch_first=True), nn.Linear(32, 50)

    def forward(self, x):
        return self.out(self.rnn(self.words(x))[0])


class Graphs(nn.Module):
    """Two layers of graph convolution: means over neighbours."""

    def __init__(self):
        super().__init__()
        self.own = nn.ModuleList([nn.Linear(8, 16), nn.Linear(16, 5)])
        self.of = nn.ModuleList([nn.Linear(8, 16), nn.Linear(16, 5)])

    def forward(self, x, source, target):
        ones = torch.ones_like(source, dtype=x.dtype)
        degree = torch.zeros(x.shape[0], dtype=x.dtype).index_add(0, target, ones).clamp(min=1)
        for k in range(2):
            near = torch.zeros_like(x).index_add(0, target, x[source]) / degree[:, None]
            x = self.own[k](x) + self.of[k](near)
            x = x.relu() if k == 0 else x
        return x


class UNet(nn.Module):
    """A network of diffusion: noise from an image and a time."""

    def __init__(self):
        super().__init__()
        block = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.SiLU())
        self.time, self.begin, self.down, self.up, self.out = nn.Linear(8, 32), block(3, 16), block(16, 32), block(48, 16), nn.Conv2d(16, 6, 3, padding=1)

    def forward(self, x, t):
        x = self.begin(x)
        y = self.down(F.avg_pool2d(x, 2)) + self.time(t)[:, :, None, None]
        return self.out(self.up(torch.cat([x, F.interpolate(y, scale_factor=2.0)], 1)))


class Sequence(nn.Module):
    """An encoder of PyTorch's, with a decoder that attends to it."""

    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(50, 32), nn.Linear(32, 50)
        self.net = nn.Transformer(32, 4, 1, 1, 48, dropout=0.0, batch_first=True)

    def forward(self, x, y):
        return self.out(self.net(self.words(x), self.words(y)))


def own(make, *inputs, label):
    return lambda: (make(), tuple(f() for f in inputs), label())


tokens = lambda: torch.randint(50, (4, 10))
MODELS = {
    **{name: vision(name) for name in ("resnet18", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1", "mnasnet0_5", "efficientnet_b0",
                                       "regnet_y_400mf", "densenet121", "resnext50_32x4d")},
    "alexnet": vision("alexnet"), "lraspp": segmented,
    "bert": words(("BertConfig", "BertForMaskedLM")), "distilbert": words(("DistilBertConfig", "DistilBertForMaskedLM"), dim=32, n_layers=2, n_heads=4, hidden_dim=48),
    "gpt2": words(("GPT2Config", "GPT2LMHeadModel"), n_embd=32, n_layer=2, n_head=4, n_positions=64),
    "llama": words(("LlamaConfig", "LlamaForCausalLM")), "opt": words(("OPTConfig", "OPTForCausalLM"), ffn_dim=48, word_embed_proj_dim=32),
    "gpt_neox": words(("GPTNeoXConfig", "GPTNeoXForCausalLM")), "albert": words(("AlbertConfig", "AlbertForMaskedLM"), embedding_size=16),
    "vit": images(("ViTConfig", "ViTForImageClassification")), "wav2vec2": speech,
    "lstm": own(lambda: Recurrent(nn.LSTM), tokens, label=tokens), "gru": own(lambda: Recurrent(nn.GRU), tokens, label=tokens),
    "graph": own(Graphs, lambda: torch.randn(30, 8), lambda: torch.randint(30, (90,)), lambda: torch.randint(30, (90,)), label=lambda: torch.randint(5, (30,))),
    "unet": own(UNet, lambda: torch.randn(2, 3, 16, 16), lambda: torch.randn(2, 8), label=lambda: torch.randint(6, (2, 16, 16))),
    "transformer": own(Sequence, tokens, tokens, label=tokens)}
RULES = {"AdamW": lambda p: torch.optim.AdamW(p, lr=1e-3), "SGD": lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9)}


def loss_of(out, label):
    if isinstance(out, dict):
        out = out["out"]
    return F.cross_entropy(out.flatten(0, -2), label.flatten()) if out.dim() == 3 else F.cross_entropy(out, label)


def made(name):
    torch.manual_seed(0)
    net, x, label = MODELS[name]()
    for m in net.modules():  # whose numbers differ
        if isinstance(m, nn.Dropout):
            m.p = 0.0
        for what in ("dropout_p", "attention_dropout", "dropout", "activation_dropout"):
            if isinstance(getattr(m, what, None), float):
                setattr(m, what, 0.0)
    config = getattr(getattr(net, "net", None), "config", None)
    for what in vars(config) if config is not None else ():
        if ("drop" in what or "pdrop" in what) and isinstance(getattr(config, what), float):
            setattr(config, what, 0.0)
    return net.train(), x, label


def cast(x):
    return tuple(t.double() if t.is_floating_point() else t for t in x)


def eager(net, optimizer, x, label, steps):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(net(*x), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def tensors(net, optimizer, losses):
    """By name: losses, parameters, buffers, states."""
    out = {"loss": losses, **{n: t.detach() for n, t in net.state_dict().items()}}
    for n, p in net.named_parameters():
        out |= {f"{n}.{k}": v for k, v in optimizer.state.get(p, {}).items() if isinstance(v, torch.Tensor)}
    return {n: t.double() for n, t in out.items() if t.is_floating_point() and t.numel()}


def worst(ours, theirs, exact):
    """The largest multiple, and the tensor's name; of losses the multiple."""
    def multiple(n):
        floor = FLOOR * float(exact[n].abs().max())
        own = max(*(float((t[n] - exact[n]).abs().max()) for t in theirs), floor)
        return float((ours[n] - exact[n]).abs().max()) / own if own else float(ours[n].abs().max())
    assert all(t.keys() == exact.keys() for t in (ours, *theirs))
    every = {n: multiple(n) for n in exact}
    name = max(every, key=lambda n: every[n])
    return every[name], name, every["loss"]


def beside(name, rule, steps):
    net, x, label = made(name)
    runs = {}
    same = all(len(t) == len(label) for t in x)  # samples, whose order is no matter
    for how in ("weft", "f32", "native", "turned", "f64"):
        twin, given, to = copy.deepcopy(net), x, label
        if how == "f64":
            twin, given = twin.double(), cast(x)
        if how == "turned" and same:
            given, to = tuple(t.flip(0) for t in x), label.flip(0)
        optimizer = RULES[rule](twin.parameters())
        if how == "weft":
            began = time.perf_counter()
            step = weft.train_step(twin, loss_of, optimizer, (*given, label), check=False)
            took = time.perf_counter() - began
            losses = torch.stack([step(*given, label).clone() for _ in range(steps)])
        else:
            with torch.backends.mkldnn.flags(enabled=how != "native"):
                losses = eager(twin, optimizer, given, to, steps)
        runs[how] = tensors(twin, optimizer, losses)
    losses = runs["weft"]["loss"]
    return (*worst(runs["weft"], [runs[k] for k in ("f32", "native", "turned")], runs["f64"]), took, float(losses[0]), float(losses[-1]))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", help=", ".join(MODELS))
    p.add_argument("--steps", type=int, default=10)
    a = p.parse_args()
    torch.set_num_threads(1)
    bad = 0
    print("| model | optimizer | losses, first to last | losses, multiple | state, multiple | of which tensor | seconds to compile |\n|---|---|---|---|---|---|---|")
    for name in a.names or MODELS:
        for rule in RULES:
            try:
                most, which, losses, took, first, last = beside(name, rule, a.steps)
            except Exception as e:  # the others go on
                print(f"| {name} | {rule} | {type(e).__name__}: {str(e).splitlines()[0][:150]} | | | | |", flush=True)
                bad += 1
                continue
            bad += most > MOST
            print(f"| {name} | {rule} | {first:.3f} to {last:.3f} | {losses:.2f} | {most:.2f}{' **above**' if most > MOST else ''} | {which} | {took:.1f} |", flush=True)
    print(f"{2 * len(a.names or MODELS)} runs, {bad} failed or above {MOST:g}")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
