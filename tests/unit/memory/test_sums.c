/* Coupled recalls at alpha = 0 on large banks, against the iteration written out in long double: every spread of weights, from all on the
 * list to all in the series, contexts, targets, leaders, vectors, levels of certificates and batches. */
#include "memory/sums.h"
#include "support/failing_alloc.h"
#include "support/one_env.h"

#include "num/cpu/widen.h"

#include "support/owned.h"

enum { N = 8192, D = 32, MOST = 9, TOP = 3 };

typedef struct situation {
    double beta, lambda, near; /* how much of a query is memories */
    bool context, target;
} situation;

static const situation situations[] = {
    {.beta = 20, .lambda = 0.5, .near = 1, .target = true},
    {.beta = 20, .lambda = 0.5, .near = 1, .context = true},
    {.beta = 0.01, .lambda = 0.5, .near = 1},
    {.beta = 0.5, .lambda = 2, .near = 0.3, .context = true, .target = true},
    {.beta = 5, .lambda = 0.9, .near = 0.5},
    {.beta = 9, .lambda = 0.8, .near = 0, .context = true},
    {.beta = 200, .lambda = 0.3, .near = 1},
    {.beta = 60, .lambda = 0.4, .near = 0.2, .target = true},
    {.beta = 1e4, .lambda = 0.2, .near = 1, .context = true},
    {.beta = 1e-9, .lambda = 1e-3, .near = 1},
    {.beta = 14, .lambda = 0.2, .near = 1},
    {.beta = 12, .lambda = 0.25, .near = 0.9},
    {.beta = 10, .lambda = 0.3, .near = 1},
    {.beta = 30, .lambda = 1e-6, .near = 1, .context = true},
};

typedef struct problem {
    float *rows;
    double *Z, *q, *c;
    int64_t target[MOST];
} problem;

static problem draw(cgam_rng *rng, const situation *x)
{
    problem t = {.rows = (float *)(void *)dense_room(N * D),
                 .Z = dense_bank(rng, DENSE_UNIT, N, D),
                 .q = dense_normals(rng, MOST * D, 0.05),
                 .c = dense_normals(rng, MOST * D, 0.1)};
    cgam_narrow(CGAM_F32, t.Z, N * D, t.rows);
    for (int64_t i = 0; i < N * D; i++) t.Z[i] = (double)t.rows[i];
    for (int64_t v = 0; v < MOST; v++) {
        for (int64_t j = 0; j < D; j++)
            t.q[v * D + j] += x->near * (0.6 * t.Z[31 * v * D + j] + 0.5 * t.Z[97 * v * D + j]);
        t.target[v] = 5 + 97 * v;
    }
    return t;
}

/* p of query v by the iteration itself, from softmax(beta a). */
static void iterate(const situation *x, const problem *t, int64_t v, long double *a, double *p)
{
    long double *now = (long double *)(void *)dense_room(2 * N), sum, top, k = x->beta;
    k *= (long double)x->lambda * x->lambda;
    for (int64_t i = 0; i < N; i++) {
        a[i] = 0;
        for (int64_t j = 0; j < D; j++) {
            double own = t->q[v * D + j];
            long double sees = own;
            if (x->context) sees += (long double)x->lambda * t->c[v * D + j];
            a[i] += t->Z[i * D + j] * sees;
        }
        now[i] = 0;
    }
    for (int step = 0; step < 400; step++) {
        top = -INFINITY;
        for (int64_t i = 0; i < N; i++) top = fmaxl(top, x->beta * a[i] + k * now[i]);
        sum = 0;
        for (int64_t i = 0; i < N; i++) sum += now[i] = expl(x->beta * a[i] + k * now[i] - top);
        for (int64_t i = 0; i < N; i++) now[i] /= sum;
    }
    for (int64_t i = 0; i < N; i++) p[i] = (double)now[i];
}

static void check_same(const cgam_result *x, const cgam_result *y)
{
    assert_int_equal(x->winner, y->winner);
    assert_int_equal(x->focus, y->focus);
    assert_int_equal(x->focus_rank, y->focus_rank);
    assert_int_equal(x->iterations, y->iterations);
    const double mine[] = {x->p,       x->log_p,    x->neff_entropy, x->neff_ipr,  x->gap,
                           x->gap_raw, x->gap_gate, x->change,       x->energy_end},
                 theirs[] = {y->p,       y->log_p,    y->neff_entropy, y->neff_ipr,  y->gap,
                             y->gap_raw, y->gap_gate, y->change,       y->energy_end};
    assert_memory_equal(mine, theirs, sizeof mine);
}

/* The numbers of a result, from p and a. */
static void check_result(const situation *x, const problem *t, const cgam_result *r, int64_t v,
                         const long double *a, const double *p)
{
    int64_t winner = 0, f, rank = 0;
    long double entropy = 0, squares = 0, best = -INFINITY, raw = -INFINITY, gate = -INFINITY;
    long double b[2] = {0}, s[2] = {0}, l2 = (long double)x->lambda * x->lambda;
    for (int64_t i = 0; i < N; i++) winner = a[i] > a[winner] ? i : winner;
    f = x->target ? t->target[v] : winner;
    for (int64_t i = 0; i < N; i++) {
        int k = i == f;
        b[0] = s[0] = 0;
        for (int64_t j = 0; j < D; j++) {
            b[0] += (long double)t->Z[i * D + j] * t->q[v * D + j];
            if (x->context) s[0] += (long double)t->Z[i * D + j] * t->c[v * D + j];
        }
        s[0] += x->lambda * (long double)p[i];
        rank += a[i] > a[f];
        if (p[i] > 0) entropy -= p[i] * logl(p[i]);
        squares += (long double)p[i] * p[i];
        if (k) b[1] = b[0], s[1] = s[0];
        else {
            best = fmaxl(best, a[i] + l2 * p[i]);
            raw = fmaxl(raw, b[0]);
            gate = fmaxl(gate, s[0]);
        }
    }
    assert_int_equal(r->winner, winner);
    assert_int_equal(r->focus, f);
    assert_int_equal(r->focus_rank, rank);
    CHECK_CLOSE(r->p, p[f], 2e-12);
    CHECK_REL(r->neff_entropy, (double)expl(entropy), 1e-9);
    CHECK_REL(r->neff_ipr, (double)(1 / squares), 1e-9);
    CHECK_CLOSE(r->gap, (double)(a[f] + l2 * p[f] - best), 1e-11);
    CHECK_CLOSE(r->gap_raw, (double)(b[1] - raw), 1e-12);
    CHECK_CLOSE(r->gap_gate, (double)(s[1] - gate), 1e-11);
    assert_int_equal(r->end, CGAM_END_CONVERGED);
    assert_true(r->p_lower_bound_proved && r->p_lower_bound <= p[f]);
    assert_true(r->energy_rise < 1e-12 * (1 + fabs(r->energy_end)));
}

/* Runs queries [from, from + count) alone or together. */
static void recall(const cgam_bank *bank, const situation *x, const problem *t, int64_t count,
                   cgam_certify level, bool vectors, cgam_result *results, double *p,
                   int64_t *index, double *top_p)
{
    OWNED(cgam_recall) plan = NULL;
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = CGAM_COUPLED;
    o.beta = x->beta;
    o.lambda = x->lambda;
    o.certify = level;
    CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
    cgam_recall_in in = {.queries = count,
                         .q = t->q,
                         .c = x->context ? t->c : NULL,
                         .c_per_query = true,
                         .target = x->target ? t->target : NULL};
    cgam_recall_out out = {.results = results,
                           .p = vectors ? p : NULL,
                           .top = TOP,
                           .top_index = index,
                           .top_p = top_p};
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
}

TEST_WITH(set_up, tear_down, an_answer_is_that_of_the_iteration)
{
    cgam_rng rng = cgam_rng_stream(3, 3);
    for (size_t k = 0; k < sizeof situations / sizeof *situations; k++) {
        const situation *x = &situations[k];
        problem t = draw(&rng, x);
        OWNED(cgam_bank) bank = NULL;
        CHECK_STATUS(env, cgam_bank_new(env, t.rows, CGAM_F32, N, D, NULL, &bank));
        cgam_result alone, other, many[MOST];
        int64_t index[MOST * TOP];
        double *p = dense_room(MOST * N), *want = dense_room(N), top_p[MOST * TOP], apart = 0;
        long double *a = (long double *)(void *)dense_room(2 * N);
        iterate(x, &t, 0, a, want);
        recall(bank, x, &t, 1, CGAM_CERTIFY_USUAL, false, &alone, NULL, index, top_p);
        check_result(x, &t, &alone, 0, a, want);
        for (int j = 0; j < TOP; j++) CHECK_CLOSE(top_p[j], want[index[j]], 1e-11);
        recall(bank, x, &t, 1, CGAM_CERTIFY_USUAL, true, &other, p, index, top_p);
        check_same(&alone, &other); /* whether p is asked for or not */
        assert_true(alone.p_error == other.p_error || isnan(alone.p_error));
        for (int64_t i = 0; i < N; i++) apart += (p[i] - want[i]) * (p[i] - want[i]);
        if (alone.p_error_proved) CHECK_LE(sqrt(apart), alone.p_error);
        CHECK_CLOSE_ALL(p, want, N, 2e-12);
        recall(bank, x, &t, 1, CGAM_CERTIFY_NONE, false, &other, NULL, index, top_p);
        check_same(&alone, &other);
        recall(bank, x, &t, 1, CGAM_CERTIFY_FULL, false, &other, NULL, index, top_p);
        check_same(&alone, &other);
        recall(bank, x, &t, MOST, CGAM_CERTIFY_USUAL, false, many, NULL, index, top_p);
        iterate(x, &t, MOST - 1, a, want);
        check_result(x, &t, &many[MOST - 1], MOST - 1, a, want);
        CHECK_CLOSE(many[0].p, alone.p, 1e-11);
        recall(bank, x, &t, MOST, CGAM_CERTIFY_USUAL, true, many, p, index, top_p);
        CHECK_CLOSE_ALL(p + (MOST - 1) * N, want, N, 1e-11);
        dense_reset();
    }
}

/* Each part of the weights on its own: the moments of rows below a cut, and the rows above it. */
TEST(moments_of_every_cpu_are_the_sums)
{
    cgam_rng rng = cgam_rng_stream(4, 4);
    for (const cgam_cpu *cpu = cgam_cpu_all; cpu->name; cpu++) {
        if (!cpu->usable()) continue;
        for (int64_t n = 0; n < 40; n++) {
            double *a = dense_normals(&rng, 40, 1), cut = 0.3, beta = 4;
            int64_t row[40];
            cgam_moments got;
            a[3] = -INFINITY;
            int64_t count = cgam_moments_of(cpu)(n, a, beta, 0, cut, 100, &got, row), listed = 0;
            long double want[2][CGAM_MOMENTS] = {{0}};
            double top = -INFINITY;
            for (int64_t i = 0; i < n; i++) {
                double y = beta * a[i];
                if (exp(y) > cut) {
                    assert_int_equal(row[listed++], 100 + i);
                    continue;
                }
                top = fmax(top, a[i]);
                for (int j = 0; j < CGAM_MOMENTS && isfinite(y); j++) {
                    want[0][j] += expl((j + 1) * (long double)y);
                    want[1][j] += expl((j + 1) * (long double)y) * y;
                }
            }
            assert_int_equal(count, listed);
            assert_true(got.top == top);
            for (int j = 0; j < CGAM_MOMENTS; j++) {
                CHECK_CLOSE(got.w[j], (double)want[0][j], 1e-14);
                CHECK_CLOSE(got.wy[j], (double)want[1][j], 1e-13);
            }
            dense_reset();
        }
    }
}

static int a_recall(cgam_env *own, void *arg)
{
    const problem *t = arg;
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_recall) plan = NULL;
    cgam_recall_opts o = cgam_recall_opts_default();
    cgam_result results[MOST];
    int64_t index[MOST * TOP];
    o.mode = CGAM_COUPLED;
    o.beta = 20;
    o.lambda = 0.5;
    TRY(cgam_bank_new(own, t->rows, CGAM_F32, N, D, NULL, &bank));
    TRY(cgam_recall_new(bank, &o, &plan));
    for (int64_t count = 1; count <= MOST; count += MOST - 1) {
        cgam_recall_in in = {.queries = count, .q = t->q, .c = t->c, .c_per_query = true};
        cgam_recall_out out = {.results = results, .top = TOP, .top_index = index};
        TRY(cgam_recall_run(plan, &in, &out));
    }
    return CGAM_OK;
}

TEST(every_allocation_may_fail)
{
    cgam_rng rng = cgam_rng_stream(5, 5);
    problem t = draw(&rng, &situations[0]);
    check_every_allocation(a_recall, &t);
    dense_reset();
}
