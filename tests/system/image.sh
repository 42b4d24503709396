#!/usr/bin/env bash
# tools/image says when there is no engine, and gives one that works the recipe, the packages and a tag; the recipe asks for what the packages
# hold. The engine is played by a script: a real one is used by `make image`, and what the recipe installs by system/deb.
set -euo pipefail
die() { echo "image: $*" >&2; exit 1; }
command -v dpkg-deb >/dev/null || { echo "no dpkg-deb"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkdir bin build build/deb
for engine in podman docker; do printf '#!/bin/sh\nexit 1\n' >bin/$engine && chmod +x bin/$engine; done
export PATH=$scratch/bin:$PATH
image() { code=0; "$CGAM_SRC/tools/image" "$@" >said 2>wrong || code=$?; }
image build
[ $code = 2 ] && [ "$(wc -l <wrong)" = 1 ] && grep -q 'neither podman nor docker works' wrong || die "no engine: status $code, $(cat wrong)"

cat >bin/docker <<'SH'
#!/bin/sh
echo "$*" >>"$LOG"
[ "$1" != build ] || for last; do :; done
[ "$1" != build ] || ls "$last" >"$LOG.context"
[ "$1" != run ] || [ -z "${BROKEN:-}" ]
SH
export LOG=$scratch/log
image --engine
[ $code = 0 ] && [ "$(cat said)" = docker ] || die "--engine says $(cat said)"
image build
[ $code = 2 ] && grep -q 'make deb makes it' wrong || die "without packages: status $code, $(cat wrong)"
for name in libcgam0 cgam python3-cgam; do
    mkdir -p tree/DEBIAN
    printf 'Package: %s\nVersion: 9.8.7+git.20260102\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: d\n' $name >tree/DEBIAN/control
    dpkg-deb --root-owner-group -b tree "build/deb/${name}_9.8.7_all.deb" >/dev/null
done
BASE=local/debian image build
[ $code = 0 ] && [ "$(cat said)" = cgam:9.8.7-git.20260102 ] || die "status $code, says $(cat said wrong)"
grep -q '^build --build-arg BASE=local/debian -t cgam:9.8.7-git.20260102 ' log || die "$(cat log)"
grep -q '^run --rm --network none cgam:9.8.7-git.20260102 version$' log || die "the image is not tried without network: $(cat log)"
[ "$(tr '\n' ' ' <log.context)" = "Containerfile cgam_9.8.7_all.deb libcgam0_9.8.7_all.deb python3-cgam_9.8.7_all.deb " ] ||
    die "the engine gets $(cat log.context)"
BROKEN=yes image build
[ $code = 1 ] && grep -q 'does not run' wrong || die "an image that does not run: status $code, $(cat wrong)"

# What the recipe copies is what debian/control makes.
for package in $(sed -n 's/^COPY \(.*\) .*/\1/p' "$CGAM_SRC/packaging/Containerfile" | sed 's/_\*\.deb//g'); do
    grep -qx "Package: $package" "$CGAM_SRC/packaging/debian/control" || die "the recipe copies $package, which is not made"
done
echo "image: no engine, an engine, an image that does not run"
