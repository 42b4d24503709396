/* The Newton finish never changes where a coupled recall ends up: default against plain iteration
 * on random instances, most of them past the point where the fixed point is unique, half of them
 * with a query that hardly decides between two memories. */
#include "support/one_env.h"

#include <cgam/theory.h>

#include "support/owned.h"

typedef struct instance {
    int64_t n, d;
    double *Z, *A, *q, *c, eta;
    cgam_recall_opts opts;
} instance;

static instance draw(uint64_t k)
{
    cgam_rng rng = cgam_rng_stream(10, k);
    instance x = {.n = 2 + cgam_rng_below(&rng, 20), .d = 1 + cgam_rng_below(&rng, 20)};
    int64_t n = x.n, d = x.d;
    x.Z = dense_bank(&rng, (dense_kind)cgam_rng_below(&rng, DENSE_KINDS), n, d);
    double critical = dense_critical(n, d, x.Z);
    double where = cgam_rng_uniform(&rng);
    x.opts = cgam_recall_opts_default();
    x.opts.mode = CGAM_COUPLED;
    x.opts.alpha = where < 0.1   ? 0
                   : where < 0.2 ? critical * (1 - dense_between_log(&rng, 1e-6, 0.1))
                                 : critical * dense_between(&rng, 0, 0.95);
    x.A = dense_gate(n, d, x.Z, x.opts.alpha);
    x.eta = dense_eigen(n, x.A, NULL)[0];
    x.opts.beta = dense_between_log(&rng, 0.3, 30);
    /* beta lambda^2 / (2 eta), unique below 1 */
    double contraction = dense_between_log(&rng, 0.3, 30);
    x.opts.lambda = sqrt(2 * x.eta * contraction / x.opts.beta);
    double size = dense_between_log(&rng, 1e-5, 1);
    x.q = dense_normals(&rng, d, size);
    x.c = dense_normals(&rng, d, size);
    if (k % 2) {
        int64_t a = cgam_rng_below(&rng, n), b = cgam_rng_below(&rng, n);
        double tilt = 1 + 1e-3 * cgam_rng_normal(&rng);
        for (int64_t j = 0; j < d; j++) x.q[j] = size * (x.Z[a * d + j] + tilt * x.Z[b * d + j]);
    }
    return x;
}

static cgam_result recall(const cgam_bank *bank, const instance *x, bool plain, double *p)
{
    cgam_recall_opts opts = x->opts;
    opts.plain = plain;
    if (plain) opts.max_iter = 2000000;
    OWNED(cgam_recall) plan = object_recall(env, bank, &opts);
    cgam_result result;
    cgam_recall_in in = {.queries = 1, .q = x->q, .c = x->c};
    cgam_recall_out out = {.results = &result, .p = p};
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
    return result;
}

/* Does starting with all weight on some memory end elsewhere? */
static bool has_other_valleys(const instance *x, const double *p)
{
    int64_t n = x->n;
    double *b = dense_room(n), *u = dense_room(n), *start = dense_room(n), *other = dense_room(n);
    const long double *inverse = dense_inverse(n, x->A);
    dense_score(n, x->d, x->Z, x->q, b);
    dense_score(n, x->d, x->Z, x->c, u);
    for (int64_t i = 0; i < n; i++) {
        start[i] = 1;
        double moved = dense_coupled(n, inverse, x->opts.beta, x->opts.lambda, b, u, start, 1e-12,
                                     3000, other);
        start[i] = 0;
        if (moved <= 1e-12 && dense_largest(n, other, p) > 1e-3) return true;
    }
    return false;
}

TEST(newton_ends_where_plain_iteration_ends)
{
    enum { COUNT = 6000 };
    int newton = 0, newton_among_several = 0, several = 0, on_a_saddle = 0, past_the_bound = 0;
    for (uint64_t k = 0; k < COUNT; k++) {
        instance x = draw(k);
        OWNED(cgam_bank) bank = object_bank(env, x.n, x.d, x.Z);
        double *p = dense_room(x.n), *p_plain = dense_room(x.n);
        cgam_result plain = recall(bank, &x, true, p_plain), fast = recall(bank, &x, false, p);
        assert_int_equal(plain.newton_steps, 0);
        assert_int_equal(plain.end, CGAM_END_CONVERGED);
        assert_true(fast.end == CGAM_END_CONVERGED || fast.end == CGAM_END_STALLED);
        double margin =
            dense_eigen(x.n, dense_hessian(x.n, x.A, x.opts.lambda, x.opts.beta, p), NULL)[0];
        double off = dense_largest(x.n, p, p_plain);
        on_a_saddle += margin <= 0; /* where equal memories with equal evidence lead */
        if (!(off <= 1e-5))
            fail_msg("instance %llu, %lld x %lld: plain and default end %.3g apart\n"
                     "  iterations %lld and %lld, %lld Newton steps, margin %.3g",
                     (unsigned long long)k, (long long)x.n, (long long)x.d, off,
                     (long long)plain.iterations, (long long)fast.iterations,
                     (long long)fast.newton_steps, margin);
        /* E is computed to eps over the smallest pivot or eigenvalue that is divided by */
        double size = 1 + fabs(fast.energy_start) + fabs(fast.energy_end);
        double noise = 4e-15 * size / fmin(x.eta, 1e-3);
        if (!(plain.energy_rise <= noise && fast.energy_rise <= noise))
            fail_msg("instance %llu: the energy rose by %.3g and %.3g, allowed %.3g",
                     (unsigned long long)k, plain.energy_rise, fast.energy_rise, noise);
        CHECK_LE(fast.energy_end, fast.energy_start + noise);
        past_the_bound += cgam_contraction(x.opts.beta, x.opts.lambda, x.eta) > 1;
        newton += fast.newton_steps > 0;
        if (fast.newton_steps > 0 || k % 16 == 0) {
            bool others = has_other_valleys(&x, p);
            several += others;
            newton_among_several += others && fast.newton_steps > 0;
        }
        dense_reset();
    }
    print_message("%d instances: %d past the bound of uniqueness, Newton finished %d, %d of them "
                  "beside another valley, %d saddles\n",
                  COUNT, past_the_bound, newton, newton_among_several, on_a_saddle);
    assert_true(past_the_bound > COUNT / 2);
    assert_true(newton > 500);
    assert_true(newton_among_several > 100);
    assert_true(several > 200);
}

/* Two orthogonal memories and a query that hardly decides: x = p_1 - 1/2 solves
 *     x = tanh(beta (q + 2 lambda^2 x) / 2) / 2 ,
 * and close to the fold, beta lambda^2 / 2 = 1, plain iteration gains a factor 1 - 1e-4 a step. */
TEST(newton_finishes_where_plain_iteration_crawls)
{
    const double Z[] = {1, 0, 0, 1}, q[] = {1e-10, 0}, beta = 2, l2 = 1 - 1e-4;
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, Z);
    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.mode = CGAM_COUPLED;
    opts.beta = beta;
    opts.lambda = sqrt(l2);
    cgam_result result;
    CHECK_STATUS(env, cgam_recall_once(bank, q, NULL, &opts, &result));
    assert_int_equal(result.end, CGAM_END_CONVERGED);
    assert_true(result.newton_steps > 0);
    CHECK_LE((double)result.iterations, 100);
    long double x = 0;
    for (int k = 0; k < 200; k++) { /* Newton on one unknown */
        long double t = tanhl(beta * (q[0] + 2 * l2 * x) / 2);
        x -= (0.5L * t - x) / (0.5L * (1 - t * t) * beta * l2 - 1);
    }
    CHECK_CLOSE(result.p - 0.5, (double)x, 1e-10);
    opts.plain = true;
    CHECK_STATUS(env, cgam_recall_once(bank, q, NULL, &opts, &result));
    assert_true(result.iterations > 5000);
}

TEST_GROUP(set_up, tear_down)
