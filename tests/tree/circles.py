"""Rooms (folders with sources) form no circle: circles.py SOURCE_ROOT

Two rules. No room includes headers of a second room that includes, directly or by others, headers of the first. And a function is defined
in the room whose header declares it: otherwise a room could use another one without including it. KNOWN has the circles that are left:
none. `circles.py --self` tests this script."""
import collections
import pathlib
import re
import sys

TOPS = ("base", "ir", "ops", "frontend", "passes", "lower", "transform", "codegen", "driver", "runtime", "tools")
# Each a set of rooms that include one another, and why.
KNOWN = {}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
DECLARED = re.compile(r"^(?:[A-Za-z_][\w ]*[ *]+)(\w+)\([^;{}]*\)(?:\s*__attribute__\(\(.*?\)\)\))?;", re.M | re.S)
DEFINED = re.compile(r"^(?!static\b)(?:[A-Za-z_][\w ]*[ *]+)(\w+)\([^;{}]*\)\s*\{", re.M | re.S)


def room_of(path):
    """Its folder; the command is one room, whose header declares what its folders define."""
    return "tools" if path.startswith("tools/") else path.rpartition("/")[0]


def components(edges):
    """Sets of more than one room that reach one another (Tarjan)."""
    index, low, stack, on, out = {}, {}, [], set(), []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        for w in sorted(edges.get(v, ())):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            found = set()
            while v not in found:
                w = stack.pop()
                on.discard(w)
                found.add(w)
            if len(found) > 1:
                out.append(frozenset(found))

    for v in sorted(edges):
        if v not in index:
            visit(v)
    return out


def check(files, known):
    """files: {path: text}. What is wrong, a line each."""
    rooms, edges = {room_of(p) for p in files}, collections.defaultdict(set)
    example = {}
    declared, defined = {}, {}
    for path, text in files.items():
        here = room_of(path)
        for name in re.findall(r'^#include "([^"]+)"', text, re.M):
            there = room_of(name)
            if there in rooms and there != here:
                edges[here].add(there)
                example.setdefault((here, there), f"{path} includes {name}")
        code = COMMENT.sub("", text)
        target, pattern = (declared, DECLARED) if path.endswith(".h") else (defined, DEFINED)
        for name in pattern.findall(code):
            target.setdefault(name, path)
    found = components(edges)
    for circle in found:
        if circle not in known:
            yield f"a circle: {', '.join(sorted(circle))}"
            yield from (f"  {text}" for (a, b), text in sorted(example.items()) if a in circle and b in circle)
    for circle in known:
        if circle not in found:
            yield f"there is no circle of {', '.join(sorted(circle))} any more: strike it from KNOWN"
    for name, path in sorted(declared.items()):
        if name in defined and room_of(defined[name]) != room_of(path):
            yield f"{path} declares {name}, which {defined[name]} defines"


def self_test():
    good = {"a/x.h": "int f(void);\n", "a/x.c": '#include "a/x.h"\nint f(void)\n{\n}\n', "b/y.c": '#include "a/x.h"\n'}
    assert not list(check(good, {}))
    circle = {**good, "b/y.h": "", "a/z.c": '#include "b/y.h"\n'}
    assert "a circle: a, b" in list(check(circle, {}))
    assert not list(check(circle, {frozenset("ab"): "why"}))
    assert list(check(good, {frozenset("ab"): "why"}))
    moved = {"a/x.h": "int f(void);\n", "b/x.c": '#include "a/x.h"\nint f(void)\n{\n}\n'}
    assert list(check(moved, {})) == ["a/x.h declares f, which b/x.c defines"]
    assert not list(check({**moved, "b/x.c": "static int f(void)\n{\n}\n"}, {}))


def main():
    if sys.argv[1] == "--self":
        return self_test()
    root = pathlib.Path(sys.argv[1])
    files = {f.relative_to(root).as_posix(): f.read_text() for top in TOPS for f in sorted((root / top).rglob("*.[ch]"))}
    assert len(files) > 300, len(files)
    found = list(check(files, KNOWN))
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
