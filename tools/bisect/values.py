"""All values of a model by another system, for `weft bisect --against`.

usage: values.py MODEL PEER INPUTS.safetensors OUTPUT.safetensors
PEER is onnxruntime, of a model of ONNX, or torch, of a .pt2 file. INPUTS has the tensors x.0, x.1, ...; OUTPUT gets the
results, y.<i>, and every value inside by the name that Weft gives to its node. A failure is one line on standard error.
"""
import json
import os
import re
import sys

DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
          "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64", "BOOL": "bool"}
NAMES = {numpy: file for file, numpy in DTYPES.items()}


def read(np, path):
    data = memoryview(open(path, "rb").read())
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, t in json.loads(bytes(data[8:8 + size])).items():
        if name != "__metadata__" and t["dtype"] in DTYPES:
            first, last = (8 + size + k for k in t["data_offsets"])
            tensors[name] = np.frombuffer(data[first:last], DTYPES[t["dtype"]]).reshape(t["shape"])
    return tensors


def write(np, path, tensors):
    """What has a dtype that Weft's files have here; others are left out."""
    header, blobs, at = {}, [], 0
    for name, t in tensors.items():
        if t.dtype.name not in NAMES:
            continue
        blob = np.ascontiguousarray(t).tobytes()
        header[name] = {"dtype": NAMES[t.dtype.name], "shape": list(t.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + b"".join(blobs))


def called(name):
    """As graphs of Weft call it."""
    name = re.sub(r"[^A-Za-z0-9_.$]", "_", name)
    return "_" + name if name[:1].isdigit() else name


def of_onnx(np, path, given):
    import onnx
    import onnxruntime
    model = onnx.load(path)
    results = [o.name for o in model.graph.output]
    inside = [name for n in model.graph.node for name in n.output if name and name not in results]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in inside)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    values = session.run(None, {x.name: given[k] for k, x in enumerate(session.get_inputs())})
    return values[:len(results)], {name: v for name, v in zip(results + inside, values) if isinstance(v, np.ndarray)}


def of_torch(np, path, given):
    import torch
    program, values = torch.export.load(path), {}

    class Recording(torch.fx.Interpreter):
        def run_node(self, n):
            v = super().run_node(n)
            if isinstance(v, torch.Tensor) and n.op == "call_function":
                values[n.name] = v.detach().clone()
            return v
    user, args = iter(given), []
    for spec in program.graph_signature.input_specs:
        kept = {**program.constants, **program.state_dict}
        args.append(torch.from_numpy(next(user).copy()) if spec.kind.name == "USER_INPUT" else kept[spec.target])
    with torch.no_grad():
        results = Recording(program.graph_module).run(*args)
    kinds = [spec.kind.name for spec in program.graph_signature.output_specs]
    results = [r for r, kind in zip(results, kinds) if kind == "USER_OUTPUT" and isinstance(r, torch.Tensor)]
    array = {k: v.numpy() for k, v in values.items() if v.dtype != torch.bfloat16 and not v.is_complex()}
    return [r.numpy() for r in results], array


def main():
    path, peer, inputs, output = sys.argv[1:]
    import numpy as np
    file = read(np, inputs)
    given = [file[f"x.{k}"] for k in range(sum(name.startswith("x.") for name in file))]
    results, values = {"onnxruntime": of_onnx, "torch": of_torch}[peer](np, path, given)
    write(np, output, {**{called(k): v for k, v in values.items()}, **{f"y.{k}": np.asarray(v) for k, v in enumerate(results)}})


if __name__ == "__main__":
    try:
        main()
    except Exception as e:  # whatever a library raises is one line
        os.write(2, f"weft: {sys.argv[2]}: {(str(e).strip() or repr(e)).splitlines()[0]}\n".encode())
        sys.exit(1)
