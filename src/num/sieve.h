/* sieve.h: scores of one query by a sketch - which rows may matter, and what the others weigh, in f32
 * (cpu/sift.h, docs/theorems/sketch.md). */
#ifndef CGAM_SRC_NUM_SIEVE_H
#define CGAM_SRC_NUM_SIEVE_H

#include "num/sketch.h"

#define CGAM_SIEVE_TINY 0x1p-99 /* of cpu/int8.h and of products below the range of f32 */

/* Scores are in units of `unit`; rows below `floor` are closed, and their weights relative to a score of `ref`, which is
 * not below it by more than 24 ln 2 / beta. Rounded so that no row is closed and no weight bounded that should not be. */
cgam_sift_one cgam_sieve_of(const cgam_sketched *x, cgam_sketch_error off, double unit, double beta,
                            double floor, double ref);
/* Can it serve: 2^-99 in a score is nothing to a weight. */
bool cgam_sieve_serves(double unit, double beta);

/* Rows [begin, begin + count) of the sketch with these scores: numbers of the open ones, from 0, to list [count]; returns
 * how many there are. The others' weights are added to *low and *high. */
int64_t cgam_sieve_rows(const cgam_sift_one *by, const cgam_sketch *sketch, const cgam_cpu *cpu,
                        int64_t begin, int64_t count, const float *scores, int32_t *list,
                        double *low, double *high);

/* Rows that are closed one by one: what they weigh relative to a score of `top`, at least and at most; made many at a
 * time. */
typedef struct cgam_closed {
    const cgam_cpu *cpu;
    double beta, top, high, low;
    double most, at[CGAM_SIFT_ROWS]; /* bounds of those that wait, and the widest of them */
    int64_t count;
} cgam_closed;
void cgam_closed_add(cgam_closed *x, double score, double off);
void cgam_closed_end(cgam_closed *x); /* then high and low hold all */

#endif
