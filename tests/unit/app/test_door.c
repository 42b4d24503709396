/* Verbs by name, options from JSON: the same documents and the same refusals as on the command line. */
#include "lab/document.h"
#include "support/failing_alloc.h"
#include "support/one_env.h"

#include <cgam/ask.h>
#include <cgam/io.h>
#include <cgam/recall.h>

TEST_WITH(set_up, tear_down, a_verb_answers_with_its_document)
{
    cgam_document answer;
    json_t *doc;
    CHECK_STATUS(env, cgam_ask(env, "version", NULL, NULL, &answer));
    CHECK_STATUS(env, cgam_json_parse(env, "answer", answer.text, strlen(answer.text), &doc));
    assert_string_equal(cgam_json_get_text(doc, "version"), cgam_version());
    assert_false(answer.negative);
    json_decref(doc);
    cgam_text_free(env, answer.text);
    CHECK_STATUS(env, cgam_ask(env, " help ", "{\"VERB\": [\"lm\", \"get\"]}", NULL, &answer));
    assert_non_null(strstr(answer.text, "libllama"));
    cgam_text_free(env, answer.text);
}

TEST_WITH(set_up, tear_down, what_is_wrong_is_named)
{
    static const struct {
        const char *verb, *options, *message;
        cgam_status status;
    } cases[] = {
        {"recal", NULL, "no verb 'recal'; did you mean recall?", CGAM_E_ARG},
        {"", NULL, "no verb ''", CGAM_E_ARG},
        {"a b c d e f", NULL, "no verb 'a'", CGAM_E_ARG},
        {"recall", NULL, "query is missing", CGAM_E_ARG},
        {"recall", "{\"bnk\": 1}", "bnk", CGAM_E_ARG},
        {"recall", "{\"bank\": \"Z\", \"query\": \"q\", \"alpha\": -1}", "alpha is -1", CGAM_E_ARG},
        {"recall", "{\"bank\"", "options:1", CGAM_E_FORMAT},
        {"recall", "[]", "one JSON object", CGAM_E_ARG},
        {"inspect", "{\"bank\": \"/nonexistent/Z.npy\"}", "/nonexistent/Z.npy", CGAM_E_NOT_FOUND},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cgam_document answer = {(char *)&answer, true};
        char copy[512];
        CHECK_REFUSED(env, cases[i].status, cases[i].message,
                      cgam_ask(env, cases[i].verb, cases[i].options, NULL, &answer));
        assert_null(answer.text);
        assert_false(answer.negative);
        snprintf(copy, sizeof copy, "%s", cgam_env_message(env));
        assert_string_equal(copy, cgam_env_message(env));
        snprintf(copy, 4, "%s", cgam_env_message(env));
        assert_int_equal(strlen(copy), strlen(cgam_env_message(env)) < 3 ? strlen(copy) : 3);
    }
}

TEST_WITH(set_up, tear_down, inspection_of_an_orthogonal_bank)
{
    const double Z[] = {2, 0, 0, 2};
    cgam_bank *bank = object_bank(env, 2, 2, Z);
    cgam_inspection in;
    CHECK_STATUS(env, cgam_bank_inspect(bank, 0.5, 4, 0.5, &in));
    assert_true(isinf(in.gate.critical.alpha) && in.gram.rank == 2);
    /* A = I: contraction beta lambda^2 / 2 = 1/2, largest lambda sqrt(2 / beta) */
    assert_true(in.contraction >= 0.5 && in.contraction < 0.5 + 1e-8 && in.unique);
    assert_true(fabs(in.lambda_unique_max - sqrt(0.5)) < 1e-8);
    CHECK_FAILS(env, CGAM_E_ARG, cgam_bank_inspect(bank, 0.5, 0, 1, &in));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_bank_inspect(bank, 0.5, 1, NAN, &in));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_bank_inspect(bank, -1, 1, 1, &in));
    cgam_bank_free(bank);
}

static int ask_version(cgam_env *on, void *arg)
{
    (void)arg;
    cgam_document answer;
    cgam_status status = cgam_ask(on, "version", "{\"threads\": 1}", NULL, &answer);
    cgam_text_free(on, answer.text);
    return status;
}

TEST(survives_every_failed_allocation) { check_every_allocation(ask_version, NULL); }

static json_t *ask(const char *verb, const char *options)
{
    cgam_document answer;
    json_t *doc;
    CHECK_STATUS(env, cgam_ask(env, verb, options, NULL, &answer));
    CHECK_STATUS(env, cgam_json_parse(env, "answer", answer.text, strlen(answer.text), &doc));
    cgam_text_free(env, answer.text);
    return doc;
}

/* Banks of every shape, alpha below, around and above alpha_crit, plain and normalised. */
TEST_WITH(set_up, tear_down, inspect_and_recall_agree_on_the_gates)
{
    static const int64_t shapes[][2] = {{2, 2},    {5, 3},     {3, 7},    {40, 8},
                                        {230, 12}, {300, 310}, {900, 560}};
    static const double parts[] = {0, 0.3, 1 - 1e-6, 1 - 1e-12, 1, 1 + 1e-12, 1 + 1e-6, 1.7};
    const char *same[] = {"regime", "alpha_crit", "alpha_crit_bounds", "eta_min"};
    cgam_rng rng = cgam_rng_stream(77, 0);
    for (int k = 0; k < 7; k++) {
        int64_t n = shapes[k][0], d = shapes[k][1];
        double *Z = dense_bank(&rng, (dense_kind)(k % DENSE_KINDS), n, d), crit = 1;
        const char *path = "test_door_gates.npy";
        CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_F64, 2, shapes[k], Z));
        CHECK_STATUS(env, cgam_npy_write(env, "test_door_q.npy", CGAM_F64, 1, &d, Z));
        for (int v = 0; v < (k < 6 ? 16 : 8); v += k < 6 ? 1 : 7) {
            char bank[200], options[400];
            snprintf(bank, sizeof bank, "{\"bank\": \"%s\", \"normalize\": %s, \"alpha\": %.17g",
                     path, v < 8 ? "false" : "true", parts[v % 8] * crit);
            snprintf(options, sizeof options, "%s}", bank);
            json_t *inspected = ask("inspect", options);
            snprintf(options, sizeof options,
                     "%s, \"query\": \"test_door_q.npy\", \"certify\": true}", bank);
            json_t *recalled = ask("recall", options);
            for (int j = 0; j < 4; j++) {
                const json_t *one = cgam_json_at(inspected, same[j]);
                assert_true(one && json_equal(one, cgam_json_at(recalled, same[j])));
            }
            double found = cgam_json_get_real(inspected, "alpha_crit");
            if (v % 8 == 0) crit = isnan(found) ? 1 : found;
            json_decref(inspected);
            json_decref(recalled);
        }
        remove(path);
        remove("test_door_q.npy");
        dense_reset();
    }
}
