#!/usr/bin/env bash
# ctest: timeout=300
# Text under a gate over the vocabulary, against plain text, edits and NumPy.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/lm_gate.py"
