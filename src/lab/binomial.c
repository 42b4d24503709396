/* binomial.c: exact intervals for a probability (Clopper and Pearson 1934).
 *
 *   P(X >= k | p) = I_p(k, n - k + 1)      I: the regularised incomplete beta function
 *
 * The lower end is the p at which k or more is as rare as (1 - level) / 2, the upper end that at which k or fewer is. */
#include "lab/stats.h"

#include <math.h>

/* The continued fraction of I_x(a, b) by the method of Lentz, for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double f = d;
    for (int m = 1; m < 100000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 + even * d;
        c = 1 + even / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        f *= d * (fabs(c) < tiny ? tiny : c);
        d = 1 + odd * d;
        c = 1 + odd / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        double step = d * (fabs(c) < tiny ? tiny : c);
        f *= step;
        if (fabs(step - 1) < 1e-15) break;
    }
    return f;
}

static double incomplete_beta(double a, double b, double x)
{
    if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* The x at which I_x(a, b) = share; halving 200 times ends at adjacent numbers. */
static double solve_beta(double a, double b, double share)
{
    double low = 0, high = 1;
    for (int i = 0; i < 200; i++) {
        double middle = 0.5 * (low + high);
        if (incomplete_beta(a, b, middle) < share) low = middle;
        else high = middle;
    }
    return 0.5 * (low + high);
}

void cgam_binomial_interval(int64_t k, int64_t n, double level, double *from, double *to)
{
    double tail = 0.5 * (1 - level), hits = (double)k, rest = (double)(n - k);
    *from = k > 0 ? solve_beta(hits, rest + 1, tail) : 0;
    *to = k < n ? solve_beta(hits + 1, rest, 1 - tail) : 1;
}
