"""weft.compile(..., weights_from=): weights of files in place of the model's. A GGUF file of a Llama as llama.cpp's converter writes it."""
import os
import struct

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import weft

pytestmark = pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there")
F32, Q8_0, U32, STRING, ALIGN = 0, 8, 4, 8, 32


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def q8_0(x):
    """Blocks of 32 weights: a scale in f16 and bytes; and the numbers that they stand for."""
    rows = x.reshape(-1, 32)
    scale = (np.abs(rows).max(1, keepdims=True) / 127).astype(np.float16)
    q = np.rint(rows / np.maximum(scale, 1e-8)).clip(-127, 127).astype(np.int8)
    return np.concatenate([scale.view(np.uint8), q.view(np.uint8)], 1).tobytes(), (q * scale.astype(np.float32)).reshape(x.shape)


def write_gguf(path, meta, tensors):
    """tensors: name to (type, bytes, shape)."""
    head, data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta)), b""
    for key, value in meta.items():
        head += text(key) + (struct.pack("<I", STRING) + text(value) if isinstance(value, str) else struct.pack("<II", U32, value))
    for name, (kind, content, shape) in tensors.items():
        head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape[::-1]) + struct.pack("<IQ", kind, len(data))
        data += content + bytes(-len(content) % ALIGN)
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % ALIGN) + data)


def small(device="cpu"):
    with torch.device(device):
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 8)).eval()


def test_safetensors(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    model, x = small(), torch.randn(3, 64)
    model[2].running_mean += 1
    safetensors.save_file(model.state_dict(), tmp_path / "w.safetensors")
    safetensors.save_file({k: v.double() if v.is_floating_point() else v for k, v in model.state_dict().items()}, tmp_path / "d.safetensors")
    safetensors.save_file({"net." + k: v for k, v in model.state_dict().items()}, tmp_path / "n.safetensors")
    (tmp_path / "names.txt").write_text("* = net.*\n")
    other = small("meta")
    for given in ({"weights_from": tmp_path / "w.safetensors"}, {"weights_from": [str(tmp_path / "d.safetensors")]},
                  {"weights_from": tmp_path / "n.safetensors", "weight_names": tmp_path / "names.txt"}):
        program = torch.export.export(other, (x.to("meta"),))
        torch.testing.assert_close(weft.compile(program, **given)(x), model(x), rtol=1e-5, atol=1e-5)
    with pytest.raises(weft.Error, match="9 parameters of the model are not in it: 0.weight"):
        weft.compile(program, weights_from=tmp_path / "n.safetensors", weight_names=None)
    with pytest.raises(ValueError, match="weights_from"):
        weft.compile(program, weight_names=tmp_path / "names.txt")
    with pytest.raises(TypeError, match="a path or a list of paths"):
        weft.compile(program, weights_from=3)


def interleaved(w, heads):
    """Rows of heads as llama.cpp's converter orders those of Llama's queries and keys."""
    return w.reshape(heads, 2, -1, w.shape[-1]).swapaxes(1, 2).reshape(w.shape)


def gguf_of(path, model, config):
    """Writes the file; matrices of the layers become Q8_0, in the model too."""
    meta = {"general.architecture": "llama", "llama.attention.head_count": config.num_attention_heads,
            "llama.attention.head_count_kv": config.num_key_value_heads}
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
             "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
             "post_attention_layernorm": "ffn_norm"}
    whole = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    tensors = {}
    for name, p in model.named_parameters():
        w = p.detach().numpy()
        if name in whole:
            tensors[whole[name]] = (F32, w.tobytes(), w.shape)
            continue
        _, _, layer, rest = name.split(".", 3)
        short = names[rest.removesuffix(".weight")]
        if w.ndim == 2:
            _, decoded = q8_0(w)
            p.data = torch.from_numpy(decoded)
            w = interleaved(w, heads[short]) if short in heads else w
            content, kind = q8_0(w)[0], Q8_0
        else:
            content, kind = w.tobytes(), F32
        tensors[f"blk.{layer}.{short}.weight"] = (kind, content, w.shape)
    write_gguf(path, meta, tensors)


@pytest.mark.parametrize("tied", [False, True])
def test_llama_of_gguf(tmp_path, tied):
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                      vocab_size=100, max_position_embeddings=64, tie_word_embeddings=tied)
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval()
    gguf_of(tmp_path / "m.gguf", model, config)

    class Logits(torch.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, ids):
            return self.inner(input_ids=ids, use_cache=False).logits
    ids = torch.randint(0, 100, (2, 9))
    torch.manual_seed(1)
    program = torch.export.export(Logits(transformers.LlamaForCausalLM(config).eval()), (ids,))
    want = model(input_ids=ids, use_cache=False).logits
    exact = weft.compile(program, weights_from=tmp_path / "m.gguf", activations="exact")(ids)
    torch.testing.assert_close(exact, want, rtol=1e-4, atol=1e-5)
    rounded = weft.compile(program, weights_from=tmp_path / "m.gguf")(ids)
    assert not torch.equal(rounded, exact)
    assert (rounded - want).abs().max() < 0.05 * want.abs().max()


def test_warnings(tmp_path):
    program = torch.export.export(small("meta"), (torch.zeros(1, 64, device="meta"),))
    with pytest.warns(UserWarning, match="has no values of .* weights.*weights_from"):
        weft.compile(program)
    path = tmp_path / "m.gguf"
    write_gguf(path, {}, {"0.weight": (F32, bytes(4 * 64 * 64), (64, 64)), "other": (F32, bytes(4), (1,))})
    program = torch.export.export(torch.nn.Sequential(torch.nn.Linear(64, 64, bias=False)), (torch.zeros(1, 64),))
    with pytest.warns(UserWarning, match="1 weight is of no parameter of the model: other"):
        weft.compile(program, weights_from=path)


def test_rules_stand_before_those_that_are_known(tmp_path):
    path = tmp_path / "m.gguf"
    write_gguf(path, {"general.architecture": "llama"}, {"token_embd.weight": (F32, bytes(4 * 12), (3, 4)), "special": (F32, bytes(16), (4,))})
    (tmp_path / "names.txt").write_text("model.norm.weight=special\n")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = torch.nn.ModuleDict({"embed_tokens": torch.nn.Embedding(3, 4), "norm": torch.nn.RMSNorm(4)})

        def forward(self, x):
            return self.model["norm"](self.model["embed_tokens"](x))
    program = torch.export.export(Model(), (torch.tensor([1]),))
    assert weft.compile(program, weights_from=path, weight_names=tmp_path / "names.txt")(torch.tensor([1])).abs().max() == 0
    with pytest.raises(weft.Error, match="output_norm.weight"):
        weft.compile(program, weights_from=path)


def test_damaged(tmp_path):
    path = tmp_path / "m.gguf"
    write_gguf(path, {}, {"0.weight": (Q8_0, bytes(34 * 128), (64, 64))})
    program = torch.export.export(torch.nn.Sequential(torch.nn.Linear(64, 64, bias=False)), (torch.zeros(1, 64),))
    weft.compile(program, weights_from=path)
    content = path.read_bytes()
    path.write_bytes(content[:-100])
    with pytest.raises(weft.Error, match="ends behind the end of the file"):
        weft.compile(program, weights_from=path)
    with pytest.raises(weft.Error, match=os.path.basename(path) + ".*no-such|no-such"):
        weft.compile(program, weights_from=tmp_path / "no-such.gguf")
