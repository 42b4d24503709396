/* net_value.c: places, members and numbers of a JSON document. */
#include "lab/net_reader.h"

#include "base/rng.h"
#include "io/array.h"
#include "num/rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- complaints ----------------------------------------------------------------------------- */

static void place_text(const cgam_place *at, char *text, size_t size, size_t *used)
{
    if (!at) {
        cgam_text_add(text, size, used, "$");
        return;
    }
    place_text(at->up, text, size, used);
    if (at->key) cgam_text_add(text, size, used, ".%.40s", at->key);
    else cgam_text_add(text, size, used, "[%zu]", at->index);
}

cgam_status(cgam_reader_fail)(const cgam_reader *r, const cgam_place *at, cgam_status status,
                              const char *format, ...)
{
    char place[160] = "", text[320];
    size_t used = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    place_text(at, place, sizeof place, &used);
    *r->complained = true;
    return cgam_fail(r->env, status, "%s: %s: %s", r->name, place, text);
}

cgam_status cgam_reader_pass(const cgam_reader *r, const cgam_place *at, cgam_status status)
{
    char text[320];
    if (status == CGAM_OK || status == CGAM_E_NOMEM || status == CGAM_E_INTERRUPTED) return status;
    snprintf(text, sizeof text, "%.300s", cgam_env_message(r->env));
    return cgam_reader_fail(r, at, status, "%s", text);
}

static const char *kind_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "text";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_NULL: return "null";
    default: return "true or false";
    }
}

static cgam_status wrong_kind(const cgam_reader *r, const cgam_place *at, const char *wanted,
                              const json_t *value)
{
    return cgam_reader_fail(r, at, CGAM_E_FORMAT, "must be %s, it is %s", wanted, kind_of(value));
}

/* ---- members -------------------------------------------------------------------------------- */

static bool is_listed(const char *const *keys, const char *key)
{
    for (; keys && *keys; keys++)
        if (strcmp(*keys, key) == 0) return true;
    return false;
}

/* What a kind of member allows: types of jansson, as a set, and the words for them. */
static const struct {
    const char *kinds;
    int types;
    const char *words;
} member_kinds[] = {
    {"v", ~0, ""},
    {"l", 1 << JSON_ARRAY, "a list"},
    {"s", 1 << JSON_STRING, "text"}, /* without zero bytes, which cgam_json_parse rejects */
    {"i", 1 << JSON_INTEGER, "an integer"},
    {"b", 1 << JSON_TRUE | 1 << JSON_FALSE, "true or false"},
    {"f+0", 1 << JSON_INTEGER | 1 << JSON_REAL, "a number"},
};

static cgam_status read_member(const cgam_reader *r, const cgam_place *at, const json_t *value,
                               char kind, void *to)
{
    int k = 0;
    while (!strchr(member_kinds[k].kinds, kind)) k++;
    if (!(member_kinds[k].types & 1 << json_typeof(value)))
        return wrong_kind(r, at, member_kinds[k].words, value);
    double number = json_number_value(value);
    if ((kind == '+' && !(number > 0)) || (kind == '0' && !(number >= 0)))
        return cgam_reader_fail(r, at, CGAM_E_FORMAT, "%g must be %s 0", number,
                                kind == '+' ? "above" : "at least");
    if (kind == 'v' || kind == 'l') *(const json_t **)to = value;
    else if (kind == 's') *(const char **)to = json_string_value(value);
    else if (kind == 'i') *(int64_t *)to = json_integer_value(value);
    else if (kind == 'b') *(bool *)to = json_is_true(value);
    else *(double *)to = number;
    return CGAM_OK;
}

/* Reads the key and the kind at the start of a format, and advances it. */
enum { KEY_MAX = 32 };
static bool next_member(const char **format, char key[KEY_MAX], char *kind, bool *needed)
{
    int used = 0;
    if (sscanf(*format, " %31[^:]:%c%n", key, kind, &used) != 2) return false;
    *format += used;
    *needed = **format == '!';
    *format += *needed;
    return true;
}

static cgam_status read_members(const cgam_reader *r, const cgam_place *at, const json_t *object,
                                const char *format, va_list to)
{
    char key[KEY_MAX], kind;
    bool needed;
    cgam_status status = CGAM_OK;
    while (status == CGAM_OK && next_member(&format, key, &kind, &needed)) {
        const json_t *value = json_object_get(object, key);
        void *out = va_arg(to, void *);
        cgam_place here = {at, key, 0};
        if (value) status = read_member(r, &here, value, kind, out);
        else if (needed) status = cgam_reader_fail(r, at, CGAM_E_FORMAT, "'%s' is missing", key);
    }
    return status;
}

cgam_status cgam_read_members(const cgam_reader *r, const cgam_place *at, const json_t *object,
                              const char *format, ...)
{
    va_list to;
    va_start(to, format);
    cgam_status status = read_members(r, at, object, format, to);
    va_end(to);
    return status;
}

static bool in_format(const char *format, const char *wanted)
{
    char key[KEY_MAX], kind;
    bool needed;
    while (next_member(&format, key, &kind, &needed))
        if (strcmp(key, wanted) == 0) return true;
    return false;
}

cgam_status cgam_read_object(const cgam_reader *r, const cgam_place *at, const json_t *value,
                             const char *const *more, const char *format, ...)
{
    const char *key;
    json_t *one;
    if (!json_is_object(value)) return wrong_kind(r, at, "an object", value);
    json_object_foreach((json_t *)(uintptr_t)value, key, one) /* does not take const */
        if (!in_format(format, key) && !is_listed(more, key)) return cgam_reader_fail(
            r, at, CGAM_E_FORMAT, "no such key: '%.40s'", key);
    va_list to;
    va_start(to, format);
    cgam_status status = read_members(r, at, value, format, to);
    va_end(to);
    return status;
}

cgam_status cgam_read_layer_name(const cgam_reader *r, const cgam_place *at, const cgam_net *net,
                                 const json_t *value, int *out)
{
    if (!json_is_string(value)) return wrong_kind(r, at, "the name of a layer", value);
    *out = cgam_net_find(net, json_string_value(value));
    if (*out >= 0) return CGAM_OK;
    return cgam_reader_fail(r, at, CGAM_E_FORMAT, "no layer named '%.80s'",
                            json_string_value(value));
}

cgam_status cgam_read_lagr(const cgam_reader *r, const cgam_place *at, const json_t *object,
                           const cgam_lagr **out)
{
    const char *name = NULL;
    cgam_status status = cgam_read_members(r, at, object, "lagrangian:s", &name);
    if (status != CGAM_OK || !name) return status;
    const cgam_lagr *found = cgam_lagr_find(name);
    cgam_place here = {at, "lagrangian", 0};
    char known[240] = "";
    size_t used = 0;
    if (found) {
        *out = found;
        return CGAM_OK;
    }
    for (int i = 0; cgam_lagrs[i]; i++)
        cgam_text_add(known, sizeof known, &used, "%s%s", i ? ", " : "", cgam_lagrs[i]->name);
    return cgam_reader_fail(r, &here, CGAM_E_FORMAT, "unknown Lagrangian '%.40s' (valid: %s)", name,
                            known);
}

cgam_status cgam_read_params(const cgam_reader *r, const cgam_place *at, const json_t *object,
                             const cgam_lagr *lagr, double *param)
{
    const char *own[CGAM_LAGR_PARAMS + 1] = {NULL};
    char format[KEY_MAX + 2];
    cgam_status status = CGAM_OK;
    for (int i = 0; i < CGAM_LAGR_PARAMS; i++) {
        param[i] = NAN;
        own[i] = lagr->param[i].name;
        snprintf(format, sizeof format, "%s:f", own[i] ? own[i] : "");
        if (status == CGAM_OK && own[i])
            status = cgam_read_members(r, at, object, format, &param[i]);
    }
    for (int k = 0; cgam_lagrs[k]; k++)
        for (int i = 0; i < CGAM_LAGR_PARAMS && cgam_lagrs[k]->param[i].name; i++) {
            const char *name = cgam_lagrs[k]->param[i].name;
            if (status == CGAM_OK && json_object_get(object, name) && !is_listed(own, name))
                status = cgam_reader_fail(r, at, CGAM_E_FORMAT, "'%s' is not a parameter of %s",
                                          name, lagr->name);
        }
    return status;
}

/* ---- numbers -------------------------------------------------------------------------------- */

void cgam_extract_free(cgam_env *env, cgam_extract *e)
{
    cgam_free(env, e->data);
    cgam_array_close(env, &e->array);
    *e = (cgam_extract){0};
}

/* The shape, read off the first element at each depth. */
static cgam_status measure_list(const cgam_reader *r, const cgam_place *at, const json_t *value,
                                cgam_extract *e)
{
    e->size = 1;
    for (e->ndim = 0; json_is_array(value); e->ndim++) {
        if (e->ndim == CGAM_ARRAY_DIMS)
            return cgam_reader_fail(r, at, CGAM_E_FORMAT, "lists more than %d deep",
                                    CGAM_ARRAY_DIMS);
        size_t count = json_array_size(value);
        if (count == 0) return cgam_reader_fail(r, at, CGAM_E_FORMAT, "an empty list");
        e->shape[e->ndim] = (int64_t)count;
        if (__builtin_mul_overflow(e->size, (int64_t)count, &e->size))
            return cgam_reader_fail(r, at, CGAM_E_FORMAT, "too many numbers");
        value = json_array_get(value, 0);
    }
    return CGAM_OK;
}

/* Copies a list of the shape from `depth` on; lengths must agree everywhere. */
static cgam_status copy_list(const cgam_reader *r, const cgam_place *at, const json_t *value,
                             const cgam_extract *e, int depth, double **to)
{
    if (depth == e->ndim) {
        if (!json_is_number(value)) return wrong_kind(r, at, "a number", value);
        *(*to)++ = json_number_value(value);
        return CGAM_OK;
    }
    if (!json_is_array(value)) return wrong_kind(r, at, "a list", value);
    if ((int64_t)json_array_size(value) != e->shape[depth])
        return cgam_reader_fail(r, at, CGAM_E_FORMAT, "%zu elements, expected %lld",
                                json_array_size(value), (long long)e->shape[depth]);
    cgam_status status = CGAM_OK;
    for (size_t i = 0; i < json_array_size(value) && status == CGAM_OK; i++) {
        cgam_place here = {at, NULL, i};
        status = copy_list(r, &here, json_array_get(value, i), e, depth + 1, to);
    }
    return status;
}

static cgam_status read_written(const cgam_reader *r, const cgam_place *at, const json_t *value,
                                cgam_extract *out)
{
    cgam_status status = measure_list(r, at, value, out);
    if (status != CGAM_OK) return status;
    /* a list that promises more than the document has is found out while copying; its size is at
     * most the product of the lengths of the first lists, which have been read */
    out->data = cgam_alloc(r->env, (size_t)out->size, sizeof *out->data);
    if (!out->data) return cgam_fail_nomem(r->env, "numbers of a network");
    double *to = out->data;
    return copy_list(r, at, value, out, 0, &to);
}

static cgam_status read_file(const cgam_reader *r, const cgam_place *at, const char *file,
                             cgam_extract *out)
{
    char path[4096];
    if (!r->dir)
        return cgam_reader_fail(r, at, CGAM_E_FORMAT, "'%.80s': files are not allowed here", file);
    int length = snprintf(path, sizeof path, "%s%s%s", file[0] == '/' ? "" : r->dir,
                          file[0] == '/' ? "" : "/", file);
    if (length < 0 || (size_t)length >= sizeof path)
        return cgam_reader_fail(r, at, CGAM_E_FORMAT, "a path of %d bytes", length);
    cgam_status status = cgam_array_open(r->env, path, &out->array);
    if (status != CGAM_OK) return cgam_reader_pass(r, at, status);
    out->ndim = out->array.ndim;
    memcpy(out->shape, out->array.shape, sizeof out->shape);
    out->size = out->array.size;
    if (out->size > 0) return CGAM_OK;
    return cgam_reader_fail(r, at, CGAM_E_SHAPE, "'%.80s' holds no numbers", file);
}

/* {"normal": deviation, "shape": [..], "seed": n}: normal numbers, the start of weights that are learned. */
static cgam_status read_normal(const cgam_reader *r, const cgam_place *at, const json_t *value,
                               cgam_extract *out)
{
    double deviation = 0;
    const json_t *shape = NULL;
    int64_t seed = 1;
    cgam_place here = {at, "shape", 0};
    cgam_status status =
        cgam_read_object(r, at, value, NULL, "normal:+! shape:l! seed:i normalize:b", &deviation,
                         &shape, &seed, &out->normalize);
    if (status != CGAM_OK) return status;
    out->ndim = (int)json_array_size(shape);
    out->size = 1;
    for (int i = 0; i < out->ndim && i < CGAM_ARRAY_DIMS; i++) {
        const json_t *size = json_array_get(shape, (size_t)i);
        out->shape[i] = json_integer_value(size);
        if (!json_is_integer(size) || out->shape[i] < 1 ||
            out->shape[i] > (INT64_C(1) << 32) / out->size) /* 32 GiB */
            return cgam_reader_fail(r, &here, CGAM_E_FORMAT,
                                    "must be sizes above 0, of at most "
                                    "2^32 numbers");
        out->size *= out->shape[i];
    }
    if (out->ndim < 1 || out->ndim > CGAM_ARRAY_DIMS)
        return cgam_reader_fail(r, &here, CGAM_E_FORMAT, "must have 1 to %d sizes",
                                CGAM_ARRAY_DIMS);
    out->data = cgam_alloc(r->env, (size_t)out->size, sizeof *out->data);
    if (!out->data) return cgam_fail_nomem(r->env, "numbers of a network");
    cgam_rng rng = cgam_rng_stream((uint64_t)seed, 0);
    for (int64_t i = 0; i < out->size; i++) out->data[i] = deviation * cgam_rng_normal(&rng);
    return CGAM_OK;
}

cgam_status cgam_extract_read(const cgam_reader *r, const cgam_place *at, const json_t *value,
                              cgam_extract *out)
{
    *out = (cgam_extract){0};
    cgam_status status;
    if (json_object_get(value, "normal")) {
        status = read_normal(r, at, value, out);
    } else if (json_is_object(value)) {
        const char *file = NULL;
        const json_t *rows = NULL;
        bool written = json_object_get(value, "rows");
        cgam_place there = {at, written ? "rows" : "file", 0};
        status =
            cgam_read_object(r, at, value, NULL,
                             written ? "file:s rows:v normalize:b" : "file:s! rows:v normalize:b",
                             &file, &rows, &out->normalize);
        if (status == CGAM_OK && rows && file)
            status = cgam_reader_fail(r, at, CGAM_E_FORMAT, "give 'rows' or 'file', not both");
        if (status == CGAM_OK)
            status = rows ? read_written(r, &there, rows, out) : read_file(r, &there, file, out);
    } else if (json_is_array(value) || json_is_number(value)) {
        status = read_written(r, at, value, out);
    } else {
        status = wrong_kind(r, at, "numbers or {\"file\": ..}", value);
    }
    if (status != CGAM_OK) cgam_extract_free(r->env, out);
    return status;
}

/* Rows of `width` divided by their norms; rows of zeros stay. */
static void normalize_rows(double *data, int64_t size, int64_t width)
{
    for (int64_t i = 0; i + width <= size; i += width) {
        double norm = cgam_array_norm(width, data + i);
        for (int64_t j = 0; norm > 0 && j < width; j++) data[i + j] /= norm;
    }
}

/* The numbers of a file as doubles in the document's place. */
static cgam_status widen_file(const cgam_reader *r, const cgam_place *at, cgam_extract *e)
{
    if (e->data) return CGAM_OK;
    e->data = cgam_alloc(r->env, (size_t)e->size, sizeof *e->data);
    if (!e->data) return cgam_fail_nomem(r->env, "numbers of a network");
    return cgam_reader_pass(r, at, cgam_array_read_f64(r->env, &e->array, "the file", e->data));
}

cgam_status cgam_extract_fill(const cgam_reader *r, const cgam_place *at, cgam_extract *e,
                              int64_t size, double **out)
{
    *out = NULL;
    bool lone = e->ndim == 0;
    if (!lone && e->size != size)
        return cgam_reader_fail(r, at, CGAM_E_SHAPE, "holds %lld numbers, expected %lld",
                                (long long)e->size, (long long)size);
    cgam_status status = widen_file(r, at, e);
    if (status != CGAM_OK) return status;
    if (e->normalize) normalize_rows(e->data, e->size, lone ? 1 : e->shape[e->ndim - 1]);
    if (!lone) {
        *out = e->data;
        e->data = NULL;
        return CGAM_OK;
    }
    if (size > 1 << 20 && (double)size * 8 > 0.5 * (double)cgam_memory_available())
        return cgam_fail(r->env, CGAM_E_NOMEM, "%s: %lld numbers do not fit into memory", r->name,
                         (long long)size);
    *out = cgam_alloc(r->env, (size_t)size, sizeof **out);
    if (!*out) return cgam_fail_nomem(r->env, "numbers of a network");
    for (int64_t i = 0; i < size; i++) (*out)[i] = e->data[0];
    return CGAM_OK;
}

cgam_status cgam_read_numbers(const cgam_reader *r, const cgam_place *at, const json_t *value,
                              int64_t size, double **out)
{
    cgam_extract e;
    *out = NULL;
    cgam_status status = cgam_extract_read(r, at, value, &e);
    if (status == CGAM_OK) status = cgam_extract_fill(r, at, &e, size, out);
    cgam_extract_free(r->env, &e);
    return status;
}

cgam_status cgam_extract_op(const cgam_reader *r, const cgam_place *at, cgam_net *net,
                            cgam_extract *e, const cgam_op **out)
{
    int64_t cols = e->ndim > 0 ? e->shape[e->ndim - 1] : 1, rows = e->size / cols;
    cgam_status status = CGAM_OK;
    if (e->normalize) status = widen_file(r, at, e);
    if (status == CGAM_OK && e->normalize) normalize_rows(e->data, e->size, cols);
    if (status == CGAM_OK && e->data)
        status = cgam_net_dense(net, e->data, CGAM_F64, rows, cols, true, out);
    else if (status == CGAM_OK) status = cgam_net_dense_array(net, "weights", &e->array, rows, out);
    cgam_extract_free(r->env, e);
    return cgam_reader_pass(r, at, status);
}
