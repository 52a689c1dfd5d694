"""weft report: the JSON of every small fixture has the documented schema, operators lead to their nodes, hostile names stay text, and the page,
the trace and the difference hold the same data: reported.py WEFT SOURCE_ROOT"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from report_schema import complaints  # noqa: E402

weft, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
bad = 0
MODEL = """graph @f(%x: f32[B, 64], %w: f32[64, 64]) -> f32[B, 64] where 1 <= B <= 512 {
  %a = aten.mm(%x, %w) : f32[B, 64]  ; net.py:12 in encoder.0
  %b = aten.relu(%a) : f32[B, 64]  ; net.py:14 in encoder.0
  %c = aten.log_softmax.int(%b, dim=1) : f32[B, 64]  ; net.py:20 in encoder.0.norm
  %d = aten.mm(%c, %w) : f32[B, 64]  ; net.py:12 in encoder.1
  %e = aten.relu(%d) : f32[B, 64]  ; net.py:14 in encoder.1
  return %e
}
"""
HOSTILE = """graph @f(%x: f32[4, 8]) -> f32[4, 8] {
  %a = aten.exp(%x) : f32[4, 8]  ; </script><script>alert(1)</script>.py:3 in <img src=x onerror=alert(1)>
  return %a
}
"""


def say(text):
    global bad
    bad += 1
    print("FAIL", text)


def run(*args, status=0):
    p = subprocess.run([weft, "report", *args], capture_output=True, text=True, cwd=folder)
    if p.returncode != status:
        say(f"{args}: status {p.returncode}: {p.stderr}")
    return p


def report(*args):
    p = run(*args, "--seconds", "0.01", "--json")
    try:
        r = json.loads(p.stdout)
    except ValueError as e:
        say(f"{args}: {e}")
        return None
    for text in complaints(r):
        say(f"{args}: {text}")
    return r


def embedded(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def check_model():
    """Kernels know the nodes that they compute, nodes their lines; sizes are those that ran."""
    r = report("m.ir")
    if not r:
        return
    nodes = {n["name"]: n for n in r["nodes"]}
    if [nodes[n].get("line") for n in "abc"] != ["net.py:12", "net.py:14", "net.py:20"] or nodes["c"].get("module") != "encoder.0.norm":
        say(f"lines of nodes: {r['nodes']}")
    made = {r["nodes"][o["node"] - 1]["name"] for k in r["kernels"] for o in k["operators"] if "node" in o}
    if made != set("abcde"):
        say(f"kernels compute the nodes {sorted(made)}")
    fused = [k for k in r["kernels"] if {o.get("node") for o in k["operators"]} >= {nodes["d"]["id"], nodes["e"]["id"]}]
    if not fused or fused[0]["place"] != "net.py:12-14" or fused[0]["node"] != nodes["d"]["id"] or not fused[0]["line"].startswith("net.py:12"):
        say(f"the kernel of mm and relu: {[(k['name'], k['place'], k['node']) for k in r['kernels']]}")
    for k in r["kernels"]:
        if k["function"] not in r["sources"] or "{" not in r["sources"][k["function"]]:
            say(f"kernel {k['id']} has no code")
    if abs(sum(k["share"] for k in r["kernels"]) - 1) > 1e-6 or not r["findings"] or r["findings"][0]["kind"] not in ("slow", "busy"):
        say("shares, or findings")
    if any(n for n in r["model"]["sizes"].values() if not 1 <= n <= 512):
        say(f"sizes: {r['model']['sizes']}")
    if report("m.ir", "--no-source")["sources"]:
        say("--no-source: there is code")


def check_views():
    """Page, JSON file, page of the JSON, trace, difference."""
    run("m.ir", "--seconds", "0.01", "-o", "m.html", "--trace", "t.json")
    run("m.ir", "--seconds", "0.01", "-o", "m.json")
    run("m.json", "-o", "n.html")
    page = (folder / "m.html").read_text()
    if list(complaints(embedded(page))) or embedded((folder / "n.html").read_text()) != json.loads((folder / "m.json").read_text()):
        say("the data of a page")
    if re.search(r"""(?:src|href)\s*=\s*["']?(?!#|data:)[^"'> ]""", page.split('id="data"')[0]) or "@css@" in page or "@js@" in page:
        say("the page loads something, or is not complete")
    trace = json.loads((folder / "t.json").read_text())["traceEvents"]
    launches = [e for e in trace if e["ph"] == "X"]
    if len(launches) != len(embedded(page)["timeline"]["launches"]) or any(not {"name", "pid", "tid", "ts", "dur"} <= e.keys() for e in launches):
        say(f"the trace: {trace}")
    d = json.loads(run("--diff", "m.json", "m.json", "--json").stdout)
    if d["schema"] != "weft-report-diff" or any(k["change"] or "before" not in k or "after" not in k for k in d["kernels"]) or not d["kernels"]:
        say(f"the difference of a report and itself: {d}")
    other = json.loads((folder / "m.json").read_text())
    gone = other["kernels"].pop()
    other["kernels"][0]["seconds"] += 1
    (folder / "o.json").write_text(json.dumps(other))
    d = json.loads(run("--diff", "m.json", "o.json", "--json").stdout)
    last = [k for k in d["kernels"] if "after" not in k]
    if [k["name"] for k in last] != [gone["name"]] or d["kernels"][0]["name"] != other["kernels"][0]["name"] or not 0.99 < d["kernels"][0]["change"] < 1.01:
        say(f"a difference: {d['kernels']}")
    run("--diff", "m.json", "o.json", "-o", "d.html")
    if embedded((folder / "d.html").read_text()) != d or other["kernels"][0]["name"] not in run("--diff", "m.json", "o.json").stdout:
        say("the page, or the text, of a difference")


def check_other_models():
    """The difference of reports of models with other inputs: a warning."""
    other = json.loads((folder / "m.json").read_text())
    other["model"]["inputs"][0]["shape"] = "7"
    (folder / "w.json").write_text(json.dumps(other))
    if "warning: inputs and outputs are " not in run("--diff", "m.json", "w.json").stderr or run("--diff", "m.json", "m.json").stderr:
        say("reports of different models")


def check_hostile():
    (folder / "h.ir").write_text(HOSTILE)
    run("h.ir", "--seconds", "0.01", "-o", "h.html")
    page = (folder / "h.html").read_text()
    if page.count("</script>") != 2 or "<img" in page or "onerror" not in json.dumps(embedded(page)):
        say("a hostile name is not text")
    if not any("</script>" in (n.get("line") or "") for n in embedded(page)["nodes"]):
        say("a hostile name is not there")


def check_shared_object():
    subprocess.run([weft, "compile", "m.ir", "-o", "m.so"], cwd=folder, check=True, capture_output=True)
    r = report("m.so")
    if r and (r["nodes"] or not r["kernels"] or r["kernels"][0]["place"] not in ("net.py:12", "net.py:20")):
        say(f"a shared object: {r['kernels'][:1]}")


def check_refusals():
    for args, words in ((("m.ir", "-o", "m.txt"), "ends with .html or .json"), (("m.ir", "--json", "-o", "m.html"), "name of a page"), ((), "takes one model"),
                        (("--diff", "m.json"), "takes two reports"), (("m.ir", "--seconds", "0"), "positive number"), (("m.ir", "--backend", "interp"), "are not timed")):
        p = run(*args, status=2)
        if words not in p.stderr:
            say(f"{args}: {p.stderr}")
    (folder / "no.json").write_text('{"kernels": []}')
    (folder / "new.json").write_text('{"schema": "weft-report", "version": 99, "kernels": []}')
    (folder / "broken.json").write_text("{")
    for name, words in (("no.json", "expected the JSON of weft report"), ("new.json", "of version 99, expected 1"), ("broken.json", "no report"), ("missing.json", "no report")):
        for args in (("--diff", "m.json", name), (name, "-o", "x.html")):
            p = run(*args, status=1)
            if words not in p.stderr or name not in p.stderr or (folder / "x.html").exists():
                say(f"{args}: {p.stderr}")


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "m.ir").write_text(MODEL)
    check_model()
    check_views()
    check_other_models()
    check_hostile()
    check_shared_object()
    check_refusals()
    for file in sorted(root.glob("tests/exported/*.onnx")) + [root / "examples/digits/digits_cnn.pt2"]:
        r = report(str(file))
        if r and not (r["nodes"] and (r["kernels"] or "drawn" in file.name)):
            say(f"{file.name}: {len(r['nodes'])} nodes, {len(r['kernels'])} kernels")
sys.exit(bad != 0)
