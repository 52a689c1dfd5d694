"""What documents say of messages, of files and of what a compiled model needs is so: documents.py WEFT SOURCE_ROOT"""
import array
import json
import pathlib
import re
import subprocess
import sys
import tempfile

weft, root = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
bad = 0


def complain(text):
    global bad
    bad += 1
    print("FAIL", text)


def safetensors(path, **tensors):
    """NAME=(dtype, shape, array)"""
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        raw = values.tobytes()
        header[name.replace("_", ".")] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


# ---- messages of calls, as docs/c-api.md quotes them ----

MODEL = """graph @f(%input_ids: i64[B, s70], %t: f32[50257, 2]) where 1 <= B, 2 <= s70 <= 512 {
  %embedding = aten.embedding(%t, %input_ids) : f32[B, s70, 2]   ; model.py:12
  return %embedding
}
"""


def message(folder, batch, size, values):
    safetensors(folder / "x.safetensors", x_0=("I64", [batch, size], array.array("q", values)),
                x_1=("F32", [50257, 2], array.array("f", bytes(8 * 50257))))
    return subprocess.run([weft, "run", folder / "m.ir", "--inputs", folder / "x.safetensors", "--outputs", folder / "y.safetensors"],
                          capture_output=True, text=True).stderr


def quoted(text, begin):
    found = re.search(rf"`({begin}[^`]*)`", text)
    return " ".join(found[1].split()) if found else ""


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "m.ir").write_text(MODEL)
    page = (root / "docs/c-api.md").read_text()
    place = [7] * (4 * 6)
    place[3 * 6 + 5] = 70000
    for sample, got in ((quoted(page, "input input_ids"), message(folder, 1, 600, [0] * 600)),
                        (quoted(page, "embedding: index"), message(folder, 4, 6, place))):
        if not sample or sample not in got:
            complain(f"docs/c-api.md quotes {sample!r}, and the command says {got!r}")

# ---- functions: docs/c-api.md names each one ----

page = (root / "docs/c-api.md").read_text()
exported = re.findall(r"^\t(weft_\w+);$", (root / "install/libweft.map").read_text(), re.M)
if len(exported) < 100:
    complain(f"install/libweft.map has only {len(exported)} functions")
for name in exported:
    if not re.search(rf"`{name}\b|\b{name}\(", page):
        complain(f"docs/c-api.md does not name {name}")

# ---- files ----

TOPS = "base|ir|ops|frontend|passes|lower|transform|codegen|driver|runtime|include|tools|tests|scripts|docs|examples|bench|install"
PAGES = ["README.md", "HACKING.md", "tests/README.md", "CHANGELOG.md", "CONTRIBUTING.md",
         *(str(p.relative_to(root)) for p in sorted((root / "docs").glob("**/*.md")))]
for name in (p for p in PAGES if p not in ("docs/log/mutants.md", "docs/log/net.md")):  # which are of commits that had other files
    text = (root / name).read_text()
    for path in set(re.findall(rf"(?<![\w./*-])((?:{TOPS})/[\w./*-]*[\w*])", text)):
        if not any(root.glob(path.rstrip("*") + "*")):
            complain(f"{name}: there is no {path}")
for name in ("README.md", "docs/kernels.md"):
    if "../shared" in (root / name).read_text():
        complain(f"{name} leans on ../shared, which is not part of the repository")

# ---- the first page and the index ----

if (lines := (root / "README.md").read_text().count("\n")) > 120:
    complain(f"README.md has {lines} lines, at most 120 are read")
index = (root / "docs/README.md").read_text()
for page in sorted((root / "docs").glob("*")):
    if page.is_file() and page.name != "README.md" and f"]({page.name})" not in index:
        complain(f"docs/README.md does not name {page.name}")
tutorials, suite = (root / "docs/tutorials/README.md").read_text(), (root / "tests/meson.build").read_text()
for page in sorted((root / "docs/tutorials").glob("*.md")):
    if page.name != "README.md" and f"]({page.name})" not in tutorials:
        complain(f"docs/tutorials/README.md does not name {page.name}")
    if page.name != "README.md" and f"'{page.stem}'" not in suite:
        complain(f"tests/meson.build has no test of docs/tutorials/{page.name}")
for name in PAGES:
    text = (root / name).read_text()
    for target in re.findall(r"(?:\]\(|^\[[\w-]+\]: )([^)\s#]+)(?:#[\w-]*)?(?:\)|$)", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M):
        if "://" not in target and not ((root / name).parent / target).exists():
            complain(f"{name}: the link to {target} leads nowhere")
    if re.search(r"pip3? install (?:-\S+ )*weft(?![\w-])", text):
        complain(f"{name}: weft of PyPI is other software")

# The tests that the list of defects names, but for what stands in parentheses, are there.
suite = "".join((root / folder / "meson.build").read_text() for folder in (".", "tests", "tests/conformance", "install"))
rows = re.findall(r"^\d+\. .*?Tests: (.*?)(?=\n\n|\n\d+\.)", (root / "docs/log/defects.md").read_text(), re.M | re.S)
if len(rows) != 29:
    complain(f"docs/log/defects.md: {len(rows)} entries, expected 29")
for name in {" ".join(n.split()) for row in rows for n in re.findall(r"`([^`]*)`", re.sub(r"\([^)]*\)", "", row))} - {"defects"}:
    held = any(root.glob(f"tests/text/{name}.txt")) or (root / f"tests/unit/{name}.c").exists() or (root / name).exists()
    if not held and f"test('{name}" not in suite and f"benchmark('{name}'" not in suite:
        complain(f"docs/log/defects.md: there is no test {name}")

# ---- what a compiled model needs: README.md, docs/c-api.md ----

with tempfile.TemporaryDirectory() as folder:
    so = pathlib.Path(folder) / "m.so"
    for more in ([], ["--backend", "c"]):
        subprocess.run([weft, "compile", root / "tests/data/mlp.pt2", "-o", so, *more], check=True, capture_output=True)
        dynamic = subprocess.run(["readelf", "-d", so], check=True, capture_output=True, text=True).stdout
        needed = {n.split(".")[0] for n in re.findall(r"NEEDED.*\[(.*?)\]", dynamic)}
        if not needed <= {"libc", "libm"}:
            complain(f"compiled with {more}: needs {sorted(needed)}")
sys.exit(bad != 0)
