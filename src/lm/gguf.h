/* gguf.h: reads the keys and the table of tensors of a GGUF file, and writes small files of vectors in
 * that format. All sizes and offsets are checked against the size of the file. lm/model_check.h checks what the keys of a
 * model must be. */
#ifndef CGAM_SRC_LM_GGUF_H
#define CGAM_SRC_LM_GGUF_H

#include "io/file.h"

enum {
    CGAM_GGUF_NAME = 64,
    CGAM_GGUF_DIMS = 4,
    CGAM_GGUF_VERSION = 3
}; /* the format's own limits */

/* Types of values, by the format's codes. */
typedef enum cgam_gguf_kind {
    CGAM_GGUF_U8,
    CGAM_GGUF_I8,
    CGAM_GGUF_U16,
    CGAM_GGUF_I16,
    CGAM_GGUF_U32,
    CGAM_GGUF_I32,
    CGAM_GGUF_F32,
    CGAM_GGUF_BOOL,
    CGAM_GGUF_TEXT,
    CGAM_GGUF_ARRAY,
    CGAM_GGUF_U64,
    CGAM_GGUF_I64,
    CGAM_GGUF_F64,
    CGAM_GGUF_KINDS
} cgam_gguf_kind;

/* Bytes of the file, not zero-terminated. */
typedef struct cgam_gguf_text {
    const char *at;
    size_t length;
} cgam_gguf_text;

typedef struct cgam_gguf_value {
    cgam_gguf_text name;
    cgam_gguf_kind kind; /* of one item, never ARRAY */
    bool array;          /* count items, perhaps 0; else one item */
    uint64_t count;
    const uint8_t *items; /* as in the file */
} cgam_gguf_value;

typedef struct cgam_gguf_tensor {
    char name[CGAM_GGUF_NAME];
    int ndim;
    int64_t shape[CGAM_GGUF_DIMS]; /* as in the file: fastest first; 1 beyond ndim */
    int64_t size;                  /* elements */
    int dtype;                     /* CGAM_F32, CGAM_F16, CGAM_BF16; -1: another type of ggml */
    uint32_t type;                 /* as the file says */
    uint64_t bytes; /* of the data; 0: unknown type, or a row length that the type does not allow */
    uint64_t begin; /* offset of the data in the file; the data lie within it unless bytes is 0 */
} cgam_gguf_tensor;

typedef struct cgam_gguf {
    char architecture[CGAM_GGUF_NAME]; /* "" if the file has none, or it is too long */
    cgam_gguf_value *values;           /* [values_count], sorted by name */
    int64_t values_count;
    cgam_gguf_tensor *tensors; /* [count] */
    int64_t count;
} cgam_gguf;

/* Reads and checks the header: versions 2 and 3, names given once, data within the file and apart from each other.
 * `name` is the file in messages. *out borrows the bytes; free it with cgam_gguf_free, which accepts {0}. */
CGAM_NODISCARD cgam_status cgam_gguf_parse(cgam_env *env, const char *name, const uint8_t *bytes,
                                           size_t size, cgam_gguf *out);
void cgam_gguf_free(cgam_env *env, cgam_gguf *gguf);

/* Returns NULL if the key does not exist. */
const cgam_gguf_value *cgam_gguf_find(const cgam_gguf *gguf, const char *name);
const cgam_gguf_tensor *cgam_gguf_tensor_find(const cgam_gguf *gguf, const char *name);
/* Item i < count of a value of numbers or booleans. Returns NAN for a text. */
double cgam_gguf_number(const cgam_gguf_value *value, uint64_t i);
/* Returns the text at *at and moves *at to the next text. Start with *at = value->items. */
cgam_gguf_text cgam_gguf_next(const uint8_t **at);
bool cgam_gguf_is(cgam_gguf_text text, const char *word);
/* Is the text safe to show in a message: printable ASCII, at most CGAM_GGUF_NAME bytes? */
bool cgam_gguf_clean(cgam_gguf_text text);

/* Returns the numbers in a block of a type, and its bytes; 0 if the type is unknown. */
int cgam_gguf_block(uint32_t type, int *bytes);

typedef struct cgam_gguf_key {
    const char *name;
    const char *text; /* NULL: a number */
    uint32_t number;
} cgam_gguf_key;
typedef struct cgam_gguf_vector {
    char name[CGAM_GGUF_NAME];
    const float *data; /* [width] */
} cgam_gguf_vector;

/* Writes keys and f32 vectors of equal width. */
CGAM_NODISCARD cgam_status cgam_gguf_write(cgam_env *env, const char *path, int keys,
                                           const cgam_gguf_key *key, int64_t count, int64_t width,
                                           const cgam_gguf_vector *vectors);

#endif
