/* Recall in both modes against the formulas written out, and everything a result says about it. */
#include "unit/memory/answer.h"

#include "num/cpu/widen.h"

#include "support/owned.h"

/* Z P c, W c or Z c by the mode of k; sets opts and returns c. */
static double *draw_context(cgam_rng *rng, int k, int64_t n, int64_t d, const double *Z,
                            cgam_recall_opts *opts, double *u)
{
    int64_t d_c = 1 + cgam_rng_below(rng, 12);
    if (k % 4 == 0) return NULL;
    if (k % 4 == 1) {
        double *c = dense_normals(rng, d, 1);
        dense_score(n, d, Z, c, u);
        return c;
    }
    double *c = dense_normals(rng, d_c, 1),
           *M = dense_normals(rng, (k % 4 == 2 ? d : n) * d_c, 0.5);
    opts->d_c = d_c;
    if (k % 4 == 2) {
        double *v = dense_room(d);
        dense_score(d, d_c, M, c, v);
        dense_score(n, d, Z, v, u);
        opts->P = M;
    } else {
        dense_score(n, d_c, M, c, u);
        opts->W = M;
    }
    return c;
}

TEST(first_order_is_a_solve_and_a_sum)
{
    cgam_rng rng = cgam_rng_stream(9, 0);
    for (int k = 0; k < 400; k++) {
        int64_t n = 1 + cgam_rng_below(&rng, 40), d = 1 + cgam_rng_below(&rng, 40);
        double *Z = dense_bank(&rng, (dense_kind)(k % DENSE_KINDS), n, d), *u = dense_room(n);
        cgam_recall_opts opts = cgam_recall_opts_default();
        double *c = draw_context(&rng, k / DENSE_KINDS, n, d, Z, &opts, u);
        double *q = dense_normals(&rng, d, 1), *b = dense_room(n), *s = dense_room(n);
        opts.alpha = k % 9 == 0 ? 0 : dense_between(&rng, 0, 2) * dense_critical(n, d, Z);
        opts.beta = dense_between_log(&rng, 0.1, 30);
        opts.lambda = k % 11 == 0 ? 0 : dense_between_log(&rng, 0.1, 5);
        double *A = dense_gate(n, d, Z, opts.alpha);
        const double *eta = dense_eigen(n, A, NULL);
        double closest = INFINITY, norm = fmax(fabs(eta[0]), fabs(eta[n - 1]));
        for (int64_t i = 0; i < n; i++) closest = fmin(closest, fabs(eta[i]));
        if (closest > 1e-4) {
            int64_t target = k % 3 == 0 ? cgam_rng_below(&rng, n) : -1;
            OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
            answer a = run(bank, &opts, q, c, target >= 0 ? &target : NULL);
            dense_solve(n, A, u, s);
            dense_score(n, d, Z, q, b);
            double size = 1;
            for (int64_t i = 0; i < n; i++) size = fmax(size, fabs(s[i]));
            double allowed = 1e-13 * norm / closest * size;
            CHECK_CLOSE_ALL(a.s, s, n, allowed);
            for (int64_t i = 0; i < n; i++)
                CHECK_CLOSE(a.r[i], b[i] + opts.lambda * s[i], 1e-13 + opts.lambda * allowed);
            check_measures(n, b, &a, opts.beta, target, 1e-13 + opts.lambda * allowed);
            double *readout = dense_room(d);
            dense_combine(n, d, Z, a.p, readout);
            CHECK_CLOSE_ALL(a.readout, readout, d, 1e-14);
            assert_int_equal(a.result.end, CGAM_END_DIRECT);
            assert_int_equal(a.result.iterations, 0);
            assert_true(isnan(a.result.energy_start) && isnan(a.result.change));
        }
        dense_reset();
    }
}

TEST(coupled_is_the_fixed_point)
{
    cgam_rng rng = cgam_rng_stream(9, 1);
    for (int k = 0; k < 400; k++) {
        int64_t n = 1 + cgam_rng_below(&rng, 30), d = 1 + cgam_rng_below(&rng, 30);
        double *Z = dense_bank(&rng, (dense_kind)(k % DENSE_KINDS), n, d), *u = dense_room(n);
        cgam_recall_opts opts = cgam_recall_opts_default();
        double *c = draw_context(&rng, k / DENSE_KINDS, n, d, Z, &opts, u);
        double *q = dense_normals(&rng, d, 1), *b = dense_room(n), *p = dense_room(n);
        opts.mode = CGAM_COUPLED;
        opts.alpha = k % 9 == 0 ? 0 : dense_between(&rng, 0, 0.98) * dense_critical(n, d, Z);
        opts.beta = dense_between_log(&rng, 0.1, 20);
        double *A = dense_gate(n, d, Z, opts.alpha), eta = dense_eigen(n, A, NULL)[0];
        /* contraction between 0 and 0.9, so that there is one fixed point to compare with */
        opts.lambda = k % 11 == 0 ? 0 : sqrt(2 * eta * dense_between(&rng, 0.05, 0.9) / opts.beta);
        const long double *inverse = dense_inverse(n, A);
        dense_score(n, d, Z, q, b);
        CHECK_LE(dense_coupled(n, inverse, opts.beta, opts.lambda, b, u, NULL, 1e-18, 2000, p),
                 1e-18);
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        answer a = run(bank, &opts, q, c, NULL);
        assert_int_equal(a.result.end, CGAM_END_CONVERGED);
        CHECK_LE(a.result.change, opts.tol);
        double far =
            0; /* as far as the certificate says, but for the rounding of A in the reference */
        for (int64_t i = 0; i < n; i++) far += (a.p[i] - p[i]) * (a.p[i] - p[i]);
        assert_true(a.result.p_error_proved);
        CHECK_LE(sqrt(far), a.result.p_error + 1e-15 / eta);
        CHECK_LE(a.result.p_error, 1e-8 / eta); /* small.c bounds the feedback without a pass */
        double scale = 1, *s = dense_room(n);
        for (int64_t i = 0; i < n; i++) {
            long double sum = 0;
            for (int64_t j = 0; j < n; j++)
                sum += inverse[i * n + j] * (u[j] + (long double)opts.lambda * p[j]);
            s[i] = (double)sum;
            scale = fmax(scale, fabs(s[i]));
        }
        CHECK_CLOSE_ALL(a.s, s, n, 1e-11 * scale / eta * (1 + opts.lambda));
        for (int64_t i = 0; i < n; i++)
            CHECK_CLOSE(a.r[i], b[i] + opts.lambda * a.s[i], 1e-13 * (1 + opts.lambda * scale));
        check_measures(n, b, &a, opts.beta, -1,
                       1e-13 + opts.lambda * 1e-11 * scale / eta * (1 + opts.lambda));
        CHECK_CLOSE(a.result.energy_rise, 0, 1e-13 * (1 + fabs(a.result.energy_end)));
        CHECK_LE(a.result.energy_end,
                 a.result.energy_start + 1e-13 * (1 + fabs(a.result.energy_end)));
        /* the energies are those of the theory function at s = A^-1 u and at the s returned */
        OWNED(cgam_gate) gate = object_gate(env, bank, opts.alpha);
        double energy, *s0 = dense_room(n);
        dense_solve(n, A, u, s0);
        CHECK_STATUS(env,
                     cgam_coupled_energy(gate, opts.beta, opts.lambda, b, u, s0, &energy, NULL));
        double size = 1e-11 * (1 + fabs(energy) + scale * scale);
        CHECK_CLOSE(a.result.energy_start, energy, size);
        CHECK_STATUS(env,
                     cgam_coupled_energy(gate, opts.beta, opts.lambda, b, u, a.s, &energy, NULL));
        CHECK_CLOSE(a.result.energy_end, energy, size);
        dense_reset();
    }
}

/* Storage types and normalising only change the rows; the recall is that of the widened rows. */
TEST(stored_types_recall_as_their_widened_rows)
{
    cgam_rng rng = cgam_rng_stream(9, 2);
    for (int k = 0; k < 48; k++) {
        int64_t n = k % 2 ? 50 : 12, d = k % 2 ? 9 : 20;
        cgam_dtype dtype = (cgam_dtype)(k / 2 % 4);
        double *Z = dense_bank(&rng, DENSE_NORMS, n, d), *data = dense_room(n * d);
        cgam_narrow(dtype, Z, n * d, data);
        cgam_widen(dtype, data, n * d, Z);
        cgam_bank_opts how = {.normalize = k / 8 % 2};
        OWNED(cgam_bank) stored = NULL;
        OWNED(cgam_bank) wide = NULL;
        CHECK_STATUS(env, cgam_bank_new(env, data, dtype, n, d, &how, &stored));
        if (how.normalize) dense_normalize(n, d, Z);
        wide = object_bank(env, n, d, Z);
        cgam_recall_opts opts = cgam_recall_opts_default();
        opts.mode = k % 3 ? CGAM_COUPLED : CGAM_FIRST;
        opts.alpha = 0.1;
        opts.lambda = 0.5;
        double *q = dense_normals(&rng, d, 1), *c = dense_normals(&rng, d, 1);
        answer a = run(stored, &opts, q, c, NULL), b = run(wide, &opts, q, c, NULL);
        CHECK_CLOSE_ALL(a.p, b.p, n, 1e-12);
        CHECK_CLOSE_ALL(a.r, b.r, n, 1e-12);
        CHECK_CLOSE_ALL(a.readout, b.readout, d, 1e-12);
        dense_reset();
    }
}

/* A large bank is gone over in f32 while p is far from its fixed point, which must not show in the
 * end: the same rows stored in double, where there is no such thing, lead to the same place. */
TEST(beginning_in_f32_leads_to_the_same_place)
{
    enum { N = 2700, D = 100 };
    cgam_rng rng = cgam_rng_stream(9, 4);
    for (int k = 0; k < 6; k++) {
        cgam_dtype dtype = k % 3 == 0 ? CGAM_F32 : k % 3 == 1 ? CGAM_F16 : CGAM_BF16;
        double *Z = dense_bank(&rng, DENSE_UNIT, N, D), *data = dense_room(N * D);
        cgam_narrow(dtype, Z, N * D, data);
        cgam_widen(dtype, data, N * D, Z);
        OWNED(cgam_bank) stored = NULL;
        OWNED(cgam_bank) wide = object_bank(env, N, D, Z);
        CHECK_STATUS(env, cgam_bank_new(env, data, dtype, N, D, NULL, &stored));
        cgam_recall_opts opts = cgam_recall_opts_default();
        opts.mode = CGAM_COUPLED;
        opts.plain = true;
        opts.alpha = 0.02;
        opts.beta = k < 3 ? 20 : 8;
        opts.lambda = k < 3 ? 0.4 : 0.7;
        double *q = dense_normals(&rng, D, 0.05), *c = dense_normals(&rng, D, 0.05);
        for (int64_t j = 0; j < D; j++) q[j] += 0.3 * Z[5 * D + j];
        opts.max_iter = 1; /* one pass of each, to see that they are not the same */
        answer a = run(stored, &opts, q, c, NULL), b = run(wide, &opts, q, c, NULL);
        assert_true(memcmp(a.r, b.r, N * sizeof *a.r) != 0);
        CHECK_CLOSE_ALL(a.p, b.p, N, 1e-5 * b.result.p);
        opts.max_iter = 1000;
        a = run(stored, &opts, q, c, NULL);
        b = run(wide, &opts, q, c, NULL);
        assert_true(a.result.end == CGAM_END_CONVERGED && b.result.end == CGAM_END_CONVERGED);
        assert_true(a.result.iterations >= 3 && a.result.iterations <= b.result.iterations + 3);
        CHECK_CLOSE_ALL(a.p, b.p, N, 4e-12);
        CHECK_CLOSE_ALL(a.s, b.s, N, 1e-11);
        CHECK_CLOSE(a.result.energy_end, b.result.energy_end, 1e-12);
        CHECK_LE(a.result.energy_rise, 1e-13 * (1 + fabs(b.result.energy_end)));
        dense_reset();
    }
}

TEST(the_best_k_come_by_rank_and_ties_by_index)
{
    cgam_rng rng = cgam_rng_stream(9, 3);
    for (int k = 0; k < 300; k++) {
        int64_t n = 1 + cgam_rng_below(&rng, 60), d = 1 + cgam_rng_below(&rng, 4);
        double *Z = dense_room(n * d), *q = dense_room(d);
        for (int64_t i = 0; i < n * d; i++) Z[i] = (double)cgam_rng_below(&rng, 3); /* many ties */
        for (int64_t i = 0; i < d; i++) q[i] = 1;
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        OWNED(cgam_recall) plan = object_recall(env, bank, NULL);
        int64_t top = cgam_rng_below(&rng, n + 1), index[64];
        double p[64], log_p[64], p_alone[64], *all = dense_room(n), *r = dense_room(n);
        cgam_recall_in in = {.queries = 1, .q = q};
        cgam_recall_out out = {
            .top = top, .top_index = index, .top_p = p, .top_log_p = log_p, .p = all, .r = r};
        CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
        for (int64_t j = 0; j < top; j++) {
            int64_t rank = 0;
            for (int64_t i = 0; i < n; i++)
                rank += r[i] > r[index[j]] || (r[i] == r[index[j]] && i < index[j]);
            assert_int_equal(rank, j);
            CHECK_CLOSE(p[j], all[index[j]], 0);
            CHECK_CLOSE(exp(log_p[j]), p[j], 1e-13);
        }
        out = (cgam_recall_out){.top = top, .top_p = p_alone}; /* any pointer may be NULL */
        CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
        CHECK_CLOSE_ALL(p_alone, p, top, 1e-14); /* the one pass adds up in another order */
        dense_reset();
    }
}

TEST(the_easy_call_is_the_same_recall)
{
    cgam_rng rng = cgam_rng_stream(9, 9);
    double *Z = dense_bank(&rng, DENSE_NORMS, 15, 6), *q = dense_normals(&rng, 6, 1);
    double *c = dense_normals(&rng, 6, 1);
    OWNED(cgam_bank) bank = object_bank(env, 15, 6, Z);
    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.mode = CGAM_COUPLED;
    opts.alpha = 0.05;
    answer a = run(bank, &opts, q, c, NULL);
    cgam_result once;
    CHECK_STATUS(env, cgam_recall_once(bank, q, c, &opts, &once));
    assert_int_equal(once.winner, a.result.winner);
    assert_true(once.p == a.result.p && once.gap == a.result.gap &&
                once.energy_end == a.result.energy_end && once.iterations == a.result.iterations);
    CHECK_STATUS(env, cgam_recall_once(bank, q, NULL, NULL, &once));
    opts.alpha = -1;
    CHECK_FAILS(env, CGAM_E_ARG, cgam_recall_once(bank, q, c, &opts, &once));
    dense_reset();
}

TEST_GROUP(set_up, tear_down)
