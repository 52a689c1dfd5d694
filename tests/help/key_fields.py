"""Lists the fields of a kernel's structs for tests/unit/codegen_key.c: key_fields.py OUTPUT KERNEL_HEADER
Writes a macro KEY_FIELDS_<STRUCT>(FIELD) for each struct, which calls FIELD(STRUCT, NAME, HOW) for each field. HOW is how another value is
made: VALUE (a number), COUNT (of elements), SYM, SYMS (a pointer to expressions), ELEMENTS (an array), LIST (ARRAY), BUFFER, or INSIDE for
a struct that has fields of its own. A field of a type that is not known here is an error: whoever adds one says how it is changed."""
import pathlib
import re
import sys

STRUCTS = ("Kernel", "Axis", "Stage", "StageStore", "StageReduce", "StageRunning", "StageSort", "StageScatter", "StageCheck", "StageFactor",
           "StageFft", "ValueVar", "KxData", "Buffer", "Layout", "LayoutDim")
VALUES = {"bool", "double", "uint32_t", "int64_t", "DType", "Op", "Kx", "KxKind", "StageKind", "ReduceKind", "FactorKind", "BufKind", "union"}
OTHERS = {"Sym": "SYM", "BufId": "BUFFER", "const Sym *": "SYMS", "const char *": "TEXT", "SourceLines": "INSIDE", "const Graph *": "TEXT",
          "Layout": "INSIDE"}


def how(struct, type_, name, array):
    if array:
        return "INSIDE" if type_ in STRUCTS else "ELEMENTS"
    if type_ in STRUCTS:
        return "INSIDE"
    if type_.startswith("ARRAY"):
        return "LIST"
    if type_ in ("uint8_t", "uint32_t") and (name == "rank" or re.fullmatch(r"n[a-z]*", name)):
        return "COUNT"
    if type_ in VALUES:
        return "VALUE"
    if type_ not in OTHERS:
        sys.exit(f"{struct}.{name}: how is a {type_} changed? tests/help/key_fields.py")
    return OTHERS[type_]


def fields(text, struct):
    """(type, name, is an array) of each field."""
    found = re.search(rf"typedef struct(?: {struct})? \{{((?:[^{{}}]|\{{[^{{}}]*\}})*)\}} {struct};", text)
    if not found:
        sys.exit(f"no struct {struct}")
    # a union without a name has structs with fields of their own
    body = re.sub(r"union \{([^}]*)\}\s*;", r"\1", found[1])
    for declaration in re.sub(r"union \{[^}]*\}", "union ", body).split(";"):
        if not declaration.strip():
            continue
        type_, names = re.fullmatch(r"\s*((?:const )?\w+(?:\([^)]*\))?)\s*(.*)", declaration.strip(), re.S).groups()
        for name in names.split(","):
            stars, name, array = re.fullmatch(r"\s*(\**)(\w+)(\[.*\])?\s*", name).groups()
            yield f"{type_} {stars}".strip(), name, bool(array)


def main():
    output, header = sys.argv[1:]
    text = re.sub(r"/\*.*?\*/", "", pathlib.Path(header).read_text(), flags=re.S)
    lines = []
    for struct in STRUCTS:
        calls = [f"FIELD({struct}, {name}, {how(struct, t, name, array)})" for t, name, array in fields(text, struct)]
        lines += [f"#define KEY_FIELDS_{struct}(FIELD) \\", " \\\n".join(f"\t{c}" for c in calls), ""]
    pathlib.Path(output).write_text("\n".join(lines))


if __name__ == "__main__":
    main()
