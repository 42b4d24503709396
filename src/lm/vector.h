/* vector.h (inside): a direction for each layer. */
#ifndef CGAM_SRC_LM_VECTOR_H
#define CGAM_SRC_LM_VECTOR_H

#include "base/env.h"
#include "io/file.h"

#include <cgam/vector.h>

struct cgam_vector {
    cgam_env *env;
    int64_t rows, width;
    float *data; /* [rows, width] */
};

/* The vectors in the bytes of a control-vector file; `name` stands for it in messages. */
CGAM_NODISCARD cgam_status cgam_vector_parse_gguf(cgam_env *env, const char *name,
                                                  const cgam_file *file, cgam_vector **out);

#endif
