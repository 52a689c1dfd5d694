#!/bin/sh
# Makes tests/versions/versions.tar.xz anew: tests/versions/make_versions.sh [VERSION...] (2.5 to 2.15). Each version of PyTorch comes from PyPI for
# $PYTHON (python3), one after the other, some 900 MB each, and exports the models of make_versions.py. With versions named, only those are
# made anew. FOLDERS=FOLDER: also keeps what was made there.
set -e
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3} archive=tests/versions/versions.tar.xz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/made"
[ ! -f $archive ] || tar -C "$work/made" -xf $archive
for version in ${@:-2.5 2.6 2.7 2.8 2.9 2.10 2.11 2.12 2.13 2.14 2.15}; do
	echo "PyTorch $version"
	"$python" tests/versions/old_torch.py "$version.*" "$work/torch"
	rm -rf "$work/made/$version"
	PYTHONPATH="$work/torch" "$python" tests/versions/make_versions.py "$work/made/$version" ||
		echo "PyTorch $version: not all models, see above (2.7 and 2.8 cannot save infinities)"
	rm -rf "$work/torch"
done
[ -z "$FOLDERS" ] || cp -r "$work/made/." "$FOLDERS"
tar -C "$work/made" -cf - --sort=name --mtime=@0 --owner=0 --group=0 . | xz -9e >$archive
ls -l $archive
