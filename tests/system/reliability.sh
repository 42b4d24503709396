#!/usr/bin/env bash
# The campaign's tables: pieces are added to the sums, each once, in whatever log and however often it is met; a row without logs stays;
# a line that is not what it should be is named.
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
has here '31,234 | 1'
has there '7 | 0'
has elsewhere '5 | 0'
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
has here '32,700 | 5'
grep -q '"row": "here".*"last": "20[0-9-]*, .' docs/reliability.jsonl || die "does not say when and where"
piece here 1 0 fourth | sed 's/}$/, "last": "a day, a machine"}/' >copies/elsewhere.jsonl
tools/reliability copies >said 2>&1
grep -qF '| here | a \| b | 32,701 | 5 | a day, a machine |' docs/reliability.md || die "pieces of another machine are called those of this one"
tools/reliability --check
sed -i 's/32,701/99,999/' SECURITY.md
! tools/reliability --check 2>said || die "a figure typed in by hand goes unnoticed"
grep -q 'SECURITY.md: the table is not' said || die "$(cat said)"

rm -rf before
cp -r docs before
for bad in '{"row": "x"}' '[]' '{' "$(piece x -1 0 a)" "$(piece x 1.5 0 a)" "$(piece x true 0 a)" "$(sum x 1 0)"; do
    { piece fine 1 0 a; echo "$bad"; } >logs/three.jsonl
    ! tools/reliability logs >/dev/null 2>said || die "took $bad"
    grep -q 'logs/three.jsonl:2: ' said && [ "$(wc -l <said)" = 1 ] || die "of $bad: $(cat said)"
done
diff -r before docs || die "what was wrong left traces"
