/* The handle: statuses, messages, memory, what it asks of an allocator. */
#include "support/check.h"
#include "support/failing_alloc.h"

#include "base/env.h"

#include <sched.h>

#include "support/owned.h"

TEST(every_status_has_a_text_of_its_own)
{
    static const struct {
        cgam_status status;
        int value;
        const char *text, *name;
    } list[] = {
#define ROW(name, value, text) {name, value, text, #name},
        CGAM_STATUS_LIST(ROW)
#undef ROW
    };
    size_t count = sizeof list / sizeof list[0];
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(list[i].status, list[i].value);
        assert_string_equal(cgam_status_text(list[i].status), list[i].text);
        assert_true(strlen(list[i].text) > 0);
        assert_string_equal(cgam_status_name(list[i].status), list[i].name);
        assert_true(i == 0 ? list[i].value == 0 : list[i].value < 0);
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(list[i].value, list[j].value);
            assert_string_not_equal(list[i].text, list[j].text);
        }
    }
    assert_non_null(cgam_status_text((cgam_status)-99));
    assert_string_equal(cgam_status_name((cgam_status)-99), "?");
}

TEST(version_is_the_header_s) { assert_string_equal(cgam_version(), CGAM_VERSION); }

TEST(every_type_has_a_name_and_a_size)
{
    static const struct {
        cgam_dtype dtype;
        const char *name;
        size_t size;
    } list[] = {{CGAM_F64, "f64", 8},   {CGAM_F32, "f32", 4}, {CGAM_F16, "f16", 2},
                {CGAM_BF16, "bf16", 2}, {CGAM_I64, "i64", 8}, {CGAM_I32, "i32", 4}};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        assert_string_equal(cgam_word(cgam_dtype_words, list[i].dtype), list[i].name);
        assert_int_equal(cgam_dtype_size(list[i].dtype), list[i].size);
        assert_int_equal(cgam_word_find(cgam_dtype_words, list[i].name), list[i].dtype);
    }
    assert_int_equal(cgam_dtype_size((cgam_dtype)99), 0);
    assert_string_equal(cgam_word(cgam_dtype_words, (cgam_dtype)99), "?");
    assert_string_equal(cgam_word(cgam_dtype_words, -1), "?");
    assert_int_equal(cgam_word_find(cgam_dtype_words, "f128"), -1);
}

TEST(a_message_is_one_line_that_fits)
{
    OWNED(cgam_env) env = NULL;
    CHECK_STATUS(NULL, cgam_env_new(NULL, &env));
    assert_string_equal(cgam_env_message(env), "");
    CHECK_FAILS(NULL, CGAM_E_SHAPE, cgam_fail(env, CGAM_E_SHAPE, "W is %d x %d", 2, 3));
    assert_string_equal(cgam_env_message(env), "W is 2 x 3");
    CHECK_FAILS(NULL, CGAM_E_IO, cgam_fail(env, CGAM_E_IO, "%s: gone", "a\nb\tc\x1b[31m\x7f\r"));
    assert_string_equal(cgam_env_message(env), "a?b?c?[31m??: gone");
    static const char *const obeyed[][2] = {
        /* U+009B, a byte alone, a letter cut short; and letters */
        {"\xc2\x9b[", "??["},
        {"a\x9b", "a?"},
        {"\xe2\x9b.", "\xe2?."},
        {"\xc2\xa9", "\xc2\xa9"},
        {"\xf0\x9f\x98\x80\xc3\x9b\xe2\x80\x9b\xe4", "\xf0\x9f\x98\x80\xc3\x9b\xe2\x80\x9b\xe4"}};
    for (int i = 0; i < 5; i++) {
        CHECK_FAILS(NULL, CGAM_E_IO, cgam_fail(env, CGAM_E_IO, "%s", obeyed[i][0]));
        assert_string_equal(cgam_env_message(env), obeyed[i][1]);
    }
    char long_name[2000];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    CHECK_FAILS(NULL, CGAM_E_IO, cgam_fail(env, CGAM_E_IO, "%s", long_name));
    assert_true(strlen(cgam_env_message(env)) < 1000);
    assert_true(strlen(cgam_env_message(env)) > 100);
    CHECK_FAILS(NULL, CGAM_E_NOMEM, cgam_fail_nomem(env, "a bank"));
    assert_string_equal(cgam_env_message(env), "out of memory: a bank");
}

TEST(options_outside_their_range_are_refused)
{
    failing_alloc counts = {0};
    cgam_env *env = (cgam_env *)&counts;
    cgam_env_opts opts = failing_alloc_opts(&counts, 1);
    opts.threads = CGAM_THREADS_MAX + 1;
    CHECK_FAILS(NULL, CGAM_E_ARG, cgam_env_new(&opts, &env));
    opts.threads = -1;
    CHECK_FAILS(NULL, CGAM_E_ARG, cgam_env_new(&opts, &env));
    assert_null(env);
    opts = failing_alloc_opts(&counts, 1);
    opts.free = NULL;
    CHECK_FAILS(NULL, CGAM_E_ARG, cgam_env_new(&opts, &env));
    opts = failing_alloc_opts(&counts, 1);
    opts.alloc = NULL;
    CHECK_FAILS(NULL, CGAM_E_ARG, cgam_env_new(&opts, &env));
    assert_int_equal(counts.requests, 0);
    cgam_env_free(NULL);
}

TEST(no_more_threads_than_cores_that_may_be_used)
{
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    int first = 0;
    while (!CPU_ISSET(first, &all)) first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    OWNED(cgam_env) env = NULL;
    assert_int_equal(cgam_env_new(NULL, &env), CGAM_OK);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(cgam_env_threads(env), 1);
}

TEST(threads_are_as_many_as_asked_for)
{
    cgam_env_opts opts = cgam_env_opts_default();
    for (int threads = 0; threads < 4; threads++) {
        opts.threads = threads;
        OWNED(cgam_env) env = NULL;
        CHECK_STATUS(NULL, cgam_env_new(&opts, &env));
        if (threads == 0) assert_true(cgam_env_threads(env) >= 1);
        else assert_int_equal(cgam_env_threads(env), threads);
    }
}

TEST(memory_is_aligned_and_sizes_do_not_wrap)
{
    failing_alloc counts = {0};
    cgam_env_opts opts = failing_alloc_opts(&counts, 1);
    cgam_env *env;
    CHECK_STATUS(NULL, cgam_env_new(&opts, &env));
    for (size_t size = 0; size < 200; size += 7) {
        unsigned char *block = cgam_zalloc(env, size, 1);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 64, 0);
        for (size_t i = 0; i < size; i++) assert_int_equal(block[i], 0);
        cgam_free(env, block);
    }
    int64_t before = counts.requests;
    assert_null(cgam_alloc(env, SIZE_MAX / 8 + 1, 8));
    assert_null(cgam_alloc(env, SIZE_MAX / 2, 3));
    assert_null(cgam_alloc(env, SIZE_MAX - 8, 1));
    assert_null(cgam_zalloc(env, SIZE_MAX / 8 + 1, 8));
    assert_int_equal(counts.requests, before);
    char *copy = cgam_strdup(env, "memories");
    assert_string_equal(copy, "memories");
    cgam_free(env, copy);
    cgam_free(env, NULL);
    cgam_env_free(env);
    assert_int_equal(counts.live, 0);
}

static bool stop_when_set(void *user) { return *(bool *)user; }

TEST(interruption_is_asked_of_the_caller)
{
    bool stop = false;
    cgam_env_opts opts = {.threads = 1, .interrupted = stop_when_set, .user = &stop};
    cgam_env *env;
    CHECK_STATUS(NULL, cgam_env_new(&opts, &env));
    assert_false(cgam_interrupted(env));
    stop = true;
    assert_true(cgam_interrupted(env));
    cgam_env_free(env);
    CHECK_STATUS(NULL, cgam_env_new(NULL, &env));
    assert_false(cgam_interrupted(env));
    cgam_env_free(env);
}

TEST(the_machine_answers)
{
    assert_true(cgam_memory_available() > (size_t)1 << 20);
    double t = cgam_clock();
    for (int i = 0; i < 1000; i++) {
        double later = cgam_clock();
        CHECK_LE(t, later);
        t = later;
    }
}

static int nothing(cgam_env *env, void *arg)
{
    (void)env, (void)arg;
    return CGAM_OK;
}

TEST(an_env_copes_with_every_failed_allocation)
{
    assert_int_equal(check_every_allocation(nothing, NULL), 1);
    assert_int_equal(check_every_allocation_threads(nothing, NULL, 3), 2);
}

/* The C library would return so large a block to the system. The largest are kept, whatever came before. */
TEST(large_blocks_are_used_again)
{
    enum { SMALL = 20, LARGE = 1 << 24 };
    cgam_env *env;
    void *small[SMALL];
    assert_int_equal(cgam_env_new(NULL, &env), CGAM_OK);
    for (int k = 0; k < SMALL; k++) small[k] = cgam_alloc(env, 1 << 17, 1);
    char *large = cgam_zalloc(env, LARGE, 1);
    assert_non_null(large);
    for (int k = 0; k < SMALL; k++) cgam_free(env, small[k]);
    memcpy(large + LARGE / 2, "here", 5);
    cgam_free(env, large);
    char *again = cgam_alloc(env, LARGE, 1);
    assert_non_null(again);
#ifndef CGAM_CHECKED
    assert_ptr_equal(again, large);
    assert_string_equal(again + LARGE / 2, "here");
#endif
    cgam_free(env, again);
    cgam_env_free(env);
}

/* Blocks that are kept and given out again are large enough, each has one owner, and none is lost:
 * the env gives them back at its end (LeakSanitizer looks). */
TEST(blocks_come_back_whole)
{
    enum { BLOCKS = 50 };
    OWNED(cgam_env) env = NULL;
    assert_int_equal(cgam_env_new(NULL, &env), CGAM_OK);
    unsigned char *block[BLOCKS];
    size_t bytes[BLOCKS];
    for (int round = 0; round < 3; round++) {
        for (int k = 0; k < BLOCKS; k++) {
            bytes[k] = ((size_t)1 << 15) + (size_t)((k * 37 + round * 11) % BLOCKS) * 40000;
            block[k] = cgam_alloc(env, bytes[k], 1);
            assert_non_null(block[k]);
            assert_int_equal((uintptr_t)block[k] % 64, 0);
            memset(block[k], k, bytes[k]);
        }
        for (int k = 0; k < BLOCKS; k++) {
            for (size_t i = 0; i < bytes[k]; i += 97) assert_int_equal(block[k][i], k);
            assert_int_equal(block[k][bytes[k] - 1], k);
        }
        for (int k = 0; k < BLOCKS; k++) cgam_free(env, block[(k * 7 + round) % BLOCKS]);
    }
}

TEST(what_would_exceed_the_limit_is_rejected_before_it_begins)
{
    cgam_env *env;
    assert_int_equal(cgam_env_new(NULL, &env), CGAM_OK);
    assert_int_equal(cgam_env_expect(env, 1e18, "work"), CGAM_OK); /* no limit */
    cgam_env_limit(env, (size_t)64 << 20);
    void *block = cgam_alloc(env, 32, 1 << 20);
    assert_non_null(block);
    assert_int_equal(cgam_env_expect(env, 0x1p24, "work"), CGAM_OK);
    assert_int_equal(cgam_env_expect(env, 0x1p25 + 0x1p20, "work"), CGAM_E_NOMEM);
    assert_string_equal(cgam_env_message(env),
                        "out of memory: work would take 33 MB beside 32; max-memory is 64 MB");
    cgam_free(env, block);
    cgam_env_free(env);
}
