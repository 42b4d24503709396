/* theory_margin.c: entmax's answer to a gap (docs/theorems/margin.md).
 *
 * If every rival is at least gap below, p(mu) is least when all are exactly gap below: the first entry p of
 * entmax_A(beta gap, 0, .., 0). Where the rivals weigh anything
 *     f(p) = p^(A-1) - ((1 - p) / (n - 1))^(A-1) = (A - 1) beta gap ,
 * f rising from p = 0 to f(1) = 1; beyond that p = 1, exactly. Near A = 1 both powers are near 1, and f is computed
 * as the difference of their distances from 1. */
#include "memory/certify.h"
#include "num/rounding.h"

#include <math.h>

bool cgam_margin_exact(double order, double beta, double gap)
{
    double k = order - 1, scale = k * beta, x = scale * gap;
    if (!(fabs(x - 1) < 0.5)) return x >= 1; /* NAN: no */
    /* near 1 the sign is that of x - 1, which is exact, plus the rounding error of the products */
    return (x - 1) + (fma(scale, gap, -x) + fma(k, beta, -scale) * gap) >= 0;
}

/* f(p), p < 1; *error: its rounding error, with log and expm1 accurate to 4 ulp; may be NULL. */
static double margin_function(double k, double m, double p, double *error)
{
    double own = expm1(k * log(p)), other = expm1(k * log((1 - p) / m));
    if (error) *error = 32 * CGAM_U * (fabs(own) + fabs(other)) + 16 * CGAM_U * k + 4 * CGAM_TINY;
    return own - other;
}

double cgam_margin_bound(int64_t n, double order, double beta, double gap)
{
    double k = order - 1, m = (double)(n - 1), x = k * beta * gap, low = 0, high = 1;
    if (n < 2 || cgam_margin_exact(order, beta, gap)) return 1;
    if (!(x > -pow(m, -k))) return isnan(x) ? NAN : 0;
    if (k == 1) return fmin((x * m + 1) / (m + 1), 1);
    while (high - low > CGAM_U * high) {
        double p = 0.5 * (low + high);
        if (p <= low || p >= high) break;
        if (margin_function(k, m, p, NULL) <= x) low = p;
        else high = p;
    }
    return low;
}

double cgam_margin_bound_below(int64_t n, double order, double beta, double gap)
{
    double k = order - 1, m = (double)(n - 1), x = k * beta * gap;
    if (n < 2) return 1;
    x -= (4 * CGAM_U * fabs(x) + 4 * CGAM_TINY) * CGAM_SLACK;
    if (x >= 1) return 1;
    double p = cgam_margin_bound(n, order, beta, gap);
    for (double less = 0x1p-50; p > 0 && less < 1; less *= 4) {
        double q = p * (1 - less), error, f = margin_function(k, m, q, &error);
        if (f + error <= x) return cgam_below(q);
    }
    return 0;
}
