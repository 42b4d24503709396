/* fit.h: a projection P that carries contexts from one layer of a language model to its readout.
 *
 * Pairs (x, y) of vectors of the model's width give P by ridge regression, the penalty by leave-one-out;
 * P = I + U'V of low rank goes on from there towards the model's own distribution of answers. The
 * mathematics is in docs/theorems/projection.md. What P is good for is cgam_lm_fit's to say: it fits on
 * captured states and counts on queries, and on tasks, that P has not seen. */
#ifndef CGAM_FIT_H
#define CGAM_FIT_H

#include <cgam/lens.h>
#include <cgam/lm_study.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Ridge -------------------------------------------------------------------------------- */
/* P = argmin sum_i |P x_i - y_i|^2 + rho |P - T|^2 with T = I or 0, by the n x n system of the pairs. */
typedef struct cgam_ridge cgam_ridge;

typedef struct cgam_ridge_opts {
    bool to_zero; /* T = 0; default false: T = I */
    double rho;   /* default 0 = the one with the least leave-one-out error */
} cgam_ridge_opts;
CGAM_API cgam_ridge_opts cgam_ridge_opts_default(void);

/* x and y [n, d], copied. Gives *out; free it with cgam_ridge_free. CGAM_E_ARG for n < 2 without a rho,
 * CGAM_E_VALUE for a number that is not finite. opts NULL = defaults. */
CGAM_API CGAM_NODISCARD cgam_status cgam_ridge_new(cgam_env *env, int64_t n, int64_t d,
                                                   const double *x, const double *y,
                                                   const cgam_ridge_opts *opts, cgam_ridge **out);
CGAM_API void cgam_ridge_free(cgam_ridge *ridge); /* NULL is fine */
CGAM_API double cgam_ridge_rho(const cgam_ridge *ridge);
/* The mean over pairs of |P x - y|^2, P fitted without that pair; rho > 0. */
CGAM_API CGAM_NODISCARD cgam_status cgam_ridge_left_out(const cgam_ridge *ridge, double rho,
                                                        double *out);
/* out [m, d] = P x for x [m, d]; P itself is not made. */
CGAM_API CGAM_NODISCARD cgam_status cgam_ridge_apply(const cgam_ridge *ridge, int64_t m,
                                                     const double *x, double *out);
CGAM_API CGAM_NODISCARD cgam_status cgam_ridge_matrix(const cgam_ridge *ridge,
                                                      double *P /* [d, d] */);
/* The I + U'V of this rank that is nearest to P on the pairs: U and V [rank, d], rows of U orthogonal,
 * |U_k| = |V_k|; rows past what the pairs span are zero. */
CGAM_API CGAM_NODISCARD cgam_status cgam_ridge_truncate(const cgam_ridge *ridge, int64_t rank,
                                                        double *U, double *V);

/* ---- Low rank ----------------------------------------------------------------------------- */
/* n queries: states that x is added to, states whose distribution over all words is the aim. */
typedef struct cgam_fit_aim {
    int64_t n;
    const float *base; /* [n, d] */
    const float *aim;  /* [n, d] */
    const double *x;   /* [n, d] */
} cgam_fit_aim;

/* The mean over queries of KL(p(aim) || p(base + x + U'V x)), in nats, and its derivatives [rank, d] unless
 * NULL. Products with the unembedding are in f32. CGAM_E_UNSUPPORTED for a lens without NORM. */
CGAM_API CGAM_NODISCARD cgam_status cgam_fit_divergence(const cgam_lens *lens,
                                                        const cgam_fit_aim *aim, int64_t rank,
                                                        const double *U, const double *V,
                                                        double *kl, double *dU, double *dV);

typedef struct cgam_fit_refined {
    double before, after; /* the mean divergence */
    int64_t iterations;
    int64_t evaluations;
} cgam_fit_refined;
/* Lowers it from U and V on, by at most so many iterations of L-BFGS (liblbfgs). */
CGAM_API CGAM_NODISCARD cgam_status cgam_fit_refine(const cgam_lens *lens, const cgam_fit_aim *aim,
                                                    int64_t rank, int64_t iterations, double *U,
                                                    double *V, cgam_fit_refined *out);

/* x [m, d] turned in place by an orthogonal matrix Q that the seed draws, or by Q' (back): Q P Q' is a
 * random projection with the eigenvalues and singular values of P. */
CGAM_API CGAM_NODISCARD cgam_status cgam_fit_turn(cgam_env *env, uint64_t seed, bool back,
                                                  int64_t m, int64_t d, double *x);

/* ---- Files -------------------------------------------------------------------------------- */
/* A projection of width x width numbers from FILE or FILE:MEMBER. Gives *out; free it with
 * cgam_projection_free. CGAM_E_SHAPE for another shape, CGAM_E_VALUE for a number that is not finite. */
CGAM_API CGAM_NODISCARD cgam_status cgam_projection_read(cgam_env *env, const char *path,
                                                         int64_t width, double **out);
CGAM_API void cgam_projection_free(cgam_env *env, double *P); /* NULL is fine */
/* x [m, d] <- P x. */
CGAM_API CGAM_NODISCARD cgam_status cgam_projection_apply(cgam_env *env, const double *P, int64_t d,
                                                          int64_t m, float *x);

/* ---- The experiment ----------------------------------------------------------------------- */
typedef enum cgam_fit_method { CGAM_FIT_RIDGE, CGAM_FIT_LOWRANK } cgam_fit_method;
CGAM_API const char *cgam_fit_method_name(cgam_fit_method method); /* "ridge", "lowrank" */
CGAM_API bool cgam_fit_method_find(const char *name, cgam_fit_method *out);

/* P from the states of a study, with the most demonstrations it has: y is what they add to the last
 * layer's state of a query, x what they add after an earlier layer, or the state without them there. P is
 * judged by the answers of h + P x, h the last layer's state without demonstrations, on queries of the
 * half (i % 2) that it was not fitted on, and with several tasks on those of a task that it has not seen;
 * beside P = I, a random P of the same spectrum, the mean y of the task, no context and demonstrations in the prompt. */
typedef struct cgam_lm_fit_opts {
    bool from_query;        /* x is the state without demonstrations; default false: the context */
    int64_t layer;          /* of x, 0 .. L; default -1 = the middle one */
    cgam_fit_method method; /* default RIDGE */
    int64_t rank;           /* of P - I, for LOWRANK; default 8 */
    int64_t iterations;     /* of its optimiser, at most; default 20 */
    bool no_curve;          /* default false: the halves at every layer too */
    const char *save;       /* P of all queries goes here; default NULL = nowhere */
    const cgam_lm_study_opts
        *more;          /* [more_count] data of further tasks; of these options only what
                                       names data is read */
    int64_t more_count; /* default 0 */
} cgam_lm_fit_opts;
CGAM_API cgam_lm_fit_opts cgam_lm_fit_opts_default(void);
/* Gives *out; free it with cgam_lm_result_free. opts NULL = defaults. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_fit(cgam_lm_study *study, const cgam_lm_fit_opts *opts,
                                                cgam_lm_result **out);

#ifdef __cplusplus
}
#endif
#endif
