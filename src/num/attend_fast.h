/* attend_fast.h: the leaders of attend.h without reading every row.
 *
 * A sketch of the rows (sketch.h) gives every score within a proved bound. Rows that the bounds do not decide - that
 * may be among the leaders in r, among the best two in b and s, or above or below the row whose rank is requested -
 * are scored in double, as cgam_attend scores its leaders, bit for bit. Leaders, gaps and rank are then the same as
 * from cgam_attend. The sum of weights is known only as an interval (docs/theorems/sketch.md). */
#ifndef CGAM_SRC_NUM_ATTEND_FAST_H
#define CGAM_SRC_NUM_ATTEND_FAST_H

#include "num/attend.h"
#include "num/sketch.h"

typedef struct cgam_fast {
    bool fallback;    /* the sketch would cost more than the pass: nothing else was computed */
    int64_t rescored; /* rows scored in double */
    double known;     /* the sum of their weights exp(beta (r - soft.top)) */
    double low, high; /* bounds of the sum of the others', for scores that are exact for b and s as
                         they are given here: q, e, pivot, edges and s */
} cgam_fast;

/* Fills out[count] and fast[count]; no readouts. Of out[v].soft only top is set, and sum, as an upper bound. tol > 0:
 * continues until the sum of the weights is known to this relative accuracy, or falls back. The sketch is one of
 * in->Z. The bits do not depend on the number of threads. A query's results do not depend on the other queries,
 * except high, low and the decision to fall back: eight or more queries are scanned with fewer digits. */
cgam_status cgam_attend_fast(cgam_env *env, const cgam_attend_in *in, const cgam_sketch *sketch,
                             double tol, cgam_attend_out *out, cgam_fast *fast);

/* The same for a batch, by matrices, without s and e. Queries that it cannot decide fall back. */
cgam_status cgam_attend_fast_many(cgam_env *env, const cgam_attend_in *in,
                                  const cgam_sketch *sketch, double tol, cgam_attend_out *out,
                                  cgam_fast *fast);

#endif
