"""Results of a model of ONNX by another system, for `weft check --against`.

usage: against.py MODEL.onnx PEER OUTPUT.safetensors given INPUTS.safetensors
       against.py MODEL.onnx PEER OUTPUT.safetensors "made up" BOUNDS
PEER is onnxruntime. Inputs are the tensors x.0, x.1, ... of INPUTS, or those named like the model's inputs; or they are
made up: floats of a normal distribution, integers below the number that a line "N NAME" of BOUNDS has for the input, 0
and 1 if that is 0; a dimension without a number is 2, 3 or 4, the same wherever it has the same name. If the peer
refuses these, integers are 0 and 1. OUTPUT gets the inputs, x.<i>, and the results, y.<i>. What was made up is one line
on standard output, a failure one line on standard error.
"""
import json
import os
import sys

DTYPES = {"float": ("F32", "float32"), "double": ("F64", "float64"), "float16": ("F16", "float16"), "bool": ("BOOL", "bool"),
          "int8": ("I8", "int8"), "int16": ("I16", "int16"), "int32": ("I32", "int32"), "int64": ("I64", "int64"),
          "uint8": ("U8", "uint8"), "uint16": ("U16", "uint16"), "uint32": ("U32", "uint32"), "uint64": ("U64", "uint64")}
SEED = 1
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


def made_up(np, rng, x, sizes, bound):
    kind = x.type.removeprefix("tensor(").removesuffix(")")
    if kind not in DTYPES:
        raise ValueError(f"input {x.name} is of {x.type}: give its value in a file")
    shape = [d if isinstance(d, int) else sizes.setdefault(d or object(), 2 + len(sizes) % 3) for d in x.shape]
    numpy = DTYPES[kind][1]
    if kind in ("float", "double", "float16"):
        return rng.standard_normal(shape).astype(numpy)
    most = bound or 2
    return rng.integers(0, most if kind == "bool" else min(most, np.iinfo(numpy).max + 1), shape).astype(numpy)


def all_made_up(np, wanted, bounds):
    """Values by name, and what they are in words."""
    rng, sizes, known = np.random.default_rng(SEED), {}, {}
    for line in bounds.splitlines():
        bound, name = line.split(" ", 1)
        known[name] = int(bound)
    made = {x.name: made_up(np, rng, x, sizes, known.get(x.name, 0)) for x in wanted}
    said = [f"{name} of 0 to {known[name] - 1}" for name, v in made.items() if v.dtype.kind in "iu" and known.get(name)]
    if any(v.dtype.kind == "f" for v in made.values()):
        said.append("floats of a normal distribution")
    if any(v.dtype.kind in "iub" and not known.get(name) for name, v in made.items()):
        said.append("other integers 0 and 1" if any(known.values()) else "integers 0 and 1")
    return made, f"inputs are made up (seed {SEED}): {', '.join(said)}"


def given(path, np, wanted):
    file, inputs = read(np, path), {}
    for k, x in enumerate(wanted):
        v = file.get(f"x.{k}", file.get(x.name))
        if v is None:
            raise ValueError(f"{path} has no tensor x.{k} or {x.name}")
        inputs[x.name] = v
    return inputs


def run_made_up(np, session, bounds):
    """What the operators say of indices may be too much: an offset is added, for one."""
    wanted = session.get_inputs()
    inputs, said = all_made_up(np, wanted, bounds)
    try:
        return inputs, session.run(None, inputs), said
    except Exception as e:
        if not bounds.strip():
            raise
        inputs, said = all_made_up(np, wanted, "")
        return inputs, session.run(None, inputs), said + f", for ({first_line(e)}) with indices of all of the tables"


def first_line(e):
    return (str(e).strip() or repr(e)).splitlines()[0]


def main():
    model, _, output, how, what = sys.argv[1:]
    import numpy as np
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    if how == "given":
        inputs = given(what, np, session.get_inputs())
        results = session.run(None, inputs)
    else:
        inputs, results, said = run_made_up(np, session, what)
        print(said[:290] if inputs else "")
    write(np, output, {**{f"x.{k}": v for k, v in enumerate(inputs.values())}, **{f"y.{k}": np.asarray(v) for k, v in enumerate(results)}})


if __name__ == "__main__":
    try:
        main()
    except Exception as e:  # whatever a library raises is one line
        os.write(2, f"weft: {sys.argv[2]}: {first_line(e)}\n".encode())
        sys.exit(1)
