"""Emitted code is what it was: emitted.py WEFT SOURCE_ROOT [--bless REASON]
Compiles models and graphs of the repository for several targets and compares hashes of the loop IR, of the C, of the
LLVM IR (before LLVM's own passes) and of the packed weights with those of tests/tree/emitted.txt. A change that should not
change code shows here if it does. Where code is to change, --bless writes the new hashes and puts the reason, with
what changed, above them; the latest few reasons stay. LLVM's printer changes from version to version: its column is
compared with the version that wrote it only."""
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
GRAPH_TARGETS = TARGETS + ("riscv64-linux-gnu",)
COLUMNS = ("loops", "c", "llvm", "weights")
KEPT = 8  # reasons
# Graphs of tests/text/run, without constants: one or two for each schedule and kind of stage.
GRAPHS = ("antialias", "assert", "attention", "convolution_dead_taps", "cumulative_long", "fold", "functions", "gathers", "grouped", "half",
          "integers", "layer_norm", "narrow_products", "negative_parameters", "pooling", "real_sizes", "resize", "rnn_loop",
          "row_distance", "scatter", "softmax", "sort", "update_slice")


def corpus(root):
    """(model, target) of what is compiled."""
    data = root / "tests/data"
    models = [*data.glob("*.pt2"), *data.glob("*.ir"), *data.glob("ops/*.pt2"), *data.glob("control/*.pt2"), *root.glob("examples/digits/*.pt2")]
    graphs = [root / "tests/text/run" / f"{name}.txt" for name in GRAPHS]
    return [(m, t) for m in sorted(models) for t in TARGETS] + [(g, t) for g in graphs for t in GRAPH_TARGETS]


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
        kinds = ["loops", "c"] + (["llvm"] if llvm else [])
        p = subprocess.run([weft, "compile", model, "-o", folder / "out.so", "--emit", ",".join(kinds), "--target", target, "-j", "1",
                            "--no-cache"], capture_output=True, text=True, errors="replace")
        if p.returncode == 1:
            return ("refused",) * len(COLUMNS)
        if p.returncode:
            sys.exit(f"{model} for {target}: exit status {p.returncode}: {p.stderr.strip()}")
        c = sorted(folder.glob("**/kernels*")) + sorted(folder.glob("**/model.c")) + sorted(folder.glob("**/vector.h"))
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
            case, target, *columns = line.split()
            lines[case, target] = tuple(columns)
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
    args = p.parse_args()
    path = args.root / "tests/tree/emitted.txt"
    reasons, blessed, old = read_file(path)
    version = llvm_version(args.weft, args.root)
    keys = [(str(m.relative_to(args.root)), target) for m, target in corpus(args.root)]
    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        new = dict(zip(keys, workers.map(lambda k: hashes(args.weft, args.root / k[0], k[1], bool(version)), keys)))
    found = differences(old, new, version == blessed)
    changed = ", ".join(f"{column} {len(where)}" for column, where in found.items())
    if args.bless is not None:
        if not args.bless.strip() or not version:
            p.error("blessing needs a reason, and a weft with LLVM")
        write_file(path, [f"# Blessed: {args.bless.strip()} ({changed or version} of {len(new)})"] + reasons, version, new)
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
