#!/bin/sh
# Operators of tests/data/ops against PyTorch's results, with every back end: operators.sh WEFT SOURCE_ROOT
weft=$1
ops=$2/tests/data/ops
bad=0
for backend in interp c jit; do
	"$weft" check "$ops" --backend $backend -q || { echo "FAIL: --backend $backend"; bad=1; }
done
exit $bad
