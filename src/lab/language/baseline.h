/* baseline.h: what a shared context could do without knowing anything.
 *
 * One context for all queries adds the same b_k to label k's score whatever the query, so over the
 * labels it can do no more than move the borders between classes. These numbers say how far that
 * alone carries; a retrieval that does not beat them has not retrieved. */
#ifndef CGAM_SRC_LAB_LANGUAGE_BASELINE_H
#define CGAM_SRC_LAB_LANGUAGE_BASELINE_H

#include <cgam/base.h>

/* out [width] = mean over queries of with - without at one layer; both [queries, layers, width].
 * half 0 or 1: queries i with i % 2 == half; 2: all. */
void cgam_baseline_shift(int64_t queries, int64_t layers, int64_t width, const float *with,
                         const float *without, int64_t layer, int half, float *out);
/* out [layers, 2, width]: the shifts of all layers, from the queries of half 0 and of half 1, or both from all. */
void cgam_baseline_shifts(int64_t queries, int64_t layers, int64_t width, const float *with,
                          const float *without, bool all, float *out);
double cgam_baseline_cosine(int64_t n, const float *x, const float *y); /* NAN: a zero */

/* scores [queries, labels]; target [queries], -1: left out. Subtracts label k's mean score over the other
 * half of the queries, then chooses the largest; of labels within 1e-9 of the scores' size, the lowest.
 * own: uses the mean over the query's own half, for choosing something on that half. right [queries]. */
CGAM_NODISCARD cgam_status cgam_baseline_centred(cgam_env *env, int64_t queries, int64_t labels,
                                                 const double *scores, const int32_t *target,
                                                 bool own, bool *right);

/* The best accuracy of any threshold on the score for label 1, on the same data: an upper bound on
 * what moving the border can achieve with two classes. apart: each half of the queries has its own
 * border, as it has its own context. */
CGAM_NODISCARD cgam_status cgam_baseline_threshold(cgam_env *env, int64_t queries,
                                                   const double *score, const int32_t *target,
                                                   bool apart, double *out);
/* The chance that a query of label 1 scores above one of label 0; ties count half. NAN if a
 * class is empty. */
double cgam_baseline_auc(int64_t queries, const double *score, const int32_t *target);

/* Standard errors by drawing queries with replacement, 1000 times. The choice of layers and
 * coupling is not repeated for each draw: these are errors of the accuracy of the chosen ones. */
typedef struct cgam_recovery {
    double zero, icl, retrieval; /* accuracies */
    double zero_se, icl_se, retrieval_se;
    double recovered, recovered_se; /* (retrieval - zero)/(icl - zero); NAN where icl is not above
                                       zero by 2.33 standard errors of icl - zero: one in a hundred
                                       would be by chance, and the ratio says nothing */
    double recovered_low, recovered_high; /* 95 % of the draws in which icl > zero lie between */
} cgam_recovery;
cgam_recovery cgam_baseline_recovery(int64_t queries, const int32_t *target, const bool *zero,
                                     const bool *icl, const bool *retrieval, uint64_t seed);

/* The share of queries that are right, minus that of `other` unless it is NULL, and its standard
 * error. Both are drawn together, so their common variation cancels. */
typedef struct cgam_share {
    double mean, se;
} cgam_share;
cgam_share cgam_baseline_share(int64_t queries, const int32_t *target, const bool *right,
                               const bool *other, uint64_t seed);
#endif
