"""Conditions on the inputs that the model's file states, and the names it gives: guards.py WEFT SOURCE_ROOT.
tests/data/nested*.pt2 have guards on members of nested inputs, guard_log.pt2 one that cannot be expressed."""
import array
import json
import pathlib
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
import limits  # noqa: E402

weft, data = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve() / "tests/data"
bad = 0


def expect(ok, what):
    global bad
    if not ok:
        print("FAIL:", what)
        bad += 1


def call(*args):
    p = limits.run([weft, *map(str, args)], 100, capture_output=True, text=True)
    return p.returncode, p.stdout, p.stderr


def refuse(words, *args):
    """Status 1 and one line on stderr that has all the words."""
    rc, out, err = call(*args)
    expect(rc == 1 and len(err.splitlines()) == 1 and all(w in err for w in words),
           f"{args}: status {rc}, expected one line with {words}:\n{out}{err}")


def tensors(path, shapes):
    header, at = {}, 0
    for k, shape in enumerate(shapes):
        n = 4
        for d in shape:
            n *= d
        header[f"x.{k}"] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + array.array("f", [0.5] * (at // 4)).tobytes())


SHAPES = [[2, 4], [3], [8], [5], [3], [4], [6]]
# the input that is changed, its size and its name, and what the message says of the guard
VIOLATIONS = [
    (2, 6, "xs_1", ["size()[0] % 4) == 0"]),
    (3, 2, "d_q", ["size()[0] + L[", "> 6"]),
    (5, 1, "p_right_0", ["size()[0] + L[", "> 6"]),  # that a range begins at 2 is not checked
    (6, 5, "k", ["math.trunc(0.7*torch.sym_float(L["]),
    (6, 8, "k", ["math.trunc(0.7*torch.sym_float(L["]),
]
# 0.7 * 7 is 4.8999999999999995 for Python, and 4 when truncated
HOLDS = [(2, 0), (2, 4), (3, 3), (6, 7)]

with tempfile.TemporaryDirectory() as folder:
    x, y = pathlib.Path(folder) / "x.safetensors", pathlib.Path(folder) / "y.safetensors"
    for model in "nested", "nested_strict":
        for backend in [], ["--backend", "interp"], ["--backend", "c"]:
            run = ["run", data / f"{model}.pt2", "--inputs", x, "--outputs", y, *backend]
            for k, size in HOLDS:
                tensors(x, SHAPES[:k] + [[size]] + SHAPES[k + 1:])
                rc, out, err = call(*run)
                expect(rc == 0 and not err, f"{model} {backend}: input {k} of size {size}: {err}")
            for k, size, name, text in VIOLATIONS:
                tensors(x, SHAPES[:k] + [[size]] + SHAPES[k + 1:])
                rc, out, err = call(*run)
                expect(rc == 1 and len(err.splitlines()) == 1 and name in err and any(t in err for t in text),
                       f"{model} {backend}: input {k} of size {size}: status {rc}: {err}")

    # A size that Python cannot compute, for its divisor is zero: the call is refused.
    divided = pathlib.Path(folder) / "divided.pt2"
    symbol = "Symbol('s77', positive=True, integer=True)"
    with zipfile.ZipFile(data / "import/numbers.pt2") as old, zipfile.ZipFile(divided, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name.endswith("models/model.json"):
                before = f"FloorDiv({symbol}, Integer(3))".encode()
                expect(before in text, "numbers.pt2 divides by 3")
                text = text.replace(before, f"FloorDiv({symbol}, Add({symbol}, Integer(-5)))".encode())
            new.writestr(name, text)
    for backend in [], ["--backend", "interp"], ["--backend", "c"]:
        run = ["run", divided, "--inputs", x, "--outputs", y, *backend]
        tensors(x, [[4], [3]])
        rc, out, err = call(*run)
        expect(rc == 0 and not err, f"divided {backend}: {err}")
        tensors(x, [[5], [3]])
        # by compiled code in the sentence for a size, ahead of the guard of the file
        refuse(["no division by zero in FloorDiv" if "interp" in backend else "floordiv(s77, s77 - 5) divides by 0 for s77 = 5"], *run)

    log, ref, so = data / "guard_log.pt2", data / "guard_log.safetensors", pathlib.Path(folder) / "m.so"
    guard = "math.log2(torch.sym_float(L['flat_args'][0].size()[0])) < 4.0"
    commands = [["compile", log, "-o", so], ["run", log, "--inputs", ref, "--outputs", y], ["check", log, ref],
                ["show", log], ["bench", log, "--inputs", ref, "--seconds", "0.01", "--no-op-by-op"]]
    for command in commands:
        rc, out, err = call(*command)
        expect(rc == 1 and guard in err and "--ignore-guard" in err, f"{command}: {rc} {err}")
        rc, out, err = call(*command, "--ignore-guard", guard)
        expect(rc == 0 and not err, f"{command} --ignore-guard: {rc} {err}")
    refuse(["no guard to ignore"], "show", log, "--ignore-guard", guard, "--ignore-guard", "x > 1")
    refuse(["no guard to ignore"], "show", data / "nested.pt2", "--ignore-guard", "x > 1")
    refuse(["is compiled"], "run", so, "--inputs", ref, "--outputs", y, "--ignore-guard", guard)

    unknown, message = pathlib.Path(folder) / "unknown.pt2", "Runtime assertion failed for expression u1 <= 1 on node 'le_2'"
    with zipfile.ZipFile(data / "sizes/item.pt2") as old, zipfile.ZipFile(unknown, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"Piecewise", b"Peculiar"))
    refuse([message, "unknown function", "--ignore-guard"], "show", unknown)
    rc, out, err = call("show", unknown, "--ignore-guard", message)
    expect(rc == 0 and not err, f"an assertion to ignore: {err}")
    rc, out, err = call("show", data / "sizes/item.pt2")
    expect(rc == 0 and not err, f"an assertion with Piecewise: {err}")

    def outputs(*args):
        rc, out, err = call("show", *args, "--json")
        return [t["name"] for t in json.loads(out)["outputs"]] if rc == 0 else err

    for model in "nested", "nested_strict":
        names = outputs(data / f"{model}.pt2")
        expect(names == ["logits", "prob", "more_0", "more_1_0", "pair_left", "pair_right_0"], f"{model}: {names}")
    names = outputs(data / "mlp.pt2", "--output-names", "score")
    expect(names == ["score"], f"--output-names: {names}")
    refuse(["2 names", "has 1"], "show", data / "mlp.pt2", "--output-names", "a,b")
    refuse(["another one has it"], "show", data / "nested.pt2", "--output-names", "a,b,c,d,e,a")
    refuse(["empty"], "show", data / "nested.pt2", "--output-names", "a,b,c,d,e,")

    rc, out, err = call("show", data / "nested.pt2", "--graph")
    lines = [line.split(";")[1].strip() for line in out.splitlines() if "aten.linear" in line or "aten.relu" in line]
    expect(len(lines) == 2 and all(line.startswith("make_fixtures.py:") for line in lines), f"source lines: {lines}")
    expect([line.split(" ", 1)[1] for line in lines] == ["in head.0", "in head.1"], f"modules: {lines}")
sys.exit(bad != 0)
