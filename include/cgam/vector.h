/* vector.h: directions in the residual stream, one for each layer, in files and from data.
 *
 * Layers are those of lm.h: l = 0 .. L. A layer that a file says nothing of has zeros. Files:
 *   .gguf         llama.cpp's control vectors, as repeng and cvector-generator write them too:
 *                 direction.k is added after block k counted from 0, so it is layer k + 1. What is
 *                 written begins with direction.1; layers 0 and 1 have no place in this form
 *   .npy          (layers + 1, width)
 *   .safetensors  an array `vectors` (layers + 1, width); the only array of a file is read whatever
 *                 its name
 * Magnitudes are kept. */
#ifndef CGAM_VECTOR_H
#define CGAM_VECTOR_H

#include <cgam/lm_study.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cgam_vector cgam_vector;

/* Copies data [rows, width], row l for layer l; NULL = zeros. Gives *out; cgam_vector_free. */
CGAM_API CGAM_NODISCARD cgam_status cgam_vector_new(cgam_env *env, int64_t rows, int64_t width,
                                                    const float *data, cgam_vector **out);
CGAM_API void cgam_vector_free(cgam_vector *v); /* NULL is fine */

/* Reads a file, by its ending. A file that is no vector, a NaN or an infinity: one line says where. */
CGAM_API CGAM_NODISCARD cgam_status cgam_vector_open(cgam_env *env, const char *path,
                                                     cgam_vector **out);
/* Writes a file, by its ending. *left_out: how many layers that are not zero have no place in it (0
 * or 1 or 2, in .gguf alone); NULL is fine. hint: the model's architecture, kept in .gguf; NULL: none. */
CGAM_API CGAM_NODISCARD cgam_status cgam_vector_write(const cgam_vector *v, const char *path,
                                                      const char *hint, int *left_out);

CGAM_API int64_t cgam_vector_rows(const cgam_vector *v); /* the last layer there is, plus 1 */
CGAM_API int64_t cgam_vector_width(const cgam_vector *v);
/* [width], belongs to v; NULL past the last row. */
CGAM_API const float *cgam_vector_row(const cgam_vector *v, int64_t layer);
CGAM_API double cgam_vector_norm(const cgam_vector *v, int64_t layer); /* 0 past the last row */

/* CGAM_E_SHAPE with one line when the vector has another width than the model, or layers that it has
 * not; `name` is the vector in the message. */
CGAM_API CGAM_NODISCARD cgam_status cgam_vector_fits(const cgam_vector *v, const cgam_lm *lm,
                                                     const char *name);

/* sum_i x[i] v[i]; all of one width, layers that some lack count as zeros. Gives *out. */
CGAM_API CGAM_NODISCARD cgam_status cgam_vector_sum(cgam_env *env, int64_t count,
                                                    const cgam_vector *const *v, const double *x,
                                                    cgam_vector **out);
/* The same from "a.gguf:2,b.npy:-1"; a file without a factor has 1. */
CGAM_API CGAM_NODISCARD cgam_status cgam_vector_from(cgam_env *env, const char *list,
                                                     cgam_vector **out);

/* The mean effect of the study's largest number of demonstrations on the last token of its prompts,
 * h_ICL - h_zero, at every layer. Gives *out. */
CGAM_API CGAM_NODISCARD cgam_status cgam_vector_effect(cgam_lm_study *study, cgam_vector **out);

/* ---- Contrasts ---------------------------------------------------------------------------- */
typedef enum cgam_contrast_kind {
    CGAM_CONTRAST_MEAN, /* the mean of the differences */
    /* The direction that the differences, taken from 0, have most in common: the first eigenvector of
     * the sum of d d'. Its sign is that of its product with the mean, its length the root mean square of
     * the differences' products with it: differences that are all alike give their mean. */
    CGAM_CONTRAST_PCA
} cgam_contrast_kind;
CGAM_API const char *cgam_contrast_kind_name(cgam_contrast_kind kind); /* "mean", "pca" */
CGAM_API bool cgam_contrast_kind_find(const char *name, cgam_contrast_kind *out);

/* From differences [pairs, rows, width]: state of one text less that of the other. Gives *out. */
CGAM_API CGAM_NODISCARD cgam_status cgam_vector_contrast(cgam_env *env, int64_t pairs, int64_t rows,
                                                         int64_t width, const float *differences,
                                                         cgam_contrast_kind kind,
                                                         cgam_vector **out);

typedef struct cgam_contrast_opts {
    cgam_contrast_kind kind;   /* default MEAN */
    cgam_store *store;         /* keeps the states; default NULL = none */
    cgam_collect_opts collect; /* how states are made and stored */
} cgam_contrast_opts;
CGAM_API cgam_contrast_opts cgam_contrast_opts_default(void);

/* From a file of text<TAB>opposite, a pair a line: states of their last tokens. *pairs: how many;
 * NULL is fine. opts NULL = defaults. Gives *out. */
CGAM_API CGAM_NODISCARD cgam_status cgam_vector_contrast_file(cgam_lm *lm, const char *path,
                                                              const cgam_contrast_opts *opts,
                                                              cgam_vector **out, int64_t *pairs);

#ifdef __cplusplus
}
#endif
#endif
