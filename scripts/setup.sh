#!/bin/sh
# Install what is missing for building, on Debian 12 or 13 as root, and nothing that is there already: scripts/setup.sh [python [FOLDER]|tests]
# A fresh Debian downloads 220 MB (230 MB for python, 235 MB for tests), which take 1.1 GB of disk.
# python: also what `pip install .` needs; builds Weft, in 1 to 2 minutes on two free cores, and installs it in the environment FOLDER, which is made
# if it is not there.
# tests: also what tests of the Python package need with Debian's Python, but for PyTorch.
set -e
here=$(dirname "$0")
have() { command -v "$1" >/dev/null 2>&1; }
header() { echo "#include <$1>" | cc -E - >/dev/null 2>&1; }
newer_llvm() { [ "$(llvm-config --version 2>/dev/null | cut -d. -f1)" -ge 19 ] 2>/dev/null; }
need=
{ have cc && header stdlib.h; } || need="$need build-essential"
have meson || need="$need meson"
have ninja || need="$need ninja-build"
have pkg-config || need="$need pkg-config"
have python3 || need="$need python3"
have xz || need="$need xz-utils"
{ have llvm-config-19 || newer_llvm; } || need="$need llvm-19-dev"
{ header zlib.h && header zstd.h; } || need="$need zlib1g-dev libzstd-dev"
have ld.lld || have ld.lld-19 || have ld || need="$need lld-19"
ldconfig -p 2>/dev/null | grep -q 'liblapack\.so\.3' || need="$need liblapack3"
header jansson.h || need="$need libjansson-dev"
printf '#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <cmocka.h>\n' |
	cc -E - >/dev/null 2>&1 || need="$need libcmocka-dev"
if [ "$1" = python ]; then
	include=$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null) || include=
	[ -f "$include/Python.h" ] || need="$need python3-dev"
	python3 -c 'import ensurepip' 2>/dev/null || need="$need python3-venv"
fi
if [ "$1" = tests ]; then
	case $(command -v python3) in
	/usr/bin/python3 | '') # '': not installed yet
		python3 -c 'import numpy, pytest' 2>/dev/null || need="$need python3-numpy python3-pytest python3-dev"
		;;
	esac
fi
if [ -n "$need" ]; then
	echo "installing Debian packages (220 to 235 MB to download if all are missing):$need"
	apt-get update
	# Says how much is downloaded, and each package: of Debian 12 206 MB where nothing is there, 220 MB for tests.
	DEBIAN_FRONTEND=noninteractive "$here/patiently.sh" "installing packages" apt-get install -y --no-install-recommends $need
fi
if [ "$1" = python ] && [ -n "$2" ]; then
	[ -x "$2/bin/pip" ] || "$here/patiently.sh" "making the environment $2" python3 -m venv "$2"
	echo "building Weft and installing it in $2 (1 to 2 minutes on two free cores)"
	"$here/patiently.sh" "building and installing Weft" "$2/bin/pip" install -v "$here/.."
fi
