#!/usr/bin/env bash
# Installs the wheel into a scratch place, once per wheel, and runs one file of tests against it:
# run.sh PYTHON [FILE.py]. Without a file it only installs.
set -euo pipefail
python=$1 file=${2:-}
site=$CGAM_BUILD/python/site
wheel=$(ls "$CGAM_BUILD"/python/dist/*.whl)
if [ -z "$file" ]; then
    rm -rf "$site"
    "$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-compile \
        --root-user-action=ignore --target "$site" "$wheel"
    exit
fi
if [ "${CGAM_SANITIZE:-}" = address ]; then
    LD_PRELOAD="$(${CC:-cc} -print-file-name=libasan.so) $(${CC:-cc} -print-file-name=libubsan.so)"
    # The interpreter keeps what it has until it ends, and asks for more than there is to see it refused.
    export LD_PRELOAD ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=2:thread_local_quarantine_size_kb=64
fi
export PYTHONPATH=$site PYTHONDONTWRITEBYTECODE=1 MPLBACKEND=Agg
exec "$python" -m pytest -q -p no:cacheprovider --rootdir "$CGAM_SRC/tests/python" "$file"
