/* A recall must not depend on the order of the memories, a rotation of their space, or changes of
 * scale. Scales that are powers of two keep every bit. */
#include "support/one_env.h"

#include "support/owned.h"

typedef struct answer {
    cgam_result result;
    double *p, *s, *r, *readout;
} answer;

static answer run(int64_t n, int64_t d, const double *Z, const double *q, const double *c,
                  const cgam_recall_opts *opts)
{
    answer a = {
        .p = dense_room(n), .s = dense_room(n), .r = dense_room(n), .readout = dense_room(d)};
    OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
    OWNED(cgam_recall) plan = object_recall(env, bank, opts);
    cgam_recall_in in = {.queries = 1, .q = q, .c = c};
    cgam_recall_out out = {
        .results = &a.result, .p = a.p, .s = a.s, .r = a.r, .readout = a.readout};
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
    return a;
}

static double *scaled(int64_t count, const double *x, double factor)
{
    double *y = dense_room(count);
    for (int64_t i = 0; i < count; i++) y[i] = factor * x[i];
    return y;
}

static void same_bits(const double *x, const double *y, int64_t n)
{
    assert_memory_equal(x, y, (size_t)n * sizeof *x);
}

typedef struct setting {
    int64_t n, d;
    double *Z, *q, *c;
    cgam_recall_opts opts;
} setting;

static setting draw(cgam_rng *rng, int k)
{
    setting x = {.n = 1 + cgam_rng_below(rng, 25), .d = 1 + cgam_rng_below(rng, 25)};
    x.Z = dense_bank(rng, (dense_kind)(k % DENSE_KINDS), x.n, x.d);
    x.q = dense_normals(rng, x.d, 1);
    x.c = dense_normals(rng, x.d, 1);
    x.opts = cgam_recall_opts_default();
    x.opts.mode = k % 2 ? CGAM_COUPLED : CGAM_FIRST;
    x.opts.alpha = dense_critical(x.n, x.d, x.Z) * dense_between(rng, 0.05, 0.9);
    x.opts.beta = dense_between_log(rng, 0.3, 5);
    x.opts.lambda = dense_between_log(rng, 0.1, 1);
    return x;
}

TEST(permuting_memories_permutes_results)
{
    cgam_rng rng = cgam_rng_stream(21, 0);
    for (int k = 0; k < check_trials(200); k++) {
        setting x = draw(&rng, k);
        int64_t n = x.n, d = x.d, order[32];
        double *Z = dense_room(n * d);
        for (int64_t i = 0; i < n; i++) order[i] = i;
        for (int64_t i = n - 1; i > 0; i--) {
            int64_t j = cgam_rng_below(&rng, i + 1), swap = order[i];
            order[i] = order[j];
            order[j] = swap;
        }
        for (int64_t i = 0; i < n; i++)
            memcpy(Z + i * d, x.Z + order[i] * d, (size_t)d * sizeof *Z);
        answer a = run(n, d, x.Z, x.q, x.c, &x.opts), b = run(n, d, Z, x.q, x.c, &x.opts);
        for (int64_t i = 0; i < n; i++) {
            CHECK_CLOSE(b.p[i], a.p[order[i]], 1e-9);
            CHECK_CLOSE(b.s[i], a.s[order[i]], 1e-9 * (1 + fabs(b.s[i])));
            CHECK_CLOSE(b.r[i], a.r[order[i]], 1e-9 * (1 + fabs(b.r[i])));
        }
        CHECK_CLOSE_ALL(b.readout, a.readout, d, 1e-9);
        CHECK_REL(b.result.neff_entropy, a.result.neff_entropy, 1e-8);
        if (a.result.gap > 1e-6) assert_int_equal(order[b.result.winner], a.result.winner);
        dense_reset();
    }
}

TEST(rotating_the_space_changes_nothing)
{
    cgam_rng rng = cgam_rng_stream(21, 1);
    for (int k = 0; k < check_trials(200); k++) {
        setting x = draw(&rng, k);
        int64_t n = x.n, d = x.d;
        double *Z = scaled(n * d, x.Z, 1), *q = scaled(d, x.q, 1), *c = scaled(d, x.c, 1);
        for (int64_t turn = 0; turn + 1 < d; turn++) { /* plane rotations */
            double angle = dense_between(&rng, 0, 6), co = cos(angle), si = sin(angle);
            for (int64_t i = 0; i < n + 2; i++) {
                double *row = i < n ? Z + i * d : i == n ? q : c, left = row[turn];
                row[turn] = co * left - si * row[turn + 1];
                row[turn + 1] = si * left + co * row[turn + 1];
            }
        }
        answer a = run(n, d, x.Z, x.q, x.c, &x.opts), b = run(n, d, Z, q, c, &x.opts);
        CHECK_CLOSE_ALL(b.p, a.p, n, 1e-9);
        for (int64_t i = 0; i < n; i++) CHECK_CLOSE(b.s[i], a.s[i], 1e-9 * (1 + fabs(a.s[i])));
        dense_reset();
    }
}

/* (2 Z, q / 2, c / 2, alpha / 4) is the same recall: b, u and alpha G stay. (Not to the bit where
 * norms are equal: then a norm of 1 is taken as 1 exactly, and one of 2 as it comes out.) */
TEST(scaling_memories_against_query_and_penalty)
{
    cgam_rng rng = cgam_rng_stream(21, 2);
    for (int k = 0; k < check_trials(200); k++) {
        static const dense_kind unequal[] = {DENSE_GAUSS, DENSE_NORMS, DENSE_ZEROS};
        setting x = draw(&rng, (int)unequal[k % 3]);
        cgam_recall_opts opts = x.opts;
        opts.mode = k % 2 ? CGAM_COUPLED : CGAM_FIRST;
        opts.alpha /= 4;
        x.opts.mode = opts.mode;
        answer a = run(x.n, x.d, x.Z, x.q, x.c, &x.opts);
        answer b = run(x.n, x.d, scaled(x.n * x.d, x.Z, 2), scaled(x.d, x.q, 0.5),
                       scaled(x.d, x.c, 0.5), &opts);
        same_bits(a.p, b.p, x.n);
        same_bits(a.s, b.s, x.n);
        same_bits(a.r, b.r, x.n);
        same_bits(scaled(x.d, a.readout, 2), b.readout, x.d);
        assert_int_equal(a.result.iterations, b.result.iterations);
        dense_reset();
    }
}

/* Only beta r counts: first order with (2 beta, q / 2, c / 2) halves r and s and keeps p. */
TEST(scaling_temperature_against_scores)
{
    cgam_rng rng = cgam_rng_stream(21, 3);
    for (int k = 0; k < check_trials(200); k++) {
        setting x = draw(&rng, 2 * k);
        cgam_recall_opts opts = x.opts;
        opts.beta *= 2;
        answer a = run(x.n, x.d, x.Z, x.q, x.c, &x.opts);
        answer b = run(x.n, x.d, x.Z, scaled(x.d, x.q, 0.5), scaled(x.d, x.c, 0.5), &opts);
        same_bits(a.p, b.p, x.n);
        same_bits(a.s, scaled(x.n, b.s, 2), x.n);
        same_bits(a.r, scaled(x.n, b.r, 2), x.n);
        if (x.n > 1) CHECK_CLOSE(a.result.gap, 2 * b.result.gap, 0);
        CHECK_CLOSE(a.result.log_p, b.result.log_p, 0);
        dense_reset();
    }
}

/* With feedback lambda^2 A^-1 p in r: (4 beta, q / 4, c / 2, lambda / 2) quarters r, halves s. */
TEST(scaling_temperature_against_coupling)
{
    cgam_rng rng = cgam_rng_stream(21, 4);
    for (int k = 0; k < check_trials(200); k++) {
        setting x = draw(&rng, 2 * k + 1);
        cgam_recall_opts opts = x.opts;
        opts.beta *= 4;
        opts.lambda /= 2;
        answer a = run(x.n, x.d, x.Z, x.q, x.c, &x.opts);
        answer b = run(x.n, x.d, x.Z, scaled(x.d, x.q, 0.25), scaled(x.d, x.c, 0.5), &opts);
        same_bits(a.p, b.p, x.n);
        same_bits(a.s, scaled(x.n, b.s, 2), x.n);
        same_bits(a.r, scaled(x.n, b.r, 4), x.n);
        CHECK_CLOSE(a.result.energy_end, 4 * b.result.energy_end, 0);
        CHECK_CLOSE(a.result.contraction, b.result.contraction, 0);
        CHECK_CLOSE(a.result.fold_margin, b.result.fold_margin, 0);
        dense_reset();
    }
}

/* Adding one score to all changes no probability: q moved along what all memories share. */
TEST(a_common_score_cancels)
{
    cgam_rng rng = cgam_rng_stream(21, 5);
    for (int k = 0; k < check_trials(100); k++) {
        setting x = draw(&rng, k);
        int64_t n = x.n, d = x.d + 1;
        double *Z = dense_room(n * d), *q = dense_room(d), *moved = dense_room(d);
        for (int64_t i = 0; i < n; i++) {
            memcpy(Z + i * d, x.Z + i * x.d, (size_t)x.d * sizeof *Z);
            Z[i * d + x.d] = 1;
        }
        memcpy(q, x.q, (size_t)x.d * sizeof *q);
        memcpy(moved, q, (size_t)d * sizeof *q);
        moved[x.d] = 3;
        x.opts.alpha = 0;
        answer a = run(n, d, Z, q, NULL, &x.opts), b = run(n, d, Z, moved, NULL, &x.opts);
        CHECK_CLOSE_ALL(a.p, b.p, n, 1e-10);
        if (n > 1) CHECK_CLOSE(a.result.gap, b.result.gap, 1e-10);
        dense_reset();
    }
}

TEST_GROUP(set_up, tear_down)
