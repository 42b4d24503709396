#!/usr/bin/env bash
# ctest: timeout=240
# Trials that the program exports, done again by NumPy and SciPy.
set -euo pipefail
/usr/bin/python3 -B "$CGAM_SRC/tests/oracle/study/rivals.py" --check
exec /usr/bin/python3 -B "$CGAM_SRC/tests/oracle/study/exact.py" "$CGAM"
