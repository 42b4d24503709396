/* verb_lm_inject.c: contexts injected into the model, beside the readout and their controls. */
#include "app/lm.h"
#include "app/verbs.h"
#include "lab/folder.h"
#include "lab/table.h"

static const cgam_param params[] = {
    CGAM_PARAMS_LM(false),
    CGAM_PARAM_TEXT("suite", "shipped|DIR",
                    "all shipped tasks, or all files of pairs in a folder, instead of data"),
    CGAM_ROWS_OF(cgam_lm_inject_opts_rows),
    CGAM_PARAM_OUT(NULL, "write inject.json, inject.csv and figures here"),
    CGAM_PARAM_LM_REPORT,
    CGAM_PARAM_LM_FIGURES,
    CGAM_PARAM_END,
};

static cgam_lm_inject_opts read_options(const cgam_args *args)
{
    cgam_lm_inject_opts opts = cgam_lm_inject_opts_default();
    cgam_args_fill(args, cgam_lm_inject_opts_rows, &opts);
    cgam_lm_leave_out(args, "kinds", "add", &opts.no_add, &opts.no_replace);
    return opts;
}

static cgam_status inject(cgam_lm_study *study, const cgam_args *args, cgam_lm_result **out)
{
    cgam_lm_inject_opts opts = read_options(args);
    cgam_status status = CGAM_OK;
    if (!cgam_args_given(args, "answer")) status = cgam_lm_study_answer(study, &opts.answer);
    return status == CGAM_OK ? cgam_lm_inject(study, &opts, out) : status;
}

/* All tasks: a document, and suite.json and suite.csv in --out. */
static cgam_status run_suite(cgam_call *call)
{
    cgam_line line;
    cgam_lm_result *result = NULL;
    cgam_lm_study_opts opts = cgam_lm_opts(call, &line);
    cgam_lm_inject_opts inject_opts = read_options(call->args);
    const char *out = cgam_args_text(call->args, "out");
    if (cgam_args_given(call->args, "report"))
        return cgam_fail(call->env, CGAM_E_ARG, "give suite or report, not both");
    json_t *files = json_array();
    cgam_status status = out ? cgam_folder_make(call->env, out) : CGAM_OK;
    if (status == CGAM_OK)
        status = cgam_lm_inject_suite(call->env, &opts, cgam_args_text(call->args, "suite"),
                                      &inject_opts, &result);
    cgam_line_clear(&line);
    if (status == CGAM_OK) json_object_update(call->doc, result->doc);
    if (status == CGAM_OK && out) {
        status = cgam_table_write(call->env, &result->table[0], out);
        json_array_append_new(files, json_string("suite.csv"));
        json_array_append_new(files, json_string("suite.json"));
        if (status == CGAM_OK) status = cgam_json_save(call->env, out, "suite.json", call->doc);
    }
    cgam_lm_put_files(call->doc, status == CGAM_OK ? out : NULL, files);
    cgam_lm_result_free(result);
    return status;
}

static cgam_status run_inject(cgam_call *call)
{
    return cgam_args_given(call->args, "suite")
               ? run_suite(call)
               : cgam_lm_run_reported(call, CGAM_LM_INJECT, inject);
}

const cgam_verb cgam_verb_lm_inject = {
    .name = "lm inject",
    .params = params,
    .run = run_inject,
};
