"""What a compiled detector finds, beside what PyTorch does: compare.py WEFT MODEL.pt2 [OPTION OF WEFT RUN...]

For every MODEL.<k>.safetensors that export.py wrote. Detections are compared in the order in which they come, but two whose scores
differ by no more than rounding may change places, and the last ones, too, with what PyTorch left out for the same reason. Of labels
everything is to be equal, of boxes and scores all but 8 times PyTorch's own error, where that is known, else 1e-3 of the largest."""
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load_file


def outputs(tensors, prefix="y."):
    y = [tensors[k] for k in sorted((k for k in tensors if k.startswith(prefix)), key=lambda k: int(k[len(prefix):]))]
    pick = lambda test: next(v for v in y if test(v))
    return pick(lambda v: v.dim() == 2), pick(lambda v: v.dtype == torch.int64), pick(lambda v: v.dim() == 1 and v.is_floating_point())


def allowed(path, large):
    with safe_open(path, "pt") as f:
        known = f.metadata() or {}
        y = {k: f.get_tensor(k) for k in f.keys() if k.startswith("y.")}
    error = [8 * float(v) for k, v in known.items() if y[k.replace("eager_err", "y")].dim() == (2 if large else 1)]
    largest = max(float(v.abs().max()) for v in y.values() if v.is_floating_point() and v.dim() == (2 if large else 1))
    return min(error[0], 1e-3 * largest) if error else 1e-3 * largest


def compare(got, want, near_box, near_score):
    """The number of detections that have none of PyTorch's for a partner, and how far the others are from their place."""
    free, moved, lonely, end = list(range(len(want[2]))), 0, 0, float(want[2].min()) if len(want[2]) else 0.0
    for k in range(len(got[2])):
        same = [i for i in free if got[1][k] == want[1][i] and abs(got[2][k] - want[2][i]) <= near_score and
                (got[0][k] - want[0][i]).abs().max() <= near_box]
        if same:
            free.remove(same[0])
            moved += same[0] != k
        elif got[2][k] - end > near_score:
            lonely += 1
    return lonely, moved


def main():
    weft, model, bad = sys.argv[1], pathlib.Path(sys.argv[2]), 0
    for ref in sorted(model.parent.glob(model.stem + ".[0-9]*.safetensors")):
        want = outputs(load_file(ref))
        with tempfile.TemporaryDirectory() as d:
            out = pathlib.Path(d) / "out.safetensors"
            subprocess.run([weft, "run", str(model), "--inputs", str(ref), "--outputs", str(out), *sys.argv[3:]], check=True)
            found = load_file(out)
        got = outputs({f"y.{k}": v for k, v in enumerate(found.values())} if not any(k.startswith("y.") for k in found) else found)
        near_box, near_score = allowed(ref, True), allowed(ref, False)
        lonely, moved = compare(got, want, near_box, near_score)
        right = len(got[2]) == len(want[2]) and not lonely
        bad += not right
        print(f"{'ok  ' if right else 'FAIL'} {ref.name}: {len(got[2])} detections of {len(want[2])}, {lonely} that PyTorch does not have, {moved} "
              f"in another place (boxes within {near_box:.2g}, scores within {near_score:.2g})")
    sys.exit(1 if bad else 0)


main()
