#!/bin/sh
# Back ends outside of Weft, built with the public headers alone: what they make, and what is said of libraries and of
# back ends that are wrong. backend_library.sh WEFT SOURCE_ROOT CC...
weft=$1
root=$2
shift 2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
model=$root/examples/digits/digits_cnn.pt2
bad=0

. "$root/tests/help/expect.sh"

# one_line: the last command said no more than one sentence.
one_line() {
	[ "$(wc -l <"$out/log")" -eq 1 ] || { echo "FAIL: more than one line:"; cat "$out/log"; bad=1; }
}

must() {
	"$@" || { echo "FAIL: $*"; bad=1; }
}

mkdir "$out/include" # nothing of the source tree else
cp "$root"/include/weft*.h "$out/include"

build() { # build FILE.c LIBRARY
	$compiler -shared -fPIC -Wall -Wextra -Werror -I "$out/include" "$1" -o "$2" || { echo "FAIL: $1 is not compiled"; bad=1; }
}
compiler="$*"

build "$root/examples/backend/listing.c" "$out/liblisting.so"
with="--backend-library $out/liblisting.so"

# One file: its kernels are those of --emit loops but for their names, line by line.
expect 0 'operators in .* kernels' "$weft" compile "$model" $with --backend listing --target x86-64-v3 -o "$out/m.listing"
must "$weft" compile "$model" --emit loops --target x86-64-v3 -o "$out/m.loops" >/dev/null
grep -v '^loop ' "$out/m.loops" >"$out/bodies"
tail -n "$(wc -l <"$out/m.loops")" "$out/m.listing" | grep -v '^loop ' >"$out/listed"
must cmp "$out/bodies" "$out/listed"
for line in '^entry run: 1 inputs, 1 outputs$' '^call 0: k_' '^loop sizes(' '^loop run(' '^  launch 0 '; do
	must grep -q "$line" "$out/m.listing"
done
echo 'graph @softmax(%x: f32[B, 10]) where 1 <= B {
  %y = aten.softmax.int(%x, dim=-1) : f32[B, 10]
  return %y
}' >"$out/softmax.ir"
must "$weft" compile "$out/softmax.ir" $with --backend listing --target x86-64-v3 -o "$out/s.listing" >/dev/null
for line in '^fn exp_f32(x.1: f32x8) -> f32x8 {$' '^  result '; do
	must grep -q "$line" "$out/s.listing"
done
# Every function that is called is there.
for fn in $(grep -oE '\b[a-z0-9_]+_f32\(' "$out/s.listing" | sort -u | tr -d '('); do
	must grep -q "^fn $fn(" "$out/s.listing"
done

# A folder: new, and over one that is there.
for k in 1 2; do
	expect 0 'operators in' "$weft" compile "$model" $with --backend parts --target generic-c -o "$out/folder"
done
must test -s "$out/folder/entries.txt" -a -s "$out/folder/weights.bin"
must "$weft" compile "$model" --emit c --target generic-c -o "$out/c" >/dev/null
must cmp "$out/folder/weights.bin" "$out/c/weights.bin"
must test "$(ls "$out/folder"/*.loop | wc -l)" -eq "$("$weft" compile "$model" --target generic-c --emit header --json -o "$out/h" | grep -o '"distinct": *[0-9]*' | grep -o '[0-9]*$')"

# What they refuse and what fails; nothing is left.
expect 1 'back end parts: x86-64-v3 has vectors: expected a target with one lane, generic-c$' "$weft" compile "$model" $with --backend parts --target x86-64-v3 -o "$out/none"
one_line
expect 1 'back end two-parts: digits_cnn has [0-9]* kernels, expected at most 2$' "$weft" compile "$model" $with --backend two-parts -o "$out/none"
one_line
expect 1 'back end listing: .* takes one target, not several levels' "$weft" compile "$model" $with --backend listing --target x86-64-v2,v3 -o "$out/none"
expect 1 'back end listing: .* knows no replaceable weights' "$weft" compile "$model" $with --backend listing --replaceable-weights -o "$out/none"
expect 1 'back end listing: .* has no file of weights beside what it makes' "$weft" compile "$model" $with --backend listing --weights file -o "$out/none"
expect 1 'no back end list: there are llvm, c, cuda, gpu-host, listing, parts, two-parts$' "$weft" compile "$model" $with --backend list -o "$out/none"
one_line
expect 1 'no back end listing: there are llvm, c, cuda, gpu-host$' "$weft" compile "$model" --backend listing -o "$out/none"
expect 1 'there is a back end listing already' "$weft" compile "$model" $with $with --backend listing -o "$out/none"
must test ! -e "$out/none"
expect 0 '^listing .*the program as one text' "$weft" show --backends $with
expect 0 '^c .*C text and a C compiler' "$weft" show --backends

# Libraries that are none: one sentence.
# refused PATTERN LIBRARY
refused() {
	expect 1 "$1" "$weft" compile "$model" --backend-library "$2" --backend listing -o "$out/none"
	one_line
}
refused 'none.so: error: cannot open: No such file or directory$' "$out/none.so"
echo 'no library' >"$out/text.so"
refused 'cannot load a library of back ends: .*text.so' "$out/text.so"
refused 'cannot load a library of back ends: .*include' "$out/include"
refused 'a.so: error: no library of back ends: it has no function weft_backends_of$' "$(echo 'int x;' >"$out/a.c" && build "$out/a.c" "$out/a.so" && echo "$out/a.so")"
# a definition's part: wrong NAME PATTERN, the function's body on stdin
wrong() {
	{ echo '#include "weft_backend.h"
static int emit(void *u, const WeftBackendProgram *p, WeftBackendOutput *o) { (void)u; (void)p; return !o->add(o, NULL, "x", 1); }
const WeftBackendLibrary *weft_backends_of(void);
const WeftBackendLibrary *weft_backends_of(void) {'
	cat
	echo '}'; } >"$out/$1.c"
	build "$out/$1.c" "$out/$1.so"
	refused "$2" "$out/$1.so"
}
wrong version 'version.so: error: a library of back ends for version 1 of weft_backend.h, expected 2$' <<'END'
	static const WeftBackendLibrary l = {1, NULL}; (void)emit; return &l;
END
wrong empty 'empty.so: error: a library of back ends that has none$' <<'END'
	static const WeftBackendDef *const none[] = {NULL};
	static const WeftBackendLibrary l = {2, none}; (void)emit; return &l;
END
wrong null 'null.so: error: a library of back ends that has none$' <<'END'
	(void)emit; return NULL;
END
wrong old 'old.so: error: its definition has 12 bytes, expected .*: it was compiled with another weft_backend.h$' <<'END'
	static const WeftBackendDef d = {.size = 12, .name = "listing", .emit = emit}; static const WeftBackendDef *const list[] = {&d, NULL};
	static const WeftBackendLibrary l = {2, list}; return &l;
END
wrong name 'name.so: error: a back end cannot be called "a b": expected letters, digits, - and _$' <<'END'
	static const WeftBackendDef d = {.size = sizeof d, .name = "a b", .emit = emit}; static const WeftBackendDef *const list[] = {&d, NULL};
	static const WeftBackendLibrary l = {2, list}; return &l;
END
wrong taken 'taken.so: error: there is a back end llvm already$' <<'END'
	static const WeftBackendDef d = {.size = sizeof d, .name = "llvm", .emit = emit}; static const WeftBackendDef *const list[] = {&d, NULL};
	static const WeftBackendLibrary l = {2, list}; return &l;
END
wrong emit 'emit.so: error: back end listing has no function emit$' <<'END'
	static const WeftBackendDef d = {.size = sizeof d, .name = "listing"}; static const WeftBackendDef *const list[] = {&d, NULL};
	static const WeftBackendLibrary l = {2, list}; (void)emit; return &l;
END
exit $bad
