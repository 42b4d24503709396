/* f64.h: the inner loops everything large is made of, in every storage type and for every CPU
 * we know, chosen when the program starts.
 *
 *   dot      out[i] = <row i, x>            scores
 *   sum      y     += sum_i w[i] row i      readouts
 *   sum_at   the same over the rows listed
 *   both     dot over fresh rows and sum over stale ones, step by step in turns
 *   scaled   a row widened, times a factor
 *   to_f32   a row in f32
 *   largest  max x[i], NaN passed over
 *   above    how many |x[i]| are above a limit, or not numbers
 *   soft     e[i] = exp(beta (r[i] - top)) and the sums of a softmax
 *   exp      out[i] = exp(x[i])
 *   read     nothing but reading, to measure against
 *
 * Rows are widened as they are read and all arithmetic is in double; f32.h has scores and readouts
 * in f32, for where that is exact enough. One body, f64_body.h, is compiled once per
 * CPU. `cgam_kernels_all[0]` is the plain reference, written without vectors, and the judge of
 * the others. */
#ifndef CGAM_SRC_NUM_CPU_F64_H
#define CGAM_SRC_NUM_CPU_F64_H

#include <cgam/base.h>

enum { CGAM_KERNEL_DTYPES = 4 }; /* f64, f32, f16, bf16: the order of cgam_dtype */

typedef struct cgam_kernels {
    const char *name;
    bool (*usable)(void); /* does this CPU run it */
    /* rows: [n, d] with `stride` elements from row to row */
    void (*dot[CGAM_KERNEL_DTYPES])(const void *rows, int64_t stride, int64_t n, int64_t d,
                                    const double *x, double *out);
    void (*sum[CGAM_KERNEL_DTYPES])(const void *rows, int64_t stride, int64_t n, int64_t d,
                                    const double *w, double *y);
    /* w[i] goes with row at[i] */
    void (*sum_at[CGAM_KERNEL_DTYPES])(const void *rows, int64_t stride, const int32_t *at,
                                       int64_t n, int64_t d, const double *w, double *y);
    /* Both are [n, d]. A readout of rows in cache hides behind the reading of rows in memory. The
     * bits of out are those of dot. */
    void (*both[CGAM_KERNEL_DTYPES])(const void *fresh, const void *stale, int64_t stride,
                                     int64_t n, int64_t d, const double *x, double *out,
                                     const double *w, double *y);
    /* out[i] = factor times the i-th value */
    void (*scaled[CGAM_KERNEL_DTYPES])(const void *row, int64_t n, double factor, double *out);
    /* out[i] = the i-th value, rounded to f32 where it is f64 */
    void (*to_f32[CGAM_KERNEL_DTYPES])(const void *row, int64_t n, float *out);
    double (*largest)(const double *x, int64_t n); /* -INFINITY for n = 0 */
    int64_t (*above)(const double *x, int64_t n, double limit);
    /* With x = beta (r - top), at most 709, and top finite: e = exp(x) to 2 ulp, 0 below exp(-707);
     * sums = {sum e, sum e^2, sum e x}. -INFINITY is a legal score (a mask), NaN stays NaN. */
    void (*soft)(const double *r, int64_t n, double beta, double top, double *e, double sums[3]);
    /* The exclusive or of all 64-bit words: what reading alone costs. */
    uint64_t (*read)(const uint64_t *words, int64_t n);
    void (*exp)(const double *x, int64_t n, double *out); /* to 2 ulp; out may be x */
} cgam_kernels;

/* Plain reference first, then by rising speed; NULL ends. Entries may be unusable here. */
extern const cgam_kernels *const cgam_kernels_all[];

/* The fastest usable one. */
const cgam_kernels *cgam_kernels_best(void);

#endif
