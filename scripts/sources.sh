#!/bin/sh
# List the C files, or others, of a folder: scripts/sources.sh FOLDER [ENDING] (relative to the source root)
cd "$(dirname "$0")/.." && ls "$1"/*."${2:-c}" 2>/dev/null || true
