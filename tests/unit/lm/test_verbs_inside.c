/* ctest: timeout=300
 * The lm verbs that look into a model or change what it does inside, on a tiny model. */
#include "unit/lm/verbs.h"

static const char *file_at(const char *name)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void a_lens_shows_every_token_after_every_layer(void **state)
{
    (void)state;
    need_model();
    json_t *doc =
        ask("lm lens --model m.gguf --prompt 'the capital of France is' --compare 'a film' "
            "--top 3 --exact --out lens");
    const json_t *views[] = {doc, json_object_get(doc, "compare")};
    for (int v = 0; v < 2; v++) {
        size_t tokens = json_array_size(json_object_get(views[v], "tokens"));
        assert_true(tokens > 2 && json_array_size(json_object_get(views[v], "layers")) == 4);
        for (size_t l = 0; l < 4; l++)
            for (size_t t = 0; t < tokens; t++) {
                const json_t *top =
                    json_array_get(json_array_get(json_object_get(views[v], "top"), l), t);
                assert_int_equal(json_array_size(top), 3);
                double kl = json_number_value(
                    json_array_get(json_array_get(json_object_get(views[v], "kl_final"), l), t));
                int64_t rank = json_integer_value(
                    json_array_get(json_array_get(json_object_get(views[v], "rank_final"), l), t));
                assert_true(kl >= 0 && rank >= 0 && rank < tiny_vocab());
                if (l == 3) assert_true(kl == 0 && rank == 0);
            }
    }
    json_decref(doc);
    assert_int_equal(access(file_at("lens/lens_compare.csv"), R_OK), 0);
    refuse(2, "top is 1000, the vocabulary has", "",
           "lm lens --model m.gguf --prompt x --top 1000");
    refuse(2, "tokens, the model's context is 200", "",
           "lm lens --model m.gguf --prompt \"$(printf 'film %.0s' $(seq 300))\"");
    refuse(2, "--prompt is missing", "", "lm lens --model m.gguf");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lens_shows_every_token_after_every_layer),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
