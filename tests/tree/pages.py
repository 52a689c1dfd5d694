"""Blocks of pages that begin with a command say what the command prints: pages.py WEFT SOURCE_ROOT PAGE... [--bless]

A block's lines that begin with "$ " are commands; the lines behind a command are what it prints. A line "..." stands for any
number of lines. --bless writes what is printed now into blocks that have no such line.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

weft, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
bless = "--bless" in sys.argv
BLOCK = re.compile(r"^```\n(\$ .*?)^```$", re.S | re.M)


def printed(command, folder):
    path = f"{folder}/bin:{os.environ['PATH']}"
    done = subprocess.run(["sh", "-c", command], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    return done.stdout + done.stderr


def agrees(expected, got):
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in expected.splitlines())
    return re.fullmatch(pattern, got) is not None


def block(page, text, folder):
    """The block's text, as it should be."""
    out = ""
    for part in re.split(r"^(?=\$ )", text, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        got = printed(command[2:], folder)
        if agrees(expected, got):
            out += part
            continue
        out += f"{command}\n{got}" if "..." not in expected.splitlines() else part
        failed.append(page)
        print(f"FAIL {page}: {command}\n--- expected\n{expected}--- printed\n{got}")
    return out


failed = []
with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "bin").mkdir()
    pathlib.Path(folder, "bin/weft").symlink_to(weft)
    for name in ("examples", "tests"):
        pathlib.Path(folder, name).symlink_to(root / name)
    for page in (p for p in sys.argv[3:] if p != "--bless"):
        text = (root / page).read_text()
        found = BLOCK.findall(text)
        if not found:
            failed.append(page)
            print(f"FAIL {page}: no block begins with a command")
        new = BLOCK.sub(lambda m: f"```\n{block(page, m[1], folder)}```", text)
        if bless and new != text:
            (root / page).write_text(new)
sys.exit(bool(failed) and not bless)
