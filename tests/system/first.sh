#!/bin/sh
# The programs of docs/your-model.md and docs/tutorials/train-in-c.md: first.sh WEFT SOURCE_ROOT CC... The classes of two rows are the interpreter's, the loss falls,
# and what the page shows of predict.c is in it.
weft=$1 root=$2
shift 2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
bad=0
fail() {
	echo "FAIL $*"
	bad=1
}
"$weft" check "$root/examples/first/net.pt2" "$root/examples/first/net.safetensors" >"$out/log" || fail "$(cat "$out/log")"
"$weft" bisect "$root/examples/first/net.pt2" "$root/examples/first/net.safetensors" >"$out/log" && grep -q '^no difference' "$out/log" || fail "$(cat "$out/log")"
"$weft" bench "$root/examples/first/net.pt2" --profile --by module --seconds 0.05 >"$out/log" && grep -q '^module' "$out/log" || fail "$(cat "$out/log")"
"$weft" compile "$root/examples/first/net.pt2" -o "$out/net.so" >"$out/log" || fail "$(cat "$out/log")"
"$weft" compile "$root/examples/first/loss.pt2" --grad=params --replaceable-weights -o "$out/loss.so" >"$out/log" || fail "$(cat "$out/log")"
# The shipped model gets the weights of the trained one, in which the program has added 1 to the last bias.
"$weft" compile "$root/examples/first/loss.pt2" --grad=params --replaceable-weights --symbol weft_loss -o "$out/weft_loss.so" >"$out/log" || fail "$(cat "$out/log")"
"$weft" compile "$root/examples/first/net.pt2" --replaceable-weights -o "$out/weft_net.so" >"$out/log" || fail "$(cat "$out/log")"
"$@" -std=c11 -Wall -Wextra -pedantic -Werror -I"$root/include" "$root/examples/first/ship.c" "$out/weft_loss.so" "$out/weft_net.so" -o "$out/ship" || fail ship.c
LD_LIBRARY_PATH=$out "$out/ship" >"$out/got" || fail ship
echo '1.1558 0.6585 0.9508' | cmp -s - "$out/got" || fail "ship: $(cat "$out/got")"
for name in predict:net train:loss; do
	program=${name%:*} model=${name#*:}
	"$@" -std=c11 -Wall -Wextra -pedantic -Werror -I"$root/include" "$root/examples/first/$program.c" "$out/$model.so" -o "$out/$program" || fail "$program.c"
done
# By the weights of net.pt2, in double precision.
LD_LIBRARY_PATH=$out "$out/predict" >"$out/got" || fail predict
printf '0.1558 -0.3415 -0.0492\n-0.3844 0.3586 -0.2775\n' | cmp -s - "$out/got" || fail "predict: $(cat "$out/got")"
LD_LIBRARY_PATH=$out "$out/train" >"$out/got" || fail train
awk '{ last = $2 } NR == 1 { first = $2 } END { exit !(NR == 7 && first > 0.9 && last < 0.15) }' "$out/got" || fail "train: $(cat "$out/got")"
# The first program: ten lines.
"$@" -std=c11 -Wall -Wextra -pedantic -Werror -I"$root/include" "$root/examples/first/ten_lines.c" "$out/net.so" -o "$out/ten" || fail ten_lines.c
LD_LIBRARY_PATH=$out "$out/ten" >"$out/got" || fail ten_lines
echo 0.1558 | cmp -s - "$out/got" || fail "ten_lines: $(cat "$out/got")"
[ "$(wc -l <"$root/examples/first/ten_lines.c")" -eq 10 ] || fail "ten_lines.c has not ten lines"
# Lines of C on the page stand in predict.c.
sed -n '/^```c$/,/^```$/p' "$root/docs/your-model.md" | grep -v '^```' | sed 's/^[ 	]*//' >"$out/page"
sed 's/^[ 	]*//' "$root/examples/first/predict.c" >"$out/source"
grep -vxF -f "$out/source" "$out/page" && fail "docs/your-model.md shows what is not in predict.c"
exit $bad
