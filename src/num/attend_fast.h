/* attend_fast.h: the leaders of attend.h without reading every row.
 *
 * A sketch of the rows (sketch.h) gives every score within a proved bound. Rows that the bounds leave
 * open - that may be among the leaders in r, among the best two in b and s, or on either side of the row
 * whose rank is asked for - are scored in double, as cgam_attend scores its leaders, bit for bit. What
 * is then told of leaders, gaps and rank is what cgam_attend tells. Of the sum of weights an interval
 * remains (docs/theorems/sketch.md). */
#ifndef CGAM_SRC_NUM_ATTEND_FAST_H
#define CGAM_SRC_NUM_ATTEND_FAST_H

#include "num/attend.h"
#include "num/sketch.h"

typedef struct cgam_fast {
    bool fallback;    /* the sketch would cost more than the pass: nothing else was done */
    int64_t rescored; /* rows scored in double */
    double known;     /* the sum of their weights exp(beta (r - soft.top)) */
    double low, high; /* bounds of the sum of the others', for scores that are exact for b and s as
                         they are given here: q, e, pivot, edges and s */
} cgam_fast;

/* out[count] and fast[count]; no readouts, and of out[v].soft only top and, from above, sum. tol > 0:
 * goes on until the sum of the weights is known to that part of itself, or falls back. The sketch is
 * one of in->Z. The bits do not depend on the number of threads, and a query's not on the others, but
 * for high and low, and for what falls back: eight or more are scanned by fewer digits. */
cgam_status cgam_attend_fast(cgam_env *env, const cgam_attend_in *in, const cgam_sketch *sketch,
                             double tol, cgam_attend_out *out, cgam_fast *fast);

/* The same for a batch, by matrices: no s and no e. What it cannot decide falls back. */
cgam_status cgam_attend_fast_many(cgam_env *env, const cgam_attend_in *in,
                                  const cgam_sketch *sketch, double tol, cgam_attend_out *out,
                                  cgam_fast *fast);

#endif
