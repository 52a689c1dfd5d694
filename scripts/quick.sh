#!/bin/sh
# Build, and run the unit and file tests but those that draw graphs or compute for longer: scripts/quick.sh. After a build about a minute on
# two free cores. scripts/test.sh runs all.
set -e
cd "$(dirname "$0")/.."
scripts/build.sh
exec scripts/meson_test.sh -q --suite unit --suite file --no-suite long "$@"
