import importlib.metadata
import sys

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


@pytest.fixture
def fresh():
    """Dynamo, what the back end counts, and random numbers begin anew."""
    import torch
    from weft import dynamo
    torch._dynamo.reset()
    dynamo.statistics.reset()
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def sum_of():
    """An operator that Weft does not have."""
    import torch

    @torch.library.custom_op("weft_tests::sum_of", mutates_args=())
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.sum()
    f.register_fake(lambda x: x.new_empty(()))


@pytest.fixture(scope="session", autouse=True)
def registered(tmp_path_factory):
    """In the build folder nothing is installed: the entry point that a wheel has, for torch.compile."""
    if not importlib.metadata.entry_points(group="torch_dynamo_backends", name="weft"):
        folder = tmp_path_factory.mktemp("installed") / "weft_compiler-0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: weft\nVersion: 0\n")
        (folder / "entry_points.txt").write_text("[torch_dynamo_backends]\nweft = weft.dynamo:backend\n")
        sys.path.append(str(folder.parent))
