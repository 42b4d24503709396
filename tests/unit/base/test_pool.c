/* Numbered items shared out over threads.
 * ctest: labels=threads */
#include "support/check.h"

#include "base/env.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "support/owned.h"

enum { ITEMS_MAX = 5000 };

typedef struct tally {
    cgam_env *env;
    atomic_int done[ITEMS_MAX];
    int64_t fail_from, fail_to; /* items in [from, to) fail, each with a status of its own */
    int64_t slow;               /* this item takes a while, -1 = none */
} tally;

static cgam_env *env_of(int threads)
{
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = threads;
    cgam_env *env;
    CHECK_STATUS(NULL, cgam_env_new(&opts, &env));
    return env;
}

static cgam_status count(void *arg, int64_t i)
{
    tally *t = arg;
    if (i == t->slow)
        for (int k = 0; k < 200; k++) sched_yield();
    atomic_fetch_add(&t->done[i], 1);
    return i >= t->fail_from && i < t->fail_to ? (cgam_status)(-1 - i % 8) : CGAM_OK;
}

static void reset(tally *t)
{
    for (int64_t i = 0; i < ITEMS_MAX; i++) atomic_store(&t->done[i], 0);
    t->fail_from = t->fail_to = 0;
    t->slow = -1;
}

TEST(all_items_run_once)
{
    static tally t;
    for (int threads = 1; threads <= 5; threads++) {
        OWNED(cgam_env) env = env_of(threads);
        for (int64_t items = 0; items < ITEMS_MAX; items = items * 3 + 1) {
            reset(&t);
            CHECK_STATUS(env, cgam_parallel(env, items, count, &t));
            for (int64_t i = 0; i < ITEMS_MAX; i++)
                assert_int_equal(atomic_load(&t.done[i]), i < items);
        }
    }
}

TEST(the_lowest_failure_wins)
{
    static tally t;
    for (int threads = 1; threads <= 4; threads++) {
        OWNED(cgam_env) env = env_of(threads);
        for (int round = 0; round < 200; round++) {
            reset(&t);
            t.fail_from = 1 + round % 40;
            t.fail_to = t.fail_from + 30;
            t.slow = t.fail_from; /* the others fail first */
            cgam_status want = (cgam_status)(-1 - t.fail_from % 8);
            CHECK_FAILS(env, want, cgam_parallel(env, 200, count, &t));
            for (int64_t i = 0; i <= t.fail_from; i++) assert_int_equal(atomic_load(&t.done[i]), 1);
            for (int64_t i = t.fail_from; i < 200; i++) assert_true(atomic_load(&t.done[i]) <= 1);
        }
        reset(&t); /* the pool is as good as new */
        CHECK_STATUS(env, cgam_parallel(env, 200, count, &t));
        for (int64_t i = 0; i < 200; i++) assert_int_equal(atomic_load(&t.done[i]), 1);
    }
}

TEST(many_jobs_follow_each_other)
{
    static tally t;
    OWNED(cgam_env) env = env_of(3);
    reset(&t);
    for (int round = 0; round < 3000; round++) CHECK_STATUS(env, cgam_parallel(env, 5, count, &t));
    for (int64_t i = 0; i < 5; i++) assert_int_equal(atomic_load(&t.done[i]), 3000);
}

static cgam_status outer(void *arg, int64_t i)
{
    tally *t = arg;
    cgam_status status = cgam_parallel(t->env, 50, count, t);
    return status == CGAM_OK ? CGAM_OK : (cgam_status)(status - 100 * i);
}

TEST(a_task_may_call_again)
{
    static tally t;
    t.env = env_of(3);
    reset(&t);
    CHECK_STATUS(t.env, cgam_parallel(t.env, 20, outer, &t));
    for (int64_t i = 0; i < 50; i++) assert_int_equal(atomic_load(&t.done[i]), 20);
    reset(&t);
    t.fail_from = 3;
    t.fail_to = 50;
    CHECK_FAILS(t.env, (cgam_status)-4, cgam_parallel(t.env, 20, outer, &t));
    cgam_env_free(t.env);
}

static void *call_often(void *arg)
{
    tally *t = arg;
    for (int round = 0; round < 200; round++)
        if (cgam_parallel(t->env, 40, count, t) != CGAM_OK) return t;
    return NULL;
}

TEST(several_threads_may_call_at_once)
{
    enum { CALLERS = 4 };
    static tally t[CALLERS];
    pthread_t callers[CALLERS];
    OWNED(cgam_env) env = env_of(3);
    for (int k = 0; k < CALLERS; k++) {
        reset(&t[k]);
        t[k].env = env;
        assert_int_equal(pthread_create(&callers[k], NULL, call_often, &t[k]), 0);
    }
    for (int k = 0; k < CALLERS; k++) {
        void *failed;
        assert_int_equal(pthread_join(callers[k], &failed), 0);
        assert_null(failed);
        for (int64_t i = 0; i < 40; i++) assert_int_equal(atomic_load(&t[k].done[i]), 200);
    }
}

static cgam_status complain(void *arg, int64_t i)
{
    tally *t = arg;
    return cgam_fail(t->env, CGAM_E_VALUE, "item %lld of many complains", (long long)i);
}

TEST(messages_of_many_threads_do_not_mix)
{
    static tally t;
    t.env = env_of(4);
    for (int round = 0; round < 300; round++) {
        CHECK_FAILS(t.env, CGAM_E_VALUE, cgam_parallel(t.env, 16, complain, &t));
        int item, end = 0;
        const char *message = cgam_env_message(t.env);
        assert_int_equal(sscanf(message, "item %d of many complains%n", &item, &end), 1);
        assert_int_equal(end, strlen(message));
        assert_int_equal(item, 0); /* the one whose status came back */
    }
    cgam_env_free(t.env);
}

typedef struct failing {
    cgam_env *env;
    int64_t own; /* what its messages say */
} failing;

static cgam_status complain_slowly(void *arg, int64_t i)
{
    const failing *f = arg;
    cgam_status status =
        cgam_fail(f->env, CGAM_E_VALUE, "%lld says %lld", (long long)f->own, (long long)i);
    for (int k = 0; k < 3; k++) sched_yield();
    return status;
}

static void *fail_often(void *arg)
{
    const failing *f = arg;
    char want[40], text[80];
    snprintf(want, sizeof want, "%lld says 0", (long long)f->own);
    for (int round = 0; round < 200; round++) {
        if (cgam_parallel(f->env, round % 4 + 1, complain_slowly, arg) != CGAM_E_VALUE) return arg;
        snprintf(text, sizeof text, "%s", cgam_env_message(f->env));
        if (strcmp(text, want) != 0 || strcmp(cgam_env_message(f->env), want) != 0) return arg;
    }
    return NULL;
}

TEST(each_caller_reads_of_its_own_failure)
{
    enum { CALLERS = 4 };
    pthread_t callers[CALLERS];
    failing f[CALLERS];
    cgam_env *env = env_of(3);
    for (int k = 0; k < CALLERS; k++) {
        f[k] = (failing){env, k};
        assert_int_equal(pthread_create(&callers[k], NULL, fail_often, &f[k]), 0);
    }
    for (int k = 0; k < CALLERS; k++) {
        void *failed;
        assert_int_equal(pthread_join(callers[k], &failed), 0);
        assert_null(failed);
    }
    assert_non_null(
        strstr(cgam_env_message(env), " says ")); /* of any, where there is none of one's own */
    cgam_env_free(env);
    env = env_of(1); /* perhaps at the same place */
    assert_string_equal(cgam_env_message(env), "");
    cgam_env_free(env);
}
