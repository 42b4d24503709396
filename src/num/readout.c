/* readout.c: see readout.h. */
#include "num/readout.h"

#include <math.h>
#include <string.h>

enum {
    FEW = 32, /* below one row in this many, rows are read by list */
    TILE_ROWS_MIN = 8,
    TILE_ROWS_MAX = 64,
};

int64_t cgam_readout_tile(const cgam_rows *Z)
{
    int64_t rows = Z->cpu->f32->tile / ((int64_t)cgam_dtype_size(Z->dtype) * Z->d) / 8 * 8;
    return rows < TILE_ROWS_MIN ? TILE_ROWS_MIN : rows > TILE_ROWS_MAX ? TILE_ROWS_MAX : rows;
}

/* Uses all rows of the tile, with zeros for the `few` that may be left out: f32 is slow with subnormal numbers.
 * Returns the weight left out. */
static double set_whole(const cgam_rows *Z, const double *weight, int64_t few, double cut,
                        cgam_readout *out)
{
    const double *scale = Z->scale ? Z->scale + out->begin : NULL; /* rows stored here */
    double left_out = 0;
    out->count = out->rows;
    if (out->f32 && scale)
        for (int64_t i = 0; i < out->rows; i++) out->w32[i] = (float)(weight[i] * scale[i]);
    else if (out->f32)
        for (int64_t i = 0; i < out->rows; i++) out->w32[i] = (float)weight[i];
    else
        for (int64_t i = 0; i < out->rows; i++) out->w[i] = weight[i] * (scale ? scale[i] : 1);
    for (int64_t i = 0; few && i < out->rows; i++) {
        if (!(fabs(weight[i]) <= cut)) continue;
        left_out += fabs(weight[i]);
        if (out->f32) out->w32[i] = 0;
        else out->w[i] = 0;
    }
    return left_out;
}

double cgam_readout_set(const cgam_rows *Z, int64_t begin, int64_t rows, const double *weight,
                        double cut, cgam_readout *out)
{
    double left_out = 0;
    out->begin = begin;
    out->rows = rows;
    out->count = 0;
    int64_t count = Z->cpu->f64->above(weight, rows, cut); /* NaN counts */
    if (count * FEW > rows) return set_whole(Z, weight, rows - count, cut, out);
    for (int64_t i = 0; i < rows; i++) {
        bool matters = !(fabs(weight[i]) <= cut);
        out->at[out->count] = (int32_t)i;
        out->w[out->count] = Z->scale ? weight[i] * Z->scale[begin + i] : weight[i];
        left_out += matters ? 0 : fabs(weight[i]);
        out->count += matters;
    }
    return left_out;
}

void cgam_readout_flush(const cgam_rows *Z, cgam_readout_sum *to)
{
    if (to->rows) Z->cpu->f32->flush[Z->dtype](Z->d, to->y32, to->y);
    to->rows = 0;
}

/* How many of `left` rows y32 may still sum. */
static int64_t rows_that_fit(const cgam_rows *Z, int64_t left, cgam_readout_sum *to)
{
    if (to->rows == CGAM_F32_ROWS) cgam_readout_flush(Z, to);
    int64_t some = CGAM_F32_ROWS - to->rows < left ? CGAM_F32_ROWS - to->rows : left;
    to->rows += some;
    return some;
}

/* Adds the rows of a whole tile from `from` on. */
static void add_whole(const cgam_rows *Z, const cgam_readout *stale, int64_t from,
                      cgam_readout_sum *to)
{
    int64_t left = stale->rows - from;
    const void *rows = cgam_rows_at(Z, stale->begin + from);
    if (!stale->f32 && left)
        Z->cpu->f64->sum[Z->dtype](rows, Z->stride, left, Z->d, stale->w + from, to->y);
    for (int64_t i = from, some; stale->f32 && i < stale->rows; i += some) {
        some = rows_that_fit(Z, stale->rows - i, to);
        Z->cpu->f32->sum[Z->dtype](cgam_rows_at(Z, stale->begin + i), Z->stride, some, Z->d,
                                   stale->w32 + i, to->y32);
    }
}

void cgam_readout_add(const cgam_rows *Z, cgam_readout *stale, cgam_readout_sum *to)
{
    const void *rows = cgam_rows_at(Z, stale->begin);
    if (stale->count == stale->rows) add_whole(Z, stale, 0, to);
    else if (stale->count)
        Z->cpu->f64->sum_at[Z->dtype](rows, Z->stride, stale->at, stale->count, Z->d, stale->w,
                                      to->y);
    stale->count = 0;
}

static void scale_scores(const cgam_rows *Z, int64_t begin, int64_t count, double *out)
{
    const double *scale = Z->scale ? cgam_rows_entries(Z, Z->scale, begin) : NULL;
    for (int64_t i = 0; scale && i < count; i++) out[i] *= scale[i];
}

void cgam_readout_score(const cgam_rows *Z, int64_t begin, int64_t count, const double *x,
                        const float *x32, double *out)
{
    if (!x32) {
        cgam_rows_dot(Z, begin, count, x, out);
        return;
    }
    Z->cpu->f32->dot[Z->dtype](cgam_rows_at(Z, begin), Z->stride, count, Z->d, x32, out);
    scale_scores(Z, begin, count, out);
}

void cgam_readout_dot(const cgam_rows *Z, int64_t begin, int64_t count, const double *x,
                      const float *x32, double *out, cgam_readout *stale, cgam_readout_sum *to)
{
    /* in double a sum that is cut in two has other bits */
    bool fits = x32 ? stale->f32 : !stale->f32 && count == stale->rows;
    if (stale->count == 0 || stale->count != stale->rows || !fits) {
        cgam_readout_score(Z, begin, count, x, x32, out);
        if (stale->count) cgam_readout_add(Z, stale, to);
        return;
    }
    int64_t pairs = count < stale->rows ? count : stale->rows;
    if (!x32)
        Z->cpu->f64->both[Z->dtype](cgam_rows_at(Z, begin), cgam_rows_at(Z, stale->begin),
                                    Z->stride, pairs, Z->d, x, out, stale->w, to->y);
    for (int64_t i = 0, some; x32 && i < pairs; i += some) {
        some = rows_that_fit(Z, pairs - i, to);
        Z->cpu->f32->both[Z->dtype](cgam_rows_at(Z, begin + i), cgam_rows_at(Z, stale->begin + i),
                                    Z->stride, some, Z->d, x32, out + i, stale->w32 + i, to->y32);
    }
    scale_scores(Z, begin, pairs, out);
    if (pairs < count) cgam_readout_score(Z, begin + pairs, count - pairs, x, x32, out + pairs);
    add_whole(Z, stale, pairs, to);
    stale->count = 0;
}
