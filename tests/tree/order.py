"""Whatever compiler builds Weft, it builds the same graphs: order.py SOURCE_ROOT

C leaves open in which order the arguments of a call are evaluated (gcc begins with the last, clang with the first), and nodes of graphs,
statements and parameters of loop IR and instructions of LLVM IR stand in the order in which they are added. So at most one argument of a
call adds any, itself or by a function that it calls; other operands are variables. Macros that put their operands on the stack of the Ir
(b_operand in ir/build/build.h) state the order, and may have several. MOST counts what is left by room, and may fall. Elements of an
initialiser list have no order either, though both compilers begin with the first one: INITIALISERS counts lists of which two elements add
something, and may fall, too.
`order.py --self` tests this script, --list prints what is counted."""
import collections
import pathlib
import re
import sys

MOST = {}
INITIALISERS = 121
ROOMS = ("base", "ir", "ops", "frontend", "passes", "lower", "transform", "codegen", "driver", "tools")
# Add something whose order shows; LLVMBuild stands for all functions whose names begin so. Members of tables of functions add, too.
ROOTS = re.compile(r"graph_add|graph_add_input|graph_guard|ls_add|lx_param|LLVMBuild\w+|\.(?:build|batch|adjoint|jvp|expand)")
# Ends the call: what it prints of a graph does not matter.
ENDS = {"ctx_bug"}
SKIPPED = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)+'", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*", re.M | re.S)
MACRO = re.compile(r"\s*#\s*define\s+(\w+)\([^)]*\)(.*)", re.S)
TOKEN = re.compile(r"\w+|->|==|\S")
KEYWORDS = {"if", "while", "for", "switch", "return", "sizeof", "do", "else", "case", "_Static_assert", "__attribute__", "defined", "OP"}


class File:
    """The functions of a file, whom each calls, its calls with several arguments that call something, and such initialiser lists."""

    def __init__(self, path, text):
        text = SKIPPED.sub(lambda m: " " + "\n" * m.group().count("\n"), text)
        self.macros = {m[1]: m[2].replace("\\\n", " ").strip() for m in map(MACRO.match, DIRECTIVE.findall(text)) if m}
        text = DIRECTIVE.sub(lambda m: "\n" * m.group().count("\n"), text)
        self.path, self.static, self.calls, self.sites = path, set(), collections.defaultdict(set), []
        self.walk(text)
        for name, body in self.macros.items():
            self.calls[name] |= set(re.findall(r"(\w+)\s*\(", body)) - KEYWORDS

    def open_bracket(self, word, last, before, line):
        """A frame: (bracket, whose, arguments as sets of names, line)"""
        if word == "(" and re.fullmatch(r"[A-Za-z_]\w*", last) and last not in KEYWORDS:
            return [word, ("." if before in (".", "->") else "") + last, [set()], line]
        return [word, "{" if word == "{" and last in (")", "=", ",", "{", "]") else "", [set()], line]

    def walk(self, text):
        frames, function, head, last, before, static = [], "", "", "", "", False
        line, at = 1, 0
        for token in TOKEN.finditer(text):
            line, at, word = line + text.count("\n", at, token.start()), token.start(), token.group()
            static |= not frames and word == "static"
            if word in "({[":
                if word == "{" and last == ")" and not frames and head:
                    function = head
                    self.calls[function] |= set()
                    if static and self.path.endswith(".c"):
                        self.static.add(function)
                    frames.append([word, "", [set()], line])
                else:
                    frames.append(self.open_bracket(word, last, before, line))
                    if function and word == "(" and frames[-1][1]:
                        self.calls[function].add(frames[-1][1])
                if len(frames) == 1 and word == "(":
                    head = last
            elif word in ")}]" and frames:
                bracket, whose, args, begin = frames.pop()
                inside = set().union(*args)
                if function and whose and sum(map(bool, args)) > 1:
                    self.sites.append((begin, whose, args))
                if frames and bracket != "[":
                    frames[-1][2][-1] |= inside | ({whose} if bracket == "(" and whose else set())
                if not frames and bracket == "{":
                    function, static = "", False
            elif word == "," and frames:
                frames[-1][2].append(set())
            elif word == ";" and frames:
                frames[-1][2] = [set()]
            elif word == ";":
                static = False
            before, last = last, word


def ordered(files):
    """The macros that state the order of their operands."""
    body = {name: text for f in files for name, text in f.macros.items()}
    found = {name for name, text in body.items() if text.startswith("(b_operand(")}
    while more := {n for n, text in body.items() if (m := re.match(r"(\w+)\(", text)) and m[1] in found} - found:
        found |= more
    return found


def adding(files):
    """(file, or "" for a function that all see; name) of all functions and macros that add something."""
    where = lambda f, name: (f.path if name in f.static else "", name)
    callers, todo = collections.defaultdict(set), []
    for f in files:
        for function, called in f.calls.items():
            for name in called:
                callers[where(f, name)].add(where(f, function))
                if ROOTS.fullmatch(name):
                    todo.append(where(f, name))
    found = set(todo)
    while todo:
        new = {c for c in callers[todo.pop()] if c[1] not in ENDS} - found
        found |= new
        todo += new
    return found


def unordered(texts):
    """(path, line, call or "{") of calls and lists of which several arguments add something. texts: {path: text}"""
    files = [File(path, text) for path, text in sorted(texts.items())]
    add, fine = adding(files), ordered(files)
    for f in files:
        adds = lambda name: (f.path if name in f.static else "", name) in add
        for line, whose, args in f.sites:
            if whose not in fine and sum(any(map(adds, a)) for a in args) > 1:
                yield f.path, line, whose


def self_test():
    build = "Node graph_add(Graph *g);\n#define bin(b, x, y) (b_operand(b, y), b_operand(b, x), bin_of(b))\n#define mul(b, x, y) bin(b, x, y)\n"
    add = "static Node one(Build *b)\n{\n\treturn graph_add(b->g);\n}\nNode two(Build *b, Node x, Node y)\n{\n\treturn y.i ? x : one(b);\n}\n"
    found = lambda text: [(line - 8, what) for path, line, what in unordered({"a/build.h": build, "a/a.c": add + text}) if path == "a/a.c"]
    inside = lambda text: found("Node f(Build *b)\n{\n\t" + text + ";\n}\n")
    assert inside("return two(b, one(b), one(b))") == [(3, "two")]
    assert inside("return two(b,\n\t\tone(b), (Node){g(one(b)), 0})") == [(3, "two")]
    assert inside("return two(b, two(b, x, one(b)), x)") == []
    assert inside("return bin(b, one(b), mul(b, one(b), one(b)))") == []
    assert inside("return two(b, mul(b, x, y), bin(b, x, y))") == []  # nothing of `bin` adds
    assert inside("Node x = one(b), y = two(b, x, one(b))") == []
    assert inside("Node z[] = {one(b), x, one(b)}") == [(3, "{")]
    assert inside("return x->build(b, one(b), t.build(b, x))") == [(3, ".build")]
    assert inside("/* two(b, one(b), one(b)) */ g(\"one(b), one(b)\")") == []
    assert inside("if (one(b).i) {\n\t\tone(b);\n\t\tone(b);\n\t}") == []
    assert inside("two(b, other(one), other(one))") == []
    print("the script finds what it should")


def main():
    if sys.argv[1] == "--self":
        return self_test()
    root = pathlib.Path(sys.argv[1])
    paths = [p for room in ROOMS for p in (root / room).rglob("*.[ch]")]
    found = sorted(unordered({p.relative_to(root).as_posix(): p.read_text(encoding="utf-8") for p in paths}))
    rooms = collections.Counter(path.rpartition("/")[0] for path, _, what in found if what != "{")
    lists = sum(what == "{" for *_, what in found)
    bad = False
    for room in sorted(set(rooms) | set(MOST)):
        if rooms[room] != MOST.get(room, 0) or "--list" in sys.argv:
            print("\n".join(f"{path}:{line}: several arguments of {what} add nodes" for path, line, what in found
                            if what != "{" and path.rpartition("/")[0] == room))
        if rooms[room] != MOST.get(room, 0):
            bad = True
            print(f"{room}: {rooms[room]} such calls, expected {MOST.get(room, 0)}: operands become variables, in order; or write the number if it fell")
    if lists != INITIALISERS:
        bad = True
        print(f"{lists} initialiser lists with several elements that add nodes, expected {INITIALISERS}; the number may fall")
    print(f"{sum(rooms.values())} calls leave the order of what they add open, and {lists} initialiser lists")
    return bad


if __name__ == "__main__":
    sys.exit(main())
