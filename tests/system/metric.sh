#!/usr/bin/env bash
# ctest: timeout=120
# recall --metric against NumPy.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/metric.py" "$@"
