/* sealed.h: a .safetensors file with a digest of every part, written part by part.
 *
 *   header   as the format has it, padded with spaces to a size set in advance; its metadata have
 *            "digest.NAME", BLAKE2b of 32 bytes in hexadecimal, for each array, and "digest.header" of the file up
 *            to the data, its own value counted as zeros
 *   data     each array on a 64-byte boundary of the file; gaps are arrays pad0, pad1, ... of zeros; the last has
 *            at least 64 bytes, so that readers may read past an array
 *
 * So every byte of the file is under a digest, and any reader of the format can read it. */
#ifndef CGAM_SRC_IO_SEALED_H
#define CGAM_SRC_IO_SEALED_H

#include "io/safetensors.h"

enum { CGAM_SEALED_ALIGN = 64 };

typedef struct cgam_sealed cgam_sealed;

/* Begins a file with this many bytes for the header. Gives *out; end it with cgam_sealed_commit or
 * cgam_sealed_abandon. */
CGAM_NODISCARD cgam_status cgam_sealed_begin(cgam_env *env, const char *path, size_t header,
                                             cgam_sealed **out);
/* Adds a text to the metadata; copies. */
CGAM_NODISCARD cgam_status cgam_sealed_note(cgam_sealed *file, const char *key, const char *text);
/* Begins an array; the previous one must be complete. type: its name in the format, of so many bytes. At most two
 * dimensions: ndim 1 or 2. */
typedef struct cgam_part {
    const char *name, *type;
    int ndim;
    int64_t shape[2];
    const void *data; /* all of it, or NULL if it is written in pieces */
} cgam_part;
CGAM_NODISCARD cgam_status cgam_sealed_part(cgam_sealed *file, const cgam_part *part);
/* Writes the next bytes of the array. */
CGAM_NODISCARD cgam_status cgam_sealed_write(cgam_sealed *file, const void *bytes, size_t size);
/* Maps the written part of the last array, until the file is ended. At most once per file. */
CGAM_NODISCARD cgam_status cgam_sealed_map(cgam_sealed *file, const void **out);
CGAM_NODISCARD cgam_status cgam_sealed_commit(cgam_sealed *file); /* frees it in any case */
void cgam_sealed_abandon(cgam_sealed *file);                      /* NULL is allowed */

/* *damaged is set to the first array whose digest is wrong or missing, to "header", or to NULL if all agree; the
 * table owns the name. Reads every byte, on the env's threads. */
CGAM_NODISCARD cgam_status cgam_sealed_check(cgam_env *env, const cgam_file *file,
                                             const cgam_tensor_table *table, const char **damaged);

#endif
