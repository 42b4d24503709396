/* placed.h: writes the arrays of a file in any order, a piece at a time, without holding them in
 * memory. */
#ifndef CGAM_SRC_LM_PLACED_H
#define CGAM_SRC_LM_PLACED_H

#include "io/array.h"

typedef struct cgam_placed cgam_placed;

/* Begins a .npy (one array, any name) or a .safetensors file; does not read the arrays' data.
 * Nothing appears at `path` before cgam_placed_finish returns CGAM_OK. */
CGAM_NODISCARD cgam_status cgam_placed_begin(cgam_env *env, const char *path, int count,
                                             const cgam_named_array *arrays, cgam_placed **out);
/* Writes elements [from, from + count) of an array in row-major order. Write each element once. */
CGAM_NODISCARD cgam_status cgam_placed_put(cgam_placed *placed, int array, int64_t from,
                                           int64_t count, const void *data);
/* Always frees it; fails with CGAM_E_SHAPE if elements are missing. */
CGAM_NODISCARD cgam_status cgam_placed_finish(cgam_placed *placed);
void cgam_placed_abandon(cgam_placed *placed); /* removes the temporary file; NULL is fine */

#endif
