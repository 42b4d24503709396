#!/usr/bin/env bash
# ctest: timeout=300
# Installs into a scratch folder and uses what arrived there as a stranger would: programs in C
# and C++, through pkg-config and through find_package, shared and static; every example; the
# exported symbols; the man pages.
set -euo pipefail

if [ -n "${CGAM_SANITIZE:-}" ]; then
    echo "a library built with a sanitizer is not for installing"
    exit 77
fi
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
die() { echo "install: $*" >&2; exit 1; }

DESTDIR=$stage cmake --install "$CGAM_BUILD" --prefix /opt/cgam >"$stage/log" || { cat "$stage/log"; exit 1; }
root=$stage/opt/cgam
archive=$(find "$root" -name libcgam.a)
[ -n "$archive" ] || die "libcgam.a did not arrive"
libdir=$(dirname "$archive")
version=$(sed -n 's/^#define CGAM_VERSION "\(.*\)"/\1/p' "$CGAM_SRC/include/cgam/base.h")

# Headers: all of them, as they stand.
for header in "$CGAM_SRC"/include/cgam/*.h; do
    cmp "$header" "$root/include/cgam/$(basename "$header")"
done

# Names: a library exports what its public headers declare, and libcgam, for libcgam_lm alone, what cmake/private.txt
# lists: no more than is used. The static libraries define no global name without the prefix.
promises() { # HEADER..: the functions they promise
    cat "$@" | grep -v '^#' | tr '\n' ' ' | grep -oE 'CGAM_API [^;{]*' |
    sed -E 's/^[^(]*[ *](cgam_[a-z0-9_]+) *\(.*/\1/; s/.*[ *](cgam_[a-z0-9_]+)(\[.*)?$/\1/' | sort -u
}
exports() { # LIBRARY VERSION: the names it exports under that version
    nm -D --defined-only --with-symbol-versions "$libdir/$1.so" | awk -v tag="@@$2" '{ n = split($3, x, "@@") } "@@" x[2] == tag && $2 != "A" { print x[1] }' | sort -u
}
include=$CGAM_SRC/include/cgam
core=("$include"/{base,bank,flow,gate,io,learn,net,recall,theory}.h)
for library in libcgam libcgam_lm; do
    [ -e "$libdir/$library.so.${version%%.*}" ] || die "no $library.so.${version%%.*}"
    headers=("${core[@]}")
    [ $library = libcgam ] || headers=("$include/lm.h")
    difference=$(diff <(promises "${headers[@]}") <(exports $library "CGAM_${version%%.*}")) ||
        die "headers (<) and $library (>) differ:"$'\n'"$difference"
    foreign=$(nm -D --defined-only "$libdir/$library.so" | awk '$2 != "A" && $3 !~ /^cgam_/ { print $3 }')
    [ -z "$foreign" ] || die "$library.so exports, but it is not ours: $foreign"
done
exported=$(exports libcgam "CGAM_${version%%.*}")
used=$(nm -D --undefined-only "$libdir/libcgam_lm.so" | grep -oE 'cgam_[a-z0-9_]+@CGAM_PRIVATE' | sed 's/@.*//' | sort -u)
difference=$(diff <(grep '^cgam_' "$CGAM_SRC/cmake/private.txt" | sort -u) <(echo "$used")) ||
    die "cmake/private.txt (<) and what libcgam_lm uses (>) differ:"$'\n'"$difference"
for archive in "$libdir"/libcgam*.a; do
    foreign=$(nm --defined-only --extern-only "$archive" | awk 'NF == 3 && $3 !~ /^cgam_/ { print $3 }')
    [ -z "$foreign" ] || die "global in $(basename "$archive") without the prefix: $foreign"
done
archive=$libdir/libcgam.a

# Links: what a recall does not need is not there.
for library in sqlite3 sodium lbfgs linear microhttpd curl llama; do
    ! readelf -d "$libdir/libcgam.so" | grep -q "NEEDED.*lib$library" || die "libcgam.so links lib$library"
done

# pkg-config
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
[ "$(pkg-config --modversion cgam)" = "$version" ] || die "cgam.pc has another version"
read -ra flags <<<"$(pkg-config --cflags cgam)"
read -ra shared <<<"$(pkg-config --libs cgam)"
# libcgam.a with the shared forms of what it needs, as the pkg-config file lists it
read -ra modules <<<"$(pkg-config --print-requires-private cgam | tr '\n' ' ')"
read -ra others <<<"$(sed -n 's/^Libs.private: //p' "$libdir/pkgconfig/cgam.pc")"
read -ra static <<<"$(pkg-config --libs "${modules[@]}")"
static=("$archive" "${static[@]}" "${others[@]}")
consumer=$CGAM_SRC/tests/system/install.project/consumer.c
strict=(-Wall -Wextra -Wpedantic -Werror)
use() { # PROGRAM, built above: it must run and know its version
    [ "$("$1")" = "cgam $version" ] || die "$(basename "$1") does not answer 'cgam $version'"
}
${CC:-cc} -std=c11 "${strict[@]}" "${flags[@]}" -o "$stage/c" "$consumer" "${shared[@]}"
${CXX:-c++} -std=c++17 "${strict[@]}" "${flags[@]}" -o "$stage/cpp" -x c++ "$consumer" -x none "${shared[@]}"
${CC:-cc} -std=c11 "${strict[@]}" "${flags[@]}" -o "$stage/c_static" "$consumer" "${static[@]}"
for program in c cpp c_static; do use "$stage/$program"; done

# find_package
cmake -S "$CGAM_SRC/tests/system/install.project" -B "$stage/project" -DCMAKE_PREFIX_PATH="$root" \
    -DCGAM_WANTED="$version" >/dev/null
cmake --build "$stage/project" >"$stage/log" || { cat "$stage/log"; exit 1; }
for program in c_cgam cpp_cgam c_cgam_static cpp_cgam_static; do use "$stage/project/$program"; done

# The examples, against the installed tree.
for example in "$CGAM_SRC"/examples/*.c; do
    [ -e "$example" ] || continue
    if grep -q 'cgam/ask.h' "$example"; then
        read -ra libraries <<<"$(pkg-config --libs --static cgam_ask)"
    else
        read -ra libraries <<<"$(pkg-config --libs cgam_lm)"
    fi
    ${CC:-cc} -std=c11 "${strict[@]}" "${flags[@]}" -o "$stage/example" "$example" "${libraries[@]}" -lm
    (cd "$stage" && ./example >/dev/null) || die "$(basename "$example") fails against the installed tree"
done

# Ranks: the library, its package, and the example, with mpicc.
if [ -e "$root/bin/cgam-mpi" ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    exported_mpi=$(nm -D --defined-only "$libdir/libcgam_mpi.so" | awk 'NF == 3 { print $3 }' | sort -u)
    difference=$(diff <(promises "$CGAM_SRC/include/cgam/mpi.h") <(echo "$exported_mpi")) ||
        die "mpi.h (<) and libcgam_mpi (>) differ:"$'\n'"$difference"
    read -ra ranks <<<"$(pkg-config --cflags --libs cgam_mpi)"
    mpicc -std=c11 -Wall -Wextra -Werror -o "$stage/ranks" "$CGAM_SRC/examples/mpi/spread_bank.c" "${ranks[@]}"
    mpirun --oversubscribe -n 3 "$stage/ranks" | grep -q '^3 ranks: memory 4321 ' ||
        die "spread_bank.c fails against the installed tree"
    [ -x "$stage/project/mpi_cgam" ] || die "find_package gives no cgam::cgam_mpi"
fi

# No run path has an entry that is empty or relative, which is the folder that one happens to be in; installed or not.
entries='^([/$][^:]*:)+$'
for file in "$CGAM_BUILD"/cgam{,-mpi} "$CGAM_BUILD"/lib/*.so "$root"/bin/* "$libdir"/*.so; do
    path=$(readelf -d "$file" 2>/dev/null | sed -n 's/.*PATH).*\[\(.*\)\]/\1/p' || true)
    [ -z "$path" ] || [[ $path: =~ $entries ]] || die "$(basename "$file") looks for libraries in '$path'"
done

# The program and a man page per verb.
[ "$("$root/bin/cgam" version | head -n 1)" = "cgam $version" ] || die "bin/cgam gives another version"
man=$root/share/man/man1
[ -s "$man/cgam.1" ] || die "no man page cgam(1)"
"$root/bin/cgam" help --verbs | while read -r verb; do
    [ -s "$man/cgam-${verb// /-}.1" ] || die "no man page cgam-${verb// /-}(1)"
done

# Completions where the shells look for them, documents and examples as in the tree, the schema.
for file in bash-completion/completions/cgam zsh/site-functions/_cgam fish/vendor_completions.d/cgam.fish; do
    grep -q "made by .cgam completion" "$root/share/$file" || die "no completion $file"
done
doc=$root/share/doc/cgam
(cd "$CGAM_SRC" && find docs examples README.md CHANGELOG.md -name '*.md' -o -name '*.json' -o -path 'examples/*.c') |
    while read -r file; do
        cmp "$CGAM_SRC/$file" "$doc/$file" || die "$file did not arrive"
    done
cmp "$CGAM_SRC/docs/format/network.schema.json" "$root/share/cgam/network.schema.json"
"$root/bin/cgam" net show "$doc/examples/two_stage.json" >/dev/null || die "an installed example does not run"

# The Python package, where the system's python3 would look, with the library of its own beside it.
python=$(sed -n 's/^CGAM_PYTHON:FILEPATH=//p' "$CGAM_BUILD/CMakeCache.txt")
if [ -n "$python" ] && [ -d "$CGAM_BUILD/python/cgam" ]; then
    package=$(find "$root/lib" -path '*-packages/cgam/__init__.py' -print -quit)
    [ -n "$package" ] || die "the Python package did not arrive"
    said=$(cd / && env -u LD_LIBRARY_PATH PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$(dirname "$(dirname "$package")")" "$python" -c \
        'import cgam, numpy; print(cgam.__version__, cgam.Bank(numpy.eye(3)).recall([0, 1, 0.0]).winner)')
    [ "$said" = "$version 1" ] || die "the installed Python package says '$said'"
fi

# Nothing installed names the folder it was built in.
if named=$(grep -rlIF -e "$CGAM_BUILD" -e "$CGAM_SRC" "$root"); then die "these files name the build folder: $named"; fi
echo "install: cgam $version, $(wc -l <<<"$exported") exported functions, $(ls "$man" | wc -l) man pages"
