/* verb_lm_neff.c: how many words a state leaves in play, layer by layer. */
#include "app/lm.h"
#include "app/verbs.h"

static const cgam_param params[] = {
    CGAM_PARAMS_LM(false),
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
    const json_t *curves = json_object_get(doc, "curves");
    size_t i, layers = json_array_size(json_object_get(json_array_get(curves, 0), "entropy"));
    json_t *row;
    fprintf(to,
            "N_eff (exp of the entropy) and the probability of the labels, %s lens, %lld "
            "queries of %s\n\nlayer",
            cgam_json_get_text(doc, "lens"), (long long)cgam_json_get_int(doc, "queries"),
            cgam_json_get_text(doc, "dataset"));
    json_array_foreach(curves, i, row)
        fprintf(to, "  %8lld shots      ", (long long)cgam_json_get_int(row, "k"));
    fputc('\n', to);
    for (size_t l = 0; l < layers; l++) {
        fprintf(to, "%5zu", l);
        json_array_foreach(curves, i, row)
            fprintf(to, "  %10.1f %9.3g",
                    json_number_value(json_array_get(json_object_get(row, "entropy"), l)),
                    json_number_value(json_array_get(json_object_get(row, "label_mass"), l)));
        fputc('\n', to);
    }
    cgam_lm_print_files(doc, to);
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
