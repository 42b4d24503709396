#!/usr/bin/env bash
# ctest: timeout=300
# `cgam fit` and `cgam recall --fitted` as their users meet them.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/fit.py"
