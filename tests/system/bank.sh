#!/usr/bin/env bash
# ctest: timeout=300
# Packed banks as their users meet them: verbs, writers that come at once, and readers meanwhile.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/bank.py"
