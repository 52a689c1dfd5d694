"""The manual page and --help-all name the same options as the sources take, with the same values, command by command; --help is the short
part of it that fits a screen, in the same columns for all commands: manual.py WEFT SOURCE_ROOT"""
import pathlib
import re
import subprocess
import sys

weft, root = sys.argv[1], pathlib.Path(sys.argv[2])
page = (root / "docs/weft.1").read_text()
text = re.sub(r"\\-", "-", page)
sections = dict(re.findall(r"^\.SH ([A-Z ]+)\n(.*?)(?=^\.SH |\Z)", text, re.M | re.S))
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-[a-z])(?![\w-])")
bad = 0


def differ(what, expected, got):
    global bad
    for name in sorted(set(expected) ^ set(got)):
        bad += 1
        print(f"FAIL {what}: {name} is {'missing' if name in expected else 'there, but not taken'}")


def headings(section):
    """The options that paragraphs of a section are about: the line after .TP; and what its last paragraph lists."""
    lines = re.findall(r"^\.TP\n(.*)$", section, re.M)
    return {name for line in lines for name in OPTION.findall(re.sub(r"\\f.|\"", " ", line))}


def helped(*args):
    return subprocess.run([weft, *args], capture_output=True, text=True, check=True).stdout


def check(ok, what):
    global bad
    if not ok:
        bad += 1
        print(f"FAIL {what}")


def rows(text):
    """Options and what they take: of "  --jobs N, -j N   text" {"--jobs": "N", "-j": "N"}."""
    found = {}
    for line in text.splitlines():
        for part in re.split(r"\s{2,}", line.strip())[0].split(", ") if line.startswith("  -") else ():
            option, _, value = part.replace("[=", " =").replace("]", "").partition(" ")
            found[option] = value
    return found


def values(section):
    """The same of the headings of a section of the page."""
    found = {}
    for line in re.findall(r"^\.TP\n\.\w+ (.*)$", section, re.M):
        line = " ".join(re.sub(r"\\f.|\"", " ", line).split())
        for part in re.split(r" ?, (?=-)", re.sub(r" \[= (\w+) ?\]", r" =\1", line).replace(" | ", "|")):
            option, _, value = part.partition(" ")
            found[option] = value
    return found


def columns(command, text):
    """Options begin in column 2, what is said of them in column 26; lines end before column 80."""
    for line in text.splitlines():
        check(len(line) <= 80, f"weft {command}: a line of {len(line)} columns: {line}")
        if line.startswith("  "):
            row = re.fullmatch(r"  (-.*?)(?:( {2,})(\S.*))?| {26}\S.*", line)
            check(row and (not row[3] or row.start(3) == 26), f"weft {command}: not in its column: {line}")


# What all commands that read a model take is described once, in front of them.
TAKEN = re.compile(r'"(-[^"]+)", OPT_')
shared = set(TAKEN.findall((root / "tools/tool.h").read_text()))
step = set(TAKEN.findall((root / "tools/train/step.h").read_text()))  # which `weft compile` describes
differ("docs/weft.1, DESCRIPTION", shared, headings(sections["DESCRIPTION"]))
for command in ("compile", "run", "check", "bench", "train", "show", "report", "bisect", "ops", "doctor", "quantize"):
    source = next(root.glob(f"tools/**/{command}.c")).read_text()
    taken = set(TAKEN.findall(source))
    assert taken, command
    all_read = (shared if "LOAD_OPTIONS" in source else set()) | (step if "STEP_OPTIONS" in source else set())
    own = taken | (step if command == "compile" else set())
    full, short = helped(command, "--help-all"), helped(command, "--help")
    named = rows(full)
    differ(f"weft {command} --help-all", taken | all_read, set(named))
    differ(f"docs/weft.1, {command}", own, headings(sections[f"WEFT {command.upper()}"]))
    on_page = values(sections["DESCRIPTION"]) | values(sections[f"WEFT {command.upper()}"])
    on_page = values(sections["WEFT COMPILE"]) | on_page if command == "train" else on_page
    for option, value in named.items():
        check(on_page.get(option) == value, f"{option} of weft {command} takes {value!r}, in docs/weft.1 {on_page.get(option)!r}")
    columns(command, full)
    columns(command, short)
    few = rows(short)
    check(few.items() <= named.items(), f"weft {command} --help has what --help-all has not")
    check(2 <= len(few) <= 7, f"weft {command} --help has {len(few)} options")
    check(len(short.splitlines()) <= 40, f"weft {command} --help has {len(short.splitlines())} lines")
    hint = f"weft {command} --help-all"
    check((hint in short) == (len(full) > len(short)) and hint not in full, f"weft {command} --help does not name --help-all")

# What is said of an option stands at that option.
for command, option, said in (("check", "--wrt", "default: what the reference has"), ("run", "--wrt", "default: inputs")):
    paragraphs = re.split(r"\n(?=  -)", helped(command, "--help-all"))
    where = [re.search(r"-[\w-]+", p)[0] for p in paragraphs if said in " ".join(p.split())]
    if where != [option]:
        bad += 1
        print(f"FAIL weft {command} --help-all: {said!r} stands at {where}, expected {option}")

for section in ("EXAMPLES", "FILES", "EXIT STATUS", "ENVIRONMENT"):
    if section not in sections:
        bad += 1
        print(f"FAIL docs/weft.1: no section {section}")
# What the environment changes is listed.
for path in [*root.glob("driver/*/*.c"), *root.glob("tools/**/*.c"), *root.glob("runtime/*.c")]:
    source = path.read_text()
    names = re.findall(r'getenv\("(\w+)"\)', source)
    names += [v for k in re.findall(r"getenv\(([A-Z]+)\)", source) for v in re.findall(rf'#define {k} "(\w+)"', source)]
    for name in names:
        if name != "HOME" and name not in sections["ENVIRONMENT"]:
            bad += 1
            print(f"FAIL docs/weft.1: {path.name} reads ${name}, which ENVIRONMENT does not name")
sys.exit(bad != 0)
