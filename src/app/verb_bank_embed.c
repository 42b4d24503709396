/* verb_bank_embed.c: texts become vectors by a model, and these a packed bank whose names are the texts. */
#include "app/key.h"
#include "app/lm.h"
#include "app/verbs.h"
#include "base/alloc.h"
#include "lm/prompt_file.h"
#include "memory/fields.h"
#include "memory/pack_write.h"

static const cgam_param params[] = {
    CGAM_PARAM_TEXT("texts", "FILE",
                    "texts, one per line, or JSON lines with \"prompt\"; - for standard input",
                    .required = true, .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_LM_MODEL,
    CGAM_PARAM_EMBED_LAYER,
    CGAM_PARAM_EMBED_POOL,
    CGAM_PARAM_NORMALIZE,
    CGAM_PARAM_CHOICE("sketch", "yes|no", "yes", "keep the int8 sketch that recall --fast scans"),
    CGAM_PARAM_TEXT("out", "FILE.safetensors", "the bank to write", .required = true,
                    .writes = true),
    CGAM_PARAM_END,
};

/* The texts as names, which have one line each. The texts belong to the file. */
static cgam_status list_texts(cgam_env *env, const char *name, const cgam_prompt_file *file,
                              const char **list)
{
    for (int64_t i = 0; i < cgam_prompt_file_count(file); i++) {
        cgam_prompt_line line = cgam_prompt_file_get(file, i);
        list[i] = line.text;
        if (strpbrk(line.text, "\r\n"))
            return cgam_fail(env, CGAM_E_FORMAT,
                             "%s:%lld: a text of several lines cannot be a name",
                             cgam_file_name(name), (long long)line.line);
    }
    return CGAM_OK;
}

/* Takes the names. */
static cgam_status write_bank(cgam_call *call, int64_t n, int64_t d, const float *rows,
                              const char **names)
{
    cgam_pack_job job = {.env = call->env,
                         .path = cgam_args_text(call->args, "out"),
                         .from = cgam_args_text(call->args, "texts"),
                         .dtype = CGAM_F32,
                         .normalize = cgam_args_flag(call->args, "normalize"),
                         .sketch = cgam_args_is(call->args, "sketch", "yes"),
                         .n = n,
                         .d = d,
                         .name = names};
    cgam_status status = cgam_pack_job_rows(&job, rows, CGAM_F32, n);
    if (status == CGAM_OK) status = cgam_pack_job_write(&job);
    cgam_pack_job_free(&job);
    return status;
}

static cgam_status embed_texts(cgam_call *call, cgam_lm *lm, const cgam_prompt_file *file)
{
    cgam_env *env = call->env;
    int64_t n = cgam_prompt_file_count(file), d = cgam_lm_describe(lm).width;
    cgam_line line;
    const char **names = NULL;
    float *rows = NULL;
    cgam_embed_opts opts = cgam_embed_opts_default();
    if (cgam_args_given(call->args, "layer")) opts.layer = cgam_args_int(call->args, "layer");
    opts.pool = (cgam_pool)cgam_args_choice(call->args, "pool");
    opts.progress = cgam_line_begin(&line, call->progress);
    cgam_status status =
        cgam_alloc_all(env, "texts", CGAM_ARRAY(names, n), CGAM_ARRAY(rows, n * d));
    if (status == CGAM_OK)
        status = list_texts(env, cgam_args_text(call->args, "texts"), file, names);
    if (status == CGAM_OK) status = cgam_lm_embed(lm, n, names, &opts, rows);
    cgam_line_clear(&line);
    if (status == CGAM_OK) {
        status = write_bank(call, n, d, rows, names);
        names = NULL;
    }
    cgam_put_lm(call->doc, lm);
    cgam_json_add(call->doc, "layer=%jd pool=%s",
                  opts.layer < 0 ? cgam_lm_describe(lm).layers : opts.layer,
                  cgam_word(cgam_pool_words, opts.pool));
    cgam_free_all(env, (void *)(uintptr_t)names, rows);
    return status;
}

/* Puts what the file now holds. */
static cgam_status put_file(cgam_call *call)
{
    const char *path = cgam_args_text(call->args, "out");
    cgam_bank *bank;
    cgam_status status = cgam_bank_load(call->env, path, NULL, &bank);
    if (status != CGAM_OK) return status;
    cgam_bank_info info = cgam_bank_describe(bank);
    cgam_pack_info pack = cgam_pack_describe(bank);
    cgam_json_put_text(call->doc, "bank", path);
    cgam_fields_put_some(call->doc, "n=whole live=n d dtype", cgam_bank_info_rows, &info);
    cgam_fields_put(call->doc, cgam_pack_info_rows, &pack, 0);
    cgam_bank_free(bank);
    return CGAM_OK;
}

static cgam_status embed_bank(cgam_call *call)
{
    const char *out = cgam_args_text(call->args, "out");
    cgam_prompt_file *file = NULL;
    cgam_lm *lm = NULL;
    if (!cgam_path_ends(out, ".safetensors"))
        return cgam_fail(call->env, CGAM_E_ARG, "out is %s; a packed bank must end in .safetensors",
                         cgam_path_tail(out));
    cgam_status status =
        cgam_prompt_file_open(call->env, cgam_args_text(call->args, "texts"), &file);
    if (status == CGAM_OK) status = cgam_lm_of(call, &lm);
    if (status == CGAM_OK) status = embed_texts(call, lm, file);
    cgam_lm_done(call, lm);
    cgam_prompt_file_close(file);
    return status == CGAM_OK ? put_file(call) : status;
}

const cgam_verb cgam_verb_bank_embed = {
    .name = "bank embed",
    .text = "bank",
    .params = params,
    .run = embed_bank,
};
