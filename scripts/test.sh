#!/bin/sh
# Install what is missing, build and run the tests: scripts/test.sh [ARGUMENTS OF meson test]. scripts/nightly.sh adds conformance, hours of it.
set -e
cd "$(dirname "$0")/.."
scripts/build.sh
meson test -C "${BUILD:-build}" --print-errorlogs "$@"
