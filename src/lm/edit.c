/* edit.c: parses edits, and places them in prompts. */
#include "lm/edit.h"
#include "base/alloc.h"
#include "io/file.h"
#include "lm/model.h"
#include "lm/vector.h"

#include <cgam/io.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cgam_edit_set {
    cgam_lm *lm;
    cgam_env *env;
    int64_t width, layers; /* d, L */
    int64_t count, capacity;
    cgam_lm_edit *edit; /* [count], each owns its vector */
};

cgam_status cgam_edit_set_new(cgam_lm *lm, cgam_edit_set **out)
{
    cgam_env *env = cgam_lm_env(lm);
    cgam_lm_info info = cgam_lm_describe(lm);
    *out = cgam_zalloc(env, 1, sizeof **out);
    if (!*out) return cgam_fail_nomem(env, "edits");
    **out = (cgam_edit_set){.lm = lm, .env = env, .width = info.width, .layers = info.layers};
    return CGAM_OK;
}

void cgam_edit_set_free(cgam_edit_set *set)
{
    if (!set) return;
    for (int64_t i = 0; i < set->count; i++)
        cgam_free(set->env, (void *)(uintptr_t)set->edit[i].vector);
    cgam_free_all(set->env, set->edit, set);
}

cgam_lm_edits cgam_edit_set_edits(const cgam_edit_set *set)
{
    return (cgam_lm_edits){set->edit, set->count};
}

/* Appends an edit with a copy of its vector. */
static cgam_status add_edit(cgam_edit_set *set, const cgam_lm_edit *edit)
{
    size_t size = (size_t)set->width * sizeof *edit->vector;
    cgam_status status = cgam_grow(set->env, "edits", set->edit, set->count, &set->capacity);
    if (status != CGAM_OK) return status;
    float *copy = cgam_alloc(set->env, (size_t)set->width, sizeof *copy);
    if (!copy) return cgam_fail_nomem(set->env, "the vector of an edit");
    memcpy(copy, edit->vector, size);
    set->edit[set->count] = *edit;
    set->edit[set->count++].vector = copy;
    return CGAM_OK;
}

/* ---- Words -------------------------------------------------------------------------------- */
/* Reads a whole number at *at and moves *at past it. */
static bool take_int(const char **at, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(*at, &end, 10);
    if (end == *at || errno || **at == ' ' || **at == '+') return false;
    *out = value;
    *at = end;
    return true;
}

static bool take_real(const char **at, double *out)
{
    char *end;
    *out = strtod(*at, &end);
    if (end == *at || !isfinite(*out) || **at == ' ') return false;
    *at = end;
    return true;
}

/* `from` or `from-to`; a dash that follows a number joins two, any other is a sign. */
static bool take_range(const char **at, int64_t *from, int64_t *to)
{
    if (!take_int(at, from)) return false;
    *to = *from;
    if (**at != '-') return true;
    ++*at;
    return take_int(at, to);
}

static bool take_colon(const char **at)
{
    if (**at != ':') return false;
    ++*at;
    return true;
}

/* Moves *at past a word and a colon. */
static bool take_word(const char **at, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(*at, word, n) != 0 || (*at)[n] != ':') return false;
    *at += n + 1;
    return true;
}

static bool take_kind(const char **at, cgam_lm_edit_kind *out)
{
    *out = CGAM_LM_ADD;
    if (take_word(at, "add")) return true;
    *out = CGAM_LM_REPLACE;
    return take_word(at, "replace");
}

const char *const cgam_lm_where_words[] = {"last", "prompt", "generated", "all", "range", NULL};

const char *const cgam_lm_block_part_words[] = {"residual", "attention", "mlp", "heads", NULL};

static bool take_where(const char **at, cgam_lm_edit *e)
{
    for (e->where = CGAM_LM_LAST; e->where < CGAM_LM_RANGE; e->where++)
        if (take_word(at, cgam_word(cgam_lm_where_words, e->where))) return true;
    return take_range(at, &e->from, &e->to) && take_colon(at);
}

/* The length of a file name: up to the last suffix that we know, else the whole text. */
static size_t name_length(const char *text)
{
    static const char *const endings[] = {".npy", ".gguf", ".safetensors"};
    size_t best = 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        for (const char *at = strstr(text, endings[i]); at; at = strstr(at + 1, endings[i])) {
            size_t end = (size_t)(at - text) + strlen(endings[i]);
            if ((text[end] == ':' || text[end] == '\0') && end > best) best = end;
        }
    return best > 0 ? best : strlen(text);
}

static cgam_status malformed(const cgam_edit_set *set, const char *what, const char *word,
                             const char *form)
{
    return cgam_fail(set->env, CGAM_E_ARG, "%s: %s is not of the form %s", what, word, form);
}

/* ---- Vectors ------------------------------------------------------------------------------ */
/* Row `row` of an .npy, or the whole of it if it has one dimension. */
static cgam_status read_npy(const cgam_edit_set *set, const char *path, int64_t row, bool named,
                            float *out)
{
    cgam_env *env = set->env;
    cgam_array array = {0};
    const char *name = cgam_path_tail(path);
    cgam_status status = cgam_array_open(env, path, &array);
    if (status != CGAM_OK) return status;
    double *wide = NULL;
    if (array.ndim != 1 && array.ndim != 2)
        status = cgam_fail(env, CGAM_E_SHAPE, "%s has %d dimensions, a vector has one or two", name,
                           array.ndim);
    else if (array.shape[array.ndim - 1] != set->width)
        status =
            cgam_fail(env, CGAM_E_SHAPE, "%s has vectors of %lld numbers, the model's have %lld",
                      name, (long long)array.shape[array.ndim - 1], (long long)set->width);
    else if (array.ndim == 1 && named)
        status = cgam_fail(env, CGAM_E_SHAPE, "%s is one vector: there is no row %lld", name,
                           (long long)row);
    else if (array.ndim == 2 && (row < 0 || row >= array.shape[0]))
        status = cgam_fail(env, CGAM_E_SHAPE, "%s has rows 0 to %lld, not %lld", name,
                           (long long)array.shape[0] - 1, (long long)row);
    if (status == CGAM_OK) wide = cgam_alloc(env, (size_t)array.size, sizeof *wide);
    if (status == CGAM_OK && !wide) status = cgam_fail_nomem(env, "a vector");
    if (status == CGAM_OK) status = cgam_array_read_f64(env, &array, name, wide);
    const double *from = status == CGAM_OK && array.ndim == 2 ? wide + row * set->width : wide;
    for (int64_t j = 0; j < set->width && status == CGAM_OK; j++) out[j] = (float)from[j];
    cgam_free(env, wide);
    cgam_array_close(env, &array);
    return status;
}

static cgam_status read_row(const cgam_edit_set *set, const char *path, int64_t row, float *out)
{
    cgam_vector *v;
    cgam_status status = cgam_vector_open(set->env, path, &v);
    if (status != CGAM_OK) return status;
    status = cgam_vector_fits(v, set->lm, cgam_path_tail(path));
    if (status == CGAM_OK && !cgam_vector_row(v, row))
        status = cgam_fail(set->env, CGAM_E_SHAPE, "%s has no row %lld", cgam_path_tail(path),
                           (long long)row);
    if (status == CGAM_OK) memcpy(out, cgam_vector_row(v, row), (size_t)set->width * sizeof *out);
    cgam_vector_free(v);
    return status;
}

cgam_status cgam_edit_set_word(cgam_edit_set *set, const char *word)
{
    cgam_lm_edit e = cgam_lm_edit_default();
    const char *at = word;
    if (!take_int(&at, &e.layer) || !take_colon(&at) || !take_kind(&at, &e.kind) ||
        !take_where(&at, &e) || !take_real(&at, &e.scale) || !take_colon(&at) || *at == '\0')
        return malformed(set, "edit", word, "LAYER:add|replace:POSITIONS:X:FILE[:ROW]");
    if (e.layer < 0 || e.layer > set->layers)
        return cgam_fail(set->env, CGAM_E_ARG, "edit: %s: the model has layers 0 to %lld", word,
                         (long long)set->layers);
    size_t length = name_length(at);
    int64_t row = e.layer;
    const char *tail = at + length;
    bool named = take_colon(&tail);
    if (named && (!take_int(&tail, &row) || *tail != '\0'))
        return malformed(set, "edit", word, "LAYER:add|replace:POSITIONS:X:FILE[:ROW]");
    char *path = cgam_strndup(set->env, at, length);
    float *vector = cgam_alloc(set->env, (size_t)set->width, sizeof *vector);
    cgam_status status = path && vector ? CGAM_OK : cgam_fail_nomem(set->env, "an edit");
    if (status == CGAM_OK) {
        bool other = cgam_path_ends(path, ".gguf") || cgam_path_ends(path, ".safetensors");
        status = other ? read_row(set, path, row, vector) : read_npy(set, path, row, named, vector);
    }
    e.vector = vector;
    if (status == CGAM_OK) status = add_edit(set, &e);
    cgam_free_all(set->env, path, vector);
    return status;
}

cgam_status cgam_edit_set_vectors(cgam_edit_set *set, const char *word)
{
    size_t length = name_length(word);
    const char *at = word + length;
    double scale = 1;
    int64_t from = 0, to = set->layers;
    bool fine = true;
    if (take_colon(&at)) fine = take_real(&at, &scale);
    if (fine && take_colon(&at)) fine = take_range(&at, &from, &to);
    if (!fine || *at != '\0') return malformed(set, "vector", word, "FILE[:X[:FROM-TO]]");
    if (from < 0 || to < from || to > set->layers)
        return cgam_fail(set->env, CGAM_E_ARG, "vector: %s: the model has layers 0 to %lld", word,
                         (long long)set->layers);
    char *path = cgam_strndup(set->env, word, length);
    if (!path) return cgam_fail_nomem(set->env, "a vector");
    cgam_vector *v = NULL;
    cgam_status status = cgam_vector_open(set->env, path, &v);
    if (status == CGAM_OK) status = cgam_vector_fits(v, set->lm, cgam_path_tail(path));
    for (int64_t l = from; l <= to && status == CGAM_OK; l++) {
        cgam_lm_edit e = {
            .layer = l, .where = CGAM_LM_ALL, .scale = scale, .vector = cgam_vector_row(v, l)};
        if (e.vector && cgam_vector_norm(v, l) > 0) status = add_edit(set, &e);
    }
    cgam_vector_free(v);
    cgam_free(set->env, path);
    return status;
}

/* ---- Plans ----------------------------------------------------------------------------------- */
cgam_lm_edit cgam_lm_edit_default(void) { return (cgam_lm_edit){.scale = 1}; }

void cgam_edit_plan_clear(cgam_env *env, cgam_edit_plan *plan)
{
    cgam_free_all(env, plan->at, plan->first, plan->layer);
    *plan = (cgam_edit_plan){0};
}

/* Numbers of an edit's vector. */
static int64_t edit_length(const cgam_lm_edit *e, const cgam_lm_info *info)
{
    return e->part == CGAM_LM_HEADS ? info->head_size : info->width;
}

/* Does the edit add zero? It is left out then, so that it changes no bit, not even the sign of a zero. */
static bool is_nothing(const cgam_lm_edit *e, int64_t width)
{
    if (e->kind != CGAM_LM_ADD) return false;
    for (int64_t j = 0; j < width && e->scale != 0; j++)
        if (e->vector[j] != 0) return false;
    return true;
}

static cgam_status check_edit(cgam_env *env, const cgam_lm_info *info, const cgam_lm_edit *e)
{
    if (e->layer < 0 || e->layer > info->layers)
        return cgam_fail(env, CGAM_E_ARG, "edit: no layer %lld (valid: 0 to %lld)",
                         (long long)e->layer, (long long)info->layers);
    if (e->part == CGAM_LM_HEADS &&
        (e->layer == 0 || e->head < 0 || e->head >= info->heads || info->head_size < 1))
        return cgam_fail(env, CGAM_E_ARG,
                         "edit: no head %lld in block %lld (%lld heads, blocks 1 to %lld)",
                         (long long)e->head, (long long)e->layer, (long long)info->heads,
                         (long long)info->layers);
    if (e->part != CGAM_LM_RESIDUAL && e->part != CGAM_LM_HEADS)
        return cgam_fail(env, CGAM_E_ARG, "edit: only the stream and single heads can be edited");
    if (!e->vector)
        return cgam_fail(env, CGAM_E_ARG, "edit at layer %lld: its vector is missing",
                         (long long)e->layer);
    if (!isfinite(e->scale) || !isfinite((float)e->scale))
        return cgam_fail(env, CGAM_E_ARG, "edit: scale is %g, it must be finite in f32", e->scale);
    for (int64_t j = 0; j < edit_length(e, info); j++)
        if (!isfinite(e->vector[j]))
            return cgam_fail(
                env, CGAM_E_ARG,
                "edit at layer %lld: number %lld of its vector is %g, it must be finite",
                (long long)e->layer, (long long)j, (double)e->vector[j]);
    return CGAM_OK;
}

/* The positions of an edit in a prompt of `length` tokens with `more` after it. */
static cgam_status place_edit(cgam_env *env, const cgam_lm_info *info, const cgam_lm_edit *e,
                              int64_t prompt, int64_t length, int64_t more, cgam_edit_at *out)
{
    int64_t from = 0, to = INT64_MAX;
    char after[48];
    snprintf(after, sizeof after, ", and up to %lld follow", (long long)more);
    switch (e->where) {
    case CGAM_LM_LAST: from = to = length - 1; break;
    case CGAM_LM_PROMPT: to = length - 1; break;
    case CGAM_LM_GENERATED: from = length; break;
    case CGAM_LM_ALL: break;
    case CGAM_LM_RANGE:
        from = e->from < 0 ? e->from + length : e->from;
        to = e->to < 0 ? e->to + length : e->to;
        if (from < 0 || to < from || to >= length + more)
            return cgam_fail(
                env, CGAM_E_ARG,
                "edit: tokens %lld to %lld are outside prompt %lld, which has %lld tokens%s",
                (long long)e->from, (long long)e->to, (long long)prompt, (long long)length,
                more > 0 ? after : "");
        break;
    }
    bool of_head = e->part == CGAM_LM_HEADS;
    *out = (cgam_edit_at){.layer = of_head ? info->layers + e->layer : e->layer,
                          .from = from,
                          .to = to,
                          .replace = e->kind == CGAM_LM_REPLACE,
                          .scale = (float)e->scale,
                          .vector = e->vector,
                          .first = of_head ? e->head * info->head_size : 0,
                          .length = edit_length(e, info)};
    return CGAM_OK;
}

static cgam_status place_all(cgam_env *env, const cgam_lm_info *info, cgam_lm_edits edits,
                             int64_t prompt, int64_t length, int64_t more, cgam_edit_plan *plan,
                             int64_t *placed)
{
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < edits.count && status == CGAM_OK; k++) {
        const cgam_lm_edit *e = &edits.edit[k];
        status = check_edit(env, info, e);
        if (status == CGAM_OK)
            status = place_edit(env, info, e, prompt, length, more, &plan->at[*placed]);
        if (status != CGAM_OK || is_nothing(e, edit_length(e, info))) continue;
        bool of_head = e->part == CGAM_LM_HEADS;
        if (e->kind != CGAM_LM_ADD || e->where != CGAM_LM_ALL || of_head) plan->everywhere = false;
        plan->layer[plan->at[*placed].layer] = plan->any = true;
        ++*placed;
    }
    return status;
}

cgam_status cgam_edit_plan_make(cgam_env *env, const cgam_lm_info *info, int64_t count,
                                const cgam_lm_prompt *prompts, cgam_edit_reach reach,
                                cgam_lm_edits edits, const cgam_lm_edits *edits_each,
                                cgam_edit_plan *out)
{
    int64_t most = 0, placed = 0;
    bool own = false;
    for (int64_t i = 0; i < count; i++) {
        most += edits.count + (edits_each ? edits_each[i].count : 0);
        own = own || (edits_each && edits_each[i].count > 0);
    }
    *out = (cgam_edit_plan){.layers = info->layers, .everywhere = !own};
    cgam_status status =
        cgam_alloc_all(env, "edits", CGAM_ARRAY(out->at, most), CGAM_ZEROS(out->first, count + 1),
                       CGAM_ZEROS(out->layer, 2 * info->layers + 1));
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        int64_t length = reach.prompt_tokens ? reach.prompt_tokens[i] : prompts[i].count;
        int64_t more = prompts[i].count - length + reach.more;
        status = place_all(env, info, edits, i, length, more, out, &placed);
        if (status == CGAM_OK && edits_each)
            status = place_all(env, info, edits_each[i], i, length, more, out, &placed);
        out->first[i + 1] = placed;
    }
    if (status != CGAM_OK) cgam_edit_plan_clear(env, out);
    return status;
}

static bool edit_covers(const cgam_edit_at *e, int64_t position)
{
    return e->from <= position && position <= e->to;
}

bool cgam_edit_plan_touches(const cgam_edit_plan *plan, int64_t prompt, int64_t layer,
                            int64_t position)
{
    if (!plan->any || !plan->layer[layer]) return false;
    for (int64_t k = plan->first[prompt]; k < plan->first[prompt + 1]; k++)
        if (plan->at[k].layer == layer && edit_covers(&plan->at[k], position)) return true;
    return false;
}

void cgam_edit_plan_apply(const cgam_edit_plan *plan, int64_t prompt, int64_t layer,
                          int64_t position, float *h)
{
    if (!plan->any || !plan->layer[layer]) return;
    for (int64_t k = plan->first[prompt]; k < plan->first[prompt + 1]; k++) {
        const cgam_edit_at *e = &plan->at[k];
        if (e->layer != layer || !edit_covers(e, position)) continue;
        for (int64_t j = 0; j < e->length; j++) {
            float x = e->scale *
                      e->vector[j]; /* rounded before it is added, as libllama's adapter does */
            h[e->first + j] = e->replace ? x : h[e->first + j] + x;
        }
    }
}

static bool same_edit(const cgam_edit_at *a, const cgam_edit_at *b)
{
    return a->layer == b->layer && a->first == b->first && a->replace == b->replace &&
           a->scale == b->scale &&
           (a->vector == b->vector ||
            memcmp(a->vector, b->vector, (size_t)a->length * sizeof *a->vector) == 0);
}

bool cgam_edit_plan_same(const cgam_edit_plan *plan, int64_t a, int64_t b, int64_t position)
{
    if (!plan->any) return true;
    int64_t i = plan->first[a], j = plan->first[b];
    for (;; i++, j++) {
        while (i < plan->first[a + 1] && !edit_covers(&plan->at[i], position)) i++;
        while (j < plan->first[b + 1] && !edit_covers(&plan->at[j], position)) j++;
        if (i == plan->first[a + 1] || j == plan->first[b + 1])
            return i == plan->first[a + 1] && j == plan->first[b + 1];
        if (!same_edit(&plan->at[i], &plan->at[j])) return false;
    }
}
