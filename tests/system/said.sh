#!/usr/bin/env bash
# ctest: timeout=600
# What verbs print for people, and what they reject: said.txt has a row for each command.
set -euo pipefail
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/said.py"
