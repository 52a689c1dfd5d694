"""Caches of fewer bits, and rows with positions of their own, of language models of transformers."""
import os

import pytest
import weft

torch = pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.24")
if not weft.has_llvm():
    pytest.skip("weft_llvm.so is not there", allow_module_level=True)
from test_transformers import MASK, MODELS, PROMPTS, greedy_of_eager, model_of  # noqa: E402

import weft.transformers  # noqa: E402
from weft.transformers import WeftConfig, WeftExporter  # noqa: E402
from weft.transformers.entries import RowStep, cached_shapes  # noqa: E402

FEW = ("llama", "mistral", "gpt2", "qwen2_moe")  # all of them in the night
NO_POSITIONS = ("bloom",)


def exported(model, **options):
    return WeftExporter().export_for_generation(model, {"input_ids": PROMPTS}, WeftConfig(max_length=48, chunk=4, **options))


@pytest.fixture(scope="module")
def llama():
    return model_of("llama")


@pytest.fixture(scope="module")
def lm(llama):
    """Three rows."""
    return WeftExporter().export_for_generation(llama, None, WeftConfig(max_length=48, chunk=4, batch=3, continuous=True))


@pytest.mark.parametrize("name", [n for n in MODELS if n not in NO_POSITIONS] if os.environ.get("WEFT_ALL_MODELS") else FEW)
def test_greedy(name):
    """generate with prompts of different lengths, each of which begins at position 0."""
    model = model_of(name)
    got = exported(model, continuous=True).generate(PROMPTS, attention_mask=MASK, max_new_tokens=32)
    torch.testing.assert_close(got, greedy_of_eager(model, PROMPTS, MASK, 32))


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("cache, dtype", [("f16", "f16"), ("bf16", "bf16"), ("int8", "i8")])
def test_caches(llama, cache, dtype, continuous):
    """The logits of PyTorch with the same rounding of keys and values; not those of an exact cache."""
    compiled = exported(llama, cache=cache, continuous=continuous)
    state = {s.name: s for s in compiled.program.state_info}
    assert state["keys_0"].dtype == state["values_1"].dtype == dtype and ("keys_scale_0" in state) == (cache == "int8")
    with torch.no_grad():
        step = RowStep(llama, cached_shapes(llama, 2), 2, 48, cache)
        rows = [PROMPTS[0, 4:], PROMPTS[1]]
        for row, ids in enumerate(rows):
            for first in range(0, len(ids) - 1, 4):
                step(ids[None, first:min(first + 4, len(ids) - 1)], torch.tensor(first), torch.tensor(row))
        wanted = step(PROMPTS[:, -1:], torch.tensor([4, 8]))
        exact = llama(PROMPTS, attention_mask=MASK, position_ids=(MASK.cumsum(1) - 1).clamp(min=0)).logits[:, -1]
    if continuous:
        for row, ids in enumerate(rows):
            compiled.prefill(row, ids[:-1])
        got = compiled.decode(PROMPTS[:, -1], torch.tensor([4, 8]))
    else:
        compiled(PROMPTS[:, :-1], attention_mask=MASK[:, :-1])
        got = compiled._decode(PROMPTS[:, -1:], torch.tensor(8), torch.tensor([4, 0]))
    error = (wanted - exact).norm() / exact.norm()
    assert 1e-5 < error < (0.1 if cache == "int8" else 0.02)
    assert (got - wanted).norm() / wanted.norm() < 0.1 * error


def test_a_cache_of_zeros_and_large_numbers():
    """Rows of zeros have the scale 0; a magnitude stays to 8 bits of the largest one beside it."""
    from weft.transformers.entries import Stored
    stored = Stored(torch.zeros(1, 1, 4, 8, dtype=torch.int8), torch.zeros(1, 1, 4, 1), torch.float32)
    new = torch.zeros(1, 1, 3, 8)
    new[0, 0, 1] = torch.tensor([1e30, -1e30, 3, 0, 5e29, 0, 0, 0])
    new[0, 0, 2] = torch.tensor([1e-30, -1e-30, 3e-31, 0, 0, 0, 0, 0])
    stored.write(new, torch.tensor(1), None)
    got = stored.read(None)[:, :, 1:]
    assert (got - new).abs().amax(-1).le(new.abs().amax(-1) / 253).all() and torch.isfinite(got).all()


def test_rows_are_replaced(llama, lm):
    """Rows of different lengths beside each other, one of which ends and is replaced; to eager's tokens, and to the same bits alone."""
    lengths, steps = [9, 3, 6], 20
    prompts = [torch.randint(1, 97, (n,), generator=torch.Generator().manual_seed(n)) for n in (*lengths, 7)]

    def token(logits):
        return logits.argmax(-1)
    at, out = lengths[:], [[int(token(lm.prefill(row, prompts[row])))] for row in range(3)]
    ids, of = [tokens[-1] for tokens in out], [0, 1, 2]
    out.append([])
    for step in range(steps):
        if step == 8:  # row 1 ends, and the fourth prompt takes its place
            ids[1], at[1], of[1] = int(token(lm.prefill(1, prompts[3]))), 7, 3
            out[3].append(ids[1])
        ids = token(lm.decode(torch.tensor(ids), torch.tensor(at))).tolist()
        at = [a + 1 for a in at]
        for row in range(3):
            out[of[row]].append(ids[row])
    for prompt, tokens in zip(prompts, out):
        wanted = greedy_of_eager(llama, prompt[None], None, len(tokens))[0, len(prompt):]
        assert tokens == wanted.tolist()
    first = lm.decode(torch.tensor([5, 6, 7]), torch.tensor([9, 3, 6]))
    lm.prefill(1, prompts[3])
    assert torch.equal(lm.decode(torch.tensor([5, 1, 1]), torch.tensor([9, 7, 2]))[0], first[0])


@pytest.mark.parametrize("cache", [None, "int8"])
def test_copies(llama, cache):
    compiled = exported(llama, continuous=True, cache=cache)
    before = torch.randint(1, 97, (11,), generator=torch.Generator().manual_seed(0))
    rest = torch.tensor([3, 4, 5])
    compiled.prefill(0, before)
    wanted = compiled.prefill(0, rest, 8)
    compiled.prefill(1, torch.randint(1, 97, (30,)))
    compiled.copy(0, 1, 8)
    compiled.prefill(0, torch.randint(1, 97, (40,)))
    assert torch.equal(compiled.prefill(1, rest, 8), wanted)
    keys = compiled.program.state["keys_0"]
    compiled.copy(1, 0, 1)
    compiled.copy(1, 1, 5)
    compiled.copy(1, 0, 0)
    after = compiled.program.state["keys_0"]
    assert torch.equal(after[1], keys[1]) and torch.equal(after[0, :, :1], keys[1, :, :1]) and torch.equal(after[0, :, 2:], keys[0, :, 2:])


def test_few_bits(llama):
    """Weights and cache of few bits: the same tokens from one row and from several."""
    compiled = exported(llama, continuous=True, cache="int8", weights="int8", activations="dynamic")
    one = WeftExporter().export_for_generation(llama, None, WeftConfig(max_length=48, chunk=4, batch=1, continuous=True, cache="int8", weights="int8",
                                                                       activations="dynamic"))
    got = compiled.generate(PROMPTS, attention_mask=MASK, max_new_tokens=20)
    for row, first in ((0, 4), (1, 0)):
        torch.testing.assert_close(one.generate(PROMPTS[row:row + 1, first:], max_new_tokens=20)[0], got[row, first:])


def test_files(llama, lm, tmp_path):
    lm.save_pretrained(tmp_path)
    again = weft.transformers.load(tmp_path)
    assert again.continuous and again.batch == 3
    assert torch.equal(again.prefill(2, PROMPTS[1]), lm.prefill(2, PROMPTS[1]))


@pytest.mark.parametrize("call, message", [
    (lambda lm: lm.prefill(3, PROMPTS[1]), "there is no row 3: the model was exported with a batch of 3"),
    (lambda lm: lm.prefill(0, PROMPTS[1], 40), "at the position 40: expected at least one token, in the 48 positions"),
    (lambda lm: lm.prefill(0, PROMPTS[1], -1), "at the position -1"), (lambda lm: lm.prefill(0, PROMPTS[1][:0]), "expected at least one token"),
    (lambda lm: lm.prefill(0, PROMPTS), "ids of shape"), (lambda lm: lm.copy(0, -1, 3), "there is no row -1"),
    (lambda lm: lm.copy(0, 1, 49), "count=49: the cache has 48 positions"),
    (lambda lm: lm.decode(torch.ones(2, dtype=torch.int64), torch.tensor([1, 2, 3])), "dimension 0 is 2, expected 3"),
    (lambda lm: lm.decode(torch.ones(3, dtype=torch.int64), torch.tensor([1, 2, 48])), "48"),
])
def test_refused(lm, call, message):
    with pytest.raises((ValueError, weft.CheckError), match=message):
        call(lm)


def test_refused_exports(llama):
    with pytest.raises(ValueError, match="cache is None, 'f16', 'bf16', 'int8', not 'int4'"):
        WeftConfig(cache="int4")
    with pytest.raises(ValueError, match="continuous is True or False, not 1"):
        WeftConfig(continuous=1)
    with pytest.raises(ValueError, match="takes no position_ids: its rows cannot have positions of their own"):
        exported(model_of("bloom"), continuous=True)
    with pytest.raises(ValueError, match="end at the same position: export it with continuous=True"):
        exported(llama).prefill(0, PROMPTS[1])


def test_weights_of_several_entries_are_rounded_once(tmp_path):
    """Equal weights of several graphs of a session, and others of their shape, round to what they round to alone."""
    from weft.transformers.exporter import compiled
    torch.manual_seed(0)
    shared, other = torch.nn.Linear(64, 48, bias=False), torch.nn.Linear(64, 48, bias=False)
    twin = torch.nn.Linear(64, 48, bias=False)
    twin.load_state_dict(shared.state_dict())
    x = torch.randn(3, 64)
    programs = {name: torch.export.export(torch.nn.Sequential(m).eval(), (x,)) for name, m in (("a", shared), ("b", other), ("c", twin))}
    for kind in ("int4", "int8", "bf16"):
        alone = {name: weft.compile(weft.quantize(p, weights=kind))(x) for name, p in programs.items()}
        together = compiled(programs, WeftConfig(weights=kind))
        for name in programs:
            assert torch.equal(together.entries[name](x), alone[name])
        assert torch.equal(alone["a"], alone["c"]) and not torch.equal(alone["a"], alone["b"])
