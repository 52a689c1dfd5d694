#!/bin/sh
# Models compiled for another machine, under an emulator: conformance_cross.sh WEFT SOURCE_ROOT FOLDER TARGET RUNNER.
# Skipped (77) where there are no models.
weft=$1
shared=$2/../shared
folder=$3
target=$4
runner=$5
[ -d "$shared/models" ] || exit 77
names="digits_cnn mobilenet_v3_small bert_tiny bert_tiny_dyn"
"$shared/tools/unpack_models.sh" "$folder" $names || exit 1
status=0
check() # NAME BACKEND
{
	name=$1
	set -- "$folder/$name.pt2" "$folder/$name.safetensors" --backend "$2" --threads 1,2 --target "$target" --runner "$runner"
	"$weft" check "$@" || status=1
	case $name in
	*_dyn) "$weft" check -q "$@" --sizes "s72=1,3 s70=2,17,48" || status=1 ;;
	esac
}
backends=c
"$weft" compile "$folder/digits_cnn.pt2" --emit llvm -o "$folder/digits_cnn.ll" 2>&1 | grep -q 'without LLVM' || backends="c llvm"
for name in $names; do
	for backend in $backends; do
		check "$name" "$backend"
	done
done
exit $status
