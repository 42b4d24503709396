/* stats.c: see stats.h. */
#include "lab/stats.h"

#include <math.h>
#include <stdlib.h>

void cgam_record_add(double *mean, double *squares, int64_t n, double x)
{
    double off = x - *mean;
    *mean += off / (double)n;
    *squares += off * (x - *mean);
}

void cgam_moments_add(cgam_moments *a, double x)
{
    a->n++;
    cgam_record_add(&a->mean, &a->squares, (int64_t)a->n, x);
}

void cgam_moments_join(cgam_moments *a, double mean, double squares, double n)
{
    if (!(n > 0)) return;
    double off = mean - a->mean, all = a->n + n;
    a->mean += off * n / all;
    a->squares += squares + off * off * a->n * n / all;
    a->n = all;
}

double cgam_moments_variance(const cgam_moments *a)
{
    return a->n > 1 ? a->squares / (a->n - 1) : NAN;
}

double cgam_moments_sd(const cgam_moments *a) { return sqrt(cgam_moments_variance(a)); }

double cgam_moments_se(const cgam_moments *a) { return sqrt(cgam_moments_variance(a) / a->n); }

double cgam_quantile(const double *x, int64_t n, double q)
{
    if (n < 1) return NAN;
    double at = q * (double)(n - 1);
    int64_t i = (int64_t)at;
    return i + 1 < n ? x[i] + (at - (double)i) * (x[i + 1] - x[i]) : x[n - 1];
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void cgam_sort(double *x, int64_t n) { qsort(x, (size_t)n, sizeof *x, by_value); }
