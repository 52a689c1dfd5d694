"""Cases of PyTorch's database by their derivatives or batches: transforms.py WEFT FOLDER MODE BACKEND [OPERATOR...]
MODE is vjp, jvp or vmap. The cases are those of tests/expected/transforms.txt with the mode's letter; those known to fail are in
tests/expected/MODE.txt, a list like those of expected.py, which judges both. --now prints the list that fits today; --cases the
cases that fail, with what weft says. With names of operators only their cases are run, and nothing is said about others. The
last line is `MODE BACKEND: N of N passed, P %`."""
import argparse
import pathlib
import sys

import expected

LETTERS = {"vjp": "v", "jvp": "j", "vmap": "m"}
LISTS = pathlib.Path(__file__).parent.parent / "expected"


def cases_of(mode, operators):
    """The names OPERATOR/CASE that count in a mode."""
    for line in (LISTS / "transforms.txt").read_text().splitlines():
        operator, colon, cases = line.partition("#")[0].partition(": ")
        if colon and (not operators or operator in operators):
            yield from (f"{operator}/{name}" for name, _, letters in (c.partition("=") for c in cases.split())
                        if LETTERS[mode] in letters)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("weft", type=lambda s: pathlib.Path(s).resolve())
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("mode", choices=LETTERS)
    p.add_argument("backend")
    p.add_argument("operator", nargs="*")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--target", help="of the compiled kernels")
    p.add_argument("--now", action="store_true", help="print the list that fits")
    p.add_argument("--cases", action="store_true", help="print the cases that fail")
    args = p.parse_args()
    if not args.folder.is_dir():
        return 77
    wanted = set(cases_of(args.mode, args.operator))
    if not wanted:
        sys.exit(f"no case of {' '.join(args.operator)} counts in {args.mode}")
    ran = expected.run(args.weft, args.folder, args.backend, args.jobs, args.operator,
                       ["--mode", args.mode, *(["--target", args.target] if args.target else [])])
    found = {name: ran.get(name, "was not run") for name in wanted}
    if args.now:
        expected.print_now({args.backend: found})
        return 0
    for name in sorted(found, key=expected.natural) if args.cases else ():
        if found[name]:
            print(f"{name}: {found[name]}")
    path = LISTS / f"{args.mode}.txt"
    listed = expected.read_list(path, args.backend) if path.exists() else {}
    wrong = list(expected.judge(args.backend, found, {n: why for n, why in listed.items() if not args.operator or n in wanted}))
    if not args.cases:
        print(*wrong, sep="\n")
    passed = sum(why is None for why in found.values())
    print(f"{args.mode} {args.backend}: {passed} of {len(found)} passed, {100 * passed / len(found):.2f} %")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
