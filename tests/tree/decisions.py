"""What passes, transforms and lowering decide by the name of an operator: decisions.py SOURCE.

A fact that an operator has stands in its block (ir/op/op.h), where the author of a new one states it. What is left here are
comparisons that no block can state: an identity names the operators that it is about. Every OP_name in passes/, transform/ and
lower/ counts, in whatever form (==, case, a question with it for an argument, a list of several), but for
  - arguments of functions that build nodes and expressions, and of op_arg_index, which names an argument of a schema;
  - the first operator of a rule of simplify (a row of a table of Rule) and of a kernel's function (a row of RootFn): how these are found.
Each of these is on a line of decisions.txt, with the reason why it is no fact of a block:
FILE FUNCTION: OPERATORS: REASON.
Other rooms that ask operators by name are counted. A number of MOST may fall, not rise."""
import collections
import glob
import os
import re
import sys

# By room, rooms in it included: comparisons with operators.
MOST = {"passes": 28, "transform": 33, "lower": 5, "codegen": 28, "driver": 28, "frontend": 53, "ir": 66}
LISTED = ("passes", "transform", "lower")
BUILDS = {"b_node", "b_bin", "b_un", "b_bin_scalar", "graph_add", "kx_op", "op_arg_index", "b_call"}
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


def reasons(path):
    """By file and function: the operators and the reason."""
    with open(path, encoding="utf-8") as f:
        rows = [line.rstrip("\n").split(": ", 2) for line in f]
    assert all(len(r) == 3 and r[2] for r in rows), "expected lines FILE FUNCTION: OPERATORS: REASON"
    assert len({r[0] for r in rows}) == len(rows), "a function has two lines"
    return {tuple(r[0].split()): (r[1].split(), r[2]) for r in rows}


def main():
    listed = reasons(os.path.join(os.path.dirname(os.path.abspath(__file__)), "decisions.txt"))
    os.chdir(sys.argv[1])
    found, counts = collections.defaultdict(list), collections.Counter()
    for path in sorted(p for room in MOST for p in glob.glob(f"{room}/**/*.[ch]", recursive=True)):
        room = path.partition("/")[0]
        with open(path, encoding="utf-8") as f:
            for where, op in decisions(f.read()):
                counts[room] += 1
                if room in LISTED:
                    found[path, where].append(op)
    bad = False
    for at in sorted(set(found) | set(listed)):
        ops, said = found.get(at, []), listed.get(at, ([], ""))[0]
        if ops != said:
            bad = True
            print(f"{at[0]} {at[1]}: compares with {' '.join(ops) or 'none'}, decisions.txt says {' '.join(said) or 'nothing'}")
    for room, most in MOST.items():
        if counts[room] != most:
            bad = True
            print(f"{room}: {counts[room]} comparisons with operators, expected {most}{', which may fall: write the new number' if counts[room] < most else ''}")
    print(f"{sum(counts.values())} comparisons with operators")
    return bad


if __name__ == "__main__":
    sys.exit(main())
