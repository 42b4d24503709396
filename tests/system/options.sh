#!/usr/bin/env bash
# ctest: timeout=240
# Random options for every verb, from the table of verbs, and files that may not be read or written.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/options.py" "$@"
