#!/bin/sh
# Install what is missing and build into build/ (or $BUILD): scripts/build.sh [TARGET...]
set -e
cd "$(dirname "$0")/.."
scripts/setup.sh
build=${BUILD:-build}
echo "configuring $build"
again=
[ ! -f "$build/build.ninja" ] || again=--reconfigure # sources are found by listing folders: look again
scripts/patiently.sh "configuring $build" meson setup $again "$build" >/dev/null || {
	tail -n 5 "$build/meson-logs/meson-log.txt"
	exit 1
}
ninja -C "$build" "$@"
