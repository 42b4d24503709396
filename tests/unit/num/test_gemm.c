/* Register products of every CPU against sums in long double, all shapes up to 70, any strides. */
#include "support/check.h"
#include "support/dense.h"

#include "num/cpu/cpu.h"

/* One random case; columns are rounded up to whole vectors. Depth terms each within eps of the
 * terms, then one addition. */
#define CASE(name, type, lanes, mul, eps)                                                          \
    static void case_##name(cgam_rng *rng, const cgam_gemm *p, int64_t rows, int64_t columns,      \
                            int64_t depth, bool transposed)                                        \
    {                                                                                              \
        columns = (columns + p->lanes - 1) / p->lanes * p->lanes;                                  \
        int64_t ra = transposed ? 1 : depth + 3, ka = transposed ? rows + 1 : 1;                   \
        int64_t ldb = columns + 5, ldc = columns + 2;                                              \
        type *A = (type *)(void *)dense_room((rows + 4) * (depth + 4));                            \
        type *B = (type *)(void *)dense_room(depth * ldb + 1);                                     \
        type *C = (type *)(void *)dense_room(rows * ldc + 1);                                      \
        for (int64_t i = 0; i < (rows + 4) * (depth + 4); i++) A[i] = (type)cgam_rng_normal(rng);  \
        for (int64_t i = 0; i < depth * ldb; i++) B[i] = (type)cgam_rng_normal(rng);               \
        for (int64_t i = 0; i < rows * ldc; i++) C[i] = (type)i;                                   \
        p->mul(rows, columns, depth, A, ra, ka, B, ldb, C, ldc, rows % 2 ? B : NULL,               \
               B + depth * ldb);                                                                   \
        for (int64_t r = 0; r < rows; r++)                                                         \
            for (int64_t c = 0; c < ldc; c++) {                                                    \
                long double want = (type)(r * ldc + c), size = fabsl(want);                        \
                for (int64_t k = 0; k < depth && c < columns; k++) {                               \
                    long double term = (long double)A[r * ra + k * ka] * B[k * ldb + c];           \
                    want += term;                                                                  \
                    size += fabsl(term);                                                           \
                }                                                                                  \
                CHECK_CLOSE(C[r * ldc + c], (double)want,                                          \
                            (double)((long double)(depth + 2) * (eps)*size));                      \
            }                                                                                      \
        dense_reset();                                                                             \
    }
CASE(f32, float, lanes32, mul32, 0x1p-24)
CASE(f64, double, lanes64, mul64, 0x1p-53)

TEST(products_agree_on_every_shape)
{
    for (int i = 0; cgam_cpu_all[i].name; i++) {
        const cgam_gemm *p = cgam_cpu_all[i].gemm;
        if (!cgam_cpu_all[i].usable()) continue;
        cgam_rng rng = cgam_rng_stream(12, (uint64_t)i);
        for (int64_t size = 1; size <= 70; size++) {
            case_f32(&rng, p, size, 1 + size * 7 % 70, 1 + size * 3 % 70, size % 2);
            case_f64(&rng, p, 1 + size * 5 % 70, size, 1 + size * 11 % 70, size % 2 == 0);
            case_f32(&rng, p, 1 + size % 13, 64, size, true);
            case_f64(&rng, p, 1 + size % 13, 64, size, false);
        }
        case_f32(&rng, p, 17, 192, 1000, false);
        case_f64(&rng, p, 17, 192, 1000, true);
    }
}

/* exp(beta (R - top)) and its sums, in the type of R, against long double. */
#define SOFT(name, type, tops, soften, eps, bottom)                                                \
    static void soft_##name(cgam_rng *rng, const cgam_gemm *p, int64_t rows, int64_t columns)      \
    {                                                                                              \
        type *R = (type *)(void *)dense_room(rows * columns);                                      \
        type *E = (type *)(void *)dense_room(rows * columns);                                      \
        double *top = dense_room(columns), *sums = dense_room(3 * columns), beta = 2;              \
        for (int64_t i = 0; i < rows * columns; i++)                                               \
            E[i] = R[i] = (type)(i % 29 == 3 ? -INFINITY : 20 * cgam_rng_normal(rng));             \
        p->tops(rows, columns, R, top);                                                            \
        for (int64_t c = 0; c < columns; c++) {                                                    \
            type most = -INFINITY;                                                                 \
            for (int64_t i = 0; i < rows; i++) most = (type)fmax(most, R[i * columns + c]);        \
            assert_true(top[c] == most);                                                           \
            top[c] = isfinite(top[c]) ? top[c] - (double)(c % 3) : 0; /* may lag behind */         \
        }                                                                                          \
        p->soften(rows, columns, E, beta, top, sums);                                              \
        for (int64_t c = 0; c < columns; c++) {                                                    \
            long double one = 0, two = 0, tilt = 0, size = 0;                                      \
            for (int64_t i = 0; i < rows; i++) {                                                   \
                type x = (type)beta * (R[i * columns + c] - (type)top[c]);                         \
                long double e = x < (bottom) ? 0 : expl((long double)x);                           \
                CHECK_CLOSE(E[i * columns + c], (double)e, (double)(4 * (eps)*e));                 \
                one += e;                                                                          \
                two += e * e;                                                                      \
                tilt += e == 0 ? 0 : e * (long double)x;                                           \
                size += e == 0 ? 0 : e * fabsl((long double)x);                                    \
            }                                                                                      \
            long double off = (long double)(rows + 8) * (eps);                                     \
            CHECK_CLOSE(sums[c], (double)one, (double)(off * one));                                \
            CHECK_CLOSE(sums[columns + c], (double)two, (double)(2 * off * two));                  \
            CHECK_CLOSE(sums[2 * columns + c], (double)tilt, (double)(2 * off * size));            \
        }                                                                                          \
        dense_reset();                                                                             \
    }
SOFT(f32, float, tops32, softmax32, 0x1p-24, -87)
SOFT(f64, double, tops64, softmax64, 0x1p-53, -707)

TEST(softmax_of_columns_agrees)
{
    for (int i = 0; cgam_cpu_all[i].name; i++) {
        const cgam_gemm *p = cgam_cpu_all[i].gemm;
        if (!cgam_cpu_all[i].usable()) continue;
        cgam_rng rng = cgam_rng_stream(13, (uint64_t)i);
        for (int64_t rows = 1; rows <= 70; rows++) {
            soft_f32(&rng, p, rows, p->lanes32 * (1 + rows % 4));
            soft_f64(&rng, p, rows, p->lanes32 * (1 + rows % 3));
        }
        double *X = dense_room(64);
        float *x = (float *)(void *)dense_room(64);
        for (int k = 0; k < 64; k++) x[k] = (float)(X[k] = cgam_rng_normal(&rng)), X[k] = k;
        p->gather(64, x, X);
        for (int k = 0; k < 64; k++) assert_true(X[k] == k + (double)x[k]);
        dense_reset();
    }
}
