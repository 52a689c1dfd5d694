"""The snippets of docs/python.md run, one after the other."""
import os
import platform
import re
import shutil

import pytest

import weft

SOURCE = os.environ.get("WEFT_SOURCE")


@pytest.mark.skipif(not SOURCE or not weft.has_llvm(), reason="WEFT_SOURCE names no checkout, or weft_llvm.so is not there")
def test_the_page(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    if platform.machine() != "x86_64" and not any(map(shutil.which, ("ld.lld", "ld.lld-19", "ld"))):
        pytest.skip("there is no linker")
    monkeypatch.chdir(tmp_path)
    with open(os.path.join(SOURCE, "docs/python.md")) as f:
        snippets = re.findall(r"^```python\n(.*?)^```$", f.read(), re.M | re.S)
    assert len(snippets) > 4
    names = {}
    for text in snippets:
        exec(compile(text, "docs/python.md", "exec"), names)
