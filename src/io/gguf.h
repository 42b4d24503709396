/* gguf.h: the table of contents of a GGUF file, and small files of vectors in that form. Models are
 * read by libllama; this is for what needs no model, control vectors above all. */
#ifndef CGAM_SRC_IO_GGUF_H
#define CGAM_SRC_IO_GGUF_H

#include "io/file.h"

enum { CGAM_GGUF_NAME = 64, CGAM_GGUF_DIMS = 4 }; /* the format's own limits */

typedef struct cgam_gguf_tensor {
    char name[CGAM_GGUF_NAME];
    int ndim;
    int64_t shape[CGAM_GGUF_DIMS]; /* as in the file: the fastest first */
    int64_t size;                  /* elements */
    int dtype;                     /* CGAM_F32, CGAM_F16, CGAM_BF16; -1: a type of ggml's own */
    uint32_t type;                 /* as the file says */
    uint64_t begin; /* of the data, in the file; they lie within it unless dtype is -1 */
} cgam_gguf_tensor;

typedef struct cgam_gguf {
    char architecture[CGAM_GGUF_NAME]; /* "" where the file has none */
    cgam_gguf_tensor *tensors;         /* [count] */
    int64_t count;
} cgam_gguf;

/* Reads and checks the header: versions 2 and 3, names given once, data within the file. `name` is the
 * file in messages. Gives *out; free it with cgam_gguf_free, which copes with {0}. */
CGAM_NODISCARD cgam_status cgam_gguf_parse(cgam_env *env, const char *name, const uint8_t *bytes,
                                           size_t size, cgam_gguf *out);
void cgam_gguf_free(cgam_env *env, cgam_gguf *gguf);

typedef struct cgam_gguf_key {
    const char *name;
    const char *text; /* NULL: a number */
    uint32_t number;
} cgam_gguf_key;
typedef struct cgam_gguf_vector {
    char name[CGAM_GGUF_NAME];
    const float *data; /* [width] */
} cgam_gguf_vector;

/* Writes keys and vectors of f32, all of one width. */
CGAM_NODISCARD cgam_status cgam_gguf_write(cgam_env *env, const char *path, int keys,
                                           const cgam_gguf_key *key, int64_t count, int64_t width,
                                           const cgam_gguf_vector *vectors);

#endif
