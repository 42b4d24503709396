/* rounding.c: sums without error, and definiteness with proof. */
#include "num/rounding.h"

#include "num/eigen.h"

#include <float.h>
#include <stddef.h>

/* a + b = sum + *error exactly (Knuth); a b = product + *error exactly, except for underflow. */
static inline double two_sum(double a, double b, double *error)
{
    double sum = a + b, part = sum - a;
    *error = (a - (sum - part)) + (b - part);
    return sum;
}

static inline double two_product(double a, double b, double *error)
{
    double product = a * b;
    *error = fma(a, b, -product);
    return product;
}

double cgam_dot_twice(int64_t d, const double *x, const double *y, double *error)
{
    double high = 0, low = 0, size = 0, e, f;
    for (int64_t j = 0; j < d; j++) {
        double product = two_product(x[j], y[j], &e);
        high = two_sum(high, product, &f);
        low += e + f;
        size += fabs(product);
    }
    double result = high + low, gamma = cgam_gamma((double)d + 1);
    *error = (CGAM_U * fabs(result) + gamma * gamma * size) * CGAM_SLACK;
    return result;
}

bool cgam_sum_exactly(double x, double y, double *out)
{
    double error;
    *out = two_sum(x, y, &error);
    return error == 0; /* not if a value is infinite */
}

bool cgam_product_exactly(double x, double y, double *out)
{
    double error;
    *out = two_product(x, y, &error);
    return error == 0 && (fabs(*out) > 0x1p-960 || x == 0 || y == 0);
}

bool cgam_dot_exactly(int64_t d, const double *x, const double *y, double *out)
{
    bool exact = true;
    *out = 0;
    for (int64_t j = 0; j < d && exact; j++) {
        double product;
        exact = cgam_product_exactly(x[j], y[j], &product) && cgam_sum_exactly(*out, product, out);
    }
    return exact;
}

double cgam_square_times(double x, double y)
{
    int i, j;
    double a = frexp(x, &i), b = frexp(y, &j), part = a * a * b; /* relative error 2 u */
    if (part == 0) return 0;
    double value = ldexp(cgam_above(cgam_above(cgam_above(part))), 2 * i + j);
    return value < DBL_MIN ? cgam_above(value) : value;
}

enum { PARTS_MAX = 48 }; /* of a sum without error: 2100 bits, in disjoint doubles */

/* Adds x to the expansion part[0 .. *count), sorted by rising size; it stays exact (Shewchuk 1997). */
static bool grow_expansion(double *part, int *count, double x)
{
    int kept = 0;
    for (int k = 0; k < *count; k++) {
        double left;
        x = two_sum(x, part[k], &left);
        if (left != 0) part[kept++] = left;
    }
    if (x != 0) part[kept++] = x;
    *count = kept;
    return kept < PARTS_MAX;
}

cgam_sign cgam_dot_sign(int64_t d, const double *x, const double *y)
{
    double error, part[PARTS_MAX + 1];
    int count = 0;
    double value = cgam_dot_twice(d, x, y, &error);
    if (fabs(value) > error + cgam_underflow(5 * (double)d)) return CGAM_SIGN_NOT_ZERO;
    for (int64_t j = 0; j < d; j++) {
        double low, high = two_product(x[j], y[j], &low);
        if (x[j] == 0 || y[j] == 0) continue;
        if (!(fabs(high) > 0x1p-960) || !isfinite(high)) return CGAM_SIGN_UNKNOWN;
        if (!grow_expansion(part, &count, high) || !grow_expansion(part, &count, low))
            return CGAM_SIGN_UNKNOWN;
    }
    return count == 0 ? CGAM_SIGN_ZERO : CGAM_SIGN_NOT_ZERO;
}

enum { PLAIN_MAX = 48 }; /* below this LAPACK is not faster */

cgam_status cgam_cholesky_ends(cgam_env *env, int64_t n, double *B, bool *ends)
{
    if (n > PLAIN_MAX) return cgam_factor_cholesky(env, n, B, ends);
    *ends = true;
    for (int64_t i = 0; i < n && *ends; i++) {
        double *row = B + i * n;
        for (int64_t j = 0; j <= i; j++) {
            const double *other = B + j * n;
            double sum = row[j];
            for (int64_t k = 0; k < j; k++) sum -= row[k] * other[k];
            if (j < i) row[j] = sum / other[j];
            else if (!(sum > 0)) *ends = false;
            else row[i] = sqrt(sum);
        }
    }
    return CGAM_OK;
}

/* |R'R - B| <= gamma_k diag-scaled with k = n + 1 for the loops above. BLAS multiplies by
 * reciprocals of the pivots, one more operation each, so the bound allows twice as many. */
double cgam_cholesky_error(int64_t n, double trace)
{
    double gamma = cgam_gamma(2 * (double)n + 8);
    return gamma < 0.5
               ? gamma / (1 - gamma) * fmax(trace, 0) * CGAM_SLACK + (double)(n * n) * 0x1p-1060
               : INFINITY;
}
