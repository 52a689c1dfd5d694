"""Transforms of an image's values, as functions: dtypes, grey, colours, contrast, histograms. Images are [..., C, H, W]; a factor
is a number or a tensor that broadcasts with the image, and no size is asked in Python."""
from __future__ import annotations

from typing import Union

import torch
from torch import Tensor

from weft.vision.geometry import filtered

Factor = Union[float, Tensor]
_BITS = {torch.uint8: 8, torch.int8: 7, torch.uint16: 16, torch.int16: 15, torch.int32: 31, torch.int64: 63}


def largest(dtype: torch.dtype) -> float:
    """The value of white."""
    return 1.0 if dtype.is_floating_point else (1 << _BITS[dtype]) - 1


def to_dtype(image: Tensor, dtype: torch.dtype, scale: bool = False) -> Tensor:
    """Converts; scale: white stays white, as torchvision computes that."""
    own = image.dtype
    if own == dtype or not scale:
        return image.to(dtype)
    if own.is_floating_point and dtype.is_floating_point:
        return image.to(dtype)
    if own.is_floating_point:
        if (own == torch.float32 and dtype in (torch.int32, torch.int64)) or (own == torch.float64 and dtype == torch.int64):
            raise TypeError(f"weft.vision: {own} has too few bits to be scaled to {dtype}")
        return (image * (largest(dtype) + 1 - 1e-3)).to(dtype)
    if dtype.is_floating_point:
        return image.to(dtype) * (1 / largest(own))
    shift = _BITS[dtype] - _BITS[own]
    return image.to(dtype) << shift if shift >= 0 else (image >> -shift).to(dtype)


def channels(image: Tensor, what: str) -> int:
    """1 or 3, else an error."""
    if image.ndim < 3 or image.shape[-3] not in (1, 3):
        raise ValueError(f"weft.vision.{what}: expected an image [..., C, H, W] with 1 or 3 channels, got {list(image.shape)}")
    return image.shape[-3]


def _luma(image: Tensor) -> Tensor:
    """[..., 1, H, W], in floating point."""
    r, g, b = image.unbind(-3)
    return (r * 0.2989 + g * 0.587 + b * 0.114).unsqueeze(-3)


def _grey(image: Tensor) -> Tensor:
    """The luminance, a whole number for images of integers."""
    if image.shape[-3] == 1:
        return image if image.is_floating_point() else image.to(torch.float32)
    grey = _luma(image)
    return grey if image.is_floating_point() else grey.floor()


def grayscale(image: Tensor, outputs: int = 1) -> Tensor:
    one = image if channels(image, "Grayscale") == 1 else _luma(image).to(image.dtype)
    return one if outputs == 1 else one.expand(*image.shape[:-3], outputs, *image.shape[-2:])


def _clamped(values: Tensor, dtype: torch.dtype) -> Tensor:
    return values.clamp(0, largest(dtype)).to(dtype)


def _blend(image: Tensor, other: Tensor, factor: Factor) -> Tensor:
    return _clamped(image * factor + other * (1.0 - factor), image.dtype)


def brightness(image: Tensor, factor: Factor) -> Tensor:
    channels(image, "AdjustBrightness")
    return _clamped(image * factor, image.dtype)


def contrast(image: Tensor, factor: Factor) -> Tensor:
    channels(image, "AdjustContrast")
    return _blend(image, _grey(image).mean((-3, -2, -1), keepdim=True), factor)


def saturation(image: Tensor, factor: Factor) -> Tensor:
    return image if channels(image, "AdjustSaturation") == 1 else _blend(image, _grey(image), factor)


def _hue_of(image: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The hue in [0, 1) of [..., 3, H, W]."""
    r, g, b = image.unbind(-3)
    span = torch.where(high == low, 1.0, high - low)
    rc, gc, bc = (high - r) / span, (high - g) / span, (high - b) / span
    sixth = torch.where(high == r, bc - gc, torch.where(high == g, 2.0 + rc - bc, 4.0 + gc - rc))
    return (sixth * (1 / 6) + 1.0).fmod(1.0)


def _rgb(hue: Tensor, s: Tensor, v: Tensor) -> Tensor:
    whole = (hue * 6).floor()
    f, sector = hue * 6 - whole, whole.remainder(6)
    p, q, t = (((1 - x) * v).clamp(0, 1) for x in (s, s * f, s - s * f))

    def pick(*of: Tensor) -> Tensor:
        out = of[5]
        for k in range(4, -1, -1):
            out = torch.where(sector == k, of[k], out)
        return out
    return torch.stack((pick(v, q, p, p, t, v), pick(t, v, v, q, p, p), pick(p, p, t, v, v, q)), -3)


def hue(image: Tensor, factor: Factor) -> Tensor:
    """Turns the hues by a part of the circle."""
    if channels(image, "AdjustHue") == 1:
        return image
    x = to_dtype(image, torch.float32, True)
    low, high = x.amin(-3), x.amax(-3)
    if isinstance(factor, Tensor) and factor.ndim >= 3:
        factor = factor.squeeze(-3)
    s = (high - low) / torch.where(high == low, 1.0, high)
    return to_dtype(_rgb((_hue_of(x, low, high) + factor).remainder(1.0), s, high), image.dtype, True)


def gamma(image: Tensor, exponent: Factor, gain: float = 1.0) -> Tensor:
    x = (image if image.is_floating_point() else to_dtype(image, torch.float32, True)) ** exponent
    return to_dtype(x if gain == 1 else (x * gain).clamp(0, 1), image.dtype, True)


def sharpness(image: Tensor, factor: Factor) -> Tensor:
    """The outermost rows and columns stay as they are."""
    channels(image, "AdjustSharpness")
    h, w = image.shape[-2:]
    x = image if image.is_floating_point() else image.to(torch.float32)
    soft = filtered(x, torch.tensor([[1.0, 1, 1], [1, 5, 1], [1, 1, 1]], device=x.device) / 13, padding=1)
    soft = soft if image.is_floating_point() else soft.round()
    y, column = torch.arange(h, device=x.device)[:, None], torch.arange(w, device=x.device)
    inner = (y > 0) & (y < h - 1) & (column > 0) & (column < w - 1)
    return torch.where(inner, _clamped(x + (soft - x) * (1.0 - factor), image.dtype), _clamped(x, image.dtype))


def invert(image: Tensor) -> Tensor:
    return (1.0 if image.is_floating_point() else int(largest(image.dtype))) - image


def solarize(image: Tensor, threshold: Factor) -> Tensor:
    return torch.where(image >= threshold, invert(image), image)


def posterize(image: Tensor, bits: int) -> Tensor:
    if image.is_floating_point():
        levels = 1 << bits
        return (image * levels).floor().clamp(0, levels - 1) * (1 / levels)
    total = _BITS[image.dtype]
    return image if bits >= total else image & (((1 << bits) - 1) << (total - bits))


def autocontrast(image: Tensor) -> Tensor:
    channels(image, "AutoContrast")
    x = image if image.is_floating_point() else image.to(torch.float32)
    low, high = x.amin((-2, -1), keepdim=True), x.amax((-2, -1), keepdim=True)
    flat = high == low
    scale = torch.where(flat, 1.0, (high - low) * (1 / largest(image.dtype)))
    return _clamped((x - torch.where(flat, 0.0, low)) / scale, image.dtype)


def equalize(image: Tensor) -> Tensor:
    """As Pillow does, by a table of 256 values for each channel; other dtypes are converted to uint8 and back."""
    x = to_dtype(image, torch.uint8, True)
    index = x.flatten(-2).to(torch.int64)
    counts = torch.zeros(*x.shape[:-2], 256, dtype=torch.int64, device=x.device)
    counts = counts.scatter_add(-1, index, torch.ones_like(index))
    sums = counts.cumsum(-1)
    last = counts.gather(-1, sums.argmax(-1, keepdim=True))
    step = (sums[..., -1:] - last) // 255
    table = ((sums - counts + step // 2) // step.clamp(min=1)).clamp(0, 255).to(torch.uint8)
    found = table.gather(-1, index).reshape(x.shape)
    return to_dtype(torch.where((step > 0).unsqueeze(-1), found, x), image.dtype, True)
