"""Results of a model of ONNX by another system, for `weft check --against`.

usage: against.py MODEL.onnx PEER OUTPUT.safetensors [INPUTS.safetensors]
PEER is onnxruntime. Inputs are the tensors x.0, x.1, ... of INPUTS, or those named like the model's inputs; without the
file they are made up: floats of a normal distribution, integers 0 and 1; a dimension without a number is 2, 3 or 4, the
same wherever it has the same name. OUTPUT gets the inputs, x.<i>, and the results, y.<i>. A failure is one line on
standard error.
"""
import json
import os
import sys

DTYPES = {"float": ("F32", "float32"), "double": ("F64", "float64"), "float16": ("F16", "float16"), "bool": ("BOOL", "bool"),
          "int8": ("I8", "int8"), "int16": ("I16", "int16"), "int32": ("I32", "int32"), "int64": ("I64", "int64"),
          "uint8": ("U8", "uint8"), "uint16": ("U16", "uint16"), "uint32": ("U32", "uint32"), "uint64": ("U64", "uint64")}
NAMES = {numpy: file for file, numpy in DTYPES.values()}


def read(np, path):
    data = memoryview(open(path, "rb").read())
    size = int.from_bytes(data[:8], "little")
    dtypes = dict(DTYPES.values())
    tensors = {}
    for name, t in json.loads(bytes(data[8:8 + size])).items():
        if name != "__metadata__" and t["dtype"] in dtypes:
            first, last = (8 + size + k for k in t["data_offsets"])
            tensors[name] = np.frombuffer(data[first:last], dtypes[t["dtype"]]).reshape(t["shape"])
    return tensors


def write(np, path, tensors):
    header, blobs, at = {}, [], 0
    for name, t in tensors.items():
        if t.dtype.name not in NAMES:
            raise ValueError(f"{name} is of {t.dtype.name}, which is not supported")
        blob = np.ascontiguousarray(t).tobytes()
        header[name] = {"dtype": NAMES[t.dtype.name], "shape": list(t.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + b"".join(blobs))


def made_up(np, rng, x, sizes):
    kind = x.type.removeprefix("tensor(").removesuffix(")")
    if kind not in DTYPES:
        raise ValueError(f"input {x.name} is of {x.type}: give its value in a file")
    shape = [d if isinstance(d, int) else sizes.setdefault(d or object(), 2 + len(sizes) % 3) for d in x.shape]
    numpy = DTYPES[kind][1]
    return rng.standard_normal(shape).astype(numpy) if kind in ("float", "double", "float16") else rng.integers(0, 2, shape).astype(numpy)


def main():
    model, peer, output, *given = sys.argv[1:]
    import numpy as np
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    file, rng, sizes, inputs = read(np, given[0]) if given else {}, np.random.default_rng(1), {}, {}
    for k, x in enumerate(session.get_inputs()):
        v = file.get(f"x.{k}", file.get(x.name))
        if v is None and given:
            raise ValueError(f"{given[0]} has no tensor x.{k} or {x.name}")
        inputs[x.name] = made_up(np, rng, x, sizes) if v is None else v
    results = session.run(None, inputs)
    write(np, output, {**{f"x.{k}": v for k, v in enumerate(inputs.values())}, **{f"y.{k}": np.asarray(v) for k, v in enumerate(results)}})


if __name__ == "__main__":
    try:
        main()
    except Exception as e:  # whatever a library raises is one line
        os.write(2, f"weft: {sys.argv[2]}: {(str(e).strip() or repr(e)).splitlines()[0]}\n".encode())
        sys.exit(1)
