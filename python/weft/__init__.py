"""Weft: an ahead-of-time compiler for neural networks.

    model = weft.load("model.so")
    y = model(x)                                  # arrays of NumPy, tensors of PyTorch

    model = weft.compile(module, (x,))            # in this process
    weft.compile(module, (x,), path="model.so")   # a file

    fast = torch.compile(module, backend="weft")
"""
import glob
import os
import warnings
from typing import Any

from weft._weft import BusyError, CancelledError, CheckError, Error, has_llvm, version as __version__
from weft.compiler import compile, join
from weft.graph import Array, Graph, call, cond, graph, jvp, optimizer_step, scan, trace, vjp, vmap, while_loop
from weft.model import Function, Model, TensorInfo, load
from weft.nodes import Node
from weft.quantization import quantize
from weft.report import Report, report
from weft.tools import bench, check, explain, profile, show


def train_step(*args: Any, **options: Any) -> Any:
    """Compiles forward, loss, gradients and a step of the optimizer; weft.training.train_step says how. Needs PyTorch."""
    from weft.training import train_step
    return train_step(*args, **options)


include = os.path.dirname(os.path.abspath(__file__))
"""The folder of the C headers for programs that use compiled models and for operators of one's own (weft_op.h)."""

for _other in glob.glob(os.path.join(glob.escape(os.path.dirname(include)), "weft-*.dist-info")):
    warnings.warn(f"{_other}: other software that is called weft was installed into the folder of weft-compiler: files of one may have "
                  "replaced files of the other; install them into different environments", stacklevel=2)

__all__ = ["Array", "BusyError", "CancelledError", "CheckError", "Error", "Function", "Graph", "Model", "Node", "Report", "TensorInfo", "bench", "call", "check", "compile", "cond", "explain",
           "graph", "has_llvm", "include", "join", "jvp", "load", "optimizer_step", "profile", "quantize", "report", "scan", "show", "trace", "train_step",
           "vjp", "vmap", "while_loop"]
