/* ctest: labels=threads timeout=240
 * Recalls by a sketch against the same without one, on banks of every shape: winner, leaders, gaps, ranks and
 * bounds have the same bits, and the exact p, in long double, is in its interval. */
#include "memory/bank.h"
#include "support/check.h"
#include "support/dense.h"
#include "support/failing_alloc.h"
#include "support/objects.h"

#include <cgam/recall.h>

#include "support/owned.h"

enum { QUERIES_MAX = 96, TOP_MAX = 12, SHAPES = 10 };

typedef struct answer {
    cgam_result results[QUERIES_MAX];
    int64_t index[QUERIES_MAX * TOP_MAX];
    double p[QUERIES_MAX * TOP_MAX];
} answer;

static double *shaped(cgam_rng *rng, int shape, int64_t n, int64_t d)
{
    double *Z = dense_bank(rng, (dense_kind)(shape < DENSE_KINDS ? shape : 0), n, d);
    double near = dense_between_log(rng, 1e-17, 1e-2);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j++) {
            double *z = &Z[i * d + j];
            if (shape == 7) *z *= j % 3 == 1 ? 1e-310 : 1e-140; /* small, and denormal */
            if (shape == 6 && i > 0) *z = Z[j];                 /* all equal */
            if (shape == 8 && i == n / 2) *z *= 1e9;            /* one huge row */
            if (shape == 9) *z = Z[j] + (i ? near : 0) * *z;    /* all near the first */
        }
    return Z;
}

typedef struct scene {
    int64_t n, d, queries, top;
    double *Z, *q, *c;
    int64_t *target;
    cgam_recall_opts opts;
} scene;

static scene make(cgam_rng *rng, int shape, bool many)
{
    scene x = {.n = 1 + cgam_rng_below(rng, many ? 400 : 150), .d = 1 + cgam_rng_below(rng, 24)};
    bool pays = many && cgam_rng_below(rng, 16); /* enough rows for a batch */
    if (pays) x.n += 800, x.d += 8;
    x.queries = pays ? QUERIES_MAX : many ? 20 : 1 + cgam_rng_below(rng, 3);
    x.top = cgam_rng_below(rng, pays ? TOP_MAX / 2 : TOP_MAX);
    if (x.top > x.n) x.top = x.n;
    x.Z = shaped(rng, shape, x.n, x.d);
    x.q = dense_normals(rng, x.queries * x.d, cgam_rng_below(rng, 3) ? 0.7 / sqrt((double)x.d) : 0);
    for (int64_t v = 0; v < x.queries; v++)
        for (int64_t j = 0; j < x.d; j++)
            x.q[v * x.d + j] += x.Z[cgam_rng_below(rng, x.n) * x.d + j];
    if (cgam_rng_below(rng, 3) == 0) x.c = dense_normals(rng, x.queries * x.d, 1);
    if (cgam_rng_below(rng, 4) == 0) {
        x.target = (int64_t *)(void *)dense_room(x.queries);
        for (int64_t v = 0; v < x.queries; v++) x.target[v] = cgam_rng_below(rng, x.n);
    }
    x.opts = cgam_recall_opts_default();
    x.opts.beta = dense_between_log(rng, 0.01, 1000);
    x.opts.lambda = dense_between(rng, 0, 1);
    x.opts.none = cgam_rng_below(rng, 3) == 0;
    x.opts.none_score = dense_between(rng, -2, 2);
    return x;
}

static void recall(cgam_env *env, const cgam_bank *bank, const scene *x,
                   const cgam_recall_opts *opts, answer *out)
{
    OWNED(cgam_recall) plan = object_recall(env, bank, opts);
    cgam_recall_in in = {
        .queries = x->queries, .q = x->q, .c = x->c, .c_per_query = true, .target = x->target};
    cgam_recall_out to = {
        .results = out->results, .top = x->top, .top_index = out->index, .top_p = out->p};
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &to));
}

/* Small banks have another engine without a sketch, whose scores are rounded in another order. */
static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-11 * (1 + fabs(a));
}

/* The exact scores of a query, all of them weighed. */
typedef struct exact {
    long double *scores, top, sum;
} exact;

static void score_exactly(const scene *x, int64_t v, exact *e)
{
    e->top = x->opts.none ? (long double)x->opts.none_score : -INFINITY;
    e->sum = 0;
    for (int64_t i = 0; i < x->n; i++) {
        long double b = 0, s = 0;
        for (int64_t j = 0; j < x->d; j++) {
            b += (long double)x->Z[i * x->d + j] * x->q[v * x->d + j];
            if (x->c) s += (long double)x->Z[i * x->d + j] * x->c[v * x->d + j];
        }
        e->scores[i] = b + x->opts.lambda * s;
        if (e->scores[i] > e->top) e->top = e->scores[i];
    }
    for (int64_t i = 0; i < x->n; i++) e->sum += expl(x->opts.beta * (e->scores[i] - e->top));
    if (x->opts.none) e->sum += expl(x->opts.beta * (x->opts.none_score - e->top));
}

/* The exact p of row f, or of the ghost for f < 0. */
static long double exact_p(const scene *x, const exact *e, int64_t f)
{
    long double own = f < 0 ? (long double)x->opts.none_score : e->scores[f];
    return expl(x->opts.beta * (own - e->top)) / e->sum;
}

/* Is it inside, but for what the judge rounds? */
static void holds(double from, long double p, double to)
{
    if ((long double)from <= p * (1 + 1e-17L) && p <= (long double)to * (1 + 1e-17L)) return;
    print_error("%.17g <= %.21Lg <= %.17g\n", from, p, to);
    fail();
}

/* Are rows i and j as good as tied? Then another order of additions may rank them the other way. */
static bool tied(const exact *e, int64_t i, int64_t j)
{
    return i == j || (i >= 0 && j >= 0 &&
                      fabsl(e->scores[i] - e->scores[j]) <= 1e-13L * (1 + fabsl(e->scores[i])));
}

static void judge(const scene *x, const answer *slow, const answer *fast, long double *room)
{
    for (int64_t v = 0; v < x->queries; v++) {
        exact e = {.scores = room};
        score_exactly(x, v, &e);
        const cgam_result *a = &slow->results[v], *b = &fast->results[v];
        int64_t ties = 0;
        for (int64_t i = 0; a->focus >= 0 && i < x->n; i++)
            ties += i != a->focus && tied(&e, i, a->focus);
        assert_true(tied(&e, a->winner, b->winner) && tied(&e, a->focus, b->focus));
        assert_true(llabs(a->focus_rank - b->focus_rank) <= ties);
        assert_true(same(a->gap, b->gap) && same(a->gap_raw, b->gap_raw));
        assert_true(same(a->gap_gate, b->gap_gate));
        assert_true(same(a->p_lower_bound, b->p_lower_bound));
        for (int64_t k = 0; k < x->top; k++) {
            assert_true(tied(&e, slow->index[v * x->top + k], fast->index[v * x->top + k]));
            long double p = exact_p(x, &e, slow->index[v * x->top + k]);
            holds(fast->p[v * x->top + k], p, 1);
        }
        long double p = exact_p(x, &e, a->focus);
        holds(b->p_from, p, b->p_to);
        assert_true(b->p == b->p_from);
        double rounding = 8 * x->opts.beta * b->score_error + 1e-9;
        if (x->opts.tol_p > 0) CHECK_LE(b->p_to - b->p_from, 1.01 * x->opts.tol_p + rounding);
        if (x->opts.none) holds(b->p_none_from, exact_p(x, &e, -1), b->p_none_to);
        if (b->fallback) assert_int_equal(b->rescored, x->n);
        else assert_true(isnan(b->neff_ipr) && b->rescored < x->n);
    }
}

#ifdef __SANITIZE_THREAD__
enum { RECALLS = 4000 }; /* on one thread TSan has nothing to see */
#else
enum { RECALLS = 100000 };
#endif

TEST_ENV(no_answer_changes)
{
    int64_t done = 0, fell = 0, stream = 0;
    for (; done < check_trials(RECALLS); stream++) {
        cgam_rng rng = cgam_rng_stream(46, (uint64_t)stream);
        scene x = make(&rng, (int)(stream % SHAPES), stream % 3 > 0);
        static answer slow, fast;
        OWNED(cgam_bank) bank = object_bank(env, x.n, x.d, x.Z);
        OWNED(cgam_gate) gate = object_gate(env, bank, x.opts.alpha);
        long double *room = dense_room_long(x.n);
        x.opts.gate = gate;
        recall(env, bank, &x, &x.opts, &slow);
        x.opts.fast = true;
        x.opts.tol_p = cgam_rng_below(&rng, 6) ? 0 : dense_between_log(&rng, 1e-8, 0.1);
        recall(env, bank, &x, &x.opts, &fast);
        judge(&x, &slow, &fast, room);
        done += x.queries;
        for (int64_t v = 0; v < x.queries; v++) fell += fast.results[v].fallback;
        dense_reset();
    }
    double share = 1 - (double)fell / (double)done; /* two shapes in ten always fall back */
    print_message("%lld recalls, %.0f %% of them by the sketch\n", (long long)done, 100 * share);
    CHECK_LE(0.5, share);
}

/* The ghost is one more row, along a coordinate of its own. */
TEST_ENV(a_ghost_is_one_more_row)
{
    for (uint64_t t = 0; t < 300; t++) {
        cgam_rng rng = cgam_rng_stream(47, t);
        scene x = make(&rng, (int)(t % 6), t % 2), y;
        x.opts.none = true;
        x.opts.alpha = t % 3 ? 0 : 0.05;
        x.target = NULL;
        y = x;
        y.opts.none = false;
        y.n++;
        y.d++;
        y.Z = dense_room(y.n * y.d);
        y.q = dense_room(y.queries * y.d);
        if (x.c) y.c = dense_room(y.queries * y.d);
        for (int64_t i = 0; i < x.n; i++)
            memcpy(y.Z + i * y.d, x.Z + i * x.d, (size_t)x.d * sizeof *y.Z);
        y.Z[y.n * y.d - 1] = 1;
        for (int64_t v = 0; v < x.queries; v++) {
            memcpy(y.q + v * y.d, x.q + v * x.d, (size_t)x.d * sizeof *y.q);
            if (x.c) memcpy(y.c + v * y.d, x.c + v * x.d, (size_t)x.d * sizeof *y.c);
            y.q[v * y.d + x.d] = x.opts.none_score;
        }
        static answer got, want;
        OWNED(cgam_bank) bank = object_bank(env, x.n, x.d, x.Z);
        OWNED(cgam_bank) more = object_bank(env, y.n, y.d, y.Z);
        recall(env, bank, &x, &x.opts, &got);
        recall(env, more, &y, &y.opts, &want);
        for (int64_t v = 0; v < x.queries; v++) {
            const cgam_result *a = &got.results[v], *b = &want.results[v];
            double close = 1e-11 * (1 + x.opts.beta);
            if (fabs(b->gap) < 1e-9) continue; /* ties may fall either way */
            assert_int_equal(a->winner, b->winner == x.n ? -1 : b->winner);
            CHECK_CLOSE(a->p, b->p, close);
            CHECK_CLOSE(a->gap, b->gap, 1e-11);
            CHECK_CLOSE(a->gap_raw, b->gap_raw, 1e-11);
            CHECK_CLOSE(a->gap_gate, b->gap_gate, 1e-11);
            CHECK_REL(a->neff_ipr, b->neff_ipr, close);
            CHECK_REL(a->neff_entropy, b->neff_entropy, 10 * close);
            CHECK_CLOSE(a->p_lower_bound, b->p_lower_bound, 10 * close);
            if (b->winner == x.n) CHECK_CLOSE(a->p_none, b->p, close);
        }
        dense_reset();
    }
}

/* A large bank of f32 with a context through A(alpha): the pass is in f32 then, and matrices for many. */
TEST(large_banks_agree)
{
    enum { N = 6000, D = 48 };
    OWNED(cgam_env) env = object_env(2);
    cgam_rng rng = cgam_rng_stream(48, 0);
    double *Z = dense_bank(&rng, DENSE_NORMS, N, D);
    float *rows = (float *)(void *)dense_room(N * D / 2);
    for (int64_t i = 0; i < (int64_t)N * D; i++) rows[i] = (float)Z[i];
    OWNED(cgam_bank) bank = NULL;
    CHECK_STATUS(env, cgam_bank_new(env, rows, CGAM_F32, N, D, NULL, &bank));
    CHECK_STATUS(env, cgam_bank_sketch(bank));
    assert_true(cgam_bank_describe(bank).sketch);
    for (int t = 0; t < 12; t++) {
        scene x = {.n = N, .d = D, .queries = t % 2 ? 1 : 20, .top = 10};
        x.opts = cgam_recall_opts_default();
        x.opts.alpha = t % 3 == 1 ? 0.01 : 0;
        x.opts.beta = t % 4 ? 20 : 3;
        x.opts.none = t == 5;
        x.q = dense_normals(&rng, x.queries * D, 1 / sqrt((double)D));
        for (int64_t k = 0; k < x.queries * D; k++) x.q[k] += Z[k * 7 % ((int64_t)N * D / D) * D];
        if (t % 3) x.c = dense_normals(&rng, x.queries * D, 0.3);
        static answer slow, fast;
        recall(env, bank, &x, &x.opts, &slow);
        x.opts.fast = true;
        recall(env, bank, &x, &x.opts, &fast);
        for (int64_t v = 0; v < x.queries; v++) {
            const cgam_result *a = &slow.results[v], *b = &fast.results[v];
            assert_int_equal(a->winner, b->winner);
            assert_true(same(a->gap, b->gap) && same(a->gap_raw, b->gap_raw));
            assert_true(same(a->gap_gate, b->gap_gate));
            assert_memory_equal(slow.index + v * 10, fast.index + v * 10, 10 * sizeof(int64_t));
            CHECK_LE(b->p_from, a->p * 1.01);
            CHECK_LE(a->p, b->p_to * 1.01);
        }
    }
    dense_reset();
}

TEST_ENV(modes_that_need_every_score_say_so)
{
    double Z[] = {1, 0, 0, 1};
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, Z);
    cgam_recall_opts o = cgam_recall_opts_default();
    cgam_recall *plan;
    o.mode = CGAM_COUPLED;
    o.fast = true;
    CHECK_REFUSED(env, CGAM_E_ARG, "fast requires mode first", cgam_recall_new(bank, &o, &plan));
    o.fast = false;
    o.none = true;
    CHECK_REFUSED(env, CGAM_E_ARG, "none requires mode first", cgam_recall_new(bank, &o, &plan));
    o.mode = CGAM_FIRST;
    o.none_score = INFINITY;
    CHECK_FAILS(env, CGAM_E_ARG, cgam_recall_new(bank, &o, &plan));
    o.none = false;
    o.tol_p = 0.1;
    CHECK_FAILS(env, CGAM_E_ARG, cgam_recall_new(bank, &o, &plan));
}

static int recall_fast(cgam_env *env, void *arg)
{
    const scene *x = arg;
    static answer out;
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_recall) plan = NULL;
    cgam_recall_in in = {.queries = x->queries, .q = x->q, .c = x->c, .c_per_query = true};
    cgam_recall_out to = {.results = out.results, .top = 3, .top_index = out.index};
    TRY(cgam_bank_new(env, x->Z, CGAM_F64, x->n, x->d, NULL, &bank));
    TRY(cgam_recall_new(bank, &x->opts, &plan));
    TRY(cgam_recall_run(plan, &in, &to));
    return CGAM_OK;
}

TEST(every_allocation_may_fail)
{
    cgam_rng rng = cgam_rng_stream(49, 0);
    scene x = {.n = 400, .d = 6, .queries = 10, .opts = cgam_recall_opts_default()};
    x.Z = dense_bank(&rng, DENSE_GAUSS, x.n, x.d);
    x.q = dense_normals(&rng, x.queries * x.d, 1);
    x.c = dense_normals(&rng, x.queries * x.d, 1);
    x.opts.fast = true;
    check_every_allocation(recall_fast, &x);
    dense_reset();
}
