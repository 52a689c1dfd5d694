"""What only code for processors may name: machine.py SOURCE.

A kernel above schedules knows no machine: lanes of vectors, vector registers and options of C compilers are named in codegen/cpu,
codegen/print/c and codegen/print/llvm. Any other file that names them, comments aside, is on a line of machine.txt, FILES: REASON,
where FILES is a pattern (ir/loop/*); a pattern that no such file matches is a failure, too, so the list only shrinks."""
import fnmatch
import os
import re
import shutil
import subprocess
import sys

FREE = ("codegen/cpu/", "codegen/print/c/", "codegen/print/llvm/")
ROOMS = ("base", "codegen", "driver", "frontend", "include", "ir", "lower", "ops", "passes", "runtime", "tools", "transform")
SKIPPED = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
# Identifiers with the word lane or lanes; vector registers; flags of instruction sets, and options that compilers know them by.
NAMES = re.compile(r"\b(?:\w*_)?lanes?(?:_\w*)?\b|\bvregs?\b|\bvector_registers\b|\bisa\.(?:flags|vectors|registers)\b|-m(?:arch|cpu|tune|avx\w*|fma)\b")


def names(path):
    with open(path, encoding="utf-8") as f:
        return NAMES.findall(SKIPPED.sub("", f.read()))


def main():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "machine.txt"), encoding="utf-8") as f:
        rows = [line.rstrip("\n").split(": ", 1) for line in f if line.strip()]
    assert all(len(r) == 2 and r[1] for r in rows), "expected lines FILES: REASON"
    os.chdir(sys.argv[1])
    if not shutil.which("git") or subprocess.run(["git", "rev-parse"], capture_output=True).returncode:
        print("skipped: without git and its folder sources do not say which files are theirs")
        sys.exit(77)
    listed = subprocess.run(["git", "ls-files", *ROOMS], capture_output=True, text=True, check=True).stdout.split()
    found = {p: names(p) for p in listed if p.endswith((".c", ".h", ".hpp")) and not p.startswith(FREE)}
    found = {p: sorted(set(n)) for p, n in found.items() if n}
    used, bad = set(), 0
    for path, what in found.items():
        row = next((r[0] for r in rows if fnmatch.fnmatch(path, r[0])), None)
        used.add(row)
        if row is None:
            bad += 1
            print(f"{path} names {', '.join(what)}, which only code for processors may (or a line of machine.txt with the reason)")
    for pattern, _ in rows:
        if pattern not in used:
            bad += 1
            print(f"machine.txt: no file that matches {pattern} names a machine: remove the line")
    print(f"{len(found)} files name lanes, vector registers or compiler flags, by {len(rows)} reasons")
    sys.exit(bad != 0)


main()
