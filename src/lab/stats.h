/* stats.h: means and spreads of series, and order statistics. All squared deviations are computed here:
 * the mean square minus the squared mean cancels, these updates do not. */
#ifndef CGAM_SRC_LAB_STATS_H
#define CGAM_SRC_LAB_STATS_H

#include <stdint.h>

/* Mean and sum of squared deviations of a series, by updates that do not cancel (Welford 1962; Chan,
 * Golub and LeVeque 1979): equal numbers have a spread of exactly 0. Initialise to zero. */
typedef struct cgam_moments {
    double mean, squares, n;
} cgam_moments;
void cgam_moments_add(cgam_moments *a, double x);
/* Adds a series of n numbers with that mean and sum of squared deviations after those of a; the order
 * of joining is part of the result's bits. */
void cgam_moments_join(cgam_moments *a, double mean, double squares, double n);
double cgam_moments_variance(const cgam_moments *a); /* over n - 1; NAN for n < 2 */
double cgam_moments_sd(const cgam_moments *a);       /* its root */
double cgam_moments_se(const cgam_moments *a);       /* of the mean; NAN for n < 2 */
/* The same with the moments in two numbers of a record; x is the n-th number added, from 1. */
void cgam_record_add(double *mean, double *squares, int64_t n, double x);

void cgam_sort(double *x, int64_t n); /* rising */
/* Quantile q of sorted x [n], linear between order statistics; NAN if n = 0. */
double cgam_quantile(const double *x, int64_t n, double q);

/* The interval of Clopper and Pearson (1934) for a probability of which n draws had k: it covers the true one in at least
 * `level` of all cases, whatever it is. 0 <= k <= n; n = 0 gives 0 and 1. */
void cgam_binomial_interval(int64_t k, int64_t n, double level, double *from, double *to);

#endif
