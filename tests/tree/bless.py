"""What records expectations: bless.py FILE_RUNNER SOURCE_ROOT. --bless writes no error as an expectation, unless the test is one of
errors or has expected as many; make_samples.py keeps the order of its files, which have the operators of one family each."""
import ast
import pathlib
import random
import subprocess
import sys
import tempfile

runner, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
bad = 0
GOOD = "; run: interp\n; input x = 1 2\ngraph @f(%x: f32[2]) -> f32[2] {\n  %y = neg(%x) : f32[2]\n  return %y\n}\n"
WRONG = GOOD.replace("neg(%x) : f32[2]", "neg(%x) : f32[3]")


def wrong(text):
    global bad
    bad += 1
    print(f"FAIL: {text}")


def bless(path, text, written):
    """Blesses a file with the text; written: whether it is to get the error as its expectation."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    p = subprocess.run([runner, "--bless", path], capture_output=True, text=True)
    if (p.returncode == 0) != written or (path.read_text() != text) != written or ("not blessed, since it prints" in p.stdout) == written:
        wrong(f"{path.parent.name}/{path.name}: {p.returncode} {p.stdout}{p.stderr}\n{path.read_text()}")
    return path.read_text()


with tempfile.TemporaryDirectory() as folder:
    here = pathlib.Path(folder)
    expected = bless(here / "run" / "good.txt", GOOD, True)
    if "y0 = f32[2] -1 -2" not in expected and "-1 -2" not in expected:
        wrong(f"what is right is not blessed: {expected}")
    bless(here / "run" / "new.txt", WRONG, False)
    bless(here / "run" / "was_good.txt", WRONG + expected[len(GOOD):], False)
    error = bless(here / "errors" / "new.txt", WRONG, True)
    if "error: " not in error:
        wrong(f"no error: {error}")
    bless(here / "my_errors" / "new.txt", WRONG, False)
    # one that is expected to fail may fail in other words
    changed = error.replace("\n; ----\n", "\n; ----\n", 1).replace("f32[3]", "f32[4]", 1)
    bless(here / "run" / "other.txt", changed, True)

source = (root / "tests/make/make_samples.py").read_text()
tree = ast.parse(source)
scope = {}
exec(compile(ast.Module([n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "in_order"], []), "make_samples.py", "exec"), scope)
for seed in range(500):
    r = random.Random(seed)
    names = [f"op{k}" for k in range(r.randint(0, 12))]
    r.shuffle(names)  # the order of the source
    there = r.sample(names, r.randint(0, len(names))) + [f"gone{k}" for k in range(r.randint(0, 2))]
    r.shuffle(there)
    out = scope["in_order"](dict.fromkeys(there, ""), names)
    if sorted(out) != sorted(names) or [n for n in out if n in there] != [n for n in there if n in names]:
        wrong(f"seed {seed}: {there} and {names} give {out}")
    for name, before in zip(names[1:], names):
        if name not in there and out.index(name) < out.index(before):
            wrong(f"seed {seed}: {name} stands in front of {before}")
# each operator's records stand in the file that is named like that of its block
sys.path.append(str(root / "tests/help"))
import families  # noqa: E402

for record in ("samples", "edges", "borders", "refused", "bad_samples"):
    if not families.files(root / "tests/data" / record):
        wrong(f"tests/data/{record} has no files")
    for path in families.files(root / "tests/data" / record):
        family = path.relative_to(root / "tests/data" / record).with_suffix("").as_posix()
        for line in path.read_text().splitlines():
            if line[0] not in " =~^?+<>#" and families.families().get(line.split(" ")[0]) != family:
                wrong(f"{path}: {line.split(' ')[0]} is of {families.families().get(line.split(' ')[0], 'no file')}")
sys.exit(bad > 0)
