/* verb_lm_probe.c: separability and alignment, layer by layer. */
#include "app/lm.h"
#include "app/verbs.h"

static const cgam_param params[] = {
    CGAM_PARAMS_LM(false),
    CGAM_PARAM_OUT(NULL, "write probe.csv, probe.json and figures here"),
    CGAM_PARAM_LM_FIGURES,
    CGAM_PARAM_END,
};

static cgam_status probe(cgam_lm_study *study, const cgam_args *args, cgam_lm_result **out)
{
    (void)args;
    return cgam_lm_probe(study, out);
}

static cgam_status run(cgam_call *call) { return cgam_lm_run(call, CGAM_LM_PROBE, probe); }

static void print(const json_t *doc, FILE *to)
{
    fprintf(to,
            "separability (held-out accuracy of a linear probe) and alignment (margin of the "
            "cosine\nwith the label's row), %lld queries of %s\n\n",
            (long long)cgam_json_get_int(doc, "queries"), cgam_json_get_text(doc, "dataset"));
    cgam_lm_print_curves(doc, "separability", 3, "margin", to);
}

const cgam_verb cgam_verb_lm_probe = {
    .name = "lm probe",
    .summary = "separability and alignment of states, layer by layer",
    .about = "For every layer and number of shots: the accuracy of a logistic regression "
             "(liblinear) trained on one half of the queries and tested on the other, both ways; "
             "the cosine of a state with the unembedding row of its label, and its margin over the "
             "best other label.",
    .example = "cgam lm probe --dataset sentiment --shots 0,4 --queries 40 --store s.db",
    .params = params,
    .run = run,
    .print = print,
};
