/* kernels.c: the plain reference, and the choice of a faster version at start. */
#include "num/kernels.h"

#include "num/widen.h"

#include <stdatomic.h>

static bool always(void) { return true; }

static void dot_plain(cgam_dtype dtype, const void *rows, int64_t stride, int64_t n, int64_t d,
                      const double *x, double *out)
{
    const char *base = rows;
    size_t size = cgam_dtype_size(dtype);
    for (int64_t i = 0; i < n; i++) {
        double total = 0;
        for (int64_t j = 0; j < d; j++) {
            double z;
            cgam_widen(dtype, base + (size_t)(i * stride + j) * size, 1, &z);
            total += z * x[j];
        }
        out[i] = total;
    }
}

static void sum_plain(cgam_dtype dtype, const void *rows, int64_t stride, int64_t n, int64_t d,
                      const double *w, double *y)
{
    const char *base = rows;
    size_t size = cgam_dtype_size(dtype);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < d; j++) {
            double z;
            cgam_widen(dtype, base + (size_t)(i * stride + j) * size, 1, &z);
            y[j] += w[i] * z;
        }
    }
}

#define PLAIN(name, dtype)                                                                         \
    static void dot_##name(const void *rows, int64_t stride, int64_t n, int64_t d,                 \
                           const double *x, double *out)                                           \
    {                                                                                              \
        dot_plain(dtype, rows, stride, n, d, x, out);                                              \
    }                                                                                              \
    static void sum_##name(const void *rows, int64_t stride, int64_t n, int64_t d,                 \
                           const double *w, double *y)                                             \
    {                                                                                              \
        sum_plain(dtype, rows, stride, n, d, w, y);                                                \
    }
PLAIN(f64, CGAM_F64)
PLAIN(f32, CGAM_F32)
PLAIN(f16, CGAM_F16)
PLAIN(bf16, CGAM_BF16)

static const cgam_kernels plain = {
    .name = "plain",
    .usable = always,
    .dot = {dot_f64, dot_f32, dot_f16, dot_bf16},
    .sum = {sum_f64, sum_f32, sum_f16, sum_bf16},
};

extern const cgam_kernels cgam_kernels_portable;
#if defined(__x86_64__)
extern const cgam_kernels cgam_kernels_avx2, cgam_kernels_avx512;
#endif

const cgam_kernels *const cgam_kernels_all[] = {
    &plain,
    &cgam_kernels_portable,
#if defined(__x86_64__)
    &cgam_kernels_avx2,
    &cgam_kernels_avx512,
#endif
    NULL,
};

const cgam_kernels *cgam_kernels_best(void)
{
    static _Atomic(const cgam_kernels *) chosen; /* asking a CPU is slow in a virtual machine */
    const cgam_kernels *best = atomic_load(&chosen);
    if (best) return best;
    best = &plain;
    for (int i = 0; cgam_kernels_all[i]; i++)
        if (cgam_kernels_all[i]->usable()) best = cgam_kernels_all[i];
    atomic_store(&chosen, best);
    return best;
}
