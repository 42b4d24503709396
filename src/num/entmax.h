/* entmax.h: the sparse relatives of softmax, of order A with 1 < A <= 2.
 *
 *   p = argmax over the simplex of <z, p> + H_A(p),    H_A = sum (p - p^A) / (A (A - 1))
 *     = exp_A(z_i - top + shift),    exp_A(v) = [1 + (A - 1) v]_+^(1 / (A - 1))
 *
 * with top = max z and the one shift <= 0 for which p adds up to 1. A = 2 is the Euclidean projection
 * (sparsemax), A -> 1 softmax, where shift is -log sum exp(z - top). Written with exp_A no digits are
 * lost at either end, and what is far below the top is 0, not small. */
#ifndef CGAM_SRC_NUM_ENTMAX_H
#define CGAM_SRC_NUM_ENTMAX_H

#include "num/rows.h"

#include <math.h>
#include <stdint.h>

/* z = beta x: how the elements of x are weighed, x[i] by cgam_entmax_weight(&e, x[i]). */
typedef struct cgam_entmax {
    double order, beta;
    double top;   /* max x, */
    double shift; /* NAN where x has an element that is not a number */
} cgam_entmax;

/* Reads x a few times: the sum is convex in the shift, so that Newton's steps from 0 come down on the
 * solution and never past it; they end where rounding lets none go lower. */
cgam_entmax cgam_entmax_of(double order, double beta, int64_t n, const double *x);
/* The same of a vector of one number a row (ranks.h). */
cgam_entmax cgam_entmax_rows(cgam_env *env, const cgam_rows *Z, double order, double beta,
                             const double *x);

/* How far below the top a score weighs nothing for certain, rounding included: to be compared with the
 * difference of the two, since a large top would swallow it. */
static inline double cgam_entmax_reach(double order, double beta)
{
    return (1 + 0x1p-40) / ((order - 1) * beta) + 0x1p-1000;
}

/* The argument of exp_A: at most 0 where x was among those that e came from. */
static inline double cgam_entmax_argument(const cgam_entmax *e, double x)
{
    return e->beta * (x - e->top) + e->shift;
}

static inline double cgam_entmax_weight(const cgam_entmax *e, double x)
{
    double k = e->order - 1, v = cgam_entmax_argument(e, x), base = 1 + k * v;
    if (!(base > 0)) return 0;
    if (k == 1) return base;
    return k == 0.5 ? base * base : exp(log1p(k * v) / k);
}

/* The least A - 1: below, A is 1 for what double can tell of 1 / (A - 1). */
#define CGAM_ENTMAX_LEAST 1e-9

/* sum p v, v the arguments of exp_A. */
double cgam_entmax_tilt(const cgam_entmax *e, int64_t n, const double *x);
/* L(beta x) - beta top, L = max over the simplex of <z, p> + H_A(p). */
double cgam_entmax_value(const cgam_entmax *e, int64_t n, const double *x);
double cgam_entmax_value_rows(const cgam_rows *Z, const cgam_entmax *e, const double *x);

/* p^(2 - A), the derivative of exp_A at a weight p: 0 off the support. */
static inline double cgam_entmax_slope(double order, double p)
{
    if (!(p > 0)) return 0;
    if (order == 2) return 1;
    return order == 1.5 ? sqrt(p) : pow(p, 2 - order);
}

#endif
