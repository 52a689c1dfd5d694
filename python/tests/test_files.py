"""Model files: shared objects with entries, state and weights."""
import os
import pickle
import platform
import shutil

import numpy as np
import pytest

import weft

SOURCE = os.environ.get("WEFT_SOURCE")
pytestmark = pytest.mark.skipif(not SOURCE, reason="WEFT_SOURCE names no checkout")
linker = pytest.mark.skipif(platform.machine() != "x86_64" and not any(map(shutil.which, ("ld.lld", "ld.lld-19", "ld"))),
                            reason="there is no linker")


def data(name):
    return os.path.join(SOURCE, "tests/data", name)


def test_a_file_in_this_process():
    m = weft.compile(data("mlp.pt2"))
    assert m.inputs and m.outputs and m.name
    x = [np.zeros([n if isinstance(n, int) else 2 for n in t.shape], "f4") for t in m.inputs]
    m(*x)


@linker
def test_a_shared_object(tmp_path):
    path = tmp_path / "mlp.so"
    m = weft.compile(data("mlp.pt2"), path=path)
    x = [np.ones([n if isinstance(n, int) else 2 for n in t.shape], "f4") for t in m.inputs]
    want = weft.compile(data("mlp.pt2"))(*x)
    assert np.array_equal(m(*x), want)
    assert np.array_equal(weft.load(str(path))(*x), want)
    again = pickle.loads(pickle.dumps(m))
    assert np.array_equal(again(*x), want) and again.path == str(path)


@linker
@pytest.mark.parametrize("options", [{}, {"weights_file": 1}])
def test_a_file_that_is_replaced(tmp_path, options):
    """The models that were loaded before keep the old file."""
    path, models = tmp_path / "m.so", []
    x = np.zeros(3, "f4")
    for k in range(3):
        g = weft.trace(lambda x: x * 2 + np.full(3, k, "f4"), "f32[3]")
        models.append(g.compile(path=path, **options))
    models += [weft.load(path), weft.load(path)]
    assert [m(x)[0] for m in models] == [0, 1, 2, 2, 2]


@linker
@pytest.mark.parametrize("options", [{}, {"weights_file": 1}])
def test_a_pickle_by_value(tmp_path, options):
    m = weft.compile(data("mlp.pt2"), path=tmp_path / "mlp.so", **options)
    x = [np.ones([n if isinstance(n, int) else 2 for n in t.shape], "f4") for t in m.inputs]
    want = m(*x)
    m.by_value = True
    text = pickle.dumps(m)
    for name in os.listdir(tmp_path):
        os.remove(tmp_path / name)
    again = pickle.loads(text)
    assert np.array_equal(again(*x), want)
    assert np.array_equal(pickle.loads(pickle.dumps(again))(*x), want)
    with pytest.raises(TypeError, match="in memory"):
        pickle.dumps(weft.compile(data("mlp.pt2")))


def test_state():
    m = weft.compile(data("state.pt2"))
    assert len(m.state) == len(m.state_info) > 0
    before = {name: np.asarray(value) for name, value in m.state.items()}
    x = [np.ones([n if isinstance(n, int) else 2 for n in t.shape], _numpy(t)) for t in m.inputs]
    other = m.clone()
    m(*x)
    after = {name: np.asarray(value) for name, value in m.state.items()}
    assert any(not np.array_equal(before[n], after[n]) for n in before)
    assert all(np.array_equal(before[n], np.asarray(other.state[n])) for n in before)
    m.state.reset()
    assert all(np.array_equal(before[n], np.asarray(m.state[n])) for n in before)
    for n in after:
        m.state[n] = after[n]
    assert all(np.array_equal(after[n], np.asarray(m.state[n])) for n in after)


def _numpy(t):
    from weft.model import _NUMPY
    return _NUMPY[t.dtype]


def test_replaceable_weights():
    m = weft.compile(data("mlp.pt2"), replaceable=True)
    x = [np.ones([n if isinstance(n, int) else 2 for n in t.shape], "f4") for t in m.inputs]
    want, weights = m(*x), m.weights()
    m.set_weights({name: np.zeros_like(np.asarray(w)) for name, w in weights.items()})
    assert not np.array_equal(m(*x), want)
    m.set_weights(weights)
    assert np.array_equal(m(*x), want)
    with pytest.raises(ValueError, match="nothing"):
        m.set_weights({"nothing": np.zeros(3, "f4")})
    m.set_weights({"nothing": np.zeros(3, "f4")}, strict=False)


def test_entries_for_training():
    m = weft.compile(data("mlp.pt2"), grad="params")
    assert list(m.entries) == ["run", "forward_saving", "backward"]
    assert m.entries["backward"].entries["run"] is m


def test_no_model(tmp_path):
    path = tmp_path / "no.so"
    path.write_bytes(b"nothing")
    with pytest.raises(OSError, match="no.so"):
        weft.load(path)
    with pytest.raises(weft.Error):
        weft.compile(str(path))


class _Loads:
    """A data set whose workers load one artifact, wait for one another, and tell how much memory of their own they have."""

    def __init__(self, path, workers):
        import multiprocessing
        self.path, self.model, self.barrier = path, None, multiprocessing.get_context("fork").Barrier(workers)

    def __len__(self):
        return 2

    def __getitem__(self, k):
        before = own_memory()  # what this process has at the start
        self.model = self.model or weft.load(self.path)
        y = self.model(np.ones((3, 1024), np.float32))
        self.barrier.wait(60)  # all have the file's pages now
        used = own_memory() - before
        self.barrier.wait(60)
        return float(y[0, 0]), used


def own_memory():
    """The bytes of pages that no other process has."""
    with open("/proc/self/smaps_rollup") as f:
        return sum(int(line.split()[1]) for line in f if line.startswith("Private_")) * 1024


@linker
def test_data_loaders_share_the_weights_of_an_artifact(tmp_path):
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(1024, 4096)  # 16.8 MB
    path = str(tmp_path / "layer.so")
    weft.compile(layer, (torch.ones(3, 1024),), path=path)
    loader = torch.utils.data.DataLoader(_Loads(path, 2), batch_size=None, num_workers=2, multiprocessing_context="fork")
    told = list(loader)
    with torch.no_grad():
        expected = layer(torch.ones(3, 1024))[0, 0].item()
    for value, used in told:
        assert abs(value - expected) < 1e-4 and used < 4e6, (value, used)
