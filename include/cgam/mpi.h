/* mpi.h: ranks (base.h) over MPI, in a separate library: libcgam_mpi.
 *
 *     cgam_ranks *ranks;
 *     cgam_mpi_open(MPI_COMM_WORLD, &ranks);             every process of the communicator
 *     cgam_bank_opts opts = cgam_bank_opts_default();
 *     opts.ranks = ranks;
 *     status = cgam_bank_load(env, "Z.npy", &opts, &bank);
 *     status = cgam_ranks_end(env, ranks, status);       after each call that all processes make
 *
 * The communicator is duplicated, so that messages of the caller and of the library do not mix, and
 * MPI_COMM_WORLD is not used. The caller initialises and finalises MPI, with MPI_THREAD_FUNNELED or
 * more if an env has threads, and calls from the thread that initialised it.
 */
#ifndef CGAM_MPI_H
#define CGAM_MPI_H

#include <cgam/base.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All processes of comm must call it. Gives *out; free what was made with it, then close it with cgam_mpi_close.
 * CGAM_E_ARG if MPI is not initialised, CGAM_E_IO if it failed, CGAM_E_NOMEM. */
CGAM_API CGAM_NODISCARD cgam_status cgam_mpi_open(MPI_Comm comm, cgam_ranks **out);
CGAM_API void cgam_mpi_close(cgam_ranks *ranks); /* all processes must call it; NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
