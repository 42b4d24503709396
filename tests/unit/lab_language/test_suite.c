/* ctest: timeout=300
 * What a study and a suite of tasks are opened with, at its borders: numbers of shots, parts, folders; and memory that ends
 * while a study goes on from what it has kept. */
#include "lab/document.h"
#include "lab/language/study.h"
#include "parts.h"
#include "support/failing_alloc.h"
#include "support/models.h"
#include "support/one_env.h"

#include <sys/stat.h>

#include "support/owned.h"

static const char *model, *data, *kept, *tasks;

static int begin(void **state)
{
    model = model_file(200);
    kept = folder_file("kept");
    tasks = folder_file("tasks");
    assert_int_equal(mkdir(tasks, 0755), 0);
    char text[2048] = "";
    for (int i = 0; i < 40; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s\tfilm %d is %s\n",
                 i % 2 ? "positive" : "negative", i, i % 2 ? "good" : "bad");
    data = folder_write("d.tsv", text);
    return set_up(state);
}

/* Ends the test without libllama; once it is loaded the cache is another one, without a default model. */
static void need_model(void)
{
    cgam_lm_close(model_tiny(env, tiny_shape_default()));
    setenv("XDG_CACHE_HOME", folder_path(), 1);
}

static int end(void **state)
{
    unlink(kept);
    folder_clear("tasks");
    return tear_down(state);
}

static cgam_lm_study_opts options(const int64_t *shots, int64_t count)
{
    cgam_lm_study_opts opts = cgam_lm_study_opts_default();
    opts.model = model;
    opts.eval = data;
    opts.queries = 4;
    opts.shots = shots;
    opts.shots_count = count;
    return opts;
}

/* ---- A study -------------------------------------------------------------------------------- */
TEST_WITH(begin, end, shots_are_rising_numbers_from_zero)
{
    need_model();
    int64_t many[16];
    for (int i = 0; i < 16; i++) many[i] = i + 1;
    const struct {
        int64_t shots[4];
        int64_t count, want[4], wanted;
    } cases[] = {{{0}, 0, {0, 1, 4}, 3}, {{2, 1, 2, 0}, 4, {0, 1, 2}, 3}, {{3}, 1, {0, 3}, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cgam_lm_study_opts opts = options(cases[i].shots, cases[i].count);
        OWNED(cgam_lm_study) study = NULL;
        OWNED(cgam_lm_result) result = NULL;
        CHECK_STATUS(env, cgam_lm_study_open(env, &opts, &study));
        CHECK_STATUS(env, cgam_lm_study_capture(study, &result));
        const json_t *shots = json_object_get(result->doc, "shots");
        assert_int_equal(json_array_size(shots), cases[i].wanted);
        for (int64_t k = 0; k < cases[i].wanted; k++)
            assert_int_equal(json_integer_value(json_array_get(shots, (size_t)k)),
                             cases[i].want[k]);
    }
    cgam_lm_study *study;
    cgam_lm_study_opts opts = options(many, 16);
    CHECK_REFUSED(env, CGAM_E_ARG, "shots: at most 15 numbers",
                  cgam_lm_study_open(env, &opts, &study));
    opts = options((const int64_t[]){1, -2}, 2);
    CHECK_REFUSED(env, CGAM_E_ARG, "shots: -2 is negative", cgam_lm_study_open(env, &opts, &study));
    assert_null(study);
    CHECK_REFUSED(env, CGAM_E_NOT_FOUND, "cgam lm get", cgam_lm_study_open(env, NULL, &study));
}

static void hear(void *user, const cgam_progress_at *at) { snprintf(user, 64, "%s", at->phase); }

TEST_WITH(begin, end, a_part_is_one_of_those_there_are)
{
    need_model();
    static const int64_t one = 1;
    char heard[64] = "";
    cgam_lm_study_opts opts = options(&one, 1);
    OWNED(cgam_lm_study) study = NULL;
    cgam_lm_result *result = NULL;
    opts.parts = 1U << CGAM_LM_NEFF | 1U << CGAM_LM_PROBE;
    opts.progress = (cgam_progress){hear, heard};
    CHECK_STATUS(env, cgam_lm_study_open(env, &opts, &study));
    CHECK_REFUSED(env, CGAM_E_ARG, "invalid study part 7",
                  cgam_lm_study_part(study, CGAM_LM_EXPERIMENTS, &result));
    assert_null(result);
    CHECK_STATUS(env, cgam_lm_study_part(study, CGAM_LM_PROBE, &result));
    assert_non_null(strstr(heard, "probe 2/2: "));
    cgam_lm_result_free(result);
    CHECK_STATUS(env, cgam_lm_study_part(study, CGAM_LM_STEER, &result)); /* not one of its own */
    assert_null(strstr(heard, "steer"));
    cgam_lm_result_free(result);
}

/* With all that it tells, from nothing or from what an earlier one has kept. */
static int run_kept(cgam_env *on, void *arg)
{
    const bool *anew = arg;
    static const int64_t one = 1;
    char heard[64] = "";
    cgam_lm_study_opts opts = options(&one, 1);
    OWNED(cgam_lm_study) study = NULL;
    OWNED(cgam_lm_result) result = NULL;
    opts.parts = 1U << CGAM_LM_NEFF;
    opts.progress = (cgam_progress){hear, heard};
    opts.resume = kept;
    if (*anew) unlink(kept);
    TRY(cgam_lm_study_open(on, &opts, &study));
    TRY(run_all_parts(study, &result));
    return CGAM_OK;
}

TEST_WITH(begin, end, memory_may_end_in_a_study_that_goes_on)
{
    need_model();
    bool anew = true;
    assert_true(check_every_place(run_kept, &anew) > 20);
    anew = false;
    assert_int_equal(run_kept(env, &anew), CGAM_OK);
    assert_true(check_every_place(run_kept, &anew) > 0);
}

/* ---- A suite ---------------------------------------------------------------------------------- */
static void task(const char *name, const char *text)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", tasks, name);
    FILE *f = fopen(path, "wb"); /* too many for folder_write */
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static const char words[] =
    "[{\"input\": \"film\", \"output\": \"good\"}, {\"input\": \"a\", \"output\": \"bad\"}, "
    "{\"input\": \"the\", \"output\": \"is\"}, {\"input\": \"is\", \"output\": \"the\"}, "
    "{\"input\": \"good\", \"output\": \"a\"}, {\"input\": \"bad\", \"output\": \"film\"}]";

TEST_WITH(begin, end, a_suite_is_a_folder_of_tasks)
{
    need_model();
    static const int64_t one = 1;
    cgam_lm_inject_opts inject = cgam_lm_inject_opts_default();
    cgam_lm_study_opts opts = options(&one, 1);
    cgam_lm_result *result;
    inject.layers = &one;
    inject.layers_count = 1;
    for (int train = 0; train < 2; train++) {
        opts.eval = train ? NULL : data;
        opts.train = train ? data : NULL;
        CHECK_REFUSED(env, CGAM_E_ARG, "give suite or data",
                      cgam_lm_inject_suite(env, &opts, tasks, &inject, &result));
    }
    opts.train = NULL;
    CHECK_REFUSED(env, CGAM_E_NOT_FOUND, "suite: no .json in ",
                  cgam_lm_inject_suite(env, &opts, tasks, &inject, &result));
    /* what is no task is passed over, and one that cannot be asked says why */
    task("b.json", words);
    task(".hidden.json", "{}");
    task("notes.txt", "{}");
    task("c.json", "[{\"input\": \"film\", \"output\": \"good\"}]");
    task("a.json", words);
    CHECK_STATUS(env, cgam_lm_inject_suite(env, &opts, tasks, &inject, &result));
    const json_t *list = json_object_get(result->doc, "tasks");
    assert_int_equal(json_array_size(list), 3);
    assert_string_equal(cgam_json_get_text(json_array_get(list, 0), "task"), "a.json");
    assert_non_null(strstr(cgam_json_get_text(json_array_get(list, 2), "reason"), "too few"));
    const json_t *a = json_object_get(json_array_get(list, 0), "shots");
    assert_true(json_equal(a, json_object_get(json_array_get(list, 1), "shots")));
    cgam_lm_result_free(result);
    task("d.json", "{]");
    CHECK_REFUSED(env, CGAM_E_FORMAT, "d.json",
                  cgam_lm_inject_suite(env, &opts, tasks, &inject, &result));
    CHECK_REFUSED(env, CGAM_E_NOT_FOUND, "cgam lm get",
                  cgam_lm_inject_suite(env, NULL, tasks, NULL,
                                       &result)); /* no model is named, and none was fetched */
    for (int i = 0; i < 257; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d.json", i);
        task(name, words);
    }
    CHECK_REFUSED(env, CGAM_E_ARG, "suite: more than 256 tasks",
                  cgam_lm_inject_suite(env, &opts, tasks, &inject, &result));
    assert_null(result);
}

TEST_WITH(begin, end, the_shipped_suite_asks_every_shipped_task)
{
    need_model();
    static const int64_t one = 1;
    cgam_lm_inject_opts inject = cgam_lm_inject_opts_default();
    cgam_lm_study_opts opts = options(&one, 1);
    OWNED(cgam_lm_result) result = NULL;
    opts.eval = NULL;
    inject.layers = &one;
    inject.layers_count = 1;
    inject.no_replace = true;
    CHECK_STATUS(env, cgam_lm_inject_suite(env, &opts, "shipped", &inject, &result));
    const json_t *list = json_object_get(result->doc, "tasks");
    size_t n = 0;
    for (; cgam_dataset_tasks[n]; n++) {
        const json_t *asked = json_array_get(list, n);
        assert_string_equal(cgam_json_get_text(asked, "task"), cgam_dataset_tasks[n]);
        if (!json_object_get(asked, "reason"))
            assert_string_equal(cgam_json_get_text(asked, "dataset"), cgam_dataset_tasks[n]);
    }
    assert_int_equal(json_array_size(list), n);
}
