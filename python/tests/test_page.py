"""The snippets of README.md and docs/python.md run, one after the other."""
import os
import platform
import re
import shutil

import pytest

import weft

SOURCE = os.environ.get("WEFT_SOURCE")


@pytest.mark.skipif(not SOURCE or not weft.has_llvm(), reason="WEFT_SOURCE names no checkout, or weft_llvm.so is not there")
@pytest.mark.parametrize("page, least", [("README.md", 1), ("docs/python.md", 5)])
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
        exec(compile(text, page, "exec"), names)
