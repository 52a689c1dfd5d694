"""Mutation testing: does a small change of the code make a test fail?

    scripts/mutate.py FOLDER --seeds 1-60 --build BUILD [--log FILE] [--tests NAME,NAME] [--times FILE] [--jobs N]

Each seed makes one change in a C file of FOLDER (chosen by size), builds in BUILD, runs tests until one fails, and puts
the file back. BUILD is a build folder of the checkout it lies in: use a worktree of its own, configured for quick builds
(meson setup build -Doptimization=1 -Ddebug=false -Dllvm_link=shared). The changes are

    constant   3 -> 4, 0 -> 1, 1 -> 0, 0.5 -> 1.5, true <-> false
    compare    <  <->  <=, >  <->  >=, == <-> !=
    operator   + <-> -, * -> +, / -> *, % -> /, << <-> >>, & <-> |, && <-> ||, !x -> x
    swap       f(a, b) -> f(b, a)
    drop       a statement that is a call or an assignment

also inside the texts of the op table (.scalar, .deriv, .expand), which are code. A change that does not compile, or after
which the object file is the same, is not counted; the seed then makes another one.

A mutant is found by the first test that fails, hangs or crashes. Tests run in an order that is learned: those that found
many in little time come first. `emitted` compares hashes of emitted code: it runs last, and mutants that nothing else finds
are counted apart. The last lines are survivors, to be read, and the counts."""
import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import time

LAST = "emitted"  # compares text, not results
SKIP = ("cross", "loops aarch64", "loops riscv64", "thread sanitizer", "memory", "chains", "interrupted", "arrows", "manual")

COMPARE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
OPERATOR = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "&&": "||",
            "||": "&&", "+=": "-=", "-=": "+=", "*=": "+=", "|=": "&=", "&=": "|="}
SPACED = re.compile(r"(?<= )(<=|>=|==|!=|<<|>>|&&|\|\||[-+*|&]=|[-+*/%<>&|])(?= )")
IN_TEXT = re.compile(r"<=|>=|==|!=|[-+*/<>]")
NUMBER = re.compile(r"(?<![\w.\"])(\d+\.\d+(?:[eE][-+]?\d+)?f?|\d+)(?![\w.\"])")
NOT = re.compile(r"(?<![\w)\]])!(?=[\w(])")
BOOL = re.compile(r"\b(true|false)\b")
SIMPLE = r"(?:[^,(){}\"';]|\([^,(){}\"';]*\))+"
CALL = re.compile(rf"(?<=[\t (!])\w+\(((?:{SIMPLE}, )+{SIMPLE})\)")
STATEMENT = re.compile(r"^\t+(?:[\w.\[\]>*-]+ (?:[-+*|&]?=) [^;{}]*|[a-z_]\w*\([^;{}]*\));$", re.M)
TEXT_FIELD = re.compile(r"\.(?:scalar|deriv|expand)\s*=\s*\{?((?:\s*\"(?:[^\"\\]|\\.)*\",?)+)")


def blank(text):
    """The code with comments, strings, characters and preprocessor lines as spaces, so that offsets stay."""
    def spaces(m):
        return re.sub(r"[^\n]", " ", m[0])
    text = re.sub(r"/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", spaces, text, flags=re.S)
    return re.sub(r"^#(?:[^\\\n]|\\.|\\\n)*", spaces, text, flags=re.M)


def number(s):
    if "." in s:
        return repr(float(s.rstrip("f")) + 1) + ("f" if s.endswith("f") else "")
    return {"0": "1", "1": "0"}.get(s, str(int(s) + 1))


def swapped(text, m, rng):
    """Two neighbouring arguments of the call change places."""
    args = re.findall(SIMPLE, text[m.start(1):m.end(1)])
    args = [a.strip() for a in args]
    k = rng.randrange(len(args) - 1)
    args[k], args[k + 1] = args[k + 1], args[k]
    return ", ".join(args)


def places(text):
    """All changes of a file: (kind, begin, end, what stands there instead, or a function of the random numbers)."""
    code = blank(text)
    inside = [m.start() for m in re.finditer(r"^(?:[{}])", code, re.M)]  # function and table bodies
    out = []
    for m in SPACED.finditer(code):
        kind, table = ("compare", COMPARE) if m[1] in COMPARE else ("operator", OPERATOR)
        out.append((kind, m.start(1), m.end(1), table[m[1]]))
    out += [("operator", m.start(), m.end(), "") for m in NOT.finditer(code)]
    out += [("constant", m.start(), m.end(), number(m[0])) for m in NUMBER.finditer(code)]
    out += [("constant", m.start(), m.end(), {"true": "false", "false": "true"}[m[0]]) for m in BOOL.finditer(code)]
    out += [("swap", m.start(1), m.end(1), lambda rng, m=m: swapped(text, m, rng)) for m in CALL.finditer(code)
            if code[code.rfind("\n", 0, m.start()) + 1] == "\t"]  # no definition
    out += [("drop", m.start() + len(m[0]) - len(m[0].lstrip("\t")), m.end(), ";") for m in STATEMENT.finditer(code)]
    if inside:
        out = [p for p in out if p[1] > inside[0]]
    for m in TEXT_FIELD.finditer(text):
        field = text[m.start(1):m.end(1)]
        for k in IN_TEXT.finditer(field):
            table = COMPARE if k[0] in COMPARE else OPERATOR
            out.append(("text", m.start(1) + k.start(), m.start(1) + k.end(), table[k[0]]))
        for k in NUMBER.finditer(field):
            out.append(("text", m.start(1) + k.start(), m.start(1) + k.end(), number(k[0])))
    return out


class Mutant:
    """One change of one file, decided by FOLDER, seed and attempt."""

    def __init__(self, files, seed, attempt):
        rng = random.Random(f"{seed}.{attempt}")
        self.path = rng.choices(files, [p.stat().st_size for p in files])[0]
        self.before = self.path.read_text(encoding="utf-8")
        everything = places(self.before)
        kinds = sorted({p[0] for p in everything})
        self.ok = bool(kinds)
        if not self.ok:
            return
        kind = rng.choice(kinds)
        self.kind, begin, end, new = rng.choice([p for p in everything if p[0] == kind])
        new = new(rng) if callable(new) else new
        self.after = self.before[:begin] + new + self.before[end:]
        self.ok = self.after != self.before
        line = self.before.count("\n", 0, begin)
        self.line = line + 1
        self.shown = (self.before.split("\n")[line].strip(), self.after.split("\n")[line].strip())

    def __str__(self):
        return f"{self.path}:{self.line} {self.kind}: {self.shown[0]}  ->  {self.shown[1]}"


def limits():
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Run:
    """A command under a limit of time, in a process group of its own."""

    def __init__(self, command, seconds, cwd=None, env=None):
        self.end = time.time() + seconds
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                        cwd=cwd, env=dict(os.environ, **(env or {})), preexec_fn=limits)

    def passed(self):
        """None while it runs; then whether it ended with status 0 (77: skipped) in time."""
        status = self.process.poll()
        if status is None and time.time() < self.end:
            return None
        self.stop()
        return status in (0, 77)

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def runs(command, seconds):
    run = Run(command, seconds)
    while run.passed() is None:
        time.sleep(0.01)
    return run.passed()


class Tests:
    def __init__(self, build, names, jobs):
        self.jobs = jobs
        every = json.loads(subprocess.check_output(["meson", "introspect", "--tests", build]))
        self.list = []
        for t in every:
            suite = t["suite"][0].split(":")[-1]
            wanted = t["name"] in names if names else suite != "conformance" and not t["name"].startswith(SKIP)
            if wanted or (t["name"] == LAST and names):
                self.list.append(dict(name=t["name"], command=t["cmd"], env=t["env"], cwd=t["workdir"] or build, kills=0))

    def measure(self):
        """Keeps the tests that pass unchanged, with their times."""
        passed = []
        for t, ok, seconds in self.each(self.list, lambda t: 600):
            t["seconds"] = seconds
            if ok:
                passed.append(t)
            else:
                print("left out, fails unchanged:", t["name"], flush=True)
        self.list = passed

    def remember(self, path):
        pathlib.Path(path).write_text(json.dumps({t["name"]: t["seconds"] for t in self.list}), encoding="utf-8")

    def recall(self, path):
        times = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        self.list = [dict(t, seconds=times[t["name"]]) for t in self.list if t["name"] in times]

    def each(self, tests, limit):
        """(test, passed, seconds) of each, several at a time; those that run when the caller stops are killed."""
        waiting, running = list(tests), []
        try:
            while waiting or running:
                while waiting and len(running) < self.jobs:
                    t = waiting.pop(0)
                    running.append((t, time.time(), Run(t["command"], limit(t), t["cwd"], t["env"])))
                time.sleep(0.01)
                for entry in [e for e in running if e[2].passed() is not None]:
                    running.remove(entry)
                    yield entry[0], entry[2].passed(), time.time() - entry[1]
        finally:
            for _, _, run in running:
                run.stop()

    def order(self):
        return sorted(self.list, key=lambda t: -(t["kills"] + 0.5) / (t["seconds"] + 0.05))

    def find(self):
        """The name of the first test that fails, or None."""
        for last in (False, True):
            tests = [t for t in self.order() if (t["name"] == LAST) == last]
            for t, ok, _ in self.each(tests, lambda t: 20 + 8 * t["seconds"]):
                if not ok:
                    t["kills"] += 1
                    return t["name"]
        return None


def objects(build, path):
    name = str(path).replace("/", "_") + ".o"
    found = sorted(pathlib.Path(build).rglob("*" + name))
    return [hashlib.sha256(p.read_bytes()).digest() for p in found if p.name == name]


def compiles(build):
    return runs(["ninja", "-C", build], 900)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("folder")
    ap.add_argument("--seeds", default="1-20")
    ap.add_argument("--build", required=True)
    ap.add_argument("--tests", default="")
    ap.add_argument("--log")
    ap.add_argument("--times", help="a file that keeps what the unchanged tests take, for the next folder")
    ap.add_argument("--jobs", type=int, default=os.cpu_count())
    a = ap.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # the file is put back
    build = str(pathlib.Path(a.build).resolve())
    os.chdir(pathlib.Path(build).parent)
    first, last = (int(s) for s in (a.seeds.split("-") * 2)[:2])
    files = sorted(p for p in pathlib.Path(a.folder).glob("*.c"))
    if not files:
        sys.exit(f"no C files in {a.folder}")
    if not compiles(build):
        sys.exit("the unchanged tree does not build")
    tests = Tests(build, [n for n in a.tests.split(",") if n], a.jobs)
    if a.times and os.path.exists(a.times):
        tests.recall(a.times)
    else:
        tests.measure()
        if a.times:
            tests.remember(a.times)
    found, text_only, survivors = 0, 0, []
    for seed in range(first, last + 1):
        for attempt in range(50):
            m = Mutant(files, f"{a.folder}.{seed}", attempt)
            if not m.ok:
                continue
            before = objects(build, m.path)
            try:
                m.path.write_text(m.after, encoding="utf-8")
                if not compiles(build) or objects(build, m.path) == before:
                    continue
                start = time.time()
                test = tests.find()
            finally:
                m.path.write_text(m.before, encoding="utf-8")
            print(f"{seed} {'found by ' + test if test else 'SURVIVED'} ({time.time() - start:.0f} s) {m}", flush=True)
            if a.log:
                with open(a.log, "a", encoding="utf-8") as log:
                    log.write(json.dumps({"folder": a.folder, "seed": seed, "test": test, "mutant": str(m)}) + "\n")
            found += test is not None and test != LAST
            text_only += test == LAST
            if not test:
                survivors.append(m)
            break
    compiles(build)
    total = found + text_only + len(survivors)
    print(f"\nsurvivors in {a.folder}:")
    for m in survivors:
        print(" ", m)
    print(f"{a.folder}: {found} of {total} found, {text_only} more by hashes of emitted code only, {len(survivors)} survived")


if __name__ == "__main__":
    main()
