#!/bin/sh
# List the C files of a folder: scripts/sources.sh FOLDER (relative to the source root)
cd "$(dirname "$0")/.." && ls "$1"/*.c 2>/dev/null || true
