"""What passes, transforms and lowering decide by the name of an operator: decisions.py SOURCE [--list].

A fact that an operator has stands in its block (ir/ops/op.h), where the author of a new one states it. What is left here are
comparisons that no block can state: an identity names the operators that it is about. Every OP_name in passes/, transform/ and
lower/ counts, in whatever form (==, case, a question with it for an argument, a list of several), but for
  - arguments of functions that build nodes and expressions, and of op_arg_index, which names an argument of a schema;
  - the first operator of a rule of simplify (a row of a table of Rule) and of a kernel's function (a row of RootFn): how these are found.
There are at most MOST, and each is on a line of decisions.txt, with the reason: FILE FUNCTION: OPERATORS: REASON."""
import collections
import glob
import os
import re
import sys

MOST = 73
ROOMS = ("passes", "transform", "lower")
BUILDS = {"b_node", "b_bin", "b_un", "b_bin_scalar", "graph_add", "kx_op", "op_arg_index"}
TABLES = re.compile(r"\b(?:Rule|RootFn) \w+\[\w*\] = \{.*?^\};", re.M | re.S)
SKIPPED = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)+\'', re.S)


def decisions(text):
    """Pairs of a function or table of the file and an operator."""
    text = TABLES.sub("", SKIPPED.sub("", text))
    where, depth, calls = "", 0, []  # calls: the function of each open parenthesis
    last = ""
    for token in re.finditer(r"\w+|==|!=|\S", text):
        word = token.group()
        if word in "{}":
            depth += 1 if word == "{" else -1
        elif word == "(":
            calls.append(last)
            where = last if not depth and len(calls) == 1 else where
        elif word == ")":
            calls.pop()
        elif word == "[" and not depth:
            where = last
        elif re.fullmatch(r"OP_[a-z]\w*", word) and word != "OP_none":
            if last in ("==", "!=") or not calls or calls[-1] not in BUILDS:
                yield where, word[3:]
        elif word == "op_find":
            yield where, word
        last = word


def main():
    source = sys.argv[1]
    os.chdir(source)
    found = collections.defaultdict(list)
    for room in ROOMS:
        for path in sorted(glob.glob(f"{room}/*.[ch]")):
            with open(path, encoding="utf-8") as f:
                for where, op in decisions(f.read()):
                    found[path, where].append(op)
    count = sum(map(len, found.values()))
    if "--list" in sys.argv:
        for (path, where), ops in found.items():
            print(f"{path} {where}: {' '.join(ops)}: ")
    print(f"{count} comparisons with operators, at most {MOST}")
    return count > MOST


if __name__ == "__main__":
    sys.exit(main())
