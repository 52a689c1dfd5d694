#!/bin/sh
# The LLVM back end through the command: the same bytes every time, no C compiler, what it can emit. Of a weft without
# LLVM: what it says. backends.sh WEFT SOURCE_ROOT
weft=$1
root=$2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
model=$root/examples/digits/digits_cnn.pt2
ref=$root/examples/digits/digits_cnn.safetensors
bad=0

. "$(dirname "$0")/../help/expect.sh"

# one_line: the last command said no more than one sentence.
one_line() {
	[ "$(wc -l <"$out/log")" -eq 1 ] || { echo "FAIL: more than one line:"; cat "$out/log"; bad=1; }
}

# must COMMAND...: status 0.
must() {
	"$@" || { echo "FAIL: $*"; bad=1; }
}

have() {
	command -v "$1" >/dev/null 2>&1
}

# The interpreter of loop IR: needs no compiler, any one target, no file to run elsewhere, nothing to time.
expect 0 '^1 passed' env PATH= CC=/none "$weft" check "$model" "$ref" --backend loops
expect 0 '^1 passed' "$weft" check "$model" "$ref" --backend loops --op-by-op
expect 1 'for one target, not for several' "$weft" run "$model" --backend loops --target x86-64-v2,v3 --inputs "$ref" --outputs "$out/y.npz"
expect 1 'it needs a file' "$weft" check "$model" "$ref" --backend loops --runner true
expect 2 'interpreters and gpu-host are not timed' "$weft" bench "$model" --backend loops --seconds 0.05
expect 2 'interpreters and gpu-host are not timed' "$weft" bench "$model" --backend gpu-host --seconds 0.05
expect 2 'interpreters and gpu-host are not timed' "$weft" bench "$model" --backend gpu-host --target gpu-model --seconds 0.05
expect 2 'jit, c, llvm, loops, gpu-host or interp, not loop' "$weft" run "$model" --backend loop --inputs "$ref" --outputs "$out/y.npz"

if "$weft" compile "$model" --backend llvm -o "$out/first.so" 2>&1 | grep -q 'built without LLVM'; then
	expect 1 'built without LLVM; use --backend c' "$weft" compile "$model" --backend llvm -o "$out/m.so"
	one_line
	expect 1 'built without LLVM; use --backend c' "$weft" run "$model" --backend jit --inputs "$ref" --outputs "$out/y.npz"
	one_line
	expect 1 'built without LLVM' "$weft" bench "$model" --backend jit --seconds 0.05
	expect 0 '^1 passed' "$weft" check "$model" "$ref"
	exit $bad
fi

# A library of another build, or none at all, beside the program: refused before it is loaded, C by default.
mkdir "$out/stale"
cp "$weft" "$out/stale/weft"
for what in other text folder; do
	case $what in
	other) python3 - "$(dirname "$weft")/weft_llvm.so" "$out/stale/weft_llvm.so" <<-'END'
		import re, sys
		data = open(sys.argv[1], "rb").read()
		new, n = re.subn(rb"(weft\0\0\0\0)[0-9a-f]{32}", rb"\1" + b"0" * 32, data)
		assert n == 1, n
		open(sys.argv[2], "wb").write(new)
		END
		;;
	text) echo 'no library' >"$out/stale/weft_llvm.so" ;;
	folder) rm "$out/stale/weft_llvm.so" && mkdir "$out/stale/weft_llvm.so" ;;
	esac
	expect 1 'weft_llvm.so does not belong to this build of weft' "$out/stale/weft" run "$model" --backend jit --inputs "$ref" --outputs "$out/y.npz"
	one_line
	have cc && expect 0 '^1 passed' "$out/stale/weft" check "$model" "$ref"
done
rm -r "$out/stale"

# Not found: a note; by the environment: found. Nothing else in the folder that is named, and the options win.
mkdir "$out/alone"
cp "$weft" "$out/alone/weft"
installed=$("$out/alone/weft" compile "$model" --backend llvm -o "$out/alone/m.so" >/dev/null 2>&1 && echo yes)
if [ -z "$installed" ] && have cc; then
	expect 0 'note: the LLVM back end (weft_llvm.so) is not found: a C compiler is used' "$out/alone/weft" compile "$model" -o "$out/alone/m.so"
	[ "$(grep -c note "$out/log")" -eq 1 ] || { echo "FAIL: not one note"; bad=1; }
	expect 0 'note: the LLVM back end (weft_llvm.so) is not found: a C compiler is used' "$out/alone/weft" run "$model" --inputs "$ref" --outputs "$out/y.npz"
	[ "$(grep -c note "$out/log")" -eq 1 ] || { echo "FAIL: not one note of run"; bad=1; }
	mkdir "$out/alone/two" && for k in a b; do cp "$model" "$out/alone/two/$k.pt2" && cp "$ref" "$out/alone/two/$k.safetensors"; done
	expect 0 '^2 passed' "$out/alone/weft" check "$out/alone/two"
	[ "$(grep -c note "$out/log")" -eq 1 ] || { echo "FAIL: not one note of check"; bad=1; }
	expect 0 'note: the LLVM back end' "$out/alone/weft" bench "$model" --inputs "$ref" --seconds 0.01 --no-op-by-op
	[ "$(grep -c note "$out/log")" -eq 1 ] || { echo "FAIL: not one note of bench"; bad=1; }
	expect 0 'operators in' "$out/alone/weft" compile "$model" --backend c -o "$out/alone/m.so"
	grep -q note "$out/log" && { echo "FAIL: a note where C was asked for"; bad=1; }
fi
here=$(cd "$(dirname "$weft")" && pwd)
expect 0 ' llvm [0-9]' env WEFT_LLVM_FOLDER="$here" "$out/alone/weft" compile "$model" -o "$out/alone/m.so"
expect 0 '"seconds"' env WEFT_LLVM_FOLDER="$here" PATH=/nowhere "$out/alone/weft" run "$model" --inputs "$ref" --outputs "$out/y.npz" --json
expect 1 'the LLVM back end (weft_llvm.so) is not in /nowhere \[W0012\]$' env WEFT_LLVM_FOLDER=/nowhere "$weft" compile "$model" --backend llvm -o "$out/alone/m.so"
rm -r "$out/alone"

# The same bytes, however many threads compile.
for options in '' '-j 1' '-j 3'; do
	expect 0 'operators in' "$weft" compile "$model" --backend llvm -o "$out/d.so" --name m $options
	[ -f "$out/m.so" ] || cp "$out/d.so" "$out/m.so"
	must cmp "$out/d.so" "$out/m.so"
	expect 0 'operators in' "$weft" compile "$model" --emit llvm -o "$out/d.ll" --name m $options
	[ -f "$out/m.ll" ] || cp "$out/d.ll" "$out/m.ll"
	must cmp "$out/d.ll" "$out/m.ll"
done

# No C compiler: a folder that holds nothing but a linker; nothing at all for the JIT.
mkdir "$out/bin"
have ld.lld || have ld.lld-19 || have ld || { echo "FAIL: no linker: shared objects cannot be checked"; bad=1; }
for linker in ld.lld ld.lld-19 ld; do
	if have $linker; then
		rm -f "$out/bin/"*
		ln -s "$(command -v $linker)" "$out/bin/$linker"
		expect 0 'operators in' env PATH="$out/bin" "$weft" compile "$model" --backend llvm -o "$out/$linker.so"
		expect 0 '^1 passed, 0 failed' env PATH=/nowhere "$weft" check "$out/$linker.so" "$ref" --threads 1,2
		expect 0 '^1 passed, 0 failed' env PATH="$out/bin" "$weft" check "$model" "$ref" --backend llvm
		expect 0 'FLOP/s' env PATH="$out/bin" "$weft" bench "$model" --inputs "$ref" --backend llvm --seconds 0.05
	fi
done
expect 0 '^1 passed, 0 failed' env PATH=/nowhere TMPDIR=/nowhere HOME=/nowhere "$weft" check "$model" "$ref" --backend jit --threads 1,2
expect 0 '^1 passed, 0 failed' env PATH=/nowhere "$weft" check "$model" "$ref"
expect 0 '"seconds"' env PATH=/nowhere "$weft" run "$model" --inputs "$ref" --outputs "$out/y.npz" --json
expect 0 'FLOP/s' env PATH=/nowhere TMPDIR=/nowhere "$weft" bench "$model" --inputs "$ref" --threads 1,2 --seconds 0.05 --profile
expect 1 'no linker on PATH for .*: install' env PATH=/nowhere "$weft" compile "$model" --emit obj -o "$out/no.o"
one_line
[ ! -e "$out/no.o" ] || { echo "FAIL: no linker, but a file"; bad=1; }

# Without a linker weft links itself: the same model, the same file every time.
if [ "$(uname -m)" = x86_64 ]; then
	for options in "" "--weights file" "--target x86-64-v2,v3,v4" "--replaceable-weights"; do
		# shellcheck disable=SC2086
		expect 0 'operators in' env PATH=/nowhere "$weft" compile "$model" --backend llvm $options -o "$out/own.so"
		expect 0 '^1 passed, 0 failed' env PATH=/nowhere "$weft" check "$out/own.so" "$ref" --threads 1,2
	done
	cp "$out/own.so" "$out/own1.so"
	expect 0 'operators in' env PATH=/nowhere "$weft" compile "$model" --backend llvm --replaceable-weights -o "$out/own.so"
	must cmp "$out/own.so" "$out/own1.so"
	expect 1 'install lld' env PATH=/nowhere "$weft" compile "$model" --backend llvm --link m -o "$out/no.so"
fi

[ ! -e "$out/no.a" ] || { echo "FAIL: refused, but a file"; bad=1; }

# What it emits. The texts hold several units, each to be read by itself.
expect 0 'operators in' "$weft" compile "$model" --backend llvm -o "$out/digits.so" --emit so,obj,a,llvm,asm
for file in digits.o digits.a digits.ll digits.s; do
	[ -s "$out/$file" ] || { echo "FAIL: $file is empty or missing"; bad=1; }
done
# units FILE EXTENSION: into u1.EXTENSION, u2....
units() {
	awk -v out="$out" -v ext="$2" '/^[;#] ---- / { n++ } { print > out "/u" n "." ext }' "$1"
	[ -s "$out/u1.$2" ] || { echo "FAIL: no units in $1"; bad=1; }
}
units "$out/digits.ll" ll
units "$out/digits.s" s
if have llvm-as-19; then
	for unit in "$out"/u*.ll; do
		must llvm-as-19 "$unit" -o "$out/u.bc"
	done
else
	echo "not checked: the IR text (needs llvm-as-19)"
fi
if have cc; then
	for unit in "$out"/u*.s; do
		must cc -c "$unit" -o "$out/u.o"
	done
	printf '#include "weft_model.h"\nint main() { return sizeof(WeftSizes) == 0; }\n' >"$out/main.cc"
	! have c++ || must c++ -std=c++11 -pedantic -Wall -Wextra -Werror -I "$root/include" "$out/main.cc" -o "$out/main"
	cat >"$out/main.c" <<-'END'
		#include <stdio.h>
		#include "weft_model.h"
		const WeftModel *weft_model(void);
		const WeftModel *again(void) { return weft_model(); }
		int main(void)
		{
			WeftInstance *i = NULL;
			WeftStatus s = {0};
			if (weft_model()->open(weft_model(), NULL, &i, &s) != WEFT_OK)
				return puts(s.message), 1;
			weft_model()->close(i);
			return puts("opened") < 0;
		}
	END
	must cc -I "$root/include" "$out/main.c" "$out/digits.a" -o "$out/main" -lm
	expect 0 '^opened' "$out/main"
	must cc -shared -fPIC -I "$root/include" "$out/main.c" "$out/digits.a" -o "$out/linked.so" -lm
	expect 0 '^1 passed, 0 failed' "$weft" check "$out/linked.so" "$ref" --threads 1,2
	must cc -r "$out/digits.o" -o "$out/u.o"
fi
exit $bad
