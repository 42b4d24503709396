/* semcache.c: opens a semantic cache and looks a key up. */
#include "memory/semcache.h"

#include "io/json.h"
#include "memory/bank.h"
#include "memory/semcache_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static cgam_status fail_format(const cgam_semcache *c, const char *what)
{
    return cgam_fail(c->env, CGAM_E_FORMAT, "%s: %s", c->name, what);
}

void cgam_semcache_free(cgam_semcache *cache)
{
    if (!cache) return;
    cgam_env *env = cache->env;
    cgam_bank_free(cache->bank); /* owns the file once there is a bank */
    cgam_file_unmap(&cache->file);
    cgam_tensor_table_free(env, &cache->table);
    cgam_free(env, cache);
}

/* ---- Reading -------------------------------------------------------------------------------- */
/* Finds an array of this type and shape, which must be there. */
static cgam_status find_part(const cgam_semcache *c, const char *name, const char *type, int ndim,
                             int64_t *shape, const void **out)
{
    const cgam_tensor *t = cgam_tensor_table_find(&c->table, name);
    if (!t || strcmp(t->layout.type, type) != 0 || t->layout.ndim != ndim)
        return cgam_fail(c->env, CGAM_E_FORMAT, "%s: %s is missing or of another type", c->name,
                         name);
    for (int k = 0; k < ndim; k++) {
        if (shape[k] >= 0 && shape[k] != t->layout.shape[k])
            return cgam_fail(c->env, CGAM_E_FORMAT, "%s: %s does not have the size of the cache",
                             c->name, name);
        shape[k] = t->layout.shape[k];
    }
    *out = c->file.bytes + c->table.data + t->begin;
    return (uintptr_t)*out % (uintptr_t)t->layout.item == 0
               ? CGAM_OK
               : cgam_fail(c->env, CGAM_E_FORMAT, "%s: %s is misaligned", c->name, name);
}

/* The texts of an entry end in a zero byte, so that they can be lent as they are. */
static cgam_status check_texts(const cgam_semcache *c, int64_t bytes)
{
    const int64_t *at = c->begin;
    bool fine = at[0] == 0 && at[3 * c->info.n] == bytes;
    for (int64_t k = 0; fine && k < 3 * c->info.n; k++)
        fine = at[k + 1] > at[k] && at[k + 1] <= bytes && c->text[at[k + 1] - 1] == 0 &&
               strlen(c->text + at[k]) == (size_t)(at[k + 1] - at[k] - 1);
    return fine ? CGAM_OK : fail_format(c, "the texts do not match the entries");
}

static cgam_status read_entries(cgam_semcache *c)
{
    int64_t rows[2] = {c->info.n, -1}, begin = 3 * c->info.n + 1, bytes = -1;
    int64_t times[2] = {c->info.n, 2};
    const void *at = NULL;
    cgam_status status = find_part(c, "rows", "F32", 2, rows, &at);
    c->rows = at;
    c->info.d = rows[1];
    if (status == CGAM_OK) status = find_part(c, "cache.begin", "I64", 1, &begin, &at);
    c->begin = at;
    if (status == CGAM_OK) status = find_part(c, "cache.text", "U8", 1, &bytes, &at);
    c->text = at;
    if (status == CGAM_OK) status = find_part(c, "cache.time", "F64", 2, times, &at);
    c->time = at;
    if (status == CGAM_OK) status = check_texts(c, bytes);
    for (int64_t i = 0; i < 2 * c->info.n && status == CGAM_OK; i++)
        if (!(isfinite(c->time[i]) && (i % 2 == 0 || c->time[i] >= 0)))
            status = fail_format(c, "a time is not a number");
    return status;
}

static cgam_status read_notes(cgam_semcache *c)
{
    const char *format = cgam_tensor_table_note(&c->table, "cache"), *text;
    char *end;
    if (!format) return fail_format(c, "not a cache; see cache put");
    if (strcmp(format, CGAM_SEMCACHE_FORMAT) != 0)
        return cgam_fail(c->env, CGAM_E_UNSUPPORTED,
                         "%s: unsupported layout '%.40s' (supported: '%s')", c->name, format,
                         CGAM_SEMCACHE_FORMAT);
    text = cgam_tensor_table_note(&c->table, "n");
    c->info.n = text ? strtoll(text, &end, 10) : -1;
    if (!text || *end || c->info.n < 0 || c->info.n > INT64_C(1) << 36)
        return fail_format(c, "n is not a valid number of entries");
    text = cgam_tensor_table_note(&c->table, "threshold");
    if (text) c->info.threshold = strtod(text, &end);
    if (text && (end == text || *end || !isfinite(c->info.threshold)))
        return fail_format(c, "threshold is not a number");
    text = cgam_tensor_table_note(&c->table, "model");
    snprintf(c->info.maker.model, sizeof c->info.maker.model, "%s", text ? text : "");
    text = cgam_tensor_table_note(&c->table, "pool");
    snprintf(c->info.maker.pool, sizeof c->info.maker.pool, "%s", text ? text : "");
    text = cgam_tensor_table_note(&c->table, "layer");
    c->info.maker.layer = text ? strtoll(text, NULL, 10) : -1;
    return CGAM_OK;
}

cgam_status cgam_semcache_open(cgam_env *env, const char *path, cgam_semcache **out)
{
    *out = NULL;
    cgam_semcache *c = cgam_zalloc(env, 1, sizeof *c);
    if (!c) return cgam_fail_nomem(env, "a cache");
    c->env = env;
    c->name = cgam_file_name(path);
    c->info.threshold = NAN;
    c->info.maker.layer = -1;
    cgam_status status = cgam_file_map(env, path, &c->file);
    c->info.bytes = c->file.size;
    if (status == CGAM_OK && c->file.size > 0) { /* a file that is being made is empty */
        status = cgam_tensor_table_parse(env, c->name, c->file.bytes, c->file.size, &c->table);
        if (status == CGAM_OK) status = read_notes(c);
        if (status == CGAM_OK && c->info.n > 0) status = read_entries(c);
    }
    if (status == CGAM_OK) *out = c;
    else cgam_semcache_free(c);
    return status;
}

cgam_semcache_info cgam_semcache_describe(const cgam_semcache *cache) { return cache->info; }

cgam_semcache_entry cgam_semcache_at(const cgam_semcache *c, int64_t i)
{
    const int64_t *at = c->begin + 3 * i;
    return (cgam_semcache_entry){.key = c->text + at[0],
                                 .value = c->text + at[1],
                                 .tenant = c->text + at[2],
                                 .vector = c->rows + i * c->info.d,
                                 .time = c->time[2 * i],
                                 .ttl = c->time[2 * i + 1]};
}

bool cgam_semcache_lives(const cgam_semcache_entry *entry, double now)
{
    return entry->ttl == 0 || now < entry->time + entry->ttl;
}

/* ---- Looking a key up ------------------------------------------------------------------------ */
/* Runs the recall among the rows of `some`, whose numbers in the cache are `number`. */
static cgam_status recall_key(const cgam_bank *some, const cgam_semcache_query *query,
                              const double *q, double *r, cgam_semcache_hit *out)
{
    cgam_recall *plan;
    cgam_result result;
    double p;
    int64_t first, n = cgam_bank_describe(some).n, top = 0;
    cgam_recall_opts o = cgam_recall_opts_default();
    o.beta = query->beta;
    o.none = true;
    o.none_score = query->threshold;
    cgam_status status = cgam_recall_new(some, &o, &plan);
    if (status != CGAM_OK) return status;
    cgam_recall_in in = {.queries = 1, .q = q};
    cgam_recall_out to = {.results = &result, .top = 1, .top_index = &first, .top_p = &p, .r = r};
    status = cgam_recall_run(plan, &in, &to);
    cgam_recall_free(plan);
    if (status != CGAM_OK) return status;
    for (int64_t i = 1; i < n; i++)
        if (r[i] > r[top]) top = i;
    out->best = cgam_bank_number(some, top);
    out->hit = result.winner >= 0;
    out->score = r[top];
    out->p = p;
    out->p_none = result.p_none;
    return CGAM_OK;
}

/* A bit for each live entry of the tenant; gives how many there are. */
static int64_t select_entries(const cgam_semcache *c, const cgam_semcache_query *query,
                              uint64_t *mask)
{
    int64_t count = 0;
    for (int64_t i = 0; i < c->info.n; i++) {
        cgam_semcache_entry entry = cgam_semcache_at(c, i);
        if (strcmp(entry.tenant, query->tenant) != 0 || !cgam_semcache_lives(&entry, query->now))
            continue;
        mask[i / 64] |= UINT64_C(1) << i % 64;
        count++;
    }
    return count;
}

/* The key divided by its norm. */
static cgam_status unit_key(const cgam_semcache *c, const float *vector, double *q)
{
    double norm = 0;
    for (int64_t j = 0; j < c->info.d; j++) norm += (double)vector[j] * (double)vector[j];
    norm = sqrt(norm);
    if (!(norm > 0 && isfinite(norm)))
        return cgam_fail(c->env, CGAM_E_VALUE, "key: the vector is zero or not finite");
    for (int64_t j = 0; j < c->info.d; j++) q[j] = (double)vector[j] / norm;
    return CGAM_OK;
}

/* Makes the bank of the keys; it takes the file over, which stays where it is mapped. */
static cgam_status make_bank(cgam_semcache *c)
{
    cgam_packed *packed;
    cgam_status status = cgam_packed_read(c->env, c->name, &c->file, &packed);
    if (status == CGAM_OK &&
        (!packed || packed->live != c->info.n || packed->n != c->info.n || !packed->normalize)) {
        cgam_packed_free(packed);
        status = fail_format(c, "the keys are not a packed bank of the cache's size");
    }
    return status == CGAM_OK ? cgam_packed_bank(packed, c->name, &(cgam_bank_opts){0}, &c->bank)
                             : status;
}

cgam_status cgam_semcache_get(cgam_semcache *c, const cgam_semcache_query *query,
                              cgam_semcache_hit *out)
{
    *out = (cgam_semcache_hit){.best = -1, .score = NAN, .p = 0, .p_none = 1};
    uint64_t *mask = NULL;
    double *q = NULL, *r = NULL;
    cgam_bank *some = NULL;
    if (c->info.n == 0) return CGAM_OK;
    cgam_status status =
        cgam_alloc_all(c->env, "a look-up", CGAM_ZEROS(mask, cgam_mask_words(c->info.n)),
                       CGAM_ARRAY(q, c->info.d), CGAM_ARRAY(r, c->info.n));
    if (status == CGAM_OK) status = unit_key(c, query->vector, q);
    if (status == CGAM_OK) out->among = select_entries(c, query, mask);
    if (status == CGAM_OK && out->among > 0) {
        status = make_bank(c);
        if (status == CGAM_OK) status = cgam_bank_only(c->bank, mask, &some);
        if (status == CGAM_OK) status = recall_key(some, query, q, r, out);
    }
    cgam_bank_free(some);
    cgam_free_all(c->env, mask, q, r);
    return status;
}
