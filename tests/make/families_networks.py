"""Families of make_families.py that are networks: transformers of Hugging Face with random weights, mixtures of experts, scans of
state-space models. NETWORKS: name -> maker, as make_families.MAKERS."""
import torch
import torch.nn.functional as F
import transformers as T
from torch import nn

NETWORKS = {}
SMALL = dict(vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4)
BYTES = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)


class Named(nn.Module):
    """A network of transformers, whose operands have names; its logits, or else its last states."""

    def __init__(self, model, *names):
        super().__init__()
        self.model, self.names = model.eval(), names

    def forward(self, *x):
        y = self.model(**dict(zip(self.names, x)))
        return y.logits if hasattr(y, "logits") else y.last_hidden_state


def network(f):
    NETWORKS[f.__name__] = f
    return f


def tokens(*shape):
    return torch.randint(3, 40, shape)


def padded():
    mask = torch.ones(2, 7, dtype=torch.long)
    mask[1, 5:] = 0
    return tokens(2, 7), mask


@network
def gpt2():
    config = T.GPT2Config(vocab_size=40, n_positions=16, n_embd=16, n_layer=2, n_head=4, use_cache=False, **BYTES)
    return Named(T.GPT2LMHeadModel(config), "input_ids", "attention_mask"), padded(), {}


@network
def llama():
    config = T.LlamaConfig(**SMALL, num_key_value_heads=2, max_position_embeddings=32, use_cache=False)
    return Named(T.LlamaForCausalLM(config), "input_ids", "attention_mask"), padded(), {}


@network
def mixtral():
    config = T.MixtralConfig(**SMALL, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=32,
                             use_cache=False)
    return Named(T.MixtralForCausalLM(config), "input_ids"), (tokens(2, 7),), dict(in_f64=False)


@network
def mamba():
    config = T.MambaConfig(vocab_size=40, hidden_size=8, state_size=4, num_hidden_layers=2, use_cache=False)
    return Named(T.MambaForCausalLM(config), "input_ids"), (tokens(2, 7),), {}


@network
def mamba2():
    config = T.Mamba2Config(vocab_size=40, hidden_size=8, state_size=4, num_heads=4, head_dim=4, n_groups=1, chunk_size=4,
                            num_hidden_layers=1, use_cache=False)
    return Named(T.Mamba2ForCausalLM(config), "input_ids"), (tokens(2, 7),), {}


@network
def t5():
    config = T.T5Config(vocab_size=40, d_model=16, d_kv=4, d_ff=24, num_layers=1, num_heads=4, use_cache=False)
    return Named(T.T5ForConditionalGeneration(config), "input_ids", "decoder_input_ids"), (tokens(2, 7), tokens(2, 4)), {}


@network
def fnet():
    config = T.FNetConfig(vocab_size=40, hidden_size=16, intermediate_size=24, num_hidden_layers=2, max_position_embeddings=16)
    return Named(T.FNetModel(config), "input_ids"), (tokens(2, 7),), {}


@network
def deberta():
    """Attention by relative positions in buckets, both ways."""
    config = T.DebertaV2Config(**SMALL, max_position_embeddings=16, relative_attention=True, position_buckets=4,
                               pos_att_type=["c2p", "p2c"])
    return Named(T.DebertaV2Model(config), "input_ids", "attention_mask"), padded(), {}


@network
def whisper():
    config = T.WhisperConfig(vocab_size=40, num_mel_bins=6, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
                             decoder_attention_heads=2, d_model=16, encoder_ffn_dim=16, decoder_ffn_dim=16, max_source_positions=10,
                             max_target_positions=8, use_cache=False, decoder_start_token_id=1, **BYTES)
    return Named(T.WhisperModel(config), "input_features", "decoder_input_ids"), (torch.randn(1, 6, 20), tokens(1, 4)), {}


@network
def wav2vec2():
    config = T.Wav2Vec2Config(**SMALL, conv_dim=(8, 8), conv_stride=(4, 2), conv_kernel=(8, 3), num_feat_extract_layers=2,
                              num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2)
    return Named(T.Wav2Vec2Model(config), "input_values"), (torch.randn(2, 200),), {}


@network
def swin():
    config = T.SwinConfig(image_size=32, patch_size=4, embed_dim=8, depths=[2, 1], num_heads=[2, 2], window_size=4)
    return Named(T.SwinModel(config), "pixel_values"), (torch.randn(1, 3, 32, 32),), {}


class Experts(nn.Module):
    """Tokens go to the best two of four experts, in the order of experts, and come back with the router's weight."""

    def __init__(self, width=6, hidden=10, experts=4, best=2):
        super().__init__()
        self.router, self.best = nn.Linear(width, experts, bias=False), best
        self.up = nn.Parameter(torch.randn(experts, width, hidden) / 3)
        self.down = nn.Parameter(torch.randn(experts, hidden, width) / 3)

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        weight, expert = torch.topk(F.softmax(self.router(flat), -1), self.best, dim=-1)
        weight = weight / weight.sum(-1, keepdim=True)
        order = torch.argsort(expert.reshape(-1), stable=True)
        token, of = order // self.best, expert.reshape(-1)[order]
        h = F.silu(torch.bmm(flat[token][:, None], self.up[of]))
        y = torch.bmm(h, self.down[of])[:, 0] * weight.reshape(-1)[order][:, None]
        return torch.zeros_like(flat).index_add(0, token, y).reshape(x.shape), torch.bincount(of, minlength=4)


@network
def experts():
    return Experts(), (torch.randn(2, 5, 6),), {}


@network
def experts_dyn():
    dim = torch.export.Dim.DYNAMIC
    return Experts(), (torch.randn(2, 5, 6),), dict(dynamic=({0: dim, 1: dim},), at=(torch.randn(3, 4, 6),))


class StateSpace(nn.Module):
    """h' = a(t) h + b(t) x, y = c(t) h, whose a, b and c depend on x: by a scan or a loop."""

    def __init__(self, scan, width=4, states=3):
        super().__init__()
        self.scan, self.size = scan, nn.Parameter(torch.rand(width, states))
        self.step, self.into, self.out = nn.Linear(width, width), nn.Linear(width, states), nn.Linear(width, states)
        self.skip = nn.Parameter(torch.randn(width))

    def forward(self, x):
        step = F.softplus(self.step(x))[..., None]
        a, b = torch.exp(-step * self.size.exp()), step * self.into(x)[..., None, :] * x[..., None]
        return (self.scan(a, b) * self.out(x)[..., None, :]).sum(-1) + self.skip * x


def in_steps(a, b):
    h, all_h = torch.zeros_like(b[:, 0]), []
    for t in range(b.shape[1]):
        h = a[:, t] * h + b[:, t]
        all_h.append(h)
    return torch.stack(all_h, 1)


def in_logarithms(a, b):
    """Prefix sums of logarithms, as parallel forms without a scan have them."""
    total = a.log().cumsum(1)
    return torch.exp(total) * (b * torch.exp(-total)).cumsum(1)


@network
def selective_scan():
    return StateSpace(in_steps), (torch.randn(2, 9, 4),), {}


@network
def selective_scan_sums():
    return StateSpace(in_logarithms), (torch.randn(2, 9, 4),), {}


@network
def selective_scan_sums_dyn():
    dim = torch.export.Dim.DYNAMIC
    return StateSpace(in_logarithms), (torch.randn(2, 9, 4),), dict(dynamic=({0: dim, 1: dim},), at=(torch.randn(3, 6, 4),))


@network
def retention():
    """A recurrent matrix of states with a decay of each head, as RetNet and linear attention have it, in chunks."""
    class Retention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
            self.decay = nn.Parameter(torch.tensor([1.0, 2.0]))

        def forward(self, x):
            q, k, v = (f(x).unflatten(-1, (2, 4)).transpose(1, 2).unflatten(2, (3, 4)) for f in (self.q, self.k, self.v))
            g, i = torch.sigmoid(self.decay)[:, None, None], torch.arange(4, dtype=x.dtype)
            inside = torch.where(i[:, None] >= i, g ** (i[:, None] - i), torch.zeros_like(g))
            state, out = torch.zeros_like(k[:, :, 0].mT @ v[:, :, 0]), []
            for c in range(3):
                past = q[:, :, c] @ state * g ** (i[:, None] + 1)
                out.append((q[:, :, c] @ k[:, :, c].mT * inside) @ v[:, :, c] + past)
                state = state * g ** 4 + (k[:, :, c] * g ** (3 - i)[:, None]).mT @ v[:, :, c]
            return torch.cat(out, 2).transpose(1, 2).flatten(2)
    return Retention(), (torch.randn(2, 12, 8),), {}
