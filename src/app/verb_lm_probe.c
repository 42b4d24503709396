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
    const json_t *curves = json_object_get(doc, "curves");
    size_t i, layers = json_array_size(json_object_get(json_array_get(curves, 0), "margin"));
    json_t *row;
    fprintf(to,
            "separability (held-out accuracy of a linear probe) and alignment (margin of the "
            "cosine\nwith the label's row), %lld queries of %s\n\nlayer",
            (long long)cgam_json_get_int(doc, "queries"), cgam_json_get_text(doc, "dataset"));
    json_array_foreach(curves, i, row)
        fprintf(to, "  %7lld shots    ", (long long)cgam_json_get_int(row, "k"));
    fputc('\n', to);
    for (size_t l = 0; l < layers; l++) {
        fprintf(to, "%5zu", l);
        json_array_foreach(curves, i, row)
            fprintf(to, "  %7.3f %9.4f",
                    json_number_value(json_array_get(json_object_get(row, "separability"), l)),
                    json_number_value(json_array_get(json_object_get(row, "margin"), l)));
        fputc('\n', to);
    }
    cgam_lm_print_files(doc, to);
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
