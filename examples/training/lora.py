"""LoRA of a GPT-2 whose own weights stay as they are, packed in bf16: lora.py FOLDER

The step of training becomes a shared object: parameters of the adapter are its state, the weights of the base are constants, which are
packed once, when the file is made. The adapter is saved alone. Then it is put on the base again, and the text it learned is sampled."""
import pathlib
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

import weft

TEXT = "the adapter learns this sentence, and the base does not change. "
RANK, LENGTH, SCALE, STEPS = 8, 32, 2.0, 500


class Adapted(nn.Module):
    """A layer of the base, and a product of two small matrices beside it, in f32."""

    def __init__(self, base):
        super().__init__()
        self.base = base
        columns, rows = base.weight.shape
        self.lora_a = nn.Parameter(torch.randn(columns, RANK) / columns ** 0.5)
        self.lora_b = nn.Parameter(torch.zeros(RANK, rows))

    def forward(self, x):
        return self.base(x) + (SCALE * (x.float() @ self.lora_a @ self.lora_b)).to(x.dtype)


class Model(nn.Module):
    """A GPT-2 of bytes with adapters at attention and at the layers behind it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        config = GPT2Config(vocab_size=128, n_positions=128, n_embd=64, n_layer=2, n_head=4, initializer_range=0.1, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
        self.gpt = GPT2LMHeadModel(config).to(torch.bfloat16).requires_grad_(False)
        for block in self.gpt.transformer.h:
            block.attn.c_attn, block.attn.c_proj = Adapted(block.attn.c_attn), Adapted(block.attn.c_proj)
            block.mlp.c_fc, block.mlp.c_proj = Adapted(block.mlp.c_fc), Adapted(block.mlp.c_proj)

    def forward(self, tokens):
        return self.gpt(tokens, use_cache=False).logits.float()


def loss_of(logits, next_tokens):
    return F.cross_entropy(logits.flatten(0, 1), next_tokens.flatten())


def batch(n, seed):
    """Pieces of the text, and the same one letter on."""
    text = torch.tensor(list((TEXT * 3).encode()))
    start = torch.randint(len(TEXT), (n,), generator=torch.Generator().manual_seed(seed))
    pieces = torch.stack([text[s:s + LENGTH + 1] for s in start])
    return pieces[:, :-1].contiguous(), pieces[:, 1:].contiguous()


def main(folder):
    net = Model()
    trained = [p for p in net.parameters() if p.requires_grad]
    step = weft.train_step(net, loss_of, torch.optim.AdamW(trained, lr=1e-2), batch(8, 0), check=False)
    step.save(folder / "lora.so")
    base = sum(p.numel() for p in net.parameters() if not p.requires_grad)
    print(f"base {base:,} weights, adapter {sum(p.numel() for p in trained):,}, file {(folder / 'lora.so').stat().st_size:,} bytes")

    model = weft.load(folder / "lora.so")  # from here on nothing of PyTorch's trains
    train = model.entries["step"]
    for k in range(STEPS):
        loss = train(*batch(8, k), torch.tensor(1e-2 * (1 - k / STEPS), dtype=torch.float64))
        if k % 100 == 0 or k == STEPS - 1:
            print(f"step {k + 1}: loss {float(loss):.3f}")
    adapter = {n: torch.as_tensor(v).clone() for n, v in model.state.items() if ".lora_" in n and not n.startswith(("state.", "optimizer."))}
    save_file(adapter, folder / "adapter.safetensors")
    print(f"adapter.safetensors: {len(adapter)} tensors, {(folder / 'adapter.safetensors').stat().st_size:,} bytes")

    net = Model()
    missing, unknown = net.load_state_dict(load_file(folder / "adapter.safetensors"), strict=False)
    assert not unknown and not any("lora" in n for n in missing)
    size = torch.export.Dim("length", min=2, max=LENGTH)
    sample = weft.compile(net.eval(), (torch.zeros(1, 8, dtype=torch.long),), dynamic_shapes=({1: size},))
    tokens = torch.tensor([list(TEXT[:12].encode())])
    while tokens.shape[1] < len(TEXT):
        tokens = torch.cat([tokens, sample(tokens[:, -LENGTH:])[:, -1].argmax(-1, keepdim=True)], 1)
    print(bytes(tokens[0].tolist()).decode())


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
