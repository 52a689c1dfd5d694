#!/bin/bash
# What `meson install` leaves, moved to another folder afterwards: the files, the command with its back end and completion, and a
# program outside the tree against the shared and the static library. installed.sh BUILD SOURCE_ROOT MESON LIBDIR INCLUDEDIR BINDIR HAVE_LLVM
build=$1 root=$2 meson=$3 libdir=$4 includedir=$5 bindir=$6 have_llvm=$7
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
bad=0
model=$root/examples/digits/digits_cnn.pt2
ref=$root/examples/digits/digits_cnn.safetensors
unset WEFT_LLVM_FOLDER LD_LIBRARY_PATH

. "$root/tests/help/expect.sh"

$meson install -C "$build" --no-rebuild --quiet --destdir "$out/root" >"$out/log" 2>&1 || { echo "FAIL: meson install"; cat "$out/log"; exit 1; }
prefix=$out/elsewhere
mv "$(dirname "$(find "$out/root" -name include -type d)")" "$prefix"
rm -rf "$out/root"

# Nothing is missing, nothing else there.
(cd "$prefix" && find . ! -type d | sed 's/^..//' | LC_ALL=C sort) >"$out/files"
{
	printf '%s\n' "$bindir/weft" "$includedir"/{weft,weft_backend,weft_call,weft_checkpoint,weft_comm,weft_file,weft_graph,weft_model,weft_op,weft_saved,weft_trace}.h "$includedir"/{weft,weft_view}.hpp "$libdir/cmake/weft/"{weft-config,weft-config-version}.cmake "$libdir"/libweft.{a,so,so.0,so.0.1.0} "$libdir/pkgconfig/weft.pc" \
		share/bash-completion/completions/weft.bash share/man/man1/weft.1
	[ "$have_llvm" = yes ] && echo "$libdir/weft/weft_llvm.so"
} | LC_ALL=C sort >"$out/wanted"
diff "$out/wanted" "$out/files" || { echo "FAIL: other files"; bad=1; }

# The command, from anywhere, with the back end that was moved with it.
weft=$prefix/$bindir/weft
cd "$out" || exit 1
for backend in llvm jit; do
	[ "$have_llvm" = yes ] && expect 0 '^1 passed, 0 failed' "$weft" check "$model" "$ref" --backend $backend
done
expect 0 '^1 passed, 0 failed' env PATH="$prefix/$bindir:$PATH" weft check "$model" "$ref" --backend c
ln -s "$weft" "$out/linked"
[ "$have_llvm" = yes ] && expect 0 '^1 passed, 0 failed' "$out/linked" check "$model" "$ref" --backend jit

# complete WORD... : what bash offers for the last of them, one a line.
complete_words() {
	bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _weft; printf "%s\n" "${COMPREPLY[@]}"' - \
		"$prefix/share/bash-completion/completions/weft.bash" "$@" 2>&1 | LC_ALL=C sort
}
# completes 'WORD WORD...' WORD...: just these.
completes() {
	want=$(printf '%s\n' $1 | LC_ALL=C sort)
	shift
	got=$(complete_words "$@")
	[ "$got" = "$want" ] || { echo "FAIL: completion of $*:" $got; bad=1; }
}
completes 'compile check' weft c
completes '--backend --backend-library' weft compile m.pt2 --back
completes 'c llvm' weft compile --backend ''
completes 'c llvm' weft compile --backend =
completes 'embed' weft compile --weights = e
completes 'so,c so,asm so,llvm so,header so,ir so,program so,loops so,schedules so,cuda so,hip so,obj so,a so,so' weft compile --emit so,
completes 'x86-64-v2 x86-64-v3 x86-64-v4' "$weft" compile --target x86
completes 'log' weft run --inputs lo
completes 'log' weft show lo
completes '' weft bench --seconds ''
# Whatever the command's own tables take is offered.
for command in compile run check bench show; do
	for option in $("$weft" $command --help-all | sed -n 's/^  \(-[-a-z]*\).*/\1/p'); do
		complete_words weft $command "$option" | grep -qxF -e "$option" || { echo "FAIL: no completion of weft $command $option"; bad=1; }
	done
done

# A program outside the tree.
cp -r "$root/examples/installed" "$out/example"
export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
[ "$(pkg-config --modversion weft)" = "$("$weft" --version | cut -d' ' -f2)" ] || { echo "FAIL: versions"; bad=1; }
pkg-config --static --libs weft >"$out/libs"
for needed in -lweft -lz -ljansson; do
	grep -q -e "$needed\b" "$out/libs" || { echo "FAIL: no $needed in"; cat "$out/libs"; bad=1; }
done
pkg-config --libs weft | grep -qe '-lz' && { echo "FAIL: those who link the shared library are told of zlib"; bad=1; }
expect 0 '' make -C "$out/example" shared CC="${CC:-cc}"
lines=$([ "$have_llvm" = yes ] && echo '^output 0: .* equal$' || echo '^no LLVM')
expect 0 "$lines" env LD_LIBRARY_PATH="$prefix/$libdir" "$out/example/shared" "$model" "$ref" "$out/m.so"
expect 0 '^1 passed' "$weft" check "$out/m.so" "$ref"
expect 0 '' make -C "$out/example" static CC="${CC:-cc}"
ldd "$out/example/static" | grep -q libweft && { echo "FAIL: the static one needs libweft.so"; bad=1; }
expect 0 "$lines" env WEFT_LLVM_FOLDER="$prefix/$libdir/weft" "$out/example/static" "$model" "$ref" "$out/n.so"
cmp "$out/m.so" "$out/n.so" || { echo "FAIL: other code from the static library"; bad=1; }
# CMake finds the package, and compiles the model of a program with it.
if command -v cmake >/dev/null && [ "$have_llvm" = yes ]; then
	cp -r "$root/examples/cpp" "$root/examples/first" "$out"
	expect 0 '' cmake -S "$out/cpp" -B "$out/made" -DCMAKE_PREFIX_PATH="$prefix"
	expect 0 '' cmake --build "$out/made"
	expect 0 '^-0.3844 0.3586 -0.2775$' "$out/made/linked"
else
	echo "no cmake, or no LLVM: CMake's package is not tried"
fi
# no name of the compiler's is taken
nm -g --defined-only "$out/example/static" | grep -E ' (arena_|graph_|sym_|hash_|text_)' && { echo "FAIL: the static library's own names are global"; bad=1; }
exit $bad
