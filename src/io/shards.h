/* shards.h: arrays of one width, stacked as the rows of one matrix.
 *
 * A path names them in one of three ways:
 *   FILE or FILE:NAME            one array, as for cgam_array_open;
 *   INDEX.json or INDEX.json:NAME  an index as libraries write it beside .safetensors files that a model was divided
 *                                among, {"weight_map": {"array": "file", ..}, ..}: all its arrays, or one;
 *   'Z-*.npy', 'Z-*.npz:NAME'    the files that a pattern of the shell matches (* ? [..]), unless a file is called so.
 * Several arrays are sorted by name - of arrays in an index, of paths otherwise - with numbers compared by value: Z-2
 * is before Z-10, and Z-02 before Z-10. File names in an index are untrusted: they must be beside the index. */
#ifndef CGAM_SRC_IO_SHARDS_H
#define CGAM_SRC_IO_SHARDS_H

#include "io/array.h"

typedef struct cgam_shards {
    cgam_array *arrays; /* [count] of reals, each [.., d] */
    int64_t count, rows, d;
    cgam_dtype dtype; /* of the first */
    bool mixed;       /* others have another type */
} cgam_shards;

/* Opens every file, and maps it if cgam_array_open would. *out is {0} after a failure. */
CGAM_NODISCARD cgam_status cgam_shards_open(cgam_env *env, const char *path, cgam_shards *out);
void cgam_shards_close(cgam_env *env, cgam_shards *shards); /* {0} is allowed */

/* Returns row i, below `rows`, and sets the number of its array. */
const void *cgam_shards_row(const cgam_shards *shards, int64_t i, int64_t *array);
/* to [end - begin, d] = rows [begin, end), which must have one type. */
void cgam_shards_copy(const cgam_shards *shards, int64_t begin, int64_t end, void *to);

#endif
