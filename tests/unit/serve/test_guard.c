/* Who may come in, header by header: hosts and origins in every form, tokens from words and files. */
#include "app/verbs.h"
#include "serve/server.h"
#include "support/objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static cgam_env *env;
static cgam_args *args;

/* The guard that these words of the command line make. */
static cgam_status open_guard(cgam_guard *guard, int count, const char *const *words)
{
    cgam_args_free(args);
    args = NULL;
    *guard = (cgam_guard){.port = 8080};
    CHECK_STATUS(env, cgam_args_parse(env, &cgam_verb_serve, count, words, &args));
    return cgam_guard_open(&(cgam_call){.env = env, .args = args}, guard);
}

#define OPEN(guard, ...)                                                                           \
    open_guard(&(guard), (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),            \
               (const char *[]){__VA_ARGS__})

static int set_up(void **state)
{
    (void)state;
    env = object_env(1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cgam_args_free(args);
    args = NULL;
    cgam_env_free(env);
    return 0;
}

static void hosts_that_are_ours_are_answered(void **state)
{
    (void)state;
    cgam_guard g;
    CHECK_STATUS(env,
                 OPEN(g, "--host", "here.example", "--allow-host", "other.example", "--allow-host",
                      "third.example:99", "--allow-host", "[::1", "--token", "se-cret"));
    char longer[400];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    static const struct {
        const char *header, *local;
        bool ours;
    } list[] = {
        {NULL, NULL, false},
        {"", NULL, false},
        {"localhost:8080", NULL, true},
        {"LOCALHOST:8080", NULL, true},
        {"127.9.9.9:8080", NULL, true},
        {"[::1]:8080", NULL, true},
        {"[::2]:8080", NULL, false},
        {"[::1:8080", NULL, false}, /* no closing bracket */
        {"[::1]8080", NULL, false}, /* no colon after it */
        {"localhost", NULL, false}, /* is port 80 */
        {"localhost:", NULL, false},
        {"localhost:808o", NULL, false},
        {"localhost:808080", NULL, false},
        {"localhost:65536", NULL, false},
        {"localhost:8081", NULL, false},
        {"here.example:8080", NULL, true},
        {"Here.Example:8080", NULL, true},
        {"10.0.0.7:8080", "10.0.0.7", true},
        {"10.0.0.8:8080", "10.0.0.7", false},
        {"10.0.0.7:8080", NULL, false},
        {"other.example", NULL, true}, /* allowed with any port */
        {"other.example:1", NULL, true},
        {"third.example:99", NULL, true},
        {"third.example:98", NULL, false},
        {"third.example", NULL, false},
        {"evil.example:8080", NULL, false},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (cgam_guard_host(&g, list[i].header, list[i].local) != list[i].ours)
            fail_msg("Host: %s is%s ours", list[i].header, list[i].ours ? "" : " not");
    assert_false(cgam_guard_host(&g, longer, NULL));
    g.port = 80;
    assert_true(cgam_guard_host(&g, "localhost", NULL));
}

static void pages_that_are_ours_may_ask(void **state)
{
    (void)state;
    cgam_guard g;
    CHECK_STATUS(env, OPEN(g, "--allow-host", "other.example", "--allow-origin",
                           "https://page.example", "--token", "se-cret"));
    static const struct {
        const char *header;
        bool ours;
    } list[] = {
        {NULL, true}, /* no browser */
        {"http://localhost:8080", true},
        {"HTTP://127.0.0.1:8080", true},
        {"http://localhost:8081", false},
        {"http://localhost", false},
        {"https://localhost:8080",
         false}, /* we speak no TLS; who stands before us is allowed by name */
        {"https://other.example", true},
        {"http://other.example:3", true},
        {"https://page.example", true},
        {"https://Page.Example", true},
        {"https://page.example:444", false},
        {"null", false},
        {"file://", false},
        {"http://", false},
        {"http://evil.example", false},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (cgam_guard_origin(&g, list[i].header, NULL) != list[i].ours)
            fail_msg("Origin: %s is%s ours", list[i].header, list[i].ours ? "" : " not");
    assert_true(cgam_guard_cors(&g, "https://page.example"));
    assert_false(cgam_guard_cors(&g, "http://localhost:8080"));
    assert_false(cgam_guard_cors(&g, NULL));
}

static void the_token_opens_and_nothing_else(void **state)
{
    (void)state;
    cgam_guard g;
    CHECK_STATUS(env, OPEN(g, "--token", "se-cret"));
    assert_true(cgam_guard_token(&g, "Bearer se-cret"));
    assert_true(cgam_guard_token(&g, "bearer   se-cret"));
    static const char *const wrong[] = {NULL,
                                        "",
                                        "se-cret",
                                        "Bearer",
                                        "Bearer ",
                                        "Basic se-cret",
                                        "Bearer se-cre",
                                        "Bearer se-crets",
                                        "Bearer SE-CRET"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(cgam_guard_token(&g, wrong[i]));
    CHECK_STATUS(env, OPEN(g, "--no-token"));
    assert_true(cgam_guard_token(&g, NULL));
    cgam_guard first, second; /* made up, and no two alike */
    CHECK_STATUS(env, OPEN(first, "--host", "0.0.0.0"));
    CHECK_STATUS(env, OPEN(second, "--host", "0.0.0.0"));
    assert_int_equal(strlen(first.token), 32);
    assert_string_not_equal(first.token, second.token);
}

static void tokens_that_cannot_be_are_refused(void **state)
{
    (void)state;
    cgam_guard g;
    char path[] = "/tmp/cgam-guard-XXXXXX", longer[400], blank[] = "two words";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    CHECK_FAILS(env, CGAM_E_ARG, OPEN(g, "--token", "se-cret", "--no-token"));
    CHECK_MESSAGE(env, "exclude each other");
    CHECK_FAILS(env, CGAM_E_ARG, OPEN(g, "--no-token", "--host", "0.0.0.0"));
    CHECK_MESSAGE(env, "host 0.0.0.0 is not of this machine alone");
    CHECK_FAILS(env, CGAM_E_ARG, OPEN(g, "--token", longer));
    CHECK_MESSAGE(env, "token: it has more than 256 letters");
    CHECK_FAILS(env, CGAM_E_ARG, OPEN(g, "--token", blank));
    CHECK_MESSAGE(env, "token: letters, digits and");
    CHECK_FAILS(env, CGAM_E_ARG, OPEN(g, "--token-file", path)); /* an empty file */
    CHECK_MESSAGE(env, "token-file: letters, digits and");
    static const char *const lines[] = {"se-cret", "se-cret\n", "se-cret\r\nanother line\n"};
    for (int i = 0; i < 3; i++) {
        FILE *to = fopen(path, "w");
        fputs(lines[i], to);
        fclose(to);
        CHECK_STATUS(env, OPEN(g, "--token-file", path));
        assert_true(cgam_guard_token(&g, "Bearer se-cret"));
    }
    FILE *to = fopen(path, "w");
    fwrite("s\0cret\n", 1, 7, to); /* bytes at random, say */
    fclose(to);
    CHECK_FAILS(env, CGAM_E_ARG, OPEN(g, "--token-file", path));
    CHECK_MESSAGE(env, "token-file: letters, digits and");
    to = fopen(path, "w");
    fputs(longer, to);
    fclose(to);
    CHECK_FAILS(env, CGAM_E_ARG, OPEN(g, "--token-file", path));
    CHECK_MESSAGE(env, "token-file: the token has more than 256 bytes");
    close(fd);
    unlink(path);
    CHECK_FAILS(env, CGAM_E_NOT_FOUND, OPEN(g, "--token-file", path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hosts_that_are_ours_are_answered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pages_that_are_ours_may_ask, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_token_opens_and_nothing_else, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tokens_that_cannot_be_are_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
