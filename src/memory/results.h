/* results.h (inside): what is reported about a settled query (stages.h). */
#ifndef CGAM_SRC_MEMORY_RESULTS_H
#define CGAM_SRC_MEMORY_RESULTS_H

#include "memory/stages.h"
#include <cgam/recall.h>

/* A summary of the scores of a query, however they were computed. */
typedef struct cgam_summary {
    int64_t winner, focus, rank;   /* of focus; -1 = the ghost */
    double p, log_p;               /* of focus */
    double entropy, ipr;           /* -sum p log p, 1 / sum p^2 */
    int64_t support;               /* number of p > 0; n with softmax */
    double gap, gap_raw, gap_gate; /* of focus over the best other; undefined where n = 1 */
    double left_out;               /* weight omitted from the sums */
    double p_none;                 /* of the ghost */
} cgam_summary;

/* Computes it from the vectors of a query; target < 0 = none. */
cgam_status cgam_settled_summary(const cgam_recall *plan, const cgam_settled *m, int64_t target,
                                 cgam_summary *out);
/* Fills a result except its certificates, and p_lower_bound. */
void cgam_result_fill(const cgam_recall *plan, const cgam_summary *x, const cgam_trace *trace,
                      cgam_result *out);
/* p_lower_bound from the gap as it was computed, where nothing is proved. */
void cgam_result_estimate_bound(const cgam_recall *plan, cgam_result *out);

/* The weights exp(beta (r - top)) of a query: the sum over the scored memories, bounds of the sum over the others,
 * and the error bound of scores, gates included. */
typedef struct cgam_weight_bounds {
    double top, known, low, high, off;
    int64_t scored;
} cgam_weight_bounds;
/* Lower and upper bound of the p of one score among them and the ghost (docs/theorems/sketch.md). ghost: the score is
 * that of the ghost. */
void cgam_weight_bounds_share(const cgam_recall *plan, const cgam_weight_bounds *x, double r,
                              bool ghost, double share[2]);
/* Sets p, log_p and the intervals of a result whose focus has the score r. */
void cgam_result_intervals(const cgam_recall *plan, const cgam_weight_bounds *x, double r,
                           cgam_result *out);

/* Sets *order of the activation with this name, such as "entmax:1.2". Returns false if the name is unknown. */
bool cgam_activation_find(const char *name, double *order);

#endif
