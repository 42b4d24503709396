/* Access control, header by header: hosts and origins in every form, tokens from words and files. */
#include "app/verbs.h"
#include "serve/server.h"
#include "support/one_env.h"

#include <unistd.h>

#define LETTERS_20 "aaaaaaaaaaaaaaaaaaaa"
#define LETTERS_300                                                                                \
    LETTERS_20 LETTERS_20 LETTERS_20 LETTERS_20 LETTERS_20 LETTERS_20 LETTERS_20 LETTERS_20        \
        LETTERS_20 LETTERS_20 LETTERS_20 LETTERS_20 LETTERS_20 LETTERS_20 LETTERS_20

static cgam_args *args;                          /* of the guard, which borrows them */
static char folder[] = "/tmp/cgam-guard-XXXXXX"; /* the working directory */

/* The guard that a command line makes. Words are separated by commas. */
static cgam_status open_guard(cgam_guard *guard, const char *line)
{
    char text[400], *rest = text;
    const char *words[20];
    int count = 0;
    cgam_args_free(args);
    snprintf(text, sizeof text, "%s", line);
    while (rest) words[count++] = strsep(&rest, ",");
    *guard = (cgam_guard){.port = 8080};
    CHECK_STATUS(env, cgam_args_parse(env, &cgam_verb_serve, count, words, &args));
    return cgam_guard_open(&(cgam_call){.env = env, .args = args}, guard);
}

TEST(hosts_and_pages_that_are_ours_are_answered)
{
    enum { HOST, ORIGIN };
    static const struct {
        int kind;
        const char *header, *local;
        bool ours;
    } list[] = {
        {HOST, NULL, NULL, false},
        {HOST, "", NULL, false},
        {HOST, "localhost:8080", NULL, true},
        {HOST, "LOCALHOST:8080", NULL, true},
        {HOST, "127.9.9.9:8080", NULL, true},
        {HOST, "[::1]:8080", NULL, true},
        {HOST, "[::2]:8080", NULL, false},
        {HOST, "[::1:8080", NULL, false}, /* no closing bracket */
        {HOST, "[::1]8080", NULL, false}, /* no colon after it */
        {HOST, "localhost", NULL, false}, /* is port 80 */
        {HOST, "localhost:", NULL, false},
        {HOST, "localhost:808o", NULL, false},
        {HOST, "localhost:808080", NULL, false},
        {HOST, "localhost:65536", NULL, false},
        {HOST, "localhost:4294975376", NULL, false}, /* 8080 + 2^32 */
        {HOST, "localhost:8081", NULL, false},
        {HOST, "here.example:8080", NULL, true},
        {HOST, "Here.Example:8080", NULL, true},
        {HOST, "10.0.0.7:8080", "10.0.0.7", true},
        {HOST, "10.0.0.8:8080", "10.0.0.7", false},
        {HOST, "10.0.0.7:8080", NULL, false},
        {HOST, "other.example", NULL, true}, /* allowed with any port */
        {HOST, "other.example:1", NULL, true},
        {HOST, "third.example:99", NULL, true},
        {HOST, "third.example:98", NULL, false},
        {HOST, "third.example", NULL, false},
        {HOST, "evil.example:8080", NULL, false},
        {HOST, LETTERS_300, NULL, false},
        {ORIGIN, NULL, NULL, true}, /* no browser */
        {ORIGIN, "http://localhost:8080", NULL, true},
        {ORIGIN, "HTTP://127.0.0.1:8080", NULL, true},
        {ORIGIN, "http://localhost:8081", NULL, false},
        {ORIGIN, "http://localhost", NULL, false},
        {ORIGIN, "https://localhost:8080", NULL,
         false}, /* no TLS: a proxy is allowed by its name */
        {ORIGIN, "https://other.example", NULL, true},
        {ORIGIN, "http://other.example:3", NULL, true},
        {ORIGIN, "https://page.example", NULL, true},
        {ORIGIN, "https://Page.Example", NULL, true},
        {ORIGIN, "https://page.example:444", NULL, false},
        {ORIGIN, "null", NULL, false},
        {ORIGIN, "file://", NULL, false},
        {ORIGIN, "http://", NULL, false},
        {ORIGIN, "http://evil.example", NULL, false},
    };
    cgam_guard guards[2], *host = &guards[HOST], *origin = &guards[ORIGIN];
    static const char *const lines[] = {
        "--host,here.example,--allow-host,other.example,--allow-host,third.example:99,--allow-host,"
        "[::1,--token,se-cret",
        "--allow-host,other.example,--allow-origin,https://page.example,--token,se-cret"};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        CHECK_STATUS(env, open_guard(&guards[list[i].kind], lines[list[i].kind]));
        bool ours = list[i].kind == HOST ? cgam_guard_host(host, list[i].header, list[i].local)
                                         : cgam_guard_origin(origin, list[i].header, NULL);
        if (ours != list[i].ours)
            fail_msg("%s is%s ours", list[i].header, list[i].ours ? "" : " not");
    }
    assert_true(cgam_guard_cors(origin, "https://page.example"));
    assert_false(cgam_guard_cors(origin, "http://localhost:8080"));
    assert_false(cgam_guard_cors(origin, NULL));
    CHECK_STATUS(env, open_guard(host, lines[HOST]));
    host->port = 80;
    assert_true(cgam_guard_host(host, "localhost", NULL));
}

TEST(the_token_opens_and_nothing_else)
{
    static const char *const wrong[] = {NULL,
                                        "",
                                        "se-cret",
                                        "Bearer",
                                        "Bearer ",
                                        "Basic se-cret",
                                        "Bearer se-cre",
                                        "Bearer se-crets",
                                        "Bearer SE-CRET"};
    cgam_guard g, other;
    CHECK_STATUS(env, open_guard(&g, "--token,se-cret"));
    assert_true(cgam_guard_token(&g, "Bearer se-cret"));
    assert_true(cgam_guard_token(&g, "bearer   se-cret"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(cgam_guard_token(&g, wrong[i]));
    CHECK_STATUS(env, open_guard(&g, "--no-token"));
    assert_true(cgam_guard_token(&g, NULL));
    CHECK_STATUS(env, open_guard(&g, "--host,0.0.0.0")); /* random, and no two alike */
    CHECK_STATUS(env, open_guard(&other, "--host,0.0.0.0"));
    assert_int_equal(strlen(g.token), 32);
    assert_string_not_equal(g.token, other.token);
}

TEST(tokens_come_from_words_and_files)
{
    static const struct {
        const char *line, *file; /* what is in the file "token"; NULL: as before */
        size_t size;
        const char *message; /* NULL: the token is se-cret */
    } cases[] = {
        {"--token,se-cret,--no-token", NULL, 0, "give token, token-file or no-token"},
        {"--no-token,--host,0.0.0.0", NULL, 0, "requires a loopback host, not 0.0.0.0"},
        {"--token," LETTERS_300, NULL, 0, "token: longer than 256"},
        {"--token,two words", NULL, 0, "token: expected letters, digits and"},
        {"--token-file,none", NULL, 0, "none: No such file"},
        {"--token-file,token", "", 0, "token-file: expected letters, digits and"},
        {"--token-file,token", "se-cret", 7, NULL},
        {"--token-file,token", "se-cret\n", 8, NULL},
        {"--token-file,token", "se-cret\r\nanother line\n", 22, NULL},
        {"--token-file,token", "s\0cret\n", 7, "token-file: expected letters, digits and"},
        {"--token-file,token", LETTERS_300, 300, "token-file: the token is longer than 256 bytes"},
    };
    cgam_guard g;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FILE *to = cases[i].file ? fopen("token", "w") : NULL;
        if (to)
            assert_true(fwrite(cases[i].file, 1, cases[i].size, to) == cases[i].size &&
                        fclose(to) == 0);
        cgam_status status = open_guard(&g, cases[i].line);
        if (!cases[i].message)
            assert_true(status == CGAM_OK && cgam_guard_token(&g, "Bearer se-cret"));
        else if (status == CGAM_OK || !strstr(cgam_env_message(env), cases[i].message))
            fail_msg("%s: %d, %s", cases[i].line, status, cgam_env_message(env));
    }
}

static int enter(void **state)
{
    set_up(state);
    return mkdtemp(folder) ? chdir(folder) : -1;
}

static int leave(void **state)
{
    cgam_args_free(args);
    unlink("token");
    rmdir(folder);
    return tear_down(state);
}

TEST_GROUP(enter, leave)
