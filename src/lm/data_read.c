/* data_read.c: word vectors in JSON and digits in IDX files become rows and names.
 *
 * The JSON file has 300 MB on one line; as a tree it would take several times that. So it is walked
 * once: the head for the sizes, then one word after the other. */
#include "base/env.h"
#include "lm/data.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void cgam_data_rows_free(cgam_env *env, cgam_data_rows *rows)
{
    for (int64_t i = 0; rows->names && i < rows->n; i++) cgam_free(env, rows->names[i]);
    cgam_free(env, rows->names);
    cgam_free(env, rows->x);
    *rows = (cgam_data_rows){0};
}

static cgam_status rows_new(cgam_env *env, const char *name, int64_t n, int64_t d,
                            cgam_data_rows *out)
{
    if (n < 1 || d < 1 || n > 100000000 || d > 100000)
        return cgam_fail(env, CGAM_E_FORMAT, "%s: %lld rows of %lld numbers", name, (long long)n,
                         (long long)d);
    *out = (cgam_data_rows){.n = n, .d = d};
    out->x = cgam_alloc(env, (size_t)n * (size_t)d, sizeof *out->x);
    out->names = cgam_zalloc(env, (size_t)n, sizeof *out->names);
    if (out->x && out->names) return CGAM_OK;
    cgam_data_rows_free(env, out);
    return cgam_fail_nomem(env, name);
}

/* ---- words ------------------------------------------------------------------------------------ */

typedef struct walk {
    cgam_env *env;
    const char *name;
    const char *start, *at, *end; /* the last byte before end is a }, so numbers end before it */
} walk;

static cgam_status wrong(const walk *w, const char *what)
{
    return cgam_fail(w->env, CGAM_E_FORMAT, "%s: byte %lld: %s", w->name,
                     (long long)(w->at - w->start), what);
}

static bool skip(walk *w, char c)
{
    if (w->at >= w->end || *w->at != c) return false;
    w->at++;
    return true;
}

static bool number(walk *w, double *out)
{
    char *end;
    if (w->at >= w->end || !strchr("-0123456789", *w->at) || !*w->at) return false;
    *out = strtod(w->at, &end);
    w->at = end;
    return isfinite(*out);
}

/* Behind the first `"key":` of the head. */
static bool find_key(walk *w, const char *key)
{
    const char *found = memmem(w->at, (size_t)(w->end - w->at), key, strlen(key));
    if (found) w->at = found + strlen(key);
    return found != NULL;
}

/* A JSON string as bytes on the env; a control character in it would break the list of names. */
static cgam_status word(walk *w, char **out)
{
    const char *from = w->at;
    *out = NULL;
    if (!skip(w, '"')) return wrong(w, "a word is expected");
    while (w->at < w->end && *w->at != '"') w->at += *w->at == '\\' ? 2 : 1;
    if (w->at >= w->end) return wrong(w, "a word does not end");
    w->at++;
    json_t *text = json_loadb(from, (size_t)(w->at - from), JSON_DECODE_ANY, NULL);
    const char *value = json_string_value(text);
    cgam_status status = CGAM_OK;
    for (const char *c = value; c && *c; c++)
        if ((unsigned char)*c < ' ') value = NULL;
    if (!value) status = wrong(w, "not a word");
    else if (!(*out = cgam_strdup(w->env, value))) status = cgam_fail_nomem(w->env, w->name);
    json_decref(text);
    return status;
}

/* "word":[x1, .., xd, norm, rank] */
static cgam_status vector(walk *w, cgam_data_rows *rows, float *x)
{
    char *text;
    double value = 0, square = 0, norm = 0;
    cgam_status status = word(w, &text);
    if (status != CGAM_OK) return status;
    bool fine = skip(w, ':') && skip(w, '[');
    for (int64_t i = 0; fine && i < rows->d; i++) {
        fine = number(w, &value) && skip(w, ',');
        x[i] = (float)value;
        square += value * value;
    }
    fine = fine && number(w, &norm) && skip(w, ',') && number(w, &value) && skip(w, ']');
    if (!fine) status = wrong(w, "numbers of a word are expected");
    /* The norm is written to eight digits. */
    else if (fabs(sqrt(square) - norm) > 1e-6 * (1 + norm))
        status = wrong(w, "the norm is not that of the numbers");
    else if (!(value >= 0) || value >= (double)rows->n || value != floor(value) ||
             rows->names[(int64_t)value])
        status = wrong(w, "a rank is missing or there twice");
    if (status != CGAM_OK) {
        cgam_free(w->env, text);
        return status;
    }
    rows->names[(int64_t)value] = text;
    memcpy(rows->x + (int64_t)value * rows->d, x, (size_t)rows->d * sizeof *x);
    return CGAM_OK;
}

static cgam_status words(walk *w, cgam_data_rows *out)
{
    double n, d;
    if (!find_key(w, "\"size\":") || !number(w, &n) || !find_key(w, "\"dimensions\":") ||
        !number(w, &d) || !find_key(w, "\"vectors\":{"))
        return wrong(w, "size, dimensions and vectors are expected");
    if (!(n >= 1 && n <= 1e8 && d >= 1 && d <= 1e5)) return wrong(w, "sizes out of range");
    cgam_status status = rows_new(w->env, w->name, (int64_t)n, (int64_t)d, out);
    if (status != CGAM_OK) return status;
    float *x = cgam_alloc(w->env, (size_t)out->d, sizeof *x);
    if (!x) status = cgam_fail_nomem(w->env, w->name);
    for (int64_t i = 0; i < out->n && status == CGAM_OK; i++) {
        if (i > 0 && !skip(w, ',')) status = wrong(w, "another word is expected");
        if (status == CGAM_OK) status = vector(w, out, x);
        if (i % 4096 == 0 && status == CGAM_OK && cgam_interrupted(w->env))
            status = CGAM_E_INTERRUPTED;
    }
    if (status == CGAM_OK && !skip(w, '}')) status = wrong(w, "more words than were announced");
    cgam_free(w->env, x);
    return status;
}

cgam_status cgam_data_read_words(cgam_env *env, const char *name, const cgam_file *file,
                                 cgam_data_rows *out)
{
    const char *bytes = (const char *)file->bytes;
    size_t size = file->size;
    *out = (cgam_data_rows){0};
    while (size > 0 && strchr(" \n\r\t", bytes[size - 1]) && bytes[size - 1]) size--;
    walk w = {env, name, bytes, bytes, bytes + size};
    if (size == 0 || bytes[0] != '{' || bytes[size - 1] != '}')
        return wrong(&w, "one JSON object is expected");
    cgam_status status = words(&w, out);
    if (status != CGAM_OK) cgam_data_rows_free(env, out);
    return status;
}

/* ---- digits ----------------------------------------------------------------------------------- */

static uint32_t big_endian(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

cgam_status cgam_data_read_digits(cgam_env *env, const char *name, const cgam_file *images,
                                  const cgam_file *labels, cgam_data_rows *out)
{
    enum { IMAGES = 2051, LABELS = 2049, IMAGES_HEAD = 16, LABELS_HEAD = 8 };
    *out = (cgam_data_rows){0};
    if (images->size < IMAGES_HEAD || labels->size < LABELS_HEAD ||
        big_endian(images->bytes) != IMAGES || big_endian(labels->bytes) != LABELS)
        return cgam_fail(env, CGAM_E_FORMAT, "%s: not IDX files of images and labels", name);
    uint64_t n = big_endian(images->bytes + 4);
    uint64_t d = (uint64_t)big_endian(images->bytes + 8) * big_endian(images->bytes + 12);
    if (n != big_endian(labels->bytes + 4) || labels->size != LABELS_HEAD + n || d > 100000 ||
        images->size != IMAGES_HEAD + n * d)
        return cgam_fail(env, CGAM_E_FORMAT, "%s: %llu images of %llu pixels in %zu bytes", name,
                         (unsigned long long)n, (unsigned long long)d, images->size);
    cgam_status status = rows_new(env, name, (int64_t)n, (int64_t)d, out);
    for (uint64_t i = 0; i < n && status == CGAM_OK; i++) {
        uint8_t digit = labels->bytes[LABELS_HEAD + i];
        const char text[2] = {(char)('0' + digit % 10), '\0'};
        if (digit > 9) status = cgam_fail(env, CGAM_E_FORMAT, "%s: label %d", name, digit);
        else if (!(out->names[i] = cgam_strdup(env, text))) status = cgam_fail_nomem(env, name);
        for (uint64_t k = i * d; k < (i + 1) * d; k++) out->x[k] = images->bytes[IMAGES_HEAD + k];
    }
    if (status != CGAM_OK) cgam_data_rows_free(env, out);
    return status;
}
