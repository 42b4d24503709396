/* mpi.h: ranks (ranks.h) by MPI, in a library of its own: libcgam_mpi.
 *
 *     cgam_ranks *ranks;
 *     cgam_mpi_open(MPI_COMM_WORLD, &ranks);             every process of the communicator
 *     cgam_bank_opts opts = cgam_bank_opts_default();
 *     opts.ranks = ranks;
 *     status = cgam_bank_load(env, "Z.npy", &opts, &bank);
 *     status = cgam_ranks_end(env, ranks, status);       after each call that all of them make
 *
 * The communicator is duplicated, so that messages of its owner and of the library do not meet, and
 * MPI_COMM_WORLD is not touched. MPI is initialised and finalised by the caller, with MPI_THREAD_FUNNELED or
 * more where an env has threads; calls come from the thread that initialised it.
 */
#ifndef CGAM_MPI_H
#define CGAM_MPI_H

#include <cgam/base.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All processes of comm call it. Gives *out; close it with cgam_mpi_close once what was made with it is freed.
 * CGAM_E_ARG where MPI is not initialised, CGAM_E_IO where it failed, CGAM_E_NOMEM. */
CGAM_API CGAM_NODISCARD cgam_status cgam_mpi_open(MPI_Comm comm, cgam_ranks **out);
CGAM_API void cgam_mpi_close(cgam_ranks *ranks); /* by all of them; NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
