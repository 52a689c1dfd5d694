"""Lines are short: of Markdown at most 120 columns, of C at most 100, a tab being 8.

lines.py ROOT                  checks; exits with 1 if a line of Markdown is longer, or if lines of C that are longer are more than recorded
lines.py ROOT --wrap FILE...   wraps the long comments of these C files, and lays out what has longer lines of code: declarations and
                               statements by clang-format, in tables, which are laid out by hand, strings
"""
import pathlib
import re
import shutil
import subprocess
import sys

MARKDOWN, COMMENT, CODE, TAB = 120, 100, 100, 8
# Comments that are longer, by folder: may fall, not rise.
LEFT = {}
# Lines of code that are longer: rows of tables, one a line, and two files of ops/prim that would have more than 900 lines.
LEFT_CODE = {"codegen/print": 10, "codegen/print/c": 3, "codegen/print/cuda": 1, "frontend/pt2": 5, "ir/loop": 54,
             "ops/aten": 24, "ops/onnx": 1, "ops/prim": 95, "ops/user": 7, "ir/target": 97,
             "runtime": 6, "tests/unit": 120, "tools": 1}
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
TOKEN = re.compile(r"""/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)


def width(line):
    return len(line.expandtabs(TAB))


def comments(text):
    """(begin, end) of each comment."""
    return [m.span() for m in TOKEN.finditer(text) if m[0].startswith("/*")]


def long_lines(text, begin, end):
    """The numbers of the comment's lines that end behind the last column, counted from the comment's first line."""
    start = text.rfind("\n", 0, begin) + 1
    lines = text[start:end].split("\n")
    return [k for k, line in enumerate(lines) if width(line) > COMMENT]


# ---- wrapping ----

# A line that is an item, a drawing or a table begins anew: it is not filled up with words of the line before.
APART = re.compile(r"\s*$|\s{2,}\S|\s*([-*+]|\d+\.|[a-z]\))\s|.*\s{3,}\S|\s*[|+]|\s*----")
# What stands in front of an item's text: its lines that follow begin where the text does.
ITEM = re.compile(r"\s*- |\s*\S[^\n]*?\s{2,}(?=\S)")


def fill(words, first, rest):
    """Lines of words; `first` and `rest` stand in front of them. The last one has room for the end of the comment."""
    lines, line = [], first
    empty = True
    for k, word in enumerate(words):
        room = 3 if k == len(words) - 1 else 0
        if not empty and width(line + " " + word) + room > COMMENT:
            lines.append(line)
            line, empty = rest, True
        line += word if empty else " " + word
        empty = False
    return lines + [line]


def wrap_alone(indent, body):
    """The text between /* and */ of a comment that has its lines for itself."""
    lines = body.rstrip().split("\n")
    lines = [lines[0].strip()] + [re.sub(r"^[ \t]*\*?", "", line).rstrip() for line in lines[1:]]
    lines[1:] = [line[1:] if line[:1] == " " else line for line in lines[1:]]
    out, k = [], 0
    while k < len(lines):
        front = indent + ("/* " if not out else " * ")
        last = k == len(lines) - 1
        item = ITEM.match(lines[k])
        if width(front + lines[k]) + (3 if last else 0) <= COMMENT or (APART.match(lines[k]) and not item):
            out.append((front + lines[k]).rstrip())
            k += 1
            continue
        mark = item[0] if item else ""
        words = lines[k][len(mark):].split()
        k += 1
        while k < len(lines) and (re.match(" " * len(mark) + r"\S", lines[k]) if item else not APART.match(lines[k])):
            words += lines[k].split()
            k += 1
        out += fill(words, front + mark, indent + " * " + " " * len(mark))
    return "\n".join(out) + " */"


def wrap_behind(code, body):
    """The line of code with its comment behind it, or above it where there is little room behind; None: neither."""
    words = [w for line in body.split("\n") for w in re.sub(r"^[ \t]*\*? ?", "", line).split()]
    indent = re.match(r"\s*", code)[0]
    column = width(code) + 3
    if COMMENT - column >= 36 or (code.strip().startswith("}") and COMMENT - column >= 20):
        rest = indent + " " * (column - width(indent))
        return "\n".join(fill(words, code + "/* ", rest)) + " */"
    if code.strip().startswith("}") or code.strip().startswith("#"):
        return None
    return "\n".join(fill(words, indent + "/* ", indent + " * ")) + " */\n" + code.rstrip()


def wrap(text):
    for begin, end in reversed(comments(text)):
        if not long_lines(text, begin, end):
            continue
        start = text.rfind("\n", 0, begin) + 1
        stop = text.find("\n", end)
        code, body = text[start:begin], text[begin + 2:end - 2]
        if text[end:stop].strip():
            continue
        new = wrap_behind(code, body) if code.strip() else wrap_alone(code, body)
        if new is not None:
            text = text[:start] + new + text[stop:]
    return text


# ---- code ----

def front(columns):
    return "\t" * (columns // TAB) + " " * (columns % TAB)


def places(text, first, last):
    """Where a string may be divided, by how well: behind `; `, behind `, ` outside of brackets, behind a blank."""
    depth = 0
    for i in range(first, last):
        depth += (text[i] in "[(") - (text[i] in "])")
        if text[i] == " " and text[i - 1] != "\\" and i >= first + 8:
            yield (2 if text[i - 1] == ";" else 1 if text[i - 1] == "," and depth <= 0 else 0), i + 1


def divided(line, behind):
    """A line with a string that is too long, as lines; the last takes in the line behind, where that goes on with the string: then
    the second result is true. None where there is no such string."""
    out = []
    while width(line) > CODE:
        found = [m for m in STRING.finditer(line) if width(line[:m.start()]) < CODE - 20 and width(line[:m.end()]) > CODE - 2]
        cuts = [(good, at) for m in found[-1:] for good, at in places(line, m.start(), m.end() - 1) if width(line[:at]) < CODE]
        if not cuts:
            return None, False
        start, room = found[-1].start(), max(at for _, at in cuts)
        at = max((c for c in cuts if room - c[1] <= 30), default=None)[1]
        out.append(line[:at] + '"')
        line = front(width(line[:start])) + '"' + line[at:]
    m = re.match(r'(\s*)(".*)$', behind or "")
    if m and line.endswith('"') and width(m[1]) == width(re.match(r"\s*", line)[0]) and out:
        joined = line[:-1] + m[2][1:]
        if width(joined) <= CODE:
            return out + [joined], True
        more, _ = divided(joined, None)
        if more and len(more) == 2:
            return out + more, True
    return out + [line], False


def lay_out(path):
    """Shortens the lines of code of a file."""
    lines = path.read_text().split("\n")
    out, ranges, table = [], [], None
    taken = False
    for k, line in enumerate(lines):
        if taken:
            taken = False
            continue
        if table and line.startswith("}"):
            table = None
        elif re.match(r"[A-Za-z]", line) and re.sub(r"/\*.*\*/", "", line).rstrip().endswith("{"):
            table = "fields" if re.match(r"(static )?(typedef )?(struct|enum|union)\b", line) and "=" not in line else "table"
        new = None
        if width(line) > CODE:
            if table == "table":
                new, taken = divided(line, lines[k + 1] if k + 1 < len(lines) else None)
            else:
                ranges.append(len(out) + 1)
        out += new or [line]
    path.write_text("\n".join(out))
    if ranges:
        subprocess.run(["clang-format", "-i", *[f"--lines={k}:{k}" for k in ranges], str(path)], check=True)


# ---- the check ----

def files(root, *patterns):
    if not shutil.which("git") or subprocess.run(["git", "-C", root, "rev-parse"], capture_output=True).returncode:
        print("skipped: without git and its folder sources do not say which files are theirs")
        sys.exit(77)
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", *patterns], capture_output=True, text=True, check=True).stdout
    return [p for p in (root / name for name in listed.splitlines()) if p.exists()]


def check(root):
    bad = 0
    for path in files(root, "*.md"):
        for k, line in enumerate(path.read_text().split("\n")):
            if len(line) > MARKDOWN:
                bad += 1
                print(f"FAIL {path.relative_to(root)}:{k + 1}: {len(line)} columns")
            if line.startswith(("<<<<<<< ", ">>>>>>> ")):
                bad += 1
                print(f"FAIL {path.relative_to(root)}:{k + 1}: what git leaves where a merge needs a hand")
    found, code = {}, {}
    for path in files(root, "*.c", "*.h", ":!tests/golden", ":!tests/text", ":!tests/help"):
        text, folder = path.read_text(), str(path.parent.relative_to(root))
        name = path.relative_to(root)
        inside = {text.count("\n", 0, begin) + k + 1 for begin, end in comments(text) for k in long_lines(text, begin, end)}
        found.setdefault(folder, []).extend(f"{name}:{k}" for k in sorted(inside))
        long = {k + 1 for k, line in enumerate(text.split("\n")) if width(line) > CODE}
        code.setdefault(folder, []).extend(f"{name}:{k}" for k in sorted(long - inside))
    return bad + compare(found, LEFT, "comments", COMMENT) + compare(code, LEFT_CODE, "code", CODE)


def compare(found, recorded, what, most):
    """How many folders have more long lines than are recorded."""
    bad = 0
    for folder, lines in found.items():
        n = recorded.get(folder, 0)
        if len(lines) > n:
            bad += 1
            print(f"FAIL {folder}: {len(lines)} lines of {what} are longer than {most} columns, expected at most {n}: " + " ".join(lines[:20]))
        elif len(lines) < n:
            print(f"{folder}: {len(lines)} lines of {what} are left of {n}: lower the number in {__file__}")
    return bad


root = pathlib.Path(sys.argv[1])
if sys.argv[2:3] == ["--wrap"]:
    for name in sys.argv[3:]:
        path = pathlib.Path(name)
        old = path.read_text()
        new = wrap(old)
        if new != old:
            path.write_text(new)
        for _ in range(3):  # what follows a line that became two can be laid out then
            if any(width(line) > CODE for line in path.read_text().split("\n")):
                lay_out(path)
    sys.exit(0)
sys.exit(check(root) != 0)
