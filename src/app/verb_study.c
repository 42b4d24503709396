/* verb_study.c: the studies as verbs. One table says which option fills which field; each study
 * lists the options it takes. */
#include "app/input.h"
#include "app/progress.h"
#include "app/study_print.h"
#include "app/verbs.h"
#include "base/env.h"
#include "report/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Options --------------------------------------------------------------------------------- */
#define COMMON(study_name, trials_default, trials_words)                                           \
    {.name = "trials",                                                                             \
     .kind = CGAM_INT,                                                                             \
     .value = "N",                                                                                 \
     .fallback = trials_default,                                                                   \
     .min = 1,                                                                                     \
     .max = 2147483648.0,                                                                          \
     .help = trials_words},                                                                        \
        {.name = "seed",                                                                           \
         .kind = CGAM_INT,                                                                         \
         .value = "N",                                                                             \
         .fallback = "1",                                                                          \
         .max = 9e15,                                                                              \
         .help = "seed of all random numbers"},                                                    \
        {.name = "out",                                                                            \
         .kind = CGAM_TEXT,                                                                        \
         .value = "DIR",                                                                           \
         .fallback = "study/" study_name,                                                          \
         .help = "folder for tables (CSV), summary (JSON), figures, and the progress that a "      \
                 "repeated call continues from"},                                                  \
    {                                                                                              \
        .name = "figures", .kind = CGAM_CHOICE, .value = "yes|no", .fallback = "yes",              \
        .help = "draw the figures (SVG, PNG, PDF; needs gnuplot)"                                  \
    }

#define ONLY_TRIAL                                                                                 \
    {                                                                                              \
        .name = "only-trial", .kind = CGAM_INT, .value = "K", .max = 2147483648.0,                 \
        .help = "print everything about trial K (0-based) as JSON and write nothing"               \
    }
#define ONLY_TRIAL_OF_BANKS                                                                        \
    {                                                                                              \
        .name = "only-trial", .kind = CGAM_INT, .value = "K", .max = 9e15,                         \
        .help = "print everything about trial K (0-based) as JSON and write nothing; trial t of "  \
                "bank b is K = b * trials + t"                                                     \
    }

#define REAL_OPTION(option, text, low, high, words)                                                \
    {                                                                                              \
        .name = option, .kind = CGAM_REAL, .value = "X", .fallback = text, .min = low,             \
        .max = high, .help = words                                                                 \
    }
#define INT_OPTION(option, text, low, high, words)                                                 \
    {                                                                                              \
        .name = option, .kind = CGAM_INT, .value = "N", .fallback = text, .min = low, .max = high, \
        .help = words                                                                              \
    }
#define LIST_OPTION(option, text, low, high, words)                                                \
    {                                                                                              \
        .name = option, .kind = CGAM_REALS, .value = "LIST", .fallback = text, .min = low,         \
        .max = high, .help = words                                                                 \
    }
#define CHOICE_OPTION(option, choices, text, words)                                                \
    {                                                                                              \
        .name = option, .kind = CGAM_CHOICE, .value = choices, .fallback = text, .help = words     \
    }

#define SIZE                                                                                       \
    INT_OPTION("n", "50", 2, 2048, "memories"), INT_OPTION("d", "10", 1, 1024, "dimensions")
#define NOISE_KIND                                                                                 \
    CHOICE_OPTION(                                                                                 \
        "context-noise", "component|vector", "component",                                          \
        "sigma_c per component (the paper's words), or sigma_c/sqrt(d) per component, so "         \
        "that the noise has length sigma_c")

static const cgam_param separation_params[] = {
    COMMON("separation", "6000",
           "trials for each sigma_q and bank; the same draws for every lambda"),
    ONLY_TRIAL_OF_BANKS,
    SIZE,
    REAL_OPTION("beta", "3.5", 0x1p-1000, INFINITY, "inverse temperature"),
    REAL_OPTION("alpha", "0.1", 0, 1e6, "penalty"),
    REAL_OPTION("sigma-c", "0.3", 0, 1e6, "context noise"),
    NOISE_KIND,
    LIST_OPTION("sigma-q", NULL, 0, 1e6, "query noise levels (default 12 even steps over [0,3])"),
    LIST_OPTION("lambda", "0,1,2,4,8,16", 0, 1e6, "couplings"),
    CHOICE_OPTION("mode", "first|coupled", "first",
                  "first-order or self-consistent recall; where flows lead is the subject of "
                  "`study timescale`"),
    INT_OPTION("banks", "1", 1, 4096, "memory sets, each with --trials trials"),
    {.name = ""},
};

#define CLUSTER                                                                                    \
    REAL_OPTION("centre", "2", 0x1p-1000, INFINITY, "norm of a cluster's centre"),                 \
        REAL_OPTION("spread", "0.3", 0, 1e6, "noise around it, per component, before normalising")

static const cgam_param competition_params[] = {
    COMMON("competition", "1000", "clusters"),
    ONLY_TRIAL,
    SIZE,
    REAL_OPTION("beta", "3.5", 0x1p-1000, INFINITY, "inverse temperature"),
    CLUSTER,
    LIST_OPTION("alphas", NULL, 0, 1e6, "penalties (default the paper's 75)"),
    REAL_OPTION("t-cap", "50", 1e-6, 1e12, "longest time of a transient, in units of tau_s"),
    REAL_OPTION("delta", "0.01", 1e-12, 1, "t* is when the winner should have 1 - delta"),
    INT_OPTION("example", "0", 0, 2147483648.0, "the trial whose gates are shown at alpha_crit"),
    {.name = ""},
};

static const cgam_param coupled_params[] = {
    COMMON("coupled", "1000", "clusters"),
    ONLY_TRIAL,
    SIZE,
    REAL_OPTION("beta", "5", 0x1p-1000, INFINITY, "inverse temperature"),
    CLUSTER,
    LIST_OPTION("lambda", "0,0.5,1,1.5,2,2.5,3", 0, 1e3, "couplings"),
    LIST_OPTION("alphas", NULL, 0, 1e3,
                "penalties for every lambda (default the paper's 173, and 60 around the theorem's "
                "threshold of each lambda)"),
    REAL_OPTION("noise", "1e-4", 0, 1e6, "standard deviation of r at the start"),
    REAL_OPTION("t-cap", "50", 1e-6, 1e5, "time of the transient from alpha_crit on"),
    INT_OPTION("max-iter", "500", 1, 1e9, "plain iterations at most"),
    REAL_OPTION("tol", "1e-8", 0, 1, "stop when r changes by no more"),
    INT_OPTION("fold-trials", "200", 0, 1e9, "trials in which the fold is followed"),
    {.name = ""},
};

static const cgam_param timescale_params[] = {
    COMMON("timescale", "1000", "flows for each ratio"),
    ONLY_TRIAL,
    SIZE,
    REAL_OPTION("beta", "3.5", 0x1p-1000, INFINITY, "inverse temperature"),
    REAL_OPTION("alpha", "0.1", 0, 1e3, "penalty"),
    LIST_OPTION("lambda", "2", 0, 1e3, "coupling, one value"),
    LIST_OPTION("sigma-q", "1", 0, 1e6, "query noise, one value"),
    REAL_OPTION("sigma-c", "0.3", 0, 1e6, "context noise"),
    NOISE_KIND,
    LIST_OPTION("ratio", "0.01,0.03,0.1,0.3,1,3,10,30,100", 1e-3, 1e3, "tau_r/tau_s"),
    CHOICE_OPTION("query", "clamped|free", "clamped",
                  "held, or following tau_q q' = Z'p - q with tau_q = tau_r"),
    CHOICE_OPTION("start", "rest|query", "rest", "r(0) = 0, or r(0) = Z q"),
    {.name = ""},
};

static const cgam_param theorems_params[] = {
    COMMON("theorems", "500", "random instances for each statement"),
    {.name = "only-trial",
     .kind = CGAM_INT,
     .value = "K",
     .max = 2147483648.0,
     .help = "print instance K (0-based) of every statement as JSON - memories, the numbers and "
             "vectors of the check, its margin - and write nothing"},
    {.name = ""},
};

#define GRID                                                                                       \
    REAL_OPTION("sigma-c", "0.3", 0, 1e6, "context noise"), NOISE_KIND,                            \
        INT_OPTION("banks", "8", 1, 4096, "memory sets, each with --trials trials"),               \
        INT_OPTION("d", "16", 1, 4096, "dimensions of random memories"),                           \
        {.name = "bank",                                                                           \
         .kind = CGAM_TEXT,                                                                        \
         .value = "FILE[:NAME]",                                                                   \
         .help = "take the memories from a file; without --load all of its rows"},                 \
    {                                                                                              \
        .name = "normalize", .kind = CGAM_FLAG,                                                    \
        .help = "divide each memory of the file by its norm"                                       \
    }

static const cgam_param capacity_params[] = {
    COMMON("capacity", "400", "trials for each bank, N/d and sigma_q"),
    ONLY_TRIAL_OF_BANKS,
    LIST_OPTION("load", NULL, 1e-3, 1e6,
                "memories per dimension, N/d (default 0.5,1,2,4,8,16,32,64,128)"),
    LIST_OPTION("lambda", "0,1,2,4", 0, 1e6, "couplings"),
    LIST_OPTION("alpha", "0.1", 0, 1e6, "penalties"),
    LIST_OPTION("sigma-q", "0.5", 0, 1e6, "query noise levels"),
    GRID,
    {.name = ""},
};

static const cgam_param phase_params[] = {
    COMMON("phase", "400", "trials for each bank, N/d and sigma_q"),
    ONLY_TRIAL_OF_BANKS,
    CHOICE_OPTION("x", "load|lambda|alpha|sigma-q", "sigma-q", "what runs to the right"),
    CHOICE_OPTION("y", "load|lambda|alpha|sigma-q", "lambda", "what runs upwards"),
    LIST_OPTION("load", NULL, 1e-3, 1e6, "memories per dimension, N/d (default 5)"),
    LIST_OPTION("lambda", "0,0.25,0.5,0.75,1,1.5,2,2.5,3,4,5,6,8", 0, 1e6, "couplings"),
    LIST_OPTION("alpha", "0.1", 0, 1e6, "penalties"),
    LIST_OPTION("sigma-q", NULL, 0, 1e6, "query noise levels (default 21 even steps over [0,3])"),
    GRID,
    {.name = ""},
};

static const cgam_param *const params_of[CGAM_STUDY_KINDS] = {
    separation_params, competition_params, coupled_params, timescale_params,
    theorems_params,   capacity_params,    phase_params,
};

/* Which field an option fills. Choices and files are taken by hand below. */
static const struct {
    const char *name;
    size_t offset;
} fields[] = {
    {"trials", offsetof(cgam_study_opts, trials)},
    {"seed", offsetof(cgam_study_opts, seed)},
    {"n", offsetof(cgam_study_opts, n)},
    {"d", offsetof(cgam_study_opts, d)},
    {"banks", offsetof(cgam_study_opts, banks)},
    {"example", offsetof(cgam_study_opts, example)},
    {"max-iter", offsetof(cgam_study_opts, max_iter)},
    {"fold-trials", offsetof(cgam_study_opts, fold_trials)},
    {"beta", offsetof(cgam_study_opts, beta)},
    {"sigma-c", offsetof(cgam_study_opts, sigma_c)},
    {"centre", offsetof(cgam_study_opts, centre)},
    {"spread", offsetof(cgam_study_opts, spread)},
    {"t-cap", offsetof(cgam_study_opts, t_cap)},
    {"delta", offsetof(cgam_study_opts, delta)},
    {"noise", offsetof(cgam_study_opts, noise)},
    {"tol", offsetof(cgam_study_opts, tol)},
    {"lambda", offsetof(cgam_study_opts, lambda)},
    {"sigma-q", offsetof(cgam_study_opts, sigma_q)},
    {"alphas", offsetof(cgam_study_opts, alphas)},
    {"load", offsetof(cgam_study_opts, load)},
    {"ratio", offsetof(cgam_study_opts, ratio)},
};

/* --alpha is one number for some studies and a list for others. */
static size_t field_of(const cgam_param *p)
{
    if (strcmp(p->name, "alpha") == 0)
        return p->kind == CGAM_REALS ? offsetof(cgam_study_opts, alphas)
                                     : offsetof(cgam_study_opts, alpha);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(p->name, fields[i].name) == 0) return fields[i].offset;
    return SIZE_MAX;
}

static bool chosen(const cgam_args *args, const char *name, const char *word)
{
    return strcmp(cgam_args_text(args, name), word) == 0;
}

static cgam_axis axis(const cgam_args *args, const char *name)
{
    if (chosen(args, name, "load")) return CGAM_AXIS_LOAD;
    if (chosen(args, name, "lambda")) return CGAM_AXIS_LAMBDA;
    return chosen(args, name, "alpha") ? CGAM_AXIS_ALPHA : CGAM_AXIS_SIGMA_Q;
}

static void take_number(const cgam_args *args, const cgam_param *p, cgam_study_opts *o)
{
    size_t offset = field_of(p);
    if (offset == SIZE_MAX || !cgam_args_given(args, p->name)) return;
    char *field = (char *)o + offset;
    if (p->kind == CGAM_INT) {
        int64_t value = cgam_args_int(args, p->name);
        memcpy(field, &value, sizeof value);
    } else if (p->kind == CGAM_REAL) {
        double value = cgam_args_real(args, p->name);
        memcpy(field, &value, sizeof value);
    } else if (p->kind == CGAM_REALS) {
        cgam_list list = {0};
        list.count = cgam_args_reals(args, p->name, &list.values);
        memcpy(field, &list, sizeof list);
    }
}

/* *bank: the file's memories where one is named; the caller frees it. */
static cgam_status take_options(cgam_call *call, cgam_study_kind kind, cgam_study_opts *o,
                                cgam_bank **bank)
{
    static const double whole[] = {0};
    const cgam_args *args = call->args;
    *o = cgam_study_opts_default(kind);
    *bank = NULL;
    for (const cgam_param *p = params_of[kind]; *p->name; p++) take_number(args, p, o);
    if (kind != CGAM_STUDY_COMPETITION && kind != CGAM_STUDY_COUPLED && kind != CGAM_STUDY_THEOREMS)
        o->sigma_c_vector = chosen(args, "context-noise", "vector");
    if (kind == CGAM_STUDY_SEPARATION) o->coupled = chosen(args, "mode", "coupled");
    if (kind == CGAM_STUDY_TIMESCALE) {
        o->query_free = chosen(args, "query", "free");
        o->start_query = chosen(args, "start", "query");
    }
    if (kind == CGAM_STUDY_PHASE) {
        o->x = axis(args, "x");
        o->y = axis(args, "y");
    }
    if ((kind == CGAM_STUDY_CAPACITY || kind == CGAM_STUDY_PHASE) && cgam_args_text(args, "bank")) {
        cgam_status status = cgam_input_bank(call, bank);
        if (status != CGAM_OK) return status;
        o->bank = *bank;
        if (!cgam_args_given(args, "load")) o->load = (cgam_list){whole, 1};
    }
    return CGAM_OK;
}

/* ---- Running --------------------------------------------------------------------------------- */
static void tell(void *user, double done, double left) { cgam_line_tell(user, done, left); }

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
    cgam_study_text_free(call->env, text);
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
    cgam_line bar = {.shown = call->progress, .what = cgam_study_name(kind)};
    o.out = out;
    o.progress = tell;
    o.user = &bar;
    if (status == CGAM_OK && single) {
        status = one_trial(call, &o);
        cgam_bank_free(bank);
        return status;
    }
    if (status == CGAM_OK) status = cgam_study_run(call->env, &o, &study);
    cgam_line_clear(&bar);
    if (status == CGAM_OK) status = cgam_study_write(study, out);
    if (status == CGAM_OK) status = merge(call, cgam_study_json(study));
    if (status == CGAM_OK && chosen(call->args, "figures", "yes")) status = draw(call, study, out);
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
        .params = kind_name##_params,                                                              \
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
    {.name = "NAME", .kind = CGAM_TEXT, .value = "NAME", .help = "one of the studies"},
    {.name = ""},
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
