/* semcache_write.c: changes a semantic cache: under a lock, the entries that stay and a new one are written to a new
 * file, which is renamed over the old one. */
#include "io/json.h"
#include "io/lock.h"
#include "memory/bank.h"
#include "memory/semcache_file.h"

#include <math.h>
#include <string.h>

enum { HEADER = 8192 };

typedef struct change {
    cgam_env *env;
    const char *path;
    int lock;
    cgam_semcache *old;
    bool *goes;                       /* [old n] */
    const cgam_semcache_entry *added; /* or NULL */
    int64_t n, d;                     /* of the new cache */
    cgam_semcache_maker maker;
    double threshold, now;
    cgam_sealed *file;
} change;

static cgam_status begin_change(cgam_env *env, const char *path, double now, change *c)
{
    *c = (change){.env = env, .path = path, .lock = -1, .now = now};
    if (!cgam_path_ends(path, ".safetensors"))
        return cgam_fail(env, CGAM_E_ARG, "cache is %s; a cache must end in .safetensors",
                         cgam_path_tail(path));
    cgam_status status = cgam_lock_begin(env, path, &c->lock);
    if (status == CGAM_OK) status = cgam_semcache_open(env, path, &c->old);
    if (status != CGAM_OK) return status;
    c->d = c->old->info.d;
    c->maker = c->old->info.maker;
    c->threshold = c->old->info.threshold;
    c->goes = cgam_zalloc(env, (size_t)c->old->info.n + 1, sizeof *c->goes);
    return c->goes ? CGAM_OK : cgam_fail_nomem(env, "a cache");
}

static cgam_status end_change(change *c, cgam_status status)
{
    cgam_sealed_abandon(c->file);
    cgam_free(c->env, c->goes);
    cgam_semcache_free(c->old);
    cgam_lock_end(c->path, c->lock);
    return status;
}

/* ---- Writing -------------------------------------------------------------------------------- */
/* Entry k of the new cache, where *at was 0 before the first. */
static cgam_semcache_entry next_entry(const change *c, int64_t *at)
{
    while (*at < c->old->info.n && c->goes[*at]) ++*at;
    int64_t i = (*at)++;
    return i < c->old->info.n ? cgam_semcache_at(c->old, i) : *c->added;
}

static cgam_status write_keys(change *c)
{
    double *norm2 = cgam_alloc(c->env, (size_t)c->n, sizeof *norm2);
    if (!norm2) return cgam_fail_nomem(c->env, "a cache");
    int64_t at = 0;
    cgam_status status =
        cgam_sealed_part(c->file, &(cgam_part){"rows", "F32", 2, {c->n, c->d}, NULL});
    for (int64_t k = 0; k < c->n && status == CGAM_OK; k++) {
        cgam_semcache_entry entry = next_entry(c, &at);
        norm2[k] = 0;
        for (int64_t j = 0; j < c->d; j++)
            norm2[k] += (double)entry.vector[j] * (double)entry.vector[j];
        status = cgam_sealed_write(c->file, entry.vector, (size_t)c->d * sizeof *entry.vector);
    }
    if (status == CGAM_OK)
        status = cgam_sealed_part(c->file, &(cgam_part){"norm2", "F64", 1, {c->n}, norm2});
    cgam_free(c->env, norm2);
    return status;
}

static cgam_status write_texts(change *c)
{
    int64_t *begin, at = 0, from = 0;
    double *time;
    cgam_status status = cgam_alloc_all(c->env, "a cache", CGAM_ZEROS(begin, 3 * c->n + 1),
                                        CGAM_ARRAY(time, 2 * c->n));
    for (int64_t k = 0; k < c->n && status == CGAM_OK; k++) {
        cgam_semcache_entry entry = next_entry(c, &at);
        const char *texts[] = {entry.key, entry.value, entry.tenant};
        for (int t = 0; t < 3; t++)
            begin[3 * k + t + 1] = begin[3 * k + t] + (int64_t)strlen(texts[t]) + 1;
        time[2 * k] = entry.time;
        time[2 * k + 1] = entry.ttl;
    }
    const cgam_part parts[] = {{"cache.begin", "I64", 1, {3 * c->n + 1}, begin},
                               {"cache.time", "F64", 2, {c->n, 2}, time}};
    for (int k = 0; k < 2 && status == CGAM_OK; k++) status = cgam_sealed_part(c->file, &parts[k]);
    if (status == CGAM_OK)
        status =
            cgam_sealed_part(c->file, &(cgam_part){"cache.text", "U8", 1, {begin[3 * c->n]}, NULL});
    for (int64_t k = 0; k < c->n && status == CGAM_OK; k++) {
        cgam_semcache_entry entry = next_entry(c, &from);
        const char *texts[] = {entry.key, entry.value, entry.tenant};
        for (int t = 0; t < 3 && status == CGAM_OK; t++)
            status = cgam_sealed_write(c->file, texts[t], strlen(texts[t]) + 1);
    }
    cgam_free_all(c->env, begin, time);
    return status;
}

static cgam_status write_notes(change *c)
{
    char n[24], layer[24], real[CGAM_REAL_TEXT];
    snprintf(n, sizeof n, "%lld", (long long)c->n);
    snprintf(layer, sizeof layer, "%lld", (long long)c->maker.layer);
    const char *const notes[][2] = {{"format", CGAM_PACKED_FORMAT}, {"cache", CGAM_SEMCACHE_FORMAT},
                                    {"normalize", "yes"},           {"n", n},
                                    {"model", c->maker.model},      {"layer", layer},
                                    {"pool", c->maker.pool}};
    cgam_status status = CGAM_OK;
    for (size_t k = 0; k < sizeof notes / sizeof *notes && status == CGAM_OK; k++)
        status = cgam_sealed_note(c->file, notes[k][0], notes[k][1]);
    if (status == CGAM_OK && isfinite(c->threshold))
        status = cgam_sealed_note(c->file, "threshold", cgam_real_text(c->threshold, real));
    return status;
}

/* Writes what is left and the added entry; takes expired ones out. */
static cgam_status write_change(change *c, cgam_semcache_change *done)
{
    for (int64_t i = 0; i < c->old->info.n; i++) {
        cgam_semcache_entry entry = cgam_semcache_at(c->old, i);
        bool expired = !c->goes[i] && !cgam_semcache_lives(&entry, c->now);
        c->goes[i] |= expired;
        done->expired += expired;
        c->n += !c->goes[i];
    }
    c->n += c->added != NULL;
    cgam_status status = cgam_sealed_begin(c->env, c->path, HEADER, &c->file);
    if (status == CGAM_OK) status = write_notes(c);
    if (status == CGAM_OK && c->n > 0) status = write_keys(c);
    if (status == CGAM_OK && c->n > 0) status = write_texts(c);
    if (status != CGAM_OK) return status;
    cgam_sealed *file = c->file;
    c->file = NULL;
    return cgam_sealed_commit(file);
}

/* ---- The calls ------------------------------------------------------------------------------ */
static bool same_maker(const cgam_semcache_maker *a, const cgam_semcache_maker *b)
{
    return strcmp(a->model, b->model) == 0 && a->layer == b->layer && strcmp(a->pool, b->pool) == 0;
}

cgam_status cgam_semcache_fits(cgam_env *env, const char *name, const cgam_semcache_maker *old,
                               const cgam_semcache_maker *maker)
{
    if (same_maker(old, maker) || !*maker->model) return CGAM_OK;
    if (!*old->model)
        return cgam_fail(env, CGAM_E_ARG, "key: the keys of %s are vectors, not texts", name);
    return cgam_fail(env, CGAM_E_ARG, "model: the keys of %s are from %s, layer %lld, pool %s",
                     name, old->model, (long long)old->layer, old->pool);
}

static cgam_status check_maker(const change *c, const cgam_semcache_maker *maker, bool any)
{
    return any ? cgam_semcache_fits(c->env, cgam_path_tail(c->path), &c->maker, maker) : CGAM_OK;
}

static bool same_key(const cgam_semcache_entry *entry, const char *key, const float *vector,
                     int64_t d)
{
    if (key && *key) return strcmp(entry->key, key) == 0;
    return vector && memcmp(entry->vector, vector, (size_t)d * sizeof *vector) == 0;
}

cgam_status cgam_semcache_put(cgam_env *env, const char *path, const cgam_semcache_entry *entry,
                              int64_t d, const cgam_semcache_maker *maker,
                              cgam_semcache_change *done)
{
    change c;
    double norm2 = 0;
    *done = (cgam_semcache_change){0};
    for (int64_t j = 0; j < d; j++) norm2 += (double)entry->vector[j] * (double)entry->vector[j];
    if (!(norm2 > 0 && isfinite(norm2)))
        return cgam_fail(env, CGAM_E_VALUE, "key: the vector is zero or not finite");
    cgam_status status = cgam_bank_shape(env, "key", 1, d);
    if (status != CGAM_OK) return status;
    status = begin_change(env, path, entry->time, &c);
    bool any = status == CGAM_OK && c.old->info.n > 0;
    if (any && c.d != d)
        status = cgam_fail(env, CGAM_E_SHAPE, "key: d = %lld, the cache has d = %lld", (long long)d,
                           (long long)c.d);
    if (status == CGAM_OK) status = check_maker(&c, maker, any || isfinite(c.threshold));
    if (status != CGAM_OK) return end_change(&c, status);
    if (!any && !isfinite(c.threshold)) c.maker = *maker;
    c.added = entry;
    c.d = d;
    for (int64_t i = 0; i < c.old->info.n; i++) {
        cgam_semcache_entry old = cgam_semcache_at(c.old, i);
        c.goes[i] =
            strcmp(old.tenant, entry->tenant) == 0 && same_key(&old, entry->key, entry->vector, d);
        done->replaced += c.goes[i];
    }
    return end_change(&c, write_change(&c, done));
}

/* Changing a cache that is not there is an error: nothing is made. */
static cgam_status check_there(cgam_env *env, const char *path)
{
    return cgam_file_exists(path)
               ? CGAM_OK
               : cgam_fail(env, CGAM_E_NOT_FOUND, "%s: no such file", cgam_path_tail(path));
}

cgam_status cgam_semcache_drop(cgam_env *env, const char *path, const cgam_semcache_choice *which,
                               double now, cgam_semcache_change *done)
{
    change c;
    *done = (cgam_semcache_change){0};
    cgam_status status = check_there(env, path);
    if (status != CGAM_OK) return status;
    status = begin_change(env, path, now, &c);
    if (status == CGAM_OK && which->vector && c.old->info.n > 0 && which->d != c.d)
        status = cgam_fail(env, CGAM_E_SHAPE, "key: d = %lld, the cache has d = %lld",
                           (long long)which->d, (long long)c.d);
    if (status != CGAM_OK) return end_change(&c, status);
    bool any = which->tenant || which->key || which->vector;
    for (int64_t i = 0; any && i < c.old->info.n; i++) {
        cgam_semcache_entry old = cgam_semcache_at(c.old, i);
        c.goes[i] = (!which->tenant || strcmp(old.tenant, which->tenant) == 0) &&
                    ((!which->key && !which->vector) ||
                     same_key(&old, which->key, which->vector, which->d));
        done->dropped += c.goes[i];
    }
    return end_change(&c, write_change(&c, done));
}

cgam_status cgam_semcache_set(cgam_env *env, const char *path, double threshold,
                              const cgam_semcache_maker *maker, double now)
{
    change c;
    cgam_semcache_change done = {0};
    cgam_status status = begin_change(env, path, now, &c);
    bool any = status == CGAM_OK && c.old->info.n > 0;
    if (status == CGAM_OK) status = check_maker(&c, maker, any);
    if (status != CGAM_OK) return end_change(&c, status);
    if (!any) c.maker = *maker;
    c.threshold = threshold;
    return end_change(&c, write_change(&c, &done));
}
