"""A gigabyte of weights: big.py WEFT [--bytes N] [--folder FOLDER] [--embed]

Makes a model of that size (bench/big_model.py), copies it, and compiles it cold; the best of three runs each, files in the page cache. Holds
fast that `weft compile --weights file` takes at most twice as long as the copy and 1.3 times the weights in memory (of which at most
0.3 times anonymous: the rest are pages of the mapped model, which the system may drop), and that neither the number of threads nor a full
disk changes what is written. --embed tells what weights within the shared object cost, where a linker copies them once more. Wants
a quiet machine with 4 times the bytes of free memory; `meson test --benchmark -C build` runs it.
"""
import argparse
import filecmp
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("weft", type=lambda p: str(pathlib.Path(p).resolve()))
parser.add_argument("--bytes", type=int, default=10**9)
parser.add_argument("--folder", help="of the files; default: a temporary one")
parser.add_argument("--embed", action="store_true")
args = parser.parse_args()
bad = 0


def fail(text):
    global bad
    bad += 1
    print("FAIL", text)


def status_bytes(pid, field):
    try:
        for line in open(f"/proc/{pid}/status"):
            if line.startswith(field):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return 0


def run(command, limit=None):
    """Exit status, output, wall-clock and processor seconds, largest resident and anonymous bytes of the process itself."""
    start, peak, anonymous = time.monotonic(), 0, 0
    bounded = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=bounded)
    while p.poll() is None:
        peak = max(peak, status_bytes(p.pid, "VmHWM"))
        anonymous = max(anonymous, status_bytes(p.pid, "RssAnon"))
        time.sleep(0.005)
    return p.returncode, p.stdout.read(), time.monotonic() - start, peak, anonymous


def timed(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code, out, wall, peak, anonymous = run(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if code:
        sys.exit(f"FAIL {' '.join(command)}: {out}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak, anonymous, out


def best(what, command, before):
    runs = []
    for _ in range(3):
        for path in before:
            path.unlink(missing_ok=True)
        runs.append(timed(command))
    wall, cpu, peak, anonymous = min(r[0] for r in runs), min(r[1] for r in runs), max(r[2] for r in runs), max(r[3] for r in runs)
    print(f"{what:24} {wall:6.2f} s, {cpu:6.2f} s of processors" +
          (f", resident {peak / 1e6:6.0f} MB, anonymous {anonymous / 1e6:5.0f} MB" if peak > 1e7 else ""))
    return wall, peak, anonymous


with tempfile.TemporaryDirectory(dir=args.folder) as folder:
    at = pathlib.Path(folder)
    model, copy, so, weights = at / "big.pt2", at / "copy", at / "m.so", at / "m.weights"
    os.environ["TMPDIR"] = folder
    subprocess.run([sys.executable, pathlib.Path(__file__).parent / "big_model.py", model, str(args.bytes)], check=True)
    size = model.stat().st_size
    copied, _, _ = best("cp", ["cp", str(model), str(copy)], [copy])
    copy.unlink()
    command = [args.weft, "compile", str(model), "-o", str(so), "--no-cache", "--weights", "file"]
    wall, peak, anonymous = best("--weights file", command, [so, weights])
    print(f"{wall / copied:.2f} times the copy, {peak / size:.2f} times the weights in memory, {anonymous / size:.2f} of it anonymous")
    if wall > 2 * copied:
        fail("more than twice the time of the copy")
    if peak > 1.3 * size or anonymous > 0.3 * size:
        fail("more than 1.3 times the weights in memory, or more than 0.3 of them anonymous")
    print(json.dumps(json.loads(timed([*command, "--json"])[4])["phases"]))
    for jobs in 1, 3:
        weights.rename(copy)
        best(f"--weights file -j {jobs}", [*command, "-j", str(jobs)], [])
        if not filecmp.cmp(weights, copy, shallow=False):
            fail(f"other weights with -j {jobs}")
    copy.unlink()
    so.unlink()
    weights.unlink()
    code, out, *_ = run(command, limit=size // 2)
    if code != 1 or "cannot write" not in out or len(out.splitlines()) != 1 or sorted(os.listdir(at)) != ["big.pt2"]:
        fail(f"a full disk: status {code}, {out!r}, left {sorted(os.listdir(at))}")
    if args.embed:
        best("embedded", command[:-2], [so])
sys.exit(bad != 0)
