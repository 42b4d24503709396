/* verb_lm_bank.c: a model's unembedding as a bank file, and what the theory says of it. */
#include "app/lm.h"
#include "app/lm_bar.h"
#include "app/verbs.h"
#include "base/env.h"
#include "io/file.h"
#include "num/cpu/widen.h"

#include <math.h>

static const cgam_param params[] = {
    {.name = "model", .kind = CGAM_TEXT, .value = "FILE", .help = CGAM_HELP_MODEL},
    {.name = "out",
     .kind = CGAM_TEXT,
     .value = "FILE",
     .required = true,
     .help = "bank to write: .safetensors (arrays Z and norm) or .npy (Z)"},
    {.name = "lens",
     .kind = CGAM_CHOICE,
     .value = "raw|gain",
     .fallback = "raw",
     .help = "rows as they are, or times the weights of the final norm"},
    {.name = "dtype",
     .kind = CGAM_CHOICE,
     .value = "f32|f16|bf16",
     .fallback = "f32",
     .help = "how the rows are stored"},
    {.name = "no-inspect", .kind = CGAM_FLAG, .help = "write the bank, skip its spectrum"},
    {.name = ""},
};

static cgam_dtype dtype_named(const char *name)
{
    cgam_dtype dtype = CGAM_F64;
    for (int i = CGAM_F64; i <= CGAM_BF16; i++)
        if (strcmp(cgam_dtype_name((cgam_dtype)i), name) == 0) dtype = (cgam_dtype)i;
    return dtype;
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

static cgam_status write_bank(cgam_call *call, const char *path, const float *Z, cgam_dtype dtype,
                              const float *gain, const cgam_lm_info *info)
{
    const int64_t shape[] = {info->vocab, info->width};
    if (cgam_path_ends(path, ".npy")) return cgam_npy_write(call->env, path, dtype, 2, shape, Z);
    const cgam_named_array arrays[] = {{"Z", dtype, 2, shape, Z},
                                       {"norm", CGAM_F32, 1, shape + 1, gain}};
    return cgam_arrays_write(call->env, path, gain ? 2 : 1, arrays);
}

static cgam_status inspect(cgam_call *call, const void *Z, cgam_dtype dtype,
                           const cgam_lm_info *info)
{
    cgam_bank *bank;
    cgam_gram_info gram;
    cgam_critical critical;
    cgam_status status = cgam_bank_new(call->env, Z, dtype, info->vocab, info->width, NULL, &bank);
    if (status != CGAM_OK) return status;
    cgam_bank_info b = cgam_bank_describe(bank);
    status = cgam_bank_gram(bank, &gram);
    if (status == CGAM_OK) status = cgam_gate_critical(bank, CGAM_EFFORT_FULL, &critical);
    if (status == CGAM_OK) {
        cgam_json_put_real(call->doc, "norm_min", b.norm_min);
        cgam_json_put_real(call->doc, "norm_max", b.norm_max);
        cgam_json_put_int(call->doc, "zero_memories", b.zero_rows);
        cgam_json_put_real(call->doc, "mu_min", gram.mu_min);
        cgam_json_put_real(call->doc, "mu_max", gram.mu_max);
        cgam_json_put_int(call->doc, "rank", gram.rank);
        cgam_json_put_real(call->doc, "alpha_crit", critical.alpha);
    }
    cgam_bank_free(bank);
    return status;
}

static cgam_status fill(cgam_call *call, cgam_lm *lm, float *Z, float *gain, float *bias)
{
    cgam_env *env = call->env;
    cgam_lm_info info = cgam_lm_describe(lm);
    const char *path = cgam_args_text(call->args, "out");
    cgam_dtype dtype = dtype_named(cgam_args_text(call->args, "dtype"));
    bool lens_gain = strcmp(cgam_args_text(call->args, "lens"), "gain") == 0;
    cgam_lm_norm norm;
    cgam_status status = cgam_lm_unembedding(lm, Z);
    bool has_norm = cgam_lm_final_norm(lm, gain, bias, &norm) == CGAM_OK;
    if (status == CGAM_OK && lens_gain && !has_norm)
        return cgam_lm_final_norm(lm, gain, bias, &norm);
    for (int64_t i = 0; status == CGAM_OK && lens_gain && i < info.vocab; i++) {
        float *row = Z + i * info.width;
        double sum = 0;
        for (int64_t j = 0; j < info.width; j++) sum += (double)(row[j] *= gain[j]);
        /* a layer norm takes the mean off the state; it can as well be taken off the row */
        for (int64_t j = 0; j < info.width && norm.centred; j++)
            row[j] -= (float)(sum / (double)info.width);
    }
    if (status == CGAM_OK) status = narrow(env, Z, info.vocab, info.width, dtype);
    if (status == CGAM_OK) status = write_bank(call, path, Z, dtype, has_norm ? gain : NULL, &info);
    if (status != CGAM_OK) return status;
    cgam_put_lm(call->doc, lm);
    cgam_json_put_text(call->doc, "bank", path);
    cgam_json_put_text(call->doc, "lens", lens_gain ? "gain" : "raw");
    cgam_json_put_text(call->doc, "dtype", cgam_dtype_name(dtype));
    cgam_json_put_int(call->doc, "n", info.vocab);
    cgam_json_put_int(call->doc, "d", info.width);
    cgam_json_put_bool(call->doc, "tied", info.tied);
    cgam_json_put_real(call->doc, "norm_epsilon", has_norm ? norm.epsilon : (double)NAN);
    if (has_norm) {
        cgam_json_put_text(call->doc, "norm", norm.centred ? "layer" : "rms");
        cgam_json_put_bool(call->doc, "norm_bias", norm.biased);
    }
    return cgam_args_flag(call->args, "no-inspect") ? CGAM_OK : inspect(call, Z, dtype, &info);
}

static cgam_status run(cgam_call *call)
{
    cgam_lm *lm;
    cgam_status status = cgam_input_lm(call, &lm);
    if (status != CGAM_OK) return status;
    cgam_lm_info info = cgam_lm_describe(lm);
    float *Z = cgam_alloc(call->env, (size_t)(info.vocab * info.width), sizeof *Z);
    float *gain = cgam_alloc(call->env, (size_t)info.width, sizeof *gain);
    float *bias = cgam_alloc(call->env, (size_t)info.width, sizeof *bias);
    status = Z && gain && bias ? fill(call, lm, Z, gain, bias)
                               : cgam_fail_nomem(call->env, "the unembedding");
    cgam_free(call->env, bias);
    cgam_free(call->env, Z);
    cgam_free(call->env, gain);
    cgam_lm_close(lm);
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
