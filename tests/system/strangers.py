"""Text that strangers wrote, names and paths in model files and target files, stays text in what is emitted; files
that are no models are called what they are: strangers.py WEFT SOURCE_ROOT."""
import gzip
import json
import lzma
import pathlib
import shutil
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "help"))
import limits  # noqa: E402

weft, root = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
bad = 0


def expect(ok, what):
    global bad
    if not ok:
        print("FAIL:", what)
        bad += 1


def call(*args, cwd=None):
    p = limits.run([str(a) for a in args], 200, capture_output=True, cwd=cwd)
    return p.returncode, p.stdout, p.stderr


def refuse(words, *args):
    rc, out, err = call(weft, *args)
    text = err.decode()
    expect(rc == 1 and text.count("\n") == 1 and all(w in text for w in words), f"{args}: {rc} {text}")


def replace(value, names):
    if isinstance(value, list):
        return [replace(v, names) for v in value]
    if isinstance(value, dict):
        return {names.get(k, k): replace(v, names) for k, v in value.items()}
    return names.get(value, value) if isinstance(value, str) else value


HIDDEN = ["\u202e", "\u2066", "\u200b", "\u061c", "\ufeff", "\U000e0041", "\x1b[31m", "\x7f", "\x01", "\x85"]
HOSTILE = ["a*/ int evil(void) { return 1; } /*", "a\n#error evil\n", "a\\\n", "??/\n#error evil", "a//b", '"); evil("', "%s%n%lld",
           "a*\\\n/ int evil; /*", "$(touch evil)", "größe"] + [f"li{c}ne" for c in HIDDEN]


def model(folder, text):
    """mlp.pt2 with this text for a tensor, an input, an output, a weight, a source file and a module."""
    with zipfile.ZipFile(root / "tests/data/mlp.pt2") as z:
        members = {n: z.read(n) for n in z.namelist()}
    graph = json.loads(members["mlp/models/model.json"])
    nodes = graph["graph_module"]["graph"]["nodes"]
    names = {n: n + text for n in ("linear", "relu", "x", "linear_1", "a.weight")}
    graph = replace(graph, names)
    for node in graph["graph_module"]["graph"]["nodes"]:
        node["metadata"] = {"stack_trace": f'File "/home/{text}.py", line 3, in f', "nn_module_stack": f"L,{text},M"}
    config = replace(json.loads(members["mlp/data/weights/model_weights_config.json"]), names)
    members["mlp/models/model.json"] = json.dumps(graph).encode()
    members["mlp/data/weights/model_weights_config.json"] = json.dumps(config).encode()
    path = folder / "m.pt2"
    with zipfile.ZipFile(path, "w") as z:
        for name, data in members.items():
            z.writestr(name, data)
    return path, nodes[0]["name"]


def is_plain(text):
    return not any(c < " " and c not in "\n\t" or c in [h[0] for h in HIDDEN] for c in text)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    ref = root / "tests/data/mlp.safetensors"
    for k, text in enumerate(HOSTILE):
        path, node = model(folder, text)
        sources = folder / f"c{k}"
        rc, out, err = call(weft, "compile", path, "-o", sources, "--emit", "c")
        expect(rc == 0, f"{text!r}: {err.decode()}")
        for file in sources.glob("*"):
            if file.suffix in (".c", ".h") or file.name == "Makefile":
                code = file.read_text()
                expect(is_plain(code), f"{text!r}: control characters in {file.name}")
                expect("??/" not in code, f"{text!r}: a trigraph in {file.name}")
        rc, out, err = call("cc", "-std=c11", "-Wall", "-Wextra", "-Werror=comment", "-fsyntax-only", "-I.",
                            *[f.name for f in sources.glob("*.c")], cwd=sources)
        expect(rc == 0 and b"evil" not in err, f"{text!r}: {err.decode()[:400]}")
        if k in (0, 3, 5):
            for backend in "jit", "c", "interp":
                rc, out, err = call(weft, "check", path, ref, "--backend", backend)
                expect(rc == 0, f"{text!r} {backend}: {out} {err}")
        rc, out, err = call(weft, "show", path, "--json")
        expect(rc == 0 and json.loads(out), f"{text!r}: show --json: {err}")
        rc, out, err = call(weft, "show", path)
        expect(rc == 0 and is_plain(out.decode()), f"{text!r}: show prints control characters")
        rc, out, err = call(weft, "compile", path, "-o", folder / "m.ir", "--emit", "ir")
        expect(rc == 0, f"{text!r}: --emit ir: {err}")
        rc, out, err = call(weft, "check", folder / "m.ir", ref, "--backend", "interp")
        expect(rc == 0 or b"const" in err, f"{text!r}: the text form: {out} {err}")

    for field, value in ("flags", "-O2\nall:\n\ttouch evil"), ("flags", "$(shell touch evil)"), ("name", "a\nb: c"), \
            ("flags", "-DX=`touch evil`"), ("flags", "-O2 #"), ("name", "a\u202eb"), ("triple", "x;y"), ("cpu", 'a"b'):
        target = folder / "t.json"
        target.write_text(json.dumps({"base": "generic-c", field: value}))
        refuse([field, "letters"], "compile", root / "tests/data/mlp.pt2", "-o", folder / "t", "--emit", "c", "--target", target)
    expect(not pathlib.Path("evil").exists(), "a command of a target file was run")

    mlp = root / "tests/data/mlp.pt2"
    for symbol in "9x", "a b", "a-b", "größe", "int", "class", "typeof", "printf", "sin", "malloc", "_x", "__x", \
            "weft_rt_open", "k_linear", "mlp_weights", "main":
        refuse([symbol, "cannot be called"], "compile", mlp, "-o", folder / "s.so", "--symbol", symbol)
    rc, out, err = call(weft, "compile", mlp, "-o", folder / "s.so", "--symbol", "digits_model")
    expect(rc == 0, f"--symbol digits_model: {err}")

    data = mlp.read_bytes()
    torch_zip, numpy_zip, script = folder / "w.pt", folder / "w.npz", folder / "s.pt"
    for path, member in (torch_zip, "w/data.pkl"), (numpy_zip, "x.npy"), (script, "s/code/__torch__.py"):
        with zipfile.ZipFile(path, "w") as z:
            z.writestr(member, b"x")
    broken = folder / "m.onnx"
    broken.write_bytes(b"\x08\x0a\x12\x07pytorch\x1a\x062.15.0:\x10" + b"\x00" * 32)
    refuse(["m.onnx", "GraphProto at byte", "the number of a field is malformed"], "show", broken)
    for file, content, words in [
            ("m.pt2.xz", lzma.compress(data), ["xz", "unpack"]),
            ("m.pt2.gz", gzip.compress(data), ["gzip", "unpack"]),
            ("old.pt", b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", ["torch.save", "torch.export"]),
            ("p.pkl", b"\x80\x04\x95", ["pickle"]),
            ("m.gguf", b"GGUF\x03\0\0\0", ["GGUF"]),
            ("x.npy", b"\x93NUMPY\x01\0", ["NumPy"]),
            ("notes.txt", b"Dear all,\n", ["text", "graph @name"]),
            ("empty", b"", ["empty"]),
            ("noise", bytes(range(200, 256)) + b"\0" * 9, ["binary"]),
            ("w.safetensors", ref.read_bytes(), ["safetensors"])]:
        (folder / file).write_bytes(content)
        refuse([file, *words] + ([".pt2"] if content else []), "show", folder / file)
    refuse(["torch.save", "torch.export.save"], "show", torch_zip)
    refuse(["TorchScript", "torch.export.save"], "show", script)
    refuse(["NumPy", "torch.export.save"], "show", numpy_zip)

    with zipfile.ZipFile(mlp) as z:
        members = {n: z.read(n) for n in z.namelist()}
    graph = json.loads(members["mlp/models/model.json"])
    relu = next(n for n in graph["graph_module"]["graph"]["nodes"] if "relu" in n["target"])
    relu["target"] = "torch.ops.mine.frobnicate.default"
    relu["metadata"] = {"stack_trace": 'File "/home/me/net.py", line 7, in forward\n  x\n'
                                       'File "/opt/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 134, in forward',
                        "nn_module_stack": "L__self__,,net.Net;L__self__head,head,net.Head"}
    members["mlp/models/model.json"] = json.dumps(graph).encode()
    with zipfile.ZipFile(folder / "u.pt2", "w") as z:
        for n, content in members.items():
            z.writestr(n, content)
    refuse(["mine.frobnicate", "net.py:7 in head", "run_decompositions"], "compile", folder / "u.pt2", "-o", folder / "u.so")
    shutil.rmtree(folder / "c0")
sys.exit(bad != 0)
