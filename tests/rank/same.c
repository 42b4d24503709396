/* same.c: every number of a bank over ranks has the bits of one process. Run by same.sh under mpirun; rank 0
 * also computes alone what each rank compares with. */
#include <cgam/cgam.h>
#include <cgam/mpi.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUERIES = 64, D = 24 };

static int rank, ranks, wrong;
static const char *what = "";

static void check(bool fine, const char *about)
{
    if (fine || wrong++ > 8) return;
    fprintf(stderr, "same: rank %d of %d: %s: %s\n", rank, ranks, what, about);
}

#define CHECK(fine) check((fine), #fine)

static double number(uint64_t i, uint64_t j)
{
    uint64_t x = (i * 0x9e3779b97f4a7c15u) ^ (j * 0xbf58476d1ce4e5b9u);
    x = (x ^ (x >> 31)) * 0x94d049bb133111ebu;
    return (double)((x ^ (x >> 29)) >> 11) * 0x1p-53 - 0.5;
}

/* Row i of n: some are alike, on both sides of whatever border there is. */
static double entry(int64_t n, int64_t i, int64_t j)
{
    int64_t same = i % (n / 9 + 1) == 0 ? 5 : i;
    return number((uint64_t)same, (uint64_t)j) * 0.6;
}

static void *rows_of(int64_t n, int64_t from, int64_t to, cgam_dtype dtype)
{
    size_t size = cgam_dtype_size(dtype);
    char *data = malloc((size_t)(to - from) * D * size + 1);
    for (int64_t k = 0; data && k < (to - from) * D; k++) {
        double x = entry(n, from + k / D, k % D);
        float f = (float)x;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        uint16_t half = (uint16_t)(bits >> 16);
        const void *as = dtype == CGAM_F64 ? (void *)&x : dtype == CGAM_F32 ? (void *)&f : &half;
        memcpy(data + (size_t)k * size, as, size);
    }
    return data;
}

typedef struct answers {
    cgam_result results[QUERIES];
    double readout[QUERIES * D];
    int64_t top[QUERIES * 1000];
    double p[QUERIES * 1000];
} answers;

typedef struct asked {
    const char *name;
    cgam_mode mode;
    double alpha;
    bool certify, targets, context;
    int64_t queries, top;
    double entmax; /* 0: softmax */
} asked;

/* All of a result but its padding. */
static void same_result(const cgam_result *a, const cgam_result *b)
{
#define NUMBER(x) check(memcmp(&a->x, &b->x, sizeof a->x) == 0, #x)
    NUMBER(winner), NUMBER(focus), NUMBER(focus_rank), NUMBER(p), NUMBER(log_p);
    NUMBER(neff_entropy), NUMBER(neff_ipr), NUMBER(gap), NUMBER(gap_raw), NUMBER(gap_gate);
    NUMBER(p_lower_bound), NUMBER(p_lower_bound_proved), NUMBER(stable), NUMBER(stable_proved),
        NUMBER(readout_error_bound), NUMBER(iterations), NUMBER(newton_steps);
    NUMBER(end), NUMBER(change), NUMBER(energy_start), NUMBER(energy_end), NUMBER(energy_rise);
    NUMBER(contraction), NUMBER(contraction_proved), NUMBER(unique), NUMBER(unique_proved);
    NUMBER(fold_margin), NUMBER(fold_margin_exact), NUMBER(fold_margin_proved), NUMBER(p_error);
    NUMBER(p_error_proved), NUMBER(local_contraction), NUMBER(local_contraction_proved);
    NUMBER(readout_left_out);
#undef NUMBER
}

static cgam_status ask(cgam_bank *bank, const asked *a, int64_t n, answers *out)
{
    static double q[QUERIES * D], c[QUERIES * D];
    static int64_t target[QUERIES];
    for (int64_t k = 0; k < QUERIES * D; k++) {
        int64_t i = k / D, j = k % D;
        q[k] = 1.2 * (entry(n, i * 97 % n, j) + 0.9 * entry(n, i * 331 % n, j));
        c[k] = entry(n, i * 57 % n, j);
        target[i] = (n - 1) * i / (QUERIES - 1);
    }
    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.mode = a->mode;
    opts.alpha = a->alpha;
    opts.beta = 8;
    opts.lambda = 0.25;
    opts.certify = a->certify;
    if (a->entmax > 0) opts.entmax = a->entmax;
    cgam_recall *plan = NULL;
    cgam_status status = cgam_recall_new(bank, &opts, &plan);
    cgam_recall_in in = {.queries = a->queries,
                         .q = q,
                         .c = a->context ? c : NULL,
                         .c_per_query = a->queries > 1,
                         .target = a->targets ? target : NULL};
    cgam_recall_out to = {.results = out->results,
                          .readout = out->readout,
                          .top = a->top,
                          .top_index = out->top,
                          .top_p = out->p};
    if (status == CGAM_OK) status = cgam_recall_run(plan, &in, &to);
    cgam_recall_free(plan);
    return status;
}

static void compare(cgam_env *env, cgam_ranks *team, cgam_bank *whole, cgam_bank *spread, int64_t n,
                    const asked *a)
{
    answers *alone = calloc(1, sizeof *alone), *together = calloc(1, sizeof *together);
    what = a->name;
    if (!alone || !together) abort();
    if (rank == 0) CHECK(ask(whole, a, n, alone) == CGAM_OK);
    MPI_Bcast(alone, sizeof *alone, MPI_BYTE, 0, MPI_COMM_WORLD);
    cgam_status status = cgam_ranks_end(env, team, ask(spread, a, n, together));
    if (status != CGAM_OK) check(false, cgam_env_message(env));
    int64_t top = a->top < n ? a->top : n;
    for (int64_t k = 0; k < a->queries; k++) same_result(&alone->results[k], &together->results[k]);
    CHECK(memcmp(alone->readout, together->readout, sizeof alone->readout) == 0);
    CHECK(memcmp(alone->top, together->top, (size_t)(top * a->queries) * sizeof(int64_t)) == 0);
    CHECK(memcmp(alone->p, together->p, (size_t)(top * a->queries) * sizeof(double)) == 0);
    free(alone);
    free(together);
}

static void inspect(cgam_env *env, cgam_ranks *team, const cgam_bank *whole,
                    const cgam_bank *spread)
{
    cgam_inspection a = {0}, b = {0};
    what = "inspect";
    CHECK(cgam_bank_inspect(whole, 0.3, 4, 0.5, &a) == CGAM_OK);
    CHECK(cgam_ranks_end(env, team, cgam_bank_inspect(spread, 0.3, 4, 0.5, &b)) == CGAM_OK);
    CHECK(memcmp(&a.gram, &b.gram, sizeof a.gram) == 0);
    CHECK(memcmp(&a.gate.critical.alpha, &b.gate.critical.alpha, sizeof(double)) == 0);
    CHECK(memcmp(&a.gate.eta_min, &b.gate.eta_min, sizeof(double)) == 0);
    CHECK(a.gate.negative == b.gate.negative && a.gate.regime == b.gate.regime);
    CHECK(memcmp(&a.contraction, &b.contraction, sizeof(double)) == 0);
}

/* Rows given unevenly: the first rank gives none. */
static void cut(int64_t n, int64_t *from, int64_t *to)
{
    *from = rank == 0 ? 0 : n * (rank - 1) / (ranks > 1 ? ranks - 1 : 1);
    *to = rank == 0 && ranks > 1 ? 0 : ranks == 1 ? n : n * rank / (ranks - 1);
}

static void one_bank(cgam_env *env, cgam_ranks *team, int64_t n, cgam_dtype dtype)
{
    static const asked list[] = {
        {"first, gates, 1000 leaders", CGAM_FIRST, 0.2, false, true, true, 1, 1000, 0},
        {"first, 64 queries", CGAM_FIRST, 0.2, false, true, true, QUERIES, 40, 0},
        {"coupled, certify", CGAM_COUPLED, 0.2, true, false, true, 1, 5, 0},
        {"first", CGAM_FIRST, 0, false, false, false, 1, 5, 0}, /* from here on: of f32 alone */
        {"first, 64 queries, no context", CGAM_FIRST, 0, false, false, false, QUERIES, 5, 0},
        {"coupled", CGAM_COUPLED, 0.2, false, false, true, 1, 5, 0},
        {"coupled, alpha = 0", CGAM_COUPLED, 0, false, true, true, 1, 5, 0},
        {"coupled, 64 queries", CGAM_COUPLED, 0.2, false, true, true, QUERIES, 5, 0},
        {"anneal", CGAM_ANNEAL, 0.2, false, false, true, 1, 5, 0},
        {"coupled, sparsemax", CGAM_COUPLED, 0.2, false, true, true, 2, 5, 2},
    };
    int64_t from, to;
    cgam_bank *whole = NULL, *spread = NULL;
    cut(n, &from, &to);
    void *all = rows_of(n, 0, n, dtype), *mine = rows_of(n, from, to, dtype);
    cgam_bank_opts opts = cgam_bank_opts_default();
    what = "a bank";
    CHECK(cgam_bank_new(env, all, dtype, n, D, &opts, &whole) == CGAM_OK);
    opts.ranks = team;
    cgam_status status = cgam_bank_new(env, mine, dtype, to - from, D, &opts, &spread);
    CHECK(cgam_ranks_end(env, team, status) == CGAM_OK);
    int64_t count = dtype == CGAM_F32 ? (int64_t)(sizeof list / sizeof *list) : 3;
    for (int64_t k = 0; whole && spread && k < count; k++)
        compare(env, team, whole, spread, n, &list[k]);
    if (whole && spread) inspect(env, team, whole, spread);
    double a[D], b[D];
    CHECK(cgam_bank_row(whole, n - 1, a) == CGAM_OK);
    CHECK(cgam_ranks_end(env, team, cgam_bank_row(spread, n - 1, b)) == CGAM_OK);
    CHECK(memcmp(a, b, sizeof a) == 0);
    cgam_bank_free(whole);
    cgam_bank_free(spread);
    free(all);
    free(mine);
}

/* A margin of sparsemax at its very edge, beta gap = 1: proved by rows without rounding, wherever they are. */
static void edge(cgam_env *env, cgam_ranks *team)
{
    enum { N = 2600, WINNER = N - 3 };
    static const double q[D] = {1};
    int64_t from, to;
    cut(N, &from, &to);
    double *all = calloc(N * D, sizeof *all),
           *mine = calloc((size_t)(to - from) * D + 1, sizeof *mine);
    if (!all || !mine) abort();
    for (int64_t i = 0; i < N; i++) all[i * D] = i == WINNER ? 0.125 : i % 700 == 0 ? 0 : -1;
    memcpy(mine, all + from * D, (size_t)((to - from) * D) * sizeof *mine);
    what = "edge of a margin";
    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.beta = 8;
    opts.entmax = 2;
    for (int k = 0; k < 2; k++) { /* alone, and together */
        cgam_bank *bank = NULL;
        cgam_result r = {0};
        cgam_bank_opts b = cgam_bank_opts_default();
        if (k) b.ranks = team;
        cgam_status status =
            cgam_bank_new(env, k ? mine : all, CGAM_F64, k ? to - from : N, D, &b, &bank);
        if (status == CGAM_OK) status = cgam_recall_once(bank, q, NULL, &opts, &r);
        if (k) status = cgam_ranks_end(env, team, status);
        CHECK(status == CGAM_OK && r.winner == WINNER && r.p == 1 && r.exact);
        cgam_bank_free(bank);
    }
    free(all);
    free(mine);
}

/* Two banks on two communicators at a time, calls by turns, while messages of ours are under way. */
static void two_banks(cgam_env *env, cgam_ranks *world)
{
    MPI_Comm half;
    cgam_ranks *team;
    int mine = rank, theirs = -1;
    MPI_Request got;
    cgam_bank *bank[2] = {NULL}, *whole = NULL;
    const asked a = {"two banks", CGAM_COUPLED, 0.2, false, false, true, 1, 5, 0};
    MPI_Irecv(&theirs, 1, MPI_INT, (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, &got);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    CHECK(cgam_mpi_open(half, &team) == CGAM_OK);
    void *all = rows_of(2600, 0, 2600, CGAM_F32);
    cgam_ranks *teams[2] = {world, team};
    cgam_bank_opts opts = cgam_bank_opts_default();
    what = a.name;
    CHECK(cgam_bank_new(env, all, CGAM_F32, 2600, D, &opts, &whole) == CGAM_OK);
    for (int k = 0; k < 2; k++) { /* of each, its first rank has all rows */
        opts.ranks = teams[k];
        cgam_status status =
            cgam_bank_new(env, all, CGAM_F32, teams[k]->rank == 0 ? 2600 : 0, D, &opts, &bank[k]);
        CHECK(cgam_ranks_end(env, teams[k], status) == CGAM_OK);
    }
    for (int k = 0; k < 4; k++) compare(env, teams[k % 2], whole, bank[k % 2], 2600, &a);
    MPI_Send(&mine, 1, MPI_INT, (rank + 1) % ranks, 1, MPI_COMM_WORLD);
    MPI_Wait(&got, MPI_STATUS_IGNORE);
    CHECK(theirs == (rank + ranks - 1) % ranks);
    for (int k = 0; k < 2; k++) cgam_bank_free(bank[k]);
    cgam_bank_free(whole);
    free(all);
    cgam_mpi_close(team);
    MPI_Comm_free(&half);
}

/* Bytes that an env holds, the most it held, requests so far, and the one that fails (0: none). */
typedef struct held {
    long long now, most, requests, fails;
} held;

static void *take(void *user, size_t align, size_t bytes)
{
    held *h = user;
    if (++h->requests == h->fails) return NULL;
    void *block = aligned_alloc(align, (bytes + align - 1) / align * align);
    if (block) h->now += (long long)malloc_usable_size(block);
    if (h->now > h->most) h->most = h->now;
    return block;
}

static void give(void *user, void *block)
{
    held *h = user;
    if (block) h->now -= (long long)malloc_usable_size(block);
    free(block);
}

/* The most bytes that this rank of a team held at a time, with so many rows for each of its ranks. */
static long long memory_of(cgam_ranks *team, int64_t rows, const asked *a)
{
    held h = {0};
    cgam_env *env = NULL;
    cgam_bank *bank = NULL;
    cgam_env_opts own = {.threads = 1, .alloc = take, .free = give, .user = &h};
    cgam_bank_opts opts = {.ranks = team, .normalize = true};
    int64_t n = rows * team->ranks;
    static answers answer;
    void *mine = rows_of(n, rows * team->rank, rows * (team->rank + 1), CGAM_F32);
    CHECK(cgam_env_new(&own, &env) == CGAM_OK);
    cgam_status status = cgam_bank_new(env, mine, CGAM_F32, rows, D, &opts, &bank);
    CHECK(cgam_ranks_end(env, team, status) == CGAM_OK);
    CHECK(cgam_ranks_end(env, team, ask(bank, a, n, &answer)) == CGAM_OK);
    cgam_bank_free(bank);
    cgam_env_free(env);
    free(mine);
    return h.most;
}

/* Twice the ranks with twice the memories: none of them holds more. Only lists of chunks are longer, and of twins. */
static void memory(cgam_ranks *world)
{
    static const asked list[] = {
        {"memory, first", CGAM_FIRST, 0.2, false, true, true, 1, 5, 0},
        {"memory, first, 64 queries", CGAM_FIRST, 0.2, false, true, true, QUERIES, 5, 0},
        {"memory, coupled, certify", CGAM_COUPLED, 0.1, true, false, true, 1, 5, 0},
        {"memory, coupled, 64 queries", CGAM_COUPLED, 0.1, false, true, true, QUERIES, 5, 0},
        {"memory, anneal", CGAM_ANNEAL, 0.1, false, false, true, 1, 5, 0},
    };
    enum { ROWS = 8192 };
    MPI_Comm half;
    cgam_ranks *team;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    CHECK(cgam_mpi_open(half, &team) == CGAM_OK);
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        what = list[k].name;
        long long few = memory_of(team, ROWS, &list[k]), many = memory_of(world, ROWS, &list[k]);
        if (getenv("SAME_TELLS") && rank == 0) printf("%s: %lld, %lld bytes\n", what, few, many);
        CHECK(many - few <
              2 * ROWS * (long long)sizeof(double)); /* what one vector of all would add */
    }
    cgam_mpi_close(team);
    MPI_Comm_free(&half);
}

/* With the k-th request of rank 1 failing: all hear of it, and nobody waits. False when it made fewer. */
static bool fails_at(cgam_ranks *team, long long k, const asked *a)
{
    enum { N = 2600 };
    held h = {0};
    cgam_env *env = NULL;
    cgam_bank *bank = NULL;
    cgam_env_opts own = {.threads = 1, .alloc = take, .free = give, .user = &h};
    cgam_bank_opts opts = {.ranks = team, .normalize = true};
    static answers answer;
    int64_t from, to;
    cut(N, &from, &to);
    void *mine = rows_of(N, from, to, CGAM_F32);
    cgam_status status = cgam_env_new(&own, &env);
    h.requests = 0;
    h.fails = rank == 1 ? k : 0;
    if (status != CGAM_OK) MPI_Abort(MPI_COMM_WORLD, 3);
    status = cgam_bank_new(env, mine, CGAM_F32, to - from, D, &opts, &bank);
    if (status == CGAM_OK) status = ask(bank, a, N, &answer);
    status = cgam_ranks_end(env, team, status);
    int reached = rank == 1 && h.requests >= k;
    MPI_Bcast(&reached, 1, MPI_INT, 1, MPI_COMM_WORLD);
    CHECK(status == (reached ? CGAM_E_NOMEM : CGAM_OK));
    CHECK(!reached || strncmp(cgam_env_message(env), "rank 1: ", 8) == 0);
    cgam_bank_free(bank);
    cgam_env_free(env);
    CHECK(h.now == 0);
    free(mine);
    return reached;
}

static void no_room(cgam_ranks *team)
{
    static const asked list[] = {
        {"no room, coupled, certify", CGAM_COUPLED, 0.2, true, false, true, 1, 5, 0},
        {"no room, coupled, 64 queries", CGAM_COUPLED, 0.2, false, true, true, QUERIES, 5, 0},
        {"no room, anneal", CGAM_ANNEAL, 0.2, false, false, true, 1, 5, 0},
        {"no room, sparsemax", CGAM_COUPLED, 0.2, true, true, true, 2, 5, 2},
    };
    const char *steps = getenv("SAME_STEP"); /* 1: every one of them */
    long long step = steps ? strtol(steps, NULL, 10) : getenv("CGAM_SANITIZE") ? 503 : 101;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        long long k = 1;
        what = list[i].name;
        while (fails_at(team, k, &list[i])) k += step;
        if (getenv("SAME_TELLS") && rank == 0) printf("%s: to request %lld\n", what, k);
    }
}

int main(int argc, char **argv)
{
    int level, all = 0;
    cgam_env *env = NULL;
    cgam_ranks *team = NULL;
    cgam_env_opts opts = cgam_env_opts_default();
    check(cgam_mpi_open(MPI_COMM_WORLD, &team) == CGAM_E_ARG && !team, "open before MPI is");
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    check(cgam_mpi_open(MPI_COMM_NULL, &team) == CGAM_E_ARG && !team, "open without processes");
    cgam_mpi_close(team);
    opts.threads = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1;
    if (cgam_mpi_open(MPI_COMM_WORLD, &team) != CGAM_OK || cgam_env_new(&opts, &env) != CGAM_OK)
        MPI_Abort(MPI_COMM_WORLD, 3);
    rank = team->rank;
    ranks = team->ranks;
    edge(env, team);
    one_bank(env, team, 2600, CGAM_F32);
    one_bank(env, team, 2600, CGAM_BF16);
    one_bank(env, team, 2600, CGAM_F64);
    one_bank(env, team, 40, CGAM_F32);
    two_banks(env, team);
    if (ranks == 3) no_room(team);
    if (ranks == 4 && !getenv("CGAM_SANITIZE")) memory(team); /* which add to every block */
    cgam_env_free(env);
    cgam_mpi_close(team);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all > 0 || cgam_mpi_open(MPI_COMM_WORLD, &team) != CGAM_E_ARG || team;
}
