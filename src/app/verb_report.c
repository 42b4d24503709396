/* verb_report.c: the main job as a verb. */
#include "app/params.h"
#include "app/progress.h"
#include "app/verbs.h"
#include "base/env.h"
#include "lab/page/report.h"

#include <string.h>

static const cgam_param params[] = {
    CGAM_PARAM_OUT("report", "folder for index.html, the tables and the figures"),
    CGAM_PARAM_SEED("seed of all random numbers"),
    CGAM_PARAM_REAL(
        "scale", "X", "1", 1e-6, 1e4,
        "multiply the number of trials of every study, for a quick look or smaller errors"),
    CGAM_PARAM_FIGURES("draw the figures (needs gnuplot)"),
    CGAM_PARAM_END,
};

static void put_runs(json_t *doc, const cgam_report *r)
{
    json_t *runs = json_array();
    for (int i = 0; i < CGAM_RUNS; i++)
        json_array_append_new(
            runs, cgam_json_object("name=%s seconds=%g", r->runs[i].folder, r->runs[i].seconds));
    cgam_json_add(doc, "claims=%p model_claims=%p studies=%p", cgam_claims_json(&r->claims),
                  cgam_claims_json(&r->model_claims), runs);
}

static cgam_status make_report(cgam_call *call)
{
    cgam_report_opts o = cgam_report_opts_default();
    cgam_line bar;
    char page[4200];
    o.out = cgam_args_text(call->args, "out");
    if (!o.out) return cgam_fail(call->env, CGAM_E_ARG, "give out, the folder of the report");
    o.seed = (uint64_t)cgam_args_int(call->args, "seed");
    o.scale = cgam_args_real(call->args, "scale");
    o.figures = strcmp(cgam_args_text(call->args, "figures"), "yes") == 0;
    o.progress = cgam_line_begin(&bar, call->progress);
    o.ranks = call->ranks;
    cgam_report *r;
    cgam_status status = cgam_report_make(call->env, &o, &r);
    cgam_line_clear(&bar);
    if (status != CGAM_OK) return status;
    snprintf(page, sizeof page, "%s/index.html", o.out);
    cgam_json_add(call->doc, "report=%s version=%s", page, cgam_version());
    cgam_args_put(call->args, "seed scale", call->doc);
    cgam_json_add(call->doc, "seconds=%g figure_seconds=%g", r->seconds, r->figure_seconds);
    if (r->figures_missing)
        cgam_json_put_text(call->doc, "figures_missing", "gnuplot was not found");
    put_runs(call->doc, r);
    cgam_report_free(r);
    return CGAM_OK;
}

/* Prints the claims and how many of them hold. */
static void print_claims(FILE *to, const json_t *claims)
{
    int count[4] = {0}; /* hold, hold under a condition, do not hold, are not decided */
    for (size_t i = 0; i < json_array_size(claims); i++) {
        const char *verdict = cgam_json_get_text(json_array_get(claims, i), "verdict");
        count[strcmp(verdict, "holds") == 0 ? 0
              : strstr(verdict, "holds ")   ? 1
              : verdict[0] == 'd'           ? 2
                                            : 3]++;
    }
    cgam_fill(to, "{@.:  {claim}\n      {where}: {verdict}\n}", claims);
    fprintf(to, "\n  %d hold, %d hold under a condition, %d do not hold", count[0], count[1],
            count[2]);
    if (count[3] > 0) fprintf(to, ", %d are not decided", count[3]);
    fprintf(to, "\n\n");
}

static void print_report(const json_t *doc, FILE *to)
{
    fprintf(to, "The paper's claims, on this run's data\n\n");
    print_claims(to, json_object_get(doc, "claims"));
    if (json_array_size(json_object_get(doc, "model_claims")) > 0) {
        fprintf(to, "About language models, on the studies in the report\n\n");
        print_claims(to, json_object_get(doc, "model_claims"));
    }
    cgam_fill(to,
              "{@studies:  {name:-22s} {seconds:6.2f} s\n}"
              "{figures_missing?|  figures                {figure_seconds:6.2f} s\n}"
              "\nEverything is in {report}\n",
              doc);
}

const cgam_verb cgam_verb_report = {
    .name = "report",
    .params = params,
    .ranks = CGAM_RANKS_TRIALS,
    .run = make_report,
    .print = print_report,
};
