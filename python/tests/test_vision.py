"""torch.compile(backend="weft"): torchvision's operators on regions, values and gradients beside eager mode's."""
import pytest

torch = pytest.importorskip("torch")
ops = pytest.importorskip("torchvision.ops")
import weft
from weft import dynamo

pytestmark = [pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there"), pytest.mark.usefixtures("fresh")]
POOLS = {  # channels, the operator
    **{f"roi_align, {ratio} samples, aligned {aligned}": (3, lambda x, r, ratio=ratio, aligned=aligned: ops.roi_align(x, r, (3, 4), 0.7, ratio, aligned))
       for ratio in (2, 0) for aligned in (False, True)},
    "ps_roi_align": (12, lambda x, r: ops.ps_roi_align(x, r, (3, 2), 0.7, 2)),
    "ps_roi_align, samples by the region": (12, lambda x, r: ops.ps_roi_align(x, r, (3, 2), 0.7, 0)),
}


def regions(n):
    """Some beyond the edges, in both images."""
    boxes = torch.rand(n, 5) * 20
    boxes[:, 0] = torch.arange(n) % 2
    boxes[:, 3:] += boxes[:, 1:3]
    boxes[:1, 1:] -= 9
    return boxes


@pytest.mark.parametrize("dynamic", (None, True))
@pytest.mark.parametrize("name", POOLS)
def test_gradients_of_pooled_regions(name, dynamic):
    channels, pool = POOLS[name]

    def f(x, r):
        return pool(x.sin(), r)
    fast = torch.compile(f, backend=dynamo.backend, dynamic=dynamic, fullgraph=True)
    for n in (4, 7, 1):
        x, r = torch.randn(2, channels, 24, 30, requires_grad=True), regions(n)
        want, got = f(x, r), fast(x, r)
        ct = torch.randn_like(want)
        torch.testing.assert_close(got, want)
        torch.testing.assert_close(torch.autograd.grad(got, x, ct), torch.autograd.grad(want, x, ct))
    assert not dynamo.statistics.eager_nodes


def test_bins_that_are_sizes():
    """As Mask R-CNN has them, which pools for boxes and for masks."""
    def f(x, r, rows, columns):
        return ops.roi_align(x.sin(), r, (rows, columns), 0.7, 2)
    fast = torch.compile(f, backend=dynamo.backend, dynamic=True, fullgraph=True)
    for rows, columns in ((3, 4), (2, 6), (4, 3)):
        x, r = torch.randn(2, 3, 24, 30, requires_grad=True), regions(5)
        want, got = f(x, r, rows, columns), fast(x, r, rows, columns)
        ct = torch.randn_like(want)
        torch.testing.assert_close(got, want)
        torch.testing.assert_close(torch.autograd.grad(got, x, ct), torch.autograd.grad(want, x, ct))
    assert not dynamo.statistics.eager_nodes


def test_no_regions():
    def f(x, r):
        return ops.roi_align(x.sin(), r, (3, 4), 0.7, 2, True)
    x = torch.randn(2, 3, 24, 30, requires_grad=True)
    y = torch.compile(f, backend=dynamo.backend, fullgraph=True)(x, torch.zeros(0, 5))
    assert y.shape == (0, 3, 3, 4)
    assert not torch.autograd.grad(y.sum(), x)[0].any()
