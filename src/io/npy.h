/* npy.h: NumPy's array file, inside: its header is also that of each member of an .npz. */
#ifndef CGAM_SRC_IO_NPY_H
#define CGAM_SRC_IO_NPY_H

#include "io/array.h"

enum {
    CGAM_NPY_PREFIX = 12,         /* magic, version and length of the longest kind of header */
    CGAM_NPY_HEADER_MAX = 1 << 16 /* a header of ours has some hundred bytes, NumPy stops at 10^4 */
};

/* Where the data begin in a file of `total` bytes, from its first `have` bytes: the prefix, or all
 * when the file is shorter. The offset is at most CGAM_NPY_PREFIX + CGAM_NPY_HEADER_MAX and at
 * most total. */
CGAM_NODISCARD cgam_status cgam_npy_data_offset(cgam_env *env, const char *name,
                                                const uint8_t *bytes, size_t have, uint64_t total,
                                                size_t *offset);

/* Reads the header from the first `offset` bytes. The data must then fill the `total` bytes to the
 * last one, unless the type is one that cannot be opened (dtype -1). */
CGAM_NODISCARD cgam_status cgam_npy_parse(cgam_env *env, const char *name, const uint8_t *bytes,
                                          size_t offset, uint64_t total, cgam_layout *out);
/* CGAM_E_UNSUPPORTED, saying what the type is, when it cannot be opened. */
CGAM_NODISCARD cgam_status cgam_npy_openable(cgam_env *env, const char *name,
                                             const cgam_layout *layout);

/* Writes the header of a layout into bytes[CGAM_NPY_HEADER_OURS] and gives its length, a multiple
 * of 64, as NumPy makes it. CGAM_E_UNSUPPORTED for bf16, which NumPy does not know. */
enum { CGAM_NPY_HEADER_OURS = 448 };
CGAM_NODISCARD cgam_status cgam_npy_header(cgam_env *env, const char *name,
                                           const cgam_layout *layout, char *bytes, size_t *length);

/* The same in pieces: nothing appears at `path` before cgam_npy_finish says CGAM_OK. */
typedef struct cgam_npy_writer cgam_npy_writer;
CGAM_NODISCARD cgam_status cgam_npy_begin(cgam_env *env, const char *path, cgam_dtype dtype,
                                          int ndim, const int64_t *shape, cgam_npy_writer **out);
/* The next `count` elements in row-major order; CGAM_E_SHAPE when the shape has not so many. */
CGAM_NODISCARD cgam_status cgam_npy_append(cgam_npy_writer *writer, const void *data,
                                           int64_t count);
/* Frees the writer, whatever comes back; CGAM_E_SHAPE when elements are missing. */
CGAM_NODISCARD cgam_status cgam_npy_finish(cgam_npy_writer *writer);
void cgam_npy_abandon(cgam_npy_writer *writer); /* removes the temporary; NULL is fine */

#endif
