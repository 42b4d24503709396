/* readout.h: a sum of weighted rows, delayed until it can overlap with reading other rows.
 *
 * A tile of rows that has been scored and weighted is still in cache when the next one is read from memory; its
 * readout is interleaved with those scores (`both` of cpu/f64.h and cpu/f32.h). Rows of negligible weight need not be
 * read: if only few rows of a tile count, only those are read, and always in double. */
#ifndef CGAM_SRC_NUM_READOUT_H
#define CGAM_SRC_NUM_READOUT_H

#include "num/rows.h"

typedef struct cgam_readout {
    bool f32;            /* whole tiles in f32; otherwise all in double */
    int64_t begin, rows; /* the tile */
    int64_t count;       /* rows still to be added; `rows` = all of them, 0 = none */
    double *w;           /* [rows] caller's buffer: weights of the rows that count, times scale */
    int32_t *at;         /* [rows] caller's buffer: their places in the tile */
    float *w32;          /* [rows] caller's buffer, with f32 */
} cgam_readout;

/* A readout: the sum is in y, and in y32 in the order of cpu/f32.h. */
typedef struct cgam_readout_sum {
    double *y;    /* [d] */
    float *y32;   /* [d + CGAM_F32_PAD], zeros at first; NULL if no part is in f32 */
    int64_t rows; /* added to y32 since the last flush */
} cgam_readout_sum;

/* Makes one for tiles of up to `rows` rows, in the caller's buffer of CGAM_READOUT_ROOM doubles a row. */
enum { CGAM_READOUT_ROOM = 2 };
static inline cgam_readout cgam_readout_in(double *buffer, int64_t rows)
{
    int32_t *at = (int32_t *)(void *)(buffer + rows);
    return (cgam_readout){.w = buffer, .at = at, .w32 = (float *)(void *)at + rows};
}

/* Rows of a tile: few enough to be in cache one tile later, enough to outweigh the work between tiles. */
int64_t cgam_readout_tile(const cgam_rows *Z);

/* weight[i] of row begin + i. Rows with |weight| <= cut may be left out; returns the sum of |weight|
 * left out. cut < 0: all rows count. */
double cgam_readout_set(const cgam_rows *Z, int64_t begin, int64_t rows, const double *weight,
                        double cut, cgam_readout *out);
/* out[i] = <zeta_{begin+i}, x> for i < count, with the bits of cgam_readout_score; adds the delayed rows of `stale`
 * to `to` and empties `stale`. x32: x as laid out by `lay` of cpu/f32.h, or NULL for double. */
void cgam_readout_dot(const cgam_rows *Z, int64_t begin, int64_t count, const double *x,
                      const float *x32, double *out, cgam_readout *stale, cgam_readout_sum *to);
/* out[i] = <zeta_{begin+i}, x>: cgam_rows_dot, or in f32 if x32 is given. */
void cgam_readout_score(const cgam_rows *Z, int64_t begin, int64_t count, const double *x,
                        const float *x32, double *out);
/* Adds the delayed rows of `stale` to `to`. */
void cgam_readout_add(const cgam_rows *Z, cgam_readout *stale, cgam_readout_sum *to);
/* Moves the whole sum to y. Call it before y is read or scaled. */
void cgam_readout_flush(const cgam_rows *Z, cgam_readout_sum *to);

#endif
