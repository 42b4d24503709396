#!/usr/bin/env bash
# ctest: labels=nightly timeout=3000
# Makes the Debian packages, installs them into a bare Debian made by debootstrap, and uses them there: `cgam demo`, the example
# of a first recall in C through pkg-config, `import cgam`. Without root, debootstrap or a mirror they are unpacked into a
# folder, and run there with the libraries of this machine. CGAM_DEB=unpack asks for that.
set -euo pipefail
[ -z "${CGAM_SANITIZE:-}" ] || { echo "packages are of the plain build"; exit 77; }
for tool in dpkg-buildpackage dh dh_python3 lintian; do
    command -v "$tool" >/dev/null || { echo "no $tool (tools/deps deb)"; exit 77; }
done
die() { echo "deb: $*" >&2; exit 1; }
stage=$(mktemp -d)
root=$stage/root
finish() {
    ! mountpoint -q "$root/proc" 2>/dev/null || umount "$root/proc"
    rm -rf --one-file-system "$stage"
}
trap finish EXIT

if [ -z "${CGAM_DEB_BUILT:-}" ]; then "$CGAM_SRC/tools/deb" "$CGAM_BUILD" >"$stage/log" 2>&1 || { cat "$stage/log"; die "tools/deb failed"; }; fi
version=$("$CGAM" version | sed 's/^cgam //;q')
files=()
for name in libcgam0 libcgam-dev cgam python3-cgam; do
    file=$(ls "$CGAM_BUILD"/deb/${name}_*.deb) || die "no package $name"
    files+=("$file")
    case $(dpkg-deb -f "$file" Version) in
    "$version" | "$version"+git.*) ;;
    *) die "$name has version $(dpkg-deb -f "$file" Version), the program $version" ;;
    esac
done

# What is opened at run time is asked for, since no tool sees it; libllama is no part of Debian, so nothing asks for it.
for file in "${files[@]}"; do
    depends=$(dpkg-deb -f "$file" Depends)
    case $depends in *llama*) die "$file depends on libllama" ;; esac
    case $file in
    *libcgam-dev*) continue ;;
    *libcgam0*) wanted="libopenblas0 liblapacke libjansson4" ;;
    *) wanted="libopenblas0 liblapacke liblinear libjansson4" ;;
    esac
    for package in $wanted; do [[ $depends == *$package* ]] || die "$(basename "$file") does not depend on $package: $depends"; done
done
dpkg-deb -c "$CGAM_BUILD"/deb/cgam_*.deb | awk '{ print $6 }' >"$stage/cgam"
for path in bin/cgam share/man/man1/cgam.1.gz share/man/man1/cgam-recall.1.gz share/bash-completion/completions/cgam \
    share/zsh/vendor-completions/_cgam share/fish/vendor_completions.d/cgam.fish share/doc/cgam/docs/index.md; do
    grep -qx "./usr/$path" "$stage/cgam" || die "the package cgam has no /usr/$path"
done

mirror() { apt-get indextargets --format '$(SITE) $(CODENAME) $(COMPONENT)' 2>/dev/null | awk '$1 ~ /debian$/ && $3 == "main" { print $1; exit }'; }
bare() { # makes a bare Debian in $root, or fails
    [ "${CGAM_DEB:-}" != unpack ] && [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || return 1
    . /etc/os-release
    [ "${ID:-}" = debian ] && [ -n "$(mirror)" ] || return 1
    debootstrap --variant=minbase "$VERSION_CODENAME" "$root" "$(mirror)" >"$stage/log" 2>&1 || { tail -n 5 "$stage/log"; return 1; }
    mount -t proc proc "$root/proc" 2>/dev/null || true
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # no service is started
    chmod 755 "$root/usr/sbin/policy-rc.d"
}
cat >"$stage/use.py" <<'PY'
import cgam, numpy
print(cgam.__version__, cgam.Bank(numpy.eye(3)).recall([0, 1, 0.0]).winner)
PY

if bare; then
    where="a bare Debian"
    cp "${files[@]}" "$stage/use.py" "$CGAM_SRC/examples/first_recall.c" "$root/tmp/"
    cp /etc/resolv.conf "$root/etc/" 2>/dev/null || true
    inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }
    inside sh -c 'apt-get -qq update && apt-get -qq install -y --no-install-recommends /tmp/*.deb gcc libc6-dev pkg-config' \
        >"$stage/log" 2>&1 || { tail -n 20 "$stage/log"; die "the packages do not install"; }
    inside sh -c 'cd /tmp && gcc -std=c11 -Wall -Werror -o first first_recall.c $(pkg-config --cflags --libs cgam)' ||
        die "no C program through pkg-config"
    broken=$(inside dpkg --audit)
    [ -z "$broken" ] || die "dpkg --audit: $broken"
else
    where="an unpacked folder"
    mkdir -p "$root/tmp"
    for file in "${files[@]}"; do dpkg-deb -x "$file" "$root"; done
    libdir=$root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
    if ! dpkg --dry-run --force-not-root -i "${files[@]}" >"$stage/log" 2>&1; then cat "$stage/log"; die "dpkg --dry-run: does not install"; fi
    cp "$stage/use.py" "$root/tmp/"
    read -ra flags <<<"$(PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config --cflags --libs cgam)"
    cc -std=c11 -Wall -Werror -o "$root/tmp/first" "$CGAM_SRC/examples/first_recall.c" "${flags[@]}"
    for file in "$root/usr/bin/cgam" "$libdir"/*.so "$root"/usr/lib/python3/dist-packages/cgam/*.so; do
        missing=$(LD_LIBRARY_PATH=$libdir ldd "$file" | grep 'not found' || true)
        [ -z "$missing" ] || die "$(basename "$file"): $missing"
    done
    inside() { # PROGRAM of the folder, WORD..
        local program=$1
        shift
        if [ "$program" = python3 ]; then
            PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/usr/lib/python3/dist-packages /usr/bin/python3 "$root$1"
        else
            LD_LIBRARY_PATH=$libdir "$root$program" "$@"
        fi
    }
fi

[ "$(inside /usr/bin/cgam version | sed q)" = "cgam $version" ] || die "the installed program has another version"
inside /usr/bin/cgam demo >"$stage/demo" || { cat "$stage/demo"; die "cgam demo fails"; }
"$CGAM" demo >"$stage/wanted"
cmp "$stage/demo" "$stage/wanted" || die "cgam demo prints something else than the build's"
inside /tmp/first >"$stage/first" || die "the C program fails"
grep -q '^context water .*river bank' "$stage/first" && grep -q '^context money .*savings bank' "$stage/first" ||
    die "the C program says: $(cat "$stage/first")"
said=$(inside python3 /tmp/use.py)
[ "$said" = "$version 1" ] || die "the installed Python package says '$said'"
echo "deb: ${#files[@]} packages of cgam $version, used in $where"
