"""What libweft exports: the functions of install/libweft.map, which are those that weft.h, weft_backend.h,
weft_graph.h, weft_op.h and weft_trace.h declare; of the LLVM back end's
module its table alone. exports.py SOURCE_ROOT LIBRARY.so LIBRARY.a [MODULE]"""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
shared, static, module = (sys.argv[2:] + [None])[:3]
bad = 0


def differ(what, expected, got):
    global bad
    for name in sorted(expected ^ got):
        bad += 1
        print(f"FAIL {what}: {name} is {'missing' if name in expected else 'not in install/libweft.map'}")


def defined(*args):
    out = subprocess.run(["nm", "--defined-only", "-P", *args], check=True, capture_output=True, text=True).stdout
    names = [line.split() for line in out.splitlines() if line and not line.endswith(":")]
    # the node of the version script is a symbol, too; what linkers and sanitizers add has names that are theirs
    return {n[0].split("@")[0] for n in names if n[1] != "A" and not n[0].startswith("_")}


def declared(header):
    text = re.sub(r"/\*.*?\*/", "", (root / "include" / header).read_text(), flags=re.S)
    text = re.sub(r"^static inline[^;{]*\{.*?^\}", "", text, flags=re.S | re.M)
    return set(re.findall(r"^(?!typedef|#|\s)[^();=]*\b(weft_\w+)\(", text, re.M))


wanted = set(re.findall(r"^\t(\w+);$", (root / "install/libweft.map").read_text(), re.M))
assert len(wanted) > 40 and all(name.startswith("weft_") for name in wanted), wanted
differ("the headers", wanted, declared("weft.h") | declared("weft_backend.h") | declared("weft_comm.h") | declared("weft_graph.h") | declared("weft_op.h") | declared("weft_trace.h"))
differ(shared, wanted, defined("-D", shared))
differ(static, wanted, defined("-g", static))
if module:
    got = defined("-D", module)
    assert len(got) == 1, f"{module} exports {sorted(got)[:20]}"
if not re.search(r"SONAME.*\[libweft\.so\.\d+\]", subprocess.run(["readelf", "-d", shared], check=True, capture_output=True, text=True).stdout):
    bad += 1
    print(f"FAIL {shared}: no versioned soname")
sys.exit(bad != 0)
