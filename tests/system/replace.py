"""set_weights gives what a fresh compilation gives: replace.py WEFT SOURCE [MODEL.pt2...]; none: those of tests/data. Of each another is made, with other
weights in the same archive; both are compiled with --replaceable-weights, and tests/system/c/replace.c sets the one's weights in the other.
TARGET, EMULATOR, CC: for which target, how to run its programs, what compiles them. KINDS: of artifacts. ROUNDS=N: times, too."""
import array
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

weft, source = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
target, emulator = os.environ.get("TARGET"), os.environ.get("EMULATOR", "").split()
rounds = [os.environ["ROUNDS"]] if "ROUNDS" in os.environ else []

# torch's number of a dtype: code and bits in weft_model.h
DTYPES = {1: (1, 8), 2: (0, 8), 3: (0, 16), 4: (0, 32), 5: (0, 64), 6: (2, 16), 7: (2, 32), 8: (2, 64), 10: (5, 64), 12: (6, 8), 13: (4, 16)}
FLOATS = {7: "f", 8: "d", 10: "f"}


def must(*command, where=None):
    p = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=where)
    if p.returncode:
        sys.exit(f"FAIL: {' '.join(map(str, command))}\n{p.stdout}{p.stderr}")
    return p.stdout


def weights(archive):
    """Of each member of the archive the names and descriptions of the tensors it holds."""
    found = {}
    for name in archive.namelist():
        if not name.endswith(("weights_config.json", "constants_config.json")):
            continue
        for key, w in json.loads(archive.read(name))["config"].items():
            found.setdefault(str(Path(name).parent / w["path_name"]), []).append((key, w))
    return found


def changed(data, meta, seed):
    """Other numbers of the same sign and about the same size."""
    if meta["dtype"] not in FLOATS:
        return data
    values = array.array(FLOATS[meta["dtype"]], data)
    r = random.Random(seed)
    factor = [0.7 + 0.4 * r.random() for _ in range(1009)]
    return array.array(values.typecode, (v * factor[i % 1009] for i, v in enumerate(values))).tobytes()


def other_model(path, out):
    with zipfile.ZipFile(path) as z, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as to:
        of = weights(z)
        for info in z.infolist():
            data = z.read(info)
            if info.filename in of:
                data = changed(data, of[info.filename][0][1]["tensor_meta"], info.filename)
            to.writestr(zipfile.ZipInfo(info.filename), data)


def sizes(meta, what):
    return [v["as_int"] for v in meta[what]]


def write_values(path, out):
    """Those that are stored row-major from their first element on: all that export writes unless tensors share memory."""
    with zipfile.ZipFile(path) as z, open(out, "wb") as f:
        for member, tensors in weights(z).items():
            data = z.read(member)
            for name, w in tensors:
                meta = w["tensor_meta"]
                dims, (code, bits) = sizes(meta, "sizes"), DTYPES[meta["dtype"]]
                n = 1
                for d in dims:
                    n *= d
                at = meta["storage_offset"]["as_int"] * bits // 8
                raw = data[at:at + n * bits // 8]
                f.write(struct.pack("<Q", len(name.encode())) + name.encode())
                f.write(struct.pack(f"<QQQ{len(dims)}qQ", code, bits, len(dims), *dims, len(raw)) + raw)
        f.write(struct.pack("<Q", 0))


def compile_to(model, out, *options):
    must(weft, "compile", model, "--replaceable-weights", "-o", out, *options)
    if out.is_dir():
        must("make", "-s", "-j2", where=out)
        return next(out.glob("*.so"))
    return out


def programs(model, tmp, *options):
    """The text of loops and of launches, places of weights included."""
    texts = []
    for kind in "loops", "program":
        must(weft, "compile", model, "--emit", kind, "-o", tmp / "text", *options)
        texts.append((tmp / "text").read_text())
    return texts


def check(program, model, chosen, tmp):
    second = tmp / "other.pt2"
    other_model(model, second)
    write_values(model, tmp / "a.values")
    write_values(second, tmp / "b.values")
    with_target = ["--target", target] if target else []
    kinds = {"llvm": ["--backend", "llvm"], "c": ["--backend", "c"], "file": ["--weights", "file"], "folder": ["--emit", "c"]}
    if not target and os.uname().machine == "x86_64":
        kinds["levels"] = ["--target", "x86-64-v2,v3,v4"]
    for kind in kinds if "all" in chosen else chosen:
        if kind == "llvm" and os.environ.get("LLVM") == "no":
            continue
        suffix = "" if kind == "folder" else ".so"
        so = [compile_to(m, tmp / f"{n}_{kind}{suffix}", "--name", "model", *kinds[kind], *with_target)
              for n, m in (("a", model), ("b", second))]
        said = must(*emulator, program, *so, tmp / "a.values", tmp / "b.values", *rounds)
        print(f"{model.name} {kind}: {said.strip()}", flush=True)
    if programs(model, tmp, *with_target) != programs(model, tmp, "--replaceable-weights", *with_target):
        sys.exit(f"FAIL: {model.name}: other kernels with --replaceable-weights")


def main():
    data = source / "tests/data/replace"
    models = {Path(m).resolve(): "all" for m in sys.argv[3:]} or {
        data / "folded.pt2": "all", data / "shared.pt2": "llvm,c", data / "trained.pt2": "llvm,c"}
    with tempfile.TemporaryDirectory() as folder:
        tmp = Path(folder)
        program = tmp / "replace"
        must(*os.environ.get("CC", "cc").split(), "-std=gnu11", "-O2", "-Wall", "-Werror", f"-I{source}/include", source / "tests/system/c/replace.c", "-o",
             program, "-ldl")
        for m, kinds in models.items():
            check(program, m, os.environ.get("KINDS", kinds).split(","), tmp)


main()
