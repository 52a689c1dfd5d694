"""Mutation testing: does a small change of the code make a test fail?

    scripts/mutate.py FOLDER... --seeds 1-60 --build BUILD [--tests NAME,NAME] [--state FILE] [--log FILE] [--jobs N]
        [--again LOG] [--pause FILE] [--list]

Each seed makes one change in a C file of each FOLDER (chosen by size). BUILD is a build folder of the checkout it lies in:
use a worktree of its own, configured for quick builds (meson setup build -Doptimization=1 -Ddebug=false -Dllvm_link=shared).
One more with -Db_sanitize=address -Db_lundef=false, and --again, finds what reads behind arrays and what was never written.
The changes are

    constant   3 -> 4, 0 -> 1, 1 -> 0, 0.5 -> 1.5, true <-> false
    compare    <  <->  <=, >  <->  >=, == <-> !=
    operator   + <-> -, * -> +, / -> *, % -> /, << <-> >>, & <-> |, && <-> ||, !x -> x
    swap       f(a, b) -> f(b, a)
    drop       a statement that is a call or an assignment

also inside the texts of the op table (.scalar, .deriv, .expand), which are code. A change that does not compile, or after
which the object file is the same, is not counted; the seed then makes another one. Nor are changes that cannot show:

    - in a statement that only mixes the bits of a hash: `h ^= h >> 29`, or one with a constant of 8 hexadecimal digits or more
    - of the bound in the declaration of an array or in ARENA_ARRAY, to a larger one
    - of `.exact = true` in the op table: it spares a rounding where that changes nothing
    - of the value behind `return (Node){0};`: the builder has failed, and nobody looks at what its functions return then
      (dropping the test before it, or the message, does count)

All changes inside functions are built at once: a function's body stands there again for each of its changes,

    if (mutant == 17) {changed body} else if (mutant == 40) {...} else {body}

and the environment's WEFT_MUTANT says which one is on, in every process that a test starts and in models, whose runtime
carries its changes along. So a change costs its tests only, and of those only the ones that get into its function: before
anything else all tests run once unchanged, which also tells how long they take and leaves out those that fail. What stands
outside functions (tables, texts) is built one by one, and all tests are run.

A mutant is found by the first test that fails, crashes, or takes ten times as long (then the unchanged code must keep to the
limit once more). Tests run in an order that is learned: those that found many in little time come first. `emitted` compares
hashes of emitted code: it runs last, and mutants that nothing else finds are counted apart. The last lines are the survivors,
to be read, and the counts. --state keeps what was chosen and measured, --log the results: a run that was stopped goes on
where it was; --again runs only what survived in an earlier log, with slower tests, say. While the file of --pause exists, no test is started. --list only prints the changes."""
import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

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


BODY = re.compile(r"^\{\n.*?^\}", re.M | re.S)
MIXES = re.compile(r"(\b\w+) \^= \1 (?:>>|<<)|0x[0-9a-fA-F]{8}")
DECLARED = re.compile(r"^\s*(?:static )?(?:const )?(?!return|else|case)\w+ [^;()]*?\b\w+\[[^\]]*$")


def shows(code, kind, begin, end):
    """Could the change be seen at all? (The rules are at the top.)"""
    line = code[code.rfind("\n", 0, begin) + 1:code.find("\n", begin)]
    if MIXES.search(line) or ".exact = true" in line or (kind == "constant" and line.strip().startswith("return (Node){0}")):
        return False
    before = code[code.rfind("\n", 0, begin) + 1:begin]
    grows = kind == "constant" and code[begin:end] not in ("1", "true", "false")
    return not grows or not (DECLARED.match(before) or re.search(r"ARENA_ARRAY\([^()]*, $", before))


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
        out = [p for p in out if p[1] > inside[0] and shows(code, *p[:3])]
    for m in TEXT_FIELD.finditer(text):
        field = text[m.start(1):m.end(1)]
        for k in IN_TEXT.finditer(field):
            table = COMPARE if k[0] in COMPARE else OPERATOR
            out.append(("text", m.start(1) + k.start(), m.start(1) + k.end(), table[k[0]]))
        for k in NUMBER.finditer(field):
            out.append(("text", m.start(1) + k.start(), m.start(1) + k.end(), number(k[0])))
    return out


class Mutant:
    """One change of one file, decided by folder, seed and attempt."""

    def __init__(self, folder, files, seed, attempt):
        rng = random.Random(f"{folder}.{seed}.{attempt}")
        self.folder, self.seed = folder, seed
        self.path = rng.choices(files, [p.stat().st_size for p in files])[0]
        self.before = self.path.read_text(encoding="utf-8")
        everything = places(self.before)
        kinds = sorted({p[0] for p in everything})
        self.ok = bool(kinds)
        if not self.ok:
            return
        kind = rng.choice(kinds)
        self.kind, self.begin, self.end, new = rng.choice([p for p in everything if p[0] == kind])
        self.new = new(rng) if callable(new) else new
        self.after = self.before[:self.begin] + self.new + self.before[self.end:]
        self.ok = self.after != self.before
        line = self.before.count("\n", 0, self.begin)
        self.line = line + 1
        self.shown = (self.before.split("\n")[line].strip(), self.after.split("\n")[line].strip())
        self.body = next(((m.start(), m.end()) for m in BODY.finditer(blank(self.before))
                          if m.start() < self.begin and self.end < m.end()), None)
        self.function = 0  # the number it has in the trace; 0: built alone

    def __str__(self):
        return f"{self.path}:{self.line} {self.kind}: {self.shown[0]}  ->  {self.shown[1]}"


# What a file with changes begins with. `mutant_in` notes, once per function, that a test has been there.
HEAD = """
#include <stdio.h>
#include <stdlib.h>
#pragma GCC diagnostic ignored "-Wreturn-type"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wdangling-else"
static int mutant_on;
static char mutant_seen[10000];
__attribute__((constructor)) static void mutant_read(void)
{
	const char *text = getenv("WEFT_MUTANT");
	mutant_on = text ? atoi(text) : 0;
}
static int mutant_in(int function)
{
	if (mutant_on < 0 && !mutant_seen[function]) {
		mutant_seen[function] = 1;
		FILE *file = fopen(getenv("WEFT_MUTANT_TRACE"), "a");
		if (file) {
			fprintf(file, "%d\\n", function);
			fclose(file);
		}
	}
	return mutant_on;
}
"""


def head_place(text):
    """The end of the last #include in front of the functions that stands in no #if."""
    depth, at, place = 0, 0, 0
    first = BODY.search(blank(text)).start()
    for line in text[:first].splitlines(keepends=True):
        at += len(line)
        if re.match(r"#\s*if", line):
            depth += 1
        elif re.match(r"#\s*endif", line):
            depth -= 1
        if depth == 0 and re.match(r"#\s*(include|endif)", line):
            place = at
    return place


def schema(text, mutants):
    """The file with all changes; each is a (number, mutant) with a function around it."""
    bodies = {}
    for k, m in mutants:
        bodies.setdefault(m.body, []).append((k, m))
    for (begin, end), inside in sorted(bodies.items(), reverse=True):
        new = f"{{\nint mutant_now = mutant_in({inside[0][1].function});\n"
        for k, m in inside:
            new += f"if (mutant_now == {k})\n{m.before[begin:m.begin]}{m.new}{m.before[m.end:end]}\nelse "
        text = text[:begin] + new + "\n" + text[begin:end] + "\n}" + text[end:]
    at = head_place(text)
    return text[:at] + HEAD + text[at:]


class Compiler:
    """Compiles texts of files as the build does; the hash of the object, None if there are errors or warnings."""

    def __init__(self, build):
        self.commands = {}
        for c in json.loads((pathlib.Path(build) / "compile_commands.json").read_text(encoding="utf-8")):
            self.commands.setdefault(os.path.realpath(os.path.join(c["directory"], c["file"])), c)
        self.same = {}

    def object(self, path, text):
        c = self.commands[os.path.realpath(path)]
        words = shlex.split(c["command"])
        drop = {k for i, w in enumerate(words) for k in (i, i + 1) if w in ("-o", "-MQ", "-MF", "-c")}
        words = [w for i, w in enumerate(words) if i not in drop and w not in ("ccache", "-MD", "-MMD", "-MP", "-g")]
        with tempfile.NamedTemporaryFile(suffix=".o") as out:
            p = subprocess.run(words + ["-iquote", str(path.parent.resolve()), "-c", "-x", "c", "-", "-o", out.name], cwd=c["directory"],
                               input=text.encode(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            return None if p.returncode else hashlib.sha256(pathlib.Path(out.name).read_bytes()).digest()

    def accepts(self, m):
        """Does the change compile, to something else?"""
        if not m.ok:
            return False
        if m.path not in self.same:
            self.same[m.path] = self.object(m.path, m.before)
        return self.object(m.path, m.after) not in (None, self.same[m.path])


BOUNDED = True  # memory: an AddressSanitizer maps terabytes


def limits():
    os.setsid()
    if BOUNDED:
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Run:
    """A command under a limit of time, in a process group of its own."""

    def __init__(self, command, seconds, cwd=None, env=None):
        self.end = time.time() + seconds
        self.late = False
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                        cwd=cwd, env=dict(os.environ, **(env or {})), preexec_fn=limits)

    def passed(self):
        """None while it runs; then whether it ended with status 0 (77: skipped) in time."""
        status = self.process.poll()
        if status is None and time.time() < self.end:
            return None
        self.late = status is None
        self.stop()
        return status in (0, 77)

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def is_sanitized(build):
    return any(o["name"] == "b_sanitize" and "address" in o["value"] for o in introspect(build, "buildoptions"))


def introspect(build, what):
    return json.loads(subprocess.check_output(["meson", "introspect", "--" + what, build]))


class Tests:
    def __init__(self, build, names, jobs, pause):
        self.jobs, self.pause = jobs, pause
        every = introspect(build, "tests")
        self.list, self.depends = [], set()
        for t in every:
            suite = t["suite"][0].split(":")[-1]
            wanted = t["name"] in names if names else suite != "conformance" and not t["name"].startswith(SKIP)
            if wanted:
                self.depends.update(t["depends"])
                self.list.append(dict(name=t["name"], command=t["cmd"], env=t["env"], cwd=t["workdir"] or build, kills=0))

    def targets(self, build):
        """What is to be built for them."""
        names = [os.path.relpath(f, build) for t in introspect(build, "targets") if t["id"] in self.depends for f in t["filename"]]
        return sorted(names)

    def measure(self):
        """Keeps the tests that pass unchanged, with their times and the functions with changes that they reach."""
        passed = []
        with tempfile.TemporaryDirectory() as folder:
            for t in self.list:
                t["trace"] = os.path.join(folder, t["name"].replace(" ", "_"))
            for t, run, seconds in self.each(self.list, lambda t: 1800, lambda t: {"WEFT_MUTANT": "-1", "WEFT_MUTANT_TRACE": t["trace"]}):
                t["seconds"] = seconds
                lines = pathlib.Path(t["trace"]).read_text(encoding="utf-8").split() if os.path.exists(t["trace"]) else []
                t["reach"] = sorted({int(x) for x in lines})
                if run.passed():
                    passed.append(t)
                else:
                    print("left out, fails unchanged:", t["name"], flush=True)
        self.list = passed

    def remembered(self):
        return {t["name"]: [t["seconds"], t["reach"]] for t in self.list}

    def recall(self, known):
        self.list = [dict(t, seconds=known[t["name"]][0], reach=known[t["name"]][1]) for t in self.list if t["name"] in known]

    def each(self, tests, limit, env):
        """(test, its Run, seconds) of each, several at a time; those that run when the caller stops are killed."""
        waiting, running = list(tests), []
        try:
            while waiting or running:
                while waiting and len(running) < self.jobs and not (self.pause and os.path.exists(self.pause)):
                    t = waiting.pop(0)
                    running.append((t, time.time(), Run(t["command"], limit(t), t["cwd"], dict(t["env"], **env(t)))))
                time.sleep(0.01)
                for entry in [e for e in running if e[2].passed() is not None]:
                    running.remove(entry)
                    yield entry[0], entry[2], time.time() - entry[1]
        finally:
            for _, _, run in running:
                run.stop()

    def order(self, function):
        reach = [t for t in self.list if not function or function in t["reach"]]
        return sorted(reach, key=lambda t: -(t["kills"] + 0.5) / (t["seconds"] + 0.05))

    def find(self, number, function):
        """The name of the first test that fails, or None; and how many were run."""
        def limit(t):
            return 30 + 10 * t["seconds"]
        count = 0
        for last in (False, True):
            tests = [t for t in self.order(function) if (t["name"] == LAST) == last]
            for t, run, _ in self.each(tests, limit, lambda t: {"WEFT_MUTANT": str(number)}):
                count += 1
                if run.passed() or (run.late and function and not self.in_time(t, limit)):
                    continue
                t["kills"] += 1
                return t["name"], count
        return None, count

    def in_time(self, t, limit):
        """Does the unchanged code keep to the limit? The machine may be busy."""
        return all(run.passed() for _, run, _ in self.each([t], limit, lambda t: {"WEFT_MUTANT": "0"}))


class Tree:
    """The files with changes in them, and back."""

    def __init__(self, build, targets):
        self.build, self.targets = build, targets
        self.old = {}
        self.said = ""

    def put(self, texts):
        """Builds with other texts in place of some files, which are put back at once: objects stay."""
        try:
            for path, text in texts.items():
                self.old[path] = path.read_text(encoding="utf-8")
                path.write_text(text, encoding="utf-8")
            p = subprocess.run(["ninja", "-C", self.build, *self.targets], capture_output=True, text=True, check=False)
            self.said = p.stdout
            return p.returncode == 0
        finally:
            for path, text in self.old.items():
                path.write_text(text, encoding="utf-8")
            self.old = {}


def choose(folders, seeds, compiler, state, jobs):
    """One change for each folder and seed; state["attempt"] keeps which."""
    def chosen(job, first=0):
        folder, files, seed = job
        key = f"{folder}.{seed}"
        for attempt in range(state["attempt"].get(key, first), 50):
            m = Mutant(folder, files, seed, attempt)
            if key in state["attempt"] or compiler.accepts(m):
                state["attempt"][key] = attempt
                return m
        return None
    todo = [(folder, sorted(pathlib.Path(folder).glob("*.c")), seed) for seed in seeds for folder in folders]
    with ThreadPoolExecutor(jobs) as pool:
        made = list(pool.map(chosen, todo))
    out = {}
    for job, m in zip(todo, made):
        while m and (m.path, m.begin, m.new) in out:
            m = chosen(job, state["attempt"].pop(f"{m.folder}.{m.seed}") + 1)
        if m:
            out[m.path, m.begin, m.new] = m
    return list(out.values())


def together(mutants, compiler):
    """The files with all changes that stand in functions and can be built together; gives these their number."""
    texts = {}
    for path in sorted({m.path for m in mutants}):
        inside = [(k, m) for k, m in enumerate(mutants, 1) if m.path == path and m.body]
        first = {}
        for k, m in inside:
            m.function = first.setdefault(m.body, k)
        if inside and not compiler.object(path, schema(inside[0][1].before, inside)):
            bad = {body for body in first if not compiler.object(path, schema(inside[0][1].before, [x for x in inside if x[1].body == body]))}
            for _, m in inside:
                m.function = 0 if m.body in bad else m.function
            inside = [x for x in inside if x[1].function]
            print(f"{path}: {len(bad)} functions cannot be built with their changes together", flush=True)
        if inside:
            texts[path] = schema(inside[0][1].before, inside)
    return texts


def key_of(folders, seeds):
    digest = hashlib.sha256(f"{folders}{seeds}".encode())
    for path in [__file__] + sorted(str(p) for folder in folders for p in pathlib.Path(folder).glob("*.[ch]")):
        digest.update(pathlib.Path(path).read_bytes())
    return digest.hexdigest()


def arguments():
    ap = argparse.ArgumentParser()
    ap.add_argument("folder", nargs="+")
    ap.add_argument("--seeds", default="1-20")
    ap.add_argument("--build", required=True)
    ap.add_argument("--tests", default="")
    ap.add_argument("--log")
    ap.add_argument("--state")
    ap.add_argument("--jobs", type=int, default=os.cpu_count())
    ap.add_argument("--again")
    ap.add_argument("--pause")
    ap.add_argument("--list", action="store_true")
    a = ap.parse_args()
    for name in ("log", "state", "again", "pause"):
        if getattr(a, name):
            setattr(a, name, os.path.abspath(getattr(a, name)))
    a.build = str(pathlib.Path(a.build).resolve())
    first, last = (int(s) for s in (a.seeds.split("-") * 2)[:2])
    a.seeds = range(first, last + 1)
    return a


def logged(path):
    """What a log says: by mutant, the test that found it, None: it survived."""
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines() if path and os.path.exists(path) else []
    return {f"{e['folder']} {e['seed']} {e['mutant']}": e["test"] for e in map(json.loads, lines)}


def report(folder, results):
    """The survivors and the counts of a folder; results are (mutant as text, the test that found it or None)."""
    survivors = [m for m, test in results if not test]
    text_only = sum(test == LAST for _, test in results)
    print(f"\nsurvivors in {folder}:")
    for m in survivors:
        print(" ", m)
    print(f"{folder}: {len(results) - text_only - len(survivors)} of {len(results)} found, {text_only} more by hashes of emitted code only, "
          f"{len(survivors)} survived")


def main():
    a = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # files are put back
    os.chdir(pathlib.Path(a.build).parent)
    for folder in a.folder:
        if not list(pathlib.Path(folder).glob("*.c")):
            sys.exit(f"no C files in {folder}")
    global BOUNDED
    BOUNDED = not is_sanitized(a.build)
    key = key_of(a.folder, a.seeds)
    state = json.loads(pathlib.Path(a.state).read_text(encoding="utf-8")) if a.state and os.path.exists(a.state) else {}
    if state.get("key") != key:
        state = {"key": key, "attempt": {}, "tests": {}}
    tests = Tests(a.build, [n for n in a.tests.split(",") if n], a.jobs, a.pause)
    tree, compiler = Tree(a.build, tests.targets(a.build)), Compiler(a.build)
    if not state["attempt"] and not tree.put({}): # generated headers
        sys.exit("the unchanged tree does not build")

    def keep():
        if a.state:
            pathlib.Path(a.state).write_text(json.dumps(state), encoding="utf-8")

    mutants = choose(a.folder, a.seeds, compiler, state, a.jobs)
    keep()
    if a.list:
        for m in mutants:
            print(m.folder, m.seed, m)
        return
    texts = together(mutants, compiler)
    if not tree.put(texts):
        sys.exit("the tree with all changes does not build:\n" + tree.said[-3000:])
    if a.tests in state["tests"]:
        tests.recall(state["tests"][a.tests])
    else:
        tests.measure()
        state["tests"][a.tests] = tests.remembered()
        keep()
    known = {**{m: test for m, test in logged(a.again).items() if test}, **logged(a.log)}
    results = {folder: [] for folder in a.folder}
    for k, m in sorted(enumerate(mutants, 1), key=lambda x: not x[1].function):  # those built together first
        name = f"{m.folder} {m.seed} {m}"
        if name in known:
            results[m.folder].append((str(m), known[name]))
            continue
        if not m.function and not tree.put({m.path: m.after}):
            print(f"{m.folder} {m.seed} does not build: {m}", flush=True)
            continue
        start = time.time()
        test, count = tests.find(k, m.function)
        told = f"found by {test}" if test else f"SURVIVED {count} tests"
        print(f"{m.folder} {m.seed} {told} ({time.time() - start:.0f} s) {m}", flush=True)
        results[m.folder].append((str(m), test))
        if a.log:
            with open(a.log, "a", encoding="utf-8") as out:
                out.write(json.dumps({"folder": m.folder, "seed": m.seed, "test": test, "tests": count, "mutant": str(m)}) + "\n")
    tree.put({})
    for folder in a.folder:
        report(folder, results[folder])


if __name__ == "__main__":
    main()
