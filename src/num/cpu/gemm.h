/* gemm.h: the inner loop of matrix products, in registers.
 *
 *     C[r, c] += sum_k A[r ra + k ka] B[k ldb + c],     r < rows, c < columns, k < depth
 *
 * One accumulator per vector of C stays in a register over the whole depth. Products start from zero, and C is read and
 * written once, so the caller chooses by the depth how many terms are summed before they are added to C. A is read one
 * element at a time, with any strides; B is read by vectors along c. Scores (A = rows, B = queries side by side),
 * readouts (A = columns of rows, B = weights) and Gram matrices all have this form, and none needs a copy of its rows. */
#ifndef CGAM_SRC_NUM_CPU_GEMM_H
#define CGAM_SRC_NUM_CPU_GEMM_H

#include <cgam/base.h>

/* [next, stop): memory needed after this product; it is prefetched into the second-level cache during the product,
 * one line for every two terms and tile; NULL = none. */
typedef void cgam_mul32(int64_t rows, int64_t columns, int64_t depth, const float *A, int64_t ra,
                        int64_t ka, const float *B, int64_t ldb, float *C, int64_t ldc,
                        const void *next, const void *stop);
typedef void cgam_mul64(int64_t rows, int64_t columns, int64_t depth, const double *A, int64_t ra,
                        int64_t ka, const double *B, int64_t ldb, double *C, int64_t ldc,
                        const void *next, const void *stop);

typedef struct cgam_gemm {
    /* columns must be a multiple of these: a vector's width. Best speed at multiples of `best`. */
    int64_t lanes32, lanes64, best32, best64;
    cgam_mul32 *mul32;
    cgam_mul64 *mul64;
    /* X[i] += x[i]; n a multiple of lanes32. */
    void (*gather)(int64_t n, const float *x, double *X);
    /* top[c] = max over rows of R[row, c], R [rows, columns], columns a multiple of lanes32. */
    void (*tops32)(int64_t rows, int64_t columns, const float *R, double *top);
    void (*tops64)(int64_t rows, int64_t columns, const double *R, double *top);
    /* R becomes exp(beta (R - top[c])), to 2 ulp, and 0 below CGAM_EXP_ZERO or, in f32,
     * CGAM_EXP_ZERO_F32; sums [3, columns] = sums over rows of e, e^2 and e beta (r - top), summed in the
     * type of R. beta (r - top) may be at most 20; -INFINITY is a legal score. */
    void (*softmax32)(int64_t rows, int64_t columns, float *R, double beta, const double *top,
                      double *sums);
    void (*softmax64)(int64_t rows, int64_t columns, double *R, double beta, const double *top,
                      double *sums);
} cgam_gemm;

/* The table of functions of these names, as gemm_plain.c and gemm_simd.c have them, for vectors of
 * `lanes` floats, at best `vectors` of them side by side. */
#define CGAM_GEMM_TABLE(lanes, vectors)                                                            \
    {                                                                                              \
        .lanes32 = (lanes), .lanes64 = ((lanes) + 1) / 2, .best32 = (vectors) * (lanes),           \
        .best64 = (vectors) * (((lanes) + 1) / 2), .mul32 = mul_f32, .mul64 = mul_f64,             \
        .gather = gather, .tops32 = tops_f32, .tops64 = tops_f64, .softmax32 = softmax_f32,        \
        .softmax64 = softmax_f64,                                                                  \
    }

#endif
