/* verb_lm_heads.c: function vectors: the heads that carry a task, and the sum of what they add. */
#include "app/lm.h"
#include "app/verbs.h"
#include "io/file.h"
#include "lm/vector.h"

static const cgam_param params[] = {
    CGAM_PARAMS_LM(false),
    CGAM_PARAM_INT("top", "K", "10", 1, 1e6, "heads whose mean outputs are summed"),
    CGAM_PARAM_TEXT("out", "FILE", "vector to write: .gguf, .npy or .safetensors", .writes = true),
    CGAM_PARAM_END,
};

static cgam_status find_heads(cgam_call *call)
{
    cgam_line line;
    cgam_lm_study *study = NULL;
    cgam_vector *v = NULL;
    cgam_lm_heads_opts o = cgam_lm_heads_opts_default();
    cgam_lm_study_opts opts = cgam_lm_opts(call, &line);
    const char *path = cgam_args_text(call->args, "out");
    o.top = cgam_args_int(call->args, "top");
    if (path && !cgam_path_ends(path, ".gguf") && !cgam_path_ends(path, ".npy") &&
        !cgam_path_ends(path, ".safetensors"))
        return cgam_fail(call->env, CGAM_E_ARG, "out: %s must end in .gguf, .npy or .safetensors",
                         cgam_path_tail(path));
    cgam_status status = cgam_lm_study_of(call, &opts, &study);
    if (status == CGAM_OK) {
        cgam_put_lm(call->doc, study->lm);
        cgam_json_put_text(call->doc, "dataset", study->task.name);
        status = cgam_lm_heads(study, &o, call->doc, &v);
    }
    if (status == CGAM_OK && path)
        status = cgam_vector_write(v, path, study->info.architecture, NULL);
    cgam_line_clear(&line);
    if (status == CGAM_OK) {
        int64_t layer = cgam_json_get_int(call->doc, "layer");
        cgam_json_add(call->doc, "norm=%g saved=%s", cgam_vector_norm(v, layer), path);
    }
    cgam_vector_free(v);
    cgam_lm_study_done(call, study);
    return status;
}

const cgam_verb cgam_verb_lm_heads = {
    .name = "lm heads",
    .params = params,
    .run = find_heads,
};
