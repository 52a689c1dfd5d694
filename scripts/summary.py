"""Prints what the last run of `meson test` did: summary.py BUILD
A line for each suite: tests, seconds of all of them together, how many failed as they should (meson's should_fail) or were skipped; then a
line for each test that was skipped, with the last line that it printed, and for each that failed. Where another run has taken the log's
place meanwhile, says so."""
import collections
import json
import pathlib
import sys

GOOD = {"OK": "ok", "EXPECTEDFAIL": "failed as expected", "SKIP": "skipped"}


def suites_of(build):
    """By name of a test, its first suite."""
    tests = json.loads((build / "meson-info/intro-tests.json").read_text())
    return {t["name"]: t["suite"][0].rpartition(":")[2] for t in tests}


def last_line(text):
    lines = [line for line in (text or "").splitlines() if line.strip()]
    return lines[-1].strip() if lines else "says nothing"


def main():
    build = pathlib.Path(sys.argv[1])
    suites = suites_of(build)
    log = max(build.glob("meson-logs/testlog*.json"), key=lambda f: f.stat().st_mtime)
    try:
        results = [json.loads(line) for line in log.read_text().splitlines()]
    except ValueError:
        print(f"{log} is being written by another run of meson test: no summary")
        return
    rows, others = collections.defaultdict(collections.Counter), []
    for r in results:
        name = r["name"].rpartition(" / ")[2]
        row = rows[suites.get(name, "other")]
        row["tests"] += 1
        row["seconds"] += r["duration"]
        row[GOOD.get(r["result"], "failed")] += 1
        if r["result"] not in ("OK", "EXPECTEDFAIL"):
            others.append(f"{GOOD.get(r['result'], 'failed')}: {name}: {last_line(r.get('stdout') or r.get('stderr'))}")
    for suite, row in sorted(rows.items()):
        parts = ", ".join(f"{row[key]} {key}" for key in (*GOOD.values(), "failed") if row[key])
        print(f"{suite:12}{row['tests']:4} tests{row['seconds']:7.0f} s   {parts}")
    print("".join(f"{line}\n" for line in sorted(others)), end="")


if __name__ == "__main__":
    main()
