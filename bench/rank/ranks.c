/* ranks.c: what a rank does and how long it takes; compiled and started by bench/ranks.py under mpirun.
 *
 *   ranks ROWS COLUMNS THREADS ROUNDS      ROUNDS 0: messages alone
 *
 * Rank 0 prints one JSON object: seconds of recalls (the best round, of the slowest rank), traffic of coupled iterations, the
 * most memory that recalls took beside the rows, and what messages of one column cost: there and back between two
 * ranks, joined in a fixed order and spread, and by MPI_Allreduce. */
#include <cgam/cgam.h>
#include <cgam/mpi.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUERIES = 64, MESSAGES = 200 };

static _Atomic long long held, most;

static void *take(void *user, size_t align, size_t bytes)
{
    (void)user;
    void *block = aligned_alloc(align, (bytes + align - 1) / align * align);
    long long now = block ? (held += (long long)malloc_usable_size(block)) : 0, seen = most;
    while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now)) {
    }
    return block;
}

static void give(void *user, void *block)
{
    (void)user;
    if (block) held -= (long long)malloc_usable_size(block);
    free(block);
}

static float entry(int64_t i, int64_t j)
{
    uint64_t x = ((uint64_t)i * 0x9e3779b97f4a7c15u) ^ ((uint64_t)j * 0xbf58476d1ce4e5b9u);
    x = (x ^ (x >> 31)) * 0x94d049bb133111ebu;
    return (float)((x ^ (x >> 29)) >> 40) / 16777216.0f - 0.5f;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double middle(double *seconds, int count)
{
    qsort(seconds, (size_t)count, sizeof *seconds, by_size);
    return seconds[count / 2];
}

static void must(cgam_env *env, cgam_ranks *team, cgam_status status)
{
    status = cgam_ranks_end(env, team, status);
    if (status == CGAM_OK) return;
    fprintf(stderr, "ranks: %s\n", cgam_env_message(env));
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static int64_t iterations; /* of the last run's first query */
static const double ALPHA = 0.05;

/* Seconds of recalls of so many queries. */
static double recalls(cgam_env *env, cgam_ranks *team, const cgam_bank *bank, const cgam_gate *gate,
                      cgam_mode mode, int64_t queries, int rounds)
{
    static cgam_result results[QUERIES];
    int64_t d = cgam_bank_describe(bank).d, n = cgam_bank_describe(bank).n;
    double *q = malloc((size_t)(QUERIES * d + d) * sizeof *q), best = 0;
    if (!q) MPI_Abort(MPI_COMM_WORLD, 3);
    for (int64_t k = 0; k < QUERIES * d; k++)
        q[k] = 0.2 * (entry(k / d * 37 % n, k % d) + 0.7f * entry(n + k / d, k % d));
    cgam_recall_opts opts = cgam_recall_opts_default();
    cgam_recall *plan = NULL;
    opts.mode = mode;
    opts.alpha = ALPHA;
    opts.gate = gate;
    opts.beta = 8;
    opts.lambda = 0.25;
    must(env, team, cgam_recall_new(bank, &opts, &plan));
    cgam_recall_in in = {.queries = queries, .q = q, .c = q};
    cgam_recall_out out = {.results = results};
    for (int k = -1; k < rounds; k++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begun = MPI_Wtime(), took;
        must(env, team, cgam_recall_run(plan, &in, &out));
        took = MPI_Wtime() - begun;
        MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (k >= 0 && (k == 0 || took < best)) best = took;
    }
    iterations = results[0].iterations;
    cgam_recall_free(plan);
    free(q);
    return best;
}

/* What main prints of recalls. */
typedef struct figures {
    double first, coupled, first64, coupled64, plan, messages, bytes;
    long long steps, beside[2];
} figures;

static figures recall_all(cgam_env *env, cgam_ranks *team, int64_t n, int64_t d, int rounds)
{
    figures f;
    cgam_bank *bank = NULL;
    int64_t begin, end;
    cgam_ranks_cut(n, d, team->ranks, team->rank, &begin, &end);
    if (begin == 0 && end == n && team->rank > 0) end = 0; /* whole everywhere: given once */
    float *rows = malloc((size_t)((end - begin) * d + 1) * sizeof *rows);
    if (!rows) MPI_Abort(MPI_COMM_WORLD, 3);
    for (int64_t k = 0; k < (end - begin) * d; k++) rows[k] = entry(begin + k / d, k % d);
    cgam_bank_opts how = {.ranks = team, .normalize = true};
    must(env, team, cgam_bank_new(env, rows, CGAM_F32, end - begin, d, &how, &bank));
    free(rows);
    long long stored = (end - begin) * d * 4;
    most = held;
    cgam_gate *gate = NULL;
    cgam_gate_opts once = {.coupled = true, .alike = true};
    f.plan = MPI_Wtime();
    must(env, team, cgam_gate_new(bank, ALPHA, &once, &gate));
    f.plan = MPI_Wtime() - f.plan;
    f.first = recalls(env, team, bank, gate, CGAM_FIRST, 1, rounds);
    f.beside[0] = most - stored;
    f.first64 = recalls(env, team, bank, gate, CGAM_FIRST, QUERIES, rounds);
    most = held;
    f.coupled = recalls(env, team, bank, gate, CGAM_COUPLED, 1, rounds);
    f.beside[1] = most - stored;
    f.steps = (long long)iterations;
    cgam_traffic t = team->traffic;
    double each = t.iterations > 0 ? (double)t.iterations : 1;
    f.messages = (double)t.iteration_messages / each;
    f.bytes = (double)t.iteration_bytes / each;
    f.coupled64 = recalls(env, team, bank, gate, CGAM_COUPLED, QUERIES, rounds);
    cgam_gate_free(gate);
    cgam_bank_free(bank);
    return f;
}

/* There and back between ranks 0 and 1. */
static double ping(int rank, int ranks, int bytes, char *data)
{
    double seconds[MESSAGES];
    for (int k = 0; k < MESSAGES; k++) {
        double begun = MPI_Wtime();
        for (int turn = 0; turn < 2 && rank < 2 && ranks > 1; turn++) {
            if (rank == turn) MPI_Send(data, bytes, MPI_BYTE, !turn, 7, MPI_COMM_WORLD);
            else MPI_Recv(data, bytes, MPI_BYTE, turn, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        seconds[k] = MPI_Wtime() - begun;
    }
    return middle(seconds, MESSAGES) / 2;
}

/* As cgam_rows_join has it, for whole shards: a word of all, pairs by number, the total to all. */
static void join(int rank, int ranks, int64_t d, double *sum, double *other)
{
    unsigned long long well = 0;
    MPI_Allreduce(MPI_IN_PLACE, &well, 1, MPI_UNSIGNED_LONG_LONG, MPI_BOR, MPI_COMM_WORLD);
    for (int step = 1; step < ranks; step *= 2) {
        if (rank % (2 * step) == step)
            MPI_Send(sum, (int)d, MPI_DOUBLE, rank - step, 8, MPI_COMM_WORLD);
        if (rank % (2 * step) != 0 || rank + step >= ranks) continue;
        MPI_Recv(other, (int)d, MPI_DOUBLE, rank + step, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int64_t j = 0; j < d; j++) sum[j] += other[j];
    }
    MPI_Bcast(sum, (int)d, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static double joined(int rank, int ranks, int64_t d, bool ours, double *sum, double *other)
{
    double seconds[MESSAGES];
    for (int k = 0; k < MESSAGES; k++) {
        for (int64_t j = 0; j < d; j++) sum[j] = 1;
        MPI_Barrier(MPI_COMM_WORLD);
        double begun = MPI_Wtime();
        if (ours) join(rank, ranks, d, sum, other);
        else MPI_Allreduce(MPI_IN_PLACE, sum, (int)d, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        seconds[k] = MPI_Wtime() - begun;
    }
    return middle(seconds, MESSAGES);
}

int main(int argc, char **argv)
{
    int level;
    cgam_env *env = NULL;
    cgam_ranks *team = NULL;
    figures f = {0};
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    if (argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
    int64_t n = strtoll(argv[1], NULL, 10), d = strtoll(argv[2], NULL, 10);
    int rounds = (int)strtol(argv[4], NULL, 10);
    cgam_env_opts opts = {.threads = (int)strtol(argv[3], NULL, 10), .alloc = take, .free = give};
    double *sum = malloc(2 * (size_t)d * sizeof *sum);
    if (!sum || cgam_mpi_open(MPI_COMM_WORLD, &team) != CGAM_OK ||
        cgam_env_new(&opts, &env) != CGAM_OK)
        MPI_Abort(MPI_COMM_WORLD, 3);
    int rank = team->rank, ranks = team->ranks;
    if (rounds > 0) f = recall_all(env, team, n, d, rounds);
    double small = ping(rank, ranks, 8, (char *)sum);
    double large = ping(rank, ranks, (int)(8 * d), (char *)sum);
    double ours = joined(rank, ranks, d, true, sum, sum + d);
    double theirs = joined(rank, ranks, d, false, sum, sum + d);
    if (rank == 0)
        printf("{\"first\": %.6g, \"coupled\": %.6g, \"first64\": %.6g, \"coupled64\": %.6g, "
               "\"iterations\": %lld, \"setup\": %.6g, \"messages\": %.17g, \"bytes\": %.17g, "
               "\"beside_first\": %lld, \"beside_coupled\": %lld, \"latency\": %.4g, "
               "\"column\": %.4g, \"join\": %.4g, \"allreduce\": %.4g}\n",
               f.first, f.coupled, f.first64, f.coupled64, f.steps, f.plan, f.messages, f.bytes,
               f.beside[0], f.beside[1], small, large, ours, theirs);
    cgam_env_free(env);
    cgam_mpi_close(team);
    free(sum);
    MPI_Finalize();
    return 0;
}
