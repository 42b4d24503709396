#!/bin/sh
# Draws contexts.svg and contexts.png: one query, four contexts, what is recalled; and basins.png: where recalls
# of one query end from any start. Every number comes from the program and from examples/basins.c beside it:
# docs/figures/make.sh [PROGRAM], by default build/cgam. Needs gnuplot.
set -eu
cd "$(dirname "$0")"
cgam=${1:-../../build/cgam}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# 60 memories on a ring, each described by six frequencies, so that neighbours are alike (unit
# rows, d = 12). The query fits memories 10, 30 and 50 almost equally well. A context knows two of
# the six frequencies: the region, not the memory.
awk -v dir="$work" 'BEGIN {
    n = 60; K = 6; pi = atan2(0, -1)
    split("10 30 50", well); split("0.97 1 0.95", depth)
    for (i = 0; i < n; i++)
        for (k = 1; k <= K; k++)
            printf "%.17g,%.17g%s", cos(2 * pi * k * i / n) / sqrt(K), sin(2 * pi * k * i / n) / sqrt(K),
                k < K ? "," : "\n" > (dir "/Z.csv")
    for (row = 0; row < 4; row++)
        for (k = 1; k <= K; k++) {
            x = y = c = s = 0
            for (w = 1; w <= 3; w++) {
                angle = 2 * pi * k * well[w] / n
                x += depth[w] * cos(angle) / sqrt(K); y += depth[w] * sin(angle) / sqrt(K)
                if (w == row && k <= 2) { c = 3 * cos(angle) / sqrt(K); s = 3 * sin(angle) / sqrt(K) }
            }
            end = k < K ? "," : "\n"
            printf "%.17g,%.17g%s", x, y, end > (dir "/Q.csv")
            printf "%.17g,%.17g%s", c, s, end > (dir "/C.csv")
        }
}'
"$cgam" recall --bank "$work/Z.csv" --query "$work/Q.csv" --context "$work/C.csv" --mode coupled \
    --alpha 0.2 --beta 8 --lambda 0.5 --top 60 --json >"$work/recall.json"

# One block per query: index, p, -ln p / beta, sorted by index; and one label each.
/usr/bin/python3 - "$work" <<'PY'
import json, math, sys
doc = json.load(open(sys.argv[1] + "/recall.json"))
with open(sys.argv[1] + "/data", "w") as data, open(sys.argv[1] + "/labels", "w") as labels:
    for q in doc["queries"]:
        rows = sorted((i, p, -lp / doc["beta"]) for (i, p), lp in zip(q["top"], q["top_log_p"]))
        data.write("".join("%d %.9g %.9g\n" % row for row in rows) + "\n\n")
        labels.write("memory %d: p = %.2f, %.1f in play\n"
                     % (q["winner"], q["p"], q["neff_entropy"]))
PY

for kind in svg png; do
    gnuplot -e "kind = '$kind'; dir = '$work'" contexts.gnuplot
done
# gnuplot ends lines with blanks and calls every picture Gnuplot.
sed -i -e 's/[[:blank:]]*$//' -e 's|<title>Gnuplot</title>|<title>One query, four contexts</title>|' contexts.svg

"$(dirname "$cgam")/examples/basins" >"$work/basins"
gnuplot -e "kind = 'png'; dir = '$work'" basins.gnuplot
