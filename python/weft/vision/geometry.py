"""Transforms of an image's size and places, as functions. Sizes are integers or symbols of torch.export, asked by arithmetic
(sym_min, sym_max) and never by a branch. Images are [..., C, H, W]."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

MODES = ("nearest", "nearest-exact", "bilinear", "bicubic")


def pair(value: int | Sequence[int], what: str) -> tuple[int, int]:
    """(height, width) of a number or a sequence of one or two."""
    both = (value,) if isinstance(value, int) else tuple(value)
    if len(both) not in (1, 2) or not all(isinstance(v, int) and v > 0 for v in both):
        raise ValueError(f"weft.vision.{what}: expected a positive size or (height, width), got {value!r}")
    return both[0], both[-1]


def batched(image: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
    """f of the image as [N, C, H, W]."""
    if image.ndim == 4:
        return f(image)
    if image.ndim < 3:
        raise ValueError(f"weft.vision: expected an image [..., C, H, W], got {list(image.shape)}")
    if image.ndim == 3:
        return f(image.unsqueeze(0)).squeeze(0)
    out = f(image.flatten(0, -4))
    return out.reshape(*image.shape[:-3], *out.shape[-3:])


def resized(image: Tensor, size: Sequence[Any], mode: str, antialias: bool) -> Tensor:
    """size: (height, width). Integers are computed in f32 and rounded."""
    if mode not in ("bilinear", "bicubic"):
        return batched(image, lambda x: F.interpolate(x, size=size, mode=mode))

    def smooth(x: Tensor, height: Any, width: Any) -> Tensor:
        return F.interpolate(x, size=(height, width), mode=mode, align_corners=False, antialias=antialias)

    def both(x: Tensor) -> Tensor:
        if image.dtype != torch.uint8 or mode == "bilinear":
            return smooth(x, *size)
        # As PyTorch's own kernel of bytes: what the rows overshoot is cut before the columns are computed.
        rows = smooth(x, x.shape[-2], size[1]).clamp(0, 255).round()
        return smooth(rows, *size).clamp(0, 255)
    exact = image.dtype in (torch.float32, torch.float64)
    x = batched(image if exact else image.to(torch.float32), both)
    return (x if image.is_floating_point() else x.round()).to(image.dtype)


def scaled_size(h: Any, w: Any, short: int | None, max_size: int | None) -> tuple[Any, Any]:
    """The size with a short side of short, and a long one of at most max_size; without short, of max_size."""
    if short is not None:
        s = torch.sym_min(h, w)
        h, w = short * h // s, short * w // s
    if max_size is None:
        return h, w
    long = torch.sym_max(h, w)
    if short is None:
        return max_size * h // long, max_size * w // long
    return torch.sym_min(h, max_size * h // long), torch.sym_min(w, max_size * w // long)


def center_offset(size: Any, crop: int) -> Any:
    """Half of what is too much, a half rounded to the even number."""
    half = (size - crop) // 2
    return half + (size - crop) % 2 * (half % 2)


def _taken(image: Tensor, axis: int, start: Any, count: int) -> Tensor:
    """count rows from start on, zeros where the image has none. By index: of a slice torch.export asks where it begins."""
    n = image.shape[axis]
    k = torch.arange(count, device=image.device) + start
    inside = ((k >= 0) & (k < n)).reshape((count,) + (1,) * (-1 - axis))
    return torch.where(inside, image.index_select(axis, k.clamp(0, n - 1)), 0)


def window(image: Tensor, top: Any, left: Any, size: tuple[int, int]) -> Tensor:
    return _taken(_taken(image, -2, top, size[0]), -1, left, size[1])


def center_crop(image: Tensor, size: tuple[int, int]) -> Tensor:
    """Zeros surround an image that is smaller."""
    top, left = (center_offset(torch.sym_max(n - crop, 0), 0) - torch.sym_max(crop - n, 0) // 2 for n, crop in zip(image.shape[-2:], size))
    return window(image, top, left, size)


def _places(n: Any, before: int, after: int, mode: str, device: Any) -> Tensor:
    """Which row of n each row of the padded image is."""
    k = torch.arange(n + (before + after), device=device) - before
    if mode == "edge":
        return k.clamp(min=0).minimum(torch.full((), n - 1, device=device, dtype=k.dtype))
    period = torch.sym_max(2 * (n - 1), 1) if mode == "reflect" else 2 * n
    k = k % period
    mirror = (period if mode == "reflect" else period - 1) - k
    return torch.where(k >= n, mirror, k)


def padded(image: Tensor, padding: Sequence[int], mode: str, fill: float = 0) -> Tensor:
    """padding: left, top, right, bottom."""
    left, top, right, bottom = padding
    if mode == "constant":
        return F.pad(image, (left, right, top, bottom), value=fill)
    h, w = image.shape[-2:]
    return (image.index_select(-2, _places(h, top, bottom, mode, image.device))
            .index_select(-1, _places(w, left, right, mode, image.device)))


def filtered(image: Tensor, weights: Tensor, padding: int = 0) -> Tensor:
    """The correlation of each channel with [rows, columns]. Channels are members of a batch, so that their number may be dynamic."""
    x = F.conv2d(image.flatten(0, -3).unsqueeze(1), weights.to(image.dtype)[None, None], padding=padding)
    return x.reshape(*image.shape[:-2], *x.shape[-2:])


def blurred(image: Tensor, weights: Tensor) -> Tensor:
    """weights: [rows, columns], both odd; the edges are mirrored."""
    rows, columns = weights.shape
    x = image if image.is_floating_point() else image.to(torch.float32)
    x = filtered(padded(x, (columns // 2, rows // 2, columns // 2, rows // 2), "reflect"), weights)
    return (x if image.is_floating_point() else x.round()).to(image.dtype)


def resampling(n: Any, start: Tensor, length: Tensor, out: int, mode: str, dtype: torch.dtype) -> Tensor:
    """[N, out, n]: the matrix whose product with an axis of n is the antialiased resampling of start .. start + length - 1."""
    scale = (length / out).clamp(min=1e-9)[:, None, None].to(torch.float32)
    stretch = scale.clamp(min=1)
    at = torch.arange(n, device=start.device)[None, None, :] - start[:, None, None]
    centre = (torch.arange(out, device=start.device, dtype=torch.float32)[None, :, None] + 0.5) * scale
    x = ((at + 0.5 - centre) / stretch).abs()
    if mode == "bilinear":
        weight = (1 - x).clamp(min=0)
    else:  # Keys' cubic with a = -0.5
        weight = torch.where(x < 1, (1.5 * x - 2.5) * x * x + 1, torch.where(x < 2, ((-0.5 * x + 2.5) * x - 4) * x + 2, 0.0))
    weight = torch.where((at >= 0) & (at < length[:, None, None]), weight, 0.0)
    return (weight / weight.sum(-1, keepdim=True)).to(dtype)


def resampled(image: Tensor, top: Tensor, left: Tensor, height: Tensor, width: Tensor, size: tuple[int, int], mode: str) -> Tensor:
    """Boxes of [N, C, H, W], one for each image, at this size."""
    x = image if image.is_floating_point() else image.to(torch.float32)
    rows = resampling(x.shape[-2], top, height, size[0], mode, x.dtype).unsqueeze(1)
    columns = resampling(x.shape[-1], left, width, size[1], mode, x.dtype).unsqueeze(1)
    x = rows @ (x @ columns.transpose(-1, -2))
    if image.is_floating_point():
        return x
    return (x.clamp(0, 255) if image.dtype == torch.uint8 else x).round().to(image.dtype)


def cropped(image: Tensor, top: Tensor, left: Tensor, size: tuple[int, int]) -> Tensor:
    """Windows of [N, C, H, W], one for each image."""
    n, c = image.shape[:2]

    def along(count: Any) -> Tensor:
        return torch.arange(count, device=image.device)
    y, x = top[:, None] + along(size[0]), left[:, None] + along(size[1])
    return image[along(n)[:, None, None, None], along(c)[None, :, None, None], y[:, None, :, None], x[:, None, None, :]]
