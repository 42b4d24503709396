#!/usr/bin/env bash
# ctest: timeout=300
# `cgam net` and `cgam recall --mode flow` as their users meet them.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/net.py"
