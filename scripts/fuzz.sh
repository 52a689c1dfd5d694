#!/bin/sh
# Fuzz what reads files: scripts/fuzz.sh [SECONDS [TARGET...]], targets archive, gguf, json, onnx, text, tensors, userop; needs clang.
# Builds into build-fuzz/ (or $BUILD), keeps what it learns there; findings are left in that folder.
set -e
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -gt 0 ] && shift
build=${BUILD:-build-fuzz}
[ -f "$build/build.ninja" ] || CC=clang meson setup "$build" -Dfuzz=true >/dev/null
export ASAN_OPTIONS=allocator_may_return_null=1:handle_abort=1 UBSAN_OPTIONS=print_stacktrace=1
bad=0
for target in ${*:-archive gguf json onnx text tensors userop}; do
	ninja -C "$build" "fuzz_$target" >/dev/null
	work=$build/fuzz_$target.work
	python3 scripts/fuzz_seeds.py "$target" tests "$work"
	mkdir -p "$work/corpus"
	nice "$build/fuzz_$target" -max_total_time="$seconds" -timeout=120 -mutate_depth=1 -cross_over=0 -rss_limit_mb=3000 -max_len=65536 \
		-dict="$work/dict" -artifact_prefix="$work/" -print_final_stats=1 \
		"$work/corpus" "$work/seeds" >"$work/log" 2>&1 || bad=1
	echo "$target: $(sed -n 's/^stat::number_of_executed_units: */executed /p' "$work/log") " \
		"$(sed -n 's/^stat::loaded: */loaded /p' "$work/log") " \
		"$(sed -n 's/^SUMMARY: */finding: /p' "$work/log" | head -1)"
done
exit $bad
