/* sieve.h: scores of one query by a sketch - which rows may matter, and bounds of the weights of the others, in f32
 * (cpu/sift.h, docs/theorems/sketch.md). */
#ifndef CGAM_SRC_NUM_SIEVE_H
#define CGAM_SRC_NUM_SIEVE_H

#include "num/sketch.h"

#define CGAM_SIEVE_TINY 0x1p-99 /* of cpu/int8.h and of products below the range of f32 */

/* Scores are in units of `unit`. Rows below `floor` are closed; their weights are relative to a score of `ref`, which
 * is at most 24 ln 2 / beta below `floor`. Rounding is on the safe side: no row is closed that should stay open, and
 * all weight bounds hold. */
cgam_sift_one cgam_sieve_of(const cgam_sketched *x, cgam_sketch_error off, double unit, double beta,
                            double floor, double ref);
/* Returns true if an error of 2^-99 in a score is negligible for a weight. */
bool cgam_sieve_serves(double unit, double beta);

/* Processes rows [begin, begin + count) of the sketch with these scores: writes the numbers of the open ones,
 * from 0, to list [count] and returns their count. Adds bounds of the others' weights to *low and *high. */
int64_t cgam_sieve_rows(const cgam_sift_one *by, const cgam_sketch *sketch, const cgam_cpu *cpu,
                        int64_t begin, int64_t count, const float *scores, int32_t *list,
                        double *low, double *high);

/* Collects rows that are closed one by one, and bounds their weights relative to a score of `top`, many at a time. */
typedef struct cgam_closed {
    const cgam_cpu *cpu;
    double beta, top, high, low;
    double most, at[CGAM_SIFT_ROWS]; /* bounds of the pending rows, and the widest of them */
    int64_t count;
} cgam_closed;
void cgam_closed_add(cgam_closed *x, double score, double off);
void cgam_closed_end(cgam_closed *x); /* afterwards high and low are complete */

#endif
