/* f64_plain.c: the plain reference of f64.h. */
#include "num/cpu/f64.h"

#include "num/cpu/plain_rows.h"
#include "num/cpu/vexp.h"

#include <math.h>

static double largest(const double *x, int64_t n)
{
    double top = -INFINITY;
    for (int64_t i = 0; i < n; i++) top = x[i] > top ? x[i] : top;
    return top;
}

static int64_t above(const double *x, int64_t n, double limit)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += !(fabs(x[i]) <= limit);
    return count;
}

static void softmax(const double *r, int64_t n, double beta, double top, double *e, double sums[3])
{
    sums[0] = sums[1] = sums[2] = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = beta * (r[i] - top);
        e[i] = x < CGAM_EXP_ZERO ? 0 : exp(x);
        sums[0] += e[i];
        sums[1] += e[i] * e[i];
        sums[2] += e[i] == 0 ? 0 : e[i] * x;
    }
}

static float whole(double *x, int64_t n, int most, int8_t *out, double *sums)
{
    double size = 0;
    sums[0] = sums[1] = 0;
    for (int64_t i = 0; i < n; i++) size = fmax(size, fabs(x[i]));
    float step = cgam_f64_step(size, most);
    for (int64_t i = 0; i < n; i++) {
        double w = step > 0 ? fmax(-most, fmin(most, nearbyint(x[i] * (1 / (double)step)))) : 0;
        out[i] = (int8_t)w;
        x[i] -= w * (double)step; /* 24 bits by 7 are exact, so this is rounded once */
        sums[0] += w * w;
        sums[1] += x[i] * x[i];
    }
    return step;
}

#define PLAIN(name, dtype)                                                                         \
    static void sum_at_##name(const void *rows, int64_t stride, const int32_t *at, int64_t n,      \
                              int64_t d, const double *w, double *y)                               \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t j = 0; j < d; j++)                                                        \
                y[j] += w[i] * cgam_stored(dtype, rows, at[i] * stride + j);                       \
    }                                                                                              \
    static void scaled_##name(const void *row, int64_t n, double factor, double *out)              \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) out[i] = factor * cgam_stored(dtype, row, i);              \
    }                                                                                              \
    static void to_f32_##name(const void *row, int64_t n, float *out)                              \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) out[i] = (float)cgam_stored(dtype, row, i);                \
    }                                                                                              \
    PLAIN_ROWS(name, dtype, double)
PLAIN(f64, CGAM_F64)
PLAIN(f32, CGAM_F32)
PLAIN(f16, CGAM_F16)
PLAIN(bf16, CGAM_BF16)

extern const cgam_f64 cgam_f64_plain;
const cgam_f64 cgam_f64_plain = CGAM_F64_TABLE;
