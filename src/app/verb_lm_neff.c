/* verb_lm_neff.c: how many words a state leaves in play, layer by layer. */
#include "app/lm.h"
#include "app/verbs.h"

static const cgam_param params[] = {
    CGAM_PARAMS_LM(false),
    CGAM_PARAM_LM_ANSWER,
    CGAM_PARAM_CHOICE("lens", "raw|gain|norm", "norm", "how a state becomes probabilities"),
    CGAM_PARAM_OUT(NULL, "write neff.csv, neff.json and figures here"),
    CGAM_PARAM_LM_FIGURES,
    CGAM_PARAM_END,
};

static cgam_status neff(cgam_lm_study *study, const cgam_args *args, cgam_lm_result **out)
{
    cgam_lm_neff_opts opts = cgam_lm_neff_opts_default();
    cgam_lens_kind_find(cgam_args_text(args, "lens"), &opts.lens);
    return cgam_lm_neff(study, &opts, out);
}

static cgam_status run(cgam_call *call) { return cgam_lm_run(call, CGAM_LM_NEFF, neff); }

static void print(const json_t *doc, FILE *to)
{
    fprintf(to,
            "N_eff (exp of the entropy) and the probability of the labels, %s lens, %lld "
            "queries of %s\n\n",
            cgam_json_get_text(doc, "lens"), (long long)cgam_json_get_int(doc, "queries"),
            cgam_json_get_text(doc, "dataset"));
    cgam_lm_print_curves(doc, "entropy", 1, "label_mass", to);
}

const cgam_verb cgam_verb_lm_neff = {
    .name = "lm neff",
    .summary = "effective number of words per layer, without and with demonstrations",
    .about = "Reads the state of the last token after every layer through the unembedding and "
             "measures how many words share the probability: exp(entropy) and 1/sum p^2, as "
             "geometric means over the queries with the standard deviation of their logarithms, "
             "and the probability mass on the labels' words. The curves of a second lens, raw "
             "beside norm, come along: without the norm a state's size decides how sharp its "
             "probabilities are.",
    .example = "cgam lm neff --dataset sentiment --shots 0,4 --queries 40 --store s.db --out neff",
    .params = params,
    .run = run,
    .print = print,
};
