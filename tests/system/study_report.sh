#!/usr/bin/env bash
# ctest: timeout=300
# The report, small: one page that stands alone, pictures in three formats, and what is printed.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { echo "report: $*" >&2; exit 1; }
command -v gnuplot >/dev/null || { echo "gnuplot is not there"; exit 77; }

"$CGAM" report --scale 0.02 --out "$work/report" >"$work/out" 2>"$work/err" || die "$(cat "$work/err")"
# A slow machine may see the line of progress that is due every fifteen seconds, and nothing else.
! grep -vE '^[a-z-]+: [0-9]+%(, [0-9.]+ (s|min) left)?$' "$work/err" || die "standard error: $(cat "$work/err")"
grep -q "Everything is in $work/report/index.html" "$work/out" || die "$(cat "$work/out")"
grep -q "hold under a condition" "$work/out" || die "no count of claims"
page=$work/report/index.html
[ "$(grep -c 'src="data:image/' "$page")" -ge 15 ] || die "too few pictures in the page"
! grep -q '@import' "$page" || die "the page asks for something outside"
for picture in separation/accuracy separation/bound separation/gaps competition/peak competition/zoom \
    competition/example coupled/curves coupled/thresholds timescale/ratios timescale/along \
    capacity/accuracy phase/map phase-penalty/map; do
    for kind in svg png pdf gp; do
        [ -s "$work/report/$picture.$kind" ] || die "no $picture.$kind"
    done
    grep -q 'seed 1' "$work/report/$picture.svg" || die "$picture.svg does not say its seed"
done
[ -z "$(find "$work/report" -name '.*' -type f)" ] || die "hidden files are left"

# A script can be run by hand, in its folder.
cp -r "$work/report/competition" "$work/mine"
rm "$work/mine/zoom.svg"
(cd "$work/mine" && gnuplot zoom.gp 2>"$work/err") || die "zoom.gp by hand: $(cat "$work/err")"
[ -s "$work/mine/zoom.svg" ] || die "zoom.gp drew nothing"

# The same numbers again on one thread, in a folder whose parents are made.
"$CGAM" report --scale 0.02 --figures no --threads 1 --json --out "$work/a/b/again" >"$work/doc.json"
cmp "$work/report/claims.csv" "$work/a/b/again/claims.csv"
for folder in "$work"/a/b/again/*/; do
    for file in "$folder"*.csv "$folder"summary.json; do
        cmp "$file" "$work/report/${file#"$work/a/b/again/"}"
    done
done
/usr/bin/python3 -c "import json
d = json.load(open('$work/doc.json'))
assert d['report'] and len(d['claims']) > 20 and all(c['verdict'] and c['numbers'] for c in d['claims'])"
for report in "$work/report" "$work/a/b/again"; do
    /usr/bin/python3 -B "$CGAM_SRC/tests/system/report_page.py" "$report"
done
