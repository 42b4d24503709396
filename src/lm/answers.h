/* answers.h (inside): the answers of a task as sequences of tokens, compared by the probability of all of
 * them.
 *
 *     log p(answer) = sum_t log softmax(<zeta, x_t>)[a_t],
 *
 * x_t the state after the prompt and the answer's first t tokens. A *beginning* is what comes before one
 * of an answer's tokens; answers that begin alike share it, and beginning 0 is empty. */
#ifndef CGAM_SRC_LM_ANSWERS_H
#define CGAM_SRC_LM_ANSWERS_H

#include "lm/study.h"

#include <cgam/sweep.h>

typedef struct cgam_answers {
    cgam_env *env;
    cgam_lm *lm;
    cgam_lm_answer how;
    int64_t labels, longest; /* tokens of the longest */
    cgam_lm_tokens *word;    /* [labels]; of distinct answers as many tokens as tell them apart */
    int32_t *tokens,
        *at; /* [labels, longest] each token, -1 behind the last; the beginning before it */
    int32_t *first, *heads; /* [labels] the first token; the same, -1 where an earlier one has it */
    int32_t *target;        /* [queries] label of each query */
    int64_t queries, beginnings;
    struct {
        int64_t label, count; /* the first tokens of this label, so many */
    } * beginning;            /* [beginnings] */
} cgam_answers;

/* Are answers compared by the log-probability of several tokens? */
static inline bool cgam_lm_answer_whole(cgam_lm_answer how)
{
    return how == CGAM_ANSWER_SEQUENCE || how == CGAM_ANSWER_DISTINCT;
}
/* How a labelled task compares them. */
static inline cgam_lm_answer cgam_lm_task_answer(const cgam_lm_task *task)
{
    return task->answers ? task->answers->how : CGAM_ANSWER_FIRST;
}

/* Opens the answers of a task; close them with cgam_answers_close, which copes with half-open. Two
 * labels with the same tokens, or one without any, are refused. */
CGAM_NODISCARD cgam_status cgam_answers_open(const cgam_lm_study *study, const cgam_lm_task *task,
                                             cgam_lm_answer how, cgam_answers *out);
void cgam_answers_close(cgam_answers *answers);

/* States of every query with k demonstrations, [queries, L + 1, d], and behind them, at *after, those
 * after each beginning but the empty one, [queries, beginnings - 1, L + 1, d]. answers NULL: first tokens are
 * compared, *after is NULL. Gives *out; cgam_free. */
CGAM_NODISCARD cgam_status cgam_answers_states(const cgam_answers *answers, cgam_lm_study *study,
                                               const cgam_lm_task *task, int64_t k,
                                               cgam_demos demos, float **out, const float **after);

/* What the states of a query make of its answers. */
typedef struct cgam_whole {
    int32_t label; /* the most probable; ties go to the lowest */
    int32_t top;   /* the most probable first token of all */
    bool greedy;   /* each token of the right answer is the most probable of all in its place */
    double log_p;  /* of the right answer */
    double mass;   /* of all answers */
} cgam_whole;

/* out [queries] from the state of query i, x + i stride, and that after beginning b > 0,
 * after + (i (beginnings - 1) + b - 1) after_stride. log_p [queries, labels] of each answer, or NULL. x NULL: all
 * is said of what comes after each answer's first token, top excepted. */
CGAM_NODISCARD cgam_status cgam_answers_read(const cgam_answers *answers, const cgam_lens *lens,
                                             cgam_lens_kind kind, const float *x, int64_t stride,
                                             const float *after, int64_t after_stride,
                                             double *log_p, cgam_whole *out);

/* As a sweep takes them; borrowed. */
cgam_sweep_answers cgam_answers_sweep(const cgam_answers *answers, const float *after);

#endif
