#!/bin/sh
# The models of ../shared through a backend: conformance.sh WEFT SOURCE_ROOT FOLDER BACKEND [PATTERN...]. Models
# are unpacked into FOLDER once. Of those called train_*, which must be asked for so, results, gradients of the loss by parameters and updated
# buffers are compared, and the error is at most 8 times that of PyTorch in float32. Skipped (77) where there are none.
weft=$1
shared=$2/../shared
folder=$3
backend=$4
shift 4
[ -d "$shared/models" ] || exit 77
case $1 in
train_*) others='^$' mode='--mode vjp' ;;
*) others='^train_' mode= ;;
esac
names=$(cd "$shared/models" && for p in "$@"; do ls $p.pt2.xz; done | sed 's/\.pt2\.xz$//' | grep -v "$others" | sort -u)
"$shared/tools/unpack_models.sh" "$folder" $names || exit 1
status=0
for name in $names; do
	said=$("$weft" check "$folder/$name.pt2" "$folder/$name.safetensors" --backend "$backend" --threads 1,2 $mode) || status=1
	echo "$said"
	[ -z "$mode" ] || echo "$said" | awk '{ for (i = 1; i < NF; i++) if ($i == "ratio" && $(i + 1) + 0 > 8) bad = 1 }
		END { if (bad) print "more than 8 times the error of PyTorch"; exit bad }' || status=1
	# One compiled object, many sizes, each equal to the interpreter.
	case $backend-$name in
	c-bert*_dyn | c-gpt2*_dyn | c-llama*_dyn | jit-bert*_dyn | jit-gpt2*_dyn | jit-llama*_dyn) sizes="s72=1,2,5 s70=2,17,48,200" ;;
	c-*_dyn | jit-*_dyn) sizes="s77=1,2,5 s39=2,7,10 s94=3,7,8" ;;
	loops-*_dyn) sizes="s72=1,2 s70=2,17" ;;
	*) continue ;;
	esac
	"$weft" check -q "$folder/$name.pt2" "$folder/$name.safetensors" --backend "$backend" --threads 1,2 --sizes "$sizes" || status=1
done
exit $status
