#!/usr/bin/env python3
"""Draws functions of headers: draw_headers.py [--seed N] [--count N] [--private] [FOLDER|FILE...]
Prints each function with the comment above it, as a reader of the header alone finds it. Whoever draws writes down what
the function does, needs and returns, then reads its code; a header of which that was wrong or unclear is mended. Without
folders: all headers of the tree. Headers that files of one folder alone include are private to that folder; they are
drawn with --private. A function that is drawn stays drawn while nothing changes: the order of a seed depends on the
names only."""
import argparse
import hashlib
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = "base include ir ops passes transform lower codegen frontend driver runtime tools tests".split()
START = re.compile(r"^(?:MUST_LOOK |static inline |extern |WEFT_API |_Noreturn |PRINTF_LIKE\(.*?\) )*[A-Za-z_][\w ]*[ *]+\(?\*?\w+\)?\(")
INCLUDE = re.compile(r'#include "([^"]+)"')


def functions(path):
    """(line, comment, declaration) of each function that the header declares or defines inline."""
    lines = path.read_text().splitlines()
    comment, k = [], 0
    while k < len(lines):
        line = lines[k]
        if line.startswith("/*"):
            comment = [line]
            while "*/" not in lines[k]:
                k += 1
                comment.append(lines[k])
        elif START.match(line) and not line.startswith("typedef"):
            first, text = k, [line]
            while not re.search(r"[;{]", re.sub(r"/\*.*?\*/", "", lines[k])) and k + 1 < len(lines) and lines[k + 1]:
                k += 1
                text.append(lines[k])
            yield first + 1, comment, text
        elif not line:
            comment = []
        k += 1


def includers():
    """The folders whose files include a header, by the header's path."""
    found = {}
    for room in ROOMS:
        for file in (f for f in (ROOT / room).rglob("*.[ch]") if f.parts[len(ROOT.parts)] != "tests"):
            for name in INCLUDE.findall(file.read_text()):
                header = next((h for h in (ROOT / name, ROOT / "include" / name, file.parent / name) if h.exists()), None)
                found.setdefault(header, set()).add(file.parent)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--all", action="store_true", help="all functions, in the order of the headers")
    parser.add_argument("--private", action="store_true", help="headers private to a folder too")
    parser.add_argument("paths", nargs="*")
    o = parser.parse_args()
    headers = []
    for path in map(pathlib.Path, o.paths or [ROOT / room for room in ROOMS]):
        headers += sorted(path.rglob("*.h")) if path.is_dir() else [path]
    if not o.private:
        users = includers()
        headers = [h for h in headers if h.resolve().parent == ROOT / "include" or users.get(h.resolve(), set()) - {h.resolve().parent}]
    found = [(path, *f) for path in headers for f in functions(path)]
    if not o.all:
        key = lambda f: hashlib.sha256(f"{o.seed} {f[0].name} {f[3][0]}".encode()).digest()
        found = sorted(sorted(found, key=key)[:o.count], key=lambda f: (str(f[0]), f[1]))
    for path, line, comment, text in found:
        print(f"{path}:{line}", *comment, *text, "", sep="\n")
    print(f"{len(found)} functions of {len(headers)} headers")


if __name__ == "__main__":
    main()
