#!/bin/sh
# Runs a command, and says every 8 seconds that it still runs: scripts/patiently.sh WHAT COMMAND [ARGUMENT...]. For what prints nothing for long,
# such as dpkg, which unpacks LLVM's headers for half a minute.
what=$1
shift
start=$(date +%s)
# Holds no output open, and ends with this shell however that ends.
(while sleep 8 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do echo "... $what: $(($(date +%s) - start)) s" >&2; done) &
watch=$!
status=0
"$@" || status=$?
kill $watch 2>/dev/null
exit $status
