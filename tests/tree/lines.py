"""Lines that a reader reads are short: of Markdown at most 120 columns, of comments in C at most 100, a tab being 8.

lines.py ROOT                  checks; exits with 1 if a line of Markdown is longer, or if comments that are longer are more than recorded
lines.py ROOT --wrap FILE...   wraps the long comments of these C files, and no code
"""
import pathlib
import re
import subprocess
import sys

MARKDOWN, COMMENT, TAB = 120, 100, 8
# Comments that are longer, by folder: may fall, not rise.
LEFT = {"codegen/cpu": 5, "lower": 34, "passes": 16, "transform": 92}
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


# ---- the check ----

def files(root, *patterns):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", *patterns], capture_output=True, text=True, check=True).stdout
    return [p for p in (root / name for name in listed.splitlines()) if p.exists()]


def check(root):
    bad = 0
    for path in files(root, "*.md"):
        for k, line in enumerate(path.read_text().split("\n")):
            if len(line) > MARKDOWN:
                bad += 1
                print(f"FAIL {path.relative_to(root)}:{k + 1}: {len(line)} columns")
    found = {}
    for path in files(root, "*.c", "*.h", ":!tests/golden"):
        text, folder = path.read_text(), str(path.parent.relative_to(root))
        for begin, end in comments(text):
            for k in long_lines(text, begin, end):
                found.setdefault(folder, []).append(f"{path.relative_to(root)}:{text.count(chr(10), 0, begin) + k + 1}")
    for folder, lines in found.items():
        if len(lines) > LEFT.get(folder, 0):
            bad += 1
            print(f"FAIL {folder}: {len(lines)} lines of comments are longer than {COMMENT} columns, expected at most {LEFT.get(folder, 0)}: "
                  + " ".join(lines[:20]))
    for folder, most in LEFT.items():
        if len(found.get(folder, [])) < most:
            print(f"{folder}: {len(found.get(folder, []))} lines are left of {most}: lower the number in {__file__}")
    return bad


root = pathlib.Path(sys.argv[1])
if sys.argv[2:3] == ["--wrap"]:
    for name in sys.argv[3:]:
        path = pathlib.Path(name)
        old = path.read_text()
        new = wrap(old)
        if new != old:
            path.write_text(new)
    sys.exit(0)
sys.exit(check(root) != 0)
