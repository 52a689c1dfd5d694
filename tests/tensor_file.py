"""Safetensors files for tests that run where there is no PyTorch."""
import array
import json

TYPES = {"f": "F32", "q": "I64", "b": "BOOL"}


def write_tensors(path, tensors):
    """tensors: {name: (code, shape, values)}, the code as array's."""
    header, body = {}, b""
    for name, (code, shape, values) in tensors.items():
        data = array.array(code, values).tobytes()
        header[name] = {"dtype": TYPES[code], "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
