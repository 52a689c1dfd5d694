"""Weft: an ahead-of-time compiler for neural networks.

    model = weft.load("model.so")
    y = model(x)                                  # arrays of NumPy, tensors of PyTorch

    model = weft.compile(module, (x,))            # in this process
    weft.compile(module, (x,), path="model.so")   # a file

    fast = torch.compile(module, backend="weft")
"""
from weft._weft import BusyError, CheckError, Error, has_llvm, version as __version__
from weft.compiler import compile
from weft.model import Function, Model, TensorInfo, load

__all__ = ["BusyError", "CheckError", "Error", "Function", "Model", "TensorInfo", "compile", "has_llvm", "load"]
