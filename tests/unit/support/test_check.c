/* test_check.c: the verbs the other tests rely on do fail, and say by how much.
 *
 * Each failing use runs in a child process as a cmocka group of its own; the child's exit status
 * and what it printed are examined here. */
#include "support/check.h"
#include "support/failing_alloc.h"

#include "base/env.h"

#include <sys/wait.h>
#include <unistd.h>

static char output[8192]; /* what the last child printed */

/* Runs the test in a child; true when it passed there. */
static bool passes(void (*test)(void **))
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    fflush(stderr);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        const struct CMUnitTest tests[] = {{"child", test, NULL, NULL, NULL}};
        const int failed = cmocka_run_group_tests(tests, NULL, NULL);
        fflush(stdout);
        _exit(failed ? 1 : 0);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t got;
    while ((got = read(ends[0], output + used, sizeof output - 1 - used)) > 0) used += (size_t)got;
    output[used] = '\0';
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 0;
}

static void assert_printed(const char *words)
{
    if (!strstr(output, words)) fail_msg("'%s' is not in the output:\n%s", words, output);
}

static void close_enough(void **state)
{
    (void)state;
    CHECK_CLOSE(1.0 + 1e-13, 1.0, 1e-12);
    CHECK_CLOSE(INFINITY, INFINITY, 0.0);
    CHECK_REL(1e20 * (1 + 1e-13), 1e20, 1e-12);
    CHECK_LE(1.0, 1.0);
    const double x[] = {1, 2, 3}, y[] = {1, 2, 3.0000001};
    CHECK_CLOSE_ALL(x, y, 3, 1e-6);
}

static void close_fails(void **state)
{
    (void)state;
    const double half = 0.5;
    CHECK_CLOSE(half, 0.25, 0.125);
}

static void close_nan(void **state)
{
    (void)state;
    CHECK_CLOSE((double)NAN, 0.0, INFINITY);
}

static void rel_fails(void **state)
{
    (void)state;
    CHECK_REL(1024.0, 512.0, 0.25);
}

static void all_fails(void **state)
{
    (void)state;
    const double x[] = {1, 2, 3, 4}, y[] = {1, 2.5, 5, 4};
    CHECK_CLOSE_ALL(x, y, 4, 0.25);
}

static void all_nan(void **state)
{
    (void)state;
    const double x[] = {9, NAN, 3}, y[] = {1, 2, 3};
    CHECK_CLOSE_ALL(x, y, 3, 0.25);
}

static void le_fails(void **state)
{
    (void)state;
    CHECK_LE(3.0, 2.5);
}

static void le_nan(void **state)
{
    (void)state;
    CHECK_LE((double)NAN, 2.5);
}

static void status_fails(void **state)
{
    (void)state;
    cgam_env *env = NULL;
    CHECK_STATUS(env, cgam_env_new(NULL, &env));
    CHECK_STATUS(env, cgam_fail(env, CGAM_E_SHAPE, "W is 2 x 3, layers are 2 and 2"));
}

static void message_fails(void **state)
{
    (void)state;
    cgam_env *env = NULL;
    CHECK_STATUS(env, cgam_env_new(NULL, &env));
    CHECK_REFUSED(env, CGAM_E_ARG, "alpha is -1", cgam_fail(env, CGAM_E_ARG, "alpha is -1"));
    CHECK_MESSAGE(env, "beta");
}

TEST(verbs_accept_what_is_close) { assert_true(passes(close_enough)); }

TEST(verbs_fail_and_say_by_how_much)
{
    assert_false(passes(close_fails));
    assert_printed("half\n");
    assert_printed("got     0.5\n");
    assert_printed("want    0.25\n");
    assert_printed("off by  0.25\n");
    assert_printed("allowed 0.125\n");
    assert_printed("test_check.c:");
    assert_false(passes(rel_fails));
    assert_printed("off by  512\n");
    assert_printed("allowed 128\n");
    assert_false(passes(all_fails));
    assert_printed("x[2] (2 of 4 entries are off)");
    assert_printed("off by  2\n");
    assert_false(passes(le_fails));
    assert_printed("off by  0.5\n");
}

TEST(nan_is_close_to_nothing)
{
    assert_false(passes(close_nan));
    assert_false(passes(le_nan));
    assert_false(passes(all_nan));
    assert_printed("x[1]");
}

TEST(status_and_message_are_printed)
{
    assert_false(passes(status_fails));
    assert_printed("message W is 2 x 3, layers are 2 and 2");
    assert_printed("got     -2");
    assert_false(passes(message_fails));
    assert_printed("got     alpha is -1");
    assert_printed("want    ...beta...");
}

/* ---- every allocation fails in turn ---------------------------------------------------------- */

typedef enum flaw { SOUND, LEAKS, SWALLOWS, SILENT, DEAF } flaw;

/* Two blocks and a look whether to stop, with one of the usual mistakes when the second is refused or a stop is wished. */
static int two_blocks(cgam_env *env, void *arg)
{
    const flaw *f = arg;
    cgam_status status = CGAM_OK;
    void *a = cgam_alloc(env, 10, 8);
    if (!a) return cgam_fail_nomem(env, "first");
    void *b = cgam_alloc(env, 10, 8);
    if (!b && *f == SILENT) status = CGAM_E_NOMEM;
    if (!b && *f != SILENT && *f != SWALLOWS) status = cgam_fail_nomem(env, "second");
    if (!b && *f == LEAKS) return status;
    for (int looks = 0; looks < 2; looks++)
        if (cgam_interrupted(env) && *f != DEAF && status == CGAM_OK) status = CGAM_E_INTERRUPTED;
    cgam_free(env, b);
    cgam_free(env, a);
    return status;
}

static void run_flaw(flaw f) { check_every_allocation(two_blocks, &f); }

static void run_leaks(void **state)
{
    (void)state;
    run_flaw(LEAKS);
}

static void run_swallows(void **state)
{
    (void)state;
    run_flaw(SWALLOWS);
}

static void run_silent(void **state)
{
    (void)state;
    run_flaw(SILENT);
}

static void run_deaf(void **state)
{
    (void)state;
    run_flaw(DEAF);
}

TEST(every_allocation_is_made_to_fail)
{
    flaw f = SOUND;
    failing_alloc counting = {0};
    const cgam_env_opts opts = failing_alloc_opts(&counting, 1);
    cgam_env *env = NULL;
    CHECK_STATUS(env, cgam_env_new(&opts, &env));
    const int64_t own = counting.requests;
    cgam_env_free(env);
    assert_int_equal(counting.live, 0);
    assert_int_equal(check_every_allocation(two_blocks, &f), own + 2);
}

TEST(mistakes_on_failed_allocation_are_found)
{
    assert_false(passes(run_leaks));
    assert_printed("1 blocks were left");
    assert_false(passes(run_swallows));
    assert_printed("returned 0");
    assert_false(passes(run_silent));
    assert_printed("no message");
    assert_false(passes(run_deaf));
    assert_printed("look 1 failed, the scenario returned 0");
}

/* A thousand blocks from one place, and one from another, whose refusal is swallowed by the flawed one. */
static int many_blocks(cgam_env *env, void *arg)
{
    const flaw *f = arg;
    for (int i = 0; i < 1000; i++) {
        void *block = cgam_alloc(env, 1, 8);
        if (!block) return cgam_fail_nomem(env, "one of many");
        cgam_free(env, block);
    }
    void *last = cgam_alloc(env, 1, 8);
    if (!last && *f != SWALLOWS) return cgam_fail_nomem(env, "the last");
    cgam_free(env, last);
    return CGAM_OK;
}

static void run_many_swallows(void **state)
{
    (void)state;
    flaw f = SWALLOWS;
    check_every_place(many_blocks, &f);
}

TEST(every_place_fails_once)
{
    flaw f = SOUND;
    assert_false(passes(run_many_swallows));
    assert_printed("returned 0");
    const double places = (double)check_every_place(many_blocks, &f);
    CHECK_LE(2, places); /* those of the env are among them */
    CHECK_LE(places, 20);
}
