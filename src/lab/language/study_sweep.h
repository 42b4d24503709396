/* study_sweep.h: the sweep of one number of shots. */
#ifndef CGAM_SRC_LAB_LANGUAGE_STUDY_SWEEP_H
#define CGAM_SRC_LAB_LANGUAGE_STUDY_SWEEP_H

#include "lab/language/study.h"

/* ---- Answers --------------------------------------------------------------------------------- */
/* The answers of a task as sequences of tokens, compared by the probability of all of
 * them.
 *
 *     log p(answer) = sum_t log softmax(<zeta, x_t>)[a_t],
 *
 * x_t the state after the prompt and the answer's first t tokens. A *beginning* is what comes before one
 * of an answer's tokens; answers that begin alike share it, and beginning 0 is empty. */

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
 * labels with the same tokens, or one without any, are rejected. */
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

/* ---- The sweep of one number of shots -------------------------------------------------------- */
enum {
    CGAM_SWEEP_CELLS,
    CGAM_SWEEP_STEPS,
    CGAM_SWEEP_READINGS,
    CGAM_SWEEP_QUERIES,
    CGAM_SWEEP_INTERVALS /* where asked for */
};                       /* its tables */

/* Without demonstrations, with them, and retrieved. */
enum { CGAM_TRIAL_ZERO, CGAM_TRIAL_ICL, CGAM_TRIAL_RETRIEVAL, CGAM_TRIAL_WAYS };

typedef struct cgam_trial {
    cgam_lm_study *study;
    const cgam_lm_task *task;
    const cgam_lm_sweep_opts *opts;
    double *P; /* [d, d]; NULL: I */
    cgam_lm_result *result;
    cgam_env *env;
    const cgam_lens *lens;
    cgam_lens_kind kind;
    int64_t k, n, layers, d, labels; /* layers: L + 1 */
    const cgam_answers *answers;     /* NULL: first tokens are compared */
    const int32_t *target;           /* [n] labels; -1: left out */
    int64_t counted;
    const float *zero, *zero_after; /* [n, layers, d]; [n, beginnings - 1, layers, d] */
    float *icl;                     /* the same with demonstrations */
    const float *icl_after;
    float *context; /* [contexts, 2, d] */
    int64_t contexts;
    cgam_sweep_answers whole; /* what cgam_trial_input points to */
    cgam_sweep *sweep;
    const char *other_name;
    char other_source[sizeof((cgam_lm_task *)0)->source]; /* what its prompts are called */
    bool *right[CGAM_TRIAL_WAYS][2];                      /* [n], labels and vocabulary */
    bool *marks;                                          /* [n] of what is being chosen */
    bool silent;                                          /* no step functions into the table */
} cgam_trial;

/* A trial of a task, labelled or not, on the model's own scores: what is known without states. */
cgam_trial cgam_trial_of(cgam_lm_study *study, const cgam_lm_task *task, const cgam_lens *lens);
/* Of the study's own task, which is labelled; lens and kind are those that keep lambda exact, or NORM. */
CGAM_NODISCARD cgam_status cgam_trial_begin(cgam_lm_study *study, cgam_trial *out);
/* What a sweep of its states without demonstrations takes. */
cgam_sweep_input cgam_trial_input(cgam_trial *t, bool relative, bool in_sample);

/* States of every query, and after every beginning of an answer but the empty one. */
typedef struct cgam_trial_states {
    const float *x, *after; /* [n, stride], [n, beginnings - 1, stride] */
    int64_t stride;
    float *own; /* where they were made for this; NULL: borrowed */
} cgam_trial_states;
/* The model's own: of its last layer, without or with demonstrations. */
cgam_trial_states cgam_trial_own(const cgam_trial *t, bool with);
/* q + lambda s c of the queries, and after the beginnings of answers. Gives out->own, also after a failure;
 * cgam_free. */
CGAM_NODISCARD cgam_status cgam_trial_sums(const cgam_trial *t, const cgam_sweep_input *in,
                                           int64_t context, int64_t query_layer, double lambda,
                                           cgam_trial_states *out);

/* The label and the token of all that score highest, of every query, and whether the right answer is
 * the first of all words. */
CGAM_NODISCARD cgam_status cgam_trial_top(const cgam_trial *t, cgam_lens_kind kind,
                                          const cgam_trial_states *of, int32_t *label,
                                          int32_t *token, bool *first);
/* log_p [n] of the right answer by the norm lens; NAN where there is none. */
CGAM_NODISCARD cgam_status cgam_trial_log_p(const cgam_trial *t, const cgam_trial_states *of,
                                            double *log_p);
/* Couplings at which step functions are read, and all there are on a grid. */
enum { CGAM_SWEEP_LAMBDAS = 10 };
extern const double cgam_sweep_lambdas[CGAM_SWEEP_LAMBDAS];

/* Which queries states of the last layer get right, over the labels and over all words, whatever the lens of
 * the sweep: the model's own answer, which GAIN gives too if nothing follows the norm. */
CGAM_NODISCARD cgam_status cgam_trial_answers(const cgam_trial *t, const cgam_trial_states *of,
                                              bool *const right[2]);
/* Puts one character for each query that counts: 1 right, 0 wrong. With these, any two answers can
 * be compared query by query. */
void cgam_trial_put_right(const cgam_trial *t, json_t *to, const char *name, const bool *right);
/* How many are right of those that count, with its error. */
cgam_share cgam_trial_share(const cgam_trial *t, const bool *right);

/* The table per_query: a row for each query of this number of shots. */
extern const char cgam_trial_query_heads[];
cgam_status cgam_trial_write_queries(const cgam_trial *t, const cgam_sweep_input *in);

/* Puts what label scores do without a context: centred, and for two labels under the best border. Centred
 * are the scores that a context is added to, and, as centred_norm, those after the final norm, from which zero-shot
 * answers are read: a longer state counts more in the mean of the first, and as much in that of the second. */
cgam_status cgam_trial_put_borders(const cgam_trial *t, json_t *baselines);

#endif
