/* bank.h: a bank of memories zeta_0 .. zeta_{n-1} in R^d, the rows of Z.
 *
 * A bank is loaded once, is const afterwards and may be shared by threads. It keeps its rows as
 * they are stored (f64, f32, f16 or bf16, memory-mapped where the file allows) and widens them as
 * they are read. It knows nothing of queries, contexts or gates.
 *
 * Edge cases: n = 1 is a bank; equal memories share their probability; a zero memory has score 0
 * and stays zero when normalised; NaN and infinity are refused by row and column.
 */
#ifndef CGAM_BANK_H
#define CGAM_BANK_H

#include <cgam/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cgam_bank cgam_bank;

typedef struct cgam_bank_opts {
    bool normalize; /* divide each row by its norm; default false */
    bool copy;      /* copy the caller's rows instead of borrowing them; default false */
    int64_t stride; /* elements from row to row; default 0 = d */
} cgam_bank_opts;

CGAM_API cgam_bank_opts cgam_bank_opts_default(void);

/* A bank over data [n, d], borrowed until cgam_bank_free unless opts->copy. opts NULL = defaults.
 * Reads every row once, to check it and to know its norm. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_new(cgam_env *env, const void *data, cgam_dtype dtype,
                                                  int64_t n, int64_t d, const cgam_bank_opts *opts,
                                                  cgam_bank **out);

/* A bank from FILE or FILE:MEMBER (.npy, .npz, .safetensors, .csv), two-dimensional; see io.h. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_load(cgam_env *env, const char *path,
                                                   const cgam_bank_opts *opts, cgam_bank **out);
CGAM_API void cgam_bank_free(cgam_bank *bank); /* NULL is fine */

/* Makes the sketch by which recalls with opts.fast search: int8 rows with proved errors, d + d / 128 + 8 bytes a
 * memory, in a few readings of the bank. Before the bank is shared; once is enough. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_sketch(cgam_bank *bank);

typedef struct cgam_bank_info {
    int64_t n, d;
    cgam_dtype dtype;
    double norm_min, norm_max; /* |zeta|, after normalising if that was asked for */
    bool equal_norms;          /* to working precision; then the spectral forms apply */
    bool unit;                 /* equal and 1 */
    int64_t zero_rows;
    bool mapped; /* rows are pages of the file */
    bool sketch; /* it has one */
} cgam_bank_info;

CGAM_API cgam_bank_info cgam_bank_describe(const cgam_bank *bank);

/* n_i = |zeta_i|^2, [n]; belongs to the bank. */
CGAM_API const double *cgam_bank_norm2(const cgam_bank *bank);

/* out[d] = zeta_i. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_row(const cgam_bank *bank, int64_t i, double *out);
/* out[n] = Z x, x [d]. One pass. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_score(const cgam_bank *bank, const double *x,
                                                    double *out);
/* out[d] = Z' w, w [n]. One pass. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_combine(const cgam_bank *bank, const double *w,
                                                      double *out);

#ifdef __cplusplus
}
#endif
#endif
