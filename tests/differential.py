"""Random modules, compiled by weft and run by PyTorch: differential.py WEFT --python PYTHON [--seed N] [--count N] [--backends LIST] [--keep DIR]
PYTHON is one that has torch, safetensors and expecttest; tests/differential_make.py there makes the modules and PyTorch's
results, `weft check` compares. Prints each mismatch, then why modules were refused, how often; mismatches are kept in DIR.
  --record DIR   instead of comparing, choose from what passes a small set that spreads over operators (--count of it)
The recorded set of the test suite is tests/recorded."""
import argparse
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MAKE = pathlib.Path(__file__).with_name("differential_make.py")
BATCH = 200  # modules made, checked and deleted at a time


def program_of(reference):
    data = reference.read_bytes()
    return json.loads(data[8:8 + int.from_bytes(data[:8], "little")])["__metadata__"]["program"]


def check(weft, folder, backend):
    """{model: (passed, text)} and {model: messages}."""
    p = subprocess.run([weft, "check", folder, "--backend", backend, "--json", "--jobs", "2"], capture_output=True, text=True, errors="replace")
    messages = collections.defaultdict(list)
    for line in p.stderr.splitlines():
        found = re.match(r"(\S*?/(\d+)\.pt2)\S*:? (?:.*?: )?error: (.*)", line)
        if found:
            messages[pathlib.Path(found[1])].append(found[3])
    try:
        results = json.loads(p.stdout)["results"]
    except json.JSONDecodeError:
        sys.exit(f"weft check: {p.stdout[-300:]} {p.stderr[-300:]}")
    return {pathlib.Path(r["model"]): (r["passed"], r["text"]) for r in results}, messages


def is_refusal(text):
    return text in ("cannot be loaded", "cannot be compiled or loaded", "refused", "failed")


def cause(message):
    """Messages without names and numbers, to count them."""
    message = re.sub(r"\d+ unsupported operators?: ", "unsupported operator ", message)
    return re.sub(r" x\d+ \(first at .*?\)", "", message)[:140]


class Totals:
    def __init__(self, keep):
        self.keep, self.count, self.causes, self.wrong = keep, collections.Counter(), collections.Counter(), []

    def add(self, backend, results, messages):
        for model, (passed, text) in results.items():
            verdict = "equal" if passed else "refused" if is_refusal(text) else "different"
            self.count[backend, verdict] += 1
            if verdict == "refused":
                self.causes[cause(messages[model][0] if messages[model] else "refused without a message")] += 1
            if verdict == "different" or (verdict == "refused" and not messages[model]):
                self.report(backend, model, text)

    def report(self, backend, model, text):
        reference = model.with_suffix(".safetensors")
        print(f"{model.stem} {backend}: {text}\n    {program_of(reference)}", flush=True)
        self.wrong.append(model.stem)
        if self.keep:
            self.keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(model, self.keep)
            shutil.copy(reference, self.keep)

    def print(self):
        for text, n in self.causes.most_common():
            print(f"{n:6} refused: {text}")
        for (backend, verdict), n in sorted(self.count.items()):
            print(f"{backend}: {n} {verdict}")


def batches(args):
    """Folders of modules, one after the other."""
    for seed in range(args.seed, args.seed + args.count, BATCH):
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run([args.python, MAKE, folder, "--seed", str(seed), "--count", str(min(BATCH, args.seed + args.count - seed))],
                                  stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
            if made.returncode:
                sys.exit(made.stderr)
            yield pathlib.Path(folder)


def operators(reference):
    return set(re.findall(r"(?:= |^)([a-z_][\w.]*)", program_of(reference)))


def record(args, passing):
    """Of what passes everywhere keep what adds an operator or a pair of dtypes, smallest first, then what is small."""
    args.record.mkdir(parents=True, exist_ok=True)
    sized = sorted(passing, key=lambda p: p[1])
    seen, chosen = collections.Counter(), []
    for limit in (1, 2, 4, 1000):
        for entry in sized:
            names = operators(entry[0].with_suffix(".safetensors")) | {re.sub(r".*?(\w+\d+\[).*", r"\1", program_of(entry[0].with_suffix(".safetensors")))}
            if len(chosen) < args.keep_count and entry not in chosen and any(seen[n] < limit for n in names):
                chosen.append(entry)
                seen.update(names)
    for model, _ in chosen:
        shutil.copy(model, args.record)
        shutil.copy(model.with_suffix(".safetensors"), args.record)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("weft", type=lambda s: pathlib.Path(s).resolve())
    p.add_argument("--python", required=True)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--backends", default="interp,jit", help="interp, jit, c, llvm; bits.py tells whether C and LLVM differ")
    p.add_argument("--keep", type=pathlib.Path, help="where mismatches are kept")
    p.add_argument("--record", type=pathlib.Path)
    p.add_argument("--keep-count", type=int, default=300, help="how many --record chooses")
    args = p.parse_args()
    totals = Totals(args.keep)
    with tempfile.TemporaryDirectory() as kept:
        passing = []
        for folder in batches(args):
            ok = set(folder.glob("*.pt2"))
            for backend in args.backends.split(","):
                results, messages = check(args.weft, folder, backend)
                totals.add(backend, results, messages)
                ok &= {model for model, (passed, _) in results.items() if passed}
            for model in sorted(ok) if args.record else []:
                size = sum(shutil.copy(f, kept) and f.stat().st_size for f in (model, model.with_suffix(".safetensors")))
                passing.append((pathlib.Path(kept) / model.name, size))
        if args.record:
            record(args, passing)
    totals.print()
    return 1 if totals.wrong else 0


sys.exit(main())
