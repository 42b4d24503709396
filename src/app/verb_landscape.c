/* verb_landscape.c: all fixed points of a coupled recall that can be found. */
#include "app/input.h"
#include "app/progress.h"
#include "app/verbs.h"
#include "base/env.h"
#include "lab/figures/picture.h"
#include "lab/folder.h"
#include "memory/fields.h"

#include <cgam/recall.h>
#include <string.h>

enum { SQUARES = 3 }; /* a lower bound of what certificates take at alpha > 0 */

static const cgam_param params[] = {
    CGAM_PARAM_BANK,
    CGAM_PARAM_TEXT("query", "FILE[:NAME]", "one query (d), or rows:7*0.5+23", .required = true,
                    .input = CGAM_INPUT_VECTORS),
    CGAM_PARAM_TEXT("context", "FILE[:NAME]", "one context (d), or rows:..; default: c = 0",
                    .input = CGAM_INPUT_VECTORS),
    CGAM_ROW_OF(cgam_recall_opts_rows, "lambda"),
    CGAM_ROW_OF(cgam_recall_opts_rows, "alpha"),
    CGAM_ROW_OF(cgam_recall_opts_rows, "beta"),
    CGAM_PARAM_NORMALIZE,
    CGAM_ROW_OF(cgam_landscape_opts_rows, "starts"),
    CGAM_ROW_OF(cgam_landscape_opts_rows, "seed"),
    CGAM_PARAM_OUT(
        NULL, "write landscape.json, landscape.csv and the figure here; given a context, also the "
              "landscape without it"),
    CGAM_PARAM_FIGURES("draw the figure beside the table (SVG, PNG, PDF; needs gnuplot)"),
    CGAM_PARAM_END,
};

static void put_landscape(cgam_call *call, const cgam_landscape *x, bool context)
{
    cgam_args_put(call->args, "alpha beta lambda", call->doc);
    cgam_json_put_bool(call->doc, "context", context);
    cgam_fields_put(call->doc, cgam_landscape_rows, x, 0);
    cgam_json_put(call->doc, "points",
                  cgam_fields_list(cgam_point_rows, x->points, x->count, sizeof *x->points));
    call->negative = x->unresolved > 0;
}

/* Makes a plan; an error names the option that caused it. */
static cgam_status plan_for(cgam_env *env, const cgam_bank *bank, const cgam_recall_opts *o,
                            cgam_recall **plan)
{
    static const char who[] = "mode coupled ";
    char said[512];
    cgam_status status = cgam_recall_new(bank, o, plan);
    if (status == CGAM_OK) return status;
    snprintf(said, sizeof said, "%s", cgam_env_message(env));
    if (strncmp(said, who, strlen(who)) != 0) return status;
    return cgam_fail(env, status, "a landscape %s", said + strlen(who));
}

static cgam_status find_points(cgam_call *call, const cgam_bank *bank, const double *q,
                               const double *c, const char *out)
{
    cgam_recall_opts o = cgam_recall_opts_default();
    cgam_landscape_opts opts = {.starts = 0};
    cgam_landscape both[2] = {{0}, {0}}; /* without and under the context */
    cgam_recall *plan = NULL;
    cgam_line line;
    o.mode = CGAM_COUPLED;
    o.certify = true;
    cgam_args_fill(call->args, cgam_recall_opts_rows, &o);
    cgam_args_fill(call->args, cgam_landscape_opts_rows, &opts);
    cgam_status status = out ? cgam_folder_make(call->env, out) : CGAM_OK;
    if (status == CGAM_OK) status = plan_for(call->env, bank, &o, &plan);
    opts.progress = cgam_line_begin(&line, call->progress);
    if (status == CGAM_OK && c) status = cgam_landscape_find(plan, q, c, &opts, &both[1]);
    if (status == CGAM_OK && (!c || out))
        status = cgam_landscape_find(plan, q, NULL, &opts, &both[0]);
    cgam_line_clear(&line);
    if (status == CGAM_OK) put_landscape(call, &both[c != NULL], c != NULL);
    if (status == CGAM_OK && out) status = cgam_landscape_table_write(call->env, out, both);
    if (status == CGAM_OK && out)
        status = cgam_picture_leave(
            call->env, call->doc, out, "landscape", cgam_args_is(call->args, "figures", "yes"),
            cgam_landscape_figures_write, json_pack("[s]", "landscape.csv"));
    for (int side = 0; side < 2; side++) cgam_landscape_free(call->env, &both[side]);
    cgam_recall_free(plan);
    return status;
}

static cgam_status run_landscape(cgam_call *call)
{
    cgam_bank *bank = NULL;
    cgam_matrix q = {0}, c = {0};
    cgam_status status = cgam_input_bank(call, &bank);
    double squares = cgam_args_real(call->args, "alpha") > 0 ? SQUARES : 0;
    if (status == CGAM_OK) status = cgam_input_expect(call, bank, squares, 0);
    if (status == CGAM_OK) status = cgam_input_option(call, bank, "query", true, &q);
    if (status == CGAM_OK) status = cgam_input_option(call, bank, "context", true, &c);
    if (status == CGAM_OK)
        status = find_points(call, bank, q.data, c.data, cgam_args_text(call->args, "out"));
    cgam_free(call->env, q.data);
    cgam_free(call->env, c.data);
    cgam_input_bank_done(call, bank);
    return status;
}

const cgam_verb cgam_verb_landscape = {
    .name = "landscape",
    .params = params,
    .run = run_landscape,
};
