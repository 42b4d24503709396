/* ctest: timeout=300
 * `lm gates` from outside, on a tiny model: its document, what it shares with the sweep, and what it
 * refuses. */
#include "unit/lab_language/verbs.h"

#include "support/owned.h"

TEST(gates_begin_with_the_sweep)
{
    need_tiny_model();
    json_t *doc = ask("lm gates " PROMPTS "--shots 1,3 --exact --store g.db --out gates");
    json_t *sweep = ask("lm sweep " PROMPTS "--shots 1,3 --exact --store g.db");
    double crit = cgam_json_get_real(doc, "alpha_crit");
    assert_string_equal(cgam_json_get_text(doc, "rows"), "raw");
    assert_true(crit > 0);
    assert_int_equal(json_array_size(json_object_get(doc, "shots")), 2);
    for (size_t k = 0; k < 2; k++) {
        const json_t *entry = json_array_get(json_object_get(doc, "shots"), k), *row;
        const json_t *best = json_array_get(json_object_get(sweep, "shots"), k);
        const json_t *grid = json_object_get(entry, "grid");
        size_t i;
        assert_true(json_array_size(grid) >= 16);
        row = json_array_get(grid, 0);
        assert_true(cgam_json_get_real(row, "alpha") == 0);
        assert_string_equal(cgam_json_get_text(row, "restricted_right"),
                            cgam_json_get_text(best, "best.restricted.right"));
        for (size_t h = 0; h < 2; h++) {
            const json_t *chosen =
                json_array_get(cgam_json_at(best, "best.restricted.held_out_choices"), h);
            const json_t *layers = json_array_get(json_object_get(entry, "layers"), h);
            assert_int_equal(cgam_json_get_int(layers, "context_layer"),
                             cgam_json_get_int(chosen, "context_layer"));
            assert_int_equal(cgam_json_get_int(layers, "query_layer"),
                             cgam_json_get_int(chosen, "query_layer"));
            CHECK_REL(cgam_json_nth(row, "lambdas", (int64_t)h),
                      cgam_json_get_real(chosen, "lambda"), 1e-5);
        }
        for (size_t over = 0; over < 2; over++) /* no answer changes by itself, nor by feedback */
            assert_true(cgam_json_get_real(json_array_get(grid, over), "argmax_changed") == 0);
        json_array_foreach(grid, i, row)
        {
            bool coupled = i % 2;
            assert_string_equal(cgam_json_get_text(row, "mode"), coupled ? "coupled" : "first");
            assert_true(cgam_json_get_real(row, "alpha") < crit);
            assert_true(cgam_json_get_real(row, "neff") >= 1);
            assert_true(isnan(cgam_json_get_real(row, "unique_share")) == !coupled);
            if (coupled) assert_true(cgam_json_get_real(row, "settled_share") == 1);
        }
    }
    json_decref(doc);
    json_decref(sweep);
    assert_int_equal(access(folder_file("gates/gates_spectrum.csv"), R_OK), 0);
}

TEST(modes_and_layers_are_the_callers)
{
    need_tiny_model();
    OWNED(json_t)
    doc = ask("lm gates " PROMPTS "--shots 2 --exact --modes coupled --alphas 0.02,0.01,0.02 "
              "--context-layer 3 --query-layer 2 --rows unit --store g.db");
    const json_t *entry = json_array_get(json_object_get(doc, "shots"), 0);
    const json_t *grid = json_object_get(entry, "grid"), *layers = json_object_get(entry, "layers");
    assert_int_equal(json_array_size(grid), 3);
    CHECK_CLOSE(cgam_json_get_real(json_array_get(grid, 2), "alpha"), 0.02, 0);
    CHECK_CLOSE(cgam_json_get_real(doc, "alpha_crit"), 1, 1e-9);
    for (size_t h = 0; h < 2; h++) {
        assert_int_equal(cgam_json_get_int(json_array_get(layers, h), "context_layer"), 3);
        assert_int_equal(cgam_json_get_int(json_array_get(layers, h), "query_layer"), 2);
    }
}

/* A report of gates alone has their table, their figures and the claims they decide. */
TEST(gates_are_reported)
{
    need_tiny_model();
    OWNED(json_t) doc = ask("lm gates " PROMPTS "--shots 2 --exact --store g.db --report report");
    assert_non_null(doc);
    char *page;
    FILE *f = fopen(folder_file("report/index.html"), "rb");
    assert_non_null(f);
    page = calloc(1, 1 << 22);
    assert_true(fread(page, 1, (1 << 22) - 1, f) > 0);
    fclose(f);
    static const char *const pieces[] = {"gates.csv", "gates_spectrum.csv",
                                         "practically degenerate", "changes no answer",
                                         "proved to be the only answer"};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        assert_non_null(strstr(page, pieces[i]));
    free(page);
}

/* Each is one line that says what is wrong. */
TEST(what_cannot_be_asked_is_refused)
{
    need_tiny_model();
    char one[4000] = "", empty[4000] = "", same[4000] = "";
    for (int i = 0; i < 40; i++) {
        snprintf(one + strlen(one), sizeof one - strlen(one), "up\tfilm %d\n", i);
        snprintf(empty + strlen(empty), sizeof empty - strlen(empty), "%s\tfilm %d\n",
                 i % 2 ? "" : "up", i);
        snprintf(same + strlen(same), sizeof same - strlen(same), "%s\tfilm %d\n",
                 i % 2 ? "a" : "b", i);
    }
    folder_write("one.tsv", one);
    folder_write("empty.tsv", empty);
    folder_write("same.tsv", same);
    refuse(2, "a context needs demonstrations", "", "lm gates " PROMPTS "--shots 0 --exact");
    refuse(2, "is not below alpha_crit", "", "lm gates " PROMPTS "--shots 2 --exact --alphas 1e9");
    refuse(2, "--context-layer is 9, the model has 0 to 3", "",
           "lm gates " PROMPTS "--shots 2 --exact --context-layer 9");
    refuse(2, "too few for two halves", "",
           "lm gates --model m.gguf --eval d.tsv --queries 3 --shots 2 --exact");
    static const char *const verbs[] = {"gates", "sweep", "steer", "inject"};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        char words[128];
        snprintf(words, sizeof words,
                 "lm %s --model m.gguf --eval one.tsv --queries 8 --shots 2 --exact", verbs[i]);
        refuse(2, "one.tsv", "", words);
    }
    refuse(2, "empty.tsv", "",
           "lm gates --model m.gguf --eval empty.tsv --queries 8 --shots 2 --exact");
    refuse(2, "good", "",
           "lm gates --model m.gguf --eval same.tsv --labels a=good,b=good --queries 8 --shots 2 "
           "--exact");
}

TEST_GROUP(set_up, NULL)
