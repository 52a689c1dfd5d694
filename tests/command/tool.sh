#!/bin/sh
# The command: exit status, where messages go, what is left behind. tool.sh WEFT SOURCE_ROOT
weft=$1
root=$2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
model=$root/examples/digits/digits_cnn.pt2
ref=$root/examples/digits/digits_cnn.safetensors
bad=0

. "$(dirname "$0")/../help/expect.sh"

# refuse PATTERN COMMAND...: status 1, the message on stderr, nothing on stdout.
refuse() {
	ends 1 "$@"
}

# misuse PATTERN COMMAND...: the same with status 2: nothing can be done with the command line.
misuse() {
	ends 2 "$@"
}

# ends STATUS PATTERN COMMAND...: the message is a line of stderr, and stdout is empty.
ends() {
	code=$1
	pattern=$2
	shift 2
	"$@" >"$out/stdout" 2>"$out/log" </dev/null
	got=$?
	if [ $got -ne "$code" ] || ! grep -q -e "$pattern" "$out/log"; then
		echo "FAIL: $*: status $got, expected $code and '$pattern':"
		head -5 "$out/log"
		bad=1
	fi
	if [ -s "$out/stdout" ]; then
		echo "FAIL: $*: printed on stdout"
		bad=1
	fi
}

expect 0 '^weft 0' "$weft" --version
expect 0 'usage: weft COMMAND' "$weft" --help
for c in compile run check bench train show bisect ops doctor; do
	expect 0 "usage: weft $c" "$weft" $c --help
	expect 0 "usage: weft $c" "$weft" help $c
	misuse "no option --nonsense" "$weft" $c --nonsense
done
# a step of training
misuse '--train makes entries of one model file' "$weft" compile a="$model" b="$model" --train sgd -o "$out/s.so"
misuse '--loss is for --train' "$weft" compile "$model" --loss mse -o "$out/s.so"
misuse '--train is for a model without --grad' "$weft" compile "$model" --train sgd --grad -o "$out/s.so"
refuse 'there is no optimiser adem' "$weft" compile "$model" --train adem --loss cross_entropy -o "$out/s.so"
refuse 'no parameter is called 10.wieght; did you mean 10.weight' "$weft" compile "$model" --train sgd --loss cross_entropy \
	--trainable 10.wieght -o "$out/s.so"
misuse 'train takes one model' "$weft" train --data "$ref"
misuse 'name the data with --data' "$weft" train "$model"
misuse '--on-nan is stop, skip or go, not maybe' "$weft" train "$model" --data "$ref" --on-nan maybe
misuse '--save-every is for --save' "$weft" train "$model" --data "$ref" --save-every 5
refuse 'cannot write: No such file' "$weft" train "$model" --data "$ref" --save "$out/none/a.safetensors"
expect 0 '^aten.hann_window .*code' "$weft" ops hann_window
expect 0 'other names *prims.asinh' "$weft" ops --long aten.asinh
expect 0 '"name": "aten.add.Tensor"' "$weft" ops --json 'aten.add.*'
refuse 'no operator has a name like nonsense' "$weft" ops nonsense
misuse 'no command' "$weft" nonsense
misuse 'takes a value' "$weft" compile -o
# a word that is near
misuse 'no command compil; did you mean compile' "$weft" compil
misuse 'no command shwo; did you mean show' "$weft" help shwo
misuse 'no option --input; did you mean --inputs' "$weft" run --input "$ref"
misuse 'no option --backnd; did you mean --backend' "$weft" check --backnd=c
python3 -c 'import sys
data = open(sys.argv[1], "rb").read()
n = int.from_bytes(data[:8], "little")
head = data[8:8 + n].replace(b"\"x.0\"", b"\"inptu\"")
open(sys.argv[2], "wb").write(len(head).to_bytes(8, "little") + head + data[8 + n:])' "$ref" "$out/near.safetensors"
refuse 'tensor inptu is no input of .*, which takes 1: input; did you mean input' "$weft" run "$model" --inputs "$out/near.safetensors" --outputs "$out/y.safetensors"
refuse 'like rellu; did you mean aten.relu' "$weft" ops rellu
refuse 'like sofmtax; did you mean aten.softmax' "$weft" ops sofmtax
# arguments and options too many
misuse 'unexpected argument x' "$weft" --version x
misuse 'unexpected argument x' "$weft" --help x
misuse 'unexpected argument x' "$weft" help show x
misuse 'unexpected argument x' "$weft" doctor x
misuse '-o is given twice' "$weft" compile "$model" -o "$out/a" -o "$out/b"
misuse '--backend is given twice' "$weft" check "$model" "$ref" --backend c --backend=c
misuse '--emit ,: a name is missing' "$weft" compile "$model" --emit , -o "$out/m.so"
misuse '--emit so,: a name is missing' "$weft" compile "$model" --emit so, -o "$out/m.so"
# a full disk
for c in --version --help 'help run' 'compile --help' doctor ops "show $model" "compile $model -o $out/full.so" "compile $model -o -"; do
	"$weft" $c >/dev/full 2>"$out/log"
	[ $? -eq 1 ] && grep -q 'cannot write.*No space left' "$out/log" || { echo "FAIL: weft $c >/dev/full: $(cat "$out/log")"; bad=1; }
done
rm -f "$out/full.so"
refuse 'no entry foo: there is run' "$weft" show "$model" --entry foo
# what this machine has
expect 0 '^ok *processor' "$weft" doctor
expect 0 'C compiler' "$weft" doctor
expect 0 '^missing *Python' "$weft" doctor --python "$out/nowhere"
expect 0 'missing *C compiler *no-such-compiler' env CC=no-such-compiler "$weft" doctor
"$weft" doctor --json --python "$out/nowhere" | python3 -c 'import json, sys
j = {f["name"]: f for f in json.load(sys.stdin)["findings"]}
assert j["processor"]["found"] and not j["Python"]["found"] and j["Python"]["advice"], j' || { echo 'FAIL: weft doctor --json'; bad=1; }
# a compiler for GPUs where pip placed it for the Python that is named: a program, a folder, and that of PATH; not that of another name
lib=$out/an[env]/lib/python3.11/site-packages/nvidia/cu13/lib
mkdir -p "$out/an[env]/bin" "$lib"
ln -s /bin/true "$out/an[env]/bin/python"
ln -s /bin/true "$out/an[env]/bin/python3"
for f in CreateProgram CompileProgram GetProgramLogSize GetProgramLog GetCUBINSize GetCUBIN GetPTXSize GetPTX DestroyProgram GetErrorString; do
	echo "int nvrtc$f(void) { return 1; }"
done >"$out/nvrtc.c"
echo 'int nvrtcVersion(int *major, int *minor) { *major = 13, *minor = 7; return 0; }' >>"$out/nvrtc.c"
${CC:-cc} -shared -fPIC "$out/nvrtc.c" -o "$lib/libnvrtc.so.13"
if "$weft" doctor | grep -q '^missing *NVRTC'; then
	expect 0 '^ok *NVRTC *version 13.7' env WEFT_PYTHON="$out/an[env]" "$weft" doctor
	expect 0 '^ok *NVRTC *version 13.7' env WEFT_PYTHON="$out/an[env]/bin/python" "$weft" doctor
	expect 0 '^ok *NVRTC *version 13.7' env -u WEFT_PYTHON PATH="$out/an[env]/bin:$PATH" "$weft" doctor
	expect 0 '^missing *NVRTC .*nvidia-cuda-nvrtc of \$WEFT_PYTHON' env WEFT_PYTHON="$out/nowhere" "$weft" doctor
	expect 0 '^missing *NVRTC .*/nowhere' env WEFT_NVRTC=/nowhere WEFT_PYTHON="$out/an[env]" "$weft" doctor
fi
refuse 'no target' "$weft" compile "$model" -o "$out/m.so" --target z80
refuse 'cannot write' "$weft" compile "$model" -o "$out/no/such/folder/m.so"
refuse 'no-such-file.pt2' "$weft" compile "$out/no-such-file.pt2" -o "$out/m.so"
head -c 20000 "$model" >"$out/cut.pt2"
refuse 'cut.pt2' "$weft" compile "$out/cut.pt2" -o "$out/m.so"
refuse 'failed' "$weft" compile "$model" -o "$out/m.so" --no-cache --cc false
ls "$out" | grep -q '^m\.' && echo "FAIL: something half-written was left" && bad=1

expect 0 'operators in' "$weft" compile "$model" -o "$out/m.so"
expect 0 '"kernels":' "$weft" compile "$model" -o "$out/m.so" --json
expect 0 '^1 passed, 0 failed' "$weft" check "$out/m.so" "$ref" --threads 1,2
# it has its target, and is not compiled again
for o in '--target generic-c' '--tune zen4'; do
	refuse "is compiled: ${o% *} is for model files" "$weft" run "$out/m.so" --inputs "$ref" --outputs "$out/o.safetensors" $o
	refuse "is compiled: ${o% *} is for model files" "$weft" show "$out/m.so" $o
done
refuse 'no entry foo: there is run' "$weft" show "$out/m.so" --entry foo
expect 0 '^1 passed, 0 failed' "$weft" check "$model" "$ref" --backend interp
# of a call, too, the message names the file
expect 1 'digits_cnn.pt2: input input has 2 dimensions, expected 4' "$weft" check "$model" "$root/tests/data/mlp.safetensors" --backend jit
# an input that the model writes
expect 0 '^1 passed' "$weft" check "$root/tests/data/input_write.pt2" "$root/tests/data/input_write.safetensors" --backend c
expect 0 '"passed": 1' "$weft" check "$out/m.so" "$ref" --json
# training and evaluation
expect 0 '  %dropout = aten.dropout(.*train=true' "$weft" show --graph "$root/tests/data/mode/net_eval.pt2" --set-mode train
expect 0 'what Python decided by self.training is not in this file' "$weft" show --graph "$root/tests/data/mode/net_eval.pt2" --set-mode=train
expect 0 '  %dropout = aten.dropout(.*train=false' "$weft" show --graph "$root/tests/data/mode/net_train.pt2" --set-mode eval
misuse '--set-mode is train or eval, not test' "$weft" show --graph "$root/tests/data/mode/net_eval.pt2" --set-mode test
misuse '--set-mode train: of several models say of which' "$weft" compile a="$model" b="$model" -o "$out/m.so" --set-mode train
refuse 'the file is decomposed' "$weft" compile "$root/tests/data/mode/net_decomposed.pt2" -o "$out/m.so" --set-mode eval
# a model that ends the process, with and without an error
for status in 0 3; do
	printf '#include <unistd.h>\nvoid *weft_model(void) { _exit(%d); }\n' $status >"$out/quits.c"
	${CC:-cc} -shared -fPIC "$out/quits.c" -o "$out/quits.so"
	expect 1 "^FAIL.*status $status" "$weft" check "$out/quits.so" "$ref"
	expect 1 '^0 passed, 1 failed' "$weft" check "$out/quits.so" "$ref"
done
expect 0 'FLOP/s' "$weft" bench "$model" --inputs "$ref" --seconds 0.05
# one machine in one output: what launches are compared with is what the last line says
expect 0 '^roofline' "$weft" bench "$model" --inputs "$ref" --seconds 0.02 --no-op-by-op --profile --threads 1
"$weft" bench "$model" --inputs "$ref" --seconds 0.02 --no-op-by-op --profile --threads 1 2>/dev/null | sed -n \
	-e 's/^roofline: \(.*\)FLOP.s, and \(.*\)B.s for what.*/\1 \2/p' -e 's/^peak of this machine.*: \(.*\)FLOP.s, \(.*\)B.s read$/\1 \2/p' >"$out/machine"
[ "$(sort -u "$out/machine" | wc -l)" -eq 1 ] && [ "$(wc -l <"$out/machine")" -eq 2 ] || { echo "FAIL: two machines:"; cat "$out/machine"; bad=1; }
# counts at the sizes run, B = 2: 2 * 2 * 96 * 80 operations; of the table the 2 * 4 rows; a loop's 2 steps
cat >"$out/matmul.txt" <<'EOF'
graph @matmul(%x: f32[B, 96], %w: f32[96, 80]) where 1 <= B <= 512 {
  %1 = aten.mm(%x, %w) : f32[B, 80]
  return %1
}
EOF
cat >"$out/embedding.txt" <<'EOF'
graph @embedding(%i: i64[B, 4], %t: f32[1000, 64]) where 1 <= B {
  %1 = aten.embedding(%t, %i) : f32[B, 4, 64]
  return %1
}
EOF
cat >"$out/loop.txt" <<'EOF'
graph @f(%h: f32[4, 4], %xs: f32[T, 4, 4], %w: f32[4, 4]) where 1 <= T {
  %s = scan([%h], [%xs], [%w], body=graph @step(%h: f32[4, 4], %x: f32[4, 4], %w: f32[4, 4]) {
    %p = contract(%h, %w, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)
    %a = add(%p, %x)
    return %a
  }, length=T, reverse=false)
  %last = get(%s, index=0)
  return %last
}
EOF
bench() { "$weft" bench "$@" --seconds 0.02 --no-op-by-op --json | tr -d ' \n'; }
for backend in '' '--backend c'; do
	expect 0 '"sizes":{"B":2}.*"flops":30720,"bytes":32128,' bench "$out/matmul.txt" $backend
done
expect 0 '"flops":0,"bytes":4160,' bench "$out/embedding.txt"
expect 0 '"sizes":{"T":2}.*"flops":288,"bytes":768,' bench "$out/loop.txt"
# with a profile it is JSON, too, of kernels with the lines of their source
"$weft" compile "$model" -o "$out/p.so" >/dev/null
for form in "$model" "$out/p.so" "$model --backend c"; do
	"$weft" bench $form --inputs "$ref" --seconds 0.02 --no-op-by-op --profile --json >"$out/profile" 2>"$out/log"
	python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
k = j["profile"]
assert [r["name"] for r in j["rows"]] == ["compiled"] and len(k) > 5 and all(x["seconds"] > 0 and x["launches"] == 1 for x in k), j
assert k[2]["line"] == "conv.py:565 in 0" and k[2]["lines"] == 3 and k[2].get("flops", 1) > 0 and k[2]["algorithm"].startswith("gemm"), k[2]' "$out/profile" ||
		{ echo "FAIL: --profile --json of $form"; bad=1; }
done
# a file holds the counts of B = 1 only
"$weft" compile "$out/matmul.txt" -o "$out/matmul.so" >"$out/log" 2>&1
expect 0 'for other sizes: FLOP/s are left out' "$weft" bench "$out/matmul.so" --seconds 0.02 --profile
expect 0 '"sizes":{"B":2},"rows":[^]]*"runs":[0-9]*,"peak_bytes"' bench "$out/matmul.so"
expect 0 'target' "$weft" show "$out/m.so"
expect 0 'graph @' "$weft" show "$model" --graph
expect 0 'canon' "$weft" show --after list
refuse 'no pass' "$weft" show "$model" --after nonsense
expect 0 '"shape"' "$weft" run "$out/m.so" --inputs "$ref" --outputs "$out/y.safetensors" --json
expect 0 '"seconds"' "$weft" run "$out/m.so" --inputs "$ref" --outputs "$out/y.npz" --json
refuse 'no tensor' "$weft" run "$out/m.so" --inputs "$out/y.safetensors" --outputs "$out/z.safetensors"

# Weights in a file of their own; gone; of another model; truncated.
expect 0 'operators in' "$weft" compile "$model" -o "$out/w.so" --weights file
expect 0 '^1 passed' "$weft" check "$out/w.so" "$ref"
cp "$out/w.weights" "$out/keep"
expect 0 '^1 passed' "$weft" check "$out/w.so" --weights
printf X | dd of="$out/w.weights" bs=1 seek=5000 conv=notrunc 2>/dev/null
expect 1 'w.weights: damaged' "$weft" check "$out/w.so" --weights
# for another target they are the same numbers in other places
expect 0 'operators in' "$weft" compile "$model" -o "$out/g.so" --weights file --target generic-c
expect 0 '^1 passed' "$weft" check "$out/g.so" "$ref" --weights
cmp -s "$out/g.weights" "$out/keep" && echo "FAIL: the layouts do not differ: nothing is tested" && bad=1
cp "$out/g.weights" "$out/w.weights"
expect 1 'another model, or arranged for another target' "$weft" check "$out/w.so" "$ref"
head -c 5000 "$out/keep" >"$out/w.weights"
expect 1 'truncated' "$weft" check "$out/w.so" "$ref"
rm "$out/w.weights"
expect 1 'w.weights' "$weft" check "$out/w.so" "$ref"

# The same input gives the same bytes.
"$weft" compile "$model" --emit c -o "$out/c1" >/dev/null && "$weft" compile "$model" --emit c -o "$out/c2" >/dev/null
diff -r "$out/c1" "$out/c2" >/dev/null || { echo "FAIL: emitted C differs from run to run"; bad=1; }
make -s -C "$out/c1" && expect 0 '^1 passed' "$weft" check "$out/c1/digits_cnn.so" "$ref"
for word in weft_model.h make weights.bin WEFT_SERIAL weft_serial_run; do
	grep -q "$word" "$out/c1/README" || { echo "FAIL: the README of the folder of C does not name $word"; bad=1; }
done
expect 0 '^1 passed' "$weft" check "$out/c1/digits_cnn.so" "$ref" --threads 1,2

# Kernels of a model and of its object are the same ones, in the same words; why they are what they are is known of the model.
"$weft" compile "$model" -o "$out/k.so" >/dev/null
for form in model:"$model" object:"$out/k.so"; do
	"$weft" show "${form#*:}" --kernels >"$out/${form%%:*}"
	sed -i '1s/, [0-9]* distinct//; 1s/, workspace.*//' "$out/${form%%:*}"
done
grep -q '^        chosen: b is a constant' "$out/model" || { echo 'FAIL: no "chosen: b is a constant" among kernels'; bad=1; }
sed -i '/^        \(stored\|chosen\|plan\|predicted\|not\)/d' "$out/model"
cmp "$out/model" "$out/object" || bad=1
# Of refusals those that came near are printed; as JSON all of them.
cat >"$out/near.ir" <<'END'
graph @f(%x: f32[1000, 3]) {
  %1 = aten.t(%x) : f32[3, 1000]
  %2 = aten.clone(%1) : f32[3, 1000]
  return %2
}
END
expect 0 '^        not transposed tiles: tiles of 16 by 16 would be mostly empty' "$weft" show "$out/near.ir" --kernels --target x86-64-v4
"$weft" show "$out/near.ir" --kernels --target x86-64-v4 | grep 'not depthwise\|not parts of rows' && { echo "FAIL: a refusal that did not come near is printed"; bad=1; }
"$weft" show "$out/near.ir" --kernels --target x86-64-v4 --json | python3 -c '
import json, sys
near = {r["schedule"]: r["near"] for r in json.load(sys.stdin)["kernels"][0]["refused"]}
assert near == {"depthwise": False, "contract": False, "transposed tiles": True, "parts of rows": False}, near' || bad=1
# Plans: a line for each phase; as JSON one string.
cat >"$out/plan.ir" <<'END'
graph @f(%x: f32[96, 2048], %y: f32[2048, 2048], %z: f32[64, 64]) {
  %1 = aten.mm(%x, %y) : f32[96, 2048]
  %2 = aten.add.Tensor(%z, %z) : f32[64, 64]
  return %1, %2
}
END
for plan in 'rows i<96, columns i<2048, k k<2048; tile 6 x 2 vectors of 8, a in place, b copied; block of [0-9]* rows.*; tasks: [0-9]*' \
	'copy: panels of 8, columns i<2048, k k<2048; tasks: [0-9]*' 'points, lanes [a-z]<4096; tasks: [0-9]*'; do
	expect 0 "^        plan: $plan\$" "$weft" show "$out/plan.ir" --kernels --target x86-64-v3
done
"$weft" show "$out/plan.ir" --kernels --target x86-64-v3 --json | python3 -c '
import json, sys
plan = [k["plan"].split("\n") for k in json.load(sys.stdin)["kernels"]]
assert [p[0].split()[0] for p in plan] == ["rows", "rows", "points,"] and [len(p) for p in plan] == [2, 2, 1], plan' || bad=1
# Lines of the source: among kernels, in profiles of both forms, in the text of the program.
grep -q '^        line: conv.py:565 in 0 (+2 lines)$' "$out/object" || { echo "FAIL: no line with others among the kernels of an object"; bad=1; }
for form in "$model" "$out/k.so"; do
	expect 0 'gemm.*  conv.py:565 in 3$' "$weft" bench "$form" --inputs "$ref" --seconds 0.02 --no-op-by-op --profile --threads 1
	expect 0 'generic.*  conv.py:565 in 3 (+1 line)$' "$weft" bench "$form" --inputs "$ref" --seconds 0.02 --no-op-by-op --profile --threads 1
	expect 0 '"line": "linear.py:134 in 10"' "$weft" show "$form" --kernels --json
done
expect 0 '^# call 2: .*, conv.py:565 in 0 (+2 lines)$' "$weft" compile "$model" --emit program -o -
refuse 'is compiled: --graph, --after and --svg are for model files' "$weft" show "$out/k.so" --svg "$out/k.svg"
refuse 'is compiled' "$weft" show "$out/k.so" --graph

# A peer that fails is one line; its traceback is for who asks. This Python has no packages.
mkdir -p "$out/env/bin"
printf '#!/bin/sh\nexec python3 -S -E "$@"\n' >"$out/env/bin/python"
chmod +x "$out/env/bin/python"
expect 1 '^weft: torch: ModuleNotFoundError: No module named .* (-v: where)$' "$weft" bench "$model" --inputs "$ref" --seconds 0.02 --no-op-by-op --against torch --python "$out/env"
grep -q Traceback "$out/log" && echo "FAIL: a traceback that nobody asked for" && bad=1
# What lies in the folder for temporary files is no module of its script.
mkdir "$out/tmp"
echo 'raise SystemExit("a stranger")' | tee "$out/tmp/logging.py" >"$out/tmp/types.py"
expect 1 '^weft: torch: ModuleNotFoundError: No module named .* (-v: where)$' env TMPDIR="$out/tmp" "$weft" bench "$model" --inputs "$ref" --seconds 0.02 --no-op-by-op --against torch --python "$out/env"
expect 1 Traceback "$weft" bench "$model" --inputs "$ref" --seconds 0.02 --no-op-by-op --against torch --python "$out/env" -v
# One that says nothing, or something else, has no times.
for does in 'exit 0' 'echo no line of times'; do
	printf '#!/bin/sh\n%s\n' "$does" >"$out/env/bin/python"
	expect 1 '^weft: torch: its process has printed no times' "$weft" bench "$model" --inputs "$ref" --seconds 0.02 --no-op-by-op --against torch --python "$out/env"
done

# Integers are compared exactly, whatever error PyTorch is said to have.
printf 'graph @f(%%x: i64[2]) -> i64[2] {\n  %%y = aten.neg(%%x) : i64[2]\n  return %%y\n}\n' >"$out/integers.ir"
PYTHONPATH="$root/tests/help" python3 -c '
import pathlib, sys
from tensor_file import write_tensors
write_tensors(pathlib.Path(sys.argv[1]), {"x.0": ("q", [2], [5000000, 7]), "y.0": ("q", [2], [-5000001, -7])}, {"eager_err.0": "0"})
' "$out/integers.safetensors"
expect 1 'error 1 at element 0, allowed 0; 1 of 2 wrong' "$weft" check "$out/integers.ir" "$out/integers.safetensors" --backend interp

# Values of options.
for option in --emit --weights --backend --target --cc --dump --name --symbol -o -j; do
	misuse "$option: the value is empty" "$weft" compile "$model" -o "$out/v.so" $option ''
done
misuse '\-\-cc: the value is empty' "$weft" compile "$model" -o "$out/v.so" --cc '  '
refuse 'true succeeded, but made no object' "$weft" compile "$model" -o "$out/v.so" --cc true --no-cache
refuse 'no pass nosuchpass to dump' "$weft" compile "$model" -o "$out/v.so" --dump nosuchpass
misuse '\-\-json takes no value' "$weft" compile "$model" -o "$out/v.so" --json=0
misuse '\-\-emit frob: there are' "$weft" compile "$model" -o "$out/v.so" --emit so,frob
misuse 'named twice' "$weft" compile "$model" -o "$out/v.so" --emit so,so
for n in 0 -1 100000 1x 99999999999; do
	misuse '\-j takes a number from 1 to 4096' "$weft" compile "$model" -o "$out/v.so" -j $n
	misuse '\-\-threads takes a number from 1 to 4096' "$weft" run "$model" --inputs "$ref" --outputs "$out/v.npz" --threads $n
	misuse '\-\-threads: .* is not a list of numbers from 1 to 4096' "$weft" check "$model" "$ref" --threads 1,$n
	misuse '\-\-threads: .* is not a list of numbers from 1 to 4096' "$weft" bench "$model" --threads $n
done
misuse '1, is not a list' "$weft" check "$model" "$ref" --threads 1,
misuse 'the name ends with .safetensors, .npz or .npy' "$weft" run "$model" --inputs "$ref" --outputs "$out/v.txt"
misuse 'takes a positive number of seconds, not 1x' "$weft" bench "$model" --seconds 1x
misuse 'takes a positive number of seconds, not inf' "$weft" bench "$model" --seconds inf
misuse 'no peer frob; there are torch, aoti, onnxruntime, openvino' "$weft" bench "$model" --against torch,frob --python /nowhere
misuse 'no Python /nowhere' "$weft" bench "$model" --against torch --python /nowhere
symbol=$("$weft" show "$out/k.so" | sed -n 's/^symbols .* \(s[0-9]*\) .*/\1/p')
for sizes in qq=1 "$symbol=1 qq=1" "$symbol=" "$symbol=1x" "$symbol" "$symbol=1 $symbol=2" "$symbol=99999999999999999999" \
	"$symbol=-1" "$symbol=1,,2" "${symbol}0=1"; do
	expect 1 '^FAIL .*: --sizes: ' "$weft" check "$model" "$ref" --sizes "$sizes"
done
expect 0 '^1 passed\|^3 passed' "$weft" check "$model" "$ref" --sizes "$symbol=1,2,5"
ls "$out" | grep -q '^v\.' && echo "FAIL: something was left of what was refused" && bad=1
exit $bad
