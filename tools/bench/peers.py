"""Time a model under other systems, for `weft bench --against`.

usage: peers.py MODEL.pt2 INPUTS.safetensors PEER THREADS SECONDS PRECISION [-v]
PEER: torch (eager), aoti (AOTInductor, frozen weights), onnxruntime, openvino
PRECISION: f32, or bf16 or f16: PyTorch computes under autocast, OpenVINO by its hint; ONNX Runtime has none
Prints one line: the peer's name and version, then compile seconds, runs, and minimum, median and 99th percentile in
milliseconds, peak memory in bytes. Inputs are the tensors x.0, x.1, ... ; MODEL.onnx beside the model is used where
a peer needs ONNX, and made in a temporary folder when missing. A failure is one line on standard error; with -v it is
the traceback, and what the libraries say is not kept back.
"""
import contextlib
import functools
import importlib
import logging
import os
import re
import sys
import tempfile
import time
import traceback
import warnings
import zipfile

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)


def measure(run, seconds):
    start = time.perf_counter()
    while True:  # warm up: at least three runs and a tenth of the time
        run()
        if time.perf_counter() - start > seconds / 10:
            break
    for _ in range(2):
        run()
    times, start = [], time.perf_counter()
    while time.perf_counter() - start < seconds or len(times) < 7:
        a = time.perf_counter()
        run()
        times.append(time.perf_counter() - a)
    times.sort()
    return len(times), times[0], times[len(times) // 2], times[min(len(times) - 1, int(len(times) * 0.99))]


def load(model):
    """The exported program. The classes of its inputs and outputs must be known to torch's pytree first: the modules
    that define them register them when they are imported."""
    import torch
    with zipfile.ZipFile(model) as archive:
        texts = [archive.read(n).decode() for n in archive.namelist() if n.endswith(".json") and "/models/" in n]
    for module in sorted({m for t in texts for m in re.findall(r'"type\\*"\s*:\s*\\*"([A-Za-z_][\w.]*)\.\w+\\*"', t)}):
        try:
            importlib.import_module(module)
        except ImportError:
            pass  # torch says what it misses
    return torch.export.load(model)


def onnx_path(model, folder):
    path = os.path.splitext(model)[0] + ".onnx"
    if not os.path.exists(path):
        import torch
        path = os.path.join(folder, "model.onnx")
        torch.onnx.export(load(model), f=path, dynamo=True, external_data=False, verbose=False)
    return path


def under_autocast(program, values, autocast):
    """The program, exported once more under autocast."""
    import torch
    module = program.module()

    class Cast(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, *args):
            with autocast():
                return self.module(*args)
    with torch.no_grad():
        return torch.export.export(Cast(), values).run_decompositions({})


def prepare_torch(model, inputs, threads, precision, inductor):
    import torch
    torch.set_num_threads(threads)
    program = load(model)
    values = tuple(torch.from_numpy(v) for v in inputs)
    autocast = contextlib.nullcontext
    if precision != "f32":
        autocast = functools.partial(torch.autocast, "cpu", {"bf16": torch.bfloat16, "f16": torch.float16}[precision])
    if inductor:
        program = program if precision == "f32" else under_autocast(program, values, autocast)
        with tempfile.TemporaryDirectory() as folder:
            path = torch._inductor.aoti_compile_and_package(
                program, package_path=os.path.join(folder, "m.pt2"), inductor_configs={"freezing": True})
            call, autocast = torch._inductor.aoti_load_package(path), contextlib.nullcontext
    else:
        call = program.module()

    def run():
        with torch.no_grad(), autocast():
            return call(*values)
    return torch.__version__, run


def prepare_onnxruntime(model, inputs, threads, precision):
    import onnxruntime
    if precision != "f32":
        raise ValueError(f"it computes a model of f32 in f32 only, not in {precision}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    with tempfile.TemporaryDirectory() as folder:
        session = onnxruntime.InferenceSession(onnx_path(model, folder), options, providers=["CPUExecutionProvider"])
    feed = {i.name: v for i, v in zip(session.get_inputs(), inputs)}
    return onnxruntime.__version__, lambda: session.run(None, feed)


def prepare_openvino(model, inputs, threads, precision):
    import openvino
    core = openvino.Core()
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": precision})
    with tempfile.TemporaryDirectory() as folder:
        compiled = core.compile_model(onnx_path(model, folder), "CPU")
    request = compiled.create_infer_request()
    for i, v in enumerate(inputs):
        request.set_input_tensor(i, openvino.Tensor(v))
    return openvino.__version__.split("-")[0], request.infer


def main():
    model, inputs, peer, threads, seconds, precision = *sys.argv[1:4], int(sys.argv[4]), float(sys.argv[5]), sys.argv[6]
    from safetensors.numpy import load_file
    tensors = load_file(inputs)
    names = sorted((k for k in tensors if k.startswith("x.")), key=lambda k: int(k.split(".")[1]))
    inputs = [tensors[k] for k in names]
    start = time.perf_counter()
    if peer in ("torch", "aoti"):
        version, run = prepare_torch(model, inputs, threads, precision, peer == "aoti")
    elif peer == "onnxruntime":
        version, run = prepare_onnxruntime(model, inputs, threads, precision)
    elif peer == "openvino":
        version, run = prepare_openvino(model, inputs, threads, precision)
    else:
        sys.exit(f"no peer {peer}; there are torch, aoti, onnxruntime, openvino")
    seconds_compile = time.perf_counter() - start
    runs, low, median, high = measure(run, seconds)
    with open("/proc/self/status") as status:
        peak = next((1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM:")), 0)
    print(f"{peer}-{version} {seconds_compile:.3f} {runs} {1e3 * low:.5f} {1e3 * median:.5f} {1e3 * high:.5f} {peak}")


def quiet_main():
    """Standard error is for the one line only."""
    say = os.fdopen(os.dup(2), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        main()
    except Exception as e:
        first = (str(e).strip().splitlines() or [""])[0]
        print(f"weft: {sys.argv[3]}: {type(e).__name__}: {first[:200]} (-v: where)", file=say, flush=True)
        os._exit(1)


if sys.argv[7:] == ["-v"]:
    try:
        main()
    except Exception:
        traceback.print_exc()
        os._exit(1)
else:
    quiet_main()
