/* What the machine may refuse before there is an env, or to it: each try in a process of its own, since BLAS is loaded once. */
#include "base/blas.h"
#include "base/env.h"
#include "support/check.h"
#include "support/failing_calls.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/owned.h"

typedef struct attempt {
    const char *call; /* that fails */
    int error;
    int64_t k;
    int threads;
    size_t address_space;      /* 0: as much as there is */
    bool variable;             /* OPENBLAS_NUM_THREADS is set */
    cgam_status first, second; /* either will do */
} attempt;

/* 0: as it should be. */
static int try_it(const attempt *a)
{
    OWNED(cgam_env) env = NULL;
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = a->threads;
    if (a->variable) setenv("OPENBLAS_NUM_THREADS", "3", 1);
    else unsetenv("OPENBLAS_NUM_THREADS");
    struct rlimit limit = {a->address_space, a->address_space};
    if (a->address_space && (setrlimit(RLIMIT_AS, &limit) || getrlimit(RLIMIT_AS, &limit)))
        return 1;
    if (a->address_space && limit.rlim_cur != a->address_space) return 0; /* qemu-user sets none */
    fail_call(a->call, a->error, a->k);
    cgam_status status = cgam_env_new(&opts, &env);
    fail_call(NULL, 0, 0);
    if (status != a->first && status != a->second) return 2;
    const char *now = getenv("OPENBLAS_NUM_THREADS"), *why;
    if (a->variable ? !now || strcmp(now, "3") != 0 : now != NULL) return 3;
    if (status == CGAM_E_NOT_FOUND && (cgam_blas_load(&why) == CGAM_OK || !*why)) return 4;
    if (status != CGAM_OK) return 0;
    if (a->address_space) {
        if (cgam_env_threads(env) != 1 || cgam_blas_check_space(env) != CGAM_E_NOMEM) return 5;
        fail_call("getrlimit", EINVAL, 1); /* who cannot tell sets no limit */
        if (!cgam_blas_fits(1000)) return 6;
    }
    return 0;
}

TEST(an_env_is_made_or_refused)
{
    enum { ALWAYS = FAIL_FOR_GOOD | ENOENT };
    static const attempt cases[] = {
        {.call = NULL, .variable = true},
        {.call = "dlopen",
         .error = ALWAYS,
         .k = 1,
         .first = CGAM_E_NOT_FOUND,
         .second = CGAM_E_NOT_FOUND},
        {.call = "dlopen", .error = ENOENT, .k = 1, .second = CGAM_E_NOT_FOUND},
        {.call = "dlopen", .error = ALWAYS, .k = 2, .second = CGAM_E_NOT_FOUND},
        {.call = "dlopen", .error = ALWAYS, .k = 3, .second = CGAM_E_NOT_FOUND}, /* LAPACK's */
        {.call = "setenv", .error = ENOMEM, .k = 1},
        {.call = "setenv", .error = ENOMEM, .k = 1, .variable = true},
        {.call = "malloc", .error = ENOMEM, .k = 1, .variable = true, .second = CGAM_E_NOT_FOUND},
        {.call = "pthread_create",
         .error = EAGAIN,
         .k = 1,
         .threads = 3,
         .first = CGAM_E_NOMEM,
         .second = CGAM_E_NOMEM},
        {.call = "pthread_create",
         .error = EAGAIN,
         .k = 2,
         .threads = 3,
         .first = CGAM_E_NOMEM,
         .second = CGAM_E_NOMEM},
#ifndef CGAM_CHECKED /* sanitizers take all there is */
        {.address_space = (size_t)120 << 20},
#endif
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int end = 0;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) exit(try_it(&cases[i]));
        assert_int_equal(waitpid(child, &end, 0), child);
        if (end != 0) fail_msg("case %zu, %s: %d", i, cases[i].call ? cases[i].call : "-", end);
    }
}

/* A limit of the address space that leaves room is no reason for fewer threads. */
#ifndef CGAM_CHECKED
TEST(a_wide_limit_is_none)
{
    int end = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit limit = {(rlim_t)1 << 45, (rlim_t)1 << 45};
        exit(setrlimit(RLIMIT_AS, &limit) != 0 || !cgam_blas_fits(2));
    }
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_int_equal(end, 0);
}
#endif

TEST(memory_that_is_there_is_guessed)
{
    size_t real = cgam_memory_available();
    fail_call("fopen", ENOENT, 1);
    size_t all = cgam_memory_available();
    fail_call("fgets", EIO, 1);
    assert_int_equal(cgam_memory_available(), all);
    fail_call(NULL, 0, 0);
    assert_true(real > 0 && all >= real);
}

TEST(kept_blocks_are_given_back_first)
{
    OWNED(cgam_env) env = NULL;
    char text[8] = "as it is";
    (void)state;
    assert_int_equal(cgam_env_new(NULL, &env), CGAM_OK);
    cgam_free(env, cgam_alloc(env, 1 << 20, 1));
#ifndef CGAM_CHECKED
    assert_null(cgam_alloc(env, (size_t)1 << 60, 1));
#endif
    snprintf(text, 0, "%s", cgam_env_message(env));
    assert_int_equal(text[0], 'a');
}
