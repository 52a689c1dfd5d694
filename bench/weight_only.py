"""Products with weights of 8 and 4 bits that are dequantised: chains of N products of SIZE x SIZE, one thread.

weight_only.py WEFT FOLDER [--rows 1,4,64] [--chain 4,24] [--size 2048] [--seconds S] [--rounds R] [--forms NAME,...]
               [--activations int8] [--onnxruntime] [--openvino] [--compiled]
Forms: f32; int8 (a scale for each column), int8-zero (with a zero point), int8-32 (groups of 32 terms), int8-32-zero, int4-32,
int4-32-zero, and the same with groups of 128. Writes ONNX files into FOLDER, compiles them, and prints the least time of a product in alternating rounds, in
microseconds, the bytes of its weights, scales and zero points, and how many of them are read in a nanosecond."""
import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FORMS = ("f32", "int8", "int8-zero", "int8-32", "int8-32-zero", "int8-128", "int4-32", "int4-32-zero", "int4-128")


def packed_int4(name, q):
    """q as ONNX stores it: two in a byte, the first in the lower half."""
    flat = (q.reshape(-1).astype(np.uint8)) & 15
    return helper.make_tensor(name, TensorProto.INT4, q.shape, (flat[::2] | flat[1::2] << 4).tobytes(), raw=True)


def integers(name, q, bits):
    return packed_int4(name, q) if bits == 4 else numpy_helper.from_array(q.astype(np.int8), name)


def weights(form, k, size, random):
    """Nodes and tensors that give weight k, and the bytes that are read."""
    name = f"w{k}"
    if form == "f32":
        return [], [numpy_helper.from_array((random.standard_normal((size, size)) / size ** 0.5).astype(np.float32), name)], 4 * size * size
    bits, zero = int(form[3]), form.endswith("zero")
    group = next((int(x) for x in form.split("-") if x.isdigit()), 0)
    most = 1 << bits - 1
    q = random.integers(-most, most, (size, size))
    shape = (size // group, size) if group else (size,)
    scale = (random.uniform(0.5, 1.5, shape) / most / size ** 0.5).astype(np.float32)
    tensors = [integers(name + "q", q, bits), numpy_helper.from_array(scale, name + "s")]
    nbytes = size * size * bits // 8 + scale.nbytes
    if zero:
        points = random.integers(-most // 4, most // 4, shape)
        tensors.append(integers(name + "z", points, bits))
        nbytes += points.size * bits // 8
    more = {"axis": 0, "block_size": group} if group else {"axis": 1}
    node = helper.make_node("DequantizeLinear", [name + "q", name + "s"] + [name + "z"] * zero, [name], **more)
    return [node], tensors, nbytes


def make(path, form, rows, chain, size):
    random, nodes, tensors, nbytes = np.random.default_rng(0), [], [], 0
    for k in range(chain):
        more, held, n = weights(form, k, size, random)
        nodes += more + [helper.make_node("MatMul", [f"x{k}", f"w{k}"], [f"x{k + 1}"])]
        tensors += held
        nbytes += n
    given = helper.make_tensor_value_info("x0", TensorProto.FLOAT, [rows, size])
    result = helper.make_tensor_value_info(f"x{chain}", TensorProto.FLOAT, [rows, size])
    graph = helper.make_graph(nodes, "chain", [given], [result], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return nbytes / chain


def weft_time(weft, compiled, seconds):
    command = [weft, "bench", compiled, "--seconds", str(seconds), "--threads", "1", "--no-op-by-op", "--json"]
    rows = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["rows"]
    return min(v for row in rows if row["name"] == "compiled" for k, v in row.items() if k.startswith("min")) * 1e3


def onnxruntime_time(path, rows, size, seconds):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {"x0": np.ones((rows, size), np.float32)}
    session.run(None, feed)
    least, end = 1e9, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        session.run(None, feed)
        least = min(least, time.perf_counter() - begin)
    return least * 1e6


def openvino_time(path, rows, size, seconds):
    import openvino
    model = openvino.Core().compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY"})
    request, x = model.create_infer_request(), np.ones((rows, size), np.float32)
    request.infer([x])
    least, end = 1e9, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        request.infer([x])
        least = min(least, time.perf_counter() - begin)
    return least * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(x) for x in text.split(",")]
    parser.add_argument("weft")
    parser.add_argument("folder")
    parser.add_argument("--rows", type=numbers, default=[1])
    parser.add_argument("--chain", type=numbers, default=[4, 24])
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--forms", type=lambda text: text.split(","), default=list(FORMS))
    parser.add_argument("--activations", help="int8: round what the weights are multiplied with")
    parser.add_argument("--onnxruntime", action="store_true")
    parser.add_argument("--openvino", action="store_true")
    parser.add_argument("--compiled", action="store_true", help="FOLDER has the models of an earlier call")
    args = parser.parse_args()
    cases = [(form, rows, chain) for chain in args.chain for rows in args.rows for form in args.forms]
    nbytes, least, peer = {}, {}, {}
    options = ["--activations", args.activations] if args.activations else []
    peers = {"onnxruntime": onnxruntime_time} if args.onnxruntime else {}
    peers |= {"openvino": openvino_time} if args.openvino else {}
    for case in cases:
        path = os.path.join(args.folder, f"{case[0]}_{case[1]}_{case[2]}")
        record = path + ".bytes"
        if not args.compiled:
            nbytes[case] = make(path + ".onnx", *case, args.size)
            with open(record, "w") as f:
                f.write(str(nbytes[case]))
            subprocess.run([args.weft, "compile", path + ".onnx", "-o", path + ".so", "--no-cache", *options], check=True,
                           stdout=subprocess.DEVNULL)
        with open(record) as f:
            nbytes[case] = float(f.read())
    for _ in range(args.rounds):
        for case in cases:
            path = os.path.join(args.folder, f"{case[0]}_{case[1]}_{case[2]}")
            least[case] = min(least.get(case, 1e9), weft_time(args.weft, path + ".so", args.seconds))
            for name, time_of in peers.items():
                took = time_of(path + ".onnx", case[1], args.size, args.seconds)
                peer[case, name] = min(peer.get((case, name), 1e9), took)
    for case in cases:
        form, rows, chain = case
        each = least[case] / chain
        beside = "".join(f", {name} {peer[case, name] / chain:9.1f}" for name in peers)
        print(f"{form:14} {rows:4} rows, chain of {chain:3}: {each:9.1f} us, {nbytes[case] / 1e6:6.2f} MB, {nbytes[case] / each / 1e3:6.2f} GB/s{beside}")


if __name__ == "__main__":
    sys.exit(main())
