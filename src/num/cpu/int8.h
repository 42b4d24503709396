/* int8.h: rows of small integers scored by vectors of small integers, for sketches (num/sketch.h).
 *
 *     out[i, v] = sum_b scale[i, b] step[v, b] I,    I = sum of row[i, j] x[v, j] over the columns j of block b
 *
 * Rows hold -127 .. 127 and vectors -most .. most with most <= 127. I is a sum over at most CGAM_INT8_BLOCK columns and
 * so below 2^24: it is summed exactly, in any order, and is exact as a float. A term is scale times step times I,
 * rounded twice; lanes and blocks are added up in f32 or better, with at most CGAM_INT8_ROUNDINGS(blocks) roundings:
 *
 *     |out - exact| <= roundings 2^-24 (1 + 2^-20) sum_j |scale row_j step x_j| + 2^-100,
 *
 * where 2^-100 covers terms below the range of f32 (d at most CGAM_INT8_COLUMNS, scale and step at most 1).
 *
 * A vector may instead have wide numbers, -CGAM_INT8_WIDE .. CGAM_INT8_WIDE. I is then below 2^31 and still summed
 * exactly; CGAM_INT8_ROUNDINGS counts its rounding to a float. */
#ifndef CGAM_SRC_NUM_CPU_INT8_H
#define CGAM_SRC_NUM_CPU_INT8_H

#include <cgam/base.h>

enum {
    CGAM_INT8_BLOCK = 512, /* columns that share a scale */
    CGAM_INT8_MOST = 127,  /* size of a number */
    CGAM_INT8_WIDE = 32767,
    CGAM_INT8_COLUMNS = 1 << 27, /* of a row */
    CGAM_INT8_PAD = 64,          /* readable bytes after the last row, with any content */
    CGAM_INT8_TILE = 32,         /* rows that loops for many vectors take at least, */
    CGAM_INT8_SIDE = 16          /* and what the number of those vectors is a multiple of */
};
#define CGAM_INT8_ROUNDINGS(blocks) ((double)(blocks) + 9)

static inline int64_t cgam_int8_blocks(int64_t d)
{
    return (d + CGAM_INT8_BLOCK - 1) / CGAM_INT8_BLOCK;
}

typedef struct cgam_int8 {
    /* Bytes that m vectors of d numbers take as `lay` lays them out, a multiple of 64. */
    size_t (*room)(int64_t m, int64_t d);
    /* x [m, d], step [m, blocks]; out begins on a 64-byte boundary. */
    void (*lay)(int64_t m, int64_t d, const int8_t *x, const float *step, void *out);
    /* rows [n, d], scale [n, blocks], out [n, m]. A number of out depends only on its row and vector. */
    void (*dot)(const int8_t *rows, const float *scale, int64_t n, int64_t d, int64_t m,
                const void *X, float *out);
    int most; /* size of the numbers of a vector */
    /* The same for one vector of wide numbers, x [blocks CGAM_INT8_BLOCK] with zeros behind d; out [n]. */
    void (*dot_wide)(const int8_t *rows, const float *scale, int64_t n, int64_t d, const int16_t *x,
                     const float *step, float *out);
} cgam_int8;

#endif
