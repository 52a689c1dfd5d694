"""Quantised models beside OpenVINO and ONNX Runtime, one thread, on the same file.

quantised.py make FOLDER MODEL.onnx...: quantises models by onnxruntime.quantization (static, QDQ, a scale for each channel of
weights) with MODEL.safetensors (x.0, x.1, ...) and three variants of it as calibration; writes FOLDER/MODEL_q.onnx.
quantised.py time WEFT FOLDER MODEL.onnx... [--seconds S] [--rounds R] [--compiled]: alternating rounds, the minimum in ms;
errors are of the outputs, relative to the largest result of MODEL.onnx in f32 by ONNX Runtime. --compiled: FOLDER has the
compiled models of an earlier call."""
import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np
from safetensors.numpy import load_file


def base(model):
    return os.path.splitext(model)[0]


def inputs(model):
    ref = load_file(base(model) + ".safetensors")
    return [ref[k] for k in sorted(k for k in ref if k.startswith("x."))]


def quantised(folder, model):
    return os.path.join(folder, os.path.basename(base(model)) + "_q.onnx")


def make(folder, models):
    import onnxruntime
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self, names, given, variants=3):
            noise = np.random.default_rng(0)
            near = lambda x: (x + 0.1 * noise.standard_normal(x.shape)).astype(x.dtype) if x.dtype == np.float32 else x
            self.calls = iter([dict(zip(names, given))] + [dict(zip(names, map(near, given))) for _ in range(variants)])

        def get_next(self):
            return next(self.calls, None)

    for model in models:
        out = quantised(folder, model)
        prepared = out.replace("_q.onnx", "_prepared.onnx")
        quant_pre_process(model, prepared, skip_symbolic_shape=True)
        names = [i.name for i in onnxruntime.InferenceSession(prepared).get_inputs()]
        quantize_static(prepared, out, Reader(names, inputs(model)), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


def onnxruntime_model(path, given):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {i.name: x for i, x in zip(session.get_inputs(), given)}
    return lambda: session.run(None, feed)


def openvino_model(path, given):
    import openvino
    # outside of integers f32, as in the others
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY"}
    request = openvino.Core().compile_model(path, "CPU", settings).create_infer_request()
    return lambda: [np.array(x) for x in request.infer(given).values()]


def fastest(call, seconds):
    call()
    least, end = 1e9, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - begin)
    return least * 1e3


def weft_time(weft, compiled, model, seconds):
    command = [weft, "bench", compiled, "--inputs", base(model) + ".safetensors", "--seconds", str(seconds), "--threads", "1",
               "--no-op-by-op", "--json"]
    rows = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["rows"]
    return min(v for row in rows if row["name"] == "compiled" for k, v in row.items() if k.startswith("min"))


def weft_results(weft, compiled, model):
    out = compiled + ".safetensors"
    subprocess.run([weft, "run", compiled, "--inputs", base(model) + ".safetensors", "--outputs", out, "--threads", "1"], check=True)
    results = load_file(out)
    return [results[k] for k in sorted(results)]


def error(results, right):
    return max(float(np.abs(np.asarray(x, float) - np.asarray(y, float)).max() / max(np.abs(y).max(), 1e-30)) for x, y in zip(results, right))


def measure(args, model):
    given, quant = inputs(model), quantised(args.folder, model)
    compiled = {name: os.path.join(args.folder, os.path.basename(base(path)) + ".so") for name, path in (("weft f32", model), ("weft", quant))}
    for path, out in zip((model, quant), compiled.values()):
        if not args.compiled:
            subprocess.run([args.weft, "compile", path, "-o", out, "--no-cache", "--target", "native"], check=True, stdout=subprocess.DEVNULL)
    right = onnxruntime_model(model, given)()
    peers = {"onnxruntime": onnxruntime_model(quant, given), "openvino": openvino_model(quant, given)}
    errors = {name: error(call(), right) for name, call in peers.items()}
    errors["weft"] = error(weft_results(args.weft, compiled["weft"], model), right)
    least = {}
    for _ in range(args.rounds):
        for name, out in compiled.items():
            least[name] = min(least.get(name, 1e9), weft_time(args.weft, out, model, args.seconds))
        for name, call in peers.items():
            least[name] = min(least.get(name, 1e9), fastest(call, args.seconds))
    best = min(least[name] for name in peers)
    print(os.path.basename(base(model)).ljust(24), *(f"{k} {v:.3f}" for k, v in least.items()), "| errors", *(f"{k} {v:.4f}" for k, v in errors.items()),
          f"| best peer / weft {best / least['weft']:.3f}, weft f32 / weft {least['weft f32'] / least['weft']:.2f}", flush=True)
    return best / least["weft"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    mode = modes.add_parser("make")
    mode.add_argument("folder")
    mode.add_argument("model", nargs="+")
    mode = modes.add_parser("time")
    mode.add_argument("weft")
    mode.add_argument("folder")
    mode.add_argument("model", nargs="+")
    mode.add_argument("--seconds", type=float, default=1)
    mode.add_argument("--rounds", type=int, default=3)
    mode.add_argument("--compiled", action="store_true")
    args = parser.parse_args()
    if args.mode == "make":
        return make(args.folder, args.model)
    ratios = [measure(args, model) for model in args.model]
    print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.3f}, worst {min(ratios):.3f}")


if __name__ == "__main__":
    sys.exit(main())
