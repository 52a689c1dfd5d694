"""Gradients of ONNX models beside PyTorch's: gradients.py WEFT [MODULE...], in a Python with what make_exported.py needs for torch. The modules
are exported by torch.onnx.export; PyTorch's autograd differentiates the module, Weft the model, by inputs and by all initializers that
have the name and shape of a parameter. Other modules' files lose what autograd sees: PyTorch's exporter shares equal weights of layers (encoder), folds
the first step of a recurrence (rnn), and has no padding_idx (embedding)."""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "make"))
import make_exported  # noqa: E402
import onnx  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

weft, *names = sys.argv[1:]
made = {}
make_exported.torch_model = lambda name, make, exporters: made.setdefault(name, make)
for fill in make_exported.FILL["torch"]:
    fill()
bad = 0
for name in names or ["mlp", "cnn", "conv3d", "unet", "vit"]:
    with tempfile.TemporaryDirectory() as d:
        path = pathlib.Path(d) / "m.onnx"
        make_exported.torch_export(path, made[name], "dynamo", 18)
        torch.manual_seed(1)
        module, args, _ = made[name]()
        module.eval()
        args = [a.clone().requires_grad_(a.is_floating_point()) for a in args]
        y = module(*args)
        ct = torch.randn(y.shape, generator=torch.Generator().manual_seed(6))
        y.backward(ct)
        shapes = {i.name: list(i.dims) for i in onnx.load(path).graph.initializer}
        params = {n: p for n, p in module.named_parameters() if shapes.get(n) == list(p.shape) and p.grad is not None}
        ref = {f"x.{k}": a.detach() for k, a in enumerate(args)} | {f"g.{k}": a.grad for k, a in enumerate(args) if a.grad is not None}
        ref |= {"ct.0": ct} | {f"gp.{n}": p.grad.contiguous() for n, p in params.items()}
        save_file({n: t.contiguous() for n, t in ref.items()}, path.with_suffix(".safetensors"))
        p = subprocess.run([weft, "check", path, path.with_suffix(".safetensors"), "--mode", "vjp", "-q"], capture_output=True, text=True)
        bad += p.returncode != 0
        print(f"{name}: {len(params)} of {len(list(module.parameters()))} parameters, {sum(a.grad is not None for a in args)} inputs: {(p.stdout + p.stderr).strip()}", flush=True)
sys.exit(bad != 0)
