"""Small programs that users of torch.compile write: see programs.py."""
import pytest

pytest.importorskip("torch")
import programs
import weft

pytestmark = pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there")


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_program(name):
    assert not programs.differs(name)
