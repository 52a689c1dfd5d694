#!/bin/sh
# The two-thread example under the thread sanitizer, and branches, loops on data and failing checks, 10,000 times: pool provider,
# tsan.sh WEFT SOURCE_ROOT. Everything is built from the emitted C, so that the sanitizer sees all of it.
set -e
weft=$1
root=$2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
flags="-O1 -g -fsanitize=thread"
echo 'int main(void){return 0;}' >"$out/probe.c"
${CC:-cc} $flags "$out/probe.c" -o "$out/probe" 2>/dev/null && "$out/probe" || exit 77

# run MODEL DRIVER.c
run() {
	"$weft" compile "$1" --emit c -o "$out/model" >/dev/null
	make -s -C "$out/model" CC="${CC:-cc}" CFLAGS="$flags" OPENMP=-Wno-unknown-pragmas
	${CC:-cc} $flags -I"$root/include" "$2" -o "$out/driver" -pthread -ldl
	name=$(basename "$1")
	TSAN_OPTIONS=halt_on_error=1 "$out/driver" "$out/model/${name%.*}.so"
	rm -r "$out/model"
}
run "$root/examples/digits/digits_cnn.pt2" "$root/examples/run_model.c"
run "$root/tests/data/control/threads.ir" "$root/tests/tsan_control.c"
