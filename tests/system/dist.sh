#!/usr/bin/env bash
# ctest: labels=nightly
# A release is the same bytes twice, under another clock, umask, language and zone; holds what is committed and
# nothing else; can be configured where git is not; and its list of what is linked leaves nothing out.
set -euo pipefail
die() { echo "dist: $*" >&2; exit 1; }
[ -z "${CGAM_SANITIZE:-}" ] || { echo "a release is of the plain build"; exit 77; }
git -C "$CGAM_SRC" rev-parse --git-dir >/dev/null 2>&1 || { echo "not a git checkout"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$CGAM_SRC/tools/dist" "$CGAM_BUILD" "$scratch/one" 2>"$scratch/said" || die "$(cat "$scratch/said")"
sleep 1
(umask 077 && cd / && LC_ALL=C TZ=Asia/Tokyo "$CGAM_SRC/tools/dist" "$CGAM_BUILD" "$scratch/two" 2>/dev/null)
diff -r "$scratch/one" "$scratch/two" || die "two runs made different files"

cd "$scratch/one"
sha256sum --quiet -c SHA256SUMS
version=$("$CGAM" version | sed 's/^cgam //;q')
[ "$(ls)" = "$(printf '%s\n' SHA256SUMS "cgam-$version.spdx.json" "cgam-$version.tar.gz")" ] || die "other files: $(ls)"

tar -tzf "cgam-$version.tar.gz" | sed "s|^cgam-$version/||" | grep -v '/$' | grep . | LC_ALL=C sort >"$scratch/packed"
git -C "$CGAM_SRC" ls-tree -r --name-only HEAD | LC_ALL=C sort >"$scratch/committed"
cmp "$scratch/packed" "$scratch/committed" || die "the archive and the commit differ"
owners=$(tar --numeric-owner -tvzf "cgam-$version.tar.gz" | awk '{ print $1, $2 }' | grep -vE '^(-rw-r--r--|[-d]rwxr-xr-x|lrwxrwxrwx) 0/0$' || true)
[ -z "$owners" ] || die "owners or rights that come from this machine: $owners"

# Without git and beside nothing of ours. What was built here serves as the compiler's cache would.
tar -xzf "cgam-$version.tar.gz" -C "$scratch"
cmake -S "$scratch/cgam-$version" -B "$scratch/build" -DBUILD_TESTING=OFF >"$scratch/log" 2>&1 || { cat "$scratch/log"; die "does not configure"; }
code=0
"$scratch/cgam-$version/tools/dist" "$CGAM_BUILD" "$scratch/three" 2>"$scratch/said" || code=$?
[ $code = 2 ] && grep -q 'not a git checkout' "$scratch/said" || die "outside git: exit $code, $(cat "$scratch/said")"

/usr/bin/python3 -B - "cgam-$version.spdx.json" "$CGAM" <<'PY'
import json, re, subprocess, sys
document = json.load(open(sys.argv[1]))
packages = {p["SPDXID"]: p for p in document["packages"]}
assert document["spdxVersion"] == "SPDX-2.3" and len(packages) == len(document["packages"]) > 10
related = {r["spdxElementId"] for r in document["relationships"]} | {r["relatedSpdxElement"] for r in document["relationships"]}
assert related == set(packages) | {"SPDXRef-DOCUMENT"}, "a package without a relation, or one that is not there"
for p in packages.values():
    assert re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", p["SPDXID"]), p["SPDXID"]
    assert p["licenseConcluded"] not in ("", "NOASSERTION", "NONE"), p["name"]
linked = {p["name"] for p in packages.values() if p["comment"] == "linked"}
for path in re.findall(r"(/\S+libjansson\S+|/\S+libzip\S+|/\S+libmicrohttpd\S+|/\S+libseccomp\S+|/\S+libsodium\S+) \(", subprocess.run(["ldd", sys.argv[2]], capture_output=True, text=True).stdout):
    stem = re.match(r"lib[a-z]+", path.rsplit("/", 1)[1])[0]
    assert any(name.startswith(stem) for name in linked), f"{path} is linked and not listed"
loaded = {p["name"] for p in packages.values() if p["comment"] == "loaded at run time"}
for stem in ("libopenblas", "liblapacke", "liblinear", "libstdc++", "libgcc-s"):
    assert any(name.startswith(stem) for name in loaded), f"{stem} is loaded and not listed"
fetched = [p for p in packages.values() if p["comment"].startswith("fetched")]
assert len(fetched) >= 7 and sum("checksums" in p for p in fetched) >= 5, [p["name"] for p in fetched]
PY
