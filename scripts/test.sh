#!/bin/sh
# Install what is missing, build and run the tests: scripts/test.sh [ARGUMENTS OF meson test]. scripts/nightly.sh adds conformance, hours of it.
set -e
cd "$(dirname "$0")/.."
scripts/setup.sh tests
scripts/build.sh
build=${BUILD:-build}
# Another Python than Debian's gets what its tests need from PyPI; where that fails, they say that they are skipped.
packages=$build/python-packages
if [ ! -d "$packages" ] && ! python3 -c 'import numpy, pytest' 2>/dev/null; then
	echo "installing numpy and pytest in $packages"
	python3 -m pip install -q --disable-pip-version-check --target "$packages" numpy pytest || rm -rf "$packages"
fi
exec scripts/meson_test.sh "$@"
