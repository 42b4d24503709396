/* verb_report.c: the main job as a verb. */
#include "app/params.h"
#include "app/progress.h"
#include "app/verbs.h"
#include "base/env.h"
#include "report/report.h"

#include <math.h>
#include <string.h>

static const cgam_param params[] = {
    CGAM_PARAM_OUT("report", "folder; index.html, the tables and the figures are made in it"),
    CGAM_PARAM_SEED("seed of all random numbers"),
    CGAM_PARAM_REAL("scale", "X", "1", 1e-6, 1e4,
                    "multiply all numbers of trials, for a quick look or smaller errors"),
    CGAM_PARAM_FIGURES("draw the figures (needs gnuplot)"),
    CGAM_PARAM_END,
};

static void put_claims(json_t *to, const cgam_claims *claims)
{
    char verdict[200];
    for (int i = 0; i < claims->count; i++) {
        const cgam_claim *c = &claims->claim[i];
        json_t *one = json_object();
        cgam_json_put_text(one, "where", c->where);
        cgam_json_put_text(one, "claim", c->says);
        cgam_json_put_text(one, "verdict", cgam_verdict_text(c, verdict));
        cgam_json_put_text(one, "numbers", c->numbers);
        cgam_json_put_text(one, "test", c->test);
        json_array_append_new(to, one);
    }
}

static void put_runs(json_t *doc, const cgam_report *r)
{
    json_t *runs = json_array(), *claims = json_array(), *models = json_array();
    for (int i = 0; i < CGAM_RUNS; i++) {
        json_t *one = json_object();
        cgam_json_put_text(one, "name", r->runs[i].folder);
        cgam_json_put_real(one, "seconds", r->runs[i].seconds);
        json_array_append_new(runs, one);
    }
    put_claims(claims, &r->claims);
    put_claims(models, &r->model_claims);
    cgam_json_put(doc, "claims", claims);
    cgam_json_put(doc, "model_claims", models);
    cgam_json_put(doc, "studies", runs);
}

static cgam_status run(cgam_call *call)
{
    cgam_report_opts o = cgam_report_opts_default();
    cgam_line bar;
    char page[4200];
    o.out = cgam_args_text(call->args, "out");
    if (!o.out) return cgam_fail(call->env, CGAM_E_ARG, "out is missing: a report is a folder");
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
    cgam_json_put_text(call->doc, "report", page);
    cgam_json_put_text(call->doc, "version", cgam_version());
    cgam_json_put_int(call->doc, "seed", (int64_t)o.seed);
    cgam_json_put_real(call->doc, "scale", o.scale);
    cgam_json_put_real(call->doc, "seconds", r->seconds);
    cgam_json_put_real(call->doc, "figure_seconds", r->figure_seconds);
    if (r->figures_missing)
        cgam_json_put_text(call->doc, "figures_missing", "gnuplot was not found");
    put_runs(call->doc, r);
    cgam_report_free(r);
    return CGAM_OK;
}

static void print_claims(FILE *to, const json_t *claims)
{
    int count[4] = {0};
    for (size_t i = 0; i < json_array_size(claims); i++) {
        const json_t *c = json_array_get(claims, i);
        const char *verdict = cgam_json_get_text(c, "verdict");
        count[strcmp(verdict, "holds") == 0 ? 0
              : verdict[0] == 'h'           ? 1
              : verdict[0] == 'd'           ? 2
                                            : 3]++;
        fprintf(to, "  %s\n      %s: %s\n", cgam_json_get_text(c, "claim"),
                cgam_json_get_text(c, "where"), verdict);
    }
    fprintf(to, "\n  %d hold, %d hold under a condition, %d do not hold", count[0], count[1],
            count[2]);
    if (count[3] > 0) fprintf(to, ", %d are not decided", count[3]);
    fprintf(to, "\n\n");
}

static void print(const json_t *doc, FILE *to)
{
    const json_t *runs = json_object_get(doc, "studies");
    fprintf(to, "The paper's claims, on this run's data\n\n");
    print_claims(to, json_object_get(doc, "claims"));
    if (json_array_size(json_object_get(doc, "model_claims")) > 0) {
        fprintf(to, "About language models, on the studies in the report\n\n");
        print_claims(to, json_object_get(doc, "model_claims"));
    }
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *one = json_array_get(runs, i);
        fprintf(to, "  %-22s %6.2f s\n", cgam_json_get_text(one, "name"),
                cgam_json_get_real(one, "seconds"));
    }
    if (!json_object_get(doc, "figures_missing"))
        fprintf(to, "  %-22s %6.2f s\n", "figures", cgam_json_get_real(doc, "figure_seconds"));
    fprintf(to, "\nEverything is in %s\n", cgam_json_get_text(doc, "report"));
}

const cgam_verb cgam_verb_report = {
    .name = "report",
    .summary = "every study, the paper's claims, one HTML page with figures",
    .about =
        "The main job: runs every synthetic study at full size, draws the paper's figures, "
        "counts its theorems, decides each of its claims by a test on this run's data, and "
        "writes all of it into one HTML file that needs nothing else, with the tables as CSV "
        "beside it.\n\n"
        "A report that was stopped (Ctrl-C, a kill) continues where it was when the same call is "
        "made again, and ends with the same numbers. `cgam-mpi` splits the trials among its ranks. Studies of language models in the folder (`cgam "
        "lm study --report DIR`) become a section of the page. Without gnuplot there are no figures, "
        "everything else is complete, and the exit status is 0.",
    .example = "cgam report --out report",
    .params = params,
    .ranks = CGAM_RANKS_TRIALS,
    .run = run,
    .print = print,
};
