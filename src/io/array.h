/* array.h: what the readers of the file formats share.
 *
 * A reader turns bytes into a layout (type and shape from the file, checked) and the position of the elements, and
 * passes both to cgam_array_place or cgam_array_own. Each reader works on a cgam_file, which may also be memory:
 * fuzzing uses that.
 */
#ifndef CGAM_SRC_IO_ARRAY_H
#define CGAM_SRC_IO_ARRAY_H

#include "io/file.h"

#include <cgam/io.h>

enum { CGAM_TYPE_MAX = 24, CGAM_SHAPE_TEXT = 24 * CGAM_ARRAY_DIMS };

/* Files are little-endian and elements are used in place. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "cgam needs a little-endian machine");

/* An array as its file describes it. */
typedef struct cgam_layout {
    int dtype;  /* a cgam_dtype, or -1: a type that cannot be opened */
    char whole; /* 'b', 'i', 'u': the file has booleans or integers, widened to dtype on opening */
    int item;   /* bytes of an element in the file */
    char type[CGAM_TYPE_MAX]; /* the name of the type in the file, truncated if too long */
    bool fortran;             /* first index fastest */
    int ndim;
    int64_t shape[CGAM_ARRAY_DIMS];
    int64_t size;   /* elements; 1 without dimensions */
    uint64_t bytes; /* of data */
} cgam_layout;

/* Fills size and bytes from the shape. Returns CGAM_E_FORMAT if a dimension is negative or the byte count overflows;
 * so no product of dimensions, without zeros, overflows later. */
CGAM_NODISCARD cgam_status cgam_layout_measure(cgam_env *env, const char *name, cgam_layout *layout,
                                               size_t item);
/* The same checks for an array to be written; CGAM_E_ARG or CGAM_E_SHAPE. */
CGAM_NODISCARD cgam_status cgam_layout_make(cgam_env *env, const char *name, cgam_dtype dtype,
                                            int ndim, const int64_t *shape, cgam_layout *out);
/* Appends to text[size] at *used like printf, and advances *used; truncates text that does not fit. */
void cgam_text_add(char *text, size_t size, size_t *used, const char *format, ...)
    CGAM_PRINTF(4, 5);
/* "3 x 4", "scalar"; writes into text[CGAM_SHAPE_TEXT] and returns it. */
const char *cgam_shape_text(int ndim, const int64_t *shape, char *text);

/* Makes an array of elements at `data` inside `file`. They are used in place if possible; Fortran order and odd
 * addresses are copied. On CGAM_OK it takes over the file and sets it to {0}. */
CGAM_NODISCARD cgam_status cgam_array_place(cgam_env *env, const char *name,
                                            const cgam_layout *layout, cgam_file *file,
                                            const void *data, cgam_array *out);
/* Converts an array of integers to f64, exactly; other arrays are unchanged. CGAM_E_VALUE names row and column of an
 * integer that a double cannot hold. */
CGAM_NODISCARD cgam_status cgam_array_reals(cgam_env *env, const char *name, cgam_array *array);
/* Does an integer of this magnitude fit into this many binary digits? */
static inline bool cgam_fits(uint64_t magnitude, int digits)
{
    return magnitude == 0 || 64 - __builtin_clzll(magnitude) - __builtin_ctzll(magnitude) <= digits;
}
/* CGAM_E_VALUE: `name: what at row i, column j (counted from 0)` for the element `index`. */
cgam_status cgam_fail_element(cgam_env *env, const char *name, int ndim, const int64_t *shape,
                              int64_t index, const char *what);

/* Makes an array of `block`, which came from cgam_alloc; on CGAM_OK the array owns it. */
CGAM_NODISCARD cgam_status cgam_array_own(cgam_env *env, const char *name,
                                          const cgam_layout *layout, void *block, cgam_array *out);

typedef struct cgam_named_array {
    const char *name;
    cgam_dtype dtype;
    int ndim;
    const int64_t *shape;
    const void *data;
} cgam_named_array;

/* A reader. `name` is the file in messages; `member` is NULL if none was requested. open takes over the file if it
 * keeps it; otherwise the caller still owns it. */
typedef struct cgam_format {
    const char *ending;                       /* ".npy" */
    bool (*recognise)(const cgam_file *file); /* by content */
    cgam_status (*open)(cgam_env *env, const char *name, cgam_file *file, const char *member,
                        cgam_array *out);
    /* Writes several arrays into one file; NULL if the format holds only one. layouts[i] is that of arrays[i]. Names
     * were checked: UTF-8, not empty, unique. */
    cgam_status (*write)(cgam_env *env, const char *path, int count, const cgam_named_array *arrays,
                         const cgam_layout *layouts);
} cgam_format;

extern const cgam_format cgam_format_npy, cgam_format_npz, cgam_format_safetensors, cgam_format_csv;

cgam_status cgam_npz_write(cgam_env *env, const char *path, int count,
                           const cgam_named_array *arrays, const cgam_layout *layouts);
cgam_status cgam_safetensors_write(cgam_env *env, const char *path, int count,
                                   const cgam_named_array *arrays, const cgam_layout *layouts);

/* For a file of one array without a name: rejects a member. */
CGAM_NODISCARD cgam_status cgam_member_none(cgam_env *env, const char *name, const char *member);

/* Selects the array `member` (NULL: the only one) among `count` names. name_at returns the i-th, or NULL for an entry
 * that is not an array. Returns CGAM_E_NOT_FOUND, or CGAM_E_ARG if there are several and none was named; both
 * messages list the names. */
typedef const char *(*cgam_member_name)(const void *from, int64_t i);
CGAM_NODISCARD cgam_status cgam_member_pick(cgam_env *env, const char *name, const char *member,
                                            const void *from, int64_t count,
                                            cgam_member_name name_at, int64_t *out);

/* Writes several arrays into one .npz (stored) or .safetensors file, by the ending of `path`. Names must be UTF-8,
 * not empty and unique; `shape` may be NULL if ndim is 0. bf16 requires .safetensors. */
CGAM_NODISCARD cgam_status cgam_arrays_write(cgam_env *env, const char *path, int count,
                                             const cgam_named_array *arrays);

#endif
