/* lanes_banks.h: a bundle of small banks and their spectra, ready for the loops of lanes.h. */
#ifndef CGAM_SRC_LAB_SYNTHETIC_LANES_BANKS_H
#define CGAM_SRC_LAB_SYNTHETIC_LANES_BANKS_H

#include "base/env.h"
#include "lab/synthetic/lanes.h"

/* A bundle with its arrays and what the decomposition works in. */
typedef struct cgam_banks {
    cgam_env *env;
    cgam_bundle g;
    double *pool;               /* all arrays of g */
    double *one, *small, *work; /* [n, d] one lane's memories; a small matrix; LAPACK's work area */
    int64_t small_size, work_size;
    double *mu_min;     /* [] smallest eigenvalue of G */
    double *alpha_crit; /* [] 1 / (1 - mu_min), infinite from mu_min = 1 on */
    double *rotate;     /* [d, d] eigenvectors of Z'Z by columns, n > d; NULL otherwise */
} cgam_banks;

cgam_status cgam_banks_new(cgam_env *env, int width, int64_t n, int64_t d, cgam_banks **out);
void cgam_banks_free(cgam_banks *banks); /* NULL is fine */

/* The same memories Z [n, d] in every lane. */
void cgam_banks_share(cgam_banks *banks, const double *Z);

/* V, mu, alpha_crit from Z; c and rest for the input u [n], NULL = 1/n everywhere. */
cgam_status cgam_banks_decompose(cgam_banks *banks, const double *u);

/* gap [] = difference between the two largest entries of P_min u, per lane; 0: there is no winner. */
void cgam_banks_lead(const cgam_banks *banks, double *gap);

/* Weights f [m], f0 for compose(): A(alpha)^-1 u where lane l is subcritical, otherwise s(t[l]) of
 * s' = u - A s, s(0) = 0, divided by scale[l] where that leaves the range of double. */
void cgam_banks_weights(const cgam_banks *banks, double alpha, const double *t, double *f,
                        double *f0, double *scale);
/* Lane l's energy at gates s, without the constants of clamped layers:
 *     s'As/2 - u's                                        r NULL: gates alone
 *     ... - p'(lambda s + b) + p'r - lse(beta r)/beta     with retrieval r, p = softmax(beta r)
 * which at r = b + lambda s is s'As/2 - u's - lse(beta (b + lambda s))/beta. All [n] per lane; b is
 * Z q, NULL = 0. Flows never raise it. */
double cgam_banks_energy(const cgam_banks *banks, int lane, double alpha, double beta,
                         double lambda, const double *s, const double *r, const double *p,
                         const double *b);
/* alpha < alpha_crit (1 - 1e-9): the gates have a fixed point. */
bool cgam_banks_subcritical(const cgam_banks *banks, int lane, double alpha);

#endif
