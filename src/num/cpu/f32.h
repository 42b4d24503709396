/* f32.h: scores and readouts of f64.h in f32, in short sums.
 *
 * A bank is bound by memory only if a row costs less to multiply than to read. In double every
 * number has to be converted, which takes as long as multiplying; in f32 a 64-byte line takes two
 * instructions (four for halves). So products are formed and summed in f32, at most 35 terms to a
 * lane, and lanes are added up in double:
 *
 *     |score - exact| <= CGAM_F32_ERROR sum_j |zeta_j x_j|,
 *     |readout - exact|_j <= CGAM_F32_READOUT sum_i |w_i zeta_ij|.
 *
 * The first bound counts the rounding of x, the product, 34 additions in a lane and 2 that join accumulators; a short
 * row has 3 terms to a lane, but its lanes may be added up in f32, in 4 more steps. The second counts 128 rows and the
 * rounding of w. The caller must ensure that nothing overflows or becomes subnormal. There is no version for f64
 * rows. */
#ifndef CGAM_SRC_NUM_CPU_F32_H
#define CGAM_SRC_NUM_CPU_F32_H

#include "num/cpu/f64.h"

#define CGAM_F32_ERROR (40 * 0x1p-24)
#define CGAM_F32_READOUT (132 * 0x1p-24)
enum { CGAM_F32_ROWS = 128, CGAM_F32_PAD = 32 };
enum { CGAM_F32_TILE = 1 << 17 }; /* bytes of a tile, unless a CPU's loops know better */

/* Length of a vector packed for f32. */
static inline int64_t cgam_f32_room(int64_t d)
{
    return (d + 2 * CGAM_F32_PAD) / CGAM_F32_PAD * CGAM_F32_PAD;
}

/* Can vectors of this norm be multiplied in f32, that is, do products and sums stay in its range? */
static inline bool cgam_f32_holds(double length) { return length > 1e-8 && length < 1e8; }

typedef struct cgam_f32 {
    /* Rounds x[d] to f32, in the order in which the loops read the numbers; out: [d + CGAM_F32_PAD]. Entries of the
     * tables below for f64 are NULL. */
    void (*lay[CGAM_CPU_DTYPES])(const double *x, int64_t d, float *out);
    /* out[i] = <row i, x>, with x laid out; a row's bits do not depend on its neighbours */
    void (*dot[CGAM_CPU_DTYPES])(const void *rows, int64_t stride, int64_t n, int64_t d,
                                 const float *x, double *out);
    /* y += sum_i w[i] row i, in f32 and laid out as x is; y: [d + CGAM_F32_PAD], zeros at first.
     * At most CGAM_F32_ROWS rows may come together in y before it is flushed. */
    void (*sum[CGAM_CPU_DTYPES])(const void *rows, int64_t stride, int64_t n, int64_t d,
                                 const float *w, float *y);
    /* dot over fresh rows and sum over stale ones in turns, with the bits of each alone */
    void (*both[CGAM_CPU_DTYPES])(const void *fresh, const void *stale, int64_t stride, int64_t n,
                                  int64_t d, const float *x, double *out, const float *w, float *y);
    /* y[d] += from, and sets from to zeros */
    void (*flush[CGAM_CPU_DTYPES])(int64_t d, float *from, double *y);
    int64_t tile; /* bytes of rows that are read out while the next ones are scored */
} cgam_f32;

/* The table of functions of these names, as f32_plain.c and f32_simd.c have them. */
#define CGAM_F32_EACH(f)                                                                           \
    {                                                                                              \
        NULL, f##_f32, f##_f16, f##_bf16                                                           \
    }
#define CGAM_F32_TABLE(bytes)                                                                      \
    {                                                                                              \
        .lay = CGAM_F32_EACH(lay), .dot = CGAM_F32_EACH(dot), .sum = CGAM_F32_EACH(sum),           \
        .both = CGAM_F32_EACH(both), .flush = CGAM_F32_EACH(flush), .tile = (bytes),               \
    }

#endif
