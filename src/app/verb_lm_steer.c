/* verb_lm_steer.c: a query held at the last layer, pushed by contexts of right and wrong facts.
 *
 * For query i the context after layer l is the mean effect of demonstrations on the *other*
 * queries, c_{-i} = (sum_j delta_j - delta_i)/(n - 1). Probabilities are those of the final norm of
 * q_i + lambda s c_{-i}; s brings the context to the mean norm of the queries, or is 1. */
#include "app/lm.h"
#include "app/lm_draw.h"
#include "app/verbs.h"
#include "base/env.h"
#include "io/table.h"

#include <cgam/rng.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

static const cgam_param params[] = {
    CGAM_PARAMS_PROMPTS,
    {.name = "lambda",
     .kind = CGAM_REALS,
     .value = "X,X,..",
     .fallback = "0.25,0.5,1",
     .max = INFINITY,
     .help = "couplings"},
    {.name = "lambda-scale",
     .kind = CGAM_CHOICE,
     .value = "relative|absolute",
     .fallback = "relative",
     .help = "contexts rescaled to the mean norm of the queries, or as they are"},
    {.name = "out",
     .kind = CGAM_TEXT,
     .value = "DIR",
     .help = "write steer.csv, steer.json and figures here"},
    CGAM_PARAM_LM_FIGURES,
    {.name = ""},
};

static const struct {
    const char *name;
    cgam_demos demos;
} kinds[] = {{"positive", CGAM_DEMOS_TRUE},
             {"wrong_object", CGAM_DEMOS_FLIPPED},
             {"other_relation", CGAM_DEMOS_FOREIGN}};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct steering {
    cgam_lm_input *in;
    cgam_lens *lens;
    int32_t *tokens, *target; /* [labels]; [queries] tokens, -1: left out */
    float *zero, *x;          /* [n, L + 1, d]; [n, d] */
    double *total;            /* [d] */
    cgam_answer *verdict;
    double *before; /* [n, 2] log p and log odds without a context */
    double *right;  /* [lambdas, L + 1, n] log p with right facts */
    bool relative;
    cgam_csv csv;
} steering;

/* gain: of log p over no context, query by query; odds: log p/(mass - p), the answer against the
 * other objects, and what it gains; behind: how far log p is below that with right facts. */
enum {
    P,
    LOG_P,
    LOG_P_SE,
    LOG_P_LOW,
    LOG_P_HIGH,
    RANK,
    TOP1,
    MASS,
    GAIN,
    GAIN_SE,
    ODDS,
    ODDS_GAIN,
    ODDS_GAIN_SE,
    BEHIND,
    BEHIND_SE,
    MEASURES
};
static const char *const measures[MEASURES] = {"p",
                                               "log_p",
                                               "log_p_se",
                                               "log_p_low",
                                               "log_p_high",
                                               "rank_median",
                                               "top1",
                                               "mass",
                                               "log_p_gain",
                                               "log_p_gain_se",
                                               "log_odds",
                                               "log_odds_gain",
                                               "log_odds_gain_se",
                                               "behind_right",
                                               "behind_right_se"};

/* log p/(mass - p) from log p and the mass of all objects; a mass that is all the answer's own is
 * left a rounding of it. */
static double log_odds(double log_p, double mass)
{
    double p = exp(log_p);
    return log_p - log(fmax(mass - p, 1e-16 * p + DBL_MIN));
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The middle 95% of the means of DRAWS samples of n values with replacement. The same draws for
 * every layer, kind and coupling, so that curves can be compared. */
enum { DRAWS = 1000 };
static void band(uint64_t seed, int64_t n, const double *x, double *means, double out[2])
{
    for (int b = 0; b < DRAWS; b++) {
        cgam_rng rng = cgam_rng_stream(seed, (uint64_t)b);
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += x[cgam_rng_below(&rng, n)];
        means[b] = sum / (double)n;
    }
    qsort(means, DRAWS, sizeof *means, rising);
    out[0] = means[DRAWS / 40 - 1];
    out[1] = means[DRAWS - DRAWS / 40];
}

/* The standard error of a mean, from the sum of squares. */
static double error_of(double n, double squares, double mean)
{
    return n > 1 ? sqrt(fmax(0, squares / n - mean * mean) / (n - 1)) : (double)NAN;
}

/* right [n]: log p with right facts at the same layer and coupling, kept when `keep`. */
static cgam_status measure(steering *s, bool first, bool keep, double *right, double out[MEASURES])
{
    cgam_lm_input *in = s->in;
    cgam_status status =
        cgam_lens_judge(s->lens, CGAM_LENS_NORM, in->queries, s->x, in->info.width, s->target,
                        cgam_dataset_labels(in->eval), s->tokens, s->verdict);
    double *rank = cgam_alloc(in->call->env, 2 * (size_t)in->queries + DRAWS, sizeof *rank);
    if (status == CGAM_OK && !rank) status = cgam_fail_nomem(in->call->env, "ranks");
    double n = 0, square = 0, gains = 0, odds = 0, behinds = 0;
    for (int m = 0; m < MEASURES; m++) out[m] = 0;
    for (int64_t i = 0; i < in->queries && status == CGAM_OK; i++) {
        const cgam_answer *v = &s->verdict[i];
        if (s->target[i] < 0) continue;
        rank[in->queries + (int64_t)n] = v->log_p;
        rank[(int64_t)n++] = (double)v->rank;
        out[P] += exp(v->log_p);
        out[LOG_P] += v->log_p;
        square += v->log_p * v->log_p;
        double *before = s->before + 2 * i, now = log_odds(v->log_p, v->mass);
        if (first) before[0] = v->log_p, before[1] = now;
        double gain = v->log_p - before[0], moved = now - before[1];
        if (keep) right[i] = v->log_p;
        double behind = (right ? right[i] : v->log_p) - v->log_p;
        out[GAIN] += gain, gains += gain * gain;
        out[BEHIND] += behind, behinds += behind * behind;
        out[ODDS] += now, out[ODDS_GAIN] += moved, odds += moved * moved;
        out[TOP1] += v->rank == 0;
        out[MASS] += v->mass;
    }
    if (status == CGAM_OK && n > 0) {
        out[P] /= n, out[LOG_P] /= n, out[TOP1] /= n, out[MASS] /= n;
        out[GAIN] /= n, out[ODDS] /= n, out[ODDS_GAIN] /= n, out[BEHIND] /= n;
        out[LOG_P_SE] = error_of(n, square, out[LOG_P]);
        out[GAIN_SE] = error_of(n, gains, out[GAIN]);
        out[ODDS_GAIN_SE] = error_of(n, odds, out[ODDS_GAIN]);
        out[BEHIND_SE] = error_of(n, behinds, out[BEHIND]);
        band((uint64_t)cgam_args_int(in->call->args, "seed"), (int64_t)n, rank + in->queries,
             rank + 2 * in->queries, out + LOG_P_LOW);
        qsort(rank, (size_t)n, sizeof *rank, rising);
        out[RANK] = (rank[((int64_t)n - 1) / 2] + rank[(int64_t)n / 2]) / 2;
    }
    cgam_free(in->call->env, rank);
    return status;
}

/* x = q + lambda s c_{-i} with the context after layer l. */
static void push(steering *s, const float *with, int64_t l, double lambda)
{
    const cgam_lm_input *in = s->in;
    int64_t n = in->queries, d = in->info.width, L = in->info.layers + 1;
    double mean = 0;
    for (int64_t j = 0; j < d; j++) s->total[j] = 0;
    for (int64_t i = 0; i < n; i++) {
        const float *q = s->zero + (i * L + L - 1) * d;
        double size = 0;
        for (int64_t j = 0; j < d; j++) {
            int64_t at = (i * L + l) * d + j;
            size += (double)q[j] * (double)q[j];
            if (with) s->total[j] += (double)with[at] - (double)s->zero[at];
        }
        mean += sqrt(size) / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        const float *q = s->zero + (i * L + L - 1) * d;
        double size = 0, factor = 1;
        for (int64_t j = 0; j < d && with; j++) {
            int64_t at = (i * L + l) * d + j;
            double c = (s->total[j] - ((double)with[at] - (double)s->zero[at])) / (double)(n - 1);
            s->x[i * d + j] = (float)c;
            size += c * c;
        }
        if (s->relative) factor = size > 0 ? mean / sqrt(size) : 0;
        for (int64_t j = 0; j < d; j++)
            s->x[i * d + j] =
                (float)((double)q[j] + (with ? lambda * factor * (double)s->x[i * d + j] : 0));
    }
}

static cgam_status add_kind(steering *s, int64_t k, int kind, json_t *curves)
{
    cgam_lm_input *in = s->in;
    cgam_env *env = in->call->env;
    int64_t L = in->info.layers + 1;
    const double *lambda;
    int64_t lambdas = cgam_args_reals(in->call->args, "lambda", &lambda);
    float *with = NULL;
    double *column = cgam_alloc(env, MEASURES * (size_t)L, sizeof *column);
    if (!column) return cgam_fail_nomem(env, "a curve");
    cgam_status status = cgam_lm_input_states(in, k, kinds[kind].demos, &with);
    for (int64_t a = 0; a < lambdas && status == CGAM_OK; a++) {
        for (int64_t l = 0; l < L && status == CGAM_OK; l++) {
            double m[MEASURES], row[4 + MEASURES] = {(double)k, kind, lambda[a], (double)l};
            push(s, with, l, lambda[a]);
            status = measure(s, false, kind == 0, s->right + (a * L + l) * in->queries, m);
            for (int c = 0; c < MEASURES; c++) column[c * L + l] = row[4 + c] = m[c];
            if (status == CGAM_OK) cgam_csv_row(&s->csv, row);
        }
        if (status != CGAM_OK) break;
        json_t *curve = json_object();
        cgam_json_put_text(curve, "context", kinds[kind].name);
        cgam_json_put_real(curve, "lambda", lambda[a]);
        for (int c = 0; c < MEASURES; c++)
            cgam_json_put(curve, measures[c], cgam_json_reals(column + c * L, L, 1));
        json_array_append_new(curves, curve);
    }
    cgam_free(env, with);
    cgam_free(env, column);
    return status;
}

static cgam_status add_shots(steering *s, int64_t k, json_t *shots)
{
    json_t *entry = json_object(), *curves = json_array(), *baseline = json_object();
    double m[MEASURES];
    push(s, NULL, 0, 0);
    cgam_status status = measure(s, true, false, NULL, m);
    for (int c = 0; c < MEASURES; c++) cgam_json_put_real(baseline, measures[c], m[c]);
    for (int kind = 0; kind < KINDS && status == CGAM_OK; kind++)
        status = add_kind(s, k, kind, curves);
    cgam_json_put_int(entry, "k", k);
    cgam_json_put(entry, "baseline", baseline);
    cgam_json_put(entry, "curves", curves);
    json_array_append_new(shots, entry);
    return status;
}

static cgam_status begin(cgam_call *call, steering *s)
{
    cgam_lm_input *in = s->in;
    cgam_env *env = call->env;
    cgam_status status = cgam_lm_input_open(call, in);
    if (status == CGAM_OK && (in->shots[in->n_shots - 1] == 0 || in->queries < 2))
        status = cgam_fail(env, CGAM_E_ARG, "steering needs demonstrations and 2 queries or more");
    if (status == CGAM_OK) status = cgam_lm_input_label_tokens(in, &s->tokens);
    if (status == CGAM_OK) status = cgam_lens_new(in->lm, &s->lens);
    if (status != CGAM_OK) return status;
    const double *lambda;
    size_t n = (size_t)in->queries, d = (size_t)in->info.width;
    size_t lambdas = (size_t)cgam_args_reals(call->args, "lambda", &lambda);
    s->target = cgam_alloc(env, n, sizeof *s->target);
    s->verdict = cgam_zalloc(env, n, sizeof *s->verdict);
    s->x = cgam_alloc(env, n * d, sizeof *s->x);
    s->total = cgam_alloc(env, d, sizeof *s->total);
    s->before = cgam_zalloc(env, 2 * n, sizeof *s->before);
    s->right = cgam_zalloc(env, lambdas * (size_t)(in->info.layers + 1) * n, sizeof *s->right);
    if (!s->target || !s->verdict || !s->x || !s->total || !s->before || !s->right)
        return cgam_fail_nomem(env, "steering");
    for (int64_t i = 0; i < in->queries; i++)
        s->target[i] = s->tokens[cgam_prompts_label(in->prompts, i)];
    status = cgam_lm_input_states(in, 0, CGAM_DEMOS_TRUE, &s->zero);
    if (status == CGAM_OK)
        status = cgam_csv_begin(call->env, cgam_args_text(call->args, "out"), "steer.csv",
                                "shots,context,lambda,layer,p,log_p,log_p_se,log_p_low,log_p_high,"
                                "rank_median,top1,mass,"
                                "log_p_gain,log_p_gain_se,log_odds,log_odds_gain,log_odds_gain_se,"
                                "behind_right,behind_right_se",
                                &s->csv);
    return status;
}

static cgam_status run(cgam_call *call)
{
    cgam_lm_input in;
    steering s = {.in = &in};
    s.relative = strcmp(cgam_args_text(call->args, "lambda-scale"), "relative") == 0;
    json_t *shots = json_array();
    cgam_status status = begin(call, &s);
    for (int64_t i = 1; i < in.n_shots && status == CGAM_OK; i++)
        status = add_shots(&s, in.shots[i], shots);
    status = cgam_csv_end(&s.csv, status);
    if (status == CGAM_OK) cgam_put_lm_input(call->doc, &in);
    cgam_json_put_text(call->doc, "lambda_scale", cgam_args_text(call->args, "lambda-scale"));
    cgam_json_put(call->doc, "shots", shots);
    if (status == CGAM_OK) status = cgam_lm_draw(call, CGAM_MODELS_STEER);
    if (status == CGAM_OK)
        status =
            cgam_json_save(call->env, cgam_args_text(call->args, "out"), "steer.json", call->doc);
    void *blocks[] = {s.tokens, s.target, s.verdict, s.zero, s.x, s.total, s.before, s.right};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(call->env, blocks[i]);
    cgam_lens_free(s.lens);
    cgam_lm_input_close(&in);
    return status;
}

static void print(const json_t *doc, FILE *to)
{
    size_t i, c;
    json_t *entry, *curve;
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
                fprintf(to, " %13.3f",
                        json_number_value(json_array_get(json_object_get(curve, "log_p"), l)));
            fputc('\n', to);
        }
    }
}

const cgam_verb cgam_verb_lm_steer = {
    .name = "lm steer",
    .summary = "push a query by contexts of right and wrong facts",
    .about =
        "Holds each query's state at the last layer and adds lambda times the mean effect of "
        "demonstrations on the other queries, taken after each layer in turn. Three kinds of "
        "demonstrations: right ones (positive), objects of the same relation in the wrong "
        "places (wrong_object), and objects of another relation, names of languages "
        "(other_relation).\n\n"
        "For each: mean probability and log-probability of the answer, the median of its rank "
        "(0 is first), how often it is first, the probability of all objects together, and the log "
        "odds of the answer against the other objects, both with what they gain over no "
        "context. In "
        "steer.csv contexts are 0, 1, 2 in the order above.",
    .example = "cgam lm steer --dataset facts --shots 4 --queries 30 --store s.db --out steer",
    .params = params,
    .run = run,
    .print = print,
};
