#!/usr/bin/env python3
"""A smaller file test that fails as this one does: reduce.py FILE_RUNNER FILE [SECONDS] (60)

The file's `; run:` is one of graphs, derived, composed, calls, which say themselves whether all is well. While it fails in the same way (what
is printed, without numbers and names), outputs go, steps go or become inputs, sizes become numbers and numbers smaller. The
result is printed: a file test of tests/text/run, once its expectation stands behind it, or of tests/known."""
import pathlib
import re
import subprocess
import sys
import tempfile
import time

SIZED = "shape|size|start|end|step|low|high|interior|stride|dilation|dilation_in|pad|count|extent|length|n"
GROSS = "; tolerance: 0.01\n"


# ---- what a test says ----

def show(runner, text):
    """What file_runner prints of the test."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "case.txt"
        path.write_text(text)
        try:
            p = subprocess.run([runner, "--show", path], capture_output=True, text=True, errors="replace", timeout=300)
        except subprocess.TimeoutExpired:
            return "does not end\n"
        return "".join(line + "\n" for line in p.stdout.splitlines()[1:-1])


def failing_line(printed):
    """The line that says what is wrong; None where nothing is."""
    lines = printed.splitlines()
    if lines and lines[-1] == "agrees":
        return None
    calls = [x for x in lines if re.match(r"(?!call )\S.*: call \d|stopped by|failed$|does not end|.*error:", x)]
    if calls:
        return calls[0]
    if any(x.startswith("call ") for x in lines):
        return None
    return next((x for x in lines if x.strip()), "nothing is printed")


def kind_of(line):
    """What stays the same when sizes and names change."""
    line = re.sub(r"^.*?(?=error: )", "", line)
    line = re.sub(r" at (\[[^\]]*\]|[\w=,]+)", "", line)
    line = re.sub(r"(is|than|are|compiled|expected|output|threads|call) -?(nan|inf|[\d.e+-]+)", r"\1 #", line)
    return re.sub(r"(-?\d[\d.e+-]*|nan|inf|%?\b[ogxvc]\d\w*|\b[yzabkm]\b)", "#", line)


class Case:
    def __init__(self, runner, seconds):
        self.runner, self.end, self.kind, self.tries = runner, time.time() + seconds, None, 0

    def fails(self, text):
        self.tries += 1
        line = failing_line(show(self.runner, text))
        return line is not None and (self.kind is None or kind_of(line) == self.kind)

    def time_left(self):
        return time.time() < self.end


# ---- parts of a test's text ----

def split(text):
    """Header, head of the graph, steps, its end."""
    at = text.index("graph @")
    lines, steps, depth, step = text[at:].splitlines(keepends=True), [], 0, ""
    head = ""
    while lines:
        head += lines.pop(0)
        if head.rstrip().endswith("{"):
            break
    while lines and not (lines[0].lstrip().startswith("return ") and not step):
        line = lines.pop(0)
        step += line
        depth += line.count("{") + line.count("(") - line.count("}") - line.count(")")
        if depth == 0:
            steps.append(step)
            step = ""
    return text[:at], head, steps, "".join(lines)


def joined(header, head, steps, end):
    return header + head + "".join(steps) + end


def made(step):
    """Name and type of what a step makes."""
    found = re.match(r"\s*%([\w.]+) = .*? : ([^\n]*)\n\Z", step, re.S) if "\n  }" not in step else re.match(r"\s*%([\w.]+) = .* : ([^\n]*)\n\Z", step, re.S)
    return (found[1], found[2]) if found else (None, None)


def reads(step):
    names = re.findall(r"%([\w.]+)", step)
    return names[1:] if re.match(r"\s*%[\w.]+ = ", step) else names


def without_dead(parts):
    header, head, steps, end = parts
    live, kept = set(re.findall(r"%([\w.]+)", end)), []
    for step in reversed(steps):
        name = re.match(r"\s*%([\w.]+) = ", step)
        if not name or name[1] in live:
            live.update(reads(step))
            kept.append(step)
    return header, head, kept[::-1], end


def untyped(text):
    """Without the types of results, which are inferred."""
    header, head, steps, end = split(text)
    head = re.sub(r"\) -> .*?(?=( where [^{]*)?\{\n\Z)", ") ", head, flags=re.S)
    steps = [re.sub(r"\) -> [^{\n]*\{", ") {", re.sub(r"\) : [^\n]*\n", ")\n", re.sub(r" sha=[0-9a-f]+", "", s))) for s in steps]
    return joined(header, head, steps, end)


def normal(case, text):
    """With types, without what is not read; None where it is no graph."""
    header = text[:text.index("graph @")]
    printed = show(case.runner, re.sub(r"^; run: .*$", "; run: verify", untyped(text), flags=re.M))
    if "graph @" not in printed or "error:" in printed:
        return None
    return joined(*without_dead(split(header + printed[printed.index("graph @"):])))


# ---- smaller ones ----

def fewer_outputs(text):
    header, head, steps, end = split(text)
    body = re.match(r"(\s*return )(.*?)(\n\}\n?.*)\Z", end, re.S)
    outputs = re.split(r", (?=%)", body[2])
    for k in range(len(outputs)):
        numbers = re.search(r"^; tolerances:(.*)$", header, re.M)
        one = header.replace(numbers[0], "; tolerances: " + (numbers[1].split() + ["0"] * len(outputs))[k]) if numbers else header
        yield joined(*without_dead((one, head, steps, body[1] + outputs[k] + body[3])))
    for k in range(len(outputs) if len(outputs) > 1 and not re.search(r"^; tolerances:", header, re.M) else 0):
        yield joined(*without_dead((header, head, steps, body[1] + ", ".join(outputs[:k] + outputs[k + 1:]) + body[3])))


def earlier_output(text):
    """What a step makes instead of the end."""
    header, head, steps, end = split(text)
    if end.count("%") != 1:
        return
    for step in steps:
        name, of = made(step)
        if name and not of.startswith("("):
            yield joined(*without_dead((header, head, steps, re.sub(r"%[\w.]+", "%" + name, end, count=1))))


def range_of(of, text):
    """Of inputs that stand for a step. Of integers, which may be indices: 0."""
    return "0.5 2 0.25 7" if re.match(r"c?[bf]\d|c\d|bf16", of) else "0 1 1 7" if of.startswith("bool") else "0 0 1 7" if "mode=" in text else "-3 3 1 7"


def step_as_input(text):
    header, head, steps, end = split(text)
    for k in reversed(range(len(steps))):
        name, of = made(steps[k])
        if not name or of.startswith("(") or "unique=true" in text or "sorted=true" in text:
            continue
        new = re.sub(r"\)( -> .*)?(?=( where [^{]*)?\{\n\Z)", lambda m: f", %i{name}: {of}){m[1] or ''}", head, count=1, flags=re.S)
        rest = [re.sub(rf"%{re.escape(name)}(?![\w.])", f"%i{name}", s) for s in steps[k + 1:]]
        last = re.sub(rf"%{re.escape(name)}(?![\w.])", f"%i{name}", end)
        yield joined(*without_dead((f"{header}; input i{name} = steps {range_of(of, text)}\n", new, steps[:k] + rest, last)))


def step_as_operand(text):
    header, head, steps, end = split(text)
    types = dict(re.findall(r"%([\w.]+): ([a-z]\w*\[[^\]]*\])", head)) | {n: t for n, t in map(made, steps) if n}
    for k in reversed(range(len(steps))):
        name, of = made(steps[k])
        for other in dict.fromkeys(reads(steps[k])) if name else ():
            if types.get(other) == of and "graph @" not in steps[k]:
                rest = [re.sub(rf"%{re.escape(name)}(?![\w.])", f"%{other}", s) for s in steps[k + 1:]]
                yield joined(*without_dead((header, head, steps[:k] + rest, re.sub(rf"%{re.escape(name)}(?![\w.])", f"%{other}", end))))


def fewer_inputs(text):
    header, head, steps, end = split(text)
    for name, of in re.findall(r"%([\w.]+): ([a-z]\w*\[[^\]]*\])", head):
        used = re.search(rf"%{re.escape(name)}(?![\w.])|-> \"{re.escape(name)}\"", "".join(steps) + end)
        if not used:
            new = re.sub(rf"%{re.escape(name)}: {re.escape(of)}[^,)]*(, ?\s*)?", "", head, count=1)
            yield joined(re.sub(rf"^; input {re.escape(name)} = .*\n", "", header, flags=re.M), re.sub(r",\s*\)", ")", new), steps, end)


def fewer_sizes(text):
    found = re.search(r"^; sizes: (.*)$", text, re.M)
    words = found[1].split() if found else []
    for w in words if len(words) > 1 else ():
        yield text.replace(found[0], f"; sizes: {w}")


def numbers_for_symbols(text):
    found = re.search(r"^; sizes: (\S+)$", text, re.M)
    for pair in found[1].split(",") if found else ():
        symbol, value = pair.split("=")
        header, head, steps, end = split(text)
        head = re.sub(rf"(, |(?<=where )){'-?'}[\d]+ <= {symbol} <= \d+", "", head)
        head = re.sub(r" where ,? ?(?=\{)", " ", re.sub(r" where , ", " where ", head))
        sizes = ",".join(p for p in found[1].split(",") if p != pair)
        header = header.replace(found[0] + "\n", f"; sizes: {sizes}\n" if sizes else "")
        yield header + re.sub(rf"(?<![\w%@\"]){symbol}(?![\w\"=:])", value, untyped(joined("", head, steps, end)))


def smaller_numbers(text):
    """Each number that is an extent somewhere, everywhere where extents stand; then at single places."""
    text = untyped(text)
    places = [m for m in re.finditer(r"(?<![\w.%#@])\d+(?![\w.\]]*\.)", text) if in_extent(text, m.start())]
    for v in sorted({int(m[0]) for m in places if int(m[0]) > 1}, reverse=True):
        for w in dict.fromkeys((1, 2, v // 2, v - 1)):
            if 0 < w < v:
                yield replaced(text, [m for m in places if int(m[0]) == v], w)
    for m in places if len(places) < 60 else ():
        for w in (0, 1):
            if int(m[0]) > w:
                yield replaced(text, [m], w)


def in_extent(text, at):
    """Is this a number of a type, or of an attribute that counts elements?"""
    line = text[text.rindex("\n", 0, at) + 1:at] if "\n" in text[:at] else text[:at]
    if line.startswith(";") and not re.match(r'; const "[^"]*": \w+\[[^\]]*\Z', line):
        return False
    return bool(re.search(rf"(\b(?:{SIZED})=(\[[^\]]*|[^,\[]*)|\b(?:[bfciu]\w*\d|bool)\[[^\]]*)\Z", line))


def replaced(text, places, value):
    for m in reversed(places):
        text = text[:m.start()] + str(value) + text[m.end():]
    return text


def bare_constants(text):
    """Constants of the header as inputs of the graph."""
    header, head, steps, end = split(text)
    for k, step in enumerate(steps):
        if " = const #" in step:
            yield from (t for t in step_as_input(text) if t.count("= const #") < text.count("= const #"))
            return


def reduce(runner, text, seconds=60):
    """The smallest that was found, and what it says. None where the test does not fail."""
    case = Case(runner, seconds)
    first = failing_line(show(runner, text))
    if first is None:
        return None, None
    case.kind = kind_of(first)
    typed = normal(case, text)
    text = typed if typed and case.fails(typed) else text
    gross = re.sub(r"^(?=; run:)", GROSS, text, count=1, flags=re.M)
    rough = case.fails(gross) and "tolerance:" not in text
    text = gross if rough else text
    ways = [fewer_sizes, fewer_outputs, *([earlier_output, step_as_input, step_as_operand] if rough or "tolerances:" not in text else []), fewer_inputs,
            numbers_for_symbols, smaller_numbers, *([bare_constants] if rough else [])]
    changed = True
    while changed and case.time_left():
        changed = False
        for way in ways:
            again = True
            while again and case.time_left():
                again = False
                for smaller in way(text):
                    if not case.time_left():
                        break
                    typed = normal(case, smaller)
                    if typed and len(typed) + typed.count("%") * 20 < len(text) + text.count("%") * 20 or (typed and way is not fewer_outputs and weight(typed) < weight(text)):
                        if case.fails(typed):
                            text, again, changed = typed, True, True
                            break
    return text, failing_line(show(runner, text))


def weight(text):
    """Of two texts the one that weighs less is simpler: it has fewer steps, fewer symbols, smaller numbers."""
    body = untyped(text[text.index("graph @"):])
    return 1000 * len(split(text)[2]) + 200 * len(re.findall(r"%[\w.]+: ", body)) + 50 * len(re.findall(r"\b[BNZ]\b", body)) + sum(min(int(v), 99) for v in re.findall(r"(?<![\w.%#@])\d+", body))


def signature(text, line):
    """What kind of failure, and the operators of the reduced graph."""
    _, _, steps, _ = split(text)
    return kind_of(line) + " | " + " ".join(re.findall(r"= ([a-z_][\w.]*)\(", "".join(steps)))


def main():
    text, line = reduce(sys.argv[1], pathlib.Path(sys.argv[2]).read_text(), float(sys.argv[3]) if len(sys.argv) > 3 else 60)
    if text is None:
        sys.exit("it does not fail")
    print(f"{text}; says: {line}\n; signature: {signature(text, line)}")


if __name__ == "__main__":
    main()
