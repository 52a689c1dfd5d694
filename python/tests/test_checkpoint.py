"""weft_checkpoint.h and weft state: a C program that is killed while it trains and goes on with equal bits; files that do not fit; the same
files read by weft train, weft compile and Python."""
import json
import pathlib
import random
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import weft
from test_train_command import WEFT, command, pytestmark, tensors_of

safetensors = pytest.importorskip("safetensors.torch")
nn, F = torch.nn, torch.nn.functional
ROOT = pathlib.Path(__file__).parents[2]
pytestmark = [*pytestmark, pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")]


class Block(nn.Module):
    """A residual block of ResNet-18."""

    def __init__(self, ins, outs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(ins, outs, 3, stride, 1, bias=False), nn.BatchNorm2d(outs)
        self.conv2, self.bn2 = nn.Conv2d(outs, outs, 3, 1, 1, bias=False), nn.BatchNorm2d(outs)
        self.down = nn.Sequential(nn.Conv2d(ins, outs, 1, stride, bias=False), nn.BatchNorm2d(outs)) if ins != outs else nn.Identity()

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.down(x))


class Resnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.blocks = nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.Sequential(Block(4, 4, 1), Block(4, 8, 2))
        self.drop, self.fc = nn.Dropout(0.2), nn.Linear(8, 4)

    def forward(self, image):
        return self.fc(self.drop(self.blocks(self.stem(image)).mean((2, 3))))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """net.pt2, step.so with AdamW, small.so of another model, and the program of the example in C11 and C++17."""
    folder = tmp_path_factory.mktemp("checkpoint")
    torch.manual_seed(0)
    x = torch.randn(8, 1, 8, 8)
    torch.export.save(torch.export.export(Resnet().train(), (x,)), folder / "net.pt2")
    torch.export.save(torch.export.export(nn.Sequential(nn.Flatten(), nn.Linear(64, 4)), (x,)), folder / "small.pt2")
    for name, optimizer in (("net", "adamw(lr=input)"), ("small", "sgd(lr=input, momentum=0.9)")):
        command("compile", folder / f"{name}.pt2", "--train", optimizer, "--loss", "cross_entropy", "-o", folder / f"{name}.so")
    for name, compiler in (("c", ["cc", "-std=c11"]), ("cpp", ["c++", "-x", "c++", "-std=c++17"])):
        subprocess.run([*compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include", ROOT / "examples/training/resume.c",
                        "-ldl", "-lm", "-o", folder / name], check=True)
    return folder


def program(built, name, model, checkpoint, steps, every, fails=None):
    done = subprocess.run([built / name, built / model, checkpoint, str(steps), str(every)], capture_output=True, text=True)
    if fails is None:
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert done.returncode == 1 and fails in done.stderr, (done.returncode, done.stderr)
    return done.stderr


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_killed_and_resumed(built, tmp_path, language):
    """The program saves after each step and is killed at random moments, in the middle of saving too: the file is always whole, and in the end
    its bytes are those of a run without a stop."""
    steps, chance = 300, random.Random(language)
    whole = program(built, language, "net.so", tmp_path / "whole.safetensors", steps, steps)
    part, kills = tmp_path / "part.safetensors", 0
    while kills < 60:
        process = subprocess.Popen([built / language, built / "net.so", part, str(steps), "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(0.004 + chance.random() * 0.03)
        process.kill()
        _, said = process.communicate()
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0, said
            break
        kills += 1
        if part.exists():
            assert safetensors.load_file(part)["fc.weight"].shape == (4, 8)
    assert kills > 2
    assert "loss" in (program(built, language, "net.so", part, steps + 1, 1) and whole)
    program(built, language, "net.so", tmp_path / "whole.safetensors", steps + 1, 1)
    assert part.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    tensors, meta = tensors_of(part)
    assert meta["step"] == str(steps + 1) and tensors["state.fc.weight.step"] == ("F32", [], np.float32(steps + 1).tobytes())
    assert sorted(p.name for p in tmp_path.iterdir()) in (["part.safetensors", "whole.safetensors"],)


def edited(source, to, change):
    """A copy of a file whose tensors a function has changed."""
    tensors = safetensors.load_file(source)
    with safetensors.safe_open(source, "pt") as f:
        meta = f.metadata()
    change(tensors)
    safetensors.save_file(tensors, to, meta)
    return to


def test_files_that_do_not_fit(built, tmp_path):
    good = tmp_path / "good.safetensors"
    program(built, "c", "net.so", good, 2, 1)
    raw = good.read_bytes()
    bad = tmp_path / "bad.safetensors"
    for change, message in ((lambda t: t.pop("state.fc.bias.exp_avg"), "no tensor state.fc.bias.exp_avg, which is state of the model"),
                            (lambda t: t.update(more=torch.ones(2)), "the model has no state more"),
                            (lambda t: t.update({"fc.weight": torch.ones(8, 4)}), "fc.weight is F32[8,4], the model's state F32[4,8]"),
                            (lambda t: t.update({"fc.bias": t["fc.bias"].double()}), "fc.bias is F64[4], the model's state F32[4]")):
        program(built, "c", "net.so", edited(good, bad, change), 3, 1, fails=message)
    program(built, "c", "small.so", good, 3, 1, fails="no tensor 1.weight, which is state of the model")
    for cut in [*range(0, 40), *range(40, len(raw), 997), len(raw) - 1]:
        bad.write_bytes(raw[:cut])
        program(built, "c", "net.so", bad, 3, 1, fails="truncated")
        assert bad.read_bytes() == raw[:cut]
    generator = random.Random(0)
    n = int.from_bytes(raw[:8], "little")
    for _ in range(300):  # any byte of the header: an error or the same tensors, never a crash
        at, value = generator.randrange(8 + n), generator.randrange(256)
        bad.write_bytes(raw[:at] + bytes([value]) + raw[at + 1:])
        done = subprocess.run([built / "c", built / "net.so", bad, "2", "1"], capture_output=True, text=True, errors="replace")
        assert done.returncode in (0, 1) and (done.returncode == 0 or "bad.safetensors" in done.stderr), done
    bad.unlink()
    bad.mkdir()
    program(built, "c", "net.so", bad, 3, 1, fails="cannot be read")
    program(built, "c", "net.so", tmp_path / "none" / "x.safetensors", 3, 1, fails="cannot write: No such file")
    subprocess.run(["sh", "-c", f"ulimit -f 4; trap '' XFSZ; {built / 'c'} {built / 'net.so'} {good} 9 1"], check=False)
    assert good.read_bytes() == raw


def test_written_by_python(built, tmp_path):
    """Other orders, blanks and escapes of JSON."""
    good, other = tmp_path / "good.safetensors", tmp_path / "other.safetensors"
    program(built, "c", "net.so", good, 3, 1)
    edited(good, other, lambda t: None)
    n = int.from_bytes(other.read_bytes()[:8], "little")
    index = json.loads(other.read_bytes()[8:8 + n])
    text = json.dumps(dict(reversed(index.items())), indent=3).replace("fc.bias", "\\u0066c.bias").encode()
    other.write_bytes(len(text).to_bytes(8, "little") + text + other.read_bytes()[8 + n:])
    assert program(built, "c", "net.so", other, 9, 9) == program(built, "c", "net.so", good, 9, 9)
    assert tensors_of(good) == tensors_of(other)


def test_state_command(built, tmp_path):
    """list, get and set; what get writes is what the program saves; a model for inference is made of it."""
    said = command("state", "list", built / "net.so")
    assert "fc.weight  f32[4, 8]  param\n" in said and "state.fc.weight.step  f32[]  optimizer\n" in said and "weft.rng  u64[2]  rng\n" in said
    first, trained, reset = (tmp_path / f"{n}.safetensors" for n in ("first", "trained", "reset"))
    command("state", "get", built / "net.so", "-o", first)
    program(built, "c", "net.so", trained, 12, 12)
    assert {k: (v[0], v[1]) for k, v in tensors_of(first)[0].items()} == {k: (v[0], v[1]) for k, v in tensors_of(trained)[0].items()}
    state = safetensors.load_file(trained)
    assert {line.split("  ")[0] for line in said.splitlines()} == set(state)
    net = Resnet()
    net.load_state_dict({k: v for k, v in state.items() if k in net.state_dict()})
    command("compile", built / "net.pt2", "--set-mode", "eval", "--weights-from", trained, "-o", tmp_path / "fast.so")
    x = torch.randn(8, 1, 8, 8)
    with torch.no_grad():
        torch.testing.assert_close(weft.load(tmp_path / "fast.so")(x), net.eval()(x), rtol=1e-4, atol=1e-5)
    command("state", "get", trained, "--only", "fc.*", "--only", "state.fc.*", "-o", tmp_path / "fc.npz")
    assert set(np.load(tmp_path / "fc.npz")) == {k for k in state if k.startswith(("fc.", "state.fc."))}
    command("state", "set", trained, "--from", built / "net.so", "--only", "state.*", "-o", reset)
    got, begin = safetensors.load_file(reset), safetensors.load_file(first)
    assert all(torch.equal(got[k], (begin if k.startswith("state.") else state)[k]) for k in state)
    program(built, "c", "net.so", trained, 13, 13)
    for args, message in ((("list", first, "-o", "x.npz"), "-o is for get and set"), (("get", first), "name it with -o"),
                          (("set", first, "-o", "x.npz"), "by --from"), (("put", first), "list, get or set, not put"),
                          (("get", first, "-o", "x.txt"), "ends with .safetensors or .npz"),
                          (("get", first, "--only", "nothing*", "-o", tmp_path / "x.npz"), "no tensor is like nothing*"),
                          (("set", first, "--from", built / "small.so", "-o", tmp_path / "x.npz"), "small.so: no tensor "),
                          (("list", tmp_path / "none.so"), "none.so")):
        command("state", *args, fails=message)
    assert not (tmp_path / "x.npz").exists()
