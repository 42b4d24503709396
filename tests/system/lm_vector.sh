#!/usr/bin/env bash
# Control vectors by readers and writers that are not ours.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/lm_vector.py"
