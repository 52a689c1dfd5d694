"""Random modules, compiled by weft and run by PyTorch: differential.py WEFT --python PYTHON [--train] [--seed N] [--count N] [--backends LIST] [--keep DIR]
PYTHON is one that has torch, safetensors and expecttest; tests/oracle/modules/differential_make.py there makes the modules and PyTorch's
results, `weft check` compares. Modules are exported side by side, 16 in a file; where one of them is refused or differs it is
exported alone, and the others again without it. Prints each mismatch, then why modules were refused, how often, and how often
each pattern was drawn that has gone wrong before; mismatches are kept in DIR.
  --train        modules with a loss, by their gradients: tests/oracle/modules/differential_train.py makes them, `weft check --mode vjp` compares
  --state FILE   one line for each batch that was compared; what is there already is not done again
  --record DIR   instead of comparing, choose from what passes a small set that spreads over operators (--count of it)
The recorded sets of the test suite are tests/recorded and tests/recorded_training."""
import argparse
import bisect
import collections
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
BATCH = 320  # seeds whose modules are made, checked and deleted at a time
COMPANY = 16  # modules in a file


def metadata_of(reference):
    data = reference.read_bytes()
    return json.loads(data[8:8 + int.from_bytes(data[:8], "little")])["__metadata__"]


def program_of(reference):
    return metadata_of(reference)["program"]


def parts_of(model):
    """[seed, number of results, text, number of inputs] of each module in the file."""
    return json.loads(metadata_of(model.with_suffix(".safetensors"))["parts"])


def seeds_of(model):
    return [part[0] for part in parts_of(model)]


def module_at(parts, column, k):
    """The seed of the module that has number k of what that column counts."""
    ends = list(itertools.accumulate(part[column] for part in parts))
    return parts[bisect.bisect(ends, k)][0]


def culprits(model, text, messages):
    """Seeds of modules in the file that messages name, or whose results or gradients differ; none: nobody knows."""
    parts = parts_of(model)
    found = {parts[int(k)][0] for m in messages[model] for k in re.findall(r"\bpart\.(\d+)", m)}
    for line in text.splitlines():
        output = re.match(r"output (\d+) \((?:g\.(?:inputs_(\d+)|part\.(\d+)))?", line)
        if output and output[3]:
            found.add(parts[int(output[3])][0])
        elif output:
            found.add(module_at(parts, 3, int(output[2])) if output[2] else module_at(parts, 1, int(output[1])))
    return found


class Maker:
    """A maker of modules as a process that makes what it is asked for: starting PyTorch takes longer than a module."""

    def __init__(self, python, script, log, skip):
        self.script, self.skip = script, skip
        self.process = subprocess.Popen([python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)

    def make(self, folder, pools):
        print(json.dumps({"folder": str(folder), "pools": pools, "skip": self.skip}), file=self.process.stdin, flush=True)
        if not self.process.stdout.readline():
            sys.exit(f"{self.script} ended")


def results_of(text):
    """{model: (passed, text)} of what `weft check` prints: what differs, a line each, stands before its model."""
    results, lines = {}, []
    for line in text.splitlines():
        found = re.fullmatch(r"(ok  |FAIL) (.*?\.pt2)(?:: (.*?))?(?:  no error|  largest error \S+, [^()]* allowed \(.*?\))?(?:  ratio \S+)?  [\d.]+ s", line)
        if line.startswith("     "):
            lines.append(line.strip())
        elif found:
            results[pathlib.Path(found[2])] = found[1] == "ok  ", found[3] or "\n".join(lines)
            lines = []
    return results


def check(weft, folder, backend, options):
    """{model: (passed, text)} and {model: messages}."""
    if not any(folder.glob("*.pt2")):
        return {}, collections.defaultdict(list)
    p = subprocess.run([weft, "check", folder, "--backend", backend, "--jobs", "2", "--no-cache", *options], capture_output=True, text=True, errors="replace")
    messages = collections.defaultdict(list)
    for line in p.stderr.splitlines():
        found = re.match(r"(?:weft: )?(\S*?/[\d-]+\.pt2)\S*:? (.*error: )?", line)
        if found and ": warning: " not in line and ": note: " not in line:
            messages[pathlib.Path(found[1])].append(line)
    results = results_of(p.stdout)
    if len(results) != len(list(folder.glob("*.pt2"))):
        sys.exit(f"weft check: {p.stdout[-300:]} {p.stderr[-300:]}")
    return results, messages


def is_refusal(text):
    return text in ("cannot be loaded", "cannot be compiled or loaded", "refused", "failed")


def cause(message):
    """Messages without names and numbers, to count them."""
    message = re.sub(r".*?error: ", "", message)
    message = re.sub(r"\d+ unsupported operators?: ", "unsupported operator ", message)
    return re.sub(r" x\d+ \(first at .*?\)", "", message)[:140]


class Totals:
    def __init__(self, keep):
        self.keep, self.count, self.causes, self.wrong = keep, collections.Counter(), collections.Counter(), []
        self.patterns, self.first = collections.Counter(), {}  # `first`: a seed of each cause
        self.failed = set()  # seeds of modules that fail alone

    def add(self, backend, model, passed, text, messages, seeds):
        verdict = "equal" if passed else "refused" if is_refusal(text) else "different"
        self.count[f"{backend}: {verdict}"] += len(seeds)
        self.failed |= set() if passed else set(seeds)
        if verdict == "refused":
            why = cause(messages[model][0] if messages[model] else "refused without a message")
            self.causes[why] += 1
            self.first.setdefault(why, model.stem)
        if verdict == "different" or (verdict == "refused" and not messages[model]):
            self.report(backend, model, text)

    def report(self, backend, model, text):
        reference = model.with_suffix(".safetensors")
        print(f"{model.stem} {backend}: {text.splitlines()[0]}\n    {program_of(reference)}", flush=True)
        self.wrong.append(f"{model.stem} {backend}")
        if self.keep:
            self.keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(model, self.keep)
            shutil.copy(reference, self.keep)

    def add_patterns(self, folder):
        """Of all modules that were made there."""
        for reference in sorted(folder.glob("*.safetensors")):
            for found in json.loads(metadata_of(reference).get("patterns", "[]")):
                self.patterns.update(["modules", *found])

    def print(self):
        for pattern, n in sorted(self.patterns.items()):
            print(f"drawn: {n:6} {pattern}")
        for text, n in self.causes.most_common():
            print(f"{n:6} refused (as {self.first.get(text)}): {text}")
        for verdict, n in sorted(self.count.items()):
            print(f"{verdict}: {n}")
        if self.wrong:
            print("different:", ", ".join(self.wrong))

    def text(self):
        return {"count": self.count, "causes": self.causes, "wrong": self.wrong, "patterns": self.patterns, "first": self.first}

    def read(self, entry):
        self.count.update(entry["count"])
        self.causes.update(entry["causes"])
        self.wrong += entry["wrong"]
        self.patterns.update(entry["patterns"])
        self.first = entry["first"] | self.first


def compare(args, maker, backend, totals, folder):
    """Compare the files in the folders of `folder`; what fails is made again, alone, in a new one, so that in the end only files of
    one module fail."""
    failing, done = [], 0
    while (now := folder / str(done)).exists():
        results, messages = check(args.weft, now, backend, ["--mode", "vjp"] if args.train else [])
        pools = []
        for model, (passed, text) in results.items():
            seeds = seeds_of(model)
            if passed or len(seeds) == 1:
                totals.add(backend, model, passed, text, messages, seeds)
            else:
                bad = culprits(model, text, messages)
                rest = [s for s in seeds if s not in bad]
                half = len(rest) if bad else len(rest) // 2
                pools += [[s] for s in bad] + [p for p in (rest[:half], rest[half:]) if p]
                failing.append((put_aside(model, folder / "aside"), text, seeds))
        done += 1
        if pools:
            made = sum(f.is_dir() for f in folder.iterdir() if f.name.isdigit())
            maker.make(folder / str(made), pools)
    for model, text, seeds in failing:
        if not totals.failed & set(seeds):
            totals.report(backend, model, text + " (each of them passes alone)")


def put_aside(model, folder):
    folder.mkdir(exist_ok=True)
    shutil.move(model.with_suffix(".safetensors"), folder / (model.stem + ".safetensors"))
    return pathlib.Path(shutil.move(model, folder / model.name))


def batches(args, done):
    """Seeds of one batch after the other."""
    for seed in range(args.seed, args.seed + args.count, BATCH):
        if seed not in done:
            yield list(range(seed, min(seed + BATCH, args.seed + args.count)))


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


def read_state(args, totals):
    """The first seeds of batches that were compared before, by the same command."""
    done = set()
    for line in args.state.read_text().splitlines() if args.state and args.state.exists() else []:
        entry = json.loads(line)
        totals.read(entry)
        done.add(entry["seed"])
    return done


def one_batch(args, maker, seeds, passing):
    """Totals of these seeds; what passes everywhere joins `passing`, where modules are to be recorded."""
    totals, n = Totals(args.keep), 1 if args.record else COMPANY
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        maker.make(folder / "0", [seeds[k:k + n] for k in range(0, len(seeds), n)])
        totals.add_patterns(folder / "0")
        for backend in args.backends.split(","):
            compare(args, maker, backend, totals, folder)
        for model in sorted(folder.glob("0/*.pt2")) if args.record else []:
            if not totals.failed & set(seeds_of(model)):
                size = sum(shutil.copy(f, args.scratch) and f.stat().st_size for f in (model, model.with_suffix(".safetensors")))
                passing.append((args.scratch / model.name, size))
    return totals


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("weft", type=lambda s: pathlib.Path(s).resolve())
    p.add_argument("--python", required=True)
    p.add_argument("--train", action="store_true")
    p.add_argument("--skip", default="", help="patterns, with commas between: modules that have one of them are left out")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--backends", default="interp,jit", help="interp, jit, c, llvm; bits.py tells whether C and LLVM differ")
    p.add_argument("--keep", type=pathlib.Path, help="where mismatches are kept")
    p.add_argument("--log", type=argparse.FileType("w"), help="where what PyTorch says goes")
    p.add_argument("--state", type=pathlib.Path)
    p.add_argument("--record", type=pathlib.Path)
    p.add_argument("--keep-count", type=int, default=300, help="how many --record chooses")
    args = p.parse_args()
    totals, maker, passing = Totals(args.keep), Maker(args.python, HERE / ("differential_train.py" if args.train else "differential_make.py"), args.log, [s for s in args.skip.split(",") if s]), []
    with tempfile.TemporaryDirectory() as scratch:
        args.scratch = pathlib.Path(scratch)
        for seeds in batches(args, read_state(args, totals)):
            batch = one_batch(args, maker, seeds, passing)
            totals.read(batch.text())
            if args.state:
                with args.state.open("a") as f:
                    print(json.dumps({"seed": seeds[0], **batch.text()}), file=f)
        if args.record:
            record(args, passing)
    totals.print()
    return 1 if totals.wrong else 0


sys.exit(main())
