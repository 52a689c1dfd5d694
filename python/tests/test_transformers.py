"""Language models of transformers: greedy tokens of many architectures beside those of eager mode in float64, arguments, files."""
import json
import os
import threading

import pytest
import weft

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5.24")
if not weft.has_llvm():
    pytest.skip("weft_llvm.so is not there", allow_module_level=True)
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig, TextIteratorStreamer  # noqa: E402

import weft.transformers  # noqa: E402
from weft.transformers import WeftConfig, WeftExporter  # noqa: E402

USUAL = dict(vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=128, pad_token_id=0)
FULL = {**USUAL, "num_key_value_heads": 4}
GPT = dict(vocab_size=97, n_embd=32, n_layer=2, n_head=4, n_positions=128, pad_token_id=0)
EXPERTS = dict(num_experts_per_tok=2, num_local_experts=4, num_experts=4, moe_intermediate_size=24)
MODELS = {
    "llama": USUAL, "mistral": {**USUAL, "sliding_window": 8}, "qwen2": USUAL, "qwen3": {**USUAL, "head_dim": 16},
    "gemma": {**USUAL, "head_dim": 8}, "gemma2": {**USUAL, "head_dim": 8, "sliding_window": 8, "query_pre_attn_scalar": 8},
    "gemma3_text": {**USUAL, "head_dim": 8, "sliding_window": 8, "num_hidden_layers": 6, "query_pre_attn_scalar": 8},
    "phi": FULL, "phi3": {**USUAL, "sliding_window": 8}, "gpt2": GPT, "gptj": {**GPT, "rotary_dim": 4}, "gpt_neox": FULL,
    "gpt_bigcode": GPT, "opt": {**FULL, "ffn_dim": 48, "word_embed_proj_dim": 32},
    "bloom": dict(vocab_size=97, hidden_size=32, n_layer=2, n_head=4, pad_token_id=0),
    "falcon": {**FULL, "new_decoder_architecture": False, "multi_query": True}, "olmo": USUAL, "olmo2": USUAL, "smollm3": {**USUAL, "no_rope_layers": [1, 0]},
    "granite": USUAL, "cohere": USUAL, "cohere2": {**USUAL, "sliding_window": 8}, "starcoder2": {**USUAL, "sliding_window": 8},
    "stablelm": USUAL, "glm": {**USUAL, "head_dim": 8}, "nemotron": USUAL, "mixtral": {**USUAL, **EXPERTS},
    "qwen2_moe": {**USUAL, **EXPERTS, "shared_expert_intermediate_size": 24},
    "qwen3_moe": {**USUAL, **EXPERTS, "head_dim": 8}, "olmoe": {**USUAL, **EXPERTS}, "gpt_oss": {**USUAL, **EXPERTS, "head_dim": 8, "sliding_window": 8},
}
FEW = ("llama", "gemma2", "opt", "bloom", "qwen2_moe")  # all of them in the night
PROMPTS = torch.tensor([[0, 0, 0, 0, 5, 17, 42, 8, 96], [3, 14, 15, 92, 65, 35, 89, 79, 32]])
MASK = (PROMPTS != 0).long()


def model_of(name, **more):
    """With weights that make the tokens vary."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **{**MODELS[name], **more}), dtype=torch.float32).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.randn(p.shape) * (0.3 if p.dim() > 1 else 0.1) + (1 if p.dim() == 1 and "weight" in name else 0))
    model.generation_config = GenerationConfig(pad_token_id=0)
    return model


def greedy_of_eager(model, ids, mask, count):
    """In float64, except where transformers' own softmax in f32 makes NaN of the rows of padding (attention that is not SDPA's)."""
    model.set_experts_implementation("eager")
    exact = model if model.config._attn_implementation == "eager" else model.double()
    try:
        return exact.generate(input_ids=ids, attention_mask=mask, max_new_tokens=count, do_sample=False)
    finally:
        model.float()


@pytest.fixture(scope="module")
def llama():
    return model_of("llama")


@pytest.fixture(scope="module")
def lm(llama):
    """A batch of one."""
    return WeftExporter().export_for_generation(llama, {"input_ids": PROMPTS[:1]}, WeftConfig(max_length=48, chunk=4))


@pytest.mark.parametrize("name", MODELS if os.environ.get("WEFT_ALL_MODELS") else FEW)
def test_greedy(name):
    model = model_of(name)
    compiled = WeftExporter().export_for_generation(model, {"input_ids": PROMPTS}, WeftConfig(max_length=48, chunk=4))
    got = compiled.generate(PROMPTS, attention_mask=MASK, max_new_tokens=32)
    torch.testing.assert_close(got, greedy_of_eager(model, PROMPTS, MASK, 32))
    assert len(set(got[:, 9:].flatten().tolist())) > 1


def test_rows_of_one(llama, lm):
    """Prompts of 1 to 9 tokens, which end in chunks of 1 to 4, and zeros on the left."""
    for count in (1, 2, 4, 5, 9):
        ids = PROMPTS[1:, :count]
        torch.testing.assert_close(lm.generate(ids, max_new_tokens=12), greedy_of_eager(llama, ids, None, 12))
    torch.testing.assert_close(lm.generate(PROMPTS[:1], attention_mask=MASK[:1], max_new_tokens=12), greedy_of_eager(llama, PROMPTS[:1], MASK[:1], 12))


def test_logits(llama, lm):
    got = lm(PROMPTS[1:]).logits
    with torch.no_grad():
        torch.testing.assert_close(got, llama(PROMPTS[1:]).logits[:, -1:], rtol=1e-4, atol=1e-4)


def test_to_the_end_of_the_cache(llama, lm):
    ids = torch.randint(1, 97, (1, 48), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(lm.generate(ids, max_new_tokens=1), greedy_of_eager(llama, ids, None, 1))
    torch.testing.assert_close(lm.generate(ids[:, :40], max_new_tokens=9), greedy_of_eager(llama, ids[:, :40], None, 9))
    with pytest.raises(ValueError, match="40 tokens of input and 10 new ones need 49 positions of the cache, which has 48"):
        lm.generate(ids[:, :40], max_new_tokens=10)
    with pytest.raises(ValueError, match="49 tokens of input"):
        lm(torch.ones(1, 49, dtype=torch.int64))


@pytest.mark.parametrize("args, kwargs, message", [
    ((torch.zeros(1, 0, dtype=torch.int64),), {}, "input_ids is empty"),
    ((torch.ones(2, 3, dtype=torch.int64),), {}, "has 2 rows, but the model was exported with a batch of 1"),
    ((torch.ones(3, dtype=torch.int64),), {}, "expected a tensor of integers of shape"),
    ((torch.ones(1, 3),), {}, "expected a tensor of integers of shape"),
    ((torch.ones(1, 3, dtype=torch.int64),), {"attention_mask": torch.tensor([[1, 1, 0]])}, "row 0 is not zeros followed by ones"),
    ((torch.ones(1, 3, dtype=torch.int64),), {"attention_mask": torch.tensor([[0, 0, 0]])}, "row 0 is not zeros followed by ones"),
    ((torch.ones(1, 3, dtype=torch.int64),), {"attention_mask": torch.ones(1, 4)}, "attention_mask has the shape"),
    ((torch.ones(1, 3, dtype=torch.int64),), {"num_beams": 2}, "only supports"),
    ((torch.ones(1, 3, dtype=torch.int64),), {"num_return_sequences": 2, "do_sample": True}, "has 2 rows"),
    ((torch.ones(1, 3, dtype=torch.int64),), {"guidance_scale": 2.0}, "guidance_scale"),
    ((torch.ones(1, 3, dtype=torch.int64),), {"past_key_values": transformers.DynamicCache()}, "a cache of its own"),
    ((torch.ones(1, 3, dtype=torch.int64),), {"max_new_tokns": 2}, "max_new_tokns"),
    ((torch.full((1, 3), 97),), {}, "97"),
])
def test_refused(lm, args, kwargs, message):
    with pytest.raises((ValueError, weft.CheckError), match=message):
        lm.generate(*args, **kwargs)


def test_sampling(llama, lm):
    """With one seed the tokens of eager mode, through all processors."""
    options = dict(do_sample=True, temperature=0.7, top_k=20, top_p=0.9, repetition_penalty=1.3, no_repeat_ngram_size=3, max_new_tokens=24)
    for seed in range(3):
        torch.manual_seed(seed)
        got = lm.generate(PROMPTS[1:], **options)
        torch.manual_seed(seed)
        torch.testing.assert_close(got, llama.generate(PROMPTS[1:], **options))


def test_end_of_sequence(llama, lm):
    free = lm.generate(PROMPTS[1:], max_new_tokens=20)[0, 9:].tolist()
    end = free[6]
    got = lm.generate(PROMPTS[1:], max_new_tokens=20, eos_token_id=end)
    assert got[0, 9:].tolist() == free[:free.index(end) + 1]
    more = lm.generate(PROMPTS[1:], max_new_tokens=20, eos_token_id=end, min_new_tokens=12)
    torch.testing.assert_close(more, llama.generate(PROMPTS[1:], max_new_tokens=20, eos_token_id=end, min_new_tokens=12))


def test_scores(llama, lm):
    options = dict(max_new_tokens=5, return_dict_in_generate=True, output_scores=True, output_logits=True, repetition_penalty=1.5)
    got, expected = lm.generate(PROMPTS[1:], **options), llama.generate(PROMPTS[1:], **options)
    for name in ("scores", "logits"):
        torch.testing.assert_close(got[name], expected[name], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(got.sequences, expected.sequences)


@pytest.fixture(scope="module")
def tokenizer():
    """A token for each of 97 characters."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    letters = {chr(33 + k): k for k in range(93)} | {" ": 93, "ß": 94, "é": 95, "[UNK]": 96}
    made = Tokenizer(models.WordLevel(letters, unk_token="[UNK]"))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Split("", "isolated"), decoders.Fuse()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]", pad_token="!")


def test_streamer_and_stop_string(lm, tokenizer):
    ids = PROMPTS[1:]
    expected = lm.generate(ids, max_new_tokens=20)
    streamer = TextIteratorStreamer(tokenizer, skip_prompt=True, timeout=60)
    thread = threading.Thread(target=lm.generate, args=(ids,), kwargs={"max_new_tokens": 20, "streamer": streamer})
    thread.start()
    text = "".join(streamer)
    thread.join()
    assert text == tokenizer.decode(expected[0, 9:])
    stop = tokenizer.convert_ids_to_tokens(int(expected[0, 9 + 5]))
    stopped = lm.generate(ids, max_new_tokens=20, stop_strings=[stop], tokenizer=tokenizer)
    assert stopped[0].tolist() == expected[0, :stopped.shape[1]].tolist() and 10 <= stopped.shape[1] <= 15


def test_threads_take_turns(lm):
    expected, got = lm.generate(PROMPTS[1:], max_new_tokens=20), {}
    other = lm.clone()

    def run(k, model):
        got[k] = model.generate(PROMPTS[1:], max_new_tokens=20)
    threads = [threading.Thread(target=run, args=(k, m)) for k, m in enumerate([lm, lm, other, other])]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(got[k].tolist() == expected.tolist() for k in range(4))


@pytest.mark.parametrize("weights, activations, most, noise", [(None, "none", 4, 1e-5), ("f32", "none", 4, 1e-5), ("bf16", "none", 2.8, 0.01),
                                                                ("int8", "none", 1.3, 0.03), ("int4", "none", 0.9, 0.25), ("int4", "dynamic", 0.9, 0.25)])
def test_weights(tmp_path, weights, activations, most, noise):
    """Bytes of the file for each weight, and what rounding changes in the logits."""
    model = model_of("llama", tie_word_embeddings=False, hidden_size=128, intermediate_size=256)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(0.2 if p.dim() > 1 else 1)
    lm = weft.transformers.export(model, tmp_path / "m", {"input_ids": PROMPTS}, weights=weights, activations=activations, max_length=48, chunk=8)
    assert (tmp_path / "m" / "model.weights").stat().st_size < most * sum(p.numel() for p in model.parameters()) + 20000
    with torch.no_grad():
        expected, logits = model(PROMPTS[1:]).logits[0, -1], lm(PROMPTS, attention_mask=MASK).logits[1, 0]
    assert (logits - expected).norm() / expected.norm() < noise
    assert lm.generate(PROMPTS, attention_mask=MASK, max_new_tokens=4).shape == (2, 13)


def test_module_in_bf16(llama):
    model = model_of("llama").bfloat16()
    lm = WeftExporter().export_for_generation(model, None, WeftConfig(max_length=32))
    torch.testing.assert_close(lm(PROMPTS[1:]).logits, model(PROMPTS[1:]).logits[:, -1:].float(), rtol=0.05, atol=0.05)
    wide = WeftExporter().export_for_generation(model, None, WeftConfig(max_length=32, weights="f32"))
    torch.testing.assert_close(wide(PROMPTS[1:]).logits, model.float()(PROMPTS[1:]).logits[:, -1:], rtol=1e-4, atol=1e-4)


def test_folder(tmp_path, llama, lm, tokenizer):
    """Saved, moved, and loaded, by our function and by transformers' class; with the tokenizer's files of the model's folder."""
    llama.save_pretrained(tmp_path / "checkpoint")
    tokenizer.save_pretrained(tmp_path / "checkpoint")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "checkpoint")
    weft.transformers.export(model, tmp_path / "made", max_length=40, chunk=8)
    (tmp_path / "made").rename(tmp_path / "moved")
    assert {f.name for f in (tmp_path / "moved").iterdir()} >= {"export.json", "model.so", "model.weights", "config.json", "generation_config.json",
                                                                "tokenizer.json"}
    manifest = json.loads((tmp_path / "moved" / "export.json").read_text())
    assert manifest["export_format"] == "weft" and manifest["components"]["model"]["metadata"]["export_config"]["max_length"] == 40
    loaded = weft.transformers.load(tmp_path / "moved")
    torch.testing.assert_close(loaded.generate(PROMPTS[1:], max_new_tokens=8), lm.generate(PROMPTS[1:], max_new_tokens=8))
    loaded.save_pretrained(tmp_path / "moved")
    loaded.save_pretrained(tmp_path / "again")
    torch.testing.assert_close(weft.transformers.load(tmp_path / "again")(PROMPTS[1:]).logits, loaded(PROMPTS[1:]).logits)
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "again").decode([1, 2]) == tokenizer.decode([1, 2])
    (tmp_path / "moved" / "model.weights").unlink()
    with pytest.raises((OSError, weft.Error), match="model.weights"):
        weft.transformers.load(tmp_path / "moved")
    with pytest.raises(FileNotFoundError, match="no such folder"):
        weft.transformers.load(tmp_path / "absent")


def test_export_of_a_graph(tmp_path):
    """HfExporter.export: one graph, called by transformers' ExportedModel."""
    torch.manual_seed(0)
    config = AutoConfig.for_model("bert", vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
    model = transformers.AutoModel.from_config(config).eval()
    inputs = {"input_ids": PROMPTS, "attention_mask": MASK}
    exported = WeftExporter().export(model, dict(inputs), WeftConfig())
    with torch.no_grad():
        expected = model(**inputs)
    torch.testing.assert_close(exported(**inputs).last_hidden_state, expected.last_hidden_state, rtol=1e-4, atol=1e-5)
    exported.save_pretrained(tmp_path)
    again = transformers.exporters.ExportedModel.from_pretrained(tmp_path, trust_remote_code=True)
    torch.testing.assert_close(again(**inputs).pooler_output, expected.pooler_output, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options, message", [({"weights": "int3"}, "weights is None"), ({"max_length": 1}, "max_length=1"), ({"batch": 0}, "batch=0"),
                                              ({"chunk": 2.5}, "chunk=2.5")])
def test_options(options, message):
    with pytest.raises(ValueError, match=message):
        WeftConfig(**options)


def test_models_without_keys_and_values():
    mamba = AutoModelForCausalLM.from_config(AutoConfig.for_model("mamba", vocab_size=97, hidden_size=32, num_hidden_layers=2))
    with pytest.raises(ValueError, match="Mamba"):
        WeftExporter().export_for_generation(mamba, None, WeftConfig())
    bert = transformers.AutoModel.from_config(AutoConfig.for_model("bert", vocab_size=97, hidden_size=32, num_hidden_layers=1, num_attention_heads=4))
    both_ways = AutoModelForCausalLM.from_config(AutoConfig.for_model("bert", vocab_size=97, hidden_size=32, num_hidden_layers=1, num_attention_heads=4))
    with pytest.raises(ValueError, match="it may not be causal"):
        WeftExporter().export_for_generation(both_ways, None, WeftConfig())
    cpm = AutoModelForCausalLM.from_config(AutoConfig.for_model("cpmant", vocab_size=97, hidden_size=32, dim_ff=48, num_hidden_layers=1,
                                                                num_attention_heads=4, dim_head=8))
    with pytest.raises(ValueError, match="CpmAnt.*: it does not run with a static cache: IndexError"):
        WeftExporter().export_for_generation(cpm, None, WeftConfig())
    with pytest.raises(ValueError, match="its output has no logits"):
        WeftExporter().export_for_generation(bert, None, WeftConfig())
    t5 = transformers.T5ForConditionalGeneration(transformers.T5Config(vocab_size=97, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4))
    with pytest.raises(ValueError, match="expected a causal language model"):
        WeftExporter().export_for_generation(t5, None, WeftConfig())
