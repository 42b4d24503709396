/* verb_lm_fit.c: a projection learned from states, beside what it has to beat. */
#include "app/lm.h"
#include "app/verbs.h"

#include <cgam/fit.h>
#include <string.h>

enum { SETS_MAX = 16 };

static const cgam_param params[] = {
    CGAM_PARAMS_LM_SETS(false, true),
    CGAM_PARAM_LM_ANSWER,
    CGAM_PARAM_CHOICE("from", "context|query", "context",
                      "x: what demonstrations add to the state after --layer, or that state "
                      "without them"),
    CGAM_PARAM_INT("layer", "L", NULL, 0, 10000,
                   "of x; 0 is the embedding; the middle one if not given"),
    CGAM_PARAM_CHOICE("method", "ridge|lowrank", "ridge",
                      "P by ridge regression, or P = I + U'V that goes on from there towards the "
                      "model's own distribution of answers"),
    CGAM_PARAM_INT("rank", "R", "8", 1, 1e6, "of P - I, method lowrank"),
    CGAM_PARAM_INT("iterations", "N", "20", 0, 1e5, "of the optimiser, at most, method lowrank"),
    CGAM_PARAM_CHOICE("curve", "yes|no", "yes", "fit at every other layer too, for the figure"),
    CGAM_PARAM(CGAM_TEXT, "out", "FILE", NULL, 0, 0,
               "write P of all queries, f64 (d,d): .safetensors, .npz or .npy", .writes = true),
    CGAM_PARAM_TEXT("folder", "DIR", "write fit.json, fit.csv and a figure here", .writes = true),
    CGAM_PARAM_LM_REPORT,
    CGAM_PARAM_LM_FIGURES,
    CGAM_PARAM_END,
};

static cgam_status fit(cgam_lm_study *study, const cgam_args *args, cgam_lm_result **out)
{
    cgam_lm_fit_opts opts = cgam_lm_fit_opts_default();
    cgam_lm_study_opts more[SETS_MAX];
    const char *const *sets;
    int64_t count = cgam_args_words(args, "dataset", &sets);
    opts.from_query = cgam_args_is(args, "from", "query");
    if (cgam_args_given(args, "layer")) opts.layer = cgam_args_int(args, "layer");
    cgam_fit_method_find(cgam_args_text(args, "method"), &opts.method);
    opts.rank = cgam_args_int(args, "rank");
    opts.iterations = cgam_args_int(args, "iterations");
    opts.no_curve = cgam_args_is(args, "curve", "no");
    opts.save = cgam_args_text(args, "out");
    for (int64_t i = 1; i < count && i < SETS_MAX; i++) {
        more[i - 1] = cgam_lm_study_opts_default();
        more[i - 1].dataset = sets[i];
        more[i - 1].relation = cgam_args_text(args, "relation");
    }
    opts.more = more;
    opts.more_count = count > 1 ? count - 1 : 0;
    return cgam_lm_fit(study, &opts, out);
}

static cgam_status run(cgam_call *call)
{
    int64_t sets = cgam_args_count(call->args, "dataset");
    if (sets > SETS_MAX)
        return cgam_fail(call->env, CGAM_E_ARG, "dataset: at most %d tasks", SETS_MAX);
    if (sets > 1 &&
        (cgam_args_given(call->args, "labels") || cgam_args_given(call->args, "template")))
        return cgam_fail(call->env, CGAM_E_ARG, "%s and several datasets exclude each other",
                         cgam_args_given(call->args, "labels") ? "labels" : "template");
    return cgam_lm_run_reported(call, CGAM_LM_FIT, fit);
}

/* ---- For people --------------------------------------------------------------------------- */
static const struct {
    const char *key, *name;
} ways[] = {{"zero_shot", "no context"},           {"icl", "with demonstrations"},
            {"mean", "the task's mean y"},         {"identity", "P = I"},
            {"random", "random P, same spectrum"}, {"ridge", "ridge"},
            {"train", "P, where it was fitted"},   {"held_out", "P"},
            {"left_out", "P of the other tasks"}};

static void print_ways(FILE *to, const json_t *of, const json_t *kl)
{
    fprintf(to, "  %-26s %17s %17s %8s %8s\n", "", "over the labels", "over all words", "R2",
            kl ? "KL" : "");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const json_t *way = json_object_get(of, ways[i].key);
        if (!json_is_object(way)) continue;
        fprintf(to, "  %-26s %7.3f +- %.3f  %7.3f +- %.3f  %8.3f", ways[i].name,
                cgam_json_get_real(way, "restricted"), cgam_json_get_real(way, "restricted_se"),
                cgam_json_get_real(way, "full"), cgam_json_get_real(way, "full_se"),
                cgam_json_get_real(way, "r2"));
        const char *own = strcmp(ways[i].key, "held_out") != 0 ? ways[i].key
                          : json_object_get(kl, "lowrank")     ? "lowrank"
                                                               : "ridge";
        if (json_is_number(json_object_get(kl, own)))
            fprintf(to, " %8.3f", cgam_json_get_real(kl, own));
        fputc('\n', to);
    }
}

static void print(const json_t *doc, FILE *to)
{
    size_t i;
    json_t *task;
    const json_t *tasks = json_object_get(doc, "by_task");
    fprintf(to, "%s, %lld shots: P by %s from the %s after layer %lld, %lld pairs, rho %.3g",
            cgam_json_get_text(doc, "dataset"), (long long)cgam_json_get_int(doc, "k"),
            cgam_json_get_text(doc, "method"), cgam_json_get_text(doc, "from"),
            (long long)cgam_json_get_int(doc, "layer"),
            (long long)cgam_json_get_int(doc, "queries"), cgam_json_get_real(doc, "rho"));
    if (json_object_get(doc, "rank"))
        fprintf(to, ", rank %lld", (long long)cgam_json_get_int(doc, "rank"));
    fputs("\nheld out: fitted on one half of the queries, counted on the other\n\n", to);
    print_ways(to, doc, json_object_get(doc, "kl"));
    json_array_foreach(tasks, i, task)
    {
        if (json_array_size(tasks) == 1) break;
        fprintf(to, "\n%s, %lld queries\n", cgam_json_get_text(task, "task"),
                (long long)cgam_json_get_int(task, "queries"));
        print_ways(to, task, NULL);
    }
    if (*cgam_json_get_text(doc, "saved"))
        fprintf(to, "\nP of all queries is in %s\n", cgam_json_get_text(doc, "saved"));
    cgam_lm_print_files(doc, to);
}

const cgam_verb cgam_verb_lm_fit = {
    .name = "lm fit",
    .summary = "a projection P learned from states, on held-out queries and tasks",
    .about =
        "Gates see Z P c, and P = I stands for not knowing better. Here P is learned from pairs of the "
        "queries, with as many demonstrations as --shots has at most: y is what they add to the state "
        "after the last layer, x what they add after --layer, or with --from query the state there "
        "without them. The score is that of the last state without demonstrations plus P x.\n\n"
        "Ridge: sum |P x - y|^2 + rho |P - I|^2 from contexts, rho |P|^2 from queries, rho by "
        "leave-one-out. Low rank: P = I + U'V, from the ridge's best approximation of that rank, "
        "refined by L-BFGS on the Kullback-Leibler divergence from the distribution over all words "
        "that the model has with demonstrations.\n\n"
        "P is fitted on one half of the queries and counted on the other, both ways (`train`: on the same). Several --dataset "
        "are fitted together; `left_out` is counted on each of them with P of the others. Beside it: no "
        "context, the mean y of the same task on the half fitted on, P = I, a random P with the same spectrum, and "
        "demonstrations in the prompt. R2 is of P x about y, KL from the model's own distribution. "
        "From contexts of the last layer x is y.\n\n"
        "--out gets P of all queries, for `recall`, `lm sweep` and `lm inject --projection`. --report puts figure and "
        "table into a report, beside what `lm study --report` has "
        "left of the same data there.",
    .example =
        "cgam lm fit --dataset capitals --dataset antonyms --shots 4 --queries 40 --store s.db "
        "--out P.safetensors",
    .params = params,
    .run = run,
    .print = print,
};
