#!/bin/sh
# Target files and refusals: targets.sh WEFT SOURCE_ROOT RUN_FILE
weft=$1
root=$2
run_file=$3
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
model=$root/examples/digits/digits_cnn.pt2
ref=$root/examples/digits/digits_cnn.safetensors
bad=0

# refuse PATTERN JSON: the description is refused with that message.
refuse() {
	printf '%s' "$2" >"$out/t.json"
	if "$weft" compile "$model" --emit loops -o "$out/m.loops" --target "$out/t.json" >"$out/log" 2>&1 || ! grep -q "t.json.*$1" "$out/log"; then
		echo "FAIL: $2 should be refused with $1:"
		cat "$out/log"
		bad=1
	fi
}
refuse 'line 1' '{'
refuse 'JSON object' '[]'
refuse '"base": expected one of native' '{}'
refuse 'no field "colour"' '{"base": "aarch64", "colour": 1}'
refuse '"l2": expected an integer from' '{"base": "aarch64", "l2": "big"}'
refuse '"fma": expected true or false' '{"base": "aarch64", "fma": 1}'
refuse '"name": expected a string' '{"base": "aarch64", "name": 1}'
refuse '"vector_bytes": expected 0 or a power of two' '{"base": "aarch64", "vector_bytes": 32}'
refuse '"masks": expected' '{"base": "x86-64-v3", "masks": "none"}'
refuse '"vector_bytes": 32 bytes need avx2 among the features' '{"base": "x86-64-v2", "vector_bytes": 32}'
refuse '"fma": needs fma among the features' '{"base": "x86-64-v3", "vector_bytes": 16, "features": "avx2 fmax"}'
refuse '"page": expected a power of two' '{"base": "x86-64-v3", "page": 5000}'
refuse '"machine": expected one of cortex-a53' '{"base": "aarch64", "machine": "zen4"}'

"$weft" compile "$model" --emit c -o "$out/c" --target "$root/examples/targets/cortex-a53.json" >/dev/null || bad=1
grep -q '"cortex-a53"' "$out/c/model.c" && grep -q 'mtune=cortex-a53' "$out/c/Makefile" || { echo "FAIL: cortex-a53.json"; bad=1; }
"$weft" compile "$model" --emit c -o "$out/d" --target z80 2>&1 | grep -q 'no target z80; there are native, generic-c, x86-64-v2.*riscv64-linux-gnu' ||
	{ echo "FAIL: unknown target"; bad=1; }

# The table, one of it, a file: as text and as JSON.
"$weft" show --targets >"$out/table" || bad=1
for t in generic-c x86-64-v2 x86-64-v3 x86-64-v4 aarch64-linux-gnu riscv64-linux-gnu; do
	grep -q "^$t  *[a-z0-9_-]* .* [KM]iB " "$out/table" || { echo "FAIL: show --targets: no $t"; bad=1; }
done
[ "$(grep -c ' native ' "$out/table")" -eq 1 ] || { echo "FAIL: show --targets: not one native target"; bad=1; }
"$weft" show --targets --json | python3 -c '
import json, sys
t = {t["name"]: t for t in json.load(sys.stdin)["targets"]}
assert len(t) == 6 and t["generic-c"]["runs_here"] and t["generic-c"]["has_runtime"], t
assert sum(x["native"] for x in t.values()) == 1 and all(x["runs_here"] for x in t.values() if x["native"]), t
assert not (t["aarch64-linux-gnu"]["runs_here"] and t["x86-64-v2"]["runs_here"]), t
assert t["x86-64-v4"]["vector_bytes"] == 64 and t["x86-64-v4"]["masks"] == "bits" and t["x86-64-v4"]["page"] == 4096, t
' || { echo "FAIL: show --targets --json"; bad=1; }
# Features, in any order.
"$weft" show --target x86-64-v4+bf16+vnni | grep -q '^x86-64-v4+vnni+bf16 .*avx512vnni avx512bf16' || { echo "FAIL: show --target x86-64-v4+bf16+vnni"; bad=1; }
"$weft" show --target x86-64-v3+bf16 2>&1 | grep -q 'no target x86-64-v3+bf16; .*x86-64-v3+vnni' || { echo "FAIL: a feature that the base has not"; bad=1; }
for file in "$root"/examples/targets/*.json; do
	"$weft" show --target "$file" >"$out/log" 2>&1 || { echo "FAIL: show --target $file:"; cat "$out/log"; bad=1; }
done
"$weft" show --target "$root/examples/targets/cortex-a53.json" | grep -q '^cortex-a53 .*aarch64-linux-gnu .*512 KiB' ||
	{ echo "FAIL: show --target cortex-a53.json"; bad=1; }
"$weft" show --target z80 2>&1 | grep -q 'no target z80' || { echo "FAIL: show --target z80"; bad=1; }

# In this process only what runs here; a triple that no runtime is made for.
[ "$(uname -m)" = x86_64 ] && other=aarch64 || other=x86-64-v2
"$weft" run "$model" --backend jit --target $other --inputs "$root/examples/digits/digits_cnn.safetensors" --outputs "$out/y.npz" >"$out/log" 2>&1
[ $? -eq 1 ] && grep -q 'does not run code for\|built without LLVM' "$out/log" || { echo "FAIL: jit for $other:"; cat "$out/log"; bad=1; }
echo '{"base": "aarch64", "triple": "aarch64-linux-musl"}' >"$out/musl.json"
"$weft" compile "$model" --backend llvm --target "$out/musl.json" -o "$out/m.so" >"$out/log" 2>&1
[ $? -eq 1 ] && grep -q 'no runtime for aarch64-linux-musl.*use --backend c\|built without LLVM' "$out/log" ||
	{ echo "FAIL: LLVM for musl:"; cat "$out/log"; bad=1; }

# Another compiler than the one that built weft.
for cc in gcc clang; do
	command -v $cc >/dev/null || { echo "not checked: no $cc"; continue; }
	for t in generic-c native; do
		"$weft" check "$model" "$ref" --backend c --cc $cc --target $t --threads 1,2 >"$out/log" 2>&1 ||
			{ echo "FAIL: $t by $cc:"; cat "$out/log"; bad=1; }
	done
done

# Where char is unsigned, as on aarch64 and riscv64, clang makes comparisons of bytes unsigned.
[ "$(uname -m)" = x86_64 ] && least=x86-64-v2 || least=native
if command -v clang >/dev/null; then
	for cc in cc 'clang -funsigned-char' 'clang -fsigned-char'; do
		"$weft" run "$root/tests/data/promote.pt2" --inputs "$root/tests/data/promote.safetensors" --outputs "$out/now.safetensors" \
			--backend c --cc "$cc" --target $least || bad=1
		[ -f "$out/first.safetensors" ] || cp "$out/now.safetensors" "$out/first.safetensors"
		cmp "$out/first.safetensors" "$out/now.safetensors" || { echo "FAIL: other results by $cc"; bad=1; }
	done
else
	echo "not checked: unsigned char (needs clang)"
fi

# said PATTERN COMMAND...: a line of the output (stdout and stderr) matches.
said() {
	pattern=$1
	shift
	"$@" >"$out/log" 2>&1 </dev/null
	grep -q -e "$pattern" "$out/log" || { echo "FAIL: $*: no '$pattern':"; head -5 "$out/log"; bad=1; }
}

# Machines: a name of the family or a file; the code is the same wherever it is written, and depends on what is named.
loops() {
	"$weft" compile "$model" -o "$1" --target x86-64-v4 $2 >"$out/log" 2>&1 || { echo "FAIL: $2"; cat "$out/log"; bad=1; }
}
tune() {
	printf '%s' "$2" >"$out/tune.json"
	said "tune.json.*$1" "$weft" compile "$model" -o "$out/no.loops" --tune "$out/tune.json" --target x86-64-v4
}
loops "$out/plain.loops" ""
loops "$out/assumed.loops" "--tune sapphire-rapids"
cmp -s "$out/plain.loops" "$out/assumed.loops" || { echo "FAIL: --tune with what is assumed changes the code"; bad=1; }
printf '{"base": "zen4", "name": "small", "l2": 16384, "fma": [2, 4, 2, 4]}' >"$out/small.json"
loops "$out/small.loops" "--tune $out/small.json"
! cmp -s "$out/plain.loops" "$out/small.loops" || { echo "FAIL: --tune with a small cache changes nothing"; bad=1; }
said 'no machine z80 of the family x86-64; there are nehalem, haswell' "$weft" compile "$model" -o "$out/no.loops" --tune z80 --target x86-64-v4
said 'no machine cortex-a53 of the family' "$weft" compile "$model" -o "$out/no.loops" --tune cortex-a53 --target x86-64-v4
tune '"base": expected one of nehalem' '{}'
tune '"base": expected one of nehalem' '{"base": "cortex-a53"}'
tune 'JSON object that describes a machine' '[]'
tune 'no field "colour"' '{"base": "zen4", "colour": 1}'
tune '"fma": expected 4 numbers above 0' '{"base": "zen4", "fma": [2, 4, 0, 4]}'
tune '"fma": expected 4 numbers above 0' '{"base": "zen4", "fma": [2, 4]}'
tune '"ghz": expected a number above 0' '{"base": "zen4", "ghz": 0}'
tune '"l2": expected an integer' '{"base": "zen4", "l2": 1}'
[ ! -e "$out/no.loops" ] || { echo "FAIL: refused, but a file"; bad=1; }

# Lists of levels.
said 'no target v2; there are' "$weft" compile "$model" -o "$out/no.so" --target v2,v3
said 'target x86-64-v2 is there twice' "$weft" compile "$model" -o "$out/no.so" --target x86-64-v2,v3,v2
said 'x86-64-v3 and aarch64-linux-gnu are not levels of one family' "$weft" compile "$model" -o "$out/no.so" --target x86-64-v3,arm64
said 'a name is missing in the list of targets "x86-64-v2,"' "$weft" compile "$model" -o "$out/no.so" --target x86-64-v2,
[ ! -e "$out/no.so" ] || { echo "FAIL: refused, but a file"; bad=1; }
[ "$(uname -m)" = x86_64 ] || exit $bad

# half COMMAND...: what is said of a file that was copied by half is a line with its name.
half() {
	"$@" >"$out/log" 2>&1 </dev/null
	code=$?
	{ [ $code = 1 ] && grep -q "half.so: truncated: it has" "$out/log"; } ||
		{ echo "FAIL: $*: $left of $size bytes: exit status $code"; head -5 "$out/log"; bad=1; }
}
"$weft" compile "$model" -o "$out/whole.so" >/dev/null
size=$(wc -c <"$out/whole.so")
for left in 63 64 1000 $((size / 2)) $((size - 4096)) $((size - 1)); do
	head -c "$left" "$out/whole.so" >"$out/half.so"
	half "$weft" show "$out/half.so"
	half "$weft" run "$out/half.so" --inputs "$ref" --outputs "$out/y.npz"
	half "$weft" check "$out/half.so" "$ref"
	half "$weft" compile "$model" --ops "$out/half.so" -o "$out/no.so"
done

# A file for another machine.
if "$weft" compile "$model" -o "$out/other.so" --target aarch64 >/dev/null 2>&1; then
	said 'other.so: is for another machine' "$weft" run "$out/other.so" --inputs "$ref" --outputs "$out/y.npz"
else
	echo "not checked: a file for another machine (no runtime or no linker for aarch64)"
fi

# weights FILE.so: bytes of the section.
weights() {
	"$weft" show "$1" --json | sed -n 's/.*"weight_bytes": *\([0-9]*\).*/\1/p' | grep . || echo "no weights in $1"
}

qemu=
command -v qemu-x86_64 >/dev/null && qemu=1 || echo "not checked: other processors (no qemu-x86_64)"
backends=c
"$weft" compile "$model" --backend llvm -o "$out/probe.so" >/dev/null 2>&1 && backends='c llvm'
for backend in $backends; do
	compile="$weft compile $model --backend $backend"
	$compile -o "$out/v4.so" --target x86-64-v4 >/dev/null || bad=1
	# Several levels: the best one here, whatever the order of their names; one copy of the weights.
	$compile -o "$out/all.so" --target x86-64-v4,v2,v3 >/dev/null || bad=1
	said '^1 passed, 0 failed' "$weft" check "$out/all.so" "$ref" --threads 1,2
	$compile -o "$out/v2.so" --target x86-64-v2 >/dev/null || bad=1 # runs on every x86-64 that tests run on
	[ "$(weights "$out/all.so")" = "$(weights "$out/v2.so")" ] || { echo "FAIL: weights of several levels are not shared"; bad=1; }
	$compile -o "$out/again.so" --target x86-64-v2,v3,v4 --name digits_cnn -j 1 --no-cache >/dev/null || bad=1
	$compile -o "$out/all2.so" --target x86-64-v2,v3,v4 --name digits_cnn -j 3 --no-cache >/dev/null || bad=1
	cmp "$out/again.so" "$out/all2.so" || bad=1
	$compile -o "$out/file.so" --target x86-64-v2,v3 --weights file >/dev/null || bad=1
	said '^1 passed, 0 failed' "$weft" check "$out/file.so" "$ref"
	[ "$qemu" ] || continue
	# A processor without AVX-512, one without AVX, one without SSE4.
	said 'x86-64-v4, but this processor has no avx512f' qemu-x86_64 -cpu Haswell "$run_file" "$out/v4.so" none none 1
	for cpu in Haswell Nehalem; do
		said '^1 passed, 0 failed' "$weft" check "$model" "$ref" --backend $backend --target x86-64-v2,v3,v4 --threads 1,2 \
			--runner "qemu-x86_64 -cpu $cpu $run_file"
	done
	said 'x86-64-v2, but this processor has no sse4.1' qemu-x86_64 -cpu Conroe "$run_file" "$out/all.so" none none 1
done

# More registers than the largest tile has rows: no tile is larger.
for n in 37 48 64; do
	printf '{"base": "native", "registers": %s, "pointers": 64}' $n >"$out/registers.json"
	for backend in $backends; do
		said '^1 passed, 0 failed' "$weft" check "$model" "$ref" --backend $backend --target "$out/registers.json"
	done
done

# Narrow vectors on a processor with more: FMA without AVX's registers.
echo '{"base": "x86-64-v3", "vector_bytes": 16}' >"$out/narrow.json"
for backend in $backends; do
	"$weft" compile "$model" --backend $backend -o "$out/narrow.so" --target "$out/narrow.json" >"$out/log" 2>&1 ||
		{ echo "FAIL: narrow vectors, $backend:"; head -5 "$out/log"; bad=1; }
done

# The C files of several levels build as the Makefile says.
"$weft" compile "$model" --emit c -o "$out/levels" --target x86-64-v2,v3,v4 --name several >/dev/null || bad=1
make -s -C "$out/levels" >"$out/log" 2>&1 || { echo "FAIL: make"; head -5 "$out/log"; bad=1; }
said '^1 passed, 0 failed' "$weft" check "$out/levels/several.so" "$ref"
# C for several levels is accepted without a word where every warning is an error and the Makefile's -Wno-psabi is not given, lanes of
# indices and of f64 that take several registers included. gcc has a note on its own history for those, which only the command line
# silences.
cat >"$out/wide.txt" <<'EOF'
graph @wide(%i: i64[B, 4], %t: f32[1000, 64], %x: f32[B, 64], %i0: i64[3]) where 1 <= B {
  %1 = aten.embedding(%t, %i) : f32[B, 4, 64]
  %2 = aten.sin(%x) : f32[B, 64]
  %3 = convert(%2, dtype=f64) : f64[B, 64]
  %4 = aten.exp(%3) : f64[B, 64]
  %5 = aten.index_select(%x, dim=1, %i0) : f32[B, 3]
  return %1, %4, %5
}
EOF
levels=x86-64-v2,x86-64-v3,x86-64-v4
"$weft" compile "$out/wide.txt" --emit c -o "$out/wide" --target $levels >/dev/null || bad=1
case $(uname -m) in x86_64)
	for compiler in gcc clang; do
		command -v $compiler >/dev/null || continue
		for level in v2 v3 v4; do
			for f in "$out"/wide/kernels_*_x86_64_$level.c "$out/wide/model_x86_64_$level.c"; do
				if ! $compiler -O1 -std=c11 -Wall -Wextra -Werror -ffp-contract=off -march=x86-64-$level -c -o "$out/wide.o" "$f" >"$out/log" 2>&1 ||
					grep -E 'warning|error' "$out/log" || { [ $compiler = clang ] && [ -s "$out/log" ]; } ||
					{ [ -s "$out/log" ] && [ "$(grep -c 'note: ' "$out/log")" -ne "$(grep -c 'note: the ABI for passing parameters' "$out/log")" ]; }; then
					echo "FAIL: $compiler says of $f:"
					cat "$out/log"
					bad=1
				fi
			done
		done
	done
	grep -q 'i64x4' "$out"/wide/kernels_*_v2.c || { echo "FAIL: no lanes of several registers: nothing is tested"; bad=1; }
	;;
esac
exit $bad
