#!/bin/sh
# Compile C files and join them into one relocatable object: runtime_object.sh OUT FILE... -- CC... -- FLAG...
# CC may be several words (ccache cc).
set -e
out=$1
shift
files=
while [ "$1" != -- ]; do
	files="$files $1"
	shift
done
shift
cc=
while [ "$1" != -- ]; do
	cc="$cc $1"
	shift
done
shift
objects=
for f in $files; do
	o=$out.$(basename "$f" .c).tmp.o
	$cc "$@" -c "$f" -o "$o"
	objects="$objects $o"
done
# What tells the processor's features is part of the
# compiler's own library, which a linker that is called without the compiler does not find.
$cc -r -nostdlib -o "$out" $objects -lgcc
rm -f $objects
