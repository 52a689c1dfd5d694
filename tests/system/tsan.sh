#!/bin/sh
# The two-thread example under the thread sanitizer, weights that are set while threads run, entries that share state while weights are set, state that is put back, and branches, loops on data, failing checks and operators of the user, 10,000 times: pool provider,
# tsan.sh WEFT SOURCE_ROOT. Everything is built from the emitted C, so that the sanitizer sees all of it.
set -e
weft=$1
root=$2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
flags="-O1 -g -fsanitize=thread"
echo 'int main(void){return 0;}' >"$out/probe.c"
${CC:-cc} $flags "$out/probe.c" -o "$out/probe" 2>/dev/null && "$out/probe" || exit 77

# run MODEL DRIVER.c [OPS.so [as the sanitizer has it]]; $options are of weft compile, $second is another entry
options= second=
run() {
	"$weft" compile "$1" ${second:+"$second"} --emit c -o "$out/model" $options ${3:+--ops "$3"} >/dev/null
	make -s -C "$out/model" CC="${CC:-cc}" CFLAGS="$flags" LINK="$4"
	${CC:-cc} $flags -I"$root/include" "$2" -o "$out/driver" -pthread -ldl
	TSAN_OPTIONS=halt_on_error=1 "$out/driver" "$out"/model/*.so
	rm -r "$out/model"
}
run "$root/examples/digits/digits_cnn.pt2" "$root/examples/run_model.c"
options=--replaceable-weights
run "$root/examples/digits/digits_cnn.pt2" "$root/tests/system/c/tsan_weights.c"
options="--replaceable-weights --name running"
second=peek=$root/tests/golden/graphs/peek.pt2
run "step=$root/tests/golden/graphs/step.pt2" "$root/tests/system/c/tsan_entries.c"
options= second=
run "$root/tests/data/control/threads.ir" "$root/tests/system/c/tsan_control.c"
run "$root/tests/data/state/checked.pt2" "$root/tests/system/c/tsan_state.c"
${CC:-cc} -shared -fPIC -I"$root/include" "$root/tests/system/c/user_ops.c" -o "$out/ops.so" -pthread
${CC:-cc} $flags -shared -fPIC -I"$root/include" "$root/tests/system/c/user_ops.c" -o "$out/watched.so" -pthread
run "$root/tests/data/userop/threads.ir" "$root/tests/system/c/tsan_userop.c" "$out/ops.so" "$out/watched.so"
