/* verb_cache_calibrate.c: the threshold of a cache, from pairs that mean the same or not. */
#include "app/cache.h"
#include "app/verbs.h"
#include "base/alloc.h"
#include "io/json.h"
#include "lab/threshold.h"

#include <math.h>

static const cgam_param params[] = {
    CGAM_PARAM_CACHE(false, true),
    CGAM_PARAM_TEXT(
        "pairs", "FILE.jsonl",
        "a JSON object a line: \"a\" and \"b\", texts or lists of numbers, and \"same\", true "
        "or false; - for standard input",
        .required = true, .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_REAL("budget", "X", "0.01", CGAM_ABOVE_0, 0.999999,
                    "the largest share of different pairs that may hit"),
    CGAM_PARAMS_CACHE_MODEL,
    CGAM_PARAM_REAL("now", "S", NULL, 0, 1e15,
                    "the time, in seconds since 1970, instead of the clock's"),
    CGAM_PARAM_END,
};

typedef struct pairs {
    cgam_call *call;
    const char *name; /* of the file */
    cgam_key *keys;   /* a and b of pair i are 2 i and 2 i + 1 */
    cgam_pair_score *scores;
    json_t *lines; /* own the texts */
    int64_t count, capacity;
} pairs;

static cgam_status read_side(pairs *p, const json_t *row, const char *side, const char *where,
                             cgam_key *out)
{
    const json_t *value = json_object_get(row, side);
    bool fits;
    *out = (cgam_key){.text = json_string_value(value)};
    if (out->text && *out->text) return CGAM_OK;
    cgam_status status = cgam_key_from_json(p->call->env, value, out, &fits);
    if (status != CGAM_OK || fits) return status;
    return cgam_fail(p->call->env, CGAM_E_FORMAT,
                     "%s: \"%s\" is neither a text nor a list of numbers", where, side);
}

static cgam_status add_line(pairs *p, int64_t line, const char *text, size_t length)
{
    cgam_env *env = p->call->env;
    char where[300];
    json_t *row;
    snprintf(where, sizeof where, "%s:%lld", p->name, (long long)line);
    cgam_status status = cgam_json_parse(env, where, text, length, &row);
    if (status != CGAM_OK) return status;
    if (json_array_append_new(p->lines, row) != 0) return cgam_fail_nomem(env, "pairs");
    const json_t *same = json_object_get(row, "same");
    if (!json_is_boolean(same))
        return cgam_fail(env, CGAM_E_FORMAT, "%s: \"same\" is neither true nor false", where);
    cgam_key *a = &p->keys[2 * p->count], *b = a + 1;
    p->scores[p->count++].same = json_is_true(same);
    status = read_side(p, row, "a", where, a);
    if (status == CGAM_OK) status = read_side(p, row, "b", where, b);
    if (status == CGAM_OK && (!a->vector != !b->vector || a->d != b->d))
        status = cgam_fail(env, CGAM_E_SHAPE, "%s: a and b are not of one kind and length", where);
    return status;
}

static bool is_blank(const char *text, size_t length) { return strspn(text, " \t\r") >= length; }

static cgam_status read_pairs(pairs *p, const cgam_file *file)
{
    cgam_env *env = p->call->env;
    const char *text = (const char *)file->bytes, *end = text + file->size;
    int64_t lines = 1;
    for (const char *c = text; c < end; c++) lines += *c == '\n';
    p->lines = json_array();
    cgam_status status =
        cgam_alloc_all(env, "pairs", CGAM_ZEROS(p->keys, 2 * lines), CGAM_ZEROS(p->scores, lines));
    for (int64_t line = 1; text < end && status == CGAM_OK; line++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((stop ? stop : end) - text);
        char *copy = cgam_alloc(env, length + 1, 1);
        if (!copy) return cgam_fail_nomem(env, "pairs");
        memcpy(copy, text, length);
        copy[length] = 0;
        if (!is_blank(copy, length)) status = add_line(p, line, copy, length);
        cgam_free(env, copy);
        text += length + 1;
    }
    if (status == CGAM_OK && p->count == 0)
        status = cgam_fail(env, CGAM_E_FORMAT, "%s: no pairs", p->name);
    return status;
}

static cgam_status score_pairs(pairs *p)
{
    for (int64_t i = 0; i < p->count; i++) {
        const cgam_key *a = &p->keys[2 * i], *b = a + 1;
        double ab = 0, aa = 0, bb = 0;
        for (int64_t j = 0; j < a->d; j++) {
            ab += (double)a->vector[j] * (double)b->vector[j];
            aa += (double)a->vector[j] * (double)a->vector[j];
            bb += (double)b->vector[j] * (double)b->vector[j];
        }
        p->scores[i].score = ab / (sqrt(aa) * sqrt(bb));
        if (!isfinite(p->scores[i].score))
            return cgam_fail(p->call->env, CGAM_E_VALUE,
                             "%s: a vector of pair %lld is zero or not finite", p->name,
                             (long long)i + 1);
    }
    return CGAM_OK;
}

static cgam_status put_threshold(cgam_call *call, const cgam_threshold *t,
                                 const cgam_semcache_maker *maker)
{
    const char *path = cgam_args_text(call->args, "cache");
    double budget = cgam_args_real(call->args, "budget"), ends[] = {t->false_from, t->false_to};
    const char *why = t->met                     ? NULL
                      : t->different < t->needed ? "too few different pairs for this budget"
                      : t->same == 0             ? "no pair that means the same"
                                                 : "no threshold within the budget lets a pair hit "
                                                   "that means the same";
    cgam_json_add(call->doc, "threshold=%g false_hits=%g false_hits_ci95=%p hits=%g met?=%d why=%s",
                  t->threshold, t->false_hits, cgam_json_reals(ends, 2, 1), t->hits, t->met, why);
    cgam_json_add(call->doc,
                  "budget=%g same=%jd different=%jd same_hits=%jd different_hits=%jd needed=%jd",
                  budget, t->same, t->different, t->same_hits, t->different_hits, t->needed);
    cgam_json_put_text(call->doc, "cache", path);
    cgam_json_put_bool(call->doc, "stored", path && t->met);
    call->negative = !t->met;
    return path && t->met
               ? cgam_semcache_set(call->env, path, t->threshold, maker, cgam_cache_now(call))
               : CGAM_OK;
}

static cgam_status calibrate_cache(cgam_call *call)
{
    const char *path = cgam_args_text(call->args, "pairs"),
               *cached = cgam_args_text(call->args, "cache");
    pairs p = {.call = call, .name = cgam_file_name(path)};
    cgam_file file = {0};
    cgam_semcache *cache = NULL;
    cgam_threshold chosen;
    cgam_status status = cgam_file_map(call->env, path, &file);
    if (status == CGAM_OK) status = read_pairs(&p, &file);
    if (status == CGAM_OK && cached && cgam_file_exists(cached))
        status = cgam_cache_open(call, &cache);
    cgam_semcache_maker maker = cgam_cache_maker(call, cache);
    cgam_semcache_free(cache);
    if (status == CGAM_OK) status = cgam_keys_embed(call, &maker, 2 * p.count, p.keys);
    if (status == CGAM_OK) status = score_pairs(&p);
    if (status == CGAM_OK)
        status = cgam_threshold_choose(call->env, p.count, p.scores,
                                       cgam_args_real(call->args, "budget"), &chosen);
    if (status == CGAM_OK) status = put_threshold(call, &chosen, &maker);
    for (int64_t i = 0; p.keys && i < 2 * p.count; i++) cgam_free(call->env, p.keys[i].vector);
    cgam_free_all(call->env, p.keys, p.scores);
    json_decref(p.lines);
    cgam_file_unmap(&file);
    return status;
}

const cgam_verb cgam_verb_cache_calibrate = {
    .name = "cache calibrate", .params = params, .run = calibrate_cache};
