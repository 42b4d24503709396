/* fit.h: a projection P that carries contexts from one layer of a language model to its readout.
 *
 * Pairs (x, y) of vectors of the model's width give P by ridge regression, the penalty by leave-one-out;
 * P = I + U'V of low rank starts from there and approaches the model's own distribution of answers. The
 * mathematics is in docs/theorems/projection.md. cgam_lm_fit evaluates P: it fits on captured states, and
 * counts on queries and tasks that were not used for the fit. */
#ifndef CGAM_SRC_LAB_LANGUAGE_FIT_H
#define CGAM_SRC_LAB_LANGUAGE_FIT_H

#include "lab/language/study_sweep.h"

/* ---- Ridge -------------------------------------------------------------------------------- */
/* P = argmin sum_i |P x_i - y_i|^2 + rho |P - T|^2 with T = I or 0, by the n x n system of the pairs. */
typedef struct cgam_ridge cgam_ridge;

typedef struct cgam_ridge_opts {
    bool to_zero; /* T = 0; default false: T = I */
    double rho;   /* default 0 = the value with the least leave-one-out error */
} cgam_ridge_opts;
cgam_ridge_opts cgam_ridge_opts_default(void);

/* Copies x and y [n, d]. Free *out with cgam_ridge_free. Fails with CGAM_E_ARG if n < 2 without a rho,
 * CGAM_E_VALUE if a number is not finite. opts NULL = defaults. */
CGAM_NODISCARD cgam_status cgam_ridge_new(cgam_env *env, int64_t n, int64_t d, const double *x,
                                          const double *y, const cgam_ridge_opts *opts,
                                          cgam_ridge **out);
void cgam_ridge_free(cgam_ridge *ridge); /* NULL is fine */
double cgam_ridge_rho(const cgam_ridge *ridge);
/* The mean over pairs of |P x - y|^2, P fitted without that pair; rho > 0. */
CGAM_NODISCARD cgam_status cgam_ridge_left_out(const cgam_ridge *ridge, double rho, double *out);
/* out [m, d] = P x for x [m, d], without forming P. */
CGAM_NODISCARD cgam_status cgam_ridge_apply(const cgam_ridge *ridge, int64_t m, const double *x,
                                            double *out);
CGAM_NODISCARD cgam_status cgam_ridge_matrix(const cgam_ridge *ridge, double *P /* [d, d] */);
/* The I + U'V of this rank that is nearest to P on the pairs: U and V [rank, d], rows of U orthogonal,
 * |U_k| = |V_k|; rows beyond the span of the pairs are zero. */
CGAM_NODISCARD cgam_status cgam_ridge_truncate(const cgam_ridge *ridge, int64_t rank, double *U,
                                               double *V);

/* ---- Low rank ----------------------------------------------------------------------------- */
/* n queries: the states that x is added to, and the states whose distributions over all words are the target. */
typedef struct cgam_fit_aim {
    int64_t n;
    const float *base; /* [n, d] */
    const float *aim;  /* [n, d] */
    const double *x;   /* [n, d] */
} cgam_fit_aim;

/* The mean over queries of KL(p(aim) || p(base + x + U'V x)), in nats, and its derivatives [rank, d] unless
 * NULL. Products with the unembedding are in f32. CGAM_E_UNSUPPORTED for a lens without NORM. */
CGAM_NODISCARD cgam_status cgam_fit_divergence(const cgam_lens *lens, const cgam_fit_aim *aim,
                                               int64_t rank, const double *U, const double *V,
                                               double *kl, double *dU, double *dV);

typedef struct cgam_fit_refined {
    double before, after; /* the mean divergence */
    int64_t iterations;
    int64_t evaluations;
} cgam_fit_refined;
/* Reduces the divergence, starting from U and V, by at most that many iterations of L-BFGS (liblbfgs). */
CGAM_NODISCARD cgam_status cgam_fit_refine(const cgam_lens *lens, const cgam_fit_aim *aim,
                                           int64_t rank, int64_t iterations, double *U, double *V,
                                           cgam_fit_refined *out);

/* Rotates x [m, d] in place by a random orthogonal matrix Q from the seed, or by Q' (back): Q P Q' is a
 * random projection with the eigenvalues and singular values of P. */
CGAM_NODISCARD cgam_status cgam_fit_turn(cgam_env *env, uint64_t seed, bool back, int64_t m,
                                         int64_t d, double *x);

/* ---- Files -------------------------------------------------------------------------------- */
/* A projection of width x width numbers from FILE or FILE:MEMBER. Free *out with cgam_free.
 * Fails with CGAM_E_SHAPE for another shape, CGAM_E_VALUE if a number is not finite. */
CGAM_NODISCARD cgam_status cgam_projection_read(cgam_env *env, const char *path, int64_t width,
                                                double **out);
/* x [m, d] <- P x. */
CGAM_NODISCARD cgam_status cgam_projection_apply(cgam_env *env, const double *P, int64_t d,
                                                 int64_t m, float *x);

/* ---- The experiment ----------------------------------------------------------------------- */
typedef enum cgam_fit_method { CGAM_FIT_RIDGE, CGAM_FIT_LOWRANK } cgam_fit_method;
const char *cgam_fit_method_name(cgam_fit_method value); /* "ridge", "lowrank" */
bool cgam_fit_method_find(const char *name, cgam_fit_method *out);

/* Fits P to the states of a study, at its largest number of demonstrations. y is what they add to the last
 * layer's state of a query; x is what they add after an earlier layer, or the state without them there. P is
 * judged by the answers of h + P x, where h is the last layer's state without demonstrations, on queries of the
 * half (i % 2) that was not used for the fit, and, with several tasks, on a task that was not used. It is compared
 * with P = I, a random P of equal spectrum, the mean y of the task, no context and demonstrations in the prompt. */
typedef struct cgam_lm_fit_opts {
    bool from_query;        /* x is the state without demonstrations; default false: the context */
    int64_t layer;          /* of x, 0 .. L; default -1 = the middle one */
    cgam_fit_method method; /* default RIDGE */
    int64_t rank;           /* of P - I, for LOWRANK; default 8 */
    int64_t iterations;     /* of its optimiser, at most; default 20 */
    bool no_curve;          /* default false: the halves at every layer too */
    const char *save;       /* file for P fitted on all queries; default NULL = none */
    const cgam_lm_study_opts *more; /* [more_count] further tasks; only the options that name data
                                       are read */
    int64_t more_count;             /* default 0 */
} cgam_lm_fit_opts;
cgam_lm_fit_opts cgam_lm_fit_opts_default(void);
/* Free *out with cgam_lm_result_free. opts NULL = defaults. */
CGAM_NODISCARD cgam_status cgam_lm_fit(cgam_lm_study *study, const cgam_lm_fit_opts *opts,
                                       cgam_lm_result **out);

/* ---- Products -------------------------------------------------------------------------------- */
/* C [m, n] = A B (+ C if add), rows shared among the env's threads. turned_a: A is [k, m] and
 * transposed, else [m, k]; turned_b: B is [n, k] and transposed, else [k, n]. */
typedef struct cgam_product {
    int64_t m, n, k;
    const double *A, *B;
    double *C;
    bool turned_a, turned_b, add;
} cgam_product;
CGAM_NODISCARD cgam_status cgam_product_run(cgam_env *env, const cgam_product *p);

/* ---- The running experiment ------------------------------------------------------------------ */
/* The fit of projections, run in study_fit.c, reported in study_fit_result.c. */

/* What is used as P x. */
typedef enum cgam_way {
    CGAM_WAY_IDENTITY,
    CGAM_WAY_RIDGE,
    CGAM_WAY_LOWRANK,
    CGAM_WAY_RANDOM,
    CGAM_WAY_MEAN, /* the mean y over its task's queries used for the fit */
    CGAM_WAY_ZERO, /* nothing */
    CGAM_WAY_ICL,  /* y itself */
    CGAM_WAYS,
    CGAM_WAY_LEFT_OUT = CGAM_WAYS, /* the method's P, fitted on the other tasks */
    CGAM_WAY_TRAIN,                /* the same, on the half used for the fit */
    CGAM_WAYS_ALL
} cgam_way;

enum { CGAM_FIT_TASKS = 16 };

typedef struct cgam_fitting {
    cgam_lm_study *study;
    const cgam_lm_fit_opts *opts;
    cgam_env *env;
    const cgam_lens *lens;
    cgam_lm_result *result;
    int64_t tasks;
    cgam_lm_task task[CGAM_FIT_TASKS];
    int64_t first[CGAM_FIT_TASKS + 1]; /* first query of each task, and the end */
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
    double rho_left_out[CGAM_FIT_TASKS]; /* fitted on all other tasks */
    cgam_fit_refined refined[3];         /* of all queries, and fitted on each half */
    bool lowrank;
    uint64_t key; /* hash of all that the kept results depend on */
} cgam_fitting;

/* Shares and R^2 of a way over queries [from, to). */
typedef struct cgam_fit_score {
    cgam_share over[2];
    double r2;
} cgam_fit_score;

/* A row of the curve, once a layer has been judged. */
enum { CGAM_CURVE_COLUMNS = 3 + 5 * CGAM_WAYS };
extern const char cgam_curve_heads[];
void cgam_fit_curve_row(const cgam_fitting *f, int64_t layer, double *row);
/* Puts all results except the curve. */
cgam_status cgam_fit_put(const cgam_fitting *f, json_t *doc);

#endif
