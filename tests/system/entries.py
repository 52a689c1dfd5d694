"""Models of several entries through the command: entries.py WEFT SOURCE. BLESS=1 rewrites tests/data/join/model.txt, the tables of one."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

weft, source = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
data = source / "tests/data/join"
failed = []


def run(*args, where=None):
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, cwd=where)


def check(what, ok, said=""):
    if not ok:
        failed.append(what)
        print(f"{what}: {said}")


def works(what, *args, where=None):
    r = run(*args, where=where)
    check(what, r.returncode == 0, r.stdout + r.stderr)
    return r.stdout


def fails(what, text, *args):
    r = run(weft, *args)
    said = r.stdout + r.stderr
    check(what, r.returncode == (2 if "NAME=" in said or "as in " in said else 1) and text in said, said)
    check(what, "internal error" not in said, said)


def pair(names=("prefill", "decode")):
    return [f"{n}={data / n}.pt2" for n in names]


def both(what, so):
    for n in ("prefill", "decode"):
        out = works(f"{what}: {n}", weft, "check", so, "--entry", n, data / f"{n}.safetensors", "--threads", "1,2")
        check(f"{what}: {n}", "1 passed, 0 failed" in out, out)


def kinds(folder):
    """Whatever is written of them computes the same."""
    so = folder / "m.so"
    works("so", weft, "compile", *pair(), "-o", so)
    both("so", so)
    works("c", weft, "compile", *pair(), "-o", folder / "c.so", "--backend", "c", "--no-cache", "--name", "model")
    both("c", folder / "c.so")
    works("file of weights", weft, "compile", *pair(), "-o", folder / "w.so", "--weights", "file")
    both("file of weights", folder / "w.so")
    works("op by op", weft, "compile", *pair(), "-o", folder / "o.so", "--op-by-op")
    both("op by op", folder / "o.so")
    works("folder", weft, "compile", *pair(), "-o", folder / "src", "--emit", "c")
    works("make", "make", "-s", where=folder / "src")
    both("folder", next((folder / "src").glob("*.so")))
    if "levels" not in os.environ.get("SKIP", "") and os.uname().machine == "x86_64":
        works("levels", weft, "compile", *pair(), "-o", folder / "l.so", "--target", "x86-64-v2,v3,v4")
        both("levels", folder / "l.so")
    r = run(weft, "compile", *pair(), "-o", folder / "m.a", "--emit", "a")
    if r.returncode == 0:
        works("archive", "cc", "-shared", "-o", folder / "a.so", "-Wl,--whole-archive", folder / "m.a", "-Wl,--no-whole-archive", "-lm")
        both("archive", folder / "a.so")
    else:
        check("archive", "LLVM" in r.stderr, r.stderr)
    header = folder / "m.h"
    works("header", weft, "compile", *pair(), "-o", header, "--emit", "header")
    text = header.read_text()
    check("header", "Entry 0, prefill." in text and "Entry 1, decode." in text and "ids: i64[s23, s27]" in text, text)
    for kind, words in {"ir": ["graph @prefill(", "graph @decode("], "program": ["loop entry_prefill_run(", "loop entry_decode_sizes("],
                        "loops": ["loop embedding("]}.items():
        works(kind, weft, "compile", *pair(), "-o", folder / "text", "--emit", kind)
        text = (folder / "text").read_text()
        check(kind, all(w in text for w in words), text[:2000])


def command(folder):
    """The summary, and the commands that choose an entry."""
    so = folder / "m.so"
    j = json.loads(works("summary", weft, "compile", *pair(), "-o", so, "--json"))
    check("summary", [e["name"] for e in j["entries"]] == ["prefill", "decode"] and j["weight_bytes"] < 75000, j)
    check("summary", j["kernels"] == sum(e["kernels"] for e in j["entries"]), j)
    one = json.loads(works("one", weft, "compile", data / "prefill.pt2", "-o", folder / "1.so", "--json"))
    check("one", [e["name"] for e in one["entries"]] == ["run"], one)
    out = works("show", weft, "show", so)
    check("show", "entry    prefill" in out and "entry    decode" in out and "1 <= s23 <= 100" in out, out)
    out = works("show one", weft, "show", so, "--entry", "decode")
    check("show one", "prefill" not in out.split("\n", 1)[1] and "1 <= s23 <= 100" in out, out)
    j = json.loads(works("show json", weft, "show", *pair(), "--json"))
    check("show json", [e["name"] for e in j["entries"]] == ["prefill", "decode"], j)
    works("bench", weft, "bench", so, "--entry", "decode", "--seconds", "0.01")
    works("bench", weft, "bench", *pair(), "--entry", "prefill", "--seconds", "0.01", "--profile")
    for backend in ("interp", "loops", "c"):
        args = [x for n in ("prefill", "decode") for x in (f"{n}={data / n}.pt2", data / f"{n}.safetensors")]
        out = works(backend, weft, "check", *args, "--backend", backend)
        check(backend, "2 passed, 0 failed" in out, out)
        works(backend, weft, "run", *pair(), "--entry", "decode", "--backend", backend, "--inputs", data / "decode.safetensors", "--outputs",
              folder / "y.npz")
    works("run", weft, "run", so, "--entry", "prefill", "--inputs", data / "prefill.safetensors", "--outputs", folder / "y.npz")
    named = folder / "a=b.pt2"
    shutil.copy(data / "decode.pt2", named)
    works("file of such a name", weft, "compile", named, "-o", so)
    works("names of outputs", weft, "compile", *pair(), "-o", so, "--output-names", "decode=logits", "--output-names", "prefill=a,b")
    check("names of outputs", "logits" in works("names", weft, "show", so, "--entry", "decode"), "")
    out = works("state", weft, "compile", *pair(("writer", "reader", "again")), "-o", so)
    check("state", "state all, 80 B: written by writer, read by reader, again (no constant in reader, again, so not packed there)" in out, out)
    out = works("private", weft, "compile", *pair(("writer", "reader")), "-o", so, "--private", "all")
    check("private", "state writer.all, 80 B: written by writer\n" in out, out)


def errors(folder):
    so, ids = folder / "x.so", ["--inputs", data / "decode.safetensors", "--outputs", folder / "y.npz"]
    p = f"prefill={data / 'prefill.pt2'}"
    fails("twice", "a second entry prefill", "compile", p, f"prefill={data / 'decode.pt2'}", "-o", so)
    fails("no file", "nowhere.pt2", "compile", p, f"decode={data / 'nowhere.pt2'}", "-o", so)
    fails("no name", "among several models each is named", "compile", p, data / "decode.pt2", "-o", so)
    fails("two", "as NAME=FILE", "compile", data / "prefill.pt2", data / "decode.pt2", "-o", so)
    fails("over an input", "this file is an input", "compile", *pair(), "-o", data / "decode.pt2")
    fails("which", "choose one of the entries with --entry: prefill, decode", "run", *pair(), *ids)
    fails("unknown", "no entry other: there are prefill, decode", "run", *pair(), "--entry", "other", *ids)
    fails("of one", "no entry other: there is run", "run", data / "decode.pt2", "--entry", "other", *ids)
    fails("whose", "of several models say of which", "compile", *pair(), "-o", so, "--output-names", "logits")
    fails("private", "are for several models", "compile", data / "writer.pt2", "-o", so, "--private", "all")
    fails("unknown state", "no entry has state called \"x\"", "compile", *pair(), "-o", so, "--private", "x")
    fails("no state", "there is no entry x", "compile", *pair(), "-o", so, "--state", "x.a=decode.b")
    fails("contents", "stranger.pt2: error: all has another first contents than all", "compile", *pair(("writer", "stranger")), "-o", so)
    fails("part", "rows is part of the memory of all", "compile", *pair(("writer", "rows")), "-o", so)
    fails("replaceable", "its parameter embed.weight is not that of", "compile", *pair(("prefill", "other")), "-o", so, "--replaceable-weights")
    check("nothing is written", not so.exists())
    works("several", weft, "compile", *pair(), "-o", so)
    fails("which", "choose one of its entries with --entry: prefill, decode", "check", so, data / "decode.safetensors")
    fails("unknown", "no entry x: there are prefill, decode", "check", so, data / "decode.safetensors", "--entry", "x")


def golden(folder):
    works("tables", weft, "compile", *pair(("writer", "reader", "again")), "-o", folder / "t", "--emit", "c", "--target", "generic-c")
    got, want = (folder / "t/model.c").read_text(), data / "model.txt"
    got = "\n".join(line for line in got.split("\n") if ".source_hash" not in line and ".weft_version" not in line)
    if os.environ.get("BLESS"):
        want.write_text(got)
    same = want.exists() and want.read_text() == got
    check("tables", same, f"differ from {want}; BLESS=1 {sys.argv[0]} WEFT SOURCE rewrites it")


with tempfile.TemporaryDirectory() as name:
    for part in (kinds, command, errors, golden):
        part(Path(name))
print(f"{len(failed)} failed")
sys.exit(bool(failed))
