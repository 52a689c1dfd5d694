"""Weights of classes that wrap tensors, in archives whose pickles are made here: pickles.py WEFT SOURCE_ROOT
tests/data/wrapped.pt2 with the pickle of a.weight replaced: other ways to write the same, and what is refused."""
import io
import json
import os
import pathlib
import pickle
import re
import sys
import tempfile
import types
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
import limits  # noqa: E402

weft, root = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
WEIGHT, MODEL = "wrapped/data/weights/weight_0", "wrapped/models/model.json"
ACCESS = "torch.ops.export.access_subclass_inner_tensor.default"


def name_of(module, name):
    """Something that pickles as this global."""
    m = sys.modules.setdefault(module, types.ModuleType(module))
    if not hasattr(m, name):
        setattr(m, name, type(name, (), {"__module__": module, "__qualname__": name}))
    return getattr(m, name)


class Call:
    def __init__(self, f, *args):
        self.f, self.args = f, args

    def __reduce__(self):
        return Tool(self.f), self.args


def Tool(f):  # a class is called by REDUCE as a function is
    return f


class Storage:
    def __init__(self, kind, key, n):
        self.id = ("storage", name_of("torch", kind), key, "cpu", n)


class Pickler(pickle.Pickler):
    def persistent_id(self, x):
        return x.id if isinstance(x, Storage) else None


V2, V3 = name_of("torch._utils", "_rebuild_tensor_v2"), name_of("torch._utils", "_rebuild_tensor_v3")
WRAPPER, TYPED = name_of("torch._utils", "_rebuild_wrapper_subclass"), name_of("torch._tensor", "_rebuild_from_type_v2")
PARAMETER, CLASS = name_of("torch._utils", "_rebuild_parameter"), name_of("user", "Scaled")
Q = Call(V2, Storage("CharStorage", "0", 24), 0, (4, 6), (1, 4), False, {})
SCALE = Call(V2, Storage("BFloat16Storage", "1", 4), 0, (4, 1), (1, 1), False, {})
MEMBERS = {"q": Q, "scale": SCALE}
SIZES = {8: (("DoubleStorage", "float64"), ("LongStorage", "int64"), ("", "uint64")),
         4: (("FloatStorage", "float32"), ("IntStorage", "int32"), ("", "uint32")),
         2: (("HalfStorage", "float16"), ("BFloat16Storage", "bfloat16"), ("ShortStorage", "int16"), ("", "uint16")),
         1: (("CharStorage", "int8"), ("ByteStorage", "uint8"), ("BoolStorage", "bool"), ("", "float8_e4m3fn"), ("", "float8_e5m2"),
             ("", "float8_e4m3fnuz"), ("", "float8_e5m2fnuz"))}


def wrapper(state):
    return Call(TYPED, WRAPPER, CLASS, (CLASS, (4, 6)), state)


def dumped(value, protocol):
    out = io.BytesIO()
    Pickler(out, protocol).dump(value)
    return out.getvalue()


def build(data, nested=False, inner=None, edit=None):
    """m.pt2 with this pickle; nested: the graph reads `inner` first."""
    with zipfile.ZipFile(root / "tests/data/wrapped.pt2") as z:
        members = {n: z.read(n) for n in z.namelist()}
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(members[WEIGHT])) as a, zipfile.ZipFile(out, "w") as b:
        for n in a.namelist():
            b.writestr(n, data if n.endswith("/data.pkl") else (inner or {}).get(n.split("/", 1)[1], a.read(n)))
    members[WEIGHT] = out.getvalue()
    model = json.loads(members[MODEL])
    nodes = model["graph_module"]["graph"]["nodes"]
    reads = [n for n in nodes if n["target"] == ACCESS and n["inputs"][0]["arg"]["as_tensor"]["name"] == "p_a_weight"]
    if nested:
        first = json.loads(json.dumps(reads[0]))
        first["inputs"][1]["arg"]["as_string"], first["outputs"], first["name"] = "inner", [{"as_tensor": {"name": "in"}}], "in"
        for n in reads:
            n["inputs"][0]["arg"]["as_tensor"]["name"] = "in"
        nodes.insert(0, first)
    if edit:
        edit(nodes, reads)
    members[MODEL] = json.dumps(model).encode()
    with zipfile.ZipFile("m.pt2", "w") as z:
        for n, d in members.items():
            z.writestr(n, d)


bad = 0


def check(what, want=None):
    """Passes against PyTorch's results, or ends with this one line."""
    global bad
    p = limits.run([weft, "check", "m.pt2", str(root / "tests/data/wrapped.safetensors"), "--backend", "interp"], 100,
                   capture_output=True, text=True, errors="replace", check=False)
    said = re.fullmatch(r"m\.pt2: (?:node .*?: )?error: (.*) \[W\d{4}\]\n", p.stderr)
    if p.returncode != (want is not None) or (want and (not said or said[1] != want)):
        bad += 1
        print(f"FAIL {what}: status {p.returncode}\n  expected {want}\n  got      {p.stdout}{p.stderr}")


def whole(nodes, reads):
    nodes[:] = [n for n in nodes if n is not reads[0]]
    for n in nodes:
        if n["inputs"][0]["arg"].get("as_tensor") == reads[0]["outputs"][0]["as_tensor"]:
            n["inputs"][0]["arg"]["as_tensor"] = {"name": "p_a_weight"}


def all_cases():
    for protocol in (2, 3, 4, 5):
        build(dumped(wrapper(MEMBERS), protocol))
        check(f"protocol {protocol}")
    build(dumped(wrapper((MEMBERS, {"slot": 1})), 2))
    check("with slots")
    build(dumped(Call(PARAMETER, wrapper(MEMBERS), False, {}), 2))
    check("a parameter")
    STATE = name_of("torch._utils", "_rebuild_parameter_with_state")
    deep = Call(PARAMETER, Call(STATE, Call(PARAMETER, Call(STATE, wrapper(MEMBERS), False, {}, {}), False, {}), False, {}, {}), False, {})
    build(dumped(deep, 2))
    check("parameters of parameters")
    build(dumped(Call(PARAMETER, deep, False, {}), 2))
    check("parameters too deep", "weight a.weight is pickled, and no tensor of its own nor one that wraps tensors: torch._utils _rebuild_parameter_with_state")
    typed = name_of("torch", "int8")
    build(dumped(wrapper({**MEMBERS, "q": Call(V3, Storage("UntypedStorage", "0", 24), 0, (4, 6), (1, 4), False, {}, typed)}), 2))
    check("an untyped storage")
    build(dumped(wrapper({**MEMBERS, "q": Call(TYPED, V2, CLASS, Q.args, {"note": 1.5, "big": -2**40, "long": "x" * 300})}), 2))
    check("a tensor with attributes")
    build(dumped(wrapper({"inner": wrapper(MEMBERS)}), 2), nested=True)
    check("wrapped twice")

    for rank, why in ((12, "weight a.weight.q has another dtype or shape in its pickle than in the graph"),
                      (13, "weight a.weight.q is pickled, and its shape, dtype or storage is not one that is read")):
        long = Call(V2, Storage("CharStorage", "0", 24), 0, (4, 6) + (1,) * (rank - 2), (1, 4) + (1,) * (rank - 2), False, {})
        build(dumped(wrapper({**MEMBERS, "q": long}), 2))
        check(f"{rank} dimensions", why)

    message = "weight a.weight (data/weights/weight_0): "
    good = dumped(wrapper(MEMBERS), 2)
    build(good[:-1])
    check("no end", f"{message}the pickle is damaged: it does not end at byte {len(good) - 1}")
    build(b"\x80\x02I1\n.")
    check("an integer as text", f"{message}the pickle has an operation (0x49 at byte 2) that tensors do not need")
    for data, why in ((b"\x80\x02h\x07.", "a value that was not remembered at byte 4"), (b"(K\x01K\x02.", None), (b"t.", "no mark on the stack at byte 1"),
                      (b"X\xff\xff\xff\xff.", "cut off at byte 5"), (b"Nr\xff\xff\xff\x7f.", "an impossible number of remembered values at byte 6"),
                      (b"NK\x01a.", "items of something that has none at byte 4"), (b"(.", "nothing on the stack at byte 1")):
        build(data)
        check(data, f"{message}the pickle is damaged: {why}" if why else
              "weight a.weight is pickled, and no tensor of its own nor one that wraps tensors: a number")
    build(b"]q\x00h\x00a.")  # a list that holds itself
    check("a cycle", "weight a.weight is pickled, and no tensor of its own nor one that wraps tensors: a list")
    build(dumped(Call(name_of("os", "system_"), "false"), 2))
    check("another call", "weight a.weight is pickled, and no tensor of its own nor one that wraps tensors: os system_")
    build(dumped(wrapper({"scale": SCALE, "p": 1}), 2))
    check("no such member", "weight a.weight has no tensor q, it has scale")
    build(dumped(wrapper({**MEMBERS, "q": Call(V2, Storage("CharStorage", "7", 24), 0, (4, 6), (1, 4), False, {})}), 2))
    check("no storage", "weight a.weight.q is pickled, and its archive has no member data/7")
    build(dumped(wrapper({**MEMBERS, "q": Call(V2, Storage("CharStorage", "0", 24), 1, (4, 6), (1, 4), False, {})}), 2))
    check("beyond its storage", "weight a.weight.q: member data/0 has 24 bytes, the tensor needs 25")
    build(dumped(wrapper({**MEMBERS, "q": Call(V2, Storage("CharStorage", "0", 24), -1, (4, 6), (1, 4), False, {})}), 2))
    check("before its storage", "weight a.weight.q: sizes, strides or offset are impossible: expected none negative and fewer than 2^48 elements")
    build(dumped(wrapper({**MEMBERS, "q": Call(V2, Storage("QInt8Storage", "0", 24), 0, (4, 6), (1, 4), False, {})}), 2))
    check("a dtype", "weight a.weight.q is pickled, and its shape, dtype or storage is not one that is read")
    for size, names in SIZES.items():  # of untyped storages, and of those that have one of their own
        for storage, dtype in names:
            typed_q = Call(V3, Storage("UntypedStorage", "0", 24), 0, (4, 6), (1, 4), False, {}, name_of("torch", dtype))
            for q in [typed_q] + [Call(V2, Storage(storage, "0", 24), 0, (4, 6), (1, 4), False, {})] * bool(storage):
                build(dumped(wrapper({**MEMBERS, "q": q}), 2))
                check(f"of {dtype}", f"weight a.weight.q: member data/0 has 24 bytes, the tensor needs {24 * size}" if size > 1 else
                      "weight a.weight.q has another dtype or shape in its pickle than in the graph" if dtype != "int8" else None)
    for value, told in ((None, "None"), (True, "a bool"), (1.5, "a number"), ("text", "a text"), ((1,), "a tuple"), ({}, "a dictionary"),
                        (Storage("CharStorage", "0", 24), "a storage"), (name_of("user", "Thing"), "user Thing")):
        build(dumped(value, 2))
        check(f"only {told}", f"weight a.weight is pickled, and no tensor of its own nor one that wraps tensors: {told}")
    for q in (Call(V2, Storage("CharStorage", "0", 24), "0", (4, 6), (1, 4), False, {}), Call(V2, "storage", 0, (4, 6), (1, 4), False, {}),
              Call(V2, Storage("CharStorage", "0", 24), 0, (4, 6), (1,), False, {}), Call(V2, Storage("CharStorage", "0", 24), 0, (4, "6"), (1, 4), False, {}),
              Call(V2, Storage("CharStorage", "0", 24), 0, [4, 6], (1, 4), False, {}), Call(V2, Storage("CharStorage", 0, 24), 0, (4, 6), (1, 4), False, {}),
              Call(V2, Storage("CharStorage", "0", 24), 0, (1,) * 13, (1,) * 13, False, {})):
        build(dumped(wrapper({**MEMBERS, "q": q}), 2))
        check("not a tensor's arguments", "weight a.weight.q is pickled, and its shape, dtype or storage is not one that is read")
    build(dumped(wrapper({"q": 1, "scale": SCALE, "zero": Q}), 2))
    check("not a tensor", "weight a.weight has no tensor q, it has scale, zero")
    build(dumped(wrapper({"q": 1}), 2))
    check("no tensors", "weight a.weight has no tensor q, it has none")
    build(dumped("x" * (1 << 20), 2))
    check("a large pickle", "weight a.weight is pickled, and the pickle is too large")
    build(dumped(wrapper({**MEMBERS, "q": Call(V2, Storage("CharStorage", "0", 24), 0, (6, 4), (1, 6), False, {})}), 2))
    check("a shape", "weight a.weight.q has another dtype or shape in its pickle than in the graph")
    build(good, inner={"byteorder": b"big"})
    check("byte order", "weight a.weight is pickled, and not little-endian")
    build(good, edit=whole)
    check("used whole", "argument self: weight a.weight wraps tensors, of which the graph must name one")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    all_cases()
    os.chdir("/")
print(f"{bad} failures")
sys.exit(bad != 0)
