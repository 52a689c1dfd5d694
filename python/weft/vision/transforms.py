"""Modules of transforms without chance. Each takes an image [..., C, H, W]."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from weft.vision import geometry, values


class Transform(nn.Module):
    """Says what it was made with."""

    def extra_repr(self) -> str:
        return ", ".join(f"{k}={v}" for k, v in vars(self).items() if not k.startswith("_") and k != "training")


def checked_mode(mode: Any, modes: Sequence[str], what: str) -> str:
    """A text or a member of torchvision's InterpolationMode."""
    mode = getattr(mode, "value", mode)
    if mode not in modes:
        raise ValueError(f"weft.vision.{what}: expected one of {', '.join(modes)}, got {mode!r}")
    return mode


class Resize(Transform):
    """size: of the short side, or (height, width), or None with max_size, which the long side then has. max_size with a number:
    a long side of more is made that, and the short one less."""

    def __init__(self, size: int | Sequence[int] | None, interpolation: Any = "bilinear", max_size: int | None = None,
                 antialias: bool | None = True) -> None:
        super().__init__()
        self.size = size[0] if isinstance(size, (list, tuple)) and len(size) == 1 else size
        self.interpolation, self.max_size, self.antialias = checked_mode(interpolation, geometry.MODES, "Resize"), max_size, bool(antialias)
        if size is not None:
            geometry.pair(size, "Resize")
        if size is None and max_size is None or max_size is not None and isinstance(self.size, (list, tuple)):
            raise ValueError("weft.vision.Resize: max_size is for a size of one number or None, and None needs it")
        if isinstance(self.size, int) and max_size is not None and max_size <= self.size:
            raise ValueError(f"weft.vision.Resize: max_size {max_size} is not more than the short side {self.size}")

    def forward(self, image: Tensor) -> Tensor:
        if isinstance(self.size, (list, tuple)):
            size = tuple(self.size)
        else:
            size = geometry.scaled_size(*image.shape[-2:], self.size, self.max_size)
        return geometry.resized(image, size, self.interpolation, self.antialias)


class CenterCrop(Transform):
    """Zeros surround an image that is smaller than the crop."""

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = geometry.pair(size, "CenterCrop")

    def forward(self, image: Tensor) -> Tensor:
        return geometry.center_crop(image, self.size)


class FiveCrop(Transform):
    """The four corners and the centre, five images."""

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = geometry.pair(size, "FiveCrop")

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        (h, w), (rows, columns) = image.shape[-2:], self.size
        torch._check(h >= rows, lambda: f"weft.vision.FiveCrop: the image has {h} rows, the crop {rows}")
        torch._check(w >= columns, lambda: f"weft.vision.FiveCrop: the image has {w} columns, the crop {columns}")
        corners = ((0, 0), (0, w - columns), (h - rows, 0), (h - rows, w - columns))
        return (*(geometry.window(image, top, left, self.size) for top, left in corners), geometry.center_crop(image, self.size))


class Pad(Transform):
    """padding: one number, (left and right, top and bottom), or (left, top, right, bottom)."""

    def __init__(self, padding: int | Sequence[int], fill: float = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        p = (padding,) * 4 if isinstance(padding, int) else tuple(padding) * {1: 4, 2: 2}.get(len(padding), 1)
        if len(p) != 4 or not all(isinstance(v, int) and v >= 0 for v in p):
            raise ValueError(f"weft.vision.Pad: expected one, two or four numbers of at least 0, got {padding!r}")
        self.padding, self.fill = p, fill
        self.padding_mode = checked_mode(padding_mode, ("constant", "edge", "reflect", "symmetric"), "Pad")

    def forward(self, image: Tensor) -> Tensor:
        return geometry.padded(image, self.padding, self.padding_mode, self.fill)


class Normalize(Transform):
    """Subtracts the mean of each channel, and divides by the deviation."""

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.mean, self.std = tuple(mean), tuple(std)
        if not all(self.std):
            raise ValueError("weft.vision.Normalize: a deviation is 0")

    def forward(self, image: Tensor) -> Tensor:
        if not image.is_floating_point():
            raise TypeError(f"weft.vision.Normalize: expected an image of floating-point numbers, got {image.dtype}: ToDtype converts it")
        mean, std = (torch.tensor(v, dtype=image.dtype, device=image.device)[:, None, None] for v in (self.mean, self.std))
        return (image - mean) / std


class ToDtype(Transform):
    """scale: white stays white, so that 0 .. 255 becomes 0 .. 1."""

    def __init__(self, dtype: torch.dtype, scale: bool = False) -> None:
        super().__init__()
        self.dtype, self.scale = dtype, scale

    def forward(self, image: Tensor) -> Tensor:
        return values.to_dtype(image, self.dtype, self.scale)


class Grayscale(Transform):
    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        if num_output_channels not in (1, 3):
            raise ValueError(f"weft.vision.Grayscale: expected 1 or 3 channels, got {num_output_channels}")
        self.num_output_channels = num_output_channels

    def forward(self, image: Tensor) -> Tensor:
        return values.grayscale(image, self.num_output_channels)


class _Adjust(Transform):
    """Calls a function of values.py with the numbers it was made with."""

    def forward(self, image: Tensor) -> Tensor:
        given = {k: v for k, v in vars(self).items() if not k.startswith("_") and k != "training"}
        return self.function(image, **given)  # type: ignore[attr-defined]


class _ByFactor(_Adjust):
    def __init__(self, factor: float) -> None:
        super().__init__()
        if factor < 0:
            raise ValueError(f"weft.vision.{type(self).__name__}: the factor {factor} is negative")
        self.factor = factor


class AdjustBrightness(_ByFactor):
    function = staticmethod(values.brightness)


class AdjustContrast(_ByFactor):
    function = staticmethod(values.contrast)


class AdjustSaturation(_ByFactor):
    function = staticmethod(values.saturation)


class AdjustSharpness(_ByFactor):
    function = staticmethod(values.sharpness)


class AdjustHue(_Adjust):
    """factor: in -0.5 .. 0.5, a part of the circle of hues."""
    function = staticmethod(values.hue)

    def __init__(self, factor: float) -> None:
        super().__init__()
        if not -0.5 <= factor <= 0.5:
            raise ValueError(f"weft.vision.AdjustHue: the factor {factor} is not in -0.5 .. 0.5")
        self.factor = factor


class AdjustGamma(_Adjust):
    function = staticmethod(values.gamma)

    def __init__(self, gamma: float, gain: float = 1.0) -> None:
        super().__init__()
        if gamma < 0:
            raise ValueError(f"weft.vision.AdjustGamma: the exponent {gamma} is negative")
        self.exponent, self.gain = gamma, gain


class Invert(_Adjust):
    function = staticmethod(values.invert)


class AutoContrast(_Adjust):
    function = staticmethod(values.autocontrast)


class Equalize(_Adjust):
    function = staticmethod(values.equalize)


class Solarize(_Adjust):
    """Inverts the values from the threshold on."""
    function = staticmethod(values.solarize)

    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.threshold = threshold


class Posterize(_Adjust):
    function = staticmethod(values.posterize)

    def __init__(self, bits: int) -> None:
        super().__init__()
        if not isinstance(bits, int) or not 0 <= bits <= 8:
            raise ValueError(f"weft.vision.Posterize: expected 0 to 8 bits, got {bits!r}")
        self.bits = bits


class GaussianBlur(Transform):
    """kernel_size: odd, one number or (columns, rows), and sigma: the deviation, likewise, as torchvision.transforms.v2.functional.gaussian_blur."""

    def __init__(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None) -> None:
        super().__init__()
        self.kernel_size = geometry.pair(kernel_size, "GaussianBlur")
        if not all(k % 2 for k in self.kernel_size):
            raise ValueError(f"weft.vision.GaussianBlur: the sizes {self.kernel_size} are not odd")
        sigma = [k * 0.15 + 0.35 for k in self.kernel_size] if sigma is None else sigma
        self.sigma = (float(sigma),) * 2 if isinstance(sigma, (int, float)) else tuple(float(s) for s in sigma)
        if len(self.sigma) != 2 or min(self.sigma) <= 0:
            raise ValueError(f"weft.vision.GaussianBlur: expected one or two positive deviations, got {sigma}")

    def forward(self, image: Tensor) -> Tensor:
        dtype = image.dtype if image.is_floating_point() else torch.float32
        across, down = (torch.softmax(-((torch.arange(n, dtype=dtype) - (n - 1) / 2) / (math.sqrt(2) * s)) ** 2, 0)
                        for n, s in zip(self.kernel_size, self.sigma))
        return geometry.blurred(image, (down[:, None] * across).to(image.device))


class Frames(Transform):
    """Videos [..., T, C, H, W] become [..., C, T, H, W], which networks of videos take."""

    def forward(self, video: Tensor) -> Tensor:
        return video.transpose(-3, -4)


Compose = nn.Sequential
