/* The server's catalog and the reading of requests while calls to the system and the C library fail in turn: a status with one line, or
 * what was asked for; nothing open, nothing allocated. */
#include "app/verbs.h"
#include "io/array.h"
#include "serve/server.h"
#include "support/failing_calls.h"
#include "support/one_env.h"

#include <cgam/io.h>
#include <unistd.h>

#include "support/owned.h"

static char folder[] = "/tmp/cgam-catalog-XXXXXX"; /* the working directory */

/* Opens the catalog that words of a command line give. */
static cgam_status open_words(cgam_env *on, const char *line, cgam_catalog *catalog)
{
    char text[300], *rest = text;
    const char *words[20];
    int count = 0;
    OWNED(cgam_args) args = NULL;
    *catalog = (cgam_catalog){0};
    snprintf(text, sizeof text, "%s", line);
    while (rest) words[count++] = strsep(&rest, " ");
    TRY(cgam_args_parse(on, &cgam_verb_serve, count, words, &args));
    cgam_call call = {.env = on, .args = args, .verb = &cgam_verb_serve};
    TRY(cgam_catalog_open(&call, on, catalog));
    return CGAM_OK;
}

/* A catalog of a bank with names, and a root; a text with their paths, which are hidden. */
static int open_catalog(cgam_env *on, void *arg)
{
    (void)arg;
    cgam_catalog catalog;
    cgam_status status = open_words(on, "--bank Z=Z.npy --names Z=n.txt --root root", &catalog);
    if (status == CGAM_OK) {
        char text[300], *hidden;
        snprintf(text, sizeof text, "%s/Z.npy: no; %s/out: no; %s/Z.npy2 yes", folder, catalog.root,
                 folder);
        if (!cgam_catalog_hide_paths(&catalog, text, &hidden))
            status = cgam_fail(on, CGAM_E_NOMEM, "a text");
        else if (!hidden || strncmp(hidden, "Z: no; ", 7) != 0 || !strstr(hidden, "2 yes") ||
                 strstr(hidden, catalog.root))
            fail_msg("hidden: %s", hidden);
        free(hidden);
    }
    cgam_catalog_close(&catalog);
    return status;
}

/* A verb and the body of a request for it, with ' in place of ". */
typedef struct posted {
    const char *verb, *body;
} posted;

static cgam_status read_posted(cgam_request *request, const cgam_catalog *catalog, posted p)
{
    char body[400];
    int v = 0;
    snprintf(body, sizeof body, "%s", p.body);
    for (char *c = body; (c = strchr(c, '\''));) *c = '"';
    while (strcmp(cgam_verbs[v]->name, p.verb) != 0) v++;
    return cgam_request_read(request, catalog, cgam_verbs[v], body, strlen(body));
}

static char id[] = "Z", path[] = "/nowhere/Z.npy", below[] = "/nowhere", model[] = "/nowhere/m";
static cgam_catalog_entry entries[] = {{CGAM_INPUT_BANK, id, path}, {CGAM_INPUT_MODEL, id, model}};

static cgam_catalog catalog_of(cgam_env *on)
{
    return (cgam_catalog){.env = on, .entries = entries, .count = 2, .root = below};
}

static int read_request(cgam_env *on, void *arg)
{
    cgam_catalog catalog = catalog_of(on);
    cgam_request request;
    cgam_status status = read_posted(&request, &catalog, *(const posted *)arg);
    const char *bank_is = cgam_json_get_text(request.options, "bank");
    if (status == CGAM_OK && *bank_is && strcmp(bank_is, path) != 0)
        fail_msg("the bank is %s", bank_is);
    cgam_request_close(&request);
    return status;
}

TEST(what_the_machine_refuses_is_reported)
{
    assert_true(check_every_call(open_catalog, NULL, NULL) > 20);
    static const posted requests[] = {
        {"recall", "{'bank': 'Z', 'query': [[1, 2], [3, 4.5]], 'context': 'rows:0', 'names': "
                   "{'text': 'a\\nb'}, 'target': 1, 'only': [true, false], 'projection': {'npy': "
                   "'AAAA'}, 'none such': 1}"},
        {"study competition", "{'out': 'x'}"},
        {"study competition", "{}"}, /* what it would write is switched off */
        {"net show", "{'FILE': {'a': [1, 2]}}"},
        {"lm generate",
         "{'vector': [{'values': [1], 'as': '{}:4'}, {'values': [1]}], 'prompt': 'x'}"},
    };
    /* a request wants nothing of the machine but memory */
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        posted one = requests[i];
        assert_true(check_calls_of("malloc", read_request, &one, NULL) >
                    (malloc_fails_too() ? 4 : -1));
    }
}

/* The option that the verb gets in place of a file and the contents that it finds there, or why not. */
TEST(a_request_becomes_options_or_is_rejected)
{
#define LONG_AS "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define NPY(type) "'" type "', 'fortran_order': False, 'shape': "
    static const struct {
        const char *verb, *body;
        const char *name, *given; /* an option of the verb; NULL and a part of the message */
        int files;                /* in memory; -1: rejected */
        const char *piece;        /* of the first */
    } cases[] = {
        {"recall", "{'bank': 'Z', 'query': [[1, 2], [3, 4]]}", "query", "query", 1,
         NPY("<i8") "(2, 2)"},
        {"recall", "{'query': [1, 2.5]}", "query", "query", 1, NPY("<f8") "(2,)"},
        {"recall", "{'query': [true, false]}", "query", "query", 1, NPY("|b1") "(2,)"},
        {"recall", "{'query': []}", "query", "query", 1, NPY("<f8") "(0,)"},
        {"recall", "{'query': [[], []]}", "query", "query", 1, "'shape': (2, 0)"},
        {"recall", "{'query': {'values': 5}}", "query", "query", 1, NPY("<i8") "()"},
        {"recall", "{'query': [[[[[[[[7]]]]]]]]}", "query", "query", 1, "(1, 1, 1, 1, 1, 1, 1, 1)"},
        {"recall", "{'bank': 'demo:'}", "bank", "demo:", 0, ""},
        {"recall", "{'bank': 'demo:12'}", "bank", "demo:12", 0, ""},
        {"recall", "{'target': '12'}", "target", "12", 0, ""},
        {"recall", "{'names': {'text': 'a\\nb'}}", "names", "names", 1, "a\nb"},
        {"lm generate", "{'vector': [{'values': [1], 'as': '{}:4:1-2'}]}", "vector",
         "vector-0:4:1-2", 1, "'shape': (1,)"},
        {"lm generate", "{'edit': [{'values': [1], 'as': '3:add:all:1:{}'}]}", "edit",
         "3:add:all:1:edit-0", 1, "'shape': (1,)"},
        {"lm generate", "{'vector': [[1], [2], [3], [4], [5], [6], [7], [8], [9], [10]]}", "vector",
         "vector-0", 10, "'shape': (1,)"},
        {"lm generate", "{}", "model", "/nowhere/m", 0, ""}, /* the server's own */
        {"lm generate", "{'model': null}", "model", "/nowhere/m", 0, ""},
        {"recall", "{'query': [[1, 2], [3]]}", NULL,
         "query: expected lists of numbers, of equal lengths", -1, ""},
        {"recall", "{'query': [[1, 2], 3]}", NULL,
         "query: expected lists of numbers, of equal lengths", -1, ""},
        {"recall", "{'query': [1, [2]]}", NULL,
         "query: expected lists of numbers, of equal lengths", -1, ""},
        {"recall", "{'query': [[[[[[[[[7]]]]]]]]]}", NULL, "at most 8 deep", -1, ""},
        {"recall", "{'query': [1, 'x']}", NULL, "query", -1, ""},
        {"recall", "{'query': {'npy': 7}}", NULL, "npy must be a base64", -1, ""},
        {"recall", "{'query': {'npy': 'A'}}", NULL, "query", -1, ""},
        {"recall", "{'query': {'npy': '!!!!'}}", NULL, "invalid base64 at character 0", -1, ""},
        {"recall", "{'query': {'values': [1], 'as': 'x'}}", NULL, "query: as must", -1, ""},
        {"recall", "{'query': {'values': [1], 'as': 'x{}:1'}}", NULL, "query: as must", -1, ""},
        {"recall", "{'query': {'values': [1], 'as': '{}x'}}", NULL, "query: as must", -1, ""},
        {"recall", "{'query': {'values': [1], 'as': '{}:" LONG_AS "'}}", NULL, "query: as must", -1,
         ""},
        {"lm generate", "{'edit': [{'values': [1], 'as': '3:add:{}'}]}", NULL, "edit: as must", -1,
         ""},
        {"lm generate", "{'edit': [{'values': [1], 'as': '3:add:all:1:x{}'}]}", NULL,
         "edit: as must", -1, ""},
        {"lm generate", "{'vector': [{'npy': 1}, [1]]}", NULL, "npy must be a base64", -1, ""},
        {"recall", "{'bank': 'nobody', 'query': [1]}", NULL, "nobody", -1, ""},
        {"recall", "{'bank': 'demo:x'}", NULL, "no 'demo:x'", -1, ""},
        {"recall", "[1]", NULL, "one JSON object", -1, ""},
        {"recall", "{'bank'", NULL, "request", -1, ""},
    };
    int wrong = 0;
    cgam_catalog catalog = catalog_of(env);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cgam_request request;
        const char *name = cases[i].name, *piece = cases[i].piece, *text;
        cgam_status status =
            read_posted(&request, &catalog, (posted){cases[i].verb, cases[i].body});
        const json_t *given = json_object_get(request.options, name ? name : "");
        if (json_is_array(given)) given = json_array_get(given, 0);
        text = name ? json_string_value(given) : cgam_env_message(env);
        bool fine = name ? status == CGAM_OK && text && strcmp(text, cases[i].given) == 0 &&
                               request.count == cases[i].files
                         : status != CGAM_OK && strstr(text, cases[i].given);
        if (fine && cases[i].files > 0)
            fine = memmem(request.files[0].bytes, request.files[0].size, piece, strlen(piece));
        if (!fine)
            print_error("%s: status %d, %s, %d files\n", cases[i].body, status,
                        text ? text : "none", request.count);
        wrong += !fine;
        cgam_request_close(&request);
    }
    assert_int_equal(wrong, 0);
}

/* The ids that words of the command line give, or why they give none. */
TEST(a_catalog_has_its_ids_or_says_why_not)
{
#define TEN "0123456789"
    static const struct {
        const char *line, *ids, *message; /* "bank ..;store ..;model ..;", or NULL and why */
    } cases[] = {
        {"--bank Z.npy", "Z demo;;;", NULL},
        {"--bank two.npz:b", "two demo;;;", NULL},
        {"--bank demo=Z.npy", "demo;;;", NULL}, /* in place of ours */
        {"--store ./a=b/s.db --store plain --model m=Z.npy", "demo;s plain;m;", NULL},
        {"--store a --store b --store c --store d --store e --store f --store g --store h --store i",
         "demo;a b c d e f g h i;;", NULL},
        {"--bank a=", NULL, "bank: ID=FILE has no FILE"},
        {"--bank " TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "x=Z.npy", NULL, "invalid id"},
        {"--bank -a=Z.npy", NULL, "invalid id '-a'"},
        {"--bank none.npz:b --bank Z.npy", NULL, "none.npz"},
        {"--bank two.npz:none", NULL, "none"},
        {"--model none.gguf", NULL, "none.gguf"},
        {"--bank Z.npy --names x=n.txt --names Z=n.txt", NULL, "no bank 'x'"},
        {"--root Z.npy/root", NULL, "Not a directory"},
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const char *const kinds[] = {"banks", "stores", "models"};
        char ids[200] = "";
        size_t used = 0, k;
        cgam_catalog catalog;
        cgam_status status = open_words(env, cases[i].line, &catalog);
        const char *said = status == CGAM_OK ? "" : cgam_env_message(env);
        json_t *doc = json_object(), *one;
        if (status == CGAM_OK) cgam_catalog_describe(&catalog, doc);
        for (int kind = 0; kind < 3; kind++) {
            json_array_foreach(json_object_get(doc, kinds[kind]), k, one) cgam_text_add(
                ids, sizeof ids, &used, "%s%s", k ? " " : "", cgam_json_get_text(one, "id"));
            cgam_text_add(ids, sizeof ids, &used, ";");
        }
        bool fine = cases[i].ids ? status == CGAM_OK && strcmp(ids, cases[i].ids) == 0
                                 : status != CGAM_OK && strstr(said, cases[i].message) &&
                                       !strchr(said, '\n');
        if (!fine) print_error("%s: %s %s\n", cases[i].line, ids, said);
        wrong += !fine;
        json_decref(doc);
        cgam_catalog_close(&catalog);
    }
    assert_int_equal(wrong, 0);
}

/* A path is hidden where it stands as a whole, and only there. */
TEST(what_is_hidden_is_a_whole_path)
{
    static const struct {
        const char *text, *hidden; /* NULL: there is nothing to hide */
    } cases[] = {
        {"/nowhere/Z.npy: no", "Z: no"},
        {"/nowhere/Z.npy_2, /nowhere/Z.npy2", "Z.npy_2, Z.npy2"}, /* others, below the root */
        {"in /nowhere", "in root"},
        {"nothing", NULL},
    };
    cgam_catalog catalog = catalog_of(env);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *hidden;
        assert_true(cgam_catalog_hide_paths(&catalog, cases[i].text, &hidden));
        if (cases[i].hidden) assert_string_equal(hidden ? hidden : "none", cases[i].hidden);
        else assert_null(hidden);
        free(hidden);
    }
}

/* Of a long path a message has the end alone. */
TEST(the_end_of_a_long_path_is_hidden_too)
{
    enum { LONG = 300, CUT = 120 };
    char long_root[LONG + 1], file[LONG + 8], text[LONG + 40], *hidden;
    for (int i = 0; i < LONG; i++) long_root[i] = i % 30 ? (char)('a' + i % 30 % 26) : '/';
    long_root[LONG] = '\0';
    snprintf(file, sizeof file, "%s/Z.npy", long_root);
    cgam_catalog_entry entry = {.kind = CGAM_INPUT_BANK, .id = (char[]){"Z"}, .path = file};
    const cgam_catalog catalog = {.env = env, .entries = &entry, .count = 1, .root = long_root};
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "%s%s: no", (i ? long_root : file) + CUT,
                 i ? "/out/p.csv" : "");
        assert_true(cgam_catalog_hide_paths(&catalog, text, &hidden));
        assert_string_equal(hidden ? hidden : text, i ? "out/p.csv: no" : "Z: no");
        free(hidden);
    }
    assert_true(
        cgam_catalog_hide_paths(&catalog, long_root + LONG - 20, &hidden)); /* may be anybody's */
    assert_null(hidden);
}

static int enter(void **state)
{
    const double Z[] = {1, 0, 0, 1};
    const int64_t shape[] = {2, 2};
    const cgam_named_array arrays[] = {{"a", CGAM_F64, 2, shape, Z}, {"b", CGAM_F64, 2, shape, Z}};
    assert_true(mkdtemp(folder) && chdir(folder) == 0);
    set_up(state);
    CHECK_STATUS(env, cgam_npy_write(env, "Z.npy", CGAM_F64, 2, shape, Z));
    CHECK_STATUS(env, cgam_arrays_write(env, "two.npz", 2, arrays));
    FILE *f = fopen("n.txt", "w");
    assert_true(f && fputs("a\nb\n", f) >= 0 && fclose(f) == 0);
    return 0;
}

static int leave(void **state)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    tear_down(state);
    return system(command);
}

TEST_GROUP(enter, leave)
