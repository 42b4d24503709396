/* lm_sweep.c: contexts of every kind go through one sweep, so that a control is treated exactly as
 * what it controls. In the order of the contexts:
 *
 *   [0, L]            c_l, the mean effect of demonstrations after layer l
 *   [L + 1, 2L + 1]   the same of demonstrations with flipped labels
 *   [2L + 2, 3L + 2]  the same of another task
 *   3L + 3            no demonstrations at all: the mean of the labels' rows */
#include "app/lm_sweep.h"

#include "app/lm_bar.h"
#include "base/env.h"

#include <math.h>
#include <stdlib.h>

enum { TRUE_LABELS, FLIPPED, OTHER_TASK, GROUPS, OTHER_QUERIES = 40 };

typedef struct trial {
    cgam_sweep_study *study;
    cgam_env *env;
    int64_t k, n, layers, d, labels; /* layers: L + 1 */
    float *icl;
    float *vectors; /* [contexts, 2, d] */
    cgam_sweep_context *context;
    int64_t contexts;
    cgam_sweep *sweep;
    const char *other_name;
    bool *zero_right[2], *icl_right[2], *retrieval_right[2]; /* [n], labels and vocabulary */
    bool *marks;                                             /* [n] of what is being chosen */
    double counted;                                          /* queries that are not left out */
    uint64_t seed;                                           /* of the draws behind errors */
    bool silent;                                             /* no step functions into the table */
} trial;

static float *vector_at(const trial *t, int64_t context, int half)
{
    return t->vectors + (2 * context + half) * t->d;
}

/* ---- Contexts ----------------------------------------------------------------------------- */
static void add_shifts(trial *t, int group, const float *with)
{
    const cgam_sweep_study *s = t->study;
    for (int64_t l = 0; l < t->layers; l++)
        for (int h = 0; h < 2; h++)
            cgam_baseline_shift(t->n, t->layers, t->d, with, s->zero, l, s->in_sample ? 2 : h,
                                vector_at(t, group * t->layers + l, h));
}

/* Another task: countries and capitals, or sentiment where the task is open-ended itself. */
static cgam_status add_other_task(trial *t)
{
    cgam_lm_input other = *t->study->in;
    other.eval = other.train = NULL;
    other.prompts = NULL;
    other.found = other.computed = other.tokens = 0;
    other.seconds = 0;
    other.name = cgam_dataset_open_ended(t->study->in->eval) ? "sentiment" : "facts";
    t->other_name = other.name;
    cgam_prompts_opts opts = cgam_prompts_opts_default();
    opts.queries = t->n < OTHER_QUERIES ? t->n : OTHER_QUERIES;
    opts.shots_max = t->k;
    opts.seed = t->seed;
    opts.shared = strcmp(cgam_args_text(other.call->args, "demos"), "shared") == 0;
    float *with = NULL, *without = NULL;
    cgam_status status = cgam_dataset_shipped(t->env, other.name, &other.eval);
    if (status == CGAM_OK)
        status = cgam_prompts_new(t->env, other.eval, NULL, &opts, &other.prompts);
    if (status == CGAM_OK) other.queries = cgam_prompts_count(other.prompts);
    if (status == CGAM_OK) status = cgam_lm_input_states(&other, 0, CGAM_DEMOS_TRUE, &without);
    if (status == CGAM_OK) status = cgam_lm_input_states(&other, t->k, CGAM_DEMOS_TRUE, &with);
    for (int64_t l = 0; l < t->layers && status == CGAM_OK; l++)
        for (int h = 0; h < 2; h++)
            cgam_baseline_shift(other.queries, t->layers, t->d, with, without, l, 2,
                                vector_at(t, OTHER_TASK * t->layers + l, h));
    cgam_lm_input *in = t->study->in;
    in->found += other.found;
    in->computed += other.computed;
    in->tokens += other.tokens;
    in->seconds += other.seconds;
    cgam_free(t->env, with);
    cgam_free(t->env, without);
    cgam_prompts_free(other.prompts);
    cgam_dataset_close(other.eval);
    return status;
}

static void add_label_mean(trial *t)
{
    const cgam_sweep_study *s = t->study;
    for (int64_t j = 0; j < t->d; j++) {
        double sum = 0;
        int64_t n = 0;
        for (int64_t k = 0; k < t->labels; k++) {
            if (s->tokens[k] < 0) continue;
            sum += (double)cgam_lens_row(s->lens, s->tokens[k])[j];
            n++;
        }
        for (int h = 0; h < 2; h++)
            vector_at(t, GROUPS * t->layers, h)[j] = (float)(sum / (double)(n ? n : 1));
    }
}

static cgam_status make_contexts(trial *t)
{
    float *flipped = NULL;
    cgam_status status = cgam_lm_input_states(t->study->in, t->k, CGAM_DEMOS_TRUE, &t->icl);
    if (status == CGAM_OK) add_shifts(t, TRUE_LABELS, t->icl);
    if (status == CGAM_OK)
        status = cgam_lm_input_states(t->study->in, t->k, CGAM_DEMOS_FLIPPED, &flipped);
    if (status == CGAM_OK) add_shifts(t, FLIPPED, flipped);
    cgam_free(t->env, flipped);
    if (status == CGAM_OK) status = add_other_task(t);
    if (status == CGAM_OK) add_label_mean(t);
    for (int64_t c = 0; c < t->contexts; c++)
        for (int h = 0; h < 2; h++) t->context[c].half[h] = vector_at(t, c, h);
    return status;
}

/* ---- Answers of the model itself ---------------------------------------------------------- */
/* Which queries the state at the last layer gets right, over the labels and over all words, whatever
 * the lens of the sweep: the model's own answer, which GAIN gives too if nothing follows the norm. */
static cgam_status answers(trial *t, const float *states, bool *right[2])
{
    const cgam_sweep_study *s = t->study;
    cgam_lens_kind own = cgam_lens_linear(s->lens) ? CGAM_LENS_GAIN : CGAM_LENS_NORM;
    int64_t N = cgam_lens_vocab(s->lens);
    float *sheet = cgam_alloc(t->env, (size_t)(t->n * N), sizeof *sheet);
    if (!sheet) return cgam_fail_nomem(t->env, "scores");
    cgam_status status = cgam_lens_scores(s->lens, own, t->n, states + (t->layers - 1) * t->d,
                                          t->layers * t->d, sheet);
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++) {
        const float *scores = sheet + i * N;
        right[0][i] = right[1][i] = false;
        if (s->target[i] < 0) continue;
        int64_t top = 0, label = -1;
        for (int64_t m = 1; m < N; m++)
            if (scores[m] > scores[top]) top = m;
        for (int64_t k = 0; k < t->labels; k++)
            if (s->tokens[k] >= 0 && (label < 0 || scores[s->tokens[k]] > scores[s->tokens[label]]))
                label = k;
        right[0][i] = label == s->target[i];
        right[1][i] = top == s->tokens[s->target[i]];
    }
    cgam_free(t->env, sheet);
    return status;
}

/* ---- Documents ---------------------------------------------------------------------------- */
static json_t *best_json(const trial *t, const cgam_sweep_best *best, bool layered)
{
    json_t *o = json_object();
    if (layered) cgam_json_put_int(o, "context_layer", best->context % t->layers);
    cgam_json_put_int(o, "query_layer", best->query_layer);
    cgam_json_put(o, "lambda",
                  cgam_json_reals((double[]){best->lambda.from, best->lambda.to}, 2, 1));
    cgam_json_put_real(o, "accuracy", best->accuracy);
    cgam_json_put_real(o, "held_out", best->held_out);
    cgam_json_put_real(o, "held_out_ties", best->held_out_ties);
    cgam_json_put_real(o, "tied", best->tied);
    return o;
}

/* Couplings at which the step functions are read, for comparison with studies on a grid, and all
 * there are with the norm lens. */
static const double grid[] = {0, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50};
enum { GRID = sizeof grid / sizeof *grid };

static const char *const over_names[] = {"restricted", "full"};

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Every step of the best pair of a group of contexts. */
static cgam_status write_steps(trial *t, int over, int group, const cgam_sweep_best *best)
{
    if (t->silent) return CGAM_OK;
    const cgam_interval *of =
        cgam_sweep_intervals(t->sweep, (cgam_sweep_over)over, best->context, best->query_layer);
    double *at = cgam_alloc(t->env, 2 * (size_t)t->n + 1 + GRID, sizeof *at);
    if (!at) return cgam_fail_nomem(t->env, "a step function");
    int64_t used = 0;
    for (int g = 0; g < (of ? 1 : GRID); g++) at[used++] = grid[g];
    for (int64_t i = 0; i < t->n && of; i++) {
        if (of[i].from >= of[i].to) continue;
        at[used++] = of[i].from;
        if (isfinite(of[i].to)) at[used++] = of[i].to;
    }
    qsort(at, (size_t)used, sizeof *at, rising);
    for (int64_t i = 0; i < used; i++) {
        double to = !of ? at[i] : i + 1 < used ? at[i + 1] : INFINITY;
        if (to > at[i] || !of)
            cgam_csv_row(
                &t->study->steps,
                (double[]){(double)t->k, group, over,
                           group < GROUPS ? (double)(best->context % t->layers) : NAN,
                           (double)best->query_layer, at[i], to,
                           (double)cgam_sweep_hits(t->sweep, (cgam_sweep_over)over, best->context,
                                                   best->query_layer, at[i]) /
                               t->counted});
    }
    cgam_free(t->env, at);
    return CGAM_OK;
}

/* One character for each query that counts: 1 right, 0 wrong. With these, any two answers can be
 * compared query by query. */
static void put_right(const trial *t, json_t *to, const char *name, const bool *right)
{
    char *text = cgam_alloc(t->env, (size_t)t->n + 1, 1);
    int64_t used = 0;
    for (int64_t i = 0; i < t->n && text; i++)
        if (t->study->target[i] >= 0) text[used++] = right[i] ? '1' : '0';
    if (text) text[used] = '\0';
    cgam_json_put_text(to, name, text);
    cgam_free(t->env, text);
}

/* Best pairs of contexts [first, first + count), over labels and over the vocabulary. */
static cgam_status put_best(trial *t, json_t *to, int64_t first, int64_t count, bool *right[2])
{
    cgam_status status = CGAM_OK;
    for (int over = 0; over < 2 && status == CGAM_OK; over++) {
        cgam_sweep_best best;
        bool *marks = right ? right[over] : t->marks;
        status = cgam_sweep_choose(t->sweep, (cgam_sweep_over)over, first, count, marks, &best);
        if (status != CGAM_OK) break;
        json_t *o = best_json(t, &best, count > 1);
        cgam_json_put_real(o, "held_out_se",
                           cgam_baseline_share(t->n, t->study->target, marks, NULL, t->seed).se);
        put_right(t, o, "right", marks);
        cgam_json_put(to, over_names[over], o);
        status = write_steps(t, over, (int)(first / t->layers), &best);
    }
    return status;
}

/* Contexts from the earlier and from the later half of the layers, each at its best. */
static cgam_status put_depths(trial *t, json_t *entry)
{
    json_t *early = json_object(), *late = json_object();
    int64_t half = t->layers / 2;
    t->silent = true;
    cgam_status status = put_best(t, early, 0, half, NULL);
    if (status == CGAM_OK) status = put_best(t, late, half, t->layers - half, NULL);
    t->silent = false;
    cgam_json_put(entry, "early", early);
    cgam_json_put(entry, "late", late);
    return status;
}

static cgam_status put_group(trial *t, json_t *controls, const char *name, int group)
{
    json_t *o = json_object();
    cgam_status status = put_best(t, o, group * t->layers, t->layers, NULL);
    json_t *cosine = json_array();
    for (int64_t l = 0; l < t->layers; l++)
        json_array_append_new(
            cosine, cgam_json_real(cgam_baseline_cosine(t->d, vector_at(t, l, 0),
                                                        vector_at(t, group * t->layers + l, 0))));
    cgam_json_put(o, "cosine", cosine);
    if (group == OTHER_TASK) cgam_json_put_text(o, "dataset", t->other_name);
    cgam_json_put(controls, name, o);
    return status;
}

/* Zero-shot scores of the labels that can be compared, at one layer; packed [n, used]. */
static int64_t label_scores(const trial *t, int64_t layer, double *scores, int32_t *target)
{
    const cgam_sweep_study *s = t->study;
    int64_t used = 0;
    for (int64_t k = 0; k < t->labels; k++) used += s->tokens[k] >= 0;
    for (int64_t i = 0; i < t->n; i++) {
        const float *h = s->zero + (i * t->layers + layer) * t->d;
        int64_t at = 0;
        target[i] = -1;
        for (int64_t k = 0; k < t->labels; k++) {
            if (s->tokens[k] < 0) continue;
            if (k == s->target[i]) target[i] = (int32_t)at;
            scores[i * used + at++] = cgam_lens_dot(s->lens, s->kind, s->tokens[k], h);
        }
    }
    return used;
}

/* Of right [layers, n], the layer that does best on one half, counted on the other; the verdict on
 * each query into `held`. */
static void choose_layer(const trial *t, const bool *right, bool *held)
{
    for (int half = 0; half < 2; half++) {
        int64_t best = 0, top = -1;
        for (int64_t l = 0; l < t->layers; l++) {
            int64_t hits = 0;
            for (int64_t i = half; i < t->n; i += 2) hits += right[l * t->n + i];
            if (hits <= top) continue;
            top = hits;
            best = l;
        }
        for (int64_t i = 1 - half; i < t->n; i += 2) held[i] = right[best * t->n + i];
    }
}

static json_t *centred_json(const trial *t, const bool *right, bool *held, double *by_layer)
{
    json_t *o = json_object();
    int64_t last = t->layers - 1;
    for (int64_t l = 0; l < t->layers; l++)
        by_layer[l] =
            cgam_baseline_share(t->n, t->study->target, right + l * t->n, NULL, t->seed).mean;
    choose_layer(t, right, held);
    cgam_share own =
        cgam_baseline_share(t->n, t->study->target, right + last * t->n, NULL, t->seed);
    cgam_share best = cgam_baseline_share(t->n, t->study->target, held, NULL, t->seed);
    cgam_json_put_real(o, "accuracy", own.mean);
    cgam_json_put_real(o, "accuracy_se", own.se);
    cgam_json_put_real(o, "held_out", best.mean);
    cgam_json_put_real(o, "held_out_se", best.se);
    cgam_json_put(o, "by_layer", cgam_json_reals(by_layer, t->layers, 1));
    put_right(t, o, "right", right + last * t->n);
    put_right(t, o, "held_out_right", held);
    return o;
}

/* Label scores without a context: centred, and for two labels under the best border. */
static cgam_status put_bias_controls(trial *t, json_t *controls)
{
    cgam_env *env = t->env;
    const cgam_sweep_study *s = t->study;
    double *scores = cgam_alloc(env, (size_t)(t->n * t->labels), sizeof *scores);
    double *gap = cgam_alloc(env, (size_t)t->n, sizeof *gap);
    int32_t *target = cgam_alloc(env, (size_t)t->n, sizeof *target);
    bool *right = cgam_zalloc(env, (size_t)((t->layers + 1) * t->n), sizeof *right);
    double *column = cgam_alloc(env, 3 * (size_t)t->layers, sizeof *column);
    double *bound = column, *auc = column ? column + t->layers : NULL;
    cgam_status status = CGAM_OK;
    int64_t used = 0;
    if (!scores || !gap || !target || !right || !column) status = cgam_fail_nomem(env, "controls");
    for (int64_t l = 0; l < t->layers && status == CGAM_OK; l++) {
        used = label_scores(t, l, scores, target);
        status = cgam_baseline_centred(env, t->n, used, scores, target, right + l * t->n);
        if (status != CGAM_OK || used != 2) continue;
        for (int64_t i = 0; i < t->n; i++) gap[i] = scores[2 * i + 1] - scores[2 * i];
        auc[l] = cgam_baseline_auc(t->n, gap, target);
        status = cgam_baseline_threshold(env, t->n, gap, target, !s->in_sample, &bound[l]);
    }
    if (status == CGAM_OK)
        cgam_json_put(controls, "centred",
                      centred_json(t, right, right + t->layers * t->n, column + 2 * t->layers));
    if (status == CGAM_OK && used == 2) {
        json_t *o = json_object();
        double top = 0;
        for (int64_t l = 0; l < t->layers; l++) top = fmax(top, bound[l]);
        cgam_json_put_real(o, "accuracy", bound[t->layers - 1]);
        cgam_json_put_real(o, "auc", auc[t->layers - 1]);
        cgam_json_put_real(o, "bound", top);
        cgam_json_put(o, "by_layer", cgam_json_reals(bound, t->layers, 1));
        cgam_json_put(o, "auc_by_layer", cgam_json_reals(auc, t->layers, 1));
        cgam_json_put(controls, "threshold", o);
    } else if (status == CGAM_OK) cgam_json_put(controls, "threshold", json_null());
    void *blocks[] = {scores, gap, target, right, column};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(env, blocks[i]);
    return status;
}

/* ---- Tables ------------------------------------------------------------------------------- */
static cgam_status write_tables(trial *t)
{
    cgam_status status = CGAM_OK;
    double counted = t->counted;
    for (int64_t c = 0; c < t->layers; c++)
        for (int64_t l = 0; l < t->layers && status == CGAM_OK; l++) {
            cgam_step step[2];
            for (int over = 0; over < 2 && status == CGAM_OK; over++)
                status = cgam_sweep_pair(t->sweep, (cgam_sweep_over)over, c, l, &step[over]);
            if (status != CGAM_OK) break;
            cgam_csv_row(&t->study->cells,
                         (double[]){(double)t->k, (double)c, (double)l,
                                    (double)step[0].count / counted, step[0].lambda.from,
                                    step[0].lambda.to, (double)step[1].count / counted,
                                    step[1].lambda.from, step[1].lambda.to});
            for (int g = 0; g < GRID; g++) {
                double row[6] = {(double)t->k, (double)c, (double)l, grid[g]};
                for (int over = 0; over < 2; over++)
                    row[4 + over] =
                        (double)cgam_sweep_hits(t->sweep, (cgam_sweep_over)over, c, l, grid[g]) /
                        counted;
                cgam_csv_row(&t->study->grid, row);
            }
        }
    return status;
}

/* ---- One number of shots ------------------------------------------------------------------ */
static cgam_status put_accuracies(trial *t, json_t *entry)
{
    json_t *zero = json_object(), *icl = json_object();
    for (int over = 0; over < 2; over++) {
        cgam_recovery r =
            cgam_baseline_recovery(t->n, t->study->target, t->zero_right[over], t->icl_right[over],
                                   t->retrieval_right[over], t->seed);
        char name[32];
        cgam_json_put_real(zero, over_names[over], r.zero);
        cgam_json_put_real(icl, over_names[over], r.icl);
        snprintf(name, sizeof name, "%s_se", over_names[over]);
        cgam_json_put_real(zero, name, r.zero_se);
        cgam_json_put_real(icl, name, r.icl_se);
        snprintf(name, sizeof name, "%s_right", over_names[over]);
        put_right(t, zero, name, t->zero_right[over]);
        put_right(t, icl, name, t->icl_right[over]);
        cgam_json_put_real(entry, over ? "recovered_full" : "recovered", r.recovered);
        cgam_json_put_real(entry, over ? "recovered_full_se" : "recovered_se", r.recovered_se);
        cgam_json_put(entry, over ? "recovered_full_95" : "recovered_95",
                      cgam_json_reals((double[]){r.recovered_low, r.recovered_high}, 2, 1));
    }
    cgam_json_put(entry, "zero_shot", zero);
    cgam_json_put(entry, "icl", icl);
    return CGAM_OK;
}

/* The mean log-probability of the answer: the model's own without and with demonstrations, and of
 * query plus context at the best pair over the vocabulary. */
static cgam_status put_log_p(trial *t, const cgam_sweep_input *in, json_t *entry)
{
    const cgam_sweep_study *s = t->study;
    cgam_env *env = t->env;
    if (!cgam_lens_has_norm(s->lens)) return CGAM_OK;
    float *x = cgam_alloc(env, (size_t)(t->n * t->d), sizeof *x);
    int32_t *token = cgam_alloc(env, (size_t)t->n, sizeof *token);
    cgam_answer *answer = cgam_zalloc(env, (size_t)t->n, sizeof *answer);
    cgam_status status =
        x && token && answer ? CGAM_OK : cgam_fail_nomem(env, "probabilities of answers");
    cgam_sweep_best best = {0};
    if (status == CGAM_OK)
        status = cgam_sweep_choose(t->sweep, CGAM_OVER_VOCABULARY, 0, t->layers, NULL, &best);
    json_t *to[] = {json_object_get(entry, "zero_shot"), json_object_get(entry, "icl"),
                    json_object_get(json_object_get(entry, "best"), "full")};
    const float *own[] = {s->zero, t->icl};
    for (int which = 0; which < 3 && status == CGAM_OK; which++) {
        for (int64_t i = 0; i < t->n; i++) {
            token[i] = s->target[i] < 0 ? -1 : s->tokens[s->target[i]];
            if (which < 2)
                memcpy(x + i * t->d, own[which] + (i * t->layers + t->layers - 1) * t->d,
                       (size_t)t->d * sizeof *x);
        }
        if (which == 2)
            status = cgam_sweep_sums(s->lens, in, &t->context[best.context], best.query_layer,
                                     cgam_sweep_inside(best.lambda), x);
        if (status == CGAM_OK)
            status = cgam_lens_judge(s->lens, CGAM_LENS_NORM, t->n, x, t->d, token, t->labels,
                                     s->tokens, answer);
        double sum = 0, square = 0, n = t->counted;
        for (int64_t i = 0; i < t->n; i++) {
            if (token[i] < 0) continue;
            sum += answer[i].log_p;
            square += answer[i].log_p * answer[i].log_p;
        }
        cgam_json_put_real(to[which], "log_p", sum / n);
        cgam_json_put_real(to[which], "log_p_se",
                           sqrt(fmax(0, square / n - (sum / n) * (sum / n)) / fmax(1, n - 1)));
    }
    cgam_free(env, x);
    cgam_free(env, token);
    cgam_free(env, answer);
    return status;
}

static cgam_status run_trial(trial *t, json_t *entry, const cgam_lm_progress *progress)
{
    const cgam_sweep_study *s = t->study;
    cgam_status status = make_contexts(t);
    cgam_sweep_input in = {.queries = t->n,
                           .layers = t->layers,
                           .zero = s->zero,
                           .labels = t->labels,
                           .tokens = s->tokens,
                           .target = s->target,
                           .lens = s->kind,
                           .grid = GRID,
                           .lambda = grid,
                           .relative = s->relative,
                           .in_sample = s->in_sample};
    double start = cgam_clock();
    if (status == CGAM_OK)
        status = cgam_sweep_new(s->lens, &in, t->contexts, t->context, progress, &t->sweep);
    if (status == CGAM_OK) status = answers(t, s->zero, t->zero_right);
    if (status == CGAM_OK) status = answers(t, t->icl, t->icl_right);
    if (status != CGAM_OK) return status;
    cgam_json_put_real(entry, "sweep_seconds", cgam_clock() - start);
    json_t *best = json_object(), *controls = json_object(), *mean = json_object();
    status = put_best(t, best, 0, t->layers, t->retrieval_right);
    cgam_json_put(entry, "best", best);
    if (status == CGAM_OK) status = put_depths(t, entry);
    if (status == CGAM_OK) status = put_accuracies(t, entry);
    if (status == CGAM_OK) status = put_log_p(t, &in, entry);
    if (status == CGAM_OK) status = put_bias_controls(t, controls);
    if (status == CGAM_OK) status = put_best(t, mean, GROUPS * t->layers, 1, NULL);
    cgam_json_put(controls, "label_mean", mean);
    if (status == CGAM_OK) status = put_group(t, controls, "flipped", FLIPPED);
    if (status == CGAM_OK) status = put_group(t, controls, "other_task", OTHER_TASK);
    cgam_json_put(entry, "controls", controls);
    return status == CGAM_OK ? write_tables(t) : status;
}

cgam_status cgam_sweep_study_shots(cgam_sweep_study *study, int64_t k, json_t *shots)
{
    cgam_lm_input *in = study->in;
    cgam_env *env = in->call->env;
    trial t = {.study = study,
               .env = env,
               .k = k,
               .n = in->queries,
               .layers = in->info.layers + 1,
               .d = in->info.width,
               .labels = cgam_dataset_labels(in->eval),
               .seed = (uint64_t)cgam_args_int(in->call->args, "seed"),
               .contexts = GROUPS * (in->info.layers + 1) + 1};
    t.vectors = cgam_zalloc(env, (size_t)(2 * t.contexts * t.d), sizeof *t.vectors);
    t.context = cgam_zalloc(env, (size_t)t.contexts, sizeof *t.context);
    bool *marks = cgam_zalloc(env, 7 * (size_t)t.n, sizeof *marks);
    for (int over = 0; over < 2 && marks; over++) {
        t.zero_right[over] = marks + (0 + over) * t.n;
        t.icl_right[over] = marks + (2 + over) * t.n;
        t.retrieval_right[over] = marks + (4 + over) * t.n;
        t.marks = marks + 6 * t.n;
    }
    int64_t counted = 0;
    for (int64_t i = 0; i < t.n; i++) counted += study->target[i] >= 0;
    json_t *entry = json_object();
    cgam_json_put_int(entry, "k", k);
    t.counted = (double)counted;
    cgam_json_put_int(entry, "queries", counted);
    cgam_json_put_int(entry, "left_out", t.n - counted);
    cgam_bar bar;
    cgam_lm_progress progress = cgam_bar_begin(in->call, &bar);
    cgam_status status = t.vectors && t.context && marks ? run_trial(&t, entry, &progress)
                                                         : cgam_fail_nomem(env, "contexts");
    cgam_bar_end(&bar);
    json_array_append_new(shots, entry);
    cgam_sweep_free(t.sweep);
    cgam_free(env, t.icl);
    cgam_free(env, t.vectors);
    cgam_free(env, t.context);
    cgam_free(env, marks);
    return status;
}
