/* safetensors.h: the header of a .safetensors file, inside. */
#ifndef CGAM_SRC_IO_SAFETENSORS_H
#define CGAM_SRC_IO_SAFETENSORS_H

#include "io/array.h"
#include "io/file.h"

#include <jansson.h>

/* Element types by the names of .safetensors and .npy. `dtype` is -1 for those that cannot be
 * opened; `item` is then still known, so that their offsets can be checked. */
typedef struct cgam_tensor_type {
    const char *name, *numpy; /* numpy "": NumPy does not have it */
    int dtype;
    int item;
    char whole; /* as in a layout */
} cgam_tensor_type;
extern const cgam_tensor_type cgam_tensor_types[]; /* the last entry has name NULL */
const char *cgam_tensor_type_name(cgam_dtype dtype);

/* Returns the header entry of an array; NULL if out of memory. */
json_t *cgam_tensor_entry(const char *type, int ndim, const int64_t *shape, uint64_t begin,
                          uint64_t bytes);

typedef struct cgam_tensor {
    const char *name; /* shares the table's memory */
    cgam_layout layout;
    uint64_t begin, end; /* from the start of the data */
} cgam_tensor;

typedef struct cgam_tensor_table {
    cgam_tensor *tensors; /* [count], in the order of the header */
    int64_t count;
    uint64_t data; /* where the data start in the file */
    void *header;  /* private */
} cgam_tensor_table;

/* Reads and checks the whole header: types, shapes, and offsets that cover the file without hole or overlap. Gives a
 * table; free it with cgam_tensor_table_free, which allows {0}. */
CGAM_NODISCARD cgam_status cgam_tensor_table_parse(cgam_env *env, const char *name,
                                                   const uint8_t *bytes, size_t size,
                                                   cgam_tensor_table *out);
void cgam_tensor_table_free(cgam_env *env, cgam_tensor_table *table);
/* Return the metadata text of a key, and the array of a name; NULL if absent. The table owns them. */
const char *cgam_tensor_table_note(const cgam_tensor_table *table, const char *key);
const cgam_tensor *cgam_tensor_table_find(const cgam_tensor_table *table, const char *name);

/* Creates a file with its header; the caller writes array i at offset begins[i]. *out is NULL after a failure. */
CGAM_NODISCARD cgam_status cgam_safetensors_begin(cgam_env *env, const char *path, int count,
                                                  const cgam_named_array *arrays,
                                                  const cgam_layout *layouts, uint64_t *begins,
                                                  cgam_outfile **out);

#endif
