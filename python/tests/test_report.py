"""weft.report: a module, a file, what is saved, what a notebook shows."""
import html
import json
import os

import pytest

import weft

torch = pytest.importorskip("torch")
if not (os.path.exists(os.path.join(weft.include, "weft")) or os.path.exists(os.path.join(weft.include, "..", "..", "weft"))):
    pytest.skip("the command weft was not built", allow_module_level=True)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 32)
        self.head = torch.nn.Linear(32, 4)

    def forward(self, x, mask):
        return torch.where(mask, self.head(torch.relu(self.layer(x))), 0.0)


@pytest.fixture(scope="module")
def report():
    return weft.report(Net().eval(), (torch.randn(8, 16), torch.ones(8, 4, dtype=torch.bool)), seconds=0.02)


def test_module(report):
    assert report.json["schema"] == "weft-report" and report.totals.seconds > 0 and len(report.kernels) == report.totals.kernels
    slow = report.slowest(1)[0]
    assert "{" in slow.source and slow.share > 0 and slow.nothing is None
    modules = {n.module for k in report.kernels for n in k.nodes}
    assert {"layer", "head"} <= modules
    assert any("test_report.py" in (k.place or "") or "linear.py" in (k.place or "") for k in report.kernels)
    assert report.findings and report.findings[0] in str(report) and "kernels" in repr(report)


def test_saved(report, tmp_path):
    report.save(tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text()) == report.json
    report.save(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert page.startswith("<!doctype html>") and report.kernels[0].name in page
    shown = report._repr_html_()
    assert shown.startswith("<iframe") and html.escape("<!doctype html>") in shown
    with pytest.raises(ValueError, match="not as"):
        report.save(tmp_path / "r.txt")


def test_file(tmp_path):
    (tmp_path / "m.ir").write_text("graph @f(%x: f32[4, 8]) {\n  %a = aten.exp(%x) : f32[4, 8]  ; net.py:3\n  return %a\n}\n")
    r = weft.report(tmp_path / "m.ir", seconds=0.01, source=False)
    assert r.kernels[0].place == "net.py:3" and r.kernels[0].source is None
    with pytest.raises(weft.Error, match="missing.pt2"):
        weft.report(tmp_path / "missing.pt2")
    with pytest.raises(TypeError, match="needs its inputs"):
        weft.report(Net())
    with pytest.raises(TypeError, match="not int"):
        weft.report(3)
