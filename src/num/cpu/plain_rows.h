/* plain_rows.h: dot, sum and both of f64_plain.c and f32_plain.c, for one storage type and vectors of
 * `real`. Scores are sums in double; readouts are added up row by row in their own type. */
#include "num/cpu/widen.h"

#define PLAIN_ROWS(name, dtype, real)                                                              \
    static void dot_##name(const void *rows, int64_t stride, int64_t n, int64_t d, const real *x,  \
                           double *out)                                                            \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            out[i] = 0;                                                                            \
            for (int64_t j = 0; j < d; j++)                                                        \
                out[i] += cgam_stored(dtype, rows, i * stride + j) * (double)x[j];                 \
        }                                                                                          \
    }                                                                                              \
    static void sum_##name(const void *rows, int64_t stride, int64_t n, int64_t d, const real *w,  \
                           real *y)                                                                \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t j = 0; j < d; j++)                                                        \
                y[j] += (real)((double)w[i] * cgam_stored(dtype, rows, i * stride + j));           \
    }                                                                                              \
    static void both_##name(const void *fresh, const void *stale, int64_t stride, int64_t n,       \
                            int64_t d, const real *x, double *out, const real *w, real *y)         \
    {                                                                                              \
        dot_##name(fresh, stride, n, d, x, out);                                                   \
        sum_##name(stale, stride, n, d, w, y);                                                     \
    }
