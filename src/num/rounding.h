/* rounding.h: rigorous bounds of rounding errors (docs/theorems/rounding.md).
 *
 * Doubles, round to nearest, u = 2^-53, no trapping. A sum of products of k terms, in any order and
 * fused or not, is off by at most gamma_k sum |x_i y_i|, gamma_k = k u / (1 - k u). Bounds are
 * computed in doubles themselves, from terms that are not negative, so that each operation changes
 * them by a relative u; CGAM_SLACK covers 2^32 of those.
 *
 * A product that underflows is off by at most 2^-1075. Bounds never add less than CGAM_TINY for that, which covers 2^53
 * of them: it is a normal number, and CPUs take up to a hundred times as long for others. */
#ifndef CGAM_SRC_NUM_ROUNDING_H
#define CGAM_SRC_NUM_ROUNDING_H

#include <cgam/base.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define CGAM_U 0x1p-53
#define CGAM_SLACK (1 + 0x1p-20)
#define CGAM_TINY 0x1p-1022 /* bound of what underflows may add to a sum of products */

/* Bound of what `terms` underflowing products may add; `terms` may be a count times a factor of their sum. */
static inline double cgam_underflow(double terms)
{
    return fmax(terms * 0x1p-74, 0x1p-22) * 0x1p-1000;
}

static inline double cgam_gamma(double k)
{
    return k < 0x1p52 ? k * CGAM_U / (1 - k * CGAM_U) * CGAM_SLACK : INFINITY;
}

/* The next double up and down, to widen the result of a correctly rounded operation. */
static inline double cgam_above(double x)
{
    union {
        double value;
        int64_t bits;
    } y = {x};
    if (!(x < INFINITY)) return x;
    if (x == 0) return 0x1p-1074;
    y.bits += y.bits < 0 ? -1 : 1; /* magnitudes are ordered like their bits */
    return y.value;
}
static inline double cgam_below(double x) { return -cgam_above(-x); }

/* A float >= x, and one <= x. */
static inline float cgam_above_f32(double x)
{
    float f = (float)x;
    return (double)f < x ? nextafterf(f, INFINITY) : f;
}
static inline float cgam_below_f32(double x) { return -cgam_above_f32(-x); }

/* At least x (1 + relative) for x >= 0, and only slightly more. */
static inline double cgam_widened(double x, double relative)
{
    return cgam_above(x * (1 + relative) * (1 + 8 * CGAM_U));
}

/* The relative error bound of |zeta|^2 of a row of d numbers: a sum of d squares, made equal within 16 ulp (bank.c).
 * A product of two normalised rows, each times a factor from such a norm, has at most the same error. */
static inline double cgam_norm_error(int64_t d) { return (3 * (double)d + 64) * CGAM_U; }

/* Upper bound of |zeta| of such a row, from |zeta|^2, whose d squares may have underflowed. */
static inline double cgam_length_above(int64_t d, double norm2)
{
    return norm2 > 0 ? sqrt(norm2 + CGAM_TINY) * (1 + cgam_norm_error(d)) : 0;
}

/* Upper bound of x^2 y for x, y >= 0, only slightly larger, even if x^2 or x y is out of range. */
double cgam_square_times(double x, double y);

/* x'y by Dot2 (Ogita, Rump and Oishi 2005): as if in twice the precision, then rounded.
 *     |result - x'y| <= *error + what 5 d products that underflow add,   error = u |result| + gamma_d^2 |x|'|y|. */
double cgam_dot_twice(int64_t d, const double *x, const double *y, double *error);

typedef enum cgam_sign { CGAM_SIGN_ZERO, CGAM_SIGN_NOT_ZERO, CGAM_SIGN_UNKNOWN } cgam_sign;
/* Is x'y exactly 0? Decided without rounding; UNKNOWN if products are near underflow. */
cgam_sign cgam_dot_sign(int64_t d, const double *x, const double *y);

/* x'y, x + y and x y if no operation rounds; returns false if one rounds or comes near underflow. */
bool cgam_dot_exactly(int64_t d, const double *x, const double *y, double *out);
bool cgam_sum_exactly(double x, double y, double *out);
bool cgam_product_exactly(double x, double y, double *out);

/* Does the Cholesky factorisation of the symmetric matrix with lower triangle by rows B [n, n] complete? Overwrites
 * B. If it does, no eigenvalue is below -cgam_cholesky_error(n, trace) (Rump 2006). */
cgam_status cgam_cholesky_ends(cgam_env *env, int64_t n, double *B, bool *ends);
double cgam_cholesky_error(int64_t n, double trace);

#endif
