#!/bin/sh
# The public headers stand alone, in any order, in C11 to C23 and C++11 to C++23, and say nothing under strict warnings, with the compilers given
# and with gcc and clang where they are; so do headers that weft emits: headers.sh SOURCE_ROOT WEFT CC... -- CXX...
root=$1
include=$1/include
weft=$2
shift 2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
bad=0

# emit FILE ARGUMENT...: a header of one model, of several entries, of names that are no identifiers.
emit() {
	file=$1
	shift
	"$weft" compile "$@" --emit header -o "$out/$file" >"$out/log" 2>&1 || { echo "FAIL: compile $*:"; cat "$out/log"; bad=1; }
}
emit one.h "$root/examples/digits/digits_cnn.pt2"
emit two.h step="$root/tests/golden/graphs/step.pt2" peek="$root/tests/golden/graphs/peek.pt2" --name '2 entries'
names=
for n in EOF BUFSIZ INT64_MAX weft_model weft_output_shape snprintf uint64_t uintptr_t WEFT_CPU int class x X memory; do
	names="$names${names:+, }%$n: f32[B, 3]"
done
for entry in run run_workspace; do
	echo "graph @g($names) where 0 <= B <= 9 { %y = aten.add.Tensor(%x, %X) return %y }" >"$out/$entry.ir"
done
emit four.h run="$out/run.ir" run_workspace="$out/run_workspace.ir" --symbol names
emit three.h "$root/tests/data/mlp.pt2" --output-names '*/ int x; /*??/\' --symbol other_model

# accepts LANGUAGE COMPILER...: the file $out/x.LANGUAGE is compiled without a word.
accepts() {
	language=$1
	shift
	"$@" -Wall -Wextra -pedantic -Werror -I "$include" -I "$out" -fsyntax-only "$out/x.$language" >"$out/log" 2>&1 && [ ! -s "$out/log" ] ||
		{ echo "FAIL: $*:"; cat "$out/x.$language" "$out/log"; bad=1; }
}

# all LANGUAGE COMPILER...: each header alone, and in orders that matter.
all() {
	for headers in one.h two.h three.h four.h 'three.h two.h one.h' 'weft_call.h one.h weft_trace.h two.h' weft.h weft_backend.h 'weft_op.h weft_backend.h weft_trace.h' weft_call.h 'weft_call.h weft.h' weft_checkpoint.h 'weft_checkpoint.h weft_call.h' weft_comm.h 'weft_comm.h weft.h' weft_file.h 'weft_file.h weft_call.h' weft_graph.h weft_model.h weft_op.h weft_saved.h weft_trace.h 'weft_saved.h weft.h' 'weft_trace.h weft_op.h' 'weft_graph.h weft_trace.h' 'weft.h weft_op.h weft_model.h' 'weft_op.h weft_model.h weft.h' 'weft_model.h weft.h weft_model.h'; do
		for h in $headers; do
			echo "#include <$h>"
		done >"$out/x.$1"
		echo 'int main(void) { return 0; }' >>"$out/x.$1"
		accepts "$@"
	done
}

# knows LANGUAGE COMPILER...: this standard. A compiler that is not there knows none.
knows() {
	language=$1
	shift
	echo 'int main(void) { return 0; }' >"$out/none.$language"
	"$@" -fsyntax-only "$out/none.$language" >"$out/log" 2>&1
}

# standards LANGUAGE COMPILER...: all that it knows, of which there are some.
standards() {
	some=
	for std in $(if [ "$1" = c ]; then echo 11 17 2x 23; else echo 11 14 17 20 2b 23; fi); do
		option=-std=$(echo "$1" | sed 's/cc/c++/')$std
		knows "$@" "$option" || continue
		all "$@" "$option"
		some="$some $std"
	done
	[ -z "$some" ] || echo "$*:$some"
}

c=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	c="$c $1"
	shift
done
[ $# -gt 0 ] && shift
standards c $c
[ -n "$some" ] || { echo "FAIL:$c knows no standard"; bad=1; }
for other in gcc clang; do
	[ "$c" = " $other" ] || standards c $other
done
[ $# -eq 0 ] || standards cc "$@"
for other in g++ clang++; do
	[ "$*" = "$other" ] || standards cc $other
done
exit $bad
