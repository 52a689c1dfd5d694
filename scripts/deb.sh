#!/bin/sh
# Builds the Debian packages of the last commit, lets lintian read them, installs them into a fresh Debian 12 and tries them there: weft doctor, then
# examples/first compiled, checked and called from C. As root on Debian 12.
#
#   scripts/deb.sh FOLDER
#
# FOLDER gets the packages. What is missing of debhelper, lintian, debootstrap and what the packages are built with is installed. CHROOT=FOLDER: the fresh Debian lies there and stays.
# MIRROR: Debian's archive, that of this machine's apt if it is not set. DEB_BUILD_OPTIONS: as dpkg-buildpackage has them.
set -e
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "${1:?usage: scripts/deb.sh FOLDER}"
folder=$(cd "$1" && pwd)
work=$(mktemp -d)
chroot=${CHROOT:-$work/debian}
trap 'rm -rf "$work"' EXIT

"$root/scripts/setup.sh"
need=
command -v dh >/dev/null 2>&1 || need="$need debhelper"
command -v lintian >/dev/null 2>&1 || need="$need lintian"
command -v debootstrap >/dev/null 2>&1 || need="$need debootstrap"
[ -z "$need" ] || { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $need; }

mkdir "$work/source"
git -C "$root" archive HEAD | tar -C "$work/source" -x
cd "$work/source"
dpkg-checkbuilddeps 2>/dev/null || { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get build-dep -y --no-install-recommends .; }
dpkg-buildpackage -us -uc -b
cd "$root"
rm -rf "$work/source"
cp "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$folder"
# No licence has been chosen, which debian/copyright says: what lintian says of that is no failure.
lintian --allow-root --fail-on error "$folder"/weft-compiler_*.changes

mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 2>/dev/null | head -1)}
[ -d "$chroot/usr" ] || debootstrap --variant=minbase bookworm "$chroot" ${mirror:+"$mirror"}
mkdir -p "$chroot/debs"
cp "$work"/*.deb "$chroot/debs"
cp -r "$root/examples/first" "$chroot/first"
inside() { env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive chroot "$chroot" sh -ec "$1"; }
quietly() { inside "$1" >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }; }
# The command alone, without a compiler or a linker.
quietly 'apt-get update && apt-get install -y --no-install-recommends /debs/weft-compiler_*.deb'
inside 'weft doctor; cd /first; weft check net.pt2 net.safetensors; weft compile net.pt2 -o net.so; weft check net.so net.safetensors'
# Programs that use a compiled model, and that use the compiler.
quietly 'apt-get install -y --no-install-recommends gcc libc6-dev make pkgconf /debs/*.deb'
cp -r "$root/examples/installed" "$chroot/installed"
inside 'cd /first && cc -O2 predict.c ./net.so -o predict && ./predict
make -s -C /installed shared static CC=cc
/installed/shared net.pt2 net.safetensors ./shared.so
/installed/static net.pt2 net.safetensors ./static.so
cmp shared.so static.so'
# And nothing is left of them.
quietly 'apt-get purge -y weft-compiler libweft0 libweft-dev'
inside '[ -z "$(find /usr /etc -path "*weft*" -print -quit)" ]'
echo "the packages in $folder were built, installed, tried and removed again"
