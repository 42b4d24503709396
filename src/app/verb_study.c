/* verb_study.c: the studies as verbs. Their parameters are those of the library's table (study.h),
 * in the words of the command line. */
#include "app/input.h"
#include "app/params.h"
#include "app/progress.h"
#include "app/study_print.h"
#include "app/verbs.h"
#include "base/env.h"
#include "report/figure.h"

#include <assert.h>
#include <string.h>

/* ---- Parameters ------------------------------------------------------------------------------ */
enum { PARAMS_MAX = 40, WORDS_MAX = 160 };

/* What every study has besides its own parameters; --normalize where it takes a bank. */
static const cgam_param normalize_param =
    CGAM_PARAM_FLAG("normalize", "divide each memory of the file by its norm");
static const cgam_param door_params[] = {
    CGAM_PARAM_INT(
        "only-trial", "K", NULL, 0, 9e15,
        "print everything about trial K (0-based) as JSON and write nothing; with several "
        "banks, trial t of bank b is K = b * trials + t"),
    CGAM_PARAM_FIGURES("draw the figures (SVG, PNG, PDF; needs gnuplot)"),
    CGAM_PARAM_OUT(NULL,
                   "folder for tables (CSV), summary (JSON), figures, and the progress that a "
                   "repeated call continues from; results of another run in it are replaced"),
    CGAM_PARAM_END,
};
enum { DOOR_PARAMS = sizeof door_params / sizeof *door_params };

/* A study as a verb: its parameters in the words of the command line, and the room for them. */
static struct study_verb {
    cgam_param params[PARAMS_MAX];
    char folder[64];
    char words[PARAMS_MAX][WORDS_MAX], fallbacks[PARAMS_MAX][WORDS_MAX];
} made[CGAM_STUDY_KINDS];

/* Row k of the study's table in the words of the command line. */
static cgam_param from_row(const cgam_study_param *p, const cgam_study_opts *usual,
                           struct study_verb *v, int k)
{
    static const struct {
        cgam_param_kind kind;
        const char *value;
    } forms[] = {
        [CGAM_FIELD_INT] = {CGAM_INT, "N"},       [CGAM_FIELD_REAL] = {CGAM_REAL, "X"},
        [CGAM_FIELD_LIST] = {CGAM_REALS, "LIST"}, [CGAM_FIELD_BOOL] = {CGAM_CHOICE, NULL},
        [CGAM_FIELD_AXIS] = {CGAM_CHOICE, NULL},  [CGAM_FIELD_BANK] = {CGAM_TEXT, "FILE[:NAME]"}};
    cgam_param out = {.name = p->name,
                      .kind = forms[p->kind].kind,
                      .value = forms[p->kind].value,
                      .min = p->low,
                      .max = p->high,
                      .help = p->help};
    char *words = v->words[k];
    for (int i = 0; p->words && p->words[i]; i++)
        snprintf(words + strlen(words), WORDS_MAX - strlen(words), "%s%s", i ? "|" : "",
                 p->words[i]);
    if (p->words) out.value = words;
    if (p->list_words) {
        snprintf(words, WORDS_MAX, "%s (default %s)", p->help, p->list_words);
        out.help = words;
    } else if (cgam_study_param_text(p, usual, v->fallbacks[k], WORDS_MAX) > 0) {
        out.fallback = v->fallbacks[k];
    }
    return out;
}

/* Before main: the verbs are a constant table to everybody else. */
__attribute__((constructor)) static void make_params(void)
{
    for (int kind = 0; kind < CGAM_STUDY_KINDS; kind++) {
        struct study_verb *v = &made[kind];
        const cgam_study_opts usual = cgam_study_opts_default((cgam_study_kind)kind);
        const cgam_study_param *p;
        int count = 0;
        bool banks = false;
        for (int k = 0; (p = cgam_study_param_at((cgam_study_kind)kind, k)); k++) {
            assert(k + 1 + DOOR_PARAMS <= PARAMS_MAX);
            v->params[count++] = from_row(p, &usual, v, k);
            banks = banks || p->kind == CGAM_FIELD_BANK;
        }
        if (banks) v->params[count++] = normalize_param;
        memcpy(v->params + count, door_params, sizeof door_params);
        snprintf(v->folder, sizeof v->folder, "study/%s", cgam_study_name((cgam_study_kind)kind));
        v->params[count + DOOR_PARAMS - 2].fallback = v->folder;
    }
}

/* *bank: the file's memories where one is named; the caller frees it. */
static cgam_status take_options(cgam_call *call, cgam_study_kind kind, cgam_study_opts *o,
                                cgam_bank **bank)
{
    static const double whole[] = {0};
    const cgam_args *args = call->args;
    const cgam_study_param *p;
    *o = cgam_study_opts_default(kind);
    *bank = NULL;
    for (int64_t k = 0; (p = cgam_study_param_at(kind, k)); k++) {
        double number;
        cgam_list list = {&number, 1};
        if (!cgam_args_given(args, p->name)) continue;
        switch (p->kind) {
        case CGAM_FIELD_INT: number = (double)cgam_args_int(args, p->name); break;
        case CGAM_FIELD_REAL: number = cgam_args_real(args, p->name); break;
        case CGAM_FIELD_LIST: list.count = cgam_args_reals(args, p->name, &list.values); break;
        case CGAM_FIELD_BOOL:
        case CGAM_FIELD_AXIS: number = cgam_args_choice(args, p->name); break;
        case CGAM_FIELD_BANK: continue;
        }
        cgam_study_param_set(p, list, o);
    }
    if (!cgam_study_param_find(kind, "bank") || !cgam_args_given(args, "bank")) return CGAM_OK;
    cgam_status status = cgam_input_bank(call, bank);
    o->bank = *bank;
    if (!cgam_args_given(args, "load")) o->load = (cgam_list){whole, 1};
    return status;
}

/* ---- Running --------------------------------------------------------------------------------- */
/* Adds the keys of a JSON text to the document. */
static cgam_status merge(cgam_call *call, const char *text)
{
    json_t *doc;
    cgam_status status = cgam_json_parse(call->env, "summary", text, strlen(text), &doc);
    if (status != CGAM_OK) return status;
    if (json_object_update(call->doc, doc) != 0) cgam_json_put_bool(call->doc, "incomplete", true);
    json_decref(doc);
    return CGAM_OK;
}

static cgam_status one_trial(cgam_call *call, const cgam_study_opts *o)
{
    char *text;
    cgam_status status =
        cgam_study_trial(call->env, o, cgam_args_int(call->args, "only-trial"), &text);
    if (status == CGAM_OK) status = merge(call, text);
    cgam_text_free(call->env, text);
    return status;
}

/* Figures; a missing gnuplot is told, and is no failure: tables and summary are complete. */
static cgam_status draw(cgam_call *call, const cgam_study *study, const char *out)
{
    cgam_figures figures;
    bool missing;
    cgam_status status = cgam_figures_write(study, out, &figures);
    if (status == CGAM_OK) status = cgam_figures_draw(call->env, out, &figures, &missing);
    if (status != CGAM_OK) return status;
    json_t *names = json_array();
    for (int i = 0; i < figures.count && !missing; i++)
        json_array_append_new(names, json_string(figures.figure[i].name));
    cgam_json_put(call->doc, "figures", names);
    if (missing) cgam_json_put_text(call->doc, "figures_missing", "gnuplot was not found");
    return CGAM_OK;
}

/* A theorem that failed is a negative answer. */
static bool violated(const cgam_study *study)
{
    const cgam_table *t = cgam_study_find(study, "checks");
    int64_t column = cgam_table_column(t, "violations");
    for (int64_t i = 0; i < t->rows; i++)
        if (t->cells[i * t->columns + column] > 0) return true;
    return false;
}

static cgam_status run_kind(cgam_call *call, cgam_study_kind kind)
{
    cgam_study_opts o;
    cgam_bank *bank;
    cgam_study *study = NULL;
    double begun = cgam_clock();
    const char *out = cgam_args_text(call->args, "out");
    cgam_status status = take_options(call, kind, &o, &bank);
    bool single = cgam_args_given(call->args, "only-trial");
    cgam_line bar = {.shown = call->progress};
    o.out = out;
    o.progress = (cgam_progress){cgam_line_report, &bar};
    if (status == CGAM_OK && single) {
        status = one_trial(call, &o);
        cgam_bank_free(bank);
        return status;
    }
    if (status == CGAM_OK) status = cgam_study_run(call->env, &o, &study);
    cgam_line_clear(&bar);
    if (status == CGAM_OK) status = cgam_results_write(study, out);
    if (status == CGAM_OK) status = merge(call, cgam_study_json(study));
    if (status == CGAM_OK && cgam_args_is(call->args, "figures", "yes"))
        status = draw(call, study, out);
    if (status == CGAM_OK) {
        if (kind == CGAM_STUDY_THEOREMS) call->negative = violated(study);
        cgam_json_put_text(call->doc, "out", out);
        cgam_json_put_real(call->doc, "seconds", cgam_clock() - begun);
        cgam_study_forget(study);
    }
    cgam_study_free(study);
    cgam_bank_free(bank);
    return status;
}

/* ---- Words ----------------------------------------------------------------------------------- */
#define CONTINUES                                                                                      \
    "\n\nThe same seed and options give the same numbers whatever the number of threads. A run "       \
    "that was stopped (Ctrl-C, a kill) continues when the same call is made again, and ends with the " \
    "same bits. Without gnuplot there are no figures, everything else is complete, and the exit "      \
    "status is 0."

#define VERB(kind_name, KIND, summary_text, about_text, example_text)                              \
    static cgam_status run_##kind_name(cgam_call *call) { return run_kind(call, KIND); }           \
    const cgam_verb cgam_verb_study_##kind_name = {                                                \
        .name = "study " #kind_name,                                                               \
        .summary = summary_text,                                                                   \
        .about = about_text CONTINUES,                                                             \
        .example = example_text,                                                                   \
        .params = made[KIND].params,                                                               \
        .run = run_##kind_name,                                                                    \
        .print = cgam_study_print,                                                                 \
    };

VERB(
    separation, CGAM_STUDY_SEPARATION, "accuracy and gaps against query noise (paper, fig. 2)",
    "One bank of unit Gaussian memories. A trial picks a target, a noisy query and a noisy "
    "context, recalls with every lambda on the same draws, and is counted right when the target wins. Also "
    "kept: the gap between the target's score and the best other one, and whether the target's "
    "probability is above the logistic bound.",
    "cgam study separation --context-noise vector --out out")
VERB(competition, CGAM_STUDY_COMPETITION, "peak gate probability against alpha (fig. 3 a-c)",
     "Each trial draws a cluster of unit memories and gives every gate the same input. Below "
     "alpha_crit the gates settle; from there on their closed-form transient is taken at min(t*, "
     "t_cap). Reported is the mean of the largest gate probability for every alpha.",
     "cgam study competition --t-cap 200")
VERB(coupled, CGAM_STUDY_COUPLED, "the same with feedback from retrieval (fig. 3 d)",
     "Clusters as in competition. Retrieval feeds back into the gates: the self-consistent fixed "
     "point from a noisy start while A(alpha) is positive definite, the transient to t_cap from "
     "alpha_crit on. For every lambda: the curve, where its mean peak crosses 1/2, the theorem's "
     "threshold, and the fold of the branch of fixed points.",
     "cgam study coupled --lambda 0,1,2 --trials 200")
VERB(timescale, CGAM_STUDY_TIMESCALE, "do gates that are faster than retrieval precondition it",
     "Integrates gates and retrieval for ratios tau_r/tau_s, from rest or from the query, with the "
     "query clamped or free, and tells when the context has settled, when retrieval has decided, "
     "how many memories are in play along the way, and how often the target wins.",
     "cgam study timescale --start query")
VERB(theorems, CGAM_STUDY_THEOREMS, "every theorem of the paper, counted on random instances",
     "Draws random instances and counts, for every statement, cases, violations and the worst "
     "margin. The exit status is 1 when there is a violation.",
     "cgam study theorems --trials 2000")
VERB(
    capacity, CGAM_STUDY_CAPACITY, "recall accuracy against memories per dimension",
    "First-order recall of noisy queries with a noisy context, for a product of N/d, lambda, alpha "
    "and sigma_q, on random unit memories or on rows of a bank of yours.",
    "cgam study capacity --load 1,4,16,64 --lambda 0,2")
VERB(phase, CGAM_STUDY_PHASE, "recall accuracy as a map over two parameters",
     "As capacity, drawn as a heat map over any two of N/d, lambda, alpha and sigma_q; the other "
     "two take their first value.",
     "cgam study phase --x alpha --y load --alpha 0,0.2,0.4,0.6,0.8 --load 1,2,4,8,16 --lambda 2 "
     "--sigma-q 0.5")

/* ---- The list -------------------------------------------------------------------------------- */
static const cgam_param list_params[] = {
    CGAM_PARAM_TEXT("NAME", "NAME", "one of the studies"),
    CGAM_PARAM_END,
};

/* Reached only when no study has the name that was typed. */
static cgam_status list_run(cgam_call *call)
{
    const char *typed = cgam_args_text(call->args, "NAME");
    if (typed) {
        char all[256] = "";
        for (int k = 0; k < CGAM_STUDY_KINDS; k++)
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", k ? ", " : "",
                     cgam_study_name((cgam_study_kind)k));
        return cgam_fail(call->env, CGAM_E_ARG, "no study '%s'; there are %s", typed, all);
    }
    json_t *list = json_array();
    for (int k = 0; k < CGAM_STUDY_KINDS; k++) {
        json_t *one = json_object();
        cgam_json_put_text(one, "name", cgam_study_name((cgam_study_kind)k));
        cgam_json_put_text(one, "about", cgam_study_about((cgam_study_kind)k));
        json_array_append_new(list, one);
    }
    cgam_json_put(call->doc, "studies", list);
    return CGAM_OK;
}

static void list_print(const json_t *doc, FILE *to)
{
    const json_t *list = json_object_get(doc, "studies");
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *one = json_array_get(list, k);
        fprintf(to, "  cgam study %-12s %s\n", cgam_json_get_text(one, "name"),
                cgam_json_get_text(one, "about"));
    }
}

const cgam_verb cgam_verb_study = {
    .name = "study",
    .summary = "list the studies",
    .about = "Lists the simulations. `cgam help study separation` explains one; `cgam report` runs "
             "them all.",
    .example = "cgam study",
    .params = list_params,
    .run = list_run,
    .print = list_print,
};
