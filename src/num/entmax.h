/* entmax.h: the sparse relatives of softmax, of order A with 1 < A <= 2.
 *
 *   p = argmax over the simplex of <z, p> + H_A(p),    H_A = sum (p - p^A) / (A (A - 1))
 *     = exp_A(z_i - top + shift),    exp_A(v) = [1 + (A - 1) v]_+^(1 / (A - 1))
 *
 * with top = max z and the unique shift <= 0 for which p adds up to 1. A = 2 is the Euclidean projection (sparsemax),
 * A -> 1 softmax, where shift is -log sum exp(z - top). With exp_A no digits are lost at either end, and entries far
 * below the top are exactly 0. */
#ifndef CGAM_SRC_NUM_ENTMAX_H
#define CGAM_SRC_NUM_ENTMAX_H

#include "num/rows.h"

#include <math.h>
#include <stdint.h>

/* z = beta x; the weight of x[i] is cgam_entmax_weight(&e, x[i]). */
typedef struct cgam_entmax {
    double order, beta;
    double top;   /* max x, */
    double shift; /* NAN if x has a NaN */
} cgam_entmax;

/* Reads x a few times: the sum is convex in the shift, so Newton's steps from 0 approach the solution from above and
 * never pass it; they stop when rounding allows no further decrease. */
cgam_entmax cgam_entmax_of(double order, double beta, int64_t n, const double *x);
/* The same of a vector of one number a row (ranks.h). */
cgam_entmax cgam_entmax_rows(cgam_env *env, const cgam_rows *Z, double order, double beta,
                             const double *x);

/* A score at least this far below the top certainly has weight 0, rounding included. Compare it with the difference
 * of the two, since adding it to a large top would lose it. */
static inline double cgam_entmax_reach(double order, double beta)
{
    return (1 + 0x1p-40) / ((order - 1) * beta) + 0x1p-1000;
}

/* The argument of exp_A: at most 0 if x was among the values that e was computed from. */
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

/* The least A - 1: below it, double cannot resolve 1 / (A - 1). */
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
