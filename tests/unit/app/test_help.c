/* The table of verbs: found by words, guessed from slips, told in texts, man pages, JSON and
 * completions. */
#include "app/verbs.h"
#include "lab/language/dataset.h"
#include "support/objects.h"

#include "support/owned.h"

static const cgam_param params[] = {
    {.name = "FILE", .kind = CGAM_TEXT, .value = "FILE", .required = true, .help = "a file"},
    {.name = "out", .kind = CGAM_TEXT, .value = "DIR", .writes = true, .help = "a folder"},
    {.name = "edit", .kind = CGAM_TEXT, .value = "E", .many = true, .help = "an edit"},
    {.name = "bank",
     .kind = CGAM_TEXT,
     .value = "FILE",
     .required = true,
     .many = true,
     .help = "it"},
    {.name = "gain",
     .kind = CGAM_REALS,
     .value = "auto|X,..",
     .fallback = "auto",
     .many = true,
     .max = 2,
     .help = "gains"},
    {.name = "mode",
     .kind = CGAM_CHOICE,
     .value = "a|bc",
     .fallback = "a",
     .help = ".dot 'quoted' -x"},
    {.name = "bold", .kind = CGAM_FLAG, .help = "or not"},
    {.name = ""},
};
static const cgam_verb verb = {
    .name = "lm try", .words = "try it\n\nOne.\n\nTwo.", .params = params};

/* What a printer prints; free it. */
#define PRINTED(text, call)                                                                        \
    do {                                                                                           \
        size_t size_;                                                                              \
        FILE *to = open_memstream(&(text), &size_);                                                \
        assert_non_null(to);                                                                       \
        call;                                                                                      \
        assert_int_equal(fclose(to), 0);                                                           \
    } while (0)

static void expect_message(const char *message, const char *want)
{
    static const char *const typed[] = {"bold", "--out=edit"};
    char *text;
    PRINTED(text, cgam_help_message(&verb, 2, typed, message, to));
    assert_string_equal(text, want);
    free(text);
}

TEST(messages_get_dashes)
{
    expect_message("gain is 3, it must be from 0 to 2", "--gain is 3, it must be from 0 to 2");
    expect_message("gain: the gain is odd", "--gain: the gain is odd");
    expect_message("mode and edit exclude each other", "--mode and --edit exclude each other");
    expect_message("gain needs mode a", "--gain needs --mode a");
    expect_message("threads is 0", "--threads is 0");
    expect_message("out a/b: Permission denied", "--out a/b: Permission denied");
    expect_message("FILE is missing", "FILE is missing");
    expect_message("two.db holds no model and mode", "two.db holds no model and mode");
    expect_message("modes differ in mode", "modes differ in mode");
    expect_message("a.npy: row 3 and column 4", "a.npy: row 3 and column 4");
    expect_message("gain: \xc3\xbc: odd", "--gain: \xc3\xbc: odd");
    expect_message("", "");
    expect_message("give gain, mode or edit, not all", "give --gain, --mode or --edit, not all");
    expect_message("gain requires mode a", "--gain requires --mode a");
    expect_message("edit: no such file", "edit: no such file"); /* the user's word */
    expect_message("bold: no such file", "bold: no such file");
    char *text;
    PRINTED(text, cgam_help_message(NULL, 0, NULL, "out of memory: rows", to));
    assert_string_equal(text, "out of memory: rows");
    free(text);
}

static void expect_near(const char *typed, const char *want)
{
    cgam_near near = {.typed = typed};
    cgam_near_try(&near, "alpha", 5);
    cgam_near_try(&near, "coupled|flow", 7);
    cgam_near_try(&near, "gate-weights", 12);
    if (!want) assert_null(near.best);
    else assert_memory_equal(near.best, want, strlen(want));
    if (want) assert_int_equal(near.length, strlen(want));
}

TEST(slips_are_guessed)
{
    expect_near("aplha", "alpha");
    expect_near("alpha", "alpha");
    expect_near("cuopled", "coupled");
    expect_near("gate", "gate-weights"); /* a beginning is enough */
    expect_near("ga", NULL);
    expect_near("a", NULL);
    expect_near("", NULL);
    expect_near("beta", NULL);
    expect_near("a-name-that-is-longer-than-anything-in-the-table-and-then-some-more-of-it-still",
                NULL);
    assert_string_equal(cgam_verb_suggest("lm gte").best, "lm get");
    cgam_near near = cgam_verb_suggest("nett");
    assert_int_equal(near.length, 3);
    assert_memory_equal(near.best, "net", 3);
}

TEST(verbs_are_found_by_words)
{
    int used;
    assert_ptr_equal(cgam_verb_find(3, (const char *[]){"net", "run", "x"}, &used),
                     &cgam_verb_net_run);
    assert_int_equal(used, 2);
    assert_null(cgam_verb_find(1, (const char *[]){"net"}, &used));
    assert_null(cgam_verb_find(0, NULL, &used));
    assert_null(cgam_verb_find(1, (const char *[]){""}, &used));
    assert_null(cgam_verb_find(1, (const char *[]){"net run"}, &used));
    assert_ptr_equal(cgam_verb_find(2, (const char *[]){"study", "x"}, &used), &cgam_verb_study);
    assert_int_equal(used, 1);
    assert_true(cgam_verb_group("lm") && cgam_verb_group("study"));
    assert_false(cgam_verb_group("recall") || cgam_verb_group("l") || cgam_verb_group("lm "));
}

TEST(words_of_a_parameter_are_walked)
{
    size_t length;
    assert_null(cgam_field_word(&params[0], NULL, &length));
    const char *word = cgam_field_word(&params[5], NULL, &length);
    assert_true(length == 1 && *word == 'a');
    word = cgam_field_word(&params[5], word, &length);
    assert_true(length == 2 && strcmp(word, "bc") == 0);
    assert_null(cgam_field_word(&params[5], word, &length));
    word = cgam_field_word(&params[4], NULL, &length);
    assert_true(length == 4 && strncmp(word, "auto", 4) == 0);
    assert_null(
        cgam_field_word(&params[4], word, &length)); /* the last shows what numbers look like */
    assert_null(cgam_field_word(&params[6], NULL, &length));
}

TEST(every_shipped_task_can_be_asked_for)
{
    int used;
    const cgam_verb *sweep = cgam_verb_find(2, (const char *const[]){"lm", "sweep"}, &used);
    const cgam_param *dataset = cgam_verb_param_named(sweep, "dataset", 7);
    size_t tasks = 0, length;
    for (; cgam_dataset_tasks[tasks]; tasks++) {
        bool found = false;
        for (const char *word = NULL; (word = cgam_field_word(dataset, word, &length));)
            found = found || (strlen(cgam_dataset_tasks[tasks]) == length &&
                              strncmp(word, cgam_dataset_tasks[tasks], length) == 0);
        assert_true(found);
    }
    assert_true(tasks > 0);
}

TEST(help_marks_what_matters)
{
    char *text;
    PRINTED(text, cgam_help_verb(&verb, to));
    assert_non_null(
        strstr(text, "Usage: cgam lm try FILE --bank FILE .. [options]\n\nOne.\n\nTwo.\n"));
    assert_non_null(strstr(text, "  FILE\n        a file (required)\n"));
    assert_non_null(strstr(text, "  --bank FILE ..\n        it (required, once or more)\n"));
    assert_non_null(strstr(text, "  --edit E ..\n        an edit (may be given several times)\n"));
    assert_non_null(strstr(text, "gains (default auto; may be given several times)\n"));
    assert_non_null(strstr(text, "  --bold\n        or not\n"));
    free(text);
    PRINTED(text, cgam_help_man(&verb, to));
    assert_non_null(strstr(text, ".TH \"cgam-lm-try\" 1"));
    assert_non_null(strstr(text, "\n\\&.dot 'quoted' \\-x (default a)\n"));
    assert_non_null(strstr(text, ".B \\-\\-bank FILE ..\nit (required, once or more)\n"));
    free(text);
}

TEST(the_table_is_json)
{
    json_t *doc = cgam_help_json(&verb);
    json_t *list = json_object_get(doc, "parameters"), *gain = json_array_get(list, 4);
    assert_int_equal(json_array_size(list), 10); /* with those that every verb has */
    assert_string_equal(cgam_json_get_text(gain, "name"), "gain");
    assert_string_equal(cgam_json_get_text(gain, "kind"), "reals");
    assert_string_equal(cgam_json_get_text(gain, "default"), "auto");
    assert_true(cgam_json_get_real(gain, "min") == 0 && cgam_json_get_real(gain, "max") == 2);
    assert_true(json_is_true(json_object_get(gain, "many")));
    assert_int_equal(json_array_size(json_object_get(gain, "words")), 1);
    assert_true(json_is_true(json_object_get(json_array_get(list, 1), "writes")));
    assert_true(json_is_true(json_object_get(json_array_get(list, 0), "positional")));
    assert_null(json_object_get(json_array_get(list, 0), "words"));
    json_decref(doc);
    list = cgam_help_json_list("net");
    assert_int_equal(json_array_size(list), 3);
    json_decref(list);
}

static char *offers(const char *w0, const char *w1, const char *w2, const char *w3)
{
    const char *words[] = {w0, w1, w2, w3};
    int count = 0;
    while (count < 4 && words[count]) count++;
    char *text;
    PRINTED(text, cgam_complete(count - 1, words, words[count - 1], to));
    return text;
}

static void expect_offers(char *got, const char *want)
{
    for (char *at = got; (at = strchr(at, '\t'));) /* the words alone */
        memmove(at, at + strcspn(at, "\n"), strlen(at + strcspn(at, "\n")) + 1);
    assert_string_equal(got, want);
    free(got);
}

TEST(shells_are_offered_what_fits)
{
    expect_offers(offers("re", NULL, NULL, NULL), "recall\nreport\n");
    expect_offers(offers("--v", NULL, NULL, NULL), "--version\n");
    expect_offers(offers("lm", "s", NULL, NULL), "states\nstore\nsweep\nsteer\nstudy\n");
    expect_offers(offers("recall", "--mode", "", NULL), "first\ncoupled\nflow\nanneal\n");
    expect_offers(offers("recall", "--mode", "=", "c"), "coupled\n");
    expect_offers(offers("recall", "--mode", "=", NULL), "first\ncoupled\nflow\nanneal\n");
    expect_offers(offers("recall", "--mode=f", NULL, NULL), "--mode=first\n--mode=flow\n");
    expect_offers(offers("recall", "--bank", "", NULL), ":files\n");
    expect_offers(offers("report", "--out", "x", NULL), ":folders\n");
    expect_offers(offers("recall", "--alpha", "", NULL), "");
    expect_offers(offers("recall", "--sa", NULL, NULL), "--save-p\n--save-readout\n");
    expect_offers(offers("net", "run", "x", NULL), ":files\n");
    expect_offers(offers("help", "vers", NULL, NULL), "version\n");
    expect_offers(offers("nothing", "", NULL, NULL), "");
    expect_offers(offers("recall", "=", NULL, NULL), "");
    expect_offers(offers("=", NULL, NULL, NULL), "");
}

/* Every option of every verb is offered, and every choice. */
TEST(offers_hold_the_table)
{
    for (int v = 0; cgam_verbs[v]; v++) {
        char first[32], second[32];
        const cgam_param *p;
        bool two = sscanf(cgam_verbs[v]->name, "%31s %31s", first, second) == 2;
        char *all = two ? offers(first, second, "--", NULL) : offers(first, "--", NULL, NULL);
        for (int i = 0; (p = cgam_verb_param(cgam_verbs[v], i)); i++) {
            char option[64];
            size_t length;
            const char *word = NULL;
            if (cgam_param_positional(p)) continue;
            snprintf(option, sizeof option, "--%s\t", p->name);
            assert_non_null(strstr(all, option));
            option[strlen(option) - 1] = '\0';
            char *values =
                two ? offers(first, second, option, "") : offers(first, option, "", NULL);
            while (p->kind != CGAM_FLAG && (word = cgam_field_word(p, word, &length))) {
                snprintf(option, sizeof option, "%.*s\t", (int)length, word);
                assert_non_null(strstr(values, option));
            }
            free(values);
        }
        free(all);
    }
}

/* Without a report, a study of a language model says where its files are. */
TEST(a_study_tells_its_files)
{
    char *text;
    OWNED(json_t) doc = json_pack("{s:s, s:[s, s]}", "out", "x", "files", "neff.csv", "study.json");
    PRINTED(text, assert_true(cgam_verb_print(&cgam_verb_lm_study, doc, &(cgam_late){0}, to)));
    assert_string_equal(text, "\nwritten to x: neff.csv study.json\n");
    free(text);
}
