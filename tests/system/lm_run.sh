#!/usr/bin/env bash
# What `make run` does after the report, with a program of our own in place of cgam: without a network
# or a library it goes on, a machine that fails stops it, and nothing is left out otherwise.
set -uo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/build"
failures=0
cat >"$scratch/build/cgam" <<'PROGRAM'
#!/bin/sh
echo "$*" >>"$SAID"
case "$1 $2" in
"lm get") [ "$GET" = 0 ] || echo "cgam lm get: no route to the registry" >&2; exit "$GET" ;;
"lm study") exit "$STUDY" ;;
esac
PROGRAM
chmod +x "$scratch/build/cgam"

# expect STATUS LINES: how make ends (2 is its word for a failed command), how many calls were made
expect() {
    local status=$1 calls=$2
    : >"$scratch/said"
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL SAID="$scratch/said" GET="$GET" STUDY="$STUDY" \
        make -s -C "$CGAM_SRC" -o build run BUILD="$scratch/build" DEPS=true \
        >"$scratch/out" 2>"$scratch/err" </dev/null
    local code=$?
    if [ $code != "$status" ] || [ "$(wc -l <"$scratch/said")" != "$calls" ]; then
        echo "FAILED: get $GET, study $STUDY: exit $code, want $status; $calls calls wanted:"
        cat "$scratch/said" "$scratch/out" "$scratch/err"
        failures=1
    fi
}

GET=0 STUDY=0
expect 0 4 # report, get, two studies
grep -q -- '--dataset sentiment .*--report report' "$scratch/said" || failures=1
grep -q -- '--dataset facts .*--report report' "$scratch/said" || failures=1
GET=3 # no network: one line, and that is all
expect 0 2
[ "$(cat "$scratch/out" "$scratch/err" | wc -l)" = 1 ] || { cat "$scratch/out" "$scratch/err"; failures=1; }
GET=0 STUDY=2 # fetched, but this build has no libllama
expect 0 3
STUDY=3 # the disk is full, or Ctrl-C
expect 2 3
exit $failures
