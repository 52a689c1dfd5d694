"""What a model gives when the weights of its linear layers are rounded to 8 bits, a scale for each row (examples/passes/passes.h), by NumPy and
PyTorch: make_quantised.py MODEL.pt2 MODEL.safetensors OUT.safetensors [ROWS]. OUT has the inputs of the reference (the first ROWS of each), the results in double precision, and
eager_err, the error of the same in single precision."""
import json
import sys

import numpy as np
import safetensors.numpy
import torch

model, reference, out = sys.argv[1:4]
rows = int(sys.argv[4]) if len(sys.argv) > 4 else None
with safetensors.safe_open(reference, "np") as f:
    given = {name: f.get_tensor(name) for name in f.keys()}
inputs = [given[f"x.{k}"][:rows] for k in range(len(given)) if f"x.{k}" in given]


def rounded(weight, double):
    w = weight.detach().numpy()
    most = np.abs(w).max(axis=1)
    scale = np.where(most > 0, most / np.float32(127), np.float32(1)).astype(np.float32)
    q = np.rint(w / scale[:, None])
    wide = np.float64 if double else np.float32
    return torch.from_numpy(q.astype(wide) * scale.astype(wide)[:, None])


def results(double):
    program = torch.export.load(model)
    names = program.graph_signature.inputs_to_parameters
    linear = {n.args[1].name for n in program.graph.nodes if n.target == torch.ops.aten.linear.default}
    module = program.module()
    quantised = {names[n] for n in linear}
    values = {k: rounded(v, double) if k in quantised else v for k, v in module.state_dict().items()}
    if double:
        module.double()
    module.load_state_dict({k: v.double() if double and v.is_floating_point() else v for k, v in values.items()})
    with torch.no_grad():
        y = module(*[torch.from_numpy(x).double() if double and x.dtype == np.float32 else torch.from_numpy(x) for x in inputs])
    return [t.numpy() for t in (y if isinstance(y, (tuple, list)) else [y])]


exact, single = results(True), results(False)
meta = {f"eager_err.{k}": repr(float(np.abs(a - b).max())) for k, (a, b) in enumerate(zip(exact, single))}
tensors = {f"x.{k}": np.ascontiguousarray(x) for k, x in enumerate(inputs)} | {f"y.{k}": y.astype(np.float32) for k, y in enumerate(exact)}
safetensors.numpy.save_file(tensors, out, metadata=meta)
print(json.dumps(meta))
