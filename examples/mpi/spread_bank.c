/* spread_bank.c: a bank that no process has as a whole.
 *
 *     mpicc spread_bank.c $(pkg-config --cflags --libs cgam_mpi) -o spread_bank
 *     mpirun -n 4 ./spread_bank
 *
 * Each rank makes some of the memories; the library moves rows to the rank that is to keep them. All ask
 * the same question, and all get the same answer. */
#include <cgam/cgam.h>
#include <cgam/mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 6000, D = 16 };

/* Entry j of memory i. */
static float entry(int64_t i, int64_t j)
{
    uint32_t x = (uint32_t)(i * D + j + 1) * 2654435761u;
    x = (x ^ (x >> 15)) * 2246822519u;
    return (float)((x ^ (x >> 13)) >> 8) / 16777216.0f - 0.5f;
}

int main(int argc, char **argv)
{
    int level, failed = 1;
    cgam_env *env = NULL;
    cgam_ranks *ranks = NULL;
    cgam_bank *bank = NULL;
    cgam_recall *plan = NULL;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    if (cgam_mpi_open(MPI_COMM_WORLD, &ranks) != CGAM_OK || cgam_env_new(NULL, &env) != CGAM_OK)
        MPI_Abort(MPI_COMM_WORLD, 3);

    int64_t from = (int64_t)N * ranks->rank / ranks->ranks;
    int64_t to = (int64_t)N * (ranks->rank + 1) / ranks->ranks;
    float *rows = malloc((size_t)((to - from) * D + 1) * sizeof *rows);
    if (!rows) MPI_Abort(MPI_COMM_WORLD, 3);
    for (int64_t i = from; i < to; i++)
        for (int64_t j = 0; j < D; j++) rows[(i - from) * D + j] = entry(i, j);
    cgam_bank_opts how = cgam_bank_opts_default();
    how.ranks = ranks;
    how.normalize = true;
    cgam_status status = cgam_bank_new(env, rows, CGAM_F32, to - from, D, &how, &bank);
    status = cgam_ranks_end(env, ranks, status);

    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.beta = 30;
    if (status == CGAM_OK) status = cgam_ranks_end(env, ranks, cgam_recall_new(bank, &opts, &plan));
    double query[D];
    cgam_result result = {0};
    for (int64_t j = 0; j < D; j++) query[j] = entry(4321, j);
    if (status == CGAM_OK) {
        cgam_recall_in in = {.queries = 1, .q = query};
        cgam_recall_out out = {.results = &result};
        status = cgam_ranks_end(env, ranks, cgam_recall_run(plan, &in, &out));
    }
    if (status == CGAM_OK && ranks->rank == 0)
        printf("%d ranks: memory %lld of %d, p = %.6f\n", ranks->ranks, (long long)result.winner, N,
               result.p);
    else if (status != CGAM_OK && ranks->rank == 0) fprintf(stderr, "%s\n", cgam_env_message(env));
    failed = status != CGAM_OK || result.winner != 4321;
    cgam_recall_free(plan);
    cgam_bank_free(bank);
    cgam_env_free(env);
    cgam_mpi_close(ranks);
    free(rows);
    MPI_Finalize();
    return failed;
}
