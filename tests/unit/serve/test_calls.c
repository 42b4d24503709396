/* The server's house and the reading of requests while calls to the system and the C library fail in turn: a status with one line, or
 * what was asked for; nothing open, nothing allocated. */
#include "app/verbs.h"
#include "serve/server.h"
#include "support/failing_calls.h"
#include "support/objects.h"

#include <cgam/io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/cgam-house-XXXXXX", bank[64], named[80], names[80], root[64];

/* A house of a bank with names, and a root; a text that tells where they lie, veiled. */
static int open_house(cgam_env *env, void *arg)
{
    (void)arg;
    cgam_house house = {0};
    cgam_args *args = NULL;
    const char *const words[] = {"--bank", named, "--names", names, "--root", root};
    cgam_status status = cgam_args_parse(env, &cgam_verb_serve, 6, words, &args);
    cgam_call call = {.env = env, .args = args, .verb = &cgam_verb_serve};
    if (status == CGAM_OK) status = cgam_house_open(&call, env, &house);
    if (status == CGAM_OK) {
        char text[300], *veiled;
        snprintf(text, sizeof text, "%s: no; %s/out: no; %s2 yes", bank, house.root, bank);
        if (!cgam_house_veil(&house, text, &veiled))
            status = cgam_fail(env, CGAM_E_NOMEM, "a text");
        else if (!veiled || strncmp(veiled, "Z: no; ", 7) != 0 || !strstr(veiled, "2 yes") ||
                 strstr(veiled, house.root))
            fail_msg("veiled: %s", veiled);
        free(veiled);
    }
    cgam_house_close(&house);
    cgam_args_free(args);
    return status;
}

/* A verb and a request for it. */
typedef struct request {
    const char *words[2], *body;
} request;

static cgam_status wish_for(cgam_wish *wish, const cgam_house *house, const request *r)
{
    int used;
    const cgam_verb *verb = cgam_verb_find(r->words[1] ? 2 : 1, r->words, &used);
    assert_non_null(verb);
    return cgam_wish_read(wish, house, verb, r->body, strlen(r->body));
}

static char id[] = "Z", path[] = "/nowhere/Z.npy", below[] = "/nowhere", model[] = "/nowhere/m";
static cgam_tenant tenants[] = {{CGAM_INPUT_BANK, id, path}, {CGAM_INPUT_MODEL, id, model}};

static cgam_house house_of(cgam_env *env)
{
    return (cgam_house){.env = env, .tenants = tenants, .count = 2, .root = below};
}

static int read_request(cgam_env *env, void *arg)
{
    cgam_house house = house_of(env);
    cgam_wish wish;
    cgam_status status = wish_for(&wish, &house, arg);
    const char *bank_is = cgam_json_get_text(wish.options, "bank");
    if (status == CGAM_OK && *bank_is && strcmp(bank_is, path) != 0)
        fail_msg("the bank is %s", bank_is);
    cgam_wish_close(&wish);
    return status;
}

static void what_the_machine_refuses_is_told(void **state)
{
    (void)state;
    assert_true(check_every_call(open_house, NULL, NULL) > 20);
    static const request requests[] = {
        {{"recall"},
         "{\"bank\": \"Z\", \"query\": [[1, 2], [3, 4.5]], \"context\": \"rows:0\", \"names\": "
         "{\"text\": \"a\\nb\"}, \"target\": 1, \"only\": [true, false], \"projection\": {\"npy\": "
         "\"AAAA\"}, \"none such\": 1}"},
        {{"study", "competition"}, "{\"out\": \"x\"}"},
        {{"study", "competition"}, "{}"}, /* what it would write is switched off */
        {{"net", "show"}, "{\"FILE\": {\"a\": [1, 2]}}"},
        {{"lm", "generate"},
         "{\"vector\": [{\"values\": [1], \"as\": \"{}:4\"}, {\"values\": [1]}], \"prompt\": \"x\"}"},
    };
    /* a request wants nothing of the machine but memory */
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        request one = requests[i];
        assert_true(check_calls_of("malloc", read_request, &one, NULL) >
                    (malloc_fails_too() ? 4 : -1));
    }
}

/* What stands in place of files: the option that the verb gets, and the numbers it finds there. */
static void what_is_in_a_request_is_lent(void **state)
{
    (void)state;
    static const struct {
        request r;
        const char *name, *given; /* an option of the verb */
        int lent;
        const char *piece; /* of the first that is lent */
    } cases[] = {
        {{{"recall"}, "{\"bank\": \"Z\", \"query\": [[1, 2], [3, 4]]}"},
         "query",
         "query",
         1,
         "'<i8', 'fortran_order': False, 'shape': (2,2,)"},
        {{{"recall"}, "{\"query\": [1, 2.5]}"},
         "query",
         "query",
         1,
         "'<f8', 'fortran_order': False, 'shape': (2,)"},
        {{{"recall"}, "{\"query\": [true, false]}"},
         "query",
         "query",
         1,
         "'|b1', 'fortran_order': False, 'shape': (2,)"},
        {{{"recall"}, "{\"query\": []}"},
         "query",
         "query",
         1,
         "'<f8', 'fortran_order': False, 'shape': (0,)"},
        {{{"recall"}, "{\"query\": [[], []]}"}, "query", "query", 1, "'shape': (2,0,)"},
        {{{"recall"}, "{\"query\": {\"values\": 5}}"},
         "query",
         "query",
         1,
         "'<i8', 'fortran_order': False, 'shape': ()"},
        {{{"recall"}, "{\"query\": [[[[[[[[7]]]]]]]]}"}, "query", "query", 1, "(1,1,1,1,1,1,1,1,)"},
        {{{"recall"}, "{\"bank\": \"demo:\"}"}, "bank", "demo:", 0, ""},
        {{{"recall"}, "{\"bank\": \"demo:12\"}"}, "bank", "demo:12", 0, ""},
        {{{"recall"}, "{\"target\": \"12\"}"}, "target", "12", 0, ""},
        {{{"recall"}, "{\"names\": {\"text\": \"a\\nb\"}}"}, "names", "names", 1, "a\nb"},
        {{{"lm", "generate"}, "{\"vector\": [{\"values\": [1], \"as\": \"{}:4:1-2\"}]}"},
         "vector",
         "vector-0:4:1-2",
         1,
         "'shape': (1,)"},
        {{{"lm", "generate"}, "{\"edit\": [{\"values\": [1], \"as\": \"3:add:all:1:{}\"}]}"},
         "edit",
         "3:add:all:1:edit-0",
         1,
         "'shape': (1,)"},
        {{{"lm", "generate"}, "{\"vector\": [[1], [2], [3], [4], [5], [6], [7], [8], [9], [10]]}"},
         "vector",
         "vector-0",
         10,
         "'shape': (1,)"},
        {{{"lm", "generate"}, "{}"}, "model", "/nowhere/m", 0, ""}, /* the server's own */
        {{{"lm", "generate"}, "{\"model\": null}"}, "model", "/nowhere/m", 0, ""},
    };
    int wrong = 0;
    cgam_env *env = object_env(1);
    cgam_house house = house_of(env);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cgam_wish wish;
        cgam_status status = wish_for(&wish, &house, &cases[i].r);
        const json_t *given = json_object_get(wish.options, cases[i].name);
        if (json_is_array(given)) given = json_array_get(given, 0);
        const char *text = json_string_value(given), *piece = cases[i].piece;
        bool fine = status == CGAM_OK && text && strcmp(text, cases[i].given) == 0 &&
                    wish.count == cases[i].lent;
        if (fine && wish.count > 0)
            fine = memmem(wish.files[0].bytes, wish.files[0].size, piece, strlen(piece)) != NULL;
        if (!fine) {
            print_error("%s: status %d, %s is %s, %d lent\n", cases[i].r.body, status,
                        cases[i].name, text ? text : "none", wish.count);
            wrong++;
        }
        cgam_wish_close(&wish);
    }
    assert_int_equal(wrong, 0);
    cgam_env_free(env);
}

static void what_cannot_be_in_a_request_is_named(void **state)
{
    (void)state;
#define LONG_AS "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    static const struct {
        request r;
        const char *message;
    } cases[] = {
        {{{"recall"}, "{\"bank\": \"Z\", \"query\": [[1, 2], [3]]}"},
         "query: numbers in lists of equal lengths"},
        {{{"recall"}, "{\"bank\": \"Z\", \"query\": [[1, 2], 3]}"},
         "query: numbers in lists of equal lengths"},
        {{{"recall"}, "{\"bank\": \"Z\", \"query\": [1, [2]]}"},
         "query: numbers in lists of equal lengths"},
        {{{"recall"}, "{\"bank\": \"Z\", \"query\": [[[[[[[[[7]]]]]]]]]}"}, "at most 8 deep"},
        {{{"recall"}, "{\"bank\": \"Z\", \"query\": [1, \"x\"]}"}, "query"},
        {{{"recall"}, "{\"bank\": \"Z\", \"query\": {\"npy\": 7}}"}, "npy is a text in base64"},
        {{{"recall"}, "{\"bank\": \"Z\", \"query\": {\"npy\": \"A\"}}"}, "query"},
        {{{"recall"}, "{\"bank\": \"Z\", \"query\": {\"npy\": \"????\"}}"},
         "not base64 at letter 0"},
        {{{"recall"}, "{\"bank\": \"Z\", \"query\": {\"values\": [1], \"as\": \"x\"}}"},
         "query: as is"},
        {{{"recall"}, "{\"bank\": \"Z\", \"query\": {\"values\": [1], \"as\": \"x{}:1\"}}"},
         "query: as is"},
        {{{"recall"}, "{\"bank\": \"Z\", \"query\": {\"values\": [1], \"as\": \"{}x\"}}"},
         "query: as is"},
        {{{"recall"},
          "{\"bank\": \"Z\", \"query\": {\"values\": [1], \"as\": \"{}:" LONG_AS "\"}}"},
         "query: as is"},
        {{{"lm", "generate"}, "{\"edit\": [{\"values\": [1], \"as\": \"3:add:{}\"}]}"},
         "edit: as is"},
        {{{"lm", "generate"}, "{\"edit\": [{\"values\": [1], \"as\": \"3:add:all:1:x{}\"}]}"},
         "edit: as is"},
        {{{"lm", "generate"}, "{\"vector\": [{\"npy\": 1}, [1]]}"}, "npy is a text"},
        {{{"recall"}, "{\"bank\": \"nobody\", \"query\": [1]}"}, "nobody"},
        {{{"recall"}, "{\"bank\": \"demo:x\"}"}, "no 'demo:x' here"},
        {{{"recall"}, "[1]"}, "one JSON object"},
        {{{"recall"}, "{\"bank\""}, "request"},
    };
    cgam_env *env = object_env(1);
    cgam_house house = house_of(env);
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cgam_wish wish;
        cgam_status status = wish_for(&wish, &house, &cases[i].r);
        const char *said = status == CGAM_OK ? "taken" : cgam_env_message(env);
        if (status == CGAM_OK || !strstr(said, cases[i].message)) {
            print_error("%s: no '%s' in: %s\n", cases[i].r.body, cases[i].message, said);
            wrong++;
        }
        cgam_wish_close(&wish);
    }
    assert_int_equal(wrong, 0);
    cgam_env_free(env);
}

/* ---- houses ------------------------------------------------------------------------------------ */

/* The ids that words of the command line give, or why they give none; %s in them is the folder. */
static void a_house_has_its_ids_or_says_why_not(void **state)
{
    (void)state;
#define TEN "0123456789"
    static const struct {
        const char *words[20];
        const char *ids, *message; /* "bank ..; store ..; model ..", or NULL and why */
    } cases[] = {
        {{"--bank", "%s/Z.npy"}, "Z demo;;", NULL},
        {{"--bank", "%s/two.npz:b"}, "two demo;;", NULL},
        {{"--bank", "demo=%s/Z.npy"}, "demo;;", NULL}, /* in place of ours */
        {{"--store", "%s/a=b/s.db", "--store", "%s/plain", "--model", "m=%s/Z.npy"},
         "demo;s plain;m",
         NULL},
        {{"--store", "%s/a", "--store", "%s/b", "--store", "%s/c", "--store", "%s/d", "--store",
          "%s/e", "--store", "%s/f", "--store", "%s/g", "--store", "%s/h", "--store", "%s/i"},
         "demo;a b c d e f g h i;",
         NULL},
        {{"--bank", "a="}, NULL, "bank: ID=FILE has no FILE"},
        {{"--bank", TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "x=%s/Z.npy"}, NULL, "is no id"},
        {{"--bank", "-a=%s/Z.npy"}, NULL, "'-a' is no id"},
        {{"--bank", "%s/none.npz:b", "--bank", "%s/Z.npy"}, NULL, "none.npz"},
        {{"--bank", "%s/two.npz:none"}, NULL, "none"},
        {{"--model", "%s/none.gguf"}, NULL, "none.gguf"},
        {{"--bank", "%s/Z.npy", "--names", "x=%s/n.txt", "--names", "Z=%s/n.txt"},
         NULL,
         "there is no bank 'x'"},
        {{"--root", "%s/Z.npy/root"}, NULL, "Not a directory"},
    };
    cgam_env *env = object_env(1);
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char words[20][200], ids[200] = "";
        const char *given[20];
        int count = 0;
        for (; count < 20 && cases[i].words[count]; count++) {
            const char *word = cases[i].words[count], *place = strstr(word, "%s");
            snprintf(words[count], sizeof words[count], "%.*s%s%s",
                     (int)(place ? place - word : (long)strlen(word)), word, place ? folder : "",
                     place ? place + 2 : "");
            given[count] = words[count];
        }
        cgam_house house = {0};
        cgam_args *args = NULL;
        CHECK_STATUS(env, cgam_args_parse(env, &cgam_verb_serve, count, given, &args));
        cgam_call call = {.env = env, .args = args, .verb = &cgam_verb_serve};
        cgam_status status = cgam_house_open(&call, env, &house);
        const char *said = status == CGAM_OK ? "" : cgam_env_message(env);
        json_t *doc = json_object(), *one;
        if (status == CGAM_OK) cgam_house_describe(&house, doc);
        for (const char *const *kind = (const char *const[]){"banks", "stores", "models", NULL};
             *kind; kind++) {
            size_t k;
            json_array_foreach(json_object_get(doc, *kind), k, one)
                snprintf(ids + strlen(ids), sizeof ids - strlen(ids), "%s%s", k ? " " : "",
                         cgam_json_get_text(one, "id"));
            if (strcmp(*kind, "models") != 0)
                snprintf(ids + strlen(ids), sizeof ids - strlen(ids), ";");
        }
        if (cases[i].ids
                ? status != CGAM_OK || strcmp(ids, cases[i].ids) != 0
                : status == CGAM_OK || !strstr(said, cases[i].message) || strchr(said, '\n')) {
            print_error("%s %s: %s %s\n", given[0], given[1], ids, said);
            wrong++;
        }
        json_decref(doc);
        cgam_house_close(&house);
        cgam_args_free(args);
    }
    assert_int_equal(wrong, 0);
    cgam_env_free(env);
}

/* A path is hidden where it stands as a whole, and only there. */
static void what_is_hidden_is_a_whole_path(void **state)
{
    (void)state;
    static const struct {
        const char *text, *veiled; /* NULL: there is nothing to hide */
    } cases[] = {
        {"/nowhere/Z.npy: no", "Z: no"},
        {"/nowhere/Z.npy_2, /nowhere/Z.npy2", "Z.npy_2, Z.npy2"}, /* others, below the root */
        {"in /nowhere", "in root"},
        {"nothing", NULL},
    };
    cgam_env *env = object_env(1);
    cgam_house house = house_of(env);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *veiled;
        assert_true(cgam_house_veil(&house, cases[i].text, &veiled));
        if (cases[i].veiled) assert_string_equal(veiled ? veiled : "none", cases[i].veiled);
        else assert_null(veiled);
        free(veiled);
    }
    cgam_env_free(env);
}

/* Of a long path a message has the end alone. */
static void the_end_of_a_long_path_is_hidden_too(void **state)
{
    (void)state;
    enum { LONG = 300, CUT = 120 };
    char long_root[LONG + 1], file[LONG + 8], text[LONG + 40], *veiled;
    for (int i = 0; i < LONG; i++) long_root[i] = i % 30 ? (char)('a' + i % 30 % 26) : '/';
    long_root[LONG] = '\0';
    snprintf(file, sizeof file, "%s/Z.npy", long_root);
    cgam_env *env = object_env(1);
    cgam_tenant tenant = {.kind = CGAM_INPUT_BANK, .id = (char[]){"Z"}, .path = file};
    const cgam_house house = {.env = env, .tenants = &tenant, .count = 1, .root = long_root};
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "%s%s: no", (i ? long_root : file) + CUT,
                 i ? "/out/p.csv" : "");
        assert_true(cgam_house_veil(&house, text, &veiled));
        assert_string_equal(veiled ? veiled : text, i ? "out/p.csv: no" : "Z: no");
        free(veiled);
    }
    assert_true(cgam_house_veil(&house, long_root + LONG - 20, &veiled)); /* may be anybody's */
    assert_null(veiled);
    cgam_env_free(env);
}

static int enter(void **state)
{
    (void)state;
    const double Z[] = {1, 0, 0, 1};
    const int64_t shape[] = {2, 2};
    cgam_env *env = object_env(1);
    assert_non_null(mkdtemp(folder));
    snprintf(bank, sizeof bank, "%s/Z.npy", folder);
    snprintf(named, sizeof named, "Z=%s", bank);
    snprintf(names, sizeof names, "Z=%s/n.txt", folder);
    snprintf(root, sizeof root, "%s/root", folder);
    CHECK_STATUS(env, cgam_npy_write(env, bank, CGAM_F64, 2, shape, Z));
    char two[64];
    snprintf(two, sizeof two, "%s/two.npz", folder);
    const cgam_named_array arrays[] = {{"a", CGAM_F64, 2, shape, Z}, {"b", CGAM_F64, 2, shape, Z}};
    CHECK_STATUS(env, cgam_arrays_write(env, two, 2, arrays));
    FILE *f = fopen(names + 2, "w");
    assert_true(f && fputs("a\nb\n", f) >= 0 && fclose(f) == 0);
    cgam_env_free(env);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_machine_refuses_is_told),
        cmocka_unit_test(what_is_in_a_request_is_lent),
        cmocka_unit_test(what_cannot_be_in_a_request_is_named),
        cmocka_unit_test(a_house_has_its_ids_or_says_why_not),
        cmocka_unit_test(what_is_hidden_is_a_whole_path),
        cmocka_unit_test(the_end_of_a_long_path_is_hidden_too),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
