"""Cases of a folder against their references, where some are known to fail: expected.py WEFT FOLDER LIST BACKEND...
LIST names the cases that fail and what weft says of each. The test fails for a failure that is not listed, for a
listed case that fails for another reason or is not there, and for one that passes: its name must be removed. So a
list only shrinks. Skipped (77) where there is no FOLDER.

A list has a line for each cause, and below it, indented, `OPERATOR: CASE CASE...`. `[interp]` or `[compiled]` before a
cause: with that back end, or all others, only. `#` starts a comment. Lists are not edited by machine; --now prints what
the list would be today."""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

VALUES = "other values than PyTorch"


def cause_of(text):
    """What stays the same when nodes are renumbered or moved, without advice."""
    text = re.sub(r"^.*?\berror: ", "", text)
    text = re.sub(r"^assert: ", "", text)  # the interpreter names the operator
    text = re.sub(r"^the model has operators that are not supported: ", "unsupported operators: ", text)
    text = re.sub(r"^\d+ unsupported operators?: ", "unsupported operator: ", text)
    return re.sub(r" x\d+ \(first at .*", "", text)


def case_of(model, folder):
    """OPERATOR/CASE of FOLDER/OPERATOR/CASE.pt2; node/CASE of FOLDER/CASE/model.onnx."""
    if model.endswith("/model.onnx"):
        return f"node/{pathlib.Path(model).parent.relative_to(folder)}"
    return str(pathlib.Path(model.removesuffix(".pt2")).relative_to(folder))


def sample(folder, every):
    """The models of each `every`-th case in the order of their names, each followed by its reference: arguments of weft check."""
    cases = sorted(case_of(str(p), folder) for p in folder.rglob("*.pt2"))
    return [f"{name}{suffix}" for name in cases[::every] for suffix in (".pt2", ".safetensors")]


def run(weft, folder, backend, jobs, parts=(), options=()):
    """{case: None if it passed, else the cause}, of the whole folder or of parts of it: folders, or models and references."""
    p = subprocess.run([weft, "check", *(folder / p for p in parts or ["."]), "--backend", backend, "--json", "--jobs", str(jobs),
                        *options], capture_output=True, text=True, errors="replace")
    try:
        results = json.loads(p.stdout)["results"]
    except ValueError:
        sys.exit(f"{backend}: exit status {p.returncode}: {p.stderr.strip()}")
    said = {}
    for line in p.stderr.splitlines():
        line = line.removeprefix("weft: ")
        model, kind, text = re.match(r"(.*?)(\.pt2: |/model\.onnx: |/test_data_set_\d+/[^:]*: |$)(.*)", line).groups()
        if kind:
            name = ".pt2" if kind.startswith(".pt2") else "/model.onnx"
            said.setdefault(case_of(model + name, folder), cause_of(text))
    found = {}
    for r in results:
        name = case_of(r["model"], folder)
        crashed = r["text"].startswith(("crashed", "the process"))
        why = r["text"] if crashed else said.get(name, VALUES if r["error"] else r["text"])
        found[name] = None if r["passed"] else why
    return found


def applies(where, backend):
    return where in ("", "interp" if backend == "interp" else "compiled")


def read_list(path, backend):
    """{case: cause} of a back end."""
    listed, where, cause = {}, "", None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.partition("#")[0].rstrip()
        if not line:
            continue
        if not line[0].isspace():
            where, cause = re.fullmatch(r"(?:\[(interp|compiled)\] )?(.*)", line).groups(default="")
            continue
        operator, _, cases = line.strip().partition(": ")
        for case in cases.split():
            name = f"{operator}/{case}"
            if cause is None or (applies(where, backend) and name in listed):
                sys.exit(f"{path}:{number}: {name} has no cause, or two")
            if applies(where, backend):
                listed[name] = cause
    return listed


def judge(backend, found, listed):
    """Texts of what is wrong."""
    for name in sorted(found.keys() | listed.keys()):
        if name not in found:
            yield f"{backend}: {name} is listed, and there is no such case"
        elif found[name] is None and name in listed:
            yield f"{backend}: {name} passes now: remove it from the list"
        elif found[name] is not None and name not in listed:
            yield f"{backend}: {name} fails: {found[name]}"
        elif found[name] is not None and found[name] != listed[name]:
            yield f"{backend}: {name} fails otherwise than listed: {found[name]}"


def natural(text):
    return [int(s) if s.isdigit() else s for s in re.split(r"(\d+)", text)]


def print_now(results):
    """The list that fits results[backend]."""
    causes = collections.defaultdict(lambda: collections.defaultdict(list))
    for name in sorted({n for found in results.values() for n in found}, key=natural):
        why = {"interp" if b == "interp" else "compiled": found.get(name) for b, found in results.items()}
        same = len(set(why.values())) == 1
        for where, cause in [("", next(iter(why.values())))] if same else [(f"[{w}] ", c) for w, c in why.items()]:
            if cause is not None:
                operator, case = name.split("/")
                causes[where + cause][operator].append(case)
    for cause in sorted(causes):
        print(cause)
        for operator, cases in causes[cause].items():
            print(f"\t{operator}: {' '.join(cases)}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("weft", type=lambda s: pathlib.Path(s).resolve())
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("list", type=pathlib.Path)
    p.add_argument("backend", nargs="+")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--mode", help="vjp, jvp or vmap: derivatives or batches instead of results")
    p.add_argument("--target", help="of the compiled kernels")
    p.add_argument("--every", type=int, default=1, metavar="N", help="run each N-th case in the order of their names, judge only these")
    p.add_argument("--now", action="store_true", help="print the list that fits")
    args = p.parse_args()
    if not args.folder.is_dir():
        return 77
    options = [*(["--mode", args.mode] if args.mode else []), *(["--target", args.target] if args.target else [])]
    parts = sample(args.folder, args.every) if args.every > 1 else []
    results = {b: run(args.weft, args.folder, b, args.jobs, parts, options) for b in args.backend}
    if args.now:
        print_now(results)
        return 0
    wrong = []
    for backend, found in results.items():
        listed = read_list(args.list, backend)
        if parts:
            listed = {name: cause for name, cause in listed.items() if f"{name}.pt2" in parts}
        wrong += judge(backend, found, listed)
        failed = sum(why is not None for why in found.values())
        print(f"{backend}: {len(found) - failed} passed, {failed} failed, {len(listed)} of these expected")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
