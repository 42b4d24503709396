/* study_sweep.h (inside): the sweep of one number of shots. */
#ifndef CGAM_SRC_LM_STUDY_SWEEP_H
#define CGAM_SRC_LM_STUDY_SWEEP_H

#include "lm/answers.h"

#include <cgam/baseline.h>
#include <cgam/sweep.h>

enum {
    CGAM_SWEEP_CELLS,
    CGAM_SWEEP_STEPS,
    CGAM_SWEEP_READINGS,
    CGAM_SWEEP_QUERIES,
    CGAM_SWEEP_INTERVALS /* where asked for */
};                       /* its tables */

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
    float *vectors; /* [contexts, 2, d] */
    cgam_sweep_context *context;
    int64_t contexts;
    cgam_sweep *sweep;
    const char *other_name;
    char other_source[sizeof((cgam_lm_task *)0)->source];    /* what its prompts are called */
    bool *zero_right[2], *icl_right[2], *retrieval_right[2]; /* [n], labels and vocabulary */
    bool *marks;                                             /* [n] of what is being chosen */
    bool silent;                                             /* no step functions into the table */
} cgam_trial;

/* States of every query, and after every beginning of an answer but the empty one. */
typedef struct cgam_trial_states {
    const float *x, *after; /* [n, stride], [n, beginnings - 1, stride] */
    int64_t stride;
    float *own; /* where they were made for this; NULL: borrowed */
} cgam_trial_states;
/* The model's own: of its last layer, without or with demonstrations. */
cgam_trial_states cgam_trial_own(const cgam_trial *t, bool with);
/* q + lambda s c of the queries, and after the beginnings of answers. Gives both; cgam_trial_sums_free. */
CGAM_NODISCARD cgam_status cgam_trial_sums(const cgam_trial *t, const cgam_sweep_input *in,
                                           int64_t context, int64_t query_layer, double lambda,
                                           cgam_trial_states *out);
void cgam_trial_sums_free(const cgam_trial *t, cgam_trial_states *sums);

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

/* Which queries the state at the last layer gets right, without or with demonstrations, over the labels
 * and over all words, whatever the lens of the sweep: the model's own answer, which GAIN gives too if
 * nothing follows the norm. */
CGAM_NODISCARD cgam_status cgam_trial_answers(const cgam_trial *t, bool with, bool *const right[2]);
/* Puts one character for each query that counts: 1 right, 0 wrong. With these, any two answers can
 * be compared query by query. */
void cgam_trial_put_right(const cgam_trial *t, json_t *to, const char *name, const bool *right);
/* How many are right of those that count, with its error. */
cgam_share cgam_trial_share(const cgam_trial *t, const bool *right);

/* The table per_query: a row for each query of this number of shots. */
extern const char cgam_trial_query_heads[];
cgam_status cgam_trial_write_queries(const cgam_trial *t, const cgam_sweep_input *in);

/* Puts what label scores do without a context: centred, and for two labels under the best border. */
cgam_status cgam_trial_put_borders(const cgam_trial *t, json_t *baselines);

#endif
