"""Modules of random transforms. Each image of a batch [N, C, H, W] has numbers of its own; they come from the operators of PyTorch
that draw, so that a compiled model draws by its key (docs/random.md). In evaluation mode an image passes unchanged; the ones that
choose a part of it take the middle."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from weft.vision import geometry, values
from weft.vision.transforms import Pad, Transform, checked_mode


def _check_probability(p: float, what: str) -> float:
    if not 0 <= p <= 1:
        raise ValueError(f"weft.vision.{what}: the probability {p} is not in 0 .. 1")
    return p


def _range(given: Sequence[float], what: str, low: float = 0, high: float = math.inf) -> tuple[float, float]:
    if len(given) != 2 or not low <= given[0] <= given[1] <= high:
        raise ValueError(f"weft.vision.{what}: expected two increasing numbers in {low} .. {high}, got {given}")
    return float(given[0]), float(given[1])


def _uniform(like: Tensor, low: float, high: float, *size: int) -> Tensor:
    """[N, size...], a row for each image of [N, C, H, W]."""
    return torch.rand(like.shape[0], *size, device=like.device) * (high - low) + low


def _below(n: Tensor | Any, draw: Tensor) -> Tensor:
    """0 .. n - 1 by a number of [0, 1)."""
    return torch.minimum((draw * n).floor().to(torch.int64), torch.as_tensor(n - 1, device=draw.device).to(torch.int64)).clamp(min=0)


def _each(draw: Tensor) -> Tensor:
    """A number for each image, for its pixels."""
    return draw[:, None, None, None]


def _number(size: Any, device: Any) -> Tensor:
    return torch.full((), size, dtype=torch.float32, device=device)


class Random(Transform):
    """transform(image) takes [N, C, H, W]; evaluated(image) is what takes its place in evaluation mode."""

    def forward(self, image: Tensor) -> Tensor:
        return geometry.batched(image, self.transform if self.training else self.evaluated)

    def transform(self, image: Tensor) -> Tensor:
        raise NotImplementedError

    def evaluated(self, image: Tensor) -> Tensor:
        return image


class _Flip(Random):
    axis = 0

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = _check_probability(p, type(self).__name__)

    def transform(self, image: Tensor) -> Tensor:
        return torch.where(_each(_uniform(image, 0, 1) < self.p), image.flip(self.axis), image)


class RandomHorizontalFlip(_Flip):
    axis = -1


class RandomVerticalFlip(_Flip):
    axis = -2


class RandomCrop(Random):
    """padding: what is added at the sides, as for Pad with fill. In evaluation mode: the middle of the image."""

    def __init__(self, size: int | Sequence[int], padding: int | Sequence[int] | None = None, fill: float = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        self.size, self._pad = geometry.pair(size, "RandomCrop"), Pad(padding or 0, fill, padding_mode)
        self.padding = self._pad.padding

    def transform(self, image: Tensor) -> Tensor:
        image = self._pad(image) if any(self.padding) else image
        (h, w), (rows, columns) = image.shape[-2:], self.size
        torch._check(h >= rows, lambda: f"weft.vision.RandomCrop: the image has {h} rows, the crop {rows}")
        torch._check(w >= columns, lambda: f"weft.vision.RandomCrop: the image has {w} columns, the crop {columns}")
        draw = _uniform(image, 0, 1, 2)
        top = _below(_number(h - rows + 1, image.device), draw[:, 0])
        return geometry.cropped(image, top, _below(_number(w - columns + 1, image.device), draw[:, 1]), self.size)

    def evaluated(self, image: Tensor) -> Tensor:
        return geometry.center_crop(image, self.size)


def _boxes(image: Tensor, scale: tuple[float, float], ratio: tuple[float, float], strict: bool) -> tuple[Tensor, ...]:
    """[N] each: whether one of ten boxes fits, and the first that does: top, left, height, width. ratio: width by height."""
    h, w = (_number(s, image.device) for s in image.shape[-2:])
    area = _uniform(image, *scale, 10) * (h * w)
    aspect = _uniform(image, math.log(ratio[0]), math.log(ratio[1]), 10).exp()
    columns, rows = (area * aspect).sqrt().round(), (area / aspect).sqrt().round()
    fits = (rows < h) & (columns < w) if strict else (rows > 0) & (columns > 0) & (rows <= h) & (columns <= w)
    first = fits.to(torch.int32).argmax(1, keepdim=True)
    rows, columns = rows.gather(1, first).squeeze(1), columns.gather(1, first).squeeze(1)
    draw = _uniform(image, 0, 1, 2)
    return fits.any(1), _below(h - rows + 1, draw[:, 0]), _below(w - columns + 1, draw[:, 1]), rows, columns


class RandomResizedCrop(Random):
    """A random box of a part scale of the area, with a ratio of width to height, resampled (antialiased) to this size. In evaluation
    mode: the largest box of the size's proportions in the middle."""

    def __init__(self, size: int | Sequence[int], scale: Sequence[float] = (0.08, 1.0), ratio: Sequence[float] = (3 / 4, 4 / 3),
                 interpolation: Any = "bilinear") -> None:
        super().__init__()
        self.size = geometry.pair(size, "RandomResizedCrop")
        self.scale = _range(scale, "RandomResizedCrop")
        self.ratio = _range(ratio, "RandomResizedCrop", 1e-6)
        self.interpolation = checked_mode(interpolation, ("bilinear", "bicubic"), "RandomResizedCrop")

    def _middle(self, image: Tensor, low: float, high: float) -> tuple[Tensor, ...]:
        """The largest box in the middle with a ratio of low .. high: top, left, height, width, each []."""
        h, w = (_number(s, image.device) for s in image.shape[-2:])
        ratio = (w / h).clamp(low, high)
        rows = torch.minimum(h, (w / ratio).round()).clamp(min=1)
        columns = torch.minimum(w, (h * ratio).round()).clamp(min=1)
        return ((h - rows) / 2).floor(), ((w - columns) / 2).floor(), rows, columns

    def transform(self, image: Tensor) -> Tensor:
        fits, *box = _boxes(image, self.scale, self.ratio, False)
        box = [torch.where(fits, b.to(torch.float32), m) for b, m in zip(box, self._middle(image, *self.ratio))]
        return geometry.resampled(image, *box, self.size, self.interpolation)

    def evaluated(self, image: Tensor) -> Tensor:
        ratio = self.size[1] / self.size[0]
        box = (b.expand(image.shape[0]) for b in self._middle(image, ratio, ratio))
        return geometry.resampled(image, *box, self.size, self.interpolation)


def _erased(image: Tensor, top: Tensor, left: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Whether a pixel is in the box of its image: [N, 1, H, W]."""
    y, x = (torch.arange(s, device=image.device) for s in image.shape[-2:])
    top, left, rows, columns = (_each(v) for v in (top, left, rows, columns))
    return (y[:, None] >= top) & (y[:, None] < top + rows) & (x >= left) & (x < left + columns)


class RandomErasing(Random):
    """value: of the erased box: a number, one for each channel, or "random", normal numbers. ratio: height by width."""

    def __init__(self, p: float = 0.5, scale: Sequence[float] = (0.02, 0.33), ratio: Sequence[float] = (0.3, 3.3),
                 value: float | Sequence[float] | str = 0.0) -> None:
        super().__init__()
        self.p, self.value = _check_probability(p, "RandomErasing"), value
        self.scale, self.ratio = _range(scale, "RandomErasing", 0, 1), _range(ratio, "RandomErasing", 1e-6)
        if isinstance(value, str) and value != "random":
            raise ValueError(f"weft.vision.RandomErasing: expected a value or \"random\", got {value!r}")

    def transform(self, image: Tensor) -> Tensor:
        fits, *box = _boxes(image, self.scale, (1 / self.ratio[1], 1 / self.ratio[0]), True)
        chosen = _each(fits & (_uniform(image, 0, 1) < self.p))
        if isinstance(self.value, str):
            value = torch.randn(image.shape, device=image.device).to(image.dtype)
        else:
            value = torch.tensor(self.value, device=image.device).to(image.dtype).reshape(-1, 1, 1)
        return torch.where(chosen & _erased(image, *box), value, image)


class ColorJitter(Random):
    """Each of brightness, contrast, saturation: a number b for factors of 1 - b .. 1 + b, or (low, high); hue: -h .. h. The order is
    random, as in torchvision; in_order=True applies them as they stand here, at a quarter of the work."""

    def __init__(self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0, in_order: bool = False) -> None:
        super().__init__()
        self.in_order = in_order
        for name, given in (("brightness", brightness), ("contrast", contrast), ("saturation", saturation)):
            given = (max(1 - given, 0), 1 + given) if isinstance(given, (int, float)) else given
            setattr(self, name, _range(given, f"ColorJitter {name}"))
        self.hue = _range((-hue, hue) if isinstance(hue, (int, float)) else hue, "ColorJitter hue", -0.5, 0.5)

    def transform(self, image: Tensor) -> Tensor:
        steps = []
        for name, neutral in (("brightness", 1), ("contrast", 1), ("saturation", 1), ("hue", 0)):
            low, high = getattr(self, name)
            if low != neutral or high != neutral:
                steps.append((getattr(values, name), _each(_uniform(image, low, high))))
        order = _uniform(image, 0, 1, max(len(steps), 1)).argsort(1)
        for place in range(len(steps)):
            if self.in_order:
                image = steps[place][0](image, steps[place][1])
                continue
            now = image
            for k, (change, factor) in enumerate(steps):
                now = torch.where(_each(order[:, place] == k), change(image, factor), now)
            image = now
        return image


class _Mix(Transform):
    """forward(images [N, C, H, W], labels [N] or [N, classes]): both mixed with those of the image before, by one number for the
    batch; the labels [N, classes] in floating point. In evaluation mode only the labels change."""

    def __init__(self, alpha: float = 1.0, num_classes: int | None = None) -> None:
        super().__init__()
        self.alpha, self.num_classes = float(alpha), num_classes
        if alpha <= 0:
            raise ValueError(f"weft.vision.{type(self).__name__}: alpha {alpha} is not positive")

    def _parts(self, labels: Tensor) -> Tensor:
        if labels.ndim == 2:
            return labels if labels.is_floating_point() else labels.to(torch.float32)
        if self.num_classes is None:
            raise ValueError(f"weft.vision.{type(self).__name__}: labels that are numbers of classes need num_classes")
        return F.one_hot(labels, self.num_classes).to(torch.float32)

    def _share(self, device: Any) -> Tensor:
        """A number of the distribution Beta(alpha, alpha): []."""
        return torch._sample_dirichlet(torch.full((2,), self.alpha, device=device))[0]

    def forward(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        parts = self._parts(labels)
        if not self.training:
            return images, parts
        images, share = self.mixed(images, self._share(images.device))
        return images, parts.roll(1, 0) * (1 - share) + parts * share

    def mixed(self, images: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
        """The images, and the share of the own image in them."""
        raise NotImplementedError


class MixUp(_Mix):
    def mixed(self, images: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
        return (images.roll(1, 0) * (1 - share) + images * share).to(images.dtype), share


class CutMix(_Mix):
    """A box of the image before."""

    def mixed(self, images: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
        h, w = (_number(s, images.device) for s in images.shape[-2:])
        draw, half = torch.rand(2, device=images.device), 0.5 * (1 - share).sqrt()
        y, x, down, across = (draw[0] * h).floor(), (draw[1] * w).floor(), (half * h).floor(), (half * w).floor()
        top, left = (y - down).clamp(min=0), (x - across).clamp(min=0)
        rows, columns = torch.minimum(y + down, h) - top, torch.minimum(x + across, w) - left
        inside = _erased(images, *(v.reshape(1) for v in (top, left, rows, columns)))
        return torch.where(inside, images.roll(1, 0), images), 1 - rows * columns / (h * w)
