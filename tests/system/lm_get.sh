#!/usr/bin/env bash
# Fetching, with an npm of our own: what fails says so in one line, and leaves nothing that could be
# taken for a model.
set -uo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" "$scratch/cache"
failures=0

# expect STATUS WORDS ENVIRONMENT...: one line with the words, nothing on standard output.
expect() {
    local status=$1 words=$2 out code
    shift 2
    out=$(env "$@" XDG_CACHE_HOME="$scratch/cache" "$CGAM" lm get 2>"$scratch/err" </dev/null)
    code=$?
    if [ $code != "$status" ] || [ -n "$out" ] || [ "$(wc -l <"$scratch/err")" != 1 ] ||
        ! grep -qF -- "$words" "$scratch/err"; then
        echo "FAILED: exit $code, want $status with '$words'; said: $(cat "$scratch/err")"
        failures=1
    fi
    if compgen -G "$scratch/cache/cgam/*.gguf" >/dev/null; then
        echo "FAILED: a model appeared"
        failures=1
    fi
}

expect 2 "the program npm" PATH="$scratch/bin"
printf '#!/bin/sh\necho "no route to the registry" >&2\nexit 1\n' >"$scratch/bin/npm"
chmod +x "$scratch/bin/npm"
expect 3 "no route to the registry" PATH="$scratch/bin:$PATH"
printf '#!/bin/sh\nexit 0\n' >"$scratch/bin/npm"
expect 2 "No such file" PATH="$scratch/bin:$PATH"
cat >"$scratch/bin/npm" <<'NPM'
#!/bin/sh
echo other >"$4/node-llama-cpp-linux-x64-3.22.1.tgz"
NPM
expect 2 "wrong digest" PATH="$scratch/bin:$PATH"
exit $failures
