#!/usr/bin/env bash
# ctest: timeout=300
# Function vectors on tiny models: every indirect effect, the vector and the shares, again in NumPy.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/lm_heads.py"
