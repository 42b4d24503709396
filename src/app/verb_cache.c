/* verb_cache.c: a semantic cache: put, get, drop and show. Calibration is in verb_cache_calibrate.c. */
#include "app/cache.h"
#include "app/input.h"
#include "app/verbs.h"
#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#define TENANT(help_) CGAM_PARAM_TEXT("tenant", "NAME", help_)
#define NOW                                                                                        \
    CGAM_PARAM_REAL("now", "S", NULL, 0, 1e15,                                                     \
                    "the time, in seconds since 1970, instead of the clock's")
#define KEY_HELP                                                                                   \
    "a text, which --model turns into a vector; or a vector: [0.1, 0.2, ..] or an array file"

static const cgam_param params_put[] = {
    CGAM_PARAM_CACHE(true, true),
    CGAM_PARAM_KEY(true, KEY_HELP),
    CGAM_PARAM_TEXT("value", "TEXT", "the answer to keep", .required = true),
    TENANT("whom the entry belongs to; get finds entries of the same tenant only"),
    CGAM_PARAM_REAL("ttl", "S", NULL, CGAM_ABOVE_0, 1e15,
                    "seconds until the entry expires; default: never"),
    CGAM_PARAMS_CACHE_MODEL,
    NOW,
    CGAM_PARAM_END,
};
static const cgam_param params_get[] = {
    CGAM_PARAM_CACHE(true, false),
    CGAM_PARAM_KEY(true, KEY_HELP),
    TENANT("whose entries are searched; entries of others have no influence"),
    CGAM_PARAM_REAL("threshold", "X", NULL, -1, 1,
                    "the least cosine that is a hit; default: that of cache calibrate, "
                    "else 0.9"),
    CGAM_PARAM_BETA("20"),
    CGAM_PARAMS_CACHE_MODEL,
    NOW,
    CGAM_PARAM_END,
};
static const cgam_param params_drop[] = {
    CGAM_PARAM_CACHE(true, true),
    CGAM_PARAM_KEY(false, "the key to drop, the same text or vector that was put"),
    TENANT("whose entry; without --key all entries of this tenant are dropped"),
    CGAM_PARAM_FLAG("expired", "drop entries that have expired, and nothing else"),
    NOW,
    CGAM_PARAM_END,
};
static const cgam_param params_show[] = {
    CGAM_PARAM_CACHE(true, false),
    NOW,
    CGAM_PARAM_END,
};

double cgam_cache_now(const cgam_call *call)
{
    struct timespec now;
    if (cgam_args_given(call->args, "now")) return cgam_args_real(call->args, "now");
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static const char *tenant_of(const cgam_call *call)
{
    const char *tenant = cgam_args_text(call->args, "tenant");
    return tenant ? tenant : "";
}

cgam_status cgam_cache_open(cgam_call *call, cgam_semcache **out)
{
    const char *path = cgam_args_text(call->args, "cache");
    *out = NULL;
    if (call->shelf && !cgam_file_exists(path)) return CGAM_OK;
    return cgam_semcache_open(call->env, path, out);
}

cgam_semcache_maker cgam_cache_maker(const cgam_call *call, const cgam_semcache *cache)
{
    cgam_semcache_maker maker = {.layer = -1};
    if (cache) maker = cgam_semcache_describe(cache).maker;
    maker.model[0] = 0;
    if (cgam_args_given(call->args, "layer")) maker.layer = cgam_args_int(call->args, "layer");
    if (!*maker.pool || cgam_args_given(call->args, "pool"))
        snprintf(maker.pool, sizeof maker.pool, "%s", cgam_args_text(call->args, "pool"));
    return maker;
}

/* ---- put -------------------------------------------------------------------------------------- */
static cgam_status put_entry(cgam_call *call, cgam_key *key, const cgam_semcache_maker *maker)
{
    const char *path = cgam_args_text(call->args, "cache");
    double ttl = cgam_args_real(call->args, "ttl");
    cgam_semcache *cache;
    cgam_semcache_change done;
    cgam_semcache_entry entry = {.key = key->text ? key->text : "",
                                 .value = cgam_args_text(call->args, "value"),
                                 .tenant = tenant_of(call),
                                 .vector = key->vector,
                                 .time = cgam_cache_now(call),
                                 .ttl = isnan(ttl) ? 0 : ttl};
    cgam_status status = cgam_semcache_put(call->env, path, &entry, key->d, maker, &done);
    if (status == CGAM_OK) status = cgam_semcache_open(call->env, path, &cache);
    if (status != CGAM_OK) return status;
    cgam_semcache_info info = cgam_semcache_describe(cache);
    cgam_json_add(call->doc, "cache=%s tenant=%s n=%jd d=%jd replaced?=%d expired=%jd bytes=%jd",
                  path, entry.tenant, info.n, info.d, done.replaced > 0, done.expired,
                  (int64_t)info.bytes);
    cgam_semcache_free(cache);
    return CGAM_OK;
}

static cgam_status put_cache(cgam_call *call)
{
    cgam_key key;
    cgam_semcache *cache = NULL;
    cgam_status status = cgam_key_read(call->env, cgam_args_text(call->args, "key"), &key);
    if (status == CGAM_OK && cgam_file_exists(cgam_args_text(call->args, "cache")))
        status = cgam_cache_open(call, &cache);
    cgam_semcache_maker maker = {0};
    if (status == CGAM_OK) {
        maker = cgam_cache_maker(call, cache);
        status = cgam_keys_embed(call, &maker, 1, &key);
    }
    cgam_semcache_free(cache);
    if (status == CGAM_OK) status = put_entry(call, &key, &maker);
    cgam_free(call->env, key.vector);
    return status;
}

/* ---- get -------------------------------------------------------------------------------------- */
static json_t *vector_json(const cgam_semcache_entry *entry, int64_t d)
{
    json_t *list = json_array();
    for (int64_t j = 0; j < d; j++)
        json_array_append_new(list, cgam_json_real((double)entry->vector[j]));
    return list;
}

static void put_hit(cgam_call *call, const cgam_semcache *cache, const cgam_semcache_query *query,
                    const cgam_semcache_hit *hit)
{
    cgam_semcache_entry entry = {0};
    json_t *key = json_null();
    if (hit->hit) {
        entry = cgam_semcache_at(cache, hit->best);
        key = *entry.key ? cgam_json_lossy(entry.key)
                         : vector_json(&entry, cgam_semcache_describe(cache).d);
    }
    cgam_json_add(call->doc, "hit?=%d value=%s key=%p score=%g p=%g p_none=%g age=%g", hit->hit,
                  entry.value, key, hit->score, hit->p, hit->p_none,
                  hit->hit ? query->now - entry.time : (double)NAN);
    cgam_json_add(call->doc, "threshold=%g beta=%g among=%jd tenant=%s cache=%s", query->threshold,
                  query->beta, hit->among, query->tenant, cgam_args_text(call->args, "cache"));
}

/* The key's vector must be of the kind that the cache's keys are. */
static cgam_status check_key(cgam_call *call, const cgam_semcache *cache, const cgam_key *key,
                             const cgam_semcache_maker *maker)
{
    cgam_semcache_info info = cgam_semcache_describe(cache);
    if (info.n == 0) return CGAM_OK;
    if (key->text) {
        cgam_status status = cgam_semcache_fits(call->env, "the cache", &info.maker, maker);
        if (status != CGAM_OK) return status;
    }
    return key->d == info.d
               ? CGAM_OK
               : cgam_fail(call->env, CGAM_E_SHAPE, "key: d = %lld, the cache has d = %lld",
                           (long long)key->d, (long long)info.d);
}

static cgam_status look_up(cgam_call *call, cgam_semcache *cache, cgam_key *key)
{
    double threshold = cgam_args_real(call->args, "threshold");
    cgam_semcache_hit hit = {.best = -1, .score = NAN, .p_none = 1};
    cgam_semcache_maker maker = cgam_cache_maker(call, cache);
    if (isnan(threshold) && cache) threshold = cgam_semcache_describe(cache).threshold;
    if (isnan(threshold)) threshold = CGAM_SEMCACHE_THRESHOLD;
    cgam_status status = cgam_keys_embed(call, &maker, 1, key);
    cgam_semcache_query query = {.vector = key->vector,
                                 .tenant = tenant_of(call),
                                 .now = cgam_cache_now(call),
                                 .threshold = threshold,
                                 .beta = cgam_args_real(call->args, "beta")};
    if (status == CGAM_OK && cache) status = check_key(call, cache, key, &maker);
    if (status == CGAM_OK && cache) status = cgam_semcache_get(cache, &query, &hit);
    if (status == CGAM_OK) put_hit(call, cache, &query, &hit);
    return status;
}

static cgam_status get_cache(cgam_call *call)
{
    cgam_key key;
    cgam_semcache *cache = NULL;
    cgam_status status = cgam_key_read(call->env, cgam_args_text(call->args, "key"), &key);
    if (status == CGAM_OK) status = cgam_cache_open(call, &cache);
    if (status == CGAM_OK) status = look_up(call, cache, &key);
    cgam_semcache_free(cache);
    cgam_free(call->env, key.vector);
    return status;
}

/* ---- drop and show ------------------------------------------------------------------------------ */
static cgam_status drop_cache(cgam_call *call)
{
    const char *path = cgam_args_text(call->args, "cache");
    const char *text = cgam_args_text(call->args, "key");
    bool tenant = cgam_args_given(call->args, "tenant");
    bool expired = cgam_args_flag(call->args, "expired");
    cgam_key key = {0};
    cgam_semcache *cache;
    cgam_semcache_change done;
    if (expired == (text || tenant))
        return cgam_fail(call->env, CGAM_E_ARG,
                         expired ? "give expired without key and tenant"
                                 : "give key, tenant or expired");
    cgam_status status = text ? cgam_key_read(call->env, text, &key) : CGAM_OK;
    cgam_semcache_choice which = {.tenant = expired ? NULL : tenant_of(call),
                                  .key = key.text,
                                  .vector = key.vector,
                                  .d = key.d};
    if (status == CGAM_OK)
        status = cgam_semcache_drop(call->env, path, &which, cgam_cache_now(call), &done);
    if (status == CGAM_OK) status = cgam_semcache_open(call->env, path, &cache);
    if (status == CGAM_OK) {
        cgam_json_add(call->doc, "cache=%s n=%jd dropped=%jd expired=%jd", path,
                      cgam_semcache_describe(cache).n, done.dropped, done.expired);
        cgam_semcache_free(cache);
    }
    cgam_free(call->env, key.vector);
    return status;
}

typedef struct belonging {
    const char *tenant;
    bool lives;
} belonging;

static int by_tenant(const void *a, const void *b)
{
    const belonging *x = a, *y = b;
    return strcmp(x->tenant, y->tenant);
}

/* Gives the number of live entries. */
static cgam_status put_tenants(cgam_call *call, const cgam_semcache *cache, int64_t n,
                               int64_t *live)
{
    double now = cgam_cache_now(call);
    json_t *list = json_array();
    belonging *all = cgam_alloc(call->env, (size_t)n + 1, sizeof *all);
    cgam_status status = all ? CGAM_OK : cgam_fail_nomem(call->env, "tenants");
    *live = 0;
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) {
        cgam_semcache_entry entry = cgam_semcache_at(cache, i);
        all[i] = (belonging){entry.tenant, cgam_semcache_lives(&entry, now)};
    }
    if (status == CGAM_OK) qsort(all, (size_t)n, sizeof *all, by_tenant);
    for (int64_t i = 0, next; i < n && status == CGAM_OK; i = next) {
        int64_t alive = 0;
        for (next = i; next < n && strcmp(all[next].tenant, all[i].tenant) == 0; next++)
            alive += all[next].lives;
        *live += alive;
        json_array_append_new(
            list, cgam_json_object("tenant=%s n=%jd live=%jd", all[i].tenant, next - i, alive));
    }
    cgam_free(call->env, all);
    if (status == CGAM_OK) cgam_json_put(call->doc, "tenants", list);
    else json_decref(list);
    return status;
}

static cgam_status show_cache(cgam_call *call)
{
    cgam_semcache *cache;
    int64_t live;
    cgam_status status = cgam_semcache_open(call->env, cgam_args_text(call->args, "cache"), &cache);
    if (status != CGAM_OK) return status;
    cgam_semcache_info info = cgam_semcache_describe(cache);
    bool model = *info.maker.model;
    cgam_json_add(call->doc, "cache=%s n=%jd d=%jd bytes=%jd threshold=%g calibrated?=%d",
                  cgam_args_text(call->args, "cache"), info.n, info.d, (int64_t)info.bytes,
                  isnan(info.threshold) ? CGAM_SEMCACHE_THRESHOLD : info.threshold,
                  !isnan(info.threshold));
    cgam_json_put_text(call->doc, "model", model ? info.maker.model : NULL);
    cgam_json_put(call->doc, "layer", model ? json_integer(info.maker.layer) : json_null());
    cgam_json_put_text(call->doc, "pool", model ? info.maker.pool : NULL);
    status = put_tenants(call, cache, info.n, &live);
    if (status == CGAM_OK) cgam_json_put_int(call->doc, "live", live);
    cgam_semcache_free(cache);
    return status;
}

/* ---- The table -------------------------------------------------------------------------------- */
const cgam_verb cgam_verb_cache_put = {.name = "cache put", .params = params_put, .run = put_cache};
const cgam_verb cgam_verb_cache_get = {.name = "cache get", .params = params_get, .run = get_cache};
const cgam_verb cgam_verb_cache_drop = {
    .name = "cache drop", .params = params_drop, .run = drop_cache};
const cgam_verb cgam_verb_cache_show = {
    .name = "cache show", .params = params_show, .run = show_cache};
