import pytest

import weft
from weft import _weft


@pytest.fixture
def compiled():
    """compiled(text): the model of a graph in text form, in this process."""
    def make(text, **options):
        session = _weft.Session()
        return weft.compile(session.parse(text, "test"), **options)
    if not weft.has_llvm():
        pytest.skip("weft_llvm.so is not there")
    return make
