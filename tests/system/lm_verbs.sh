#!/usr/bin/env bash
# ctest: timeout=600
# The lm verbs from outside, on tiny models: what two runs share, pages of reports, what the machine lacks. What is
# rejected is in said.txt, the documents in tests/golden.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/lm_verbs.py"
