#!/usr/bin/env bash
# ctest: timeout=600
# States, edits and generated text of a real model of 260,000 parameters, against its forward pass in NumPy.
# Skipped where CGAM_DATA has it not, or without libllama.
set -euo pipefail
models=${CGAM_DATA:-/nowhere}/models
[ -f "$models/stories260K.bin" ] && [ -f "$models/tok512.bin" ] || { echo "skipped: no stories260K under CGAM_DATA"; exit 77; }
exec /usr/bin/python3 -B "$CGAM_SRC/tests/system/lm_inside.py" "$models"
