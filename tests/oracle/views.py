"""What PyTorch's schemas mark as a view the op table marks, too, and nothing else: PYTHON tests/oracle/views.py, with a Python that has
torch. The importer refuses what is marked and has no .view (tests/unit/ir_op.c), so no view is copied silently."""
import pathlib
import re
import sys

import torch

root = pathlib.Path(__file__).resolve().parents[2]
marked = {}
for path in sorted(root.glob("ops/*/*.c")):
    for texts in re.findall(r"\.schema =\s*((?:\"[^\"]*\"\s*)+)[,}]", path.read_text()):
        schema = "".join(re.findall(r"\"([^\"]*)\"", texts))
        marked[schema.partition("(")[0]] = "(a" in schema.rpartition("->")[2]
wrong = 0
for schema in torch._C._jit_get_all_schemas():
    name = schema.name.replace("::", ".") + ("." + schema.overload_name if schema.overload_name else "")
    is_view = any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)
    if name in marked and marked[name] != is_view:
        print(f"{name}: PyTorch says {'a view' if is_view else 'no view'}: {schema}")
        wrong += 1
sys.exit(f"{wrong} schemas differ" if wrong else 0)
