"""Gradients of ONNX models beside PyTorch's: gradients.py WEFT [MODULE...], in a Python with what make_exported.py needs for torch. The modules
are exported by torch.onnx.export; PyTorch's autograd differentiates the module, Weft the model, by inputs and by initializers.

An initializer is what the exporter made of the parameters: one parameter, its transpose, or one of several parameters with equal
values. The gradient of the initializer is then the sum of those of the parameters. Initializers that the
exporter computed of several parameters (a folded batch norm) have no gradient of PyTorch's, and are counted, not compared. Two
modules' files lose what autograd sees and are not among these: the first step of a recurrence is folded (rnn), padding_idx (embedding)."""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "make"))
import make_exported  # noqa: E402
import onnx  # noqa: E402
import torch  # noqa: E402
from onnx import numpy_helper  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

weft, *names = sys.argv[1:]
made = {}
make_exported.torch_model = lambda name, make, exporters: made.setdefault(name, make)
for fill in make_exported.FILL["torch"]:
    fill()


def turned(t, how):
    return t.t() if how else t


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)


def by_initializer(model, module):
    """Which parameters each initializer is: {initializer: [(parameter, transposed)]}. Parameters of equal values share the one that has
    the name of one of them."""
    inits = {i.name: torch.from_numpy(numpy_helper.to_array(i).copy()) for i in model.graph.initializer}
    params = dict(module.named_parameters())
    out = {}
    for name, p in params.items():
        if name in inits and same(inits[name], p.detach()):
            out.setdefault(name, []).append((name, False))
            continue
        fits = [(n, how) for n, t in inits.items() for how in (False, True) if (not how or p.dim() == 2) and same(t, turned(p.detach(), how))]
        if fits:
            out.setdefault(fits[0][0], []).append((name, fits[0][1]))
    return inits, out


def distinct(make):
    """The module with other values in all parameters: exporters drop a bias of zeros, and join equal parameters."""
    def made():
        module, *rest = make()
        generator = torch.Generator().manual_seed(3)
        with torch.no_grad():
            for p in module.parameters():
                p += 0.1 * torch.randn(p.shape, generator=generator)
        return module, *rest
    return made


bad = 0
for name in names or ["mlp", "cnn", "conv3d", "unet", "vit", "encoder"]:
    with tempfile.TemporaryDirectory() as d:
        path = pathlib.Path(d) / "m.onnx"
        make = distinct(made[name])
        make_exported.torch_export(path, make, "dynamo", 18)
        torch.manual_seed(1)
        module, args, _ = make()
        module.eval()
        args = [a.clone().requires_grad_(a.is_floating_point()) for a in args]
        y = module(*args)
        ct = torch.randn(y.shape, generator=torch.Generator().manual_seed(6))
        y.backward(ct)
        inits, of = by_initializer(onnx.load(path), module)
        params = dict(module.named_parameters())
        grads = {n: sum(turned(params[p].grad, how) for p, how in list_) for n, list_ in of.items() if all(params[p].grad is not None for p, _ in list_)}
        ref = {f"x.{k}": a.detach() for k, a in enumerate(args)} | {f"g.{k}": a.grad for k, a in enumerate(args) if a.grad is not None}
        ref |= {"ct.0": ct} | {f"gp.{n}": g for n, g in grads.items()}
        save_file({n: t.contiguous() for n, t in ref.items()}, path.with_suffix(".safetensors"))
        p = subprocess.run([weft, "check", path, path.with_suffix(".safetensors"), "--mode", "vjp", "-q"], capture_output=True, text=True)
        bad += p.returncode != 0
        kept = sum(len(list_) for n, list_ in of.items() if n in grads)
        print(f"{name}: {len(grads)} initializers, which are {kept} of {len(params)} parameters, {sum(a.grad is not None for a in args)} inputs: "
              f"{(p.stdout + p.stderr).strip()}", flush=True)
sys.exit(bad != 0)
