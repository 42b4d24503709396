/* verb_lm_steer.c: queries pushed by contexts of right and wrong facts. */
#include "app/lm.h"
#include "app/verbs.h"

static const cgam_param params[] = {
    CGAM_PARAMS_LM(false),
    CGAM_PARAM_LM_ANSWER,
    CGAM_PARAM_REALS("lambda", "X,X,..", "0.25,0.5,1", 0, INFINITY, "couplings"),
    CGAM_PARAM_LM_SCALE("contexts rescaled to the mean norm of the queries, or as they are"),
    CGAM_PARAM_OUT(NULL, "write steer.csv, steer.json and figures here"),
    CGAM_PARAM_LM_FIGURES,
    CGAM_PARAM_END,
};

static cgam_status steer(cgam_lm_study *study, const cgam_args *args, cgam_lm_result **out)
{
    cgam_lm_steer_opts opts = cgam_lm_steer_opts_default();
    opts.lambdas = cgam_args_reals(args, "lambda", &opts.lambda);
    opts.absolute = cgam_args_is(args, "lambda-scale", "absolute");
    return cgam_lm_steer(study, &opts, out);
}

static cgam_status run(cgam_call *call)
{
    cgam_status status = cgam_lm_run(call, CGAM_LM_STEER, steer);
    call->negative = status == CGAM_OK && cgam_json_get_int(call->doc, "counted") == 0;
    return status;
}

static void print(const json_t *doc, FILE *to)
{
    size_t i, c;
    json_t *entry, *curve;
    if (cgam_json_get_int(doc, "counted") == 0) {
        cgam_lm_print_none(doc, to);
        cgam_lm_print_files(doc, to);
        return;
    }
    json_array_foreach(json_object_get(doc, "shots"), i, entry)
    {
        const json_t *base = json_object_get(entry, "baseline"),
                     *curves = json_object_get(entry, "curves");
        size_t layers = json_array_size(json_object_get(json_array_get(curves, 0), "log_p"));
        fprintf(to,
                "%s%lld shots: mean log p of the answer; without context %.3f, first in %.3f\n\n",
                i ? "\n" : "", (long long)cgam_json_get_int(entry, "k"),
                cgam_json_get_real(base, "log_p"), cgam_json_get_real(base, "top1"));
        fputs("layer", to);
        json_array_foreach(curves, c, curve)
            fprintf(to, " %8.8s%5.2g", cgam_json_get_text(curve, "context"),
                    cgam_json_get_real(curve, "lambda"));
        fputc('\n', to);
        for (size_t l = 0; l < layers; l++) {
            fprintf(to, "%5zu", l);
            json_array_foreach(curves, c, curve)
                fprintf(to, " %13.3f", cgam_json_nth(curve, "log_p", (int64_t)l));
            fputc('\n', to);
        }
    }
    cgam_lm_print_files(doc, to);
}

const cgam_verb cgam_verb_lm_steer = {
    .name = "lm steer",
    .summary = "push a query by contexts of right and wrong facts",
    .about =
        "Holds each query's state at the last layer and adds lambda times the mean effect of "
        "demonstrations on the other queries, taken after each layer in turn. Three kinds of "
        "demonstrations: right ones (positive), objects of the same relation that are neither "
        "the subject's nor the query's (wrong_object), and objects of another relation, names of "
        "languages (other_relation).\n\n"
        "For each: mean probability and log-probability of the answer, the median of its rank "
        "(0 is first), how often it is first, the probability of all objects together, and the log "
        "odds of the answer against the other objects, both with what they gain over no "
        "context. Where no answer can be told from the others by its first token nothing is measured: "
        "exit status 1. With --answer sequence or distinct all tokens of the answer count: its rank is the "
        "worst of theirs, the other objects are those that begin with another token. In "
        "steer.csv contexts are 0, 1, 2 in the order above.",
    .example = "cgam lm steer --dataset facts --shots 4 --queries 30 --store s.db --out steer",
    .params = params,
    .run = run,
    .print = print,
};
