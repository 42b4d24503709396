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

static int read_request(cgam_env *env, void *arg)
{
    static const char body[] =
        "{\"bank\": \"Z\", \"query\": [[1, 2], [3, 4.5]], \"context\": \"rows:0\", \"names\": {\"text\": "
        "\"a\\nb\"}, \"target\": 1, \"only\": [true, false]}";
    (void)arg;
    char id[] = "Z", path[] = "/nowhere/Z.npy", below[] = "/nowhere";
    cgam_tenant tenant = {CGAM_INPUT_BANK, id, path};
    cgam_house house = {.env = env, .tenants = &tenant, .count = 1, .root = below};
    cgam_wish wish;
    int used;
    const cgam_verb *verb = cgam_verb_find(1, (const char *const[]){"recall"}, &used);
    cgam_status status = cgam_wish_read(&wish, &house, verb, body, sizeof body - 1);
    if (status == CGAM_OK && strcmp(cgam_json_get_text(wish.options, "bank"), path) != 0)
        fail_msg("the bank is %s", cgam_json_get_text(wish.options, "bank"));
    cgam_wish_close(&wish);
    return status;
}

static void what_the_machine_refuses_is_told(void **state)
{
    (void)state;
    assert_true(check_every_call(open_house, NULL, NULL) > 20);
    /* a request wants nothing of the machine but memory */
    assert_true(check_every_call(read_request, NULL, NULL) > (malloc_fails_too() ? 10 : -1));
}

static void what_cannot_be_in_a_request_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *body, *message;
    } cases[] = {
        {"{\"bank\": \"Z\", \"query\": [[1, 2], [3]]}", "query"},
        {"{\"bank\": \"Z\", \"query\": [[1, 2], 3]}", "query"},
        {"{\"bank\": \"Z\", \"query\": [1, \"x\"]}", "query"},
        {"{\"bank\": \"Z\", \"query\": {\"npy\": 7}}", "npy is a text in base64"},
        {"{\"bank\": \"Z\", \"query\": {\"npy\": \"A\"}}", "query"},
        {"{\"bank\": \"Z\", \"query\": {\"npy\": \"????\"}}", "query"},
        {"{\"bank\": \"Z\", \"query\": {\"values\": [1], \"as\": \"x\"}}", "query"},
        {"{\"bank\": \"Z\", \"query\": {\"values\": [1], \"as\": \"x{}:1\"}}", "query"},
        {"{\"bank\": \"nobody\", \"query\": [1]}", "nobody"},
        {"[1]", "object"},
        {"{\"bank\"", ""},
    };
    cgam_env *env = object_env(1);
    char id[] = "Z", path[] = "/nowhere/Z.npy";
    cgam_tenant tenant = {CGAM_INPUT_BANK, id, path};
    cgam_house house = {.env = env, .tenants = &tenant, .count = 1};
    int used, wrong = 0;
    const cgam_verb *verb = cgam_verb_find(1, (const char *const[]){"recall"}, &used);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cgam_wish wish;
        cgam_status status =
            cgam_wish_read(&wish, &house, verb, cases[i].body, strlen(cases[i].body));
        const char *said = status == CGAM_OK ? "taken" : cgam_env_message(env);
        if (status == CGAM_OK || !strstr(said, cases[i].message)) {
            print_error("%s: no '%s' in: %s\n", cases[i].body, cases[i].message, said);
            wrong++;
        }
        cgam_wish_close(&wish);
    }
    assert_int_equal(wrong, 0);
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
        cmocka_unit_test(what_cannot_be_in_a_request_is_named),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
