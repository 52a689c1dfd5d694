#!/bin/sh
# Run tests of build/ (or $BUILD), and print a line for each suite: scripts/meson_test.sh [ARGUMENTS OF meson test]. scripts/quick.sh and
# scripts/test.sh build before.
cd "$(dirname "$0")/.." || exit
build=${BUILD:-build} status=0
meson test -C "$build" --print-errorlogs "$@" || status=$?
python3 scripts/summary.py "$build"
exit $status
