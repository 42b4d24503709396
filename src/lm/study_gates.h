/* study_gates.h (inside): gates over a vocabulary, run in study_gates.c, told of in gates_result.c. */
#ifndef CGAM_SRC_LM_STUDY_GATES_H
#define CGAM_SRC_LM_STUDY_GATES_H

#include "lm/study_sweep.h"
#include "lm/sweep.h"

#include <cgam/gates.h>

/* What it costs, as states that are read (study_plan.c): alpha_crit and the spectrum, in units of d; a
 * coupled query at one alpha. */
enum { GATES_WORK_SPECTRUM = 6, GATES_WORK_COUPLED = 40 };

/* One number of shots. */
typedef struct gated {
    int64_t k;
    struct {
        int64_t context, query;
    } layer[2];          /* chosen on each half, for the other */
    double *room;        /* holds the next three */
    double *q[2], *c[2]; /* [n, d], [d] */
    double *factor[2];   /* [n] */
    cgam_gates_input in;
    cgam_gates_asked *asked;
    cgam_gates_answer *answers; /* [3, n] mode first at alpha = 0, at the present alpha, coupled */
    bool *right; /* [6, n] over labels and over words: zero-shot, with demonstrations,
                                   and of the row in hand */
    json_t *grid;
} gated;

typedef struct gating {
    cgam_lm_study *study;
    const cgam_lm_gates_opts *opts;
    cgam_env *env;
    cgam_trial trial; /* for what the sweep knows of answers */
    cgam_lm_result *result;
    const cgam_lens *lens;
    int64_t n, layers, d;
    float *zero; /* [n, layers, d], and where whole answers are compared */
    double *
        after; /* [n, labels] log-probability of what comes after their first tokens, without demonstrations; */
    bool *goes_on;         /* [n] of the right one, first of all there? */
    const int32_t *tokens; /* [labels] first tokens */
    cgam_bank *raw, *unit;
    const cgam_bank *bank; /* one of them */
    cgam_gates *gates;
    int64_t alphas, count; /* count: of numbers of shots */
    double alpha[CGAM_GATES_GRID + 1];
    gated shot[CGAM_SHOTS_ROOM];
    cgam_gates_seconds seconds;
} gating;

/* The tables. */
void cgam_gates_begin(gating *g);
/* The rows of one alpha and number of shots. */
void cgam_gates_put(gating *g, gated *s, double alpha, const cgam_gates_answers *out);
/* The document. */
void cgam_gates_finish(gating *g);

#endif
