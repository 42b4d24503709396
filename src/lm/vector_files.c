/* vector_files.c: vectors of all layers in and out of files.
 *
 * llama.cpp keeps direction.k at place k - 1 of its buffer and adds place il - 1 after block il, both
 * counted as it counts blocks, from 0: so direction.k is added after block k, which is our layer k + 1.
 * Its loader looks at names and shapes alone and refuses k = 0; we read that as layer 1. */
#include "io/array.h"
#include "io/gguf.h"
#include "lm/vector.h"
#include "num/cpu/widen.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LAYERS_MAX = 1000 };

/* k of "direction.k", -1: another name. */
static int64_t direction(const char *name)
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
static cgam_status measure(cgam_env *env, const char *name, const cgam_gguf *g, int64_t *width,
                           int64_t *rows)
{
    *width = *rows = 0;
    if (g->architecture[0] && strcmp(g->architecture, "controlvector") != 0)
        return cgam_fail(env, CGAM_E_FORMAT,
                         "%s: a file of architecture '%.40s', not a control vector", name,
                         g->architecture);
    for (int64_t i = 0; i < g->count; i++) {
        const cgam_gguf_tensor *t = &g->tensors[i];
        int64_t k = direction(t->name);
        if (k < 0 || k > LAYERS_MAX)
            return cgam_fail(env, CGAM_E_FORMAT, "%s: tensor '%s' is no direction.LAYER", name,
                             t->name);
        if (t->dtype < 0)
            return cgam_fail(env, CGAM_E_UNSUPPORTED,
                             "%s: tensor '%s': type %" PRIu32
                             " of ggml; f32, f16 and bf16 are read",
                             name, t->name, t->type);
        int64_t size = t->size;
        if (t->ndim < 1 || size < 1 || t->shape[0] != size)
            return cgam_fail(env, CGAM_E_SHAPE, "%s: tensor '%s' is no vector", name, t->name);
        if (*width && size != *width)
            return cgam_fail(env, CGAM_E_SHAPE,
                             "%s: tensor '%s' has %" PRId64 " numbers, another one %" PRId64, name,
                             t->name, size, *width);
        *width = size;
        if (k + 2 > *rows) *rows = k + 2;
    }
    if (*rows == 0)
        return cgam_fail(env, CGAM_E_FORMAT, "%s: not a control vector: no direction in it", name);
    return CGAM_OK;
}

/* Row `layer` from stored numbers, at any address. */
static cgam_status fill(cgam_vector *v, const char *name, int64_t layer, cgam_dtype dtype,
                        const void *data)
{
    size_t item = cgam_dtype_size(dtype);
    for (int64_t j = 0; j < v->width; j++) {
        double one;
        memcpy(&one, (const char *)data + (size_t)j * item, item);
        float x = (float)cgam_stored(dtype, &one, 0);
        if (!isfinite(x))
            return cgam_fail(v->env, CGAM_E_VALUE,
                             "%s: a number that is not finite at layer %" PRId64
                             ", column %" PRId64,
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
    status = measure(env, name, &g, &width, &rows);
    if (status == CGAM_OK) status = cgam_vector_new(env, rows, width, NULL, &v);
    for (int64_t i = 0; i < g.count && status == CGAM_OK; i++)
        status = fill(v, name, direction(g.tensors[i].name) + 1, (cgam_dtype)g.tensors[i].dtype,
                      file->bytes + g.tensors[i].begin);
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
        return cgam_fail(env, CGAM_E_SHAPE, "%s: %s, (layers + 1, width) is expected", name,
                         cgam_shape_text(a->ndim, a->shape, text));
    if (a->shape[0] > LAYERS_MAX)
        return cgam_fail(env, CGAM_E_SHAPE, "%s: %" PRId64 " layers", name, a->shape[0]);
    cgam_vector *v;
    cgam_status status = cgam_vector_new(env, a->shape[0], a->shape[1], NULL, &v);
    for (int64_t l = 0; status == CGAM_OK && l < a->shape[0]; l++)
        status =
            fill(v, name, l, a->dtype,
                 (const char *)a->data + (size_t)(l * a->shape[1]) * cgam_dtype_size(a->dtype));
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
        return cgam_fail(env, CGAM_E_ARG, "%s: vectors are .gguf, .npy or .safetensors", name);
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
        return cgam_fail(v->env, CGAM_E_SHAPE,
                         "%s: no layer above 1, and this form has no place for others",
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
        return cgam_fail(v->env, CGAM_E_ARG, "%s: vectors are .gguf, .npy or .safetensors",
                         cgam_path_tail(path));
    cgam_status status = write_gguf(v, path, hint);
    for (int64_t l = 0; l < 2 && left_out; l++) *left_out += cgam_vector_norm(v, l) > 0;
    return status;
}
