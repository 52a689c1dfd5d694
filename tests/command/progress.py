"""What says how far a command is. On a terminal a line, after a second, rewritten, gone at the end, never in what is printed; elsewhere lines:
progress.py WEFT SOURCE_ROOT. A C compiler that waits makes commands long."""
import concurrent.futures
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import time

weft, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(root / "tests/help"))
from tensor_file import write_tensors  # noqa: E402

MODEL = "graph @f(%x: f32[3]) -> f32[3] {\n  %y = aten.mul.Tensor(%x, %x) : f32[3]\n  return %y\n}\n"
AGAIN = "\r\x1b[K"
bad = 0


def say(text):
    global bad
    bad += 1
    print("FAIL", text)


def on_terminal(args, folder, **env):
    """Status, stdout, what the terminal got, which is stderr."""
    parent, child = pty.openpty()
    p = subprocess.Popen([weft, *args], cwd=folder, stdout=subprocess.PIPE, stderr=child, text=True, env={**os.environ, **env})
    os.close(child)
    got = b""
    while True:
        try:
            part = os.read(parent, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        got += part
    out = p.communicate()[0]
    os.close(parent)
    return p.returncode, out, got.decode().replace("\r\n", "\n")


def through_pipe(args, folder, **env):
    """Status, stdout, and of stderr, which is a pipe, the lines with the times at which they came."""
    with subprocess.Popen([weft, *args], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **env}) as p:
        got = [(time.monotonic(), line.removesuffix("\n")) for line in p.stderr]
        out = p.stdout.read()
    return p.returncode, out, got


def lines_of(got):
    """The lines that were shown; each rewrites the one before."""
    return [part for part in got.split(AGAIN) if part]


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "m.ir").write_text(MODEL)
    write_tensors(folder / "m.safetensors", {"x.0": ("f", [3], [1.0, 2.0, 3.0]), "y.0": ("f", [3], [1.0, 4.0, 9.0])})
    slow = folder / "slow"
    slow.write_text('#!/bin/sh\nsleep 1.6\nexec cc "$@"\n')
    slow.chmod(0o755)
    by_slow = ["--cc", slow]
    commands = {
        "compile": (["compile", "m.ir", "-o", "m.so", "--json"], r"code, \d+ of \d+"),
        "check": (["check", "m.ir", "m.safetensors", "--json"], r"1 of 1, m\.ir: code, \d+ of \d+"),
        "two checks": (["check", "m.ir", "m.safetensors", "m.ir", "m.safetensors", "-j", "2", "--json"], r"\d of 2 models checked"),
        "run": (["run", "m.ir", "--inputs", "m.safetensors", "--outputs", "y.npz", "--json"], r"code, \d+ of \d+"),
        "bench": (["bench", "m.ir", "--seconds", "0.02", "--no-op-by-op", "--json"], r"compiled: code, \d+ of \d+"),
    }
    def fresh():
        """Makes a folder with the model and its inputs, so that nothing comes from a cache; its name, and that of its cache."""
        made = pathlib.Path(tempfile.mkdtemp(dir=folder))
        for f in ("m.ir", "m.safetensors"):
            (made / f).write_bytes((folder / f).read_bytes())
        return made, {"WEFT_CACHE": str(made / "cache")}

    def shows_a_line(what):
        """Whether the command rewrites one line on a terminal."""
        args, line = commands[what]
        here, env = fresh()
        status, out, got = on_terminal([*args, *by_slow], here, COLUMNS="60", **env)
        shown = lines_of(got)
        if status or not any(re.fullmatch(line, s) for s in shown):
            say(f"{what}: status {status}, no line {line!r} among {shown}: {out}")
        if "\n" in got or not got.endswith(AGAIN) or not got.startswith(AGAIN):
            say(f"{what}: not one line that is rewritten and removed: {got!r}")
        json.loads(out)

    def prints_lines(what, more):
        """Whether the command prints nothing through a pipe, and with --progress lines without control codes, at most one a second."""
        args, line = commands[what]
        here, env = fresh()
        status, out, got = through_pipe([*args, *by_slow, *more], here, **env)
        lines = [text for _, text in got]
        if status or bool(more) != any(re.fullmatch(line, text) for text in lines) or (lines and not more):
            say(f"{what}, {more}: no terminal, status {status}, {lines}")
        if any(ord(c) < 32 for text in lines for c in text):
            say(f"{what}, {more}: control codes: {lines}")
        if any(later - earlier < 0.9 for (earlier, _), (later, _) in zip(got, got[1:])):
            say(f"{what}, {more}: more than a line a second: {got}")
        json.loads(out)

    def text_stays_whole():
        """What is printed on stdout stays whole, as text too."""
        _, out, got = on_terminal(["check", "m.ir", "m.safetensors", *by_slow, "--no-cache"], fresh()[0])
        if not re.fullmatch(r"ok   m\.ir  no error  [\d.]+ s\n1 passed, 0 failed\n", out) or not got.endswith(AGAIN):
            say(f"check as text: {out!r} {got!r}")

    def error_has_its_line():
        """An error stands in a line of its own."""
        broken = folder / "broken"
        broken.write_text("#!/bin/sh\nsleep 1.6\nexit 3\n")
        broken.chmod(0o755)
        status, out, got = on_terminal(["compile", "m.ir", "-o", "m.so", "--no-cache", "--cc", broken], fresh()[0])
        if status != 1 or out or not re.search(r"\r\x1b\[K[^\r\n]*broken failed with status 3", got):
            say(f"an error: status {status} {out!r} {got!r}")

    def terminal_is_narrow():
        """A terminal of 9 columns."""
        _, _, got = on_terminal(["compile", "m.ir", "-o", "m.so", *by_slow, "--no-cache"], fresh()[0], COLUMNS="9")
        if not lines_of(got) or any(len(s) > 8 for s in lines_of(got)):
            say(f"9 columns: {got!r}")

    def command_is_short():
        """A second has not passed: nothing is shown."""
        status, out, got = on_terminal(["show", "m.ir"], folder)
        if status or got:
            say(f"a short command: {got!r}")

    def width_is_of_terminals():
        """The width of a terminal is none of a file's."""
        long = folder / ("m" * 120 + ".ir")
        long.write_text(MODEL)
        _, _, got = through_pipe(["check", long.name, "m.safetensors", *by_slow, "--no-cache", "--progress"], folder, COLUMNS="9")
        if not any(re.fullmatch(r"1 of 1, m{60}: code, \d+ of \d+", text) for _, text in got):
            say(f"a pipe and 9 columns: {got}")

    command_is_short()
    # These wait for the compiler most of the time, so they run side by side.
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        started = [pool.submit(shows_a_line, what) for what in commands]
        started += [pool.submit(prints_lines, what, more) for what in commands for more in ([], ["--progress"])[what != "compile":]]
        started += [pool.submit(f) for f in (text_stays_whole, error_has_its_line, terminal_is_narrow, width_is_of_terminals)]
        for one in started:
            one.result()
sys.exit(bad != 0)
