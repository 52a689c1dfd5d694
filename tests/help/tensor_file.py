"""Safetensors files for tests that run where there is no PyTorch."""
import array
import json
import re

TYPES = {"f": "F32", "d": "F64", "i": "I32", "q": "I64", "Q": "U64", "b": "BOOL"}


def write_tensors(path, tensors, metadata=None):
    """tensors: {name: (code, shape, values)}, the code as array's; metadata: {name: text}."""
    header, body = {"__metadata__": metadata} if metadata else {}, b""
    for name, (code, shape, values) in tensors.items():
        data = array.array(code, values).tobytes()
        header[name] = {"dtype": TYPES[code], "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def read_tensors(path):
    """{name: list of values} of what write_tensors can write."""
    return {name: values for name, (_, _, values) in read_types(path).items()}


def read_types(path):
    """{name: (code, shape, values)}, as write_tensors takes it, numbers in names in their order. Of complex tensors the
    values are the real and imaginary parts by turns."""
    data = path.read_bytes()
    n = int.from_bytes(data[:8], "little")
    codes = {name: code for code, name in TYPES.items()} | {"C64": "f", "C128": "d"}
    result = {}
    for name, t in json.loads(data[8:8 + n]).items():
        if name != "__metadata__":
            values = array.array(codes[t["dtype"]])
            values.frombytes(data[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]])
            result[name] = codes[t["dtype"]], t["shape"], list(values)
    return dict(sorted(result.items(), key=lambda item: [int(s) if s.isdigit() else s for s in re.split(r"(\d+)", item[0])]))
