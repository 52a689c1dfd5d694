#!/bin/sh
# One object of many archives in which only the functions of the map are global, as a static library: whatever a program
# calls its own functions, they are not ours. static_library.sh OUT MAP ARCHIVE... -- CC...
set -e
out=$1
map=$2
shift 2
archives=
while [ "$1" != -- ]; do
	archives="$archives $1"
	shift
done
shift
sed -n 's/^\t\(weft_[a-z_0-9]*\);$/\1/p' "$map" >"$out.symbols"
"$@" -r -nostdlib -o "$out.all.o" -Wl,--whole-archive $archives -Wl,--no-whole-archive
"${OBJCOPY:-objcopy}" --keep-global-symbols="$out.symbols" "$out.all.o" "$out.o"
rm -f "$out"
"${AR:-ar}" rcsD "$out" "$out.o"
rm -f "$out.symbols" "$out.all.o" "$out.o"
