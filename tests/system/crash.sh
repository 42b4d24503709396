#!/usr/bin/env bash
# ctest: labels=nightly timeout=300
# Killed at any moment and started again, and two at once: 40 kills; `crash.sh all` is 1000.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/crash.py" "$@"
