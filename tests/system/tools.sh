#!/usr/bin/env bash
# Whoever asks a tool of the tree for help gets what stands at its head, and nothing is done.
set -euo pipefail
die() { echo "tools: $*" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
asked=0
for tool in "$CGAM_SRC"/tools/*; do
    [ -x "$tool" ] || continue # read by others
    name=$(basename "$tool")
    HOME=$scratch XDG_CACHE_HOME=$scratch timeout 20 "$tool" --help >"said" 2>"wrong" || die "$name --help has status $?: $(cat wrong)"
    [ ! -s wrong ] || die "$name --help complains: $(cat wrong)"
    head=$(sed -n '2{s/^# //; s/^"""//; p}' "$tool")
    grep -qF -- "$head" said || die "$name --help does not say: $head"
    ! grep -q '^set -' said || die "$name --help says more than its head"
    rm said wrong
    [ -z "$(ls -A)" ] || die "$name --help leaves $(ls -A)"
    asked=$((asked + 1))
done
[ $asked -gt 15 ] || die "only $asked tools"
echo "tools: $asked say what they are for"
