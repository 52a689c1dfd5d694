"""Emitted code is what it was: emitted.py WEFT SOURCE_ROOT [--bless REASON] [--large FOLDER FILE]
Compiles models and graphs of the repository for several targets and compares hashes of the loop IR, of the C, of the
LLVM IR (before LLVM's own passes) and of the packed weights with those of tests/tree/emitted.txt. A change that should not
change code shows here if it does. Where code is to change, --bless writes the new hashes and puts the reason, with
what changed, above them; the latest few reasons stay. LLVM's printer changes from version to version: its column is
compared with the version that wrote it only.
--large compiles the models of a folder (.pt2, .onnx) for x86-64-v3 and v4 instead and compares with FILE, which it writes if
there is none: before a change of structure, and after it."""
import argparse
import collections
import concurrent.futures
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

TARGETS = ("generic-c", "x86-64-v3", "x86-64-v4", "aarch64-linux-gnu")
GRAPH_TARGETS = TARGETS + ("riscv64-linux-gnu", "x86-64-v3+vnni", "x86-64-v4+bf16", "x86-64-v4+vnni", "x86-64-v4+amx", "gpu-model", "cuda-sm_90",
                           "x86-64-v3 --precision bf16", "x86-64-v4+bf16 --precision bf16")
LARGE_TARGETS = ("x86-64-v3", "x86-64-v4")
# Graphs whose entries forward and backward are compiled, too, and for what.
DERIVED = ("attention", "convolution_dead_taps", "cumulative_long", "gathers", "grouped", "layer_norm", "pooling", "resize", "scatter", "softmax")
DERIVED_TARGETS = ("x86-64-v3 --grad", "x86-64-v4+amx --grad --precision bf16", "gpu-model --grad")
COLUMNS = ("loops", "c", "llvm", "weights")
KEPT = 8  # reasons
# Graphs of tests/text/run, without constants: one or two for each schedule and kind of stage.
GRAPHS = ("antialias", "assert", "attention", "convolution_dead_taps", "cumulative_long", "fold", "functions", "gathers", "grouped", "half",
          "integers", "layer_norm", "narrow_products", "negative_parameters", "pooling", "real_sizes", "resize", "rnn_loop",
          "row_distance", "scatter", "softmax", "sort", "update_slice")


def corpus(root):
    """(model, target and options) of what is compiled."""
    data = root / "tests/data"
    models = [*data.glob("*.pt2"), *data.glob("*.ir"), *data.glob("ops/*.pt2"), *data.glob("control/*.pt2"), *root.glob("examples/digits/*.pt2")]
    graphs = [root / "tests/text/run" / f"{name}.txt" for name in GRAPHS]
    derived = [g for g in graphs if g.stem in DERIVED]
    return ([(m, t) for m in sorted(models) for t in TARGETS] + [(g, t) for g in graphs for t in GRAPH_TARGETS] +
            [(g, t) for g in derived for t in DERIVED_TARGETS])


def kinds_of(target, llvm):
    """What --emit writes for a target."""
    if target.startswith("cuda"):
        return ["loops", "cuda"]
    return ["loops"] if target.startswith("gpu-model") else ["loops", "c"] + ["llvm"] * llvm


def digest(paths):
    """Of files' contents; '-' where there are none."""
    h = hashlib.sha256()
    for path in paths:
        h.update(path.read_bytes())
    return h.hexdigest()[:10] if paths else "-"


def hashes(weft, model, target, llvm):
    """One hash for each column, or what is said instead of compiling."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if model.suffix == ".txt":  # a file test: the graph is above its expectation
            text = model.read_text().partition("; ----")[0]
            model = folder / f"{model.stem}.ir"
            model.write_text(text)
        p = subprocess.run([weft, "compile", model, "-o", folder / "out.so", "--emit", ",".join(kinds_of(target, llvm)), "-j", "1",
                            "--no-cache", "--target", *target.split()], capture_output=True, text=True, errors="replace")
        if p.returncode == 1:
            return ("refused",) * len(COLUMNS)
        if p.returncode:
            sys.exit(f"{model} for {target}: exit status {p.returncode}: {p.stderr.strip()}")
        c = [f for pattern in ("**/kernels*", "**/model.c", "**/vector.h", "**/*.cu") for f in folder.glob(pattern)]
        return tuple(digest(sorted(files)) for files in (folder.glob("*.loops"), c, folder.glob("*.ll"), folder.glob("**/weights.bin")))


def llvm_version(weft, root):
    """As the printed IR says; '' in a build without LLVM."""
    p = subprocess.run([weft, "compile", root / "tests/data/tied.pt2", "--emit", "llvm", "-o", "-"], capture_output=True, text=True)
    found = re.match(r"; (LLVM [0-9.]+)", p.stdout) if p.returncode == 0 else None
    return found[1] if found else ""


def read_file(path):
    """Reasons, the LLVM version, {(case, target): hashes}."""
    reasons, version, lines = [], "", {}
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.startswith("# Blessed: "):
            reasons.append(line)
        elif line.startswith("# case"):
            version = line.partition("(")[2].partition(")")[0]
        elif line and not line.startswith("#"):
            case, *target, loops, c, llvm, weights = line.split()
            lines[case, " ".join(target)] = loops, c, llvm, weights
    return reasons, version, lines


def write_file(path, reasons, version, lines):
    head = ["# Hashes of emitted code, see tests/tree/emitted.py. Written by `emitted.py WEFT SOURCE_ROOT --bless REASON`, which adds:"]
    head += reasons[:KEPT] + [f"# case target {COLUMNS[0]} {COLUMNS[1]} {COLUMNS[2]} ({version}) {COLUMNS[3]}"]
    path.write_text("\n".join(head + [" ".join((*key, *lines[key])) for key in lines]) + "\n")


def differences(old, new, compare_llvm):
    """{column: keys that differ}; a case that only one of them has differs in all."""
    found = collections.defaultdict(list)
    for key in [*new, *(k for k in old if k not in new)]:
        a, b = old.get(key, ("",) * len(COLUMNS)), new.get(key, ("",) * len(COLUMNS))
        for k, column in enumerate(COLUMNS):
            if a[k] != b[k] and (column != "llvm" or compare_llvm):
                found[column].append(key)
    return {column: found[column] for column in COLUMNS if found[column]}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("weft", type=lambda s: pathlib.Path(s).resolve())
    p.add_argument("root", type=lambda s: pathlib.Path(s).resolve())
    p.add_argument("--bless", metavar="REASON", help="write the hashes; why code changed")
    p.add_argument("--large", nargs=2, type=pathlib.Path, metavar=("FOLDER", "FILE"), help="models of a folder beside hashes in a file")
    args = p.parse_args()
    version = llvm_version(args.weft, args.root)
    if args.large:
        folder, path = args.large
        models = [(m.name, m) for m in sorted([*folder.glob("*.pt2"), *folder.glob("*.onnx")])]
        cases = {(name, target): m.resolve() for name, m in models for target in LARGE_TARGETS}
    else:
        path = args.root / "tests/tree/emitted.txt"
        cases = {(str(m.relative_to(args.root)), target): m for m, target in corpus(args.root)}
    reasons, blessed, old = read_file(path)
    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        new = dict(zip(cases, workers.map(lambda k: hashes(args.weft, cases[k], k[1], bool(version)), cases)))
    found = differences(old, new, version == blessed)
    changed = ", ".join(f"{column} {len(where)}" for column, where in found.items())
    first = args.large and not path.exists()
    if args.bless is not None or first:
        reason = "the first" if first else args.bless.strip()
        if not reason or not version:
            p.error("blessing needs a reason, and a weft with LLVM")
        write_file(path, [f"# Blessed: {reason} ({changed or version} of {len(new)})"] + reasons, version, new)
        return 0
    for column, where in found.items():
        for case, target in where:
            print(f"{column} differs: {case} for {target}")
    print(f"{len(new)} compilations; " + (f"changed: {changed}. If code was to change: emitted.py {args.weft} {args.root} --bless REASON"
                                         if found else "all code is as it was") +
          ("" if version == blessed else f"; LLVM IR is not compared: {version or 'no LLVM'} here, {blessed} there"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
