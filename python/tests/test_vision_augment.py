"""weft.vision's random transforms, compiled: the same numbers by the same key, torchvision's distributions, and a step of training."""
import numpy as np
import pytest

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")
import torch.nn.functional as F
from torchvision.transforms import v2

import weft
from weft import vision
from weft.vision import geometry

pytestmark = pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there")
H, W, N = 14, 18, 600
CASES = {
    "RandomHorizontalFlip": (vision.RandomHorizontalFlip(0.3), v2.RandomHorizontalFlip(0.3)),
    "RandomVerticalFlip": (vision.RandomVerticalFlip(0.6), v2.RandomVerticalFlip(0.6)),
    "RandomCrop": (vision.RandomCrop((8, 10)), v2.RandomCrop((8, 10))),
    "RandomCrop padded": (vision.RandomCrop(12, 3, padding_mode="reflect"), v2.RandomCrop(12, 3, padding_mode="reflect")),
    "RandomResizedCrop": (vision.RandomResizedCrop(6), v2.RandomResizedCrop(6)),
    "RandomResizedCrop long": (vision.RandomResizedCrop((5, 7), (0.7, 1), (1.5, 3), "bicubic"),
                               v2.RandomResizedCrop((5, 7), (0.7, 1), (1.5, 3), v2.InterpolationMode.BICUBIC)),
    "RandomErasing": (vision.RandomErasing(0.7), v2.RandomErasing(0.7)),
    "RandomErasing channels": (vision.RandomErasing(1, value=(0.2, 0.4, 1.0)), v2.RandomErasing(1, value=(0.2, 0.4, 1.0))),
    "RandomErasing random": (vision.RandomErasing(1, value="random"), v2.RandomErasing(1, value="random")),
    "ColorJitter": (vision.ColorJitter(0.5, 0.4, (0.2, 1.5), 0.2), v2.ColorJitter(0.5, 0.4, (0.2, 1.5), 0.2)),
    "ColorJitter of one": (vision.ColorJitter(brightness=0.5), v2.ColorJitter(brightness=0.5)),
}


def key(*numbers):
    return np.array(numbers, dtype=np.uint64)


def one_image():
    return torch.rand(3, H, W, generator=torch.Generator().manual_seed(3))


def compiled(module, *args):
    """With the key as the last input, and any number and size of images."""
    Dim = torch.export.Dim
    n, h, w = Dim("n", min=1, max=1024), Dim("h", min=12, max=512), Dim("w", min=12, max=512)
    return weft.compile(module.train(), args, dynamic_shapes=tuple({0: n, 2: h, 3: w} if a.ndim == 4 else {0: n} for a in args), rng_input=True)


def images(n=N):
    return one_image().expand(n, 3, H, W).contiguous()


@pytest.mark.parametrize("name", CASES)
def test_distribution_and_key(name):
    made, reference = CASES[name]
    f = compiled(made, images(5))
    got = torch.as_tensor(f(images(), key(7, 0)))
    assert torch.equal(got, torch.as_tensor(f(images(), key(7, 0))))
    assert not torch.equal(got, torch.as_tensor(f(images(), key(7, 1))))
    assert len({tuple(x.flatten().tolist()) for x in got[:40]}) > 1  # each image has its own numbers
    torch.manual_seed(0)
    want = torch.stack([reference(one_image()) for _ in range(N)])
    assert got.shape == want.shape
    for moment in (1, 2):
        a, b = (x.double() ** moment for x in (got, want))
        error = ((a.var(0) + b.var(0)) / N).sqrt() + 1e-4
        assert ((a.mean(0) - b.mean(0)).abs() / error).max() < 5.5
        assert (a.std(0) / (b.std(0) + 1e-9)).median() == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("shape", ((2, 3, 20, 31), (3, 12, 12)))
def test_other_sizes(shape):
    f = compiled(torch.nn.Sequential(vision.RandomCrop(12), vision.RandomHorizontalFlip()), images(3))
    x = torch.rand(shape if len(shape) == 4 else (1, *shape))
    got = torch.as_tensor(f(x, key(1, 2)))
    windows = x.unfold(2, 12, 1).unfold(3, 12, 1)
    for k in range(len(x)):
        each = windows[k].permute(1, 2, 0, 3, 4).flatten(0, 1)
        assert any(torch.equal(got[k], y) or torch.equal(got[k], y.flip(-1)) for y in each)


@pytest.mark.parametrize("mode", ("bilinear", "bicubic"))
def test_boxes_are_resampled_exactly(mode):
    x = torch.rand(4, 3, 40, 50)
    boxes = torch.tensor([[0, 0, 40, 50], [3, 7, 11, 9], [30, 2, 5, 48], [12, 13, 24, 24]])
    got = geometry.resampled(x, *boxes.unbind(1), (16, 13), mode)
    for k, (top, left, h, w) in enumerate(boxes.tolist()):
        part = x[k:k + 1, :, top:top + h, left:left + w]
        torch.testing.assert_close(got[k:k + 1], F.interpolate(part, (16, 13), mode=mode, antialias=True), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("made, share_of", ((vision.MixUp(0.6, 10), 0.6), (vision.MixUp(2.0, 10), 2.0), (vision.CutMix(1.0, 10), None)))
def test_mixed(made, share_of):
    x, labels = torch.rand(4, 3, 20, 16), torch.tensor([1, 2, 3, 9])
    f = compiled(made, x, labels)
    own = F.one_hot(labels, 10).float()
    shares = []
    for k in range(300):
        y, parts = (torch.as_tensor(t) for t in f(x, labels, key(5, k)))
        share = parts[0, 1].item()
        torch.testing.assert_close(parts, own * share + own.roll(1, 0) * (1 - share))
        if share_of is not None:
            torch.testing.assert_close(y, x * share + x.roll(1, 0) * (1 - share))
        else:
            other = (y != x).all(1)
            torch.testing.assert_close(torch.where(other[:, None], x.roll(1, 0), x), y)
            assert other[0].float().mean().item() == pytest.approx(1 - share, abs=1e-5)
        shares.append(share)
    if share_of is not None:
        assert np.mean(shares) == pytest.approx(0.5, abs=0.08)
        assert np.var(shares) == pytest.approx(1 / (4 * (2 * share_of + 1)), rel=0.25)
    else:
        torch.manual_seed(0)
        reference = v2.CutMix(num_classes=10)
        want = [reference(x, labels)[1][0, 1].item() for _ in range(300)]
        assert np.mean(shares) == pytest.approx(np.mean(want), abs=0.08)


def test_evaluation_mode():
    x = torch.rand(2, 3, 20, 26)
    for made in (vision.RandomHorizontalFlip(), vision.RandomVerticalFlip(), vision.RandomErasing(), vision.ColorJitter(1, 1, 1, 0.5)):
        assert made.eval()(x) is x or torch.equal(made(x), x)
    assert torch.equal(vision.RandomCrop(8).eval()(x), v2.functional.center_crop(x, [8]))
    middle = F.interpolate(x[..., 3:23], (10, 10), mode="bilinear", antialias=True)
    torch.testing.assert_close(vision.RandomResizedCrop(10).eval()(x), middle)


def test_step_of_training():
    """Images of bytes in: the step draws, evaluation does not."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(vision.ToDtype(torch.float32, True), vision.RandomCrop(8), vision.RandomHorizontalFlip(), vision.ColorJitter(0.2),
                              vision.RandomErasing(0.2), vision.Normalize((0.5,) * 3, (0.25,) * 3),
                              torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 2))
    label = torch.arange(64) % 2
    x = (torch.rand(64, 3, 10, 10) * 160 + 90 * label[:, None, None, None]).to(torch.uint8)
    step = weft.train_step(net, F.cross_entropy, torch.optim.AdamW(net.parameters(), lr=0.01), (x, label))
    losses = [float(step(x, label)) for _ in range(60)]
    assert losses[-1] < 0.3 < losses[0]
    assert len(set(losses)) == 60
