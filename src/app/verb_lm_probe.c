/* verb_lm_probe.c: separability and alignment, layer by layer. */
#include "app/lm.h"
#include "app/lm_draw.h"
#include "app/verbs.h"
#include "base/env.h"
#include "io/table.h"

#include <math.h>

static const cgam_param params[] = {
    CGAM_PARAMS_PROMPTS,
    {.name = "out",
     .kind = CGAM_TEXT,
     .value = "DIR",
     .help = "write probe.csv, probe.json and figures here"},
    CGAM_PARAM_LM_FIGURES,
    {.name = ""},
};

typedef struct probe_study {
    cgam_lm_input *in;
    cgam_lens *lens;
    int32_t *tokens, *target;
    int64_t counted;
    cgam_csv csv;
} probe_study;

enum { SEPARABILITY, SEPARABILITY_SE, COSINE, COSINE_SD, MARGIN, MARGIN_SD, COLUMNS };
static const char *const names[COLUMNS] = {"separability", "separability_se", "alignment",
                                           "alignment_sd", "margin",          "margin_sd"};

static cgam_status add_curve(probe_study *s, int64_t k, json_t *curves)
{
    cgam_lm_input *in = s->in;
    cgam_env *env = in->call->env;
    int64_t L = in->info.layers + 1, d = in->info.width;
    float *states = NULL;
    double *column = cgam_alloc(env, COLUMNS * (size_t)L, sizeof *column);
    if (!column) return cgam_fail_nomem(env, "a curve");
    cgam_status status = cgam_lm_input_states(in, k, CGAM_DEMOS_TRUE, &states);
    for (int64_t l = 0; l < L && status == CGAM_OK; l++) {
        double p;
        status = cgam_probe_separability(env, in->queries, d, states + l * d, L * d, s->target, &p);
        cgam_alignment a =
            cgam_probe_alignment(s->lens, in->queries, states + l * d, L * d,
                                 cgam_dataset_labels(in->eval), s->tokens, s->target);
        const double x[COLUMNS] = {p,        sqrt(p * (1 - p) / (double)s->counted),
                                   a.cosine, a.cosine_sd,
                                   a.margin, a.margin_sd};
        double row[2 + COLUMNS] = {(double)k, (double)l};
        for (int c = 0; c < COLUMNS; c++) column[c * L + l] = row[2 + c] = x[c];
        cgam_csv_row(&s->csv, row);
        if (cgam_interrupted(env)) status = CGAM_E_INTERRUPTED;
    }
    if (status == CGAM_OK) {
        json_t *row = json_object();
        cgam_json_put_int(row, "k", k);
        cgam_json_put_text(row, "kind", k == 0 ? "zero" : "icl");
        for (int c = 0; c < COLUMNS; c++)
            cgam_json_put(row, names[c], cgam_json_reals(column + c * L, L, 1));
        json_array_append_new(curves, row);
    }
    cgam_free(env, states);
    cgam_free(env, column);
    return status;
}

static cgam_status begin(cgam_call *call, probe_study *s)
{
    cgam_lm_input *in = s->in;
    cgam_status status = cgam_lm_input_open(call, in);
    if (status == CGAM_OK && cgam_dataset_open_ended(in->eval))
        status = cgam_fail(call->env, CGAM_E_ARG, "a probe needs classes; %s is a set of facts",
                           in->name);
    if (status == CGAM_OK) status = cgam_lm_input_label_tokens(in, &s->tokens);
    if (status == CGAM_OK) status = cgam_lens_new(in->lm, &s->lens);
    if (status == CGAM_OK) {
        s->target = cgam_alloc(call->env, (size_t)in->queries, sizeof *s->target);
        if (!s->target) status = cgam_fail_nomem(call->env, "targets");
    }
    for (int64_t i = 0; i < in->queries && status == CGAM_OK; i++, s->counted++)
        s->target[i] = (int32_t)cgam_prompts_label(in->prompts, i);
    if (status == CGAM_OK)
        status = cgam_csv_begin(call->env, cgam_args_text(call->args, "out"), "probe.csv",
                                "shots,layer,separability,separability_se,alignment,alignment_sd,"
                                "margin,margin_sd",
                                &s->csv);
    return status;
}

static cgam_status run(cgam_call *call)
{
    cgam_lm_input in;
    probe_study s = {.in = &in};
    json_t *curves = json_array();
    cgam_status status = begin(call, &s);
    for (int64_t i = 0; i < in.n_shots && status == CGAM_OK; i++)
        status = add_curve(&s, in.shots[i], curves);
    status = cgam_csv_end(&s.csv, status);
    if (status == CGAM_OK) cgam_put_lm_input(call->doc, &in);
    cgam_json_put(call->doc, "curves", curves);
    if (status == CGAM_OK) status = cgam_lm_draw(call, CGAM_MODELS_PROBE);
    if (status == CGAM_OK)
        status =
            cgam_json_save(call->env, cgam_args_text(call->args, "out"), "probe.json", call->doc);
    cgam_free(call->env, s.tokens);
    cgam_free(call->env, s.target);
    cgam_lens_free(s.lens);
    cgam_lm_input_close(&in);
    return status;
}

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
