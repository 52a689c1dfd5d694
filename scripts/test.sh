#!/bin/sh
# Install what is missing, build and run all tests: scripts/test.sh [ARGUMENTS OF meson test]
set -e
cd "$(dirname "$0")/.."
scripts/build.sh
meson test -C "${BUILD:-build}" --print-errorlogs "$@"
