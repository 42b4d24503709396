#!/usr/bin/env bash
# ctest: labels=nightly timeout=240
# The k-th call to the system fails, over every verb that reads or writes: a sample; `faults.sh all` is every k.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/faults.py" "$@"
