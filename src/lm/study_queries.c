/* study_queries.c: the sweep's answers, query by query: the model's own without and with
 * demonstrations, and those of the held-out retrieval. */
#include "lm/study_sweep.h"

#include <math.h>

enum { WAYS = 3 }; /* zero-shot, with demonstrations, retrieval */

typedef struct answered {
    int32_t *label[WAYS], *token[WAYS]; /* [n] the best label, the best token of all */
    double *log_p[WAYS];                /* [n] of the right answer's token */
} answered;

cgam_status cgam_trial_top(const cgam_trial *t, cgam_lens_kind kind, const float *x, int64_t stride,
                           int32_t *label, int32_t *token)
{
    int64_t N = cgam_lens_vocab(t->lens);
    const int32_t *tokens = t->task->tokens;
    float *sheet = cgam_alloc(t->env, (size_t)(t->n * N), sizeof *sheet);
    if (!sheet) return cgam_fail_nomem(t->env, "scores");
    cgam_status status = cgam_lens_scores(t->lens, kind, t->n, x, stride, sheet);
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++) {
        const float *scores = sheet + i * N;
        int64_t top = 0, best = -1;
        for (int64_t m = 1; m < N; m++)
            if (scores[m] > scores[top]) top = m;
        for (int64_t k = 0; k < t->labels; k++)
            if (tokens[k] >= 0 && (best < 0 || scores[tokens[k]] > scores[tokens[best]])) best = k;
        label[i] = (int32_t)best;
        token[i] = (int32_t)top;
    }
    cgam_free(t->env, sheet);
    return status;
}

static cgam_status probabilities(const cgam_trial *t, const float *x, int64_t stride, double *log_p)
{
    const cgam_lm_task *task = t->task;
    int32_t *token = cgam_alloc(t->env, (size_t)t->n, sizeof *token);
    cgam_answer *answer = cgam_zalloc(t->env, (size_t)t->n, sizeof *answer);
    cgam_status status = token && answer ? CGAM_OK : cgam_fail_nomem(t->env, "answers");
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++)
        token[i] = task->target[i] < 0 ? -1 : task->tokens[task->target[i]];
    if (status == CGAM_OK && cgam_lens_has_norm(t->lens))
        status = cgam_lens_judge(t->lens, CGAM_LENS_NORM, t->n, x, stride, token, t->labels,
                                 task->tokens, answer);
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++)
        log_p[i] = token[i] >= 0 && cgam_lens_has_norm(t->lens) ? answer[i].log_p : (double)NAN;
    cgam_free(t->env, token);
    cgam_free(t->env, answer);
    return status;
}

/* q + lambda s c of every query, by what was chosen on the half that it is not of; x [n, d]. */
static cgam_status held_out_sums(const cgam_trial *t, const cgam_sweep_input *in,
                                 cgam_sweep_over over, float *x)
{
    cgam_sweep_best best;
    float *all = cgam_alloc(t->env, (size_t)(t->n * t->d), sizeof *all);
    cgam_status status = all ? cgam_sweep_choose(t->sweep, over, 0, t->layers, NULL, &best)
                             : cgam_fail_nomem(t->env, "sums");
    for (int h = 0; h < 2 && status == CGAM_OK; h++) {
        status = cgam_sweep_sums(t->lens, in, &t->context[best.half[h].context],
                                 best.half[h].query_layer, best.half[h].lambda, all);
        for (int64_t i = 1 - h; i < t->n && status == CGAM_OK; i += 2)
            for (int64_t j = 0; j < t->d; j++) x[i * t->d + j] = all[i * t->d + j];
    }
    cgam_free(t->env, all);
    return status;
}

static cgam_status answer_all(const cgam_trial *t, const cgam_sweep_input *in, answered *to)
{
    const int64_t last = (t->layers - 1) * t->d, stride = t->layers * t->d;
    const float *own[] = {t->zero, t->icl};
    cgam_lens_kind kind = cgam_lens_linear(t->lens) ? CGAM_LENS_GAIN : CGAM_LENS_NORM;
    float *x = cgam_alloc(t->env, (size_t)(t->n * t->d), sizeof *x);
    int32_t *unused = cgam_alloc(t->env, (size_t)t->n, sizeof *unused);
    cgam_status status = x && unused ? CGAM_OK : cgam_fail_nomem(t->env, "answers");
    for (int way = 0; way < 2 && status == CGAM_OK; way++) {
        status = cgam_trial_top(t, kind, own[way] + last, stride, to->label[way], to->token[way]);
        if (status == CGAM_OK) status = probabilities(t, own[way] + last, stride, to->log_p[way]);
    }
    for (int over = 0; over < 2 && status == CGAM_OK; over++) { /* each has a choice of its own */
        status = held_out_sums(t, in, (cgam_sweep_over)over, x);
        if (status == CGAM_OK)
            status = cgam_trial_top(t, t->kind, x, t->d, over ? unused : to->label[2],
                                    over ? to->token[2] : unused);
        if (status == CGAM_OK && over) status = probabilities(t, x, t->d, to->log_p[2]);
    }
    cgam_free(t->env, x);
    cgam_free(t->env, unused);
    return status;
}

const char cgam_trial_query_heads[] =
    "label,shots,query,counts,label_number,label_token,zero_label,zero_token,icl_label,icl_token,"
    "retrieval_label,retrieval_token,zero_right,icl_right,retrieval_right,zero_right_full,"
    "icl_right_full,retrieval_right_full,zero_log_p,icl_log_p,retrieval_log_p";

cgam_status cgam_trial_write_queries(const cgam_trial *t, const cgam_sweep_input *in)
{
    const cgam_lm_task *task = t->task;
    size_t n = (size_t)t->n;
    int32_t *tops = cgam_zalloc(t->env, 2 * WAYS * n, sizeof *tops);
    double *log_p = cgam_alloc(t->env, WAYS * n, sizeof *log_p);
    cgam_status status = tops && log_p ? CGAM_OK : cgam_fail_nomem(t->env, "answers");
    answered a = {0};
    for (int way = 0; way < WAYS && status == CGAM_OK; way++) {
        a.label[way] = tops + (size_t)(2 * way) * n;
        a.token[way] = tops + (size_t)(2 * way + 1) * n;
        a.log_p[way] = log_p + (size_t)way * n;
    }
    if (status == CGAM_OK) status = answer_all(t, in, &a);
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++) {
        int64_t label = cgam_prompts_label(task->prompts, i);
        bool counts = task->target[i] >= 0;
        double row[20] = {(double)t->k, (double)i, counts, (double)label,
                          (double)task->tokens[label]};
        for (int way = 0; way < WAYS; way++) {
            bool *const *right = way == 0   ? t->zero_right
                                 : way == 1 ? t->icl_right
                                            : t->retrieval_right;
            row[5 + 2 * way] = a.label[way][i];
            row[6 + 2 * way] = a.token[way][i];
            row[11 + way] = counts ? right[0][i] : (double)NAN;
            row[14 + way] = counts ? right[1][i] : (double)NAN;
            row[17 + way] = a.log_p[way][i];
        }
        cgam_lm_result_named(t->result, CGAM_SWEEP_QUERIES, cgam_dataset_word(task->eval, label),
                             row);
    }
    cgam_free(t->env, tops);
    cgam_free(t->env, log_p);
    return status;
}
