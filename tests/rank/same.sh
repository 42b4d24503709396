#!/usr/bin/env bash
# ctest: labels=threads timeout=300
# The bits of one process on 1, 2, 3, 4 and 7 ranks, in the library (same.c) and on the command line.
set -euo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export LSAN_OPTIONS=suppressions=$CGAM_SRC/tests/support/mpi.supp
for ranks in 1 2 3 4 7; do
    # Whose a leak is shows only in whole stacks, since Open MPI closes what it loads; they are slow, so once.
    export ASAN_OPTIONS=detect_leaks=0
    [ "$ranks" != 2 ] || export ASAN_OPTIONS=fast_unwind_on_malloc=0
    mpirun --oversubscribe -n "$ranks" "$CGAM_BUILD/tests/rank/same" $((ranks == 2 ? 2 : 1)) || {
        echo "same: $ranks ranks differ from one process"
        exit 1
    }
done
