#!/usr/bin/env bash
# The campaign's tables: pieces of a row are added up, a row without logs stays, twice is once, and a line that is not
# what it should be is named.
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

line() { printf '{"row": "%s", "injected": "a | b", "count": %s, "lost": %s, "command": "make x"}\n' "$@"; }
line here 1000 1 >logs/one.jsonl
{ line here 234 0; line there 7 0; } >logs/two.jsonl
line elsewhere 5 0 >>docs/reliability.jsonl
tools/reliability logs >said
for document in docs/reliability.md SECURITY.md; do
    grep -qF '| here | a \| b | 1,234 | 1 |' "$document" || die "$document does not add up"
    grep -qF '| elsewhere | a \| b | 5 | 0 |' "$document" || die "$document forgot a row without logs"
done
grep -qF '`make x`' docs/reliability.md || die "no command"
printf '| folder |\n|---|\n| src/of a test |\n' >logs/coverage.md
tools/reliability logs >said
grep -qFx '| src/of a test |' docs/reliability.md || die "the table of branches is not taken over"
rm logs/coverage.md
cp -r docs before
tools/reliability logs >said
diff -r before docs || die "the second time gives other figures"
tools/reliability --check
sed -i 's/1,234/9,999/' SECURITY.md
! tools/reliability --check 2>said || die "a figure typed in by hand goes unnoticed"
grep -q 'SECURITY.md: the table is not' said || die "$(cat said)"

for bad in '{"row": "x"}' '[]' '{' "$(line x -1 0)" "$(line x 1.5 0)" "$(line x true 0)"; do
    { line fine 1 0; echo "$bad"; } >logs/three.jsonl
    ! tools/reliability logs >/dev/null 2>said || die "took $bad"
    grep -q 'logs/three.jsonl:2: ' said && [ "$(wc -l <said)" = 1 ] || die "of $bad: $(cat said)"
done
diff -r before docs || die "what was wrong left traces"
