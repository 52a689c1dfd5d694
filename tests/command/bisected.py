"""weft bisect finds the operator whose compiled result is wrong, and writes an archive that repeats it: bisected.py WEFT SOURCE_ROOT BACKEND...

The wrong operators are the user's: they have another value where they are compiled to a file, since WeftOpContext.op_user is NULL there."""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

weft, root, backends = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
sys.path.insert(0, str(root / "tests/help"))
from tensor_file import read_tensors, write_tensors  # noqa: E402

OPS = """
#include <stdlib.h>
#include "weft_op.h"
static int here, seen; /* seen: `first` was called in this process */
#define OP(name, value)                                                                            \\
	int test_##name(const WeftOpContext *c, const WeftTensor *in, const WeftTensor *out, void *work, uint64_t n, WeftStatus *s);     \\
	int test_##name(const WeftOpContext *c, const WeftTensor *in, const WeftTensor *out, void *work, uint64_t n, WeftStatus *s)      \\
	{                                                                                          \\
		const float *x = in[0].data;                                                       \\
		float *y = out[0].data;                                                            \\
		const int wrong = !c->op_user;                                                     \\
		(void)work, (void)n, (void)s, (void)wrong;                                         \\
		for (int64_t i = 0; i < in[0].shape[0] * in[0].shape[1]; i++)                      \\
			y[i] = x[i] + (value);                                                     \\
		return 0;                                                                          \\
	}                                                                                          \\
	static const WeftOpDef name = {.size = sizeof name, .schema = "test::" #name "(Tensor x) -> Tensor", .types = "f32[a, b] -> f32[a, b]", \\
				       .symbol = "test_" #name, .fn = test_##name, .user = &here};
OP(right, 1)
OP(wrong, wrong ? 1.5f : 1)
OP(first, (wrong ? (seen = 1) : 1))
OP(second, wrong && seen ? 3 : 2)
OP(dies, (wrong ? abort() : (void)0, 0))
const WeftOpDef *const *weft_ops(void);
const WeftOpDef *const *weft_ops(void)
{
	static const WeftOpDef *const all[] = {&right, &wrong, &first, &second, &dies, NULL};
	return all;
}
"""
# A network with a step in its middle, and what is around it.
NET = """graph @net(%x: f32[B, 6], %w: f32[6, 6]) where 1 <= B {{
  %a = aten.mm(%x, %w) : f32[B, 6]
  %b = aten.relu(%a) : f32[B, 6]
  %c = aten.sin(%b) : f32[B, 6]
  %d = {0} : f32[B, 6]
  %e = aten.exp(%d) : f32[B, 6]
  %f = {1} : f32[B, 6]
  %g = aten.mm(%f, %w) : f32[B, 6]
  %h = aten.softmax.int(%g, dim=1) : f32[B, 6]
  %i = aten.sum.dim_IntList(%c, dim=[1]) : f32[B]
  return %h, %i
}}
"""
bad = 0


def say(text):
    global bad
    bad += 1
    print("FAIL", text)


def call(folder, *args, **env):
    return subprocess.run([weft, *args], cwd=folder, capture_output=True, text=True, env={**os.environ, **env})


def library(folder, name, source):
    (folder / f"{name}.c").write_text(source)
    cc = [*os.environ.get("CC", "cc").split(), "-O1", "-shared", "-fPIC", "-I", root / "include", folder / f"{name}.c", f"-Wl,-soname,{name}.so", "-lm"]
    subprocess.run([*cc, "-o", folder / f"{name}.so"], check=True)


def bisect(folder, what, backend, model, inputs, ops, operators, *more):
    """The JSON of one run, whose archive is repeated."""
    p = call(folder, "bisect", model, inputs, "--ops", ops, "--backend", backend, "--json", *more, LD_LIBRARY_PATH=str(folder))
    if p.returncode != bool(operators):
        say(f"{what}, {backend}: status {p.returncode}: {p.stdout}{p.stderr}")
        return None
    found = json.loads(p.stdout)
    if [o["operator"] for o in found["operators"]] != operators or found["differs"] != bool(operators):
        say(f"{what}, {backend}: expected {operators}: {found}")
    if not operators:
        return found
    out = folder / "out"
    out.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / found["archive"]) as z:
        if z.testzip() or sorted(z.namelist()) != ["graph.ir", "graph.safetensors", "report.txt"]:
            say(f"{what}: {z.namelist()}")
        z.extractall(out)
    report = (out / "report.txt").read_text()
    for text in (found["command"], "weft 0", "processor: ", *operators):
        if text not in report:
            say(f"{what}: the report does not name {text!r}:\n{report}")
    if str(folder) in report.replace(found["command"], ""):
        say(f"{what}: the report has a path of this machine:\n{report}")
    command = found["command"].split()
    again = call(out, *command[1:], LD_LIBRARY_PATH=str(folder))
    if again.returncode != 1 or "0 passed, 1 failed" not in again.stdout or not found["repeats"]:
        say(f"{what}, {backend}: {found['command']} does not repeat it: {again.stdout}{again.stderr}")
    # what is right is right there, too
    right = call(out, "check", "graph.ir", "graph.safetensors", "--ops", command[command.index("--ops") + 1], "--backend", "loops", LD_LIBRARY_PATH=str(folder))
    if "1 passed, 0 failed" not in right.stdout and not found["crashes"]:
        say(f"{what}: the archive's own references are wrong: {right.stdout}{right.stderr}")
    return found


def varint(v):
    return bytes([v & 127 | 128]) + varint(v >> 7) if v > 127 else bytes([v])


def block(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def number(field, v):
    return varint(field << 3) + varint(v)


def info(field, name):
    shape = block(1, number(1, 3))
    return block(field, block(1, name) + block(2, block(1, number(1, 1) + block(2, shape))))


def chain(steps):
    """An ONNX file: y = the operators one after the other of x, f32[3]."""
    names = ["x", *(f"v{k}" for k in range(len(steps) - 1)), "y"]
    nodes = b"".join(block(1, block(1, names[k]) + block(2, names[k + 1]) + block(3, f"/part{k}/{op}") + block(4, op)) for k, op in enumerate(steps))
    return number(1, 8) + block(7, nodes + block(2, "g") + info(11, "x") + info(12, "y")) + block(8, number(2, 17))


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    library(folder, "ops", OPS)
    ops = folder / "ops.so"
    nets = {"none": ("right", None), "one": ("right", "wrong"), "two": ("first", "second"), "ends": ("dies", None)}

    def step(name, operand):
        """The text of a call, whose results are a list."""
        return f'call([%{operand}], op="test::{name}", ints=[], floats=[])' if name else f"aten.neg(%{operand})"
    for net, (one, other) in nets.items():
        text = NET
        for place, name, operand, result in ((0, one, "c", "d"), (1, other, "e", "f")):
            line = f"  %{result} = {{{place}}} : f32[B, 6]\n"
            assert line in text
            made = f"  %{result}_all = {step(name, operand)}\n  %{result} = get(%{result}_all, index=0)\n" if name else f"  %{result} = {step(name, operand)} : f32[B, 6]\n"
            text = text.replace(line, made)
        (folder / f"{net}.ir").write_text(text.replace("{{", "{").replace("}}", "}"))
    values = [((k * 37) % 19) / 19 - 0.4 for k in range(36)]
    write_tensors(folder / "in.safetensors", {"x.0": ("f", [2, 6], values[:12]), "x.1": ("f", [6, 6], values)})
    for backend in backends:
        found = bisect(folder, "none", backend, "none.ir", "in.safetensors", ops, [])
        if found and found["of"] != 9:
            say(f"none: of {found['of']} operators")
        found = bisect(folder, "one", backend, "one.ir", "in.safetensors", ops, ["test::wrong"])
        if found and (found["operators"][0]["name"] != "f_all" or "random numbers, all of them inputs" != found["values"] or abs(found["error"] - 0.5) > 1e-4):
            say(f"one: {found}")
        x = read_tensors(folder / "out/graph.safetensors")
        if x["y.0"] != [v + 1 for v in x["x.0"]] and any(abs(a - b - 1) > 1e-6 for a, b in zip(x["y.0"], x["x.0"])):
            say(f"one: the values of the archive: {x}")
        # neither is wrong alone
        bisect(folder, "two", backend, "two.ir", "in.safetensors", ops, ["test::first", "test::second"])
        found = bisect(folder, "ends", backend, "ends.ir", "in.safetensors", ops, ["test::dies"])
        if found and not found["crashes"]:
            say(f"ends: {found}")
    # what `first` leaves behind in the interpreter decides: an archive alone does not repeat that, and says so
    library(folder, "ops", OPS.replace("wrong ? (seen = 1) : 1", "(seen = 1)"))
    p = call(folder, "bisect", "two.ir", "in.safetensors", "--ops", ops, "--backend", backends[0], "-o", "kept")
    if p.returncode != 1 or "that alone does not repeat it" not in p.stdout or "that alone does not repeat it" not in (folder / "kept/report.txt").read_text():
        say(f"not repeated: {p.stdout}{p.stderr}")
    library(folder, "ops", OPS)
    # as text, into a folder
    p = call(folder, "bisect", "one.ir", "in.safetensors", "--ops", ops, "--backend", backends[0], "-o", "made")
    if p.returncode != 1 or not all(s in p.stdout for s in ("one.ir: %f (test::wrong) differs: largest error 0.5, ", "\n1 of 9 operators, after ", "made: graph.ir, ")):
        say(f"as text: {p.stdout}{p.stderr}")
    if sorted(f.name for f in (folder / "made").iterdir()) != ["graph.ir", "graph.safetensors", "report.txt"]:
        say("a folder")
    p = call(folder, "bisect", "none.ir", "in.safetensors", "--ops", ops, "--backend", backends[0])
    if p.returncode or not p.stdout.startswith(f"no difference: compiled ({backends[0]}), all results of none.ir are those of the interpreter\n"):
        say(f"no difference: {p.stdout}{p.stderr}")
    # a .pt2 with weights, in whose middle the operator stands: examples/userop
    source = (root / "examples/userop/mylib.c").read_text()
    old = "y[i * b + k] = x[i * b + k] * factor[k];"
    assert old in source and ".fn = mylib_decay,\n" in source
    wrong = source.replace(old, old + "\n\tif (!context->op_user)\n\t\ty[0] += 1;").replace(".fn = mylib_decay,\n", ".fn = mylib_decay,\n\t.user = (void *)(uintptr_t)&decay,\n")
    wrong = wrong.replace("static const WeftOpDef decay = {", "static const WeftOpDef decay;\nstatic const WeftOpDef decay = {")
    library(folder, "mylib", wrong)
    model = root / "examples/userop/model.pt2"
    found = bisect(folder, "a .pt2", backends[0], model, root / "examples/userop/model.0.safetensors", folder / "mylib.so", ["mylib::decay"])
    if found and ("random" not in found["values"] or not found["operators"][0]["line"]):
        say(f"a .pt2: {found}")
    # beside another system, in whose place a program gives values: one of them is not Weft's
    env = folder / "env/bin"
    env.mkdir(parents=True)
    (env / "python").write_text('#!/bin/sh\nexec cp "$GIVEN" "$5"\n')
    (env / "python").chmod(0o755)
    (folder / "chain.onnx").write_bytes(chain(["Relu", "Neg", "Exp", "Abs"]))
    x = [1.0, -2.0, 0.5]
    write_tensors(folder / "x.safetensors", {"x.0": ("f", [3], x)})
    for wrong, found in ((0, []), (0.25, ["v1"])):
        v0 = [max(v, 0) for v in x]
        v1 = [-v + wrong for v in v0]
        v2 = [math.exp(v) for v in v1]
        given = {"v0": v0, "v1": v1, "v2": v2, "y": v2, "y.0": v2}
        write_tensors(folder / "given.safetensors", {name: ("f", [3], v) for name, v in given.items()})
        p = call(folder, "bisect", "chain.onnx", "x.safetensors", "--against", "onnxruntime", "--python", folder / "env", "--json", GIVEN=str(folder / "given.safetensors"))
        j = json.loads(p.stdout) if p.stdout else {"operators": []}
        if p.returncode != bool(found) or [o["name"] for o in j["operators"]] != found or (found and (j["operators"][0]["line"] != "/part1/Neg in /part1" or not j.get("archive"))):
            say(f"beside a peer: {found} expected: {p.stdout}{p.stderr}")
    # what is refused
    for status, said, args in ((1, "--against torch is for models of torch.export", ["chain.onnx", "x.safetensors", "--against", "torch"]),
                               (2, "--set-mode is for --against interp: torch runs the file as it is", ["net.pt2", "x.safetensors", "--against", "torch", "--set-mode", "eval"]), (2, "bisect: --python is for --against", ["one.ir", "in.safetensors", "--python", "x"]), (2, "bisect takes a model and a file of inputs", ["one.ir"]), (2, "the interpreter is what is compared with", ["one.ir", "in.safetensors", "--backend", "interp"]),
                               (1, "this file is an input", ["one.ir", "in.safetensors", "-o", "in.safetensors"]), (1, "cannot open", ["one.ir", "no.safetensors", "--ops", ops])):
        p = call(folder, "bisect", *args)
        if p.returncode != status or said not in p.stderr:
            say(f"{args}: {p.returncode} {p.stderr}")
sys.exit(bad != 0)
