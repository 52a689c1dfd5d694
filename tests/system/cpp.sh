#!/bin/sh
# The C++ header: programs of tests/system/cpp and examples/cpp with each C++ compiler that is there, with and without exceptions, by each
# standard from C++17 on; CMake's package where cmake is. cpp.sh WEFT SOURCE_ROOT CXX
weft=$1 root=$2 cxx=$3
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
bad=0
fail() {
	echo "FAIL $*"
	bad=1
}
models() {
	"$weft" compile "$root/examples/first/net.pt2" --replaceable-weights --emit so,header -o "$out/net.so" &&
		"$weft" compile step="$root/tests/golden/graphs/step.pt2" peek="$root/tests/golden/graphs/peek.pt2" -o "$out/state.so" &&
		"$weft" compile "$root/tests/data/sizes/head.pt2" -o "$out/head.so"
}
models >"$out/log" 2>&1 || fail "$(cat "$out/log")"
printf '0.1558 -0.3415 -0.0492\n-0.3844 0.3586 -0.2775\n' >"$out/want"

# runs PROGRAM ARGUMENT CXX ARGUMENTS...: compiled without a warning, then run in the folder of the models.
runs() {
	program=$1 argument=$2
	shift 2
	"$@" -Wall -Wextra -pedantic -Werror -I"$root/include" -I"$out" -o "$out/$program" -ldl -pthread 2>"$out/log" || fail "$*: $(cat "$out/log")"
	(cd "$out" && "./$program" "$argument") >"$out/got" 2>&1 || fail "$* fails: $(cat "$out/got")"
}
for compiler in "$cxx" $(command -v clang++ g++); do
	case " $tried " in *" $(basename "$compiler") "*) continue ;; esac
	tried="$tried $(basename "$compiler")"
	runs calls . "$compiler" -std=c++17 -O1 "$root/tests/system/cpp/calls.cc"
	runs calls_returned . "$compiler" -std=c++17 -O1 -fno-exceptions "$root/tests/system/cpp/calls.cc"
	for std in 20 2b; do
		"$compiler" -std=c++$std -fsyntax-only -Wall -Wextra -pedantic -Werror -I"$root/include" "$root/tests/system/cpp/calls.cc" 2>"$out/log" ||
			fail "$compiler, C++$std: $(cat "$out/log")"
	done
	runs predict net.so "$compiler" -std=c++17 "$root/examples/cpp/predict.cc"
	cmp -s "$out/got" "$out/want" || fail "predict of $compiler: $(cat "$out/got")"
	runs linked . "$compiler" -std=c++17 "$root/examples/cpp/linked.cc" "$out/net.so" -Wl,-rpath,"$out"
	cmp -s "$out/got" "$out/want" || fail "linked of $compiler: $(cat "$out/got")"
done
echo "compilers:$tried"
exit $bad
