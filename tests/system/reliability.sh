#!/usr/bin/env bash
# The campaign's tables: pieces are added to the sums, each once, in whatever log and however often it is met; a row without logs stays;
# a line that is not what it should be is named. Seconds are those of processor since the last piece of who logs it.
set -euo pipefail
die() { echo "reliability: $*" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/tools" "$scratch/docs" "$scratch/logs"
cp "$CGAM_SRC/tools/reliability" "$scratch/tools/"
cp "$CGAM_SRC/SECURITY.md" "$scratch/"
cp "$CGAM_SRC"/docs/reliability.* "$scratch/docs/"
cd "$scratch"
tools/reliability --check || die "the committed tables are not those of the committed sums"

sum() { printf '{"row": "%s", "injected": "a | b", "count": %s, "lost": %s, "command": "make x"}\n' "$@"; }
piece() { sum "$1" "$2" "$3" | sed "s/}$/, \"piece\": \"$4\"}/"; } # ROW COUNT LOST PIECE
has() { # ROW CELLS: both tables say so
    for document in docs/reliability.md SECURITY.md; do
        grep -qF "| $1 | a \\| b | $2 |" "$document" || die "$document: not '$2' of $1: $(grep -F "| $1 |" "$document")"
    done
}
{ sum elsewhere 5 0; sum here 30000 0; } >>docs/reliability.jsonl
piece here 1000 1 first >logs/one.jsonl
{ piece here 234 0 second; piece there 7 0 first; } >logs/two.jsonl
tools/reliability logs >said 2>&1
has here '31,234 | 1 | 234'
has there '7 | 0 | '
has elsewhere '5 | 0 | '
grep -qx '3 new pieces in logs' said || die "$(tail -n 1 said)"
grep -qF '`make x`' docs/reliability.md || die "no command"
printf '| folder |\n|---|\n| src/of a test |\n' >logs/coverage.md
tools/reliability logs >said 2>&1
grep -qFx '| src/of a test |' docs/reliability.md || die "the table of branches is not taken over"
rm logs/coverage.md

# Again, and the same pieces in another log of another folder, adds nothing; a log that grew adds what is new.
cp -r docs before
tools/reliability logs >said 2>&1
mkdir copies
cat logs/*.jsonl logs/one.jsonl >copies/all.jsonl
tools/reliability copies >said 2>&1
diff -r before docs || die "what was added is added again"
piece here 66 0 third >>logs/one.jsonl
tools/reliability --log logs/run.jsonl here 'a | b' 700 2 'make x'
tools/reliability --log logs/run.jsonl here 'a | b' 700 2 'make x' # as many by chance
tools/reliability logs >said 2>&1
tools/reliability logs >said 2>&1
has here '32,700 | 5 | 0'
grep -q '"row": "here".*"last": "20[0-9-]*, .' docs/reliability.jsonl || die "does not say when and where"
piece here 1 0 fourth | sed 's/}$/, "last": "a day, a machine"}/' >copies/elsewhere.jsonl
tools/reliability copies >said 2>&1
grep -qF '| here | a \| b | 32,701 | 5 | 1 | a day, a machine |  | `make x` |' docs/reliability.md || die "pieces of another machine are called those of this one"
tools/reliability --check

# A row names the version of its last piece, and what is printed says whether that is the one here.
git init -q . && git config user.name a && git config user.email a@b.example
mkdir -p src && touch src/one.c && git add src && git commit -qm one
tools/reliability --log copies/version.jsonl here 'a | b' 10 0 'make x'
at=$(git rev-parse --short=10 HEAD)
tools/reliability copies >said 2>&1
grep -qF "| $at | \`make x\` |" docs/reliability.md || die "no version: $(grep -F '| here |' docs/reliability.md)"
grep -q '^here: .*; on this version$' said || die "not this version: $(grep ^here said)"
echo "int x;" >src/one.c && git commit -qam two
tools/reliability copies >said 2>&1
grep -q "^here: .*; on $at\$" said || die "an older version: $(grep ^here said)"
echo "int y;" >src/one.c # a changed checkout has no version
tools/reliability --log copies/changed.jsonl there 'a | b' 10 0 'make x'
grep -q commit copies/changed.jsonl && die "a changed checkout is called a version"
git checkout -q src/one.c

# A quarter of 400 times took 90 s, so all are 360; a row without a time is not in the sum. Rows that are there are timed meanwhile or not.
cp docs/reliability.jsonl all.jsonl
sum lone 300 0 >docs/reliability.jsonl
{ sum silent 7 0; piece lone 100 0 clocked | sed 's/}$/, "seconds": 90}/'; } >clocked
mkdir clock
sed -n 2p clocked >clock/one.jsonl
sed -n 1p clocked >>docs/reliability.jsonl
tools/reliability clock >said 2>&1
grep -qFx 'lone: 400 times, 0 lost; 100 of them took 90 s; version not known' said || die "$(cat said)"
grep -q '^0.0 hours of processor were timed, in 1 of 2 rows' docs/reliability.md || die "$(grep timed docs/reliability.md)"
grep -q '^these is 0.1 hours' docs/reliability.md || die "$(grep reckoned docs/reliability.md)"
mv all.jsonl docs/reliability.jsonl
rm clock/one.jsonl
bash -c '(ulimit -t 1 && exec yes >/dev/null) # a second of processor by ticks of the kernel, which may be off by a quarter
    tools/reliability --log clock/two.jsonl busy "a | b" 30 0 "make x" mixed "a | b" 10 0 "make x"
    tools/reliability --log clock/two.jsonl idle "a | b" 1 0 "make x"
    :' # else the last would be run in place of the shell
python3 - clock/two.jsonl <<'PYTHON' || die "seconds: $(cat clock/two.jsonl)"
import json, sys
busy, mixed, idle = (json.loads(line)["seconds"] for line in open(sys.argv[1]))
assert 0.5 < busy + mixed < 60 and abs(busy - 3 * mixed) < 0.05 and idle < busy + mixed, (busy, mixed, idle)
PYTHON
tools/reliability logs >said 2>&1
sed -i 's/32,711/99,999/' SECURITY.md
! tools/reliability --check 2>said || die "a figure typed in by hand goes unnoticed"
grep -q 'SECURITY.md: the table is not' said || die "$(cat said)"

rm -rf before
cp -r docs before
for bad in '{"row": "x"}' '[]' '{' "$(piece x -1 0 a)" "$(piece x 1.5 0 a)" "$(piece x true 0 a)" "$(sum x 1 0)" \
    "$(piece x 1 0 a | sed 's/}$/, "seconds": -1}/')"; do
    { piece fine 1 0 a; echo "$bad"; } >logs/three.jsonl
    ! tools/reliability logs >/dev/null 2>said || die "took $bad"
    grep -q 'logs/three.jsonl:2: ' said && [ "$(wc -l <said)" = 1 ] || die "of $bad: $(cat said)"
done
diff -r before docs || die "what was wrong left traces"
