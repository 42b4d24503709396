/* Theory functions at their corners: closed forms, limits, reasons for having no answer. What they
 * promise on random instances is in tests/identity. */
#include "memory/certify.h"
#include "support/one_env.h"

#include <cgam/theory.h>
#include <float.h>

#include "support/owned.h"

TEST(separation_bound_has_its_limits)
{
    CHECK_CLOSE(cgam_separation_bound(1, 5, -3), 1, 0);
    CHECK_CLOSE(cgam_separation_bound_log(1, 5, -3), 0, 0);
    CHECK_CLOSE(cgam_separation_bound_log(1, 1e10, -1e300), 0, 0); /* whatever overflows */
    CHECK_REL(cgam_separation_bound(2, 1, 0), 0.5, 1e-15);
    CHECK_REL(cgam_separation_bound(11, 2, 0), 1.0 / 11, 1e-15);
    CHECK_REL(cgam_separation_bound(5, 3, 0.4), 1 / (1 + 4 * exp(-1.2)), 1e-15);
    CHECK_CLOSE(cgam_separation_bound(5, 1e9, 1), 1, 0);
    CHECK_CLOSE(cgam_separation_bound(5, 1e9, -1), 0, 0);
    CHECK_REL(cgam_separation_bound_log(5, 1e9, -1), -1e9 - log(4), 1e-15);
    CHECK_REL(cgam_separation_bound_log(1000001, 1, 50), -1e6 * exp(-50), 1e-12);
    for (double epsilon = 1e-12; epsilon < 1;
         epsilon = epsilon < 0.1 ? epsilon * 7 : epsilon + 0.1) {
        double gap = cgam_separation_threshold(40, 2.5, epsilon);
        CHECK_CLOSE(-expm1(cgam_separation_bound_log(40, 2.5, gap)), epsilon,
                    1e-13 * epsilon + 1e-16);
    }
}

/* (A - 1) beta gap against 1 by whole numbers, where doubles round on both sides of it. */
TEST(a_margin_at_its_edge_is_decided_exactly)
{
    __extension__ typedef unsigned __int128 wide;
    cgam_rng rng = cgam_rng_stream(17, 0);
    int above = 0, hidden = 0;
    for (int k = 0; k < 20000; k++) {
        uint64_t a = 1 + 2 * (uint64_t)cgam_rng_below(&rng, 1 << 19),
                 b = 1 + 2 * (uint64_t)cgam_rng_below(&rng, 1 << 19);
        wide one = (wide)1 << 92, product = (wide)a * b;
        uint64_t c = (uint64_t)(one / product) + (uint64_t)(k % 4) - 1;
        if (c >> 53) continue;
        double order = 1 + (double)a * 0x1p-20, beta = (double)b * 0x1p-20,
               gap = (double)c * 0x1p-52;
        bool want = product * c >= one;
        assert_int_equal(cgam_margin_exact(order, beta, gap), want);
        above += want;
        hidden += ((double)a * 0x1p-20 * beta * gap >= 1) != want;
    }
    assert_true(above > 1000 && hidden > 100);
    assert_true(cgam_margin_exact(3, 4, 1) && !cgam_margin_exact(3, 0.1, 1) &&
                !cgam_margin_exact(2, 1, NAN));
}

/* f(p) = p^k - ((1 - p) / (n - 1))^k is k beta gap at the bound, and at the proved one less by what rounding did. */
TEST(a_margin_bound_solves_its_equation)
{
    static const double orders[] = {1 + 1e-6, 1.25, 1.5, 2, 3};
    for (int k = 0; k < 5; k++)
        for (int64_t n = 2; n < 2000; n *= 7)
            for (double gap = -0.9; gap < 1; gap += 0.1) {
                double order = orders[k], beta = 1.5 * fmin(1 / (order - 1), 4),
                       m = (double)(n - 1);
                double p = cgam_margin_bound(n, order, beta, gap), low;
                long double by = (long double)order - 1, x = by * beta * gap;
                low = cgam_margin_bound_below(n, order, beta, gap);
                if (x >= 1) {
                    assert_true(p == 1);
                    continue;
                }
                if (x <= -powl(m, -by) * (1 + 1e-9L)) {
                    assert_true(p == 0 && low == 0);
                    continue;
                }
                CHECK_LE(low, p);
                long double f = expm1l(by * logl(p)) - expm1l(by * logl((1 - (long double)p) / m));
                if (p > 0) CHECK_CLOSE((double)(f - x), 0, 1e-12);
                if (low > 0) {
                    f = expm1l(by * logl(low)) - expm1l(by * logl((1 - (long double)low) / m));
                    assert_true(f < x);
                    CHECK_CLOSE((double)((x - f) / by), 0, 1e-9);
                }
                if (p > 1e-9) CHECK_CLOSE(low, p, 1e-9);
            }
    assert_true(isnan(cgam_margin_bound(3, 1.5, 1, NAN)) && cgam_margin_bound(1, 1.5, 1, -9) == 1);
    assert_true(cgam_margin_bound_below(1, 1.5, 1, -9) == 1);
    /* p^(1/2) = 2^-54 is less than what p^(1/2) - ((1 - p) / 4)^(1/2) is known by: nothing is proved */
    double edge = -0.5 + 0x1p-54, little = cgam_margin_bound(5, 1.5, 2, edge);
    assert_true(little > 0 && little < 1e-30 && cgam_margin_bound_below(5, 1.5, 2, edge) == 0);
    assert_true(cgam_margin_bound(5, 1.5, 2, -0.5) == 0);
    CHECK_REL(cgam_margin_bound(7, 1.5, 1, 0), 1.0 / 7, 1e-14);
}

TEST(gaps_are_differences_to_the_best_rival)
{
    const double b[] = {1, 3, 2}, s[] = {4, -1, 0};
    cgam_gaps g = cgam_separation_gaps(3, b, s, 0.5, 0);
    CHECK_CLOSE(g.raw, -2, 0);
    CHECK_CLOSE(g.gate, 4, 0);
    CHECK_CLOSE(g.gap, 0.5, 1e-15);
    CHECK_CLOSE(g.sum, 0, 1e-15);
    g = cgam_separation_gaps(1, b, s, 0.5, 0);
    assert_true(isnan(g.gap) && isnan(g.raw) && isnan(g.gate) && isnan(g.sum));
}

TEST(contraction_needs_a_positive_operator)
{
    CHECK_REL(cgam_contraction(2, 3, 0.5), 18, 2e-15);
    CHECK_LE(18, cgam_contraction(2, 3, 0.5)); /* rounded up */
    assert_true(isnan(cgam_contraction(2, 3, 0)) && isnan(cgam_contraction(2, 3, -1)));
    CHECK_CLOSE(cgam_contraction_lambda_max(2, -1), 0, 0);
    CHECK_REL(cgam_contraction(1.7, cgam_contraction_lambda_max(1.7, 0.3), 0.3), 1, 3e-15);
}

TEST(softmax_norm_of_known_distributions)
{
    const double half[] = {0.5, 0.5}, sure[] = {0, 1, 0}, flat[] = {0.2, 0.2, 0.2, 0.2, 0.2};
    const double pair[] = {0.9, 0.1}, one[] = {1}, padded[] = {0, 0.5, 0, 0.5};
    CHECK_CLOSE(cgam_softmax_norm(2, half), 0.5, 1e-15);
    CHECK_CLOSE(cgam_softmax_norm(4, padded), 0.5, 1e-15);
    CHECK_CLOSE(cgam_softmax_norm(3, sure), 0, 1e-15);
    CHECK_CLOSE(cgam_softmax_norm(5, flat), 0.2, 1e-15);
    CHECK_CLOSE(cgam_softmax_norm(2, pair), 0.18, 1e-15);
    CHECK_CLOSE(cgam_softmax_norm(1, one), 0, 0);
    CHECK_CLOSE(cgam_softmax_norm_bound(2, half), 0.5, 1e-15);
    CHECK_CLOSE(cgam_softmax_norm_bound(3, sure), 0, 0);
}

TEST(a_winner_needs_growth_and_an_input_that_tells)
{
    cgam_rng rng = cgam_rng_stream(14, 0);
    double *Z = dense_bank(&rng, DENSE_UNIT, 9, 3), *c = dense_normals(&rng, 3, 1);
    double *u = dense_room(9), *even = dense_room(9);
    dense_score(9, 3, Z, c, u);
    cgam_bank *bank = object_bank(env, 9, 3, Z);
    cgam_spectrum *sp = object_spectrum(env, bank);
    cgam_winner w;
    cgam_horizon h;
    CHECK_STATUS(env, cgam_supercritical_winner(sp, 0.9, u, NULL, &w));
    assert_int_equal(w.index, -1);
    assert_non_null(strstr(w.reason, "not above alpha_crit"));
    CHECK_STATUS(env, cgam_supercritical_winner(sp, 2, u, NULL, &w)); /* u = Z c, n > d */
    assert_int_equal(w.index, -1);
    assert_non_null(strstr(w.reason, "does not excite"));
    CHECK_CLOSE(w.gamma, 1, 1e-15);
    CHECK_STATUS(env, cgam_supercritical_horizon(sp, 2, 1, 3, 0.01, u, NULL, true, &h));
    assert_true(isinf(h.time) && h.winner == -1 && h.reason);
    CHECK_STATUS(env, cgam_supercritical_horizon(sp, 0.5, 1, 3, 0.01, u, NULL, true, &h));
    assert_true(isinf(h.time) && strstr(h.reason, "not above"));
    CHECK_STATUS(env, cgam_supercritical_winner(sp, 2, even, NULL, &w)); /* u = 0 */
    assert_int_equal(w.index, -1);
    double *s0 = dense_normals(&rng, 9, 1); /* a start that tells */
    CHECK_STATUS(env, cgam_supercritical_winner(sp, 2, u, s0, &w));
    assert_true(w.index >= 0 && !w.reason && w.gap > 0);
    CHECK_FAILS(env, CGAM_E_ARG, cgam_supercritical_horizon(sp, 2, 1, 3, 1, s0, NULL, true, &h));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_supercritical_horizon(sp, 2, 0, 3, 0.1, s0, NULL, true, &h));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_supercritical_horizon(sp, 2, 1, -3, 0.1, s0, NULL, true, &h));
    cgam_spectrum_free(sp);
    cgam_bank_free(bank);

    const double twice[] = {1, 0, 1, 0, 0, 1}; /* memories 0 and 1 are equal: the mode is (1, -1) */
    const double tie[] = {1, 1, 0}, tilt[] = {1, 2, 0};
    bank = object_bank(env, 3, 2, twice);
    sp = object_spectrum(env, bank);
    CHECK_STATUS(env, cgam_supercritical_winner(sp, 2, tie, NULL, &w));
    assert_int_equal(w.index, -1);
    CHECK_STATUS(env, cgam_supercritical_winner(sp, 2, tilt, NULL, &w));
    assert_int_equal(w.index, 1);
    CHECK_CLOSE(w.gap, 0.5, 1e-14); /* P_min tilt = (-1/2, 1/2, 0) */
    cgam_spectrum_free(sp);
    cgam_bank_free(bank);
    bank = object_bank(env, 1, 2, twice);
    sp = object_spectrum(env, bank);
    CHECK_STATUS(env, cgam_supercritical_winner(sp, 2, tilt, NULL, &w));
    assert_true(w.index == -1 && w.reason);
    cgam_spectrum_free(sp);
    cgam_bank_free(bank);
    dense_reset();
}

/* tau log1p(gamma x) / gamma -> tau x as gamma -> 0. */
TEST(the_horizon_has_a_limit_at_criticality)
{
    cgam_rng rng = cgam_rng_stream(14, 1);
    double *Z = dense_bank(&rng, DENSE_UNIT, 12, 4), *u = dense_normals(&rng, 12, 1);
    OWNED(cgam_bank) bank = object_bank(env, 12, 4, Z);
    OWNED(cgam_spectrum) sp = object_spectrum(env, bank);
    cgam_horizon at, near, far;
    CHECK_STATUS(env, cgam_supercritical_horizon(sp, 1, 2, 3, 0.05, u, NULL, true, &at));
    CHECK_STATUS(env, cgam_supercritical_horizon(sp, 1 + 1e-8, 2, 3, 0.05, u, NULL, true, &near));
    CHECK_STATUS(env, cgam_supercritical_horizon(sp, 1.5, 2, 3, 0.05, u, NULL, true, &far));
    assert_true(at.winner >= 0 && at.closed_form && at.time > 0);
    CHECK_REL(near.time, at.time, 1e-5);
    assert_true(far.time < at.time);
    double L = log(0.95 * 11 / 0.05);
    CHECK_REL(at.time, 2 * (L + 3 * at.rest) / (3 * at.gap), 1e-12);
    CHECK_STATUS(env, cgam_supercritical_horizon(sp, 1, 2, 3, 0.05, u, NULL, false, &near));
    CHECK_CLOSE(near.rest, 0, 0);
    CHECK_REL(near.time, 2 * L / (3 * at.gap), 1e-12);
    static const double needs[] = {2, 0.5, 0.01, -0.5}; /* L + 3 rest */
    for (int k = 0; k < 4; k++) {
        double delta = 11 / (11 + exp(needs[k] - 3 * at.rest));
        CHECK_STATUS(env, cgam_supercritical_horizon(sp, 1, 2, 3, delta, u, NULL, true, &near));
        CHECK_CLOSE(near.time, 2 * fmax(needs[k], 0) / (3 * at.gap), 1e-9);
    }
    /* 1 - delta below 1/n is met at once */
    CHECK_STATUS(env, cgam_supercritical_horizon(sp, 1.5, 2, 3, 0.95, u, NULL, false, &near));
    CHECK_CLOSE(near.time, 0, 0);
    dense_reset();
}

TEST(the_coupled_formula_says_where_it_holds)
{
    const double simplex[] = {1, 0, -0.5, sqrt(0.75), -0.5, -sqrt(0.75)}; /* 120 degrees apart */
    const double cross[] = {1, 0, -1, 0, 0, 1, 0, -1}; /* kernel of dimension 2, 1 among it */
    const double unit[] = {1, 0, 0, 1}, twice[] = {2, 0, 0, 2}, pair[] = {1, 0, 0.6, 0.8};
    const double skew[] = {1, 0, 0.6, 0.8, 0, 1};
    const struct {
        const double *Z;
        int64_t n;
        double beta, lambda;
        bool unit, balanced, weak, below_one;
        double mu_perp, alpha;
    } cases[] = {
        /* G has eigenvalues 0 on 1 and 3/2 twice: nothing below one is left orthogonal to 1 */
        {simplex, 3, 0.5, 2, true, true, true, false, 1.5, NAN},
        {cross, 4, 1, 2, true, true, true, true, 0, 1 - 2.0 / 4},
        {cross, 4, 0.5, 1, true, true, true, true, 0, 1 - 0.0625},
        {cross, 4, 2, 2, true, true, false, true, 0, NAN},
        {unit, 2, 0.5, 1, true, true, true, false, 1, NAN},
        {twice, 2, 0.5, 1, false, true, true, false, 4, NAN},
        {pair, 2, 2, 1, true, true, false, true, 0.4, NAN},
        {pair, 2, 0.5, 1, true, true, true, true, 0.4, (1 - 0.125) / 0.6},
        {skew, 3, 0.5, 1, true, false, true, true, NAN, NAN},
    };
    cgam_coupled_critical got;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        OWNED(cgam_bank) bank = object_bank(env, cases[k].n, 2, cases[k].Z);
        CHECK_STATUS(env, cgam_coupled_critical_find(bank, cases[k].beta, cases[k].lambda, &got));
        assert_int_equal(got.unit, cases[k].unit);
        if (!got.unit) continue;
        assert_int_equal(got.balanced, cases[k].balanced);
        if (!got.balanced) continue;
        assert_int_equal(got.weak, cases[k].weak);
        assert_int_equal(got.below_one, cases[k].below_one);
        CHECK_CLOSE(got.mu_perp_min, cases[k].mu_perp, 1e-14);
        assert_int_equal(isnan(got.alpha), isnan(cases[k].alpha));
        if (!isnan(got.alpha)) CHECK_CLOSE(got.alpha, cases[k].alpha, 1e-12);
        assert_true(isnan(got.alpha) || got.positive);
    }
    /* row sums of 16 that differ by 2e-9: balanced beside their size, not beside 1 */
    enum { MANY = 16 };
    double Z[MANY * (MANY + 1)] = {0};
    for (int i = 0; i < MANY; i++) {
        double angle = i ? 0.25 : 0.25 + 5e-10;
        Z[i * (MANY + 1)] = cos(angle);
        Z[i * (MANY + 1) + i + 1] = sin(angle);
    }
    OWNED(cgam_bank) bank = object_bank(env, MANY, MANY + 1, Z);
    CHECK_STATUS(env, cgam_coupled_critical_find(bank, 0.5, 1, &got));
    assert_true(got.unit && got.balanced);
}

TEST(a_free_context_margin_is_an_eigenvalue)
{
    cgam_rng rng = cgam_rng_stream(14, 2);
    for (int k = 0; k < 60; k++) {
        int64_t n = 1 + cgam_rng_below(&rng, 15), d = 1 + cgam_rng_below(&rng, 15);
        int64_t d_c = k % 2 ? 1 + cgam_rng_below(&rng, 6) : d;
        double *Z = dense_bank(&rng, (dense_kind)(k % DENSE_KINDS), n, d), alpha = 0.05;
        double *P = dense_normals(&rng, d * d_c, 0.4), *W = dense_room(n * d_c), got;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < d_c; j++)
                for (int64_t l = 0; l < d; l++)
                    W[i * d_c + j] += Z[i * d + l] * (k % 2 ? P[l * d_c + j] : l == j);
        const long double *inverse = dense_inverse(n, dense_gate(n, d, Z, alpha));
        double *M = dense_room(d_c * d_c);
        for (int64_t a = 0; a < d_c; a++)
            for (int64_t b = 0; b < d_c; b++) {
                long double sum = a == b;
                for (int64_t i = 0; i < n; i++)
                    for (int64_t j = 0; j < n; j++)
                        sum -= W[i * d_c + a] * inverse[i * n + j] * W[j * d_c + b];
                M[a * d_c + b] = (double)sum;
            }
        double want = dense_eigen(d_c, M, NULL)[0];
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        cgam_gate *gate = object_gate(env, bank, alpha);
        CHECK_STATUS(env, cgam_context_margin(gate, k % 2 ? P : NULL, d_c, &got));
        CHECK_CLOSE(got, want, 1e-11 * (1 + fabs(want)));
        if (cgam_bank_describe(bank).unit && k % 2 == 0) CHECK_LE(got, 1e-12);
        cgam_gate_free(gate);
        gate = object_gate(env, bank, 1e4);
        if (cgam_gate_describe(gate).regime != CGAM_SUBCRITICAL)
            CHECK_FAILS(env, CGAM_E_NOT_POSITIVE, cgam_context_margin(gate, NULL, d, &got));
        cgam_gate_free(gate);
        dense_reset();
    }
}

TEST(attention_is_a_recall_without_gates)
{
    cgam_rng rng = cgam_rng_stream(14, 3);
    int64_t m = 5, n = 17, d_k = 6, d_v = 4;
    double *Q = dense_normals(&rng, m * d_k, 1), *K = dense_normals(&rng, n * d_k, 1);
    double *V = dense_normals(&rng, n * d_v, 1), *got = dense_room(m * d_v), *r = dense_room(n);
    double *p = dense_room(n), *want = dense_room(d_v);
    CHECK_STATUS(env, cgam_attention(env, m, n, d_k, d_v, Q, K, V, got));
    for (int64_t i = 0; i < m; i++) {
        dense_score(n, d_k, K, Q + i * d_k, r);
        dense_softmax(n, 1 / sqrt(6), r, p);
        dense_combine(n, d_v, V, p, want);
        CHECK_CLOSE_ALL(got + i * d_v, want, d_v, 1e-14);
    }
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_attention(env, m, 0, d_k, d_v, Q, K, V, got));
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_attention(env, m, n, d_k, 0, Q, K, V, got));
    dense_reset();
}

TEST(hopfield_arguments_are_checked)
{
    const double Z[] = {1, 0, 0, 1}, xi[] = {0.9, 0.1};
    double out[2], energy, change;
    int64_t steps;
    cgam_hopfield_bounds bounds;
    cgam_bank *bank = object_bank(env, 2, 2, Z);
    CHECK_FAILS(env, CGAM_E_ARG, cgam_hopfield_energy(bank, 0, xi, &energy));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_hopfield_update(bank, -1, xi, out));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_hopfield_bound(bank, NAN, 0, xi, xi, &bounds));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_hopfield_bound(bank, 1, 2, xi, xi, &bounds));
    memcpy(out, xi, sizeof out);
    CHECK_STATUS(env, cgam_hopfield_update(bank, 3, out, out)); /* in place */
    double p = 1 / (1 + exp(-3 * 0.8));
    CHECK_CLOSE(out[0], p, 1e-15);
    CHECK_STATUS(env, cgam_hopfield_settle(bank, 8, xi, 1e-14, 1000, out, &steps, &change));
    assert_true(steps > 1 && steps < 1000 && change <= 1e-14);
    cgam_bank_free(bank);
    bank = object_bank(env, 1, 2, Z);
    CHECK_STATUS(env, cgam_hopfield_bound(bank, 1, 0, xi, Z, &bounds)); /* one memory: no rivals */
    CHECK_CLOSE(bounds.one_step, 0, 0);
    CHECK_CLOSE(bounds.retrieval, 0, 0);
    CHECK_CLOSE(bounds.separation, INFINITY, 0);
    cgam_bank_free(bank);
}

TEST_GROUP(set_up, tear_down)
