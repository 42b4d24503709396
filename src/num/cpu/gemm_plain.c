/* gemm_plain.c: the plain reference of gemm.h. */
#include "num/cpu/gemm.h"

#include "num/cpu/vexp.h"

#include <math.h>

#define PLAIN(name, type, expo, bottom)                                                            \
    static void mul_##name(int64_t rows, int64_t columns, int64_t depth, const type *A,            \
                           int64_t ra, int64_t ka, const type *B, int64_t ldb, type *C,            \
                           int64_t ldc, const void *next, const void *stop)                        \
    {                                                                                              \
        (void)next, (void)stop;                                                                    \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            for (int64_t c = 0; c < columns; c++) {                                                \
                type sum = 0;                                                                      \
                for (int64_t k = 0; k < depth; k++) sum += A[r * ra + k * ka] * B[k * ldb + c];    \
                C[r * ldc + c] += sum;                                                             \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void tops_##name(int64_t rows, int64_t columns, const type *R, double *top)             \
    {                                                                                              \
        for (int64_t c = 0; c < columns; c++) {                                                    \
            type most = -INFINITY;                                                                 \
            for (int64_t i = 0; i < rows; i++)                                                     \
                most = R[i * columns + c] > most ? R[i * columns + c] : most;                      \
            top[c] = most;                                                                         \
        }                                                                                          \
    }                                                                                              \
    static void softmax_##name(int64_t rows, int64_t columns, type *R, double beta,                \
                               const double *top, double *sums)                                    \
    {                                                                                              \
        for (int64_t c = 0; c < columns; c++) {                                                    \
            type one = 0, two = 0, tilt = 0;                                                       \
            for (int64_t i = 0; i < rows; i++) {                                                   \
                type x = (type)beta * (R[i * columns + c] - (type)top[c]);                         \
                type e = x < (bottom) ? 0 : expo(x);                                               \
                R[i * columns + c] = e;                                                            \
                one += e;                                                                          \
                two += e * e;                                                                      \
                tilt += e == 0 ? 0 : e * x;                                                        \
            }                                                                                      \
            sums[c] = one;                                                                         \
            sums[columns + c] = two;                                                               \
            sums[2 * columns + c] = tilt;                                                          \
        }                                                                                          \
    }
PLAIN(f32, float, expf, CGAM_EXP_ZERO_F32)
PLAIN(f64, double, exp, CGAM_EXP_ZERO)

static void gather(int64_t n, const float *x, double *X)
{
    for (int64_t i = 0; i < n; i++) X[i] += x[i];
}

extern const cgam_gemm cgam_gemm_plain;
const cgam_gemm cgam_gemm_plain = CGAM_GEMM_TABLE(1, 1);
