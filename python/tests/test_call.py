"""Calls of compiled models: arguments, results, errors."""
import array
import pickle
import sys
import threading
import time

import numpy as np
import pytest

import weft
from weft import _weft

PLUS = "graph @f(%x: f32[8]) {\n  %y = aten.add.Scalar(%x, other=1)\n  return %y\n}"
TWO = "graph @f(%a: f32[N, 3], %b: f32[3]) where 1 <= N {\n  %s = aten.add.Tensor(%a, %b)\n  %t = aten.mul.Tensor(%s, %s)\n  return %s, %t\n}"


def test_numpy_in_and_out(compiled):
    m = compiled(PLUS)
    x = np.arange(8, dtype=np.float32)
    y = m(x)
    assert isinstance(y, np.ndarray) and y.dtype == np.float32
    assert np.array_equal(y, x + 1)
    assert np.array_equal(m(x=x), x + 1)
    out = np.empty(8, np.float32)
    assert m(x, out=out) is out and np.array_equal(out, x + 1)


def test_read_only_and_strided(compiled):
    m = compiled(PLUS)
    x = np.arange(16, dtype=np.float32)
    x.flags.writeable = False
    assert np.array_equal(m(x[::2]), x[::2] + 1)
    assert np.array_equal(m(x[7::-1]), x[7::-1] + 1)


def test_buffers_without_numpy_arrays(compiled):
    m = compiled(PLUS)
    y = m(array.array("f", range(8)))
    assert list(np.asarray(y)) == list(range(1, 9))
    with pytest.raises(ValueError, match="input x has dtype f64, expected f32"):
        m(array.array("d", range(8)))


def test_dlpack_alone(compiled):
    class Wrapped:
        def __init__(self, a):
            self.a = a

        def __dlpack__(self, **named):
            return self.a.__dlpack__(**named)

        def __dlpack_device__(self):
            return self.a.__dlpack_device__()
    x = np.arange(8, dtype=np.float32)
    before = sys.getrefcount(x)
    assert np.array_equal(compiled(PLUS)(Wrapped(x)), x + 1)
    assert sys.getrefcount(x) == before


def test_several_outputs(compiled):
    m = compiled(TWO)
    a, b = np.ones((2, 3), np.float32), np.arange(3, dtype=np.float32)
    names = [t.name for t in m.outputs]
    s, t = m(a, b=b)
    assert np.array_equal(t, s * s)
    room = np.empty((2, 3), np.float32)
    _, got = m(a, b, out=(None, room))
    assert got is room and np.array_equal(room, t)
    _, got = m(a, b, out={names[1]: room})
    assert got is room


def test_zero_sized(compiled):
    text = "graph @f(%x: f32[N]) where 0 <= N {\n  %y = aten.add.Scalar(%x, other=1)\n  return %y\n}"
    assert compiled(text)(np.empty(0, np.float32)).shape == (0,)


@pytest.mark.parametrize("dtype", ["f64", "f16", "i64", "i32", "i16", "i8", "u8", "bool", "c64", "c128"])
def test_dtypes(compiled, dtype):
    m = compiled(f"graph @f(%x: {dtype}[4]) {{\n  %y = aten.flip(%x, dims=[0])\n  return %y\n}}")
    x = np.array([0, 1, 1, 0]).astype(m_dtype := _numpy(dtype))
    assert m(x).dtype == m_dtype and np.array_equal(m(x), x[::-1])


def _numpy(dtype):
    from weft.model import _NUMPY
    return np.dtype(_NUMPY[dtype])


def test_numbers_of_python(compiled):
    m = compiled("graph @f(%x: f32[2], %n: i64[]) {\n  %y = aten.mul.Tensor(%x, %n)\n  return %y\n}")
    assert list(m(np.array([1, 2], np.float32), 3)) == [3, 6]
    with pytest.raises(TypeError, match="input n"):
        m(np.array([1, 2], np.float32), "3")


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
def test_the_range_of_numbers(compiled, dtype):
    m = compiled(f"graph @f(%n: {dtype}[]) {{\n  %y = aten.clone(%n)\n  return %y\n}}")
    i = np.iinfo(_numpy(dtype))
    for n in (i.min, i.max):
        assert int(m(n)) == n
    for n in (i.min - 1, i.max + 1, 2**70):
        with pytest.raises(OverflowError, match="input n: "):
            m(n)


def test_sizes_from_data(compiled):
    m = compiled("graph @f(%x: f32[5]) {\n  %y = aten.nonzero(%x)\n  return %y\n}")
    assert m(np.array([0, 1, 0, 2, 3], np.float32)).tolist() == [[1], [3], [4]]
    assert m(np.zeros(5, np.float32)).shape == (0, 1)


@pytest.mark.parametrize("call, error, text", [
    (lambda m, x: m(x[:7]), ValueError, "input x: dimension 0 is 7, expected 8"),
    (lambda m, x: m(), TypeError, "input x is missing"),
    (lambda m, x: m(x, x), TypeError, "run takes 1 inputs .x., got 2"),
    (lambda m, x: m(x, z=x), TypeError, "run has no input 'z'; its inputs are x"),
    (lambda m, x: m(x, x=x), TypeError, "input x is given twice"),
    (lambda m, x: m("x"), TypeError, "input x: expected a tensor or array, got <class 'str'>"),
    (lambda m, x: m(x.astype(">f4")), TypeError, "input x: elements of format '>f' are no dtype of Weft"),
    (lambda m, x: m(x, out=x.astype("f8")), ValueError, "out: output .* the tensor has another dtype"),
    (lambda m, x: m(x, out=x[:4]), ValueError, "out: output .* the tensor has another shape"),
    (lambda m, x: m(x, out=np.zeros(16, "f4")[::2]), ValueError, "out: output .* the tensor has other strides"),
    (lambda m, x: m(x, out=b"12345678"), BufferError, "out: output .* not writable"),
    (lambda m, x: m(x, out=x), ValueError, "overlap"),
    (lambda m, x: m(x, out={"zz": x}), TypeError, "out: run has no output 'zz'; its outputs are "),
    (lambda m, x: m(x, out={m.outputs[0].name: np.zeros(8, "f4"), 3: x}), TypeError, "out: run has no output 3; its outputs are "),
])
def test_errors_name_the_argument(compiled, call, error, text):
    m = compiled(PLUS)
    x = np.arange(8, dtype=np.float32)
    with pytest.raises(error, match=text):
        call(m, x)
    assert np.array_equal(m(x), x + 1)


def test_a_failed_check(compiled):
    m = compiled("graph @f(%x: f32[5], %i: i64[2]) {\n  %y = aten.index_select(%x, %i, dim=0)\n  return %y\n}")
    with pytest.raises(weft.CheckError, match="index 7"):
        m(np.zeros(5, np.float32), np.array([0, 7]))


# 20 products, each a phase of some milliseconds.
LONG = "graph @f(%x: f32[512, 512]) {\n" + "".join(
    f"  %y{k + 1} = aten.tanh(%{f'z{k}' if k else 'x'})\n  %z{k + 1} = aten.matmul(%y{k + 1}, %y{k + 1})\n" for k in range(20)) + "  return %z20\n}"


def test_results_by_name(compiled):
    m = compiled(TWO)
    y = m(np.ones((2, 3), np.float32), np.ones(3, np.float32))
    names = [t.name for t in m.outputs]
    assert isinstance(y, tuple) and y[0] is getattr(y, names[0]) and y[1] is getattr(y, names[1])
    same = pickle.loads(pickle.dumps(y))
    assert type(same) is type(y) and np.array_equal(same[1], y[1])
    first, second = y
    assert first is y[0] and second is y[1]
    m.record = None
    assert type(m(np.ones((2, 3), np.float32), np.ones(3, np.float32))) is tuple


def test_a_call_that_takes_too_long(compiled):
    m = compiled(LONG)
    m.threads = 1
    x = np.ones((512, 512), np.float32)
    want = m(x)
    m.timeout = 1e-6
    with pytest.raises(TimeoutError, match="the call's deadline passed before kernel"):
        m(x)
    m.timeout = 60
    assert m.clone().timeout == 60 and np.array_equal(m(x), want)
    m.timeout = None
    assert m.timeout is None and np.array_equal(m(x), want)
    for wrong in (0, -1, float("nan"), float("inf"), "1"):
        with pytest.raises((ValueError, TypeError)):
            m.timeout = wrong


def test_cancel(compiled):
    m = compiled(LONG)
    m.threads = 1
    x = np.ones((512, 512), np.float32)
    want = m(x)
    assert m.cancel() == 0 and np.array_equal(m(x), want)
    ended = []

    def call():
        try:
            while True:
                m(x)
        except weft.CancelledError as e:
            ended.append(str(e))
    threads = [threading.Thread(target=call) for _ in range(2)]
    for t in threads:
        t.start()
    until = time.monotonic() + 60
    while len(ended) < 2 and time.monotonic() < until:
        m.cancel()
        time.sleep(0.001)
    for t in threads:
        t.join()
    assert len(ended) == 2 and "the call was cancelled before kernel" in ended[0]
    assert np.array_equal(m(x), want)


def test_memory_limit(compiled):
    m = compiled(LONG)
    m.memory_limit = 4096
    with pytest.raises(MemoryError, match="the call's limit is 4096"):
        m(np.ones((512, 512), np.float32))
    m.memory_limit = 1 << 30
    m(np.ones((512, 512), np.float32))


def test_closed(compiled):
    m = compiled(PLUS)
    m.close()
    with pytest.raises(ValueError, match="closed"):
        m(np.zeros(8, np.float32))


def test_no_growth(compiled):
    import resource
    x = np.zeros(8, np.float32)

    def cycle(n):
        for _ in range(n):
            m = compiled(PLUS)
            m(x), m(x)
            m.close()
    cycle(20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cycle(50)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096  # kB


def test_the_lock_is_released(compiled):
    m = compiled("graph @f(%x: f32[600, 600]) {\n  %y = aten.mm(%x, %x)\n  %z = aten.mm(%y, %x)\n  return %z\n}")
    m.threads = 1
    x = np.ones((600, 600), np.float32)
    inside, seen = threading.Event(), []

    def run():
        inside.set()
        for _ in range(5):
            m(x)
        seen.append("done")
    worker = threading.Thread(target=run)
    worker.start()
    inside.wait()
    turns = 0
    while not seen:
        turns += 1
        time.sleep(0)
    worker.join()
    assert turns > 5


def test_threads_share_a_model(compiled):
    m = compiled(TWO)
    results = {}

    def run(k):
        a = np.full((k + 1, 3), k, np.float32)
        for _ in range(200):
            s, t = m(a, np.zeros(3, np.float32))
            if s.shape != (k + 1, 3) or not (t == k * k).all():
                return
        results[k] = True
    workers = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    [w.start() for w in workers], [w.join() for w in workers]
    assert len(results) == 4


def test_after_fork(compiled):
    import os
    m = compiled(PLUS)
    x = np.arange(8, dtype=np.float32)
    m(x)
    pid = os.fork()
    if not pid:
        os._exit(0 if np.array_equal(m(x), x + 1) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_messages_of_the_compiler():
    with pytest.raises(weft.Error, match="aten.sine"):
        _weft.Session().parse("graph @f(%x: f32[3]) {\n  %y = aten.sine(%x)\n  return %y\n}", "mine")
