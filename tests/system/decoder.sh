#!/bin/sh
# Greedy tokens of a small decoder whose entries share weights and cache: decoder.sh WEFT GENERATE SOURCE_ROOT BACKEND. The tokens
# are PyTorch's for tests/data/state/{prefill,decode}.pt2 (make_fixtures.py).
set -e
weft=$1 generate=$2 data=$3/tests/data/state backend=$4
want='8 5 0 11 13 5 1 11 11 11 5 5'
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$weft" compile "prefill=$data/prefill.pt2" "decode=$data/decode.pt2" --backend "$backend" -o "$out/decoder.so" >"$out/log"
for threads in 1 2; do
	got=$("$generate" "$out/decoder.so" "$threads" 12 - 14 9 1 1 | sed -n 1p)
	[ "$got" = "$want" ] || { echo "$threads threads: $got, expected $want"; exit 1; }
done
# A prompt that does not fit changes nothing: the cache is what it was, and the call says why.
"$generate" "$out/decoder.so" 1 1 - 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 0 1 2>"$out/log" && { echo "17 tokens fit into 16 positions"; exit 1; }
grep -q 'prefill: input' "$out/log" || { cat "$out/log"; exit 1; }
