"""A model with large weights, written without PyTorch: big_model.py OUT.pt2 [BYTES]

A chain of linear layers of width 4096 with biases, f32, [1, 4096] in and out, like an exported one; the weights are pseudo-random bits of
small numbers. By default a gigabyte (10^9 bytes, rounded to layers).
"""
import json
import random
import struct
import sys
import zlib

WIDTH = 4096
FLOAT, STRIDED = 7, 7


def meta(*shape):
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    ints = lambda values: [{"as_int": v} for v in values]
    return {"dtype": FLOAT, "sizes": ints(shape), "requires_grad": False, "device": {"type": "cpu", "index": None},
            "strides": ints(strides), "storage_offset": {"as_int": 0}, "layout": STRIDED}


def tensor(name):
    return {"as_tensor": {"name": name}}


def call(target, out, **args):
    return {"target": f"torch.ops.aten.{target}.default", "outputs": [tensor(out)], "metadata": {}, "is_hop_single_tensor_return": None,
            "name": out, "inputs": [{"name": k, "arg": tensor(v), "kind": 1} for k, v in args.items()]}


def program(layers):
    values = {"x": meta(1, WIDTH)}
    inputs, specs, nodes, config = [], [], [], {}
    last = "x"
    for k in range(layers):
        for what, shape in ("weight", (WIDTH, WIDTH)), ("bias", (WIDTH,)):
            values[f"p_{k}_{what}"] = meta(*shape)
            inputs.append(tensor(f"p_{k}_{what}"))
            specs.append({"parameter": {"arg": {"name": f"p_{k}_{what}"}, "parameter_name": f"{k}.{what}"}})
            config[f"{k}.{what}"] = {"path_name": f"{what}_{k}", "is_param": True, "use_pickle": False, "tensor_meta": meta(*shape)}
        values |= {f"linear_{k}": meta(1, WIDTH), f"relu_{k}": meta(1, WIDTH)}
        nodes += [call("linear", f"linear_{k}", input=last, weight=f"p_{k}_weight", bias=f"p_{k}_bias"),
                  call("relu", f"relu_{k}", self=f"linear_{k}")]
        last = f"relu_{k}"
    spec = lambda kind, *children: {"type": kind, "context": "null" if kind else None, "children_spec": list(children)}
    leaf = spec(None)
    kwargs = {"type": "builtins.dict", "context": "[]", "children_spec": []}
    module = {
        "graph": {"inputs": inputs + [tensor("x")], "outputs": [tensor(last)], "nodes": nodes, "tensor_values": values, "sym_int_values": {},
                  "sym_bool_values": {}, "is_single_tensor_return": False, "custom_obj_values": {}, "sym_float_values": {}},
        "signature": {"input_specs": specs + [{"user_input": {"arg": tensor("x")}}], "output_specs": [{"user_output": {"arg": tensor(last)}}]},
        "module_call_graph": [{"fqn": "", "signature": {
            "inputs": [], "outputs": [], "forward_arg_names": ["x"], "out_spec": json.dumps([1, leaf]),
            "in_spec": json.dumps([1, spec("builtins.tuple", spec("builtins.tuple", leaf), kwargs)])}}],
        "metadata": {}, "treespec_namedtuple_fields": {}}
    return {"graph_module": module, "opset_version": {"aten": 10}, "range_constraints": {}, "schema_version": {"major": 8, "minor": 20},
            "verifiers": ["TRAINING"], "torch_version": "2.15.0", "guards_code": []}, {"config": config}


class Writer:
    """A zip archive whose members are stored and begin at multiples of 64 bytes, as torch.export writes them; zip64 where it must be."""

    def __init__(self, path):
        self.f, self.directory, self.n = open(path, "wb"), b"", 0

    def add(self, name, pieces):
        size = sum(map(len, pieces))
        crc = 0
        for piece in pieces:
            crc = zlib.crc32(piece, crc)
        name, at = f"big/{name}".encode(), self.f.tell()
        pad = -(at + 30 + len(name) + 4) % 64
        extra = struct.pack("<HH", 0x4246, pad) + bytes(pad)
        self.f.write(struct.pack("<IHHHHHIIIHH", 0x04034b50, 20, 0, 0, 0, 0x21, crc, size, size, len(name), len(extra)) + name + extra)
        for piece in pieces:
            self.f.write(piece)
        far = struct.pack("<HHQ", 1, 8, at) if at >= 0xffffffff else b""
        self.directory += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014b50, 45, 45 if far else 20, 0, 0, 0, 0x21, crc, size, size, len(name),
                                      len(far), 0, 0, 0, 0, min(at, 0xffffffff)) + name + far
        self.n += 1

    def close(self):
        at, size = self.f.tell(), len(self.directory)
        self.f.write(self.directory)
        if at >= 0xffffffff:
            end = self.f.tell()
            self.f.write(struct.pack("<IQHHIIQQQQ", 0x06064b50, 44, 45, 45, 0, 0, self.n, self.n, size, at))
            self.f.write(struct.pack("<IIQI", 0x07064b50, 0, end, 1))
        self.f.write(struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, self.n, self.n, size, min(at, 0xffffffff), 0))
        self.f.close()


def weight(seed, n):
    """n floats below 2^-7 of either sign: mantissas and signs from a block of random bits that is turned by 4 bytes times the seed."""
    bits = random.Random(1).randbytes(1 << 20)
    block = bytearray(bits)
    block[3::4] = bytes(0x3b | b & 0x80 for b in bits[3::4])  # 2^-8 to 2^-7: the exponent's lowest bit is one of the mantissa's byte
    block[2::4] = bytes(b & 0x7f for b in bits[2::4])
    turned = bytes(block[4 * seed:] + block[:4 * seed])
    return [turned] * (4 * n // len(turned)) + [turned[:4 * n % len(turned)]]


if __name__ == "__main__":
    path, size = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10**9
    layers = max(1, round(size / (4 * WIDTH * (WIDTH + 1))))
    model, config = program(layers)
    w = Writer(path)
    for k in range(layers):
        w.add(f"data/weights/weight_{k}", weight(2 * k + 1, WIDTH * WIDTH))
        w.add(f"data/weights/bias_{k}", weight(2 * k + 2, WIDTH))
    for name, text in (("data/weights/model_weights_config.json", json.dumps(config)), ("data/constants/model_constants_config.json", '{"config": {}}'),
                       ("models/model.json", json.dumps(model)), ("archive_format", "pt2"), ("archive_version", "0"), (".data/version", "3\n"),
                       ("byteorder", "little")):
        w.add(name, [text.encode()])
    w.close()
