"""A command that is interrupted leaves nothing behind, one that was killed no longer than to the next compilation, and
none waits for a FIFO: interrupted.py WEFT SOURCE_ROOT"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
import limits  # noqa: E402

weft, root = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
MODEL = str(root / "examples/digits/digits_cnn.pt2")
bad = 0


def expect(ok, what):
    global bad
    if not ok:
        print("FAIL:", what)
        bad = 1


def start(*args):
    return subprocess.Popen([weft, *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for(found, what):
    end = time.time() + 60
    while not (result := found()):
        if time.time() > end:
            sys.exit(f"FAIL: no {what} after a minute")
        time.sleep(0.005)
    return result


def names(*folders):
    return sorted(str(p) for f in folders for p in pathlib.Path(f).iterdir())


def alive(pid):
    try:
        return "\nState:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def slow_compiler():
    """A C compiler that never gets ready; it writes its process number, and later something into the folder."""
    path = pathlib.Path("slow-cc").resolve()
    path.write_text(f"#!/bin/sh\necho $$ >{path}.pid.new\nmv {path}.pid.new {path}.pid\nexec sleep 100\n")
    path.chmod(0o755)
    pathlib.Path(f"{path}.pid").unlink(missing_ok=True)
    return str(path)


def compiler_pid():
    pid = pathlib.Path("slow-cc.pid")
    return wait_for(lambda: pid.exists() and int(pid.read_text()), "compiler")


def interrupt_compiler(number):
    """While the C compiler runs."""
    cc = slow_compiler()
    p = start("compile", MODEL, "-o", "out/m.so", "--cc", cc, "--no-cache", "--weights", "file", "-j", "1")
    pid = compiler_pid()
    expect(names("tmp"), "no temporary folder: nothing is tested")
    p.send_signal(number)
    expect(p.wait(30) == -number, f"signal {number}: status {p.returncode}")
    expect(not names("out", "tmp"), f"signal {number} left {names('out', 'tmp')}")
    expect(not alive(pid), f"signal {number} left the compiler running")


def interrupt_any_time(*args):
    """At moments over the whole run; however it ends, what is there is complete."""
    start_time = time.time()
    start(*args).wait(60)
    whole = time.time() - start_time
    complete = names("out")
    for f in complete:
        os.unlink(f)
    hit = 0
    for k in range(16):
        p = start(*args)
        time.sleep(whole * (k + 0.5) / 16)
        p.send_signal(signal.SIGTERM)
        p.wait(30)
        hit += p.returncode == -signal.SIGTERM
        expect(not names("tmp"), f"{args}: left {names('tmp')} after {k}/16")
        expect(set(names("out")) <= set(complete), f"{args}: left {names('out')} after {k}/16")
        for f in names("out"):
            os.unlink(f)
    expect(hit > 3, f"{args}: only {hit} were interrupted: nothing is tested")


def ignored():
    """What is ignored when the command starts stays so, as nohup wants it."""
    p = subprocess.Popen(["sh", "-c", 'trap "" HUP; exec "$0" "$@"', weft, "compile", MODEL, "-o", "out/m.so", "--cc",
                          slow_compiler(), "--no-cache"], stderr=subprocess.DEVNULL)
    compiler_pid()
    p.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    expect(p.poll() is None, "an ignored SIGHUP ended the command")
    p.terminate()
    p.wait(30)
    expect(not names("out", "tmp"), f"left {names('out', 'tmp')}")


def killed():
    """SIGKILL leaves files that the next compilation of that output removes; a running one keeps its own."""
    slow = ["compile", MODEL, "-o", "out/m.so", "--weights", "file", "--no-cache", "-j", "1", "--cc"]
    p = start(*slow, slow_compiler())
    pid = compiler_pid()
    p.kill()
    p.wait(30)
    os.kill(pid, signal.SIGKILL)
    left = names("out")
    expect(len(left) == 1 and left[0].startswith("out/m.weights.tmp"), f"killed: {left}: nothing is tested")
    other = pathlib.Path("out/other.weights.tmp" + left[0].split(".tmp")[1])
    other.write_text("another output's")
    running = start(*slow, slow_compiler())
    compiler_pid()
    now = names("out")
    expect(left[0] not in now and len(now) == 2, f"after the next compilation: {now}")
    mine = [f for f in now if f != str(other)][0]
    expect(start("compile", MODEL, "-o", "out/m.so", "--weights", "file").wait(60) == 0, "compile beside a running one")
    expect(names("out") == sorted(["out/m.so", "out/m.weights", mine, str(other)]), f"beside a running one: {names('out')}")
    running.terminate()
    running.wait(30)
    expect(names("out") == ["out/m.so", "out/m.weights", str(other)], f"at the end: {names('out')}")
    for f in names("out"):
        os.unlink(f)
    for f in pathlib.Path("tmp").iterdir():  # of the killed one: a new name each time
        subprocess.run(["rm", "-r", str(f)])


def fifos():
    for name in "m.pt2", "m", "x.safetensors", "x.npy", "x.npz", "t.json", "m.weights", "m.so":
        os.mkfifo(f"fifo/{name}")
    subprocess.run([weft, "compile", MODEL, "-o", "m.so", "--weights", "file"], check=True, stdout=subprocess.DEVNULL)
    ref = str(root / "examples/digits/digits_cnn.safetensors")
    cases = [["compile", "fifo/m.pt2", "-o", "out/m.so"], ["compile", "fifo/m", "-o", "out/m.so"],
             ["compile", MODEL, "-o", "out/m.so", "--target", "fifo/t.json"], ["show", "fifo/m.so"],
             ["run", "fifo/m.pt2", "--inputs", ref, "--outputs", "out/y.npz"],
             ["check", "fifo/m.pt2", ref], ["bench", "fifo/m.pt2"]]
    cases += [["run", "m.so", "--inputs", f"fifo/x.{ext}", "--outputs", "out/y.npz"]
              for ext in ("safetensors", "npy", "npz")]
    cases += [["check", "m.so", "fifo/x.safetensors"]]
    os.unlink("m.weights")
    os.mkfifo("m.weights")
    cases += [["run", "m.so", "--inputs", ref, "--outputs", "out/y.npz"]]
    for c in cases:
        try:
            p = limits.run([weft, *c], 60, capture_output=True, text=True)
        except subprocess.TimeoutExpired:
            expect(False, f"{c} waits for ever")
            continue
        expect(p.returncode == 1 and "not a regular file" in p.stderr, f"{c}: {p.returncode} {p.stderr!r}")
    expect(not names("out", "tmp"), f"FIFOs: left {names('out', 'tmp')}")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for name in "out", "tmp", "cache", "fifo":
        os.mkdir(name)
    os.environ.update(TMPDIR=f"{folder}/tmp", WEFT_CACHE=f"{folder}/cache")
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, signal.SIG_DFL)  # under nohup, or in the background, it may be ignored
        interrupt_compiler(number)
    ignored()
    killed()
    interrupt_any_time("compile", MODEL, "-o", "out/m.so", "--weights", "file")
    interrupt_any_time("compile", MODEL, "-o", "out/m.so", "--backend", "c", "--no-cache")
    os.environ["WEFT_CACHE"] = "/dev/null"  # none: each run is as long as the first
    interrupt_any_time("run", MODEL, "--backend", "c", "--inputs", str(root / "examples/digits/digits_cnn.safetensors"),
                       "--outputs", "out/y.npz")
    fifos()
sys.exit(bad)
