#!/usr/bin/env bash
# ctest: timeout=300
# What each block of a model adds, by both engines, against a forward pass in NumPy.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/lm_parts.py"
