"""Models of a folder with their references, some of which say what the model fails with, as drivers of tests run them."""
import json

import limits


def expected_error(path):
    """What PyTorch said where it failed, else None."""
    data = path.read_bytes()
    header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
    return header.get("__metadata__", {}).get("error")


class Checker:
    """weft check, and what was wrong so far. What compiled models say of a failure is one message, the same in all back ends."""

    def __init__(self, weft, seconds):
        self.weft, self.seconds, self.bad, self.said = weft, seconds, 0, {}

    def wrong(self, what, text):
        self.bad += 1
        print(f"FAIL: {what}\n{text}")

    def check(self, model, refs, backend):
        done = limits.run([self.weft, "check", str(model), *map(str, refs), "--backend", *backend], self.seconds, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def has(self, model, backend):
        """Does this Weft have the back end?"""
        return "LLVM" not in self.check(model, [model.with_suffix(".0.safetensors")], backend)[1]

    def command(self, *args):
        done = limits.run([self.weft, *map(str, args)], self.seconds, capture_output=True, text=True)
        if done.returncode:
            self.wrong(" ".join(map(str, args)), done.stderr)

    def passes(self, model, refs, backend):
        code, text = self.check(model, refs, backend)
        if code or f"{len(refs)} passed, 0 failed" not in text:
            self.wrong(f"{model.name} {backend}", text)

    def run_model(self, model, backend, in_our_words=lambda error: error):
        refs = sorted(model.parent.glob(model.stem + ".[0-9]*.safetensors"))
        good = [r for r in refs if not expected_error(r)]
        self.passes(model, good, backend)
        for ref in refs:
            if expected_error(ref):
                self.fails(model, ref, backend, in_our_words(expected_error(ref)))

    def fails(self, model, ref, backend, error):
        code, text = self.check(model, [ref], backend)
        lines = [x for x in text.splitlines() if x.startswith("weft: ")]
        if code != 1 or error not in text:
            self.wrong(f"{ref.name} {backend}: expected {error}", text)
        if backend[0] != "interp" and (len(lines) != 1 or self.said.setdefault(ref.name, lines) != lines):
            self.wrong(f"{ref.name} {backend}: expected one message, {self.said.get(ref.name)}", text)
