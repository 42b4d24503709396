/* verb_lm_fit.c: a projection learned from states, beside its baselines. */
#include "app/lm.h"
#include "app/verbs.h"

#include "lab/language/fit.h"

enum { SETS_MAX = 16 };

static const cgam_param params[] = {
    CGAM_PARAMS_LM_SETS(false, true),
    CGAM_ROWS_OF(cgam_lm_answer_rows),
    CGAM_ROWS_OF(cgam_lm_fit_opts_rows),
    CGAM_PARAM_TEXT("folder", "DIR", "write fit.json, fit.csv and a figure here", .writes = true),
    CGAM_PARAM_LM_REPORT,
    CGAM_PARAM_LM_FIGURES,
    CGAM_PARAM_END,
};

static cgam_status fit(cgam_lm_study *study, const cgam_args *args, cgam_lm_result **out)
{
    cgam_lm_fit_opts opts = cgam_lm_fit_opts_default();
    cgam_lm_study_opts more[SETS_MAX];
    const char *const *sets;
    int64_t count = cgam_args_words(args, "dataset", &sets);
    cgam_args_fill(args, cgam_lm_fit_opts_rows, &opts);
    opts.no_curve = cgam_args_is(args, "curve", "no");
    for (int64_t i = 1; i < count && i < SETS_MAX; i++) {
        more[i - 1] = cgam_lm_study_opts_default();
        more[i - 1].dataset = sets[i];
        more[i - 1].relation = cgam_args_text(args, "relation");
    }
    opts.more = more;
    opts.more_count = count > 1 ? count - 1 : 0;
    return cgam_lm_fit(study, &opts, out);
}

static cgam_status run_fit(cgam_call *call)
{
    int64_t sets = cgam_args_count(call->args, "dataset");
    if (sets > SETS_MAX)
        return cgam_fail(call->env, CGAM_E_ARG, "dataset: at most %d tasks", SETS_MAX);
    if (sets > 1 &&
        (cgam_args_given(call->args, "labels") || cgam_args_given(call->args, "template")))
        return cgam_fail(call->env, CGAM_E_ARG, "%s cannot be combined with several datasets",
                         cgam_args_given(call->args, "labels") ? "labels" : "template");
    return cgam_lm_run_reported(call, CGAM_LM_FIT, fit);
}

const cgam_verb cgam_verb_lm_fit = {
    .name = "lm fit",
    .params = params,
    .run = run_fit,
};
