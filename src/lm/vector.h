/* vector.h (inside): a direction for each layer. */
#ifndef CGAM_SRC_LM_VECTOR_H
#define CGAM_SRC_LM_VECTOR_H

#include "base/env.h"
#include "io/file.h"

#include <cgam/lm.h>

struct cgam_vector {
    cgam_env *env;
    int64_t rows, width;
    float *data; /* [rows, width] */
};

/* Reads the vectors from the bytes of a control-vector file; `name` is the file in messages. */
CGAM_NODISCARD cgam_status cgam_vector_parse_gguf(cgam_env *env, const char *name,
                                                  const cgam_file *file, cgam_vector **out);

double cgam_vector_norm(const cgam_vector *v, int64_t layer); /* 0 past the last row */
/* Fails with CGAM_E_SHAPE if the vector's width differs from the model's, or it has layers that the model lacks;
 * `name` is the vector in the message. */
CGAM_NODISCARD cgam_status cgam_vector_fits(const cgam_vector *v, const cgam_lm *lm,
                                            const char *name);
/* cgam_vector_sum from "a.gguf:2,b.npy:-1"; the default factor is 1. */
CGAM_NODISCARD cgam_status cgam_vector_from(cgam_env *env, const char *list, cgam_vector **out);

/* *out = sum_i x[i] v[i]; equal widths, missing layers count as zeros. */
CGAM_NODISCARD cgam_status cgam_vector_sum(cgam_env *env, int64_t count,
                                           const cgam_vector *const *v, const double *x,
                                           cgam_vector **out);

#endif
