#!/bin/sh
# Builds the wheel of this checkout, installs it into an empty virtual environment, and runs the tests of the package
# there, where PATH has neither a compiler nor a linker.
#
#   scripts/wheel.sh FOLDER [OPTIONS of pip wheel]
#
# FOLDER gets the wheel. The environment gets pytest and NumPy from PyPI, and PyTorch with TORCH=1. PACKAGES=FOLDER:...: the
# packages of those folders (site-packages of other environments) are seen instead, and nothing is fetched for the tests.
set -e
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:?usage: scripts/wheel.sh FOLDER [OPTIONS of pip wheel]}
shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$root/scripts/setup.sh" python
python3 -m venv "$work/build"
"$work/build/bin/pip" wheel --quiet --no-deps -w "$folder" "$@" "$root"
wheel=$(ls -t "$folder"/weft-*.whl | head -1)
echo "$wheel: $(wc -c <"$wheel") bytes"

python3 -m venv "$work/empty"
"$work/empty/bin/pip" install --quiet --no-deps "$wheel"
if [ "$PACKAGES" ]; then
	echo "$PACKAGES" | tr : '\n' >"$(ls -d "$work"/empty/lib/python3*/site-packages)/packages.pth"
else
	"$work/empty/bin/pip" install --quiet pytest numpy ${TORCH:+torch expecttest}
fi
cd "$work"
env -i PATH=/nowhere HOME="$work" WEFT_SOURCE="$root" "$work/empty/bin/python" -m pytest -q -p no:cacheprovider "$root/python/tests"
