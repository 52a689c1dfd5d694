#!/bin/sh
# Target files and refusals: targets.sh WEFT SOURCE_ROOT RUN_FILE
weft=$1
root=$2
run_file=$3
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
model=$root/examples/digits/digits_cnn.pt2
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
refuse '"page": expected a power of two' '{"base": "x86-64-v3", "page": 5000}'

"$weft" compile "$model" --emit c -o "$out/c" --target "$root/examples/targets/cortex-a53.json" >/dev/null || bad=1
grep -q '"cortex-a53"' "$out/c/model.c" && grep -q 'mtune=cortex-a53' "$out/c/Makefile" || { echo "FAIL: cortex-a53.json"; bad=1; }
"$weft" compile "$model" --emit c -o "$out/d" --target z80 2>&1 | grep -q 'no target z80; there are native, generic-c, x86-64-v2.*riscv64-linux-gnu' ||
	{ echo "FAIL: unknown target"; bad=1; }

# A processor without AVX-512.
if command -v qemu-x86_64 >/dev/null && [ "$(uname -m)" = x86_64 ]; then
	"$weft" compile "$model" -o "$out/v4.so" --target x86-64-v4 >/dev/null || bad=1
	qemu-x86_64 -cpu Haswell "$run_file" "$out/v4.so" none none 1 2>&1 | grep -q 'x86-64-v4, but this processor has no avx512f' ||
		{ echo "FAIL: x86-64-v4 runs without AVX-512"; bad=1; }
fi
exit $bad
