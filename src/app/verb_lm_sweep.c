/* verb_lm_sweep.c: retrieval by query plus context over all pairs of layers, with its controls. */
#include "app/lm_draw.h"
#include "app/lm_sweep.h"
#include "app/verbs.h"
#include "base/env.h"

#include <math.h>

static const cgam_param params[] = {
    CGAM_PARAMS_PROMPTS,
    {.name = "lens",
     .kind = CGAM_CHOICE,
     .value = "raw|gain|norm",
     .help = "rows as they are, or times the final norm's weights (both keep lambda exact), or the "
             "final norm of the sum on a grid of lambda; gain, or norm if a bias follows the norm"},
    {.name = "lambda-scale",
     .kind = CGAM_CHOICE,
     .value = "relative|absolute",
     .fallback = "relative",
     .help = "contexts rescaled to the mean norm of the query layer, or as they are"},
    {.name = "in-sample",
     .kind = CGAM_FLAG,
     .help = "contexts from all queries instead of the other half"},
    {.name = "out",
     .kind = CGAM_TEXT,
     .value = "DIR",
     .help = "write sweep.json, sweep.csv, sweep_steps.csv, sweep_grid.csv and figures here"},
    CGAM_PARAM_LM_FIGURES,
    {.name = ""},
};

static const char *const lenses[] = {"raw", "gain", "norm"}; /* as cgam_lens_kind counts */

static cgam_status begin(cgam_call *call, cgam_lm_input *in, cgam_sweep_study *s)
{
    cgam_env *env = call->env;
    cgam_status status = cgam_lm_input_open(call, in);
    if (status == CGAM_OK && in->shots[in->n_shots - 1] == 0)
        status = cgam_fail(env, CGAM_E_ARG, "--shots: a sweep needs demonstrations, 1 or more");
    if (status == CGAM_OK) status = cgam_lm_input_label_tokens(in, &s->tokens);
    if (status == CGAM_OK) status = cgam_lens_new(in->lm, &s->lens);
    if (status == CGAM_OK) {
        const char *lens = cgam_args_text(call->args, "lens");
        s->kind = cgam_lens_linear(s->lens) ? CGAM_LENS_GAIN : CGAM_LENS_NORM;
        for (int i = 0; i < 3 && lens; i++)
            if (strcmp(lens, lenses[i]) == 0) s->kind = (cgam_lens_kind)i;
        if (s->kind == CGAM_LENS_GAIN && !cgam_lens_linear(s->lens))
            status = cgam_fail(env, CGAM_E_ARG,
                               "--lens gain: this model adds a bias after its final norm, so no "
                               "lambda is exact; take norm or raw");
    }
    if (status == CGAM_OK) {
        s->target = cgam_alloc(env, (size_t)in->queries, sizeof *s->target);
        if (!s->target) status = cgam_fail_nomem(env, "targets");
    }
    for (int64_t i = 0; i < in->queries && status == CGAM_OK; i++) {
        int64_t label = cgam_prompts_label(in->prompts, i);
        s->target[i] = s->tokens[label] >= 0 ? (int32_t)label : -1;
    }
    if (status == CGAM_OK) status = cgam_lm_input_states(in, 0, CGAM_DEMOS_TRUE, &s->zero);
    if (status == CGAM_OK)
        status = cgam_csv_begin(call->env, cgam_args_text(call->args, "out"), "sweep.csv",
                                "shots,context_layer,query_layer,restricted,restricted_from,"
                                "restricted_to,full,full_from,full_to",
                                &s->cells);
    if (status == CGAM_OK)
        status = cgam_csv_begin(
            call->env, cgam_args_text(call->args, "out"), "sweep_steps.csv",
            "shots,context,over_vocabulary,context_layer,query_layer,lambda_from,lambda_to,"
            "accuracy",
            &s->steps);
    if (status == CGAM_OK)
        status = cgam_csv_begin(call->env, cgam_args_text(call->args, "out"), "sweep_grid.csv",
                                "shots,context_layer,query_layer,lambda,restricted,full", &s->grid);
    return status;
}

static cgam_status run(cgam_call *call)
{
    cgam_lm_input in;
    cgam_sweep_study s = {.in = &in};
    s.relative = strcmp(cgam_args_text(call->args, "lambda-scale"), "relative") == 0;
    s.in_sample = cgam_args_flag(call->args, "in-sample");
    json_t *shots = json_array();
    cgam_status status = begin(call, &in, &s);
    for (int64_t i = 1; i < in.n_shots && status == CGAM_OK; i++)
        status = cgam_sweep_study_shots(&s, in.shots[i], shots);
    status = cgam_csv_end(&s.cells, status);
    status = cgam_csv_end(&s.steps, status);
    status = cgam_csv_end(&s.grid, status);
    if (status == CGAM_OK) cgam_put_lm_input(call->doc, &in);
    cgam_json_put_text(call->doc, "lens", lenses[s.kind]);
    cgam_json_put_bool(call->doc, "exact_lambda", s.kind != CGAM_LENS_NORM);
    cgam_json_put_text(call->doc, "lambda_scale", cgam_args_text(call->args, "lambda-scale"));
    cgam_json_put_bool(call->doc, "in_sample", s.in_sample);
    cgam_json_put(call->doc, "shots", shots);
    if (status == CGAM_OK) status = cgam_lm_draw(call, CGAM_MODELS_SWEEP);
    if (status == CGAM_OK)
        status =
            cgam_json_save(call->env, cgam_args_text(call->args, "out"), "sweep.json", call->doc);
    cgam_free(call->env, s.tokens);
    cgam_free(call->env, s.target);
    cgam_free(call->env, s.zero);
    cgam_lens_free(s.lens);
    cgam_lm_input_close(&in);
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
    fprintf(to, "  %-34s %6.3f %9.3f  +- %.3f", name, cgam_json_get_real(best, "accuracy"),
            cgam_json_get_real(best, "held_out"), cgam_json_get_real(best, "held_out_se"));
    if (json_object_get(best, "context_layer"))
        fprintf(to, "  context %2lld,", (long long)cgam_json_get_int(best, "context_layer"));
    else fputs("             ", to);
    fprintf(to, " query %2lld, lambda %s\n", (long long)cgam_json_get_int(best, "query_layer"),
            range);
}

static void print_entry(FILE *to, const json_t *e)
{
    const json_t *zero = json_object_get(e, "zero_shot"), *icl = json_object_get(e, "icl");
    const json_t *best = json_object_get(e, "best"), *c = json_object_get(e, "controls");
    const json_t *threshold = json_object_get(c, "threshold");
    static const char *const names[] = {"restricted", "full"};
    static const char *const words[] = {"over the labels", "over the whole vocabulary"};
    fprintf(to, "\n%lld shots, %lld queries\n", (long long)cgam_json_get_int(e, "k"),
            (long long)cgam_json_get_int(e, "queries"));
    for (int over = 0; over < 2; over++) {
        char se[32];
        snprintf(se, sizeof se, "%s_se", names[over]);
        fprintf(to, "\n %-35s %6s %9s\n", words[over], "best", "held out");
        fprintf(to, "  %-34s %6s %9.3f  +- %.3f\n", "zero-shot", "",
                cgam_json_get_real(zero, names[over]), cgam_json_get_real(zero, se));
        fprintf(to, "  %-34s %6s %9.3f  +- %.3f\n", "with demonstrations", "",
                cgam_json_get_real(icl, names[over]), cgam_json_get_real(icl, se));
        print_best(to, "query + lambda context", json_object_get(best, names[over]));
        double share = cgam_json_get_real(e, over ? "recovered_full" : "recovered");
        if (isnan(share)) fprintf(to, "  %-34s %6s %9s\n", "share of the gain recovered", "", "-");
        else
            fprintf(to, "  %-34s %6s %9.3f  +- %.3f\n", "share of the gain recovered", "", share,
                    cgam_json_get_real(e, over ? "recovered_full_se" : "recovered_se"));
        if (over == 0) {
            const json_t *centred = json_object_get(c, "centred");
            fprintf(to, "  %-34s %6s %9.3f  +- %.3f  last layer\n", "control: zero-shot, centred",
                    "", cgam_json_get_real(centred, "accuracy"),
                    cgam_json_get_real(centred, "accuracy_se"));
            fprintf(to, "  %-34s %6s %9.3f  +- %.3f  best layer\n", "", "",
                    cgam_json_get_real(centred, "held_out"),
                    cgam_json_get_real(centred, "held_out_se"));
            if (json_is_object(threshold))
                fprintf(to, "  %-34s %6.3f %9s  at any layer; AUC at the last %.3f\n",
                        "control: best threshold, zero-shot",
                        cgam_json_get_real(threshold, "bound"), "",
                        cgam_json_get_real(threshold, "auc"));
        }
        print_best(to, "control: mean of the labels' rows",
                   json_object_get(json_object_get(c, "label_mean"), names[over]));
        print_best(to, "control: flipped demonstrations",
                   json_object_get(json_object_get(c, "flipped"), names[over]));
        print_best(to, "control: context of another task",
                   json_object_get(json_object_get(c, "other_task"), names[over]));
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
    json_array_foreach(json_object_get(doc, "shots"), i, entry) print_entry(to, entry);
}

const cgam_verb cgam_verb_lm_sweep = {
    .name = "lm sweep",
    .summary = "retrieval by query plus context, all layer pairs, exact couplings, controls",
    .about =
        "Scores every word by <zeta, q> + lambda <zeta, c>: q a query's state without "
        "demonstrations after one layer, c the mean effect of demonstrations after another. "
        "The score is linear in lambda, so each query is right on one interval and the "
        "accuracy of a pair of layers is an exact step function; the best pair comes with its "
        "range of lambda.\n\n"
        "Contexts come from the other half of the queries; `held out` is the accuracy of the "
        "pair and coupling that were best on one half, counted on the other. Of pairs that do "
        "equally well the one with the widest range of lambda is taken; held_out_ties in the "
        "document is the mean over all of them, so that nothing hangs on that rule. Errors are "
        "by drawing queries with replacement, the choice of the pair left as it is.\n\n"
        "A bias after the final norm makes no coupling exact: such a model is read through its "
        "norm on a grid of lambda, and the document says so (exact_lambda).\n\n"
        "Over the labels alone a shared context can only move the borders between classes. The "
        "controls say how far that carries: centred zero-shot scores, the best threshold (two "
        "classes), the mean of the labels' rows in place of a context, demonstrations with "
        "flipped labels, and the context of another task.",
    .example = "cgam lm sweep --dataset sentiment --shots 4 --queries 40 --store s.db --out sweep",
    .params = params,
    .run = run,
    .print = print,
};
