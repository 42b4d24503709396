/* A semantic cache where memory runs out or a stop is wished in the middle of a change: the file keeps its state. */
#include "base/env.h"
#include "memory/semcache.h"
#include "support/check.h"
#include "support/failing_alloc.h"
#include "support/folder.h"

enum { D = 3 };
static const float first[D] = {1, 0, 0}, second[D] = {0, 1, 0};
static const cgam_semcache_maker vectors = {.layer = -1, .pool = "mean"};

static cgam_status put_value(cgam_env *env, const char *path, const float *key, const char *value)
{
    cgam_semcache_change done;
    const cgam_semcache_entry entry = {
        .key = "", .value = value, .tenant = "t", .vector = key, .time = 10};
    return cgam_semcache_put(env, path, &entry, D, &vectors, &done);
}

static int change_and_ask(cgam_env *env, void *arg)
{
    const char *path = arg;
    cgam_semcache *cache;
    cgam_semcache_hit hit;
    cgam_semcache_change done;
    TRY(put_value(env, path, first, "one"));
    TRY(put_value(env, path, second, "two"));
    TRY(cgam_semcache_set(env, path, 0.8, &vectors, 11));
    const cgam_semcache_choice which = {.tenant = "t", .vector = first, .d = D};
    TRY(cgam_semcache_drop(env, path, &which, 12, &done));
    TRY(cgam_semcache_open(env, path, &cache));
    const cgam_semcache_query query = {
        .vector = second, .tenant = "t", .now = 13, .threshold = 0.8, .beta = 20};
    cgam_status status = cgam_semcache_get(cache, &query, &hit);
    if (status == CGAM_OK && (!hit.hit || strcmp(cgam_semcache_at(cache, hit.best).value, "two")))
        status = cgam_fail(env, CGAM_E_VALUE, "the wrong entry");
    cgam_semcache_free(cache);
    return status;
}

TEST(a_failure_at_any_request_of_memory_leaves_a_whole_cache)
{
    check_some_allocations(change_and_ask, (void *)(uintptr_t)folder_file("cache.safetensors"), 3);
}

TEST(an_entry_lives_up_to_its_end_and_not_at_it)
{
    cgam_semcache_entry entry = {.time = 10, .ttl = 5};
    assert_true(cgam_semcache_lives(&entry, 14.999));
    assert_true(!cgam_semcache_lives(&entry, 15));
    entry.ttl = 0;
    assert_true(cgam_semcache_lives(&entry, 1e12));
}
