/* digits.h: products of f32 on a unit that multiplies tiles of bytes and adds up integers.
 *
 *     scores   S[r, v]   = sum_j Z[r, j] X[v, j]        r < rows, v < vectors <= CGAM_DIGITS_GROUP
 *     readout  Y[v, j]  += sum_r W[r, v] Z[r, j]        CGAM_DIGITS_ROWS rows at a time
 *
 * Numbers that share a step are rounded to integers, x = z / step, and written with three digits to the base 256,
 * x = 2^16 x2 + 2^8 x1 + x0, each from -128 to 127. Sums of products of digits are exact, so the error is known before
 * anything is multiplied. Compared with three terms in bf16 (split.h), the unit forms eight products instead of twelve,
 * six for a readout, and reads half as many bytes of vectors.
 *
 * Scores. A row and a vector each have one step per CGAM_DIGITS_BLOCK columns: the largest number in the block divided by
 * CGAM_DIGITS_ROW or CGAM_DIGITS_VECTOR. With z = s (x + e), q = t (y + f), every |e_j| and |f_j| at most 1/2, and B = 256,
 *     |z.q - s t x.y| <= s |e| |q| + t |f| s |x| <= sqrt(B)/2 |z| |q| (1/ROW + 1/VECTOR)
 * up to products of two roundings, because |z| is at least its largest number: 32.3 and 16.1 times 2^-24.
 * All products of digits except x0 y0 are added up; that one is at most 128^2 B and so 2.1 2^-24 of the lengths. Converting
 * the sums to f32 takes three roundings, multiplying by the steps five; one comes from rounding the vectors (which are
 * multiplied before they are rounded), and one for each block from adding blocks. So over all blocks
 *     |error| <= cgam_digits_roundings(d) 2^-24 |Z[r]| |X[v]|
 * plus 2^-105 for each block whose product of two steps is too small for f32. A block whose largest number is below
 * CGAM_DIGITS_LEAST counts as zeros; one that is not finite makes the scores of its row or vector NaN. A score depends
 * only on its row and its vector.
 *
 * Readout. The weights of a vector are multiplied by the largest numbers of their rows, m_r: the products W[r, v] m_r become
 * integers with one step for all rows, so that they are packed once. The steps of a row are given by m_r and, in each
 * block, by the factor that all rows share, g_b = max_r (largest number there / m_r): columns that are large in all rows
 * then cost other blocks no precision. Of the products of digits those above 2^8 are added up. Rows contribute an error of
 * 2 2^-24 of m_r g_b, weights 64.3, the products left out at most 260, and roundings 8:
 *     |error| <= CGAM_DIGITS_READ 2^-24 sum_r |W[r, v]| m_r g_b
 * plus one rounding of f32 for each call. Errors seldom add up: a hundredth of this is usual. These count
 * as zeros: rows of a block where m_r g_b is below CGAM_DIGITS_LEAST, and the weights of a vector if every
 * |W[r, v]| m_r is below 2^-78. */
#ifndef CGAM_SRC_NUM_CPU_DIGITS_H
#define CGAM_SRC_NUM_CPU_DIGITS_H

#include <cgam/base.h>

enum {
    CGAM_DIGITS_GROUP = 64,  /* vectors, at most */
    CGAM_DIGITS_BLOCK = 256, /* columns that share a step */
    CGAM_DIGITS_ROWS = 64,   /* most rows that are read out together */
    CGAM_DIGITS_LINE = 16, /* adjacent columns of sums; the number of vectors is a multiple of it */
    CGAM_DIGITS_READ = 340
};
#define CGAM_DIGITS_ROW 0x3f7f00p0F    /* the largest number of a row, */
#define CGAM_DIGITS_VECTOR 0x7f7f00p0F /* and of a vector, in steps */
#define CGAM_DIGITS_LEAST 0x1p-100F

static inline int64_t cgam_digits_blocks(int64_t d)
{
    return (d + CGAM_DIGITS_BLOCK - 1) / CGAM_DIGITS_BLOCK;
}
static inline double cgam_digits_roundings(int64_t d) { return 60 + (double)cgam_digits_blocks(d); }

/* Rows are f32 or bf16, ld numbers apart; at least one row. */
typedef struct cgam_digits {
    /* Packs vectors X[count, d], rounded to f32, for `score`, aligned to 64 bytes; vectors that pad the last LINE are
     * zeros. */
    size_t (*room)(int64_t count, int64_t d);
    void (*lay)(int64_t count, int64_t d, const double *X, void *out);
    /* S[rows, count], rows `count` apart, a multiple of LINE. largest[rows, blocks]: the largest absolute value in each
     * block; NAN if a number is not finite. */
    void (*score)(cgam_dtype type, int64_t rows, int64_t count, int64_t d, const void *Z,
                  int64_t ld, const void *X, float *S, float *largest);
    /* Computes only `largest`. */
    void (*largest)(cgam_dtype type, int64_t rows, int64_t d, const void *Z, int64_t ld,
                    float *out);
    /* Packs W[rows, count] for `read`, into weights_room bytes, aligned to 64. */
    size_t weights_room;
    void (*weights)(int64_t rows, int64_t count, int64_t d, const float *W, const float *largest,
                    void *out);
    /* Adds to Y, where number [v, j] is at j / LINE * count LINE + v LINE + j % LINE. Columns that pad the last LINE
     * get zeros. */
    void (*read)(cgam_dtype type, int64_t rows, int64_t count, int64_t d, const void *Z, int64_t ld,
                 const float *largest, const void *weights, float *Y);
} cgam_digits;

#endif
