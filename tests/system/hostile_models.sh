#!/usr/bin/env bash
# ctest: labels=nightly
# Damaged models are refused in one line.
set -euo pipefail
runs=120
[ -z "$CGAM_SANITIZE" ] || runs=20
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/hostile_models.py" "$runs" 1
