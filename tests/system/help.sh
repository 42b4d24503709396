#!/usr/bin/env bash
# Help, versions, colours, suggestions, the table as JSON, and the shells' completions.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/help.py"
