/* panels.c: the plain product, and the choice of a faster one at start. */
#include "num/panels.h"

#include <math.h>
#include <string.h>

static bool always(void) { return true; }

#define PLAIN(name, type)                                                                          \
    static void mul_##name(int64_t rows, int64_t columns, int64_t depth, const type *A,            \
                           int64_t ra, int64_t ka, const type *B, int64_t ldb, type *C,            \
                           int64_t ldc)                                                            \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            for (int64_t c = 0; c < columns; c++) {                                                \
                type sum = 0;                                                                      \
                for (int64_t k = 0; k < depth; k++) sum += A[r * ra + k * ka] * B[k * ldb + c];    \
                C[r * ldc + c] += sum;                                                             \
            }                                                                                      \
        }                                                                                          \
    }
PLAIN(f32, float)
PLAIN(f64, double)

static void gather(int64_t n, const float *x, double *X)
{
    for (int64_t i = 0; i < n; i++) X[i] += x[i];
}

static void tops(int64_t rows, int64_t columns, const double *R, double *top)
{
    for (int64_t c = 0; c < columns; c++) {
        top[c] = -INFINITY;
        for (int64_t i = 0; i < rows; i++)
            top[c] = R[i * columns + c] > top[c] ? R[i * columns + c] : top[c];
    }
}

static void soften(int64_t rows, int64_t columns, const double *R, double beta, const double *top,
                   float *E, float *sums)
{
    memset(sums, 0, (size_t)(3 * columns) * sizeof *sums);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < columns; c++) {
            float x = (float)(beta * (R[i * columns + c] - top[c]));
            float e = x < -87 ? 0 : expf(x);
            E[i * columns + c] = e;
            sums[c] += e;
            sums[columns + c] += e * e;
            sums[2 * columns + c] += e == 0 ? 0 : e * x;
        }
}

static const cgam_panels plain = {
    .name = "plain",
    .usable = always,
    .lanes32 = 1,
    .lanes64 = 1,
    .best32 = 1,
    .best64 = 1,
    .mul32 = mul_f32,
    .mul64 = mul_f64,
    .gather = gather,
    .tops = tops,
    .soften = soften,
};

extern const cgam_panels cgam_panels_portable;
#if defined(__x86_64__)
extern const cgam_panels cgam_panels_avx2, cgam_panels_avx512;
#endif

const cgam_panels *const cgam_panels_all[] = {
    &plain,
    &cgam_panels_portable,
#if defined(__x86_64__)
    &cgam_panels_avx2,
    &cgam_panels_avx512,
#endif
    NULL,
};

const cgam_panels *cgam_panels_best(void)
{
    const cgam_panels *best = &plain;
    for (int i = 0; cgam_panels_all[i]; i++)
        if (cgam_panels_all[i]->usable()) best = cgam_panels_all[i];
    return best;
}

const cgam_panels *cgam_panels_with(const char *name)
{
    for (int i = 0; cgam_panels_all[i]; i++)
        if (strcmp(cgam_panels_all[i]->name, name) == 0 && cgam_panels_all[i]->usable())
            return cgam_panels_all[i];
    return cgam_panels_best();
}
