/* ctest: timeout=300
 * The lm verbs that look into a model or change what it does inside, on a tiny model. */
#include "unit/lab_language/verbs.h"

static const char *file_at(const char *name)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", folder_path(), name);
    return path;
}

TEST(a_lens_needs_a_prompt_that_fits)
{
    need_tiny_model();
    refuse(2, "top is 1000, the vocabulary has", "",
           "lm lens --model m.gguf --prompt x --top 1000");
    refuse(2, "tokens, the model's context is 200", "",
           "lm lens --model m.gguf --prompt \"$(printf 'film %.0s' $(seq 300))\"");
    refuse(2, "--prompt is missing", "", "lm lens --model m.gguf");
}

TEST(an_injection_compares_as_many_tokens_as_it_needs)
{
    need_tiny_model();
    refuse(2, "layers: 7, the model has 0 to 3", "",
           "lm inject " PROMPTS "--shots 2 --exact --layers 7");
    /* classes that begin alike are told apart by all their tokens, unasked */
    json_t *doc =
        ask("lm inject --model m.gguf --eval d.tsv --labels 'down=good film,up=good Paris' "
            "--queries 8 --shots 2 --exact --kinds add --layers 1");
    assert_string_equal(cgam_json_get_text(doc, "answer"), "sequence");
    json_decref(doc);
    doc = ask("lm inject " PROMPTS "--shots 2 --exact --kinds add --layers 1");
    assert_string_equal(cgam_json_get_text(doc, "answer"), "first");
    json_decref(doc);
    refuse(2, "vectors need demonstrations", "", "lm inject " PROMPTS "--shots 0 --exact");
}

TEST(a_suite_is_one_table)
{
    need_tiny_model();
    char text[4096];
    static const char *const words[] = {"Paris", "Rome", "France", "Italy"};
    static const char *const alike[] = {"good film", "good France", "good is", "good of"};
    for (int file = 0; file < 2; file++) {
        size_t used = 0;
        for (int i = 0; i < 20; i++)
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "%c{\"input\": \"the %d\", \"output\": \"%s\"}", i ? ',' : '[',
                                     i, (file ? words : alike)[i % 4]);
        snprintf(text + used, sizeof text - used, "]");
        mkdir(file_at("tasks"), 0755);
        folder_write(file ? "tasks/b.json" : "tasks/a.json", text);
    }
    json_t *doc =
        ask("lm inject --model m.gguf --suite tasks --exact --queries 6 --shots 2 --layers 2 "
            "--out suite");
    const json_t *tasks = json_object_get(doc, "tasks"), *b = json_array_get(tasks, 1);
    assert_int_equal(json_array_size(tasks), 2);
    assert_non_null(strstr(cgam_json_get_text(json_array_get(tasks, 0), "reason"), "first token"));
    assert_string_equal(cgam_json_get_text(b, "task"), "b.json");
    assert_int_equal(json_array_size(json_object_get(b, "shots")), 1);
    assert_int_equal(access(file_at("suite/suite.csv"), R_OK), 0);
    /* nothing of the task before is left */
    json_t *alone = ask("lm inject --model m.gguf --eval tasks/b.json --format pairs --exact "
                        "--queries 6 --shots 2 --layers 2");
    assert_true(json_equal(json_object_get(b, "shots"), json_object_get(alone, "shots")));
    json_decref(alone);
    json_decref(doc);
    refuse(2, "nowhere", "", "lm inject --model m.gguf --suite nowhere");
    refuse(2, "--layers: 9, the model has 0 to 3", "",
           "lm inject --model m.gguf --suite tasks --exact --queries 6 --shots 2 --layers 9");
    refuse(2, "--suite or data", "", "lm inject --model m.gguf --suite shipped --dataset facts");
    refuse(2, "--suite or --report", "", "lm inject --model m.gguf --suite shipped --report r");
}

TEST_GROUP(set_up, NULL)
