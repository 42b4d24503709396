/* verb_lm_bank.c: a model's unembedding as a bank file, and what the theory says of it. */
#include "app/lm.h"
#include "app/verbs.h"
#include "io/file.h"
#include "memory/bank.h"

static const cgam_param params[] = {
    CGAM_PARAM_LM_MODEL,
    CGAM_PARAM_TEXT("out", "FILE", "bank to write: .safetensors (arrays Z and norm) or .npy (Z)",
                    .required = true, .writes = true),
    CGAM_PARAM_CHOICE("lens", "raw|gain", "raw",
                      "rows as they are, or times the weights of the final norm"),
    CGAM_PARAM_LM_DTYPE("how the rows are stored"),
    CGAM_PARAM_FLAG("no-inspect", "write the bank, skip its spectrum"),
    CGAM_PARAM_END,
};

static cgam_status inspect(cgam_call *call, const cgam_bank *bank)
{
    cgam_gram_info gram;
    cgam_critical critical;
    cgam_bank_info b = cgam_bank_describe(bank);
    cgam_status status = cgam_bank_gram(bank, &gram);
    if (status == CGAM_OK) status = cgam_gate_critical(bank, CGAM_EFFORT_FULL, &critical);
    if (status != CGAM_OK) return status;
    cgam_json_put_real(call->doc, "norm_min", b.norm_min);
    cgam_json_put_real(call->doc, "norm_max", b.norm_max);
    cgam_json_put_int(call->doc, "zero_memories", b.zero_rows);
    cgam_json_put_real(call->doc, "mu_min", gram.mu_min);
    cgam_json_put_real(call->doc, "mu_max", gram.mu_max);
    cgam_json_put_int(call->doc, "rank", gram.rank);
    cgam_json_put_real(call->doc, "alpha_crit", critical.alpha);
    return CGAM_OK;
}

/* gain NULL: there is no final norm of a kind that is known. */
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

static cgam_status fill(cgam_call *call, cgam_lm *lm, const cgam_bank *bank, float *gain)
{
    const char *path = cgam_args_text(call->args, "out");
    cgam_bank_info b = cgam_bank_describe(bank);
    cgam_lm_norm norm;
    bool has_norm = cgam_lm_final_norm(lm, gain, gain + b.d, &norm) == CGAM_OK;
    cgam_status status = write_bank(call->env, path, bank, has_norm ? gain : NULL);
    if (status != CGAM_OK) return status;
    cgam_put_lm(call->doc, lm);
    cgam_json_put_text(call->doc, "bank", path);
    cgam_json_put_text(call->doc, "lens", cgam_args_text(call->args, "lens"));
    cgam_json_put_text(call->doc, "dtype", cgam_dtype_name(b.dtype));
    cgam_json_put_int(call->doc, "n", b.n);
    cgam_json_put_int(call->doc, "d", b.d);
    cgam_json_put_bool(call->doc, "tied", cgam_lm_describe(lm).tied);
    cgam_json_put_real(call->doc, "norm_epsilon", has_norm ? norm.epsilon : (double)NAN);
    if (has_norm) {
        cgam_json_put_text(call->doc, "norm", norm.centred ? "layer" : "rms");
        cgam_json_put_bool(call->doc, "norm_bias", norm.biased);
    }
    return cgam_args_flag(call->args, "no-inspect") ? CGAM_OK : inspect(call, bank);
}

static cgam_status run(cgam_call *call)
{
    cgam_lm *lm;
    cgam_bank *bank = NULL;
    cgam_lens_kind lens = CGAM_LENS_RAW;
    cgam_dtype dtype = CGAM_F32;
    cgam_status status = cgam_lm_of(call, &lm);
    if (status != CGAM_OK) return status;
    cgam_lens_kind_find(cgam_args_text(call->args, "lens"), &lens);
    cgam_dtype_find(cgam_args_text(call->args, "dtype"), &dtype);
    float *gain = cgam_alloc(call->env, 2 * (size_t)cgam_lm_describe(lm).width, sizeof *gain);
    status = gain ? cgam_lm_bank(lm, lens, dtype, &bank) : cgam_fail_nomem(call->env, "a norm");
    if (status == CGAM_OK) status = fill(call, lm, bank, gain);
    cgam_bank_free(bank);
    cgam_free(call->env, gain);
    cgam_lm_done(call, lm);
    return status;
}

static void print(const json_t *doc, FILE *to)
{
    fprintf(to, "%s: %lld words in %lld dimensions as %s, %s rows%s\n",
            cgam_json_get_text(doc, "bank"), (long long)cgam_json_get_int(doc, "n"),
            (long long)cgam_json_get_int(doc, "d"), cgam_json_get_text(doc, "dtype"),
            cgam_json_get_text(doc, "lens"),
            json_is_true(json_object_get(doc, "tied")) ? ", tied to the embedding" : "");
    if (!json_object_get(doc, "mu_max")) return;
    fprintf(to, "\n  %-12s %-14.9g shortest row, longest %.9g\n", "norm_min",
            cgam_json_get_real(doc, "norm_min"), cgam_json_get_real(doc, "norm_max"));
    fprintf(to, "  %-12s %-14.9g largest eigenvalue of the Gram matrix\n", "mu_max",
            cgam_json_get_real(doc, "mu_max"));
    fprintf(to, "  %-12s %-14lld independent directions\n", "rank",
            (long long)cgam_json_get_int(doc, "rank"));
    fprintf(to, "  %-12s %-14.9g penalty at which the gates turn critical\n", "alpha_crit",
            cgam_json_get_real(doc, "alpha_crit"));
}

const cgam_verb cgam_verb_lm_bank = {
    .name = "lm bank",
    .summary = "write a model's unembedding as a bank of memories",
    .about = "Reads the unembedding (tied or not, any quantisation) and the final norm from the "
             "GGUF file and writes them as a bank that recall and inspect take. Then it tells "
             "what `inspect` says of such a bank: the spectrum is heavily skewed, so the range of "
             "penalties alpha with stable gates is what alpha_crit shows.",
    .example = "cgam lm bank --out words.safetensors",
    .params = params,
    .run = run,
    .print = print,
};
