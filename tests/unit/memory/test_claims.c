/* Claims that were called proved and were not, as the campaign of tests/rigour found them: gates that
 * nobody solved for, scores beyond the range of double, products that vanish. */
#define ENV_THREADS 0
#include "memory/explain.h"
#include "support/one_env.h"

#include <cgam/cgam.h>

#include <float.h>

#include "support/owned.h"

static long double dot(const double *x, const double *y)
{
    return (long double)x[0] * y[0] + (long double)x[1] * y[1] + (long double)x[2] * y[2];
}

/* At alpha = 0 gates are u, a product that rounds: here it cancels to 1e-9 of its terms. */
TEST(gates_without_a_penalty_round_too)
{
    cgam_rng rng = cgam_rng_stream(5, 0);
    for (int trial = 0; trial < 200; trial++) {
        double Z[6], c[3], q[3] = {0}, p[2], s[2], r[2];
        for (int i = 0; i < 6; i++) Z[i] = cgam_rng_normal(&rng);
        for (int j = 0; j < 3; j++) {
            int k = (j + 1) % 3, l = (j + 2) % 3;
            c[j] = 1e9 * (Z[k] * Z[3 + l] - Z[l] * Z[3 + k]) + cgam_rng_normal(&rng);
        }
        OWNED(cgam_bank) bank = object_copy(env, 2, 3, Z);
        cgam_recall_opts o = cgam_recall_opts_default();
        o.fast = true;
        OWNED(cgam_recall) plan = NULL;
        CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
        cgam_result x;
        cgam_recall_in in = {.queries = 1, .q = q, .c = c};
        cgam_recall_out out = {.results = &x, .p = p, .s = s, .r = r};
        CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
        long double gates[2] = {dot(Z, c), dot(Z + 3, c)}; /* within 1e-9 */
        long double gap = gates[x.focus] - gates[1 - x.focus], exact = 1 / (1 + expl(-gap));
        assert_true(!x.p_lower_bound_proved || x.p_lower_bound <= exact + 1e-9L);
        assert_true(x.p_from <= exact + 1e-9L && exact - 1e-9L <= x.p_to);
        for (int i = 0; i < 2; i++) assert_true(fabsl(r[i] - gates[i]) <= x.score_error + 1e-9L);
    }
}

/* beta b is 1e-150 and -1, but b itself -1e310. */
TEST(a_score_beyond_the_range_proves_nothing)
{
    OWNED(cgam_bank) bank = object_copy(env, 2, 1, (double[]){1, -1e150});
    for (int mode = CGAM_FIRST; mode <= CGAM_COUPLED; mode++) {
        cgam_recall_opts o = cgam_recall_opts_default();
        o.mode = (cgam_mode)mode;
        o.beta = 1e-310;
        OWNED(cgam_recall) plan = NULL;
        CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
        cgam_result x;
        double q = 1e160, p[2], s[2], r[2];
        cgam_recall_in in = {.queries = 1, .q = &q};
        cgam_recall_out out = {.results = &x, .p = p, .s = s, .r = r};
        CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
        assert_false(x.p_lower_bound_proved && x.p_lower_bound > 1 / (1 + exp(-1)));
        assert_false(mode == CGAM_COUPLED && x.p_error_proved && x.p_error < 0.2);
        assert_true(mode == CGAM_FIRST || x.end == CGAM_END_DIVERGED);
    }
}

/* The local contraction is proportional to beta. Memories are so long that alpha beta leaves the range. */
TEST(what_vanishes_in_a_product_is_not_proved)
{
    double Z[6] = {1e39, 0, 0.5e39, 0.8e39, -0.3e39, 0.9e39}, p[3] = {0.5, 0.3, 0.2}, one, small;
    bool proved, small_proved;
    cgam_bank *bank = object_copy(env, 3, 2, Z);
    cgam_critical crit;
    CHECK_STATUS(env, cgam_gate_critical(bank, CGAM_EFFORT_FULL, &crit));
    cgam_gate *gate;
    CHECK_STATUS(env, cgam_gate_new(bank, 0.999 * crit.alpha, NULL, &gate));
    CHECK_STATUS(env, cgam_contraction_local(gate, 1, 1, p, &one, &proved));
    CHECK_STATUS(env, cgam_contraction_local(gate, 1e-271, 1, p, &small, &small_proved));
    assert_true(proved && small_proved);
    CHECK_REL(small, 1e-271 * one, 1e-9);
    /* and of shares of 1e-290 even where beta is 1 */
    CHECK_STATUS(env, cgam_contraction_local(gate, 1, 1, (double[]){1, 1e-290, 0}, &one, &proved));
    assert_true(!proved || one >= 1e-290 * (1 - 1e-9));
    cgam_gate_free(gate);
    cgam_bank_free(bank);
    /* what underflows before it is divided by eta */
    bank = object_copy(env, 2, 2, (double[]){1, 0, 0.5, 0.8});
    CHECK_STATUS(env, cgam_gate_critical(bank, CGAM_EFFORT_FULL, &crit));
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = CGAM_COUPLED;
    o.alpha = crit.alpha * (1 - 1e-8);
    o.beta = 1;
    o.lambda = 2e-162;
    cgam_result x;
    CHECK_STATUS(env, cgam_recall_once(bank, (double[]){8, 0}, NULL, &o, &x));
    double variance = x.p * (1 - x.p); /* C = variance [[1, -1], [-1, 1]], and eta is along it */
    assert_true(x.local_contraction >= 4e-324 * (2 * variance / 1.1e-8));
    assert_true(x.contraction >= 4e-324 / 2 / 1.1e-8);
    cgam_bank_free(bank);
}

/* lambda^2 beta is what matters, however few digits beta has. */
TEST(a_beta_of_few_digits_is_no_excuse)
{
    OWNED(cgam_bank) bank = object_copy(env, 2, 2, (double[]){1, 0.3, 0.5, 0.8});
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = CGAM_COUPLED;
    o.alpha = 0.4;
    o.entmax = 1.25;
    o.certify = true;
    for (int k = 0; k < 100; k++) {
        cgam_result x, y;
        o.beta = ldexp(1 + 0.01 * k, -1070);
        o.lambda = 0x1p500;
        CHECK_STATUS(env, cgam_recall_once(bank, (double[]){0, 0}, NULL, &o, &x));
        o.beta = ldexp(o.beta, 600);
        o.lambda = 0x1p200;
        CHECK_STATUS(env, cgam_recall_once(bank, (double[]){0, 0}, NULL, &o, &y));
        assert_true(x.local_contraction_proved && y.local_contraction_proved);
        assert_true(x.local_contraction >= y.local_contraction * (1 - 1e-9));
    }
}

/* The largest lambda and beta of which uniqueness is proved are not above the edge. */
TEST(edges_of_uniqueness_are_rounded_to_the_safe_side)
{
    const double betas[] = {4e-324, 1e-318, 3e-309, 1e-200, 0.3, 7, 1e200, DBL_MAX};
    for (size_t k = 0; k < sizeof betas / sizeof *betas; k++) {
        double lambda = cgam_contraction_lambda_max(betas[k], 0.7);
        assert_true(isfinite(lambda) && lambda > 0);
        assert_true((long double)lambda * lambda * betas[k] <= 1.4L);
        CHECK_REL((double)((long double)lambda * lambda * betas[k]), 1.4, 1e-6);
    }
    OWNED(cgam_bank) bank = object_copy(env, 2, 2, (double[]){1, 0, 0, 1}); /* eta = 1 */
    const double lambdas[] = {1e-200, 0.1, 0.3, 0.7, 1.1, 1.3, 1.7, 1.9, 2.3, 1e120};
    for (size_t k = 0; k < sizeof lambdas / sizeof *lambdas; k++) {
        cgam_recall_opts o = cgam_recall_opts_default();
        o.mode = CGAM_COUPLED;
        o.lambda = lambdas[k];
        OWNED(cgam_recall) plan = NULL;
        cgam_marks marks;
        CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
        if (cgam_recall_marks(plan, (double[]){1, 0}, NULL, &marks) == CGAM_OK) {
            assert_true(isfinite(marks.beta_unique_max));
            assert_true((long double)o.lambda * o.lambda * marks.beta_unique_max <= 2);
        }
    }
}

/* p - p^2 of a memory that is alone is 0 only where its share is 1, or 0. */
TEST(a_share_of_one_memory_need_not_be_one)
{
    OWNED(cgam_bank) bank = object_copy(env, 1, 2, (double[]){1, 2});
    const double shares[] = {1, 1 - 0x1p-53, 0.5, 1e-9, 1e-300, 0x1p-1074, 0};
    for (int k = 0; k < 14; k++) {
        OWNED(cgam_gate) gate = NULL;
        double p = shares[k / 2], beta = 3, lambda = 0.7, value;
        bool proved;
        CHECK_STATUS(env, cgam_gate_new(bank, k % 2 ? 7 : 0, NULL, &gate));
        CHECK_STATUS(env, cgam_contraction_local(gate, beta, lambda, &p, &value, &proved));
        long double exact = (long double)p * (1 - (long double)p) * lambda * lambda * beta;
        assert_true(proved && value >= exact);
        assert_true(value <= exact * (1 + 1e-12L) + 8 * 0x1p-1074L);
    }
}

/* Numbers that are none, among the entries of an operator, once reached LAPACK. */
TEST(a_query_beyond_the_range_is_no_fault_of_ours)
{
    OWNED(cgam_bank) bank = object_copy(env, 1, 3, (double[]){1, 2, 3});
    const double strange[] = {INFINITY, -INFINITY, NAN, 1};
    for (int k = 0; k < 16; k++) {
        cgam_recall_opts o = cgam_recall_opts_default();
        o.mode = CGAM_ANNEAL;
        o.alpha = 1;
        cgam_result x;
        cgam_status status = cgam_recall_once(bank, (double[]){strange[k % 4], 1, 1},
                                              (double[]){strange[k / 4], 0, 1}, &o, &x);
        assert_int_not_equal(status, CGAM_E_INTERNAL);
    }
}

/* Products of P c that underflow, brought back by long rows and by beta: the gap is 1000 / beta, and all scores are 0 as
 * computed, so the winner is the wrong memory. */
TEST(a_projection_that_underflows_is_counted_times_the_rows)
{
    double Z[4] = {1e150, 0, 0, 1e150}, P[4] = {1e-170, 0, 0, 1e-170};
    double q[2] = {0}, c[2] = {-1e-160, 1e-160};
    OWNED(cgam_bank) bank = object_copy(env, 2, 2, Z);
    for (int level = CGAM_CERTIFY_USUAL; level <= CGAM_CERTIFY_FULL; level++) {
        cgam_recall_opts o = cgam_recall_opts_default();
        o.beta = 1e183;
        o.P = P;
        o.d_c = 2;
        o.certify = (cgam_certify)level;
        cgam_result x;
        CHECK_STATUS(env, cgam_recall_once(bank, q, c, &o, &x));
        assert_true(x.focus == 1 || !x.p_lower_bound_proved || x.p_lower_bound < 1e-9);
    }
}

TEST_GROUP(set_up, tear_down)
