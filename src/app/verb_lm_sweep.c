/* verb_lm_sweep.c: retrieval by query plus context over all pairs of layers, with its baselines. */
#include "app/lm.h"
#include "app/verbs.h"
#include "report/models.h"

#include <cgam/sweep.h>

static const cgam_param params[] = {
    CGAM_PARAMS_LM(false),
    CGAM_PARAM_LM_ANSWER,
    CGAM_PARAM_CHOICE(
        "lens", "raw|gain|norm", NULL,
        "rows as they are, or times the final norm's weights (both keep lambda exact), or the "
        "final norm of the sum on a grid of lambda; gain, or norm if a bias follows the norm"),
    CGAM_PARAM_LM_SCALE("contexts rescaled to the mean norm of the query layer, or as they are"),
    CGAM_PARAM_FLAG("in-sample", "contexts from all queries instead of the other half"),
    CGAM_PARAM_LM_PROJECTION(
        "P (d,d), as `lm fit` writes it: contexts c become P c, before they are "
        "rescaled"),
    CGAM_PARAM_FLAG("intervals",
                    "also write sweep_intervals.csv: the couplings at which each query "
                    "is right, of every pair of layers"),
    CGAM_PARAM_OUT(NULL, "write sweep.json, sweep.csv, sweep_steps.csv, sweep_grid.csv, "
                         "per_query.csv and figures here"),
    CGAM_PARAM_LM_FIGURES,
    CGAM_PARAM_END,
};

static cgam_status sweep(cgam_lm_study *study, const cgam_args *args, cgam_lm_result **out)
{
    cgam_lm_sweep_opts opts = cgam_lm_sweep_opts_default();
    const char *lens = cgam_args_text(args, "lens");
    opts.lens_given = lens && cgam_lens_kind_find(lens, &opts.lens);
    opts.absolute = cgam_args_is(args, "lambda-scale", "absolute");
    opts.in_sample = cgam_args_flag(args, "in-sample");
    opts.intervals = cgam_args_flag(args, "intervals");
    opts.projection = cgam_args_text(args, "projection");
    return cgam_lm_sweep(study, &opts, out);
}

static cgam_status run(cgam_call *call)
{
    cgam_status status = cgam_lm_run(call, CGAM_LM_SWEEP, sweep);
    call->negative = status == CGAM_OK && cgam_lm_counted(call->doc) == 0;
    return status;
}

static void print_best(FILE *to, const char *name, const json_t *best)
{
    const json_t *lambda = json_object_get(best, "lambda"), *end = json_array_get(lambda, 1);
    double from = json_number_value(json_array_get(lambda, 0));
    char range[48];
    if (json_is_null(end)) snprintf(range, sizeof range, "%.3g and above", from);
    else if (json_number_value(end) == from) snprintf(range, sizeof range, "%.3g", from);
    else snprintf(range, sizeof range, "%.3g to %.3g", from, json_number_value(end));
    fprintf(to, "  %-36s %6.3f %9.3f  +- %.3f", name, cgam_json_get_real(best, "accuracy"),
            cgam_json_get_real(best, "held_out"), cgam_json_get_real(best, "held_out_se"));
    if (json_object_get(best, "context_layer"))
        fprintf(to, "  context %2lld,", (long long)cgam_json_get_int(best, "context_layer"));
    else fputs("             ", to);
    fprintf(to, " query %2lld, lambda %s\n", (long long)cgam_json_get_int(best, "query_layer"),
            range);
}

/* A share with its error; paths as cgam_models_over takes them. */
static void print_share(FILE *to, const json_t *e, int over, const char *name, const char *path,
                        const char *error, const char *after)
{
    double share = cgam_models_over(e, path, over);
    if (isnan(share)) fprintf(to, "  %-36s %6s %9s\n", name, "", "-");
    else
        fprintf(to, "  %-36s %6s %9.3f  +- %.3f%s\n", name, "", share,
                cgam_models_over(e, error, over), after);
}

static void print_entry(FILE *to, const json_t *e)
{
    static const char *const words[] = {"over the labels", "over the whole vocabulary"};
    const json_t *c = json_object_get(e, "controls"), *threshold = json_object_get(c, "threshold");
    fprintf(to, "\n%lld shots, %lld queries\n", (long long)cgam_json_get_int(e, "k"),
            (long long)cgam_json_get_int(e, "queries"));
    for (int over = 0; over < 2; over++) {
        const char *of = cgam_sweep_over_name((cgam_sweep_over)over);
        fprintf(to, "\n %-37s %6s %9s\n", words[over], "best", "held out");
        print_share(to, e, over, "zero-shot", "zero_shot.%", "zero_shot.%_se", "");
        print_share(to, e, over, "with demonstrations", "icl.%", "icl.%_se", "");
        print_best(to, "query + lambda context", cgam_json_at(json_object_get(e, "best"), of));
        print_share(to, e, over, "share of the gain recovered",
                    over ? "recovered_full" : "recovered",
                    over ? "recovered_full_se" : "recovered_se", "");
        if (over == 0) {
            print_share(to, c, over, "baseline: zero-shot, centred", "centred.accuracy",
                        "centred.accuracy_se", "  last layer");
            print_share(to, c, over, "", "centred.held_out", "centred.held_out_se", "  best layer");
            if (json_is_object(threshold))
                fprintf(to, "  %-36s %6.3f %9s  at any layer; AUC at the last %.3f\n",
                        "baseline: best threshold, zero-shot",
                        cgam_json_get_real(threshold, "bound"), "",
                        cgam_json_get_real(threshold, "auc"));
        }
        print_best(to, "baseline: mean of the labels' rows",
                   cgam_json_at(json_object_get(c, "label_mean"), of));
        print_best(to, "baseline: flipped demonstrations",
                   cgam_json_at(json_object_get(c, "flipped"), of));
        print_best(to, "baseline: context of another task",
                   cgam_json_at(json_object_get(c, "other_task"), of));
    }
}

static void print(const json_t *doc, FILE *to)
{
    size_t i;
    json_t *entry;
    fprintf(to, "%s, %s lens, lambda %s and %s, context %s\n", cgam_json_get_text(doc, "dataset"),
            cgam_json_get_text(doc, "lens"), cgam_json_get_text(doc, "lambda_scale"),
            json_is_true(json_object_get(doc, "exact_lambda")) ? "exact" : "read on a grid",
            json_is_true(json_object_get(doc, "in_sample")) ? "from the same queries"
                                                            : "from the other half of the queries");
    if (cgam_lm_counted(doc) == 0) cgam_lm_print_none(doc, to);
    else json_array_foreach(json_object_get(doc, "shots"), i, entry) print_entry(to, entry);
    cgam_lm_print_files(doc, to);
}

const cgam_verb cgam_verb_lm_sweep = {
    .name = "lm sweep",
    .summary = "retrieval by query plus context, all layer pairs, exact couplings, baselines",
    .about =
        "Scores every word by <zeta, q> + lambda <zeta, c>: q a query's state without "
        "demonstrations after one layer, c the mean effect of demonstrations after another. "
        "The score is linear in lambda, so each query is right on one interval and the "
        "accuracy of a pair of layers is an exact step function; the best pair comes with its "
        "range of lambda.\n\n"
        "Contexts come from the other half of the queries. `best` is the most that any coupling of "
        "any pair reaches on all queries. `held out`: context, pair and coupling all come from one "
        "half and are counted on the other, both ways. Of pairs that do equally well the one with the "
        "widest range of lambda is taken, of those within a hundredth of the widest the latest query "
        "layer, then the latest context layer; of a range the geometric middle. held_out_ties in the "
        "document is the mean over all pairs that do equally well. Errors are by drawing queries with "
        "replacement, the choice of the pair left as it is.\n\n"
        "--projection takes contexts of every layer, of right, flipped and another task's demonstrations, "
        "through P first; the labels' rows stay as they are. With --lambda-scale relative the length of "
        "P c plays no part.\n\n"
        "A bias after the final norm makes no coupling exact: such a model is read through its "
        "norm on a grid of lambda, and the document says so (exact_lambda).\n\n"
        "Answers of several tokens (--answer sequence, distinct, or classes that begin alike): over "
        "the labels the log-probabilities of all tokens are compared, each with the context in its place, on a "
        "grid of lambda; over the vocabulary each token must be the first of all, which is exact.\n\n"
        "Over the labels alone a shared context can only move the borders between classes. The "
        "baselines say how far that carries: centred zero-shot scores, the best threshold (two "
        "classes), the mean of the labels' rows in place of a context, demonstrations with "
        "flipped labels, and the context of another task.",
    .example = "cgam lm sweep --dataset sentiment --shots 4 --queries 40 --store s.db --out sweep",
    .params = params,
    .run = run,
    .print = print,
};
