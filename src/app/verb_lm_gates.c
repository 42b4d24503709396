/* verb_lm_gates.c: the gate operator over a model's vocabulary, alpha by alpha. */
#include "app/lm.h"
#include "app/verbs.h"

#include <cgam/sweep.h>
#include <string.h>

static const cgam_param params[] = {
    CGAM_PARAMS_LM(false),
    CGAM_PARAM_LM_ANSWER,
    CGAM_PARAM_CHOICE("rows", "raw|unit", "raw", "the unembedding as it is, or at unit length"),
    CGAM_PARAM_REALS("alphas", "auto|A,A,..", "auto", 0, 1e300,
                     "penalties below alpha_crit; 0 is always run. auto: closely around 1/mu_max, "
                     "by decades, and up to 0.99 alpha_crit"),
    CGAM_PARAM_WORDS("modes", "first|coupled",
                     "without and with feedback lambda^2; both if not given"),
    CGAM_PARAM_INT("context-layer", "L", NULL, 0, 10000, "what a sweep chooses if not given"),
    CGAM_PARAM_INT("query-layer", "L", NULL, 0, 10000, "what a sweep chooses if not given"),
    CGAM_PARAM_CHOICE("over", "restricted|full", "restricted",
                      "layers and lambda by right answers among the labels, or among all words"),
    CGAM_PARAM_LM_SCALE("contexts rescaled to the mean norm of the query layer, or as they are"),
    CGAM_PARAM_FLAG("in-sample", "contexts from all queries instead of one half"),
    CGAM_PARAM_OUT(NULL, "write gates.json, gates.csv, gates_spectrum.csv and figures here"),
    CGAM_PARAM_LM_REPORT,
    CGAM_PARAM_LM_FIGURES,
    CGAM_PARAM_END,
};

static cgam_status gates(cgam_lm_study *study, const cgam_args *args, cgam_lm_result **out)
{
    cgam_lm_gates_opts opts = cgam_lm_gates_opts_default();
    const char *const *modes;
    int64_t count = cgam_args_words(args, "modes", &modes);
    opts.no_first = opts.no_coupled = count > 0;
    for (int64_t i = 0; i < count; i++) {
        opts.no_first = opts.no_first && strcmp(modes[i], "first") != 0;
        opts.no_coupled = opts.no_coupled && strcmp(modes[i], "coupled") != 0;
    }
    opts.unit = cgam_args_is(args, "rows", "unit");
    if (!cgam_args_is(args, "alphas", "auto"))
        opts.n_alphas = cgam_args_reals(args, "alphas", &opts.alphas);
    if (cgam_args_given(args, "context-layer"))
        opts.context_layer = cgam_args_int(args, "context-layer");
    if (cgam_args_given(args, "query-layer")) opts.query_layer = cgam_args_int(args, "query-layer");
    cgam_sweep_over_find(cgam_args_text(args, "over"), &opts.over);
    opts.absolute = cgam_args_is(args, "lambda-scale", "absolute");
    opts.in_sample = cgam_args_flag(args, "in-sample");
    return cgam_lm_gates(study, &opts, out);
}

static cgam_status run(cgam_call *call)
{
    cgam_status status = cgam_lm_run_reported(call, CGAM_LM_GATES, gates);
    call->negative = status == CGAM_OK && cgam_lm_counted(call->doc) == 0;
    return status;
}

/* ---- For people --------------------------------------------------------------------------- */
static void print_row(FILE *to, const json_t *row)
{
    double unique = cgam_json_get_real(row, "unique_share");
    fprintf(to, "  %-10.4g %-8s %9.4g  %6.3f +- %.3f  %6.3f +- %.3f  %9.4g  %7.3f  %6.3f",
            cgam_json_get_real(row, "alpha"), cgam_json_get_text(row, "mode"),
            cgam_json_get_real(row, "lambda"), cgam_json_get_real(row, "restricted"),
            cgam_json_get_real(row, "restricted_se"), cgam_json_get_real(row, "full"),
            cgam_json_get_real(row, "full_se"), cgam_json_get_real(row, "neff"),
            cgam_json_get_real(row, "argmax_changed"), cgam_json_get_real(row, "p_max"));
    if (isnan(unique)) fputs("       -\n", to);
    else fprintf(to, "  %6.3f\n", unique);
}

static void print_entry(FILE *to, const json_t *entry)
{
    const json_t *layers = json_object_get(entry, "layers");
    size_t i;
    json_t *row;
    fprintf(to, "\n%lld shots, %lld queries; context and query layer",
            (long long)cgam_json_get_int(entry, "k"),
            (long long)cgam_json_get_int(entry, "queries"));
    json_array_foreach(layers, i, row) fprintf(to, "%s %lld, %lld", i ? " and" : "",
                                               (long long)cgam_json_get_int(row, "context_layer"),
                                               (long long)cgam_json_get_int(row, "query_layer"));
    fprintf(to,
            "\n  zero-shot %.3f over labels, %.3f over words; with demonstrations %.3f and %.3f\n",
            cgam_json_get_real(entry, "zero_shot.restricted"),
            cgam_json_get_real(entry, "zero_shot.full"),
            cgam_json_get_real(entry, "icl.restricted"), cgam_json_get_real(entry, "icl.full"));
    fprintf(to, "\n  %-10s %-8s %9s  %-16s  %-16s  %9s  %7s  %6s  %6s\n", "alpha", "mode", "lambda",
            "over labels", "over words", "N_eff", "changed", "p_max", "unique");
    json_array_foreach(json_object_get(entry, "grid"), i, row) print_row(to, row);
}

static void print(const json_t *doc, FILE *to)
{
    size_t i;
    json_t *entry;
    fprintf(to,
            "%s, %s rows: alpha_crit %.6g, 1/mu_max %.4g; the strongest mode has %.1f%% of the "
            "spectrum\n",
            cgam_json_get_text(doc, "dataset"), cgam_json_get_text(doc, "rows"),
            cgam_json_get_real(doc, "alpha_crit"), 1 / cgam_json_get_real(doc, "mu_max"),
            100 * cgam_json_get_real(doc, "mu_share"));
    if (cgam_lm_counted(doc) == 0) cgam_lm_print_none(doc, to);
    else json_array_foreach(json_object_get(doc, "shots"), i, entry) print_entry(to, entry);
    cgam_lm_print_files(doc, to);
}

const cgam_verb cgam_verb_lm_gates = {
    .name = "lm gates",
    .summary = "the gate operator over a whole vocabulary: alpha > 0 and feedback",
    .about =
        "The retrieval of `lm sweep` with gates that compete: a word's score is <zeta, q> + lambda "
        "(A(alpha)^-1 Z c), and in mode coupled the gates are fed back by what is retrieved. The bank "
        "is the unembedding (`lm bank --lens raw`), all rows of it; the final norm acts on the states; "
        "beta = 1. At alpha = 0, mode first and raw rows the answers are those of the sweep.\n\n"
        "Layers come from a sweep unless they are given. lambda is chosen anew at each alpha, in mode "
        "first, from an exact step function: on one half of the queries, with the context of that half, "
        "and all that is shown is counted on the other, both ways. `lambda` is the mean of the two.\n\n"
        "Answers of several tokens (--answer sequence, distinct, or classes that begin alike): the gates "
        "recall the first token, and the model without demonstrations goes on from there; labels are compared by the "
        "log-probability of all their tokens, and over words each must be the first of all in its place. "
        "N_eff, changed and p_max are of the first.\n\n"
        "N_eff: geometric mean of exp(entropy). changed: queries whose best word differs, in mode first "
        "from that at alpha = 0, in mode coupled from that of mode first at the same alpha and lambda. "
        "p_max: mean probability of the best word. unique: queries whose coupled answer is proved to "
        "be the only one.",
    .example = "cgam lm gates --dataset sentiment --shots 4 --queries 40 --store s.db --out gates",
    .params = params,
    .run = run,
    .print = print,
};
