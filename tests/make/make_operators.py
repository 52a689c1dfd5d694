"""Record which operators PyTorch can leave in a file: PYTHON make_operators.py FILE (tests/expected/operators.txt). Then
`BLESS=1 build/frontend_operators` writes beside each name whether Weft imports it, or why not.

An operator counts if its schema writes nothing (what a functional export holds) and takes or gives a tensor, and if it is one of
PyTorch's own: ATen (native_functions.yaml), prims, quantized_decomposed, torchvision, export, torch.ops.higher_order, and the functions
of Python that stand in a graph for themselves (torch._functorch.predispatch, operators on sizes)."""
import math
import operator
import sys
import warnings

import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401 (registers quantized_decomposed)
import torch._functorch.predispatch as predispatch
import torchvision  # noqa: F401 (registers torchvision)

warnings.simplefilter("ignore")
SPACES = ("aten", "prims", "quantized_decomposed", "torchvision", "export")


def dispatched():
    """The operators that have a kernel, without those that only TorchScript knows."""
    for name in torch._C._dispatch_get_all_op_names():
        space, _, rest = name.partition("::")
        if space not in SPACES:
            continue
        base, _, overload = rest.partition(".")
        packet = getattr(getattr(torch.ops, space), base, None)
        if packet is None or (overload or "default") not in packet.overloads():
            continue
        schema = getattr(packet, overload or "default")._schema
        if not schema.is_mutable and "ensor" in str(schema):
            yield f"torch.ops.{space}.{base}.{overload or 'default'}"


def higher_order():
    for name in torch._ops._higher_order_ops:
        yield f"torch.ops.higher_order.{name}"


def functions():
    """Functions of Python that torch.export serialises by their name."""
    from torch._export.serde.serialize import _SYM_OPS
    for f in _SYM_OPS:
        module = getattr(f, "__module__", "")
        if module in ("_operator", "math", "torch") and hasattr(f, "__name__"):
            yield f"{module}.{f.__name__}"
    for name, f in vars(predispatch).items():
        if callable(f) and getattr(f, "__module__", "") == predispatch.__name__ and name.startswith("_"):
            yield f"{predispatch.__name__}.{name}"


names = sorted({*dispatched(), *higher_order(), *functions()})
with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write(f"# Operators that torch.export of PyTorch {torch.__version__.split('+')[0]} can leave (tests/make/make_operators.py), and "
              "what Weft says of them:\n# nothing: imported; else why not. tests/unit/frontend_operators.c compares them with the table.\n")
    out.writelines(n + "\n" for n in names)
