"""An option that would have no effect is an error that says what it is for; what is nearly right is answered: options.py WEFT SOURCE_ROOT"""
import pathlib
import subprocess
import sys
import tempfile

weft, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(root / "tests/help"))
from tensor_file import write_tensors  # noqa: E402

MODEL = "graph @f(%x: f32[3], %mask: f32[3]) -> f32[3] {\n  %y = aten.mul.Tensor(%x, %mask) : f32[3]\n  return %y\n}\n"
WRITES = """graph @f(%x: f32[N], %y: f32[N]) where 1 <= N {
  %a = aten.tanh(%x)
  %b = aten.exp(%y)
  %c = aten.add.Tensor(%a, %b)
  return %a -> "x", %b -> "y", %c
}
"""
HALF = "graph @f(%x: f32[3]) -> bf16[3] {\n  %y = aten.to.dtype(%x, dtype=bf16) : bf16[3]\n  return %y\n}\n"
RUN = ["run", "m.ir", "--inputs", "in.safetensors", "--outputs", "y.npz"]
CHECK = ["check", "m.ir", "in.safetensors"]
COMPILE = ["compile", "m.ir", "-o", "new.so"]
CASES = [  # status, what is said, the command line
    # of another kind of model file
    (1, "values of inputs (--values) are for ONNX models: this is none", [*RUN, "--values", "in.safetensors"]),
    (1, "values of inputs (--values) are for ONNX models: this is none", ["show", "tests/data/mlp.pt2", "--values", "in.safetensors"]),
    (1, "--seed is for models that draw random numbers: none are drawn here", [*RUN, "--seed", "3"]),
    (1, "--rng is for models that draw random numbers: none are drawn here", ["show", "m.ir", "--rng", "input"]),
    (1, "--rng-cipher is for models that draw random numbers: none are drawn here", ["show", "a=m.ir", "b=m.ir", "--rng-cipher", "philox"]),
    (1, "paddle_functions.onnx: --precision changes nothing: no operator of the model would compute in bf16",
     ["show", "tests/exported/paddle_functions.onnx", "--precision", "bf16"]),
    # of compiled models
    *((1, f"m.so is compiled: {o[0]} is for model files", ["run", "m.so", *RUN[2:], *o]) for o in
      (["--values", "in.safetensors"], ["--seed", "3"], ["--private", "x"], ["--state", "a.x=b.y"], ["--output-names", "a"], ["--precision", "bf16"])),
    *((1, f"m.so is compiled: {o[0]} is for model files", ["check", "m.so", "in.safetensors", *o]) for o in
      (["--op-by-op"], ["--sizes", "s=1"], ["--trace-rounding"], ["--cc", "cc"], ["--set-mode", "eval"])),
    (1, "m.so is compiled: --seed is for model files", ["show", "m.so", "--seed", "3"]),
    (1, "m.ir is a model file: --weights is for compiled models", ["check", "m.ir", "--weights"]),
    # files of another kind
    (2, "in.npz: a reference is a .safetensors file (weft run takes .npz)", ["check", "m.ir", "in.npz"]),
    # beside other options
    *((2, f"--{o[0]} is for compiled code: --backend interp interprets the graph", [*RUN, "--backend", "interp", f"--{o[0]}", o[1]]) for o in
      (("target", "generic-c"), ("tune", "zen4"), ("cc", "cc"))),
    (1, "--op-by-op is for compiled code", [*CHECK, "--backend", "interp", "--op-by-op"]),
    (2, "--cc is for --backend c: no C compiler takes part in loops", [*RUN, "--backend", "loops", "--cc", "cc"]),
    (2, "check: --threads with several numbers is for compiled code: interpreters have one", [*CHECK, "--backend", "interp", "--threads", "1,2"]),
    (1, "with a runner --backend is c or llvm: it needs a file", [*CHECK, "--backend", "interp", "--runner", "true"]),
    (2, "check: --python is for --against", [*CHECK, "--python", "/nowhere"]),
    (2, "check: --trace-rounding is for references, without --mode and --sizes", [*CHECK, "--trace-rounding", "--mode", "vjp"]),
    (2, "bench: --python is for --against", ["bench", "m.ir", "--python", "/nowhere"]),
    (2, "bench: -v is for --against", ["bench", "m.ir", "-v"]),
    (2, "--device chooses the back end: give no --backend", ["bench", "m.ir", "--device", "cuda", "--backend", "c"]),
    (2, "compile: --memory-budget is for --grad", [*COMPILE, "--memory-budget", "0.5"]),
    (2, "compile: --backend is for --emit so", [*COMPILE, "--emit", "ir", "--backend", "c"]),
    (2, "compile: --backend is for --emit so", [*COMPILE, "--emit", "c", "--backend", "llvm"]),
    (2, "compile: --backend-library is for --backend NAME", [*COMPILE, "--backend-library", "b.so"]),
    (2, "compile: --weights file is for --emit so", [*COMPILE, "--emit", "c", "--weights", "file"]),
    (2, "compile: --cc is for --emit so", [*COMPILE, "--emit", "c", "--cc", "cc"]),
    (2, "compile: --symbol is for what defines or declares a function", [*COMPILE, "--emit", "ir", "--symbol", "f"]),
    (2, "report: --no-source is for a page or JSON of a model", ["report", "m.ir", "--no-source"]),
    (2, "report: --inputs is for a model, and here reports are read", ["report", "--diff", "a.json", "b.json", "--inputs", "in.safetensors"]),
    (2, "report: --threads is for a model, and here reports are read", ["report", "a.json", "-o", "a.html", "--threads", "2"]),
    (2, "a.json is a report: -o PAGE.html writes its page", ["report", "a.json"]),
    (2, "show: --tune is for --kernels", ["show", "m.ir", "--graph", "--tune", "zen4"]),
    (2, "show: --target is for --kernels", ["show", "m.ir", "--after", "canon", "--target", "generic-c"]),
    (2, "show: --device is for --kernels without --target", ["show", "m.ir", "--kernels", "--device", "cuda", "--target", "generic-c"]),
    (2, "show: --backend-library is for --backends", ["show", "m.ir", "--backend-library", "b.so"]),
    (2, "show: --json is for all but the graph", ["show", "m.ir", "--graph", "--json"]),
    (2, "show: --json is for all but the graph", ["show", "m.ir", "--svg", "m.svg", "--json"]),
    (2, "show: --kernels is for text: --svg draws the graph", ["show", "m.ir", "--svg", "m.svg", "--kernels"]),
    (2, "show: --entry is for a model", ["show", "--targets", "--entry", "run"]),
    (2, "show: --seed is for a model", ["show", "--targets", "--seed", "3"]),
    (2, "show: --backends is for back ends alone, without --targets", ["show", "--targets", "--backends"]),
    # names
    (2, "a=: expected NAME=FILE, a model file behind the =", ["compile", "a=", "-o", "new.so"]),
    (2, "a=: expected NAME=FILE, a model file behind the =", ["check", "a=", "in.safetensors"]),
    (1, "other.safetensors: tensor msk is no input of m.ir, which takes 2: x, mask; did you mean mask?",
     ["run", "m.ir", "--inputs", "other.safetensors", "--outputs", "y.npz", "--backend", "interp"]),
    (1, "foreign.safetensors: tensor a is no input of m.ir, which takes 2: x, mask",
     ["run", "m.ir", "--inputs", "foreign.safetensors", "--outputs", "y.npz", "--backend", "interp"]),
    (1, "y.npz: error: dtype bf16 cannot be stored in .npy and .npz: a .safetensors file has it",
     ["run", "half.ir", "--inputs", "one.safetensors", "--outputs", "y.npz", "--backend", "interp"]),
    # behind -- nothing is an option
    (1, "-q.ir: error: cannot open", ["show", "--graph", "--", "-q.ir"]),
    (2, "show takes one model", ["show", "m.ir", "--", "--graph"]),
]
GOOD = [  # what is printed, the command line
    ("1 passed", ["check", "writes.ir", "in.safetensors", "--sizes", "N=3", "--backend", "loops"]),
    ("graph @f", ["show", "--graph", "--", "-m.ir"]),
    ("usage: weft COMMAND", ["help", "--help"]),
    ("usage: weft COMMAND", ["help", "-h"]),
    ("usage: weft COMMAND", ["help", "help"]),
    ("usage: weft show", ["help", "show"]),
    # an option for C chooses the C compiler
    ("1 passed", [*CHECK, "--cc", "cc"]),
    *(("2 passed", ["check", "sizes.ir", "one.safetensors", "--sizes", "B=1,3", "--backend", b]) for b in ("c", "loops", "interp")),
    # -q of --json: only failures
    ('"results": [\n  ],', [*CHECK, "--backend", "interp", "-q", "--json"]),
]
bad = 0
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "tests").symlink_to(root / "tests")
    for file, text in (("m.ir", MODEL), ("-m.ir", MODEL), ("half.ir", HALF), ("sizes.ir", HALF.replace("[3]", "[B]"))):
        (folder / file).write_text(text)
    ones = ("f", [3], [1.0, 1.0, 1.0])
    write_tensors(folder / "in.safetensors", {"x.0": ones, "x.1": ones, "y.0": ones})
    (folder / "in.npz").write_bytes(b"")
    (folder / "writes.ir").write_text(WRITES)
    write_tensors(folder / "one.safetensors", {"x.0": ones})
    write_tensors(folder / "foreign.safetensors", {"a": ones, "b": ones})
    write_tensors(folder / "other.safetensors", {"x": ones, "msk": ones})

    def call(args):
        return subprocess.run([weft, *args], cwd=folder, capture_output=True, text=True)
    assert call(["compile", "m.ir", "-o", "m.so"]).returncode == 0
    before = sorted(p.name for p in folder.iterdir())
    for status, said, args in CASES:
        p = call(args)
        if p.returncode != status or said not in p.stderr:
            bad += 1
            print(f"FAIL weft {' '.join(args)}: status {p.returncode}, expected {status} and {said!r}:\n{p.stdout}{p.stderr}")
    for said, args in GOOD:
        p = call(args)
        if p.returncode or said not in p.stdout:
            bad += 1
            print(f"FAIL weft {' '.join(args)}: status {p.returncode}, expected {said!r}:\n{p.stdout}{p.stderr}")
    if (after := sorted(p.name for p in folder.iterdir())) != before:
        bad += 1
        print(f"FAIL: files were made: {set(after) - set(before)}")
sys.exit(bad != 0)
