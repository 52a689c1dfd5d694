"""The manual page and --help name the same options as the sources take, command by command: manual.py WEFT SOURCE_ROOT"""
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


# What all commands that read a model take is described once, in front of them.
TAKEN = re.compile(r'"(-[^"]+)", OPT_')
shared = set(TAKEN.findall((root / "tools/tool.h").read_text()))
differ("docs/weft.1, DESCRIPTION", shared, headings(sections["DESCRIPTION"]))
for command in ("compile", "run", "check", "bench", "show", "ops", "doctor"):
    source = next(root.glob(f"tools/**/{command}.c")).read_text()
    taken = set(TAKEN.findall(source))
    assert taken, command
    all_read = shared if "LOAD_OPTIONS" in source else set()
    helped = subprocess.run([weft, command, "--help"], capture_output=True, text=True, check=True).stdout
    lines = [line for line in helped.splitlines() if line.startswith("  -")]
    named = {n for line in lines for n in OPTION.findall(re.split(r"\s{2,}", line.strip())[0])}
    differ(f"weft {command} --help", taken | all_read, named)
    differ(f"docs/weft.1, {command}", taken, headings(sections[f"WEFT {command.upper()}"]))

# What is said of an option stands at that option.
for command, option, said in (("check", "--wrt", "default: what the reference has"), ("run", "--wrt", "default: inputs")):
    helped = subprocess.run([weft, command, "--help"], capture_output=True, text=True, check=True).stdout
    paragraphs = re.split(r"\n(?=  -)", helped)
    where = [re.search(r"-[\w-]+", p)[0] for p in paragraphs if said in " ".join(p.split())]
    if where != [option]:
        bad += 1
        print(f"FAIL weft {command} --help: {said!r} stands at {where}, expected {option}")

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
