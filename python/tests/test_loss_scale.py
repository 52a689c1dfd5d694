"""Steps in f16 with a scale of the loss, beside torch.amp.GradScaler; steps that are left out because a loss or a gradient is not finite."""
import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import weft
from test_train_command import command, data, files, named, pytestmark, tensors_of, train, trained  # noqa: F401

nn, F = torch.nn, torch.nn.functional


def scaled_steps(net, optimizer, scaler, batches, clip=None):
    """Losses and scales of PyTorch's loop."""
    out = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = F.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(trained(net), clip)
        scaler.step(optimizer)
        scaler.update()
        out.append((float(loss.detach()), scaler.get_scale()))
    return out


@pytest.mark.parametrize("clip", [None, 0.5])
def test_beside_grad_scaler(files, tmp_path, clip):
    """The scale overflows f16 at first and grows later, so that it overflows again: the same steps are skipped, losses agree. Its factors are large,
    since whether gradients near the largest f16 overflow depends on their rounding."""
    folder, net = files
    scale = "dynamic(begin=8589934592, growth=64, backoff=0.015625, every=3)"
    command("compile", folder / "net.pt2", "--train", "adamw(lr=0.01)", "--loss", "cross_entropy", "--precision", "f16", "--loss-scale", scale,
            *(("--clip-norm", clip) if clip else ()), "-o", tmp_path / "step.so")
    model = weft.load(tmp_path / "step.so")
    net = copy.deepcopy(net).train()
    image, label = data(50, 1)
    batches = [(image[5 * (k % 10):5 * (k % 10) + 5], label[5 * (k % 10):5 * (k % 10) + 5]) for k in range(40)]
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**33, growth_factor=64.0, backoff_factor=2.0**-6, growth_interval=3)
    want = scaled_steps(net, torch.optim.AdamW(trained(net), lr=0.01), scaler, batches, clip)
    skipped = 0
    for (x, y), (loss, after) in zip(batches, want):
        before = float(torch.as_tensor(model.state["weft.loss_scale"]))
        weight = torch.as_tensor(model.state["out.weight"]).clone()
        got = model.entries["step"](x, y)
        assert [t.name for t in model.entries["step"].outputs] == ["loss", *(["grad_norm"] if clip else []), "skipped"]
        assert float(torch.as_tensor(model.state["weft.loss_scale"])) == after
        assert float(got[0]) == pytest.approx(loss, rel=2e-2, abs=5e-3)
        assert bool(got[-1]) == (after < before) == torch.equal(weight, torch.as_tensor(model.state["out.weight"]))
        skipped += bool(got[-1])
    assert 2 <= skipped < 15
    assert int(torch.as_tensor(model.state["weft.good_steps"])) == scaler._growth_tracker.item()
    assert float(torch.as_tensor(model.state["optimizer.0.step"])[0]) == 40 - skipped
    for k, p in named(net):
        assert torch.as_tensor(model.state[k]).dtype == torch.float32
        torch.testing.assert_close(torch.as_tensor(model.state[k]), p.detach(), rtol=5e-2, atol=2e-2)


def test_default_scale(files, tmp_path):
    """weft train in f16: the scale is in the checkpoint; accumulation; a resumed training has equal bits."""
    folder, _ = files
    for name, more in (("one", ()), ("two", ("--accumulate", 2))):
        options = "--precision", "f16", "--loss-scale", "dynamic(begin=16777216, every=5)", "--batch", 8, *more
        said = train(folder, *options, "--epochs", 4, "--save", tmp_path / f"{name}.safetensors")
        assert " skipped  " in said.splitlines()[0], said
        tensors, _ = tensors_of(tmp_path / f"{name}.safetensors")
        assert tensors["weft.loss_scale"][:2] == ("F32", []) and tensors["weft.good_steps"][:2] == ("I32", [])
        assert not any(any(tensors[k][2]) for k in tensors if k.startswith("grad."))
        train(folder, *options, "--epochs", 2, "--save", tmp_path / "part.safetensors")
        train(folder, *options, "--epochs", 4, "--resume", tmp_path / "part.safetensors", "--save", tmp_path / "part.safetensors")
    train(folder, "--precision", "f16", "--batch", 8, "--save", tmp_path / "plain.safetensors")
    assert 0 < np.frombuffer(tensors_of(tmp_path / "plain.safetensors")[0]["weft.loss_scale"][2], np.float32)[0] <= 65536


def test_skipped_steps(files, tmp_path):
    """A batch that is not finite changes nothing, running statistics included; weft train goes on, and says how many."""
    folder, net = files
    command("compile", folder / "net.pt2", "--train", "adamw(lr=0.01)", "--loss", "cross_entropy", "--ema", 0.9, "--on-nan", "skip",
            "-o", tmp_path / "step.so")
    model = weft.load(tmp_path / "step.so")
    image, label = data(50, 50)
    assert not model.entries["step"](image[:5], label[:5])[1]
    before = {k: torch.as_tensor(v).clone() for k, v in model.state.items()}
    for value in (np.nan, np.inf, 3e38):
        bad = image[:5].clone()
        bad[2, 0, 3, 3] = value
        assert model.entries["step"](bad, label[:5])[1]
        assert all(torch.equal(torch.as_tensor(v), before[k]) for k, v in model.state.items())
    assert not model.entries["step"](image[:5], label[:5])[1]
    bad = image.clone()
    bad[7] = np.nan
    np.savez(tmp_path / "bad.npz", image=bad.numpy(), label=label.numpy())
    options = "--data", tmp_path / "bad.npz", "--batch", 5, "--epochs", 2
    done = command("train", folder / "net.pt2", *options, "--loss", "cross_entropy", "--on-nan", "skip", "--save", tmp_path / "a.safetensors")
    assert done.count("  1 skipped  ") == 2 and "nan" not in done, done
    tensors, _ = tensors_of(tmp_path / "a.safetensors")
    assert all(np.isfinite(np.frombuffer(v[2], np.float32)).all() for v in tensors.values() if v[0] == "F32")
    assert np.frombuffer(tensors["state.out.bias.step"][2], np.float32)[0] == 18
    command("train", tmp_path / "step.so", *options, "--on-nan", "skip")
    command("compile", folder / "net.pt2", "--train", "adamw(lr=0.01)", "--loss", "cross_entropy", "-o", tmp_path / "plain.so")
    command("train", tmp_path / "plain.so", *options, "--on-nan", "skip", fails="its step leaves nothing out: compile it with --on-nan skip")
    command("train", tmp_path / "plain.so", *options, fails="is nan: stopped")
    assert "loss nan" in command("train", tmp_path / "plain.so", *options, "--on-nan", "go")


def test_refused(files, tmp_path):
    folder, _ = files
    base = "compile", folder / "net.pt2", "--train", "sgd", "--loss", "cross_entropy", "-o", tmp_path / "x.so"
    command(*base, "--loss-scale", "static", fails="expected dynamic(begin = 65536")
    command(*base, "--loss-scale", "dynamic(begin=0)", fails="expected numbers above 0")
    command(*base, "--loss-scale", "dynamic(every=1.5)", fails="every is a number of steps, not 1.5")
    command(*base, "--on-nan", "stop", fails="--on-nan of compile is skip, not stop")
    command("compile", folder / "net.pt2", "--on-nan", "skip", "-o", tmp_path / "x.so", fails="--on-nan is for --train")
    train(folder, "--on-nan", "never", fails="--on-nan is stop, skip or go, not never")
    assert not (tmp_path / "x.so").exists()
