#!/usr/bin/env bash
# ctest: timeout=300
# A semantic cache: look-ups beside NumPy, tenants, times, calibration beside SciPy, writers that come at once and are killed, HTTP.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/cache.py"
