/* bank.c: a model's unembedding as a bank of memories. */
#include "memory/bank.h"
#include "base/env.h"
#include "num/cpu/widen.h"

#include <cgam/lens.h>

/* Rows times the norm's weights. A layer norm takes the mean off the state; it can as well be taken
 * off the row. */
static void weigh(float *Z, int64_t rows, int64_t width, const float *gain, bool centred)
{
    for (int64_t i = 0; i < rows; i++) {
        float *row = Z + i * width;
        double sum = 0;
        for (int64_t j = 0; j < width; j++) sum += (double)(row[j] *= gain[j]);
        for (int64_t j = 0; j < width && centred; j++) row[j] -= (float)(sum / (double)width);
    }
}

/* Rows to the wanted type, in place: narrow types never overtake what is still to be read. */
static cgam_status narrow(cgam_env *env, float *Z, int64_t rows, int64_t width, cgam_dtype dtype)
{
    if (dtype == CGAM_F32) return CGAM_OK;
    double *row = cgam_alloc(env, (size_t)width, sizeof *row);
    if (!row) return cgam_fail_nomem(env, "a row");
    for (int64_t i = 0; i < rows; i++) {
        cgam_widen(CGAM_F32, Z + i * width, width, row);
        cgam_narrow(dtype, row, width, (char *)Z + (size_t)(i * width) * cgam_dtype_size(dtype));
    }
    cgam_free(env, row);
    return CGAM_OK;
}

cgam_status cgam_lm_bank(cgam_lm *lm, cgam_lens_kind lens, cgam_dtype dtype, cgam_bank **out)
{
    cgam_env *env = cgam_lm_env(lm);
    cgam_lm_info info = cgam_lm_describe(lm);
    *out = NULL;
    if (lens == CGAM_LENS_NORM || (dtype != CGAM_F32 && dtype != CGAM_F16 && dtype != CGAM_BF16))
        return cgam_fail(env, CGAM_E_ARG,
                         "a model's bank is raw or gain in f32, f16 or bf16, not %s in %s",
                         cgam_lens_kind_name(lens), cgam_dtype_name(dtype));
    float *Z = cgam_alloc(env, (size_t)(info.vocab * info.width), sizeof *Z);
    float *norm = cgam_alloc(env, 2 * (size_t)info.width, sizeof *norm);
    cgam_lm_norm kind;
    cgam_status status =
        Z && norm ? cgam_lm_unembedding(lm, Z) : cgam_fail_nomem(env, "the unembedding");
    if (status == CGAM_OK && lens == CGAM_LENS_GAIN) {
        status = cgam_lm_final_norm(lm, norm, norm + info.width, &kind);
        if (status == CGAM_OK) weigh(Z, info.vocab, info.width, norm, kind.centred);
    }
    if (status == CGAM_OK) status = narrow(env, Z, info.vocab, info.width, dtype);
    if (status == CGAM_OK) status = cgam_bank_new(env, Z, dtype, info.vocab, info.width, NULL, out);
    cgam_free(env, norm);
    if (status == CGAM_OK) (*out)->owned = Z; /* goes with the bank */
    else cgam_free(env, Z);
    return status;
}
