/* layout.c: the arithmetic of shapes, and elements put in row-major order where they can be used.
 */
#include "base/env.h"
#include "io/array.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

void cgam_text_add(char *text, size_t size, size_t *used, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text + *used, size - *used, format, args);
    va_end(args);
    if (length > 0) *used += (size_t)length < size - *used ? (size_t)length : size - *used - 1;
}

const char *cgam_shape_text(int ndim, const int64_t *shape, char *text)
{
    size_t used = 0;
    cgam_text_add(text, CGAM_SHAPE_TEXT, &used, "%s", ndim ? "" : "scalar");
    for (int k = 0; k < ndim; k++)
        cgam_text_add(text, CGAM_SHAPE_TEXT, &used, "%s%" PRId64, k ? " x " : "", shape[k]);
    return text;
}

cgam_status cgam_layout_measure(cgam_env *env, const char *name, cgam_layout *layout, size_t item)
{
    char text[CGAM_SHAPE_TEXT];
    int64_t nonzero = 1; /* the product without zeros, which must not overflow either */
    bool empty = false;
    for (int k = 0; k < layout->ndim; k++) {
        int64_t n = layout->shape[k];
        if (n < 0)
            return cgam_fail(env, CGAM_E_FORMAT, "%s: dimension %d is negative: %" PRId64, name, k,
                             n);
        empty = empty || n == 0;
        if (n && __builtin_mul_overflow(nonzero, n, &nonzero)) nonzero = INT64_MAX;
    }
    int64_t bytes;
    if (__builtin_mul_overflow(nonzero, (int64_t)item, &bytes) || bytes > PTRDIFF_MAX - 4096)
        return cgam_fail(env, CGAM_E_FORMAT, "%s: the shape %s is too large to address", name,
                         cgam_shape_text(layout->ndim, layout->shape, text));
    layout->size = empty ? 0 : nonzero;
    layout->bytes = empty ? 0 : (uint64_t)bytes;
    return CGAM_OK;
}

cgam_status cgam_layout_make(cgam_env *env, const char *name, cgam_dtype dtype, int ndim,
                             const int64_t *shape, cgam_layout *out)
{
    *out = (cgam_layout){.dtype = (int)dtype, .ndim = ndim};
    size_t item = cgam_dtype_size(dtype);
    if (item == 0)
        return cgam_fail(env, CGAM_E_ARG, "%s: invalid element type %d", name, (int)dtype);
    if (ndim < 0 || ndim > CGAM_ARRAY_DIMS)
        return cgam_fail(env, CGAM_E_ARG, "%s: an array has 0 to %d dimensions, not %d", name,
                         CGAM_ARRAY_DIMS, ndim);
    if (ndim) memcpy(out->shape, shape, (size_t)ndim * sizeof *shape);
    return cgam_layout_measure(env, name, out, item) == CGAM_OK ? CGAM_OK : CGAM_E_SHAPE;
}

cgam_status cgam_fail_element(cgam_env *env, const char *name, int ndim, const int64_t *shape,
                              int64_t index, const char *what)
{
    if (ndim <= 2) {
        int64_t cols = ndim ? shape[ndim - 1] : 1;
        return cgam_fail(env, CGAM_E_VALUE,
                         "%s: %s at row %" PRId64 ", column %" PRId64 " (counted from 0)", name,
                         what, index / cols, index % cols);
    }
    char text[CGAM_SHAPE_TEXT];
    size_t used = 0;
    int64_t below = 1;
    for (int k = 0; k < ndim; k++) below *= shape[k];
    for (int k = 0; k < ndim; k++) {
        below /= shape[k];
        cgam_text_add(text, sizeof text, &used, "%s%" PRId64, k ? ", " : "", index / below);
        index %= below;
    }
    return cgam_fail(env, CGAM_E_VALUE, "%s: %s at [%s] (counted from 0)", name, what, text);
}

static inline void copy_element(uint8_t *to, const uint8_t *from, size_t item)
{
    switch (item) {
    case 1: *to = *from; break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    default: memcpy(to, from, 8); break;
    }
}

/* to[i][j] = from[j][i], in tiles: both sides then stay in cache. */
static void transpose(const uint8_t *from, uint8_t *to, int64_t rows, int64_t cols, size_t item)
{
    enum { TILE = 32 };
    for (int64_t i0 = 0; i0 < rows; i0 += TILE) {
        int64_t i1 = rows - i0 < TILE ? rows : i0 + TILE;
        for (int64_t j0 = 0; j0 < cols; j0 += TILE) {
            int64_t j1 = cols - j0 < TILE ? cols : j0 + TILE;
            for (int64_t i = i0; i < i1; i++)
                for (int64_t j = j0; j < j1; j++)
                    copy_element(to + (size_t)(i * cols + j) * item,
                                 from + (size_t)(j * rows + i) * item, item);
        }
    }
}

/* First index fastest becomes last index fastest. The leading axes are walked like an odometer;
 * the last one is the inner loop. */
static void reorder(const cgam_layout *layout, const uint8_t *from, uint8_t *to, size_t item)
{
    int last = layout->ndim - 1;
    if (layout->ndim == 2) {
        transpose(from, to, layout->shape[0], layout->shape[1], item);
        return;
    }
    int64_t stride[CGAM_ARRAY_DIMS], index[CGAM_ARRAY_DIMS] = {0};
    stride[0] = 1;
    for (int k = 1; k <= last; k++) stride[k] = stride[k - 1] * layout->shape[k - 1];
    for (int64_t done = 0; done < layout->size;) {
        int64_t base = 0;
        for (int k = 0; k < last; k++) base += index[k] * stride[k];
        for (int64_t j = 0; j < layout->shape[last]; j++, done++)
            copy_element(to + (size_t)done * item, from + (size_t)(base + j * stride[last]) * item,
                         item);
        for (int k = last - 1; k >= 0 && ++index[k] == layout->shape[k]; k--) index[k] = 0;
    }
}

/* True when both orders are the same: at most one dimension is longer than 1. */
static bool is_order_free(const cgam_layout *layout)
{
    int longer = 0;
    for (int k = 0; k < layout->ndim; k++) longer += layout->shape[k] > 1;
    return layout->size == 0 || longer <= 1;
}

/* ---- Integers and booleans as reals -------------------------------------------------------- */

/* The element as sign and magnitude. */
static uint64_t read_magnitude(const uint8_t *at, int item, char whole, bool *negative)
{
    uint64_t bits = 0;
    memcpy(&bits, at, (size_t)item);
    *negative = whole == 'i' && bits >> (8 * item - 1);
    if (*negative) bits = (0 - bits) & (UINT64_MAX >> (64 - 8 * item));
    return bits;
}

/* from[size] as doubles or floats, whichever dtype says; none is rounded. */
static cgam_status widen_integers(cgam_env *env, const char *name, const cgam_layout *layout,
                                  const uint8_t *from, void *to)
{
    char what[64];
    int digits = layout->dtype == CGAM_F32 ? 24 : 53;
    for (int64_t i = 0; i < layout->size; i++, from += layout->item) {
        bool negative;
        uint64_t m = read_magnitude(from, layout->item, layout->whole, &negative);
        if (m > 1 && layout->whole == 'b') {
            snprintf(what, sizeof what, "%" PRIu64 ", which is no boolean,", m);
            return cgam_fail_element(env, name, layout->ndim, layout->shape, i, what);
        }
        if (!cgam_fits(m, digits)) {
            snprintf(what, sizeof what, "%s%" PRIu64 ", which f64 cannot hold exactly,",
                     negative ? "-" : "", m);
            return cgam_fail_element(env, name, layout->ndim, layout->shape, i, what);
        }
        double value = negative ? -(double)m : (double)m;
        if (layout->dtype == CGAM_F32) ((float *)to)[i] = (float)value;
        else ((double *)to)[i] = value;
    }
    return CGAM_OK;
}

/* Returns a new block with the elements of data in row-major order, converted to dtype. */
static cgam_status copy_converted(cgam_env *env, const char *name, const cgam_layout *layout,
                                  const void *data, bool ordered, void **out)
{
    size_t item = cgam_dtype_size((cgam_dtype)layout->dtype);
    cgam_status status = CGAM_OK;
    void *own = NULL; /* in order, but not yet widened */
    *out = cgam_alloc(env, (size_t)layout->size, item);
    if (layout->whole && !ordered) own = cgam_alloc(env, (size_t)layout->bytes, 1);
    if (!*out || (layout->whole && !ordered && !own)) {
        status = cgam_fail_nomem(env, name);
    } else {
        if (!ordered) reorder(layout, data, own ? own : *out, (size_t)layout->item);
        if (layout->whole) status = widen_integers(env, name, layout, own ? own : data, *out);
        else if (ordered) memcpy(*out, data, (size_t)layout->bytes);
    }
    cgam_free(env, own);
    if (status != CGAM_OK) {
        cgam_free(env, *out);
        *out = NULL;
    }
    return status;
}

typedef struct owner {
    cgam_file file;
    void *block;
} owner;

static cgam_status fill_array(cgam_env *env, const char *name, const cgam_layout *layout,
                              cgam_file *file, void *block, const void *data, cgam_array *out)
{
    owner *o = cgam_zalloc(env, 1, sizeof *o);
    if (!o) return cgam_fail_nomem(env, name);
    o->block = block;
    *out = (cgam_array){.dtype = (cgam_dtype)layout->dtype,
                        .whole = layout->whole,
                        .ndim = layout->ndim,
                        .size = layout->size,
                        .data = data,
                        .owner = o};
    memcpy(out->shape, layout->shape, sizeof out->shape);
    if (file && block) cgam_file_unmap(file);
    if (file) {
        out->mapped = file->mapped && !file->memory;
        o->file = *file;
        *file = (cgam_file){0};
    }
    return CGAM_OK;
}

cgam_status cgam_array_own(cgam_env *env, const char *name, const cgam_layout *layout, void *block,
                           cgam_array *out)
{
    bool ordered = !layout->fortran || is_order_free(layout);
    if (ordered && !layout->whole) return fill_array(env, name, layout, NULL, block, block, out);
    void *made;
    cgam_status status = copy_converted(env, name, layout, block, ordered, &made);
    if (status == CGAM_OK) status = fill_array(env, name, layout, NULL, made, made, out);
    cgam_free(env, status == CGAM_OK ? block : made);
    return status;
}

cgam_status cgam_array_place(cgam_env *env, const char *name, const cgam_layout *layout,
                             cgam_file *file, const void *data, cgam_array *out)
{
    size_t item = cgam_dtype_size((cgam_dtype)layout->dtype);
    bool ordered = !layout->fortran || is_order_free(layout);
    if (ordered && !layout->whole && (uintptr_t)data % item == 0)
        return fill_array(env, name, layout, file, NULL, data, out);
    void *made;
    cgam_status status = copy_converted(env, name, layout, data, ordered, &made);
    if (status == CGAM_OK) status = fill_array(env, name, layout, file, made, made, out);
    if (status != CGAM_OK) cgam_free(env, made);
    return status;
}

cgam_status cgam_array_reals(cgam_env *env, const char *name, cgam_array *array)
{
    if (array->dtype != CGAM_I32 && array->dtype != CGAM_I64) return CGAM_OK;
    cgam_layout layout = {.dtype = CGAM_F64,
                          .whole = 'i',
                          .item = (int)cgam_dtype_size(array->dtype),
                          .ndim = array->ndim,
                          .size = array->size};
    memcpy(layout.shape, array->shape, sizeof layout.shape);
    cgam_array made;
    void *block;
    cgam_status status =
        copy_converted(env, cgam_file_name(name), &layout, array->data, true, &block);
    if (status == CGAM_OK) status = fill_array(env, name, &layout, NULL, block, block, &made);
    if (status != CGAM_OK) {
        cgam_free(env, block);
        return status;
    }
    cgam_array_close(env, array);
    *array = made;
    return CGAM_OK;
}

void cgam_array_close(cgam_env *env, cgam_array *array)
{
    if (!array) return;
    owner *o = array->owner;
    if (o) {
        cgam_file_unmap(&o->file);
        cgam_free(env, o->block);
        cgam_free(env, o);
    }
    *array = (cgam_array){0};
}
