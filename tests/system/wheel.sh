#!/usr/bin/env bash
# The wheel links only what is allowed outside; one that links something else, looks for libraries elsewhere, exports more or has
# another tag is found. Its SBOM lists what it links.
set -euo pipefail
die() { echo "wheel: $*" >&2; exit 1; }
[ -z "${CGAM_SANITIZE:-}" ] || { echo "a wheel with a sanitizer is not for others"; exit 77; }
wheel=$(ls "$CGAM_BUILD"/python/dist/*.whl 2>/dev/null) || { echo "no wheel is built"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
check() { "$CGAM_SRC/tools/wheel" "$@" >said 2>wrong; }
check "$wheel" || die "$(cat wrong)"
grep -q '^libjansson.so.4 ' said || die "libjansson is linked and not listed: $(cat said)"
[ "$(grep -c '\.so' said)" -gt 6 ] || die "lists too little: $(cat said)"

# Wheels with one flaw each. The module is compiled here.
echo 'int foreign(void); int foreign(void) { return 1; }' >foreign.c
cc -shared -fPIC -o libforeign.so.1 -Wl,-soname,libforeign.so.1 foreign.c
printf '%s\n' 'int foreign(void); void *_PyPrivate_Thing(void); void *PyInit__core(void); int stray(void);' \
    'int stray(void) { return 2; }' '__attribute__((visibility("default"))) void *PyInit__core(void) {' \
    '#ifdef FOREIGN' 'foreign();' '#endif' '#ifdef PRIVATE' '_PyPrivate_Thing();' '#endif' 'return 0; }' >module.c
pack() { # NAME-OF-WHEEL CC-OPTIONS..: the module as a wheel
    local name=$1
    shift
    rm -rf tree && mkdir -p tree/cgam
    cc -shared -fPIC -fvisibility=hidden -o tree/cgam/_core.abi3.so module.c "$@"
    (cd tree && python3 -m zipfile -c "../$name" cgam)
}
good=cgam-1.0-cp311-abi3-linux_x86_64.whl
rejected() { # TEXT: the wheel is rejected with it
    local code=0
    check "${2:-$good}" || code=$?
    [ $code = 1 ] && grep -q -e "$1" wrong || die "status $code, wanted 1 and '$1': $(cat wrong)"
}
pack $good
check $good || die "a wheel without flaws: $(cat wrong)"
pack $good -DFOREIGN ./libforeign.so.1
rejected 'links libforeign.so.1, which is neither'
pack $good '-Wl,-rpath,$ORIGIN/../cgam.libs'
check $good || die "a run path inside the wheel: $(cat wrong)"
pack $good -Wl,-rpath,/opt/lib
rejected "looks for libraries in '/opt/lib'"
pack $good -DPRIVATE
rejected 'uses _PyPrivate_Thing'
pack $good -fvisibility=default
rejected 'exports stray'
pack cgam-1.0-py3-none-any.whl
rejected 'not tagged' cgam-1.0-py3-none-any.whl
code=0
check /nonexistent.whl || code=$?
[ $code = 2 ] || die "no file: status $code"

# A library of the wheel's own is allowed.
pack $good -DFOREIGN ./libforeign.so.1
cp libforeign.so.1 tree/cgam/ && (cd tree && python3 -m zipfile -c "../$good" cgam)
check $good || die "a library beside the module: $(cat wrong)"
grep -q '^libforeign.so.1 *in the wheel' said || die "$(cat said)"

if command -v dpkg-query >/dev/null; then
    "$CGAM_SRC/tools/sbom" "$CGAM_BUILD" python/cgam/_core.abi3.so >sbom.json
    for library in libjansson libzip liblbfgs libopenblas; do grep -q "\"name\": \"$library" sbom.json || die "the SBOM lacks $library"; done
    ! grep -q '"name": "libmicrohttpd' sbom.json || die "the SBOM of the wheel lists the server's libraries"
fi
echo "wheel: $(basename "$wheel") links only what is allowed"
