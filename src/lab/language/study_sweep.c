/* study_sweep.c: runs contexts of every kind through one sweep, so that a baseline is treated exactly
 * like the contexts it is compared with. The contexts, in order:
 *
 *   [0, L]            c_l, the mean effect of demonstrations after layer l
 *   [L + 1, 2L + 1]   the same with flipped labels
 *   [2L + 2, 3L + 2]  the same of another task
 *   3L + 3            no demonstrations at all: the mean of the labels' rows
 *   [3L + 4, 4L + 4]  random vectors, each with the norm of c_l */
#include "lab/language/study_sweep.h"
#include "lab/stats.h"
#include "lm/lens.h"

#include "lab/language/fit.h"
#include <math.h>

enum {
    TRUE_LABELS,
    FLIPPED,
    OTHER_TASK,
    GROUPS,
    RANDOM
}; /* GROUPS: the labels' rows, one context */

/* The first context of a group. */
static int64_t begin_of(const cgam_trial *t, int group)
{
    return group == RANDOM ? GROUPS * t->layers + 1 : group * t->layers;
}

static float *vector_at(const cgam_trial *t, int64_t context, int half)
{
    return t->context + (2 * context + half) * t->d;
}

/* ---- Contexts ----------------------------------------------------------------------------- */
static cgam_status add_other_task(cgam_trial *t)
{
    cgam_lm_task other;
    float *with = NULL;
    cgam_status status = cgam_lm_other_task(t->study, false, t->k, &other);
    t->other_name = other.name;
    snprintf(t->other_source, sizeof t->other_source, "%s", other.source);
    if (status == CGAM_OK)
        status = cgam_lm_shifts(t->study, &other, NULL, t->k, CGAM_DEMOS_TRUE, true, &with,
                                vector_at(t, OTHER_TASK * t->layers, 0));
    cgam_free(t->env, with);
    cgam_lm_task_close(t->env, &other);
    return status;
}

static void add_label_mean(cgam_trial *t)
{
    const cgam_lm_task *task = t->task;
    for (int64_t j = 0; j < t->d; j++) {
        double sum = 0;
        int64_t n = 0;
        for (int64_t k = 0; k < t->labels; k++) {
            int32_t token = t->answers ? t->answers->first[k] : task->tokens[k];
            if (token < 0) continue;
            sum += (double)cgam_lens_row(t->lens, token)[j];
            n++;
        }
        for (int h = 0; h < 2; h++)
            vector_at(t, GROUPS * t->layers, h)[j] = (float)(sum / (double)(n ? n : 1));
    }
}

/* A context that says nothing: one direction for a layer, with the norms of the true ones. */
static void add_random(cgam_trial *t)
{
    for (int64_t l = 0; l < t->layers; l++)
        for (int h = 0; h < 2; h++) {
            cgam_rng rng = cgam_rng_stream(t->study->seed, (UINT64_C(1) << 58) + (uint64_t)l);
            float *v = vector_at(t, begin_of(t, RANDOM) + l, h);
            double norm = cgam_sweep_norm(vector_at(t, l, h), t->d);
            for (int64_t j = 0; j < t->d; j++) v[j] = (float)cgam_rng_normal(&rng);
            double factor = norm / cgam_sweep_norm(v, t->d);
            for (int64_t j = 0; j < t->d; j++) v[j] = (float)(factor * (double)v[j]);
        }
}

static cgam_status make_contexts(cgam_trial *t)
{
    float *flipped = NULL;
    cgam_status status = cgam_answers_states(t->answers, t->study, t->task, t->k, CGAM_DEMOS_TRUE,
                                             &t->icl, &t->icl_after);
    if (status == CGAM_OK)
        cgam_baseline_shifts(t->n, t->layers, t->d, t->icl, t->zero, t->opts->in_sample,
                             vector_at(t, TRUE_LABELS * t->layers, 0));
    if (status == CGAM_OK)
        status = cgam_lm_shifts(t->study, t->task, t->zero, t->k, CGAM_DEMOS_FLIPPED,
                                t->opts->in_sample, &flipped, vector_at(t, FLIPPED * t->layers, 0));
    cgam_free(t->env, flipped);
    if (status == CGAM_OK) status = add_other_task(t);
    if (status == CGAM_OK && t->P)
        status =
            cgam_projection_apply(t->env, t->P, t->d, (int64_t)2 * GROUPS * t->layers, t->context);
    if (status == CGAM_OK) add_label_mean(t);
    if (status == CGAM_OK) add_random(t);
    return status;
}

/* ---- Answers of the model itself ---------------------------------------------------------- */
static cgam_lens_kind own_kind(const cgam_lens *lens)
{
    return lens->shifted ? CGAM_LENS_NORM : CGAM_LENS_GAIN;
}

cgam_trial cgam_trial_of(cgam_lm_study *study, const cgam_lm_task *task, const cgam_lens *lens)
{
    const cgam_answers *a = task->answers;
    return (cgam_trial){.study = study,
                        .task = task,
                        .env = study->env,
                        .lens = lens,
                        .kind = lens ? own_kind(lens) : CGAM_LENS_NORM,
                        .n = task->queries,
                        .layers = study->info.layers + 1,
                        .d = study->info.width,
                        .labels = task->labels,
                        .answers = a,
                        .target = a ? a->target : task->target,
                        .counted = a ? task->queries : task->counted};
}

cgam_status cgam_trial_begin(cgam_lm_study *study, cgam_trial *out)
{
    const cgam_lens *lens;
    cgam_status status = cgam_lm_task_several(study, &study->task);
    if (status == CGAM_OK) status = cgam_lm_task_label(study, &study->task);
    if (status == CGAM_OK) status = cgam_lm_study_lens(study, &lens);
    if (status == CGAM_OK) *out = cgam_trial_of(study, &study->task, lens);
    return status;
}

cgam_sweep_input cgam_trial_input(cgam_trial *t, bool relative, bool in_sample)
{
    const cgam_answers *a = t->answers;
    if (a)
        t->whole = (cgam_sweep_answers){a->longest, a->beginnings, a->tokens, a->at, t->zero_after};
    return (cgam_sweep_input){.queries = t->n,
                              .layers = t->layers,
                              .zero = t->zero,
                              .labels = t->labels,
                              .tokens = a ? a->first : t->task->tokens,
                              .target = t->target,
                              .answers = a ? &t->whole : NULL,
                              .lens = t->kind,
                              .grid = CGAM_SWEEP_LAMBDAS,
                              .lambda = cgam_sweep_lambdas,
                              .relative = relative,
                              .in_sample = in_sample};
}

cgam_status cgam_trial_answers(const cgam_trial *t, const cgam_trial_states *of,
                               bool *const right[2])
{
    int32_t *label = cgam_alloc(t->env, (size_t)(2 * t->n), sizeof *label);
    if (!label) return cgam_fail_nomem(t->env, "answers");
    cgam_status status = cgam_trial_top(t, own_kind(t->lens), of, label, label + t->n, right[1]);
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++)
        right[0][i] = t->target[i] >= 0 && label[i] == t->target[i];
    cgam_free(t->env, label);
    return status;
}

/* ---- Documents ---------------------------------------------------------------------------- */
/* Couplings at which the step functions are read, for comparison with studies on a grid, and all
 * there are with the norm lens. */
const double cgam_sweep_lambdas[CGAM_SWEEP_LAMBDAS] = {0, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50};
static const double *const grid = cgam_sweep_lambdas;
enum { GRID = CGAM_SWEEP_LAMBDAS };

/* Every step of the best pair of a group of contexts. */
static cgam_status write_steps(cgam_trial *t, int over, int group, const cgam_sweep_best *best)
{
    if (t->silent) return CGAM_OK;
    const cgam_interval *of =
        cgam_sweep_intervals(t->sweep, over, best->context, best->query_layer);
    double *at = cgam_alloc(t->env, 2 * (size_t)t->n + 1 + GRID, sizeof *at);
    if (!at) return cgam_fail_nomem(t->env, "a step function");
    int64_t used = 0;
    for (int g = 0; g < (of ? 1 : GRID); g++) at[used++] = grid[g];
    for (int64_t i = 0; i < t->n && of; i++) {
        if (of[i].from >= of[i].to) continue;
        at[used++] = of[i].from;
        if (isfinite(of[i].to)) at[used++] = of[i].to;
    }
    cgam_sort(at, used);
    for (int64_t i = 0; i < used; i++) {
        double to = !of ? at[i] : i + 1 < used ? at[i + 1] : INFINITY;
        if (to > at[i] || !of)
            cgam_lm_result_row(
                t->result, CGAM_SWEEP_STEPS,
                (double[]){(double)t->k, group, over,
                           group != GROUPS ? (double)(best->context - begin_of(t, group)) : NAN,
                           (double)best->query_layer, at[i], to,
                           (double)cgam_sweep_hits(t->sweep, over, best->context, best->query_layer,
                                                   at[i]) /
                               (double)t->counted});
    }
    cgam_free(t->env, at);
    return CGAM_OK;
}

void cgam_trial_put_right(const cgam_trial *t, json_t *to, const char *name, const bool *right)
{
    cgam_lm_put_right(t->env, to, name, t->n, t->target, right);
}

cgam_share cgam_trial_share(const cgam_trial *t, const bool *right)
{
    return cgam_baseline_share(t->n, t->target, right, NULL, t->study->seed);
}

/* What was chosen on each half, for the other. */
static json_t *choices_json(const cgam_sweep_best *best, int64_t begin, bool layered)
{
    json_t *both = json_array();
    for (int h = 0; h < 2; h++) {
        json_t *o = json_object();
        if (layered) cgam_json_put_int(o, "context_layer", best->half[h].context - begin);
        cgam_json_add(o, "query_layer=%jd lambda=%g", best->half[h].query_layer,
                      best->half[h].lambda);
        json_array_append_new(both, o);
    }
    return both;
}

/* Best pairs of contexts [from, from + count) of a group, over labels and over the vocabulary. */
static cgam_status put_best(cgam_trial *t, json_t *to, int group, int64_t from, int64_t count,
                            bool *right[2])
{
    cgam_status status = CGAM_OK;
    int64_t begin = begin_of(t, group), first = begin + from;
    for (int over = 0; over < 2 && status == CGAM_OK; over++) {
        cgam_sweep_best best;
        bool *marks = right ? right[over] : t->marks;
        status = cgam_sweep_choose(t->sweep, over, first, count, marks, &best);
        if (status != CGAM_OK) break;
        json_t *o = json_object();
        if (count > 1) cgam_json_put_int(o, "context_layer", best.context - begin);
        cgam_json_add(o,
                      "query_layer=%jd lambda=%p accuracy=%g held_out=%g held_out_ties=%g tied=%g "
                      "held_out_choices=%p held_out_se=%g",
                      best.query_layer,
                      cgam_json_reals((double[]){best.lambda.from, best.lambda.to}, 2, 1),
                      best.accuracy, best.held_out, best.held_out_ties, best.tied,
                      choices_json(&best, begin, count > 1), cgam_trial_share(t, marks).se);
        cgam_trial_put_right(t, o, "right", marks);
        cgam_json_put(to, cgam_sweep_over_name(over), o);
        status = write_steps(t, over, group, &best);
    }
    return status;
}

/* Contexts from the earlier and from the later half of the layers, each at its best. */
static cgam_status put_depths(cgam_trial *t, json_t *entry, int group)
{
    json_t *early = json_object(), *late = json_object();
    int64_t half = t->layers / 2;
    t->silent = true;
    cgam_status status = put_best(t, early, group, 0, half, NULL);
    if (status == CGAM_OK) status = put_best(t, late, group, half, t->layers - half, NULL);
    t->silent = false;
    cgam_json_add(entry, "early=%p late=%p", early, late);
    return status;
}

static cgam_status put_group(cgam_trial *t, json_t *baselines, const char *name, int group)
{
    json_t *o = json_object();
    cgam_status status = put_best(t, o, group, 0, t->layers, NULL);
    if (status == CGAM_OK && group != OTHER_TASK) status = put_depths(t, o, group);
    json_t *cosine = json_array();
    for (int64_t l = 0; l < t->layers; l++)
        json_array_append_new(
            cosine, cgam_json_real(cgam_baseline_cosine(t->d, vector_at(t, l, 0),
                                                        vector_at(t, begin_of(t, group) + l, 0))));
    cgam_json_put(o, "cosine", cosine);
    if (group == OTHER_TASK) {
        cgam_json_add(o, "dataset=%s source=%s", t->other_name, t->other_source);
    }
    cgam_json_put(baselines, name, o);
    return status;
}

/* ---- Tables ------------------------------------------------------------------------------- */
/* Where each query that counts is right, of every pair; a sweep on a grid has no such thing. */
static void write_intervals(const cgam_trial *t)
{
    for (int64_t k = 0; k < 2 * t->layers * t->layers; k++) {
        int64_t over = k % 2, c = k / 2 / t->layers, l = k / 2 % t->layers;
        const cgam_interval *of = cgam_sweep_intervals(t->sweep, over, c, l);
        for (int64_t i = 0; of && i < t->n; i++)
            if (t->target[i] >= 0 && of[i].from < of[i].to)
                cgam_lm_result_row(t->result, CGAM_SWEEP_INTERVALS,
                                   (double[]){(double)t->k, (double)c, (double)l, (double)over,
                                              (double)i, of[i].from, of[i].to});
    }
}

static cgam_status write_tables(cgam_trial *t)
{
    cgam_status status = CGAM_OK;
    double counted = (double)t->counted;
    for (int64_t c = 0; c < t->layers; c++)
        for (int64_t l = 0; l < t->layers && status == CGAM_OK; l++) {
            cgam_step step[2];
            for (int over = 0; over < 2 && status == CGAM_OK; over++)
                status = cgam_sweep_pair(t->sweep, over, c, l, &step[over]);
            if (status != CGAM_OK) break;
            cgam_lm_result_row(t->result, CGAM_SWEEP_CELLS,
                               (double[]){(double)t->k, (double)c, (double)l,
                                          (double)step[0].count / counted, step[0].lambda.from,
                                          step[0].lambda.to, (double)step[1].count / counted,
                                          step[1].lambda.from, step[1].lambda.to});
            for (int g = 0; g < GRID; g++) {
                double row[6] = {(double)t->k, (double)c, (double)l, grid[g]};
                for (int over = 0; over < 2; over++)
                    row[4 + over] =
                        (double)cgam_sweep_hits(t->sweep, over, c, l, grid[g]) / counted;
                cgam_lm_result_row(t->result, CGAM_SWEEP_READINGS, row);
            }
        }
    if (status == CGAM_OK && t->opts->intervals) write_intervals(t);
    return status;
}

/* ---- One number of shots ------------------------------------------------------------------ */
static void put_accuracies(const cgam_trial *t, json_t *entry)
{
    json_t *zero = json_object(), *icl = json_object();
    for (int over = 0; over < 2; over++) {
        cgam_recovery r = cgam_baseline_recovery(
            t->n, t->target, t->right[CGAM_TRIAL_ZERO][over], t->right[CGAM_TRIAL_ICL][over],
            t->right[CGAM_TRIAL_RETRIEVAL][over], t->study->seed);
        cgam_lm_put_recovery(entry, over ? "recovered_full" : "recovered", &r);
    }
    cgam_lm_put_overs(t->study, zero, t->n, t->target,
                      (const bool *const *)t->right[CGAM_TRIAL_ZERO], false);
    cgam_lm_put_overs(t->study, icl, t->n, t->target, (const bool *const *)t->right[CGAM_TRIAL_ICL],
                      false);
    cgam_json_add(entry, "zero_shot=%p icl=%p", zero, icl);
}

/* The mean log-probability of the answer: the model's own without and with demonstrations, and of
 * query plus context at the best pair over the vocabulary. */
static cgam_status put_log_p(cgam_trial *t, const cgam_sweep_input *in, json_t *entry)
{
    cgam_env *env = t->env;
    if (!cgam_lens_has_norm(t->lens)) return CGAM_OK;
    double *value = cgam_alloc(env, (size_t)t->n, sizeof *value);
    cgam_status status = value ? CGAM_OK : cgam_fail_nomem(env, "probabilities of answers");
    cgam_sweep_best best = {0};
    cgam_trial_states sums = {0};
    if (status == CGAM_OK)
        status = cgam_sweep_choose(t->sweep, CGAM_OVER_VOCABULARY, 0, t->layers, NULL, &best);
    if (status == CGAM_OK)
        status = cgam_trial_sums(t, in, best.context, best.query_layer,
                                 cgam_sweep_inside(best.lambda), &sums);
    json_t *to[] = {json_object_get(entry, "zero_shot"), json_object_get(entry, "icl"),
                    json_object_get(json_object_get(entry, "best"), "full")};
    for (int which = 0; which < 3 && status == CGAM_OK; which++) {
        cgam_trial_states own = which < 2 ? cgam_trial_own(t, which == 1) : sums;
        status = cgam_trial_log_p(t, &own, value);
        cgam_moments log_p = {0};
        for (int64_t i = 0; i < t->n; i++)
            if (t->target[i] >= 0) cgam_moments_add(&log_p, value[i]);
        cgam_lm_put_share(to[which], "log_p",
                          (cgam_share){log_p.n > 0 ? log_p.mean : (double)NAN,
                                       log_p.n == 1 ? 0 : cgam_moments_se(&log_p)});
    }
    cgam_free_all(env, sums.own, value);
    return status;
}

/* The paper's own protocol: the context is the mean over all queries, as it is, and layers and lambda are the
 * best on the same queries. Nothing is held out. */
static cgam_status put_paper(cgam_trial *t, json_t *entry)
{
    cgam_sweep *sweep = NULL;
    float *context = cgam_alloc(t->env, (size_t)(2 * t->layers * t->d), sizeof *context);
    if (!context) return cgam_fail_nomem(t->env, "contexts");
    cgam_baseline_shifts(t->n, t->layers, t->d, t->icl, t->zero, true, context);
    cgam_status status =
        t->P ? cgam_projection_apply(t->env, t->P, t->d, 2 * t->layers, context) : CGAM_OK;
    const cgam_sweep_input in = cgam_trial_input(t, false, true);
    json_t *o = cgam_json_object("in_sample?=%d lambda_scale=%s", true, "absolute");
    cgam_lm_work_readings(t->study, (double)(t->n * t->layers));
    if (status == CGAM_OK)
        status = cgam_sweep_new(t->lens, &in, t->layers, context, &t->study->progress, &sweep);
    for (int over = 0; over < 2 && status == CGAM_OK; over++) {
        cgam_sweep_best best;
        status = cgam_sweep_choose(sweep, over, 0, t->layers, NULL, &best);
        if (status != CGAM_OK) break;
        double icl = cgam_trial_share(t, t->right[CGAM_TRIAL_ICL][over]).mean;
        cgam_json_put(
            o, cgam_sweep_over_name(over),
            cgam_json_object("context_layer=%jd query_layer=%jd lambda=%p accuracy=%g "
                             "of_icl=%g",
                             best.context, best.query_layer,
                             cgam_json_reals((double[]){best.lambda.from, best.lambda.to}, 2, 1),
                             best.accuracy, icl > 0 ? best.accuracy / icl : (double)NAN));
    }
    cgam_json_put(entry, "paper", o);
    cgam_sweep_free(sweep);
    cgam_free(t->env, context);
    return status;
}

static cgam_status run_trial(cgam_trial *t, json_t *entry)
{
    cgam_status status = make_contexts(t);
    cgam_sweep_input in = cgam_trial_input(t, !t->opts->absolute, t->opts->in_sample);
    double start = cgam_clock();
    cgam_lm_work_readings(t->study, (CGAM_WORK_SWEEP - 1) * (double)(t->n * t->layers));
    if (status == CGAM_OK)
        status =
            cgam_sweep_new(t->lens, &in, t->contexts, t->context, &t->study->progress, &t->sweep);
    for (int with = 0; with < 2 && status == CGAM_OK; with++) {
        cgam_trial_states own = cgam_trial_own(t, with);
        status = cgam_trial_answers(t, &own, t->right[with]);
    }
    if (status != CGAM_OK) return status;
    cgam_json_put_real(entry, "sweep_seconds", cgam_clock() - start);
    json_t *best = json_object(), *baselines = json_object(), *mean = json_object();
    status = put_best(t, best, TRUE_LABELS, 0, t->layers, t->right[CGAM_TRIAL_RETRIEVAL]);
    cgam_json_put(entry, "best", best);
    if (status == CGAM_OK) status = put_depths(t, entry, TRUE_LABELS);
    put_accuracies(t, entry);
    if (status == CGAM_OK) status = put_log_p(t, &in, entry);
    if (status == CGAM_OK) status = cgam_trial_write_queries(t, &in);
    if (status == CGAM_OK) status = cgam_trial_put_borders(t, baselines);
    if (status == CGAM_OK) status = put_best(t, mean, GROUPS, 0, 1, NULL);
    cgam_json_put(baselines, "label_mean", mean);
    if (status == CGAM_OK) status = put_group(t, baselines, "flipped", FLIPPED);
    if (status == CGAM_OK) status = put_group(t, baselines, "other_task", OTHER_TASK);
    if (status == CGAM_OK) status = put_group(t, baselines, "random", RANDOM);
    if (status == CGAM_OK) status = put_paper(t, entry);
    cgam_json_put(entry, "controls", baselines);
    return status == CGAM_OK ? write_tables(t) : status;
}

/* One entry of "shots". */
static cgam_status add_shots(cgam_trial t, int64_t k, json_t *shots)
{
    cgam_env *env = t.env;
    json_t *entry = json_object();
    t.k = k;
    t.contexts = (GROUPS + 1) * t.layers + 1;
    bool *marks;
    cgam_status status =
        cgam_alloc_all(env, "contexts", CGAM_ZEROS(t.context, 2 * t.contexts * t.d),
                       CGAM_ZEROS(marks, (2 * CGAM_TRIAL_WAYS + 1) * t.n));
    for (int way = 0; way < CGAM_TRIAL_WAYS && marks; way++)
        for (int over = 0; over < 2; over++) t.right[way][over] = marks + (2 * way + over) * t.n;
    t.marks = marks ? marks + 2 * CGAM_TRIAL_WAYS * t.n : NULL;
    cgam_json_add(entry, "k=%jd queries=%jd left_out=%jd", k, t.counted, t.n - t.counted);
    if (status == CGAM_OK) status = run_trial(&t, entry);
    json_array_append_new(shots, entry);
    cgam_sweep_free(t.sweep);
    cgam_free_all(env, t.icl, t.context, marks);
    return status;
}

cgam_lm_sweep_opts cgam_lm_sweep_opts_default(void)
{
    return (cgam_lm_sweep_opts){.absolute = false};
}

static cgam_status choose_lens(cgam_trial *t)
{
    if (t->opts->lens_given) t->kind = t->opts->lens;
    if (t->kind == CGAM_LENS_GAIN && t->lens->shifted)
        return cgam_fail(t->env, CGAM_E_ARG,
                         "lens gain: this model adds a bias after its final norm, so lambda is "
                         "not exact; use norm or raw");
    return CGAM_OK;
}

cgam_status cgam_lm_sweep(cgam_lm_study *study, const cgam_lm_sweep_opts *opts,
                          cgam_lm_result **out)
{
    cgam_lm_sweep_opts o = opts ? *opts : cgam_lm_sweep_opts_default();
    cgam_trial t = {0};
    float *zero = NULL;
    *out = NULL;
    if (study->shots[study->n_shots - 1] == 0)
        return cgam_fail(study->env, CGAM_E_ARG, "shots: a sweep needs at least 1 demonstration");
    cgam_status status = cgam_trial_begin(study, &t);
    if (status != CGAM_OK) return status;
    t.opts = &o;
    status = choose_lens(&t);
    if (status == CGAM_OK && o.projection)
        status = cgam_projection_read(t.env, o.projection, t.d, &t.P);
    if (status == CGAM_OK) status = cgam_lm_result_new(study, &t.result);
    if (status != CGAM_OK) {
        cgam_free(t.env, t.P);
        return status;
    }
    cgam_lm_result_add(t.result, "sweep", "accuracy of every pair of layers at its best lambda",
                       "shots,context_layer,query_layer,restricted,restricted_from,restricted_to,"
                       "full,full_from,full_to");
    cgam_lm_result_add(t.result, "sweep_steps", "accuracy of the best pairs against lambda",
                       "shots,context,over_vocabulary,context_layer,query_layer,lambda_from,"
                       "lambda_to,accuracy");
    cgam_lm_result_add(t.result, "sweep_grid", "accuracy of every pair of layers on a grid",
                       "shots,context_layer,query_layer,lambda,restricted,full");
    cgam_lm_result_add(t.result, "per_query", "every query's answers, without, with, and retrieved",
                       cgam_trial_query_heads);
    if (o.intervals)
        cgam_lm_result_add(t.result, "sweep_intervals",
                           "couplings at which a query is right, of every pair of layers",
                           "shots,context_layer,query_layer,over_vocabulary,query,lambda_from,"
                           "lambda_to");
    json_t *shots = json_array(), *doc = t.result->doc;
    status =
        cgam_answers_states(t.answers, study, t.task, 0, CGAM_DEMOS_TRUE, &zero, &t.zero_after);
    t.zero = zero;
    for (int64_t i = 1; i < study->n_shots && status == CGAM_OK; i++)
        status = add_shots(t, study->shots[i], shots);
    cgam_lm_result_describe(t.result, study, t.task);
    cgam_json_add(
        doc,
        "lens=%s exact_lambda?=%d answer=%s lambda_scale=%s in_sample?=%d projection=%s shots=%p",
        cgam_word(cgam_lens_words, t.kind), t.kind != CGAM_LENS_NORM && !t.answers,
        cgam_lm_answer_name(cgam_lm_task_answer(t.task)), o.absolute ? "absolute" : "relative",
        o.in_sample, o.projection, shots);
    cgam_free(t.env, zero);
    cgam_free(t.env, t.P);
    return cgam_lm_result_end(t.result, status, out);
}
