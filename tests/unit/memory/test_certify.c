/* Certificates: a bound that is called proved holds, exact values are exact, and uniqueness is
 * claimed and denied only where that is so. The judges are n x n eigenvalues and fixed points in long
 * double. */
#include "memory/certify.h"
#include "num/rows.h"
#include "support/one_env.h"

#include <cgam/theory.h>

#include "support/owned.h"

typedef struct instance {
    int64_t n, d;
    double *Z, *A, *b, *u, *q, *c, eta;
    cgam_recall_opts opts;
} instance;

static instance draw(uint64_t stream, double contraction_max)
{
    cgam_rng rng = cgam_rng_stream(11, stream);
    instance x = {.n = 2 + cgam_rng_below(&rng, 20), .d = 1 + cgam_rng_below(&rng, 20)};
    int64_t n = x.n, d = x.d;
    x.Z = dense_bank(&rng, (dense_kind)cgam_rng_below(&rng, DENSE_KINDS), n, d);
    double critical = dense_critical(n, d, x.Z);
    x.opts = cgam_recall_opts_default();
    x.opts.mode = CGAM_COUPLED;
    x.opts.alpha = stream % 7 == 0    ? 0
                   : stream % 31 == 0 ? critical * (1 - dense_between_log(&rng, 1e-6, 0.1))
                                      : critical * dense_between(&rng, 0, 0.95);
    x.A = dense_gate(n, d, x.Z, x.opts.alpha);
    x.eta = dense_eigen(n, x.A, NULL)[0];
    x.opts.beta = dense_between_log(&rng, 0.3, 30);
    double contraction = dense_between_log(&rng, 0.03, contraction_max);
    x.opts.lambda = sqrt(2 * x.eta * contraction / x.opts.beta);
    double size = dense_between_log(&rng, 1e-3, 1);
    x.q = dense_normals(&rng, d, size);
    x.c = dense_normals(&rng, d, size);
    x.b = dense_room(n);
    x.u = dense_room(n);
    dense_score(n, d, x.Z, x.q, x.b);
    dense_score(n, d, x.Z, x.c, x.u);
    return x;
}

static cgam_result recall(const instance *x, double *p)
{
    OWNED(cgam_bank) bank = object_bank(env, x->n, x->d, x->Z);
    OWNED(cgam_recall) plan = object_recall(env, bank, &x->opts);
    cgam_result result;
    cgam_recall_in in = {.queries = 1, .q = x->q, .c = x->c};
    cgam_recall_out out = {.results = &result, .p = p};
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
    return result;
}

/* Largest eigenvalue of beta lambda^2 A^-1 C, through the symmetric C^(1/2) A^-1 C^(1/2). */
static double local_contraction(const instance *x, const double *p)
{
    int64_t n = x->n;
    double *C = dense_room(n * n), *V = dense_room(n * n), *M = dense_room(n * n);
    double *H = dense_hessian(n, C, 1, 1, p); /* -C(p) */
    for (int64_t i = 0; i < n * n; i++) C[i] = -H[i];
    const double *values = dense_eigen(n, C, V);
    const long double *inverse = dense_inverse(n, x->A);
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = 0; b < n; b++) {
            long double sum = 0;
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < n; j++)
                    sum += V[a * n + i] * inverse[i * n + j] * V[b * n + j];
            M[a * n + b] = (double)(sum * sqrt(fmax(values[a], 0)) * sqrt(fmax(values[b], 0)));
        }
    return x->opts.beta * x->opts.lambda * x->opts.lambda * dense_eigen(n, M, NULL)[n - 1];
}

static cgam_result recall_of(const cgam_bank *bank, const cgam_recall_opts *o, const double *q,
                             const double *c, double *p)
{
    cgam_result out;
    OWNED(cgam_recall) plan = object_recall(env, bank, o);
    cgam_recall_in in = {.queries = 1, .q = q, .c = c};
    cgam_recall_out to = {.results = &out, .p = p};
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &to));
    return out;
}

/* What is no certificate: all other members. */
static cgam_result answer_of(const cgam_result *from)
{
    const cgam_result none = {.contraction = NAN,
                              .unique = -1,
                              .fold_margin = NAN,
                              .local_contraction = NAN,
                              .p_error = NAN};
    cgam_result out = *from;
    cgam_result_take_proofs(&none, &out);
    out.p_lower_bound = out.score_error = 0;
    return out;
}

/* Small banks and large ones, alone and among others, with and without p: the same bits at every level. */
TEST(a_level_leaves_results_alone_but_for_their_certificates)
{
    enum { QUERIES = 9, TOP = 3 };
    cgam_rng rng = cgam_rng_stream(94, 0);
    for (int k = 0; k < 24; k++) {
        int64_t n = k % 3 == 2 ? 2700 : 60, d = k % 3 == 2 ? 100 : k % 3 ? 80 : 9;
        double *Z = dense_bank(&rng, (dense_kind)(k % 2), n, d);
        double *q = dense_normals(&rng, QUERIES * d, 1), *c = dense_normals(&rng, QUERIES * d, 1);
        double norm = 0, *p[3]; /* of the longest row */
        for (int64_t i = 0; i < n; i++) norm = fmax(norm, cgam_array_norm(d, Z + i * d));
        cgam_bank *bank = object_bank(env, n, d, Z);
        cgam_result results[3][QUERIES];
        int64_t index[3][QUERIES * TOP];
        double top_p[3][QUERIES * TOP];
        for (int level = 0; level < 3; level++) {
            cgam_recall_opts o = cgam_recall_opts_default();
            cgam_recall *plan;
            o.mode = k % 4 < 2 ? CGAM_FIRST : CGAM_COUPLED;
            o.alpha = k % 5 == 0 ? 0 : 0.3 / (norm * norm);
            o.beta = 2;
            o.lambda = 0.7;
            o.certify = (cgam_certify)level;
            p[level] = dense_room(QUERIES * n);
            CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
            cgam_recall_in in = {
                .queries = k % 2 ? QUERIES : 1, .q = q, .c = c, .c_per_query = k % 7 != 0};
            cgam_recall_out out = {.results = results[level],
                                   .top = TOP,
                                   .top_index = index[level],
                                   .top_p = top_p[level],
                                   .p = k % 8 < 6 ? NULL : p[level]};
            memset(results[level], 0, sizeof results[level]);
            CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
            assert_int_equal(cgam_recall_route(plan, &in, &out).certify, level);
            cgam_recall_free(plan);
            for (int64_t i = 0; i < in.queries; i++) {
                cgam_result mine = answer_of(&results[level][i]), usual = answer_of(&results[0][i]);
                assert_memory_equal(&mine, &usual, sizeof mine);
                bool proves = level != CGAM_CERTIFY_NONE;
                assert_int_equal(results[level][i].p_lower_bound_proved, proves);
                assert_int_equal(isnan(results[level][i].fold_margin), !proves);
                if (level == CGAM_CERTIFY_FULL)
                    CHECK_LE(results[0][i].fold_margin, results[level][i].fold_margin + 1e-9);
            }
            assert_memory_equal(index[level], index[0],
                                (size_t)(in.queries * TOP) * sizeof(int64_t));
            assert_memory_equal(top_p[level], top_p[0],
                                (size_t)(in.queries * TOP) * sizeof(double));
            if (out.p)
                assert_memory_equal(p[level], p[0], (size_t)(in.queries * n) * sizeof(double));
        }
        cgam_bank_free(bank);
        dense_reset();
    }
}

/* A query on a large bank is proved by its last step, however early that was; the judge goes on to rounding and puts its answer back
 * into the equations. */
TEST(a_last_step_proves_how_far_it_is)
{
    enum { ROWS = 2700, WIDE = 100 };
    cgam_rng rng = cgam_rng_stream(95, 0);
    for (int k = 0; k < 10; k++) {
        double *Z = dense_bank(&rng, k % 3 ? DENSE_UNIT : DENSE_NORMS, ROWS, WIDE);
        double *q = dense_normals(&rng, WIDE, 0.3), *c = dense_normals(&rng, WIDE, 0.2);
        double *p = dense_room(ROWS), *want = dense_room(ROWS), longest = 0;
        for (int i = 0; i < ROWS; i++) longest = fmax(longest, cgam_array_norm(WIDE, Z + i * WIDE));
        float *narrow = (float *)(void *)dense_room(ROWS * WIDE);
        for (int i = 0; i < ROWS * WIDE; i++) narrow[i] = (float)Z[i];
        OWNED(cgam_bank) bank = NULL;
        CHECK_STATUS(env, cgam_bank_new(env, k % 2 ? (void *)narrow : Z,
                                        k % 2 ? CGAM_F32 : CGAM_F64, ROWS, WIDE, NULL, &bank));
        cgam_recall_opts o = cgam_recall_opts_default();
        o.mode = CGAM_COUPLED;
        o.alpha = 0.4 / (longest * longest);
        o.beta = k % 4 < 2 ? 5 : 40;
        o.lambda = sqrt(2 * 0.6 * (k % 5 ? 0.8 : 0.3) / o.beta); /* unique: contraction below 1 */
        cgam_recall_opts judge = o;
        judge.tol = 1e-15;
        judge.certify = CGAM_CERTIFY_FULL;
        cgam_result exact = recall_of(bank, &judge, q, k % 6 ? c : NULL, want);
        assert_true(exact.p_error_proved);
        for (double tol = 1e-2; tol > 1e-13; tol *= 1e-3) {
            o.tol = tol;
            cgam_result got = recall_of(bank, &o, q, k % 6 ? c : NULL, p);
            double far = dense_distance(ROWS, p, want);
            assert_true(got.p_error_proved && got.unique == 1);
            CHECK_LE(far, got.p_error + exact.p_error);
            CHECK_LE(got.p_error, 40 * got.change * sqrt(ROWS) + 1e-7);
        }
        dense_reset();
    }
}

TEST(free_bounds_hold_and_certified_values_are_exact)
{
    int exact = 0;
    for (uint64_t k = 0; k < 800; k++) {
        instance x = draw(k, 20);
        if (k % 3 == 0) x.opts.mode = CGAM_FIRST;
        double *p = dense_room(x.n);
        cgam_result free = recall(&x, p);
        double *H = dense_hessian(x.n, x.A, x.opts.lambda, x.opts.beta, p);
        double margin = dense_eigen(x.n, H, NULL)[0], local = local_contraction(&x, p);
        double noise = 1e-11 * (1 + dense_norm(x.n, H));
        assert_true(free.contraction_proved && free.fold_margin_proved);
        assert_false(free.fold_margin_exact);
        /* eta_min is known to 1e-9 of 1 + |eta_min|, and without certify to a factor of 2, see gate.h */
        double constant = cgam_contraction(x.opts.beta, x.opts.lambda, x.eta);
        CHECK_LE(constant * (1 - 1e-9 / x.eta), free.contraction);
        CHECK_LE(free.contraction, 2 * constant * (1 + 1e-9 / x.eta));
        CHECK_LE(free.fold_margin, margin + noise);
        CHECK_LE(local, free.local_contraction * (1 + 1e-9 / x.eta) + 1e-12);
        x.opts.certify = true;
        cgam_result full = recall(&x, p);
        /* what it is lowered by to hold at the fixed point too */
        double moves = 3 * x.opts.beta * x.opts.lambda * x.opts.lambda * full.p_error;
        bool carried = x.opts.mode == CGAM_COUPLED && full.p_error_proved;
        assert_true(full.fold_margin_exact || (carried && moves > 4e-10 * fmax(1, margin)));
        CHECK_REL(full.contraction, constant, 1e-9 / x.eta);
        CHECK_CLOSE(full.fold_margin, margin,
                    1e-9 * (1 + fabs(margin)) + (full.fold_margin_exact ? 0 : moves));
        CHECK_LE(free.fold_margin, full.fold_margin + noise);
        /* a bound from above, as close as rounding lets theta A - lambda^2 beta C be proved */
        CHECK_LE(local, full.local_contraction * (1 + 1e-9));
        CHECK_LE(full.local_contraction, local + 1e-8 * (1 + local) + 1e-12 / x.eta);
        exact += full.local_contraction_proved && full.fold_margin_proved;
        /* the margin is positive exactly where the local contraction is below 1 */
        if (fabs(margin) > 1e-9) assert_int_equal(margin > 0, full.local_contraction < 1);
        dense_reset();
    }
    assert_true(exact > 700);
}

TEST(an_error_bound_bounds_the_error)
{
    static const double tolerances[] = {1e-12, 1e-6, 1e-3};
    int proved = 0, beyond = 0;
    for (uint64_t k = 0; k < 4000; k++) {
        instance x = draw(10000 + k, 8);
        x.opts.certify = k % 2;
        x.opts.tol = tolerances[k % 3];
        if (k % 5 == 0) x.opts.max_iter = 1 + (int64_t)(k % 19); /* stopped on its way */
        double *p = dense_room(x.n), *fixed = dense_room(x.n);
        cgam_result got = recall(&x, p);
        if (got.p_error_proved) {
            const long double *inverse = dense_inverse(x.n, x.A);
            double moved = dense_coupled(x.n, inverse, x.opts.beta, x.opts.lambda, x.b, x.u, p,
                                         1e-18, 100000, fixed);
            double off = dense_distance(x.n, p, fixed);
            assert_true(moved <= 1e-18);
            if (!(off <= got.p_error))
                fail_msg("instance %llu: p is off by %.3g, bound %.3g (eta %.2g, contraction %.3g, "
                         "change %.2g)",
                         (unsigned long long)k, off, got.p_error, x.eta, got.contraction,
                         got.change);
            proved++;
            beyond += got.contraction >= 1;
        }
        dense_reset();
    }
    assert_true(proved > 3000);
    assert_true(beyond > 300); /* by the basin lemma, where there is no contraction */
}

/* Do all starts lead to p? */
static bool is_unique(const instance *x, const double *p)
{
    int64_t n = x->n;
    const long double *inverse = dense_inverse(n, x->A);
    double *start = dense_room(n), *first = dense_room(n), *other = dense_room(n);
    dense_coupled(n, inverse, x->opts.beta, x->opts.lambda, x->b, x->u, p, 1e-16, 100000, first);
    for (int64_t k = 0; k <= n; k++) {
        for (int64_t i = 0; i < n; i++) start[i] = k < n ? i == k : 1.0 / (double)n;
        double moved = dense_coupled(n, inverse, x->opts.beta, x->opts.lambda, x->b, x->u, start,
                                     1e-16, 100000, other);
        if (moved > 1e-16 || dense_largest(n, first, other) > 1e-7) return false;
    }
    return true;
}

TEST(uniqueness_is_claimed_and_denied_rightly)
{
    static const double tolerances[] = {1e-12, 1e-9, 1e-6};
    int one = 0, two = 0, open = 0, proved = 0;
    for (uint64_t k = 0; k < 1200; k++) {
        instance x = draw(20000 + k, 12);
        x.opts.certify = true;
        x.opts.tol = tolerances[k % 3];
        double *p = dense_room(x.n);
        cgam_result got = recall(&x, p);
        if (got.unique == 1) {
            assert_true(got.contraction < 1 && got.unique_proved);
            assert_true(is_unique(&x, p));
            one++;
        } else if (got.unique == 0) {
            if (is_unique(&x, p))
                fail_msg("instance %llu: a second fixed point is claimed, tol %g",
                         (unsigned long long)k, x.opts.tol);
            two++;
            proved += got.unique_proved;
        } else {
            assert_true(got.contraction >= 1 - 1e-10);
            open++;
        }
        dense_reset();
    }
    assert_true(one > 300 && two > 50 && open > 50 && proved > 10);
}

/* The tight case: a memory twice, a query that ties. The fixed point p = 1/2 is unique exactly up to
 * beta lambda^2 / (2 eta_min) = 1. */
TEST(uniqueness_is_tight_for_two_equal_memories)
{
    const double Z[] = {0.6, 0.8, 0.6, 0.8}, q[] = {0.3, -0.2};
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, Z);
    for (int k = 0; k < 40; k++) {
        cgam_recall_opts opts = cgam_recall_opts_default();
        opts.mode = CGAM_COUPLED;
        opts.certify = true;
        opts.alpha = 0.2 * (k % 5);
        opts.beta = 1 + k % 3;
        double edge = cgam_contraction_lambda_max(opts.beta, 1 - opts.alpha);
        cgam_result got;
        opts.lambda = edge * (1 - 1e-6);
        CHECK_STATUS(env, cgam_recall_once(bank, q, q, &opts, &got));
        assert_int_equal(got.unique, 1);
        CHECK_CLOSE(got.p, 0.5, 1e-9);
        CHECK_REL(got.contraction, (1 - 1e-6) * (1 - 1e-6), 1e-10);
        CHECK_REL(got.local_contraction, got.contraction, 1e-8); /* the constant is attained */
        opts.lambda = edge * 1.01;
        CHECK_STATUS(env, cgam_recall_once(bank, q, q, &opts, &got));
        assert_int_equal(got.unique, 0);
        CHECK_CLOSE(got.p, 0.5, 1e-9);
        assert_true(got.fold_margin < 0 && got.local_contraction > 1);
        opts.certify = false; /* without the search nothing is decided */
        CHECK_STATUS(env, cgam_recall_once(bank, q, q, &opts, &got));
        assert_int_equal(got.unique, -1);
    }
}

/* On the edge itself the fixed point is still one, but recalls from elsewhere crawl towards it and
 * stop at the tolerance far away; that is no second fixed point. */
TEST(a_recall_that_stopped_early_is_no_second_fixed_point)
{
    const double Z[] = {0.6, 0.8, 0.6, 0.8}, q[] = {0.3, -0.2};
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, Z);
    static const double tolerances[] = {1e-4, 1e-6, 1e-7, 1e-12};
    for (int k = 0; k < 4; k++) {
        cgam_recall_opts opts = cgam_recall_opts_default();
        opts.mode = CGAM_COUPLED;
        opts.certify = true;
        opts.beta = 2;
        opts.lambda = 1;
        opts.tol = tolerances[k];
        cgam_result got;
        CHECK_STATUS(env, cgam_recall_once(bank, q, q, &opts, &got));
        assert_int_not_equal(got.unique, 0);
        assert_true(got.unique == -1 || got.unique_proved);
    }
}

/* Where eta_min is only bounded (conjugate gradients), what is derived from it stays a bound. */
TEST(bounds_hold_without_a_factorisation)
{
    for (uint64_t k = 0; k < 200; k++) {
        instance x = draw(30000 + k, 4);
        double largest = 1e-300;
        for (int64_t i = 0; i < x.n; i++) {
            double square = 0;
            for (int64_t j = 0; j < x.d; j++) square += x.Z[i * x.d + j] * x.Z[i * x.d + j];
            largest = fmax(largest, square);
        }
        x.opts.alpha = 0.7 / largest;
        x.opts.memory_max = 1;
        x.A = dense_gate(x.n, x.d, x.Z, x.opts.alpha);
        x.eta = dense_eigen(x.n, x.A, NULL)[0];
        double *p = dense_room(x.n);
        cgam_result got = recall(&x, p);
        double *H = dense_hessian(x.n, x.A, x.opts.lambda, x.opts.beta, p);
        CHECK_LE(cgam_contraction(x.opts.beta, x.opts.lambda, x.eta), got.contraction * (1 + 1e-9));
        CHECK_LE(got.fold_margin, dense_eigen(x.n, H, NULL)[0] + 1e-12 * dense_norm(x.n, H));
        CHECK_LE(local_contraction(&x, p), got.local_contraction * (1 + 1e-9) + 1e-12);
        if (got.unique == 1) assert_true(is_unique(&x, p));
        dense_reset();
    }
}

TEST_GROUP(set_up, tear_down)
