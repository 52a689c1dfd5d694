"""The snippets of README.md, docs/python.md and docs/coming-from.md run, one after the other."""
import importlib.util
import os
import platform
import re
import shutil
import subprocess

import pytest

import weft

SOURCE = os.environ.get("WEFT_SOURCE")


@pytest.mark.skipif(not SOURCE or not weft.has_llvm(), reason="WEFT_SOURCE names no checkout, or weft_llvm.so is not there")
@pytest.mark.parametrize("page, least", [("README.md", 1), ("docs/python.md", 5), ("docs/coming-from.md", 2)])
def test_the_page(page, least, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    if platform.machine() != "x86_64" and not any(map(shutil.which, ("ld.lld", "ld.lld-19", "ld"))):
        pytest.skip("there is no linker")
    monkeypatch.chdir(tmp_path)
    with open(os.path.join(SOURCE, page)) as f:
        snippets = re.findall(r"^```python\n(.*?)^```$", f.read(), re.M | re.S)
    assert len(snippets) >= least
    names = {}
    for text in snippets:
        if "transformers" in text and not importlib.util.find_spec("transformers"):
            continue
        exec(compile(text, page, "exec"), names)


@pytest.mark.skipif(not SOURCE or not weft.has_llvm() or not shutil.which("cc"), reason="WEFT_SOURCE names no checkout, or there is no compiler")
def test_the_program(tmp_path):
    """The C program of docs/python.md prints the first row of the result."""
    torch = pytest.importorskip("torch")
    with open(os.path.join(SOURCE, "docs/python.md")) as f:
        (text,) = re.findall(r"^```c\n(.*?)^```$", f.read(), re.M | re.S)
    (tmp_path / "program.c").write_text(text)
    net = torch.nn.Sequential(torch.nn.Linear(64, 10)).eval()
    weft.compile(net, (torch.zeros(2, 64),), path=str(tmp_path / "classify.so"))
    subprocess.run(["cc", "-Wall", "-Werror", "program.c", "-I", weft.include, "./classify.so", "-o", "program"], cwd=tmp_path, check=True)
    printed = subprocess.run(["./program"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout.split()
    torch.testing.assert_close(torch.tensor([float(v) for v in printed]), net[0].bias.detach(), rtol=1e-5, atol=1e-5)
