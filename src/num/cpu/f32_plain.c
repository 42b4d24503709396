/* f32_plain.c: the plain reference of f32.h. It rounds x and w as the others do; its scores are sums in
 * double, its readouts are added up in f32 row by row. */
#include "num/cpu/f32.h"

#include "num/cpu/widen.h"

#define PLAIN(name, dtype)                                                                         \
    static void lay_##name(const double *x, int64_t d, float *out)                                 \
    {                                                                                              \
        for (int64_t j = 0; j < d; j++) out[j] = (float)x[j];                                      \
    }                                                                                              \
    static void flush_##name(int64_t d, float *from, double *y)                                    \
    {                                                                                              \
        for (int64_t j = 0; j < d; j++) y[j] += (double)from[j], from[j] = 0;                      \
    }                                                                                              \
    static void dot_##name(const void *rows, int64_t stride, int64_t n, int64_t d, const float *x, \
                           double *out)                                                            \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            out[i] = 0;                                                                            \
            for (int64_t j = 0; j < d; j++)                                                        \
                out[i] += cgam_stored(dtype, rows, i * stride + j) * (double)x[j];                 \
        }                                                                                          \
    }                                                                                              \
    static void sum_##name(const void *rows, int64_t stride, int64_t n, int64_t d, const float *w, \
                           float *y)                                                               \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t j = 0; j < d; j++)                                                        \
                y[j] += (float)((double)w[i] * cgam_stored(dtype, rows, i * stride + j));          \
    }                                                                                              \
    static void both_##name(const void *fresh, const void *stale, int64_t stride, int64_t n,       \
                            int64_t d, const float *x, double *out, const float *w, float *y)      \
    {                                                                                              \
        dot_##name(fresh, stride, n, d, x, out);                                                   \
        sum_##name(stale, stride, n, d, w, y);                                                     \
    }
PLAIN(f32, CGAM_F32)
PLAIN(f16, CGAM_F16)
PLAIN(bf16, CGAM_BF16)

extern const cgam_f32 cgam_f32_plain;
const cgam_f32 cgam_f32_plain = CGAM_F32_TABLE;
