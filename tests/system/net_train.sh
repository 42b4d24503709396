#!/usr/bin/env bash
# ctest: timeout=300
# `cgam net train` as its users meet it.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/net_train.py"
