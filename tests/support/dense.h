/* dense.h: plain reference computations to test against: small random banks, explicit n x n matrices,
 * solves and fixed points in long double.
 *
 * Arrays come from one heap that dense_reset empties, so tests need not free them. Matrices are by
 * rows. */
#ifndef CGAM_TESTS_DENSE_H
#define CGAM_TESTS_DENSE_H

#include "base/rng.h"

#include <cgam/base.h>

/* [count] zeros, until dense_reset. */
double *dense_room(int64_t count);
long double *dense_room_long(int64_t count);
void dense_reset(void);

/* [count] normal numbers times scale. */
double *dense_normals(cgam_rng *rng, int64_t count, double scale);
double dense_between(cgam_rng *rng, double low, double high);     /* uniform */
double dense_between_log(cgam_rng *rng, double low, double high); /* uniform in the logarithm */

typedef enum dense_kind {
    DENSE_GAUSS,      /* entries N(0, 1/d): norms near one, all different */
    DENSE_UNIT,       /* the same, normalised */
    DENSE_NORMS,      /* unit rows times factors between 0.3 and 3 */
    DENSE_CLUSTER,    /* around one centre, normalised */
    DENSE_DUPLICATES, /* unit, each of the first half twice */
    DENSE_ZEROS,      /* Gaussian, every third row zero */
    DENSE_KINDS
} dense_kind;
/* A bank [n, d]. */
double *dense_bank(cgam_rng *rng, dense_kind kind, int64_t n, int64_t d);
void dense_normalize(int64_t n, int64_t d, double *Z);

/* diag(D) + a Z Z' + sigma w w' as [n, n]; D NULL = zero, w NULL = no such term. Sums in long
 * double, so that each entry is correctly rounded but for rare ties. */
double *dense_matrix(int64_t n, int64_t d, const double *Z, const double *D, double a,
                     const double *w, double sigma);
/* I + alpha (G - diag G): the diagonal is 1 exactly. */
double *dense_gate(int64_t n, int64_t d, const double *Z, double alpha);
/* G - diag G, and the alpha that its lowest eigenvalue makes critical; 1 where that is not below 0. */
double *dense_overlaps(int64_t n, int64_t d, const double *Z);
double dense_critical(int64_t n, int64_t d, const double *Z);
/* A - lambda^2 beta (diag p - pp') */
double *dense_hessian(int64_t n, const double *A, double lambda, double beta, const double *p);

/* Ascending eigenvalues [n]; vectors (one a row) into V [n, n] unless NULL. A is left alone. */
double *dense_eigen(int64_t n, const double *A, double *V);
/* The largest |eigenvalue|, and how many are below -small. */
double dense_norm(int64_t n, const double *A);
int64_t dense_negative(int64_t n, const double *A, double small);

/* y = A^-1 x by elimination with row exchanges in long double; y is rounded at the end. */
void dense_solve(int64_t n, const double *A, const double *x, double *y);
/* A^-1 in long double. */
long double *dense_inverse(int64_t n, const double *A);
/* |A y - x| / (|A| |y| + |x|), the residual in long double; norm = |A|. */
double dense_backward(int64_t n, const double *A, double norm, const double *x, const double *y);

/* out[n] = Z x and out[d] = Z' w, sums in long double. */
void dense_score(int64_t n, int64_t d, const double *Z, const double *x, double *out);
void dense_combine(int64_t n, int64_t d, const double *Z, const double *w, double *out);

/* p = softmax(beta r), or entmax of this order, its threshold by halving. */
void dense_softmax(int64_t n, double beta, const double *r, double *p);
void dense_entmax(int64_t n, double order, double beta, const double *r, double *p);

/* Plain iteration p <- softmax(beta (b + lambda A^-1 u + lambda^2 A^-1 p)) in long double, from
 * `start` (NULL = no feedback), until p moves by less than tol or after `most` steps; returns the
 * last move. inverse from dense_inverse. p [n] is rounded at the end. */
double dense_coupled(int64_t n, const long double *inverse, double beta, double lambda,
                     const double *b, const double *u, const double *start, double tol,
                     int64_t most, double *p);
/* The same with entmax of this order. */
double dense_coupled_entmax(int64_t n, double order, const long double *inverse, double beta,
                            double lambda, const double *b, const double *u, const double *start,
                            double tol, int64_t most, double *p);

double dense_distance(int64_t n, const double *x, const double *y); /* |x - y|_2 */
double dense_largest(int64_t n, const double *x, const double *y);  /* max |x - y| */

#endif
