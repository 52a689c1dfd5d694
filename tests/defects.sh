#!/bin/sh
# Models on which the compiler once was wrong, never ended or said nothing: defects.sh WEFT SOURCE_ROOT BACKEND. Skipped
# (77) where ../shared/defects is not.
weft=$1
defects=$2/../shared/defects
backend=$3
[ -d "$defects" ] || exit 77
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
bad=0

"$weft" check "$defects" -q --backend "$backend" --jobs 2 || bad=1
for model in "$defects"/*.pt2 "$defects"/*.ir; do
	name=${model%.*}
	# Without results: it is compiled, or refused with one line, in half a minute of processor time.
	if [ ! -e "$name.safetensors" ]; then
		(ulimit -t 30 && exec "$weft" compile "$model" --emit c -o "$out/m.c" --no-cache -j 1) >"$out/log" 2>&1
		status=$?
		if [ $status -gt 1 ] || { [ $status -eq 1 ] && [ "$(grep -c 'error: ' "$out/log")" -ne 1 ]; }; then
			echo "FAIL: $model: status $status: $(cat "$out/log")"
			bad=1
		fi
		rm -rf "$out/m.c"
	fi
	# Inputs that the model's guards forbid.
	if [ -e "$name.in.safetensors" ] &&
		{ "$weft" run "$model" --inputs "$name.in.safetensors" --outputs "$out/y.safetensors" --backend "$backend" >"$out/log" 2>&1 ||
			[ $? -ne 1 ] || ! grep -Eq 'expected|violate' "$out/log"; }; then
		echo "FAIL: $model takes inputs that its guards forbid: $(cat "$out/log")"
		bad=1
	fi
done
exit $bad
