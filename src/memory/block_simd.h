/* block_simd.h: loops over rows, eight at a time, for files compiled once per set of instructions (num/cpu/simd.h).
 * A block of eight rows is PER vectors; sums over rows are kept for each of the eight lanes and added in halves at the
 * end, so that their bits do not depend on the width. */
#ifndef CGAM_SRC_MEMORY_BLOCK_SIMD_H
#define CGAM_SRC_MEMORY_BLOCK_SIMD_H

#include "num/cpu/simd.h"

enum { ROWS = 8, LANES = BYTES / 8, PER = ROWS / LANES };

typedef struct block {
    vd v[PER];
} block;

#define EACH_PART(h)                                                                               \
    UNROLL                                                                                         \
    for (int h = 0; h < PER; h++)

INLINE block load(const double *x)
{
    block b;
    EACH_PART(h) b.v[h] = load_f64(x + h * LANES);
    return b;
}
INLINE void store(double *x, block b) { EACH_PART(h) store_f64(x + h * LANES, b.v[h]); }
INLINE block fill(double x)
{
    block b;
    EACH_PART(h) b.v[h] = all_f64(x);
    return b;
}
INLINE vd magnitude(vd a) { return (vd)((vl)a & INT64_MAX); }
INLINE double block_sum(block b)
{
    double x[ROWS];
    store(x, b);
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}
INLINE double block_max(block b)
{
    double x[ROWS], top;
    store(x, b);
    top = x[0];
    for (int k = 1; k < ROWS; k++) top = x[k] > top ? x[k] : top;
    return top;
}

#endif
