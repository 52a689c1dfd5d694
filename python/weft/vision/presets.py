"""The transforms that belong to the weights of torchvision's models."""
from __future__ import annotations

from typing import Any

import torch
from torch import nn

from weft.vision.transforms import CenterCrop, Frames, Normalize, Resize, ToDtype


def preset(weights: Any) -> nn.Sequential:
    """weights: a member of one of torchvision's enumerations of weights, its name ("ResNet50_Weights.DEFAULT"), or what its
    transforms() returns. Returns the same transforms as modules that torch.export takes. They take tensors, of uint8 or floating
    point."""
    if isinstance(weights, str):
        from torchvision.models import get_weight
        weights = get_weight(weights)
    of = weights.transforms() if callable(getattr(weights, "transforms", None)) else weights
    kind = type(of).__name__
    if kind not in ("ImageClassification", "VideoClassification", "SemanticSegmentation", "ObjectDetection"):
        raise TypeError(f"weft.vision.preset: expected weights of torchvision for classification, detection, segmentation or video, got {kind}")
    steps: list[nn.Module] = []
    if getattr(of, "resize_size", None):
        steps.append(Resize(of.resize_size, of.interpolation, antialias=getattr(of, "antialias", False)))
    if hasattr(of, "crop_size"):
        steps.append(CenterCrop(of.crop_size))
    steps.append(ToDtype(torch.float32, scale=True))
    if hasattr(of, "mean"):
        steps.append(Normalize(of.mean, of.std))
    if kind == "VideoClassification":
        steps.append(Frames())
    return nn.Sequential(*steps)
