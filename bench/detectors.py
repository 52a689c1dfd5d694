"""Detectors of torchvision beside eager mode: PYTHON bench/detectors.py [NAME...], with a Python that has torch, torchvision and weft.

torch.export (2.15) refuses these models as they are: torchvision's batched_nms asks how many boxes there are (ops/boxes.py). Here it is
one nms of boxes that are moved apart by their class, which is what batched_nms does for few boxes. Weights are random; those of the heads
that give scores are scaled, because else all scores are equal and rounding decides which boxes are kept: a line says how far eager mode in
f32 is from f64, and only a small number there makes the comparison mean anything. Each detection of eager mode must be among Weft's, with
its class and its box; printed are those that are not, the greatest difference of scores, and the least time of several calls of both."""
import sys
import time
import warnings

import torch
import torchvision.ops.boxes
from torchvision.models import detection

import weft

warnings.filterwarnings("ignore")
# name: size of the image, scale of the heads
MODELS = {"fasterrcnn_mobilenet_v3_large_320_fpn": (320, 30000), "ssdlite320_mobilenet_v3_large": (320, 30000), "retinanet_resnet50_fpn": (128, 3)}
HEADS = ("cls_logits", "classification_head.module_list", "cls_score")


def batched_nms(boxes, scores, classes, iou_threshold):
    top = torch.cat([boxes.flatten(), boxes.new_zeros(1)]).max()
    return torch.ops.torchvision.nms(boxes + (classes.to(boxes) * (top + 1))[:, None], scores, iou_threshold)


class Detector(torch.nn.Module):
    """(boxes, scores, labels) of one image."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        found = self.model([x])
        found = (found[1] if isinstance(found, tuple) else found)[0]
        return found["boxes"], found["scores"], found["labels"]


def detector(name, scale):
    threshold = {"box_score_thresh": 0.02} if name.startswith("fasterrcnn") else {"score_thresh": 0.001}
    torch.manual_seed(0)
    model = getattr(detection, name)(weights=None, weights_backbone=None, **threshold).eval()
    for key, p in model.named_parameters():
        if key.endswith("weight") and any(head in key for head in HEADS):
            p.data *= scale
    return Detector(model).eval()


def exported(model, x):
    try:
        return torch.export.export(model, (x,))
    except Exception:  # the conditions of Faster R-CNN need Dynamo's tracing
        return torch.export.export(model, (x,), strict=True)


def missing(want, got):
    """How many detections of `want` are not in `got`, and the greatest difference of scores of the others."""
    boxes, scores, labels = got
    free, absent, worst = torch.ones(len(scores), dtype=torch.bool), 0, 0.0
    for box, score, label in zip(*want):
        alike = (free & (labels == label) & ((boxes - box).abs().amax(1) < 0.05)).nonzero().flatten()
        if not len(alike):
            absent += 1
            continue
        k = alike[(scores[alike] - score).abs().argmin()]
        free[k] = False
        worst = max(worst, float((scores[k] - score).abs()))
    return absent, worst


def least(f, calls=5):
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(name):
    size, scale = MODELS[name]
    model, x = detector(name, scale), torch.rand(3, size, size)
    with torch.no_grad():
        want, wide = model(x), model.double()(x.double())
        model.float()
        rounding = float((want[0] - wide[0]).abs().max()) if len(want[0]) == len(wide[0]) else float("inf")
        compiled = weft.compile(exported(model, x))
        absent, worst = missing(want, compiled(x))
        compiled.threads = torch.get_num_threads()
        eager, ours = least(lambda: model(x)), least(lambda: compiled(x))
    print(f"{name}: {absent} of {len(want[1])} detections missing, scores differ by {worst:.1e}; boxes in f32 beside f64: {rounding:.1e}; "
          f"eager {eager * 1e3:.1f} ms, weft {ours * 1e3:.1f} ms, {ours / eager:.2f}", flush=True)
    return absent


if __name__ == "__main__":
    torchvision.ops.boxes.batched_nms = batched_nms
    torch.set_num_threads(1)
    sys.exit(any([measure(name) for name in sys.argv[1:] or MODELS]))
