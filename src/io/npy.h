/* npy.h: NumPy's array file, inside: its header is also that of each member of an .npz. */
#ifndef CGAM_SRC_IO_NPY_H
#define CGAM_SRC_IO_NPY_H

#include "io/array.h"

enum {
    CGAM_NPY_PREFIX = 12,         /* magic, version and length of the longest kind of header */
    CGAM_NPY_HEADER_MAX = 1 << 16 /* our headers have some hundred bytes, NumPy's at most 10^4 */
};

/* Finds the offset of the data in a file of `total` bytes, from its first `have` bytes: the prefix, or all if the
 * file is shorter. The offset is at most CGAM_NPY_PREFIX + CGAM_NPY_HEADER_MAX and at most total. */
CGAM_NODISCARD cgam_status cgam_npy_data_offset(cgam_env *env, const char *name,
                                                const uint8_t *bytes, size_t have, uint64_t total,
                                                size_t *offset);

/* Reads the header from the first `offset` bytes. The data must fill the `total` bytes exactly, unless the type is
 * one that cannot be opened (dtype -1). */
CGAM_NODISCARD cgam_status cgam_npy_parse(cgam_env *env, const char *name, const uint8_t *bytes,
                                          size_t offset, uint64_t total, cgam_layout *out);
/* Is the type '<Uw' or '|Sw', texts of at most w characters? Only cgam_npz_each reads these. */
bool cgam_npy_is_text(const cgam_layout *layout, int64_t *width);

/* Reads the members of an .npz in order; `bytes` are in the type of the file, also texts, and go with the call. */
typedef cgam_status (*cgam_npz_take)(void *user, const char *member, const cgam_layout *layout,
                                     const void *bytes);
CGAM_NODISCARD cgam_status cgam_npz_each(cgam_env *env, const char *name, const cgam_file *file,
                                         cgam_npz_take take, void *user);
bool cgam_npz_recognise(const cgam_file *file);

/* Returns CGAM_E_UNSUPPORTED, with the type in the message, if it cannot be opened. */
CGAM_NODISCARD cgam_status cgam_npy_openable(cgam_env *env, const char *name,
                                             const cgam_layout *layout);

/* Writes the header of a layout into bytes[CGAM_NPY_HEADER_OURS] and returns its length, a multiple of 64, as NumPy
 * does. Returns CGAM_E_UNSUPPORTED for bf16, which NumPy does not have. */
enum { CGAM_NPY_HEADER_OURS = 448 };
CGAM_NODISCARD cgam_status cgam_npy_header(cgam_env *env, const char *name,
                                           const cgam_layout *layout, char *bytes, size_t *length);

/* The same in pieces: nothing appears at `path` before cgam_npy_finish returns CGAM_OK. */
typedef struct cgam_npy_writer cgam_npy_writer;
CGAM_NODISCARD cgam_status cgam_npy_begin(cgam_env *env, const char *path, cgam_dtype dtype,
                                          int ndim, const int64_t *shape, cgam_npy_writer **out);
/* Writes the next `count` elements in row-major order; CGAM_E_SHAPE if the shape has fewer. */
CGAM_NODISCARD cgam_status cgam_npy_append(cgam_npy_writer *writer, const void *data,
                                           int64_t count);
/* Frees the writer in any case; CGAM_E_SHAPE if elements are missing. */
CGAM_NODISCARD cgam_status cgam_npy_finish(cgam_npy_writer *writer);
void cgam_npy_abandon(cgam_npy_writer *writer); /* removes the temporary; NULL is allowed */

#endif
