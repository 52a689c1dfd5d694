"""bench/survey.py, which writes docs/models.md: what counts as a result that agrees, and what the page makes of results."""
import importlib.util
import os

import pytest

torch = pytest.importorskip("torch")
SOURCE = os.environ.get("WEFT_SOURCE")
pytestmark = pytest.mark.skipif(not SOURCE, reason="WEFT_SOURCE names no checkout")


@pytest.fixture(scope="module")
def survey():
    spec = importlib.util.spec_from_file_location("survey", os.path.join(SOURCE, "bench/survey.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results(*outputs, grads=None, buffers=None):
    return [torch.tensor(o) for o in outputs], {n: torch.tensor(g) for n, g in (grads or {}).items()}, {n: torch.tensor(b) for n, b in (buffers or {}).items()}


@pytest.mark.parametrize("mine, wrong", [
    ([1.0, 2.0], None), ([1.0, 2.00001], None), ([1.0, 2.001], "outputs"), ([1.0, float("nan")], "outputs"), ([1.0, 2.0, 3.0], "outputs")])
def test_outputs(survey, mine, wrong):
    exact = results([1.0, 2.0])
    said = survey.compare((results(mine), results([1.0, 2.000001]), exact), False)
    assert said is None if wrong is None else wrong in said
    assert survey.compare((results(), exact, exact), False)  # none instead of one


def test_what_is_nan_in_both_agrees(survey):
    exact = results([1.0, float("nan"), float("inf")])
    assert survey.compare((exact, exact, exact), False) is None
    assert survey.compare((results([1.0, 0.0, float("inf")]), exact, exact), False)


def test_gradients_and_buffers(survey):
    exact = results([1.0], grads={"w": [1.0, 3.0]}, buffers={"mean": [0.5]})
    assert survey.compare((exact, exact, exact), True) is None
    assert "gradients" in survey.compare((results([1.0], grads={"w": [1.0, 3.1]}, buffers={"mean": [0.5]}), exact, exact), True)
    assert "other parameters" in survey.compare((results([1.0], buffers={"mean": [0.5]}), exact, exact), True)
    assert "buffers" in survey.compare((results([1.0], grads={"w": [1.0, 3.0]}, buffers={"mean": [0.6]}), exact, exact), True)


def test_without_float64_eager_mode_is_the_reference(survey):
    eager = results([1.0, 2.0])
    assert survey.compare((results([1.0, 2.0001]), eager, None), False) is None
    assert survey.compare((results([1.0, 2.01]), eager, None), False)


def test_the_page_tells_results_apart(survey):
    about = {"date": "today", "commit": "c0ffee", "torch": "2", "waiting": {"timm": ["later"]}}
    models = {"timm/good": dict.fromkeys(survey.WAYS, "yes"), "timm/half": {"file": "torch.export: no", "compile": "yes", "train": "refused: a | b"}}
    page = survey.page({"about": about, "models": models})
    assert "| timm | 1 of 1 | 2 of 2 | 1 of 2 |" in page  # what PyTorch refuses is not counted
    assert "These models work in all three ways (1 of 2):\n\ngood.\n" in page and "- **half**: file: torch.export: `no`; compile: yes; train: refused: `a | b`" in page and "later." in page
