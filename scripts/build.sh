#!/bin/sh
# Install what is missing and build into build/ (or $BUILD): scripts/build.sh [TARGET...]
set -e
cd "$(dirname "$0")/.."
scripts/setup.sh
build=${BUILD:-build}
echo "configuring $build"
if [ -f "$build/build.ninja" ]; then
	# Sources are found by listing folders: look again.
	meson setup --reconfigure "$build" >/dev/null
else
	meson setup "$build" >/dev/null
fi
ninja -C "$build" "$@"
