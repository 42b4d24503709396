/* Banks and parameters at which rounding once passed for mathematics: each answer is known exactly,
 * or has to be the same at every scale. */
#define ENV_THREADS 0
#include "memory/certify.h"
#include "memory/engines.h"
#include "support/one_env.h"

#include <cgam/cgam.h>

#include "support/owned.h"

static cgam_gate_info gate_of(const cgam_bank *bank, double alpha)
{
    OWNED(cgam_gate) gate = NULL;
    CHECK_STATUS(env, cgam_gate_new(bank, alpha, NULL, &gate));
    cgam_gate_info info = cgam_gate_describe(gate);
    return info;
}

TEST(nearly_orthogonal_is_not_orthogonal)
{
    /* G_12 = 1 beside norms of 1e14: A(2) = [[1, 2], [2, 1]], alpha_crit = 1 */
    cgam_bank *bank = object_copy(env, 2, 2, (double[]){1e7, 0, 1e-7, 1e7});
    cgam_gate_info info = gate_of(bank, 2);
    assert_int_equal(info.regime, CGAM_SUPERCRITICAL);
    CHECK_REL(info.critical.alpha, 1, 1e-9);
    CHECK_CLOSE(info.eta_min, -1, 1e-9);
    cgam_bank_free(bank);
    /* the smallest number that is not 0 still is not */
    bank = object_copy(env, 2, 2, (double[]){1, 0, 0x1p-900, 1});
    info = gate_of(bank, 1);
    assert_true(isfinite(info.critical.alpha_hi) || !info.critical.proved);
    assert_false(isinf(info.critical.alpha) && info.critical.proved);
    cgam_bank_free(bank);
    /* and a sum that cancels exactly is 0: (1 + e)(1 - e) - 1 + e^2 */
    double e = 0x1p-30;
    bank = object_copy(env, 2, 3, (double[]){1 + e, -1, e, 1 - e, 1, e});
    info = gate_of(bank, 1e6);
    assert_true(isinf(info.critical.alpha) && info.critical.proved);
    assert_true(info.eta_min == 1 && info.regime == CGAM_SUBCRITICAL);
    cgam_bank_free(bank);
    /* these are an ulp from it, and orthogonal once they have been normalised in double */
    cgam_bank_opts opts = {.normalize = true, .copy = true};
    CHECK_STATUS(env, cgam_bank_new(env, (double[]){1, 1, 1.71875, -0x1.b800000000001p+0}, CGAM_F64,
                                    2, 2, &opts, &bank));
    info = gate_of(bank, 1e10);
    assert_false(isinf(info.critical.alpha) && info.critical.proved);
    assert_true(info.eta_min < 1);
    cgam_bank_free(bank);
}

/* Beside a winner of weight 1 in f32 the others vanish one by one: 287 of them, exp(-17.4) each. */
TEST(what_f32_loses_beside_a_winner_is_granted)
{
    enum { N = 4096, D = 64, QUERIES = 8, NEAR = 288 };
    static float Z[N * D];
    static double q[QUERIES * D];
    double beta = 20, rest = 0;
    for (int64_t i = 0; i < N; i++)
        Z[i * D] = i == 0 ? 1 : i == 1 ? 0.1305F : i < NEAR ? 0.13F : -1;
    for (int64_t k = 0; k < QUERIES; k++) q[k * D] = 1;
    for (int64_t i = 1; i < N; i++) rest += exp(beta * ((double)Z[i * D] - 1));
    /* the largest eigenvalue of C is at least C_00 = p (1 - p), p = 1 / (1 + rest) */
    double least = rest / ((1 + rest) * (1 + rest));
    OWNED(cgam_bank) bank = NULL;
    CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F32, N, D, NULL, &bank));
    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.beta = beta;
    OWNED(cgam_recall) plan = NULL;
    cgam_result results[QUERIES];
    cgam_recall_in in = {.queries = QUERIES, .q = q};
    cgam_recall_out out = {.results = results};
    CHECK_STATUS(env, cgam_recall_new(bank, &opts, &plan));
    cgam_route route = cgam_recall_route(plan, &in, &out);
    assert_true(route.path == CGAM_PATH_MATRICES && route.precision == CGAM_F32);
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
    assert_true(results[0].fold_margin_proved);
    CHECK_LE(results[0].fold_margin, 1 - beta * least);
    CHECK_LE(beta * least, results[0].local_contraction);
}

TEST(unit_rows_of_f32_have_a_proved_critical_point)
{
    /* n > d and norms that are equal but for 1e-7: all pivots but d are about that small. And more
     * rows than a matrix is made of. */
    enum { N = 2500, D = 8 };
    static double Z[N * D];
    for (int64_t i = 0; i < N; i++) {
        double length = 0;
        for (int64_t j = 0; j < D; j++) {
            Z[i * D + j] = sin(1.0 + (double)(i * i * 7 + j * j * j));
            length += Z[i * D + j] * Z[i * D + j];
        }
        for (int64_t j = 0; j < D; j++) Z[i * D + j] = (float)(Z[i * D + j] / sqrt(length));
    }
    OWNED(cgam_bank) bank = object_copy(env, N, D, Z);
    cgam_gate_info info = gate_of(bank, 0.5);
    assert_true(info.critical.proved && info.eta_min_exact);
    CHECK_REL(info.critical.alpha, 1, 1e-6);
    CHECK_LE(info.critical.alpha_hi - info.critical.alpha_lo, 1e-11);
}

TEST(beyond_the_critical_point_gates_are_known_too)
{
    enum { N = 300, D = 4 };
    static double Z[N * D];
    for (int64_t i = 0; i < N * D; i++) Z[i] = sin(1.0 + (double)(i * i)) * (2 + (double)(i % 7));
    OWNED(cgam_bank) bank = object_copy(env, N, D, Z);
    cgam_recall_opts o = cgam_recall_opts_default();
    o.alpha = 0.05;
    double q[D] = {0.1, -0.05, 0.2, 0.1}, c[D] = {0.2, 0.1, 0, -0.1};
    cgam_result r;
    assert_int_equal(gate_of(bank, o.alpha).regime, CGAM_SUPERCRITICAL);
    CHECK_STATUS(env, cgam_recall_once(bank, q, c, &o, &r));
    assert_true(r.p_lower_bound_proved);
    CHECK_REL(r.p_lower_bound, cgam_separation_bound(N, o.beta, r.gap), 1e-7);
}

TEST(the_diagonal_of_the_gate_operator_is_one)
{
    double want[3] = {0};
    for (double L = 1; L < 1e9; L *= 10) {
        /* A = I exactly, so the fixed point does not know L; q = (0.9, 0.7, 0.4) / L */
        double Z[9] = {L, 0, 0, 0, 1.1 * L, 0, 0, 0, 1.3 * L}, q[3] = {0.9 / L, 0.7 / L, 0.4 / L};
        OWNED(cgam_bank) bank = object_copy(env, 3, 3, Z);
        cgam_recall_opts o = cgam_recall_opts_default();
        o.mode = CGAM_COUPLED;
        o.alpha = 1;
        o.beta = 1.5;
        OWNED(cgam_recall) plan = NULL;
        cgam_result result;
        double p[3];
        CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
        cgam_recall_in in = {.queries = 1, .q = q};
        cgam_recall_out out = {.results = &result, .p = p};
        CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
        assert_int_equal(result.end, CGAM_END_CONVERGED);
        assert_true(result.p_error_proved);
        if (L == 1) memcpy(want, p, sizeof p);
        for (int i = 0; i < 3; i++) CHECK_CLOSE(p[i], want[i], 1e-14);
        CHECK_LE(result.p_error, 1e-13);
    }
}

/* 9 memories in 4 or 12 dimensions, norms between 1/2 and 2. */
/* A bank times L; and scores in units of t^2, gates of t: q t^2, c t, lambda t and beta / t^2 give the same p. */
static void scaled(int64_t d, double L, double t, double alpha, cgam_mode mode, double *p,
                   cgam_result *out, cgam_gate_info *gate)
{
    double Z[9 * 12], q[12], c[12];
    for (int64_t i = 0; i < 9 * d; i++)
        Z[i] = L * sin(1.0 + (double)(i * i)) / (1 + (double)(i % 3));
    for (int64_t j = 0; j < d; j++) {
        q[j] = cos((double)j) / L * t * t;
        c[j] = sin(2.0 * (double)j) / L * t;
    }
    OWNED(cgam_bank) bank = object_copy(env, 9, d, Z);
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = mode;
    o.alpha = alpha / L / L;
    o.beta = 2 / t / t;
    o.lambda = 0.6 * t;
    o.certify = true;
    OWNED(cgam_recall) plan = NULL;
    CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
    cgam_recall_in in = {.queries = 1, .q = q, .c = c};
    cgam_recall_out to = {.results = out, .p = p};
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &to));
    *gate = cgam_gate_describe(cgam_recall_gate(plan));
}

TEST(no_scale_matters)
{
    const double scales[] = {1e-150, 1e-120, 1e-80, 1e-40, 1e-8, 1e8, 1e40, 1e80, 1e120, 1e150};
    for (int64_t d = 4; d <= 12; d += 8)
        for (int mode = CGAM_FIRST; mode <= CGAM_COUPLED; mode++)
            for (double alpha = 0; alpha < 0.35; alpha += 0.15) {
                cgam_result want, got;
                cgam_gate_info gate, other;
                double p[9], q[9];
                scaled(d, 1, 1, alpha, (cgam_mode)mode, p, &want, &gate);
                for (int k = 0; k < 10; k++) {
                    scaled(d, scales[k], 1, alpha, (cgam_mode)mode, q, &got, &other);
                    for (int i = 0; i < 9; i++) CHECK_CLOSE(q[i], p[i], 1e-11);
                    assert_int_equal(got.end, want.end);
                    assert_int_equal(got.winner, want.winner);
                    assert_int_equal(got.unique, want.unique);
                    assert_int_equal(got.p_error_proved, want.p_error_proved);
                    assert_int_equal(other.regime, gate.regime);
                    CHECK_CLOSE(other.eta_min, gate.eta_min, 1e-11);
                    CHECK_CLOSE(got.fold_margin, want.fold_margin, 1e-10);
                    CHECK_CLOSE(got.p_lower_bound, want.p_lower_bound, 1e-10);
                    CHECK_REL(other.critical.alpha * scales[k] * scales[k], gate.critical.alpha,
                              1e-10);
                }
            }
}

TEST(equal_memories_share_what_there_is)
{
    /* -0 is 0; large beta lambda^2; alpha close to critical: p adds up to 1 all the same */
    double Z[] = {1, 0, 0.5, 1, -0.0, 0.5, 0.2, 1, 0, 1, 0, 0.5}, q[] = {1, 0.1, 0.3};
    const double lambdas[] = {0, 1, 30, 1e3, 1e5};
    OWNED(cgam_bank) bank = object_copy(env, 4, 3, Z);
    cgam_critical crit;
    CHECK_STATUS(env, cgam_gate_critical(bank, CGAM_EFFORT_FULL, &crit));
    for (int k = 0; k < 5; k++)
        for (double part = 1e-8; part < 1; part *= 10) {
            cgam_recall_opts o = cgam_recall_opts_default();
            o.mode = CGAM_COUPLED;
            o.alpha = crit.alpha * (1 - part);
            o.lambda = lambdas[k];
            o.beta = 3;
            OWNED(cgam_recall) plan = NULL;
            cgam_result result;
            double p[4];
            CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
            cgam_recall_in in = {.queries = 1, .q = q, .c = q};
            cgam_recall_out out = {.results = &result, .p = p};
            CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
            CHECK_CLOSE(p[0] + p[1] + p[2] + p[3], 1, 4 * 0x1p-52);
            assert_true(p[0] == p[1] && p[1] == p[3]);
            if (result.p_lower_bound_proved) CHECK_LE(result.p_lower_bound, result.p);
        }
}

/* Scores of 1e9 are known to 1e-7, but equal memories have equal ones; and a memory of norm 1e5 beside
 * them does not make theirs any less known. */
TEST(doubt_of_one_memory_is_not_that_of_another)
{
    const double banks[2][9] = {{3e4, 1e4, 0, 3e4, 1e4, 0, 1e4, -2e4, 1},
                                {1, 0.3, 0.1, 0.9, 0.1, 0.2, -1e8, 3e7, 2e7}};
    for (int k = 0; k < 2; k++) {
        OWNED(cgam_bank) bank = object_copy(env, 3, 3, banks[k]);
        cgam_recall_opts o = cgam_recall_opts_default();
        o.mode = CGAM_COUPLED;
        o.alpha = k == 0 ? 5e-10 : 1e-18;
        o.beta = 1.3;
        double L = k == 0 ? 3e4 : 1, q[3] = {L, L, 0}, c[3] = {L, 0, L};
        cgam_result result;
        CHECK_STATUS(env, cgam_recall_once(bank, q, c, &o, &result));
        assert_int_equal(result.end, CGAM_END_CONVERGED);
        if (k == 0) CHECK_CLOSE(result.p, 0.5, 1e-15);
    }
}

/* On a large bank nothing is measured by passes of its own: gates by the residual of the small system,
 * p_error of queries that went together by that and their last step. Held to one query in double. */
TEST(large_banks_have_their_proofs_too)
{
    enum { N = 4200, D = 64, QUERIES = 16 };
    static float Z[N * D];
    static double wide[N * D], q[QUERIES * D], c[QUERIES * D], p[QUERIES * N], one[N];
    cgam_rng rng = cgam_rng_stream(12, 0);
    for (int64_t i = 0; i < N * D; i++) wide[i] = Z[i] = (float)(0.125 * cgam_rng_normal(&rng));
    for (int64_t i = 0; i < QUERIES * D; i++) {
        q[i] = wide[i] + 0.02 * cgam_rng_normal(&rng);
        c[i] = wide[i] + 0.1 * cgam_rng_normal(&rng);
    }
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_bank) exact = object_copy(env, N, D, wide);
    CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F32, N, D, NULL, &bank));
    for (int k = 0; k < 12;
         k++) { /* alpha below, at and above 1 / n of some; one context, or many */
        cgam_recall_opts o = cgam_recall_opts_default();
        o.mode = k < 8 ? CGAM_FIRST : CGAM_COUPLED;
        o.alpha = k < 8 ? (double[]){0.2, 0.4, 0.9, 3}[k / 2] : 0.3;
        o.beta = k < 8 ? 6 : 2;
        o.lambda = k < 8 ? 0.7 : 0.5;
        int64_t queries = k % 4 == 3 ? 2 : QUERIES;
        OWNED(cgam_recall) plan = NULL;
        OWNED(cgam_recall) alone = NULL;
        cgam_result results[QUERIES], want;
        cgam_recall_in in = {.queries = queries, .q = q, .c = c, .c_per_query = k % 2};
        cgam_recall_out out = {.results = results, .p = k < 8 ? NULL : p};
        CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
        CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
        o.certify = o.mode == CGAM_FIRST;
        o.tol = 1e-14;
        CHECK_STATUS(env, cgam_recall_new(exact, &o, &alone));
        for (int64_t v = 0; v < queries; v += 5) {
            cgam_recall_in single = {.queries = 1, .q = q + v * D, .c = c + (k % 2 ? v * D : 0)};
            cgam_recall_out to = {.results = &want, .p = one};
            CHECK_STATUS(env, cgam_recall_run(alone, &single, &to));
            assert_true(results[v].p_lower_bound_proved);
            CHECK_LE(results[v].p_lower_bound, want.p * (1 + 1e-9));
            if (o.mode == CGAM_FIRST) continue;
            assert_true(results[v].p_error_proved && results[v].end == CGAM_END_CONVERGED);
            double apart = 0;
            for (int64_t i = 0; i < N; i++) {
                double off = p[v * N + i] - one[i];
                apart += off * off;
            }
            CHECK_LE(sqrt(apart), results[v].p_error + want.p_error);
            CHECK_LE(results[v].p_error, 1e-6);
        }
    }
}

TEST(an_energy_that_rose_has_not_converged)
{
    enum { N = 5, D = 3 };
    double Z[N * D], q[D] = {1, 0.2, -0.4}, b[N], s0[N] = {0}, s[N], r[N], p[N];
    for (int i = 0; i < N * D; i++) Z[i] = sin(1.0 + (double)(i * i));
    OWNED(cgam_bank) bank = object_copy(env, N, D, Z);
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = CGAM_COUPLED;
    o.alpha = 0.1;
    o.beta = 3;
    OWNED(cgam_recall) plan = NULL;
    CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
    cgam_settled m = {.in = {.q = q, .b = b, .s0 = s0, .a = b}, .s = s, .r = r, .p = p};
    CHECK_STATUS(env, cgam_bank_score(bank, q, b));
    CHECK_STATUS(env, cgam_coupled_solve(plan, 1, &m, NULL));
    const double rises[] = {0, 0x1p-52, 1e-11, 1e-9, 1, INFINITY};
    for (int k = 0; k < 6; k++) {
        cgam_result result = {.end = m.trace.end};
        m.trace.energy_rise = rises[k];
        CHECK_STATUS(env, cgam_settled_certify(plan, &m, &result));
        assert_int_equal(result.end, k < 2 ? CGAM_END_CONVERGED : CGAM_END_STALLED);
    }
}

TEST(extreme_parameters_end_in_a_result_or_are_named)
{
    const double edges[] = {5e-324, 1e-300, 1e-100, 1e100, 1e200, 1e300, 1.7e308};
    double Z[] = {1, 0.5, 0.2, 1, 0.7, 0.7}, q[] = {1, 0.1};
    OWNED(cgam_bank) bank = object_copy(env, 3, 2, Z);
    for (int k = 0; k < 7 * 7 * 7 * 2; k++) {
        cgam_recall_opts o = cgam_recall_opts_default();
        o.alpha = k / 49 % 7 == 6 ? 0.1 : edges[k / 49 % 7];
        o.beta = k % 7 == 5 ? 1 : edges[k % 7];
        o.lambda = k / 7 % 7 == 5 ? 1 : edges[k / 7 % 7];
        o.mode = k >= 343 ? CGAM_COUPLED : CGAM_FIRST;
        o.certify = k % 2;
        o.max_iter = 100;
        cgam_result r = {0};
        cgam_status status = cgam_recall_once(bank, q, q, &o, &r);
        if (status == CGAM_OK) {
            if (r.end == CGAM_END_DIVERGED) continue;
            assert_true(isfinite(r.p) && r.p >= 0 && r.p <= 1 + 1e-15);
            assert_true(!r.p_lower_bound_proved || isfinite(r.p_lower_bound));
            assert_true(!r.contraction_proved || isfinite(r.contraction));
            assert_true(!r.fold_margin_proved || isfinite(r.fold_margin));
            assert_true(!r.local_contraction_proved || isfinite(r.local_contraction));
            assert_true(!r.p_error_proved || isfinite(r.p_error));
        } else if (status == CGAM_E_ARG) {
            const char *words = cgam_env_message(env);
            assert_true(strstr(words, "alpha") || strstr(words, "beta") || strstr(words, "lambda"));
        } else if (status != CGAM_E_NOT_POSITIVE && status != CGAM_E_SINGULAR) {
            fail_msg("alpha %g, beta %g, lambda %g: %s", o.alpha, o.beta, o.lambda,
                     cgam_env_message(env));
        }
    }
}

/* Powers of two, so that all but underflow is the same to the last bit. */
TEST(no_unit_of_scores_matters)
{
    for (int power = -440; power <= 440; power += 80)
        for (int mode = CGAM_FIRST; mode <= CGAM_COUPLED; mode++)
            for (double alpha = 0; alpha < 0.35; alpha += 0.3) {
                cgam_result want, got;
                cgam_gate_info gate;
                double p[9], q[9];
                scaled(4, 1, 1, alpha, (cgam_mode)mode, p, &want, &gate);
                scaled(4, 1, ldexp(1, power), alpha, (cgam_mode)mode, q, &got, &gate);
                for (int i = 0; i < 9; i++) CHECK_CLOSE(q[i], p[i], 0);
                assert_int_equal(got.end, want.end);
                assert_int_equal(got.unique, want.unique);
                CHECK_REL(got.p_lower_bound, want.p_lower_bound, 1e-14);
                CHECK_REL(got.contraction, want.contraction, 1e-14);
                CHECK_REL(got.local_contraction, want.local_contraction, 1e-9);
                CHECK_CLOSE(got.fold_margin, want.fold_margin, 1e-12);
                if (mode == CGAM_COUPLED) CHECK_REL(got.p_error, want.p_error, 1e-9);
            }
}

/* Scores of 1e-190 under beta = 1e199: what is lost in the squares of their errors must not be lost in
 * p_error. b is exact here but for one rounding of 2^-53 in the first score, which moves p by 0.0003. */
TEST(errors_whose_squares_vanish_are_errors)
{
    const double tiny = 0x1p-630, Z[] = {1, 1, 0, 1, 0, 0}; /* 1 + 2^-53 rounds to 1 */
    const double q[] = {tiny, 0x1p-53 * tiny, 0};
    cgam_bank *bank = object_copy(env, 2, 3, Z);
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = CGAM_COUPLED;
    o.lambda = 0;
    o.beta = 0x1p-10 * 0x1p53 / tiny; /* times 2^-53 of a score: 2^-10 */
    cgam_result r;
    CHECK_STATUS(env, cgam_recall_once(bank, q, NULL, &o, &r));
    double exact = 1 / (1 + exp(-0x1p-10)); /* of memory 0, both being 1/2 as computed */
    assert_true(r.p_error_proved);
    assert_true(sqrt(2) * fabs(exact - 0.5) <= r.p_error + 2 * fabs(r.p - 0.5));
    cgam_bank_free(bank);

    o.lambda = 1e-180; /* lambda^2 is 0 as a double, lambda^2 beta is not */
    o.beta = 1e250;
    bank = object_copy(env, 1, 3, Z);
    CHECK_STATUS(env, cgam_recall_once(bank, q, NULL, &o, &r));
    assert_true(r.contraction_proved);
    CHECK_REL(r.contraction, 0.5e-110, 1e-14);
    CHECK_REL(cgam_contraction(o.beta, o.lambda, 1), 0.5e-110, 1e-14);
    cgam_bank_free(bank);
}

/* One memory of a large bank has no rivals, whatever alpha says, and gates of its own weights. */
TEST(one_long_memory_has_gates_too)
{
    enum { D = 1 << 18 };
    double *Z = calloc(2 * D, sizeof *Z), *q = Z + D;
    assert_non_null(Z);
    Z[0] = q[0] = 1;
    cgam_bank *bank = object_copy(env, 1, D, Z);
    cgam_recall_opts o = cgam_recall_opts_default();
    const double W[] = {1, 2}, c[] = {1, 1};
    o.W = W;
    o.d_c = 2;
    o.alpha = 0.5;
    cgam_result r;
    CHECK_STATUS(env, cgam_recall_once(bank, q, c, &o, &r));
    assert_true(r.p == 1 && r.p_lower_bound_proved);
    cgam_bank_free(bank);
    free(Z);
}

TEST_GROUP(set_up, tear_down)
