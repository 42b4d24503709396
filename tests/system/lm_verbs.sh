#!/usr/bin/env bash
# ctest: timeout=600
# The lm verbs from outside, on tiny models: what two runs share, pages of reports, one clear line for each thing that can be
# wrong. The documents themselves are held by tests/golden.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/lm_verbs.py"
