/* rounding.h: what rounding may do, in formulas that are true (docs/theorems/rounding.md).
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
#define CGAM_TINY 0x1p-1022 /* what underflows may add to a sum of products */

/* What `terms` products that underflow may add, where terms may be a count times what their sum is multiplied by. */
static inline double cgam_underflow(double terms)
{
    return fmax(terms * 0x1p-74, 0x1p-22) * 0x1p-1000;
}

static inline double cgam_gamma(double k)
{
    return k < 0x1p52 ? k * CGAM_U / (1 - k * CGAM_U) * CGAM_SLACK : INFINITY;
}

/* The next double up and down: what a correctly rounded operation is widened by. */
static inline double cgam_above(double x) { return nextafter(x, INFINITY); }
static inline double cgam_below(double x) { return nextafter(x, -INFINITY); }

/* A float that is not below x, and one that is not above it. */
static inline float cgam_above_f32(double x)
{
    float f = (float)x;
    return (double)f < x ? nextafterf(f, INFINITY) : f;
}
static inline float cgam_below_f32(double x) { return -cgam_above_f32(-x); }

/* At least x (1 + relative) for x >= 0, and hardly more. */
static inline double cgam_widened(double x, double relative)
{
    return cgam_above(x * (1 + relative) * (1 + 8 * CGAM_U));
}

/* What |zeta|^2 of a row of d numbers may be off by, relative: a sum of d squares, made equal within
 * 16 ulp (bank.c). A product with two normalised rows, each times a factor from such a norm, is off by
 * no more. */
static inline double cgam_norm_error(int64_t d) { return (3 * (double)d + 64) * CGAM_U; }

/* |zeta| of such a row from above, from |zeta|^2, whose d squares may have been lost to underflow. */
static inline double cgam_length_above(int64_t d, double norm2)
{
    return norm2 > 0 ? sqrt(norm2 + CGAM_TINY) * (1 + cgam_norm_error(d)) : 0;
}

/* x^2 y from above for x, y >= 0, and hardly more, whatever x^2 or x y would leave the range of double. */
double cgam_square_times(double x, double y);

/* x'y by Dot2 (Ogita, Rump and Oishi 2005): as if in twice the precision, then rounded.
 *     |result - x'y| <= *error + what 5 d products that underflow add,   error = u |result| + gamma_d^2 |x|'|y|. */
double cgam_dot_twice(int64_t d, const double *x, const double *y, double *error);

typedef enum cgam_sign { CGAM_SIGN_ZERO, CGAM_SIGN_NOT_ZERO, CGAM_SIGN_UNKNOWN } cgam_sign;
/* Is x'y exactly 0? Decided without rounding; UNKNOWN where products are near underflow. */
cgam_sign cgam_dot_sign(int64_t d, const double *x, const double *y);

/* x'y, x + y and x y where no operation rounds; false where one does, or comes near underflow. */
bool cgam_dot_exactly(int64_t d, const double *x, const double *y, double *out);
bool cgam_sum_exactly(double x, double y, double *out);
bool cgam_product_exactly(double x, double y, double *out);

/* Does the Cholesky factorisation of the symmetric matrix whose lower triangle by rows is B [n, n],
 * destroyed, run to its end? Then (Rump 2006) no eigenvalue is below -cgam_cholesky_error(n, trace). */
cgam_status cgam_cholesky_ends(cgam_env *env, int64_t n, double *B, bool *ends);
double cgam_cholesky_error(int64_t n, double trace);

#endif
