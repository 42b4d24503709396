/* study_fit.h (inside): the fit of projections, run in study_fit.c, told of in study_fit_result.c. */
#ifndef CGAM_SRC_LM_STUDY_FIT_H
#define CGAM_SRC_LM_STUDY_FIT_H

#include "lm/fit.h"
#include "lm/study_sweep.h"

/* What P x is taken to be. */
typedef enum cgam_way {
    CGAM_WAY_IDENTITY,
    CGAM_WAY_RIDGE,
    CGAM_WAY_LOWRANK,
    CGAM_WAY_RANDOM,
    CGAM_WAY_MEAN, /* the mean y of its task's queries that were fitted on */
    CGAM_WAY_ZERO, /* nothing */
    CGAM_WAY_ICL,  /* y itself */
    CGAM_WAYS,
    CGAM_WAY_LEFT_OUT = CGAM_WAYS, /* the method's P, fitted on the other tasks */
    CGAM_WAY_TRAIN,                /* the same, on the half that it was fitted on */
    CGAM_WAYS_ALL
} cgam_way;
extern const char *const cgam_way_names[CGAM_WAYS_ALL];

enum { CGAM_FIT_TASKS = 16 };

typedef struct cgam_fitting {
    cgam_lm_study *study;
    const cgam_lm_fit_opts *opts;
    cgam_env *env;
    const cgam_lens *lens;
    cgam_lm_result *result;
    int64_t tasks;
    cgam_lm_task task[CGAM_FIT_TASKS];
    int64_t first[CGAM_FIT_TASKS + 1]; /* query of each task, and their end */
    int64_t n, layers, d, k, layer;
    float *zero, *icl; /* [n, layers, d] */
    float *base, *aim; /* [n, d] their last layers */
    /* the same after each beginning of an answer, [queries, beginnings - 1, d], of tasks whose whole answers
     * are compared */
    float *base_after[CGAM_FIT_TASKS], *aim_after[CGAM_FIT_TASKS];
    double *x, *y;                       /* [n, d] */
    int32_t *target;                     /* [n], -1: does not count */
    int *half;                           /* [n] */
    float *made[CGAM_WAYS_ALL];          /* [n, d] states */
    bool *right[CGAM_WAYS_ALL];          /* [2, n] over the labels and over all words */
    double rho, rho_half[2];             /* of all queries, and fitted on each half */
    double rho_left_out[CGAM_FIT_TASKS]; /* fitted on all tasks but this */
    cgam_fit_refined refined[3];         /* of all queries, and fitted on each half */
    bool lowrank;
    uint64_t key; /* of what is kept */
} cgam_fitting;

/* Shares and R^2 of a way over queries [from, to). */
typedef struct cgam_fit_score {
    cgam_share over[2];
    double r2;
} cgam_fit_score;
cgam_fit_score cgam_fit_score_of(const cgam_fitting *f, int way, int64_t from, int64_t to);

/* A row of the curve, once a layer has been judged. */
enum { CGAM_CURVE_COLUMNS = 3 + 5 * CGAM_WAYS };
extern const char cgam_curve_heads[];
void cgam_fit_curve_row(const cgam_fitting *f, int64_t layer, double *row);
/* Puts everything but the curve. */
cgam_status cgam_fit_put(const cgam_fitting *f, json_t *doc);

#endif
