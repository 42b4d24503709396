/* edit.c: edits from words. */
#include "base/env.h"
#include "base/names.h"
#include "io/file.h"

#include <cgam/edit.h>
#include <cgam/io.h>
#include <cgam/vector.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cgam_edit_set {
    cgam_lm *lm;
    cgam_env *env;
    int64_t width, layers; /* d, L */
    int64_t count, room;
    cgam_lm_edit *edit; /* [count], each with a vector of its own */
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
    cgam_free(set->env, set->edit);
    cgam_free(set->env, set);
}

cgam_lm_edits cgam_edit_set_edits(const cgam_edit_set *set)
{
    return (cgam_lm_edits){set->edit, set->count};
}

cgam_status cgam_edit_set_add(cgam_edit_set *set, const cgam_lm_edit *edit)
{
    size_t size = (size_t)set->width * sizeof *edit->vector;
    if (set->count == set->room) {
        int64_t room = 2 * set->room + 4;
        cgam_lm_edit *more = cgam_alloc(set->env, (size_t)room, sizeof *more);
        if (!more) return cgam_fail_nomem(set->env, "edits");
        if (set->count > 0) memcpy(more, set->edit, (size_t)set->count * sizeof *more);
        cgam_free(set->env, set->edit);
        set->edit = more;
        set->room = room;
    }
    float *copy = cgam_alloc(set->env, (size_t)set->width, sizeof *copy);
    if (!copy) return cgam_fail_nomem(set->env, "the vector of an edit");
    memcpy(copy, edit->vector, size);
    set->edit[set->count] = *edit;
    set->edit[set->count++].vector = copy;
    return CGAM_OK;
}

/* ---- Words -------------------------------------------------------------------------------- */
/* A whole number at *at, which is moved behind it. */
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

/* Moves behind a word and a colon. */
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

CGAM_NAMES(cgam_lm_where, cgam_lm_where, "last", "prompt", "generated", "all", "range")

static bool take_where(const char **at, cgam_lm_edit *e)
{
    for (e->where = CGAM_LM_LAST; e->where < CGAM_LM_RANGE; e->where++)
        if (take_word(at, cgam_lm_where_name(e->where))) return true;
    return take_range(at, &e->from, &e->to) && take_colon(at);
}

/* Where a file's name ends: behind the last of the endings we know, else at the end. */
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
    char *path = cgam_alloc(set->env, length + 1, 1);
    float *vector = cgam_alloc(set->env, (size_t)set->width, sizeof *vector);
    cgam_status status = path && vector ? CGAM_OK : cgam_fail_nomem(set->env, "an edit");
    if (status == CGAM_OK) {
        memcpy(path, at, length);
        path[length] = '\0';
        bool other = cgam_path_ends(path, ".gguf") || cgam_path_ends(path, ".safetensors");
        status = other ? read_row(set, path, row, vector) : read_npy(set, path, row, named, vector);
    }
    e.vector = vector;
    if (status == CGAM_OK) status = cgam_edit_set_add(set, &e);
    cgam_free(set->env, path);
    cgam_free(set->env, vector);
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
    char *path = cgam_alloc(set->env, length + 1, 1);
    if (!path) return cgam_fail_nomem(set->env, "a vector");
    memcpy(path, word, length);
    path[length] = '\0';
    cgam_vector *v = NULL;
    cgam_status status = cgam_vector_open(set->env, path, &v);
    if (status == CGAM_OK) status = cgam_vector_fits(v, set->lm, cgam_path_tail(path));
    for (int64_t l = from; l <= to && status == CGAM_OK; l++) {
        cgam_lm_edit e = {
            .layer = l, .where = CGAM_LM_ALL, .scale = scale, .vector = cgam_vector_row(v, l)};
        if (e.vector && cgam_vector_norm(v, l) > 0) status = cgam_edit_set_add(set, &e);
    }
    cgam_vector_free(v);
    cgam_free(set->env, path);
    return status;
}
