/* f64.h: rows of every storage type scored and read out in double, and what a softmax needs.
 *
 *   dot      out[i] = <row i, x>            scores
 *   sum      y     += sum_i w[i] row i      readouts
 *   sum_at   the same over the rows listed
 *   both     dot over fresh rows and sum over stale ones, step by step in turns
 *   scaled   a row widened, times a factor
 *   to_f32   a row in f32
 *   largest  max x[i], ignoring NaN
 *   above    how many |x[i]| are above a limit, or not numbers
 *   softmax  e[i] = exp(beta (r[i] - top)) and the sums of a softmax
 *
 * Rows are widened as they are read; f32.h has scores and readouts in f32. */
#ifndef CGAM_SRC_NUM_CPU_F64_H
#define CGAM_SRC_NUM_CPU_F64_H

#include <cgam/base.h>

enum { CGAM_CPU_DTYPES = 4 }; /* f64, f32, f16, bf16: the order of cgam_dtype */

typedef struct cgam_f64 {
    /* rows: [n, d] with `stride` elements from row to row */
    void (*dot[CGAM_CPU_DTYPES])(const void *rows, int64_t stride, int64_t n, int64_t d,
                                 const double *x, double *out);
    void (*sum[CGAM_CPU_DTYPES])(const void *rows, int64_t stride, int64_t n, int64_t d,
                                 const double *w, double *y);
    /* w[i] goes with row at[i] */
    void (*sum_at[CGAM_CPU_DTYPES])(const void *rows, int64_t stride, const int32_t *at, int64_t n,
                                    int64_t d, const double *w, double *y);
    /* Both are [n, d]. A readout of rows in cache hides behind the reading of rows in memory. The
     * bits of out are those of dot. */
    void (*both[CGAM_CPU_DTYPES])(const void *fresh, const void *stale, int64_t stride, int64_t n,
                                  int64_t d, const double *x, double *out, const double *w,
                                  double *y);
    /* out[i] = factor times the i-th value */
    void (*scaled[CGAM_CPU_DTYPES])(const void *row, int64_t n, double factor, double *out);
    /* out[i] = the i-th value, rounded to f32 where it is f64 */
    void (*to_f32[CGAM_CPU_DTYPES])(const void *row, int64_t n, float *out);
    double (*largest)(const double *x, int64_t n); /* -INFINITY for n = 0 */
    int64_t (*above)(const double *x, int64_t n, double limit);
    /* With x = beta (r - top), at most 709, and top finite: e = exp(x) to 2 ulp, 0 where x is
     * below CGAM_EXP_ZERO; sums = {sum e, sum e^2, sum e x}. -INFINITY is a legal score (a mask), NaN
     * stays NaN. */
    void (*softmax)(const double *r, int64_t n, double beta, double top, double *e, double sums[3]);
    /* x becomes whole numbers out, -most .. most with most at most 127, times a step, which is returned, and what that
     * leaves of x. The step is max |x| / most rounded to f32, and 0 where that is below 2^-126. sums = {sum of out^2,
     * sum of what is left squared}; x is finite. */
    float (*whole)(double *x, int64_t n, int most, int8_t *out, double sums[2]);
} cgam_f64;

/* The step for numbers of that size. */
static inline float cgam_f64_step(double size, int most)
{
    float step = (float)(size / most);
    return step >= 0x1p-126f ? step : 0;
}

#define CGAM_EACH_DTYPE(f)                                                                         \
    {                                                                                              \
        f##_f64, f##_f32, f##_f16, f##_bf16                                                        \
    }
/* The table of functions of these names, as f64_plain.c and f64_simd.c have them. */
#define CGAM_F64_TABLE                                                                             \
    {                                                                                              \
        .dot = CGAM_EACH_DTYPE(dot), .sum = CGAM_EACH_DTYPE(sum),                                  \
        .sum_at = CGAM_EACH_DTYPE(sum_at), .both = CGAM_EACH_DTYPE(both),                          \
        .scaled = CGAM_EACH_DTYPE(scaled), .to_f32 = CGAM_EACH_DTYPE(to_f32), .largest = largest,  \
        .above = above, .softmax = softmax, .whole = whole,                                        \
    }

#endif
