#!/bin/sh
# What takes too long for every change: scripts/nightly.sh [SECONDS] (3600). Conformance over reference models, where ../shared has them, random
# graphs with fresh seeds for an hour, 5,000 drawn attentions, errors at large sizes, and the Python wheel (PyTorch comes from PyPI); where there is clang, all is built by it
# without a warning, what it built passes the unit and file tests and emits the same code, and the readers of files run under libFuzzer; where $PYTHON
# (python3) has onnxruntime, drawn models of ONNX are compared with it; where it has PyTorch and expecttest, training under autocast, programs of
# users with symbolic sizes and with numbers of data in their graphs, and what this PyTorch makes of the models of tests/versions/versions.tar.xz;
# where it has torchvision and transformers, steps of training of 26 models; where it has timm and diffusers, too, the models of docs/models.md; the trained models of examples/wheels (from PyPI).
set -e
cd "$(dirname "$0")/.."
scripts/build.sh
build=${BUILD:-build} bad=0
meson test -C "$build" --print-errorlogs --setup all --suite conformance || bad=1
python3 tests/oracle/accuracy.py "$build/weft" --large || bad=1
python3 scripts/net.py "$build" --seconds "${1:-3600}" --seed "$(date +%s)000" || bad=1
python3 tests/fuzz/attentions.py "$build/weft" . --seed "$(date +%s)" --count 5000 || bad=1
python=${PYTHON:-python3}
if "$python" -c 'import numpy, onnx, onnxruntime, safetensors' 2>/dev/null; then
	"$python" tests/oracle/onnx/drawn.py "$build/weft" "$(date +%s)000" 100 || bad=1
else
	echo "drawn models of ONNX: skipped, $python cannot import numpy, onnx, onnxruntime and safetensors (PYTHON=another)"
fi
if command -v clang >/dev/null 2>&1; then
	[ -f "$build-clang/build.ninja" ] || CC=clang meson setup "$build-clang" >/dev/null
	ninja -C "$build-clang" || bad=1
	meson test -C "$build-clang" --suite unit --suite file || bad=1
	python3 tests/tree/emitted.py "$build-clang/weft" . || bad=1
	scripts/fuzz.sh 120 || bad=1
fi
if "$python" -c 'import torch, expecttest' 2>/dev/null; then
	built=$(cd "$build" && pwd)
	versions=$(mktemp -d)
	{ "$python" tests/versions/make_versions.py "$versions" && "$build/weft" check "$versions" -q; } || bad=1
	rm -rf "$versions"
	PYTHONPATH=$built/python WEFT_LLVM_FOLDER=$built "$python" python/tests/autocast_db.py --samples 2 || bad=1
	for way in dynamic captured; do
		PYTHONPATH=$built/python WEFT_LLVM_FOLDER=$built "$python" python/tests/programs.py --way "$way" || bad=1
	done
fi
if "$python" -c 'import torch, torchvision, transformers' 2>/dev/null; then
	built=$(cd "$build" && pwd)
	PYTHONPATH=$built/python WEFT_LLVM_FOLDER=$built "$python" python/tests/train_models.py || bad=1
fi
if "$python" -c 'import torch, torchvision, timm, transformers, diffusers' 2>/dev/null; then
	built=$(cd "$build" && pwd)
	PYTHONPATH=$built/python WEFT_LLVM_FOLDER=$built "$python" bench/survey.py compare bench/survey.json || bad=1
else
	echo "models of docs/models.md: skipped, $python cannot import torch, torchvision, timm, transformers and diffusers (PYTHON=another)"
fi
models=$(mktemp -d)
examples/wheels/fetch.sh "$models" && WEFT_WHEELS=$models "$python" examples/wheels/compare.py "$build/weft" || [ $? = 77 ] || bad=1
rm -rf "$models"
wheels=$(mktemp -d)
TORCH=1 scripts/wheel.sh --sdist "$wheels" || bad=1
rm -rf "$wheels"
exit $bad
