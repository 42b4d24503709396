#!/usr/bin/env bash
# ctest: timeout=240
# The studies as commands: keys of the documents, bad options, exit statuses, gnuplot that is not
# there, folders that cannot be written, disks that are full.
set -euo pipefail
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
die() { echo "study: $*" >&2; exit 1; }

# expect STATUS WORDS COMMAND...: the status, and one line on standard error that has the words.
expect() {
    local status=$1 words=$2 got=0
    shift 2
    "$@" >"$work/out" 2>"$work/err" || got=$?
    [ "$got" -eq "$status" ] || die "$*: status $got, expected $status: $(cat "$work/err")"
    [ "$(wc -l <"$work/err")" -eq 1 ] || die "$*: not one line: $(cat "$work/err")"
    grep -qF -- "$words" "$work/err" || die "$*: '$words' is not in: $(cat "$work/err")"
    [ ! -s "$work/out" ] || die "$*: standard output is not empty"
}
quick() { "$CGAM" study "$@" --out "$work/new/$1" --figures no; } # the parent is made, too

# ---- what other programs rely on -----------------------------------------------------------------
keys() { # keys STUDY PYTHON-EXPRESSION OPTIONS...
    local study=$1 test=$2
    shift 2
    quick "$study" --json "$@" >"$work/doc.json" 2>"$work/err" || die "$study: $(cat "$work/err")"
    /usr/bin/python3 -c "import json, sys
d = json.load(open('$work/doc.json'))
assert d['seed'] == 1 and d['version'] and d['machine'] and d['parameters' if '$study' != 'theorems' else 'checks']
assert $test" || die "$study: keys"
    [ -s "$work/new/$study/summary.json" ] || die "$study: no summary"
    [ ! -e "$work/new/$study/.$study.progress" ] || die "$study: the progress file is left"
}
keys separation "len(d['accuracy']['mean']) == 6 == len(d['accuracy']['lambda']) and len(d['accuracy']['se'][5]) == 12 == len(d['accuracy']['sigma_q']) and {'lambda', 'q25', 'median', 'q75'} <= set(d['gap_box'][0]) and d['bound_points'] == 72 * 80 and d['bound_violations'] == 0" --trials 80
keys competition "len(d['alpha']) == len(d['peak_mean']) == len(d['peak_se']) == 75 and d['alpha_crit'] == 1 and len(d['example']['p']) == 50 and d['example']['alpha'] == 1" --trials 40
keys coupled "[c['lambda'] for c in d['curves']] == [0, 0.5, 1, 1.5, 2, 2.5, 3] and len(d['curves'][0]['alpha']) == len(d['curves'][0]['peak_mean']) == 173 and all(len(c['alpha']) > 220 for c in d['curves'][1:]) and abs(d['curves'][2]['alpha_theory'] - 0.9) < 1e-12 and 0.8 < d['curves'][2]['alpha_half'] < 0.9" --trials 8 --fold-trials 8
keys theorems "all({'name', 'cases', 'violations', 'worst_margin'} <= set(c) for c in d['checks']) and len(d['checks']) > 20" --trials 3
keys timescale "len(d['ratio']) == len(d['accuracy']) == 9" --trials 8
keys capacity "len(d['load']) == len(d['accuracy']) == 36" --trials 20
keys phase "len(d['accuracy']) == 21 * 13" --trials 10
keys convergence "len(d['limits']) == len(d['rested']) == 18 and d['rested'] == [1] * 18 and sum(d['refuted']) == 0 == sum(d['rose'])" --trials 1 --starts 2
keys sparse "len(d['support']) == 48 and d['order'][:6] == [1, 1, 1.5, 1.5, 2, 2] and min(d['support'][2:6]) >= 1" --trials 4
keys annealing "len(d['minima']) == len(d['lower']) == 24 and d['context'] == [0, 1] * 12" --trials 1
"$CGAM" study separation --only-trial 5 --trials 6 --json | /usr/bin/python3 -c "import json, sys
d = json.load(sys.stdin)
assert d['trial'] == 5 and len(d['Z']) == 50 and len(d['cells']) == 12 and len(d['cells'][0]['recalls'][0]['p']) == 50"
# Without files: the same document, and nothing is written.
mkdir "$work/empty"
(cd "$work/empty" && "$CGAM" study competition --trials 8 --files no --json >"$work/bare.json" &&
    "$CGAM" study competition --trials 8 --files no | grep -q "nothing was written" || die "--files no")
[ -z "$(ls -A "$work/empty")" ] || die "--files no wrote $(ls -A "$work/empty")"
"$CGAM" study competition --trials 8 --out "$work/kept" --figures no --json | /usr/bin/python3 -c "import json, sys
a, b = json.load(sys.stdin), json.load(open('$work/bare.json'))
assert b.get('out') is None and a['peak_mean'] == b['peak_mean'] and 'figures' not in b" || die "--files no: another document"
"$CGAM" study | grep -q "cgam study phase" || die "the list"

# ---- options ---------------------------------------------------------------------------------------
expect 2 "--trials is -5" quick separation --trials -5
expect 2 "--trials is 0" quick coupled --trials 0
expect 2 "'1e3' is not an integer" quick coupled --trials 1e3
expect 2 "'nan' is not a finite number" quick separation --sigma-c nan
expect 2 "--sigma-q: 'nan'" quick separation --sigma-q nan
expect 2 "--lambda: ''" quick coupled --lambda ""
expect 2 "--lambda is -1" quick coupled --lambda 1,-1
expect 2 "--alphas is -0.5" quick competition --alphas -0.5
expect 2 "--beta is 0" quick competition --beta 0
expect 2 "invalid value 'often'" quick separation --context-noise often
expect 2 "--ratio is 1000000000" quick timescale --ratio 1e9
expect 2 "2 values (at most 1)" quick timescale --lambda 1,2
expect 2 "no option --frobnicate" quick phase --frobnicate
expect 2 "--x and --y" quick phase --x alpha --y alpha
expect 2 "valid: 0 to 9" quick separation --trials 10 --only-trial 10
expect 2 "no study 'separaton'" "$CGAM" study separaton
expect 2 "requires --alpha below alpha_crit = 1" quick separation --mode coupled --alpha 2 --trials 8
expect 2 "nowhere.npy" quick capacity --bank "$work/nowhere.npy"
expect 2 "--scale is 0" "$CGAM" report --scale 0 --out "$work/report"

# ---- folders -----------------------------------------------------------------------------------------
touch "$work/file"
expect 3 "Not a directory" "$CGAM" study separation --trials 8 --out "$work/file/deeper"
expect 3 "Not a directory" "$CGAM" report --scale 0.01 --out "$work/file"
if [ "$(id -u)" -ne 0 ]; then
    mkdir "$work/locked"
    chmod a-w "$work/locked"
    expect 3 "Permission denied" "$CGAM" study separation --trials 8 --out "$work/locked"
fi

# ---- a full disk: a limit on the size of files stands for it, and a small file system where we may
# make one. What was there before stays, and no temporary is left.
limited() { # limited KIBIBYTES COMMAND...
    (
        trap '' XFSZ
        ulimit -f "$1"
        export LLVM_PROFILE_FILE=/dev/null # counts of make coverage are a file too
        shift
        exec "$@"
    )
}
expect 3 "cannot write: File too large" limited 4 "$CGAM" study separation --trials 640 --figures no --out "$work/tight"
mkdir "$work/second"
echo old >"$work/second/peak.csv"
expect 3 "peak.csv: cannot write: File too large" limited 3 "$CGAM" study competition --trials 8 --figures no --out "$work/second"
[ "$(cat "$work/second/peak.csv")" = old ] || die "a table was half replaced"
if command -v gnuplot >/dev/null; then
    expect 3 "" limited 48 "$CGAM" study separation --trials 64 --out "$work/drawn"
    [ -z "$(find "$work/drawn" -name '*.png')" ] || [ -s "$work/drawn/accuracy.png" ] || die "half a picture"
fi
if mkdir "$work/small" && mount -t tmpfs -o size=64k none "$work/small" 2>/dev/null; then
    expect 3 "No space left on device" "$CGAM" study separation --trials 640 --figures no --out "$work/small/x" || status=1
    umount "$work/small"
    [ -z "${status:-}" ] || exit 1
fi
left=$(find "$work" -name '.cgam-*')
[ -z "$left" ] || die "temporary files are left: $left"

# ---- one folder, one run: another study, then another seed, then two at a time ------------------------
if command -v gnuplot >/dev/null; then
    "$CGAM" study competition --trials 8 --out "$work/one" >/dev/null
    touch "$work/one/mine.svg"
    [ -s "$work/one/zoom.svg" ] && [ -s "$work/one/onset.csv" ] || die "competition: files"
    before=$(cksum "$work/one"/*)
    expect 2 "holds another run (study competition, seed 1); give --overwrite" \
        "$CGAM" study timescale --trials 4 --ratio 1,10 --out "$work/one" --figures no
    [ "$(cksum "$work/one"/*)" = "$before" ] || die "a rejected run changed the folder"
    "$CGAM" study timescale --trials 4 --ratio 1,10 --out "$work/one" --figures no --overwrite >/dev/null
    [ "$(cd "$work/one" && echo *)" = "along.csv mine.svg ratios.csv summary.json" ] ||
        die "two studies in one folder: $(ls "$work/one")"
    "$CGAM" study timescale --trials 4 --ratio 1,10 --out "$work/one" >/dev/null
    [ -s "$work/one/ratios.pdf" ] || die "no figure of the run that is there"
    "$CGAM" study timescale --trials 4 --ratio 1,10 --seed 2 --out "$work/one" --figures no --overwrite >/dev/null
    [ ! -e "$work/one/ratios.pdf" ] && [ ! -e "$work/one/ratios.gp" ] || die "a figure of another seed"
fi
mkdir "$work/busy"
(
    flock 9
    expect 3 "another run is using" "$CGAM" study competition --trials 8 --out "$work/busy"
) 9>"$work/busy/.competition.progress"

# ---- without gnuplot: said in one line, complete otherwise ---------------------------------------------
PATH=/nonexistent "$CGAM" study competition --trials 16 --out "$work/bare" >"$work/out" 2>"$work/err" ||
    die "without gnuplot: $(cat "$work/err")"
[ ! -s "$work/err" ] || die "without gnuplot: $(cat "$work/err")"
[ "$(grep -c 'gnuplot was not found' "$work/out")" -eq 1 ] || die "a missing gnuplot is not told"
[ -s "$work/bare/peak.csv" ] && [ -s "$work/bare/peak.gp" ] && [ ! -e "$work/bare/peak.svg" ] || die "files without gnuplot"
echo "study: fine"

# ---- memories of a file, and tables in the document ----------------------------------------------------
/usr/bin/python3 -B - "$work" <<'END'
import sys
import numpy as np
Z = np.random.default_rng(3).standard_normal((30, 6))
np.save(sys.argv[1] + "/norms.npy", Z)
END
for kind in separation annealing sparse competition coupled rivals; do
    size="--trials 2 --n 7"
    [ $kind = rivals ] && size="$size --banks 4"
    [ $kind = annealing ] && size="$size --alpha 0.01"
    "$CGAM" study $kind --bank "$work/norms.npy" --normalize $size --files no --tables yes --json >"$work/bank.json"
    /usr/bin/python3 -B - "$work/bank.json" <<'END' || die "$kind: tables"
import json, sys
doc = json.load(open(sys.argv[1]))
assert doc["bank"]["n"] == 30 and doc["parameters"]["n"] == 7 and doc["parameters"]["bank"] == "given"
assert list(doc["table"]) == doc["tables"] and doc["tables"]
for name, table in doc["table"].items():
    assert len({len(column) for column in table.values()}) == 1, name
END
done
for kind in competition coupled rivals "separation --mode coupled"; do
    expect 2 "needs unit vectors (--normalize)" "$CGAM" study $kind --bank "$work/norms.npy" --n 7 --trials 2 --files no
done
expect 2 "n is 31, bank has 30 memories" "$CGAM" study sparse --bank "$work/norms.npy" --n 31 --files no
