/* verb_lm_bank.c: writes a model's unembedding as a bank file, and reports what the theory says about it. */
#include "app/lm.h"
#include "app/verbs.h"
#include "io/array.h"
#include "io/file.h"
#include "lm/model.h"
#include "memory/bank.h"
#include "memory/fields.h"
#include "memory/gate.h"

static const cgam_param params[] = {
    CGAM_PARAM_LM_MODEL,
    CGAM_PARAM_TEXT("out", "FILE", "bank to write: .safetensors (arrays Z and norm) or .npy (Z)",
                    .required = true, .writes = true),
    CGAM_PARAM_CHOICE("lens", "raw|gain", "raw",
                      "rows unchanged, or multiplied by the weights of the final norm"),
    CGAM_PARAM_LM_DTYPE("type of the stored rows"),
    CGAM_PARAM_FLAG("no-inspect", "write the bank without computing its spectrum"),
    CGAM_PARAM_END,
};

static cgam_status put_spectrum(cgam_call *call, const cgam_bank *bank)
{
    cgam_gram_info gram;
    cgam_critical critical;
    cgam_bank_info b = cgam_bank_describe(bank);
    cgam_status status = cgam_bank_gram(bank, &gram);
    if (status == CGAM_OK) status = cgam_gate_critical(bank, CGAM_EFFORT_FULL, &critical);
    if (status != CGAM_OK) return status;
    cgam_fields_put_some(call->doc, "norm_min norm_max zero_memories", cgam_bank_info_rows, &b);
    cgam_fields_put(call->doc, cgam_gram_info_rows, &gram, 0);
    cgam_json_put_real(call->doc, "alpha_crit", critical.alpha);
    return CGAM_OK;
}

/* gain NULL: the model has no final norm of a known kind. */
static cgam_status write_bank(cgam_env *env, const char *path, const cgam_bank *bank,
                              const float *gain)
{
    const int64_t shape[] = {bank->info.n, bank->info.d};
    if (cgam_path_ends(path, ".npy"))
        return cgam_npy_write(env, path, bank->info.dtype, 2, shape, bank->Z.data);
    const cgam_named_array arrays[] = {{"Z", bank->info.dtype, 2, shape, bank->Z.data},
                                       {"norm", CGAM_F32, 1, shape + 1, gain}};
    return cgam_arrays_write(env, path, gain ? 2 : 1, arrays);
}

static cgam_status put_bank(cgam_call *call, cgam_lm *lm, const cgam_bank *bank, float *gain)
{
    const char *path = cgam_args_text(call->args, "out");
    cgam_bank_info b = cgam_bank_describe(bank);
    cgam_lm_norm norm;
    bool has_norm = cgam_lm_final_norm(lm, gain, gain + b.d, &norm) == CGAM_OK;
    cgam_status status = write_bank(call->env, path, bank, has_norm ? gain : NULL);
    if (status != CGAM_OK) return status;
    cgam_put_lm(call->doc, lm);
    cgam_json_put_text(call->doc, "bank", path);
    cgam_args_put(call->args, "lens", call->doc);
    cgam_fields_put_some(call->doc, "dtype n d", cgam_bank_info_rows, &b);
    cgam_json_add(call->doc, "tied?=%d norm_epsilon=%g", cgam_lm_describe(lm).tied,
                  has_norm ? norm.epsilon : (double)NAN);
    if (has_norm) {
        cgam_json_add(call->doc, "norm=%s norm_bias?=%d", norm.centred ? "layer" : "rms",
                      norm.biased);
    }
    return cgam_args_flag(call->args, "no-inspect") ? CGAM_OK : put_spectrum(call, bank);
}

static cgam_status write_model_bank(cgam_call *call)
{
    cgam_lm *lm;
    cgam_bank *bank = NULL;
    cgam_status status = cgam_lm_of(call, &lm);
    if (status != CGAM_OK) return status;
    int lens = cgam_word_find(cgam_lens_words, cgam_args_text(call->args, "lens"));
    int dtype = cgam_word_find(cgam_dtype_words, cgam_args_text(call->args, "dtype"));
    float *gain = cgam_alloc(call->env, 2 * (size_t)cgam_lm_describe(lm).width, sizeof *gain);
    status = gain ? cgam_lm_bank(lm, (cgam_lens_kind)lens, (cgam_dtype)dtype, &bank)
                  : cgam_fail_nomem(call->env, "a norm");
    if (status == CGAM_OK) status = put_bank(call, lm, bank, gain);
    cgam_bank_free(bank);
    cgam_free(call->env, gain);
    cgam_lm_done(call, lm);
    return status;
}

const cgam_verb cgam_verb_lm_bank = {
    .name = "lm bank",
    .params = params,
    .run = write_model_bank,
};
