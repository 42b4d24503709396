/* ctest: labels=threads timeout=300 */
/* A bank over two ranks that are threads of this process: the bits of one process; the link between them breaking at any message,
 * memory ending or a stop wished on one of them at any time comes back on both, and nothing is left behind. */
#include "base/env.h"
#include "lab/map.h"
#include "memory/bank.h"
#include "memory/certify.h"
#include "memory/explain.h"
#include "support/check.h"
#include "support/failing_alloc.h"
#include "support/two_ranks.h"

#include <cgam/io.h>
#include <cgam/recall.h>
#include <cgam/theory.h>
#include <unistd.h>

#include "support/owned.h"

enum { N = 2600, D = 6, HALF = 1000, QUERIES = 9 }; /* rank 0 gives HALF rows */

/* ---- what is asked ---------------------------------------------------------------------------- */
static double rows[N * D], queries[QUERIES * D];

static double number(int64_t i)
{
    uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 31)) * 0x94d049bb133111ebu;
    return (double)((x ^ (x >> 29)) >> 11) * 0x1p-53 - 0.5;
}

static void fill(void)
{
    for (int64_t k = 0; k < N * D; k++)
        rows[k] = 0.6 * number(k % (N * D - 3 * D)); /* some alike */
    for (int64_t k = 0; k < QUERIES * D; k++) queries[k] = 1.2 * rows[k * 97 % (N * D)];
}

/* Numbers that all ranks have, for comparison. */
typedef struct answer {
    double x[64];
    int count;
} answer;

static void note(answer *to, double x)
{
    if (to->count < 64) to->x[to->count++] = x;
}

typedef struct question {
    const char *name;
    cgam_mode mode;
    int64_t count; /* of queries */
    double alpha, entmax;
    bool certify, gate_weights, all_p;
    size_t memory_max;
    bool formulas; /* of theory.h and gate.h instead */
} question;

static cgam_status ask_formulas(cgam_env *env, cgam_ranks *r, const cgam_bank *bank, answer *to)
{
    cgam_inspection in;
    cgam_gate *gate = NULL;
    cgam_recall *plan = NULL;
    cgam_score_parts parts[2];
    cgam_recall_opts o = cgam_recall_opts_default();
    const int64_t index[] = {3, N - 2};
    double row[D], value, u[D] = {0.3, 0.1};
    double *x = malloc(3 * N * sizeof *x), *y = x + N, *p = y + N;
    bool proved;
    for (int i = 0; x && i < N; i++) x[i] = number(i), p[i] = 1.0 / N;
    cgam_status status = x ? CGAM_OK : cgam_fail_nomem(env, "a vector");
#define ASK(call)                                                                                  \
    if (status == CGAM_OK) status = cgam_ranks_end(env, r, call)
    ASK(cgam_bank_row(bank, N - 1, row));
    ASK(cgam_bank_inspect(bank, 0.3, 4, 0.5, &in));
    ASK(cgam_gate_new(bank, 0.2, &(cgam_gate_opts){.coupled = true, .alike = true}, &gate));
    ASK(cgam_gate_apply(gate, x, y));
    ASK(cgam_gate_solve(gate, x, y, &value));
    if (status == CGAM_OK) note(to, value);
    ASK(cgam_gate_solve_range(gate, u, y));
    ASK(cgam_contraction_local(gate, 4, 0.5, p, &value, &proved));
    if (status == CGAM_OK) note(to, value);
    ASK(cgam_fold_margin(gate, 4, 0.5, p, &value, &proved));
    if (status == CGAM_OK) note(to, value);
    ASK(cgam_coupled_energy(gate, 4, 0.5, x, x, p, &value, y));
    if (status == CGAM_OK) note(to, value);
    ASK(cgam_coupled_free_energy(gate, 4, 0.5, x, x, p, &value, y));
    ASK(cgam_retrieval_parts(gate, 0.5, x, p, y, x));
    ASK(cgam_context_margin(gate, NULL, 0, &value));
    if (status == CGAM_OK) note(to, value);
    o.mode = CGAM_COUPLED;
    o.alpha = 0.2;
    o.gate = gate;
    ASK(cgam_recall_new(bank, &o, &plan));
    ASK(cgam_recall_parts(plan, queries, queries + D, p, 2, index, parts));
    if (status == CGAM_OK) {
        for (int i = 0; i < D; i++) note(to, row[i]);
        for (int i = 0; i < 2; i++) note(to, parts[i].bias), note(to, parts[i].feedback);
        note(to, in.gate.eta_min), note(to, in.gram.mu_max), note(to, in.contraction);
    }
    cgam_recall_free(plan);
    cgam_gate_free(gate);
    free(x);
    return status;
}

static cgam_status ask_recall(cgam_env *env, cgam_ranks *r, const cgam_bank *bank,
                              const question *a, answer *to)
{
    cgam_recall *plan = NULL;
    cgam_result results[QUERIES];
    int64_t top[QUERIES * 3], target[QUERIES];
    double top_p[QUERIES * 3], readout[QUERIES * D];
    cgam_anneal path[QUERIES] = {{0}};
    double *p = malloc((size_t)(a->count * N) * sizeof *p);
    double *W = malloc((size_t)(N * 2) * sizeof *W);
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = a->mode;
    o.alpha = a->alpha;
    o.beta = 8;
    o.lambda = 0.25;
    o.certify = a->certify;
    o.entmax = a->entmax;
    o.memory_max = a->memory_max;
    for (int64_t i = 0; W && i < N * 2; i++) W[i] = 0.1 * number(i + 17);
    if (a->gate_weights) o.W = W, o.d_c = 2;
    for (int64_t i = 0; i < QUERIES; i++) target[i] = N - 1 - i;
    const cgam_recall_in in = {.queries = a->count,
                               .q = queries,
                               .c = queries + D,
                               .target = a->count > 1 ? target : NULL};
    cgam_recall_out out = {.results = results,
                           .top = 3,
                           .top_index = top,
                           .top_p = top_p,
                           .readout = readout,
                           .anneal = a->mode == CGAM_ANNEAL ? path : NULL,
                           .p = a->all_p ? p : NULL};
    cgam_status status = p && W ? CGAM_OK : cgam_fail_nomem(env, "room of the test");
    ASK(cgam_recall_new(bank, &o, &plan));
    ASK(cgam_recall_run(plan, &in, &out));
    for (int64_t k = 0; k < a->count && status == CGAM_OK; k++) {
        note(to, (double)results[k].winner);
        note(to, results[k].p);
        note(to, results[k].fold_margin);
        note(to, top_p[3 * k + 2]);
        note(to, readout[D * k + 1]);
    }
    if (status == CGAM_OK && a->all_p) note(to, p[3]), note(to, p[N - 1]);
    for (int k = 0; k < QUERIES; k++) cgam_anneal_free(env, &path[k]);
    cgam_recall_free(plan);
    free(p);
    free(W);
    return status;
}

static cgam_status ask(cgam_env *env, cgam_ranks *r, const question *a, answer *to)
{
    OWNED(cgam_bank) bank = NULL;
    cgam_bank_opts opts = {.ranks = r, .normalize = a->certify};
    const int64_t from = r && r->rank ? HALF : 0, end = r && !r->rank ? HALF : N;
    *to = (answer){{0}, 0};
    cgam_status status = CGAM_OK;
    ASK(cgam_bank_new(env, rows + from * D, CGAM_F64, end - from, D, &opts, &bank));
    if (status == CGAM_OK)
        status = a->formulas ? ask_formulas(env, r, bank, to) : ask_recall(env, r, bank, a, to);
    return status;
}

/* ---- both ranks ------------------------------------------------------------------------------- */
typedef struct member {
    seat seat;
    cgam_ranks ranks;
    failing_alloc memory;
    const question *asked;
    answer answer;
    cgam_status status;
    char message[512];
} member;

static void *live(void *arg)
{
    member *m = arg;
    m->ranks = ranks_of(&m->seat);
    const cgam_env_opts opts = failing_alloc_opts(&m->memory, 1);
    cgam_env *env = NULL;
    m->status = cgam_env_new(&opts, &env);
    if (m->status == CGAM_OK) m->status = ask(env, &m->ranks, m->asked, &m->answer);
    if (env) snprintf(m->message, sizeof m->message, "%s", cgam_env_message(env));
    cgam_env_free(env);
    leave(m->seat.line);
    return NULL;
}

enum { LINK, MEMORY, LOOK, WAYS }; /* what fails */

/* Both ranks, with the k-th of what fails failing; true where there were fewer. */
static bool run(const question *a, int way, int64_t k, member team[RANKS])
{
    line l = {.lock = PTHREAD_MUTEX_INITIALIZER, .met = PTHREAD_COND_INITIALIZER};
    if (way == LINK) l.at = k;
    for (int r = 0; r < RANKS; r++) team[r] = (member){.seat = {&l, r}, .asked = a};
    enum { BASE = 1 }; /* an env of one thread asks once, which is another test's */
    if (way == MEMORY) team[1].memory.fail_at = BASE + k;
    if (way == LOOK) team[k % 2].memory.stop_at = k;
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, live, &team[1]), 0);
    live(&team[0]);
    pthread_join(other, NULL);
    if (l.alone)
        fail_msg("%s: way %d, time %lld: one rank waits for a message of one that has left",
                 a->name, way, (long long)k);
    bool reached = l.broken;
    if (way == MEMORY) reached = team[1].memory.requests >= BASE + k;
    if (way == LOOK) reached = team[k % 2].memory.looks >= k;
    static const cgam_status wanted[] = {CGAM_E_IO, CGAM_E_NOMEM, CGAM_E_INTERRUPTED};
    for (int r = 0; r < RANKS; r++) {
        if (team[r].status != (reached ? wanted[way] : CGAM_OK))
            fail_msg("%s: way %d, time %lld %s: rank %d has status %d: %s", a->name, way,
                     (long long)k, reached ? "failed" : "was not reached", r, team[r].status,
                     team[r].message);
        if (team[r].memory.live != 0)
            fail_msg("%s: way %d, time %lld: rank %d has left %lld blocks", a->name, way,
                     (long long)k, r, (long long)team[r].memory.live);
    }
    return !reached;
}

static const question asked[] = {
    {"first, nine queries", CGAM_FIRST, QUERIES, 0.2, 0, false, false, false, 0, false},
    {"first, own weights", CGAM_FIRST, 1, 0.2, 0, false, true, true, 0, false},
    {"coupled, certified", CGAM_COUPLED, 1, 0.2, 0, true, false, true, 0, false},
    {"coupled, nine queries", CGAM_COUPLED, QUERIES, 0.2, 0, false, false, false, 0, false},
    {"coupled, sparsemax", CGAM_COUPLED, 1, 0.2, 2, true, false, false, 0, false},
    {"first, conjugate gradients", CGAM_FIRST, 1, 0.2, 0, true, false, true, 1, false},
    {"anneal", CGAM_ANNEAL, 1, 0.2, 0, false, false, false, 0, false},
    {"formulas", CGAM_FIRST, 0, 0, 0, false, false, false, 0, true},
};
enum { ASKED = sizeof asked / sizeof *asked };

static uint64_t bits(double x)
{
    uint64_t out;
    memcpy(&out, &x, sizeof out);
    return out;
}

TEST(two_ranks_have_the_bits_of_one_process)
{
    OWNED(cgam_env) env = NULL;
    CHECK_STATUS(NULL, cgam_env_new(&(cgam_env_opts){.threads = 1}, &env));
    for (int i = 0; i < ASKED; i++) {
        member team[RANKS];
        answer alone;
        assert_true(run(&asked[i], LINK, 0, team));
        CHECK_STATUS(env, ask(env, NULL, &asked[i], &alone));
        assert_true(alone.count > 2);
        for (int r = 0; r < RANKS; r++)
            for (int k = 0; k < alone.count; k++) { /* NaN too */
                if (bits(team[r].answer.x[k]) != bits(alone.x[k]))
                    fail_msg("%s: rank %d, number %d: %.17g, alone %.17g", asked[i].name, r, k,
                             team[r].answer.x[k], alone.x[k]);
            }
    }
}

TEST(what_fails_on_one_comes_back_on_both)
{
    for (int i = 0; i < ASKED; i++)
        for (int way = 0; way < WAYS; way++) {
            member team[RANKS];
            int64_t k = 1;
            for (; !run(&asked[i], way, k, team); k += 1 + k / check_trials(5))
                assert_true(strlen(team[0].message) > 0 || way == LOOK);
            assert_true(k > (way == LOOK ? 2 : 8));
        }
}

/* What is for one process says so. */
static void *refusals(void *arg)
{
    member *m = arg;
    OWNED(cgam_env) env = NULL;
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_recall) plan = NULL;
    cgam_net *net;
    cgam_plane plane;
    cgam_landscape land;
    cgam_attractor point;
    cgam_hopfield_bounds bounds;
    cgam_map_moment moments[4];
    cgam_end end;
    uint64_t mask[N / 64 + 1] = {1};
    double x[D] = {0}, e;
    int64_t count;
    m->ranks = ranks_of(&m->seat);
    if (cgam_env_new(&(cgam_env_opts){.threads = 1}, &env) != CGAM_OK) return NULL;
    const int64_t from = m->ranks.rank ? HALF : 0, to = m->ranks.rank ? N : HALF;
    cgam_bank_opts opts = {.ranks = &m->ranks};
    cgam_recall_opts o = cgam_recall_opts_default();
    cgam_status status = cgam_bank_new(env, rows + from * D, CGAM_F64, to - from, D, &opts, &bank);
    m->status = cgam_ranks_end(env, &m->ranks, status);
    o.mode = CGAM_COUPLED;
    if (m->status == CGAM_OK) m->status = cgam_recall_new(bank, &o, &plan);
    int refused = 0;
#define REFUSED(call) refused += (call) == CGAM_E_UNSUPPORTED && *cgam_env_message(env)
    if (m->status == CGAM_OK) {
        const cgam_map_opts map = cgam_map_opts_default();
        const cgam_map_flow_opts flow = cgam_map_flow_opts_default();
        cgam_recall *other;
        cgam_bank *some;
        REFUSED(cgam_bank_sketch(bank));
        REFUSED(cgam_bank_only(bank, mask, &some));
        o.mode = CGAM_FLOW;
        REFUSED(cgam_recall_new(bank, &o, &other));
        o.mode = CGAM_FIRST;
        o.fast = true;
        REFUSED(cgam_recall_new(bank, &o, &other));
        memset(&land, 1, sizeof land); /* what is refused is left empty, for who frees it */
        memset(&plane, 1, sizeof plane);
        net = (cgam_net *)(void *)x;
        REFUSED(cgam_landscape_find(plan, x, NULL, NULL, &land));
        REFUSED(cgam_plane_new(bank, 0, NULL, &plane));
        refused += !land.points && !plane.origin;
        REFUSED(cgam_map_energy(bank, &plane, NULL, &map, 1, x, 1, x, &e));
        REFUSED(cgam_map_attractors(bank, NULL, &map, 1, x, &point, &count));
        REFUSED(cgam_map_flow(bank, &plane, x, NULL, &map, &flow, moments, &count, &end));
        REFUSED(cgam_memory_net_new(bank, NULL, &net));
        refused += !net;
        REFUSED(cgam_dense_energy(bank, 1, 2, x, &e));
        REFUSED(cgam_dense_update(bank, 1, 2, x, x));
        REFUSED(cgam_hopfield_energy(bank, 1, x, &e));
        REFUSED(cgam_hopfield_update(bank, 1, x, x));
        REFUSED(cgam_hopfield_settle(bank, 1, x, 1e-3, 5, x, NULL, NULL));
        REFUSED(cgam_hopfield_bound(bank, 1, 0, x, x, &bounds));
    }
    /* modes of memories of one length are those of d x d numbers; of others of n x n, for which all have to be here */
    cgam_bank *unit = NULL;
    cgam_spectrum *modes = NULL;
    cgam_winner winner;
    cgam_horizon horizon;
    if (m->status == CGAM_OK) REFUSED(cgam_spectrum_new(bank, &modes));
    opts.normalize = true;
    if (m->status == CGAM_OK)
        m->status = cgam_bank_new(env, rows + from * D, CGAM_F64, to - from, D, &opts, &unit);
    if (m->status == CGAM_OK) m->status = cgam_spectrum_new(unit, &modes);
    if (m->status == CGAM_OK) {
        REFUSED(cgam_supercritical_winner(modes, 3, rows, NULL, &winner));
        REFUSED(cgam_supercritical_horizon(modes, 3, 1, 2, 0.1, rows, NULL, true, &horizon));
    }
    cgam_spectrum_free(modes);
    cgam_bank_free(unit);
    m->answer.count = refused;
    return NULL;
}

TEST(what_is_for_one_process_is_refused_to_ranks)
{
    line l = {.lock = PTHREAD_MUTEX_INITIALIZER, .met = PTHREAD_COND_INITIALIZER};
    member team[RANKS];
    pthread_t other;
    for (int r = 0; r < RANKS; r++) team[r] = (member){.seat = {&l, r}, .asked = &asked[1]};
    assert_int_equal(pthread_create(&other, NULL, refusals, &team[1]), 0);
    refusals(&team[0]);
    pthread_join(other, NULL);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(team[r].status, CGAM_OK);
        assert_int_equal(team[r].answer.count, 21);
    }
}

/* ---- ranks that disagree --------------------------------------------------------------------- */
typedef struct given { /* what a rank gives */
    int64_t d, stride;
    cgam_dtype dtype;
    const char *file; /* or takes, NULL: none */
} given;

typedef struct giver {
    seat seat;
    const given *gives;
    cgam_status status;
    int64_t n, d;
    char message[512];
} giver;

static void *give(void *arg)
{
    giver *g = arg;
    cgam_ranks ranks = ranks_of(&g->seat);
    const given *my = g->gives;
    cgam_env *env = NULL;
    cgam_bank *bank = NULL;
    cgam_bank_opts opts = {.ranks = &ranks, .stride = my->stride};
    const int64_t rows_given = g->seat.rank ? 20 : 30;
    g->status = cgam_env_new(&(cgam_env_opts){.threads = 1}, &env);
    if (g->status == CGAM_OK && my->file)
        g->status = cgam_ranks_end(env, &ranks, cgam_bank_load(env, my->file, &opts, &bank));
    else if (g->status == CGAM_OK)
        g->status = cgam_ranks_end(
            env, &ranks, cgam_bank_new(env, rows, my->dtype, rows_given, my->d, &opts, &bank));
    if (g->status == CGAM_OK) g->n = cgam_bank_describe(bank).n, g->d = cgam_bank_describe(bank).d;
    if (env) snprintf(g->message, sizeof g->message, "%s", cgam_env_message(env));
    cgam_bank_free(bank);
    cgam_env_free(env);
    leave(g->seat.line);
    return NULL;
}

TEST(ranks_that_give_unlike_rows_are_told_on_both)
{
    char folder[] = "/tmp/cgam-ranks-XXXXXX", file[3][64];
    const int64_t shapes[][2] = {{4, 3}, {5, 3}, {4, 2}};
    cgam_env *env;
    assert_non_null(mkdtemp(folder));
    CHECK_STATUS(NULL, cgam_env_new(&(cgam_env_opts){.threads = 1}, &env));
    for (int k = 0; k < 3; k++) {
        snprintf(file[k], sizeof file[k], "%s/%d.npy", folder, k);
        CHECK_STATUS(env, cgam_npy_write(env, file[k], CGAM_F64, 2, shapes[k], rows));
    }
    cgam_env_free(env);
    const struct {
        given by[RANKS];
        cgam_status status;
        const char *words;
        int64_t n;
    } cases[] = {
        {{{6, 0, CGAM_F64, NULL}, {6, 8, CGAM_F64, NULL}},
         CGAM_OK,
         "",
         50}, /* rows that lie apart */
        {{{6, 0, CGAM_F64, NULL}, {5, 0, CGAM_F64, NULL}},
         CGAM_E_SHAPE,
         "rows are 5 f64 here, 6 f64 on rank 0",
         0},
        {{{6, 0, CGAM_F64, NULL}, {6, 0, CGAM_F32, NULL}},
         CGAM_E_SHAPE,
         "rows are 6 f32 here, 6 f64 on rank 0",
         0},
        {{{0, 0, CGAM_F64, file[0]}, {0, 0, CGAM_F64, file[0]}}, CGAM_OK, "", 4},
        {{{0, 0, CGAM_F64, file[0]}, {0, 0, CGAM_F64, file[1]}},
         CGAM_E_SHAPE,
         "f64 5 x 3, the file of rank 0 holds f64 4 x 3",
         0},
        {{{0, 0, CGAM_F64, file[0]}, {0, 0, CGAM_F64, file[2]}},
         CGAM_E_SHAPE,
         "f64 4 x 2, the file of rank 0 holds f64 4 x 3",
         0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        line l = {.lock = PTHREAD_MUTEX_INITIALIZER, .met = PTHREAD_COND_INITIALIZER};
        giver team[RANKS];
        pthread_t other;
        for (int r = 0; r < RANKS; r++)
            team[r] = (giver){.seat = {&l, r}, .gives = &cases[k].by[r]};
        assert_int_equal(pthread_create(&other, NULL, give, &team[1]), 0);
        give(&team[0]);
        pthread_join(other, NULL);
        for (int r = 0; r < RANKS; r++)
            if (l.alone || team[r].status != cases[k].status || team[r].n != cases[k].n ||
                !strstr(team[r].message, cases[k].words))
                fail_msg("case %zu, rank %d: status %d, %lld memories: %s", k, r, team[r].status,
                         (long long)team[r].n, team[r].message);
    }
    for (int k = 0; k < 3; k++) unlink(file[k]);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    fill();
    return check_run_tests();
}
