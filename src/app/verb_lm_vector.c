/* verb_lm_vector.c: vectors of all layers, from data, from contrasts, from other vectors. */
#include "app/lm.h"
#include "app/verbs.h"
#include "io/file.h"
#include "lab/language/vector_make.h"
#include "lm/collect.h"
#include "lm/vector.h"

#include <cgam/lm.h>

static const cgam_param params[] = {
    CGAM_PARAMS_LM(false),
    CGAM_PARAM_TEXT("contrast", "FILE",
                    "pairs of texts instead of data, one text<TAB>opposite per line",
                    .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_CHOICE(
        "kind", "mean|pca|pca-centred", "mean",
        "with --contrast: the mean difference, or the first principal component of the "
        "differences (pca: as they are; pca-centred: minus their mean)"),
    CGAM_PARAM_TEXT(
        "from", "FILE[:X],FILE[:X],..",
        "instead of using data, sum the vectors in these files, each multiplied by its factor X",
        .input = CGAM_INPUT_NUMBERS),
    CGAM_PARAM_TEXT("out", "FILE", "vector to write: .gguf, .npy or .safetensors", .required = true,
                    .writes = true),
    CGAM_PARAM_END,
};

static cgam_status from_data(cgam_call *call, const cgam_lm_study_opts *opts, cgam_vector **out,
                             char *hint, size_t size)
{
    cgam_lm_study *study;
    cgam_status status = cgam_lm_study_of(call, opts, &study);
    if (status != CGAM_OK) return status;
    status = cgam_vector_effect(study, out);
    snprintf(hint, size, "%s", study->info.architecture);
    cgam_json_put_text(call->doc, "made_from", "effect");
    cgam_put_lm(call->doc, study->lm);
    cgam_json_add(call->doc, "dataset=%s shots=%jd queries=%jd", study->task.name,
                  study->shots[study->n_shots - 1], study->task.queries);
    cgam_lm_study_done(call, study);
    return status;
}

static cgam_status from_contrast(cgam_call *call, const cgam_lm_study_opts *opts, cgam_vector **out,
                                 char *hint, size_t size)
{
    cgam_lm *lm;
    int64_t pairs = 0;
    cgam_contrast_opts o = cgam_contrast_opts_default();
    o.kind =
        (cgam_contrast_kind)cgam_word_find(cgam_contrast_words, cgam_args_text(call->args, "kind"));
    o.collect.capture.exact = opts->exact;
    o.collect.capture.progress = opts->progress;
    o.collect.dtype = opts->dtype;
    o.collect.note = "contrast";
    cgam_status status = cgam_lm_of(call, &lm);
    if (status != CGAM_OK) return status;
    if (opts->store) status = cgam_store_open(call->env, opts->store, true, &o.store);
    if (status == CGAM_OK)
        status =
            cgam_vector_contrast_file(lm, cgam_args_text(call->args, "contrast"), &o, out, &pairs);
    snprintf(hint, size, "%s", cgam_lm_describe(lm).architecture);
    cgam_json_add(call->doc, "made_from=%s kind=%s", "contrast",
                  cgam_word(cgam_contrast_words, o.kind));
    cgam_put_lm(call->doc, lm);
    cgam_json_put_int(call->doc, "pairs", pairs);
    cgam_store_close(o.store);
    cgam_lm_done(call, lm);
    return status;
}

static cgam_status save_vector(cgam_call *call, const cgam_vector *v, const char *hint)
{
    int left_out;
    const char *path = cgam_args_text(call->args, "out");
    cgam_status status = cgam_vector_write(v, path, hint[0] ? hint : NULL, &left_out);
    if (status != CGAM_OK) return status;
    json_t *norms = json_array();
    for (int64_t l = 0; l < cgam_vector_rows(v); l++)
        json_array_append_new(norms, cgam_json_real(cgam_vector_norm(v, l)));
    cgam_json_add(call->doc, "width=%jd layers=%p norms=%p left_out=%d saved=%s",
                  cgam_vector_width(v), cgam_json_ints(NULL, cgam_vector_rows(v)), norms, left_out,
                  path);
    return CGAM_OK;
}

static cgam_status make_vector(cgam_call *call)
{
    cgam_line line;
    cgam_vector *v = NULL;
    char hint[32] = "";
    cgam_lm_study_opts opts = cgam_lm_opts(call, &line);
    const char *from = cgam_args_text(call->args, "from"),
               *path = cgam_args_text(call->args, "out");
    bool contrast = cgam_args_given(call->args, "contrast");
    if (cgam_args_given(call->args, "kind") && !contrast)
        return cgam_fail(call->env, CGAM_E_ARG, "kind requires contrast");
    if ((from != NULL) + contrast + (opts.dataset || opts.eval || opts.train) > 1)
        return cgam_fail(call->env, CGAM_E_ARG, "give contrast, from or data, only one of them");
    if (!cgam_path_ends(path, ".gguf") && !cgam_path_ends(path, ".npy") &&
        !cgam_path_ends(path, ".safetensors"))
        return cgam_fail(call->env, CGAM_E_ARG, "out: %s must end in .gguf, .npy or .safetensors",
                         cgam_path_tail(path));
    cgam_status status;
    if (from) {
        status = cgam_vector_from(call->env, from, &v);
        cgam_json_put_text(call->doc, "made_from", "sum");
    } else if (contrast) status = from_contrast(call, &opts, &v, hint, sizeof hint);
    else status = from_data(call, &opts, &v, hint, sizeof hint);
    cgam_line_clear(&line);
    if (status == CGAM_OK) status = save_vector(call, v, hint);
    cgam_vector_free(v);
    return status;
}

const cgam_verb cgam_verb_lm_vector = {
    .name = "lm vector",
    .params = params,
    .run = make_vector,
};
