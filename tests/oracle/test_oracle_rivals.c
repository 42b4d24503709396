/* ctest: timeout=120
 * The rivals study against NumPy on the same draws, to the last trial: tests/oracle/study/rivals.py makes its own random
 * numbers, by the same generator, and its own mechanisms. */
#include "support/check.h"

#include "lab/synthetic/study.h"

#include <jansson.h>

#include "support/owned.h"

enum { MOST = 8 };

static double real(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static cgam_list list(const json_t *object, const char *key, double room[MOST])
{
    const json_t *array = json_object_get(object, key);
    for (size_t i = 0; i < json_array_size(array); i++)
        room[i] = json_number_value(json_array_get(array, i));
    return (cgam_list){room, (int64_t)json_array_size(array)};
}

static int compare(const json_t *got, const json_t *want)
{
    static const struct {
        const char *key;
        double allowed;
    } lists[] = {{"accuracy", 1e-12}, {"se", 1e-12}, {"readout_error", 1e-7}, {"neff", 1e-6}};
    int compared = 0;
    for (size_t i = 0; i < json_array_size(want); i++) {
        const json_t *w = json_array_get(want, i), *g = json_array_get(got, i);
        assert_string_equal(json_string_value(json_object_get(g, "name")),
                            json_string_value(json_object_get(w, "name")));
        CHECK_CLOSE(real(g, "strength"), real(w, "strength"), 0);
        CHECK_CLOSE(real(g, "second"), real(w, "second"), 0);
        for (int k = 0; k < 4; k++) {
            const json_t *a = json_object_get(g, lists[k].key),
                         *b = json_object_get(w, lists[k].key);
            for (size_t j = 0; j < json_array_size(b); j++, compared++)
                CHECK_CLOSE(json_number_value(json_array_get(a, j)),
                            json_number_value(json_array_get(b, j)), lists[k].allowed);
        }
    }
    return compared;
}

TEST(every_mechanism_agrees_in_every_setting)
{
    json_error_t error;
    json_t *want = json_load_file(check_source_path("tests/oracle/study/rivals.json"), 0, &error);
    if (!want) fail_msg("rivals.json: %s", error.text);
    double sigmas[MOST], lambdas[MOST], alphas[MOST];
    cgam_study_opts o = cgam_study_opts_default(CGAM_STUDY_RIVALS);
    o.seed = (uint64_t)real(want, "seed");
    o.banks = (int64_t)real(want, "banks");
    o.trials = (int64_t)real(want, "trials");
    o.n = (int64_t)real(want, "n");
    o.d = (int64_t)real(want, "d");
    o.groups = (int64_t)real(want, "groups");
    o.wrong = real(want, "wrong");
    o.sigma_q = list(want, "sigma_q", sigmas);
    o.lambda = list(want, "lambda", lambdas);
    o.alphas = list(want, "alpha", alphas);
    OWNED(cgam_env) env = NULL;
    assert_int_equal(cgam_env_new(NULL, &env), CGAM_OK);
    OWNED(cgam_study) s = NULL;
    CHECK_STATUS(env, cgam_study_run(env, &o, &s));
    const json_t *settings = json_object_get(want, "settings");
    int compared = compare(json_object_get(s->doc, "mechanisms"),
                           json_object_get(json_array_get(settings, 0), "mechanisms"));
    for (size_t i = 1; i < json_array_size(settings); i++)
        compared +=
            compare(json_object_get(json_array_get(json_object_get(s->doc, "settings"), i - 1),
                                    "mechanisms"),
                    json_object_get(json_array_get(settings, i), "mechanisms"));
    assert_int_equal(compared, 4 * 10 * 4 * 3);
    json_decref(want);
}
