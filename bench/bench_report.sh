#!/usr/bin/env bash
# The studies against batched NumPy, measured in one run: how many times faster is the same work?
#
#   bench/bench_report.sh            a tenth of the trials of both (NumPy takes some two minutes)
#   SCALE=1 bench/bench_report.sh    all of them (NumPy takes some twenty minutes)
#   CGAM=path PYTHON=path            other programs
#
# Same sizes, grids and counts on both sides; cgam also follows the folds, writes its tables, and
# counts more statements. Both may use all cores: NumPy through its BLAS, cgam through its threads.
# The exit status is 1 when the whole is less than 30 times faster.
set -euo pipefail
cd "$(dirname "$0")/.."
CGAM=${CGAM:-build/cgam}
PYTHON=${PYTHON:-/usr/bin/python3}
SCALE=${SCALE:-0.1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

now() { date +%s.%N; }
trials() { awk -v n="$1" -v s="$SCALE" 'BEGIN { t = n * s; printf "%d", t < 1 ? 1 : t + 0.5 }'; }

printf '%-14s %10s %12s %12s %9s\n' study trials 'numpy, s' 'cgam, s' ratio
total_numpy=0 total_cgam=0
for part in separation:6000 competition:1000 coupled:1000 theorems:500; do
    study=${part%:*} count=$(trials "${part#*:}")
    begun=$(now)
    "$PYTHON" bench/report_numpy.py "$study" --trials "$count" >"$work/numpy.json"
    middle=$(now)
    "$CGAM" study "$study" --trials "$count" --figures no --json --out "$work/$study" >"$work/cgam.json"
    ended=$(now)
    read -r numpy cgam < <(awk -v a="$begun" -v b="$middle" -v c="$ended" 'BEGIN { print b - a, c - b }')
    total_numpy=$(awk -v a="$total_numpy" -v b="$numpy" 'BEGIN { print a + b }')
    total_cgam=$(awk -v a="$total_cgam" -v b="$cgam" 'BEGIN { print a + b }')
    awk -v s="$study" -v n="$count" -v a="$numpy" -v b="$cgam" \
        'BEGIN { printf "%-14s %10d %12.3f %12.3f %8.1fx\n", s, n, a, b, a / b }'
done
awk -v a="$total_numpy" -v b="$total_cgam" 'BEGIN {
    printf "%-14s %10s %12.3f %12.3f %8.1fx\n", "together", "", a, b, a / b
    exit !(a / b >= 30)
}'
