#!/usr/bin/env bash
# ctest: labels=nightly timeout=1500
# build/cgam.html, which recalls without a server, gives the oracle's answers under Node.
set -euo pipefail
[ -z "${CGAM_SANITIZE:-}" ] || { echo "the page is of the plain build"; exit 77; }
for tool in emcc node; do command -v $tool >/dev/null || { echo "no $tool (tools/deps wasm)"; exit 77; }; done
"$CGAM_SRC/tools/wasm" "$CGAM_BUILD"
node "$CGAM_SRC/tests/system/wasm.js" "$CGAM_BUILD" "$CGAM_SRC"
