"""A new operator costs little to build: incremental.py BUILD SOURCE_ROOT. What an operator that nothing names changes of the generated
headers, and how many objects are made again then and when the largest operator file is touched, at most MOST, by ninja's
record of what each object includes. Skipped (77) where there is no ninja."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

MOST = 12
build, root = map(pathlib.Path, sys.argv[1:3])
ninja = shutil.which("ninja")
if not ninja or not (build / "build.ninja").exists():
    sys.exit(77)
bad = 0


def expect(ok, text):
    global bad
    if not ok:
        bad += 1
        print("FAIL", text)


# Objects by what they include.
users, target = {}, None
for line in subprocess.run([ninja, "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout.splitlines():
    if line and not line.startswith(" "):
        target = line.split(":")[0]
    elif line.strip():
        users.setdefault((build / line.strip()).resolve(), set()).add(target)
expect(users, "ninja knows of no object")
table = users.get((build / "optable.h").resolve(), set())
expect(table and len(table) + 1 <= MOST, f"a new operator makes {len(table) + 1} objects: {' '.join(sorted(table))}")
for path in root.glob("ops/*/*.c"):
    n = len(users.get(path.resolve(), ()))
    expect(n <= MOST, f"{path} makes {n} objects")

# The header that everything includes does not change.
with tempfile.TemporaryDirectory() as folder:
    new = pathlib.Path(folder) / "new.c"
    new.write_text('OP(aten_brand_new){\n\t.schema = "aten.brand_new(Tensor self) -> Tensor",\n};\n')
    sources = [p for room in ("base", "ir", "ops", "frontend", "passes", "lower", "transform", "codegen", "driver", "runtime", "tools", "tests")
               for p in (root / room).rglob("*.c")]
    made = {}
    for name, more in (("before", []), ("after", [new])):
        out = [pathlib.Path(folder) / f"{name}.{k}.h" for k in range(2)]
        subprocess.run([sys.executable, root / "scripts/oplist.py", *out, *sources, *more], check=True)
        made[name] = [p.read_text() for p in out]
    expect(made["before"][0] == made["after"][0], "a new operator changes oplist.h")
    expect("OP_aten_brand_new" in made["after"][1], "a new operator is not in optable.h")
sys.exit(bad != 0)
