/* vector.c: makes vectors of all layers, compares them with a model, adds them. */
#include "lm/vector.h"
#include "base/alloc.h"
#include "base/blas.h"
#include "io/array.h"
#include "lm/gguf.h"
#include "num/cpu/widen.h"
#include "num/eigen.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void cgam_vector_free(cgam_vector *v)
{
    if (!v) return;
    cgam_env *env = v->env;
    cgam_free_all(env, v->data, v);
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
    int64_t rows = 1, width = 0;
    for (int64_t i = 0; i < count; i++) {
        assert(v[i]);
        if (i == 0) width = v[i]->width;
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
        return cgam_fail(env, CGAM_E_ARG, "from: expected FILE:FACTOR,FILE:FACTOR");
    memcpy(path, term, length);
    path[length] = '\0';
    *x = 1;
    char *colon = strrchr(path, ':');
    if (colon && !cgam_file_exists(path)) {
        *x = strtod(colon + 1, &end);
        if (end == colon + 1 || *end || !isfinite(*x))
            return cgam_fail(env, CGAM_E_ARG, "from: '%.80s' is not a number", colon + 1);
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

/* ---- Files ----------------------------------------------------------------------------------- */
/* Vectors of all layers in and out of files.
 *
 * llama.cpp keeps direction.k at place k - 1 of its buffer and adds place il - 1 after block il, both
 * counted as it counts blocks, from 0: so direction.k is added after block k, which is our layer k + 1.
 * Its loader looks at names and shapes alone and refuses k = 0; we read that as layer 1. */

enum { LAYERS_MAX = 1000 };

/* k of "direction.k", -1: another name. */
static int64_t direction_layer(const char *name)
{
    static const char head[] = "direction.";
    if (strncmp(name, head, sizeof head - 1) != 0) return -1;
    const char *digits = name + sizeof head - 1;
    int64_t k = 0;
    if (!*digits) return -1;
    for (const char *c = digits; *c; c++) {
        if (*c < '0' || *c > '9' || k > LAYERS_MAX) return -1;
        k = 10 * k + (*c - '0');
    }
    return k;
}

/* The width that all share, and the last layer. */
static cgam_status measure_directions(cgam_env *env, const char *name, const cgam_gguf *g,
                                      int64_t *width, int64_t *rows)
{
    *width = *rows = 0;
    if (g->architecture[0] && strcmp(g->architecture, "controlvector") != 0)
        return cgam_fail(env, CGAM_E_FORMAT, "%s: architecture '%.40s' is not a control vector",
                         name, g->architecture);
    for (int64_t i = 0; i < g->count; i++) {
        const cgam_gguf_tensor *t = &g->tensors[i];
        int64_t k = direction_layer(t->name);
        if (k < 0 || k > LAYERS_MAX)
            return cgam_fail(env, CGAM_E_FORMAT, "%s: tensor '%s' is not named direction.LAYER",
                             name, t->name);
        if (t->dtype < 0)
            return cgam_fail(env, CGAM_E_UNSUPPORTED,
                             "%s: tensor '%s': type %" PRIu32
                             " of ggml; f32, f16 and bf16 are read",
                             name, t->name, t->type);
        int64_t size = t->size;
        if (t->ndim < 1 || size < 1 || t->shape[0] != size)
            return cgam_fail(env, CGAM_E_SHAPE, "%s: tensor '%s' is not a vector", name, t->name);
        if (*width && size != *width)
            return cgam_fail(env, CGAM_E_SHAPE,
                             "%s: tensor '%s' has %" PRId64 " numbers, another one %" PRId64, name,
                             t->name, size, *width);
        *width = size;
        if (k + 2 > *rows) *rows = k + 2;
    }
    if (*rows == 0)
        return cgam_fail(env, CGAM_E_FORMAT,
                         "%s: not a control vector: it has no tensor named direction.LAYER", name);
    return CGAM_OK;
}

/* Row `layer` from stored numbers, at any address. */
static cgam_status fill_layer(cgam_vector *v, const char *name, int64_t layer, cgam_dtype dtype,
                              const void *data)
{
    assert(v);
    size_t item = cgam_dtype_size(dtype);
    for (int64_t j = 0; j < v->width; j++) {
        double one;
        memcpy(&one, (const char *)data + (size_t)j * item, item);
        float x = (float)cgam_stored(dtype, &one, 0);
        if (!isfinite(x))
            return cgam_fail(v->env, CGAM_E_VALUE,
                             "%s: the number at layer %" PRId64 ", column %" PRId64
                             " is not finite",
                             name, layer, j);
        v->data[layer * v->width + j] = x;
    }
    return CGAM_OK;
}

cgam_status cgam_vector_parse_gguf(cgam_env *env, const char *name, const cgam_file *file,
                                   cgam_vector **out)
{
    cgam_gguf g;
    int64_t width, rows;
    cgam_vector *v = NULL;
    *out = NULL;
    cgam_status status = cgam_gguf_parse(env, name, file->bytes, file->size, &g);
    if (status != CGAM_OK) return status;
    status = measure_directions(env, name, &g, &width, &rows);
    if (status == CGAM_OK) status = cgam_vector_new(env, rows, width, NULL, &v);
    for (int64_t i = 0; i < g.count && status == CGAM_OK; i++)
        status = fill_layer(v, name, direction_layer(g.tensors[i].name) + 1,
                            (cgam_dtype)g.tensors[i].dtype, file->bytes + g.tensors[i].begin);
    cgam_gguf_free(env, &g);
    if (status == CGAM_OK) *out = v;
    else cgam_vector_free(v);
    return status;
}

static cgam_status from_array(cgam_env *env, const char *name, const cgam_array *a,
                              cgam_vector **out)
{
    char text[CGAM_SHAPE_TEXT];
    if (a->ndim != 2 || a->size == 0)
        return cgam_fail(env, CGAM_E_SHAPE, "%s: shape %s, expected (layers + 1, width)", name,
                         cgam_shape_text(a->ndim, a->shape, text));
    if (a->shape[0] > LAYERS_MAX)
        return cgam_fail(env, CGAM_E_SHAPE, "%s: %" PRId64 " layers", name, a->shape[0]);
    cgam_vector *v;
    cgam_status status = cgam_vector_new(env, a->shape[0], a->shape[1], NULL, &v);
    for (int64_t l = 0; status == CGAM_OK && l < a->shape[0]; l++)
        status = fill_layer(v, name, l, a->dtype,
                            (const char *)a->data +
                                (size_t)(l * a->shape[1]) * cgam_dtype_size(a->dtype));
    if (status == CGAM_OK) *out = v;
    else cgam_vector_free(v);
    return status;
}

cgam_status cgam_vector_open(cgam_env *env, const char *path, cgam_vector **out)
{
    *out = NULL;
    const char *name = cgam_path_tail(path);
    if (cgam_path_ends(path, ".gguf")) {
        cgam_file file;
        cgam_status status = cgam_file_map(env, path, &file);
        if (status == CGAM_OK) status = cgam_vector_parse_gguf(env, name, &file, out);
        cgam_file_unmap(&file);
        return status;
    }
    if (!cgam_path_ends(path, ".npy") && !cgam_path_ends(path, ".safetensors"))
        return cgam_fail(env, CGAM_E_ARG, "%s must end in .gguf, .npy or .safetensors", name);
    cgam_array a;
    cgam_status status = cgam_array_open(env, path, &a);
    if (status == CGAM_E_ARG) { /* several arrays */
        char member[4096];
        snprintf(member, sizeof member, "%s:vectors", path);
        status = cgam_array_open(env, member, &a);
    }
    if (status == CGAM_OK) status = from_array(env, name, &a, out);
    cgam_array_close(env, &a);
    return status;
}

static cgam_status write_gguf(const cgam_vector *v, const char *path, const char *hint)
{
    enum { FIRST = 2 }; /* direction.1 */
    int64_t count = v->rows - FIRST;
    if (count < 1)
        return cgam_fail(
            v->env, CGAM_E_SHAPE,
            "%s: .gguf stores vectors of layers from 2 on, and this one has none; use .npy or .safetensors",
            cgam_path_tail(path));
    const cgam_gguf_key keys[] = {{"general.architecture", "controlvector", 0},
                                  {"controlvector.layer_count", NULL, (uint32_t)count},
                                  {"controlvector.model_hint", hint ? hint : "", 0}};
    cgam_gguf_vector *list = cgam_zalloc(v->env, (size_t)count, sizeof *list);
    if (!list) return cgam_fail_nomem(v->env, "a control vector");
    for (int64_t i = 0; i < count; i++) {
        snprintf(list[i].name, sizeof list[i].name, "direction.%" PRId64, i + FIRST - 1);
        list[i].data = v->data + (i + FIRST) * v->width;
    }
    cgam_status status = cgam_gguf_write(v->env, path, hint ? 3 : 2, keys, count, v->width, list);
    cgam_free(v->env, list);
    return status;
}

cgam_status cgam_vector_write(const cgam_vector *v, const char *path, const char *hint,
                              int *left_out)
{
    const int64_t shape[] = {v->rows, v->width};
    if (left_out) *left_out = 0;
    if (cgam_path_ends(path, ".npy"))
        return cgam_npy_write(v->env, path, CGAM_F32, 2, shape, v->data);
    if (cgam_path_ends(path, ".safetensors"))
        return cgam_arrays_write(v->env, path, 1,
                                 &(cgam_named_array){"vectors", CGAM_F32, 2, shape, v->data});
    if (!cgam_path_ends(path, ".gguf"))
        return cgam_fail(v->env, CGAM_E_ARG, "%s must end in .gguf, .npy or .safetensors",
                         cgam_path_tail(path));
    cgam_status status = write_gguf(v, path, hint);
    for (int64_t l = 0; l < 2 && left_out; l++) *left_out += cgam_vector_norm(v, l) > 0;
    return status;
}

/* ---- Contrasts ------------------------------------------------------------------------------- */
/* The direction that separates two kinds of texts, from the differences of their states. */

const char *const cgam_contrast_words[] = {"mean", "pca", "pca-centred", NULL};

/* The first eigenvector u of sum d d' over the rows of D [n, d], in the smaller of the two spaces: u of
 * D'D, or D'w/|D'w| with w that of D D'. B: a work area of the square of the smaller; w: of its root. */
static cgam_status principal_direction(cgam_env *env, int64_t n, int64_t d, const double *D,
                                       double *B, double *w, double *u)
{
    bool dual = n < d;
    int m = (int)(dual ? n : d);
    cblas_dgemm(CblasRowMajor, dual ? CblasNoTrans : CblasTrans, dual ? CblasTrans : CblasNoTrans,
                m, m, (int)(dual ? d : n), 1, D, (int)d, D, (int)d, 0, B, m);
    double value;
    cgam_status status = cgam_eigen_some(env, m, m - 1, m - 1, B, &value, dual ? w : u);
    if (status != CGAM_OK) return status;
    if (dual) {
        cblas_dgemv(CblasRowMajor, CblasTrans, (int)n, (int)d, 1, D, (int)d, w, 1, 0, u, 1);
        double size = cblas_dnrm2((int)d, u, 1);
        cblas_dscal((int)d, size > 0 && value > 0 ? 1 / size : 0, u, 1);
    } else if (!(value > 0)) cblas_dscal((int)d, 0, u, 1);
    return CGAM_OK;
}

typedef struct bench {
    int64_t n, rows, d;
    double *D, *B, *w, *u, *mean;
} bench;

static cgam_status contrast_layer(cgam_env *env, bench *b, const float *differences, int64_t l,
                                  cgam_contrast_kind kind, float *out)
{
    int64_t n = b->n, d = b->d;
    for (int64_t j = 0; j < d; j++) b->mean[j] = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j++) {
            b->D[i * d + j] = (double)differences[(i * b->rows + l) * d + j];
            b->mean[j] += b->D[i * d + j];
        }
    cblas_dscal((int)d, 1 / (double)n, b->mean, 1);
    const double *from = b->mean;
    double factor = 1;
    if (kind == CGAM_CONTRAST_PCA_CENTRED)
        for (int64_t i = 0; i < n; i++) cblas_daxpy((int)d, -1, b->mean, 1, b->D + i * d, 1);
    if (kind != CGAM_CONTRAST_MEAN) {
        cgam_status status = principal_direction(env, n, d, b->D, b->B, b->w, b->u);
        if (status != CGAM_OK) return status;
        double square = 0;
        for (int64_t i = 0; i < n; i++) {
            double along = cblas_ddot((int)d, b->D + i * d, 1, b->u, 1);
            square += along * along;
        }
        factor = copysign(sqrt(square / (double)n), cblas_ddot((int)d, b->mean, 1, b->u, 1));
        from = b->u;
    }
    for (int64_t j = 0; j < d; j++) out[j] = (float)(factor * from[j]);
    return CGAM_OK;
}

cgam_status cgam_vector_contrast(cgam_env *env, int64_t pairs, int64_t rows, int64_t width,
                                 const float *differences, cgam_contrast_kind kind,
                                 cgam_vector **out)
{
    *out = NULL;
    if (pairs < 1) return cgam_fail(env, CGAM_E_ARG, "a contrast needs at least 1 pair of texts");
    size_t n = (size_t)pairs, d = (size_t)width, m = n < d ? n : d;
    bench b = {.n = pairs, .rows = rows, .d = width};
    cgam_vector *v = NULL;
    cgam_status status = cgam_blas_check_space(env);
    if (status == CGAM_OK) status = cgam_vector_new(env, rows, width, NULL, &v);
    if (status == CGAM_OK)
        status = cgam_alloc_all(env, "a contrast", CGAM_ARRAY(b.D, n * d),
                                CGAM_ARRAY(b.B, kind == CGAM_CONTRAST_MEAN ? 1 : m * m),
                                CGAM_ARRAY(b.w, m), CGAM_ARRAY(b.u, d), CGAM_ARRAY(b.mean, d));
    for (int64_t l = 0; l < rows && status == CGAM_OK; l++)
        status = contrast_layer(env, &b, differences, l, kind, v->data + l * width);
    cgam_free_all(env, b.D, b.B, b.w, b.u, b.mean);
    if (status == CGAM_OK) *out = v;
    else cgam_vector_free(v);
    return status;
}
