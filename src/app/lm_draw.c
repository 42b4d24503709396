/* lm_draw.c: from a document and its tables to pictures. */
#include "app/lm_draw.h"

#include "base/env.h"

#include <string.h>

cgam_status cgam_lm_draw(cgam_call *call, cgam_models_part part)
{
    const char *out = cgam_args_text(call->args, "out");
    if (!out || strcmp(cgam_args_text(call->args, "figures"), "yes") != 0) return CGAM_OK;
    cgam_figures *figures = cgam_zalloc(call->env, 1, sizeof *figures);
    if (!figures) return cgam_fail_nomem(call->env, "figures");
    bool missing = false;
    cgam_status status = cgam_models_figures_write(call->env, part, call->doc, out, figures);
    if (status == CGAM_OK) status = cgam_figures_draw(call->env, out, figures, &missing);
    json_t *names = json_array();
    for (int i = 0; i < figures->count && !missing; i++)
        json_array_append_new(names, json_string(figures->figure[i].name));
    cgam_json_put(call->doc, "figures", names);
    if (missing) cgam_json_put_text(call->doc, "figures_missing", "gnuplot was not found");
    cgam_free(call->env, figures);
    return status;
}
