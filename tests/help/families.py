"""Recorded texts of operators stand in files by family, one folder for a record: FOLDER/aten/norm.txt has those of the operators whose
blocks stand in ops/aten/norm.c. A new operator touches one small file. tests/help/records.h reads the same."""
import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCHEMA = re.compile(r"\.schema\s*=\s*\"([\w.]+)\(")


@functools.cache
def families():
    """By operator: its family ("aten/norm"); in the order of the sources."""
    return {name: path.relative_to(ROOT / "ops").with_suffix("").as_posix()
            for path in sorted((ROOT / "ops").glob("*/*.c")) for name in SCHEMA.findall(path.read_text(encoding="utf-8"))}


def files(folder):
    """The files of a record."""
    return sorted(pathlib.Path(folder).glob("*/*.txt"))


def lines(folder):
    """All lines of a record."""
    return [line for path in files(folder) for line in path.read_text(encoding="utf-8").splitlines(keepends=True)]


def write(folder, texts):
    """Writes the texts of a record, {operator: text}, in this order within a file. Files without text go."""
    by_family = {}
    for name, text in texts.items():
        if text:
            by_family[families()[name]] = by_family.get(families()[name], "") + text
    for path in files(folder):
        if path.relative_to(folder).with_suffix("").as_posix() not in by_family:
            path.unlink()
    for family, text in by_family.items():
        path = pathlib.Path(folder, family + ".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
