/* sift.h: given scores with error bounds, finds the rows that may matter and bounds the weight of the others.
 *
 * S [rows, width] are scores of rows by vectors, one column per vector; the score of row i and vector v is within
 *
 *     E = hat_by[v] hat[i] + rest_by[v] rest[i]
 *
 * of the exact one (num/sketch.h). Row i is open for v (bit v of open[i]) unless S + E < floor[v]. If `focus` is given, it
 * is also open if S - E <= focus_high[v] and S + E >= focus_low[v]; rows with S - E > focus_high[v] that are not open are
 * counted. The rows that are not open weigh at most
 *
 *     high[v] = sum of 2^(rate[v] (S + E) - shift[v])     and at least     low[v],
 *
 * each to within a relative error of CGAM_SIFT_SLACK plus 2^-124 per row, if rate floor - shift <= 24. Sums are in f32,
 * over at most CGAM_SIFT_ROWS rows. */
#ifndef CGAM_SRC_NUM_CPU_SIFT_H
#define CGAM_SRC_NUM_CPU_SIFT_H

#include <cgam/base.h>

enum { CGAM_SIFT_ROWS = 128, CGAM_SIFT_WIDTH = 64 };
/* The power of two, 8e-5 and a few roundings; the sum, 128 2^-24; what the exponent is off by, times ln 2: three
 * roundings of numbers up to |shift| + 126. */
#define CGAM_SIFT_SLACK(shift) (0x1p-13 + 0x1p-22 * fabs((double)(shift)))

/* Of each of `width` vectors, a multiple of 16, at most CGAM_SIFT_WIDTH. */
typedef struct cgam_sift_by {
    float hat[CGAM_SIFT_WIDTH], rest[CGAM_SIFT_WIDTH], floor[CGAM_SIFT_WIDTH];
    float rate[CGAM_SIFT_WIDTH], shift[CGAM_SIFT_WIDTH];
    float focus_low[CGAM_SIFT_WIDTH], focus_high[CGAM_SIFT_WIDTH];
} cgam_sift_by;

/* The same for one vector. */
typedef struct cgam_sift_one {
    float hat, rest, floor, rate, shift;
} cgam_sift_one;

typedef struct cgam_sift {
    void (*run)(int64_t rows, int64_t width, const float *S, const float *hat, const float *rest,
                const cgam_sift_by *by, bool focus, uint64_t *open, float *high, float *low,
                int32_t *above);
    /* The same for one vector and groups of CGAM_SIFT_WIDTH rows, without a focus: bit j of open[g] is row j of group g;
     * sums = {high, low}, f32 within a group, double beyond. */
    void (*one)(int64_t groups, const float *S, const float *hat, const float *rest,
                const cgam_sift_one *by, uint64_t *open, double sums[2]);
} cgam_sift;

#endif
