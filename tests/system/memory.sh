#!/usr/bin/env bash
# ctest: timeout=120
# With little address space (ulimit -v) every verb ends, with its answer or with one line about memory;
# BLAS starts no threads of its own and leaves the environment as it was.
set -euo pipefail

if [ -n "${CGAM_SANITIZE:-}" ]; then
    echo "sanitizers want terabytes of address space"
    exit 77
fi
cgam=$CGAM_BUILD/cgam
die() { echo "memory: $*" >&2; exit 1; }

within() { # MB WORDS...: runs cgam; its status, 124 or 137 = it did not end
    local kib=$(($1 * 1024)) code=0
    shift
    (ulimit -v "$kib" && exec timeout -k 5 20 "$cgam" "$@") >"$scratch/out" 2>"$scratch/err" || code=$?
    echo $code
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for mb in 58 65 80 100 150 200 250 300 400 600; do
    code=$(within $mb --version)
    case $code in
    0) grep -q '^cgam [0-9]' "$scratch/out" || die "--version within $mb MB says nothing" ;;
    3) [ $mb -lt 80 ] && grep -q '^cgam version: out of memory: BLAS' "$scratch/err" || die "--version within $mb MB: $(cat "$scratch/err")" ;;
    *) die "--version within $mb MB: status $code" ;;
    esac
    code=$(within $mb demo)
    case $code in
    0) [ -s "$scratch/out" ] || die "demo within $mb MB says nothing" ;;
    3) grep -q '^cgam demo: out of memory' "$scratch/err" || die "demo within $mb MB: $(cat "$scratch/err")" ;;
    *) die "demo within $mb MB: status $code" ;;
    esac
done
[ "$code" = 0 ] || die "demo does not run within $mb MB"
code=$(within 250 demo --threads 2)
[ "$code" = 3 ] && grep -q '2 threads' "$scratch/err" ||
    die "2 threads within 250 MB: status $code, $(cat "$scratch/err")"
code=$(within 150 study coupled --trials 4 --only-trial 0 --threads 1)
[ "$code" = 3 ] && grep -q 'out of memory' "$scratch/err" ||
    die "one trial within 150 MB: status $code, $(cat "$scratch/err")"
echo "memory: every verb ended"
