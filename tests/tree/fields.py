"""No struct of codegen/ has more than 16 fields: fields.py ROOT
A struct with many fields is the state of several trades. A field is a declarator: `int a, b[4];` are two. A struct or
union inside counts as one field if it has a name, and is counted as a struct of its own; the members of one without a
name are fields of the struct around it. ARRAY(T) is one type. What is counted: every `struct ... { }` in C files and
headers, with or without a name.
"""
import pathlib
import re
import sys

MOST = 16
# Structs that have more, and why they may: FILE:NAME -> fields. May fall, not rise.
LEFT = {}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.M)
OPENS = re.compile(r"\b(struct|union)\b(?:\s+(\w+))?\s*\{")
KEPT = "typedef struct T { int a, b[2][3]; const char *c; union { int d, e; }; struct { int x, y, z; } f; void (*g)(int, int); ARRAY(int) h; enum { P, Q } i : 3; } T;"


def end_of(text, begin):
    """The position behind the brace that closes the one at begin."""
    depth = 0
    for k in range(begin, len(text)):
        depth += (text[k] == "{") - (text[k] == "}")
        if not depth:
            return k + 1
    return len(text)


def declarators(text):
    """Of one declaration without its semicolon: commas outside of brackets separate them."""
    depth, n = 0, 1
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        n += c == "," and not depth
    return n


def count(body):
    """Fields of what stands between the braces of a struct."""
    n = 0
    while body.strip():
        m = OPENS.match(body.lstrip())
        if m:
            body = body.lstrip()
            inner = body[m.end():end_of(body, m.end() - 1) - 1]
            body = body[m.end() + len(inner) + 1:]
            names, _, body = body.partition(";")
            n += declarators(names) if names.strip() else count(inner)
            continue
        depth, end = 0, 0
        while end < len(body) and (depth or body[end] != ";"):
            depth += (body[end] in "([{") - (body[end] in ")]}")
            end += 1
        n += declarators(body[:end]) if body[:end].strip() else 0
        body = body[end + 1:]
    return n


def structs(text):
    """(name or line, fields) of each struct."""
    text = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    text = DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    for m in OPENS.finditer(text):
        if m[1] == "struct":
            end = end_of(text, m.end() - 1)
            after = re.match(r"\s*\*?(\w+)", text[end:])
            yield m[2] or (after[1] if after else f"line {text.count(chr(10), 0, m.start()) + 1}"), count(text[m.end():end - 1])


def main():
    # the counter itself: nine fields, and the struct inside has three
    if list(structs(KEPT)) != [("T", 9), ("f", 3)]:
        sys.exit(f"the counter is wrong: {list(structs(KEPT))}")
    root = pathlib.Path(sys.argv[1])
    bad, total = [], 0
    for path in sorted((root / "codegen").rglob("*.[ch]")):
        for name, n in structs(path.read_text()):
            total += 1
            key = f"{path.relative_to(root)}:{name}"
            if n > LEFT.get(key, MOST):
                bad.append(f"{key} has {n} fields, at most {LEFT.get(key, MOST)} are expected")
            elif key in LEFT and n < LEFT[key]:
                bad.append(f"{key} has {n} fields: lower the number in {pathlib.Path(__file__).name}")
    print(*bad, f"{total} structs", sep="\n")
    return 1 if bad or total < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
