/* Recall at its edges: one memory, no coupling, low temperature, little memory, wrong arguments, and
 * every way to end. */
#include "memory/gate.h"
#include "memory/results.h"
#include "unit/memory/answer.h"

#include "memory/engines.h"

#include "support/owned.h"

TEST(a_single_memory_is_always_recalled)
{
    const double Z[] = {3, -4}, q[] = {1, 1}, c[] = {0.5, 2};
    OWNED(cgam_bank) bank = object_bank(env, 1, 2, Z);
    for (int k = 0; k < 8; k++) {
        cgam_recall_opts opts = cgam_recall_opts_default();
        opts.mode = k % 2 ? CGAM_COUPLED : CGAM_FIRST;
        opts.alpha = k / 2 % 2 ? 0.3 : 1e6;
        opts.lambda = 2;
        opts.certify = k / 4;
        answer a = run(bank, &opts, q, c, NULL);
        CHECK_CLOSE(a.p[0], 1, 0);
        CHECK_CLOSE(a.s[0], -6.5 + (k % 2 ? 2 : 0), 1e-14);
        CHECK_CLOSE(a.r[0], -1 + 2 * a.s[0], 1e-14);
        CHECK_CLOSE(a.result.neff_entropy, 1, 0);
        CHECK_CLOSE(a.result.neff_ipr, 1, 0);
        CHECK_CLOSE(a.result.fold_margin, 1, 1e-9);
        assert_true(a.result.unique == 1 || 0.5 * opts.lambda * opts.lambda >= 1);
        check_measures(1, a.r, &a, 1, -1, 0);
    }
}

/* Norms whose product is beyond the range of double, at scores that are not: the bound of p is told and not called proved. */
TEST(what_cannot_be_proved_is_told_all_the_same)
{
    const double Z[] = {1e150, 1e-190, 1e150, 0}, q[] = {0, 1e190}, c[] = {0, 0};
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, Z);
    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.mode = CGAM_FIRST;
    opts.alpha = 0;
    opts.beta = 1;
    answer a = run(bank, &opts, q, c, NULL);
    CHECK_REL(a.result.gap, 1, 1e-14);
    CHECK_REL(a.result.p_lower_bound, 1 / (1 + exp(-1)), 1e-14);
    assert_false(a.result.p_lower_bound_proved);
    opts.fast = true; /* nothing is known of p, and its interval proves nothing either */
    a = run(bank, &opts, q, c, NULL);
    assert_true(a.result.p_from == 0 && a.result.p_to == 1);
    CHECK_REL(a.result.p_lower_bound, 1 / (1 + exp(-1)), 1e-14);
    assert_false(a.result.p_lower_bound_proved);
}

TEST(without_coupling_the_query_decides_alone)
{
    cgam_rng rng = cgam_rng_stream(9, 4);
    for (int k = 0; k < 60; k++) {
        int64_t n = 2 + cgam_rng_below(&rng, 30), d = 1 + cgam_rng_below(&rng, 30);
        double *Z = dense_bank(&rng, (dense_kind)(k % DENSE_KINDS), n, d), *b = dense_room(n);
        double *q = dense_normals(&rng, d, 1), *c = dense_normals(&rng, d, 1);
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        cgam_recall_opts opts = cgam_recall_opts_default();
        opts.mode = k % 2 ? CGAM_COUPLED : CGAM_FIRST;
        opts.alpha = 0.5 * dense_critical(n, d, Z);
        opts.lambda = 0;
        opts.certify = k % 3 == 0;
        answer a = run(bank, &opts, q, c, NULL);
        dense_score(n, d, Z, q, b);
        CHECK_CLOSE_ALL(a.r, b, n, 1e-13);
        assert_int_equal(a.result.unique, 1);
        CHECK_CLOSE(a.result.contraction, 0, 0);
        if (k % 2) CHECK_CLOSE(a.result.change, 0, 1e-15);
        check_measures(n, b, &a, opts.beta, -1, 1e-13);
        dense_reset();
    }
}

TEST(a_cold_memory_takes_the_best)
{
    cgam_rng rng = cgam_rng_stream(9, 5);
    for (int k = 0; k < 60; k++) {
        int64_t n = 2 + cgam_rng_below(&rng, 30), d = 2 + cgam_rng_below(&rng, 30);
        double *Z = dense_bank(&rng, DENSE_UNIT, n, d), *q = dense_normals(&rng, d, 1);
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        cgam_recall_opts opts = cgam_recall_opts_default();
        opts.mode = k % 2 ? CGAM_COUPLED : CGAM_FIRST;
        opts.beta = 1e6;
        opts.alpha = 0.3;
        opts.lambda = 0.5;
        opts.certify = k % 4 == 3;
        answer a = run(bank, &opts, q, NULL, NULL);
        CHECK_CLOSE(a.result.p, 1, 1e-9);
        CHECK_CLOSE(a.p[a.result.winner], 1, 1e-9);
        assert_true(a.result.end == CGAM_END_DIRECT || a.result.end == CGAM_END_CONVERGED);
        for (int64_t i = 0; i < n; i++) assert_true(a.p[i] >= 0 && a.p[i] <= 1);
        CHECK_CLOSE(a.result.neff_entropy, 1, 1e-6);
        dense_reset();
    }
}

TEST(a_recall_says_how_it_ended)
{
    cgam_rng rng = cgam_rng_stream(9, 6);
    int64_t n = 12, d = 5;
    double *Z = dense_bank(&rng, DENSE_UNIT, n, d), *q = dense_normals(&rng, d, 1);
    OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.mode = CGAM_COUPLED;
    opts.alpha = 0.5;
    opts.lambda = 0.6;
    opts.beta = 2;
    assert_int_equal(run(bank, &opts, q, NULL, NULL).result.end, CGAM_END_CONVERGED);
    opts.max_iter = 2;
    answer a = run(bank, &opts, q, NULL, NULL);
    assert_int_equal(a.result.end, CGAM_END_MAX_ITER);
    assert_int_equal(a.result.iterations, 2);
    assert_true(a.result.change > opts.tol);
    opts = cgam_recall_opts_default();
    opts.mode = CGAM_COUPLED;
    for (int64_t i = 0; i < d; i++) q[i] = 1e308; /* scores overflow */
    a = run(bank, &opts, q, NULL, NULL);
    assert_int_equal(a.result.end, CGAM_END_DIVERGED);
    CHECK_CLOSE_ALL(a.s, dense_room(n), n, 0); /* the gates have heard nothing but the context */
    opts.mode = CGAM_FIRST;
    assert_int_equal(run(bank, &opts, q, NULL, NULL).result.end, CGAM_END_DIVERGED);
    opts.alpha = 0.5;
    opts.certify = true; /* there is nothing to certify */
    assert_int_equal(run(bank, &opts, q, NULL, NULL).result.end, CGAM_END_DIVERGED);
    opts.mode = CGAM_COUPLED;
    assert_int_equal(run(bank, &opts, q, NULL, NULL).result.end, CGAM_END_DIVERGED);
    static const char *const names[] = {"direct", "converged", "max_iter", "stalled", "diverged"};
    for (int k = 0; k < 5; k++)
        assert_string_equal(cgam_word(cgam_end_words, (cgam_end)k), names[k]);
    assert_string_equal(cgam_word(cgam_mode_words, CGAM_FIRST), "first");
    assert_string_equal(cgam_word(cgam_mode_words, CGAM_COUPLED), "coupled");
    dense_reset();
}

/* However the integration of a flow ended, its recall has a word for it. */
TEST(an_end_of_a_flow_is_an_end_of_a_recall)
{
    static const struct {
        cgam_flow_end flow;
        cgam_end recall;
    } ends[] = {{CGAM_FLOW_STEADY, CGAM_END_CONVERGED},
                {CGAM_FLOW_HORIZON, CGAM_END_HORIZON},
                {CGAM_FLOW_DIVERGED, CGAM_END_DIVERGED},
                {CGAM_FLOW_STEPS, CGAM_END_MAX_ITER},
                {CGAM_FLOW_ROSE, CGAM_END_ROSE}};
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
        assert_int_equal(cgam_end_of_flow(ends[k].flow), ends[k].recall);
}

/* Zeros, which test_refusals.c takes for the defaults. */
TEST(zeros_that_are_no_defaults_are_named)
{
    const double Z[] = {1, 0, 0, 1, 1, 1};
    OWNED(cgam_bank) bank = object_bank(env, 3, 2, Z);
    const struct {
        cgam_recall_opts opts;
        cgam_status status;
        const char *words;
    } list[] = {{{.beta = 0, .max_iter = 1}, CGAM_E_ARG, "beta is 0"},
                {{.beta = 1, .max_iter = 0}, CGAM_E_ARG, "max-iter is 0"},
                {{.mode = CGAM_COUPLED, .alpha = 3, .beta = 1, .max_iter = 1},
                 CGAM_E_NOT_POSITIVE,
                 "0.70710678118654"}}; /* alpha_crit */
    for (size_t k = 0; k < sizeof list / sizeof list[0]; k++) {
        cgam_recall *plan;
        CHECK_REFUSED(env, list[k].status, list[k].words,
                      cgam_recall_new(bank, &list[k].opts, &plan));
        assert_null(plan);
    }
    cgam_recall *plan = object_recall(env, bank, NULL);
    CHECK_CLOSE(cgam_gate_describe(cgam_recall_gate(plan)).alpha, 0, 0);
    cgam_recall_free(plan);
    cgam_recall_free(NULL);
}

/* At alpha_crit itself coupled refuses, and the message has the number. */
TEST(criticality_is_refused_with_its_number)
{
    cgam_rng rng = cgam_rng_stream(9, 7);
    double *Z = dense_bank(&rng, DENSE_UNIT, 20, 4);
    OWNED(cgam_bank) bank = object_bank(env, 20, 4, Z);
    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.mode = CGAM_COUPLED;
    opts.alpha = 1;
    cgam_recall *plan;
    CHECK_REFUSED(env, CGAM_E_NOT_POSITIVE, "is critical, alpha_crit = 1",
                  cgam_recall_new(bank, &opts, &plan));
    opts.mode = CGAM_FIRST; /* while first order is defined there for u = Z c */
    double *q = dense_normals(&rng, 4, 1), *u = dense_room(20), *Gs = dense_room(20);
    answer a = run(bank, &opts, q, q, NULL);
    dense_score(20, 4, Z, q, u);
    dense_score(20, 20, dense_gate(20, 4, Z, 1), a.s, Gs);
    CHECK_CLOSE_ALL(Gs, u, 20, 1e-12);
    dense_reset();
}

/* Little memory: the same recall by conjugate gradients, or a refusal. */
TEST(little_memory_changes_the_way_not_the_result)
{
    cgam_rng rng = cgam_rng_stream(9, 8);
    for (int k = 0; k < 40; k++) {
        int64_t n = 2 + cgam_rng_below(&rng, 40), d = 1 + cgam_rng_below(&rng, 20);
        double *Z = dense_bank(&rng, DENSE_UNIT, n, d), *q = dense_normals(&rng, d, 1);
        double *c = dense_normals(&rng, d, 1);
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        cgam_recall_opts opts = cgam_recall_opts_default();
        opts.mode = k % 2 ? CGAM_COUPLED : CGAM_FIRST;
        opts.alpha = dense_between(&rng, 0.1, 0.9);
        opts.lambda = 0.4;
        answer a = run(bank, &opts, q, c, NULL);
        opts.memory_max = 1;
        answer b = run(bank, &opts, q, c, NULL);
        CHECK_CLOSE_ALL(b.p, a.p, n, 1e-11);
        CHECK_CLOSE_ALL(b.s, a.s, n, 1e-11);
        CHECK_LE(b.result.fold_margin, a.result.fold_margin + 1e-9);
        assert_int_equal(b.result.end, a.result.end);
        opts.alpha = 1.2;
        opts.mode = CGAM_FIRST;
        cgam_recall *plan;
        CHECK_REFUSED(env, CGAM_E_NOMEM, "MiB", cgam_recall_new(bank, &opts, &plan));
        dense_reset();
    }
}

TEST(words_and_values_lead_to_each_other)
{
    const struct {
        const char *const *words;
        int last;
    } tables[] = {{cgam_mode_words, CGAM_ANNEAL},
                  {cgam_end_words, CGAM_END_ROSE},
                  {cgam_regime_words, CGAM_SUPERCRITICAL},
                  {cgam_path_words, CGAM_PATH_LANES},
                  {cgam_transition_words, CGAM_TRANSITION_WINNER}};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (int k = 0; k <= tables[t].last + 1; k++) {
            const char *word = cgam_word(tables[t].words, k);
            int found = cgam_word_find(tables[t].words, word);
            assert_int_equal(found, k <= tables[t].last ? k : -1);
        }
    assert_int_equal(cgam_word_find(cgam_mode_words, "Coupled"), -1);
}

TEST_GROUP(set_up, tear_down)
