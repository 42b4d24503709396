#!/usr/bin/env bash
# ctest: timeout=300
# The commands as their users meet them: keys, defaults, exit statuses, bad files, saved arrays,
# against NumPy's arithmetic.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/commands.py"
