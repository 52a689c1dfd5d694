"""Results whose sizes depend on data, against PyTorch: sizes.py WEFT SOURCE_ROOT [BACKEND...]. Every model of tests/data/sizes
(make_size_fixtures.py) with all its references, in every back end and with 1, 2 and 3 threads. Where PyTorch's fails the model fails, with one
message that is the same in all of them but the interpreter."""
import json
import pathlib
import subprocess
import sys

weft, root = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
BACKENDS = [["interp"], ["loops"]] + [[name, "--threads", "1,2,3"] for name in ("jit", "llvm", "c")]
bad = 0


def wrong(what, text):
    global bad
    bad += 1
    print(f"FAIL: {what}\n{text}")


def check(model, refs, backend):
    done = subprocess.run([weft, "check", str(model), *map(str, refs), "--backend", *backend], capture_output=True, text=True,
                          timeout=240)
    return done.returncode, done.stdout + done.stderr


def expected_error(path):
    data = path.read_bytes()
    header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
    return header.get("__metadata__", {}).get("error")


def run_model(model, backend, said):
    refs = sorted(model.parent.glob(model.stem + ".[0-9]*.safetensors"))
    good = [r for r in refs if not expected_error(r)]
    code, text = check(model, good, backend)
    if code or f"{len(good)} passed, 0 failed" not in text:
        wrong(f"{model.name} {backend}", text)
    for ref in refs:
        error = expected_error(ref)
        if not error:
            continue
        code, text = check(model, [ref], backend)
        lines = [x for x in text.splitlines() if x.startswith("weft: ")]
        if code != 1 or error not in text:
            wrong(f"{ref.name} {backend}: expected {error}", text)
        if backend[0] != "interp" and (len(lines) != 1 or said.setdefault(ref.name, lines) != lines):
            wrong(f"{ref.name} {backend}: expected one message, {said.get(ref.name)}", text)


def main():
    probe = root / "tests/data/sizes/even.pt2"
    only = sys.argv[3:] or [b[0] for b in BACKENDS]
    said = {}
    for backend in BACKENDS:
        if backend[0] not in only or "LLVM" in check(probe, [probe.with_suffix(".0.safetensors")], backend)[1]:
            continue
        for model in sorted((root / "tests/data/sizes").glob("*.pt2")):
            run_model(model, backend, said)
    sys.exit(1 if bad else 0)


main()
