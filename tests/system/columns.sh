#!/usr/bin/env bash
# ctest: timeout=300
# Columns and predicates on them: random traces of changes against SQLite and NumPy.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/columns.py" "$@"
