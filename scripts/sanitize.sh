#!/bin/sh
# All unit, file and run suites under AddressSanitizer and UndefinedBehaviorSanitizer, leaks included, and the threads of the runtime under
# ThreadSanitizer: scripts/sanitize.sh [ARGUMENTS OF meson test]. Builds into build-san/ and build-tsan/ (or $BUILD-san, $BUILD-tsan).
set -e
cd "$(dirname "$0")/.."
san=${BUILD:-build}-san tsan=${BUILD:-build}-tsan
[ -f "$san/build.ninja" ] || meson setup "$san" -Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false >/dev/null
ninja -C "$san"
meson test -C "$san" --suite unit --suite file --suite run --timeout-multiplier 8 --print-errorlogs "$@"
# Regions, the pool, checks that fail, rooms; tests/system/tsan.sh, of the run suite, compiles models for it. Not runtime_call, whose child of a fork
# starts threads, which ThreadSanitizer refuses.
[ -f "$tsan/build.ninja" ] || meson setup "$tsan" -Doptimization=1 -Db_sanitize=thread -Db_lundef=false >/dev/null
tests="runtime_region runtime_helpers runtime_rooms runtime_parts runtime_open runtime_state comm_ranks"
ninja -C "$tsan" $tests
export TSAN_OPTIONS=history_size=7
meson test -C "$tsan" --no-rebuild --timeout-multiplier 8 --print-errorlogs $tests
