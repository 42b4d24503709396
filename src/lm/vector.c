/* vector.c: vectors of all layers: made, compared with a model, added. */
#include "lm/vector.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void cgam_vector_free(cgam_vector *v)
{
    if (!v) return;
    cgam_env *env = v->env;
    cgam_free(env, v->data);
    cgam_free(env, v);
}

cgam_status cgam_vector_new(cgam_env *env, int64_t rows, int64_t width, const float *data,
                            cgam_vector **out)
{
    *out = NULL;
    if (rows < 1 || width < 1)
        return cgam_fail(env, CGAM_E_ARG, "a vector of %" PRId64 " layers of %" PRId64 " numbers",
                         rows, width);
    cgam_vector *v = cgam_zalloc(env, 1, sizeof *v);
    if (!v) return cgam_fail_nomem(env, "a vector");
    *v = (cgam_vector){.env = env, .rows = rows, .width = width};
    v->data = rows <= INT64_MAX / width ? cgam_zalloc(env, (size_t)(rows * width), sizeof *v->data)
                                        : NULL;
    if (!v->data) {
        cgam_vector_free(v);
        return cgam_fail_nomem(env, "a vector");
    }
    if (data) memcpy(v->data, data, (size_t)(rows * width) * sizeof *data);
    *out = v;
    return CGAM_OK;
}

int64_t cgam_vector_rows(const cgam_vector *v) { return v->rows; }

int64_t cgam_vector_width(const cgam_vector *v) { return v->width; }

const float *cgam_vector_row(const cgam_vector *v, int64_t layer)
{
    return layer >= 0 && layer < v->rows ? v->data + layer * v->width : NULL;
}

double cgam_vector_norm(const cgam_vector *v, int64_t layer)
{
    const float *row = cgam_vector_row(v, layer);
    double sum = 0;
    for (int64_t j = 0; row && j < v->width; j++) sum += (double)row[j] * (double)row[j];
    return sqrt(sum);
}

cgam_status cgam_vector_fits(const cgam_vector *v, const cgam_lm *lm, const char *name)
{
    cgam_lm_info info = cgam_lm_describe(lm);
    if (v->width != info.width)
        return cgam_fail(v->env, CGAM_E_SHAPE,
                         "%s: vectors of %" PRId64 " numbers, the model is %" PRId64 " wide", name,
                         v->width, info.width);
    if (v->rows > info.layers + 1)
        return cgam_fail(v->env, CGAM_E_SHAPE,
                         "%s: a vector for layer %" PRId64 ", the model has %" PRId64, name,
                         v->rows - 1, info.layers);
    return CGAM_OK;
}

cgam_status cgam_vector_sum(cgam_env *env, int64_t count, const cgam_vector *const *v,
                            const double *x, cgam_vector **out)
{
    *out = NULL;
    int64_t rows = 1, width = count > 0 ? v[0]->width : 0;
    for (int64_t i = 0; i < count; i++) {
        if (v[i]->width != width)
            return cgam_fail(env, CGAM_E_SHAPE,
                             "vectors of %" PRId64 " and of %" PRId64 " numbers cannot be added",
                             width, v[i]->width);
        if (v[i]->rows > rows) rows = v[i]->rows;
    }
    cgam_vector *sum;
    cgam_status status = cgam_vector_new(env, rows, width, NULL, &sum);
    if (status != CGAM_OK) return status;
    for (int64_t at = 0; at < rows * width; at++) {
        double total = 0;
        for (int64_t i = 0; i < count; i++)
            if (at < v[i]->rows * width) total += x[i] * (double)v[i]->data[at];
        sum->data[at] = (float)total;
        if (isfinite(sum->data[at])) continue;
        cgam_vector_free(sum);
        return cgam_fail(env, CGAM_E_VALUE, "the sum of vectors is too large at layer %" PRId64,
                         at / width);
    }
    *out = sum;
    return CGAM_OK;
}

/* One FILE[:X] of so many bytes. What stands behind the last colon is a factor if it is a number. */
static cgam_status open_term(cgam_env *env, const char *term, size_t length, cgam_vector **v,
                             double *x)
{
    char path[4096], *end;
    if (length == 0 || length >= sizeof path)
        return cgam_fail(env, CGAM_E_ARG, "from: FILE:FACTOR,FILE:FACTOR is expected");
    memcpy(path, term, length);
    path[length] = '\0';
    *x = 1;
    char *colon = strrchr(path, ':');
    if (colon && !cgam_file_exists(path)) {
        *x = strtod(colon + 1, &end);
        if (end == colon + 1 || *end || !isfinite(*x))
            return cgam_fail(env, CGAM_E_ARG, "from: '%.80s' is no factor", colon + 1);
        *colon = '\0';
    }
    return cgam_vector_open(env, path, v);
}

cgam_status cgam_vector_from(cgam_env *env, const char *list, cgam_vector **out)
{
    enum { TERMS = 64 };
    cgam_vector *v[TERMS] = {0};
    double x[TERMS];
    int64_t n = 0;
    cgam_status status = CGAM_OK;
    *out = NULL;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        if (n == TERMS) status = cgam_fail(env, CGAM_E_ARG, "from: more than %d files", TERMS);
        if (status == CGAM_OK) status = open_term(env, at, length, &v[n], &x[n]);
        if (status != CGAM_OK) break;
        n++;
        at += length;
        if (!*at) break;
    }
    if (status == CGAM_OK) status = cgam_vector_sum(env, n, (const cgam_vector *const *)v, x, out);
    for (int64_t i = 0; i < n; i++) cgam_vector_free(v[i]);
    return status;
}
