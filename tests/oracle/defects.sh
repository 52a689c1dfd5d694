#!/bin/sh
# Models on which the compiler once was wrong, never ended or said nothing: defects.sh WEFT SOURCE_ROOT BACKEND. Those of
# ../shared/defects3 forward and, where the reference has cotangents, by their gradients; tests/expected/defects3.txt lists what
# fails. Those of ../shared/defects4 in the same two ways; none of them may fail. Skipped (77) where ../shared/defects is not.
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

# compare MODE: what fails now against the list; a listed model that passes is a failure too.
compare() {
	where='^(all|compiled)$'
	[ "$backend" = interp ] && where='^all$'
	awk -v mode="$1" -v where="$where" '!/^#/ && $2 == mode && $3 ~ where { print $1 }' "$2/tests/expected/defects3.txt" |
		LC_ALL=C sort >"$out/listed"
	set -- "$1" "$2/../shared/defects3"
	option=
	[ "$1" = vjp ] && option='--mode vjp'
	# shellcheck disable=SC2086 # no option is no word
	"$weft" check "$2" -q --backend "$backend" --jobs 2 $option >"$out/log" 2>&1
	grep -q ' passed' "$out/log" || { cat "$out/log"; return 1; }
	sed -n 's|^FAIL .*/\([^/]*\)\.pt2.*|\1|p' "$out/log" | LC_ALL=C sort -u >"$out/failed"
	cmp -s "$out/listed" "$out/failed" && return 0
	echo "defects3, $1: - fails and is not listed, + passes and is to be removed from tests/expected/defects3.txt"
	diff "$out/failed" "$out/listed" | sed -n 's/^< /- /p; s/^> /+ /p'
	cat "$out/log"
	return 1
}

# check_all MODE FOLDER: all pass, and some are compared.
check_all() {
	option=
	[ "$1" = vjp ] && option='--mode vjp'
	# shellcheck disable=SC2086 # no option is no word
	"$weft" check "$2" -q --backend "$backend" --jobs 2 $option >"$out/log" 2>&1 && grep -q '^[1-9][0-9]* passed' "$out/log" && return 0
	cat "$out/log"
	return 1
}

for mode in forward vjp; do
	[ ! -d "$2/../shared/defects3" ] || compare $mode "$2" || bad=1
	[ ! -d "$2/../shared/defects4" ] || check_all $mode "$2/../shared/defects4" || bad=1
done
exit $bad
