/* The table of study parameters: each study takes a name once, its defaults are legal and are what
 * the options start with, texts read back, what is out of range is refused by name, and the summary
 * tells them all. Every row is tested because the tests loop over the table. */
#define ENV_THREADS 0
#include "lab/synthetic/study.h"
#include "support/one_env.h"

#include <cgam/cgam.h>
#include <jansson.h>

/* check(o, p) for every parameter p of every study, o being the study's defaults. */
static void each(void (*check)(cgam_study_opts *o, const cgam_study_param *p))
{
    for (int k = 0; k < CGAM_STUDY_KINDS; k++) {
        const cgam_study_param *p;
        for (int64_t i = 0; (p = cgam_study_param_at((cgam_study_kind)k, i)); i++) {
            cgam_study_opts o = cgam_study_opts_default((cgam_study_kind)k);
            check(&o, p);
        }
        assert_null(cgam_study_param_at((cgam_study_kind)k, 1000));
    }
    assert_null(cgam_study_param_at(CGAM_STUDY_KINDS, 0));
}

static void check_once(cgam_study_opts *o, const cgam_study_param *p)
{
    assert_ptr_equal(cgam_study_param_find(o->kind, p->name), p); /* the first of that name */
    assert_non_null(p->help);
    assert_true((p->words != NULL) == (p->kind == CGAM_FIELD_BOOL || p->kind == CGAM_FIELD_AXIS));
    assert_true((p->most > 0) == (p->kind == CGAM_FIELD_LIST));
    assert_true(p->list.count > 0 || p->list_words || p->kind != CGAM_FIELD_LIST);
}

TEST(a_name_is_one_parameter)
{
    each(check_once);
    assert_null(cgam_study_param_find(CGAM_STUDY_THEOREMS, "beta"));
    assert_true(cgam_study_param_find(CGAM_STUDY_COUPLED, "beta")->usual == 5);
}

static void check_default(cgam_study_opts *o, const cgam_study_param *p)
{
    int64_t count = cgam_study_param_count(p, o);
    assert_int_equal(count, p->kind == CGAM_FIELD_LIST   ? p->list.count
                            : p->kind == CGAM_FIELD_BANK ? 0
                                                         : 1);
    for (int64_t i = 0; i < count; i++) {
        double value = cgam_study_param_value(p, o, i);
        CHECK_CLOSE(value, p->kind == CGAM_FIELD_LIST ? p->list.values[i] : p->usual, 0);
        assert_true(value >= p->low && value <= p->high);
    }
}

TEST(options_start_with_the_defaults) { each(check_default); }

static void check_text(cgam_study_opts *o, const cgam_study_param *p)
{
    static const double some[] = {0.1, 1.0 / 3, 1e-7};
    char text[200], cut[4] = "";
    const char *at = text;
    if (p->kind == CGAM_FIELD_BANK) return;
    if (p->kind == CGAM_FIELD_LIST) cgam_study_param_set(p, (cgam_list){some, 3}, o);
    if (p->kind == CGAM_FIELD_REAL) cgam_study_param_set(p, (cgam_list){some + 1, 1}, o);
    size_t length = cgam_study_param_text(p, o, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_int_equal(cgam_study_param_text(p, o, cut, sizeof cut), length);
    assert_memory_equal(cut, text, length < 3 ? length : 3);
    if (p->words) {
        assert_string_equal(text, p->words[(int)p->usual]);
        return;
    }
    for (int64_t i = 0; i < cgam_study_param_count(p, o); i++) {
        char *end;
        CHECK_CLOSE(strtod(at, &end), cgam_study_param_value(p, o, i), 0);
        at = *end ? end + 1 : end;
    }
    assert_string_equal(at, "");
}

TEST(texts_read_back) { each(check_text); }

static void refuse(const cgam_study_opts *o, const cgam_study_param *p)
{
    cgam_study *study;
    char words[100];
    snprintf(words, sizeof words, "%s is ", p->name);
    CHECK_REFUSED(env, CGAM_E_ARG, words, cgam_study_run(env, o, &study));
    if (strstr(cgam_env_message(env), "--")) fail_msg("dashes: %s", cgam_env_message(env));
}

static void check_range(cgam_study_opts *o, const cgam_study_param *p)
{
    double below = p->low > 0 ? p->low / 2 : p->low - 1, above = 2 * p->high + 1;
    if (p->kind == CGAM_FIELD_BANK || p->kind == CGAM_FIELD_BOOL || strcmp(p->name, "seed") == 0)
        return;
    if (p->kind == CGAM_FIELD_AXIS) below = 4;
    cgam_study_param_set(p, (cgam_list){&below, 1}, o);
    refuse(o, p);
    cgam_study_param_set(p, (cgam_list){&above, 1}, o);
    refuse(o, p);
    if (p->kind == CGAM_FIELD_INT || p->kind == CGAM_FIELD_AXIS) return;
    double none = NAN;
    cgam_study_param_set(p, (cgam_list){&none, 1}, o);
    refuse(o, p);
}

TEST(what_is_out_of_range_is_refused_by_name) { each(check_range); }

TEST(the_summary_tells_all_parameters)
{
    for (int k = 0; k < CGAM_STUDY_KINDS; k++) {
        cgam_study_opts o = cgam_study_opts_default((cgam_study_kind)k);
        const cgam_study_param *p;
        char *text;
        CHECK_STATUS(env, cgam_study_trial(env, &o, 0, &text));
        json_t *doc = json_loads(text, 0, NULL), *all = json_object_get(doc, "parameters");
        int64_t count = 2; /* trials and seed stand outside */
        assert_string_equal(cgam_study_param_at(o.kind, 0)->name, "trials");
        assert_string_equal(cgam_study_param_at(o.kind, 1)->name, "seed");
        for (; (p = cgam_study_param_at((cgam_study_kind)k, count)); count++) {
            char key[64];
            snprintf(key, sizeof key, "%s", p->name);
            for (char *c = key; *c; c++)
                if (*c == '-') *c = '_';
            const json_t *value = json_object_get(all, key);
            if (!value) fail_msg("%s: no %s", cgam_studies[k].name, key);
            if (p->kind == CGAM_FIELD_REAL) CHECK_CLOSE(json_real_value(value), p->usual, 0);
        }
        assert_int_equal(json_object_size(all), count - 2);
        json_decref(doc);
        cgam_text_free(env, text);
    }
}

/* An axis is a list of the study that has it. */
TEST(axes_are_lists_of_the_map)
{
    for (int k = 0; cgam_axes[k]; k++) {
        const cgam_study_param *p = cgam_study_param_find(CGAM_STUDY_PHASE, cgam_axes[k]);
        assert_true(p && p->kind == CGAM_FIELD_LIST);
    }
}

TEST_GROUP(set_up, tear_down)
