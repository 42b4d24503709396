/* study_sweep.h (inside): the sweep of one number of shots. */
#ifndef CGAM_SRC_LM_STUDY_SWEEP_H
#define CGAM_SRC_LM_STUDY_SWEEP_H

#include "lm/study.h"

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
    cgam_lm_result *result;
    cgam_env *env;
    const cgam_lens *lens;
    cgam_lens_kind kind;
    int64_t k, n, layers, d, labels; /* layers: L + 1 */
    const float *zero;               /* [n, layers, d] */
    float *icl;                      /* the same with demonstrations */
    float *vectors;                  /* [contexts, 2, d] */
    cgam_sweep_context *context;
    int64_t contexts;
    cgam_sweep *sweep;
    const char *other_name;
    char other_source[sizeof((cgam_lm_task *)0)->source];    /* what its prompts are called */
    bool *zero_right[2], *icl_right[2], *retrieval_right[2]; /* [n], labels and vocabulary */
    bool *marks;                                             /* [n] of what is being chosen */
    bool silent;                                             /* no step functions into the table */
} cgam_trial;

/* The label and the token of all that score highest, of every query; x [n, stride]. */
CGAM_NODISCARD cgam_status cgam_trial_top(const cgam_trial *t, cgam_lens_kind kind, const float *x,
                                          int64_t stride, int32_t *label, int32_t *token);
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
