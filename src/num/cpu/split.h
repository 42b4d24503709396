/* split.h: products of f32 matrices on a unit that multiplies tiles of bf16 and adds in f32.
 *
 *     C[c, r] (+)= sum_k A[r, k] B[c, k],     r < rows, c < columns, k < depth
 *
 * A number x is the sum of three in bf16, x = x1 + x2 + x3, each the rounding error of the previous ones: |x2| <= 2^-8
 * |x|, |x3| <= 2^-16 |x|, with no remainder, because 24 bits are three times 8. Of the nine products of two such sums
 * the six with i + j <= 4 are added up. The others are at most (2 2^-24 + 2^-32) sum_k |A[r, k]| |B[c, k]|.
 *
 * Each of the six products for 32 numbers is summed from zero, as two chains of 16 that are joined, and added to one sum
 * in f32, which at the end is added to C. A caller with more than CGAM_SPLIT_DEPTH numbers cuts them into slices of that
 * depth: a slice of A that is multiplied by many B then stays in the second-level cache. The absolute values of the terms
 * add up to at most CGAM_SPLIT_SIZES times that of the product, because those of one number add up to at most 1 + 2^-7 of
 * it (x = 1 + 2^-8 is 1 + 2^-7 minus 2^-8). So in total, including slices and starting from C = 0,
 *
 *     |error| <= cgam_split_roundings(depth) 2^-24 sum_k |A[r, k]| |B[c, k]|.
 *
 * Errors seldom add up: the largest of 35,000 sums of 2048 terms was off by 1.2 2^-24 of that sum. With two terms per
 * number, three products would remain of the six, at 1.6 times the speed, but 3 2^-16 would be left out: 15 times
 * the effect of rounding. After 22 layers of the default model, states were off by 1.6e-5; with three terms, by 2.2e-6.
 *
 * The unit treats numbers below 2^-126 as zero, so numbers below 2^-102 lose digits. A number that is not finite, or
 * rounds to infinity in bf16, turns all its sums into NaN. */
#ifndef CGAM_SRC_NUM_CPU_SPLIT_H
#define CGAM_SRC_NUM_CPU_SPLIT_H

#include <cgam/base.h>

enum {
    CGAM_SPLIT_PANEL = 32,  /* rows of a panel */
    CGAM_SPLIT_DEPTH = 512, /* numbers of a slice; every ggml type has blocks that divide it */
    CGAM_SPLIT_CODED = 32   /* numbers of a row that share a table of 8 */
};

#define CGAM_SPLIT_SIZES 1.016

/* Roundings: chains of 16, their sum, one for each product, one for each slice; plus the products left out. */
static inline double cgam_split_roundings(int64_t depth)
{
    int64_t steps = (depth < CGAM_SPLIT_DEPTH ? depth + 31 : CGAM_SPLIT_DEPTH) / 32;
    int64_t chain = depth < 32 ? (depth + 1) / 2 : 16;
    int64_t sums = (depth + CGAM_SPLIT_DEPTH - 1) / CGAM_SPLIT_DEPTH;
    return CGAM_SPLIT_SIZES * (double)(chain + 1 + 6 * steps + sums) + 2.01;
}

/* Operands are packed into panels of CGAM_SPLIT_PANEL rows, aligned to 64 bytes. */
typedef struct cgam_split {
    /* Bytes of a panel with that many numbers a row. */
    size_t (*room)(int64_t depth);
    /* Copies row `row` of A into its panel; NULL = zeros. Every row of a panel must be set. */
    void (*left)(int64_t row, int64_t depth, const float *a, void *panel);
    /* The same for a row whose number k is values[k / 32][codes[k]]; codes below 8, depth a multiple of
     * 32. */
    void (*left_coded)(int64_t row, int64_t depth, const uint8_t *codes, const float (*values)[8],
                       void *panel);
    /* Makes a whole panel of `rows` <= CGAM_SPLIT_PANEL rows of B, each ldb after the last. */
    void (*right)(int64_t rows, int64_t depth, const float *B, int64_t ldb, void *panel);
    /* The product, of one slice. A number of C depends only on its row of A and its row of B, not on what else
     * is multiplied in the same call. add: to what is in C; its rows are ldc apart. */
    void (*mul)(int64_t rows, int64_t columns, int64_t depth, const void *A, const void *B,
                float *C, int64_t ldc, bool add);
} cgam_split;

#endif
