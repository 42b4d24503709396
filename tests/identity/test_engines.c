/* The studies have their own engine (SIMD lanes over many small banks, lab/synthetic/lanes.h), and so
 * does the lens (products in f32 over a vocabulary, lm/lens.c). Their results are recomputed, number by
 * number, by cgam_recall and by the fold finder, which share no code with them. */
#define ENV_THREADS 0
#include "lab/synthetic/study.h"
#include "lm/lens.h"
#include "support/one_env.h"

#include <cgam/cgam.h>
#include <jansson.h>

#include "support/owned.h"

enum { N = 64, D = 16 };

static double number(const json_t *doc, const char *key)
{
    const json_t *value = json_object_get(doc, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

/* An array of numbers, or of arrays of numbers, into x. */
static int64_t numbers(const json_t *array, double *x)
{
    int64_t count = 0;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *one = json_array_get(array, i);
        if (json_is_array(one)) count += numbers(one, x + count);
        else x[count++] = json_number_value(one);
    }
    return count;
}

static json_t *trial_of(const cgam_study_opts *o, int64_t trial)
{
    char *text;
    CHECK_STATUS(env, cgam_study_trial(env, o, trial, &text));
    json_t *doc = json_loads(text, 0, NULL);
    assert_non_null(doc);
    cgam_text_free(env, text);
    return doc;
}

/* One cell of a trial - target, q, c - recalled with the library. */
static void recall(const cgam_bank *bank, const json_t *cell, const cgam_recall_opts *opts,
                   cgam_result *result, double *s, double *r, double *p)
{
    double q[D], c[D];
    int64_t target = (int64_t)number(cell, "target");
    numbers(json_object_get(cell, "q"), q);
    numbers(json_object_get(cell, "c"), c);
    OWNED(cgam_recall) plan = NULL;
    cgam_recall_in in = {.queries = 1, .q = q, .c = c, .target = &target};
    cgam_recall_out out = {.results = result, .s = s, .r = r, .p = p};
    CHECK_STATUS(env, cgam_recall_new(bank, opts, &plan));
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
}

static void compare(const json_t *doc, const char *key, const double *want, int64_t n, double tol)
{
    double got[N];
    assert_int_equal(numbers(json_object_get(doc, key), got), n);
    CHECK_CLOSE_ALL(got, want, n, tol);
}

/* Mode first is the same sums in another order. Mode coupled ends where r changes by 1e-12, and the
 * library's Newton finish nearer to the point: at these sizes 1e-9 covers both. */
static void separation_in(bool coupled)
{
    cgam_study_opts o = cgam_study_opts_default(CGAM_STUDY_SEPARATION);
    static const double lambda[] = {0, 0.5, 1}, sigma_q[] = {0.4, 1.2};
    const double tol = coupled ? 1e-9 : 1e-12;
    o.trials = 12;
    o.n = 40;
    o.coupled = coupled;
    o.lambda = (cgam_list){lambda, 3};
    o.sigma_q = (cgam_list){sigma_q, 2};
    for (int trial = 0; trial < 12; trial++) {
        json_t *doc = trial_of(&o, trial), *cells = json_object_get(doc, "cells");
        double Z[N * D], s[N], r[N], p[N];
        cgam_bank *bank;
        assert_int_equal(numbers(json_object_get(doc, "Z"), Z), o.n * o.d);
        CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, o.n, o.d, NULL, &bank));
        for (size_t k = 0; k < json_array_size(cells) * 3; k++) {
            const json_t *cell = json_array_get(cells, k / 3);
            const json_t *one = json_array_get(json_object_get(cell, "recalls"), k % 3);
            cgam_recall_opts opts = cgam_recall_opts_default();
            cgam_result want;
            opts.mode = coupled ? CGAM_COUPLED : CGAM_FIRST;
            opts.alpha = o.alpha;
            opts.beta = o.beta;
            opts.lambda = number(one, "lambda");
            recall(bank, cell, &opts, &want, s, r, p);
            assert_int_equal(json_is_true(json_object_get(one, "right")),
                             want.winner == (int64_t)number(cell, "target"));
            CHECK_CLOSE(number(one, "gap"), want.gap, tol * (1 + fabs(want.gap)));
            CHECK_CLOSE(number(one, "log_p"), want.log_p, tol * (1 + fabs(want.log_p)));
            CHECK_CLOSE(number(cell, "gap_raw"), want.gap_raw, 1e-12);
            if (!coupled) CHECK_CLOSE(number(cell, "gap_gate"), want.gap_gate, 1e-12);
            compare(one, "r", r, o.n, 10 * tol);
            compare(one, "p", p, o.n, tol);
            if (opts.lambda > 0) compare(one, "s", s, o.n, 10 * tol);
        }
        cgam_bank_free(bank);
        json_decref(doc);
    }
}

TEST(separation_is_the_first_order_recall) { separation_in(false); }

TEST(separation_is_the_coupled_recall) { separation_in(true); }

/* Gates by the spectrum of each bank against the plan's factorization. */
TEST(grids_are_the_first_order_recall)
{
    static const double loads[] = {0.5, 3}, alphas[] = {0, 0.4, 0.9}, lambda[] = {0, 2};
    cgam_study_opts o = cgam_study_opts_default(CGAM_STUDY_CAPACITY);
    o.trials = 6;
    o.banks = 2;
    o.load = (cgam_list){loads, 2};
    o.alphas = (cgam_list){alphas, 3};
    o.lambda = (cgam_list){lambda, 2};
    for (int k = 0; k < 12 * 2 * 3 * 2; k++) {
        static json_t *doc;
        if (k % 12 == 0) doc = trial_of(&o, k / 12);
        const json_t *load = json_array_get(json_object_get(doc, "loads"), k / 6 % 2);
        const json_t *cell = json_array_get(json_object_get(load, "cells"), 0);
        const json_t *at = json_array_get(json_object_get(cell, "alphas"), k / 2 % 3);
        const json_t *one = json_array_get(json_object_get(at, "recalls"), k % 2);
        double Z[N * D], s[N], r[N], p[N];
        int64_t n = numbers(json_object_get(load, "Z"), Z) / o.d;
        cgam_bank *bank;
        cgam_recall_opts opts = cgam_recall_opts_default();
        cgam_result want;
        opts.alpha = number(at, "alpha");
        opts.lambda = number(one, "lambda");
        CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, n, o.d, NULL, &bank));
        recall(bank, cell, &opts, &want, s, r, p);
        assert_int_equal(json_is_true(json_object_get(one, "right")),
                         want.winner == (int64_t)number(cell, "target"));
        CHECK_CLOSE(number(one, "gap"), want.gap, 1e-11 * (1 + fabs(want.gap)));
        compare(at, "s", s, n, 1e-11);
        cgam_bank_free(bank);
        if (k % 12 == 11) json_decref(doc);
    }
}

/* The coupled study gives every gate the input 1/n and no query: as a recall, q = 0 with W = 1/n.
 * Below its own fold a trial's plain iteration ends at the point of the recall; its fold is that of
 * the finder to the tolerance that both are given. */
TEST(coupled_is_the_coupled_recall)
{
    static const double lambda[] = {0.5, 0.8}, alphas[] = {0, 0.2, 0.35};
    cgam_study_opts o = cgam_study_opts_default(CGAM_STUDY_COUPLED);
    int folded = 0;
    o.n = 24;
    o.trials = 6;
    o.tol = 1e-13;
    o.max_iter = 20000;
    o.lambda = (cgam_list){lambda, 2};
    o.alphas = (cgam_list){alphas, 3};
    for (int trial = 0; trial < 6; trial++) {
        OWNED(json_t) doc = trial_of(&o, trial);
        double Z[N * D], W[N], s[N], r[N], p[N], none[N] = {0};
        const double q[D] = {0}, c[1] = {1};
        OWNED(cgam_bank) bank = NULL;
        numbers(json_object_get(doc, "Z"), Z);
        for (int64_t i = 0; i < o.n; i++) W[i] = 1 / (double)o.n;
        CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, o.n, o.d, NULL, &bank));
        for (int k = 0; k < 6; k++) {
            const json_t *curve = json_array_get(json_object_get(doc, "curves"), (size_t)k / 3);
            const json_t *point = json_array_get(json_object_get(curve, "points"), (size_t)k % 3);
            const json_t *fold = json_object_get(curve, "fold");
            cgam_recall_opts opts = cgam_recall_opts_default();
            cgam_recall *plan;
            cgam_recall_in in = {.queries = 1, .q = q, .c = c};
            cgam_recall_out out = {.s = s, .r = r, .p = p};
            opts.mode = CGAM_COUPLED;
            opts.alpha = number(point, "alpha");
            opts.beta = o.beta;
            opts.lambda = lambda[k / 3];
            opts.W = W;
            opts.d_c = 1;
            CHECK_STATUS(env, cgam_recall_new(bank, &opts, &plan));
            CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
            cgam_recall_free(plan);
            if (!json_is_number(fold) || opts.alpha < 0.95 * json_number_value(fold)) {
                compare(point, "p", p, o.n, 1e-9);
                compare(point, "s", s, o.n, 1e-9);
            }
            if (k % 3) continue;
            cgam_fold want;
            CHECK_STATUS(env, cgam_fold_find(bank, opts.lambda, o.beta, none, W,
                                             0.9999 * number(doc, "alpha_crit"), 1e-6, &want));
            assert_int_equal(json_is_number(fold), !isnan(want.alpha));
            if (json_is_number(fold)) CHECK_CLOSE(json_number_value(fold), want.alpha, 1e-4);
            folded += json_is_number(fold);
        }
    }
    assert_true(folded > 0);
}

/* Tokens are memories, a state is a query, beta is 1, and there is no context. The lens multiplies in
 * f32: 48 terms of size 1/7 leave some 1e-6 on scores of size 1. */
TEST(the_lens_is_a_recall_over_the_vocabulary)
{
    enum { VOCAB = 700, WIDTH = 48, STATES = 9 };
    static float Z[VOCAB * WIDTH], H[STATES * WIDTH], gain[WIDTH];
    static double q[STATES * WIDTH];
    cgam_rng rng = cgam_rng_stream(11, 1);
    for (int i = 0; i < VOCAB * WIDTH; i++) Z[i] = (float)(cgam_rng_normal(&rng) / 7);
    for (int i = 0; i < STATES * WIDTH; i++) q[i] = H[i] = (float)cgam_rng_normal(&rng);
    for (int i = 0; i < WIDTH; i++) gain[i] = 1;
    int32_t token[STATES];
    int64_t target[STATES];
    for (int i = 0; i < STATES; i++) target[i] = token[i] = (int32_t)cgam_rng_below(&rng, VOCAB);
    cgam_lens_parts parts = {.vocab = VOCAB, .width = WIDTH, .Z = Z, .gain = gain};
    OWNED(cgam_lens) lens = NULL;
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_recall) plan = NULL;
    cgam_recall_opts opts = cgam_recall_opts_default();
    cgam_spread spread[STATES];
    cgam_answer answer[STATES];
    cgam_result want[STATES];
    opts.lambda = 0;
    CHECK_STATUS(env, cgam_lens_make(env, &parts, &lens));
    CHECK_STATUS(env, cgam_lens_spread(lens, CGAM_LENS_RAW, STATES, H, WIDTH, 0, NULL, spread));
    CHECK_STATUS(env,
                 cgam_lens_judge(lens, CGAM_LENS_RAW, STATES, H, WIDTH, token, 0, NULL, answer));
    CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F32, VOCAB, WIDTH, NULL, &bank));
    CHECK_STATUS(env, cgam_recall_new(bank, &opts, &plan));
    cgam_recall_in in = {.queries = STATES, .q = q, .target = target};
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &(cgam_recall_out){.results = want}));
    for (int i = 0; i < STATES; i++) {
        assert_int_equal(spread[i].top, want[i].winner);
        CHECK_CLOSE(spread[i].log_entropy, log(want[i].neff_entropy), 1e-5);
        CHECK_CLOSE(spread[i].log_ipr, log(want[i].neff_ipr), 1e-5);
        CHECK_CLOSE(answer[i].log_p, want[i].log_p, 1e-5);
        assert_int_equal(answer[i].rank, want[i].focus_rank);
    }
}

TEST_GROUP(set_up, tear_down)
