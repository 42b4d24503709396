/* Journals, and files that are exchanged together. */
#include "unit/io/scratch.h"

#include "base/env.h"
#include "lab/journal.h"
#include "support/failing_alloc.h"

#include <sys/stat.h>

#include "support/owned.h"

static const char text[] = "what was finished";

/* How many records an earlier run has left, each with the text. */
static int count(const cgam_journal *j)
{
    cgam_record r;
    size_t at = 0;
    int n = 0;
    for (; cgam_journal_next(j, &at, &r); n++) {
        assert_int_equal(r.key, n);
        assert_int_equal(r.size, sizeof text);
        assert_memory_equal(r.bytes, text, sizeof text);
    }
    return n;
}

static int add(cgam_env *env, void *arg)
{
    const char *path = arg;
    OWNED(cgam_journal) j = NULL;
    cgam_status status = cgam_journal_open(env, path, 7, &j);
    if (status != CGAM_OK) return status;
    status = cgam_journal_add(j, (cgam_record){(uint64_t)count(j), sizeof text, text});
    return status;
}

static int left(cgam_env *env, const char *path, uint64_t run)
{
    OWNED(cgam_journal) j = NULL;
    CHECK_STATUS(env, cgam_journal_open(env, path, run, &j));
    int n = count(j);
    return n;
}

TEST_ENV(a_torn_record_is_cut_off)
{
    const char *path = scratch("j");
    for (int i = 0; i < 3; i++) CHECK_STATUS(env, add(env, (void *)(uintptr_t)path));
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    long whole = (long)st.st_size, record = (whole - 24) / 3;
    for (long size = whole - 1; size >= 24; size--) { /* as a kill may leave it */
        assert_int_equal(truncate(path, size), 0);
        assert_int_equal(left(env, path, 7), (size - 24) / record);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, 24 + (size - 24) / record * record);
    }
    CHECK_STATUS(env, add(env, (void *)(uintptr_t)path));
    assert_int_equal(left(env, path, 7), 1);
    assert_int_equal(left(env, path, 8), 0); /* another run's is replaced */
    assert_int_equal(left(env, path, 7), 0);
    unlink(path);
}

TEST_ENV(a_byte_that_changed_ends_it)
{
    const char *path = scratch("j");
    for (int i = 0; i < 2; i++) CHECK_STATUS(env, add(env, (void *)(uintptr_t)path));
    size_t size;
    uint8_t *bytes = get(path, &size);
    for (size_t i = 24 + (size - 24) / 2; i < size; i++) {
        bytes[i] ^= 1;
        put("j", bytes, size);
        assert_int_equal(left(env, path, 7), 1);
        bytes[i] ^= 1;
    }
    free(bytes);
    unlink(path);
}

TEST_ENV(one_at_a_time)
{
    cgam_journal *j, *k;
    CHECK_STATUS(env, cgam_journal_open(env, scratch("j"), 7, &j));
    assert_int_equal(cgam_journal_open(env, scratch("j"), 7, &k), CGAM_E_IO);
    assert_non_null(strstr(cgam_env_message(env), "another run"));
    unlink(scratch("j")); /* the first one is done with it */
    CHECK_STATUS(env, cgam_journal_open(env, scratch("j"), 7, &k));
    cgam_journal_close(j);
    cgam_journal_close(k);
    unlink(scratch("j"));
}

/* Read until its writers are gone it would never end: one of them is the reader. */
TEST_ENV(a_pipe_in_its_place_is_refused)
{
    cgam_journal *j;
    assert_int_equal(mkfifo(scratch("j"), 0600), 0);
    assert_int_equal(cgam_journal_open(env, scratch("j"), 7, &j), CGAM_E_IO);
    assert_non_null(strstr(cgam_env_message(env), "not a regular file"));
    unlink(scratch("j"));
}

TEST(every_allocation_may_fail)
{
    assert_true(check_every_allocation(add, (void *)(uintptr_t)scratch("j")) > 1);
    unlink(scratch("j"));
}

static cgam_status write_one(cgam_env *env, const char *name, const char *words)
{
    cgam_outfile *out;
    cgam_status status = cgam_outfile_begin(env, scratch(name), &out);
    if (status != CGAM_OK) return status;
    fputs(words, cgam_outfile_stream(out));
    return cgam_outfile_commit(out);
}

static void expect(const char *name, const char *words)
{
    size_t size;
    uint8_t *bytes = get(scratch(name), &size);
    assert_int_equal(size, strlen(words));
    assert_memory_equal(bytes, words, size);
    free(bytes);
}

TEST_ENV(a_group_comes_together_or_not_at_all)
{
    const char *const names[] = {"a", "b"};
    cgam_outgroup files, inner;
    for (int i = 0; i < 2; i++) put_text(names[i], "old");
    for (int fails = 1; fails >= 0; fails--) {
        cgam_outgroup_begin(&files);
        CHECK_STATUS(env, write_one(env, "a", "new"));
        cgam_outgroup_begin(&inner);
        CHECK_STATUS(env, write_one(env, "b", "new"));
        CHECK_STATUS(env, cgam_outgroup_end(&inner, CGAM_OK));
        for (int i = 0; i < 2; i++) expect(names[i], "old");
        cgam_status status = fails ? cgam_fail(env, CGAM_E_IO, "the disk is full") : CGAM_OK;
        assert_int_equal(cgam_outgroup_end(&files, status), status);
        for (int i = 0; i < 2; i++) expect(names[i], fails ? "old" : "new");
        assert_int_equal(scratch_files(false), 2);
    }
    CHECK_STATUS(env, write_one(env, "a", "alone")); /* a commit is a commit again */
    expect("a", "alone");
    scratch_files(true);
}

TEST_GROUP(scratch_setup, scratch_teardown)
