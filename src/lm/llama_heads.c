/* llama_heads.c: what single heads of the attention add to the residual stream.
 *
 * The attention of a block is O a, with a the outputs of its heads one after another. Head h adds O_h a_h, where O_h are
 * its columns of the output projection O; the sum over h is O a. */
#include "base/blas.h"
#include "lm/llama.h"

#include <stdio.h>

cgam_status cgam_lm_heads_known(const cgam_lm *lm)
{
    if (lm->info.heads > 0 && lm->info.head_size > 0) return CGAM_OK;
    return cgam_fail(
        lm->env, CGAM_E_UNSUPPORTED,
        "the heads of this %s model differ between blocks, or their number is not in the file",
        lm->info.architecture);
}

void cgam_lm_heads_read(cgam_lm *lm)
{
    cgam_lm_info *info = &lm->info;
    int64_t heads = 0, size = 0;
    if (!cgam_gguf_uint(lm, "attention.head_count", &heads) || heads < 1) return;
    if (!cgam_gguf_uint(lm, "attention.value_length", &size)) size = info->width / heads;
    info->heads = heads;
    info->head_size = size;
}

cgam_status cgam_lm_heads_project(cgam_lm *lm, int64_t layer, int64_t count, const float *heads,
                                  float *out)
{
    cgam_env *env = lm->env;
    int64_t H = lm->info.heads, size = lm->info.head_size, d = lm->info.width;
    char name[64];
    cgam_weights w;
    cgam_status status = cgam_lm_heads_known(lm);
    if (status != CGAM_OK) return status;
    if (layer < 1 || layer > lm->info.layers)
        return cgam_fail(env, CGAM_E_ARG, "layer %lld has no heads (valid: 1 to %lld)",
                         (long long)layer, (long long)lm->info.layers);
    snprintf(name, sizeof name, "blk.%lld.attn_output.weight", (long long)layer - 1);
    status = cgam_weights_find(lm, name, &w);
    if (status != CGAM_OK) return status;
    if (w.rows != d || w.columns != H * size)
        return cgam_fail(env, CGAM_E_UNSUPPORTED, "%s is %lld x %lld, expected %lld x %lld", name,
                         (long long)w.rows, (long long)w.columns, (long long)d,
                         (long long)(H * size));
    float *O = cgam_alloc(env, (size_t)(d * H * size), sizeof *O);
    if (!O) return cgam_fail_nomem(env, "an output projection");
    cgam_weights_get(&w, 0, d, O);
    for (int64_t h = 0; h < H; h++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)count, (int)d, (int)size, 1,
                    heads + h * size, (int)(H * size), O + h * size, (int)(H * size), 0,
                    out + h * d, (int)(H * d));
    cgam_free(env, O);
    return CGAM_OK;
}
