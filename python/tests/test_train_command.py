"""weft compile --train and weft train on files of torch.export, beside PyTorch's own loop; a training that is resumed, or killed."""
import copy
import os
import pathlib
import signal
import subprocess
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import weft
from weft import _weft

nn, F = torch.nn, torch.nn.functional
WEFT = pathlib.Path(os.environ["WEFT_LLVM_FOLDER"]) / "weft"
pytestmark = [pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there"),
              pytest.mark.skipif(not WEFT.exists(), reason="the command is not there")]


class Net(nn.Module):
    """Batch norm, a parameter under two names, one that is frozen, one that the loss does not depend on. The convolution has no bias: its gradient
    in front of batch norm would be rounding alone."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.up, self.down = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False)
        self.down.weight = self.up.weight
        self.out, self.unused, self.frozen = nn.Linear(16, 3), nn.Linear(2, 2), nn.Linear(16, 16)
        self.frozen.requires_grad_(False)

    def forward(self, image):
        x = F.max_pool2d(F.relu(self.bn(self.conv(image))), 4).flatten(1)
        return self.out(torch.tanh(self.frozen(self.down(torch.tanh(self.up(x))))))


def data(n, seed=0):
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(3, (n,), generator=g)
    return torch.randn(n, 1, 8, 8, generator=g) + label[:, None, None, None] * 0.5, label


def command(*args, fails=None, cwd=None, **more):
    done = subprocess.run([WEFT, *map(str, args)], capture_output=True, text=True, cwd=cwd, **more)
    if fails is None:
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert done.returncode in (1, 2) and fails in done.stderr, (done.returncode, done.stderr)
    return done.stderr


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """net.pt2 in training mode, eval.pt2 in evaluation mode, data of 50 and 20 samples."""
    folder = tmp_path_factory.mktemp("train")
    torch.manual_seed(0)
    net = Net()
    batch = torch.export.Dim("batch", min=1, max=64)
    x = torch.randn(4, 1, 8, 8)
    torch.export.save(torch.export.export(copy.deepcopy(net).train(), (x,), dynamic_shapes=[{0: batch}]), folder / "net.pt2")
    torch.export.save(torch.export.export(copy.deepcopy(net).eval(), (x,), dynamic_shapes=[{0: batch}]), folder / "eval.pt2")
    torch.export.save(torch.export.export(copy.deepcopy(net).train(), (x,)), folder / "static.pt2")
    for name, n in (("data", 50), ("test", 20)):
        image, label = data(n, n)
        np.savez(folder / f"{name}.npz", image=image.numpy(), label=label.numpy())
    return folder, net


CASES = {
    "adamw": ("adamw(lr=input, weight_decay=0.05)", (), lambda n: torch.optim.AdamW(trained(n), lr=0.01, weight_decay=0.05), None),
    "amsgrad": ("adam(lr=0.01, amsgrad=true, beta1=0.8)", (), lambda n: torch.optim.Adam(trained(n), lr=0.01, amsgrad=True, betas=(0.8, 0.999)), None),
    "momentum": ("sgd(lr=input, momentum=0.9, nesterov=true)", (),
                 lambda n: torch.optim.SGD(trained(n), lr=0.01, momentum=0.9, nesterov=True), None),
    "clipped": ("sgd(lr=input)", ("--clip-norm", "0.5"), lambda n: torch.optim.SGD(trained(n), lr=0.01), 0.5),
    "groups": ("adamw(lr=0.01, weight_decay=0.1)",
               ("--group", "*.bias,bn.*: weight_decay=0, lr=0.02", "--group", "out.weight: optimizer=sgd(lr=0.1, momentum=0.5)"),
               lambda n: Two(torch.optim.AdamW([{"params": [p for k, p in named(n) if k not in ("out.weight",) and not grouped(k)]},
                                                {"params": [p for k, p in named(n) if grouped(k)], "weight_decay": 0, "lr": 0.02}],
                                               lr=0.01, weight_decay=0.1), torch.optim.SGD([n.out.weight], lr=0.1, momentum=0.5)), None),
}


def named(net):
    return [(k, p) for k, p in net.named_parameters() if p.requires_grad and not k.startswith("unused")]


def trained(net):
    return [p for _, p in named(net)]


def grouped(name):
    return name.endswith(".bias") or name.startswith("bn.")


class Two:
    """Two optimizers as one."""

    def __init__(self, *all):
        self.all = all

    def zero_grad(self):
        for o in self.all:
            o.zero_grad()

    def step(self):
        for o in self.all:
            o.step()

    @property
    def state(self):
        return {k: v for o in self.all for k, v in o.state.items()}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mode", ["net", "eval"])
def test_steps_beside_pytorch(files, tmp_path, name, mode):
    """Ten steps: losses, parameters, running statistics and the optimizer's state; a file in either mode gives the same."""
    folder, net = files
    text, options, make, clip = CASES[name]
    command("compile", folder / f"{mode}.pt2", "--train", text, "--loss", "cross_entropy(output=0, label_smoothing=0.1)", *options,
            "-o", tmp_path / "step.so")
    net = copy.deepcopy(net).train()
    optimizer = make(net)
    model = weft.load(tmp_path / "step.so")
    step, evaluation = model.entries["step"], model.entries["eval"]
    image, label = data(50, 1)
    for k in range(10):
        x, y = image[5 * k:5 * k + 5], label[5 * k:5 * k + 5]
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y, label_smoothing=0.1)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(trained(net), clip) if clip else None
        optimizer.step()
        got = step(x, y, *([torch.tensor(0.01, dtype=torch.float64)] if "lr=input" in text else []))
        got = got if isinstance(got, (tuple, list)) else (got,)
        torch.testing.assert_close(got[0], loss.detach(), rtol=3e-5, atol=3e-6)
        if clip:
            torch.testing.assert_close(got[1], norm, rtol=1e-4, atol=1e-6)
    states = {k: torch.as_tensor(v) for k, v in model.state.items()}
    for k, p in named(net):
        torch.testing.assert_close(states[k], p.detach(), rtol=1e-3, atol=2e-5)
        for key, v in optimizer.state[p].items():
            if v is not None and key != "step":
                torch.testing.assert_close(states[f"state.{k}.{key}"], v, rtol=1e-3, atol=2e-5)
    for k in ("bn.running_mean", "bn.running_var", "bn.num_batches_tracked"):
        torch.testing.assert_close(states[k], net.get_buffer(k), rtol=1e-4, atol=1e-5)
    assert "frozen.weight" not in states and "unused.weight" not in states and "down.weight" not in states
    with torch.no_grad():
        torch.testing.assert_close(evaluation(image[:7]), net.eval()(image[:7]), rtol=1e-3, atol=1e-4)


def tensors_of(path):
    """What is in a .safetensors file, and its metadata."""
    import json
    raw = path.read_bytes()
    n = int.from_bytes(raw[:8], "little")
    index = json.loads(raw[8:8 + n])
    return {k: (v["dtype"], v["shape"], raw[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in index.items()
            if k != "__metadata__"}, index["__metadata__"]


def train(folder, *args, **more):
    return command("train", folder / "net.pt2", "--data", folder / "data.npz", "--loss", "cross_entropy", "--optimizer", "adamw", "--lr", "0.01",
                   "--schedule", "cosine(warmup=2)", *args, **more)


def test_command(files, tmp_path):
    """Lines, the names in the checkpoint, the model for inference that is made of it."""
    folder, net = files
    said = train(folder, "--eval", folder / "test.npz", "--batch", 8, "--epochs", 3, "--save", tmp_path / "a.safetensors", "--seed", 3)
    lines = said.splitlines()
    assert len(lines) == 4 and lines[0].startswith("epoch 1/3  loss ") and "  test " in lines[2] and "0:00 left" in lines[2], said
    assert float(lines[2].split()[3]) < float(lines[0].split()[3])
    tensors, meta = tensors_of(tmp_path / "a.safetensors")
    assert tensors["state.out.weight.step"] == ("F32", [], np.float32(21).tobytes()) and "weft.train" in meta  # 7 batches, the last of 2
    assert {"conv.weight", "state.conv.weight.exp_avg", "state.bn.bias.exp_avg_sq", "bn.running_var"} <= set(tensors)
    assert not any(k.startswith("optimizer.") for k in tensors)
    done = subprocess.run([WEFT, "compile", folder / "eval.pt2", "--weights-from", tmp_path / "a.safetensors", "-o", tmp_path / "net.so"],
                          capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    net = copy.deepcopy(net).eval()
    values = {k: torch.frombuffer(bytearray(v[2]), dtype={"F32": torch.float32, "I64": torch.int64}[v[0]]).reshape(v[1])
              for k, v in tensors.items() if not k.startswith("state.")}
    missing, unexpected = net.load_state_dict(values, strict=False)
    assert not unexpected and all(k.startswith(("unused", "frozen", "down")) for k in missing), (missing, unexpected)
    image, label = data(20, 20)
    with torch.no_grad():
        got = weft.load(tmp_path / "net.so")(image)
        torch.testing.assert_close(got, net(image), rtol=1e-4, atol=1e-5)
    assert float(lines[2].split()[5]) == pytest.approx(float(F.cross_entropy(got, label)), rel=1e-3)


def test_resume_has_equal_bits(files, tmp_path):
    folder, _ = files
    common = "--batch", 8, "--seed", 5
    train(folder, *common, "--epochs", 60, "--save", tmp_path / "whole.safetensors")
    process = subprocess.Popen([WEFT, "train", folder / "net.pt2", "--data", folder / "data.npz", "--loss", "cross_entropy", "--optimizer", "adamw",
                                "--lr", "0.01", "--schedule", "cosine(warmup=2)", *map(str, common), "--epochs", "60", "--save",
                                tmp_path / "part.safetensors", "--save-every", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    end = time.time() + 120
    while not (tmp_path / "part.safetensors").exists() and time.time() < end and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    train(folder, *common, "--resume", tmp_path / "part.safetensors", "--save", tmp_path / "part.safetensors")
    assert tensors_of(tmp_path / "whole.safetensors") == tensors_of(tmp_path / "part.safetensors")


def test_resume_takes_the_options(files, tmp_path):
    """What is not given is the checkpoint's; what is given and differs is refused by name, but for the learning rate, of which a note tells."""
    folder, _ = files
    own = ("--group", "*.bias: weight_decay=0", "--group", "bn.*: lr=0.001", "--clip-norm", "1", "--clip-value", "0.5", "--ema", "0.9",
           "--trainable", "out.*,up.*,bn.*", "--batch", 8, "--seed", 4)
    train(folder, *own, "--epochs", 4, "--save", tmp_path / "whole.safetensors")
    train(folder, *own, "--epochs", 4, "--save", tmp_path / "part.safetensors")
    base = "train", folder / "net.pt2", "--data", folder / "data.npz", "--epochs", 6, "--save", tmp_path / "more.safetensors"
    command(*base, "--resume", tmp_path / "part.safetensors")
    train(folder, *own, "--epochs", 6, "--resume", tmp_path / "whole.safetensors", "--save", tmp_path / "whole.safetensors")
    assert tensors_of(tmp_path / "more.safetensors") == tensors_of(tmp_path / "whole.safetensors")
    for given, message in ((("--clip-norm", 2), "was trained with --clip-norm 1, not 2"), (("--clip-value", 1), "with --clip-value 0.5, not 1"),
                           (("--loss", "nll"), "was trained with --loss cross_entropy, not nll"), (("--ema", 0.5), "with --ema 0.9, not 0.5"),
                           (("--group", "*.bias: weight_decay=0.5"), "with --group *.bias: weight_decay=0, not *.bias: weight_decay=0.5"),
                           (("--group", "*.bias: weight_decay=0"), "was trained with 2 values of --group, not 1"),
                           (("--trainable", "out.*"), "with --trainable out.*,up.*,bn.*, not out.*"), (("--precision", "bf16"), "without --precision"),
                           (("--optimizer", "adamw(beta1=0.5)"), "with --optimizer adamw, not adamw(beta1=0.5)")):
        command(*base, "--resume", tmp_path / "part.safetensors", *given, fails=message)
    done = subprocess.run([WEFT, *map(str, base), "--resume", tmp_path / "part.safetensors", "--clip-norm", "1.0", "--lr", "0.5", "--schedule", "linear"],
                          capture_output=True, text=True)
    assert "was trained with --lr 0.01, goes on with 0.5" in done.stderr and "with --schedule cosine(warmup=2), goes on with linear" in done.stderr, done
    assert done.returncode == 0 and "clip" not in done.stderr


def test_tokens(tmp_path):
    """Classes in the last dimension, labels that do not count, symbolic lengths, weights that are tied, bf16."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.up, self.norm, self.head = nn.Embedding(11, 8), nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 11)
            self.head.weight = self.words.weight

        def forward(self, i):
            x = self.words(i)
            return self.head(x + torch.cumsum(F.gelu(self.up(self.norm(x))), 1) / 8)
    torch.manual_seed(0)
    net = Model()
    i = torch.randint(11, (4, 6))
    sizes = {0: torch.export.Dim("batch", min=2, max=64), 1: torch.export.Dim("length", min=2, max=32)}
    torch.export.save(torch.export.export(net, (i,), dynamic_shapes=[sizes]), tmp_path / "net.pt2")
    text = "sgd(lr=0.2, momentum=0.5, nesterov=true, weight_decay=0.01)"
    loss = "cross_entropy(dim=-1, ignore_index=3, label_smoothing=0.2)"
    command("compile", tmp_path / "net.pt2", "--train", text, "--loss", loss, "-o", tmp_path / "s.so")
    command("compile", tmp_path / "net.pt2", "--train", text, "--loss", loss, "--precision", "bf16", "-o", tmp_path / "low.so")
    model, low = weft.load(tmp_path / "s.so"), weft.load(tmp_path / "low.so")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.5, nesterov=True, weight_decay=0.01)
    for k in range(6):
        i, label = torch.randint(11, (3 + k, 9 - k)), torch.randint(11, (3 + k, 9 - k))
        value = F.cross_entropy(net(i).flatten(0, 1), label.flatten(), ignore_index=3, label_smoothing=0.2)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        torch.testing.assert_close(model.entries["step"](i, label), value.detach(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(low.entries["step"](i, label), value.detach(), rtol=2e-2, atol=1e-2)
    for k, p in net.named_parameters():
        torch.testing.assert_close(torch.as_tensor(model.state[k]), p.detach(), rtol=1e-4, atol=1e-5)
        assert torch.as_tensor(low.state[k]).dtype == torch.float32
    assert torch.as_tensor(low.entries["eval"](i)).dtype == torch.float32


def test_accumulation(files, tmp_path):
    """Batches of 4, of which 3 are an update, and the last of an epoch fewer: as batches of 12, of a model without running statistics; and the
    entries beside PyTorch's sums of gradients."""
    folder, _ = files
    torch.manual_seed(1)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 3))
    batch = torch.export.Dim("batch", min=1, max=64)
    torch.export.save(torch.export.export(net, (torch.randn(4, 1, 8, 8),), dynamic_shapes=[{0: batch}]), tmp_path / "plain.pt2")
    image, label = data(50, 50)
    np.savez(tmp_path / "named.npz", input=image.numpy(), label=label.numpy())
    options = "--data", tmp_path / "named.npz", "--loss", "cross_entropy", "--optimizer", "adamw", "--lr", 0.02, "--clip-norm", 0.5, "--epochs", 3
    for name, more in (("parts", ("--batch", 4, "--accumulate", 3)), ("whole", ("--batch", 12))):
        command("train", tmp_path / "plain.pt2", *options, *more, "--save", tmp_path / f"{name}.safetensors")
    parts, whole = (tensors_of(tmp_path / f"{name}.safetensors")[0] for name in ("parts", "whole"))
    for k in whole:
        a, b = (np.frombuffer(t[k][2], np.float32) for t in (parts, whole))
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-6, err_msg=k)
    sums = [k for k in parts if k.startswith("grad.")]
    assert len(sums) == 4 and not any(any(parts[k][2]) for k in sums)
    assert whole["state.1.bias.step"][2] == np.float32(15).tobytes()  # 5 updates of 12, the last of 2
    command("train", tmp_path / "plain.pt2", *options, "--batch", 4, "--accumulate", 2, "--resume", tmp_path / "parts.safetensors",
            fails="was trained with --accumulate 3, not 2")
    # by hand, through the entries
    command("compile", tmp_path / "plain.pt2", "--train", "sgd(lr=input)", "--loss", "cross_entropy", "--accumulate", "-o", tmp_path / "two.so")
    model = weft.load(tmp_path / "two.so")
    assert list(model.entries) == ["accumulate", "apply", "eval"]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
    for k in range(2):
        optimizer.zero_grad()
        for at, n in ((0, 2), (2, 6)):
            loss = F.cross_entropy(net(image[at:at + n]), label[at:at + n])
            (loss * (n / 8)).backward()
            got = model.entries["accumulate"](image[at:at + n], label[at:at + n], torch.tensor(n / 8, dtype=torch.float64))
            torch.testing.assert_close(got, loss.detach(), rtol=1e-5, atol=1e-6)
        optimizer.step()
        model.entries["apply"](torch.tensor(0.3, dtype=torch.float64))
    for k, p in net.named_parameters():
        torch.testing.assert_close(torch.as_tensor(model.state[k]), p.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("accumulate", [False, True])
def test_averages(files, tmp_path, accumulate):
    """Evaluation reads averages of the parameters, and the running statistics of now; a model is compiled of the averages in a checkpoint."""
    folder, net = files
    command("compile", folder / "net.pt2", "--train", "sgd(lr=0.1)", "--loss", "cross_entropy", "--ema", "0.75", *["--accumulate"][:accumulate],
            "-o", tmp_path / "step.so")
    net = copy.deepcopy(net).train()
    mean = {k: p.detach().clone() for k, p in named(net)}
    optimizer = torch.optim.SGD(trained(net), lr=0.1)
    model = weft.load(tmp_path / "step.so")
    image, label = data(50, 1)
    for k in range(4):
        x, y = image[8 * k:8 * k + 8], label[8 * k:8 * k + 8]
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
        for n, p in named(net):
            mean[n] = 0.75 * mean[n] + 0.25 * p.detach()
        if accumulate:
            model.entries["accumulate"](x, y, torch.tensor(1.0, dtype=torch.float64))
            model.entries["apply"]()
        else:
            model.entries["step"](x, y)
    for n, value in mean.items():
        torch.testing.assert_close(torch.as_tensor(model.state[f"ema.{n}"]), value, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        for n, p in named(net):
            p.copy_(mean[n])
        torch.testing.assert_close(torch.as_tensor(model.entries["eval"](image[:9])), net.eval()(image[:9]), rtol=1e-3, atol=1e-4)
    if accumulate:
        return
    said = train(folder, "--ema", "0.9", "--eval", folder / "test.npz", "--batch", 8, "--epochs", 2, "--save", tmp_path / "a.safetensors")
    (tmp_path / "names").write_text("* = ema.*\n* = *\n")
    command("compile", folder / "eval.pt2", "--weights-from", tmp_path / "a.safetensors", "--weight-names", tmp_path / "names", "-o", tmp_path / "net.so")
    image, label = data(20, 20)
    loss = F.cross_entropy(torch.as_tensor(weft.load(tmp_path / "net.so")(image)), label)
    assert float(said.splitlines()[1].split()[5]) == pytest.approx(float(loss), rel=1e-3)


def test_signal_saves(files, tmp_path):
    folder, _ = files
    whole, part = tmp_path / "whole.safetensors", tmp_path / "part.safetensors"
    common = "--batch", "4", "--epochs", "400"
    process = subprocess.Popen([WEFT, "train", folder / "net.pt2", "--data", folder / "data.npz", "--loss", "cross_entropy", *common, "--save", part],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    if process.returncode == 0:
        pytest.skip("the training was done before the signal came")
    assert process.returncode == 1 and "saved: go on with --resume" in err, err
    base = "train", folder / "net.pt2", "--data", folder / "data.npz", "--loss", "cross_entropy", *common
    command(*base, "--save", whole)
    command(*base, "--resume", part, "--save", part)
    assert tensors_of(whole) == tensors_of(part)


def test_checkpoints_are_whole(files, tmp_path):
    """Whenever the process is killed, the file is that of one of the moments."""
    folder, _ = files
    path = tmp_path / "a.safetensors"
    for k in range(6):
        process = subprocess.Popen([WEFT, "train", folder / "net.pt2", "--data", folder / "data.npz", "--loss", "cross_entropy", "--batch", "4",
                                    "--epochs", "100", "--save", path, "--save-every", "1"], stdout=subprocess.DEVNULL)
        end = time.time() + 120
        while not path.exists() and time.time() < end:
            time.sleep(0.001)
        time.sleep(0.003 * k)
        process.kill()
        process.wait()
        tensors, meta = tensors_of(path)
        steps = int(meta["weft.train"].split("step=")[1].split()[0])
        assert tensors["state.out.bias.step"][2] == np.float32(steps).tobytes() and tensors["out.weight"][1] == [3, 16]


def test_refused(files, tmp_path):
    folder, _ = files
    image, label = data(50)
    np.savez(tmp_path / "short.npz", image=image.numpy(), label=label[:49].numpy())
    np.savez(tmp_path / "missing.npz", image=image.numpy())
    np.savez(tmp_path / "wide.npz", image=image.double().numpy(), label=label.numpy())
    np.savez(tmp_path / "few.npz", image=image[:3].numpy(), label=label[:3].numpy())
    np.savez(tmp_path / "many.npz", image=np.zeros([80, 1, 8, 8], np.float32), label=np.zeros([80], int))
    np.savez(tmp_path / "nan.npz", image=image.numpy() * np.nan, label=label.numpy())
    base = "train", folder / "net.pt2", "--loss", "cross_entropy", "--data"
    command(*base, tmp_path / "short.npz", fails="label has 49 samples, the tensors before it have 50")
    command(*base, tmp_path / "missing.npz", fails="no tensor label, which the step takes; the file has image")
    command(*base, tmp_path / "wide.npz", fails="image is f64[50, 1, 8, 8], the step takes f32[")
    command("train", folder / "static.pt2", "--loss", "cross_entropy", "--data", tmp_path / "few.npz", fails="3 samples are fewer than a batch of 4")
    command("train", folder / "static.pt2", "--loss", "cross_entropy", "--data", folder / "data.npz", "--batch", 5,
            fails="was exported with batches of 4 (image): --batch 5 needs a model with a symbolic size")
    command(*base, tmp_path / "nan.npz", fails="the loss of batch 1 of epoch 1 is nan: stopped")
    command(*base, tmp_path / "many.npz", "--batch", 70, fails="out of the range of sizes")
    command(*base, folder / "none.npz", fails="cannot open")
    command(*base, folder / "data.npz", "--lr", "fast", fails="--lr is a number, not fast")
    command(*base, folder / "data.npz", "--lr", "1", "--schedule", "cosine(warm=1)", fails="--schedule cosine(warm=1): expected")
    command(*base, folder / "data.npz", "--schedule", "cosine", fails="--schedule is for --lr")
    command(*base, folder / "data.npz", "--lr", "-1", fails="--lr is 0 or more, not -1")
    command(*base, folder / "data.npz", "--lr", "1", "--schedule", "cosine(warmup=900)", fails="the warmup takes all of the")
    command(*base, folder / "data.npz", "--save", "a.bin", fails="the name ends with .safetensors")
    command(*base, folder / "data.npz", "--number", "momentum=0.5", fails="the step takes no number momentum")
    command("train", folder / "net.pt2", "--data", folder / "data.npz", fails="expected one number (or a loss of the output, such as cross_entropy")
    (tmp_path / "full").symlink_to("/dev/full")
    train(folder, "--save", tmp_path / "ok.safetensors", "--batch", 8)
    before = (tmp_path / "ok.safetensors").read_bytes()
    command(*base, folder / "data.npz", "--resume", tmp_path / "ok.safetensors", fails="all 1 epochs are done")
    command(*base, folder / "data.npz", "--resume", tmp_path / "ok.safetensors", "--epochs", 2, "--clip-norm", 1,
            fails="was trained without --clip-norm: leave it out")
    np.savez(tmp_path / "bad.npz", image=image.numpy(), label=label.numpy() + 1000)
    command(*base, folder / "data.npz", "--lr", "0.01", "--eval", tmp_path / "bad.npz", "--save", tmp_path / "first.safetensors", fails="out of range")
    assert (tmp_path / "first.safetensors").exists()  # the epoch is not lost
    command(*base, tmp_path / "few.npz", "--batch", "3", "--resume", tmp_path / "ok.safetensors", "--epochs", 2, fails="the data in")
    command(*base, folder / "data.npz", "--batch", "5", "--epochs", 2, "--resume", tmp_path / "ok.safetensors", fails="with --batch 8, not 5")
    command(*base, folder / "data.npz", "--optimizer", "sgd", "--epochs", 2, "--batch", 8, "--resume", tmp_path / "ok.safetensors",
            fails="was trained with --optimizer adamw, not sgd")
    import resource
    command(*base, folder / "data.npz", "--save", tmp_path / "ok.safetensors", fails="cannot write: File too large",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    assert (tmp_path / "ok.safetensors").read_bytes() == before


def test_a_last_batch_of_one(tmp_path):
    """Batch norm of one value has no variance: an epoch leaves the sample out. A network without batch norm takes it."""
    torch.manual_seed(0)
    size = torch.export.Dim("batch", min=1, max=64)
    np.savez(tmp_path / "d.npz", input=np.random.default_rng(0).standard_normal((17, 6)).astype(np.float32), label=np.arange(17) % 3)
    for norm in True, False:
        net = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5) if norm else nn.Tanh(), nn.Linear(5, 3))
        torch.export.save(torch.export.export(net, (torch.randn(8, 6),), dynamic_shapes=({0: size},)), tmp_path / "n.pt2")
        done = subprocess.run([WEFT, "train", tmp_path / "n.pt2", "--data", tmp_path / "d.npz", "--loss", "cross_entropy", "--batch", "8", "--save",
                               tmp_path / "n.safetensors"], capture_output=True, text=True)
        assert done.returncode == 0 and ("1 of 17 samples is left out of each epoch: batch norm of one" in done.stderr) == norm, done.stderr
        tensors = tensors_of(tmp_path / "n.safetensors")[0]
        assert all(np.isfinite(np.frombuffer(raw, np.float32)).all() for kind, _, raw in tensors.values() if kind == "F32")


def test_onnx(tmp_path):
    """What is trained of a file that does not say it: floats of several elements that are no running statistics; and a warning of one with
    two readers. Three steps beside PyTorch's."""
    onnx = pytest.importorskip("onnx")
    torch.manual_seed(0)
    values = {"w": torch.randn(4, 6), "b": torch.zeros(6), "v": torch.randn(6, 6) / 6, "scale": torch.rand(6), "shift": torch.zeros(6) + 0.5,
              "mean": torch.randn(6), "var": torch.rand(6) + 0.5, "one": torch.tensor([2.0])}
    node = onnx.helper.make_node
    graph = onnx.helper.make_graph(
        [node("Gemm", ["x", "w", "b"], ["h"]), node("BatchNormalization", ["h", "scale", "shift", "mean", "var"], ["n"]), node("Relu", ["n"], ["r"]),
         node("Mul", ["r", "one"], ["m"]), node("Gemm", ["m", "v", "b"], ["y"])],
        "net", [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 4])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 6])],
        [onnx.numpy_helper.from_array(v.numpy(), k) for k, v in values.items()])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10), tmp_path / "net.onnx")
    done = subprocess.run([WEFT, "compile", tmp_path / "net.onnx", "--train", "sgd(lr=0.01, momentum=0.5)", "--loss", "mse", "-o", tmp_path / "s.so"],
                          capture_output=True, text=True)
    assert done.returncode == 0 and "several operators read b, each trained as one parameter" in done.stderr, done.stderr
    model = weft.load(tmp_path / "s.so")
    trained = {k: values[k].clone().requires_grad_() for k in ("w", "b", "v", "scale", "shift")}
    optimizer = torch.optim.SGD(list(trained.values()), lr=0.01, momentum=0.5)
    for k in range(3):
        x, label = torch.randn(5, 4), torch.randn(5, 6)
        p = {**values, **trained}
        h = F.batch_norm(x @ p["w"] + p["b"], p["mean"], p["var"], p["scale"], p["shift"])
        loss = F.mse_loss((F.relu(h) * p["one"]) @ p["v"] + p["b"], label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.testing.assert_close(model.entries["step"](x, label), loss.detach(), rtol=1e-5, atol=1e-6)
    states = {k: torch.as_tensor(v) for k, v in model.state.items()}
    assert {k for k in states if not k.startswith(("state.", "optimizer."))} == set(trained)
    for k, v in trained.items():
        torch.testing.assert_close(states[k], v.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("parts", [1, 2])
def test_file_of_train_step(files, tmp_path, parts):
    """One command drives a file of weft.train_step, and one of weft compile --train, with equal results; with averages."""
    folder, net = files
    net = copy.deepcopy(net).train()
    batch = torch.export.Dim("batch", min=2, max=64)
    image, label = data(50, 50)
    step = weft.train_step(net, F.cross_entropy, torch.optim.AdamW(trained(net), lr=0.01), (image[:4], label[:4]),
                           dynamic_shapes=[{0: batch}, {0: batch}], accumulate=parts, ema=0.9)
    step.save(tmp_path / "python.so")
    command("compile", folder / "net.pt2", "--train", "adamw(lr=input)", "--loss", "cross_entropy", "--ema", "0.9", *["--accumulate"][:parts - 1],
            "-o", tmp_path / "command.so")
    base = "--data", folder / "data.npz", "--lr", 0.01, "--batch", 8, "--accumulate", parts
    for name in ("python", "command"):
        command("train", tmp_path / f"{name}.so", *base, "--save", tmp_path / f"{name}.safetensors")
    a, b = (tensors_of(tmp_path / f"{name}.safetensors")[0] for name in ("python", "command"))
    assert set(a) == set(b)
    for k, (dtype, shape, value) in a.items():
        assert b[k][:2] == (dtype, shape)
        if dtype == "F32":
            np.testing.assert_allclose(np.frombuffer(value, np.float32), np.frombuffer(b[k][2], np.float32), rtol=1e-3, atol=1e-5, err_msg=k)
    if parts > 1:
        command("train", tmp_path / "python.so", "--data", folder / "data.npz", "--lr", 0.01, fails="no entry step: there are accumulate, apply, eval")
        return
    command("train", tmp_path / "python.so", "--data", folder / "data.npz", "--lr", 0.01, "--loss", "mse", fails="is compiled: --loss is for model files")
    command("train", tmp_path / "python.so", "--data", folder / "data.npz", "--lr", 0.01, "--eval", folder / "test.npz", fails="--eval needs an entry test")
    command("train", tmp_path / "python.so", "--data", folder / "data.npz", fails="the step takes a learning rate: give it by --lr")
