#!/bin/sh
# Run a test whose processes may each take half an hour of processor time: limited.sh COMMAND...
# Tests set smaller limits where they know them (tests/help/limits.py).
ulimit -S -t 1800
exec "$@"
