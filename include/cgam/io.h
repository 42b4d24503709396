/* io.h: arrays in files - .npy, .npz, .safetensors and numeric CSV.
 *
 * All input is untrusted: a file that is truncated, too long or inconsistent fails with CGAM_E_FORMAT
 * and a message that names file, place and reason. Output is written to a temporary name beside the
 * target, synced and renamed, so the target is the complete old or new file; a failed write returns
 * CGAM_E_IO and leaves the target unchanged.
 * This header does not depend on memories or queries.
 */
#ifndef CGAM_IO_H
#define CGAM_IO_H

#include <cgam/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CGAM_ARRAY_DIMS 8

typedef struct cgam_array {
    cgam_dtype dtype;
    int ndim;
    int64_t shape[CGAM_ARRAY_DIMS]; /* row-major */
    int64_t size;                   /* number of elements */
    const void *data;               /* mapped or allocated; do not write */
    bool mapped;                    /* true: data are pages of the file itself */
    char whole;  /* type in the file if it was widened: 'b' booleans, 'i', 'u' integers; else 0 */
    void *owner; /* private */
} cgam_array;

/* Opens an array. `path` is FILE or FILE:MEMBER. A member is required if an .npz or .safetensors file
 * holds more than one array; a path that exists is always a FILE. "-" is standard input; a pipe is
 * read into memory. .npy and .safetensors are memory-mapped (Fortran order and unaligned data are
 * copied); .npz and CSV are read into memory; CSV gives f64 of two dimensions. Integers of 1 or 2
 * bytes and booleans are read as f32, unsigned integers of 4 or 8 bytes as f64, exactly: CGAM_E_VALUE
 * for a value that f64 cannot hold. A mapped file must not be shortened while it is open. An array may
 * have no elements. *out is {0} on failure; close it with cgam_array_close.
 *   CGAM_E_NOT_FOUND    no such file or member, a directory, no permission
 *   CGAM_E_FORMAT       not what it claims to be      CGAM_E_ARG  several arrays and no member given
 *   CGAM_E_UNSUPPORTED  valid, but its type, compression or version is not supported */
CGAM_API CGAM_NODISCARD cgam_status cgam_array_open(cgam_env *env, const char *path,
                                                    cgam_array *out);
CGAM_API void cgam_array_close(cgam_env *env, cgam_array *array); /* accepts {0} and NULL */

/* Copies all elements into out[array->size], widened to double. Fails with CGAM_E_VALUE on a
 * NaN, an infinity or an i64 that double cannot hold exactly; the message has its row, its column and
 * `name` (for example a path). */
CGAM_API CGAM_NODISCARD cgam_status cgam_array_read_f64(cgam_env *env, const cgam_array *array,
                                                        const char *name, double *out);

/* Writes one array as .npy (f64, f32, f16, i64, i32). */
CGAM_API CGAM_NODISCARD cgam_status cgam_npy_write(cgam_env *env, const char *path,
                                                   cgam_dtype dtype, int ndim, const int64_t *shape,
                                                   const void *data);

#ifdef __cplusplus
}
#endif
#endif
