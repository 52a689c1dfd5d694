#!/bin/sh
# All unit, file and run suites under AddressSanitizer and UndefinedBehaviorSanitizer, leaks included, and the threads of the runtime under
# ThreadSanitizer: scripts/sanitize.sh [ARGUMENTS OF meson test]. Builds into build-san/ and build-tsan/ (or $BUILD-san, $BUILD-tsan).
set -e
cd "$(dirname "$0")/.."
san=${BUILD:-build}-san tsan=${BUILD:-build}-tsan
[ -f "$san/build.ninja" ] || meson setup "$san" -Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false >/dev/null
ninja -C "$san"
meson test -C "$san" --suite unit --suite file --suite run --timeout-multiplier 8 --print-errorlogs "$@"
# Calls from several threads, the pool, contexts, state, entries, weights that are set meanwhile; tests/tsan.sh, of the run suite, compiles models for it.
[ -f "$tsan/build.ninja" ] || meson setup "$tsan" -Doptimization=1 -Db_sanitize=thread -Db_lundef=false >/dev/null
tests="runtime_call runtime_state runtime_region runtime_rooms runtime_parts"
ninja -C "$tsan" $tests
meson test -C "$tsan" --no-rebuild --timeout-multiplier 8 --print-errorlogs $tests
