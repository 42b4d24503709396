/* kernels_body.h: dot and sum over rows with vectors of LANES doubles. Included by one file per
 * CPU, which defines NAME, LANES, USABLE and, where the CPU converts f16, LOAD_F16(p).
 *
 * dot keeps four sums so that the adder's latency is hidden; rows are taken one after another,
 * because several streams at power-of-two distances collide in the cache (measured 1.4 x).
 * sum takes four rows at a time, so that y is read and written once per four. */
#include "num/kernels.h"
#include "num/widen.h"

#include <string.h>

typedef double vd __attribute__((vector_size(8 * LANES)));
typedef float vf __attribute__((vector_size(4 * LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * LANES)));
typedef uint16_t vh __attribute__((vector_size(2 * LANES)));

static inline vd load_f64(const double *p)
{
    vd v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline vd load_f32(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, vd);
}

static inline vd load_bf16(const uint16_t *p)
{
    vh v;
    memcpy(&v, p, sizeof v);
    return __builtin_convertvector((vf)(__builtin_convertvector(v, vu) << 16), vd);
}

static inline vd load_f16(const uint16_t *p)
{
#ifdef LOAD_F16
    return LOAD_F16(p);
#else
    vd v;
    double wide[LANES];
    cgam_widen(CGAM_F16, p, LANES, wide);
    memcpy(&v, wide, sizeof v);
    return v;
#endif
}

static inline double lanes_sum(vd v)
{
    double lane[LANES], total = 0;
    memcpy(lane, &v, sizeof v);
    for (int k = 0; k < LANES; k++) total += lane[k];
    return total;
}

#define KERNELS(name, dtype, type)                                                                 \
    static void dot_##name(const void *rows, int64_t stride, int64_t n, int64_t d,                 \
                           const double *x, double *out)                                           \
    {                                                                                              \
        const type *row = rows;                                                                    \
        for (int64_t i = 0; i < n; i++, row += stride) {                                           \
            vd a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};                                             \
            int64_t j = 0;                                                                         \
            for (; j + 4 * LANES <= d; j += 4 * LANES) {                                           \
                a0 += load_##name(row + j) * load_f64(x + j);                                      \
                a1 += load_##name(row + j + LANES) * load_f64(x + j + LANES);                      \
                a2 += load_##name(row + j + 2 * LANES) * load_f64(x + j + 2 * LANES);              \
                a3 += load_##name(row + j + 3 * LANES) * load_f64(x + j + 3 * LANES);              \
            }                                                                                      \
            for (; j + LANES <= d; j += LANES) a0 += load_##name(row + j) * load_f64(x + j);       \
            double total = lanes_sum((a0 + a1) + (a2 + a3));                                       \
            for (; j < d; j++) {                                                                   \
                double z;                                                                          \
                cgam_widen(dtype, row + j, 1, &z);                                                 \
                total += z * x[j];                                                                 \
            }                                                                                      \
            out[i] = total;                                                                        \
        }                                                                                          \
    }                                                                                              \
    static void sum_##name(const void *rows, int64_t stride, int64_t n, int64_t d,                 \
                           const double *w, double *y)                                             \
    {                                                                                              \
        const type *row = rows;                                                                    \
        for (int64_t i = 0; i < n;) {                                                              \
            int64_t left = n - i;                                                                  \
            const type *r1 = row + (left > 1 ? stride : 0);                                        \
            const type *r2 = row + (left > 2 ? 2 * stride : 0);                                    \
            const type *r3 = row + (left > 3 ? 3 * stride : 0);                                    \
            double w0 = w[i], w1 = left > 1 ? w[i + 1] : 0;                                        \
            double w2 = left > 2 ? w[i + 2] : 0, w3 = left > 3 ? w[i + 3] : 0;                     \
            if (w0 != 0 || w1 != 0 || w2 != 0 || w3 != 0) {                                        \
                int64_t j = 0;                                                                     \
                for (; j + LANES <= d; j += LANES) {                                               \
                    vd v = load_f64(y + j);                                                        \
                    v += w0 * load_##name(row + j) + w1 * load_##name(r1 + j) +                    \
                         (w2 * load_##name(r2 + j) + w3 * load_##name(r3 + j));                    \
                    memcpy(y + j, &v, sizeof v);                                                   \
                }                                                                                  \
                for (; j < d; j++) {                                                               \
                    double z[4];                                                                   \
                    cgam_widen(dtype, row + j, 1, &z[0]);                                          \
                    cgam_widen(dtype, r1 + j, 1, &z[1]);                                           \
                    cgam_widen(dtype, r2 + j, 1, &z[2]);                                           \
                    cgam_widen(dtype, r3 + j, 1, &z[3]);                                           \
                    y[j] += w0 * z[0] + w1 * z[1] + (w2 * z[2] + w3 * z[3]);                       \
                }                                                                                  \
            }                                                                                      \
            i += 4;                                                                                \
            row += 4 * stride;                                                                     \
        }                                                                                          \
    }

KERNELS(f64, CGAM_F64, double)
KERNELS(f32, CGAM_F32, float)
KERNELS(f16, CGAM_F16, uint16_t)
KERNELS(bf16, CGAM_BF16, uint16_t)

#define TABLE_(name) cgam_kernels_##name
#define TABLE(name) TABLE_(name)
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

const cgam_kernels TABLE(NAME) = {
    .name = TEXT(NAME),
    .usable = USABLE,
    .dot = {dot_f64, dot_f32, dot_f16, dot_bf16},
    .sum = {sum_f64, sum_f32, sum_f16, sum_bf16},
};
