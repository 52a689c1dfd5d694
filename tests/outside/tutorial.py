"""A tutorial works as it stands: tutorial.py WEFT SOURCE_ROOT PAGE

In a folder that looks like a checkout (include/, examples/, tests/, and weft, python and cc as commands), each block of the page is done in order:

```c NAME, ```python NAME           writes the file NAME; also of cpp and cmake
```c from FILE, ```python from FILE  each line is one of FILE of the checkout; also of cpp and cmake
``` whose first line begins with $  such lines are commands, which must succeed; the lines behind a command are what it prints, where "..." stands for
                                    any number of lines, within a line for any text

Any other block is an error, so that nothing on the page is left out. Skipped (77) where something of the page's sentence "Needs: ..." is missing:
`NAME` is a command, `import NAME` a module of Python.
"""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
import limits  # noqa: E402

weft, root, page = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.S | re.M)
KINDS = ("c", "cpp", "cmake", "python")
MOST = 150  # lines


def missing(text):
    """The first thing that the page needs and that is not here, or None."""
    sentence = re.search(r"^Needs: (.*?)\.\s", text, re.M | re.S)
    for need in re.findall(r"`([^`]*)`", sentence[1]) if sentence else []:
        module = need.removeprefix("import ")
        if module != need and not importlib.util.find_spec(module):
            return f"a Python that can import {module}"
        if module == need and need != "python" and not shutil.which(need):
            return need
    return None


def printed(command, folder):
    env = {**os.environ, "PATH": f"{folder}/build:{folder}/bin:{os.environ['PATH']}", "WEFT_CACHE": f"{folder}/cache",
           "TORCHINDUCTOR_CACHE_DIR": f"{folder}/torch", "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{folder}/bin"}
    done = limits.run(["bash", "-c", command], 300, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def agrees(expected, got):
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n" for line in expected.splitlines())
    return re.fullmatch(pattern, got) is not None


def commands(block, folder):
    """Whether the commands of a block do what it says."""
    for part in re.split(r"^(?=\$ )", block, flags=re.M)[1:]:
        command, expected = re.match(r"\$ ((?:.*\\\n)*.*)\n((?:.*\n)*)", part).groups()
        code, got = printed(command, folder)
        if code or not agrees(expected, got):
            print(f"FAIL {page.name}: {command}\n--- exit status {code}, expected to print\n{expected}--- printed\n{got}")
            return False
    return True


def done(folder, text):
    for name in ("examples", "include", "tests"):
        (folder / name).symlink_to(root / name)
    (folder / "build").mkdir()
    (folder / "bin").mkdir()
    for built in weft.parent.glob("run_file-*"):
        (folder / "build" / built.name).symlink_to(built)
    (folder / "build/weft").symlink_to(weft)
    (folder / "bin/python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / "bin/python").chmod(0o755)
    installed = folder / "bin/weft_compiler-0.dist-info"  # what pip would write, so that torch.compile finds the back end
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: weft-compiler\nVersion: 0\n")
    (installed / "entry_points.txt").write_text("[torch_dynamo_backends]\nweft = weft.dynamo:backend\n")
    count = 0
    for info, block in BLOCK.findall(text):
        kind, _, name = info.partition(" ")
        if kind in KINDS and name.startswith("from "):
            theirs = {x.strip() for x in (root / name[5:]).read_text().splitlines()}
            if lacking := [x for x in block.splitlines() if x.strip() not in theirs]:
                print(f"FAIL {page.name}: {name[5:]} has no line {lacking[0]!r}")
                return 1
        elif kind in KINDS and name:
            (folder / name).write_text(block)
        elif not info and block.startswith("$ "):
            count += block.count("\n$ ") + 1
            if not commands(block, folder):
                return 1
        else:
            print(f"FAIL {page.name}: a block that is neither a file nor commands: {info} {block[:60]!r}")
            return 1
    print(f"{page.name}: {count} commands")
    return 0 if count else 1


def main():
    text = page.read_text()
    if (n := text.count("\n")) > MOST:
        print(f"FAIL {page.name} has {n} lines, at most {MOST} are read")
        return 1
    if what := missing(text):
        print(f"skipped: {page.name} needs {what}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        return done(pathlib.Path(folder).resolve(), text)


sys.exit(main())
