/* ctest: timeout=120
 * The rivals study: its draws are those of figure 2, mechanisms that are the same are the same to the bit, none beats Bayes'
 * rule, and strengths are chosen on one half of the banks and counted on the other. */
#include "lab/synthetic/study.h"
#include "lab/table.h"

#include "support/check.h"
#include "support/owned.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

static const double noise[] = {0.4, 1.2};

static cgam_study_opts some(void)
{
    static const double lambdas[] = {1, 4}, alphas[] = {0.1};
    cgam_study_opts o = cgam_study_opts_default(CGAM_STUDY_RIVALS);
    o.trials = 12;
    o.banks = 16;
    o.lambda = (cgam_list){lambdas, 2};
    o.alphas = (cgam_list){alphas, 1};
    o.sigma_q = (cgam_list){noise, 2};
    return o;
}

/* The first row of a mechanism in a table with a row for each sigma_q. */
static int64_t row_of(const cgam_table *t, const char *mechanism)
{
    int64_t i = 0;
    while (i < t->rows && strcmp(t->labels[i], mechanism) != 0) i++;
    assert_true(i < t->rows);
    return i;
}

/* Does a mechanism of that strength get a trial of `plain` right, at the k-th sigma_q? */
static bool right_in(json_t *doc, size_t k, const char *mechanism, double strength)
{
    json_t *plain = json_array_get(json_object_get(doc, "settings"), 0), *one;
    json_t *cell = json_array_get(json_object_get(plain, "cells"), k);
    size_t i;
    json_array_foreach(
        json_object_get(cell, "options"), i,
        one) if (strcmp(json_string_value(json_object_get(one, "mechanism")), mechanism) == 0 &&
                 json_number_value(json_object_get(one, "strength")) ==
                     strength) return json_is_true(json_object_get(one, "right"));
    fail_msg("no %s of strength %g", mechanism, strength);
    return false;
}

TEST(the_draws_are_those_of_separation)
{
    OWNED(cgam_env) env = NULL;
    assert_int_equal(cgam_env_new(NULL, &env), CGAM_OK);
    cgam_study_opts o = some(), first = cgam_study_opts_default(CGAM_STUDY_SEPARATION);
    static const double lambdas[] = {0, 1, 4};
    o.banks = first.banks = 4;
    first.trials = o.trials;
    first.sigma_q = o.sigma_q;
    first.lambda = (cgam_list){lambdas, 3};
    OWNED(cgam_study) s = NULL;
    CHECK_STATUS(env, cgam_study_run(env, &first, &s));
    double counted[2][3] = {{0}};
    for (int trial = 0; trial < 48; trial++) {
        char *text;
        CHECK_STATUS(env, cgam_study_trial(env, &o, trial, &text));
        json_t *doc = json_loads(text, 0, NULL);
        for (size_t k = 0; k < 2; k++) {
            counted[k][0] += right_in(doc, k, "hopfield", 0);
            counted[k][1] += right_in(doc, k, "gates-first", 1);
            counted[k][2] += right_in(doc, k, "gates-first", 4);
        }
        json_decref(doc);
        cgam_text_free(env, text);
    }
    const cgam_table *t = cgam_study_find(s, "accuracy");
    for (int64_t i = 0; i < 3; i++)
        for (int64_t k = 0; k < 2; k++)
            CHECK_CLOSE(cgam_cell(t, i * 2 + k, "accuracy"), counted[k][i] / 48, 1e-12);
}

TEST(experts_are_query_mixing_in_one_space)
{
    OWNED(cgam_env) env = NULL;
    assert_int_equal(cgam_env_new(NULL, &env), CGAM_OK);
    const cgam_study_opts o = some();
    OWNED(cgam_study) s = NULL;
    CHECK_STATUS(env, cgam_study_run(env, &o, &s));
    static const char *const same[] = {"accuracy", "wrong", "clusters"};
    for (int i = 0; i < 3; i++) {
        const cgam_table *t = cgam_study_find(s, same[i]);
        const double *a = t->cells + row_of(t, "query-mixing") * t->columns;
        const double *b = t->cells + row_of(t, "experts") * t->columns;
        const int64_t work = cgam_table_column(t, "work");
        for (int64_t k = 0; k < 2 * t->columns; k++)
            if (k % t->columns != work && !(isnan(a[k]) && isnan(b[k]))) CHECK_CLOSE(b[k], a[k], 0);
    }
    const cgam_table *t = cgam_study_find(s, "space");
    CHECK_LE(0.2, cgam_cell(t, row_of(t, "experts"), "accuracy") -
                      cgam_cell(t, row_of(t, "query-mixing"), "accuracy"));
}

TEST(none_beats_bayes)
{
    OWNED(cgam_env) env = NULL;
    assert_int_equal(cgam_env_new(NULL, &env), CGAM_OK);
    const cgam_study_opts o = some();
    OWNED(cgam_study) s = NULL;
    CHECK_STATUS(env, cgam_study_run(env, &o, &s));
    static const char *const settings[] = {"plain", "wrong", "space", "clusters"};
    const cgam_table *t = cgam_study_find(s, "overall");
    const int64_t bayes = row_of(t, "bayes");
    for (int k = 0; k < 4; k++)
        for (int64_t i = 0; i < t->rows; i++) {
            char se[40];
            snprintf(se, sizeof se, "%s_se", settings[k]);
            CHECK_LE(cgam_cell(t, i, settings[k]),
                     cgam_cell(t, bayes, settings[k]) + 4 * cgam_cell(t, bayes, se));
        }
}

/* A context that says nothing: whoever listens to it loses. */
TEST(an_empty_context_helps_nobody)
{
    OWNED(cgam_env) env = NULL;
    assert_int_equal(cgam_env_new(NULL, &env), CGAM_OK);
    cgam_study_opts o = some();
    o.sigma_c = 1e3;
    OWNED(cgam_study) s = NULL;
    CHECK_STATUS(env, cgam_study_run(env, &o, &s));
    const cgam_table *t = cgam_study_find(s, "overall");
    const double none = cgam_cell(t, row_of(t, "hopfield"), "plain");
    for (int64_t i = 0; i < t->rows; i++)
        CHECK_LE(cgam_cell(t, i, "plain"), none + 4 * cgam_cell(t, i, "plain_se"));
    CHECK_CLOSE(cgam_cell(t, row_of(t, "bayes"), "plain"), none, 0.02);
}

/* The strength is the best on the banks of even number, whatever the others say. */
TEST(strengths_are_chosen_on_one_half)
{
    OWNED(cgam_env) env = NULL;
    assert_int_equal(cgam_env_new(NULL, &env), CGAM_OK);
    const cgam_study_opts o = some();
    OWNED(cgam_study) s = NULL;
    CHECK_STATUS(env, cgam_study_run(env, &o, &s));
    const cgam_table *all = cgam_study_find(s, "strengths"), *t = cgam_study_find(s, "accuracy");
    const cgam_table *overall = cgam_study_find(s, "overall");
    for (int64_t rival = 0; rival < overall->rows; rival++) {
        const int64_t row = row_of(t, overall->labels[rival]);
        double most = -1, chosen = -1, counted = -1;
        for (int64_t i = 0; i < all->rows; i++) {
            if (strcmp(all->labels[i], overall->labels[rival]) != 0 ||
                cgam_cell(all, i, "setting") > 0)
                continue;
            const double second = cgam_cell(all, i, "second"), want = cgam_cell(t, row, "second");
            most = fmax(most, cgam_cell(all, i, "chosen_on"));
            if (cgam_cell(all, i, "strength") != cgam_cell(t, row, "strength") ||
                !(second == want || isnan(want)))
                continue;
            chosen = cgam_cell(all, i, "chosen_on");
            counted = cgam_cell(all, i, "counted");
        }
        CHECK_CLOSE(chosen, most, 0);
        CHECK_CLOSE(cgam_cell(overall, rival, "plain"), counted, 0);
    }
}
