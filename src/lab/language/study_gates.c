/* study_gates.c: the sweep's retrieval under A(alpha), alpha > 0, and with the feedback lambda^2 A^-1 p.
 *
 * The bank is the unembedding, raw or at unit length. The final norm acts on the states: q is the norm of the zero-shot
 * state h; the context c is weighted and divided as h is. At alpha = 0, mode first and raw rows a word's score is then
 * that of the sweep through its lens `gain`, up to a factor that a query's words share.
 *
 * Answers of several tokens: the gates recall the first, the model without demonstrations continues,
 *   log p(answer) = log softmax(r)[a_0] + sum_t log p(a_t | prompt, a_0 .. a_t-1),
 * and the sum is the same at every alpha and lambda, so couplings stay exact. */
#include "lab/language/gates.h"
#include "lab/language/study_sweep.h"
#include "lab/language/sweep.h"
#include "lab/stats.h"
#include "lm/lens.h"
#include "memory/bank.h"

#include <math.h>
#include <string.h>

/* Costs in states read (study.c): alpha_crit and the spectrum, in units of d; a coupled query at one alpha. */
enum { GATES_WORK_SPECTRUM = 6, GATES_WORK_COUPLED = 40 };

typedef struct gated {
    int64_t k;
    struct {
        int64_t context, query;
    } layer[2];          /* chosen on each half, for the other */
    double *buffer;      /* holds the next three */
    double *q[2], *c[2]; /* [n, d], [d] */
    double *factor[2];   /* [n] */
    cgam_gates_input in;
    cgam_gates_asked *asked;
    cgam_gates_answer *answers; /* [3, n] mode first at alpha = 0, at the present alpha, coupled */
    bool *right;                /* [6, n] labels, words: zero-shot, ICL, the current row */
    json_t *grid, *null;
} gated;

typedef struct gating {
    cgam_lm_study *study;
    const cgam_lm_gates_opts *opts;
    cgam_env *env;
    cgam_trial trial; /* for what the sweep knows of answers */
    cgam_lm_result *result;
    const cgam_lens *lens;
    int64_t n, layers, d;
    float *zero;           /* [n, layers, d], and where whole answers are compared */
    double *after;         /* [n, labels] zero-shot log-probability of the tokens after the first */
    bool *goes_on;         /* [n] are the later tokens of the right answer the greedy ones? */
    const int32_t *tokens; /* [labels] first tokens */
    cgam_bank *raw, *unit;
    const cgam_bank *bank; /* one of them */
    cgam_gates *gates;
    int64_t alphas, count; /* count: of numbers of shots */
    double alpha[CGAM_GATES_GRID + 1];
    gated shot[CGAM_SHOTS_MAX];
    cgam_gates_seconds seconds;
} gating;

/* ---- Tables and document ------------------------------------------------------------------ */
enum { GRID_TABLE, SPECTRUM_TABLE };

static void add_gate_tables(gating *g)
{
    cgam_lm_result_add(
        g->result, "gates", "answers under the gate operator, by alpha and mode",
        "shots,alpha,coupled,lambda_0,lambda_1,restricted,restricted_se,full,full_se,"
        "neff,neff_ipr,argmax_changed,label_changed,p_max,unique_share,settled_share,"
        "iterations");
    cgam_lm_result_add(g->result, "gates_spectrum", "eigenvalues of Z'Z, the largest first",
                       "mode,mu,share");
}

/* Means over queries. */
typedef struct means {
    double neff, neff_ipr, changed, label_changed, p, unique, settled, iterations;
} means;

static means means_of(int64_t n, const cgam_gates_answer *now, const cgam_gates_answer *before)
{
    means m = {0};
    for (int64_t i = 0; i < n; i++) {
        m.neff += now[i].log_neff_entropy;
        m.neff_ipr += now[i].log_neff_ipr;
        m.changed += now[i].winner != before[i].winner;
        m.label_changed += now[i].label != before[i].label;
        m.p += now[i].p;
        m.unique += now[i].unique;
        m.settled += now[i].settled;
        m.iterations += (double)now[i].iterations;
    }
    double all = (double)n;
    return (means){exp(m.neff / all), exp(m.neff_ipr / all), m.changed / all, m.label_changed / all,
                   m.p / all,         m.unique / all,        m.settled / all, m.iterations / all};
}

static void mark_right(const gating *g, const cgam_gates_answer *now, bool *const right[2])
{
    for (int64_t i = 0; i < g->n; i++) {
        int64_t target = g->trial.target[i];
        right[0][i] = target >= 0 && now[i].label == target;
        right[1][i] =
            target >= 0 && now[i].winner == g->tokens[target] && (!g->goes_on || g->goes_on[i]);
    }
}

/* Mode first is compared with alpha = 0, mode coupled with mode first. */
static void put_mode(gating *g, gated *s, double alpha, const cgam_gates_answers *out, bool coupled)
{
    const cgam_gates_answer *now = coupled ? out->coupled : out->first;
    const cgam_gates_answer *before = coupled ? out->first : s->answers;
    json_t *o = json_object();
    means m = means_of(g->n, now, before);
    bool *right[2] = {s->right + 4 * g->n, s->right + 5 * g->n};
    cgam_share share[2];
    mark_right(g, now, right);
    for (int over = 0; over < 2; over++) share[over] = cgam_trial_share(&g->trial, right[over]);
    double unique = coupled ? m.unique : (double)NAN, settled = coupled ? m.settled : (double)NAN;
    cgam_json_add(o, "alpha=%g mode=%s lambda=%g lambdas=%p", alpha,
                  cgam_word(cgam_mode_words, coupled ? CGAM_COUPLED : CGAM_FIRST),
                  0.5 * (out->lambda[0] + out->lambda[1]), cgam_json_reals(out->lambda, 2, 1));
    cgam_lm_put_overs(g->study, o, g->n, g->trial.target, (const bool *const *)right, false);
    cgam_json_add(o,
                  "neff=%g neff_ipr=%g argmax_changed=%g label_changed=%g p_max=%g unique_share=%g "
                  "settled_share=%g",
                  m.neff, m.neff_ipr, m.changed, m.label_changed, m.p, unique, settled);
    if (!s->grid) s->grid = json_array();
    json_array_append_new(s->grid, o);
    cgam_lm_result_row(g->result, GRID_TABLE,
                       (double[]){(double)s->k, alpha, coupled, out->lambda[0], out->lambda[1],
                                  share[0].mean, share[0].se, share[1].mean, share[1].se, m.neff,
                                  m.neff_ipr, m.changed, m.label_changed, m.p, unique, settled,
                                  coupled ? m.iterations : (double)NAN});
}

/* The null: what choosing lambda anew changes at alpha = 0, on the same queries drawn with replacement. */
static cgam_status add_null(gating *g, gated *s)
{
    enum { RESAMPLES = 20 };
    cgam_status status = CGAM_OK;
    double changed = 0, label_changed = 0;
    bool *right[2] = {s->right + 4 * g->n, s->right + 5 * g->n};
    s->null = json_object();
    for (int r = RESAMPLES - 1; r >= 0 && status == CGAM_OK; r--) { /* the first stays in right */
        cgam_gates_answer *now = s->answers + g->n;
        cgam_rng rng = cgam_rng_stream(g->study->seed, (UINT64_C(1) << 55) + (uint64_t)r);
        status = cgam_gates_resample(s->asked, &rng, now);
        if (status != CGAM_OK) break;
        means m = means_of(g->n, now, s->answers);
        changed += m.changed / RESAMPLES;
        label_changed += m.label_changed / RESAMPLES;
        mark_right(g, now, right);
    }
    if (status == CGAM_OK)
        cgam_lm_put_overs(g->study, s->null, g->n, g->trial.target, (const bool *const *)right,
                          false);
    cgam_json_add(s->null, "resamples=%d argmax_changed=%g label_changed=%g", RESAMPLES, changed,
                  label_changed);
    return status;
}

/* ---- The document ------------------------------------------------------------------------- */
static void put_own(gating *g, const gated *s, json_t *entry, const char *name, int which)
{
    json_t *o = json_object();
    const bool *right = s->right + 2 * which * g->n;
    cgam_lm_put_overs(g->study, o, g->n, g->trial.target, (const bool *[]){right, right + g->n},
                      true);
    cgam_json_put(entry, name, o);
}

static json_t *shot_json(gating *g, gated *s)
{
    json_t *entry = json_object(), *layers = json_array();
    cgam_json_add(entry, "k=%jd queries=%jd left_out=%jd", s->k, g->trial.counted,
                  g->n - g->trial.counted);
    for (int h = 0; h < 2; h++) {
        json_t *o = cgam_json_object("context_layer=%jd query_layer=%jd", s->layer[h].context,
                                     s->layer[h].query);
        json_array_append_new(layers, o);
    }
    cgam_json_put(entry, "layers", layers);
    put_own(g, s, entry, "zero_shot", 0);
    put_own(g, s, entry, "icl", 1);
    cgam_json_add(entry, "grid=%p null=%p", s->grid ? s->grid : json_array(),
                  s->null ? s->null : json_null());
    s->grid = s->null = NULL;
    return entry;
}

static void put_spectrum(gating *g, const cgam_gates_info *info)
{
    double total = 0;
    for (int64_t k = 0; k < info->modes; k++) total += info->mu[k];
    for (int64_t k = 0; k < info->modes; k++) {
        double mu = info->mu[info->modes - 1 - k];
        cgam_lm_result_row(g->result, SPECTRUM_TABLE,
                           (double[]){(double)k, mu, total > 0 ? mu / total : (double)NAN});
    }
    cgam_json_put_real(g->result->doc, "mu_share",
                       total > 0 ? info->gram.mu_max / total : (double)NAN);
}

static void put_gates(gating *g)
{
    json_t *doc = g->result->doc, *shots = json_array(), *seconds = json_object();
    cgam_gates_info info = cgam_gates_describe(g->gates);
    cgam_bank_info bank = cgam_bank_describe(g->bank);
    const cgam_critical *crit = &info.critical;
    cgam_lm_result_describe(g->result, g->study, g->trial.task);
    cgam_json_add(
        doc,
        "answer=%s rows=%s alpha_crit=%g alpha_crit_bounds=%p norm_min=%g norm_max=%g mu_min=%g "
        "mu_max=%g rank=%jd",
        cgam_lm_answer_name(cgam_lm_task_answer(g->trial.task)), g->opts->unit ? "unit" : "raw",
        isnan(crit->alpha) ? crit->alpha_lo : crit->alpha,
        cgam_json_reals((double[]){crit->alpha_lo, crit->alpha_hi}, 2, 1), bank.norm_min,
        bank.norm_max, info.gram.mu_min, info.gram.mu_max, info.gram.rank);
    put_spectrum(g, &info);
    cgam_json_add(doc, "over=%s lambda_scale=%s in_sample?=%d alphas=%p",
                  cgam_sweep_over_name(g->opts->over), g->opts->absolute ? "absolute" : "relative",
                  g->opts->in_sample, cgam_json_reals(g->alpha, g->alphas, 1));
    cgam_json_add(seconds, "set_up=%g first=%g coupled=%g", g->seconds.set_up, g->seconds.first,
                  g->seconds.coupled);
    cgam_json_put(doc, "seconds", seconds);
    for (int64_t k = 0; k < g->count; k++) json_array_append_new(shots, shot_json(g, &g->shot[k]));
    cgam_json_put(doc, "shots", shots);
}

/* ---- The experiment ----------------------------------------------------------------------- */
enum { QUERIES_LEAST = 4 };

/* ---- Layers ------------------------------------------------------------------------------- */
/* A sweep over the layers that are not given, with the contexts of true demonstrations. */
static cgam_status sweep_layers(gating *g, gated *s, const cgam_sweep_input *in,
                                const float *contexts)
{
    const cgam_lm_gates_opts *o = g->opts;
    cgam_sweep *sweep = NULL;
    cgam_sweep_best best;
    float *one = NULL;
    cgam_sweep_input over = *in;
    cgam_sweep_answers whole = {0};
    cgam_status status = CGAM_OK;
    if (in->answers) whole = *in->answers;
    if (o->query_layer >= 0) { /* zero, and behind it what comes after beginnings of answers */
        int64_t rows = g->n * (in->answers ? whole.beginnings : 1);
        one = cgam_alloc(g->env, (size_t)(rows * g->d), sizeof *one);
        if (!one) return cgam_fail_nomem(g->env, "states of a layer");
        for (int64_t i = 0; i < rows; i++)
            memcpy(one + i * g->d, g->zero + (i * g->layers + o->query_layer) * g->d,
                   (size_t)g->d * sizeof *one);
        over.zero = one;
        over.layers = 1;
        whole.states = one + g->n * g->d;
        if (in->answers) over.answers = &whole;
    }
    int64_t first = o->context_layer >= 0 ? o->context_layer : 0;
    int64_t count = o->context_layer >= 0 ? 1 : g->layers;
    cgam_lm_work_readings(g->study, CGAM_WORK_SWEEP * (double)(g->n * over.layers));
    status = cgam_sweep_new(g->lens, &over, count, contexts + 2 * first * g->d, &g->study->progress,
                            &sweep);
    if (status == CGAM_OK) status = cgam_sweep_choose(sweep, o->over, 0, count, NULL, &best);
    for (int h = 0; h < 2 && status == CGAM_OK; h++) {
        s->layer[h].context = first + best.half[h].context;
        s->layer[h].query = o->query_layer >= 0 ? o->query_layer : best.half[h].query_layer;
    }
    cgam_sweep_free(sweep);
    cgam_free(g->env, one);
    return status;
}

/* Queries, contexts and factors of both halves, as gates.h takes them. */
static void make_input(gating *g, gated *s, const cgam_sweep_input *in, const float *contexts)
{
    const float *bias = cgam_lens_bias(g->lens);
    for (int h = 0; h < 2; h++) {
        int64_t layer = s->layer[h].query;
        const float *c = contexts + 2 * s->layer[h].context * g->d;
        double scale = cgam_sweep_scale(in, g->d, c, layer, h);
        cgam_lens_state(g->lens, CGAM_LENS_GAIN, c + h * g->d, s->c[h]);
        for (int64_t j = 0; j < g->d; j++) s->c[h][j] *= scale;
        for (int64_t i = 0; i < g->n; i++) {
            double *x = s->q[h] + i * g->d;
            s->factor[h][i] = 1 / cgam_lens_state(g->lens, CGAM_LENS_NORM,
                                                  g->zero + (i * g->layers + layer) * g->d, x);
            for (int64_t j = 0; bias && j < g->d; j++) x[j] += (double)bias[j];
        }
    }
    bool same = s->layer[0].query == s->layer[1].query;
    s->in = (cgam_gates_input){.queries = g->n,
                               .q = {s->q[0], same ? s->q[0] : s->q[1]},
                               .c = {s->c[0], s->c[1]},
                               .factor = {s->factor[0], s->factor[1]},
                               .labels = g->trial.labels,
                               .tokens = g->tokens,
                               .target = g->trial.target,
                               .after = g->after,
                               .goes_on = g->goes_on,
                               .over = g->opts->over};
}

/* ---- One number of shots ------------------------------------------------------------------ */
static void gated_free(gating *g, gated *s)
{
    cgam_gates_asked_free(s->asked);
    cgam_free_all(g->env, s->buffer, s->answers, s->right);
    json_decref(s->grid);
    json_decref(s->null);
}

static cgam_status alloc_shot(gating *g, gated *s)
{
    size_t n = (size_t)g->n, d = (size_t)g->d;
    cgam_status status = cgam_alloc_all(g->env, "gates", CGAM_ARRAY(s->buffer, 2 * (n * d + d + n)),
                                        CGAM_ZEROS(s->answers, 3 * n), CGAM_ZEROS(s->right, 6 * n));
    if (status != CGAM_OK) return status;
    for (int h = 0; h < 2; h++) {
        s->q[h] = s->buffer + (size_t)h * n * d;
        s->c[h] = s->buffer + 2 * n * d + (size_t)h * d;
        s->factor[h] = s->buffer + 2 * n * d + 2 * d + (size_t)h * n;
    }
    return CGAM_OK;
}

/* What the model itself makes of answers after their first token. */
static cgam_status read_rest(gating *g)
{
    const cgam_trial *t = &g->trial;
    if (!t->answers) return CGAM_OK;
    cgam_whole *w;
    cgam_status status =
        cgam_alloc_all(g->env, "answers", CGAM_ARRAY(w, g->n),
                       CGAM_ARRAY(g->after, g->n * t->labels), CGAM_ARRAY(g->goes_on, g->n));
    cgam_trial_states own = cgam_trial_own(t, false);
    if (status == CGAM_OK)
        status = cgam_answers_read(t->answers, t->lens, CGAM_LENS_NORM, NULL, own.stride, own.after,
                                   own.stride, g->after, w);
    for (int64_t i = 0; i < g->n && status == CGAM_OK; i++) g->goes_on[i] = w[i].greedy;
    cgam_free(g->env, w);
    return status;
}

static cgam_status gated_open(gating *g, int64_t k, gated *s)
{
    const cgam_lm_gates_opts *o = g->opts;
    float *icl = NULL, *contexts = NULL;
    s->k = k;
    cgam_status status =
        cgam_alloc_all(g->env, "contexts", CGAM_ARRAY(contexts, 2 * g->layers * g->d));
    if (status == CGAM_OK) status = alloc_shot(g, s);
    if (status == CGAM_OK)
        status = cgam_answers_states(g->trial.answers, g->study, g->trial.task, k, CGAM_DEMOS_TRUE,
                                     &icl, &g->trial.icl_after);
    if (status == CGAM_OK)
        cgam_baseline_shifts(g->n, g->layers, g->d, icl, g->zero, o->in_sample, contexts);
    const cgam_sweep_input in = cgam_trial_input(&g->trial, !o->absolute, o->in_sample);
    for (int h = 0; h < 2; h++) {
        s->layer[h].context = o->context_layer;
        s->layer[h].query = o->query_layer;
    }
    if (status == CGAM_OK && (o->context_layer < 0 || o->query_layer < 0))
        status = sweep_layers(g, s, &in, contexts);
    if (status == CGAM_OK) make_input(g, s, &in, contexts);
    g->trial.icl = icl;
    for (int with = 0; with < 2 && status == CGAM_OK; with++) {
        cgam_trial_states own = cgam_trial_own(&g->trial, with);
        bool *right = s->right + 2 * with * g->n;
        status = cgam_trial_answers(&g->trial, &own, (bool *[]){right, right + g->n});
    }
    if (status == CGAM_OK) status = cgam_gates_ask(g->gates, &s->in, &s->asked);
    cgam_free_all(g->env, icl, contexts);
    return status;
}

/* ---- The study ---------------------------------------------------------------------------- */
cgam_lm_gates_opts cgam_lm_gates_opts_default(void)
{
    return (cgam_lm_gates_opts){.context_layer = -1, .query_layer = -1, .over = CGAM_OVER_LABELS};
}

static cgam_status check_study(const gating *g)
{
    const cgam_lm_gates_opts *o = g->opts;
    const struct {
        const char *name;
        int64_t layer;
    } given[] = {{"context-layer", o->context_layer}, {"query-layer", o->query_layer}};
    if (g->study->shots[g->study->n_shots - 1] == 0)
        return cgam_fail(g->env, CGAM_E_ARG, "shots: a context needs at least 1 demonstration");
    if (g->n < QUERIES_LEAST)
        return cgam_fail(g->env, CGAM_E_ARG, "queries: %lld are too few for two halves",
                         (long long)g->n);
    if (o->no_first && o->no_coupled) return cgam_fail(g->env, CGAM_E_ARG, "modes: empty list");
    for (int i = 0; i < 2; i++)
        if (given[i].layer >= g->layers)
            return cgam_fail(g->env, CGAM_E_ARG, "%s: no layer %lld (valid: 0 to %lld)",
                             given[i].name, (long long)given[i].layer, (long long)g->layers - 1);
    for (int64_t i = 0; i < o->n_alphas; i++)
        if (!(o->alphas[i] >= 0) || !isfinite(o->alphas[i]))
            return cgam_fail(g->env, CGAM_E_ARG,
                             "alphas: %g is not allowed, each must be 0 or more and finite",
                             o->alphas[i]);
    if (o->n_alphas >= CGAM_GATES_GRID)
        return cgam_fail(g->env, CGAM_E_ARG, "alphas: at most %d numbers", CGAM_GATES_GRID - 1);
    return CGAM_OK;
}

/* The grid, or what was given, rising from 0. */
static cgam_status make_alphas(gating *g)
{
    const cgam_lm_gates_opts *o = g->opts;
    cgam_gates_info info = cgam_gates_describe(g->gates);
    g->alphas = o->n_alphas ? 1 : cgam_gates_grid(g->gates, g->alpha);
    for (int64_t i = 0; i < o->n_alphas; i++) {
        if (!(o->alphas[i] < info.critical.alpha_lo))
            return cgam_fail(g->env, CGAM_E_ARG,
                             "alphas: %g must be below alpha_crit = %.9g of these rows",
                             o->alphas[i], info.critical.alpha_lo);
        int64_t at = g->alphas;
        while (g->alpha[at - 1] > o->alphas[i]) at--;
        if (g->alpha[at - 1] == o->alphas[i]) continue;
        memmove(g->alpha + at + 1, g->alpha + at, (size_t)(g->alphas - at) * sizeof *g->alpha);
        g->alpha[at] = o->alphas[i];
        g->alphas++;
    }
    return CGAM_OK;
}

static cgam_status begin_trial(gating *g)
{
    cgam_status status = cgam_trial_begin(g->study, &g->trial);
    if (status != CGAM_OK) return status;
    g->lens = g->trial.lens;
    g->tokens = g->trial.answers ? g->trial.answers->first : g->trial.task->tokens;
    if (!cgam_lens_has_norm(g->lens) || (cgam_lens_offset(g->lens) && !cgam_lens_bias(g->lens)))
        return cgam_fail(g->env, CGAM_E_UNSUPPORTED,
                         "gates do not support this model: its scores are not products of its "
                         "unembedding and final norm");
    return CGAM_OK;
}

static cgam_status open_bank(gating *g)
{
    cgam_status status = cgam_lm_bank(g->study->lm, CGAM_LENS_RAW, CGAM_F32, &g->raw);
    cgam_bank_opts opts = cgam_bank_opts_default();
    opts.normalize = true;
    g->bank = g->raw;
    if (status == CGAM_OK && g->opts->unit) {
        status = cgam_bank_new(g->env, g->raw->Z.data, CGAM_F32, g->raw->info.n, g->raw->info.d,
                               &opts, &g->unit);
        g->bank = g->unit;
    }
    cgam_lm_work_readings(g->study, GATES_WORK_SPECTRUM * (double)g->d);
    return status == CGAM_OK ? cgam_gates_new(g->bank, &g->study->progress, &g->gates) : status;
}

/* What an alpha costs, as states that are read: a Gram matrix, and some passes for each of so many queries. */
static double alpha_work(const cgam_lm_gates_opts *o, double d, double queries)
{
    return (o->unit ? 0.2 : 1) * d + (o->no_coupled ? 2 : GATES_WORK_COUPLED) * queries;
}

/* One number of shots at an alpha: from an earlier run into out, or out for runs to come. */
static cgam_status keep_answers(gating *g, int64_t k, double alpha, bool find, bool *found,
                                cgam_gates_answers *out)
{
    const cgam_lm_gates_opts *o = g->opts;
    struct {
        const char *name;
        void *bytes;
        size_t size;
    } of[] = {{"lambda", out->lambda, sizeof out->lambda},
              {"chosen", out->chosen, sizeof out->chosen},
              {"first", out->first, (size_t)g->n * sizeof *out->first},
              {"coupled", out->coupled, (size_t)g->n * sizeof *out->coupled}};
    cgam_status status = CGAM_OK;
    for (int i = 0; i < (out->coupled ? 4 : 3) && status == CGAM_OK; i++) {
        char key[160];
        snprintf(key, sizeof key, "gates %d %d %d %d %d %lld %lld %a %lld %s",
                 g->trial.answers != NULL, o->unit, (int)o->over, o->absolute, o->in_sample,
                 (long long)o->context_layer, (long long)o->query_layer, alpha,
                 (long long)g->shot[k].k, of[i].name);
        if (find) *found = *found && cgam_kept_find(g->study, key, of[i].bytes, of[i].size);
        else status = cgam_kept_add(g->study, key, of[i].bytes, of[i].size);
    }
    return status;
}

static cgam_status run_alphas(gating *g)
{
    cgam_gates_asked *asked[CGAM_SHOTS_MAX];
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < g->alphas && status == CGAM_OK; i++) {
        cgam_gates_answers out[CGAM_SHOTS_MAX];
        memset(out, 0, sizeof out);
        cgam_lm_work_readings(g->study,
                              alpha_work(g->opts, (double)g->d, (double)(g->n * g->count)));
        cgam_progress_count(&g->study->progress, "gates", i, g->alphas, "alphas");
        for (int64_t k = 0; k < g->count; k++) {
            asked[k] = g->shot[k].asked;
            out[k].first = g->shot[k].answers + (i == 0 ? 0 : g->n);
            if (!g->opts->no_coupled) out[k].coupled = g->shot[k].answers + 2 * g->n;
        }
        bool found = true;
        for (int64_t k = 0; k < g->count && status == CGAM_OK; k++)
            status = keep_answers(g, k, g->alpha[i], true, &found, &out[k]);
        if (status == CGAM_OK && !found) {
            status = cgam_gates_at(g->gates, g->alpha[i], g->count, asked, out, &g->seconds);
            for (int64_t k = 0; k < g->count && status == CGAM_OK; k++)
                status = keep_answers(g, k, g->alpha[i], false, NULL, &out[k]);
        }
        for (int64_t k = 0; k < g->count && status == CGAM_OK; k++) {
            gated *s = &g->shot[k];
            if (!g->opts->no_first) put_mode(g, s, g->alpha[i], &out[k], false);
            if (out[k].coupled) put_mode(g, s, g->alpha[i], &out[k], true);
        }
    }
    return status;
}

double cgam_lm_gates_work(const cgam_lm_study *study, const cgam_lm_gates_opts *opts)
{
    cgam_lm_gates_opts o = opts ? *opts : cgam_lm_gates_opts_default();
    double n = (double)study->task.queries, d = (double)study->info.width;
    double sweeps = o.context_layer < 0 || o.query_layer < 0
                        ? CGAM_WORK_SWEEP * n * (double)(study->info.layers + 1)
                        : 0;
    double shots = (double)study->n_shots - 1, alphas = o.n_alphas ? (double)o.n_alphas + 1 : 12;
    return GATES_WORK_SPECTRUM * d + sweeps * shots + alphas * alpha_work(&o, d, n * shots);
}

static cgam_status run_gates(gating *g)
{
    cgam_status status = cgam_lm_plan_readings(g->study, cgam_lm_gates_work(g->study, g->opts));
    if (status == CGAM_OK)
        status = cgam_answers_states(g->trial.answers, g->study, g->trial.task, 0, CGAM_DEMOS_TRUE,
                                     &g->zero, &g->trial.zero_after);
    g->trial.zero = g->zero;
    if (status == CGAM_OK) status = read_rest(g);
    if (status == CGAM_OK) status = open_bank(g);
    if (status == CGAM_OK) status = make_alphas(g);
    for (int64_t i = 1; i < g->study->n_shots && status == CGAM_OK; i++)
        status = gated_open(g, g->study->shots[i], &g->shot[g->count++]);
    if (status == CGAM_OK) status = run_alphas(g);
    for (int64_t k = 0; k < g->count && status == CGAM_OK; k++) status = add_null(g, &g->shot[k]);
    if (status == CGAM_OK) put_gates(g);
    return status;
}

cgam_status cgam_lm_gates(cgam_lm_study *study, const cgam_lm_gates_opts *opts,
                          cgam_lm_result **out)
{
    cgam_lm_gates_opts o = opts ? *opts : cgam_lm_gates_opts_default();
    gating *g = cgam_zalloc(study->env, 1, sizeof *g);
    *out = NULL;
    if (!g) return cgam_fail_nomem(study->env, "gates");
    *g = (gating){.study = study,
                  .opts = &o,
                  .env = study->env,
                  .n = study->task.queries,
                  .layers = study->info.layers + 1,
                  .d = study->info.width};
    cgam_status status = check_study(g);
    if (status == CGAM_OK) status = begin_trial(g);
    if (status == CGAM_OK) status = cgam_lm_result_new(study, &g->result);
    if (status == CGAM_OK) {
        g->trial.result = g->result;
        add_gate_tables(g);
        status = cgam_lm_result_end(g->result, run_gates(g), out);
    }
    for (int64_t k = 0; k < g->count; k++) gated_free(g, &g->shot[k]);
    cgam_gates_free(g->gates);
    cgam_bank_free(g->unit);
    cgam_bank_free(g->raw);
    cgam_free_all(g->env, g->zero, g->after, g->goes_on);
    cgam_free(study->env, g);
    return status;
}
