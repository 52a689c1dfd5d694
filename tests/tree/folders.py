"""Folders include what the table of HACKING.md allows, and each folder with sources has a row there: folders.py SOURCE_ROOT

The last column is `nothing`, names of folders, or "all but" names; behind a semicolon stand names that are allowed all the same.
A name stands for the folder and those in it. No script is named as a module of Python, which other modules would then import
from its folder. `folders.py --self` tests this script.
"""
import pathlib
import re
import sys

ROW = re.compile(r"^\| (`[\w/`, ]+) \| .* \| ([^|]+) \|$", re.M)
NAME = re.compile(r"`([\w/]+)`")


def within(folder, names):
    return any(folder == name or folder.startswith(name + "/") for name in names)


def rules(page):
    """{folder: function that says whether an include of that folder is allowed}"""
    section = page.partition("\n## Folders\n")[2].partition("\n## ")[0].partition("\n| folder | tests |")[0]
    out = {}
    for folders, cell in ROW.findall(section):
        first, _, more = cell.partition(";")
        names, more = NAME.findall(first), NAME.findall(more)
        if not names and cell != "nothing":
            raise SystemExit(f"HACKING.md: not understood: {cell}")
        for folder in NAME.findall(folders):
            if first.startswith("all but "):
                out[folder] = lambda f, n=names, m=more: not within(f, n) or within(f, m)
            else:
                out[folder] = lambda f, n=names: within(f, n)
    return out


def rule_of(folder, table):
    while folder not in table:
        if "/" not in folder:
            return None
        folder = folder.rpartition("/")[0]
    return table[folder]


def check(files, table):
    """files: (folder, path, text). What is wrong, a line each."""
    for folder, path, text in files:
        allowed = rule_of(folder, table)
        if not allowed:
            yield f"{path}: the table of HACKING.md has no row for {folder}"
            continue
        for name in re.findall(r'^#include "([^"]+)"', text, re.M):
            to = name.rpartition("/")[0]
            if to and to != folder and not allowed(to):
                yield f"{path} may not include {name} (HACKING.md, Folders)"


def hiding(paths):
    """Scripts that hide a module of Python from what their folder's scripts import, a line each."""
    return [f"{path}: a module of Python has this name" for path in paths if path.stem in sys.stdlib_module_names]


if sys.argv[1] == "--self":
    page = "\n## Folders\n| `a`, `b/c` | x | `base`, `d/e` |\n| `f` | y | all but `a`, `g`; `g/h` |\n| `z` | n | nothing |\n\n## Next\n| `q` | n | nothing |\n"
    table = rules(page)
    assert sorted(table) == ["a", "b/c", "f", "z"]
    cases = [("a", "base/x.h", 0), ("a", "d/e/f/x.h", 0), ("a", "d/x.h", 1), ("b/c/d", "base/x.h", 0), ("f", "g/x.h", 1), ("f", "g/h/x.h", 0),
             ("f", "q/x.h", 0), ("f", "a/x.h", 1), ("z", "z/x.h", 0), ("z", "x.h", 0), ("z", "base/x.h", 1), ("q", "base/x.h", 1)]
    for folder, name, wrong in cases:
        assert len(list(check([(folder, "file.c", f'#include "{name}"\n')], table))) == wrong, (folder, name)
    assert len(hiding([pathlib.Path("a/bisect.py"), pathlib.Path("a/bisected.py")])) == 1
    sys.exit(0)
root = pathlib.Path(sys.argv[1])
table = rules((root / "HACKING.md").read_text())
missing = [f"HACKING.md: there is no folder {folder}" for folder in table if not (root / folder).is_dir()]
TOPS = ("base", "ir", "ops", "frontend", "passes", "lower", "transform", "codegen", "driver", "runtime", "tools", "python", "examples", "bench")
sources = [(f.parent.relative_to(root).as_posix(), f.relative_to(root), f.read_text()) for top in TOPS
           for f in sorted((root / top).rglob("*")) if f.suffix in (".c", ".h", ".hpp")]
assert len(sources) > 300, len(sources)
scripts = [f.relative_to(root) for top in ("tests", "scripts", "bench", "examples") for f in sorted((root / top).rglob("*.py"))]
found = missing + list(check(sources, table)) + hiding(scripts)
print("\n".join(found), end="\n" if found else "")
sys.exit(bool(found))
