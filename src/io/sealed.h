/* sealed.h: a .safetensors file with a digest of every part, written part by part.
 *
 *   header   as the format has it, padded with spaces to a size set in advance; its metadata have
 *            "digest.NAME", BLAKE2b of 32 bytes in hexadecimal, for each array, and "digest.header" of the file up
 *            to the data, its own value taken for zeros
 *   data     each array on a 64-byte boundary of the file; what that leaves free are arrays pad0, pad1, ... of
 *            zeros, the last of which has 64 bytes or more, so that readers may look beyond an array
 *
 * So every byte of the file is under a digest, and any reader of the format can read it. */
#ifndef CGAM_SRC_IO_SEALED_H
#define CGAM_SRC_IO_SEALED_H

#include "io/safetensors.h"

enum { CGAM_SEALED_ALIGN = 64 };

typedef struct cgam_sealed cgam_sealed;

/* Begins a file with so many bytes for the header. Gives *out; end it with cgam_sealed_commit or
 * cgam_sealed_abandon. */
CGAM_NODISCARD cgam_status cgam_sealed_begin(cgam_env *env, const char *path, size_t header,
                                             cgam_sealed **out);
/* Adds a text to the metadata; copies. */
CGAM_NODISCARD cgam_status cgam_sealed_note(cgam_sealed *file, const char *key, const char *text);
/* Begins an array, the one before being complete; type: as the format spells it, of so many bytes. Two dimensions at
 * most, ndim 1 or 2. */
typedef struct cgam_part {
    const char *name, *type;
    int ndim;
    int64_t shape[2];
    const void *data; /* all of it, or NULL where it is written in pieces */
} cgam_part;
CGAM_NODISCARD cgam_status cgam_sealed_part(cgam_sealed *file, const cgam_part *part);
/* The next bytes of the array. */
CGAM_NODISCARD cgam_status cgam_sealed_write(cgam_sealed *file, const void *bytes, size_t size);
/* Maps what was written of the last array, until the file is ended. Once per file. */
CGAM_NODISCARD cgam_status cgam_sealed_map(cgam_sealed *file, const void **out);
CGAM_NODISCARD cgam_status cgam_sealed_commit(cgam_sealed *file); /* frees it in any case */
void cgam_sealed_abandon(cgam_sealed *file);                      /* NULL is fine */

/* *damaged is the first array whose digest is wrong or missing, "header", or NULL if all agree; the table owns the
 * name. Reads every byte, on the env's threads. */
CGAM_NODISCARD cgam_status cgam_sealed_check(cgam_env *env, const cgam_file *file,
                                             const cgam_tensor_table *table, const char **damaged);

#endif
