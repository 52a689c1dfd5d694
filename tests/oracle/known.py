"""What is known to fail: known.py FILE_RUNNER FOLDER. A file test there has a `; cause:` and a `; signature:` (scripts/net.py prints both) and
still fails; what passes becomes a test of tests/run. There are at most ten, so that they are mended and not collected."""
import pathlib
import subprocess
import sys

MOST = 10
runner, folder = sys.argv[1], pathlib.Path(sys.argv[2])
bad = []


def value_of(key, text):
    return next((line.removeprefix(f"; {key}:").strip() for line in text.splitlines() if line.startswith(f"; {key}:")), "")


tests = sorted(folder.glob("*.txt"))
if len(tests) > MOST:
    bad.append(f"{len(tests)} tests: at most {MOST} may be known to fail; mend some")
for test in tests:
    text = test.read_text()
    bad += [f"{test.name} has no \"; {key}:\"" for key in ("cause", "signature") if not value_of(key, text)]
    if "\n; ----\n" not in text:
        bad.append(f"{test.name} does not say what is right behind \"; ----\"")
    elif subprocess.run([runner, test], capture_output=True).returncode == 0:
        bad.append(f"{test.name} passes: it belongs into tests/text/run, without its cause and signature")
print("\n".join(f"FAIL {line}" for line in bad) or f"{len(tests)} known to fail")
sys.exit(1 if bad else 0)
