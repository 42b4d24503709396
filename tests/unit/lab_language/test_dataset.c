/* Datasets in the publishers' formats, and the prompts made of them. The real files are read where
 * CGAM_DATA names their folder. */
#include "lab/language/dataset.h"
#include "support/failing_alloc.h"
#include "support/one_env.h"

#include <sys/stat.h>
#include <unistd.h>

#include "support/owned.h"

/* A file with these bytes; one name, used again and again. */
static const char *file_of(const char *bytes, size_t size)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/cgam-set-%d.txt", (int)getpid());
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    fclose(f);
    return path;
}

static cgam_dataset *set_of(const char *format, const char *bytes)
{
    cgam_dataset *set = NULL;
    const char *path = file_of(bytes, strlen(bytes));
    CHECK_STATUS(env, cgam_dataset_open(env, format, path, NULL, &set));
    unlink(path);
    return set;
}

static void expect(const cgam_dataset *set, int64_t i, const char *text, const char *word)
{
    cgam_example e = set->example[i];
    assert_string_equal(e.text, text);
    assert_string_equal(set->label[e.label].word, word);
}

TEST(each_format_is_read)
{
    cgam_dataset *set = set_of("sst2", "sentence\tlabel\nit 's a charming  journey . \t1\r\n"
                                       "\nbleak \t0\n");
    assert_int_equal(set->examples, 2);
    expect(set, 0, "it 's a charming journey .", "positive");
    expect(set, 1, "bleak", "negative");
    cgam_dataset_close(set);

    set = set_of("agnews", "\"3\",\"Fears\",\"Workers say \"\"no\"\" \\to it, he isn #39;t\"\n"
                           "\"BEA, buzzing\nabout\",3\nKreme report.,0\n");
    assert_int_equal(set->examples, 3);
    expect(set, 0, "Fears Workers say \"no\" to it, he isn't", "Business");
    expect(set, 1, "BEA, buzzing about", "Technology");
    expect(set, 2, "Kreme report.", "World");
    cgam_dataset_close(set);

    set = set_of("trec", "HUM:desc Who was Galileo ?\nLOC:city Where is \xd6lfus ?\n");
    expect(set, 0, "Who was Galileo ?", "Person");
    expect(set, 1, "Where is \xc3\x96lfus ?", "Location");
    cgam_dataset_close(set);

    set = set_of("tsv", "\xef\xbb\xbfup\tgoes high\ndown\tgoes low\nup\tflies\n");
    assert_int_equal(set->labels, 2);
    expect(set, 2, "flies", "up");
    assert_false(set->facts);
    cgam_dataset_close(set);

    /* what no letter is, is a blank: 0, and 127 */
    const char *path = file_of("up\ta\0b\x7f c\n", 10);
    CHECK_STATUS(env, cgam_dataset_open(env, "tsv", path, NULL, &set));
    expect(set, 0, "a b c", "up");
    cgam_dataset_close(set);
    path = file_of("\"1\",\"a\0b\",\"c\"\n", 14);
    CHECK_STATUS(env, cgam_dataset_open(env, "agnews", path, NULL, &set));
    expect(set, 0, "a b c", "World");
    cgam_dataset_close(set);
    unlink(path);

    set = set_of("facts", "France\tParis\nItaly\tRome\n");
    assert_true(set->facts);
    expect(set, 1, "Italy", "Rome");
    cgam_dataset_close(set);

    set = set_of("lama", "{\"masked_sentences\": [\"The colour of it was [MASK].\"], "
                         "\"obj_label\": \"gold\", \"sub_label\": \"Squad\"}\n");
    expect(set, 0, "The colour of it was", "gold");
    cgam_dataset_close(set);

    set = set_of("pairs",
                 "[{\"input\": \"hot\", \"output\": \" cold \"}, {\"output\": \"New  Delhi\", "
                 "\"input\": \"India\", \"n\": 3}]");
    assert_true(set->facts);
    assert_string_equal(set->template, "Q: {x}\nA: {y}\n\n");
    assert_int_equal(set->examples, 2);
    expect(set, 0, "hot", "cold");
    expect(set, 1, "India", "New Delhi");
    cgam_dataset_close(set);
}

TEST(bad_lines_are_named)
{
    static const struct {
        const char *format, *bytes, *labels, *words;
    } cases[] = {
        {"sst2", "sentence\tlabel\nno label\n", NULL, ":2: expected sentence, tab, label"},
        {"sst2", "sentence\tlabel\nx\t7\n", NULL, ":2: label '7' has no word"},
        {"sst2", "sentence\tlabel\n \t1\n", NULL, ":2: the text is empty"},
        {"sst2", "", NULL, "no examples"},
        {"agnews", "\"3\",\"open", NULL, ":1: a quote is not closed"},
        {"agnews", "a,b,c,d\n", NULL, ":1: more than three fields"},
        {"agnews", "alone\n", NULL, ":1: expected class, title, description or text, class"},
        {"agnews", "\"text\",12\n", NULL, ":1: label '12' has no word"},
        {"trec", "Who was Galileo ?\n", NULL, ":1: expected COARSE:fine"},
        {"trec", "HUM:desc\n", NULL, ":1: expected COARSE:fine"},
        {"trec", "Who was: Galileo ?\n", NULL, ":1: expected COARSE:fine"},
        {"tsv", "up\n", NULL, ":1: expected label, tab, text"},
        {"tsv", "a\tb\tc\td\te\tf\tg\th\ti\tj\n", NULL, ":1: expected label, tab, text"},
        {"facts", "France\tParis\tor so\n", NULL, ":1: expected two texts separated by a tab"},
        {"lama", "{\"obj_label\": \"x\"}\n", NULL, ":1: sub_label or obj_label is missing"},
        {"lama", "{\"sub_label\": 3}\n", NULL, "obj_label is missing"},
        {"lama", "{]\n", NULL, ":1:1:"},
        {"pairs", "[{\"input\": \"a\", \"output\": \"b\"}", NULL, ":1:"},
        {"pairs", "{\"input\": \"a\", \"output\": \"b\"}", NULL, "an array of"},
        {"pairs", "[{\"input\": \"a\", \"output\": \"b\"}, {\"input\": \"a\"}]", NULL,
         "pair 1: no string under"},
        {"pairs", "[{\"input\": 7, \"output\": \"b\"}]", NULL, "pair 0: no string under"},
        {"pairs", "[3]", NULL, "pair 0: no string under"},
        {"pairs", "[{\"input\": \"a\", \"output\": \" \"}]", NULL, ": pair 0: the label is empty"},
        {"pairs", "[]", NULL, "no examples"},
        {"pairs", "", NULL, "no examples"},
        {"tsv", "a\tb\n", "a=x,a=y", "duplicate a"},
        {"tsv", "a\tb\n", "a", "KEY=WORD"},
        {"tsv", "a\tb\n", "=x", "KEY=WORD"},
        {"tsv", "a\tb\n", "a=x,b", "KEY=WORD"},
        {"tsv", "a\tb\n", "long,b=x", "KEY=WORD"},
        {"tsv", "a\tb\n", "a=,b=y", "KEY=WORD"},
        {"agnews", "\n\r\n\"3\",\"open", NULL, ":3: a quote is not closed"},
        {"lama", "{\"obj_label\": \"x\", \"sub_label\": \"y\"}\n", NULL, "no masked sentence"},
        {"nosuch", "a\tb\n", NULL, "unknown dataset format 'nosuch'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cgam_dataset *set;
        const char *path = file_of(cases[i].bytes, strlen(cases[i].bytes));
        cgam_status status = cgam_dataset_open(env, cases[i].format, path, cases[i].labels, &set);
        assert_true(status == CGAM_E_FORMAT || status == CGAM_E_ARG);
        CHECK_MESSAGE(env, cases[i].words);
        assert_null(set);
        unlink(path);
    }
}

/* 16 MB are the most of a line: no more is read into memory before it is refused. */
TEST(a_line_without_end_is_refused)
{
    enum { MOST = 16 << 20 };
    static const struct {
        const char *format;
        char first;
        size_t size;
        const char *says;
    } cases[] = {{"tsv", 'a', MOST + 1, ":1: the line is longer than 16 MB"},
                 {"agnews", '"', MOST + 2, ":1: the record"},
                 {"agnews", 'a', MOST, ":1: the line is longer than 16 MB"}};
    OWNED_BLOCK(char) bytes = malloc(MOST + 2);
    assert_non_null(bytes);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cgam_dataset *set;
        memset(bytes, 'a', cases[i].size);
        bytes[0] = cases[i].first;
        const char *path = file_of(bytes, cases[i].size);
        CHECK_REFUSED(env, CGAM_E_FORMAT, cases[i].says,
                      cgam_dataset_open(env, cases[i].format, path, NULL, &set));
        assert_null(set);
        unlink(path);
    }
}

/* relations.jsonl beside P1.jsonl, which is named as seen from its folder. */
TEST(a_relation_has_the_template_of_its_name)
{
    static const struct {
        const char *before, *after, *want; /* the template, or after a ! the refusal */
    } cases[] = {
        {"", "", "{x} is in {y}.\n"},
        {"\n", "\n\n", "{x} is in {y}.\n"},
        {"", "\n{\"relation\": \"P12\", \"template\": \"[X] has [Y]\"}\n", "{x} is in {y}.\n"},
        {"", "\n{\"relation\": \"Q1\", \"template\": \"[X] has [Y]\"}\n", "{x} is in {y}.\n"},
        {"", "\n{\"template\": \"[X] has [Y]\"}\n", "{x} is in {y}.\n"},
        {"", "\n{\"relation\": \"P1\"}\n", "{x} is in {y}.\n"},
        {"", "\n{\"relation\": \"P1\", \"template\": \"[Y] has it\"}\n", "{x} is in {y}.\n"},
        {"", "\n{\"relation\": \"P1\", \"template\": \"[X] has it\"}\n", "{x} is in {y}.\n"},
        {"", "\n{\"relation\": P1}\n", "!relations.jsonl"},
    };
    char folder[] = "/tmp/cgam-relation-XXXXXX", text[300];
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cgam_dataset *set;
        FILE *f = fopen("relations.jsonl", "wb"), *data = fopen("P1.jsonl", "wb");
        assert_true(f && data);
        fprintf(f, "%s{\"relation\": \"P1\", \"template\": \"[X] is in [Y] .\"}%s", cases[i].before,
                cases[i].after);
        fprintf(data, "{\"sub_label\": \"Paris\", \"obj_label\": \"France\"}\n");
        fclose(f);
        fclose(data);
        snprintf(text, sizeof text, "%s/P1.jsonl", folder);
        const bool refused = cases[i].want[0] == '!';
        for (int whole = 0; whole < 2; whole++) {
            CHECK_FAILS(env, refused ? CGAM_E_FORMAT : CGAM_OK,
                        cgam_dataset_open(env, "lama", whole ? text : "P1.jsonl", NULL, &set));
            if (refused) CHECK_MESSAGE(env, cases[i].want + 1);
            else assert_string_equal(set->template, cases[i].want);
            cgam_dataset_close(set);
        }
    }
    unlink("relations.jsonl");
    unlink("P1.jsonl");
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0);
}

TEST(shipped_sets_are_balanced)
{
    cgam_dataset *set;
    CHECK_STATUS(env, cgam_dataset_shipped(env, "sentiment", NULL, &set));
    assert_int_equal(set->examples, 160);
    int64_t positive = 0;
    for (int64_t i = 0; i < 160; i++) positive += set->example[i].label;
    assert_int_equal(positive, 80);
    cgam_dataset_close(set);
    CHECK_STATUS(env, cgam_dataset_shipped(env, "facts", NULL, &set));
    assert_true(set->facts && set->examples >= 80);
    cgam_dataset_close(set);
    CHECK_STATUS(env, cgam_dataset_shipped(env, "languages", NULL, &set));
    assert_string_equal(set->example[0].text, "France");
    assert_string_equal(set->label[0].word, "French");
    assert_int_equal(set->labels, 24);
    cgam_dataset_close(set);
    CHECK_FAILS(env, CGAM_E_NOT_FOUND, cgam_dataset_shipped(env, "novels", NULL, &set));
}

TEST(shipped_tasks_ask_each_question_once)
{
    int64_t tasks = 0, longer = 0;
    for (; cgam_dataset_tasks[tasks]; tasks++) {
        OWNED(cgam_dataset) set = NULL;
        bool words = false;
        CHECK_STATUS(env, cgam_dataset_shipped(env, cgam_dataset_tasks[tasks], NULL, &set));
        int64_t n = set->examples;
        assert_true(n >= 40 && n <= 81 && set->facts);
        assert_string_equal(set->template, "Q: {x}\nA: {y}\n\n");
        for (int64_t i = 0; i < n; i++) {
            cgam_example e = set->example[i];
            words = words || strpbrk(set->label[e.label].word, " -");
            for (int64_t j = 0; j < i; j++) assert_string_not_equal(set->example[j].text, e.text);
        }
        longer += words;
    }
    assert_true(tasks >= 12 && longer >= 3);
}

static int64_t occurrences(const char *text, const char *word)
{
    int64_t n = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) n++;
    return n;
}

/* The labels of a prompt of sentiments in their order, as P and N. */
static const char *signs(const char *text)
{
    static char found[64];
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, "Sentiment: ")) && n + 1 < sizeof found; at++)
        found[n++] = at[11] == 'p' ? 'P' : 'N';
    found[n] = '\0';
    return found;
}

/* Six orders of two and two, two of them out of the cycle's reach. 600 draws give 100 of each, with
 * a deviation of 9; nothing else in the set of demonstrations changes. */
TEST(balanced_orders_are_drawn_alike)
{
    static const char *const orders[] = {"NNPP", "NPNP", "NPPN", "PNNP", "PNPN", "PPNN"};
    enum { ORDERS = sizeof orders / sizeof *orders, SEEDS = 15, QUERIES = 40 };
    OWNED(cgam_dataset) set = NULL;
    CHECK_STATUS(env, cgam_dataset_shipped(env, "sentiment", NULL, &set));
    for (int order = CGAM_ORDER_BALANCED; order <= CGAM_ORDER_CYCLED; order++) {
        int64_t seen[ORDERS] = {0}, first[2] = {0, 0};
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            OWNED(cgam_prompts) prompts = NULL;
            cgam_prompts_opts opts = cgam_prompts_opts_default();
            opts.queries = QUERIES;
            opts.order = (cgam_order)order;
            opts.seed = seed;
            CHECK_STATUS(env, cgam_prompts_new(env, set, NULL, &opts, &prompts));
            for (int64_t i = 0; i < QUERIES; i++) {
                char *text;
                CHECK_STATUS(env, cgam_prompts_text(prompts, i, 4, CGAM_DEMOS_TRUE, &text));
                for (int o = 0; o < ORDERS; o++) seen[o] += strcmp(signs(text), orders[o]) == 0;
                cgam_text_free(env, text);
                CHECK_STATUS(env, cgam_prompts_text(prompts, i, 1, CGAM_DEMOS_TRUE, &text));
                first[signs(text)[0] == 'P']++;
                cgam_text_free(env, text);
            }
        }
        int64_t all = 0;
        for (int o = 0; o < ORDERS; o++) {
            bool reached = order == CGAM_ORDER_BALANCED || (o > 0 && o < ORDERS - 1);
            all += seen[o];
            if (!reached) assert_int_equal(seen[o], 0);
            else assert_in_range(seen[o], 60, 200);
        }
        assert_int_equal(all, SEEDS * QUERIES);
        assert_in_range(first[0], 240, 360);
    }
}

/* A demonstration's lines, wherever they stand. */
static bool all_within(const char *few, const char *many)
{
    char line[256];
    for (const char *at = few, *end; (end = strstr(at, "\n\n")); at = end + 2) {
        snprintf(line, sizeof line, "%.*s\n\n", (int)(end - at), at);
        if (!strstr(many, line)) return false;
    }
    return true;
}

TEST(demonstrations_are_among_those_of_more)
{
    OWNED(cgam_dataset) set = NULL;
    OWNED(cgam_prompts) prompts = NULL;
    OWNED(cgam_prompts) fewer = NULL;
    CHECK_STATUS(env, cgam_dataset_shipped(env, "sentiment", NULL, &set));
    cgam_prompts_opts opts = cgam_prompts_opts_default();
    opts.queries = 40;
    CHECK_STATUS(env, cgam_prompts_new(env, set, NULL, &opts, &prompts));
    for (int64_t i = 0; i < 40; i++) {
        char *text[4];
        for (int64_t k = 0; k < 4; k++)
            CHECK_STATUS(env, cgam_prompts_text(prompts, i, 2 * k, CGAM_DEMOS_TRUE, &text[k]));
        for (int64_t k = 1; k < 4; k++) {
            assert_int_equal(strlen(signs(text[k])), 2 * k);
            assert_int_equal(occurrences(signs(text[k]), "P"), k);
            assert_true(all_within(text[k - 1], text[k]));
        }
        for (int64_t k = 0; k < 4; k++) cgam_text_free(env, text[k]);
    }
    opts.queries = 10; /* each of them is asked alike among forty */
    CHECK_STATUS(env, cgam_prompts_new(env, set, NULL, &opts, &fewer));
    for (int64_t i = 0; i < 10; i++) {
        char *a, *b;
        int64_t same = 0;
        CHECK_STATUS(env, cgam_prompts_text(fewer, i, 4, CGAM_DEMOS_TRUE, &a));
        const char *asked = strstr(a, "Sentiment:") ? strrchr(a, 'R') : a;
        for (int64_t j = 0; j < 40; j++) {
            CHECK_STATUS(env, cgam_prompts_text(prompts, j, 4, CGAM_DEMOS_TRUE, &b));
            same += strcmp(strrchr(b, 'R'), asked) == 0;
            cgam_text_free(env, b);
        }
        assert_int_equal(same, 1);
        cgam_text_free(env, a);
    }
}

/* Halves are the even and the odd queries. Drawn blindly, 40 queries of two labels leave a half with
 * an even number of each in one case of five. */
TEST(halves_have_the_same_labels)
{
    static const char *const sets[] = {"sentiment", "languages"};
    for (int s = 0; s < 2; s++) {
        OWNED(cgam_dataset) set = NULL;
        CHECK_STATUS(env, cgam_dataset_shipped(env, sets[s], NULL, &set));
        for (uint64_t seed = 0; seed < 20; seed++) {
            OWNED(cgam_prompts) prompts = NULL;
            cgam_prompts_opts opts = {.queries = 41, .shots_max = 2, .seed = seed};
            int64_t apart[64] = {0};
            CHECK_STATUS(env, cgam_prompts_new(env, set, NULL, &opts, &prompts));
            assert_true(set->labels <= 64);
            for (int64_t i = 0; i < prompts->queries; i++)
                apart[cgam_prompts_label(prompts, i)] += i % 2 ? -1 : 1;
            for (int64_t k = 0; k < set->labels; k++) assert_true(apart[k] >= -1 && apart[k] <= 1);
        }
    }
}

TEST(demonstrations_balance_and_nest)
{
    OWNED(cgam_dataset) set = NULL;
    cgam_prompts *prompts;
    CHECK_STATUS(env, cgam_dataset_shipped(env, "sentiment", NULL, &set));
    cgam_prompts_opts opts = cgam_prompts_opts_default();
    opts.queries = 40;
    opts.order = CGAM_ORDER_CYCLED;
    CHECK_STATUS(env, cgam_prompts_new(env, set, NULL, &opts, &prompts));
    assert_int_equal(prompts->queries, 40);
    assert_string_equal(prompts->cue, "\nSentiment:");
    for (int64_t i = 0; i < 40; i++) {
        char *zero, *four, *eight, *flipped;
        CHECK_STATUS(env, cgam_prompts_text(prompts, i, 0, CGAM_DEMOS_TRUE, &zero));
        CHECK_STATUS(env, cgam_prompts_text(prompts, i, 4, CGAM_DEMOS_TRUE, &four));
        CHECK_STATUS(env, cgam_prompts_text(prompts, i, 8, CGAM_DEMOS_TRUE, &eight));
        CHECK_STATUS(env, cgam_prompts_text(prompts, i, 4, CGAM_DEMOS_FLIPPED, &flipped));
        assert_int_equal(occurrences(four, "Sentiment: positive\n"), 2);
        assert_int_equal(occurrences(eight, "Sentiment: negative\n"), 4);
        assert_string_equal(eight + strlen(eight) - strlen(four), four);
        assert_string_equal(four + strlen(four) - strlen(zero), zero);
        assert_string_equal(zero + strlen(zero) - 11, "\nSentiment:");
        assert_null(strstr(four, "{x}"));
        assert_int_equal(occurrences(four, zero), 1); /* no query demonstrates itself */
        assert_int_equal(strlen(flipped), strlen(four));
        assert_string_not_equal(flipped, four);
        cgam_text_free(env, zero);
        cgam_text_free(env, four);
        cgam_text_free(env, eight);
        cgam_text_free(env, flipped);
    }
    cgam_prompts_free(prompts);
    opts.shared = true;
    CHECK_STATUS(env, cgam_prompts_new(env, set, NULL, &opts, &prompts));
    char *a, *b;
    CHECK_STATUS(env, cgam_prompts_text(prompts, 0, 8, CGAM_DEMOS_TRUE, &a));
    CHECK_STATUS(env, cgam_prompts_text(prompts, 1, 8, CGAM_DEMOS_TRUE, &b));
    assert_memory_equal(a, b, 300);
    cgam_text_free(env, a);
    cgam_text_free(env, b);
    cgam_prompts_free(prompts);
}

TEST(facts_are_told_wrongly_in_two_ways)
{
    OWNED(cgam_dataset)
    set = set_of("facts", "France\tParis\nItaly\tRome\nSpain\tMadrid\nPeru\tLima\n");
    OWNED(cgam_prompts) prompts = NULL;
    cgam_prompts_opts opts = {.queries = 1, .shots_max = 3, .wording = "{x} has {y};"};
    CHECK_STATUS(env, cgam_prompts_new(env, set, NULL, &opts, &prompts));
    static const char *const facts[] = {"France has Paris", "Italy has Rome", "Spain has Madrid",
                                        "Peru has Lima"};
    for (int demos = CGAM_DEMOS_TRUE; demos <= CGAM_DEMOS_FOREIGN; demos++) {
        char *text;
        int64_t right = 0, capitals = 0;
        CHECK_STATUS(env, cgam_prompts_text(prompts, 0, 3, (cgam_demos)demos, &text));
        for (int i = 0; i < 4; i++) {
            right += occurrences(text, facts[i]);
            capitals += occurrences(text, strrchr(facts[i], ' '));
        }
        assert_int_equal(right, demos == CGAM_DEMOS_TRUE ? 3 : 0);
        assert_int_equal(capitals, demos == CGAM_DEMOS_FOREIGN ? 0 : 3);
        cgam_text_free(env, text);
    }
}

/* Italy has two objects, one of them in two spellings, and every other subject is in Europe: no
 * demonstration may show what any row says of its subject or of the query's. */
TEST(wrong_objects_are_wrong)
{
    OWNED(cgam_dataset)
    set = set_of("facts", "Italy\tRome\nITALY\tFlorence\nItaly \tflorence\n"
                          "France\tParis\nGaul\tParis\nPeru\tLima\n"
                          "Chile\tSantiago\nSpain\tMadrid\nJapan\tKyoto\n"
                          "japan\tTokyo\nEgypt\tRome\n");
    static const char *const own[][4] = {{"Italy has", "Rome", "lorence", NULL},
                                         {"ITALY has", "Rome", "lorence", NULL},
                                         {"France has", "Paris", NULL},
                                         {"Gaul has", "Paris", NULL},
                                         {"Peru has", "Lima", NULL},
                                         {"Chile has", "Santiago", NULL},
                                         {"Spain has", "Madrid", NULL},
                                         {"Japan has", "Kyoto", "Tokyo", NULL},
                                         {"japan has", "Kyoto", "Tokyo", NULL},
                                         {"Egypt has", "Rome", NULL}};
    enum { SUBJECTS = sizeof own / sizeof *own };
    for (uint64_t seed = 0; seed < 20; seed++) {
        OWNED(cgam_prompts) prompts = NULL;
        cgam_prompts_opts opts = {
            .queries = 4, .shots_max = 3, .seed = seed, .wording = "{x} has {y};"};
        CHECK_STATUS(env, cgam_prompts_new(env, set, NULL, &opts, &prompts));
        for (int64_t i = 0; i < prompts->queries; i++)
            for (int64_t k = 1; k <= 3; k++) {
                char *wrong, *right, words[64];
                CHECK_STATUS(env, cgam_prompts_text(prompts, i, k, CGAM_DEMOS_FLIPPED, &wrong));
                CHECK_STATUS(env, cgam_prompts_text(prompts, i, k, CGAM_DEMOS_TRUE, &right));
                assert_string_not_equal(wrong, right); /* with one shot as well */
                const char *query = strrchr(wrong, ';') + 1;
                for (int s = 0; s < SUBJECTS; s++)
                    for (int o = 1; own[s][o]; o++) {
                        snprintf(words, sizeof words, "%s %s", own[s][0], own[s][o]);
                        assert_null(strstr(wrong, words));
                        if (strcmp(query, own[s][0]) == 0) assert_null(strstr(wrong, own[s][o]));
                    }
                cgam_text_free(env, wrong);
                cgam_text_free(env, right);
            }
    }
}

/* Of two objects one is the demonstration's and the other the query's, or none is left. */
TEST(a_set_without_wrong_objects_is_refused)
{
    OWNED(cgam_dataset) set = set_of("facts", "a\tyes\nb\tno\n");
    OWNED(cgam_prompts) prompts = NULL;
    cgam_prompts_opts opts = {.queries = 1, .shots_max = 1};
    char *text;
    CHECK_STATUS(env, cgam_prompts_new(env, set, NULL, &opts, &prompts));
    CHECK_STATUS(env, cgam_prompts_text(prompts, 0, 1, CGAM_DEMOS_TRUE, &text));
    cgam_text_free(env, text);
    CHECK_REFUSED(env, CGAM_E_ARG, "no wrong object for",
                  cgam_prompts_text(prompts, 0, 1, CGAM_DEMOS_FLIPPED, &text));
    assert_null(text);
}

/* A text is asked once, and not shown with its answer where it is asked. */
TEST(a_query_is_not_demonstrated_in_another_spelling)
{
    OWNED(cgam_dataset)
    set = set_of("facts", "Rhine\tEurope\nRHINE\tEurope\nNile\tAfrica\n"
                          "nile\tAfrica\nAmur\tAsia\nOb\tAsia\nOder\tEurope\n");
    for (uint64_t seed = 0; seed < 20; seed++) {
        OWNED(cgam_prompts) prompts = NULL;
        cgam_prompts_opts opts = {.queries = 9, .shots_max = 2, .seed = seed};
        CHECK_STATUS(env, cgam_prompts_new(env, set, NULL, &opts, &prompts));
        assert_int_equal(prompts->queries, 3); /* five rivers, two kept to show */
        for (int64_t i = 0; i < 3; i++) {
            char *text;
            CHECK_STATUS(env, cgam_prompts_text(prompts, i, 2, CGAM_DEMOS_TRUE, &text));
            for (char *c = text; *c; c++)
                if (*c >= 'A' && *c <= 'Z') *c = (char)(*c | 32);
            assert_int_equal(occurrences(text, strrchr(text, '\n') + 1), 1);
            cgam_text_free(env, text);
        }
    }
}

TEST(prompts_that_cannot_be_are_refused)
{
    OWNED(cgam_dataset) set = set_of("sst2", "good\t1\nfine\t1\nnice\t1\nlovely\t1\n");
    OWNED(cgam_dataset) news = set_of("agnews", "\"text\",1\n");
    cgam_prompts *prompts;
    cgam_prompts_opts opts = {.queries = 1, .shots_max = 1};
    CHECK_REFUSED(env, CGAM_E_ARG, "label negative has 0 examples",
                  cgam_prompts_new(env, set, NULL, &opts, &prompts));
    CHECK_REFUSED(env, CGAM_E_ARG, "queries and demonstrations",
                  cgam_prompts_new(env, set, news, &opts, &prompts));
    static const char *const wordings[] = {"{y} {x}", "{y}", "{x}"};
    for (size_t i = 0; i < sizeof wordings / sizeof *wordings; i++) {
        opts.wording = wordings[i];
        CHECK_REFUSED(env, CGAM_E_ARG, "must contain {x}",
                      cgam_prompts_new(env, set, NULL, &opts, &prompts));
    }
    opts = (cgam_prompts_opts){.queries = 1, .wording = "{} {a: {x} {y}"}; /* neither is a name */
    CHECK_STATUS(env, cgam_prompts_new(env, set, NULL, &opts, &prompts));
    cgam_prompts_free(prompts);
    opts = (cgam_prompts_opts){.queries = 1, .shots_max = 40};
    CHECK_FAILS(env, CGAM_E_ARG, cgam_prompts_new(env, set, NULL, &opts, &prompts));
    assert_null(prompts);
}

/* Borders: what is asked of prompts beyond what they were made for. */
TEST(what_prompts_do_not_have_is_refused)
{
    OWNED(cgam_dataset) set = NULL;
    cgam_prompts *prompts;
    char *turns[9], *text;
    CHECK_STATUS(env, cgam_dataset_shipped(env, "sentiment", NULL, &set));
    static const cgam_prompts_opts bad[] = {{.queries = 0, .shots_max = 1},
                                            {.queries = 1, .shots_max = -1},
                                            {.queries = 1, .shots_max = 1025}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_REFUSED(
            env, CGAM_E_ARG,
            "the number of queries must be at least 1, and of demonstrations from 0 to 1024",
            cgam_prompts_new(env, set, NULL, &bad[i], &prompts));
        assert_null(prompts);
    }
    CHECK_STATUS(env, cgam_prompts_new(env, set, NULL, NULL, &prompts));
    assert_int_equal(prompts->queries, cgam_prompts_opts_default().queries < 144
                                           ? cgam_prompts_opts_default().queries
                                           : 144); /* 8 of each label are kept to show */
    cgam_prompts_free(prompts);
    cgam_prompts_opts opts = {.queries = 200, .shots_max = 4};
    cgam_dataset *train = set_of("sst2", "a\t0\nb\t0\nc\t0\nd\t1\ne\t1\nf\t1\n");
    CHECK_STATUS(env, cgam_prompts_new(env, set, train, &opts, &prompts));
    assert_int_equal(prompts->queries, 160); /* demonstrations come from elsewhere */
    static const int64_t asked[][2] = {{-1, 0}, {160, 0}, {0, -1}, {0, 5}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        CHECK_FAILS(env, CGAM_E_ARG,
                    cgam_prompts_text(prompts, asked[i][0], asked[i][1], CGAM_DEMOS_TRUE, &text));
        assert_null(text);
        CHECK_REFUSED(env, CGAM_E_ARG, "invalid query ",
                      cgam_prompts_turns(prompts, asked[i][0], asked[i][1] > 4 ? 5 : asked[i][1],
                                         CGAM_DEMOS_TRUE, (char *[11]){NULL}));
    }
    CHECK_STATUS(env, cgam_prompts_turns(prompts, 159, 4, CGAM_DEMOS_TRUE, turns));
    assert_true(strcmp(turns[1], "positive") == 0 || strcmp(turns[1], "negative") == 0);
    for (int i = 0; i < 9; i++) cgam_text_free(env, turns[i]);
    cgam_prompts_free(prompts);
    cgam_dataset_close(train);
    OWNED(cgam_dataset) facts = NULL;
    CHECK_STATUS(env, cgam_dataset_shipped(env, "facts", NULL, &facts));
    CHECK_REFUSED(env, CGAM_E_ARG, "queries and demonstrations",
                  cgam_prompts_new(env, facts, set, &opts, &prompts));
}

/* The query has every language and every capital for an object: no foreign word is left to show. */
TEST(a_query_that_owns_all_words_has_no_foreign_ones)
{
    static const char *const sets[] = {"languages", "facts"};
    char *bytes = NULL, *text;
    size_t size;
    FILE *f = open_memstream(&bytes, &size);
    assert_non_null(f);
    for (int i = 0; i < 2; i++) {
        OWNED(cgam_dataset) set = NULL;
        CHECK_STATUS(env, cgam_dataset_shipped(env, sets[i], NULL, &set));
        for (int64_t k = 0; k < set->labels; k++)
            for (int who = 0; who < 2; who++)
                fprintf(f, "%s\t%s\n", who ? "one" : "two", set->label[k].word);
    }
    fclose(f);
    cgam_dataset *set = set_of("facts", bytes);
    OWNED(cgam_prompts) prompts = NULL;
    cgam_prompts_opts opts = {.queries = 1, .shots_max = 1};
    CHECK_STATUS(env, cgam_prompts_new(env, set, NULL, &opts, &prompts));
    CHECK_REFUSED(env, CGAM_E_ARG, "no wrong object for",
                  cgam_prompts_text(prompts, 0, 1, CGAM_DEMOS_FOREIGN, &text));
    assert_null(text);
    cgam_dataset_close(set);
    free(bytes);
}

TEST(real_files_are_read)
{
    static const struct {
        const char *format, *path;
        int64_t size, labels;
    } files[] = {{"sst2", "sst2/dev.tsv", 872, 2},
                 {"agnews", "agnews/test.csv", 7600, 4},
                 {"agnews", "agnews/train_part.csv", 5000, 4},
                 {"trec", "trec/TREC_10.label", 500, 6},
                 {"trec", "trec/train_5500.label", 5452, 6},
                 {"pairs", "tasks/country-currency.json", 197, 152}};
    const char *folder = getenv("CGAM_DATA");
    if (!folder) {
        print_message("skipped: CGAM_DATA is not set\n");
        skip();
    }
    char path[1024];
    cgam_dataset *set;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i].path);
        CHECK_STATUS(env, cgam_dataset_open(env, files[i].format, path, NULL, &set));
        assert_int_equal(set->examples, files[i].size);
        assert_int_equal(set->labels, files[i].labels);
        cgam_dataset_close(set);
    }
    snprintf(path, sizeof path, "%s/lama/TREx/P19.jsonl", folder);
    CHECK_STATUS(env, cgam_dataset_open(env, "lama", path, NULL, &set));
    assert_string_equal(set->template, "{x} was born in {y}.\n");
    cgam_dataset_close(set);
    snprintf(path, sizeof path, "%s/lama/squad_test.jsonl", folder);
    CHECK_STATUS(env, cgam_dataset_open(env, "lama", path, NULL, &set));
    assert_true(set->examples > 100);
    cgam_dataset_close(set);
}

static int make_prompts(cgam_env *failing, void *arg)
{
    (void)arg;
    OWNED(cgam_dataset) set = NULL;
    OWNED(cgam_prompts) prompts = NULL;
    char *prompt = NULL;
    cgam_prompts_opts opts = {.queries = 3, .shots_max = 2};
    cgam_status status = cgam_dataset_shipped(failing, "facts", NULL, &set);
    if (status == CGAM_OK) status = cgam_prompts_new(failing, set, NULL, &opts, &prompts);
    if (status == CGAM_OK) status = cgam_prompts_text(prompts, 0, 2, CGAM_DEMOS_FLIPPED, &prompt);
    cgam_text_free(failing, prompt);
    return status;
}

typedef struct written {
    const char *format, *path;
} written;

static int open_written(cgam_env *failing, void *arg)
{
    const written *of = arg;
    OWNED(cgam_dataset) set = NULL;
    cgam_status status = cgam_dataset_open(failing, of->format, of->path, NULL, &set);
    return status;
}

static int make_turns(cgam_env *failing, void *arg)
{
    OWNED(cgam_prompts) prompts = NULL;
    cgam_prompts_opts opts = {.queries = 3, .shots_max = 2};
    char *turns[5] = {NULL};
    cgam_status status = cgam_prompts_new(failing, arg, NULL, &opts, &prompts);
    if (status == CGAM_OK) status = cgam_prompts_turns(prompts, 0, 2, CGAM_DEMOS_TRUE, turns);
    for (int i = 0; i < 5; i++) cgam_text_free(failing, turns[i]);
    return status;
}

TEST(every_allocation_may_fail)
{
    static const char *const files[][2] = {
        {"trec", "HUM:desc Who was Galileo ?\n"},
        {"agnews", "\"3\",\"Fears\",\"Workers\"\n"},
        {"pairs", "[{\"input\": \"a\", \"output\": \"b\"}]"},
        {"lama", "{\"obj_label\": \"x\", \"masked_sentences\": [\"He was born in [MASK] .\"]}\n"}};
    check_every_allocation(make_prompts, NULL);
    cgam_dataset *set;
    CHECK_STATUS(env, cgam_dataset_shipped(env, "sentiment", NULL, &set));
    check_every_allocation(make_turns, set);
    cgam_dataset_close(set);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        written of = {files[i][0], file_of(files[i][1], strlen(files[i][1]))};
        check_every_allocation(open_written, &of);
    }
    /* 4096 lines are read between two looks at a wish to stop */
    OWNED_BLOCK(char) many = calloc(4 * 4096 + 1, 1);
    assert_non_null(many);
    for (int i = 0; i < 4096; i++) memcpy(many + 4 * i, "a\tb\n", 4);
    written of = {"tsv", file_of(many, 4 * 4096)};
    assert_true(check_every_place(open_written, &of) > 0);
    unlink(of.path);
}

TEST_GROUP(set_up, tear_down)
