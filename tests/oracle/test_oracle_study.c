/* ctest: timeout=240
 * The studies against independent NumPy code: other random numbers, the same definitions, so means
 * agree within their standard errors together. 5 standard errors: some 250 comparisons of honest
 * numbers then fail once in ten thousand seeds. Data: tests/oracle/study/generate.py. */
#include "lab/table.h"
#include "support/check.h"

#include "lab/synthetic/study.h"

#include <jansson.h>

static const double ERRORS = 5;
static int compared;

static json_t *expected(void)
{
    static json_t *doc;
    json_error_t error;
    if (!doc) doc = json_load_file(check_source_path("tests/oracle/study/expect.json"), 0, &error);
    if (!doc) fail_msg("expect.json: %s", error.text);
    return doc;
}

static double real(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static double item(const json_t *array, size_t i)
{
    return json_number_value(json_array_get(array, i));
}

static cgam_env *new_env(void)
{
    cgam_env *env = NULL;
    assert_int_equal(cgam_env_new(NULL, &env), CGAM_OK);
    return env;
}

static double cell(const cgam_table *t, int64_t row, const char *column)
{
    int64_t at = cgam_table_column(t, column);
    assert_true(at >= 0);
    return t->cells[row * t->columns + at];
}

/* floor: what both may share as a bias, rounding for numbers without spread. */
static void agree(double got, double got_se, double want, double want_se, double floor)
{
    CHECK_CLOSE(got, want, ERRORS * hypot(got_se, want_se) + floor);
    compared++;
}

TEST(separation_agrees)
{
    const json_t *list = json_object_get(expected(), "separation");
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *want = json_array_get(list, k);
        const json_t *mean = json_object_get(want, "mean"), *se = json_object_get(want, "se");
        cgam_env *env = new_env();
        cgam_study_opts o = cgam_study_opts_default(CGAM_STUDY_SEPARATION);
        o.banks = 40;
        o.trials = 400;
        o.sigma_c_vector = k == 1;
        cgam_study *s;
        CHECK_STATUS(env, cgam_study_run(env, &o, &s));
        const cgam_table *t = cgam_study_find(s, "accuracy"), *g = cgam_study_find(s, "gaps");
        for (int64_t row = 0; row < t->rows; row++) {
            size_t i = (size_t)(row / 12), j = (size_t)(row % 12);
            /* at no noise accuracy is 1 in every bank: the errors are 0 and so is the difference */
            agree(cell(t, row, "accuracy"), cell(t, row, "accuracy_se"),
                  item(json_array_get(mean, i), j), item(json_array_get(se, i), j), 1e-3);
        }
        for (size_t i = 0; i < 6; i++)
            agree(cell(g, (int64_t)i, "median"), 3 * cell(g, (int64_t)i, "median_se"),
                  item(json_object_get(want, "median"), i),
                  item(json_object_get(want, "median_se"), i), 0);
        CHECK_CLOSE(cell(cgam_study_find(s, "points"), 0, "violations"), real(want, "violations"),
                    0);
        cgam_study_free(s);
        cgam_env_free(env);
    }
}

TEST_ENV(competition_agrees)
{
    const json_t *want = json_object_get(expected(), "competition");
    const json_t *alpha = json_object_get(want, "alpha");
    double alphas[64];
    size_t count = json_array_size(alpha);
    for (size_t i = 0; i < count; i++) alphas[i] = item(alpha, i);
    cgam_study_opts o = cgam_study_opts_default(CGAM_STUDY_COMPETITION);
    o.trials = 2000;
    o.alphas = (cgam_list){alphas, (int64_t)count};
    cgam_study *s;
    CHECK_STATUS(env, cgam_study_run(env, &o, &s));
    const cgam_table *t = cgam_study_find(s, "peak");
    for (size_t i = 0; i < count; i++)
        agree(cell(t, (int64_t)i, "peak_mean"), cell(t, (int64_t)i, "peak_se"),
              item(json_object_get(want, "peak_mean"), i),
              item(json_object_get(want, "peak_se"), i), 1e-12);
    cgam_study_free(s);
}

TEST_ENV(coupled_agrees)
{
    const json_t *curves = json_object_get(json_object_get(expected(), "coupled"), "curves");
    double lambdas[16], alphas[64];
    size_t count = json_array_size(curves), points = 0;
    for (size_t k = 0; k < count; k++) {
        const json_t *alpha = json_object_get(json_array_get(curves, k), "alpha");
        lambdas[k] = real(json_array_get(curves, k), "lambda");
        points = json_array_size(alpha);
        for (size_t i = 0; i < points; i++) alphas[i] = item(alpha, i);
    }
    cgam_study_opts o = cgam_study_opts_default(CGAM_STUDY_COUPLED);
    o.trials = 600;
    o.fold_trials = 0;
    o.lambda = (cgam_list){lambdas, (int64_t)count};
    o.alphas = (cgam_list){alphas, (int64_t)points};
    cgam_study *s;
    CHECK_STATUS(env, cgam_study_run(env, &o, &s));
    const cgam_table *t = cgam_study_find(s, "curves");
    for (int64_t row = 0; row < t->rows; row++) {
        const json_t *want = json_array_get(curves, (size_t)row / points);
        size_t i = (size_t)row % points;
        agree(cell(t, row, "peak_mean"), cell(t, row, "peak_se"),
              item(json_object_get(want, "peak_mean"), i),
              item(json_object_get(want, "peak_se"), i), 1e-5); /* the transient's own accuracy */
    }
    cgam_study_free(s);
}

TEST_ENV(capacity_agrees)
{
    static const double loads[] = {0.5, 4, 32}, lambdas[] = {0, 2};
    const json_t *rows = json_object_get(json_object_get(expected(), "capacity"), "rows");
    cgam_study_opts o = cgam_study_opts_default(CGAM_STUDY_CAPACITY);
    o.banks = 40;
    o.trials = 200;
    o.load = (cgam_list){loads, 3};
    o.lambda = (cgam_list){lambdas, 2};
    cgam_study *s;
    CHECK_STATUS(env, cgam_study_run(env, &o, &s));
    const cgam_table *t = cgam_study_find(s, "accuracy");
    for (int64_t row = 0; row < t->rows; row++) {
        const json_t *want = json_array_get(rows, (size_t)row);
        CHECK_CLOSE(cell(t, row, "load"), real(want, "load"), 0);
        CHECK_CLOSE(cell(t, row, "lambda"), real(want, "lambda"), 0);
        agree(cell(t, row, "accuracy"), cell(t, row, "accuracy_se"), real(want, "mean"),
              real(want, "se"), 0);
    }
    cgam_study_free(s);
}

TEST_ENV(timescale_agrees)
{
    static const double ratios[] = {0.1, 1, 10};
    const json_t *rows = json_object_get(json_object_get(expected(), "timescale"), "rows");
    cgam_study_opts o = cgam_study_opts_default(CGAM_STUDY_TIMESCALE);
    o.trials = 1500;
    o.ratio = (cgam_list){ratios, 3};
    cgam_study *s;
    CHECK_STATUS(env, cgam_study_run(env, &o, &s));
    const cgam_table *t = cgam_study_find(s, "ratios");
    for (int64_t row = 0; row < 3; row++) {
        const json_t *want = json_array_get(rows, (size_t)row);
        agree(cell(t, row, "accuracy"), cell(t, row, "accuracy_se"), real(want, "mean"),
              real(want, "se"), 0);
    }
    cgam_study_free(s);
}

int main(void)
{
    int failed = check_run_tests();
    json_decref(expected());
    return failed;
}
