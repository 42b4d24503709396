/* study_borders.c: how far moving the borders between classes carries without any context. */
#include "lm/study_sweep.h"

#include <math.h>

/* The log-probabilities of whole answers at one layer. */
static cgam_status whole_scores(const cgam_trial *t, int64_t layer, double *scores, int32_t *target)
{
    int64_t stride = t->layers * t->d;
    const float *after = t->zero_after ? t->zero_after + layer * t->d : NULL;
    cgam_whole *room = cgam_alloc(t->env, (size_t)t->n, sizeof *room);
    if (!room) return cgam_fail_nomem(t->env, "answers");
    cgam_status status =
        cgam_answers_read(t->answers, t->lens, t->kind == CGAM_LENS_RAW ? t->kind : CGAM_LENS_NORM,
                          t->zero + layer * t->d, stride, after, stride, scores, room);
    for (int64_t i = 0; i < t->n; i++) target[i] = t->target[i];
    cgam_free(t->env, room);
    return status;
}

/* Zero-shot scores of the labels that can be compared, at one layer; packed [n, used]. */
static cgam_status label_scores(const cgam_trial *t, int64_t layer, double *scores, int32_t *target,
                                int64_t *of)
{
    const cgam_lm_task *task = t->task;
    int64_t used = 0;
    *of = t->labels;
    if (t->answers) return whole_scores(t, layer, scores, target);
    for (int64_t k = 0; k < t->labels; k++) used += task->tokens[k] >= 0;
    for (int64_t i = 0; i < t->n; i++) {
        const float *h = t->zero + (i * t->layers + layer) * t->d;
        int64_t at = 0;
        target[i] = -1;
        for (int64_t k = 0; k < t->labels; k++) {
            if (task->tokens[k] < 0) continue;
            if (k == task->target[i]) target[i] = (int32_t)at;
            scores[i * used + at++] = cgam_lens_dot(t->lens, t->kind, task->tokens[k], h);
        }
    }
    *of = used;
    return CGAM_OK;
}

/* The layer that does best on one half with that half's means, the latest of those that do equally
 * well, counted on the other half with the same means; the verdict on each query into `held`. right
 * [layers, n] is with the means of the other half, own of the query's own. */
static void choose_layer(const cgam_trial *t, const bool *right, const bool *own, bool *held)
{
    for (int half = 0; half < 2; half++) {
        int64_t best = 0, top = -1;
        for (int64_t l = 0; l < t->layers; l++) {
            int64_t hits = 0;
            for (int64_t i = half; i < t->n; i += 2) hits += own[l * t->n + i];
            if (hits < top) continue;
            top = hits;
            best = l;
        }
        for (int64_t i = 1 - half; i < t->n; i += 2) held[i] = right[best * t->n + i];
    }
}

/* right, own [layers, n] as above; held [n] and by_layer [layers] are room. */
static json_t *centred_json(const cgam_trial *t, const bool *right, const bool *own, bool *held,
                            double *by_layer)
{
    json_t *o = json_object();
    const bool *last = right + (t->layers - 1) * t->n;
    for (int64_t l = 0; l < t->layers; l++)
        by_layer[l] = cgam_trial_share(t, right + l * t->n).mean;
    choose_layer(t, right, own, held);
    cgam_share at_last = cgam_trial_share(t, last), best = cgam_trial_share(t, held);
    cgam_json_put_real(o, "accuracy", at_last.mean);
    cgam_json_put_real(o, "accuracy_se", at_last.se);
    cgam_json_put_real(o, "held_out", best.mean);
    cgam_json_put_real(o, "held_out_se", best.se);
    cgam_json_put(o, "by_layer", cgam_json_reals(by_layer, t->layers, 1));
    cgam_trial_put_right(t, o, "right", last);
    cgam_trial_put_right(t, o, "held_out_right", held);
    return o;
}

static json_t *threshold_json(const cgam_trial *t, const double *bound, const double *auc)
{
    json_t *o = json_object();
    double top = 0;
    for (int64_t l = 0; l < t->layers; l++) top = fmax(top, bound[l]);
    cgam_json_put_real(o, "accuracy", bound[t->layers - 1]);
    cgam_json_put_real(o, "auc", auc[t->layers - 1]);
    cgam_json_put_real(o, "bound", top);
    cgam_json_put(o, "by_layer", cgam_json_reals(bound, t->layers, 1));
    cgam_json_put(o, "auc_by_layer", cgam_json_reals(auc, t->layers, 1));
    return o;
}

cgam_status cgam_trial_put_borders(const cgam_trial *t, json_t *baselines)
{
    cgam_env *env = t->env;
    double *scores = cgam_alloc(env, (size_t)(t->n * t->labels), sizeof *scores);
    double *gap = cgam_alloc(env, (size_t)t->n, sizeof *gap);
    int32_t *target = cgam_alloc(env, (size_t)t->n, sizeof *target);
    bool *right = cgam_zalloc(env, (size_t)((2 * t->layers + 1) * t->n), sizeof *right);
    bool *own = right ? right + t->layers * t->n : NULL;
    double *column = cgam_alloc(env, 3 * (size_t)t->layers, sizeof *column);
    double *bound = column, *auc = column ? column + t->layers : NULL;
    cgam_status status = CGAM_OK;
    int64_t used = 0;
    if (!scores || !gap || !target || !right || !column) status = cgam_fail_nomem(env, "baselines");
    for (int64_t l = 0; l < t->layers && status == CGAM_OK; l++) {
        status = label_scores(t, l, scores, target, &used);
        if (status == CGAM_OK)
            status =
                cgam_baseline_centred(env, t->n, used, scores, target, false, right + l * t->n);
        if (status == CGAM_OK)
            status = cgam_baseline_centred(env, t->n, used, scores, target, true, own + l * t->n);
        if (status != CGAM_OK || used != 2) continue;
        for (int64_t i = 0; i < t->n; i++) gap[i] = scores[2 * i + 1] - scores[2 * i];
        auc[l] = cgam_baseline_auc(t->n, gap, target);
        status = cgam_baseline_threshold(env, t->n, gap, target, !t->opts->in_sample, &bound[l]);
    }
    if (status == CGAM_OK) {
        cgam_json_put(baselines, "centred",
                      centred_json(t, right, own, own + t->layers * t->n, column + 2 * t->layers));
        cgam_json_put(baselines, "threshold",
                      used == 2 ? threshold_json(t, bound, auc) : json_null());
    }
    void *blocks[] = {scores, gap, target, right, column};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(env, blocks[i]);
    return status;
}
