"""Bad input to the command: each case prints exactly one line, on stderr, exits with 1 and leaves no
file behind: bad_input.py WEFT SOURCE_ROOT. Damaged archives are made from tests/data."""
import array
import json
import os
import pathlib
import re
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
import limits  # noqa: E402

weft, root = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
MODEL, CONFIG = "models/model.json", "data/weights/model_weights_config.json"


def archive(base="mlp", edits=(), drop=(), cut=None, to="m.pt2", deflated=False):
    """Write a copy of an archive: edits are (member, from, to) or (member, function on bytes)."""
    with zipfile.ZipFile(root / "tests/data" / f"{base}.pt2") as z:
        members = {n: z.read(n) for n in z.namelist() if n.split("/", 1)[1] not in drop}
    for member, *change in edits:
        name, data = f"{base}/{member}", members[f"{base}/{member}"]
        if len(change) == 2:
            assert change[0].encode() in data, change[0]
            members[name] = data.replace(change[0].encode(), change[1].encode())
        else:
            members[name] = change[0](data)
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED) as z:
        for name, data in members.items():
            z.writestr(name, data)
    if cut is not None:
        data = pathlib.Path(to).read_bytes()
        pathlib.Path(to).write_bytes(data[:cut])


def tensors(path, **named):
    """A .safetensors file of name=(dtype, shape, numbers)."""
    code = {"F32": "f", "F64": "d", "I64": "q", "I32": "i"}
    header, body = {}, b""
    for name, (dtype, shape, values) in named.items():
        data = array.array(code[dtype], values).tobytes()
        header[name.replace("_", ".")] = {
            "dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(len(text).to_bytes(8, "little") + text + body)


def floats(*shape):
    n = 1
    for d in shape:
        n *= d
    return "F32", list(shape), [0.5] * n


GATHER = """graph @rows(%x: f32[3, 2], %i: i64[2, 1]) {
  %g = gather(%x, %i, batch=0, axes=[0], mode="check")
  return %g
}
"""
SYMBOLS = """graph @sum(%x: f32[B, 3], %y: f32[B, 3]) where 1 <= B <= 8 {
  %s = add(%x, %y)
  return %s
}
"""
COMPILE = ["compile", "m.pt2", "-o", "out/m.so"]

# What is compiled: (edits and so on of the archive, the line).
ARCHIVES = [
    (dict(cut=3000),
     "m.pt2: error: truncated archive: it starts like a zip file but has no directory at its end"),
    (dict(cut=0),
     "m.pt2: error: the file is empty"),
    (dict(edits=[(MODEL, lambda d: d[:-40])]),
     'm.pt2: error: models/model.json is not valid JSON: premature end of input near \'"torch_v\' (line 1, column 4475)'),
    (dict(edits=[(MODEL, lambda d: d.replace(b":", b"=", 1))]),
     "m.pt2: error: models/model.json is not valid JSON: ':' expected near '=' (line 1, column 16)"),
    (dict(edits=[(MODEL, lambda d: b"")]),
     "m.pt2: error: models/model.json is not valid JSON: '[' or '{' expected near end of file (line 1, column 0)"),
    (dict(edits=[(MODEL, lambda d: b"[" * 100000)]),
     "m.pt2: error: models/model.json is not valid JSON: maximum parsing depth reached near '[' (line 1, column 2049)"),
    (dict(edits=[(MODEL, lambda d: d + b" " * (64 << 20))], deflated=True),
     "m.pt2: error: member mlp/models/model.json would be 67113379 bytes of text, more than 100 times what is stored: it is not inflated"),
    (dict(drop=[MODEL]),
     "m.pt2: error: no model in this archive (no member models/<name>.json)"),
    (dict(drop=[CONFIG]),
     "m.pt2: error: weight a.weight is in neither weights nor constants config"),
    (dict(drop=["data/weights/weight_2"]),
     "m.pt2: error: weight b.weight: the archive has no member data/weights/weight_2"),
    (dict(edits=[("data/weights/weight_2", lambda d: d[:50])]),
     "m.pt2: error: weight b.weight: member data/weights/weight_2 has 50 bytes, the tensor needs 96"),
    (dict(edits=[(CONFIG, '"use_pickle":false', '"use_pickle":true')]),
     "m.pt2: weight a.weight (data/weights/weight_0): error: not a zip archive"),
    (dict(edits=[(MODEL, "aten.linear.default", "aten.frob.default"),
                 (MODEL, "aten.relu.default", "my.act.default")]),
     "m.pt2: error: 2 unsupported operators: torch.ops.aten.frob.default x2 (first at linear, linear.py:134); torch.ops.my.act.default x1 (first at relu, make_fixtures.py:81). Export with .run_decompositions(), which may write them with others, or compute the same with other operators; operators of yours come with a library: --ops LIBRARY"),
    (dict(edits=[(MODEL, '"dtype":7', '"dtype":33'), (CONFIG, '"dtype":7', '"dtype":33')]),
     "m.pt2: weight a.weight: error: tensor a.weight has unsupported dtype f8e8m0fnu (code 33)"),
    (dict(edits=[(MODEL, '"dtype":7', '"dtype":99'), (CONFIG, '"dtype":7', '"dtype":99')]),
     "m.pt2: weight a.weight: error: tensor a.weight has unsupported dtype unknown (code 99)"),
    (dict(edits=[("byteorder", "little", "big")]),
     'm.pt2: error: byteorder is "big", expected "little": big-endian archives are not supported'),
    (dict(edits=[(MODEL, '"as_int":8', '"as_int":4611686018427387904'),
                 (CONFIG, '"as_int":8', '"as_int":4611686018427387904')]),
     "m.pt2: error: weight a.weight: sizes, strides or offset are impossible: expected none negative and fewer than 2^48 elements"),
    (dict(edits=[(MODEL, '"as_int":8', '"as_int":99999999999999999999'),
                 (CONFIG, '"as_int":8', '"as_int":99999999999999999999')]),
     "m.pt2: error: models/model.json is not valid JSON: too big integer near '99999999999999999999' (line 1, column 1765)"),
    (dict(edits=[(CONFIG, '"storage_offset":{"as_int":0}', '"storage_offset":{"as_int":9223372036854775807}')]),
     "m.pt2: error: weight a.weight: sizes, strides or offset are impossible: expected none negative and fewer than 2^48 elements"),
    (dict(edits=[(MODEL, '"as_int":2}', '"as_int":4611686018427387904}')]),
     "m.pt2: node x: error: input: f32[4611686018427387904, 6] is too large: expected fewer than 2^48 bytes"),
    (dict(edits=[(MODEL, '{"name":"p_a_weight"}},"kind"', '{"name":"nothing"}},"kind"')]),
     "m.pt2: node linear (linear.py:134): error: argument weight: tensor nothing is not defined"),
    (dict(edits=[(MODEL, '{"as_tensor":{"name":"x"}}]', '{"as_tensor":{"name":"z"}}]')]),
     "m.pt2: error: no description of tensor z"),
]

# What is run: (model, text, tensors, the line of the interpreter, that of compiled code).
RUNS = [
    ("g.txt", GATHER, dict(x_0=floats(3, 2), x_1=("I64", [2, 1], [0, 3])),
     "g.txt: node g: error: gather: index 3 at position [1] is out of range for axis 0 of extent 3",
     "weft: g.txt: g: index 3 at [1, 0] of i is out of range, expected -3 <= index < 3"),
    ("g.txt", GATHER, dict(x_0=floats(3, 2), x_1=("I32", [2, 1], [0, 1])),
     'g.txt: error: input "i": expected dtype i64, got i32',
     "weft: g.txt: input i has dtype i32, expected i64"),
    ("g.txt", GATHER, dict(x_0=floats(3), x_1=("I64", [2, 1], [0, 1])),
     'g.txt: error: input "x": expected 2 dimensions, got 1',
     "weft: g.txt: input x has 1 dimensions, expected 2"),
    ("g.txt", GATHER, dict(x_0=floats(3, 4), x_1=("I64", [2, 1], [0, 1])),
     'g.txt: error: input "x" dimension 1: expected 2, got 4',
     "weft: g.txt: input x: dimension 1 is 4, expected 2"),
    ("g.txt", GATHER, dict(x_0=floats(3, 2)),
     "weft: in.safetensors: no tensor x.1 or i for input 1",
     "weft: in.safetensors: no tensor x.1 or i for input 1"),
    ("s.txt", SYMBOLS, dict(x_0=floats(2, 3), x_1=floats(4, 3)),
     's.txt: error: input "y" dimension 0: expected B = 2, got 4',
     "weft: s.txt: input y: dimension 0 (B) is 4, expected 2 as dimension 0 of input x"),
    ("s.txt", SYMBOLS, dict(x_0=floats(9, 3), x_1=floats(9, 3)),
     's.txt: error: input "x" dimension 0: expected B <= 8, got 9',
     "weft: s.txt: input x: dimension 0 (B) is 9, expected 1 to 8"),
    ("s.txt", SYMBOLS, dict(x_0=floats(0, 3), x_1=floats(0, 3)),
     's.txt: error: input "x" dimension 0: expected B >= 1, got 0',
     "weft: s.txt: input x: dimension 0 (B) is 0, expected 1 to 8"),
]

bad = 0


def check(name, command, line):
    global bad
    os.makedirs("out")
    p = limits.run([weft, *command], 100, capture_output=True, text=True, check=False)
    left = sorted(os.listdir("out")) + [f for f in os.listdir(".") if ".tmp" in f]
    said = re.sub(r" \[W\d{4}\]$", "", p.stderr.rstrip("\n")) + "\n"  # the number of its kind, which tests/command/refusal_ids.py holds
    ok = p.returncode == 1 and p.stdout == "" and said == line + "\n" and not left
    if not ok:
        bad += 1
        print(f"FAIL {name}: status {p.returncode}, left {left}, stdout {p.stdout!r}\n"
              f"  expected {line}\n  got      {p.stderr}")
    for f in os.listdir("out"):
        os.remove("out/" + f)
    os.rmdir("out")


def all_cases():
    for k, (how, line) in enumerate(ARCHIVES):
        archive(**how)
        check(f"archive {k}", COMPILE, line)
    archive()
    check("no folder", ["compile", "m.pt2", "-o", "none/m.so"],
          "none/m.so: error: cannot write: No such file or directory")
    check("a folder", ["compile", "m.pt2", "-o", "out"],
          "out: error: cannot write: is a folder")
    check("unwritable", ["compile", "m.pt2", "-o", "/dev/null/m.so"],
          "/dev/null/m.so: error: cannot write: Not a directory")
    check("unwritable header", ["compile", "m.pt2", "--emit", "header", "-o", "/dev/null/m.h"],
          "/dev/null/m.h: error: cannot write: Not a directory")
    check("unwritable C", ["compile", "m.pt2", "--emit", "c", "-o", "/dev/null/m"],
          "/dev/null/m: error: cannot make the folder: Not a directory")
    check("no file", ["compile", "none.pt2", "-o", "out/m.so"],
          "none.pt2: error: cannot open: No such file or directory")
    tensors("in.safetensors", x_0=floats(2, 6))
    cannot = "error: cannot open: No such file or directory"
    for kind in ("safetensors", "npz", "npy"):
        check("no inputs", ["run", "m.pt2", "--inputs", f"none.{kind}", "--outputs", "out/y.npz"], f"none.{kind}: {cannot}")
        pathlib.Path(f"empty.{kind}").write_bytes(b"")
        check("empty inputs", ["run", "m.pt2", "--inputs", f"empty.{kind}", "--outputs", "out/y.npz"], f"empty.{kind}: error: the file is empty")
    check("no case", ["check", "none.pt2"], f"none.pt2: {cannot}")
    check("no reference", ["check", "m.pt2", "none.safetensors"], f"none.safetensors: {cannot}")
    check("no operators", ["show", "m.pt2", "--ops", "none.so"], f"none.so: {cannot}")
    check("no library", ["compile", "m.pt2", "-o", "out/m.so", "--link", "none.so"], f"none.so: {cannot}")
    for option in ("--target", "--tune"):
        check("no " + option, ["compile", "m.pt2", "-o", "out/m.so", option, "none.json"], f"none.json: {cannot}")
        pathlib.Path("empty.json").write_bytes(b"")
        check("empty " + option, ["compile", "m.pt2", "-o", "out/m.so", option, "empty.json"], "empty.json: error: the file is empty")
    for kind in ("pt2", "txt", "so"):
        pathlib.Path(f"empty.{kind}").write_bytes(b"")
        check("empty model", ["show", f"empty.{kind}"], f"empty.{kind}: error: the file is empty")
    check("outputs", ["run", "m.pt2", "--inputs", "in.safetensors", "--outputs", "/dev/null/y.safetensors"],
          "/dev/null/y.safetensors: error: cannot write: Not a directory")
    pathlib.Path("s.txt").write_text(SYMBOLS)
    one = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }"
    one = one.encode().ljust(117) + b"\n"
    pathlib.Path("one.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(one).to_bytes(2, "little") + one + bytes(12))
    tensors("three.safetensors", x_0=floats(2, 3), x_1=floats(2, 3), x_2=floats(2, 3), y_0=floats(2, 3))
    check("one too many", ["run", "s.txt", "--inputs", "three.safetensors", "--outputs", "out/y.npz", "--backend", "interp"],
          "weft: three.safetensors: tensor x.2 is no input of s.txt, which takes 2: x, y")
    tensors("other.safetensors", x=floats(2, 3), y=floats(2, 3), z=floats(2, 3))
    check("another name", ["run", "s.txt", "--inputs", "other.safetensors", "--outputs", "out/y.npz", "--backend", "interp"],
          "weft: other.safetensors: tensor z is no input of s.txt, which takes 2: x, y")
    check("one of two", ["run", "s.txt", "--inputs", "one.npy", "--outputs", "out/y.npz", "--backend", "interp"],
          "weft: one.npy: a .npy file holds one tensor, and the model takes 2: put them into a .npz or .safetensors "
          "file as x.0, x.1, ...")
    for k, (model, text, inputs, *lines) in enumerate(RUNS):
        pathlib.Path(model).write_text(text)
        tensors("in.safetensors", **inputs)
        for backend, line in zip(("interp", "c"), lines):
            check(f"run {k} {backend}", ["run", model, "--inputs", "in.safetensors", "--outputs",
                                         "out/y.safetensors", "--backend", backend], line)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    all_cases()
    os.chdir("/")
sys.exit(bad != 0)
