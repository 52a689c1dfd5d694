"""What scripts/quick.sh runs takes at most 90 seconds on two processors: quick.py BUILD [--measure]
Each test of the suites unit and file that is not in the suite `long` has a line in tests/tree/quick.txt with the seconds of processor time
that it took; their sum is at most LIMIT, so that nothing is timed here. --measure runs the tests that have no line, one after the other,
and writes theirs (all: after the file was emptied)."""
import json
import os
import pathlib
import resource
import subprocess
import sys

LIMIT = 2 * 90 * 0.9  # processors, seconds, and what waits for the last test
TABLE = pathlib.Path(__file__).with_suffix(".txt")


def quick_tests(build):
    tests = json.loads((build / "meson-info/intro-tests.json").read_text())
    suites = lambda t: {s.rpartition(":")[2] for s in t["suite"]}
    return {t["name"]: t for t in tests if suites(t) & {"unit", "file"} and not suites(t) & {"long", "conformance"}}


def recorded():
    rows = [line.rsplit(" ", 1) for line in TABLE.read_text().splitlines()] if TABLE.exists() else []
    return {name: float(seconds) for name, seconds in rows}


def measured(test):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(test["cmd"], env={**os.environ, **test["env"]}, cwd=test["workdir"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    build = pathlib.Path(sys.argv[1])
    tests, known = quick_tests(build), recorded()
    missing = [name for name in tests if name not in known]
    if "--measure" in sys.argv:
        known = {name: seconds for name, seconds in known.items() if name in tests}
        known |= {name: round(measured(tests[name]), 1) for name in missing}
        TABLE.write_text("".join(f"{name} {known[name]}\n" for name in sorted(known)))
        missing = []
    for name in missing:
        print(f"{name} has no line in tests/tree/quick.txt: quick.py BUILD --measure writes it; a test that is not quick is in the suite `long`")
    gone = [name for name in known if name not in tests]
    for name in gone:  # no fault: tests depend on what a machine has
        print(f"tests/tree/quick.txt: there is no quick test {name} here")
    total = sum(known.values())
    print(f"{len(tests)} quick tests, {total:.0f} seconds of processor time, at most {LIMIT:.0f}")
    return bool(missing or total > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
