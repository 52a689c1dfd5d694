"""Seeds and a dictionary for one fuzz target, from the files of the tests: fuzz_seeds.py TARGET TESTS OUT"""
import glob
import hashlib
import os
import re
import sys
import tarfile
import zipfile

target, tests, out = sys.argv[1:]
os.makedirs(out + "/seeds", exist_ok=True)
words = set()


def seed(data):
    with open(f"{out}/seeds/{hashlib.sha256(data).hexdigest()[:16]}", "wb") as f:
        f.write(data)


def member(z, tail):
    return next((z.read(n) for n in z.namelist() if n.endswith(tail)), b"")


def archives():
    for path in sorted(filter(os.path.isfile, glob.glob(tests + "/data/*"))):
        with open(path, "rb") as f:
            data = f.read()
        if len(data) < 100000:
            seed(data)
    with tarfile.open(tests + "/versions/versions.tar.xz") as t:
        for m in t:
            if re.search(r"/2\.[58]/(mlp|tied|state|dtypes)\.pt2$", m.name):
                seed(t.extractfile(m).read())
    words.update(["PK\\x01\\x02", "PK\\x03\\x04", "PK\\x05\\x06", "PK\\x06\\x06", "PK\\x06\\x07",
                  "\\x93NUMPY", "{'descr': '<f4'", "__metadata__", "data_offsets"])


def json():
    for path in sorted(glob.glob(tests + "/data/*.pt2")):
        with zipfile.ZipFile(path) as z:
            model = member(z, "models/model.json")
            seed(model + b"\0" + member(z, "model_weights_config.json"))
        words.update(re.findall(r'"[\w.]{1,30}"', model.decode()))
        found = re.findall(r'"expr_str": *"([^"]*)"', model.decode())
        seed("\n".join(found).encode())
    words.update(["null", "true", "false", "1e400", "-1", "9223372036854775807"])
    seed(b"Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(-1))\n"
         b"Equality(Mod(Symbol('s0'), Integer(8)), Integer(0))\nMax(1, FloorDiv(s0, 2))\n"
         b"And(LessThan(Symbol('s0'), Integer(4)), Not(Ne(s1, 3)))\nPow(Symbol('s0'), Integer(2))\n")


def onnx():
    for path in sorted(glob.glob(tests + "/../../shared/onnx-node/*/model.onnx")):
        with open(path, "rb") as f:
            data = f.read()
        if len(data) < 2000:
            seed(data)
            words.update(w.decode() for w in re.findall(rb"[A-Za-z_][\w]{1,30}", data))
    words.update(["\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x01", "\\x80\\x80\\x80\\x80\\x80\\x01"])


def text():
    for path in sorted(glob.glob(tests + "/*/*.txt")):
        with open(path, encoding="utf-8") as f:
            data = f.read().split("; ----")[0]
        if "graph @" in data:
            seed(data.encode())
            words.update(re.findall(r"[A-Za-z_.][\w.]{1,30}", data[data.index("graph @"):]))
    words.update(["9223372036854775807", "-9223372036854775808", "4294967296", "1e400", "nan", "inf"])


def tensors():
    for path in sorted(glob.glob(tests + "/data/*.safetensors")):
        with open(path, "rb") as f:
            data = f.read()
        if len(data) < 20000:
            seed(data)
    words.update(['"F32"', '"BF16"', '"I64"', '"shape"', '"dtype"', '"data_offsets"', '"__metadata__"'])


def gguf():
    with open(tests + "/data/gguf/kinds.gguf", "rb") as f:
        seed(f.read())


def userop():
    seed(b"t::a(Tensor x, Tensor y, int n, int[2] l=[1, 2], float f=1.5, bool b=True) -> (Tensor, Tensor)\n"
         b"f32[a, b], T[..., b] -> f32[a + n, min(b, 2*a)], T[..., b / 2]\nmax(4*a, 1)")
    seed(b"lib::op.over(Tensor x) -> Tensor\nT[..., a] -> T[..., (a - 1) % 3]\n")
    seed(b"lib::log(Tensor x) -> ()\nf32[] ->\n8")
    words.update(["Tensor", "int", "int[]", "float", "bool", "::", "->", "...", "min(", "max(", "f32", "i64", "T[", "9223372036854775807"])


{"archive": archives, "gguf": gguf, "json": json, "onnx": onnx, "text": text, "tensors": tensors, "userop": userop}[target]()
with open(out + "/dict", "w", encoding="utf-8") as f:
    for word in sorted(words):
        quoted = word if "\\x" in word else word.replace("\\", "\\\\")
        f.write('"' + quoted.replace('"', '\\"') + '"\n')
