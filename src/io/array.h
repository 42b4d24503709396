/* array.h: what the readers of the file formats have in common.
 *
 * A reader turns bytes into a layout (type and shape as the file tells them, checked) and a place
 * where the elements lie, and hands both to cgam_array_place or cgam_array_own. Each reader works
 * on a cgam_file, which may as well be memory: that is how they are fuzzed.
 */
#ifndef CGAM_SRC_IO_ARRAY_H
#define CGAM_SRC_IO_ARRAY_H

#include "io/file.h"

#include <cgam/io.h>

enum { CGAM_TYPE_MAX = 24, CGAM_SHAPE_TEXT = 24 * CGAM_ARRAY_DIMS };

/* Files are little-endian and elements are used where they lie. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "cgam needs a little-endian machine");

/* An array as its file describes it. */
typedef struct cgam_layout {
    int dtype;  /* a cgam_dtype, or -1: a type that can be listed but not opened */
    char whole; /* 'b', 'i', 'u': the file has booleans or integers, widened to dtype on opening */
    int item;   /* bytes of an element in the file */
    char type[CGAM_TYPE_MAX]; /* the type as the file spells it, truncated if too long */
    bool fortran;             /* first index fastest */
    int ndim;
    int64_t shape[CGAM_ARRAY_DIMS];
    int64_t size;   /* elements; 1 without dimensions */
    uint64_t bytes; /* of data */
} cgam_layout;

/* Fills size and bytes from the shape. CGAM_E_FORMAT when a dimension is negative or the bytes
 * cannot be counted; so no product of dimensions, zeros left out, overflows later. */
CGAM_NODISCARD cgam_status cgam_layout_measure(cgam_env *env, const char *name, cgam_layout *layout,
                                               size_t item);
/* The same checks for an array to be written; CGAM_E_ARG or CGAM_E_SHAPE. */
CGAM_NODISCARD cgam_status cgam_layout_make(cgam_env *env, const char *name, cgam_dtype dtype,
                                            int ndim, const int64_t *shape, cgam_layout *out);
/* Adds to text[size] at *used as printf would, and moves *used; what does not fit is left out. */
void cgam_text_add(char *text, size_t size, size_t *used, const char *format, ...)
    CGAM_PRINTF(4, 5);
/* "3 x 4", "scalar"; writes into text[CGAM_SHAPE_TEXT] and returns it. */
const char *cgam_shape_text(int ndim, const int64_t *shape, char *text);

/* An array whose elements lie at `data` inside `file`. They stay there when they can be used as
 * they are; Fortran order and odd addresses are copied. The file is taken over either way: it is
 * {0} after CGAM_OK. */
CGAM_NODISCARD cgam_status cgam_array_place(cgam_env *env, const char *name,
                                            const cgam_layout *layout, cgam_file *file,
                                            const void *data, cgam_array *out);
/* Turns an array of integers into one of f64, exactly; others stay as they are. CGAM_E_VALUE names row
 * and column of an integer that a double cannot hold. */
CGAM_NODISCARD cgam_status cgam_array_reals(cgam_env *env, const char *name, cgam_array *array);
/* Does an integer of this magnitude fit into so many binary digits? */
static inline bool cgam_fits(uint64_t magnitude, int digits)
{
    return magnitude == 0 || 64 - __builtin_clzll(magnitude) - __builtin_ctzll(magnitude) <= digits;
}
/* CGAM_E_VALUE: `name: what at row i, column j (counted from 0)` for the element `index`. */
cgam_status cgam_fail_element(cgam_env *env, const char *name, int ndim, const int64_t *shape,
                              int64_t index, const char *what);

/* An array of `block`, which came from cgam_alloc and is the array's own after CGAM_OK. */
CGAM_NODISCARD cgam_status cgam_array_own(cgam_env *env, const char *name,
                                          const cgam_layout *layout, void *block, cgam_array *out);

typedef struct cgam_named_array {
    const char *name;
    cgam_dtype dtype;
    int ndim;
    const int64_t *shape;
    const void *data;
} cgam_named_array;

/* A reader. `name` is the file in messages; `member` is NULL when none was asked for. open takes
 * the file over when it keeps it; where it does not, it leaves it to the caller. */
typedef struct cgam_format {
    const char *ending;                       /* ".npy" */
    bool (*recognise)(const cgam_file *file); /* by content */
    cgam_status (*open)(cgam_env *env, const char *name, cgam_file *file, const char *member,
                        cgam_array *out);
    cgam_status (*list)(cgam_env *env, const char *name, const cgam_file *file,
                        cgam_array_visit each, void *user);
    /* Several arrays into one file; NULL where the format holds one. layouts[i] is that of
     * arrays[i], and names have been checked: UTF-8, none empty, none twice. */
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

/* Picks the array `member` (NULL: the only one) among `count` names. name_at gives the i-th, and
 * NULL for an entry that is not an array. CGAM_E_NOT_FOUND, or CGAM_E_ARG when there are several and
 * none was named; both messages list the names. */
typedef const char *(*cgam_member_name)(const void *from, int64_t i);
CGAM_NODISCARD cgam_status cgam_member_pick(cgam_env *env, const char *name, const char *member,
                                            const void *from, int64_t count,
                                            cgam_member_name name_at, int64_t *out);

/* Several arrays into one .npz (stored) or .safetensors file, by the ending of `path`. Names are
 * UTF-8, not empty and each given once; `shape` may be NULL when ndim is 0. bf16 needs
 * .safetensors. */
CGAM_NODISCARD cgam_status cgam_arrays_write(cgam_env *env, const char *path, int count,
                                             const cgam_named_array *arrays);

#endif
