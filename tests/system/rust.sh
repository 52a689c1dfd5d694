#!/bin/sh
# The example in Rust (examples/rust), where rustc is: rust.sh WEFT SOURCE_ROOT
weft=$1 root=$2
command -v rustc >/dev/null || { echo "no rustc: the example in Rust is not tried"; exit 77; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$weft" compile "$root/examples/first/net.pt2" -o "$out/libnet.so" >"$out/log" 2>&1 || { echo "FAIL $(cat "$out/log")"; exit 1; }
rustc --edition 2021 -O -D warnings "$root/examples/rust/predict.rs" -L "$out" -l net -o "$out/predict" || { echo "FAIL rustc"; exit 1; }
printf '0.1558 -0.3415 -0.0492\n-0.3844 0.3586 -0.2775\n2: input x: dimension 1 is 2, expected 4\n' >"$out/want"
LD_LIBRARY_PATH=$out "$out/predict" >"$out/got" 2>&1
cmp -s "$out/got" "$out/want" || { echo "FAIL predict:"; cat "$out/got"; exit 1; }
