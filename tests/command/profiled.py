"""weft bench --profile fits the terminal, and sums up by module and line of the model's source: profiled.py WEFT"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

weft = pathlib.Path(sys.argv[1]).resolve()
MODEL = """graph @f(%x: f32[32, 64], %w: f32[64, 64]) -> f32[32, 64] {
  %a = aten.mm(%x, %w) : f32[32, 64]  ; a_long_name_of_a_file_of_layers.py:12 in encoder.layers.0
  %b = aten.log_softmax.int(%a, dim=1) : f32[32, 64]  ; net.py:20 in encoder.layers.0.norm
  %c = aten.mm(%b, %w) : f32[32, 64]  ; a_long_name_of_a_file_of_layers.py:12 in encoder.layers.1
  %d = aten.softmax.int(%c, dim=0) : f32[32, 64]  ; net.py:31 in head
  %e_value_with_a_name_that_is_longer_than_the_column_of_names = aten.mm(%d, %w) : f32[32, 64]  ; main.py:7
  return %e_value_with_a_name_that_is_longer_than_the_column_of_names
}
"""
COLUMNS = ["us", "%", "sum %", "predicted", "FLOP", "B", "FLOP/s", "roofline", "algorithm"]
bad = 0


def say(text):
    global bad
    bad += 1
    print("FAIL", text)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "m.ir").write_text(MODEL)

    def bench(*args, columns=None):
        env = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | ({"COLUMNS": str(columns)} if columns else {})
        p = subprocess.run([weft, "bench", "m.ir", "--seconds", "0.02", "--no-op-by-op", "--profile", *args], cwd=folder, capture_output=True, text=True, env=env)
        if p.returncode:
            say(f"{args}: status {p.returncode}: {p.stderr}")
        return p.stdout

    for columns in (60, 80, 100, 120, 220):
        table = bench(columns=columns).split("\n\n")[0].splitlines()
        head = table[0]
        if any(len(line) > columns for line in table if not line.startswith(("roofline:", "the caches'", "for lack"))):
            say(f"{columns} columns: " + "\n".join(table))
        missing = [c for c in COLUMNS if f" {c} " not in f" {head} "]
        said = next((line for line in table if line.startswith("for lack of room without: ")), None)
        if bool(missing) != bool(said) or (said and said.split(": ")[1].split(" (")[0] != ", ".join(missing)) or (columns == 220) != (not missing):
            say(f"{columns} columns: without {missing}: {said}")
        if not any("net.py:20 in encoder.layers.0.norm" in line for line in table) and columns > 120:
            say(f"{columns} columns: no line")
    # where nothing says how wide it is, as at 100
    if bench().splitlines()[0].split() != bench(columns=100).splitlines()[0].split():
        say("100 columns by default")
    kernels = json.loads(bench("--json"))["profile"]
    total = sum(k["seconds"] for k in kernels)
    j = json.loads(bench("--by", "module", "--json"))["profile"]
    modules = {m["module"]: m for m in j}
    names = [m["module"] for m in j]
    wanted = {"encoder", "encoder.layers", "encoder.layers.0", "encoder.layers.0.norm", "encoder.layers.1", "head", "(model)"}
    if set(names) != wanted or names.index("encoder") > names.index("encoder.layers") or names.index("encoder.layers.0.norm") != names.index("encoder.layers.0") + 1:
        say(f"modules: {names}")
    else:
        inside = [modules[n] for n in ("encoder.layers.0", "encoder.layers.1")]
        if modules["encoder"]["alone"] or modules["encoder"]["calls"] or abs(modules["encoder"]["seconds"] - sum(m["seconds"] for m in inside)) > 1e-9:
            say(f"a module and its parts: {modules}")
        if abs(inside[0]["seconds"] - inside[0]["alone"] - modules["encoder.layers.0.norm"]["seconds"]) > 1e-9:
            say(f"a module beside its parts: {modules}")
        if sum(m["calls"] for m in j) != len(kernels):
            say(f"calls: {modules}, {len(kernels)} kernels")
    lines = {m["line"]: m for m in json.loads(bench("--by", "line", "--json"))["profile"]}
    if set(lines) != {"a_long_name_of_a_file_of_layers.py:12", "net.py:20", "net.py:31", "main.py:7"} or lines["a_long_name_of_a_file_of_layers.py:12"]["calls"] < 2:
        say(f"lines: {lines}")
    if not total > 0:
        say("no time")
    text = bench("--by", "module", columns=70).split("\n\n")[0].splitlines()
    if not text[0].startswith("module ") or len({len(t) for t in text[1:-1]}) != 1 or max(map(len, text)) > 70 or not text[-1].startswith("all calls "):
        say("modules as text:\n" + "\n".join(text))
    p = subprocess.run([weft, "bench", "m.ir", "--profile", "--by", "node"], cwd=folder, capture_output=True, text=True)
    if p.returncode != 2 or "--by is kernel, module or line, not node" not in p.stderr:
        say(f"--by node: {p.stderr}")
sys.exit(bad != 0)
