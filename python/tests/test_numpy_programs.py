"""The NumPy programs of bench/numpy_programs.py by torch.compile(backend="weft"), beside NumPy itself."""
import os
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import weft

SOURCE = os.environ.get("WEFT_SOURCE")
if not SOURCE:
    pytest.skip("WEFT_SOURCE names no checkout", allow_module_level=True)
sys.path.insert(0, os.path.join(SOURCE, "bench"))
from numpy_programs import PROGRAMS  # noqa: E402

pytestmark = [pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there"),
              pytest.mark.filterwarnings("ignore:invalid value encountered", "ignore:Mean of empty slice")]


@pytest.fixture(autouse=True)
def doubles():
    """PyTorch's fftfreq, and means of its integers, have its default dtype, where NumPy has f64."""
    torch._dynamo.reset()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
    torch._dynamo.reset()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name):
    function, make = PROGRAMS[name]
    fast = torch.compile(function, backend="weft")
    symbolic = list(PROGRAMS).index(name) % 4 == 0 or os.environ.get("WEFT_TEST_LONG")
    for n in (1000, 13) if symbolic else (1000,):   # the second size makes sizes symbolic
        args = make(np.random.default_rng(n), n)
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        want, got = function(*args), fast(*args)
        for a, before in zip(args, copies):
            assert np.array_equal(a, before)
        want, got = (x if isinstance(x, tuple) else (x,) for x in (want, got))
        assert len(want) == len(got)
        for w, g in zip(want, got):
            assert np.asarray(g).dtype == np.asarray(w).dtype
            assert np.asarray(g).shape == np.asarray(w).shape
            np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-9)
