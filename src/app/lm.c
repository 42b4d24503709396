/* lm.c: the model that a verb was asked to use. */
#include "app/lm.h"

#include "base/env.h"
#include "io/file.h"

cgam_status cgam_input_lm(cgam_call *call, cgam_lm **out)
{
    *out = NULL;
    const char *given = cgam_args_text(call->args, "model");
    char path[1024];
    if (given) return cgam_lm_open(call->env, given, out);
    cgam_status status = cgam_lm_model_path(call->env, path, sizeof path);
    if (status == CGAM_OK && !cgam_file_exists(path))
        status = cgam_fail(call->env, CGAM_E_NOT_FOUND,
                           "the default model is not in the cache; fetch it with: cgam lm get, or "
                           "name another with --model");
    return status == CGAM_OK ? cgam_lm_open(call->env, path, out) : status;
}

void cgam_put_lm(json_t *doc, const cgam_lm *lm)
{
    cgam_lm_info info = cgam_lm_describe(lm);
    json_t *model = json_object();
    cgam_json_put_text(model, "name", info.name);
    cgam_json_put_text(model, "architecture", info.architecture);
    cgam_json_put_text(model, "description", info.description);
    cgam_json_put_int(model, "layers", info.layers);
    cgam_json_put_int(model, "width", info.width);
    cgam_json_put_int(model, "vocab", info.vocab);
    cgam_json_put_int(model, "context", info.context);
    cgam_json_put_int(model, "parameters", info.parameters);
    cgam_json_put_bool(model, "tied", info.tied);
    cgam_json_put(doc, "model", model);
}
