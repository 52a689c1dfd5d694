#!/bin/sh
# Compile a trained model, classify 360 images of digits, and compare with running it operator by operator.
set -e
cd "$(dirname "$0")/.."
echo "building the compiler (some minutes the first time)"
scripts/build.sh weft classify
build=${BUILD:-build}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
echo "compiling examples/digits/digits_cnn.pt2"
"$build/weft" compile examples/digits/digits_cnn.pt2 -o "$out/digits.so"
"$build/weft" compile examples/digits/digits_cnn.pt2 --op-by-op -o "$out/op_by_op.so" >/dev/null
"$build/classify" examples/digits/digits_cnn.safetensors "$out/digits.so" "$out/op_by_op.so"
