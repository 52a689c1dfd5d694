"""weft.vision: image preprocessing as modules that torch.export, weft.compile and weft.train_step take with any height and width.

    model = nn.Sequential(weft.vision.preset(ResNet50_Weights.DEFAULT), resnet50(weights="DEFAULT")).eval()
    weft.compile(model, (image,), dynamic_shapes=({1: Dim("h", min=1, max=4096), 2: Dim("w", min=1, max=4096)},), path="classify.so")

Names, arguments and results are torchvision's (transforms.v2) for tensors; torchvision itself asks the sizes in Python, which
torch.export refuses. transforms.py has those without chance, augment.py the random ones, presets.py those of torchvision's weights."""
from __future__ import annotations

from weft.vision.augment import ColorJitter, CutMix, MixUp, RandomCrop, RandomErasing, RandomHorizontalFlip, RandomResizedCrop, RandomVerticalFlip
from weft.vision.presets import preset
from weft.vision.transforms import (AdjustBrightness, AdjustContrast, AdjustGamma, AdjustHue, AdjustSaturation, AdjustSharpness, AutoContrast,
                                    CenterCrop, Compose, Equalize, FiveCrop, Frames, GaussianBlur, Grayscale, Invert, Normalize, Pad, Posterize,
                                    Resize, Solarize, ToDtype)

__all__ = ["AdjustBrightness", "AdjustContrast", "AdjustGamma", "AdjustHue", "AdjustSaturation", "AdjustSharpness", "AutoContrast", "CenterCrop",
           "ColorJitter", "Compose", "CutMix", "Equalize", "FiveCrop", "Frames", "GaussianBlur", "Grayscale", "Invert", "MixUp", "Normalize", "Pad",
           "Posterize", "RandomCrop", "RandomErasing", "RandomHorizontalFlip", "RandomResizedCrop", "RandomVerticalFlip", "Resize", "Solarize",
           "ToDtype", "preset"]
