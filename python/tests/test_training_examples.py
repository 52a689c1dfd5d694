"""The programs of examples/training that begin in Python: what they print shows that they learn."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
import weft
from test_train_command import command

pytestmark = pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there")
ROOT = pathlib.Path(os.environ["WEFT_SOURCE"])
EXAMPLES = ROOT / "examples/training"


def run(*args, cwd=None):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def numbers(pattern, text):
    return [float(x) for x in re.findall(pattern, text)]


def test_recommender():
    """Tables whose rows a step updates."""
    said = run(sys.executable, EXAMPLES / "recommender.py", "--steps", 151)
    right = numbers(r"(\d+) % of other samples", said)
    assert right[-1] >= 74 and right[-1] > right[0] + 10, said


def test_lora(tmp_path):
    """A base of bf16 that does not change, an adapter in a file of its own, and text sampled with both."""
    pytest.importorskip("transformers")
    said = run(sys.executable, EXAMPLES / "lora.py", tmp_path)
    sizes = re.search(r"base ([\d,]+) weights, adapter ([\d,]+), file ([\d,]+) bytes", said).groups()
    base, adapter, size = (int(x.replace(",", "")) for x in sizes)
    assert 5 * adapter < base and said.rstrip().splitlines()[-1].startswith("the adapter learns this sentence, and the base does"), said
    assert (tmp_path / "adapter.safetensors").stat().st_size < 4 * adapter + 4096
    state = weft.load(tmp_path / "lora.so").state
    assert all("lora_" in n or n.startswith("optimizer.") for n in state) and size > 2 * base


def test_force_field(tmp_path):
    """Second derivatives in float64, trained and used by a program in C: the energy of a simulation stays."""
    run(sys.executable, EXAMPLES / "force_field.py", tmp_path)
    run("cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-I", ROOT / "include", EXAMPLES / "force_field.c", "-ldl", "-lm",
        "-o", tmp_path / "field")
    said = run(tmp_path / "field", tmp_path / "field.so", 1000)
    drift, apart = numbers(r"at most ([\d.]+) from there; forces differ by", said), numbers(r"differ by ([\d.]+) %", said)
    assert drift[0] < 0.005 and apart[0] < 5, said


def test_maml():
    """An outer step through an inner one, and through its rates."""
    said = run(sys.executable, EXAMPLES / "maml.py", 1000)
    errors = numbers(r"inner step ([\d.]+)", said)
    assert errors[-1] < 0.4 and errors[-1] < errors[0] / 2 and "rates 0.010 to 0.010" not in said, said


def test_private():
    """Gradients of samples, each clipped."""
    losses = numbers(r"loss ([\d.]+)", run(sys.executable, EXAMPLES / "private.py", 200))
    assert losses[-1] < 0.2, losses


def test_keywords(tmp_path):
    """A GRU trains in plain C: accumulate, clip, step; no memory but the program's own."""
    run(sys.executable, EXAMPLES / "keywords.py", tmp_path)
    command("compile", "keywords.pt2", "--train", "adamw(lr=input)", "--loss", "cross_entropy", "--clip-norm", "1", "--accumulate", "--emit", "c",
            "--target", "generic-c", "-o", "keywords", cwd=tmp_path)
    made = tmp_path / "keywords"
    run("cc", "-std=c11", "-pedantic", "-O1", "-Wall", "-Wextra", "-Werror", "-DWEFT_SERIAL", "-I", made, EXAMPLES / "keywords.c", made / "model.c",
        *made.glob("kernels_*.c"), made / "serial.c", "-c", cwd=tmp_path)
    run("cc", "-c", "weights.S", cwd=made)
    objects = [*tmp_path.glob("*.o")]
    run("cc", *objects, made / "weights.o", "-lm", "-o", tmp_path / "spot")
    said = run(tmp_path / "spot")
    assert numbers(r"(\d+) % are", said)[-1] >= 95 and numbers(r"state (\d+) bytes", said)[0] < 32768, said
    assert not set(re.findall(r"U (\w+)", run("nm", "-u", *objects))) & {"malloc", "calloc", "realloc", "free", "fopen", "pthread_create"}
