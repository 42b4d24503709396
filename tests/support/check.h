/* check.h: numeric verbs for the tests, on top of cmocka.
 *
 * It brings the headers that most tests need, cgam/base.h, base/rng.h and of the C library math, stdio, stdlib and string.
 *
 * A failure prints the expression, got, want, off-by and allowed with all digits, and ends the
 * test. NaN is never close to anything; equal infinities are. */
#ifndef CGAM_TESTS_CHECK_H
#define CGAM_TESTS_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include <cgam/base.h>

/* TEST(gate_decides_recall) { .. } is a test; tests run in the order of their file. TEST_WITH runs functions before and after it,
 * TEST_GROUP before the first and after the last of a program. No main is needed: tests/support/main.c has it. */
#define TEST(name) TEST_WITH(NULL, NULL, name)
#define TEST_WITH(set_up, tear_down, name)                                                         \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void add_##name(void)                                      \
    {                                                                                              \
        check_add_test((struct CMUnitTest){#name, name, set_up, tear_down, NULL});                 \
    }                                                                                              \
    static void name(__attribute__((unused)) void **state)
/* TEST_ENV(name) { .. } has an env of one thread called env, which is freed after it. */
#define TEST_ENV(name)                                                                             \
    static void name(cgam_env *env);                                                               \
    static void run_##name(void **state) { name(*state); }                                         \
    __attribute__((constructor)) static void add_##name(void)                                      \
    {                                                                                              \
        check_add_test(                                                                            \
            (struct CMUnitTest){#name, run_##name, check_env_new, check_env_free, NULL});          \
    }                                                                                              \
    static void name(__attribute__((unused)) cgam_env *env)
#define TEST_GROUP(set_up, tear_down)                                                              \
    __attribute__((constructor)) static void add_group(void)                                       \
    {                                                                                              \
        check_add_group((set_up), (tear_down));                                                    \
    }

void check_add_test(struct CMUnitTest test);
int check_env_new(void **state);
int check_env_free(void **state);
void check_add_group(CMFixtureFunction set_up, CMFixtureFunction tear_down);
/* Runs all that were added; for a main of one's own. */
int check_run_tests(void);

/* |got - want| <= allowed */
#define CHECK_CLOSE(got, want, allowed)                                                            \
    check_close((got), (want), (allowed), #got, __FILE__, __LINE__)

/* |got - want| <= rel |want| */
#define CHECK_REL(got, want, rel) check_rel((got), (want), (rel), #got, __FILE__, __LINE__)

/* |got[i] - want[i]| <= allowed for i < n; reports the worst i */
#define CHECK_CLOSE_ALL(got, want, n, allowed)                                                     \
    check_close_all((got), (want), (n), (allowed), #got, __FILE__, __LINE__)

/* a <= b */
#define CHECK_LE(a, b) check_le((a), (b), #a, #b, __FILE__, __LINE__)

/* got is a bound that is want: no less but for the rounding of want itself, and at most rel of it more */
#define CHECK_BOUND(got, want, rel)                                                                \
    do {                                                                                           \
        CHECK_LE((want) * (1 - 1e-12), (got));                                                     \
        CHECK_REL((got), (want), (rel));                                                           \
    } while (0)

/* The call succeeds; otherwise its status and the env's message are printed. */
#define CHECK_STATUS(env, call) CHECK_FAILS(env, CGAM_OK, call)

/* The call returns the status named. */
#define CHECK_FAILS(env, status, call)                                                             \
    do {                                                                                           \
        const cgam_status check_status_ = (call);                                                  \
        check_status(check_status_, (status), (env), #call, __FILE__, __LINE__);                   \
    } while (0)

/* The env's last message contains the words. */
#define CHECK_MESSAGE(env, words) check_message((env), (words), __FILE__, __LINE__)

/* The call returns the status named, and leaves a message that contains the words: names and numbers, not the sentence. */
#define CHECK_REFUSED(env, status, words, call)                                                    \
    do {                                                                                           \
        CHECK_FAILS(env, status, call);                                                            \
        CHECK_MESSAGE(env, words);                                                                 \
    } while (0)

/* A step of a function that returns a status: one that is not CGAM_OK is returned at once. What was made before is OWNED (owned.h)
 * and so is freed. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        const cgam_status try_status_ = (cgam_status)(call);                                       \
        if (try_status_ != CGAM_OK) return try_status_;                                            \
    } while (0)

void check_close(double got, double want, double allowed, const char *what, const char *file,
                 int line);
void check_rel(double got, double want, double rel, const char *what, const char *file, int line);
void check_close_all(const double *got, const double *want, int64_t n, double allowed,
                     const char *what, const char *file, int line);
void check_le(double a, double b, const char *what_a, const char *what_b, const char *file,
              int line);
void check_status(cgam_status got, cgam_status want, const cgam_env *env, const char *what,
                  const char *file, int line);
void check_message(const cgam_env *env, const char *words, const char *file, int line);

/* How many random trials are made of `plain`: under a sanitizer a fifth, for there every access is
 * watched at a tenth of the speed, and the numbers have been judged by the plain build; under emulation
 * of another machine a twentieth, its part of the speed. At least one. */
int64_t check_trials(int64_t plain);

/* Skips the test under a sanitizer or emulation, and says that it is for `why`. */
void check_plain_build(const char *why);

/* |got - want| in units of the last place of want. */
double check_ulps(double got, long double want);

/* The path of a file of the source tree: check_source_path("tests/oracle/small.npy"). Valid until
 * the next call. */
const char *check_source_path(const char *relative);

#endif
