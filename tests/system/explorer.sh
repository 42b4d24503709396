#!/usr/bin/env bash
# ctest: labels=nightly timeout=600
# The explorer's page in a real browser: every view opened, moved and held to the command line; with words, those alone.
set -euo pipefail
[ -z "${CGAM_SANITIZE:-}" ] || { echo "skipped: the page is that of the plain build"; exit 77; }
command -v chromium >/dev/null && command -v chromedriver >/dev/null || { echo "skipped: no chromium"; exit 77; }
/usr/bin/python3 -c 'import selenium' 2>/dev/null || { echo "skipped: no selenium for python3"; exit 77; }
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/explorer.py" "$@"
