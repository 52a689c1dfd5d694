#!/bin/sh
# The public headers stand alone, in any order, in C and in C++, and say nothing under strict warnings: headers.sh SOURCE_ROOT CC... -- CXX...
include=$1/include
shift
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
bad=0

# accepts LANGUAGE COMPILER...: the file $out/x.LANGUAGE is compiled without a word.
accepts() {
	language=$1
	shift
	"$@" -Wall -Wextra -pedantic -Werror -I "$include" -fsyntax-only "$out/x.$language" >"$out/log" 2>&1 && [ ! -s "$out/log" ] ||
		{ echo "FAIL: $*:"; cat "$out/x.$language" "$out/log"; bad=1; }
}

# all LANGUAGE COMPILER...
all() {
	for headers in weft.h weft_graph.h weft_model.h weft_op.h weft_saved.h weft_trace.h 'weft_saved.h weft.h' 'weft_trace.h weft_op.h' 'weft_graph.h weft_trace.h' 'weft.h weft_op.h weft_model.h' 'weft_op.h weft_model.h weft.h' 'weft_model.h weft.h weft_model.h'; do
		for h in $headers; do
			echo "#include <$h>"
		done >"$out/x.$1"
		echo 'int main(void) { return 0; }' >>"$out/x.$1"
		accepts "$@"
	done
}

c=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	c="$c $1"
	shift
done
[ $# -gt 0 ] && shift
all c $c -std=c17
all c $c -std=c11
[ $# -eq 0 ] || all cc "$@" -std=c++17
exit $bad
