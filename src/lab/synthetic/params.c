/* params.c: the parameters of all studies, one row each.
 *
 * Defaults, checks, the copy of the options, the fingerprint of a run, `parameters` in the summary,
 * the command line with its help, captions and printed commands loop over this table. To add a parameter,
 * add a row here and a field to cgam_study_opts. A study with its own default, range or
 * description has its own row under the same name. */
#include "lab/synthetic/study.h"

#include "lab/document.h"
#include "lab/synthetic/alphas.h"
#include "lab/synthetic/stream.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- The table ------------------------------------------------------------------------------- */
#define BIT(kind) (1u << CGAM_STUDY_##kind)
enum {
    SEP = BIT(SEPARATION),
    COMP = BIT(COMPETITION),
    COUP = BIT(COUPLED),
    TIME = BIT(TIMESCALE),
    THEO = BIT(THEOREMS),
    CAP = BIT(CAPACITY),
    PHASE = BIT(PHASE),
    CONV = BIT(CONVERGENCE),
    ANN = BIT(ANNEALING),
    SPARSE = BIT(SPARSE),
    RIVALS = BIT(RIVALS),
    GRIDS = CAP | PHASE,
    POINTS = CONV | ANN,
    SIZED = SEP | COMP | COUP | TIME | SPARSE,
    CLUSTERS = COMP | COUP,
    NOISY = SEP | TIME | GRIDS | POINTS | SPARSE | RIVALS,
    ALL = SIZED | THEO | GRIDS | POINTS | RIVALS
};

/* Limits of lists: bits of the random streams, and room in the studies. */
enum { LAMBDAS = CGAM_STUDY_LAMBDAS_MAX, RATIOS = 64, GRID = 256 };
#define TRIALS 2147483648.0
#define ABOVE_0 0x1p-1000 /* any number above zero that leaves room for its inverse */

#define ROW(name_, studies_, kind_, field_, usual_, low_, high_, help_, shown_)                    \
    .name = name_, .studies = studies_, .kind = CGAM_FIELD_##kind_,                                \
    .offset = offsetof(cgam_study_opts, field_), .usual = usual_, .low = low_, .high = high_,      \
    .help = help_, .shown = shown_
#define LIST(...)                                                                                  \
    .list = {(const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double)}
#define WORDS(...)                                                                                 \
    .words = (const char *const[]) { __VA_ARGS__, NULL }
#define EVEN12(i) (3.0 * (i) / 11)
#define EVEN21(i) (3.0 * (i) / 20)

const char *const cgam_axes[] = {"load", "lambda", "alpha", "sigma-q", NULL};

static const cgam_study_param table[] = {
    {ROW("trials", SEP, INT, trials, 6000, 1, TRIALS,
         "trials for each sigma_q and bank; the same draws for every lambda",
         "%s trials per point")},
    {ROW("trials", CLUSTERS, INT, trials, 1000, 1, TRIALS, "number of clusters", "%s clusters")},
    {ROW("trials", TIME, INT, trials, 1000, 1, TRIALS, "number of flows for each ratio",
         "%s flows")},
    {ROW("trials", THEO, INT, trials, 500, 1, TRIALS, "random instances for each statement",
         "%s cases")},
    {ROW("trials", GRIDS, INT, trials, 400, 1, TRIALS, "trials for each bank, N/d and sigma_q",
         "%s trials")},
    {ROW("trials", CONV, INT, trials, 16, 1, TRIALS, "problems, each with its own memories",
         "%s problems")},
    {ROW("trials", ANN, INT, trials, 100, 1, TRIALS, "problems, each with its own memories",
         "%s problems")},
    {ROW("trials", SPARSE, INT, trials, 1000, 1, TRIALS, "problems, each with its own memories",
         "%s problems")},
    {ROW("trials", RIVALS, INT, trials, 16, 1, TRIALS,
         "trials for each sigma_q and bank; the same draws for every mechanism",
         "%s trials per bank and point")},
    {ROW("seed", ALL, INT, seed, 1, 0, 9e15, "seed of all random numbers", NULL)},
    {ROW("x", PHASE, AXIS, x, CGAM_AXIS_SIGMA_Q, 0, 3, "quantity on the horizontal axis", NULL),
     .words = cgam_axes},
    {ROW("y", PHASE, AXIS, y, CGAM_AXIS_LAMBDA, 0, 3, "quantity on the vertical axis", NULL),
     .words = cgam_axes},
    {ROW("n", SIZED, INT, n, 50, 2, 2048, "memories", "N = %s")},
    {ROW("d", SIZED, INT, d, 10, 1, 1024, "dimensions", "d = %s")},
    {ROW("n", POINTS, INT, n, 12, 2, 1024, "memories", "N = %s")},
    {ROW("d", POINTS, INT, d, 6, 1, 1024, "dimensions", "d = %s")},
    {ROW("n", RIVALS, INT, n, 50, 2, 512, "memories", "N = %s")},
    {ROW("d", RIVALS, INT, d, 10, 1, 256, "dimensions", "d = %s")},
    {ROW("d", GRIDS, INT, d, 16, 1, 4096, "dimensions of random memories", "d = %s")},
    {ROW("beta", SEP | COMP | TIME | SPARSE | RIVALS, REAL, beta, 3.5, ABOVE_0, INFINITY,
         "inverse temperature", "β = %s")},
    {ROW("beta", COUP, REAL, beta, 5, ABOVE_0, INFINITY, "inverse temperature", "β = %s")},
    {ROW("beta", CONV, LIST, betas, 0, ABOVE_0, 1e6, "inverse temperatures", NULL), LIST(1, 4, 16),
     .most = GRID},
    {ROW("beta", ANN, LIST, betas, 0, ABOVE_0, 1e6, "inverse temperatures", NULL), LIST(2, 8, 32),
     .most = GRID},
    {ROW("alpha", ANN, REAL, alpha, 0.5, 0, 1e3, "penalty", "α = %s")},
    {ROW("alpha", CONV, LIST, alphas, 0, 0, 1e3,
         "penalties; those at or above alpha_crit are left out", NULL),
     LIST(0, 0.9), .most = GRID},
    {ROW("alpha", SEP | SPARSE, REAL, alpha, 0.1, 0, 1e6, "penalty", "α = %s")},
    {ROW("alpha", TIME, REAL, alpha, 0.1, 0, 1e3, "penalty", "α = %s")},
    {ROW("alpha", GRIDS, LIST, alphas, 0, 0, 1e6, "penalties", "α = %s"), LIST(0.1), .most = GRID},
    {ROW("alpha", RIVALS, LIST, alphas, 0, 0, 0.99,
         "penalties that the gates choose from; at 0, first-order gates are the same as "
         "query mixing",
         NULL),
     LIST(0.05, 0.1, 0.2, 0.4, 0.8), .most = 16},
    {ROW("alphas", COMP, LIST, alphas, 0, 0, 1e6, "penalties", NULL),
     .list_words = "the paper's 75", .most = CGAM_ALPHAS_MAX},
    {ROW("alphas", COUP, LIST, alphas, 0, 0, 1e3, "penalties for every lambda", NULL),
     .list_words = "the paper's 173, and 60 around the theorem's threshold of each lambda",
     .most = CGAM_ALPHAS_MAX},
    {ROW("lambda", SEP, LIST, lambda, 0, 0, 1e6, "couplings", NULL), LIST(0, 1, 2, 4, 8, 16),
     .most = LAMBDAS},
    {ROW("lambda", COUP, LIST, lambda, 0, 0, 1e3, "couplings", NULL),
     LIST(0, 0.5, 1, 1.5, 2, 2.5, 3), .most = LAMBDAS},
    {ROW("lambda", TIME, LIST, lambda, 0, 0, 1e3, "coupling, one value", "λ = %s"), LIST(2),
     .most = 1},
    {ROW("lambda", CONV, LIST, lambda, 0, 0, 1e3, "couplings", NULL), LIST(0.5, 1, 2),
     .most = GRID},
    {ROW("lambda", ANN, LIST, lambda, 0, 0, 1e3, "couplings", NULL), LIST(0.5, 1, 1.5, 2),
     .most = GRID},
    {ROW("lambda", SPARSE, LIST, lambda, 0, 0, 1e3, "coupling, one value", "λ = %s"), LIST(2),
     .most = 1},
    {ROW("lambda", CAP, LIST, lambda, 0, 0, 1e6, "couplings", NULL), LIST(0, 1, 2, 4),
     .most = GRID},
    {ROW("lambda", PHASE, LIST, lambda, 0, 0, 1e6, "couplings", "λ = %s"),
     LIST(0, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8), .most = GRID},
    {ROW("lambda", RIVALS, LIST, lambda, 0, 0, 1e3, "couplings that the mechanisms choose from",
         NULL),
     LIST(0, 0.5, 1, 2, 4, 8, 16, 32, 64), .most = 16},
    {ROW("load", CAP, LIST, load, 0, 0, 1e6, "memories per dimension, N/d; 0 = all rows of --bank",
         NULL),
     LIST(0.5, 1, 2, 4, 8, 16, 32, 64, 128), .most = GRID},
    {ROW("load", PHASE, LIST, load, 0, 0, 1e6,
         "memories per dimension, N/d; 0 = all rows of --bank", "N/d = %s"),
     LIST(5), .most = GRID},
    {ROW("sigma-q", SEP | RIVALS, LIST, sigma_q, 0, 0, 1e6, "query noise levels", NULL),
     LIST(EVEN12(0), EVEN12(1), EVEN12(2), EVEN12(3), EVEN12(4), EVEN12(5), EVEN12(6), EVEN12(7),
          EVEN12(8), EVEN12(9), EVEN12(10), EVEN12(11)),
     .list_words = "12 even steps over [0,3]", .most = CGAM_STREAM_CELLS},
    {ROW("sigma-q", POINTS, LIST, sigma_q, 0, 0, 1e6, "query noise, one value", "σ_q = %s"),
     LIST(1), .most = 1},
    {ROW("sigma-q", SPARSE, LIST, sigma_q, 0, 0, 1e6, "query noise levels", NULL),
     LIST(0, 0.25, 0.5, 0.75, 1, 1.5, 2, 3), .most = CGAM_STREAM_CELLS},
    {ROW("sigma-q", TIME, LIST, sigma_q, 0, 0, 1e6, "query noise, one value", "σ_q = %s"), LIST(1),
     .most = 1},
    {ROW("sigma-q", CAP, LIST, sigma_q, 0, 0, 1e6, "query noise levels", "σ_q = %s"), LIST(0.5),
     .most = GRID},
    {ROW("sigma-q", PHASE, LIST, sigma_q, 0, 0, 1e6, "query noise levels", "σ_q = %s"),
     LIST(EVEN21(0), EVEN21(1), EVEN21(2), EVEN21(3), EVEN21(4), EVEN21(5), EVEN21(6), EVEN21(7),
          EVEN21(8), EVEN21(9), EVEN21(10), EVEN21(11), EVEN21(12), EVEN21(13), EVEN21(14),
          EVEN21(15), EVEN21(16), EVEN21(17), EVEN21(18), EVEN21(19), EVEN21(20)),
     .list_words = "21 even steps over [0,3]", .most = GRID},
    {ROW("sigma-c", NOISY, REAL, sigma_c, 0.3, 0, 1e6, "context noise", "σ_c = %s")},
    {ROW("context-noise", NOISY, BOOL, sigma_c_vector, 0, 0, 1,
         "sigma_c per component (as the paper says), or sigma_c/sqrt(d) per component, so "
         "that the noise has length sigma_c",
         "σ_c per %s"),
     WORDS("component", "vector")},
    {ROW("mode", SEP, BOOL, coupled, 0, 0, 1,
         "first-order or self-consistent recall (for flows see `study timescale`)", "mode %s"),
     WORDS("first", "coupled")},
    {ROW("mode", SPARSE, BOOL, coupled, 0, 0, 1, "first-order or self-consistent recall",
         "mode %s"),
     WORDS("first", "coupled")},
    {ROW("ratio", TIME, LIST, ratio, 0, 1e-3, 1e3, "tau_r/tau_s", NULL),
     LIST(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100), .most = RATIOS},
    {ROW("query", TIME, BOOL, query_free, 0, 0, 1,
         "clamped: held; free: follows tau_q q' = Z'p - q with tau_q = tau_r", "query %s"),
     WORDS("clamped", "free")},
    {ROW("start", TIME, BOOL, start_query, 0, 0, 1, "r(0) = 0, or r(0) = Z q", "from %s"),
     WORDS("rest", "query")},
    {ROW("wrong", RIVALS, REAL, wrong, 0.25, 0, 1,
         "setting wrong: share of contexts that point to another memory", NULL)},
    {ROW("groups", RIVALS, INT, groups, 5, 1, 512, "setting clusters: number of clusters", NULL)},
    {ROW("centre", CLUSTERS, REAL, centre, 2, ABOVE_0, INFINITY, "norm of a cluster's centre",
         "|centre| = %s")},
    {ROW("centre", RIVALS, REAL, centre, 2, ABOVE_0, INFINITY, "norm of a cluster's centre", NULL)},
    {ROW("spread", CLUSTERS, REAL, spread, 0.3, 0, 1e6,
         "noise around a cluster's centre, per component, before normalising", "spread %s")},
    {ROW("spread", RIVALS, REAL, spread, 0.3, 0, 1e6,
         "noise around a cluster's centre, per component, before normalising", NULL)},
    {ROW("noise", COUP, REAL, noise, 1e-4, 0, 1e6, "standard deviation of r at the start",
         "noise start %s")},
    {ROW("t-cap", COMP, REAL, t_cap, 50, 1e-6, 1e12,
         "longest time of a transient, in units of tau_s", "t ≤ min(t*, %s)")},
    {ROW("t-cap", COUP, REAL, t_cap, 50, 1e-6, 1e5, "time of the transient from alpha_crit on",
         "t ≤ %s")},
    {ROW("delta", COMP, REAL, delta, 0.01, 1e-12, 1 - 1e-12,
         "t* is the time at which the winner should reach 1 - delta", "δ = %s")},
    {ROW("starts", CONV, INT, starts, 8, 1, CGAM_STREAM_SETS, "random starts of each problem",
         "%s starts")},
    {ROW("starts", ANN, INT, starts, 16, 0, 1e6,
         "random starts of the search for minima, in addition to the fixed ones",
         "%s random starts")},
    {ROW("max-iter", COUP, INT, max_iter, 500, 1, 1e9, "maximum number of plain iterations", NULL)},
    {ROW("tol", COUP, REAL, tol, 1e-8, 0, 1, "stop when r changes by at most this", NULL)},
    {ROW("fold-trials", COUP, INT, fold_trials, 200, 0, 1e9, "trials in which the fold is followed",
         NULL)},
    {ROW("example", COMP, INT, example, 0, 0, TRIALS,
         "the trial whose gates are shown at alpha_crit", NULL)},
    {ROW("banks", SEP, INT, banks, 1, 1, CGAM_STREAM_SETS, "memory sets, each with --trials trials",
         "banks %s")},
    {ROW("banks", RIVALS, INT, banks, 64, 4, CGAM_STREAM_SETS,
         "memory sets, each with --trials trials; the even-numbered ones choose strengths, "
         "the others are counted",
         "banks %s")},
    {ROW("banks", GRIDS, INT, banks, 8, 1, CGAM_STREAM_SETS,
         "memory sets, each with --trials trials", "banks %s")},
    {ROW("bank", SEP | COMP | COUP | ANN | SPARSE | RIVALS, BANK, bank, 0, 0, 0,
         "take the memories from a file: --n random rows, drawn anew whenever memories are drawn",
         "memories of a file"),
     .list_words = "drawn at random"},
    {ROW("bank", GRIDS, BANK, bank, 0, 0, 0,
         "take the memories from a file; all its rows unless --load is given",
         "memories of a file")},
};
enum { ROWS = sizeof table / sizeof *table };

const cgam_study_param *cgam_study_param_at(cgam_study_kind kind, int64_t k)
{
    for (int i = 0; i < ROWS && kind < CGAM_STUDY_KINDS; i++)
        if (table[i].studies >> kind & 1 && k-- == 0) return &table[i];
    return NULL;
}

const cgam_study_param *cgam_study_param_find(cgam_study_kind kind, const char *name)
{
    const cgam_study_param *p;
    for (int64_t k = 0; (p = cgam_study_param_at(kind, k)); k++)
        if (strcmp(p->name, name) == 0) return p;
    return NULL;
}

/* ---- Values ---------------------------------------------------------------------------------- */
/* The field of p in o, as what it is. */
typedef union field {
    void *at;
    int64_t *whole;
    double *real;
    cgam_list *list;
    bool *flag;
    cgam_axis *axis;
    const cgam_bank **bank;
} field;

static field field_of(const cgam_study_param *p, const cgam_study_opts *o)
{
    return (field){.at = (char *)(uintptr_t)o + p->offset};
}

cgam_list *cgam_study_param_list(const cgam_study_param *p, cgam_study_opts *o)
{
    return p->kind == CGAM_FIELD_LIST ? field_of(p, o).list : NULL;
}

int64_t cgam_study_param_count(const cgam_study_param *p, const cgam_study_opts *o)
{
    if (p->kind == CGAM_FIELD_LIST) return field_of(p, o).list->count;
    return p->kind != CGAM_FIELD_BANK || *field_of(p, o).bank != NULL;
}

double cgam_study_param_value(const cgam_study_param *p, const cgam_study_opts *o, int64_t i)
{
    field f = field_of(p, o);
    switch (p->kind) {
    case CGAM_FIELD_INT: return (double)*f.whole;
    case CGAM_FIELD_REAL: return *f.real;
    case CGAM_FIELD_LIST: return f.list->values[i];
    case CGAM_FIELD_BOOL: return *f.flag;
    case CGAM_FIELD_AXIS: return *f.axis;
    case CGAM_FIELD_BANK: break;
    }
    return NAN;
}

void cgam_study_param_set(const cgam_study_param *p, cgam_list values, cgam_study_opts *o)
{
    field f = field_of(p, o);
    switch (p->kind) {
    case CGAM_FIELD_INT: *f.whole = (int64_t)values.values[0]; break;
    case CGAM_FIELD_REAL: *f.real = values.values[0]; break;
    case CGAM_FIELD_LIST: *f.list = values; break;
    case CGAM_FIELD_BOOL: *f.flag = values.values[0] != 0; break;
    case CGAM_FIELD_AXIS: *f.axis = (cgam_axis)values.values[0]; break;
    case CGAM_FIELD_BANK: break;
    }
}

cgam_study_opts cgam_study_opts_default(cgam_study_kind kind)
{
    cgam_study_opts o = {.kind = kind};
    const cgam_study_param *p;
    for (int64_t k = 0; (p = cgam_study_param_at(kind, k)); k++)
        cgam_study_param_set(p, p->kind == CGAM_FIELD_LIST ? p->list : (cgam_list){&p->usual, 1},
                             &o);
    return o;
}

/* The word that a choice stands at, "?" where it stands at none. */
static const char *word_of(const cgam_study_param *p, const cgam_study_opts *o)
{
    int k = 0, at = (int)cgam_study_param_value(p, o, 0);
    while (k < at && p->words[k]) k++;
    return p->words[k] ? p->words[k] : "?";
}

size_t cgam_study_param_text(const cgam_study_param *p, const cgam_study_opts *o, char *text,
                             size_t size)
{
    char number[CGAM_REAL_TEXT];
    size_t used = 0;
    if (size) *text = '\0';
    for (int64_t i = 0; i < cgam_study_param_count(p, o); i++) {
        const char *one = number;
        double value = cgam_study_param_value(p, o, i);
        if (p->words) one = word_of(p, o);
        else if (p->kind == CGAM_FIELD_BANK) one = "FILE";
        else if (p->kind == CGAM_FIELD_INT)
            snprintf(number, sizeof number, "%lld", (long long)*field_of(p, o).whole);
        else if (value == rint(value) && fabs(value) < 1e15)
            snprintf(number, sizeof number, "%.0f", value);
        else cgam_real_text(value, number);
        int put = snprintf(text + (used < size ? used : size), used < size ? size - used : 0,
                           "%s%s", i ? "," : "", one);
        used += (size_t)put;
    }
    return used;
}

/* ---- What a run does with them --------------------------------------------------------------- */
static cgam_status check_number(cgam_env *env, const cgam_study_param *p, double x)
{
    if (x >= p->low && x <= p->high && isfinite(x)) return CGAM_OK;
    if (isinf(p->high))
        return cgam_fail(env, CGAM_E_ARG,
                         "%s is %.15g, it must be above 0 (1e-301 or more) and finite", p->name, x);
    return cgam_fail(env, CGAM_E_ARG, "%s is %.15g, it must be from %.15g to %.15g", p->name, x,
                     p->low, p->high);
}

cgam_status cgam_study_params_check(cgam_env *env, const cgam_study_opts *o)
{
    const cgam_study_param *p;
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; (p = cgam_study_param_at(o->kind, k)) && status == CGAM_OK; k++) {
        int64_t count = cgam_study_param_count(p, o);
        if (p->kind == CGAM_FIELD_BANK || p->offset == offsetof(cgam_study_opts, seed))
            continue; /* any 64 bits */
        if (count < 1 && p->list.count > 0)
            return cgam_fail(env, CGAM_E_ARG, "%s: the list is empty", p->name);
        if (p->kind == CGAM_FIELD_LIST && count > p->most)
            return cgam_fail(env, CGAM_E_ARG, "%s: %lld values (at most %lld)", p->name,
                             (long long)count, (long long)p->most);
        for (int64_t i = 0; i < count && status == CGAM_OK; i++)
            status = check_number(env, p, cgam_study_param_value(p, o, i));
    }
    return status;
}

/* As JSON writes it: sigma_q. */
static const char *key_of(const char *name, char text[64])
{
    snprintf(text, 64, "%s", name);
    for (char *c = text; *c; c++)
        if (*c == '-') *c = '_';
    return text;
}

static json_t *json_of(const cgam_study_param *p, const cgam_study_opts *o)
{
    field f = field_of(p, o);
    char word[64];
    switch (p->kind) {
    case CGAM_FIELD_INT: return json_integer(*f.whole);
    case CGAM_FIELD_REAL: return json_real(*f.real);
    case CGAM_FIELD_LIST:
        return p->most == 1 ? json_real(f.list->values[0])
                            : cgam_json_reals(f.list->values, f.list->count, 1);
    case CGAM_FIELD_BANK:
        return json_string(*f.bank         ? "given"
                           : p->list_words ? p->list_words
                                           : "random unit vectors");
    default: return json_string(key_of(word_of(p, o), word));
    }
}

void cgam_study_params_put(const cgam_study_opts *o, json_t *doc)
{
    const cgam_study_param *p;
    char key[64];
    json_t *all = json_object();
    for (int64_t k = CGAM_STUDY_PARAMS_TOP; (p = cgam_study_param_at(o->kind, k)); k++)
        cgam_json_put(all, key_of(p->name, key), json_of(p, o));
    cgam_json_put(doc, "parameters", all);
}
