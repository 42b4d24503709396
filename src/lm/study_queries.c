/* study_queries.c: the sweep's answers, query by query: the model's own without and with
 * demonstrations, and those of the held-out retrieval. */
#include "lm/scores.h"
#include "lm/study_sweep.h"

#include <math.h>

enum { WAYS = 3 }; /* zero-shot, with demonstrations, retrieval */

typedef struct answered {
    int32_t *label[WAYS], *token[WAYS]; /* [n] the best label, the best token of all */
    double *log_p[WAYS];                /* [n] of the right answer's token */
} answered;

/* ---- Reading states -------------------------------------------------------------------------- */
cgam_trial_states cgam_trial_own(const cgam_trial *t, bool with)
{
    const int64_t last = (t->layers - 1) * t->d;
    const float *after = with ? t->icl_after : t->zero_after;
    return (cgam_trial_states){(with ? t->icl : t->zero) + last, after ? after + last : NULL,
                               t->layers * t->d, NULL};
}

static int64_t each_after(const cgam_trial *t)
{
    return t->answers ? t->answers->beginnings - 1 : 0;
}

void cgam_trial_sums_free(const cgam_trial *t, cgam_trial_states *sums)
{
    cgam_free(t->env, sums->own);
    *sums = (cgam_trial_states){0};
}

cgam_status cgam_trial_sums(const cgam_trial *t, const cgam_sweep_input *in, int64_t context,
                            int64_t query_layer, double lambda, cgam_trial_states *out)
{
    int64_t rows = t->n * (1 + each_after(t));
    float *x = cgam_alloc(t->env, (size_t)(rows * t->d), sizeof *x);
    *out = (cgam_trial_states){x, x ? x + t->n * t->d : NULL, t->d, x};
    if (!x) return cgam_fail_nomem(t->env, "sums");
    cgam_status status = cgam_sweep_sums(t->lens, in, &t->context[context], query_layer, lambda, x);
    if (status == CGAM_OK)
        status = cgam_sweep_sums_after(t->lens, in, &t->context[context], query_layer, lambda,
                                       x + t->n * t->d);
    if (status != CGAM_OK) cgam_trial_sums_free(t, out);
    return status;
}

static cgam_status top_whole(const cgam_trial *t, cgam_lens_kind kind, const cgam_trial_states *of,
                             int32_t *label, int32_t *token, bool *first)
{
    cgam_whole *w = cgam_alloc(t->env, (size_t)t->n, sizeof *w);
    if (!w) return cgam_fail_nomem(t->env, "answers");
    cgam_status status =
        cgam_answers_read(t->answers, t->lens, kind == CGAM_LENS_RAW ? kind : CGAM_LENS_NORM, of->x,
                          of->stride, of->after, of->stride, NULL, w);
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++) {
        label[i] = w[i].label;
        token[i] = w[i].top;
        first[i] = w[i].greedy;
    }
    cgam_free(t->env, w);
    return status;
}

cgam_status cgam_trial_top(const cgam_trial *t, cgam_lens_kind kind, const cgam_trial_states *of,
                           int32_t *label, int32_t *token, bool *first)
{
    int64_t N = cgam_lens_vocab(t->lens);
    const int32_t *tokens = t->task->tokens;
    if (t->answers) return top_whole(t, kind, of, label, token, first);
    float *sheet = cgam_alloc(t->env, (size_t)(t->n * N), sizeof *sheet);
    if (!sheet) return cgam_fail_nomem(t->env, "scores");
    cgam_status status = cgam_lens_scores(t->lens, kind, t->n, of->x, of->stride, sheet);
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++) {
        const float *scores = sheet + i * N;
        int64_t top = cgam_scores_top(scores, N), best = -1;
        for (int64_t k = 0; k < t->labels; k++)
            if (tokens[k] >= 0 && (best < 0 || scores[tokens[k]] > scores[tokens[best]])) best = k;
        label[i] = (int32_t)best;
        token[i] = (int32_t)top;
        first[i] = t->target[i] >= 0 && top == tokens[t->target[i]];
    }
    cgam_free(t->env, sheet);
    return status;
}

static cgam_status log_p_whole(const cgam_trial *t, const cgam_trial_states *of, double *log_p)
{
    cgam_whole *w = cgam_alloc(t->env, (size_t)t->n, sizeof *w);
    if (!w) return cgam_fail_nomem(t->env, "answers");
    cgam_status status = cgam_answers_read(t->answers, t->lens, CGAM_LENS_NORM, of->x, of->stride,
                                           of->after, of->stride, NULL, w);
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++) log_p[i] = w[i].log_p;
    cgam_free(t->env, w);
    return status;
}

cgam_status cgam_trial_log_p(const cgam_trial *t, const cgam_trial_states *of, double *log_p)
{
    const cgam_lm_task *task = t->task;
    for (int64_t i = 0; i < t->n; i++) log_p[i] = (double)NAN;
    if (!cgam_lens_has_norm(t->lens)) return CGAM_OK;
    if (t->answers) return log_p_whole(t, of, log_p);
    int32_t *token = cgam_alloc(t->env, (size_t)t->n, sizeof *token);
    cgam_answer *answer = cgam_zalloc(t->env, (size_t)t->n, sizeof *answer);
    cgam_status status = token && answer ? CGAM_OK : cgam_fail_nomem(t->env, "answers");
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++)
        token[i] = t->target[i] < 0 ? -1 : task->tokens[t->target[i]];
    if (status == CGAM_OK)
        status = cgam_lens_judge(t->lens, CGAM_LENS_NORM, t->n, of->x, of->stride, token, t->labels,
                                 task->tokens, answer);
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++)
        if (token[i] >= 0) log_p[i] = answer[i].log_p;
    cgam_free(t->env, token);
    cgam_free(t->env, answer);
    return status;
}

/* ---- The held-out choice ---------------------------------------------------------------------- */
/* Of every query by what was chosen on the half that it is not of. */
static cgam_status held_out(const cgam_trial *t, const cgam_sweep_input *in, cgam_sweep_over over,
                            int32_t *label, int32_t *token, double *log_p)
{
    cgam_sweep_best best;
    int32_t *tops = cgam_alloc(t->env, (size_t)(2 * t->n), sizeof *tops);
    double *room = cgam_alloc(t->env, (size_t)t->n, sizeof *room);
    bool *first = cgam_alloc(t->env, (size_t)t->n, sizeof *first);
    cgam_status status = tops && room && first
                             ? cgam_sweep_choose(t->sweep, over, 0, t->layers, NULL, &best)
                             : cgam_fail_nomem(t->env, "answers");
    for (int h = 0; h < 2 && status == CGAM_OK; h++) {
        cgam_trial_states x = {0};
        status = cgam_trial_sums(t, in, best.half[h].context, best.half[h].query_layer,
                                 best.half[h].lambda, &x);
        if (status == CGAM_OK) status = cgam_trial_top(t, t->kind, &x, tops, tops + t->n, first);
        if (status == CGAM_OK && log_p) status = cgam_trial_log_p(t, &x, room);
        for (int64_t i = 1 - h; i < t->n && status == CGAM_OK; i += 2) {
            if (label) label[i] = tops[i];
            if (token) token[i] = tops[t->n + i];
            if (log_p) log_p[i] = room[i];
        }
        cgam_trial_sums_free(t, &x);
    }
    void *blocks[] = {tops, room, first};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(t->env, blocks[i]);
    return status;
}

static cgam_status answer_all(const cgam_trial *t, const cgam_sweep_input *in, answered *to)
{
    cgam_lens_kind kind = cgam_lens_linear(t->lens) ? CGAM_LENS_GAIN : CGAM_LENS_NORM;
    bool *first = cgam_alloc(t->env, (size_t)t->n, sizeof *first);
    cgam_status status = first ? CGAM_OK : cgam_fail_nomem(t->env, "answers");
    for (int way = 0; way < 2 && status == CGAM_OK; way++) {
        cgam_trial_states own = cgam_trial_own(t, way == 1);
        status = cgam_trial_top(t, kind, &own, to->label[way], to->token[way], first);
        if (status == CGAM_OK) status = cgam_trial_log_p(t, &own, to->log_p[way]);
    }
    if (status == CGAM_OK) /* each has a choice of its own */
        status = held_out(t, in, CGAM_OVER_LABELS, to->label[2], NULL, NULL);
    if (status == CGAM_OK)
        status = held_out(t, in, CGAM_OVER_VOCABULARY, NULL, to->token[2], to->log_p[2]);
    cgam_free(t->env, first);
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
        bool counts = t->target[i] >= 0;
        double row[20] = {(double)t->k, (double)i, counts, (double)label,
                          (double)(t->answers ? t->answers->first[label] : task->tokens[label])};
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
