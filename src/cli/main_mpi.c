/* main_mpi.c: `cgam-mpi`, one of several ranks. */
#include "cli/cli.h"

#include <cgam/mpi.h>
#include <stdio.h>

enum { MACHINE = 3 };

int main(int argc, char **argv)
{
    int level;
    cgam_ranks *ranks;
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS) return MACHINE;
    cgam_status status = cgam_mpi_open(MPI_COMM_WORLD, &ranks);
    if (status != CGAM_OK || level < MPI_THREAD_FUNNELED) {
        fprintf(stderr, "cgam-mpi: MPI: %s\n",
                status != CGAM_OK ? cgam_status_text(status) : "it knows nothing of threads");
        MPI_Abort(MPI_COMM_WORLD, MACHINE);
        return MACHINE;
    }
    int code = cgam_cli(argc, argv, ranks);
    cgam_mpi_close(ranks);
    MPI_Finalize();
    return code;
}
