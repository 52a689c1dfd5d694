"""Detectors of torchvision for weft: export.py NAME FOLDER [--images N] [--state FILE] [--strict]

Exports ssdlite320_mobilenet_v3_large or fasterrcnn_mobilenet_v3_large_320_fpn (or another one of these families) to FOLDER/NAME.pt2, and
writes what the model as torchvision has it, unchanged, gives for N images to FOLDER/NAME.<k>.safetensors. torch.export refuses both as they are:
it cannot decide conditions on numbers of boxes, which are known only when the model runs. `exportable` puts the same functions without these
conditions in their place while the model is exported. FILE is a state dict (torch.save); without it weights are random, but such
that scores differ: what a model answers whose scores are all equal depends on the order in which equal numbers are sorted."""
import argparse
import builtins
import contextlib
import copy
import pathlib

import torch
import torchvision
from safetensors.torch import save_file
from torch.utils._pytree import tree_leaves


def batched_nms(boxes, scores, idxs, iou_threshold):
    """torchvision.ops.boxes.batched_nms without `if boxes.numel() > 4000`, which chooses between classes one by one and boxes moved
    apart by class, and without `if boxes.numel() == 0` and the loop over classes: boxes are moved apart, by as much as
    torchvision does where it does, and without an error where it goes class by class."""
    far = torch.cat([boxes.flatten(), boxes.new_zeros(1)]).max() + 1
    moved = boxes + (idxs.to(boxes) * far)[:, None]
    apart = boxes.double() + (idxs.double() * 1e6)[:, None]
    many = torch.full((), boxes.shape[0]) > 1000
    return torch.ops.torchvision.nms(torch.where(many, apart, moved.double()), scores.double(), iou_threshold)


def length(x):
    """len(tensor) wants a number; its shape may be a symbol."""
    return x.shape[0] if isinstance(x, torch.Tensor) else builtins.len(x)


@contextlib.contextmanager
def exportable():
    boxes, poolers = torchvision.ops.boxes, torchvision.ops.poolers
    original, boxes.batched_nms = boxes.batched_nms, batched_nms
    poolers.len = length
    try:
        yield
    finally:
        boxes.batched_nms = original
        del poolers.len


def unlike_scores(model, images):
    """Random weights whose activations have a deviation of about 1 in every layer, and whose heads tell boxes and classes apart."""
    norms = (torch.nn.BatchNorm2d, torchvision.ops.FrozenBatchNorm2d)

    def measure(norm, inputs):
        x = inputs[0]
        norm.running_mean.copy_(x.mean((0, 2, 3)) / 2)
        second = ((x - norm.running_mean[:, None, None]) ** 2).mean((0, 2, 3))
        norm.running_var.copy_(second.clamp(min=0.1 * float(second.mean())))

    def scale(to):
        def set_weight(layer, inputs, y):
            layer.weight.mul_(to / y.std().clamp(min=1e-6))
            return layer._conv_forward(inputs[0], layer.weight, layer.bias) if hasattr(layer, "_conv_forward") else \
                torch.nn.functional.linear(inputs[0], layer.weight, layer.bias)
        return set_weight

    hooks = [m.register_forward_pre_hook(measure) for m in model.modules() if isinstance(m, norms)]
    for name, m in model.named_modules():
        if not isinstance(m, (torch.nn.Conv2d, torch.nn.Linear)):
            continue
        if "cls_logits" in name or "classification_head" in name or "cls_score" in name:
            hooks.append(m.register_forward_hook(scale(1.0)))
        elif "bbox" in name or "regression_head" in name:
            hooks.append(m.register_forward_hook(scale(0.5)))
        elif "fpn" in name or "box_head" in name or "rpn" in name:
            hooks.append(m.register_forward_hook(scale(1.0)))
    model(images)
    for h in hooks:
        h.remove()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("name")
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--images", type=int, default=5)
    p.add_argument("--size", type=int, default=320)
    p.add_argument("--state")
    p.add_argument("--strict", action="store_true")
    p.add_argument("--double", action="store_true", help="float64: equal scores are equal, others differ by more than rounding")
    p.add_argument("--stock", action="store_true", help="export the model unchanged: says why that is refused")
    a = p.parse_args()
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    model = getattr(torchvision.models.detection, a.name)(weights=None, weights_backbone=None).eval()
    draw = lambda: torch.nn.functional.interpolate(torch.rand(1, 3, 20, 20), (a.size, a.size), mode="bilinear")[0]
    images = [draw() for _ in range(a.images)]
    if a.state:
        model.load_state_dict(torch.load(a.state, weights_only=True))
    else:
        unlike_scores(model, [draw()])
    if a.double:
        model, images = model.double(), [x.double() for x in images]
    exactly = copy.deepcopy(model).double()
    a.folder.mkdir(exist_ok=True, parents=True)
    for k, x in enumerate(images):
        y, exact = tree_leaves(model([x])), tree_leaves(exactly([x.double()]))
        error = {f"eager_err.{i}": str(float((v - w).abs().max())) for i, (v, w) in enumerate(zip(y, exact)) if v.is_floating_point() and
                 v.shape == w.shape and v.numel()}
        save_file({"x.0": x} | {f"y.{i}": v.clone().contiguous() for i, v in enumerate(y)}, a.folder / f"{a.name}.{k}.safetensors", error)
        print(f"image {k}: {[tuple(v.shape) for v in y]}, PyTorch's own error {error}")
    with contextlib.nullcontext() if a.stock else exportable():
        program = torch.export.export(model, ([images[0]],), strict=a.strict)
    torch.export.save(program, a.folder / f"{a.name}.pt2")


if __name__ == "__main__":
    main()
