#!/bin/sh
# Look for bugs with clang-tidy, by the checks in .clang-tidy: scripts/tidy.sh [FILE...], all sources when none is
# named. Any warning fails. Needs clang and clang-tidy; builds into build-tidy/ (or $BUILD, made with clang).
set -e
cd "$(dirname "$0")/.."
build=${BUILD:-build-tidy}
[ -f "$build/build.ninja" ] || CC=clang meson setup "$build" >/dev/null
command -v clang-tidy >/dev/null || { echo "tidy.sh: no clang-tidy: install it" >&2; exit 1; }
# Sources and headers that are generated have to be there.
ninja -C "$build" $(ninja -C "$build" -t targets rule CUSTOM_COMMAND | grep '\.[ch]$') >/dev/null
if [ $# -eq 0 ]; then
	set -- $(find base ir ops frontend passes lower transform codegen driver runtime tools examples -name '*.c')
fi
printf '%s\n' "$@" | nice xargs -P "$(nproc)" -n 1 clang-tidy --quiet --warnings-as-errors='*' -p "$build" 2>/dev/null
echo "clang-tidy: no warnings in $# files"
