"""torch.compile(backend="weft"): flex_attention, beside float64."""
import warnings

import pytest

torch = pytest.importorskip("torch")
flex = pytest.importorskip("torch.nn.attention.flex_attention")
import weft
from weft import dynamo

pytestmark = [pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there"), pytest.mark.usefixtures("fresh")]
ROWS, HEADS, KEYS = 130, 4, 150
SLOPES, TABLE, DOCUMENT, LENGTHS = torch.linspace(0, 1, HEADS), torch.linspace(-2, 2, HEADS * 300).reshape(HEADS, 300), torch.arange(KEYS) // 40, torch.tensor([7, 120])
SCORES = {
    "none": None,
    "distance": lambda s, b, h, i, j: s + 0.1 * (j - i),
    "alibi": lambda s, b, h, i, j: s - SLOPES[h] * (i - j).abs(),
    "cap": lambda s, b, h, i, j: 5 * torch.tanh(s / 5),
    "table": lambda s, b, h, i, j: s + TABLE[h, i - j + 150],
}
MASKS = {
    "none": None,
    "causal": lambda b, h, i, j: i >= j,
    "window": lambda b, h, i, j: (i >= j) & (i - j < 20),
    "prefix": lambda b, h, i, j: (i >= j) | (j < 30),
    "documents": lambda b, h, i, j: DOCUMENT[i] == DOCUMENT[j],
    "lengths": lambda b, h, i, j: j < LENGTHS[b],
    "nothing": lambda b, h, i, j: j < i - 100,
}


def cases():
    yield from (("none", m, 1) for m in MASKS)
    yield from ((s, "causal", 2) for s in SCORES)


@pytest.mark.parametrize("score,mask,shared", list(cases()))
def test_values(score, mask, shared):
    torch.manual_seed(0)
    q = torch.randn(2, HEADS, ROWS, 24)
    k, v = (torch.randn(2, HEADS // shared, KEYS, w) for w in (24, 40))
    blocks = MASKS[mask] and flex.create_block_mask(MASKS[mask], 2, None, ROWS, KEYS, device="cpu")

    def f(q, k, v):
        return flex.flex_attention(q, k, v, score_mod=SCORES[score], block_mask=blocks, enable_gqa=shared > 1)
    fast = torch.compile(f, backend=dynamo.backend, options={"fallback": False})
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch: eager mode stores all scores
        want, got = f(q.double(), k.double(), v.double()), fast(q, k, v)
    torch.testing.assert_close(got, want.float())
